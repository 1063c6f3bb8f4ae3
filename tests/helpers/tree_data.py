"""Small ranked lists that trees can learn and no single feature ranks, and a fit's job."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from directrank.learners.contract import FitJob, Splits, no_progress
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query

NDCG10 = {"name": "ndcg", "k": 10}


def lists(n_queries: int, seed: int, n_features: int = 6) -> RankedLists:
    """Lists of 1 to 24 documents, every fourth query empty, labels from three features."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 25, n_queries)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    features = generator.normal(size=(offsets[-1], n_features)).astype(np.float32)
    signal = features[:, 0] + features[:, 1] * features[:, 2] + generator.normal(size=offsets[-1])
    labels = np.digitize(signal, [0.5, 1.5, 2.5]).astype(np.float32)
    labels[np.repeat(np.arange(n_queries) % 4 == 0, lengths)] = 0
    return RankedLists(features, labels, offsets, np.arange(n_queries) + 1000)


def splits() -> Splits:
    """Training, validation and test lists with labels 0 to 3."""
    return Splits(lists(150, 0), lists(100, 1), lists(100, 2), label_levels=4)


def job(trial: int = 0, **changes) -> FitJob:
    """A job of one thread that selects by NDCG@10."""
    return replace(FitJob("a-run", trial, NDCG10, 1, "cpu", no_progress), **changes)


def mean_ndcg(scores: np.ndarray, part: RankedLists) -> float:
    """NDCG@10 as the study means it: empty queries are left out."""
    return float(np.nanmean(metrics_per_query(scores, part, [NDCG10])["ndcg@10"]))
