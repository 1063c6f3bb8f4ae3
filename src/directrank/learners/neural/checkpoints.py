"""Checkpoints of a run's unfinished work on disk, from which a killed run resumes.

A run has one folder with one file per part of its work: a stack of networks, or a finished trial of
another learner. A file is a safetensors file whose header holds the rest as JSON, the key of the
run's specification, code and data, and a digest of everything: a file that is damaged, or of
another specification or code, is recognised and set aside.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as deserialise
from safetensors.torch import save as serialise
from torch import Tensor

from directrank.system.errors import TrainingError
from directrank.system.io import write_bytes

#: Signals that ask for an end: those of a cluster that wants its machine back.
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class StoppedError(TrainingError):
    """A run that was asked to end before it was done; what it had done is kept."""

    def __init__(self, why: str, where: str) -> None:
        super().__init__(
            f"stopped by {why} {where}; started again, the run goes on from what is kept"
        )


@dataclass(frozen=True)
class Saved:
    """The content of a part: tensors by name, and what JSON holds."""

    tensors: dict[str, Tensor]
    record: dict[str, Any]


class Checkpoints:
    """The checkpoint folder of one run.

    Args:
        folder: the run's own; made when something is saved.
        key: names specification, code and data; a part of another key is set aside.
        minutes: how long unfinished work may go unsaved.
        stop: asked after each step; the name of a signal ends the run.
        say: called with a message when a part is loaded or set aside.
    """

    def __init__(
        self,
        folder: Path,
        key: str,
        minutes: float,
        stop: Callable[[], str | None] = lambda: None,
        say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
    ) -> None:
        self.folder = folder
        self.key = key
        self.minutes = minutes
        self.stop = stop
        self.say = say
        self.prefix = ""
        self._saved = time.monotonic()

    def of(self, prefix: str) -> Checkpoints:
        """The same folder for further work, whose parts' names begin with ``prefix``."""
        further = copy.copy(self)
        further.prefix = f"{prefix}-"
        return further

    def due(self) -> bool:
        """Whether unfinished work should be saved now."""
        return self.stop() is not None or time.monotonic() - self._saved >= 60 * self.minutes

    def save(self, part: str, tensors: Mapping[str, Tensor], record: Mapping[str, Any]) -> None:
        """Write the part atomically, replacing its earlier version."""
        text = json.dumps(record, default=_plain)
        tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        header = {"key": self.key, "record": text, "digest": _digest(self.key, text, tensors)}
        write_bytes(self._path(part), serialise(tensors, header))
        self._saved = time.monotonic()

    def load(self, part: str) -> Saved | None:
        """The latest version of the part; None if there is none that can be used."""
        path = self._path(part)
        if not path.is_file():
            return None
        try:
            saved = self._read(path)
        except (SafetensorError, ValueError, KeyError, OSError) as error:
            aside = path.with_suffix(".aside")
            path.replace(aside)
            self.say(f"checkpoint {path} cannot be used ({error}); it was renamed to {aside.name}")
            return None
        self.say(f"resuming from checkpoint {path}")
        return saved

    def end_if_asked(self, where: str) -> None:
        """Raise :class:`StoppedError` if a signal asked for it; called after saving."""
        why = self.stop()
        if why is not None:
            raise StoppedError(why, where)

    def clear(self) -> None:
        """Remove the folder of a complete run."""
        if self.folder.is_dir():
            shutil.rmtree(self.folder)

    def _path(self, part: str) -> Path:
        return self.folder / f"{self.prefix}{part}.safetensors"

    def _read(self, path: Path) -> Saved:
        content = path.read_bytes()
        tensors = deserialise(content)
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])["__metadata__"]
        if header["digest"] != _digest(header["key"], header["record"], tensors):
            raise ValueError("its digest does not match")
        if header["key"] != self.key:
            raise ValueError("it belongs to another specification, code, data set or version")
        return Saved(tensors, json.loads(header["record"]))


@contextlib.contextmanager
def signalled() -> Iterator[Callable[[], str | None]]:
    """Record signals that ask for an end; yield a function that returns the name of the first."""
    seen: list[str] = []
    old = {
        number: signal.signal(number, lambda got, frame: seen.append(signal.Signals(got).name))
        for number in SIGNALS
    }
    try:
        yield lambda: seen[0] if seen else None
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _digest(key: str, text: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(f"{key}\0{text}".encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"\0{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """A NumPy number or array as Python's own, for JSON."""
    return value.tolist()
