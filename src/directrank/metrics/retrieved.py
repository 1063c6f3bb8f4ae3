"""Metrics of rankings that may leave documents out, such as those of run files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from directrank import metrics
from directrank.lists.buckets import buckets
from directrank.lists.packed import concatenated_ranges
from directrank.lists.parameters import NUMBERS, check_options
from directrank.metrics.conventions import Judgements, with_empty
from directrank.relaxations.sorted_lists import SortedRanking


class RetrievedRanking(SortedRanking):
    """Documents in the order of their ranks; those not retrieved have no rank and gain nothing.

    Args:
        retrieved: int ``[B]``, the number of retrieved documents of each list, which come first.
        width: L, the number of documents of the longest list, including those that were not
            retrieved.
    """

    def __init__(self, retrieved: Tensor, width: int) -> None:
        self.ranked = torch.arange(width) < retrieved[:, None]

    def _sorted(self, values: Tensor, k: int | None) -> Tensor:
        return (values * self.ranked)[:, :k]


def metrics_of_rankings(
    labels: np.ndarray,
    lengths: np.ndarray,
    retrieved: np.ndarray,
    mappings: Sequence[Mapping[str, object]],
) -> dict[str, np.ndarray]:
    """Compute every metric of ``mappings`` for every ranking.

    A relevant document that was not retrieved counts in the ideal order and in the number of
    relevant documents, as in trec_eval. If every document is retrieved, the values are those of
    :func:`directrank.metrics.packed.metrics_per_query`.

    Args:
        labels: packed ``[N]``: for each list, the retrieved documents in the order of their ranks,
            then the others.
        lengths: int ``[Q]``, documents per list.
        retrieved: int ``[Q]``, the number of retrieved documents per list.
        mappings: metrics as in a configuration, e.g. ``{"name": "ndcg", "k": 5}``.

    Returns:
        Column label → float64 ``[Q]``; NaN for a list without a relevant document.

    Raises:
        ArgumentError: an option is outside of its range.

    >>> labels, ndcg = np.array([0.0, 1.0, 1.0]), {"name": "ndcg"}
    >>> [
    ...     metrics_of_rankings(labels, np.array([3]), np.array([n]), [ndcg])["ndcg"].round(3)
    ...     for n in (3, 2)
    ... ]
    [array([0.693]), array([0.387])]
    """
    mappings = [check_options(mapping, NUMBERS) for mapping in mappings]
    lengths = np.asarray(lengths, np.int64)
    starts = np.cumsum(lengths) - lengths
    values = {metrics.label(mapping): np.full(len(lengths), np.nan) for mapping in mappings}
    for group in buckets(lengths, power=1):
        width = int(lengths[group[0]])
        mask = torch.arange(width) < torch.from_numpy(lengths[group])[:, None]
        padded = torch.zeros(mask.shape, dtype=torch.float64)
        rows = concatenated_ranges(starts[group], lengths[group])
        padded[mask] = torch.from_numpy(labels[rows].astype(np.float64))
        judgements = Judgements(padded, mask)
        ranking = RetrievedRanking(torch.from_numpy(np.asarray(retrieved)[group]), width)
        for mapping in mappings:
            options = dict(mapping)
            formula = metrics.formula(str(options.pop("name")))
            value, defined = formula(ranking, judgements, **options)
            values[metrics.label(mapping)][group] = with_empty(value, defined, "exclude").numpy()
    return values
