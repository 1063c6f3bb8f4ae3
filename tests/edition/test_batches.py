"""Runs that share data are trained together."""

from dataclasses import replace

import pytest

from directrank.cost.predict import planned_seconds
from directrank.edition import batches as module
from directrank.edition.batches import batches, gpus, processes
from directrank.edition.plan import Study, runs_behind
from studies import study_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def study():
    return study_of("real")


@pytest.fixture(scope="module")
def seconds(study):
    return planned_seconds(study)


def test_every_run_is_in_one_batch_with_runs_of_the_same_papers_and_fold(study, seconds):
    made = batches(study, seconds, 300)
    runs = [run for batch in made.values() for run in batch.runs]
    assert sorted(runs) == sorted(study.runs)
    needed = {key: runs_behind([plan]) for key, plan in study.products.items()}
    for batch in made.values():
        assert {study.run_data[run] for run in batch.runs} == {batch.data}
        assert len({study.runs[run]["fold"] for run in batch.runs}) == 1
        papers = {
            tuple(sorted({paper for (paper, _), names in needed.items() if run in names}))
            for run in batch.runs
        }
        assert len(papers) == 1


def test_a_batch_has_at_most_so_many_seconds_unless_it_is_a_single_long_run(study, seconds):
    for most in (60, 300):
        made = batches(study, seconds, most)
        for batch in made.values():
            total = sum(seconds[run] for run in batch.runs)
            assert batch.is_long == (total > most)
            assert not batch.is_long or len(batch.runs) == 1
    assert len(batches(study, seconds, 300)) < len(batches(study, seconds, 60)) < len(study.runs)


def test_long_runs_do_not_part_the_others():
    assert module._parts(list("aLbLc"), {"a": 1, "b": 2, "c": 3, "L": 9}, 4) == [
        ["a", "b"],
        ["L"],
        ["L"],
        ["c"],
    ]


def test_one_more_part_is_made_if_the_runs_do_not_fit():
    seconds = {"a": 3, "b": 3, "c": 3, "d": 1}
    assert module._parts(list("abcd"), seconds, 5) == [["a", "d"], ["b"], ["c"]]


def test_slow_and_fast_runs_are_spread_over_the_batches(study, seconds):
    made = batches(study, seconds, 300)
    for fold in "12345":
        name = f"one_protocol-ohsumed-f{fold}-"
        parts = [batch.runs for key, batch in made.items() if key.startswith(name)]
        assert len(parts) > 1
        for share in (
            lambda run: study.runs[run]["learner"] == "neural",
            lambda run: seconds[run] > 30,
            lambda run: seconds[run] < 5,
        ):
            counts = [sum(map(share, runs)) for runs in parts]
            assert max(counts) <= 1.5 * min(counts)


def test_a_run_that_takes_the_place_of_another_leaves_the_other_batches_as_they_are(study, seconds):
    before = batches(study, seconds, 60)
    old = next(batch.runs[0] for batch in before.values() if len(batch.runs) > 5)
    renamed = {old: "new"}
    runs = {renamed.get(run, run): spec for run, spec in study.runs.items()}
    data = {renamed.get(run, run): key for run, key in study.run_data.items()}
    products = {
        key: {
            **plan,
            "experiments": {
                name: [{**cell, "run": renamed.get(cell["run"], cell["run"])} for cell in cells]
                for name, cells in plan["experiments"].items()
            },
        }
        for key, plan in study.products.items()
    }
    changed = replace(study, runs=runs, run_data=data, products=products)
    after = batches(changed, {**seconds, "new": seconds[old]}, 60)
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == [
        name for name in before if old in before[name].runs
    ]


def test_networks_on_a_gpu_are_trained_apart_from_trees():
    study = study_of("demo")
    on_gpu = Study(
        {**study.config, "device": "cuda"}, study.data, study.runs, study.run_data, study.products
    )
    made = batches(on_gpu, dict.fromkeys(study.runs, 1.0), 1000)
    for name, batch in made.items():
        assert {gpus(on_gpu, run) for run in batch.runs} == {int("-gpu-" in name)}
    assert {gpus(study, run) for run in study.runs} == {0}


def test_trees_whose_settings_ask_for_a_gpu_are_trained_apart_from_those_of_cores():
    study = study_of("demo")
    asks, other = [run for run, spec in study.runs.items() if spec["learner"] == "xgboost"][:2]
    spec = study.runs[asks]
    changed = {**spec, "model": {**spec["model"], "device": "cuda"}}
    mixed = replace(study, runs={**study.runs, asks: changed})
    made = batches(mixed, dict.fromkeys(mixed.runs, 1.0), 1000)
    (own,) = (name for name, batch in made.items() if asks in batch.runs)
    assert "-gpu-" in own
    assert made[own].runs == (asks,)
    assert (gpus(mixed, asks), gpus(mixed, other)) == (1, 0)


def test_what_a_gpu_trains_in_one_pass_is_one_batch():
    study = study_of("paper_yu2020")
    on_gpu = replace(study, config={**study.config, "device": "cuda"})
    made = batches(on_gpu, dict.fromkeys(study.runs, 1000.0), 300)
    sizes = {}
    for name, batch in made.items():
        networks = [run for run in batch.runs if gpus(on_gpu, run)]
        if "-gpu-" in name:
            assert processes(on_gpu, batch.runs) == [networks]
        if len(networks) > 60:
            sizes[study.runs[networks[0]]["fold"]] = len(networks)
        assert batch.is_long
    assert sorted(sizes) == [1, 2, 3, 4, 5]
