"""What every test shares."""

import json
import os

# Tiny tensors gain nothing from threads, and tests often share a machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import pytest

from workflow_runs import output_of, snakemake

ROOT = Path(__file__).resolve().parents[1]

#: Tests that share what takes long to make: the compiled loops of losses and of layers, the tiny
#: edition. Where several workers run the tests, these are one worker's.
TOGETHER = (
    ("tests/losses/",),
    ("tests/models/", "tests/learners/neural/"),
    ("tests/workflow/", "tests/report/", "tests/data/test_workflow.py", "tests/faults/"),
)


#: What takes longest comes first, so that workers end at about the same time.
FIRST = (
    "tests/losses/", "tests/models/", "tests/learners/", "tests/workflow/", "tests/report/",
    "tests/faults/", "tests/papers/", "tests/test_library_alone.py", "tests/cli/", "tests/cost/",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Put the tests of :data:`FIRST` first, in this order."""

    def place(item) -> int:
        file = item.nodeid.split("::")[0]
        found = (number for number, start in enumerate(FIRST) if file.startswith(start))
        return next(found, len(FIRST))

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``--dist loadfile`` a file is one worker's, or all of :data:`TOGETHER`."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            for prefixes in TOGETHER:
                if file.startswith(prefixes):
                    return prefixes[0]
            return file

    return Scheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def _in_memory():
    """Files are not waited for until they are on disk: no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's folder."""
    return ROOT


@pytest.fixture(scope="session")
def raw_dir() -> Path:
    """The folder of real archives: DIRECTRANK_RAW, else data/raw."""
    return Path(os.environ.get("DIRECTRANK_RAW", ROOT / "data/raw"))


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of the tiny edition, run whole; tests leave it as it is."""
    folder = tmp_path_factory.mktemp("tiny")
    process = snakemake(folder, forked=False)
    assert process.returncode == 0, output_of(process)
    return folder


@pytest.fixture(scope="session")
def made_again(finished, tmp_path_factory):
    """Another folder, in which one core made the pages of the data and a batch of the tiny edition.

    With the names of the batch's runs; tests leave it as it is.
    """
    folder = tmp_path_factory.mktemp("again")
    (record,) = finished.glob("results/tiny/batches/*-web30k_*.json")
    targets = ["figures/tiny/data/datasets.md", str(record.relative_to(finished))]
    process = snakemake(folder, *targets, "--cores", "1")
    assert process.returncode == 0, output_of(process)
    return folder, sorted(json.loads(record.read_text(encoding="utf-8")))
