"""Yu2020's claims that are no comparisons of its reported methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from directrank.papers.shared.evidence import Evidence, has_runs
from directrank.papers.shared.findings import (
    MORE,
    Finding,
    Measurement,
    Outcome,
    difference,
    mean_of,
    value,
    welch_over_trials,
)
from directrank.papers.shared.format import counted, signed
from directrank.papers.shared.methods import Method, groups_of, paired_values
from directrank.papers.yu2020.figures import tied_share
from directrank.papers.yu2020.grid import (
    GRID,
    OHSUMED,
    READINGS,
    TWIN,
    grid,
    ohsumed_cells,
    reported,
)
from directrank.stats.estimates import Estimate
from directrank.system.seeds import numpy_stream

TREES = "LambdaMART(L)"
OWN_BASELINE = "ApproxNDCG"
#: “Some 300 trees” means a number between these.
TREES_AT_BEST = (200, 400)

#: “Hardly goes with” means a rank correlation no further from zero than this.
WEAK = 0.3

#: Orders agree if Kendall's τ is at least this.
AGREES = 0.8

#: The folds from which on the error of Kendall's τ is that of the jackknife over them.
LEAST_FOLDS = 3

#: The number of bootstrap samples for it where there are fewer.
DRAWS = 500


def reported_cells(evidence: Evidence, *experiments: str) -> dict[str, Method]:
    """The cell of the grid that is reported for each method."""
    return reported(grid(evidence))


def claim_output(evidence: Evidence) -> Outcome | None:
    """ReLU on the last layer harms methods that optimise a metric, because of ties (C17)."""
    cells = grid(evidence)
    findings, missing, shares, worth = [], [], [], []
    for method in (OWN_BASELINE, *TWIN):
        linear, relu = (cells.get(method, {}).get(name) for name in ("R4.L", "R5"))
        if linear is None or relu is None:
            missing.append(f"{method} in R5 and R4.L")
            continue
        findings.append(difference(linear, relu, "ndcg@5", "nDCG@5", MORE, "nDCG"))
        shares.append([tied_share(relu), tied_share(linear)])
        worth.append(relu.mean("ndcg@5") - relu.mean("ndcg@5/expected"))
    if not findings:
        return None
    lower = sum(item.effect > 0 for item in findings)
    with_relu, without = 100 * np.mean(shares, axis=0)
    remark = (
        f"R5 is below R4.L for {lower} of {len(findings)} methods. On average {with_relu:.1f}% of "
        f"a test query's pairs of documents are tied in R5 and {without:.1f}% in R4.L; the order "
        f"of the file shifts nDCG@5 in R5 by {signed(100 * float(np.mean(worth)), 2)} points "
        "against the mean over all orders of ties."
    )
    return Outcome(findings, missing, remark)


def claim_nerr(on_grid: Evidence | None, on_ohsumed: Evidence | None) -> Outcome | None:
    """Results in nERR agree with those in nDCG: the orders of the methods are nearly the same
    (D23); see :func:`_agreement` for the error of Kendall's τ.
    """
    if on_grid is not None and has_runs(on_grid, *GRID):
        found, remark = reported(grid(on_grid)), ""
    elif on_ohsumed is not None and has_runs(on_ohsumed, *OHSUMED):
        found, remark = ohsumed_cells(on_ohsumed), "Measured on OHSUMED instead of Web30K."
    else:
        return None
    cells = [cell for name, cell in found.items() if name not in READINGS]
    if len(cells) < 3:
        return None
    item = Finding(
        "Kendall's τ between the orders by nERR@10 and by nDCG@10",
        value(low=AGREES),
        cells[0].dataset,
        "",
        _agreement(cells, ("nerr@10", "ndcg@10")),
    )
    return Outcome([item], (), remark)


def _agreement(cells: Sequence[Method], metrics: tuple[str, str]) -> Measurement:
    """Kendall's τ between the orders of methods by the means of two metrics.

    Where there are three folds or more, its error is that of the jackknife over the folds, each of
    which has queries and trainings of its own. With fewer folds, bootstrap samples are drawn of the
    queries, or of their groups, and for each method of its trainings; if a method has a single one,
    which is not the same in each training, the error is not known.
    """
    values = [[cell.trial_values(metric) for cell in cells] for metric in metrics]
    paired_values(cells, metrics[0])  # which makes sure that the queries are the same
    index = values[0][0].index
    both = [[each.to_numpy() for each in of_metric] for of_metric in values]
    queries, trials = len(index), [each.shape[1] for each in both[0]]

    def tau(chosen: np.ndarray, of_methods: Sequence[np.ndarray] | None = None) -> float:
        means = [
            [
                each[chosen].mean() if of_methods is None else each[chosen][:, of_methods[m]].mean()
                for m, each in enumerate(of_metric)
            ]
            for of_metric in both
        ]
        return float(stats.kendalltau(*means).statistic)

    every, sample = tau(np.arange(queries)), f"{len(cells)} methods, {queries} queries"
    folds = index.get_level_values("fold").to_numpy()
    n_folds = len(np.unique(folds))
    if n_folds >= LEAST_FOLDS:
        left_out = np.array([tau(np.flatnonzero(folds != fold)) for fold in np.unique(folds)])
        error = math.sqrt((n_folds - 1) * left_out.var())
        test, freedom = f"jackknife over {n_folds} folds", float(n_folds - 1)
    elif all(cell.deterministic or cell.n_trials > 1 for cell in cells):
        groups = groups_of(cells[0], index)
        of_group = np.arange(queries) if groups is None else pd.factorize(groups)[0]
        places = [np.flatnonzero(of_group == group) for group in range(of_group.max() + 1)]
        stream = numpy_stream("yu2020", "claims", "nerr")
        drawn = [
            tau(
                np.concatenate([places[group] for group in chosen]),
                [stream.integers(0, count, count) for count in trials],
            )
            for chosen in stream.integers(0, len(places), (DRAWS, len(places)))
        ]
        error, freedom = float(np.std(drawn, ddof=1)), math.inf
        drawn_of = "queries" if groups is None else "groups of queries"
        test = f"{DRAWS} bootstrap samples of the {drawn_of} and of the trainings"
        sample += f", {max(trials)} trainings"
    else:
        error, freedom, test = math.nan, 1.0, "none, because a method was trained once"
    estimate = Estimate(every, error, freedom, queries)
    return Measurement(test, sample, estimate, estimate.p_differs())


#: Methods whose objective nDCG is said to track, and the one whose objective it does not track
#: (section 7.2).
FAITHFUL = ("ListNet", "ListMLE", OWN_BASELINE, "nERR@10-type3", "AP-type3", "nDCG-type3")
UNFAITHFUL = "WassRank"

#: Those of type 3, whose curves are said to be smooth.
SMOOTH = tuple(name for name in FAITHFUL if name.endswith("type3"))

#: The methods whose curves are said to zigzag.
ZIGZAG = ("ListNet", "ListMLE")

_CURVES = "one number per curve, of the validation set, a curve per fold and trial"


def claim_consistency(evidence: Evidence) -> Outcome | None:
    """Validation nDCG@5 tracks the training objective, but hardly WassRank's loss (D11).

    The rank correlation over a run's epochs is one number, because successive epochs are not
    independent. The test is over folds and trials, of Fisher's transform.
    """
    cells = reported(grid(evidence))
    findings = []
    for method in (*FAITHFUL, UNFAITHFUL):
        if method not in cells:
            continue
        along = np.arctanh(np.clip(_per_curve(cells[method], _correlation), -0.999, 0.999))
        wide = float(np.arctanh(WEAK))
        claimed = value(-wide, wide) if method == UNFAITHFUL else MORE
        findings.append(
            Finding(
                comparison=f"correlation of −train loss and nDCG@5, {cells[method].label}",
                claimed=claimed,
                dataset=cells[method].dataset,
                unit="(Fisher's z)",
                measurement=mean_of(along, counted(len(along), "curve"), f"t test, {_CURVES}"),
            )
        )
    missing = [name for name in (*FAITHFUL, UNFAITHFUL) if name not in cells]
    return Outcome(findings, missing)


def claim_smoothness(evidence: Evidence) -> Outcome | None:
    """Validation nDCG@5 changes less from epoch to epoch with type 3 than with ApproxNDCG (D12)."""
    return _curves(evidence, (OWN_BASELINE,), "mean |change| per epoch", _jump, "nDCG@5")


def claim_zigzag(evidence: Evidence) -> Outcome | None:
    """Curves of ListNet and ListMLE change direction more often than those of type 3 (D20)."""
    return _curves(evidence, ZIGZAG, "share of epochs at which the curve turns", _turns, "share")


def _curves(
    evidence: Evidence,
    rough: Sequence[str],
    what: str,
    number: Callable[[pd.DataFrame], float],
    unit: str,
) -> Outcome | None:
    """Whether a number per validation curve is larger for ``rough`` methods than for type 3."""
    cells = reported(grid(evidence))
    findings, missing = [], []
    for first in rough:
        for second in SMOOTH:
            if first not in cells or second not in cells:
                missing.append(f"{first} against {second}")
                continue
            of_first, of_second = (_per_curve(cells[name], number) for name in (first, second))
            test = welch_over_trials(of_first, of_second)
            sample = f"{len(of_first)} against {counted(len(of_second), 'curve')}"
            findings.append(
                Finding(
                    comparison=f"{what}, {cells[first].label} − {cells[second].label}",
                    claimed=MORE,
                    dataset=cells[first].dataset,
                    unit=unit,
                    measurement=Measurement(
                        f"Welch's t test, {_CURVES}", sample, test.estimate, test.p_value
                    ),
                )
            )
    return Outcome(findings, missing)


def claim_overfitting(evidence: Evidence) -> Outcome | None:
    """LambdaMART(L) overfits after some 300 trees, where validation is best; later, test falls
    (D19).

    The fall is measured on the test set, since the validation set chose the number of trees.
    """
    cell = reported(grid(evidence)).get(TREES)
    if cell is None or "test_ndcg@5" not in cell.runs[0].result.history:
        return None
    best = _per_curve(cell, lambda history: float(history["vali_metric"].idxmax()))
    fall = _per_curve(cell, _fall)
    sample = counted(len(best), "curve")
    parts = (
        ("trees where validation nDCG@5 is best", value(*TREES_AT_BEST), "trees", best),
        ("test nDCG@5 at these − with all trees", MORE, "nDCG@5", fall),
    )
    return Outcome(
        [
            Finding(
                f"{name}, {TREES}",
                claimed,
                cell.dataset,
                unit,
                mean_of(values, sample, "t test over folds and trials"),
            )
            for name, claimed, unit, values in parts
        ]
    )


def _per_curve(cell: Method, number: Callable[[pd.DataFrame], float]) -> np.ndarray:
    """A number per fold and trial, from the history of the candidate that was kept."""
    return np.array(
        [
            number(history.set_index("epoch").sort_index())
            for run in cell.runs
            for _, history in run.kept_history.groupby("trial")
        ]
    )


def _correlation(history: pd.DataFrame) -> float:
    ranks = stats.spearmanr(-history["train_loss"], history["vali_metric"])
    return float(np.nan_to_num(ranks.statistic))


def _jump(history: pd.DataFrame) -> float:
    return float(history["vali_metric"].diff().abs().mean())


def _turns(history: pd.DataFrame) -> float:
    """The share of inner epochs at which a rise is followed by a fall, or a fall by a rise."""
    steps = np.sign(history["vali_metric"].diff().dropna().to_numpy())
    return float(np.mean(steps[1:] * steps[:-1] < 0)) if len(steps) > 1 else 0.0


def _fall(history: pd.DataFrame) -> float:
    test = history["test_ndcg@5"].ffill().bfill()
    return float(test.loc[history["vali_metric"].idxmax()] - test.iloc[-1])
