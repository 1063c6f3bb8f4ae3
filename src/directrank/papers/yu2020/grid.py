"""Yu (2020), section 7: the grid of methods and architectures, and which architecture is reported.

A method is trained with four architectures on five folds. A table reports one architecture of each
method: according to the text the one with the best validation nDCG@5, in the released code the one
with the best *test* nDCG@5. Queries without a relevant document, or with fewer than ten documents,
are removed from every split; means are means of the folds' means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from directrank.papers.shared.evidence import Evidence, FinishedRun
from directrank.papers.shared.methods import Method, by_method, require_equal_folds
from directrank.system.errors import ConfigError
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

#: The methods of each table, in its order.
TABLES = {
    4: ("ListMLE", "ListNet", "ApproxNDCG", "WassRank", "LambdaMART(L)"),
    5: ("Pre-type1", "AP-type1", "nERR@10-type1", "nDCG-type1"),
    6: ("Pre-type2", "AP-type2", "nERR@10-type2", "nDCG-type2"),
    7: ("Pre-type3", "AP-type3", "nERR@10-type3", "nDCG-type3"),
}
TWIN = (*TABLES[5], *TABLES[6], *TABLES[7])

#: Other readings of a baseline's configuration; the paper prints none of them.
READINGS = ("WassRank (20 rounds, gap 100)", "LambdaMART(L), cut 20, unnormalised")

#: Every method, in the order of the tables.
_ORDER = (*TABLES[4], *TWIN, *READINGS)

CUTOFFS = (1, 3, 5, 10, 20)
SELECTED_BY = "ndcg@5"
SELECTIONS = ("validation", "test", "printed")


Grid = Mapping[str, Mapping[str, Method]]
"""Method → architecture (empty for trees) → its runs, a cell."""


def grid(evidence: Evidence) -> dict[str, dict[str, Method]]:
    """All runs of section 7, the methods in the order of the tables.

    Raises:
        DataError: cells have different folds, so their means cannot be compared.
    """
    cells: dict[str, dict[str, Method]] = {name: {} for name in _ORDER}
    for architecture, experiment in (*ARCHITECTURES.items(), ("", TREES)):
        suffix = f" ({architecture})" if architecture else ""
        methods = by_method(
            evidence.runs(experiment), "exclude", variant=architecture, suffix=suffix
        )
        for name, cell in methods.items():
            cells.setdefault(name, {})[architecture] = cell
    require_equal_folds(cell for some in cells.values() for cell in some.values())
    return {name: some for name, some in cells.items() if some}


def ohsumed_cells(evidence: Evidence) -> dict[str, Method]:
    """The methods that were run on OHSUMED, in the order of the paper's tables.

    Raises:
        DataError: methods have different folds.
    """
    runs = [run for experiment in OHSUMED for run in evidence.runs(experiment)]
    methods = by_method(runs, "exclude")
    return {name: methods[name] for name in _ORDER if name in methods}


def select(cells: Mapping[str, Method], by: str, printed: str = "") -> Method | None:
    """The cell of a method that is reported.

    Args:
        cells: architecture → cell.
        by: ``validation`` (the text: best validation nDCG@5), ``test`` (the released code: best
            test nDCG@5) or ``printed`` (the architecture that the paper's table names).
        printed: that architecture.

    Returns:
        The cell; None if the printed architecture was not run.

    Raises:
        ConfigError: the rule is unknown.
    """
    if by not in SELECTIONS:
        raise ConfigError(f"no selection by '{by}'", nearest(by, SELECTIONS))
    if by == "printed":
        return cells.get(printed)
    split = "vali" if by == "validation" else "test"
    return max(cells.values(), key=lambda cell: cell.mean(SELECTED_BY, split))


def reported(cells: Grid, methods: Sequence[str] | None = None) -> dict[str, Method]:
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


def kept_epochs(run: FinishedRun) -> pd.DataFrame:
    """The rows of a run's history at the epochs whose weights were kept, one per trial."""
    fits = run.result.fits
    kept = fits.loc[fits["selected"], ["trial", "candidate", "best_epoch"]]
    history = run.result.history.merge(kept, on=["trial", "candidate"])
    return history[history["epoch"] == history["best_epoch"]]
