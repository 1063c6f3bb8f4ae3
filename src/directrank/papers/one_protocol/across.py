"""All collections together: differences that weigh each of them the same, and who is ahead of whom.

What is said is about other queries of these collections and other trainings; four collections say
little of others. Beside that stands what each collection says of itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from directrank.papers.one_protocol.by_loss import Together, of_most_losses
from directrank.papers.one_protocol.controls import is_again
from directrank.papers.one_protocol.dots import draw, gaps_of
from directrank.papers.one_protocol.methods import (
    NEURAL,
    PRIMARY,
    SCORERS,
    Comparison,
)
from directrank.papers.one_protocol.published import read
from directrank.papers.one_protocol.quality import place
from directrank.papers.shared import figures
from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import Evidence, origin_line
from directrank.papers.shared.format import counted, listed
from directrank.papers.shared.leads import lead
from directrank.papers.shared.product import FigureResult, TableResult
from directrank.papers.shared.tables import Section, TableLayout
from directrank.stats.decisions import SIGNIFICANT, WORDS, between
from directrank.system.errors import DataError

_VARIANTS = {title: variant for variant, title in SCORERS.items()}


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
    def together(self) -> Together:
        """The differences over collections."""
        return Together(self.studies)

    @property
    def labels(self) -> list[str]:
        """The methods' names in print, in the order of the first collection."""
        return self.together.labels

    @cached_property
    def places(self) -> list[list[int]]:
        """Per collection the position of each method among its own."""
        return [[study.labels.index(label) for label in self.labels] for study in self.studies]

    @cached_property
    def decided(self) -> np.ndarray:
        """What each collection says of a method beside another.

        Words of :data:`directrank.stats.decisions.WORDS`, ``[collections, methods, methods]``;
        empty on the diagonal.
        """
        return np.stack(
            [
                between(study.pairs, len(study.labels))[np.ix_(places, places)]
                for study, places in zip(self.studies, self.places, strict=True)
            ]
        )

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
    """Every method's mean and places on every collection, its difference from the best over all of
    them, and how its pairs are decided."""
    study = across(evidence)
    together = study.together
    gaps = gaps_of(together.differences, study.labels)
    rows, lines = [], []
    for gap in gaps.itertuples():
        number, name = gap.number, study.labels[gap.number]
        said = study.decided[:, number]
        counts = {word: int((said == word).sum()) for word in WORDS}
        candidate = name in together.candidates
        cells = []
        for one, places in zip(study.studies, study.places, strict=True):
            mean = together.means.loc[one.dataset.title, name]
            first, last = one.places[places[number]]
            rows.append(
                evidence.about(one.dataset)
                | {
                    "method": name,
                    "metric": PRIMARY,
                    "mean": mean,
                    "first_place": first or pd.NA,
                    "last_place": last or pd.NA,
                    "difference": gap.difference,
                    "half_width": gap.half_width,
                    "may_be_best": candidate,
                }
                | {word.replace(" ", "_"): count for word, count in counts.items()}
            )
            best = mean == together.means.loc[one.dataset.title].max()
            ranked = f" ({place(first, last)})" if first else ""
            cells.append(f"{measured(mean, best=best)}{ranked}")
        difference = measured(gap.difference, gap.half_width).replace("-", "−")
        said_of_pairs = (
            map(str, counts.values()) if number in together.ranked else [""] * len(WORDS)
        )
        lines.append([name, *cells, difference, "yes" if candidate else "", *said_of_pairs])
    columns = ["Method", *together.means.index, "less the first", "may be best", *WORDS]
    caption = (
        "NDCG@10 on every collection (bold: the highest) with the places that follow from the "
        "pairs that differ there, “less the first”: the mean over collections of the difference "
        "from the first method, with its 95% interval, which is not corrected, and “may be best”: "
        "the best over the collections is among these methods with 95% confidence. The last "
        "columns count the verdicts on the pairs of a method with all others: better, worse, "
        f"equivalent within {together.margin:g}, or neither, each after Holm's correction over the "
        f"pairs of a collection, at {SIGNIFICANT}. {said_of_tests(study)} {study.caption()}"
    )
    start = lead(
        f"over {len(study.studies)} collections, {study.labels[gaps['number'].iloc[0]]} has the "
        f"highest mean, and {len(together.candidates)} of {len(together.ranked)} methods may be "
        "the best",
    )
    layout = TableLayout(start, caption, columns, [Section("", lines)])
    data = pd.DataFrame(rows).astype({"first_place": "Int64", "last_place": "Int64"})
    return TableResult(data, layout)


def said_of_tests(study: Across) -> str:
    """Sentences on what the tests cover, and on the controls."""
    distance = study.together.distance
    controls = (
        f"Two methods that hardly differ may be up to {measured(distance)} apart over the "
        "collections, and nothing nearer than that is ranked."
        if distance
        else "No two methods that hardly differ were run on all of them."
    )
    return (
        "Tests and intervals are for other queries (or groups of related queries) of these "
        f"collections and for other trainings. {controls}"
    )


def figure_dots(evidence: Evidence) -> FigureResult:
    """Every method's mean over collections less the highest one, and the same on each of them."""
    study = across(evidence)
    together = study.together
    gaps = gaps_of(together.differences, study.labels)
    order = gaps["number"].to_numpy()
    labels = [study.labels[number] for number in order]
    data = pd.DataFrame(
        {
            "edition": evidence.edition,
            "method": [study.loss(number) for number in order],
            "scorer": [SCORERS[study.scorer(number)] for number in order],
            "metric": PRIMARY,
            "difference": gaps["difference"],
            "half_width": gaps["half_width"],
            "may_be_best": [name in together.candidates for name in labels],
            "distance_of_controls": together.distance,
        }
    )
    means = together.means[labels]
    marks = pd.DataFrame(
        {
            f"difference_on_{one.dataset.name}": (means.iloc[row] - means.iloc[row, 0]).to_numpy()
            for row, one in enumerate(study.studies)
        }
    )
    figure = draw(data, labels[0], marks)
    datasets = [one.dataset for one in study.studies]
    figures.small_print(figure, origin_line(datasets, evidence.edition))
    caption = (
        f"NDCG@10 of {len(order)} methods, minus that of {labels[0]}, the highest: the mean over "
        f"{len(study.studies)} collections with its 95% interval, which is not corrected; grey "
        "lines are the differences on single collections. Losses are ordered by their mean over "
        f"the scorers. Filled: the {len(together.candidates)} methods that may be the best; the "
        "best is among them with 95% confidence. Shaded: the distance of the controls. An arrow "
        f"stands for a method that is further below. {said_of_tests(study)} {study.caption()}"
    )
    headline = (
        f"{len(study.studies)} collections together: {len(together.candidates)} of "
        f"{len(together.ranked)} "
        "methods may be the best"
    )
    return FigureResult(figure, pd.concat([data, marks], axis=1), caption, headline=headline)


def figure_wins(evidence: Evidence) -> FigureResult:
    """In how many comparisons a loss has the higher NDCG@10 than another, by more than controls."""
    study = across(evidence)
    of_scorers = {
        scorer: {
            study.loss(number): number
            for number in range(len(study.labels))
            if study.scorer(number) == scorer
        }
        for scorer in NEURAL
    }
    shown = of_most_losses({scorer: len(some) for scorer, some in of_scorers.items()})
    of_scorers = {scorer: of_scorers[scorer] for scorer in shown}
    names = [
        name
        for name in dict.fromkeys(name for some in of_scorers.values() for name in some)
        if all(name in some for some in of_scorers.values()) and not is_again(name)
    ]
    means = study.together.means.to_numpy()
    near = np.array([one.distance for one in study.studies])
    ahead = np.zeros((len(names), len(names)), dtype=int)
    for a, b in itertools.permutations(range(len(names)), 2):
        gaps = (means[:, some[names[a]]] - means[:, some[names[b]]] for some in of_scorers.values())
        ahead[a, b] = sum(int((gap > near).sum()) for gap in gaps)
    order = np.argsort((ahead.T - ahead).sum(axis=1), kind="stable")
    ahead, names = ahead[np.ix_(order, order)], [names[number] for number in order]
    comparisons = len(study.studies) * len(of_scorers)
    data = pd.DataFrame(
        [
            {
                "edition": evidence.edition,
                "loss": names[a],
                "other": names[b],
                "ahead": ahead[a, b],
                "comparisons": comparisons,
            }
            for a, b in itertools.permutations(range(len(names)), 2)
        ]
    )
    figure = _grid(ahead, names, comparisons)
    datasets = [one.dataset for one in study.studies]
    figures.small_print(figure, origin_line(datasets, evidence.edition))
    caption = (
        f"Each cell says in how many of {comparisons} comparisons "
        f"({counted(len(study.studies), 'collection')}, {counted(len(of_scorers), 'scorer')}) the "
        "loss of the row has a higher NDCG@10 than that of the column, by more than the controls "
        "of the collection are apart. The order is that of comparisons won less lost. These counts "
        "are not tested. "
        f"{study.caption()}"
    )
    everywhere = int((ahead == comparisons).sum())
    headline = (
        f"In {everywhere or 'none'} of {len(data) // 2} pairs is one loss ahead in all "
        f"{comparisons} comparisons"
    )
    return FigureResult(figure, data, caption, headline=headline)


def _grid(ahead: np.ndarray, names: Sequence[str], comparisons: int) -> Figure:
    """A square with its count for each pair of losses; the diagonal is empty."""
    size = 1.3 + 0.15 * len(names)
    figure, axes = figures.new_figure(max(size, figures.COLUMN), max(size, 2.4))
    shown = np.where(np.eye(len(names), dtype=bool), np.nan, ahead)
    axes.imshow(shown, cmap="Blues", vmin=0, vmax=1.4 * comparisons, aspect="equal")
    for a, b in itertools.permutations(range(len(names)), 2):
        axes.text(b, a, str(ahead[a, b]), ha="center", va="center", fontsize=5.5)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.set_xlabel(
        f"… of this loss by more than the controls,\nin so many of {comparisons} comparisons",
        fontsize=6.5,
    )
    axes.set_ylabel("This loss is ahead …", fontsize=6.5)
    axes.tick_params(length=0)
    axes.grid(False)
    return figure
