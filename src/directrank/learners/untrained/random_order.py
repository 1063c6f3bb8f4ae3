"""A random order of the documents of every query: what a metric is worth without any ranking."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as serialise

from directrank import metrics
from directrank.learners.contract import FitJob, Fitted, Splits, history_row
from directrank.learners.inputs import check_splits
from directrank.learners.untrained.settings import RANDOM_ORDER
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.io import write_bytes
from directrank.system.schema import complete
from directrank.system.seeds import derive_seed, numpy_stream


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Draw an order of the documents of every query; each trial draws another.

    Args:
        data: the splits, of which nothing is learned.
        settings: there are none.
        job: ``streams`` and ``trial`` name the random numbers.

    Returns:
        What scores documents at random, with no parameters. Its history has one row, with the
        validation metric.

    Raises:
        ConfigError: there is a setting.
        DataError: a label is not one of the data set's, or a split has no relevant document.
    """
    complete(settings, RANDOM_ORDER, "learner 'random_order'")
    check_splits(data)
    began = time.perf_counter()
    seed = derive_seed(job.streams, job.trial, "random order")

    def predict(lists: RankedLists) -> np.ndarray:
        return random_scores(lists, seed)

    def save(path: Path) -> None:
        content = serialise({"seed": np.array(seed, np.int64)})
        write_bytes(path.with_name(path.name + ".safetensors"), content)

    per_query = metrics_per_query(predict(data.vali), data.vali, [job.selection])
    value = float(np.nanmean(per_query[metrics.label(job.selection)]))
    history = [history_row(1, time.perf_counter() - began, vali_metric=value)]
    info = {"best_epoch": 1, "epochs": 1, "stopped_early": False, "n_parameters": 0}
    return Fitted(predict, history, info, save)


def random_scores(lists: RankedLists, seed: int) -> np.ndarray:
    """Uniform random scores, float64 ``[N]``.

    Those of a query depend on its number and ``seed`` alone, not on the other queries of ``lists``.
    """
    drawn = [
        numpy_stream(seed, int(query)).random(int(length))
        for query, length in zip(lists.query_ids, lists.lengths, strict=True)
    ]
    return np.concatenate([np.empty(0), *drawn])
