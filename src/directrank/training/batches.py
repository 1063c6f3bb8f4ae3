"""From packed lists to the batches of several models, without Python work per query."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from directrank.lists import RankedLists, concatenated_ranges

#: Pairs of a padded group of lists that take less time than another call of a loss would.
SMALL_BUCKET = 1 << 18


@dataclass(frozen=True)
class Batch:
    """One step's queries for every model of a stack, M models of B queries each.

    Attributes:
        features: ``[M, N, F]``; N is the largest number of documents of any model's batch.
        rows: bool ``[M, N]``, True for a real document; None where all are.
        positions: int64 ``[S]``, where each document stands in the flattened ``[M * N]`` scores;
            documents lie model by model, query by query.
        labels: ``[S]``, in the same order.
        lengths: int64 numpy ``[M * B]``, documents per query.
    """

    features: Tensor
    rows: Tensor | None
    positions: Tensor
    labels: Tensor
    lengths: np.ndarray


class Feeder:
    """Draws batches from a data set part.

    Args:
        lists: the part.
        dtype: what features and labels become.
        device: where batches live.
        max_documents: longer lists are cut to this many random documents at each draw.
    """

    def __init__(
        self,
        lists: RankedLists,
        dtype: torch.dtype,
        device: torch.device,
        max_documents: int | None = None,
    ) -> None:
        self.features = _tensor(lists.features)
        self.labels = _tensor(np.asarray(lists.labels))
        self.starts = np.asarray(lists.offsets[:-1])
        self.lengths = np.asarray(lists.lengths)
        self.dtype = dtype
        self.device = device
        self.max_documents = max_documents

    def draw(self, queries: np.ndarray, streams: list[np.random.Generator]) -> Batch:
        """The batch of the queries at positions ``queries``, int ``[M, B]``.

        ``streams`` holds each model's random stream for cutting long lists.
        """
        models, per_model = queries.shape
        flat = queries.ravel()
        lengths = self.lengths[flat]
        rows = concatenated_ranges(self.starts[flat], lengths)
        if self.max_documents is not None and lengths.max() > self.max_documents:
            rows, lengths = _cut(rows, lengths, per_model, self.max_documents, streams)
        totals = lengths.reshape(models, per_model).sum(1)
        width = int(totals.max())
        index = torch.from_numpy(rows)
        labels = self.labels.index_select(0, index)
        features = self.features.index_select(0, index)
        if models == 1:
            positions, real = torch.arange(width), None
            features = features[None]
        else:
            positions = torch.from_numpy(concatenated_ranges(np.arange(models) * width, totals))
            features = features.new_zeros(models * width, features.shape[1]).index_copy_(
                0, positions, features
            )
            features = features.view(models, width, -1)
            real = torch.arange(width) < torch.from_numpy(totals)[:, None]
            real = None if bool(real.all()) else real
        return Batch(
            features=features.to(self.device, self.dtype, non_blocking=True),
            rows=None if real is None else real.to(self.device),
            positions=positions.to(self.device),
            labels=labels.to(self.device, self.dtype, non_blocking=True),
            lengths=lengths,
        )


def buckets(
    lengths: np.ndarray, waste: float = 0.25, small: int = SMALL_BUCKET
) -> list[np.ndarray]:
    """Group lists of similar length, so that padding each group wastes little.

    Args:
        lengths: int ``[B]``, documents per list.
        waste: a list goes into a group whose longest list is at most ``1 / (1 - waste)`` times as
            long.
        small: padded pairs (lists × longest²) that are not worth a further group.

    Returns:
        The positions of the lists of each group, longest group first; together all of them.
    """
    order = np.argsort(-lengths, kind="stable")
    groups, begin = [], 0
    while begin < len(order):
        longest = lengths[order[begin]]
        end = int(np.searchsorted(-lengths[order], -longest * (1 - waste), side="right"))
        end = min(max(end, begin + small // max(int(longest), 1) ** 2), len(order))
        groups.append(order[begin:end])
        begin = end
    return groups


def _cut(
    rows: np.ndarray,
    lengths: np.ndarray,
    per_model: int,
    limit: int,
    streams: list[np.random.Generator],
) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum(lengths) - lengths
    kept = np.ones(len(rows), dtype=bool)
    for query in np.flatnonzero(lengths > limit):
        stream = streams[query // per_model]
        begin, length = starts[query], lengths[query]
        kept[begin + stream.permutation(length)[limit:]] = False
    return rows[kept], np.minimum(lengths, limit)


def _tensor(array: np.ndarray) -> Tensor:
    with warnings.catch_warnings():
        # A memory map is read-only and stays so: nothing here writes to it.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
