"""The runs of a report: what each is, its results, and its curve."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from directrank.metrics import label
from directrank.report.curves import validation_curve
from directrank.report.words import duration
from directrank.stats.means import mean_over_queries, rows_of_trials
from directrank.study.results import RunResult

#: Columns of a run's results: heading → split, and what a query without a relevant document counts.
MEANS = {
    "validation": ("vali", "exclude"),
    "test": ("test", "exclude"),
    "test, empty as 0": ("test", "zero"),
    "test, empty as 1": ("test", "one"),
}

#: The metric that runs are listed by; one that lacks it is listed by the metric that chose it.
HEADLINE = "ndcg@10"

#: How the metrics that have an abbreviation are written.
_ACRONYMS = {"ndcg": "NDCG", "ap": "AP", "rr": "RR", "err": "ERR", "nerr": "nERR"}

#: Columns of values per query that say which query it is.
_NOT_METRICS = ("trial", "split", "query_id", "group", "n_documents", "n_relevant")

#: Settings whose value says enough without their name.
_SPEAKING = ("method", "function", "setting", "model")


@dataclass(frozen=True)
class Use:
    """A product that shows a run, with the experiment and the settings that it has there."""

    address: str
    title: str
    paper: str
    experiment: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class RunSection:
    """A run: what it is, its results and how to make it again.

    Attributes:
        name: its name.
        dataset: title of its data.
        standin: whether they are a stand-in.
        loss, scorer: their names; the learner's where that has them built in.
        paper, experiment: that it is of in the first product that shows it.
        setting: what sets it apart there, or its loss.
        metric: the metric that it is listed by.
        value: its mean over the test queries and trials, empty queries left out.
        seconds: of training.
        facts: what else there is to know, heading → text.
        means: of each metric a mean for each of :data:`MEANS`.
        curve: its validation curve (SVG).
        settings: its specification (JSON).
        command: what trains it again.
        uses: the products that show it.
    """

    name: str
    dataset: str
    standin: bool
    loss: str
    scorer: str
    paper: str
    experiment: str
    setting: str
    metric: str
    value: float
    seconds: float
    facts: Mapping[str, str]
    means: Mapping[str, Sequence[float]]
    curve: str
    settings: str
    command: str
    uses: Sequence[Use]


def run_section(run: RunResult, command: str, uses: Sequence[Use]) -> RunSection:
    """What the report shows of a run.

    Args:
        run: its result files.
        command: what trains it again.
        uses: the products that show it, one at least.
    """
    record, spec, fits = run.record, run.spec, run.fits
    chosen_by = label(spec["selection"])
    means = _means(run.per_query)
    metric = next(name for name in (HEADLINE, chosen_by, *means) if name in means)
    return RunSection(
        name=run.name,
        dataset=record["data"]["title"],
        standin=record["data"]["origin"] == "standin",
        loss=_loss(spec),
        scorer=spoken(spec["model"].get("name", spec["learner"])),
        paper=uses[0].paper,
        experiment=uses[0].experiment,
        setting=_setting(uses[0].settings) or _loss(spec),
        metric=shown(metric),
        value=means[metric][list(MEANS).index("test")],
        seconds=record["seconds"],
        facts={
            "fold": str(spec["fold"] or "–"),
            "learner": spoken(spec["learner"]),
            "trials": str(spec["trials"]),
            "candidates tuned": str(fits["candidate"].nunique()),
            "chosen by": f"{shown(chosen_by)} on the validation set",
            "best epoch": _range(fits.loc[fits["selected"], "best_epoch"]),
            "trained in": duration(record["seconds"]),
            "started": record["started"],
            "data digest": record["data"]["digest"][:12],
        },
        means={shown(name): values for name, values in means.items()},
        curve=validation_curve(run.history, fits, shown(chosen_by)),
        settings=json.dumps(spec, indent=1, sort_keys=True, ensure_ascii=False),
        command=command,
        uses=list({use.address: use for use in uses}.values()),
    )


def spoken(name: str) -> str:
    """A name of the configuration with spaces.

    >>> spoken("two_layer")
    'two layer'
    """
    return name.replace("_", " ")


def shown(metric: str) -> str:
    """The label of a metric as it is printed.

    >>> shown("ndcg@10/letor"), shown("precision@5")
    ('NDCG@10/letor', 'precision@5')
    """
    name = re.split("[@/]", metric, maxsplit=1)[0]
    return _ACRONYMS.get(name, name) + metric.removeprefix(name)


def _loss(spec: Mapping[str, Any]) -> str:
    return spec["loss"]["name"] if "loss" in spec else "built in"


def _setting(settings: Mapping[str, Any]) -> str:
    """Settings as a reader would say them: ``ListMLE, fold 1``."""
    first = [str(settings[key]) for key in _SPEAKING if key in settings]
    rest = [
        f"{spoken(key.rpartition('.')[2])} {spoken(str(value))}"
        for key, value in settings.items()
        if key not in _SPEAKING
    ]
    return ", ".join([*first, *rest])


def _means(per_query: pd.DataFrame) -> dict[str, list[float]]:
    """Of each metric its mean over queries, then over trials, for each of :data:`MEANS`."""
    places = rows_of_trials(per_query)
    means: dict[str, list[float]] = {}
    for metric in per_query.columns:
        if metric in _NOT_METRICS:
            continue
        values = per_query[metric].to_numpy()
        means[metric] = [
            mean_over_queries(
                np.array(
                    [
                        mean_over_queries(values[place], empty)
                        for (_, name), place in places.items()
                        if name == split
                    ]
                )
            )
            for split, empty in MEANS.values()
        ]
    return means


def _range(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"
