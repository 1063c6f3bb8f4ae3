"""What every test shares."""

import os

# Tiny tensors gain nothing from threads, and tests often share a machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import pytest

from workflow_runs import output_of, snakemake

ROOT = Path(__file__).resolve().parents[1]


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
    process = snakemake(folder)
    assert process.returncode == 0, output_of(process)
    return folder
