"""Scores of whole splits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from directrank.learners.neural.batches import Feeder
from directrank.learners.neural.failures import naming_memory
from directrank.lists.packed import RankedLists

#: Documents scored at a time, times models; bounds the memory of a forward pass.
SCORING_CHUNK = 1 << 16


def score(model: nn.Module, lists: RankedLists, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Scores ``[M, N]`` of all documents of ``lists``, in evaluation mode, on the CPU."""
    model.eval()
    return score_parts(model, Feeder(lists, dtype, device))


@torch.no_grad()
def score_parts(model: nn.Module, feeder: Feeder) -> Tensor:
    """Scores ``[M, N]`` of all documents that ``feeder`` holds, in the model's mode, on the CPU."""
    parts = []
    documents = SCORING_CHUNK // max(1, len(next(model.parameters())))
    with naming_memory("scoring", "lower training.stack, or use --device cpu"):
        for first, last in _whole_queries(feeder.offsets, documents):
            begin, end = feeder.offsets[first], feeder.offsets[last]
            rows = feeder.features[begin:end].to(feeder.device, feeder.dtype)
            parts.append(model(rows[None], None, feeder.lengths[None, first:last]).cpu())
        return torch.cat(parts, dim=1)


def _whole_queries(offsets: np.ndarray, documents: int) -> Iterator[tuple[int, int]]:
    """Ranges of queries that together have at most ``documents`` documents, or are one query."""
    first, queries = 0, len(offsets) - 1
    while first < queries:
        last = int(np.searchsorted(offsets, offsets[first] + documents, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last
