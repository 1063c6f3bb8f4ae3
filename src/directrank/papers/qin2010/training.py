"""Qin2010's figures of training, Tables 5 and 6, and how much the random start matters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from directrank.papers.qin2010.accuracy import OWN_AP
from directrank.papers.qin2010.comparisons import OWN
from directrank.papers.qin2010.stopping import (
    caps_of,
    ending_sentence,
)
from directrank.papers.shared import figures
from directrank.papers.shared.cells import add_differences, measured, standard_error
from directrank.papers.shared.evidence import Evidence, FinishedRun, origin_line
from directrank.papers.shared.format import count, signed, spread
from directrank.papers.shared.leads import lead
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import Cells, Section, TableLayout, sections_of
from directrank.stats.estimates import mean_interval
from directrank.study.specification import value_at
from directrank.system.errors import DataError

ERROR = "approximation_error"
SYMBOLS = {"loss.alpha": "α", "loss.beta": "β", "model.init_bound": "bound"}

#: Columns of Table 5 (only 1 and 100 are known from the text).
RESTARTS = (1, 10, 100)
TABLE5_METRICS = {"letor": "train_ndcg@5/letor", "log2": "train_ndcg@5"}


@dataclass(frozen=True)
class Table5:
    """What Table 5 says of a method.

    Attributes:
        method, metric: their names in print.
        metrics: discount → column of the history.
        titles: discount → heading of its rows.
        printed: what is known of the paper's values.
    """

    method: str
    metric: str
    metrics: Mapping[str, str]
    titles: Mapping[str, str]
    printed: str


#: Loss → its table.
TABLE5_OF = {
    "approx_ndcg": Table5(
        OWN,
        "NDCG@5",
        TABLE5_METRICS,
        {"letor": "With LETOR's discount", "log2": "With the printed one"},
        "The paper's values are lost.",
    ),
    "approx_ap": Table5(
        OWN_AP,
        "AP",
        {"none": "train_ap"},
        {"none": ""},
        "β = 10; grades above 0 count as relevant. The paper has no such table; it says that "
        "ApproxAP behaves like ApproxNDCG.",
    ),
}

#: SoftRank's best training NDCG@5 on fold 1 (section 5.5.2).
SOFTRANK_TRAINING = "SoftRank best training NDCG@5, OHSUMED fold 1"

#: Epochs that Table 6 leaves out: the first one also loads and warms things up.
WARM_UP = 1


def candidates(run: FinishedRun, setting: str) -> dict[float, pd.DataFrame]:
    """The history of each candidate of a run, by the value of the setting that was tuned.

    Candidates of a trial have the same random start and order of the queries.
    """
    fits = run.result.fits
    if setting not in fits:
        raise DataError(
            f"this run did not tune {setting}",
            "list the values under its 'tune'",
            file=run.result.folder,
        )
    values = fits.drop_duplicates("candidate").set_index("candidate")[setting].sort_values()
    history = run.result.history
    return {
        float(value): history[history["candidate"] == candidate]
        for candidate, value in values.items()
    }


def along(history: pd.DataFrame, column: str) -> pd.DataFrame:
    """A column of the history over the epochs that every trial in training has a row of.

    A trial that met the stopping rule keeps its last value: its model no longer changes.

    Returns:
        A column per trial, indexed by epoch.
    """
    curves = history.pivot(index="epoch", columns="trial", values=column).ffill()
    if "met" not in history:
        return curves
    planned = history.loc[~history["met"].astype(bool), "epoch"]
    return curves[curves.index.isin([*planned, curves.index.max()])]


def error_curves(history: pd.DataFrame) -> pd.DataFrame:
    """ρ after the recorded epochs of every trial, as :func:`along` has it.

    Raises:
        DataError: the run did not record the error.
    """
    column = [name for name in history if name.startswith(ERROR)]
    if len(column) != 1:
        raise DataError(
            "a run recorded no approximation error, or several",
            "give it training.monitor with one quantity approximation_error",
        )
    return along(history, column[0])


def error_figure(evidence: Evidence, experiment: str, setting: str) -> FigureResult:
    """Figures 1a, 1b and 2: error of the approximated metric on the training set while training.

    Args:
        evidence: with the run of ``experiment``.
        experiment: one run, whose candidates differ in ``setting``.
        setting: dotted path of the steepness that is varied.
    """
    run = evidence.only_run(experiment)
    frames = []
    for value, history in candidates(run, setting).items():
        curves = error_curves(history)
        low, median, high = np.quantile(curves, (0.25, 0.5, 0.75), axis=1)
        frames.append(
            pd.DataFrame(
                evidence.about(run.dataset)
                | {
                    "parameter": setting,
                    "value": value,
                    "epoch": curves.index,
                    "median": median,
                    "lower_quartile": low,
                    "upper_quartile": high,
                    "starts": curves.shape[1],
                    "published": math.nan,
                }
            )
        )
    data = pd.concat(frames, ignore_index=True)
    figure = draw_errors(data)
    figures.small_print(figure, origin_line([run.dataset], evidence.edition))
    spec = run.result.spec
    measure = {"approx_ap": "AP", "approx_ndcg": "NDCG@n"}[spec["loss"]["name"]]
    fixed = ", ".join(
        f"{SYMBOLS[path]} = {value_at(spec, path):g}"
        for path in ("loss.alpha", "loss.beta")
        if path != setting and value_at(spec, path) is not None
    )
    binary = measure == "AP" and run.dataset.name.startswith("ohsumed")
    caption = (
        f"Mean over the training queries of |approximate {measure} − {measure}| while it is "
        f"maximised{fixed and f' with {fixed}'}: lines are medians of "
        f"{spread([run.n_trials], 'random start')}, and shaded areas lie between their quartiles; "
        f"a start that has stopped keeps its last value. {ending_sentence([run])}"
        f"{'Grades above 0 count as relevant. ' if binary else ''}The paper's curves are lost; its "
        "text gives more than 95 % for every curve of AP at β = 10 and more than 98 % at α = 100. "
        f"{evidence.sources([run], 'validation set', 'vali')}"
    )
    return FigureResult(figure, data, caption, finding=_seen_of_errors(data))


def draw_errors(data: pd.DataFrame) -> Figure:
    """The picture of the rows of :func:`error_figure`."""
    figure, axes = figures.new_figure(height=2.4)
    symbol = SYMBOLS[data["parameter"].iloc[0]]
    for number, (value, curve) in enumerate(data.groupby("value")):
        look = figures.line(number)
        quartiles = (curve["lower_quartile"], curve["upper_quartile"])
        axes.fill_between(
            curve["epoch"], *quartiles, color=look["color"], alpha=0.15, linewidth=0
        )  # fmt: skip
        axes.plot(curve["epoch"], curve["median"], label=f"{symbol} = {value:g}", **look)
    axes.set(
        xlabel="epochs t", ylabel="error ρ, |approximate − exact|", xscale="log", yscale="log"
    )  # fmt: skip
    figures.label_ends(axes)
    for axis in (axes.xaxis, axes.yaxis):
        figures.plain_log_ticks(axis)
    return figure


def _seen_of_errors(data: pd.DataFrame) -> str:
    """The errors at the end of training with the least and the greatest steepness."""
    symbol = SYMBOLS[data["parameter"].iloc[0]]
    ends = data.groupby("value")["median"].last()
    (low, first), (high, last) = ends.iloc[[0, -1]].items()
    return (
        f"the error ends at {first:.2g} with {symbol}\u00a0=\u00a0{low:g} and at {last:.2g} with "
        f"{symbol}\u00a0=\u00a0{high:g}"
    )


def best_of(
    history: pd.DataFrame, restarts: int, metric: str, cap: int | None = None
) -> np.ndarray:
    """``metric`` on the training set of the best of so many random starts, ``[groups]``.

    The trials are random starts: they are cut into groups of ``restarts``, and of each group the
    one with the lowest objective counts, as in Algorithm 1; with a ``cap`` on epochs, as they were
    by then.
    """
    if cap is not None:
        history = history[history["epoch"] <= cap]
    last = history.groupby("trial").last().sort_index()
    groups = len(last) // restarts
    objective = last["train_objective"].to_numpy()[: groups * restarts].reshape(groups, restarts)
    values = last[metric].to_numpy()[: groups * restarts].reshape(groups, restarts)
    return values[np.arange(groups), objective.argmin(1)]


def table5(evidence: Evidence, experiment: str) -> TableResult:
    """Table 5: a method's training metric against α and the number of random starts.

    Args:
        evidence: with the run of ``experiment``.
        experiment: one run, whose trials are random starts and whose candidates differ in α.
    """
    run = evidence.only_run(experiment)
    about = TABLE5_OF[run.result.spec["loss"]["name"]]
    starts = run.n_trials
    columns = [k for k in RESTARTS if k <= starts]
    data = _table5_rows(evidence, run, about.metrics, columns)
    softrank = softrank_training(evidence) if about.method == OWN else None
    if softrank is not None:
        data = pd.concat([data, _softrank_rows(evidence, softrank)], ignore_index=True)
    data = add_differences(data, error=standard_error(data["half_width"], data["groups"]))
    first, *others = about.metrics
    starting = data[data["method"] == about.method]
    of_end = starting[starting["cap"] == _cap(run)]
    sections = [
        _table5_section(about.titles[discount], of_end[of_end["discount"] == discount])
        for discount in (first, *others)
    ]
    for cap in caps_of([run]):  # one discount says what a cap does
        title = f"Stopped after {count(cap)} epochs"
        if others:
            title += f", {about.titles[first][0].lower()}{about.titles[first][1:]}"
        part = starting[(starting["cap"] == cap) & (starting["discount"] == first)]
        sections.append(_table5_section(title, part))
    caption = (
        f"{about.metric} of {about.method} on the training set of fold 1 ({run.trained_on}) after "
        f"K random starts, of which the one with the best objective counts. There are {starts} "
        "starts per α, in groups of K; ± is the half width of the 95% t interval over the groups, "
        f"if there are several. {ending_sentence([run])}{about.printed} "
        f"{evidence.sources([run], 'validation set', 'vali')}"
    )
    notes = [] if softrank is None else [_softrank_note(evidence, softrank)]
    names = ["Steepness", *(f"K = {k}" for k in columns)]
    layout = TableLayout(_table5_lead(of_end, about), caption, names, sections, notes)
    return TableResult(data, layout)


def _table5_lead(data: pd.DataFrame, about: Table5) -> str:
    """What more random starts and another α are worth, without a smaller cap on epochs."""
    first = data[data["discount"] == next(iter(about.metrics))]
    best = first.loc[first["mean"].idxmax()]
    by_starts = first.groupby("restarts")["mean"].mean()
    return lead(
        f"the highest {about.metric} is {measured(best['mean'], best['half_width'])} at α = "
        f"{best['alpha']:g} and K = {best['restarts']}",
        f"from K = {by_starts.index[0]} to K = {by_starts.index[-1]}, the mean over α changes by "
        f"{signed(by_starts.iloc[-1] - by_starts.iloc[0])}"
        if len(by_starts) > 1
        else "",
    )


def _table5_rows(
    evidence: Evidence, run: FinishedRun, metrics: Mapping[str, str], columns: Sequence[int]
) -> pd.DataFrame:
    rows = []
    for discount, metric in metrics.items():
        for alpha, history in candidates(run, "loss.alpha").items():
            for cap in [None, *caps_of([run])]:
                for k in columns:
                    best = mean_interval(best_of(history, k, metric, cap))
                    rows.append(
                        evidence.about(run.dataset)
                        | {
                            "method": TABLE5_OF[run.result.spec["loss"]["name"]].method,
                            "alpha": alpha,
                            "restarts": k,
                            "discount": discount,
                            "cap": cap or _cap(run),
                            "mean": best.mean,
                            "half_width": best.half_width,
                            "groups": best.n,
                            "published": math.nan,
                        }
                    )
    return pd.DataFrame(rows)


def softrank_training(evidence: Evidence) -> FinishedRun | None:
    """The run of SoftRank whose training metric is recorded; None where there is none."""
    return next(iter(evidence.runs("softrank_training")), None)


def best_in_training(run: FinishedRun, metric: str) -> tuple[float, float]:
    """The highest training ``metric`` of SoftRank after any epoch of any start, and its σ."""
    levels = {
        sigma: float(history[metric].max())
        for sigma, history in candidates(run, "loss.sigma").items()
    }
    sigma = max(levels, key=lambda name: levels[name])
    return levels[sigma], sigma


def softrank_printed(evidence: Evidence) -> float:
    """What the paper prints as SoftRank's best training NDCG@5 on fold 1."""
    values = evidence.published("qin2010_text_values").set_index("quantity")["value"]
    return float(values[SOFTRANK_TRAINING])


def _softrank_rows(evidence: Evidence, run: FinishedRun) -> pd.DataFrame:
    rows = []
    for discount, metric in TABLE5_METRICS.items():
        level, sigma = best_in_training(run, metric)
        published = softrank_printed(evidence) if discount == "letor" else math.nan
        rows.append(
            evidence.about(run.dataset)
            | {
                "method": "SoftRank",
                "sigma": sigma,
                "restarts": run.n_trials,
                "discount": discount,
                "cap": _cap(run),
                "mean": level,
                "half_width": math.nan,
                "groups": 1,
                "published": published,
            }
        )
    return pd.DataFrame(rows)


def _softrank_note(evidence: Evidence, run: FinishedRun) -> str:
    level, sigma = best_in_training(run, TABLE5_METRICS["letor"])
    values = len(candidates(run, "loss.sigma"))
    return (
        f"**SoftRank's** best training NDCG@5 with LETOR's discount, after any of {_cap(run)} "
        f"epochs, of {values} values of σ and {spread([run.n_trials], 'random start')} each: "
        f"{level:.4f} (σ = {sigma:g}); the paper prints {softrank_printed(evidence):.4f} "
        "(section 5.5.2)."
    )


def _cap(run: FinishedRun) -> int:
    """The cap on epochs that the run was trained with."""
    return run.result.spec["training"]["max_epochs"]


def _table5_section(title: str, part: pd.DataFrame) -> Section:
    lines = []
    for alpha, group in part.groupby("alpha"):
        means = (measured(row.mean, row.half_width) for row in group.itertuples())
        lines.append([f"α = {alpha:g}", *means])
    return Section(title, lines)


def epoch_seconds(run: FinishedRun) -> np.ndarray:
    """Seconds of each epoch after the warm-up, from the run's own history."""
    history = run.result.history
    seconds = history.loc[history["epoch"] > WARM_UP, "seconds"].to_numpy()
    if not len(seconds):
        raise DataError(
            "too few epochs to time one", "raise training.max_epochs", file=run.result.folder
        )
    return seconds


TABLE6: Cells = {
    "Algorithm": lambda row: row["method"],
    "seconds": lambda row: measured(row["seconds"], digits=2),
    "range": lambda row: f"{row['fastest']:.2f} to {row['slowest']:.2f}",
}


def table6(evidence: Evidence) -> TableResult:
    """Table 6: seconds per iteration of ApproxNDCG and of SoftRank."""
    runs = {run.setting("method"): run for run in evidence.runs("iteration_time")}
    rows, times = [], []
    for method, run in runs.items():
        seconds = epoch_seconds(run)
        rows.append(
            evidence.about(run.dataset)
            | {"method": method, "epochs_timed": len(seconds), "published": math.nan}
        )
        times.append(
            {
                "method": method,
                "seconds": float(np.median(seconds)),
                "fastest": float(seconds.min()),
                "slowest": float(seconds.max()),
            }
        )
    measured_times = pd.DataFrame(times)
    first = next(iter(runs.values()))
    caption = (
        "Seconds per iteration (one pass over the training queries) on fold 1 for one linear model "
        "in float32 on one thread: the median and the range over the epochs after the first. The "
        "paper's values are lost; its text gives less than 0.5 s for the gradients of ApproxNDCG "
        "and about 10 s for SoftRank's. “SoftRank” is the recursion over all documents as "
        "published, and “SoftRank, by powers” is the same loss without the recursion. Times differ "
        f"from machine to machine. Models are trained on {first.trained_on} of "
        f"{first.dataset.title} ({first.dataset.kind} data). Edition {evidence.edition}."
    )
    sections = sections_of(measured_times, TABLE6)
    layout = TableLayout(_table6_lead(times), caption, [*TABLE6], sections)
    return TableResult(pd.DataFrame(rows), layout, measured_times)


def _table6_lead(times: Sequence[Mapping[str, Any]]) -> str:
    """How much faster the paper's method is than the slowest."""
    seconds = {row["method"]: row["seconds"] for row in times}
    slowest = max(seconds, key=seconds.__getitem__)
    if OWN not in seconds or slowest == OWN:
        return f"{slowest} takes longest of the methods that were run."
    return (
        f"An iteration of {slowest} takes {seconds[slowest] / seconds[OWN]:.0f} times as long as "
        f"one of {OWN}."
    )


def initialisation(evidence: Evidence) -> FigureResult:
    """How ApproxNDCG's level depends on the bound of the random weights and the cap on epochs."""
    runs = sorted(evidence.runs("initialisation"), key=lambda run: run.setting("model.init_bound"))
    figure, (left, right) = figures.new_figure(
        width=1.8 * figures.COLUMN, height=2.5, ncols=2, width_ratios=(2, 1)
    )
    frames = []
    for number, run in enumerate(runs):
        bound = run.setting("model.init_bound")
        look = figures.SERIES[number % len(figures.SERIES)]
        curves = along(run.result.history, "vali_metric")
        epochs = [mean_interval(row) for row in curves.to_numpy()]
        mean = np.array([epoch.mean for epoch in epochs])
        wide = np.nan_to_num([epoch.half_width for epoch in epochs])
        label = f"U(−{bound:g}, {bound:g})"
        left.plot(curves.index, mean, color=look["color"], linestyle=look["linestyle"], label=label)
        left.fill_between(
            curves.index, mean - wide, mean + wide, color=look["color"], alpha=0.18, linewidth=0
        )
        test = mean_interval(run.trial_means("test", "ndcg", "exclude"))
        right.errorbar([number], [test.mean], yerr=np.nan_to_num([test.half_width]), **look)
        validation = {"epoch": curves.index, "ndcg": mean, "half_width": wide}
        at_end = {"epoch": curves.index[-1:], "ndcg": test.mean, "half_width": test.half_width}
        frames += [
            pd.DataFrame(
                evidence.about(run.dataset)
                | {"split": split, "init_bound": bound, **values, "trials": run.n_trials}
            )
            for split, values in (("vali", validation), ("test", at_end))
        ]
    left.set(xlabel="cap on epochs", ylabel="NDCG@n, validation", xscale="log")
    right.set(xlabel="bound of the start", ylabel="NDCG@n, test, at the end")
    left.xaxis.set_major_formatter("{x:g}")
    left.xaxis.set_minor_formatter(NullFormatter())
    figure.legend(loc="outside upper center", ncols=len(runs), frameon=False)
    bounds = [f"{run.setting('model.init_bound'):g}" for run in runs]
    right.set_xticks(range(len(runs)), bounds)
    right.margins(x=0.25)
    figures.small_print(figure, origin_line([run.dataset for run in runs], evidence.edition))
    caption = (
        f"NDCG@n of ApproxNDCG (Algorithm 1 with α = "
        f"{value_at(runs[0].result.spec, 'loss.alpha'):g}; discount 1/log2(1 + rank), without "
        "queries that have no relevant document) against a cap on epochs that would have ended "
        "training before the stopping rule, and against the bound of the uniform distribution of "
        f"the initial weights: means and 95% t intervals over "
        f"{spread([run.n_trials for run in runs], 'trial')}. {evidence.sources(runs)}"
    )
    return FigureResult(figure, pd.concat(frames, ignore_index=True), caption)
