"""The runs of a report: what each is, its results, and its curve as a small SVG drawing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from directrank.metrics import label
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


def duration(seconds: float) -> str:
    """Seconds in the unit that a reader would choose.

    >>> [duration(seconds) for seconds in (45, 720, 12300)]
    ['45 s', '12 min', '3.4 h']
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


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


#: In units of half a CSS pixel, so that whole numbers are fine enough for coordinates.
WIDTH, HEIGHT = 720, 280
LEFT, RIGHT, TOP, BOTTOM = 96, 16, 20, 48

#: Points that a line keeps; more cannot be seen at this width.
MOST_POINTS = 120


def validation_curve(history: pd.DataFrame, fits: pd.DataFrame, metric: str) -> str:
    """The validation metric of each trial's chosen candidate against its epochs or trees.

    Args:
        history: a run's ``history.csv``.
        fits: its ``fits.csv``, which says which candidate was chosen.
        metric: what the metric is called.

    Returns:
        An ``<svg>`` element, with a single path; empty where nothing was recorded.
    """
    keys = [key for key in ("trial", "candidate", "restart") if key in history]
    rows = history.merge(fits.loc[fits["selected"], keys], on=keys)
    rows = rows[rows["vali_metric"].notna()]
    if rows.empty:
        return ""
    low, high = rows["vali_metric"].min(), rows["vali_metric"].max()
    first, last = int(rows["epoch"].min()), int(rows["epoch"].max())
    lines = []
    for _, trial in rows.groupby("trial"):
        kept = trial.iloc[_thinned(len(trial))]
        epochs, values = kept["epoch"].to_numpy(), kept["vali_metric"].to_numpy()
        x = LEFT + (epochs - first) / max(last - first, 1) * (WIDTH - LEFT - RIGHT)
        y = TOP + (high - values) / ((high - low) or 1.0) * (HEIGHT - TOP - BOTTOM)
        lines.append(_line(x.round().astype(int), y.round().astype(int)))
    floor = HEIGHT - BOTTOM
    trials = len(lines)
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="'
        f"{'A line' if trials == 1 else f'{trials} lines, one per trial'}: {metric} on the "
        f"validation set from epoch {first} to {last}. The lowest value is {low:.4f}, the highest "
        f'{high:.4f}.">'
        f'<path class="axis" d="M{LEFT} {TOP}V{floor}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 8}" y="{TOP + 14}" text-anchor="end">{high:.4f}</text>'
        f'<text x="{LEFT - 8}" y="{floor}" text-anchor="end">{low:.4f}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 16}">epoch {first}</text>'
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 16}" text-anchor="end">{last}</text>'
        f'<path d="{"".join(lines)}"/></svg>'
    )


def _thinned(points: int) -> np.ndarray:
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).round().astype(int))


def _line(x: np.ndarray, y: np.ndarray) -> str:
    """A line through points, in relative steps; a single point is a dot."""
    steps = "".join(f"l{dx} {dy}" for dx, dy in zip(np.diff(x), np.diff(y), strict=True))
    return f"M{x[0]} {y[0]}{steps or 'h0'}"
