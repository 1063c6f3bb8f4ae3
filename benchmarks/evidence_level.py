"""The level of the study's tests on its own collections: how often they find what is not there.

    python benchmarks/evidence_level.py [COLLECTION ...]

Writes benchmarks/results/evidence_level.csv and .md, in which it leaves the rows of other
collections as they are; takes half an hour on one core.

The published values of a collection are the population. Every method's mean is moved to the same
value, so that no pair differs in truth. A study draws as many groups of queries as the collection
has, with replacement, and trains every method anew on each fold: a training's distances from its
method's mean, query by query, are a random combination of those of the published trainings, with
their covariance. So groups keep their sizes and skew, and trainings their effect on every query.

Where the first training of a fold chooses the configuration for all, a share of the variance of
trainings is one draw for all of them: what :data:`directrank.stats.two_way.OF_CHOICE` says, which
the tests take into account.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.methods import PRIMARY
from directrank.papers.one_protocol.published import Published, read
from directrank.papers.shared.tables import markdown_rows
from directrank.stats.clusters import clustered_mean
from directrank.stats.estimates import of_mean
from directrank.stats.tests import holm
from directrank.stats.two_way import OF_CHOICE, Crossed, difference_between_folds
from directrank.system.io import write_csv, write_text
from directrank.system.seeds import numpy_stream

ROOT = Path(__file__).parents[1]
OUT = ROOT / "benchmarks/results/evidence_level.csv"
LEVEL = 0.05
COLLECTIONS = ("msrd", "ohsumed", "mq2008", "clueweb09")

#: With one, the folds tell how much trainings matter.
TRAININGS = (1, 3, 5)

#: Collections on which the first training of a fold chooses for all (`tune_in: first_trial`).
ONE_CHOICE = ("msrd",)

#: Methods of a study (None for all) → the number of studies. With all methods, those of ClueWeb09
#: take little time, and 400 leave open whether its level is kept.
STUDIES = {10: 800, None: 400}
OF_CLUEWEB09 = 1600


@dataclass(frozen=True)
class Population:
    """A collection's published values, all means moved to zero.

    Attributes:
        methods: ``[Q, M]``, means over trainings.
        trainings: ``[T, Q, M]``, the trainings' distances from them.
        fold, group: ``[Q]``.
    """

    methods: np.ndarray
    trainings: np.ndarray
    fold: np.ndarray
    group: np.ndarray

    def study(
        self,
        methods: Sequence[int] | np.ndarray,
        trainings: int,
        stream: np.random.Generator,
        shared: float = 0.0,
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """One study of some methods: their values ``[trainings, Q]``, groups and folds.

        The trainings of a fold have a ``shared`` part of their variance in common.
        """
        queries, groups = self._drawn(stream)
        fold = self.fold[queries]
        known = len(self.trainings)
        values = np.empty((len(methods), trainings, len(queries)))
        for number in np.unique(fold):
            place = fold == number
            own = queries[place]
            apart = self.trainings[:, own][:, :, methods]
            # The distances of T trainings from their mean have T - 1 degrees of freedom.
            by = stream.normal(0, (known - 1) ** -0.5, (len(methods), trainings, known))
            if shared:
                common = stream.normal(0, (known - 1) ** -0.5, (len(methods), 1, known))
                by = (1 - shared) ** 0.5 * by + shared**0.5 * common
            moved = np.einsum("mst,tqm->msq", by, apart, optimize=True)
            values[:, :, place] = self.methods[own][:, methods].T[:, None] + moved
        return list(values), groups, fold

    def _drawn(self, stream: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The queries of groups that are drawn, and the number of each one's draw."""
        order = np.argsort(self.group, kind="stable")
        ends = np.searchsorted(self.group[order], np.arange(self.group.max() + 2))
        drawn = stream.integers(0, len(ends) - 1, len(ends) - 1)
        queries = [order[ends[group] : ends[group + 1]] for group in drawn]
        return np.concatenate(queries), np.repeat(np.arange(len(drawn)), list(map(len, queries)))


def population(published: Published) -> Population:
    """That of the ranked methods of a collection, by its published values in the primary metric."""
    values = np.stack([published.trainings(PRIMARY)[one] for one in published.ranked], axis=2)
    means = values.mean(axis=0)
    names = np.arange(len(means)) if published.groups is None else published.groups
    groups = np.unique(names, return_inverse=True)[1]
    return Population(means - means.mean(axis=0), values - means, published.folds, groups)


def found(
    values: Sequence[np.ndarray], groups: np.ndarray, folds: np.ndarray, one_choice: bool
) -> tuple[float, bool, bool]:
    """What a study finds: the share of pairs with p below the level, whether any is below it after
    Holm's correction, and whether a test over queries alone is, for the first pair."""
    places = np.triu_indices(len(values), 1)
    if len(values[0]) > 1:
        crossed = Crossed(values, groups, folds, [one_choice] * len(values))
        p_values = crossed.differences(*places)["p_value"].to_numpy()
    else:
        tests = [
            difference_between_folds(values[a], values[b], groups, folds)
            for a, b in zip(*places, strict=True)
        ]
        p_values = np.array([test.p_differs() for test in tests])
    gaps = values[0].mean(axis=0) - values[1].mean(axis=0)
    independent = len(np.unique(groups)) == len(groups)
    over_queries = of_mean(gaps) if independent else clustered_mean(gaps, groups)
    return (
        float(np.mean(p_values < LEVEL)),
        bool((holm(p_values) < LEVEL).any()),
        over_queries.p_differs() < LEVEL,
    )


def simulated(
    name: str,
    people: Population,
    size: int | None,
    trainings: int,
    studies: int,
    one_choice: bool,
) -> Iterator[dict[str, object]]:
    """Rows of the table for one design."""
    stream = numpy_stream("evidence_level", name, size or 0, trainings)
    shared = OF_CHOICE if one_choice else 0.0
    every = people.methods.shape[1]
    chosen = size or every
    results = np.empty((studies, 3))
    for number in range(studies):
        study = people.study(stream.permutation(every)[:chosen], trainings, stream, shared)
        results[number] = found(*study, one_choice)
    mean, error = results.mean(axis=0), results.std(axis=0, ddof=1) / studies**0.5
    pairs = chosen * (chosen - 1) // 2
    tests = (
        ("one test", 1, 0),
        ("family, Holm", pairs, 1),
        ("one test over queries alone", 1, 2),
    )
    for test, count, place in tests:
        yield {
            "collection": name,
            "queries": len(people.fold),
            "groups": int(people.group.max()) + 1,
            "trainings": trainings,
            "one_choice": one_choice,
            "methods": chosen,
            "test": test,
            "tests": count,
            "studies": studies,
            "rejected": round(mean[place], 5),
            "standard_error": round(error[place], 5),
        }


def main(collections: Sequence[str]) -> None:
    """Simulate every design and write the table."""
    rows: list[dict[str, object]] = []
    for name in collections:
        file = ROOT / f"paper_tables/real/one_protocol/per_query_{name}.parquet"
        people = population(read(file))
        designs = [(trainings, False) for trainings in TRAININGS]
        if name in ONE_CHOICE:
            designs.append((TRAININGS[-1], True))
        for trainings, one_choice in designs:
            for size, studies in STUDIES.items():
                if trainings == 1 and size is None:
                    continue  # only the papers' own tables have methods that were trained once
                if size is None and name == "clueweb09":
                    studies = OF_CLUEWEB09
                rows += simulated(name, people, size, trainings, studies, one_choice)
                print(pd.DataFrame(rows[-3:]).to_string(header=False), flush=True)
    data = pd.DataFrame(rows)
    if OUT.is_file():
        old = pd.read_csv(OUT)
        data = pd.concat([old[~old["collection"].isin(collections)], data])
    data = data.sort_values(
        "collection", key=lambda names: names.map(COLLECTIONS.index), kind="stable"
    )
    write_csv(OUT, data)
    lines = [
        [
            row.collection,
            str(row.groups),
            f"{row.trainings}, one choice" if row.one_choice else str(row.trainings),
            f"{row.test}, of {row.tests} pairs"
            if row.tests > 1
            else f"{row.test}, of {row.methods} methods",
            f"{100 * row.rejected:.1f} ± {100 * row.standard_error:.1f}",
        ]
        for row in data.itertuples()
    ]
    columns = ["collection", "groups", "trainings", "test at 5 %", "finds what is not there, %"]
    write_text(OUT.with_suffix(".md"), "\n".join([*markdown_rows(columns, lines), ""]))


if __name__ == "__main__":
    main(sys.argv[1:] or COLLECTIONS)
