"""Random streams derived from names: each purpose has its own, whatever the order of their use."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(*names: str | int) -> int:
    """A 63-bit seed that depends on every name and on their order.

    ``derive_seed(run_name, trial, "shuffle")`` differs from the seed of any other purpose, trial or
    run.
    """
    text = "\x1f".join(str(name) for name in names)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "little") >> 1


def numpy_stream(*names: str | int) -> np.random.Generator:
    """A NumPy generator seeded by :func:`derive_seed`."""
    return np.random.Generator(np.random.PCG64(derive_seed(*names)))


def torch_stream(*names: str | int, device: str | torch.device = "cpu") -> torch.Generator:
    """A PyTorch generator seeded by :func:`derive_seed`."""
    import torch  # here, because most callers need no PyTorch

    return torch.Generator(device=device).manual_seed(derive_seed(*names))
