"""Make batches for several models from packed lists, without Python work per query."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists import draws
from directrank.lists.devices import on_device
from directrank.lists.documents import Documents, copied
from directrank.lists.draws import Counters
from directrank.lists.flat import Flat
from directrank.lists.packed import RankedLists, concatenated_ranges

CPU = torch.device("cpu")

uniform_by_document: Callable[..., Tensor] = accelerated(draws.uniform_by_document)

#: How long training lists are truncated: to random documents, or to random documents that are
#: redrawn until one is relevant if the list has any (Pobrotyn2021's released code).
CUTS = ("random", "random_relevant")


@dataclass(frozen=True)
class Layout:
    """The positions of the queries of a batch in rows of documents.

    A row contains one drawing of queries. G rows serve M models, M / G neighbours each, because
    models that draw the same queries share a row.

    Attributes:
        labels: ``[G, N]``; N is the largest number of documents of any row. They are arbitrary at
            padding.
        starts: int64 numpy ``[G, B]``, where each query begins in its row.
        lengths: int64 numpy ``[G, B]``, documents per query.
        relevant: int64 numpy ``[G]``, queries with a relevant document.
        weights: numpy ``[G, B]``, the factor of each query's loss; None if all are 1.
    """

    labels: Tensor
    starts: np.ndarray
    lengths: np.ndarray
    relevant: np.ndarray
    weights: np.ndarray | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, lists: RankedLists, dtype: torch.dtype, device: torch.device) -> Layout:
        """A whole split as one row."""
        labels = torch.as_tensor(np.array(lists.labels), dtype=dtype, device=device)
        starts, lengths = (lists.offsets[:-1] - lists.offsets[0])[None], lists.lengths[None]
        relevant = have_relevant(np.asarray(lists.labels) > 0, starts, lengths)
        weights = None if lists.weights is None else lists.weights[None]
        return cls(labels[None], starts, lengths, relevant.sum(1), weights=weights)


@dataclass(frozen=True)
class Batch(Layout):
    """One step's queries for every model of a stack.

    Attributes:
        documents: the features ``[G, N, F]``, or their positions; a row is padded with its last
            document.
        rows: bool ``[G, N]``, True at documents that a scorer sees; None if it sees all.
        spans: int64 numpy ``[G, B]``, documents per query that a scorer sees: ``lengths``, or more
            if padding is passed as documents.
        queries: int64 numpy ``[G, B]``, positions of the queries in the split.
    """

    documents: Tensor | Documents
    rows: Tensor | None
    spans: np.ndarray
    queries: np.ndarray

    @property
    def features(self) -> Tensor:
        """The documents' features ``[G, N, F]``."""
        return copied(self.documents)


class Feeder:
    """Draws batches of queries.

    On a GPU all features are kept in its memory if :data:`RESIDENT` of the free memory is enough;
    otherwise each batch is gathered in pinned memory and copied while the GPU works. On a CPU they
    stay in their table until they are used.

    Args:
        lists: the queries.
        dtype: the type of features and labels.
        device: the device of the batches.
        max_documents: longer lists are truncated to this many random documents at each draw.
        cut: a name of :data:`CUTS`, how those documents are drawn.
        padded: pad every list with rows of zeros to the longest of its batch, and pass them to the
            scorer as documents.
    """

    #: Share of a GPU's free memory that features may occupy permanently.
    RESIDENT = 0.5

    def __init__(
        self,
        lists: RankedLists,
        dtype: torch.dtype,
        device: torch.device,
        max_documents: int | None = None,
        cut: str = "random",
        padded: bool = False,
    ) -> None:
        self.features = _tensor(lists.features)
        self.labels = _tensor(np.asarray(lists.labels)).to(device, dtype)
        self.offsets = np.asarray(lists.offsets)
        self.starts = self.offsets[:-1]
        self.lengths = np.asarray(lists.lengths)
        self.weights = lists.weights
        self.dtype = dtype
        self.device = device
        self.max_documents = sys.maxsize if max_documents is None else max_documents
        self.cut = cut
        self.judgements = np.asarray(lists.labels)
        self.padded = padded
        if device.type == "cuda":
            size = self.features.numel() * torch.empty(0, dtype=dtype).element_size()
            if size <= self.RESIDENT * torch.cuda.mem_get_info(device)[0]:
                self.features = self.features.to(device, dtype)

    @cached_property
    def relevant(self) -> np.ndarray:
        """Whether each document is relevant, bool ``[N]``."""
        return self.judgements > 0

    @cached_property
    def with_relevant(self) -> np.ndarray:
        """Whether each query has a relevant document, bool ``[Q]``."""
        return have_relevant(self.relevant, self.starts, self.lengths)

    def draw(self, queries: np.ndarray, seeds: Sequence[int] = (), step: int = 0) -> Batch:
        """The batch of the queries at positions ``queries``, int ``[G, B]``.

        Args:
            queries: the positions.
            seeds: of each row, for the documents of long lists; of no use if lists stay whole.
            step: the number of the step, for the same.
        """
        lengths = self.lengths[queries]
        if queries.shape[1] == 1 and not self.padded and self._stay_whole(lengths):
            return self._one_each(queries, lengths)
        rows, lengths = self.drawn(queries, seeds, step)
        spans = lengths
        if self.padded:
            spans = np.broadcast_to(lengths.max(1, keepdims=True), lengths.shape)
        ends = spans.cumsum(1)
        widths = ends[:, -1:]
        places = np.arange(int(widths.max()))
        real = None if widths.min() == len(places) else places < widths
        hidden = None
        if self.padded:
            source, mask = _padded_source(rows, lengths, spans, len(places))
            hidden = None if mask.all() else on_device(~mask, self.device)
        else:
            source = np.cumsum(widths)[:, None] - widths + np.minimum(places, widths - 1)
        documents, labels = self._rows(rows[source])
        if hidden is not None:
            documents = copied(documents).masked_fill_(hidden[..., None], 0.0)
        return Batch(
            labels=labels,
            starts=ends - spans,
            lengths=lengths,
            relevant=self.relevant_of(queries, rows, lengths),
            documents=documents,
            rows=None if real is None else on_device(real, self.device),
            spans=spans,
            queries=queries,
            weights=self._weights_of(queries),
        )

    def _one_each(self, queries: np.ndarray, lengths: np.ndarray) -> Batch:
        """The batch of one query ``[G, 1]`` per row, computed fast because such steps are short."""
        places = np.arange(int(lengths.max()))
        documents, labels = self._rows(self.starts[queries] + np.minimum(places, lengths - 1))
        full = int(lengths.min()) == len(places)
        rows = None if full else on_device(places < lengths, self.device)
        starts = np.zeros(queries.shape, dtype=np.int64)
        relevant = self.with_relevant[queries].sum(1)
        weights = self._weights_of(queries)
        return Batch(
            labels, starts, lengths, relevant, documents, rows, lengths, queries, weights=weights
        )

    def _weights_of(self, queries: np.ndarray) -> np.ndarray | None:
        """The weights of queries, in the shape of their positions; None if all are 1."""
        return None if self.weights is None else self.weights[queries]

    def _rows(self, rows: np.ndarray) -> tuple[Tensor | Documents, Tensor]:
        """Features ``[G, N, F]`` and labels ``[G, N]`` of the documents ``rows`` ``[G, N]``."""
        index = on_device(rows.ravel(), self.device)
        labels = self.labels.index_select(0, index).view(rows.shape)
        if self.device.type == "cpu":
            return Documents(self.features, rows, self.dtype), labels
        if self.resident:
            features = self.features.index_select(0, index).to(self.dtype)
        else:
            features = self._from_host(torch.from_numpy(rows.ravel()))
        return features.view(*rows.shape, -1), labels

    def drawn(
        self, queries: np.ndarray, seeds: Sequence[int], step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The documents of queries, concatenated, and the number of each query ``[G, B]``.

        Arguments are as in :meth:`draw`.
        """
        lengths = self.lengths[queries]
        rows = concatenated_ranges(self.starts[queries.ravel()], lengths.ravel())
        if self._stay_whole(lengths):
            return rows, lengths
        required = self.relevant[rows] if self.cut == "random_relevant" else None
        return _cut(rows, lengths, self.max_documents, seeds, step, required)

    @property
    def resident(self) -> bool:
        """Whether all features are in the memory of the device."""
        return self.features.device.type == self.device.type

    def relevant_of(self, queries: np.ndarray, rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The number of queries ``[G]`` with a relevant document among ``rows``, those of queries
        of ``lengths`` ``[G, B]``."""
        if len(rows) == self.lengths[queries].sum():
            return self.with_relevant[queries].sum(1)
        starts = lengths.cumsum().reshape(lengths.shape) - lengths
        return have_relevant(self.relevant[rows], starts, lengths).sum(1)

    def _stay_whole(self, lengths: np.ndarray) -> bool:
        """Whether no list is long enough to be truncated."""
        return bool(lengths.max() <= self.max_documents)

    def _from_host(self, index: Tensor) -> Tensor:
        """The features of documents that are in the host's memory, on the GPU."""
        shape = len(index), self.features.shape[1]
        rows = torch.empty(shape, dtype=self.features.dtype, pin_memory=True)
        torch.index_select(self.features, 0, index, out=rows)
        return rows.to(self.device, self.dtype, non_blocking=True)


def have_relevant(relevant: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Whether lists have a relevant document, in the shape of ``starts`` and ``lengths``.

    Args:
        relevant: bool ``[N]``, of all documents.
        starts, lengths: where each list begins among them, and its documents.
    """
    before = np.concatenate([[0], relevant.cumsum()])
    return before[starts + lengths] > before[starts]


def _cut(
    rows: np.ndarray,
    lengths: np.ndarray,
    limit: int,
    seeds: Sequence[int],
    step: int,
    required: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """At most ``limit`` of the documents ``rows`` of each list of ``lengths`` ``[G, B]``.

    Of a longer list those with the smallest random numbers are kept. If documents of a list are
    ``required``, numbers are drawn until one of them is kept.
    """
    flat, B = lengths.ravel(), lengths.shape[1]
    starts = np.cumsum(flat) - flat
    kept = np.ones(len(rows), dtype=bool)
    waiting = np.flatnonzero(flat > limit)
    known, steps = torch.tensor(seeds), torch.tensor([step])
    calls = 0
    while len(waiting):
        own = Flat(flat[waiting], CPU)
        counters = Counters(known[waiting // B], torch.from_numpy(waiting % B), steps, calls=calls)
        values = torch.empty(int(own.lengths.sum()))
        numbers = uniform_by_document(values, own, counters, 1)[0].numpy()
        again = []
        for query, start, length in zip(waiting, own.starts, own.lengths, strict=True):
            begin = starts[query]
            order = np.argsort(numbers[start : start + length], kind="stable")
            relevant = np.zeros(0, bool) if required is None else required[begin : begin + length]
            if relevant.any() and not relevant[order[:limit]].any():
                again.append(query)
            else:
                kept[begin + order[limit:]] = False
        waiting, calls = np.array(again, dtype=np.int64), counters.calls
    return rows[kept], np.minimum(lengths, limit)


def _padded_source(
    rows: np.ndarray, lengths: np.ndarray, spans: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """The packed row of each place ``[G, width]``, and a mask of the places that have one."""
    G = len(lengths)
    shift = np.arange(G)[:, None] * width + spans.cumsum(1) - spans
    places = concatenated_ranges(shift.ravel(), lengths.ravel())
    source = np.zeros(G * width, dtype=np.int64)
    source[places] = np.arange(len(rows))
    mask = np.zeros(G * width, dtype=bool)
    mask[places] = True
    return source.reshape(G, width), mask.reshape(G, width)


def _tensor(array: np.ndarray) -> Tensor:
    with warnings.catch_warnings():
        # A memory map is read-only and stays so: nothing here writes to it.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
