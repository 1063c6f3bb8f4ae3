"""Yu (2020), section 7: the grid of methods and architectures, and which architecture is reported.

A method is trained in four architectures and five folds. A table gives one architecture of each:
by the text the one with the best validation nDCG@5, in the released code the one with the best
*test* nDCG@5. Queries without a relevant document, or with fewer than ten documents, are filtered
out of every part; a mean is that of the folds' means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from directrank.papers.shared.evidence import Evidence, PlannedRun
from directrank.system.errors import ConfigError, DataError
from directrank.system.registry import nearest

#: Architecture → experiment.
ARCHITECTURES = {
    "R5": "web30k_r5",
    "CE5": "web30k_ce5",
    "R4.L": "web30k_r4l",
    "CE4.L": "web30k_ce4l",
}
TREES = "web30k_trees"
#: The same methods on the real OHSUMED folds, their architecture chosen within each run.
OHSUMED = ("ohsumed_methods", "ohsumed_trees")
GRID = (*ARCHITECTURES.values(), TREES)

#: Methods by the table that gives them, in its order.
TABLES = {
    4: ("ListMLE", "ListNet", "ApproxNDCG", "WassRank", "LambdaMART(L)"),
    5: ("Pre-type1", "AP-type1", "nERR@10-type1", "nDCG-type1"),
    6: ("Pre-type2", "AP-type2", "nERR@10-type2", "nDCG-type2"),
    7: ("Pre-type3", "AP-type3", "nERR@10-type3", "nDCG-type3"),
}
TWIN = (*TABLES[5], *TABLES[6], *TABLES[7])

#: Other readings of a baseline's configuration; the paper prints none of them.
READINGS = ("WassRank (20 rounds, gap 100)", "LambdaMART(L), as in 2020")

CUTOFFS = (1, 3, 5, 10, 20)
SELECTED_BY = "ndcg@5"
SELECTIONS = ("validation", "test", "printed")


@dataclass(frozen=True)
class Cell:
    """A method in one architecture.

    Attributes:
        method: its name.
        architecture: a key of :data:`ARCHITECTURES`; empty for trees.
        runs: one per fold, in their order.
    """

    method: str
    architecture: str
    runs: Sequence[PlannedRun]

    @property
    def label(self) -> str:
        """``AP-type3 (CE4.L)``, as the paper's tables have it."""
        return f"{self.method} ({self.architecture})" if self.architecture else self.method

    def mean(self, split: str, metric: str) -> float:
        """The mean of the folds' means over queries and trials."""
        return float(self._values(split, metric).groupby(level=0).mean().mean())

    def pooled(self, metric: str) -> pd.Series:
        """The value of every test query of all folds, averaged over trials, by fold and id."""
        return self._values("test", metric)

    def _values(self, split: str, metric: str) -> pd.Series:
        if metric not in self._by_query:
            raise DataError(
                f"this run holds no metric '{metric}'",
                "add it to the run's evaluation",
                file=self.runs[0].result.folder,
            )
        return self._by_query.loc[split, metric].dropna()

    @cached_property
    def _by_query(self) -> pd.DataFrame:
        """Every metric averaged over trials, by split, fold and query id."""
        frames = {run.setting("fold"): run.result.per_query for run in self.runs}
        rows = pd.concat(frames, names=["fold"]).reset_index("fold")
        return rows.groupby(["split", "fold", "query_id"]).mean(numeric_only=True)


Grid = Mapping[str, Mapping[str, Cell]]
"""Method → architecture → what was run."""


def grid(evidence: Evidence) -> dict[str, dict[str, Cell]]:
    """Everything that was run of section 7, the methods in the order of the tables.

    Raises:
        DataError: cells of different folds, which no mean could be compared over.
    """
    known = [name for names in TABLES.values() for name in names]
    found: dict[str, dict[str, Cell]] = {name: {} for name in (*known, *READINGS)}
    for architecture, experiment in (*ARCHITECTURES.items(), ("", TREES)):
        for name, runs in by_method(evidence.runs(experiment)).items():
            found.setdefault(name, {})[architecture] = Cell(name, architecture, runs)
    cells = {name: cells for name, cells in found.items() if cells}
    require_equal_folds([cell for some in cells.values() for cell in some.values()])
    return cells


def ohsumed_cells(evidence: Evidence) -> dict[str, Cell]:
    """The methods that were run on OHSUMED, in the order of the paper's tables.

    Raises:
        DataError: methods of different folds.
    """
    runs = [run for experiment in OHSUMED for run in evidence.runs(experiment)]
    found = {name: Cell(name, "", some) for name, some in by_method(runs).items()}
    order = [*(name for names in TABLES.values() for name in names), *READINGS]
    cells = {name: found[name] for name in order if name in found}
    require_equal_folds([*cells.values()])
    return cells


def by_method(runs: Sequence[PlannedRun]) -> dict[str, list[PlannedRun]]:
    """The runs of each method by fold."""
    grouped: dict[str, list[PlannedRun]] = {}
    for run in sorted(runs, key=lambda run: run.setting("fold")):
        grouped.setdefault(run.setting("method"), []).append(run)
    return grouped


def require_equal_folds(cells: Sequence[Cell]) -> None:
    """Raise a :class:`DataError` where two cells were not run on the same folds."""
    first: tuple[Cell, list[int]] | None = None
    for cell in cells:
        folds = [run.setting("fold") for run in cell.runs]
        if first is None:
            first = cell, folds
        elif folds != first[1]:
            raise DataError(
                f"{cell.label} was run on the folds {folds}, {first[0].label} on {first[1]}",
                "run every method once on each fold",
            )


def select(cells: Mapping[str, Cell], by: str, printed: str = "") -> Cell | None:
    """The cell of a method that is reported.

    Args:
        cells: architecture → cell.
        by: ``validation`` (the text: best validation nDCG@5), ``test`` (the released code: best
            test nDCG@5) or ``printed`` (the architecture that the paper's table names).
        printed: that architecture.

    Returns:
        None where the printed architecture was not run.

    Raises:
        ConfigError: an unknown rule.
    """
    if by not in SELECTIONS:
        raise ConfigError(f"no selection by '{by}'", nearest(by, SELECTIONS))
    if by == "printed":
        return cells.get(printed)
    split = "vali" if by == "validation" else "test"
    return max(cells.values(), key=lambda cell: cell.mean(split, SELECTED_BY))


def reported(cells: Grid, methods: Sequence[str] | None = None) -> dict[str, Cell]:
    """The cell with the best validation nDCG@5 of each method that was run, or of ``methods``."""
    chosen = {
        method: select(some, "validation")
        for method, some in cells.items()
        if methods is None or method in methods
    }
    return {method: cell for method, cell in chosen.items() if cell is not None}


def printed_architectures(evidence: Evidence) -> dict[str, str]:
    """Method → the architecture that the paper's tables name; empty for trees."""
    names: dict[str, str] = {}
    for number in TABLES:
        for row in evidence.published(f"yu2020_table{number}").itertuples():
            names[row.method] = row.architecture if isinstance(row.architecture, str) else ""
    return names


def kept_epochs(run: PlannedRun) -> pd.DataFrame:
    """The rows of a run's history at the epochs whose weights were kept, one per trial."""
    fits = run.result.fits
    kept = fits.loc[fits["selected"], ["trial", "candidate", "best_epoch"]]
    history = run.result.history.merge(kept, on=["trial", "candidate"])
    return history[history["epoch"] == history["best_epoch"]]
