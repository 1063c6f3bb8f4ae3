"""Flat lists: the documents of all queries lie one after the other, as ``[N]``.

Where a formula says the same of padded and of flat lists, it is written with the functions below,
which take the mask of the one (None where all documents are real) or the :class:`Flat` of the
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from directrank.system.errors import DirectrankError


class PaddingNeededError(Exception):
    """A formula was given flat lists and knows padded ones alone."""


@dataclass(frozen=True)
class Flat:
    """Where flat lists lie; it stands where padded lists have their mask.

    Attributes:
        lengths: int64 ``[B]``, documents per list; together they are the N documents.
        device: of the documents.
    """

    lengths: np.ndarray
    device: torch.device

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each list begins, int64 ``[B]``."""
        return self.lengths.cumsum() - self.lengths

    @cached_property
    def owners(self) -> Tensor:
        """The list of each document, int64 ``[N]``."""
        lists = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return torch.from_numpy(lists).to(self.device)

    @cached_property
    def firsts(self) -> Tensor:
        """Where the list of each document begins, int64 ``[N]``."""
        return torch.from_numpy(np.repeat(self.starts, self.lengths)).to(self.device)

    @property
    def longest(self) -> int:
        """Documents of the longest list, L."""
        return int(self.lengths.max()) if len(self.lengths) else 0


#: Which places hold documents: the mask ``[B, L]`` of padded lists, or where flat ones lie.
Lists: TypeAlias = Tensor | Flat


def flat_lists(scores: Tensor, labels: Tensor, lengths: Any, query_ids: Any) -> Flat:
    """Where the lists of ``scores [N]`` and ``labels [N]`` lie.

    Args:
        scores, labels: ``[N]``.
        lengths: int ``[B]``, documents per list, or None: a tensor, an array or a sequence.
        query_ids: ``[N]``, the query of each document, or None; equal neighbours are a query.

    Raises:
        DirectrankError: other shapes; both or neither of lengths and numbers; lengths that are
            negative, no whole numbers, or other than N together; a query in two places.
    """
    if scores.shape != labels.shape or scores.ndim != 1:
        raise DirectrankError(
            f"flat scores {tuple(scores.shape)} and labels {tuple(labels.shape)} must both be [N]",
            "give padded lists [B, L] their mask, and neither lengths nor query_ids",
        )
    if (lengths is None) == (query_ids is None):
        raise DirectrankError(
            "lengths and query_ids say the same of flat lists, and both are given",
            "give one of them",
        )
    N = len(scores)
    if lengths is None:
        return Flat(_runs(torch.as_tensor(query_ids).detach(), N), scores.device)
    sizes = torch.as_tensor(lengths).detach().cpu().numpy()
    if sizes.ndim != 1 or (sizes.size and not np.issubdtype(sizes.dtype, np.integer)):
        raise DirectrankError(
            f"lengths {sizes.shape} of {sizes.dtype} must be whole numbers [B]",
            "lengths holds the number of documents of each query",
        )
    if sizes.size and sizes.min() < 0:
        raise DirectrankError(
            f"lengths holds {sizes.min()}", "a list has 0 documents or more: count them anew"
        )
    if sizes.sum() != N:
        raise DirectrankError(
            f"lengths add up to {sizes.sum()} documents, and there are {N} scores",
            "give the length of every list of scores, in their order",
        )
    return Flat(sizes.astype(np.int64), scores.device)


def _runs(query_ids: Tensor, documents: int) -> np.ndarray:
    """How often each number stands in a row, int64."""
    if query_ids.shape != (documents,):
        raise DirectrankError(
            f"query_ids {tuple(query_ids.shape)} must be [{documents}], as the scores",
            "give every document the number of its query",
        )
    ids, counts = torch.unique_consecutive(query_ids, return_counts=True)
    if len(ids) > len(torch.unique(ids)):
        raise DirectrankError(
            "the documents of a query do not follow each other in query_ids",
            "sort the documents by query; or give lengths, if the query is meant to be there twice",
        )
    return counts.cpu().numpy()


def mask_of(lists: Lists) -> Tensor:
    """The mask of padded lists, for a formula that knows no others.

    Raises:
        PaddingNeededError: flat lists.
    """
    if isinstance(lists, Flat):
        raise PaddingNeededError
    return lists


def sums(values: Tensor, lists: Lists | None) -> Tensor:
    """The sum of each list, ``[B]``, of ``[B, L]`` that are 0 where masked, or of ``[N]``."""
    if not isinstance(lists, Flat):
        return values.sum(1)
    # One number after the other: float64 keeps the digits of long lists.
    total = values.new_zeros(len(lists.lengths), dtype=torch.float64)
    return total.index_add(0, lists.owners, values.double()).to(values.dtype)


def spread(values: Tensor, lists: Lists | None) -> Tensor:
    """``values [B]`` of lists, where they meet those of the documents: ``[B, 1]`` or ``[N]``."""
    if isinstance(lists, Flat):
        return values.index_select(0, lists.owners)
    return values.unsqueeze(1)


def counts(lists: Lists) -> Tensor:
    """Documents of each list, int64 ``[B]``."""
    if isinstance(lists, Flat):
        return torch.from_numpy(lists.lengths).to(lists.device)
    return lists.sum(1)


def hidden(values: Tensor, lists: Lists | None) -> Tensor:
    """``values`` of documents with 0 at masked positions."""
    return values.masked_fill(~lists, 0.0) if isinstance(lists, Tensor) else values


def repeated(lists: Lists, times: int) -> Lists:
    """The same lists so many times, one after the other."""
    if isinstance(lists, Flat):
        return Flat(np.tile(lists.lengths, times), lists.device)
    return lists.repeat(times, 1)


def in_order(values: Tensor, order: Tensor, lists: Lists) -> Tensor:
    """``values`` of documents in the ``order`` of each list, which counts from its beginning."""
    if isinstance(lists, Flat):
        return values.index_select(0, order + lists.firsts)
    return values.gather(1, order)
