"""Made-up published values of losses on a collection, with known winners."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.methods import METRICS
from directrank.study.published import write_results

SCORERS = ("linear", "network", "context-aware")


def write_published(
    folder: Path,
    name: str,
    levels: Mapping[str, float],
    *,
    title: str = "",
    queries: int = 300,
    spread: float = 0.01,
    groups_of: int = 1,
    trials: int = 3,
    margin: float = 0.01,
    lacks: Collection[tuple[str, str]] = (),
    trees: Sequence[str] = ("LambdaMART",),
) -> Path:
    """Values of each loss, whose mean is its level with every scorer, and of trees.

    The level of a method without one is 0.5.

    Args:
        folder: where the file goes.
        name: the collection.
        levels: loss → its NDCG@10.
        title: of the collection in print; its name in capitals without.
        queries: how many.
        spread: of a method's values around what is common to all methods of a query.
        groups_of: so many queries form a group.
        trials: trainings of each method, whose means are equal.
        margin: the smallest difference of interest.
        lacks: losses and the scorers with which they were not run.
        trees: the ensembles.
    """
    rng = np.random.default_rng(7)

    def spread_out(width: float) -> np.ndarray:
        values = rng.normal(0.0, width, queries)
        return values - values.mean()

    of_query = spread_out(0.1)
    of_losses = [loss for loss in levels if loss not in trees]
    methods = [(loss, one) for one in SCORERS for loss in of_losses if (loss, one) not in lacks]
    methods += [(name, "trees") for name in trees]
    frames = []
    for method, scorer in methods:
        values = levels.get(method, 0.5) + of_query + spread_out(spread)
        for trial in range(trials):
            frame = pd.DataFrame({"fold": 1, "trial": trial, "query_id": np.arange(queries)})
            if groups_of > 1:
                frame["group"] = frame["query_id"] // groups_of
            columns = dict.fromkeys(METRICS.values(), values + spread_out(spread / 10))
            frames.append(frame.assign(method=method, scorer=scorer, **columns))
    path = folder / f"per_query_{name}.parquet"
    about = {
        "edition": "real",
        "collection": name,
        "title": title or name.upper(),
        "origin": "real",
        "methods": methods,
        "margin": margin,
        "protocol": "",
        "trained_on": "",
        "failed": {},
    }
    write_results(path, pd.concat(frames), about)
    return path
