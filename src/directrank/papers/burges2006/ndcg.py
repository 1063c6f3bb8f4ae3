"""Figures 2 and 3 of Burges2006: NDCG of RankNet and LambdaRank at truncation levels 1 to 10.

Queries without a relevant document are left out of every mean. The paper draws 95 % bars without
saying of what; here intervals and tests are over queries and starts
(:func:`.shared.methods.compared`), as a net's start makes as much difference as a method.
LambdaRank is set against RankNet by a test per level, corrected over the ten (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from directrank import metrics
from directrank.papers.shared import figures
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.evidence import Evidence, FinishedRun, data_sentence, origin_line
from directrank.papers.shared.format import p_value, share, spread
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import Method, by_method, compared, mean_estimate
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import Section, TableLayout
from directrank.stats.decisions import SIGNIFICANT
from directrank.stats.estimates import Estimate
from directrank.stats.tests import holm_of_known
from directrank.study.specification import value_at
from directrank.system.errors import DataError

LEVELS = range(1, 11)
METHODS = ("LambdaRank", "RankNet")
#: In the order of the paper's legend, with what it calls them.
NETS = {"two_layer": "2-Layer", "linear": "Linear"}

#: What of a pair of methods is drawn and tested.
DIFFERENCE = "LambdaRank − RankNet"

#: Tuned settings that a caption tells.
RATE = "training.optimizer.lr"


def ndcg(curve: Method, level: int) -> str:
    """The column of NDCG@level; its gain is the one by which the runs were selected."""
    gain = value_at(curve.runs[0].result.spec, "selection.gain", "exp2")
    return metrics.label({"name": "ndcg", "k": level, "gain": gain})


def mean_of(curve: Method, level: int, split: str = "test") -> Estimate:
    """Mean of NDCG@level, over queries and starts."""
    return mean_estimate(curve, ndcg(curve, level), split)


def curves_of(runs: Sequence[FinishedRun]) -> list[Method]:
    """The methods of an experiment with each kind of net, in the order of the paper's legend."""
    nets = dict.fromkeys([*NETS, *(run.setting("net") for run in runs)])
    curves = [
        curve
        for net in nets
        for curve in by_method(
            [run for run in runs if run.setting("net") == net],
            "exclude",
            order=METHODS,
            variant=net,
            suffix=f" {NETS.get(net, net)}",
        ).values()
        if curve.name in METHODS
    ]
    if not curves:
        raise DataError("nothing was run for this figure", "add runs to its experiment")
    return curves


def by_label(evidence: Evidence, experiment: str) -> dict[str, Method]:
    """The methods of an experiment with each kind of net, by their labels."""
    return {curve.label: curve for curve in curves_of(evidence.runs(experiment))}


def compare(a: Method, b: Method, level: int, split: str = "test") -> Estimate:
    """``a`` minus ``b`` at one level; see :func:`.shared.methods.compared`."""
    return compared(a, b, ndcg(a, level), split)


def pairs(curves: Sequence[Method]) -> list[tuple[Method, Method]]:
    """LambdaRank and RankNet with the same net."""
    by_name = {(curve.name, curve.variant): curve for curve in curves}
    return [
        (by_name[METHODS[0], net], by_name[METHODS[1], net])
        for net in dict.fromkeys(curve.variant for curve in curves)
        if all((method, net) in by_name for method in METHODS)
    ]


def figure(evidence: Evidence, experiment: str, nets: Sequence[str], what: str) -> FigureResult:
    """What LambdaRank gains, with 95 % bars, and below it NDCG, against the truncation level.

    The paper draws the second alone, with bars; but those of two methods that are measured on the
    same queries overlap where their paired difference is clear.

    Args:
        evidence: of the figure.
        experiment: its runs.
        nets: the kinds of net that the panel shows.
        what: what the paper's panel shows, for the caption.
    """
    curves = [curve for curve in curves_of(evidence.runs(experiment)) if curve.variant in nets]
    data = pd.DataFrame(
        [_row(evidence, curve, level) for curve in curves for level in LEVELS]
        + [
            _difference(evidence, ours, level, compare(ours, theirs, level))
            for ours, theirs in pairs(curves)
            for level in LEVELS
        ]
    )
    picture = draw(data)
    datasets = [curve.dataset for curve in curves]
    figures.small_print(picture, origin_line(datasets, evidence.edition))
    text = (
        f"{what}. Top: the difference between LambdaRank and RankNet with the same net at "
        "truncation levels 1 to 10 on the test set, paired by query. Bars are 95% "
        f"intervals {sample_of(curves)} for single levels. Bottom: NDCG, whose intervals are in "
        "the CSV file; those of two methods overlap even where their paired difference is clear. "
        f"Queries without a relevant document are left out. {protocol(curves)} Chosen learning "
        "rates and epochs: "
        f"{_all_chosen(curves)}. {_origin(curves)}"
        "The paper gives this figure's values only as a picture, so none are drawn beside ours. "
        f"Edition {evidence.edition}."
    )
    return FigureResult(picture, data, text, finding=seen_of_levels(data))


def draw(data: pd.DataFrame) -> Figure:
    """The picture of the rows of :func:`figure`."""
    picture, (top, bottom) = figures.new_figure(
        height=3.3, nrows=2, sharex=True, height_ratios=(1, 1.3)
    )
    means = data[data["quantity"] == "NDCG"]
    differences = data[data["quantity"] == DIFFERENCE]
    top.axhline(0, color="#777777", linewidth=0.8, zorder=0.5)
    curves = list(dict.fromkeys(zip(means["method"], means["net"], strict=True)))
    nets = list(dict.fromkeys(means["net"]))
    for number, (method, net) in enumerate(curves):
        name = NETS.get(net, net)
        own = means[(means["method"] == method) & (means["net"] == net)]
        _draw(bottom, own.assign(half_width=math.nan), 0, f"{method}\n{name}", number)
        gaps = differences[differences["net"] == net]
        if method == METHODS[0] and len(gaps):
            # Side by side by a little, so that the bars of close curves can be told apart.
            shift = 0.06 * (2 * nets.index(net) - len(nets) + 1)
            _draw(top, gaps, shift, name if len(nets) > 1 else "_", number)
    bottom.set(xlabel="Truncation Level", ylabel="NDCG", xticks=list(LEVELS))
    top.set(ylabel="LambdaRank\n− RankNet")
    picture.align_ylabels()
    for axes in (top, bottom):
        figures.label_ends(axes)
    return picture


def seen_of_levels(data: pd.DataFrame) -> str:
    """At how many levels LambdaRank is ahead of RankNet, in a few words."""
    gaps = data[data["quantity"] == DIFFERENCE]
    if gaps.empty:
        return ""
    ahead = int((gaps["ndcg"] > 0).sum())
    sure = int((gaps["ndcg"] > gaps["half_width"]).sum())
    said = f"LambdaRank is above RankNet at {ahead} of {len(gaps)} levels"
    if gaps["net"].nunique() > 1:
        said = f"LambdaRank is above RankNet in {ahead} of {len(gaps)} comparisons"
    if gaps["half_width"].isna().all():
        return said
    intervals = {0: "no interval is", 1: "1 interval is"}.get(sure, f"{sure} intervals are")
    return f"{said}; {intervals} above 0"


def _draw(axes: Axes, rows: pd.DataFrame, shift: float, label: str, series: int) -> None:
    figures.interval_line(
        axes, rows["level"] + shift, rows["ndcg"], rows["half_width"], label=label, series=series
    )


def table(evidence: Evidence, experiment: str, what: str) -> TableResult:
    """The plotted values, and LambdaRank against RankNet at every level."""
    curves = curves_of(evidence.runs(experiment))
    rows = [_row(evidence, curve, level) for curve in curves for level in LEVELS]
    lines = [[f"@{row['level']}"] for row in rows[: len(LEVELS)]]
    for number, row in enumerate(rows):
        lines[number % len(LEVELS)].append(measured(row["ndcg"], row["half_width"]))
    columns = ["NDCG", *(curve.label for curve in curves)]
    tested = not has_single_start(curves)
    p_column = ["p"] if tested else []
    differences = []
    for ours, theirs in pairs(curves):
        gaps = [compare(ours, theirs, level) for level in LEVELS]
        p_values = [gap.p_differs() for gap in gaps]
        columns += [f"difference, {NETS.get(ours.variant, ours.variant)}", *p_column]
        for line, level, gap, p, p_holm in zip(
            lines, LEVELS, gaps, p_values, holm_of_known(p_values), strict=True
        ):
            line.append(difference(gap.mean, gap.interval().half_width))
            if tested:
                line.append(p_value(p_holm, 3))
            facts = _difference(evidence, ours, level, gap)
            differences.append(facts | {"p_value": p, "p_holm": p_holm})
    paired = f", paired by query,{how_tested('the ten levels')}" if tested else ""
    text = (
        f"{what}: NDCG on the test set ± the half width of its 95% interval {sample_of(curves)}. "
        "Queries without a relevant document are left out. The difference is LambdaRank minus "
        f"RankNet with the same net{paired}. {protocol(curves)} Chosen learning rates and "
        f"epochs: {_all_chosen(curves)}. {_origin(curves)}Edition {evidence.edition}."
    )
    data = pd.DataFrame([*rows, *differences])
    layout = TableLayout(_lead(differences), text, columns, [Section("", lines)])
    return TableResult(data, layout)


def _lead(differences: Sequence[Mapping[str, Any]]) -> str:
    """At how many levels LambdaRank is ahead of RankNet, and at how many significantly."""
    if not differences:
        return "LambdaRank and RankNet were not run with the same net."
    ahead = share(sum(row["ndcg"] > 0 for row in differences), len(differences))
    if all(math.isnan(row["p_holm"]) for row in differences):
        return lead(f"LambdaRank has the higher mean in {ahead} comparisons with RankNet")
    sure = sum(row["ndcg"] > 0 and row["p_holm"] < SIGNIFICANT for row in differences)
    behind = sum(row["ndcg"] < 0 and row["p_holm"] < SIGNIFICANT for row in differences)
    return lead(
        f"LambdaRank has the higher mean in {ahead} comparisons with RankNet, with p < "
        f"{SIGNIFICANT} in {sure or 'none'} of them"
        + (f"; it has the lower mean with p < {SIGNIFICANT} in {behind}" if behind else "")
    )


def protocol(curves: Sequence[Method], updates: str = " with one update per query") -> str:
    """Data, scale and training in sentences: epochs allowed, how rate and epoch are chosen.

    Args:
        curves: what was trained.
        updates: when weights are updated, where a caption has not said it.
    """
    runs = [run for curve in curves for run in curve.runs]
    epochs = sorted({int(value_at(run.result.spec, "training.max_epochs")) for run in runs})
    rates = sorted({rate for run in runs for rate in _grid(run)})
    text = data_sentence(runs, "test", "test set")
    text += f" Training takes {' or '.join(map(str, epochs))} epochs{updates}."
    if len(rates) > 1:
        text += (
            f" The learning rate, one of {len(rates)} from {rates[0]:g} to {rates[-1]:g}, and the "
            "epoch are chosen by validation NDCG@10."
        )
    if has_single_start(curves):
        return (
            f"{text} There is a single start: other starts may lie outside the intervals, and "
            "differences have neither an interval nor a test, because nothing is known of other "
            "starts."
        )
    return f"{text} There are {spread([run.n_trials for run in runs], 'trial')}."


def sample_of(curves: Sequence[Method]) -> str:
    """Over what intervals are, in words."""
    queries = "queries" if curves[0].query_groups().is_unique else "groups of related queries"
    if has_single_start(curves):
        return f"over {queries}"
    return f"over {queries} and starts (variance s²_Q/Q + s²_T/T − s²_R/QT)"


def chosen(curve: Method) -> str:
    """Learning rate and epoch that validation chose, and whether the rate is the grid's edge."""
    fits = pd.concat([run.result.fits[run.result.fits["selected"]] for run in curve.runs])
    rates = sorted({rate for run in curve.runs for rate in _grid(run)})
    kept = sorted(set(fits[RATE]))
    edge = " (edge of the grid)" if {rates[0], rates[-1]} & set(kept) else ""
    return f"{_range(kept)}{edge}, epoch {_range(sorted(set(fits['best_epoch'])))}"


def _row(evidence: Evidence, curve: Method, level: int) -> dict[str, Any]:
    interval = mean_of(curve, level).interval()
    return evidence.about(curve.dataset) | {
        "quantity": "NDCG",
        "method": curve.name,
        "net": curve.variant,
        "level": level,
        "ndcg": interval.mean,
        "half_width": interval.half_width,
        "low": interval.low,
        "high": interval.high,
        "queries": interval.n,
        "trials": min(run.n_trials for run in curve.runs),
    }


def _difference(evidence: Evidence, ours: Method, level: int, gap: Estimate) -> dict[str, Any]:
    return evidence.about(ours.dataset) | {
        "quantity": DIFFERENCE,
        "net": ours.variant,
        "level": level,
        "ndcg": gap.mean,
        "half_width": gap.interval().half_width,
        "queries": gap.n,
        "trials": min(run.n_trials for run in ours.runs),
    }


def how_tested(family: str) -> str:
    """How differences that have a test are tested, for a caption; corrected over a family."""
    return (
        " with an interval of the same kind, which is not corrected; p is that of the "
        f"corresponding t test, corrected over {family} (Holm)"
    )


def has_single_start(curves: Sequence[Method]) -> bool:
    """Whether some method was trained once, so that differences have no interval."""
    return min(run.n_trials for curve in curves for run in curve.runs) == 1


def _all_chosen(curves: Sequence[Method]) -> str:
    return "; ".join(f"{curve.label} {chosen(curve)}" for curve in curves)


def _origin(curves: Sequence[Method]) -> str:
    if curves[0].dataset.origin == "generated":
        return "The paper's recipe for the data leaves much open, and the values depend on it. "
    return "The paper's data are not public, so another data set replaces them. "


def _grid(run: FinishedRun) -> list[float]:
    return [float(rate) for rate in run.result.spec.get("tune", {}).get(RATE, [])]


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
