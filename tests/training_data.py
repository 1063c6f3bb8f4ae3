"""What the tests of training share: small lists, settings and fits."""

import numpy as np
import torch

from directrank.evaluation import metrics_per_query
from directrank.learning import FitJob, Fitted, Splits
from directrank.lists import RankedLists
from directrank.seeds import numpy_stream
from directrank.training.batches import Layout
from directrank.training.fit import fit_many

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


def job(trial: int = 0, run: str = "run") -> FitJob:
    """A job that shows no progress."""
    return FitJob(run, trial, {"name": "ndcg", "k": 5}, 1, "cpu", lambda done, total, text: None)


def fit(data: Splits, trials: int = 1, model=TOWER, loss=LOSS, **training) -> list[Fitted]:
    """One model per trial, with the settings of this file and those given."""
    settings = {"model": model, "loss": loss, "training": {**TRAINING, **training}}
    return fit_many(data, [settings] * trials, [job(trial) for trial in range(trials)])


def mean_ndcg(fitted: Fitted, lists: RankedLists) -> float:
    """Mean NDCG@5 of a fit, without empty queries."""
    values = metrics_per_query(fitted.predict(lists), lists, [{"name": "ndcg", "k": 5}])
    return float(np.nanmean(values["ndcg@5"]))


def layout(lists: RankedLists) -> Layout:
    """All of ``lists`` as one row, in float64."""
    return Layout.of(lists, torch.float64, torch.device("cpu"))
