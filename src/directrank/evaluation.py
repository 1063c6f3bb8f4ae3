"""Metrics per query from packed scores, on full lists, in groups of similar length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank import metrics
from directrank.lists import RankedLists, concatenated_ranges, pad, padded_positions
from directrank.training.batches import buckets

#: Elements of the padded tensors that are worked on together.
PADDED_AT_ONCE = 1 << 22


def metrics_per_query(
    scores: Tensor | np.ndarray, lists: RankedLists, mappings: Sequence[Mapping[str, Any]]
) -> dict[str, np.ndarray]:
    """Every metric of ``mappings`` for every query.

    Args:
        scores: packed scores, ``[N]``, or ``[M, N]`` of M models.
        lists: the queries; ties are broken by their order in the file.
        mappings: metrics as in a configuration, e.g. ``{"name": "ndcg", "k": 5}``.

    Returns:
        Column label → float64 ``[Q]`` or ``[M, Q]``; NaN for a query without a relevant document.
    """
    scores = torch.as_tensor(scores)
    single = scores.ndim == 1
    scores = scores.reshape(-1, scores.shape[-1]).cpu()
    labels = torch.as_tensor(np.array(lists.labels), dtype=scores.dtype)
    lengths = np.asarray(lists.lengths)
    result = {
        metrics.label(mapping): np.full((len(scores), lists.n_queries), np.nan)
        for mapping in mappings
    }
    for group in buckets(lengths):
        rows = torch.from_numpy(concatenated_ranges(lists.offsets[group], lengths[group]))
        mask, index = padded_positions(torch.from_numpy(lengths[group]))
        padded_labels = pad(labels[rows], mask, index)
        together = max(1, PADDED_AT_ONCE // mask.numel())
        for first in range(0, len(scores), together):
            some = scores[first : first + together]
            padded = some.new_zeros(len(some), mask.numel()).index_copy_(1, index, some[:, rows])
            values = metrics.evaluate(
                mappings,
                padded.view(-1, mask.shape[1]),
                padded_labels.repeat(len(some), 1),
                mask.repeat(len(some), 1),
            )
            for label, value in values.items():
                result[label][first : first + together, group] = (
                    value.double().view(len(some), -1).numpy()
                )
    return {label: value[0] for label, value in result.items()} if single else result
