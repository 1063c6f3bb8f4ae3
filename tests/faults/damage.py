"""Damaged files: checkpoints, prepared data, archives."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
from world import ARCHIVE, Row, Start, World, said_once

#: How often a fit is stopped until it had begun.
TRIES = 4


def flip(path: Path) -> None:
    """Turn one bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def halve(path: Path) -> None:
    """Lose the second half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def blank(path: Path) -> None:
    """Replace the content by zeroes, as a crash of a file system does."""
    path.write_bytes(bytes(path.stat().st_size))


def checkpoint(world: World) -> Row:
    """A fit is stopped and saves a checkpoint, which is then damaged."""
    row = Row(
        "corrupted checkpoint",
        "The next start sets the checkpoint aside, and the job's log names it.",
    )
    for harm in world.variants((flip, halve)):
        folder = world.new(f"checkpoint-{harm.__name__}")
        # A fit that is stopped before its first step has nothing to save.
        for _ in range(TRIES):
            start = Start(folder)
            fit = start.until(lambda start=start: _begun(start))
            problems = ["no fit was caught"] if fit is None else []
            if fit is not None:
                fit.send_signal(signal.SIGTERM)
                start.wait()
                problems = said_once(start, "stopped by SIGTERM")
            saved = sorted((folder / "results").rglob("*.checkpoint/*.safetensors"))
            if saved or problems:
                break
        if not saved:
            problems.append("nothing was kept")
        for path in saved:
            harm(path)
        problems += world.finishes(folder)
        logs = "".join(log.read_text() for log in (folder / "logs").rglob("fit/*.log"))
        if saved and "cannot be used" not in logs:
            problems.append(f"no log names the damaged checkpoint: {logs}")
        row.count(1, problems)
    return row


def prepared(world: World) -> Row:
    """Files of a prepared data set are damaged before the fits that read them."""
    row = Row(
        "corrupted prepared file",
        "The message names the file. The next start prepares the data set again.",
    )
    source = world.new("prepared")
    start = Start(source, "--until", "prepare_5_folds")
    problems = [] if start.wait() == 0 else [f"preparing fails: {start.said[-1500:]}"]
    row.problems += problems
    harms: list[tuple[str, Callable[[Path], None]]] = [
        ("store/features.npy", flip),
        ("store/labels.npy", halve),
        ("prepared.json", halve),
        ("Fold1/train/split.json", blank),
    ]
    for name, harm in world.variants(harms):
        folder = world.base / f"prepared-{Path(name).stem}"
        shutil.copytree(source, folder)
        harm(folder / "data/prepared/web30k" / name)
        start = Start(folder)
        start.wait()
        problems = said_once(start, f"web30k/{name}: is damaged", "start again")
        row.count(1, problems + world.finishes(folder))
    return row


def archive(world: World) -> Row:
    """A downloaded archive is damaged, and replaced by the right file after the first start."""
    row = Row(
        "corrupted archive",
        "The message names the file and says what is wrong with it and where to get it. The next "
        "start resumes once the file has been replaced.",
    )
    for harm in world.variants((flip, halve, blank)):
        folder = world.new(f"archive-{harm.__name__}")
        right = (folder / ARCHIVE).read_bytes()
        harm(folder / ARCHIVE)
        start = Start(folder)
        start.wait()
        problems = said_once(start, Path(ARCHIVE).name, "get the archive again")
        (folder / ARCHIVE).write_bytes(right)
        row.count(1, problems + world.finishes(folder))
    return row


def _begun(start: Start) -> psutil.Process | None:
    """The job of the edition's only fit, once the fit has begun."""
    waiting = start.jobs("train")
    return waiting[0] if waiting and any(map(_would_save, start.forks())) else None


def _would_save(process: psutil.Process) -> bool:
    """Whether a process catches SIGTERM: a fit does when it has begun."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return False
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1))


FAULTS = (checkpoint, prepared, archive)
