"""A page on which queries are seen in the orders of several trained models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from directrank.data import catalog
from directrank.data.archives import open_archive
from directrank.data.msrd import source
from directrank.data.text.judged import Judged
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.report.build import environment_of_pages, script_data
from directrank.study.export import scores_of, test_set
from directrank.study.failures import load_trained
from directrank.study.results import RunResult
from directrank.system.errors import ConfigError
from directrank.system.io import write_text

#: The collection whose texts the page shows.
COLLECTION = "msrd"

#: The metric of a query.
METRIC = {"name": "ndcg", "k": 10}

#: Queries whose lists are shown: evenly spread over the test set, and those on which the models
#: differ most.
SPREAD, DIFFERING = 60, 60

#: The training whose model is shown.
TRIAL = 0

DIGITS = 4


@dataclass(frozen=True)
class _Model:
    """A trained model on the test set.

    Attributes:
        name: what it is called.
        scores: ``[N]``.
        values: its metric, ``[Q]``, NaN for a query without a relevant document.
    """

    name: str
    scores: np.ndarray
    values: np.ndarray


def write(folders: Mapping[str, Path], data: Path, raw: Path, out: Path) -> None:
    """Write the page as one HTML file that loads nothing else.

    It shows texts of MSRD, whose licence (CC BY-SA 4.0) then holds for the page, too.

    Args:
        folders: by name, the result folders of runs on the same fold of MSRD.
        data: the prepared data set.
        raw: the folder of archives.
        out: the file.

    Raises:
        ConfigError: there are fewer than two runs, or they are not on the same fold of MSRD.
        DataError: the archive, or the model of a run, is missing.
    """
    runs = {name: load_trained(folder) for name, folder in folders.items()}
    _check(list(runs.values()))
    first = next(iter(runs.values()))
    lists = test_set(first, data)
    entry = catalog.get(COLLECTION)
    collection = source.read(open_archive(catalog.require([entry], raw)[COLLECTION]))
    models = [_model(name, run, lists) for name, run in runs.items()]
    values = np.stack([model.values for model in models])
    judged = np.flatnonzero(~np.isnan(values[0]))
    shown = judged[_chosen(values[:, judged])]
    content = {
        "models": [model.name for model in models],
        "values": values[:, judged].round(DIGITS).tolist(),
        "queries": [_query(int(query), lists, collection, models) for query in shown],
        # The query that is seen at first: that on which the models differ most.
        "first": int(np.ptp(values[:, shown], axis=0).argmax()),
    }
    page = environment_of_pages().get_template("queries.html.j2")
    write_text(
        out,
        page.render(
            title=entry.title,
            address=entry.page,
            fold=first.spec["fold"],
            queries=len(judged),
            data=script_data(content),
        ),
    )


def _check(runs: Sequence[RunResult]) -> None:
    """Raise :class:`ConfigError` if the runs cannot be shown side by side."""
    if len(runs) < 2:
        raise ConfigError("one run has nothing to be compared with", "name two runs or more")
    for run in runs:
        spec = run.spec
        if spec["data"]["name"] != COLLECTION:
            raise ConfigError(
                f"'{run.name}' was trained on {spec['data']['name']}, which has no texts to show",
                f"name runs on {COLLECTION}",
            )
        if spec["fold"] != runs[0].spec["fold"]:
            raise ConfigError(
                f"'{run.name}' and '{runs[0].name}' are of different folds",
                "name runs on the same fold, which have the same test set",
            )


def _model(name: str, run: RunResult, lists: RankedLists) -> _Model:
    scores = scores_of(run, TRIAL, lists)
    (values,) = metrics_per_query(scores, lists, [METRIC]).values()
    return _Model(name, scores, values)


def _chosen(values: np.ndarray) -> np.ndarray:
    """The positions of the queries whose lists are shown, ascending; from values ``[M, Q]``."""
    count = values.shape[1]
    spread = np.linspace(0, count - 1, min(SPREAD, count)).round().astype(np.int64)
    differing = np.argsort(values.min(0) - values.max(0), kind="stable")[:DIFFERING]
    return np.union1d(spread, differing)


def _query(
    query: int, lists: RankedLists, collection: Judged, models: Sequence[_Model]
) -> dict[str, Any]:
    """A query, its movies in the order of the archive, and each model's order of them."""
    where = int(np.searchsorted(collection.query_ids, lists.query_ids[query]))
    begin, end = np.searchsorted(collection.query, [where, where + 1])
    movies = [collection.documents[number] for number in collection.document[begin:end]]
    own = slice(*lists.offsets[query : query + 2])
    return {
        "text": collection.queries[where],
        "movies": [[movie["title"], int(movie["year"]) or None] for movie in movies],
        "relevant": np.flatnonzero(lists.labels[own] > 0).tolist(),
        "orders": [np.argsort(-model.scores[own], kind="stable").tolist() for model in models],
        "values": [round(float(model.values[query]), DIGITS) for model in models],
    }
