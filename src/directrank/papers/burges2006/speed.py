"""Figure 1 of Burges2006: the speed-up of RankNet by summing forces per document.

V1 passes both documents of every pair through the net, V2 every document once; both in compiled
passes through the net that are the same code (:mod:`directrank.learners.neural.per_query`).
Seconds are those that the processor spent on the pass over the training queries, as the run's own
history has them; of several epochs the fastest counts, the one that nothing else disturbed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from directrank.papers.shared import figures
from directrank.papers.shared.differences import WORDS, add_differences, beside
from directrank.papers.shared.evidence import Evidence, PlannedRun, data_sentence, standin_line
from directrank.papers.shared.format import count
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.study.specification import value_at
from directrank.system.errors import DataError

V1, V2 = "RankNet Training", "LambdaRank Speedup"
NETS = {"linear": "linear", "two_layer": "two layer"}

#: Quantity of the published file → slope or factor that it is set against.
SLOPES = {
    V1: "slope of log time vs log documents, V1 (RankNet Training)",
    V2: "slope, V2 (LambdaRank Speedup)",
}
FACTORS = {
    "linear": "speed-up V2 over V1, single layer net, Web data, 1000 queries",
    "two_layer": "speed-up V2 over V1, two layer net",
}

#: Documents per query of the paper's Web data, to which its factors belong.
PAPER_LENGTH = 26.1


@dataclass(frozen=True)
class Timing:
    """Epochs of one run of the length experiment.

    Attributes:
        length: documents per query.
        documents: of all training queries.
        seconds: of the pass, per epoch.
    """

    length: int
    documents: int
    seconds: np.ndarray

    @property
    def best(self) -> float:
        """The fastest epoch."""
        return float(self.seconds.min())


def timings(runs: Sequence[PlannedRun]) -> dict[tuple[str, str], list[Timing]]:
    """(net, method) → timings by rising length.

    Raises:
        DataError: nothing was run, or a run holds no time of its passes.
    """
    timed: dict[tuple[str, str], list[Timing]] = {}
    for run in runs:
        length = int(run.setting("training.max_documents"))
        queries = run.result.record["data"]["splits"]["train"]["queries"]
        timing = Timing(length, length * queries, pass_seconds(run))
        timed.setdefault((run.setting("net"), run.setting("method")), []).append(timing)
    if not timed:
        raise DataError("nothing was timed", "add runs to the experiment 'lengths'")
    return {key: sorted(some, key=lambda t: t.length) for key, some in timed.items()}


def slope(timed: Sequence[Timing]) -> Any:
    """SciPy's straight line through log seconds over log documents, both natural."""
    return stats.linregress(
        [math.log(t.documents) for t in timed], [math.log(t.best) for t in timed]
    )


def figure1a(evidence: Evidence) -> FigureResult:
    """Figure 1, left: the best validation NDCG so far against time."""
    runs = [run for run in evidence.runs("speedup") if run.setting("net") == "linear"]
    if not runs:
        raise DataError("nothing was run for figure1a", "add runs to the experiment 'speedup'")
    picture, axes = figures.new_figure(height=2.4)
    rows, times = [], []
    for number, run in enumerate(sorted(runs, key=lambda run: run.setting("method"))):
        history = run.result.history
        best = history["vali_metric"].cummax().to_numpy()
        minutes = pass_seconds(run).cumsum() / 60
        method = run.setting("method")
        axes.plot(minutes, best, label=method, markevery=1, **figures.SERIES[number])
        for epoch, value, time in zip(history["epoch"], best, minutes, strict=True):
            facts = evidence.about(run.dataset) | {"method": method, "epoch": epoch}
            rows.append(facts | {"max_validation_ndcg10": value})
            times.append(facts | {"minutes": time})
    axes.set(xlabel="Minutes (logarithmic)", ylabel="Max validation NDCG@10", xscale="log")
    axes.legend(loc="best")
    figures.small_print(picture, standin_line([runs[0].dataset], evidence.edition))
    caption = (
        "Best NDCG@10 on the validation set so far against the minutes of training, linear nets, "
        "a mark per epoch. RankNet Training is V1, pair by pair; LambdaRank Speedup is V2, the "
        "same costs by forces on documents; both update the weights once per query, each with its "
        "own random draws. "
        f"{data_sentence(runs, 'vali', 'validation set')} Lists are cut to {_length(runs[0])} "
        f"documents in training. {_factors(evidence)} Processor time on one core of this machine, "
        "validation left out; the paper's on a 2.2 GHz Opteron, from 0 to 30 minutes. "
        f"Edition {evidence.edition}."
    )
    return FigureResult(picture, pd.DataFrame(rows), caption, pd.DataFrame(times))


def figure1b(evidence: Evidence) -> FigureResult:
    """Figure 1, right: log seconds per epoch against log documents, two layer nets."""
    timed = {
        method: some
        for (net, method), some in timings(evidence.runs("lengths")).items()
        if net == "two_layer"
    }
    picture, axes = figures.new_figure(height=2.5)
    rows, times, words = [], [], []
    for number, method in enumerate((V2, V1)):
        if method not in timed:
            raise DataError(f"'{method}' was not timed", "run both methods of 'lengths'")
        some = timed[method]
        x = np.array([math.log(t.documents) for t in some])
        line = slope(some)
        look = figures.SERIES[number]
        axes.plot(x, [math.log(t.best) for t in some], color=look["color"], linestyle="none",
                  marker=look["marker"], label=f"{method}, slope {line.slope:.2f}")  # fmt: skip
        axes.plot(
            x, line.intercept + line.slope * x, color=look["color"], linestyle=look["linestyle"]
        )
        words.append(f"{method} {line.slope:.3f} (paper {published(evidence, SLOPES[method]):g})")
        for timing in some:
            facts: dict[str, Any] = {
                "edition": evidence.edition,
                "method": method,
                "net": "two_layer",
                "documents_per_query": timing.length,
                "documents": timing.documents,
            }
            rows.append(facts | {"log_documents": math.log(timing.documents)})
            times.append(facts | {"seconds_per_epoch": timing.best})
    axes.set(xlabel="Log Number of Documents", ylabel="Log Seconds per Epoch")
    axes.legend(loc="best")
    lengths = [timing.length for timing in timed[V1]]
    queries = timed[V1][0].documents // timed[V1][0].length
    caption = (
        "Natural logarithm of the seconds per epoch against that of the number of documents, two "
        f"layer nets, {count(queries)} queries of {lengths[0]} to {lengths[-1]} documents of the "
        f"artificial data. Fitted slopes: {', '.join(words)}. {_longest(timed)} The fastest of "
        f"{len(timed[V1][0].seconds)} epochs on one core of this machine, validation left out. The "
        "paper's text has 4 000 to 512 000 documents per query; its axis, and times that a "
        "quadratic method can reach, say 1 000 queries of 4 to 512. "
        f"Edition {evidence.edition}."
    )
    return FigureResult(picture, pd.DataFrame(rows), caption, pd.DataFrame(times))


def table_figure1(evidence: Evidence) -> TableResult:
    """Slopes and speed-up factors beside the paper's."""
    timed = timings(evidence.runs("lengths"))
    rows, times, slopes, factors = [], [], [], []
    common = evidence.about(evidence.runs("lengths")[0].dataset)
    for (net, method), some in sorted(timed.items()):
        line = slope(some)
        paper = published(evidence, SLOPES[method]) if net == "two_layer" else math.nan
        facts = common | {"net": net, "quantity": f"slope, {method}", "published": paper}
        rows.append(facts | {"lengths": len(some)})
        half_width = stats.t.ppf(0.975, len(some) - 2) * line.stderr
        times.append(facts | _measured(line.slope, line.stderr, half_width))
        slopes.append((f"{method}, {NETS[net]}", paper, times[-1]))
    for net in dict.fromkeys(net for net, _ in timed):
        ratios = speedups(timed, net)
        near = min(ratios, key=lambda length: abs(math.log(length / PAPER_LENGTH)))
        for length, (ratio, error, half_width) in ratios.items():
            paper = published(evidence, FACTORS[net]) if length == near else math.nan
            facts = common | {"net": net, "quantity": "speed-up V2 over V1"}
            facts |= {"documents_per_query": length, "published": paper}
            rows.append(facts)
            times.append(facts | _measured(ratio, error, half_width))
            factors.append((f"{NETS[net]}, {length} documents", paper, times[-1]))
    measured = pd.DataFrame(times)
    measured = add_differences(measured, value="value", error=measured["standard_error"])
    measured["status"] = measured["published"].notna().map({True: "compared", False: "ours"})
    two_layer = {method: some for (net, method), some in timed.items() if net == "two_layer"}
    caption = (
        "Slope of log seconds per epoch over log documents, with the half width of its 95% "
        "interval from the fit, and by what factor V2 is faster than V1 in the fastest epoch, with "
        "that from the spread of the epochs, on lists of the artificial data. "
        f"{WORDS}. The paper's factors are "
        f"those of its Web data, {PAPER_LENGTH:g} documents per query; they stand beside the "
        "nearest length. Passes over the training queries on one core of this machine, fastest "
        f"epoch. Edition {evidence.edition}."
    )
    columns = ["", "paper", "here", "± 95%"]
    sections = [Section("Slope", _lines(slopes, 3)), Section("Speed-up", _lines(factors, 1))]
    notes = [_longest(two_layer), "Artificial data, as in the paper."]
    layout = Layout(caption, columns, sections, [note for note in notes if note])
    return TableResult(pd.DataFrame(rows), layout, measured)


def _measured(value: float, error: float, half_width: float) -> dict[str, float]:
    return {"value": value, "half_width": half_width, "standard_error": error}


def _lines(
    entries: Sequence[tuple[str, float, Mapping[str, float]]], digits: int
) -> list[list[str]]:
    """Title, printed value with the distance of ours, ours, and its half width."""
    lines = []
    for title, paper, measured in entries:
        ours, wide = f"{measured['value']:.{digits}f}", f"{measured['half_width']:.{digits}f}"
        error = measured["standard_error"] or math.nan
        distance = (measured["value"] - paper) / error
        lines.append([title, beside(_number(paper), distance, "artificial"), ours, f"± {wide}"])
    return lines


def speedups(
    timed: Mapping[tuple[str, str], Sequence[Timing]], net: str
) -> dict[int, tuple[float, float, float]]:
    """Documents per query → how many times as long V1's fastest epoch takes as V2's.

    With its standard error and the half width of its 95 % interval, both from the spread of the
    logarithms of the epochs' seconds (Welch).
    """
    slow = {t.length: t for t in timed.get((net, V1), ())}
    fast = {t.length: t for t in timed.get((net, V2), ())}
    return {length: _ratio(slow[length], fast[length]) for length in slow if length in fast}


def _ratio(slow: Timing, fast: Timing) -> tuple[float, float, float]:
    ratio = slow.best / fast.best
    if min(len(slow.seconds), len(fast.seconds)) < 2:
        return ratio, math.nan, math.nan
    spread = stats.ttest_ind(np.log(slow.seconds), np.log(fast.seconds), equal_var=False)
    low, high = spread.confidence_interval()
    width = (high - low) / 2
    error = ratio * width / float(stats.t.ppf(0.975, spread.df))
    return ratio, error, ratio * width


def _longest(timed: Mapping[str, Sequence[Timing]]) -> str:
    """The slopes between the two longest lists, in words.

    Short lists spend their time on what does not grow with them, the update of the weights.
    """
    if not {V1, V2} <= timed.keys():
        return ""
    last = {method: _last_slope(timed[method]) for method in (V1, V2)}
    return f"Between the two longest lists V1's slope is {last[V1]:.2f} and V2's {last[V2]:.2f}."


def by_net(evidence: Evidence) -> dict[str, tuple[PlannedRun, PlannedRun]]:
    """Net → the runs of V1 and V2 on the Web data."""
    timed = {(run.setting("net"), run.setting("method")): run for run in evidence.runs("speedup")}
    return {
        net: (timed[net, V1], timed[net, V2])
        for net in NETS
        if (net, V1) in timed and (net, V2) in timed
    }


def pass_seconds(run: PlannedRun) -> np.ndarray:
    """Seconds of each pass over the training queries, ``[epochs]``."""
    history = run.result.history
    if "pass_seconds" not in history:
        raise DataError(
            "this run's history has no seconds of its passes",
            "train it with the learner per_query or per_pair",
            file=run.result.folder,
        )
    return history["pass_seconds"].to_numpy()


def published(evidence: Evidence, quantity: str) -> float:
    """The leading number of a value that the paper's text gives."""
    values = evidence.published("burges2006_values").set_index("quantity")["value"]
    return float(str(values[quantity]).split()[0])


def _factors(evidence: Evidence) -> str:
    """How much faster V2 is on the Web data, beside the paper's factors."""
    parts = []
    for net, (slow, fast) in by_net(evidence).items():
        ratio = pass_seconds(slow).min() / pass_seconds(fast).min()
        paper = published(evidence, FACTORS[net])
        parts.append(f"{ratio:.1f} times for {NETS[net]} nets (paper {paper:g})")
    return f"V2 is faster by {' and '.join(parts)}." if parts else ""


def _last_slope(timed: Sequence[Timing]) -> float:
    if len(timed) < 2:
        return math.nan
    a, b = timed[-2:]
    return math.log(b.best / a.best) / math.log(b.documents / a.documents)


def _length(run: PlannedRun) -> int:
    return int(value_at(run.result.spec, "training.max_documents"))


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:g}"
