"""Lists for the benchmarks of training: as long as Web30K's, or of any lengths; random content."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from directrank.data import standins
from directrank.data.standin_pages import Lengths
from directrank.learners.contract import Splits
from directrank.lists.packed import RankedLists
from directrank.system.seeds import numpy_stream

LABEL_SHARES = [0.55, 0.23, 0.13, 0.08, 0.01]


def web30k_lengths(queries: int) -> np.ndarray:
    """Lengths as Web30K's; the longest, 1251, is among them."""
    shape = dict(standins.profile("web30k_standin")["lists"])
    mean = shape.pop("mean")
    stream = numpy_stream("benchmark", queries)
    lengths = np.array([Lengths(**shape).draw(stream) for _ in range(queries)])
    lengths = np.maximum(np.round(lengths * (mean / lengths.mean())), 1)
    lengths[queries // 2] = 1251
    return np.minimum(lengths, 1251).astype(np.int64)


def lists_of(lengths: np.ndarray, features: int, levels: Sequence[float] = ()) -> RankedLists:
    """Random documents in lists of ``lengths``."""
    stream = numpy_stream("benchmark", "documents", len(lengths))
    shares = levels or LABEL_SHARES
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return RankedLists(
        features=stream.standard_normal((offsets[-1], features), dtype=np.float32),
        labels=stream.choice(len(shares), offsets[-1], p=shares).astype(np.float32),
        offsets=offsets,
        query_ids=np.arange(len(lengths), dtype=np.int64),
    )


def splits_of(train: RankedLists) -> Splits:
    """Validation takes next to no time: one list of two documents."""
    tiny = lists_of(np.array([2]), train.n_features)
    return Splits(train, tiny, tiny, 5)
