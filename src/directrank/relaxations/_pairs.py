"""Sums over pairs of documents, worked in blocks that fit the cache.

A pairwise loss over B lists of length L is a [B, L, L] tensor in the books; here no more than a
block of it exists at a time. Documents are packed so that the rows that matter come first and
padding last, and lists of similar length share a block: neither padding nor rows without weight
cost time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from directrank.kernels.compiled import array, over_lists, usable
from directrank.lists.sorting import descending_order, inverse

#: Stands for minus infinity where a difference of two of them must not be NaN.
FAR = 1e30

#: Elements of all buffers of a block together: on a CPU what stays in the second-level cache, on a
#: GPU what keeps it busy.
BLOCK_CPU = 1 << 18
BLOCK_GPU = 1 << 27


@dataclass(frozen=True)
class Chunk:
    """Neighbouring lists of a packing that are worked together.

    Attributes:
        lists: which lists of the packing.
        rows: the largest number of front documents among them.
        columns: the largest number of documents among them.
    """

    lists: slice
    rows: int
    columns: int

    @property
    def size(self) -> int:
        """Number of lists."""
        return self.lists.stop - self.lists.start


class Packing:
    """An order of lists (long ones first) and of their documents (front ones first, padding last).

    Args:
        front: bool ``[B, L]``, the documents that are rows of the pair matrix.
        mask: bool ``[B, L]``, the documents that are its columns; front documents are among them.
    """

    def __init__(self, front: Tensor, mask: Tensor) -> None:
        front = front & mask
        rest = mask & ~front
        n_front = front.sum(1, keepdim=True)
        n_real = mask.sum(1, keepdim=True)
        place = torch.where(
            front,
            front.cumsum(1),
            torch.where(rest, n_front + rest.cumsum(1), n_real + (~mask).cumsum(1)),
        )
        self._setup(place - 1, n_front.squeeze(1), n_real.squeeze(1))

    @classmethod
    def by_label(cls, labels: Tensor, mask: Tensor) -> Packing:
        """Documents by falling label; in front all but those with the smallest label of a list."""
        order = descending_order(labels, mask)
        n_real = mask.sum(1)
        last = (n_real - 1).clamp_min(0).unsqueeze(1)[:, : labels.shape[1]]
        least = labels.gather(1, order.gather(1, last))
        packing = cls.__new__(cls)
        packing._setup(inverse(order), ((labels > least) & mask).sum(1), n_real)
        return packing

    def _setup(self, place: Tensor, n_front: Tensor, n_real: Tensor) -> None:
        self.lists = torch.sort(n_real, descending=True, stable=True).indices
        self._place = place.index_select(0, self.lists)
        self._sizes = torch.stack([n_front, n_real]).index_select(1, self.lists)
        self.budget = BLOCK_GPU if place.device.type != "cpu" else BLOCK_CPU

    def pack(self, values: Tensor) -> Tensor:
        """``values [B, L]`` in the order of the packing."""
        return torch.empty_like(values).scatter_(1, self._place, values.index_select(0, self.lists))

    def unpack(self, values: Tensor) -> Tensor:
        """``values [B, L]`` back in their own order."""
        back = torch.empty_like(values)
        back[self.lists] = values.gather(1, self._place)
        return back

    def unpack_lists(self, values: Tensor) -> Tensor:
        """``values [B]`` back in the order of the lists."""
        back = torch.empty_like(values)
        back[self.lists] = values
        return back

    @property
    def real(self) -> Tensor:
        """True where a packed position holds a document, bool ``[B, L]``."""
        places = torch.arange(self._place.shape[1], device=self._place.device)
        return places < self._sizes[1, :, None]

    @cached_property
    def _plan(self) -> tuple[list[int], list[int]]:
        """Front documents and documents of each list, long lists first."""
        rows, columns = self._sizes.tolist()
        return rows, columns

    def chunks(self, block: int) -> Iterator[Chunk]:
        """The lists that have any rows, in chunks of at most ``block`` elements (or one list)."""
        rows, columns = self._plan
        begin = 0
        while begin < len(rows) and columns[begin] > 0:
            tallest = rows[begin]
            end = begin + 1
            while end < len(rows) and columns[end] >= 0.75 * columns[begin] - 8:
                height = max(tallest, rows[end])
                if height * columns[begin] * (end - begin + 1) > block:
                    break
                tallest = height
                end += 1
            if tallest > 0:
                yield Chunk(slice(begin, end), tallest, columns[begin])
            begin = end


def walk(packing: Packing, like: Tensor, count: int) -> Iterator[tuple[Chunk, slice, list[Tensor]]]:
    """Every block of a pass over the pairs.

    Args:
        packing: what is worked through.
        like: gives the buffers' type and device.
        count: buffers per block.

    Yields:
        The chunk, the range of its rows, and ``count`` buffers ``[lists, rows, columns]``, whose
        content is left from the block before.
    """
    block = packing.budget // count
    buffers: list[Tensor] = []
    for chunk in packing.chunks(block):
        step = max(1, block // (chunk.size * chunk.columns))
        for begin in range(0, chunk.rows, step):
            rows = slice(begin, min(begin + step, chunk.rows))
            shape = (chunk.size, rows.stop - begin, chunk.columns)
            size = shape[0] * shape[1] * shape[2]
            if not buffers or buffers[0].numel() < size:
                buffers = [like.new_empty(max(size, block)) for _ in range(count)]
            yield chunk, rows, [buffer[:size].view(shape) for buffer in buffers]


class _SoftCounts(torch.autograd.Function):
    """``c_i = Σ_{j≠i} sigmoid(v_j - v_i)`` for the front documents of a packing."""

    @staticmethod
    def forward(ctx, values: Tensor, packing: Packing) -> Tensor:
        packed = packing.pack(values).masked_fill_(~packing.real, -FAR)
        counts = torch.zeros_like(packed)
        for chunk, rows, (block,) in walk(packing, packed, 1):
            _sigmoids(packed[chunk.lists], rows, block)
            counts[chunk.lists, rows] = block.sum(2)
        ctx.save_for_backward(packed)
        ctx.packing = packing
        return packing.unpack(counts.sub_(0.5))  # a document's own sigmoid(0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, slopes: Tensor) -> tuple[Tensor, None]:
        (packed,) = ctx.saved_tensors
        packing = ctx.packing
        slopes = packing.pack(slopes)
        gradient = torch.zeros_like(packed)
        for chunk, rows, (block,) in walk(packing, packed, 1):
            _sigmoids(packed[chunk.lists], rows, block)
            torch.addcmul(block, block, block, value=-1, out=block)
            weights, own = slopes[chunk.lists, rows], gradient[chunk.lists]
            own[:, : chunk.columns] += torch.bmm(weights.unsqueeze(1), block)[:, 0]
            own[:, rows] -= weights * block.sum(2)
        return packing.unpack(gradient), None


def _sigmoids(values: Tensor, rows: slice, out: Tensor) -> None:
    """``sigmoid(v_j - v_i)`` for the rows i of a block and its columns j."""
    columns = values[:, : out.shape[2]]
    torch.sub(columns.unsqueeze(1), columns[:, rows].unsqueeze(2), out=out).sigmoid_()


class _CompiledSoftCounts(torch.autograd.Function):
    """The same on a CPU, in compiled loops."""

    @staticmethod
    def forward(ctx, values: Tensor, front: Tensor, mask: Tensor) -> Tensor:
        from directrank.kernels import pairs as _pair_kernels

        ctx.save_for_backward(values, front, mask)
        counts = torch.zeros_like(values, memory_format=torch.contiguous_format)
        arrays = [array(tensor) for tensor in (values, front, mask, counts)]
        over_lists(_pair_kernels.soft_counts, pairs_of(values), len(values), *arrays)
        return counts

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, slopes: Tensor) -> tuple[Tensor, None, None]:
        from directrank.kernels import pairs as _pair_kernels

        values, front, mask = ctx.saved_tensors
        gradient = torch.zeros_like(values, memory_format=torch.contiguous_format)
        arrays = [array(tensor) for tensor in (values, front, mask, slopes, gradient)]
        over_lists(_pair_kernels.soft_counts_slope, pairs_of(values), len(values), *arrays)
        return gradient, None, None


def pairs_of(values: Tensor) -> int:
    """How many pairs of documents ``[B, L]`` lists have at most."""
    return values.shape[0] * values.shape[1] ** 2


def soft_counts(values: Tensor, front: Tensor, mask: Tensor) -> Tensor:
    """``Σ_{j≠i} sigmoid(v_j - v_i)`` over the documents j of the mask, for the front documents i.

    Memory does not grow with L²: nothing but the values is kept for the gradient.

    Args:
        values: ``[B, L]``.
        front: bool ``[B, L]``, the documents i whose sum is wanted.
        mask: bool ``[B, L]``, the documents j.

    Returns:
        ``[B, L]``; arbitrary (but finite, and without a gradient that matters) at other documents.
    """
    if usable(values):
        return _CompiledSoftCounts.apply(values, front, mask)
    return _SoftCounts.apply(values, Packing(front, mask))
