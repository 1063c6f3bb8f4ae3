"""Ranked lists as kernels take them: flat arrays, with the start and the length of each list.

A kernel is ``kernel(begin, end, starts, lengths, *arrays, …)``. It processes the lists from
``begin`` to ``end`` and reads and writes nothing outside them. Packed lists, and padded lists whose
documents come first, therefore run through the same loop without a copy; lists with holes are
packed before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.compiling import compiled
from directrank.kernels.threads import over_lists
from directrank.lists.flat import Flat, Lists, spread
from directrank.lists.gradient import with_gradient
from directrank.lists.inputs import validated


class Batch:
    """B lists of at most L documents; flat lists have arrays ``[N]`` in place of ``[B, L]``.

    Args:
        scores: floating ``[B, L]``; half precision is widened to float32.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real. For flat lists,
            their positions (:class:`directrank.lists.flat.Flat`).

    Attributes:
        scores, labels: tensors ``[B, L]``.
        shape: B and L.
        starts, lengths: int64 ``[B]``, of each list in the flat arrays.

    Raises:
        DirectrankError: see :func:`directrank.lists.inputs.validated`.
    """

    def __init__(self, scores: Tensor, labels: Tensor, mask: Lists | None) -> None:
        self.scores, self.labels, mask = validated(scores, labels, mask)
        self._lay_out(mask)

    @classmethod
    def of_valid(cls, scores: Tensor, labels: Tensor, mask: Tensor) -> Batch:
        """A batch of arguments that are known to be valid; the labels may be of any type."""
        batch = cls.__new__(cls)
        batch.scores, batch.labels = scores, labels
        batch._lay_out(mask)
        return batch

    def _lay_out(self, mask: Lists | None) -> None:
        self._index: np.ndarray | None = None
        self._mask: Tensor | None = None  # where there are holes
        self._flat = mask if isinstance(mask, Flat) else None
        if isinstance(mask, Flat):
            self.shape = len(mask.lengths), mask.longest
            self.starts, self.lengths = mask.starts, mask.lengths
            return
        B, L = self.scores.shape
        self.shape = B, L
        self.starts = np.arange(0, B * L, L) if L else np.zeros(B, np.int64)
        self.lengths = np.empty(B, np.int64)
        if mask is None:
            self.lengths.fill(L)
        else:
            real = np.ascontiguousarray(mask.numpy()).view(np.uint8)
            if not _count(real, self.lengths):
                # Some list has a hole, so the documents are packed.
                self._index, self._mask = np.flatnonzero(real), mask
                self.starts = self.lengths.cumsum() - self.lengths

    @property
    def gradient_needed(self) -> bool:
        """Whether the gradient with respect to the scores is requested."""
        return self.scores.requires_grad and torch.is_grad_enabled()

    @property
    def has_holes(self) -> bool:
        """Whether the mask hides positions before the end of a list, which are left out here."""
        return self._index is not None

    @property
    def documents(self) -> int:
        """The number of documents."""
        return int(self.lengths.sum())

    @property
    def pairs(self) -> int:
        """An upper bound on the number of pairs of documents."""
        if self._flat is not None:
            return int(self.lengths @ self.lengths)
        return self.shape[0] * self.shape[1] ** 2

    def flat(self, values: Tensor) -> np.ndarray:
        """``values [B, L]`` of the documents as a flat array that shares memory if possible."""
        numbers = values.detach().numpy().ravel()
        return numbers if self._index is None else numbers.take(self._index)

    def places(self, order: Tensor) -> np.ndarray:
        """An order ``[B, L]``, masked documents last, as flat positions that count from each list's
        first document."""
        if self._mask is None:
            return self.flat(order)
        order = (self._mask.cumsum(1) - 1).gather(1, order)
        places = torch.arange(self.shape[1], device="cpu")
        first = places < torch.from_numpy(self.lengths).unsqueeze(1)
        return order[first].numpy()

    def zeros(self) -> np.ndarray:
        """A zero per document, in the scores' type."""
        size = self.scores.numel() if self._index is None else len(self._index)
        return self._empty(size, zero=True)

    def per_list(self) -> np.ndarray:
        """An uninitialised number ``[B]`` per list, in the scores' type."""
        return self._empty(self.shape[0])

    def padded(self, values: np.ndarray) -> Tensor:
        """Flat ``values`` of the documents as ``[B, L]``; 0 at masked positions."""
        if self._index is not None:
            documents, values = values, np.zeros(self.scores.numel(), values.dtype)
            values[self._index] = documents
        return torch.from_numpy(values.reshape(self.scores.shape))

    def run(self, kernel: Callable[..., None], work: int, *arguments: object) -> None:
        """Call a kernel for all lists, on as many threads as the ``work`` (in pairs) justifies."""
        over_lists(kernel, work, self.shape[0], self.starts, self.lengths, *arguments)

    def loss(self, value: np.ndarray, gradient: np.ndarray) -> Tensor:
        """``value [B]`` as a function of the scores with the flat ``gradient``."""
        result = torch.from_numpy(value)
        if not self.gradient_needed:
            return result
        return self.with_gradient(result, self.padded(gradient))

    def with_gradient(self, value: Tensor, gradient: Tensor) -> Tensor:
        """``value [B]`` as a function of the scores with the ``gradient [B, L]``."""
        return with_gradient(self.scores, value, gradient, self._flat)

    def spread(self, values: Tensor) -> Tensor:
        """``values [B]`` of lists in a shape that broadcasts with values of the documents."""
        return spread(values, self._flat)

    def _empty(self, size: int, zero: bool = False) -> np.ndarray:
        dtype = np.float64 if self.scores.dtype == torch.float64 else np.float32
        return np.zeros(size, dtype) if zero else np.empty(size, dtype)


def array(values: Tensor) -> np.ndarray:
    """A tensor's numbers as a contiguous array, which shares their memory if possible."""
    return values.detach().contiguous().numpy()


def per_list(value: float | Tensor, lists: int) -> np.ndarray:
    """A hyper-parameter (a number or ``[B, 1]``) as float64 ``[B]``."""
    if isinstance(value, Tensor):
        return value.detach().double().expand(lists, 1).reshape(lists).contiguous().numpy()
    return np.full(lists, value, dtype=np.float64)


@compiled
def _count(mask, lengths):
    """Count each list's documents, and return whether they precede the padding in all lists."""
    leading = True
    for b in range(len(mask)):
        row = mask[b]
        n = np.int32(0)
        for j in range(len(row)):
            n += np.int32(row[j])
        lengths[b] = n
        if n < len(row):
            first = np.int32(0)
            for j in range(n):
                first += np.int32(row[j])
            leading &= first == n
    return leading
