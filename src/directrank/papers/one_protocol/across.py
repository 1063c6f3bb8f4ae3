"""All collections together: mean ranks with their uncertainty, and who is ahead of whom.

Collections are the blocks (Demšar, JMLR 7, 2006): what is said is about other collections, and few
collections say little. Beside that stands what each collection says of itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from directrank.papers.one_protocol.methods import (
    NEURAL,
    PRIMARY,
    SCORERS,
    SIGNIFICANT,
    Comparison,
    p_text,
)
from directrank.papers.one_protocol.per_query import read
from directrank.papers.one_protocol.ranks import LOOKS, scorer_legend
from directrank.papers.shared import figures
from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import Evidence, origin_line
from directrank.papers.shared.format import listed, share
from directrank.papers.shared.leads import lead
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.stats.ranks import Friedman, critical_difference, friedman
from directrank.system.errors import DataError
from directrank.system.seeds import numpy_stream

_VARIANTS = {title: variant for variant, title in SCORERS.items()}

#: With so many collections or fewer every resample of them is counted.
EXACT = 5

RESAMPLES = 10_000

#: With so many losses or fewer each pair's number stands in the picture.
NUMBERED = 20


@dataclass(frozen=True)
class Across:
    """The methods that were run on every collection.

    Attributes:
        edition: its name.
        studies: one per collection.
    """

    edition: str
    studies: Sequence[Comparison]

    @cached_property
    def labels(self) -> list[str]:
        """The methods' names in print, in the order of the first collection."""
        first, *others = (study.labels for study in self.studies)
        return [label for label in first if all(label in labels for labels in others)]

    @cached_property
    def places(self) -> list[list[int]]:
        """Per collection the position of each method among its own."""
        return [[study.labels.index(label) for label in self.labels] for study in self.studies]

    @cached_property
    def means(self) -> pd.DataFrame:
        """NDCG@10, a row per collection and a column per method: the mean over its queries."""
        rows = [
            study.values[places].mean().to_numpy()
            for study, places in zip(self.studies, self.places, strict=True)
        ]
        titles = [study.dataset.title for study in self.studies]
        return pd.DataFrame(rows, index=titles, columns=self.labels)

    @cached_property
    def friedman(self) -> Friedman:
        """Friedman's test over collections."""
        return friedman(self.means.to_numpy())

    @cached_property
    def ranks(self) -> np.ndarray:
        """The rank of each method on each collection, ``[collections, methods]``; 1 is the best."""
        return self.means.rank(axis=1, ascending=False).to_numpy()

    @property
    def difference(self) -> float:
        """Nemenyi's critical difference of mean ranks."""
        return critical_difference(len(self.labels), len(self.studies), SIGNIFICANT)

    @cached_property
    def intervals(self) -> np.ndarray:
        """95 % bootstrap interval of each mean rank over collections, ``[2, methods]``."""
        ends = (0.025, 0.975)
        return np.quantile(_resampled(self.ranks), ends, axis=0, method="inverted_cdf")

    @cached_property
    def decided(self) -> np.ndarray:
        """What each collection says of a method beside another.

        Words of :attr:`Comparison.decisions`, ``[collections, methods, methods]``; empty on the
        diagonal.
        """
        turned = {"better": "worse", "worse": "better"}
        words = np.full((len(self.studies), len(self.labels), len(self.labels)), "", dtype=object)
        for study, places, table in zip(self.studies, self.places, words, strict=True):
            every = np.full((len(study.labels),) * 2, "", dtype=object)
            a, b = study.pairs["a"].to_numpy(), study.pairs["b"].to_numpy()
            every[a, b] = study.decisions.to_numpy()
            every[b, a] = [turned.get(word, word) for word in study.decisions]
            table[:] = every[np.ix_(places, places)]
        return words

    def scorer(self, number: int) -> str:
        """The kind of scorer of a method, by its name in experiments."""
        return _VARIANTS[self.studies[0].names["scorer"].iloc[self.places[0][number]]]

    def loss(self, number: int) -> str:
        """A method's name without its scorer."""
        return str(self.studies[0].names["method"].iloc[self.places[0][number]])

    def caption(self) -> str:
        """Which collections, of what size, in sentences."""
        sizes = listed([f"{study.dataset.title} ({study.size})" for study in self.studies])
        return f"Collections: {sizes}. Edition {self.edition}."


def across(evidence: Evidence) -> Across:
    """The methods of all collections of a product.

    Raises:
        DataError: fewer than two collections, or than three methods that all of them have.
    """
    result = Across(evidence.edition, [read(file) for file in evidence.values_files])
    if len(result.studies) < 2 or len(result.labels) < 3:
        raise DataError(
            "there are fewer than two collections, or than three methods that each of them has",
            "list more under papers.one_protocol.collections, or leave this product out",
        )
    return result


def table(evidence: Evidence) -> TableResult:
    """Every method's mean on every collection, its mean rank, and how its pairs are decided."""
    study = across(evidence)
    order = np.argsort(study.friedman.mean_ranks, kind="stable")
    words = ("better", "worse", "equivalent", "cannot tell")
    rows, lines = [], []
    for number in order:
        said = study.decided[:, number]
        counts = {word: int((said == word).sum()) for word in words}
        low, high = study.intervals[:, number]
        rank = study.friedman.mean_ranks[number]
        for one, mean in zip(study.studies, study.means.iloc[:, number], strict=True):
            rows.append(
                evidence.about(one.dataset)
                | {
                    "method": study.labels[number],
                    "metric": PRIMARY,
                    "mean": mean,
                    "mean_rank": rank,
                    "low": low,
                    "high": high,
                }
                | {word.replace(" ", "_"): count for word, count in counts.items()}
            )
        means = study.means.iloc[:, number]
        best = study.means.max(axis=1)
        cells = [measured(mean, best=mean == best[title]) for title, mean in means.items()]
        interval = f"{low:.1f} to {high:.1f}"
        ends = [f"{rank:.1f}", interval, *map(str, counts.values())]
        lines.append([study.labels[number], *cells, *ends])
    columns = ["Method", *study.means.index, "mean rank", "95%", *words]
    caption = (
        "NDCG@10 on every collection (bold: the highest), the mean rank over collections with its "
        "95% bootstrap interval over collections, and the verdicts on the pairs of a method with "
        "all others: significantly better or worse, equivalent within 0.01 by two one-sided tests, "
        "or neither, each after correction over the pairs of a collection (Holm's or, where "
        "queries form groups, Romano and Wolf's with random signs of groups). "
        f"{study.caption()}"
    )
    first, last = (study.labels[order[place]] for place in (0, -1))
    ranks = study.friedman.mean_ranks[order]
    start = lead(
        f"over {len(study.studies)} collections, {first} has the best mean rank, {ranks[0]:.1f}, "
        f"and {last} the worst, {ranks[-1]:.1f}; "
        f"{share(int((ranks - ranks[0] > study.difference).sum()), len(order) - 1)} others have a "
        f"significantly worse mean rank than the best, which takes a difference of "
        f"{study.difference:.1f} (Nemenyi, {SIGNIFICANT})",
        _alike(study),
    )
    layout = Layout(start, caption, columns, [Section("", lines)])
    return TableResult(pd.DataFrame(rows), layout)


def figure_ranks(evidence: Evidence) -> FigureResult:
    """Mean ranks over collections with their intervals, and the rank on each collection."""
    study = across(evidence)
    order = np.argsort(study.friedman.mean_ranks, kind="stable")
    ranks, intervals = study.friedman.mean_ranks[order], study.intervals[:, order]
    data = pd.DataFrame(
        {
            "edition": evidence.edition,
            "method": [study.labels[number] for number in order],
            "mean_rank": ranks,
            "low": intervals[0],
            "high": intervals[1],
            "critical_difference": study.difference,
        }
        | {
            f"rank_on_{one.dataset.name}": study.ranks[row, order]
            for row, one in enumerate(study.studies)
        }
    )
    figure, axes = figures.new_figure(height=0.8 + 0.098 * len(order))
    for scorer, look in LOOKS.items():
        rows = [row for row, number in enumerate(order) if study.scorer(number) == scorer]
        if not rows:
            continue
        bars = axes.errorbar(
            ranks[rows],
            rows,
            xerr=np.abs(intervals[:, rows] - ranks[rows]),
            linestyle="none",
            markersize=3.2,
            elinewidth=0.7,
            capsize=0,
            **look,
        )
        bars.lines[0].set_label(SCORERS[scorer])
    for row in range(len(study.studies)):
        axes.plot(study.ranks[row, order], range(len(order)), "|", color="#999999", markersize=3)
    end = ranks[0] + study.difference
    axes.plot([ranks[0], end], [-0.9, -0.9], color=figures.VERMILLION)
    axes.text(end, -0.9, f" CD {study.difference:.1f}", ha="left", va="center", fontsize=5.5)
    labels = [study.labels[number] for number in order]
    axes.set_yticks(range(len(order)), labels)
    axes.tick_params(axis="y", labelsize=5.2, length=0)
    axes.set(ylim=(len(order) - 0.4, -1.6), xlabel="mean rank")
    axes.grid(axis="y", visible=False)
    scorer_legend(figure)
    datasets = [one.dataset for one in study.studies]
    figures.small_print(figure, origin_line(datasets, evidence.edition))
    caption = (
        f"Mean rank of {len(order)} methods in NDCG@10 over {len(study.studies)} collections, with "
        "the 95% bootstrap interval over collections; 1 is the best, and grey marks are the ranks "
        "on single collections. The bar on top is Nemenyi's critical difference "
        f"({study.difference:.1f} at {SIGNIFICANT}). {_alike(study)}. {study.caption()}"
    )
    return FigureResult(figure, data, caption)


def figure_wins(evidence: Evidence) -> FigureResult:
    """Share of collections and scorers on which a loss has the higher NDCG@10 than another."""
    study = across(evidence)
    of_scorers = {
        scorer: {
            study.loss(number): number
            for number in range(len(study.labels))
            if study.scorer(number) == scorer
        }
        for scorer in NEURAL
    }
    names = [
        name
        for name in dict.fromkeys(name for some in of_scorers.values() for name in some)
        if all(name in some for some in of_scorers.values() if some)
    ]
    means = study.means.to_numpy()
    wins = np.full((len(names), len(names)), np.nan)
    for a, b in itertools.permutations(range(len(names)), 2):
        gaps = [
            means[:, some[names[a]]] - means[:, some[names[b]]]
            for some in of_scorers.values()
            if some
        ]
        wins[a, b] = float(np.mean(np.concatenate(gaps) > 0))
    order = np.argsort(-np.nan_to_num(wins).sum(axis=1), kind="stable")
    wins, names = wins[np.ix_(order, order)], [names[number] for number in order]
    data = pd.DataFrame(
        [
            {"edition": evidence.edition, "loss": names[a], "other": names[b], "wins": wins[a, b]}
            for a, b in itertools.permutations(range(len(names)), 2)
        ]
    )
    figure = _grid(wins, names)
    datasets = [one.dataset for one in study.studies]
    figures.small_print(figure, origin_line(datasets, evidence.edition))
    several = len([some for some in of_scorers.values() if some])
    caption = (
        "The percentage of the combinations of a collection and a scorer in which the loss of the "
        f"row has a higher NDCG@10 than that of the column, with {len(study.studies)} collections "
        f"and {several} kinds of scorers. These numbers are not tested. {study.caption()}"
    )
    return FigureResult(figure, data, caption)


def _grid(wins: np.ndarray, names: Sequence[str]) -> Figure:
    """A square for each pair of losses, with its number or, if there are many, a colour bar."""
    numbered = len(names) <= NUMBERED
    size = (figures.COLUMN, 0.6 + 0.19 * len(names)) if numbered else (2 * figures.COLUMN, 7.2)
    figure, axes = figures.new_figure(*size)
    aspect = "auto" if numbered else "equal"
    image = axes.imshow(100 * wins, cmap="PuOr_r", vmin=0, vmax=100, aspect=aspect)
    if numbered:
        for a, b in itertools.permutations(range(len(names)), 2):
            shade = "white" if abs(wins[a, b] - 0.5) > 0.35 else "black"
            text = f"{100 * wins[a, b]:.0f}"
            axes.text(b, a, text, ha="center", va="center", fontsize=5, color=shade)
    else:
        bar = figure.colorbar(image, ax=axes, location="top", shrink=0.5, aspect=40)
        bar.set_label("% of comparisons that the row wins")
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=5.5)
    axes.set_yticks(range(len(names)), names, fontsize=5.5)
    axes.grid(False)
    return figure


def _alike(study: Across) -> str:
    test = study.friedman
    verb = "rejects" if test.p_value < SIGNIFICANT else "does not reject"
    return (
        f"Friedman's test over collections {verb} that all methods perform equally (χ² = "
        f"{test.statistic:.1f}, p {p_text(test.p_value)})"
    )


def _resampled(ranks: np.ndarray) -> np.ndarray:
    """Mean ranks of resamples of the collections, ``[resamples, methods]``."""
    n = len(ranks)
    if n <= EXACT:
        chosen = np.array(list(itertools.product(range(n), repeat=n)))
    else:
        chosen = numpy_stream("one_protocol", "collections").integers(0, n, (RESAMPLES, n))
    return ranks[chosen].mean(axis=1)
