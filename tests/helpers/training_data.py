"""What the tests of training share: small lists, settings and fits."""

from pathlib import Path

import numpy as np
import torch

from directrank.data.prepared import write_prepared
from directrank.learners.contract import FitJob, Fitted, Splits
from directrank.learners.neural.batches import Layout
from directrank.learners.neural.fit import fit_many
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.seeds import numpy_stream

TOWER = {"name": "tower", "hidden": [6], "decay": 0.9}
LOSS = {"name": "approx_ndcg", "alpha": 5.0}
TRAINING = {
    "optimizer": {"name": "adam", "lr": 0.02},
    "batch_queries": 4,
    "max_epochs": 6,
}


def made(queries: int, seed: int, longest: int = 12) -> RankedLists:
    """Lists whose labels follow the first of five features; the second query is empty."""
    stream = numpy_stream("training test", seed)
    lengths = stream.integers(1, longest + 1, queries)
    features = stream.normal(size=(lengths.sum(), 5)).astype(np.float32)
    labels = np.clip(np.round(features[:, 0] + 0.5), 0, 2).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    labels[offsets[1] : offsets[2]] = 0
    return RankedLists(features, labels, offsets, np.arange(queries))


def splits() -> Splits:
    """Thirty training queries, twelve of each other part."""
    return Splits(made(30, 0), made(12, 1), made(12, 2), label_levels=3)


def prepare(folder: Path) -> Path:
    """The same parts as a prepared data set in ``folder``."""
    parts = {"train": made(30, 0), "vali": made(12, 1), "test": made(12, 2)}
    record = {"name": "web30k_standin", "title": "t", "origin": "standin", "label_levels": 3}
    write_prepared(folder, parts, record)
    return folder


def job(trial: int = 0, run: str = "run", device: str = "cpu") -> FitJob:
    """A job that shows no progress."""
    return FitJob(run, trial, {"name": "ndcg", "k": 5}, 1, device, lambda done, total, text: None)


def fit(
    data: Splits, trials: int = 1, model=TOWER, loss=LOSS, device: str = "cpu", **training
) -> list[Fitted]:
    """One model per trial, with the settings of this file and those given."""
    settings = {"model": model, "loss": loss, "training": {**TRAINING, **training}}
    return fit_many(
        data, [settings] * trials, [job(trial, device=device) for trial in range(trials)]
    )


def mean_ndcg(fitted: Fitted, lists: RankedLists) -> float:
    """Mean NDCG@5 of a fit, without empty queries."""
    values = metrics_per_query(fitted.predict(lists), lists, [{"name": "ndcg", "k": 5}])
    return float(np.nanmean(values["ndcg@5"]))


def layout(lists: RankedLists) -> Layout:
    """All of ``lists`` as one row, in float64."""
    return Layout.of(lists, torch.float64, torch.device("cpu"))
