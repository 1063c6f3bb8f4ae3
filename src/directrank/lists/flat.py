"""Flat lists: the documents of all queries one after the other, ``[N]``.

A formula that is the same for padded and flat lists is written with the functions below. They take
the mask of padded lists (None if all documents are real) or the :class:`Flat` of flat ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from directrank.lists.arrays import array_of
from directrank.lists.devices import on_device
from directrank.system.errors import ArgumentError


class PaddingNeededError(Exception):
    """A formula that works only on padded lists was given flat ones."""


@dataclass(frozen=True)
class Flat:
    """The positions of flat lists, which replace the mask of padded lists.

    Attributes:
        lengths: int64 ``[B]``, documents per list; their sum is N.
        device: the device of the documents.
    """

    lengths: np.ndarray
    device: torch.device

    @cached_property
    def starts(self) -> np.ndarray:
        """The position at which each list begins, int64 ``[B]``."""
        return self.lengths.cumsum() - self.lengths

    @property
    def count(self) -> int:
        """The number of lists, B."""
        return len(self.lengths)

    @cached_property
    def spans(self) -> Tensor:
        """The positions at which each list begins and ends, int64 ``[B, 2]``."""
        ends = self.lengths.cumsum()
        return on_device(np.stack([ends - self.lengths, ends], axis=1), self.device)

    @cached_property
    def owners(self) -> Tensor:
        """The list of each document, int64 ``[N]``."""
        lists = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return on_device(lists, self.device)

    @cached_property
    def firsts(self) -> Tensor:
        """The position at which the list of each document begins, int64 ``[N]``."""
        return on_device(np.repeat(self.starts, self.lengths), self.device)

    @property
    def longest(self) -> int:
        """The number of documents of the longest list, L."""
        return int(self.lengths.max()) if len(self.lengths) else 0


class DeviceFlat(Flat):
    """Flat lists whose lengths only the device knows, so that nothing waits for them.

    There may be places before and behind a list that are in none.

    Args:
        spans: int64 ``[B, 2]``, where each list begins and ends, in ascending order.
        longest: no list has more documents.
        documents: the number of places, N.
    """

    def __init__(self, spans: Tensor, longest: int, documents: int) -> None:
        # A frozen dataclass keeps what is computed once in its dictionary.
        known = {"device": spans.device, "spans": spans}
        self.__dict__.update(known, _longest=longest, _documents=documents)

    @property
    def lengths(self) -> np.ndarray:
        """Unknown to the host.

        Raises:
            PaddingNeededError: always; a formula that asks for the lengths cannot be used.
        """
        raise PaddingNeededError

    @property
    def count(self) -> int:
        """See :class:`Flat`."""
        return len(self.spans)

    @property
    def longest(self) -> int:
        """See :class:`Flat`."""
        return int(self.__dict__["_longest"])

    @property
    def documents(self) -> int:
        """The number of places, N."""
        return int(self.__dict__["_documents"])

    @cached_property
    def owners(self) -> Tensor:
        """See :class:`Flat`; places that are in no list have one nearby."""
        places = torch.arange(self.documents, device=self.device)
        owners = torch.searchsorted(self.spans[:, 1].contiguous(), places, right=True)
        return owners.clamp_max_(len(self.spans) - 1)


#: The positions of documents: the mask ``[B, L]`` of padded lists, or a :class:`Flat`.
Lists: TypeAlias = Tensor | Flat


def flat_lists(scores: Tensor, labels: Tensor, lengths: Any, query_ids: Any) -> Flat:
    """The positions of the lists of ``scores [N]`` and ``labels [N]``.

    Args:
        scores, labels: ``[N]``.
        lengths: int ``[B]``, documents per list, or None: a tensor, an array, a series or a list.
        query_ids: ``[N]``, the query of each document, or None: likewise, of numbers or text; equal
            neighbours form a query.

    Raises:
        ArgumentError: the shapes are wrong; both or neither of lengths and query ids are given;
            lengths are negative, not whole numbers, or do not add up to N; a query is in two
            places, or a document has none.
    """
    if scores.shape != labels.shape or scores.ndim != 1:
        raise ArgumentError(
            f"flat scores {tuple(scores.shape)} and labels {tuple(labels.shape)} must both be [N]",
            "give padded lists [B, L] their mask, and neither lengths nor query_ids",
        )
    if (lengths is None) == (query_ids is None):
        raise ArgumentError(
            "both lengths and query_ids are given, which define the same lists",
            "give only one of them",
        )
    N = len(scores)
    if lengths is None:
        return Flat(_runs(array_of(query_ids, "query_ids"), N), scores.device)
    sizes = array_of(lengths, "lengths")
    if sizes.ndim != 1 or (sizes.size and not np.issubdtype(sizes.dtype, np.integer)):
        raise ArgumentError(
            f"lengths {sizes.shape} of {sizes.dtype} must be whole numbers [B]",
            "lengths holds the number of documents of each query",
        )
    if sizes.size and sizes.min() < 0:
        raise ArgumentError(
            f"lengths contains {sizes.min()}",
            "give the number of documents of each query, 0 or more",
        )
    if sizes.sum() != N:
        raise ArgumentError(
            f"lengths add up to {sizes.sum()} documents, but there are {N} scores",
            "give the length of every list of scores, in their order",
        )
    return Flat(sizes.astype(np.int64), scores.device)


def _runs(query_ids: np.ndarray, documents: int) -> np.ndarray:
    """The length of each run of equal ids, int64."""
    if query_ids.shape != (documents,):
        raise ArgumentError(
            f"query_ids {query_ids.shape} must be [{documents}], as the scores",
            "give every document the id of its query",
        )
    if query_ids.dtype == object:
        missing = any(not isinstance(id, str | int) and is_missing(id) for id in query_ids)
    else:
        missing = bool((query_ids != query_ids).any())
    if missing:
        raise ArgumentError(
            "query_ids has missing values (NaN)", "give every document the id of its query"
        )
    starts = np.flatnonzero(np.concatenate([[True], query_ids[1:] != query_ids[:-1]])[:documents])
    if len(set(query_ids[starts].tolist())) < len(starts):
        raise ArgumentError(
            "the documents of a query are not contiguous in query_ids",
            "sort the documents by query, or give lengths if the query is meant to occur twice",
        )
    return np.diff(starts, append=documents)


def is_missing(id: Any) -> bool:
    """Whether an id is None, NaN or the missing value of pandas, which is equal to nothing."""
    return id is None or (id == id) is not True


def mask_of(lists: Lists) -> Tensor:
    """The mask of padded lists, for a formula that works on no others.

    Raises:
        PaddingNeededError: the lists are flat.
    """
    if isinstance(lists, Flat):
        raise PaddingNeededError
    return lists


def sums(values: Tensor, lists: Lists | None) -> Tensor:
    """The sums of the lists, ``[B]``, of values ``[B, L]`` that are 0 where masked, or ``[N]``."""
    if not isinstance(lists, Flat):
        return values.sum(1)
    # The sum is sequential, so it uses float64 for the precision of long lists.
    total = values.new_zeros(len(lists.lengths), dtype=torch.float64)
    return total.index_add(0, lists.owners, values.double()).to(values.dtype)


def spread(values: Tensor, lists: Lists | None) -> Tensor:
    """``values [B]`` of lists in a shape that matches documents: ``[B, 1]`` or ``[N]``."""
    if isinstance(lists, Flat):
        return values.index_select(0, lists.owners)
    return values.unsqueeze(1)


def counts(lists: Lists) -> Tensor:
    """The number of documents of each list, int64 ``[B]``."""
    if isinstance(lists, Flat):
        return on_device(lists.lengths, lists.device)
    return lists.sum(1)


def hidden(values: Tensor, lists: Lists | None) -> Tensor:
    """``values`` of documents with 0 at masked positions."""
    return values.masked_fill(~lists, 0.0) if isinstance(lists, Tensor) else values


def repeated(lists: Lists, times: int) -> Lists:
    """The same lists repeated ``times`` times."""
    if isinstance(lists, DeviceFlat):
        first = lists.documents * torch.arange(times, device=lists.device)
        spans = (lists.spans + first[:, None, None]).flatten(0, 1)
        return DeviceFlat(spans, lists.longest, times * lists.documents)
    if isinstance(lists, Flat):
        return Flat(np.tile(lists.lengths, times), lists.device)
    return lists.repeat(times, 1)


def in_order(values: Tensor, order: Tensor, lists: Lists) -> Tensor:
    """``values`` of documents in the ``order`` of each list, which counts from the list's start."""
    if isinstance(lists, Flat):
        return values.index_select(0, order + lists.firsts)
    return values.gather(1, order)
