"""When the choice of a method matters: methods of every family on ever more training queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from directrank.papers.one_protocol.differences import (
    COLUMNS,
    SHOWN,
    clearest,
    every_pair,
    in_order,
)
from directrank.papers.one_protocol.methods import PRIMARY
from directrank.papers.one_protocol.protocol import Protocol, methods_of
from directrank.papers.shared import figures
from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import Evidence, FinishedRun, origin_line
from directrank.papers.shared.format import count, count_range, share, spread
from directrank.papers.shared.leads import training_rule
from directrank.papers.shared.methods import by_method
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import TableLayout, in_front
from directrank.stats.decisions import EQUIVALENT, MORE_THAN, ranked_pairs

#: The scorers of the same methods on all training queries.
_ALL = ("tower", "trees")


def figure_training_size(evidence: Evidence, dataset: str) -> FigureResult:
    """NDCG@10 of each method by the number of training queries, and how many pairs differ."""
    studies = _studies(evidence, dataset)
    full = studies[max(studies)]
    data = pd.concat([rows(study, size) for size, study in studies.items()], ignore_index=True)
    figure = draw(data, full.margin)
    figures.small_print(figure, origin_line([full.dataset], evidence.edition))
    caption = (
        "Left: test NDCG@10 of methods of every family by the number of training queries in each "
        f"fold; the losses train the network. Right: of all {len(full.pairs)} pairs, the share "
        "that differs significantly and by more than the controls, the share shown to differ by "
        f"more than {full.margin:g}, and the share that is equivalent within {full.margin:g} and "
        f"not significantly different. {_lead(studies)} "
        "Grey: the 95% interval of a difference, whose half width is that of the median pair; it "
        "is not corrected. All methods are evaluated on the same queries, so that the interval of "
        f"a mean (± {measured(data['half_width'].median())} in the median) says little about a "
        "difference. "
        f"{full.standard} {_scale(studies)}"
    )
    return FigureResult(figure, data, caption, headline=seen(data))


def seen(data: pd.DataFrame) -> str:
    """How many pairs differ with the fewest and with the most training queries, in a few words."""
    by_size = data.drop_duplicates("train_queries").set_index("train_queries").sort_index()
    few, most = by_size.iloc[0], by_size.iloc[-1]
    return (
        f"{few['differ'] or 'None'} of {few['pairs']} pairs of methods "
        f"{'differs' if few['differ'] < 2 else 'differ'} with {count(few.name)} training queries; "
        f"{most['differ']} with {count(most.name)}"
    )


def table_training_size(evidence: Evidence, dataset: str) -> TableResult:
    """The pairs of the same methods with each number of training queries."""
    studies = _studies(evidence, dataset)
    pairs = {size: every_pair(study) for size, study in studies.items()}
    full = studies[max(studies)]
    sections = [
        clearest(of_size, full.margin, f"{count(size)} training queries of a fold")
        for size, of_size in pairs.items()
    ]
    caption = (
        f"The pairs of methods that {in_order(len(full.pairs))}; at most {SHOWN} of each number of "
        "training queries are shown, and all pairs are in the CSV file. The losses train the "
        f"network. {full.standard} {_scale(studies)}"
    )
    data = pd.concat(
        [
            in_front(of_size, full.about | {"train_queries": size})
            for size, of_size in pairs.items()
        ],
        ignore_index=True,
    )
    return TableResult(data, TableLayout(_lead(studies), caption, COLUMNS, sections))


def draw(data: pd.DataFrame, margin: float) -> Figure:
    """The picture of :func:`rows` of every size.

    Args:
        data: with the columns of :func:`rows`.
        margin: the smallest difference of interest.
    """
    sizes = sorted(data["train_queries"].unique())
    figure, (left, right) = figures.new_figure(
        width=2 * figures.COLUMN, height=4.2, ncols=2, gridspec_kw={"width_ratios": [1, 0.75]}
    )
    names = list(dict.fromkeys(data["method"]))
    last = data[data["train_queries"] == sizes[-1]].set_index("method")["mean"]
    for number, name in enumerate(sorted(names, key=lambda name: -last[name])):
        own = data[data["method"] == name]
        again, place = divmod(number, len(figures.SERIES))
        look = figures.SERIES[place] | ({"markerfacecolor": "white"} if again else {})
        left.plot(own["train_queries"], own["mean"], label=name, markersize=3.5, **look)
    _interval_of_a_difference(left, data)
    figures.label_ends(left, 5.5)
    pairs = data.drop_duplicates("train_queries").set_index("train_queries")
    for number, (column, label) in enumerate(
        (
            ("differ", "differ"),
            ("equivalent", f"equivalent within {margin:g},\nnot different"),
            ("beyond", f"shown to differ by\nmore than {margin:g}"),
        )
    ):
        right.plot(
            pairs.index, 100 * pairs[column] / pairs["pairs"], label=label, **figures.SERIES[number]
        )
    left.set(ylabel="NDCG@10, test", title="How good each method is", xscale="log")
    right.set(ylabel="pairs of methods, %", title="How many pairs can be told apart", xscale="log")
    right.set_ylim(-3, 103)
    for axes in (left, right):
        axes.set_xlabel("training queries of a fold")
        axes.set_xticks(sizes, [count(size) for size in sizes])
        axes.minorticks_off()
    right.legend(frameon=False)
    return figure


def _interval_of_a_difference(axes: Axes, data: pd.DataFrame) -> None:
    """Draw below the curves, at each size, how long the interval of a difference is."""
    each = data.groupby("train_queries")["half_width_of_difference"].first()
    longest = each.max()
    center = data["mean"].min() - 1.3 * longest
    axes.errorbar(
        each.index, np.full(len(each), center), each, fmt="none", ecolor="0.5", elinewidth=1,
        capsize=2.5,
    )  # fmt: skip
    axes.annotate(
        "95% interval\nof a difference", (each.index[0], center), (4, 0),
        textcoords="offset points", color="0.4", fontsize=6, va="center",
    )  # fmt: skip
    axes.set_ylim(bottom=center - 1.3 * longest)


def _studies(evidence: Evidence, dataset: str) -> dict[int, Protocol]:
    """The methods on each number of training queries, in ascending order."""
    runs = evidence.runs(f"{dataset}_training_size")
    names = {run.setting("method") for run in runs}
    by_size: dict[int, list[FinishedRun]] = {}
    for run in runs:
        by_size.setdefault(run.setting("train_queries"), []).append(run)
    full = [
        method
        for scorer in _ALL
        for method in methods_of(evidence, dataset, scorer)
        if method.name in names
    ]
    trees = {method.name for method in full if method.variant == "trees"}
    studies = {}
    for size, own in sorted(by_size.items()):
        by_scorer: dict[str, list[FinishedRun]] = {scorer: [] for scorer in _ALL}
        for run in own:
            by_scorer["trees" if run.setting("method") in trees else "tower"].append(run)
        methods = [
            method
            for scorer, some in by_scorer.items()
            for method in by_method(some, "exclude", variant=scorer).values()
        ]
        studies[size] = Protocol(evidence, methods)
    whole = Protocol(evidence, full)
    return studies | {_training_queries(whole.runs): whole}


def _scale(studies: dict[int, Protocol]) -> str:
    """How the methods were trained with fewer training queries, and with all."""
    fewer = {size: study for size, study in studies.items() if size < max(studies)}
    trials = spread(
        [method.n_trials for study in fewer.values() for method in study.methods], "trial"
    )
    sets = [run.scale("vali").queries for study in fewer.values() for run in study.runs]
    rules = {size: training_rule(study.runs) for size, study in fewer.items()}
    said = "; ".join(f"with {count(size)} {rule}" for size, rule in rules.items() if rule)
    trained = f" By training queries, networks were trained as follows: {said}." if said else ""
    scale = studies[max(studies)].scale()
    return (
        f"With fewer training queries than all every method has {trials}, each of which chooses "
        f"its configuration, and {count_range(sets)} validation queries of a fold.{trained} With "
        f"all, {scale[0].lower()}{scale[1:]}"
    )


def _training_queries(runs: Sequence[FinishedRun]) -> int:
    """The mean over folds of the number of training queries."""
    splits = [run.result.record["data"]["splits"] for run in runs]
    return round(float(np.mean([split["train"]["queries"] for split in splits])))


def rows(study: Protocol, size: int) -> pd.DataFrame:
    """A row per method, with what the pairs show at this size."""
    estimates = study.over_queries(PRIMARY)
    return pd.DataFrame(
        {
            **study.about,
            "train_queries": size,
            "method": study.names["method"],
            "metric": "NDCG@10",
            "mean": study.over_folds(PRIMARY),
            "half_width": [estimate.interval().half_width for estimate in estimates],
            "trials": [method.n_trials for method in study.methods],
            "folds": study.n_folds,
            "queries": study.n_queries,
            "pairs": len(study.pairs),
            "differ": ranked_pairs(study.verdicts),
            "beyond": int((study.pairs["size"] == MORE_THAN).sum()),
            "equivalent": int((study.pairs["verdict"] == EQUIVALENT).sum()),
            "distance_of_controls": study.distance,
            "half_width_of_difference": every_pair(study)["half_width"].median(),
        }
    )


def pairs_that_differ(some: int, pairs: int) -> str:
    """How many of all pairs differ, in words."""
    return f"{share(some, pairs)} pairs {'differs' if some == 1 else 'differ'}"


def _lead(studies: dict[int, Protocol]) -> str:
    """How far the methods are apart with the fewest and with all training queries."""
    said = []
    for size in (min(studies), max(studies)):
        study = studies[size]
        means = study.over_folds(PRIMARY)
        ranked = ranked_pairs(study.verdicts)
        said.append(
            f"with {count(size)} training queries the methods lie within "
            f"{measured(np.ptp(means))}, and {pairs_that_differ(ranked, len(study.pairs))}"
        )
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."
