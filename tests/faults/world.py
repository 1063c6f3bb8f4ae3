"""A small edition of the study in folders of its own, started and watched as a user would."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil
import yaml

ROOT = Path(__file__).resolve().parents[2]
EDITION = ROOT / "tests/editions/faults.yaml"
TABLE = "paper_tables/faults/bruch2019/table1.csv"
ARCHIVE = "data/raw/MSLR-WEB30K.zip"
T = TypeVar("T")
#: No start of this edition takes so long, however busy the machine.
PATIENCE = 600


class SkippedError(Exception):
    """A fault that cannot be brought about here; its text says why."""


@dataclass
class Row:
    """What came of one fault.

    Attributes:
        fault: what was done.
        tried: how often it struck.
        user: what the user sees and does.
        problems: of tries that did not end as an undisturbed run does; empty where all did.
        lost: how many tries that concerns.
        skipped: why it was not tried, if it was not.
    """

    fault: str
    user: str
    tried: int = 0
    lost: int = 0
    problems: list[str] = field(default_factory=list)
    skipped: str = ""

    def count(self, tries: int, problems: Iterable[str]) -> None:
        """Add tries that were checked together."""
        problems = list(problems)
        self.tried += tries
        self.lost += tries if problems else 0
        self.problems += problems


class Start:
    """One start of the workflow, in a process group of its own."""

    def __init__(self, folder: Path, *options: str, snakefile: Path = ROOT / "Snakefile") -> None:
        self.folder = folder
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(snakefile)]
        command += ["--directory", str(folder), "--configfile", str(EDITION)]
        if "--workflow-profile" not in options:
            command += ["--workflow-profile", str(ROOT / "workflow/profiles/default")]
        command += [*options, "--cores", "2", "--", TABLE]
        environment = {key: value for key, value in os.environ.items() if key != "DIRECTRANK_RAW"}
        # Beside the folder: its disk may be full.
        self._output = folder.with_name(f"{folder.name}.{time.monotonic_ns()}.out")
        with open(self._output, "wb") as file:
            self.process = subprocess.Popen(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment,
                cwd=ROOT,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether Snakemake itself still runs."""
        return self.process.poll() is None

    def wait(self) -> int:
        """Its exit code."""
        return self.process.wait(PATIENCE)

    def sleep(self, seconds: float) -> bool:
        """Wait; False if Snakemake ended meanwhile."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def until(self, condition: Callable[[], object]) -> object:
        """Wait until ``condition`` gives something; None if Snakemake ended before."""
        while self.alive:
            found = condition()
            if found:
                return found
            time.sleep(0.02)
        return None

    def jobs(self, command: str = "") -> list[psutil.Process]:
        """Its running jobs, of one command if that is named, without their forks."""
        return [job for job in self._commands(command) if not _is_fork(job)]

    def forks(self) -> list[psutil.Process]:
        """The processes in which a job trains its runs or makes its products."""
        return [process for process in self._commands() if _is_fork(process)]

    def _commands(self, command: str = "") -> list[psutil.Process]:
        found = []
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self.process.pid).children(recursive=True):
                words = process.cmdline()
                if "directrank" in words[:3] and (not command or command in words):
                    found.append(process)
        return found

    def kill(self) -> None:
        """Kill Snakemake, and nothing else, with a signal that cannot be caught."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def kill_group(self) -> None:
        """Kill Snakemake with all that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def said(self) -> str:
        """Everything that it printed, with the terminal's line breaks undone."""
        return re.sub(r"\s+", " ", self._output.read_text(encoding="utf-8", errors="replace"))


class World:
    """The undisturbed run, and new folders to be disturbed.

    Args:
        base: a folder for all of it.
        seed: of the moments at which faults strike.
        once: whether each fault strikes only once.
    """

    def __init__(self, base: Path, seed: int, once: bool = False) -> None:
        self.base = base
        self.once = once
        self.random = random.Random(seed)
        reference = self.new("undisturbed")
        began = time.monotonic()
        start = Start(reference)
        if start.wait() != 0:
            raise RuntimeError(f"the undisturbed run failed:\n{start.said}")
        #: What an undisturbed run takes here.
        self.seconds = time.monotonic() - began
        self.expected = results(reference)
        if len(self.expected) != 3 or TABLE not in self.expected:  # verdicts, and a run's values
            raise RuntimeError(f"the undisturbed run left {sorted(self.expected)}")

    def new(self, name: str) -> Path:
        """A working folder in which nothing has been made: a catalogue and an archive."""
        folder = self.base / name
        shutil.rmtree(folder, ignore_errors=True)
        fill(folder)
        return folder

    def variants(self, all_of_them: Sequence[T]) -> Sequence[T]:
        """The variants of a fault to try: the first alone where each is to strike only once."""
        return all_of_them[:1] if self.once else all_of_them

    def moment(self) -> float:
        """Seconds after a start at which a fault strikes: at random, while there is work to do."""
        return self.random.uniform(0.1, 0.8) * self.seconds

    def finishes(self, folder: Path) -> list[str]:
        """Start again, as a user would: problems, if the end is not that of the undisturbed run."""
        start = Start(folder)
        if start.wait() != 0:
            return [f"{folder.name}: started again it fails: {start.said[-2000:]}"]
        return self.differences(folder)

    def differences(self, folder: Path) -> list[str]:
        """How the results in ``folder`` differ from the undisturbed ones."""
        found = results(folder)
        problems = [
            f"{folder.name}: {name} differs"
            for name in sorted({*found, *self.expected})
            if found.get(name) != self.expected.get(name)
        ]
        tops = ("paper_tables", "results")
        problems += [
            f"{folder.name}: {path.relative_to(folder)} was left behind"
            for top in tops
            for path in (folder / top).rglob(".*.part")
        ]
        return problems


def _is_fork(process: psutil.Process) -> bool:
    """Whether a process has the command line of its parent."""
    with contextlib.suppress(psutil.Error):
        parent = process.parent()
        return parent is not None and parent.cmdline() == process.cmdline()
    return False


def said_once(start: Start, *texts: str, traceback: bool = False) -> list[str]:
    """Problems, if a start that must fail did not, or not with these words.

    There must be no traceback either, unless it may be there.
    """
    said = start.said
    problems = [f"{start.folder.name}: does not say '{text}'" for text in texts if text not in said]
    if "Traceback" in said and not traceback:
        problems.append(f"{start.folder.name}: shows a traceback")
    if start.wait() == 0:
        problems.append(f"{start.folder.name}: ends as if nothing had happened")
    return [f"{problem}: {said[-2000:]}" for problem in problems]


def fill(folder: Path) -> None:
    """What a user brings: the archive, and the catalogue that says what it must be."""
    archive = folder / ARCHIVE
    archive.parent.mkdir(parents=True)
    _write_archive(archive)
    shape = {"label_levels": 5, "page": "https://example.org", "licence": "none"}
    published = {
        "name": archive.name,
        "bytes": archive.stat().st_size,
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
    }
    catalogue = {
        "web30k": {**shape, "features": 6, "folds": 5, "archives": [published]},
        "yahoo1": {**shape, "features": 700},
    }
    (folder / "data/datasets.yaml").write_text(yaml.safe_dump({"datasets": catalogue}))


def results(folder: Path) -> dict[str, bytes]:
    """Every CSV of tables, and the values per query of every run, by path."""
    paths = [
        path
        for top, pattern in (("paper_tables", "*.csv"), ("results", "*.parquet"))
        for path in (folder / top).rglob(pattern)
        if not path.name.startswith(".") and not path.stem.endswith("_times")
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(paths)}


def _write_archive(path: Path) -> None:
    """Five folds of five disjoint parts in LETOR's format, as the real archive has them."""
    numbers = random.Random(0)
    parts = []
    for part in range(5):
        lines = []
        for query in range(8):
            for _ in range(numbers.randint(3, 12)):
                values = [numbers.random() for _ in range(6)]
                label = min(4, int(sum(values[:2]) * 2.5))
                listed = " ".join(f"{i}:{value:.4f}" for i, value in enumerate(values, 1))
                lines.append(f"{label} qid:{10 * part + query + 1} {listed}\n")
        parts.append("".join(lines))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for fold in range(5):
            order = [(fold + step) % 5 for step in range(5)]
            for split, members in (("train", order[:3]), ("vali", order[3:4]), ("test", order[4:])):
                name = zipfile.ZipInfo(f"MSLR-WEB30K/Fold{fold + 1}/{split}.txt")
                archive.writestr(name, "".join(parts[part] for part in members))
