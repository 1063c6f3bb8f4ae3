"""Figure 1 and section 6.1 of Burges2006: the speed-up of RankNet by forces per document.

V1 passes both documents of every pair through the net, V2 every document; both in compiled passes
through the net that are the same code (:mod:`directrank.learners.neural.per_query`). Seconds are
those that the processor spent on the pass over the training queries, as the run's own history has
them; of several epochs of a process the fastest counts, the one that nothing else disturbed. Each
measurement is made in several processes: what a process finds in caches, and where its memory lies,
makes more difference than anything within it. What is told is the median with the range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from directrank.papers.shared import figures
from directrank.papers.shared.cells import UNPRINTED, add_differences
from directrank.papers.shared.evidence import Evidence, FinishedRun, data_sentence, origin_line
from directrank.papers.shared.format import count
from directrank.papers.shared.leads import lead
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.summary import Panel, in_one_picture
from directrank.papers.shared.tables import Section, TableLayout
from directrank.study.specification import value_at
from directrank.system.errors import DataError

V1, V2 = "V1", "V2"
V1_EACH, V2_STORED, V2_BOTH = "V1, each pair", "V2, stored", "V2, both"

#: Algorithm → what it is called in print.
TITLES = {
    V1: "V1, RankNet Training",
    V1_EACH: "V1 with an update per pair",
    V2: "V2, LambdaRank Speedup",
    V2_STORED: "V2 with stored activations",
    V2_BOTH: "V2 as trained here",
}
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

#: Headings of a table of slopes or factors.
COLUMNS = ("Algorithm", "here", "range", "paper")

#: Documents per query of the paper's Web data, to which its factors belong.
PAPER_LENGTH = 26.1

#: The setting that cuts lists, where a run tunes it: one process times all lengths.
LENGTH = "training.max_documents"

#: What V2 is in its three forms, for captions.
FORMS = (
    "V2 is the paper's algorithm: n forward passes, the forces of all pairs, then n forward and n "
    "backward passes. Footnote 3 names two further speed-ups that the paper did not use. Stored "
    "activations replace the second forward passes. “V2 as trained here” also computes "
    "exponentials per score instead of per pair, and processes a query's documents as one matrix."
)


@dataclass(frozen=True)
class Timing:
    """An algorithm on lists of one length, in several processes.

    Attributes:
        length: documents per query.
        documents: of all training queries.
        seconds: of the fastest epoch of each process, ``[processes]``.
    """

    length: int
    documents: int
    seconds: np.ndarray

    @property
    def median(self) -> float:
        """Seconds of the process in the middle."""
        return float(np.median(self.seconds))


def timings(runs: Sequence[FinishedRun]) -> dict[tuple[str, str], list[Timing]]:
    """(net, algorithm) → timings by rising length; processes by the number of their repetition.

    Raises:
        DataError: a run holds no time of its passes, or one repetition has lengths that another
            lacks.
    """
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    queries = 0
    for run in sorted(runs, key=lambda run: run.setting("repeat")):
        queries = run.result.record["data"]["splits"]["train"]["queries"]
        by_length = found.setdefault((run.setting("net"), run.setting("method")), {})
        seconds = pass_seconds(run).groupby(run.result.history["candidate"]).min()
        for candidate, length in _lengths(run).items():
            by_length.setdefault(length, []).append(float(seconds[candidate]))
    timed = {
        key: [
            Timing(length, length * queries, np.array(seconds))
            for length, seconds in sorted(by_length.items())
        ]
        for key, by_length in found.items()
    }
    if len({len(timing.seconds) for some in timed.values() for timing in some}) > 1:
        raise DataError(
            "not every algorithm was timed in the same number of processes",
            "run all repetitions of the experiment",
        )
    return timed


def slopes(timed: Sequence[Timing]) -> np.ndarray:
    """Slope of log seconds over log documents in each process, ``[processes]``."""
    x = [math.log(timing.documents) for timing in timed]
    return np.array(
        [
            stats.linregress(x, np.log(y)).slope
            for y in zip(*(t.seconds for t in timed), strict=True)
        ]
    )


def slope(timed: Sequence[Timing]) -> Any:
    """SciPy's straight line through the medians' log seconds over log documents, both natural."""
    return stats.linregress(
        [math.log(t.documents) for t in timed], [math.log(t.median) for t in timed]
    )


def speedups(
    timed: Mapping[tuple[str, str], Sequence[Timing]], net: str, method: str
) -> dict[int, np.ndarray]:
    """Documents per query → how many times as long V1 takes as ``method``, ``[processes]``."""
    slow = {t.length: t for t in timed.get((net, V1), ())}
    fast = {t.length: t for t in timed.get((net, method), ())}
    return {n: slow[n].seconds / fast[n].seconds for n in slow if n in fast}


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
        seconds = pass_seconds(run).cumsum().to_numpy()
        method = run.setting("method")
        axes.plot(
            seconds,
            best,
            label="\n".join(TITLES[method].split(", ")),
            drawstyle="steps-post",
            **figures.SERIES[number] | {"markersize": 3},
        )
        for epoch, value, time in zip(history["epoch"], best, seconds, strict=True):
            facts = evidence.about(run.dataset) | {"method": method, "epoch": epoch}
            rows.append(facts | {"max_validation_ndcg10": value})
            times.append(facts | {"seconds": time})
    axes.set(xlabel="seconds of training", ylabel="Max validation NDCG@10", xscale="log")
    figures.label_ends(axes)
    figures.plain_log_ticks(axes.xaxis)
    figures.small_print(picture, origin_line([runs[0].dataset], evidence.edition))
    caption = (
        "The best NDCG@10 so far on the validation set against seconds of training, for linear "
        "nets, with a mark per epoch. RankNet Training is V1, which goes through pairs one by one; "
        "LambdaRank Speedup is V2, which computes the same gradients from forces on documents. "
        "Both update the weights once per query, each with its own random numbers, in a single "
        f"process. {data_sentence(runs, 'vali', 'validation set')} Lists are cut to "
        f"{_length(runs[0])} documents in training. Times are processor times on one core of this "
        "machine without validation; the paper's are from 0 to 30 minutes on a 2.2 GHz Opteron. "
        f"Edition {evidence.edition}."
    )
    return FigureResult(picture, pd.DataFrame(rows), caption, pd.DataFrame(times))


def figure1b(evidence: Evidence) -> FigureResult:
    """Figure 1, right: log seconds per epoch against log documents, two layer nets."""
    every = timings(evidence.runs("lengths"))
    timed = {method: some for (net, method), some in every.items() if net == "two_layer"}
    for method in (V1, V2):
        if method not in timed:
            raise DataError(f"'{method}' was not timed", "run V1 and V2 of 'lengths'")
    rows, times, words = [], [], []
    for method in (m for m in (V2, V1, V2_BOTH) if m in timed):
        some = timed[method]
        printed = f" (paper {published(evidence, SLOPES[method]):g})" if method in SLOPES else ""
        words.append(f"{TITLES[method]} {_range(slopes(some), 3)}{printed}")
        for timing in some:
            facts: dict[str, Any] = {
                "edition": evidence.edition,
                "method": method,
                "net": "two_layer",
                "documents_per_query": timing.length,
                "documents": timing.documents,
            }
            rows.append(facts)
            times += [
                facts | {"process": process, "seconds_per_epoch": seconds}
                for process, seconds in enumerate(timing.seconds, start=1)
            ]
    picture = draw_times(timed)
    dataset = evidence.runs("lengths")[0].dataset
    figures.small_print(picture, origin_line([dataset], evidence.edition))
    lengths = [timing.length for timing in timed[V1]]
    queries = timed[V1][0].documents // timed[V1][0].length
    caption = (
        "Seconds per epoch against the number of documents, on logarithmic axes, for two-layer "
        f"nets and {count(queries)} queries of {lengths[0]} to {lengths[-1]} documents of the "
        f"artificial data: medians and ranges over {_processes(timed[V1])}. The fitted slopes, as "
        f"median and range, are: {'; '.join(words)}. {_longest(timed)} {FORMS} "
        f"{_epochs(evidence.runs('lengths'))}, timed on one core of this machine without "
        "validation. The paper's text mentions 4 000 to 512 000 documents per query; its axis, and "
        "the times that a quadratic method can reach, suggest 1 000 queries of 4 to 512 "
        f"documents. Edition {evidence.edition}."
    )
    return FigureResult(
        picture, pd.DataFrame(rows), caption, pd.DataFrame(times), finding=_seen_of_times(timed)
    )


def draw_times(timed: Mapping[str, Sequence[Timing]]) -> Figure:
    """The picture of :func:`figure1b`.

    Args:
        timed: algorithm → timings by rising length.
    """
    picture, axes = figures.new_figure(height=2.5)
    for number, method in enumerate(m for m in (V2, V1, V2_BOTH) if m in timed):
        some = timed[method]
        x = np.array([t.documents for t in some])
        line, look = slope(some), figures.SERIES[number]
        low = [t.median - t.seconds.min() for t in some]
        high = [t.seconds.max() - t.median for t in some]
        axes.errorbar(x, [t.median for t in some], yerr=[low, high],
                      color=look["color"], linestyle="none", marker=look["marker"])  # fmt: skip
        axes.plot(
            x,
            np.exp(line.intercept) * x**line.slope,
            label="\n".join([*TITLES[method].split(", "), f"slope {line.slope:.2f}"]),
            **figures.line(number),
        )
    axes.set(xlabel="Number of Documents", ylabel="Seconds per Epoch", xscale="log", yscale="log")
    figures.label_ends(axes)
    for axis in (axes.xaxis, axes.yaxis):
        figures.plain_log_ticks(axis)
    return picture


def _seen_of_times(timed: Mapping[str, Sequence[Timing]]) -> str:
    """How time grows with the length of lists, in a few words."""
    growth = {method: slope(timed[method]).slope for method in (V1, V2)}
    return (
        f"time grows with the number of documents to the power of {growth[V1]:.2f} pair by pair "
        f"(V1), and of {growth[V2]:.2f} with forces (V2)"
    )


def table_figure1(evidence: Evidence) -> TableResult:
    """Slopes beside the paper's, and speed-up factors at every length."""
    timed = timings(evidence.runs("lengths"))
    common = evidence.about(evidence.runs("lengths")[0].dataset)
    rows: list[dict[str, Any]] = []
    for (net, method), some in sorted(timed.items()):
        printed = published(evidence, SLOPES[method]) if _has_slope(net, method) else math.nan
        facts = {"net": net, "quantity": f"slope, {method}", "lengths": len(some)}
        rows.append(common | facts | {"published": printed} | _measured(slopes(some)))
    factors = len(rows)
    for net, method in sorted(timed):
        for length, ratios in speedups(timed, net, method).items():
            if method == V1:
                continue
            facts = {"net": net, "quantity": f"speed-up {method} over V1", "published": math.nan}
            rows.append(common | facts | {"documents_per_query": length} | _measured(ratios))
    caption = (
        "The slope of log seconds per epoch against log documents, and how many times as fast as "
        "V1 each form of V2 is, by the number of documents per query of the artificial data: "
        f"median and range over {_processes(next(iter(timed.values())))}. {FORMS} The paper's "
        f"factors for lists of {PAPER_LENGTH:g} documents are in the table of section 6.1. Times "
        "are those of passes over the training queries on one core of this machine. "
        f"{_epochs(evidence.runs('lengths'))}. Edition {evidence.edition}."
    )
    by_length = rows[factors:]
    forms = list(dict.fromkeys(_title(row) for row in by_length))
    sections = [
        Section("Slope", [_line(row, 3) for row in rows[:factors]]),
        Section("Times as fast as V1", _factor_lines(by_length), ["Documents per query", *forms]),
    ]
    start = lead(_values_lead("slope", rows[:factors], 3))
    return _table(rows, TableLayout(start, caption, COLUMNS, sections))


def table_speed(evidence: Evidence, experiment: str) -> TableResult:
    """Section 6.1: every algorithm beside V1, on lists as long as those of the paper's Web data."""
    runs = evidence.runs(experiment)
    timed = timings(runs)
    common = evidence.about(runs[0].dataset)
    rows: list[dict[str, Any]] = []
    for net in dict.fromkeys(net for net, _ in timed):
        for method in (m for m in TITLES if m != V1):
            for length, ratios in speedups(timed, net, method).items():
                printed = published(evidence, FACTORS[net]) if method == V2 else math.nan
                facts: dict[str, Any] = {"net": net, "quantity": f"speed-up {method} over V1"}
                facts |= {"documents_per_query": length, "published": printed}
                rows.append(common | facts | _measured(ratios))
    caption = (
        "How many times as fast as V1 with an update per query each algorithm is: median and range "
        f"over {_processes(next(iter(timed.values())))} on one core of this machine. "
        f"{_epochs(runs)}. {FORMS} The paper gives factors for V2, with lists of "
        f"{PAPER_LENGTH:g} documents on average, and calls the running times of V1 with updates "
        "per query and per pair almost identical. "
        f"{data_sentence(runs, 'vali', 'validation set')} "
        f"Lists are cut to {_length(runs[0])} documents. Edition {evidence.edition}."
    )
    sections = [Section("", [_line(row, 2) for row in rows])]
    start = lead(_values_lead("speed-up over V1", rows, 2))
    return _table(rows, TableLayout(start, caption, COLUMNS, sections))


def _table(rows: Sequence[Mapping[str, Any]], layout: TableLayout) -> TableResult:
    """A table of measured values; those stay apart from what does not change from run to run."""
    measured = add_differences(pd.DataFrame(rows), value="value", error=math.nan)
    measured["status"] = measured["published"].notna().map({True: "compared", False: "ours"})
    data = pd.DataFrame(rows).drop(columns=["value", "lowest", "highest", "half_width"])
    return TableResult(data, layout, measured)


def _measured(values: np.ndarray) -> dict[str, float]:
    """Median and range of the processes; the half width reaches the farther end of the range."""
    middle, low, high = float(np.median(values)), float(values.min()), float(values.max())
    half_width = max(high - middle, middle - low)
    return {"value": middle, "lowest": low, "highest": high, "half_width": half_width}


def _values_lead(what: str, rows: Sequence[Mapping[str, Any]], digits: int) -> str:
    """The values that the paper prints too; all values if it prints none."""
    beside = [row for row in rows if not math.isnan(row["published"])]
    return "; ".join(
        f"the {what} is {row['value']:.{digits}f} for {_title(row)}"
        + ("" if math.isnan(row["published"]) else f" (paper {row['published']:g})")
        for row in beside or rows
    )


def _line(row: Mapping[str, Any], digits: int) -> list[str]:
    """Title, median, lowest and highest, and the printed value."""
    ends = f"{row['lowest']:.{digits}f} to {row['highest']:.{digits}f}"
    theirs = UNPRINTED if math.isnan(row["published"]) else f"{row['published']:g}"
    return [_title(row), f"{row['value']:.{digits}f}", ends, theirs]


def _factor_lines(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A line per length with the factor of each form of V2, and its range in brackets."""
    cells: dict[int, dict[str, str]] = {}
    for row in rows:
        ends = f"{row['lowest']:.1f} to {row['highest']:.1f}"
        of_length = cells.setdefault(row["documents_per_query"], {})
        of_length[_title(row)] = f"{row['value']:.1f} ({ends})"
    forms = dict.fromkeys(_title(row) for row in rows)
    return [
        [str(length), *(of_length.get(form, UNPRINTED) for form in forms)]
        for length, of_length in cells.items()
    ]


def _title(row: Mapping[str, Any]) -> str:
    method = row["quantity"].removeprefix("slope, ").removeprefix("speed-up ")
    return f"{TITLES[method.removesuffix(' over V1')]}, {NETS[row['net']]}"


def _has_slope(net: str, method: str) -> bool:
    return net == "two_layer" and method in SLOPES


def _range(values: np.ndarray, digits: int) -> str:
    low, middle, high = values.min(), np.median(values), values.max()
    return f"{middle:.{digits}f}, {low:.{digits}f} to {high:.{digits}f}"


def _processes(timed: Sequence[Timing]) -> str:
    processes = len(timed[0].seconds)
    return f"{processes} processes" if processes > 1 else "a single process"


def _epochs(runs: Sequence[FinishedRun]) -> str:
    """Which epoch of a process counts, in words."""
    epochs = int(value_at(runs[0].result.spec, "training.max_epochs"))
    return f"Only the fastest of the {epochs} epochs of each process counts"


def _longest(timed: Mapping[str, Sequence[Timing]]) -> str:
    """The slopes between the two longest lists, in words.

    Short lists spend their time on what does not grow with them, the update of the weights.
    """
    if not {V1, V2} <= timed.keys():
        return ""
    last = {method: _last_slope(timed[method]) for method in (V1, V2)}
    return f"Between the two longest lists, V1's slope is {last[V1]:.2f} and V2's {last[V2]:.2f}."


def pass_seconds(run: FinishedRun) -> pd.Series:
    """Seconds of each pass over the training queries, by row of the run's history."""
    history = run.result.history
    if "pass_seconds" not in history:
        raise DataError(
            "this run's history has no seconds of its passes",
            "train it with the learner per_query, ranknet_v1 or ranknet_v2",
            file=run.result.folder,
        )
    return history["pass_seconds"]


def published(evidence: Evidence, quantity: str) -> float:
    """The leading number of a value that the paper's text gives."""
    values = evidence.published("burges2006_values").set_index("quantity")["value"]
    return float(str(values[quantity]).split()[0])


def _last_slope(timed: Sequence[Timing]) -> float:
    if len(timed) < 2:
        return math.nan
    a, b = timed[-2:]
    return math.log(b.median / a.median) / math.log(b.documents / a.documents)


def _lengths(run: FinishedRun) -> dict[int, int]:
    """Candidate of the run → documents to which it cuts training lists."""
    fits = run.result.fits
    whole = value_at(run.result.spec, "training.max_documents")
    lengths = fits.get(LENGTH, pd.Series(whole, index=fits.index))
    return {int(c): int(n) for c, n in zip(fits["candidate"], lengths, strict=True)}


def _length(run: FinishedRun) -> int:
    """Documents to which a run of one length cuts training lists."""
    (length,) = set(_lengths(run).values())
    return length


#: What a legend says of the data of a table; the caption names them.
_DATA = {"table_speed": "", "table_speed_cubic": ", artificial data"}

#: The frames of the product ``summary``.
PANELS = (
    Panel(
        title="Figure 1, slopes",
        axis="slope",
        tables=("table_figure1",),
        row=lambda rows: rows["quantity"].str.removeprefix("slope, ").map(TITLES),
        cell=("net", "quantity"),
        bars="half widths that reach the farther end of the range over processes",
        where=lambda rows: rows["quantity"].str.startswith("slope"),
        value="value",
        timed=True,
    ),
    Panel(
        title="Section 6.1, speed-up",
        axis="factor",
        tables=("table_speed", "table_speed_cubic"),
        row=lambda rows: rows["net"].map(NETS) + " nets" + rows["table"].map(_DATA),
        cell=("net", "quantity"),
        bars="half widths that reach the farther end of the range over processes",
        where=lambda rows: rows["quantity"].str.startswith("speed-up"),
        value="value",
        timed=True,
    ),
)

summary = partial(in_one_picture, panels=PANELS)
