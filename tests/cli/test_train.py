"""Batches: each run in a process of its own, skipped if current, and failing alone."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from directrank.study.batch import PlannedRun, plan_text, read_plan
from directrank.study.provenance import run_digest
from directrank.study.specification import run_name
from directrank.system.errors import ConfigError
from directrank.system.usage import read_usage
from stopped_runs import LINEAR, SPEC, result
from training_data import prepare

pytestmark = pytest.mark.slow

QUICK = {**LINEAR, "trials": 1, "tune": {"loss.alpha": [1.0]}}
QUICK |= {"training": {**LINEAR["training"], "max_epochs": 2, "restarts": 1}}


def planned(spec) -> PlannedRun:
    return PlannedRun(run_name(spec), spec, run_digest(spec))


#: Runs of one batch: that whose loss is not finite cannot be trained.
RUNS = [
    planned({**QUICK, "loss": {"name": "approx_ndcg"}, "tune": {"loss.alpha": [alpha]}})
    for alpha in (1.0, 2.0, 3.0)
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("data") / "prepared")


#: `directrank train`, in which a run is struck as soon as it begins, if one is named.
STRUCK = """
import os, signal, sys
from directrank.cli import main
from directrank.study import run

execute = run.execute

def struck(spec, data, out, **others):
    if out.name == {name!r}:
        {blow}
    execute(spec, data, out, **others)

run.execute = struck
sys.exit(main(sys.argv[1:]))
"""


def command(folder, data, *options) -> list[str]:
    (folder / "batch.json").write_text(plan_text(RUNS), encoding="utf-8")
    words = ["train", folder / "batch.json", "--data", data, "--results", folder / "results"]
    words += ["--logs", folder / "logs", "--record", folder / "record.json", *options]
    return list(map(str, words))


def trained(folder, data, name="", blow="pass", **variables):
    """The finished command, in which the run ``name`` was struck."""
    return subprocess.run(
        [sys.executable, "-c", STRUCK.format(name=name, blow=blow), *command(folder, data)],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=False,
    )


def files_of(folder, run):
    return folder / "results/runs" / run.name


def written(folder):
    """When the record of each run was written."""
    return [files_of(folder, run).joinpath("run.json").stat().st_mtime_ns for run in RUNS]


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    """A folder with a whole batch, and what its command printed; tests leave it as it is."""
    folder = tmp_path_factory.mktemp("whole")
    done = trained(folder, data)
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


def test_each_run_has_results_a_log_with_its_command_and_a_usage(whole, data):
    folder, printed = whole
    assert "3 of 3 runs are to be trained" in printed
    assert json.loads((folder / "record.json").read_text()).keys() == {run.name for run in RUNS}
    for run in RUNS:
        record = json.loads((files_of(folder, run) / "run.json").read_text())
        assert (record["spec"], record["code"]) == (run.spec, run.code)
        first = (folder / f"logs/{run.name}.log").read_text().splitlines()[0]
        assert f"directrank fit {files_of(folder, run) / 'spec.json'} --data {data}" in first
        used = read_usage(folder / f"logs/{run.name}.benchmark.tsv")
        assert 0 < used["cpu_time"] < used["s"] + 1
        assert used["max_rss"] > 50


def test_current_runs_are_skipped_and_stale_ones_trained_again(whole, data, tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(whole[0], folder)
    _, second, third = RUNS
    before = written(folder)
    record = files_of(folder, second) / "run.json"
    record.write_text(record.read_text().replace(second.code, "0" * len(second.code)))
    (files_of(folder, second) / "models/left.over").touch()
    files_of(folder, third).joinpath("fits.csv").unlink()
    done = trained(folder, data)
    assert done.returncode == 0
    assert "2 of 3 runs are to be trained" in done.stderr
    after = written(folder)
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, False]
    for run in RUNS:
        assert result(files_of(folder, run)) == result(files_of(whole[0], run))
    done = trained(folder, data)
    assert "0 of 3 runs are to be trained" in done.stderr
    assert json.loads((folder / "record.json").read_text()) == json.loads(
        (whole[0] / "record.json").read_text()
    )


def test_runs_on_other_data_or_another_specification_are_not_current(whole):
    run, other, _ = RUNS
    folder = files_of(whole[0], run)
    data = json.loads((folder / "run.json").read_text())["data"]["digest"]
    assert run.is_current(folder, data)
    assert run.is_current(folder)
    assert not run.is_current(folder, "other data")
    assert not other.is_current(folder, data)
    assert not PlannedRun(run.name, run.spec, "other code").is_current(folder)


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"spec": {}, "code": "", "data": 1}'])
def test_a_record_that_is_damaged_or_old_is_not_current(content, whole, tmp_path):
    shutil.copytree(files_of(whole[0], RUNS[0]), tmp_path / "run")
    (tmp_path / "run/run.json").write_text(content)
    assert not RUNS[0].is_current(tmp_path / "run")


@pytest.mark.parametrize(
    ("blow", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL"),
        ("raise MemoryError('no room')", "error: out of memory (no room)"),
        ("raise RuntimeError('a fault')", "RuntimeError: a fault"),
    ],
)
def test_a_run_that_fails_does_so_alone_and_is_trained_at_the_next_try(
    blow, said, whole, data, tmp_path
):
    struck = RUNS[1]
    done = trained(tmp_path, data, struck.name, blow)
    assert done.returncode == 2
    assert said in done.stderr
    assert f"1 of 3 failed: {struck.name}" in done.stderr
    assert not (tmp_path / "record.json").exists()
    for run in RUNS:
        assert run.is_current(files_of(tmp_path, run)) == (run != struck)
    done = trained(tmp_path, data)
    assert done.returncode == 0
    assert "1 of 3 runs are to be trained" in done.stderr
    assert result(files_of(tmp_path, struck)) == result(files_of(whole[0], struck))


def test_a_failure_that_is_recorded_counts_as_done(data, tmp_path):
    struck = RUNS[1]
    blow = "raise RuntimeError('no split found')"
    done = trained(tmp_path, data, struck.name, blow, DIRECTRANK_RECORD_FAILURE="1")
    assert done.returncode == 0, done.stderr
    record = json.loads((files_of(tmp_path, struck) / "run.json").read_text())
    assert record["failed"] == "RuntimeError: no split found"
    assert struck.is_current(files_of(tmp_path, struck))
    assert "0 of 3 runs are to be trained" in trained(tmp_path, data).stderr


def test_a_batch_that_is_told_to_end_keeps_its_work_and_resumes(data, tmp_path):
    spec = {**SPEC, "training": {**SPEC["training"], "max_epochs": 100, "patience": None}}
    long = planned(spec)
    (tmp_path / "batch.json").write_text(plan_text([long, RUNS[0]]), encoding="utf-8")
    words = ["train", "batch.json", "--data", data, "--results", "results", "--logs", "logs"]
    words = [sys.executable, "-m", "directrank", *map(str, words)]
    with open(tmp_path / "said", "w", encoding="utf-8") as said:
        process = subprocess.Popen(words, cwd=tmp_path, stderr=said)
    log = tmp_path / f"logs/{long.name}.log"
    try:
        # A fork has its parent's handlers until shortly before its log begins.
        while not (log.exists() and log.read_text() and _catches_sigterm(process)):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 2
    finally:
        process.kill()
        process.wait()
    told = (tmp_path / "said").read_text()
    assert "error: stopped by SIGTERM; started again, it goes on from there" in told
    assert "stopped by SIGTERM" in log.read_text()
    assert list(tmp_path.glob("results/runs/*.checkpoint/*.safetensors"))
    assert not files_of(tmp_path, RUNS[0]).exists()
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert "resuming from checkpoint" in log.read_text()
    assert long.is_current(files_of(tmp_path, long))
    assert RUNS[0].is_current(files_of(tmp_path, RUNS[0]))


def _catches_sigterm(process) -> bool:
    """Whether a fork of the process does: a fit that has begun."""
    for children in Path("/proc").joinpath(str(process.pid), "task").glob("*/children"):
        for pid in children.read_text().split():
            status = Path(f"/proc/{pid}/status").read_text()
            (caught,) = (line for line in status.splitlines() if line.startswith("SigCgt:"))
            if int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1):
                return True
    return False


def test_what_is_no_batch_is_refused(tmp_path):
    (tmp_path / "batch.json").write_text('{"run": 1}')
    with pytest.raises(ConfigError, match="is not a batch"):
        read_plan(tmp_path / "batch.json")


#: Prints the threads of a process that has prepared for every run of the demo, or every product.
THREADS = """
import os
from studies import study_of
{prepare}
tasks = os.listdir("/proc/self/task")
names = [open(f"/proc/self/task/{{task}}/comm").read().strip() for task in tasks]
print(len(names), set(names[1:]))
"""
RUNS_OF_DEMO = """
from directrank.cli.train import _prepare_for
from directrank.study.batch import PlannedRun
_prepare_for([PlannedRun(run, spec, "") for run, spec in study_of("demo").runs.items()])
"""
PRODUCTS_OF_DEMO = """
from directrank.cli.draw import MODULES
from directrank.cli.forked import imported
from directrank.papers.shared.product import RENDERING, modules_of
modules = set().union(*(modules_of(*key) for key in study_of("demo").products))
with imported(*MODULES, RENDERING, *modules): pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks are used on Linux alone")
@pytest.mark.parametrize("prepare", [RUNS_OF_DEMO, PRODUCTS_OF_DEMO], ids=["runs", "products"])
def test_nothing_that_is_imported_before_a_fork_starts_threads(prepare, root):
    done = subprocess.run(
        [sys.executable, "-c", THREADS.format(prepare=prepare)],
        capture_output=True,
        text=True,
        check=True,
        cwd=root / "tests/helpers",
    )
    # Arrow's allocator takes care of its own thread in a fork.
    assert done.stdout in ("1 set()\n", "2 {'jemalloc_bg_thd'}\n")


def test_a_job_that_is_told_to_end_goes_back_to_the_queue_if_it_should(monkeypatch, tmp_path):
    from directrank.cli import forked
    from directrank.system import nodes
    from directrank.system.errors import DirectrankError
    from directrank.system.processes import Command

    asked = []
    monkeypatch.setattr(nodes, "requeue", lambda: asked.append(True))

    def commands():
        os.kill(os.getpid(), signal.SIGTERM)
        yield Command("one", ["--version"], tmp_path / "one.log")

    for requeue in (False, True):
        with pytest.raises(DirectrankError, match="stopped by SIGTERM"):
            forked.run_all(commands(), 1, requeue=requeue)
        assert not (tmp_path / "one.log").exists()
    assert asked == [True]


#: What makes a machine look as if it had a GPU, on which runs on the same lists are trained
#: together; PyTorch finds none and trains them on the CPU.
AS_WITH_A_GPU = {"CUDA_VISIBLE_DEVICES": "0"}

#: A run whose loss is not finite.
BROKEN = planned(
    {
        **{key: value for key, value in QUICK.items() if key != "tune"},
        "loss": {"name": "rmse"},
        "training": {
            **QUICK["training"],
            "optimizer": {"name": "sgd", "lr": 1e39},
            "tolerance": 0,
        },
    }
)


def test_on_a_gpu_one_process_trains_the_runs_on_the_same_lists(whole, data, tmp_path):
    done = trained(tmp_path, data, **AS_WITH_A_GPU)
    assert done.returncode == 0, done.stderr
    assert f"1 of 1: {RUNS[0].name}-and-2-others" in done.stderr
    for run in RUNS:
        assert result(files_of(tmp_path, run)) == result(files_of(whole[0], run))
    log = tmp_path / f"logs/{RUNS[0].name}-and-2-others.log"
    assert all(f"{files_of(tmp_path, run) / 'spec.json'}" in log.read_text() for run in RUNS)
    again = trained(tmp_path, data, **AS_WITH_A_GPU)
    assert "0 of 3 runs are to be trained" in again.stderr


@pytest.mark.parametrize("recorded", ["", "1"])
def test_of_runs_in_one_process_each_fails_alone(recorded, whole, data, tmp_path):
    (tmp_path / "batch.json").write_text(plan_text([RUNS[0], BROKEN, RUNS[2]]), encoding="utf-8")
    words = ["train", "batch.json", "--data", data, "--results", "results", "--logs", "logs"]
    done = subprocess.run(
        [sys.executable, "-m", "directrank", *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, **AS_WITH_A_GPU, "DIRECTRANK_RECORD_FAILURE": recorded},
        cwd=tmp_path,
        check=False,
    )
    for run in (RUNS[0], RUNS[2]):
        assert result(files_of(tmp_path, run)) == result(files_of(whole[0], run))
    broken = files_of(tmp_path, BROKEN)
    assert (broken / "not_finite.safetensors").is_file()
    if recorded:
        assert done.returncode == 0, done.stderr
        assert json.loads((broken / "run.json").read_text())["failed"].startswith("the loss is not")
    else:
        assert done.returncode == 2
        assert f"1 of 3 runs failed: {BROKEN.name}" in done.stderr
        assert "the loss is not finite in epoch" in done.stderr
        assert not (broken / "run.json").exists()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_runs_in_one_process_that_is_ended_resume_from_their_checkpoints(number, data, tmp_path):
    training = {**SPEC["training"], "max_epochs": 20, "patience": None, "stack": 0}
    runs = [
        planned({**SPEC, "training": training, "loss": {"name": name}})
        for name in ("listnet", "ranknet")
    ]
    (tmp_path / "batch.json").write_text(plan_text(runs), encoding="utf-8")
    words = ["train", "batch.json", "--data", data, "--results", "results", "--logs", "logs"]
    words = [sys.executable, "-m", "directrank", *map(str, words)]
    environment = {**os.environ, **AS_WITH_A_GPU}
    checkpoints = [tmp_path / f"results/runs/{run.name}.checkpoint" for run in runs]
    log = tmp_path / f"logs/{runs[0].name}-and-1-others.log"
    process = subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    try:
        while not (log.exists() and log.read_text() and _catches_sigterm(process)):
            assert process.poll() is None
            time.sleep(0.05)
        # On a CPU a run of the process is trained after the other: the first is saved at its end.
        while number == signal.SIGKILL and not any(folder.exists() for folder in checkpoints):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(60) != 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert any(folder.exists() for folder in checkpoints)
    assert not any(run.is_current(files_of(tmp_path, run)) for run in runs)
    subprocess.run(words, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert "resuming from checkpoint" in log.read_text()
    assert all(run.is_current(files_of(tmp_path, run)) for run in runs)


def test_runs_that_are_not_on_the_same_lists_are_refused_together(data, tmp_path):
    from directrank.cli import main

    files = []
    for number, spec in enumerate((QUICK, {**QUICK, "filter": {"min_documents": 2}})):
        files.append(str(tmp_path / f"{number}.json"))
        Path(files[-1]).write_text(json.dumps(spec))
    fit = ["fit", *files, "--data", str(data), "--out", str(tmp_path / "a")]
    assert main(fit) == 2
    assert main([*fit, str(tmp_path / "b")]) == 2
    assert not (tmp_path / "a/run.json").exists()
