"""Small ranked lists that a linear model can learn."""

from __future__ import annotations

import numpy as np

from directrank.learners.contract import FitJob, no_progress
from directrank.lists.packed import RankedLists

JOB = FitJob("a-run", 0, {"name": "ndcg"}, 1, "cpu", no_progress)


def lists(n_queries: int, seed: int, n_features: int = 5) -> RankedLists:
    """Queries of 3 to 20 documents whose first two features tell their grades apart, with noise."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(3, 21, n_queries)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    features = generator.normal(size=(offsets[-1], n_features)).astype(np.float32)
    signal = features[:, 0] - 0.5 * features[:, 1] + 0.5 * generator.normal(size=offsets[-1])
    labels = np.digitize(signal, [0.4, 1.3]).astype(np.float32)
    return RankedLists(features, labels, offsets, np.arange(n_queries))
