import dataclasses

import pytest

from directrank.cost.cluster import Cluster, queue
from directrank.system.errors import ConfigError


def test_wall_time_is_that_of_the_longest_slot():
    cluster = Cluster("c", nodes=2, cores_per_node=2, cores_per_job=2)
    course = queue([3600, 3600, 7200], cluster)
    assert (course.slots, course.jobs, course.cut) == (2, 3, 0)
    assert course.wall_hours == pytest.approx(2)
    assert course.busy == pytest.approx(1)


def test_a_job_longer_than_the_limit_is_cut():
    cluster = Cluster("c", nodes=1, time_limit_hours=2, wait_minutes=30)
    course = queue([5 * 3600], cluster)
    assert (course.jobs, course.cut) == (3, 1)
    assert course.wall_hours == pytest.approx(5 + 3 * 0.5)


def test_short_jobs_are_grouped():
    cluster = Cluster("c", nodes=4, group_minutes=10)
    course = queue([60] * 40, cluster)
    assert course.jobs == 4
    assert queue([60] * 40, dataclasses.replace(cluster, group_minutes=0)).jobs == 40


def test_gpus_and_the_queue_limit_the_slots():
    gpus = Cluster("c", nodes=3, device="cuda", cores_per_node=64, gpus_per_node=4, jobs_per_gpu=2)
    assert gpus.slots == 24
    assert dataclasses.replace(gpus, parallel_jobs=5).slots == 5


def test_a_cluster_on_which_no_job_fits_is_refused(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text("{name: c, nodes: 1, cores_per_node: 2, cores_per_job: 4}")
    with pytest.raises(ConfigError, match="no job fits"):
        Cluster.read(path)
    path.write_text("{name: c, nodes: 1, cores_per_node: 2, core_per_job: 4}")
    with pytest.raises(ConfigError, match="core_per_job"):
        Cluster.read(path)
