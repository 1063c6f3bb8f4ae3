"""What differs on macOS and on processors that are not x86, with the calls of Linux taken away."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess

import pytest

from directrank.study import provenance
from directrank.system import arithmetic
from studies import study_of, workflow_of
from workflow_runs import ROOT, output_of, snakemake

#: Runs when an interpreter starts. It has no call that macOS lacks, and no file of Linux's.
WITHOUT = """
import io, os, resource, signal

LACKING = "pidfd_open sched_getaffinity sched_setaffinity posix_fadvise posix_fallocate"
LACKING += " copy_file_range memfd_create sched_setscheduler splice eventfd getrandom"
for name in LACKING.split():
    if hasattr(os, name):
        delattr(os, name)
for name in ("prlimit", "RUSAGE_THREAD"):
    delattr(resource, name)
for name in ("SIGPWR", "SIGRTMIN", "SIGRTMAX", "sigtimedwait", "sigwaitinfo"):
    delattr(signal, name)

whole = io.open
def guarded(file, *arguments, **options):
    if str(file).startswith("/proc/cpuinfo"):
        raise FileNotFoundError(2, "No such file or directory", str(file))
    return whole(file, *arguments, **options)
io.open = guarded
"""


@pytest.fixture
def elsewhere(tmp_path):
    """A clone whose package takes the system for macOS on arm64."""
    root = tmp_path / "clone"
    for name in (
        "workflow",
        "config",
        "envs",
        "data/datasets.yaml",
        "paper_tables/published",
        "src/directrank",
    ):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        copy(source, root / name)
    shutil.copy(ROOT / "Snakefile", root)
    (root / "src/sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    changed = []
    for path in (root / "src/directrank").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        told = text.replace("sys.platform", '"darwin"').replace("platform.machine()", '"arm64"')
        if told != text:
            path.write_text(told, encoding="utf-8")
            changed.append(path.name)
    assert sorted(changed) == ["arithmetic.py", "processes.py", "provenance.py", "usage.py"]
    return root


@pytest.mark.long
def test_the_tiny_edition_is_made_without_the_calls_of_linux(elsewhere, tmp_path):
    folder = tmp_path / "made"
    process = snakemake(
        folder, "only_bruch2019", root=elsewhere, forked=False,
        PYTHONPATH=str(elsewhere / "src"), PYTHONDONTWRITEBYTECODE="1",
    )  # fmt: skip
    assert process.returncode == 0, output_of(process)
    assert (folder / "figures/tiny/bruch2019/figure1.svg").stat().st_size > 100
    assert (folder / "paper_tables/tiny/bruch2019/table1.csv").stat().st_size > 100
    records = list((folder / "results/tiny/runs").glob("*/run.json"))
    assert len(records) == 4
    for path in records:
        assert json.loads(path.read_text(encoding="utf-8"))["environment"]["processor"]
    logs = list((folder / "logs/tiny/fit").glob("*.log"))
    assert len(logs) == 4
    for log in logs:
        # Processors that are not x86 have no arithmetic to restrict.
        assert log.read_text(encoding="utf-8").startswith("$ directrank fit ")
        usage = log.with_name(f"{log.stem}.benchmark.tsv").read_text(encoding="utf-8")
        megabytes = float(usage.splitlines()[1].split("\t")[1])
        assert 0.05 < megabytes < 5  # this system's kB, taken for bytes


@pytest.mark.parametrize("machine", ["arm64", "aarch64"])
def test_only_x86_is_told_which_instructions_it_may_use(machine, monkeypatch):
    """Numba ends the process if it is to compile for a processor of another kind."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    workflow = workflow_of(study_of("demo"))
    assert " NUMBA_CPU_NAME=haswell;" in workflow.shell_prefix("python")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    prefix = workflow.shell_prefix("python")
    assert not [name for name in arithmetic.PORTABLE if name in prefix]


def test_a_processor_has_a_name_without_linux_s_list_of_processors(monkeypatch):
    def absent(path, **options):
        raise FileNotFoundError(path)

    monkeypatch.setattr(provenance.Path, "read_text", absent)
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert provenance.environment()["processor"] == "arm"
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert provenance.environment()["processor"] == "arm64"
    assert provenance.processor_in("processor : 0\nCPU implementer : 0x41\n") == ""


def test_the_list_of_targets_is_whole(root):
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=root, capture_output=True, text=True
    ).stdout.splitlines()
    described = [line for line in (root / "Makefile").read_text("utf-8").splitlines()
                 if ":" in line and "  ## " in line]  # fmt: skip
    assert len(shown) == len(described) > 20
    for line, source in zip(shown, described, strict=True):
        assert line.split() == [source.split(":")[0], *source.split("## ")[1].split()]
