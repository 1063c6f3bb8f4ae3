"""What one pass of a scorer does, counted from the operations of a real pass over a short list."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from directrank import models
from directrank.system.io import json_text

#: Lengths of the lists passed; primes, so that no width of a network is taken for one.
_SHORT, _LONG = 37, 61


@dataclass(frozen=True)
class Work:
    """A forward pass over one list of L documents costs ``linear · L + square · L²``.

    Attributes:
        products: width of a product → its flops ``(linear, square)``; the width is that of the
            narrower side of the weights, which decides how fast a processor is at it.
        elements: elements written by all operations, ``(linear, square)``.
        operations: calls of kernels, whatever the number of documents.
    """

    products: Mapping[int, tuple[float, float]]
    elements: tuple[float, float]
    operations: int

    def flops(self, lengths: Sequence[int] | np.ndarray) -> float:
        """Floating-point operations of a forward pass over lists of ``lengths``."""
        return sum(_sum(law, lengths) for law in self.products.values())


@lru_cache(maxsize=256)
def _work_of(model: str, n_features: int) -> Work:
    scorer = models.build(json.loads(model), n_features, [torch.Generator().manual_seed(0)])
    scorer.eval()
    found = []
    for length in (_SHORT, _LONG):
        counter = _Counter(length)
        with torch.no_grad(), counter:
            scorer(torch.zeros(1, length, n_features), None, np.array([[length]]))
        found.append(counter)
    short, long = found
    widths = sorted({*short.flops, *long.flops})
    return Work(
        products={w: _law(short.flops.get(w, 0), long.flops.get(w, 0)) for w in widths},
        elements=_law(short.elements, long.elements),
        operations=long.operations,
    )


def work_of(model: Mapping[str, Any], n_features: int) -> Work:
    """The work of the scorer that ``model`` describes.

    Raises:
        ConfigError: an unknown scorer or setting.
    """
    return _work_of(json_text(dict(model)), n_features)


def _law(short: float, long: float) -> tuple[float, float]:
    """``(a, b)`` with ``a L + b L²`` through both measured lengths; what is constant is small."""
    b = (long / _LONG - short / _SHORT) / (_LONG - _SHORT)
    b = max(b, 0.0) if abs(b) * _SHORT > 1e-3 * short / _SHORT else 0.0
    return long / _LONG - b * _LONG, b


def _sum(law: tuple[float, float], lengths: Sequence[int] | np.ndarray) -> float:
    lengths = np.asarray(lengths, dtype=float)
    return law[0] * lengths.sum() + law[1] * (lengths**2).sum()


@dataclass
class _Counter(TorchDispatchMode):
    length: int
    flops: dict[int, float] = field(default_factory=dict)
    elements: float = 0.0
    operations: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func.is_view:
            return out
        self.operations += 1
        first = out[0] if isinstance(out, (tuple, list)) else out
        if isinstance(first, torch.Tensor):
            self.elements += first.numel()
        count = flop_registry.get(func.overloadpacket)
        if func.name().startswith("aten::_scaled_dot_product"):
            # [batch, heads, length, width]; the scores of all pairs are written once, too.
            batch, heads, rows, width = args[0].shape
            pairs = batch * heads * rows * args[1].shape[2]
            self.flops[width] = self.flops.get(width, 0) + 4 * pairs * width
            self.elements += pairs
        elif count is not None:
            tensors = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.ndim > 1]
            sides = {side for tensor in tensors for side in tensor.shape[-2:]} - {self.length, 1}
            width = min(sides, default=1)
            done = count(*args, **(kwargs or {}), out_val=out)
            self.flops[width] = self.flops.get(width, 0) + done
        return out
