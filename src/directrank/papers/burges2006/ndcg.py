"""Figures 2 and 3 of Burges2006: NDCG of RankNet and LambdaRank at truncation levels 1 to 10.

Queries without a relevant document are left out of every mean. Intervals are the mean over the
test queries ± 1.96 s / √Q; the paper draws 95 % bars without saying of what. LambdaRank is set
against RankNet by a paired randomisation test per level, corrected over the ten (Holm).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from directrank import metrics
from directrank.papers.shared import figures
from directrank.papers.shared.evidence import (
    Evidence,
    PlannedRun,
    data_sentence,
    spread,
    standin_line,
)
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.stats.intervals import Interval, normal_interval
from directrank.stats.tests import holm, paired_randomisation
from directrank.study.specification import value_at
from directrank.system.errors import DataError
from directrank.system.seeds import numpy_stream

LEVELS = range(1, 11)
METHODS = ("LambdaRank", "RankNet")
#: In the order of the paper's legend, with what it calls them.
NETS = {"two_layer": "2-Layer", "linear": "Linear"}

SIGNIFICANT = 0.05

#: Sign patterns of a randomisation test: the smallest p value is 1 in 10 000.
RESAMPLES = 9_999

#: Tuned settings that a caption tells.
RATE = "training.optimizer.lr"


@dataclass(frozen=True)
class Curve:
    """One method with one kind of net: its runs, one per fold."""

    method: str
    net: str
    runs: Sequence[PlannedRun]

    @property
    def title(self) -> str:
        """As in the paper's legend."""
        return f"{self.method} {NETS.get(self.net, self.net)}"

    def values(self, level: int, split: str = "test") -> pd.Series:
        """NDCG@level of every query of all folds, averaged over trials; by query id."""
        values = []
        for run in self.runs:
            values.append(run.query_values(split, _metric(run, level), "exclude"))
        return pd.concat(values)

    def trials(self, level: int) -> np.ndarray:
        """Mean over the folds of the test mean of each trial, ``[trials]``."""
        means = [run.trial_means("test", _metric(run, level), "exclude") for run in self.runs]
        return np.mean(means, axis=0)

    def interval(self, level: int) -> Interval:
        """Mean over the test queries, with its normal 95 % interval."""
        return normal_interval(self.values(level).to_numpy())


@dataclass(frozen=True)
class Difference:
    """LambdaRank less RankNet, paired by query.

    Attributes:
        interval: of the mean difference, normal, over queries.
        p_value: of the paired randomisation test.
    """

    interval: Interval
    p_value: float


def curves(runs: Sequence[PlannedRun]) -> list[Curve]:
    """The curves of an experiment in the order of the paper's legend."""
    found: dict[tuple[str, str], list[PlannedRun]] = {}
    for run in runs:
        found.setdefault((run.setting("net"), run.setting("method")), []).append(run)
    if not found:
        raise DataError("nothing was run for this figure", "add runs to its experiment")
    nets = [*NETS, *(net for net, _ in found if net not in NETS)]
    return [
        Curve(method, net, found[net, method])
        for net in dict.fromkeys(nets)
        for method in METHODS
        if (net, method) in found
    ]


def compare(a: Curve, b: Curve, level: int, split: str = "test") -> Difference:
    """``a`` less ``b`` at one level; a :class:`DataError` where their queries differ."""
    x, y = a.values(level, split), b.values(level, split)
    if not x.index.equals(y.index):
        raise DataError(
            f"'{a.title}' and '{b.title}' were not evaluated on the same queries",
            "train both on the same prepared data",
        )
    generator = numpy_stream("burges2006", a.title, b.title, level)
    test = paired_randomisation(x, y, generator, RESAMPLES)
    return Difference(normal_interval((x - y).to_numpy()), test.p_value)


def pairs(found: Sequence[Curve]) -> list[tuple[Curve, Curve]]:
    """LambdaRank and RankNet with the same net."""
    by_name = {(curve.method, curve.net): curve for curve in found}
    return [
        (by_name[METHODS[0], net], by_name[METHODS[1], net])
        for net in dict.fromkeys(curve.net for curve in found)
        if all((method, net) in by_name for method in METHODS)
    ]


def figure(evidence: Evidence, experiment: str, nets: Sequence[str], what: str) -> FigureResult:
    """NDCG against the truncation level, with 95 % bars.

    Args:
        evidence: of the figure.
        experiment: its runs.
        nets: the kinds of net that the panel shows.
        what: what the paper's panel shows, for the caption.
    """
    found = [curve for curve in curves(evidence.runs(experiment)) if curve.net in nets]
    data = pd.DataFrame([_row(evidence, curve, level) for curve in found for level in LEVELS])
    picture, axes = figures.new_figure(height=2.6)
    for number, curve in enumerate(found):
        part = data[(data["method"] == curve.method) & (data["net"] == curve.net)]
        # Side by side by a little, so that the bars of close curves can be told apart.
        shift = 0.06 * (number - (len(found) - 1) / 2)
        figures.interval_line(
            axes,
            part["level"] + shift,
            part["ndcg"],
            part["half_width"],
            label=curve.title,
            series=number,
        )
    axes.set(xlabel="Truncation Level", ylabel="NDCG", xticks=list(LEVELS))
    axes.legend(loc="best")
    datasets = [curve.runs[0].dataset for curve in found]
    figures.small_print(picture, standin_line(datasets, evidence.edition))
    text = (
        f"{what}. NDCG at truncation levels 1 to 10 on the test part; bars: 95% intervals over "
        "queries, mean ± 1.96 s/√Q; queries without a relevant document are left out. "
        f"{protocol(found)} Chosen: {_all_chosen(found)}. {_origin(found)}"
        "The paper gives this figure's values only as a picture, so none are drawn beside ours. "
        f"Edition {evidence.edition}."
    )
    return FigureResult(picture, data, text)


def table(evidence: Evidence, experiment: str, what: str) -> TableResult:
    """The plotted values, and LambdaRank against RankNet at every level."""
    found = curves(evidence.runs(experiment))
    rows = [_row(evidence, curve, level) for curve in found for level in LEVELS]
    lines = [[curve.title, *(f"{curve.interval(k).mean:.4f}" for k in LEVELS)] for curve in found]
    widths = [
        [curve.title, *(f"± {curve.interval(k).half_width:.4f}" for k in LEVELS)] for curve in found
    ]
    differences, notes = [], []
    for ours, theirs in pairs(found):
        compared = [compare(ours, theirs, level) for level in LEVELS]
        corrected = holm([difference.p_value for difference in compared])
        net = NETS.get(ours.net, ours.net)
        differences += [
            [net, *(f"{d.interval.mean:+.4f}".replace("-", "−") for d in compared)],
            [
                "95% interval ±",
                *(f"{d.interval.half_width:.4f}" for d in compared),
            ],
            ["p (Holm)", *(_p(p) for p in corrected)],
        ]
        for level, difference, p_holm in zip(LEVELS, compared, corrected, strict=True):
            rows.append(
                _facts(evidence, ours)
                | {
                    "quantity": "LambdaRank − RankNet",
                    "net": ours.net,
                    "level": level,
                    "ndcg": difference.interval.mean,
                    "half_width": difference.interval.half_width,
                    "queries": difference.interval.n,
                    "p_value": difference.p_value,
                    "p_holm": p_holm,
                }
            )
        notes.append(_sentence(ours, compared, corrected))
    text = (
        f"{what}. NDCG on the test part, mean over queries with its 95% interval (± 1.96 s/√Q); "
        "queries without a relevant document are left out. Below, LambdaRank less RankNet with "
        "the same net, paired by query: p of a paired randomisation test, corrected over the ten "
        f"levels (Holm). {protocol(found)} Chosen: {_all_chosen(found)}. {_origin(found)}"
        f"Edition {evidence.edition}."
    )
    sections = [
        Section("NDCG", lines),
        Section("Half width of the 95% interval", widths),
        Section("LambdaRank − RankNet", differences),
    ]
    notes += [note for note in [_starts(found)] if note]
    layout = Layout(text, ["", *(f"@{k}" for k in LEVELS)], sections, notes)
    return TableResult(pd.DataFrame(rows), layout)


def protocol(found: Sequence[Curve]) -> str:
    """Data, scale and training in sentences: epochs allowed, how rate and epoch are chosen."""
    runs = [run for curve in found for run in curve.runs]
    epochs = sorted({int(value_at(run.result.spec, "training.max_epochs")) for run in runs})
    rates = sorted({rate for run in runs for rate in _grid(run)})
    text = data_sentence(runs, "test", "test part")
    text += f" Trained for {' or '.join(map(str, epochs))} epochs, one update per query"
    if len(rates) > 1:
        text += (
            f"; learning rate, of {len(rates)} from {rates[0]:g} to {rates[-1]:g}, and epoch by "
            "validation NDCG@10"
        )
    trials = spread([run.n_trials for run in runs], "trial")
    return f"{text}; {trials}."


def chosen(curve: Curve) -> str:
    """Learning rate and epoch that validation chose, and whether the rate is the grid's edge."""
    fits = pd.concat([run.result.fits[run.result.fits["selected"]] for run in curve.runs])
    rates = sorted({rate for run in curve.runs for rate in _grid(run)})
    kept = sorted(set(fits[RATE]))
    edge = " (edge of the grid)" if {rates[0], rates[-1]} & set(kept) else ""
    return f"{_range(kept)}{edge}, epoch {_range(sorted(set(fits['best_epoch'])))}"


def _facts(evidence: Evidence, curve: Curve) -> dict[str, object]:
    dataset = curve.runs[0].dataset
    return {"edition": evidence.edition, "dataset": dataset.title, "data": dataset.kind}


def _row(evidence: Evidence, curve: Curve, level: int) -> dict[str, object]:
    interval = curve.interval(level)
    return _facts(evidence, curve) | {
        "quantity": "NDCG",
        "method": curve.method,
        "net": curve.net,
        "level": level,
        "ndcg": interval.mean,
        "half_width": interval.half_width,
        "low": interval.low,
        "high": interval.high,
        "queries": interval.n,
    }


def _sentence(ours: Curve, compared: Sequence[Difference], corrected: np.ndarray) -> str:
    """What the differences say, in words that follow from them."""
    better = [
        level
        for level, d, p in zip(LEVELS, compared, corrected, strict=True)
        if p < SIGNIFICANT and d.interval.mean > 0
    ]
    worse = [
        level
        for level, d, p in zip(LEVELS, compared, corrected, strict=True)
        if p < SIGNIFICANT and d.interval.mean < 0
    ]
    first, last = compared[0].interval.mean, compared[-1].interval.mean
    grows = "larger" if first > last else "smaller"
    text = (
        f"{NETS.get(ours.net, ours.net)} nets: LambdaRank is significantly above RankNet at "
        f"{len(better)} and below at {len(worse)} of {len(compared)} levels; the gap is {grows} at "
        f"level 1 ({first:+.4f}) than at level {LEVELS[-1]} ({last:+.4f})."
    )
    return text.replace("-0.", "−0.")


def _all_chosen(found: Sequence[Curve]) -> str:
    return "; ".join(f"{curve.title} {chosen(curve)}" for curve in found)


def _origin(found: Sequence[Curve]) -> str:
    if found[0].runs[0].dataset.origin == "generated":
        return "The recipe of the data leaves much open: levels depend on how it is read. "
    return "The paper's data are not public; another data set is in their place. "


def _metric(run: PlannedRun, level: int) -> str:
    """The column of NDCG@level; its gain is the one by which the run was selected."""
    gain = value_at(run.result.spec, "selection.gain", "exp2")
    return metrics.label({"name": "ndcg", "k": level, "gain": gain})


def _starts(found: Sequence[Curve]) -> str:
    """How far the trials of each curve lie apart."""
    parts = []
    for curve in found:
        means = curve.trials(LEVELS[-1])
        if len(means) > 1:
            parts.append(f"{curve.title} {means.min():.4f} to {means.max():.4f}")
    return f"NDCG@{LEVELS[-1]} of single trials: {'; '.join(parts)}." if parts else ""


def _grid(run: PlannedRun) -> list[float]:
    return [float(rate) for rate in run.result.spec.get("tune", {}).get(RATE, [])]


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
