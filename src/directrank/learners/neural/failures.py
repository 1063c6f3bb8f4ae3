"""Failures of fits: a loss that is not finite, whose batch is saved, and running out of memory."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as serialise
from torch import Tensor

from directrank.system.errors import TrainingError
from directrank.system.io import atomic_path, json_text

#: The message of PyTorch's CPU allocator, which raises a plain RuntimeError.
CPU_ALLOCATOR = "can't allocate memory"

#: Options of glibc's ``mallopt`` (malloc.h).
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


class NotFiniteError(TrainingError):
    """A NaN or infinite loss, with its batch.

    Attributes:
        tensors: the model's rows of the batch: ``query_ids`` and ``lengths`` ``[B]``, ``scores``,
            ``labels`` and ``features`` of the documents, query by query.
        settings: the model, epoch and step, and the training settings.
    """

    def __init__(
        self, what: str, tensors: Mapping[str, Tensor], settings: Mapping[str, Any]
    ) -> None:
        self.tensors = tensors
        self.settings = settings
        super().__init__(
            what, "lower the learning rate, or normalise features with very large values"
        )

    def written_to(self, path: Path) -> TrainingError:
        """Write the batch to a file, and return an error that names it."""
        with atomic_path(path) as temporary:
            content = {name: value.contiguous() for name, value in self.tensors.items()}
            temporary.write_bytes(serialise(content, {"settings": json_text(self.settings)}))
        return TrainingError(f"{self.what}; its batch is in {path}", self.remedy)


@contextlib.contextmanager
def naming_memory(doing: str, remedy: str) -> Iterator[None]:
    """Turn running out of memory into a :class:`TrainingError` with a ``remedy``."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise TrainingError(f"out of memory while {doing}", remedy) from error
    except RuntimeError as error:
        if CPU_ALLOCATOR not in str(error):
            raise
        raise TrainingError(f"out of memory while {doing}", remedy) from error


def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed tensors for the next ones.

    By default glibc returns tensors of more than 32 MB to the system at once and requests them
    again at the next step, and zeroing their pages took a fifth of a training step. Without glibc
    this does nothing.
    """
    try:
        set_option = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    set_option(M_MMAP_MAX, 0)
    set_option(M_TRIM_THRESHOLD, (1 << 31) - 1)
