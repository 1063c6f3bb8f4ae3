"""Ranked lists as Triton kernels take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.lists.draws import Source
from directrank.lists.flat import Flat, Lists
from directrank.lists.gradient import with_gradient
from directrank.lists.inputs import validated

#: Documents of a list that a program computes, and those it reads at a time.
TILE, STEP = tl.constexpr(32), tl.constexpr(64)

#: The rounding of a product and a sum in one operation is left out, because Triton's versions
#: differ in when they use it.
EXACT = {"enable_fp_fusion": False}


class DeviceLists:
    """B lists of at most L documents on a GPU; flat ones have arrays ``[N]`` instead of ``[B, L]``.

    Args:
        scores: floating ``[B, L]``; half precision is widened to float32.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real. For flat lists,
            their positions (:class:`directrank.lists.flat.Flat`).

    Attributes:
        scores, labels: contiguous tensors ``[B, L]``, without a gradient.
        shape: B and L.
        tiles: the number of tiles of the longest list.

    Raises:
        DirectrankError: see :func:`directrank.lists.inputs.validated`.
    """

    def __init__(self, scores: Tensor, labels: Tensor, mask: Lists | None) -> None:
        self._given, labels, mask = validated(scores, labels, mask)
        self.scores = self._given.detach().contiguous()
        self.labels = labels.detach().contiguous()
        self._flat = mask if isinstance(mask, Flat) else None
        self._mask = mask.contiguous() if isinstance(mask, Tensor) else None
        if self._flat is not None:
            self.shape = self._flat.count, self._flat.longest
        else:
            self.shape = self.scores.shape[0], self.scores.shape[1]
        self.tiles = max(triton.cdiv(self.shape[1], TILE.value), 1)

    @property
    def gradient_needed(self) -> bool:
        """Whether the gradient with respect to the scores is requested."""
        return self._given.requires_grad and torch.is_grad_enabled()

    def per_document(self, dtype: torch.dtype | None = None) -> Tensor:
        """An uninitialised number per document, in the scores' type unless told otherwise."""
        return torch.empty_like(self.scores, dtype=dtype)

    def per_list(self, *shape: int) -> Tensor:
        """Uninitialised numbers ``[B, …]`` per list, in the scores' type."""
        return self.scores.new_empty((self.shape[0], *shape))

    def hyper_parameter(self, value: float | Tensor) -> tuple[float, Tensor | None]:
        """A number, and None; or any, and one per list ``[B]`` in the scores' type.

        Kernels take both, for :func:`of_list`.
        """
        if not isinstance(value, Tensor):
            return float(value), None
        each = value.detach().to(self.scores).expand(self.shape[0], 1).reshape(-1).contiguous()
        return 0.0, each

    def drawn(
        self, draw: Callable[..., Tensor], source: Source, dtype: torch.dtype | None = None
    ) -> Tensor:
        """Random numbers for the documents, from a function of :mod:`directrank.lists.draws`."""
        lists: Lists | None = self._mask if self._flat is None else self._flat
        if lists is None:
            lists = torch.ones_like(self.scores, dtype=torch.bool)
        return draw(self.scores, lists, source, self.scores.dtype if dtype is None else dtype)

    def run(self, kernel: Any, programs: int, *arguments: object, **constants: object) -> None:
        """Run a kernel with ``programs`` programs per list.

        Its first arguments are those that :func:`bounds` takes: where lists begin and end (None if
        they are padded), the mask (None if all documents are real) and L.
        """
        if self.shape[0] and self.shape[1]:
            spans = None if self._flat is None else self._flat.spans
            grid = (self.shape[0], programs)
            kernel[grid](spans, self._mask, self.shape[1], *arguments, **constants, **EXACT)

    def loss(self, value: Tensor, gradient: Tensor | None) -> Tensor:
        """``value [B]`` as a function of the scores with the ``gradient [B, L]``."""
        if not self.shape[1]:
            value = torch.zeros_like(value)
        if gradient is None:
            return value
        return with_gradient(self._given, value, gradient, self._flat)


@triton.jit
def bounds(spans, mask, L):
    """Where this program's list begins, its documents up to the last real one, and its places."""
    b = tl.program_id(0).to(tl.int64)
    if spans is not None:
        begin = tl.load(spans + 2 * b)
        n = (tl.load(spans + 2 * b + 1) - begin).to(tl.int32)
        return begin, n, n
    begin = b * L
    n = L
    if mask is not None:
        n = 0
        for first in range(0, L, STEP):
            j = first + tl.arange(0, STEP)
            real = tl.load(mask + begin + j, mask=j < L, other=0)
            n = tl.maximum(n, tl.max(tl.where(real != 0, j + 1, 0), 0))
    return begin, n, L


@triton.jit
def of_list(value, values, dtype: tl.constexpr):
    """A hyper-parameter in a type: a number, or this program's list's of those of all lists."""
    return tl.full((), value, dtype) if values is None else tl.load(values + tl.program_id(0))


@triton.jit
def are_real(mask, begin, j, n):
    """Whether the places ``j`` of a list hold real documents, the last of which is before n."""
    real = j < n
    if mask is not None:
        real &= tl.load(mask + begin + j, mask=real, other=0) != 0
    return real


@triton.jit
def total(parts, tiles, TILES: tl.constexpr):
    """The sum of the ``parts [B, tiles]`` of this program's list; ``TILES`` is a power of two."""
    t = tl.arange(0, TILES)
    return tl.sum(tl.load(parts + tl.program_id(0) * tiles + t, mask=t < tiles, other=0.0), 0)


@triton.jit
def inverse_of(parts, tiles, TILES: tl.constexpr):
    """One over a :func:`total`, 0 where that is not positive."""
    sum_of = total(parts, tiles, TILES)
    return tl.where(sum_of > 0, 1.0 / tl.where(sum_of > 0, sum_of, 1.0), 0.0)


@triton.jit
def quotient(tiles, best, sums, value, TILES: tl.constexpr):
    """Minus the inverse of a list's ``best``, by which its gradient is to be multiplied; its first
    program stores ``sums`` times it as the ``value [B]``.

    Without ``best`` it is 1, and nothing is stored.
    """
    scale = 1.0
    if best is not None:
        scale = -inverse_of(best, tiles, TILES)
        if tl.program_id(1) == 0:
            tl.store(value + tl.program_id(0), total(sums, tiles, TILES) * scale)
    return scale


@triton.jit
def own_documents(mask, begin, n):
    """The places ``[TILE, 1]`` of this program's tile, and whether they hold real documents."""
    i = (tl.program_id(1) * TILE + tl.arange(0, TILE))[:, None]
    return i, are_real(mask, begin, i, n)


@triton.jit
def other_documents(mask, begin, first, n):
    """The places ``[1, STEP]`` from ``first`` on, and whether they hold real documents."""
    j = (first + tl.arange(0, STEP))[None, :]
    return j, are_real(mask, begin, j, n)


@triton.jit
def not_finite(real, values):
    """0 for each real value, NaN where it is NaN or infinite: to be added to what forgets it."""
    return tl.where(real, values - values, 0.0)


@triton.jit
def reach(n):
    """The number of places that a tile is compared with: all of its list, none if it is empty."""
    return tl.where(tl.program_id(1) * TILE < n, n, 0)


@triton.jit
def number_of(mask, begin, n):
    """The number of real documents of a list."""
    number = n
    if mask is not None:
        number = 0
        for first in range(0, n, STEP):
            number += tl.sum(are_real(mask, begin, first + tl.arange(0, STEP), n).to(tl.int32), 0)
    return number


@triton.jit
def add_up(parts, tiles, values):
    """Store the sum of this tile's ``values [TILE, 1]`` as one of the ``parts [B, tiles]``."""
    part = tl.program_id(0) * tiles + tl.program_id(1)
    tl.store(parts + part, tl.sum(tl.sum(values, 1), 0))
