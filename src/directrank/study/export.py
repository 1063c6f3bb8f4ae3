"""Export trained runs as TREC run files with judgements, for other evaluation tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from directrank import metrics
from directrank.data import catalog, prepared
from directrank.learners.saved import score_saved
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.study.failures import load_trained
from directrank.study.results import MODELS, RunResult
from directrank.study.run import load_splits
from directrank.study.specification import (
    candidate_settings,
    run_name,
    with_settings,
    without_grid,
)
from directrank.study.trec import header, write_qrels, write_run
from directrank.system.errors import ConfigError, DataError

#: The tolerance for a metric of the same ranking.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Exported:
    """The result of an export.

    Attributes:
        files: one run file per trial, and the judgements last.
        values: the number of the run's values per query of its test set, over trials and metrics.
        differing: how many of them differ from those of the written rankings. There are none on the
            machine and with the versions that trained the run; elsewhere, different last digits may
            change the order.
    """

    files: list[Path]
    values: int
    differing: int


def export(folders: Sequence[str | Path], data: str | Path, out: str | Path) -> Exported:
    """Score the test set with a run's trained models, and write a run file per trial.

    Args:
        folders: the run's result folder; or those of a method's runs on several folds, whose test
            sets are then written to one file.
        data: the prepared data set's folder (of all folds).
        out: the folder for ``<name>.trial<number>.run`` and ``<name>.qrels``.

    Raises:
        ConfigError: the runs differ in more than their fold.
        DataError: a run is not complete, or was trained on other data.
    """
    runs = [load_trained(folder) for folder in folders]
    name = _name(runs)
    tests = [test_set(run, data) for run in runs]
    qrels = Path(out) / f"{name}.qrels"
    source = _page(runs[0].spec["data"]["name"])
    measures = [metrics.label(mapping) for mapping in runs[0].spec["evaluation"]]
    files, n_values, differing = [], 0, 0
    for trial in range(runs[0].spec["trials"]):
        ranked = []
        for run, lists in zip(runs, tests, strict=True):
            scores = scores_of(run, trial, lists)
            ranked.append((lists, scores))
            same = _same(run, trial, lists, scores)
            n_values += same.size
            differing += int((~same).sum())
        tag = f"{name}.trial{trial}"
        fits = [(run.record, _chosen_candidate(run, trial)) for run in runs]
        text = header(tag, fits, trial, qrels.name, source, measures)
        files.append(Path(out) / f"{tag}.run")
        write_run(files[-1], ranked, tag, text)
    write_qrels(qrels, tests)
    return Exported([*files, qrels], n_values, differing)


def export_qrels(data: str | Path, out: str | Path) -> tuple[int, int]:
    """Write the judgements of the test sets of all folds of a prepared data set.

    Args:
        data: the data set's folder.
        out: the file.

    Returns:
        The numbers of queries and documents.

    Raises:
        DataError: it is not a prepared data set, or it is damaged.
    """
    prepared.verify(data)
    names = [name for name in prepared.read_record(data)["splits"] if name.split("/")[-1] == "test"]
    parts = [prepared.open_dataset(Path(data) / name) for name in names]
    write_qrels(out, parts)
    return sum(part.n_queries for part in parts), sum(part.n_documents for part in parts)


def _name(runs: Sequence[RunResult]) -> str:
    """The name of the files: that of the run, or the part that the runs of several folds share."""
    specs = [{**run.spec, "fold": None} for run in runs]
    folds = [run.spec["fold"] for run in runs]
    for run, spec, fold in zip(runs, specs, folds, strict=True):
        if spec != specs[0] or folds.count(fold) > 1:
            raise ConfigError(
                f"'{run.name}' is not the method of '{runs[0].name}' on another fold",
                "export only runs together that differ in nothing but their fold",
            )
    return runs[0].record["name"] if len(runs) == 1 else run_name(specs[0])


def test_set(run: RunResult, data: str | Path) -> RankedLists:
    """The test set of a run, scaled as for training.

    Raises:
        DataError: the prepared data are not those that it was trained on.
    """
    record = prepared.read_record(data)
    if record["digest"] != run.record["data"]["digest"]:
        raise DataError(
            f"these are not the data that '{run.name}' was trained on",
            f"prepare '{run.record['data']['name']}' with the same version and settings",
            file=data,
        )
    return load_splits(run.spec, data)[0].test


def _chosen_candidate(run: RunResult, trial: int) -> Mapping[str, Any]:
    """The specification of the candidate whose model the trial kept."""
    fits = run.fits
    ((_, chosen),) = fits[(fits["trial"] == trial) & fits["selected"]].iterrows()
    starting = candidate_settings(run.spec)
    if chosen["candidate"] < len(starting):
        settings = starting[chosen["candidate"]]
    else:  # one with which a grid has grown
        settings = {path: _tried(chosen[path], own) for path, own in run.spec["tune"].items()}
    return with_settings(without_grid(run.spec), settings)


def _tried(cell: Any, values: Sequence[Any]) -> Any:
    """The value of a setting in the table of fits: one of the ``values``, or a number beyond."""
    return next((value for value in values if value == cell or str(value) == cell), cell)


def scores_of(run: RunResult, trial: int, lists: RankedLists) -> np.ndarray:
    """The scores ``[N]`` that the model of a trial gives the lists of :func:`test_set`."""
    spec = _chosen_candidate(run, trial)
    path = run.folder / MODELS / str(trial)
    return score_saved(path, spec["learner"], spec["model"], lists, run.record["threads"])


def _same(run: RunResult, trial: int, lists: RankedLists, scores: np.ndarray) -> np.ndarray:
    """Where the metrics of these scores are the run's own, bool ``[metrics, Q]``."""
    found = metrics_per_query(scores, lists, run.spec["evaluation"])
    rows = run.per_query[(run.per_query["trial"] == trial) & (run.per_query["split"] == "test")]
    if rows["query_id"].tolist() != np.asarray(lists.query_ids).tolist():
        raise DataError("the run was evaluated on other queries", "train it again", file=run.folder)
    return np.stack(
        [
            np.isclose(values, rows[label], rtol=0, atol=TOLERANCE, equal_nan=True)
            for label, values in found.items()
        ]
    )


def _page(name: str) -> str:
    """The web page of a data set, from the catalogue; empty if it is not in the catalogue."""
    try:
        return catalog.get(name).page
    except ConfigError:
        return ""
