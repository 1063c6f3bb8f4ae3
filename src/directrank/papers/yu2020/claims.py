"""Yu (2020): the claims of section 7, measured on the reported cells of the grid.

Where an edition runs nothing of the grid, which is of Web30K, claims about methods are measured on
OHSUMED, and say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from directrank.papers.shared.claims import (
    Expected,
    Finding,
    Outcome,
    difference_over_trials,
    has_runs,
)
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import signed
from directrank.papers.shared.methods import Method, paired_values
from directrank.papers.yu2020.figures import tied_share
from directrank.papers.yu2020.grid import GRID, OHSUMED, TABLES, TWIN, grid, ohsumed_cells, reported
from directrank.papers.yu2020.tables import MAP_CODE, NDCG
from directrank.stats.intervals import mean_interval
from directrank.stats.tests import wilcoxon

Pair = tuple[str, str, Expected]
"""Two methods and what is claimed of the first minus the second."""

ELSEWHERE = "Measured on OHSUMED, in the place of Web30K."

TREES = "LambdaMART(L)"
OWN_BASELINE = "ApproxNDCG"
SURROGATES = ("ListMLE", "ListNet", "WassRank")


def claim_trees(*evidence: Evidence | None) -> Outcome | None:
    """LambdaMART(L) has the best nDCG of the baselines (C11)."""
    rivals = [name for name in TABLES[4] if name != TREES]
    return _outcome(evidence, [(TREES, rival, "more") for rival in rivals])


def claim_listmle(*evidence: Evidence | None) -> Outcome | None:
    """ListMLE is the worst baseline in nDCG (C12)."""
    rivals = [name for name in TABLES[4] if name != "ListMLE"]
    return _outcome(evidence, [(rival, "ListMLE", "first") for rival in rivals])


def claim_approx_ndcg(*evidence: Evidence | None) -> Outcome | None:
    """ApproxNDCG is the best neural baseline in nDCG (C13)."""
    return _outcome(evidence, [(OWN_BASELINE, rival, "first") for rival in SURROGATES])


def claim_type1(*evidence: Evidence | None) -> Outcome | None:
    """nDCG-type1 outperforms ListMLE, ListNet and WassRank (C14)."""
    return _outcome(evidence, [("nDCG-type1", rival, "more") for rival in SURROGATES])


def claim_types(*evidence: Evidence | None) -> Outcome | None:
    """Type 2 improves precision and AP, nERR slightly; type 3 improves all four (C15)."""
    first, second, third = TABLES[5], TABLES[6], TABLES[7]
    expected: Mapping[str, Expected] = {"Pre-type2": "more", "AP-type2": "more"}
    pairs = [
        (changed, plain, expected.get(changed, "first"))
        for plain, changed in zip(first, second, strict=True)
        if changed != "nDCG-type2"
    ]
    pairs += [(changed, plain, "more") for plain, changed in zip(first, third, strict=True)]
    return _outcome(evidence, pairs)


def claim_direct(*evidence: Evidence | None) -> Outcome | None:
    """AP-type3 and nDCG-type3 beat ApproxNDCG and come close to LambdaMART(L) from below (C16)."""
    own = ("AP-type3", "nDCG-type3")
    pairs: list[Pair] = [(name, OWN_BASELINE, "more") for name in own]
    return _outcome(evidence, [*pairs, *((TREES, name, "first") for name in own)])


def claim_output(evidence: Evidence) -> Outcome | None:
    """ReLU on the last layer lowers methods that optimise a metric, because of ties (C17)."""
    cells = grid(evidence)
    findings, missing, shares, worth = [], [], [], []
    for method in (OWN_BASELINE, *TWIN):
        linear, relu = (cells.get(method, {}).get(name) for name in ("R4.L", "R5"))
        if linear is None or relu is None:
            missing.append(f"{method} in R5 and R4.L")
            continue
        findings.append(finding(linear, relu, "nDCG@5", NDCG["nDCG@5"], "more"))
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


def claim_map(*evidence: Evidence | None) -> Outcome | None:
    """ListMLE is the best baseline in MAP as the released code computes it (D09)."""
    rivals = [name for name in TABLES[4] if name != "ListMLE"]
    pairs: list[Pair] = [("ListMLE", rival, "first") for rival in rivals]
    return _outcome(evidence, pairs, MAP_CODE)


def claim_poor(*evidence: Evidence | None) -> Outcome | None:
    """Precision, AP and nERR with type 1 are below every baseline in nDCG (D10)."""
    poor = [name for name in TABLES[5] if name != "nDCG-type1"]
    return _outcome(evidence, [(rival, name, "more") for name in poor for rival in TABLES[4]])


#: Methods whose objective nDCG is said to go with, and the one whose it does not (section 7.2).
FAITHFUL = ("ListNet", "ListMLE", OWN_BASELINE, "nERR@10-type3", "AP-type3", "nDCG-type3")
UNFAITHFUL = "WassRank"


def claim_consistency(evidence: Evidence) -> Outcome | None:
    """Validation nDCG@5 goes with what training optimises, but hardly with WassRank's loss (D11).

    Epochs follow each other, so they are fewer independent observations than the test counts.
    """
    cells = reported(grid(evidence))
    findings = []
    expected: Expected
    for method in (*FAITHFUL, UNFAITHFUL):
        if method not in cells:
            continue
        epochs = _epochs(cells[method])
        if len(epochs) < 4:
            continue
        expected = "same" if method == UNFAITHFUL else "more"
        rank_correlation = stats.spearmanr(-epochs["train_loss"], epochs["vali_metric"])
        # Fisher's transformation, with the variance that Spearman's coefficient has.
        middle = np.arctanh(np.clip(rank_correlation.statistic, -0.999999, 0.999999))
        wide = 1.96 * np.sqrt(1.06 / (len(epochs) - 3))
        findings.append(
            Finding(
                comparison=f"correlation of −train loss and nDCG@5, {cells[method].label}",
                expected=expected,
                dataset=cells[method].dataset,
                sample=f"{len(epochs)} epochs",
                test="Spearman's rank correlation over epochs, which are not independent",
                effect=float(rank_correlation.statistic),
                low=float(np.tanh(middle - wide)),
                high=float(np.tanh(middle + wide)),
                unit="",
                p_value=float(rank_correlation.pvalue),
            )
        )
    missing = [name for name in (*FAITHFUL, UNFAITHFUL) if name not in cells]
    return Outcome(findings, missing, "Fold 1.") if findings else None


def claim_smoothness(evidence: Evidence) -> Outcome | None:
    """Validation nDCG@5 jumps less from epoch to epoch with type 3 than with ApproxNDCG (D12)."""
    cells = reported(grid(evidence))
    smooth = [name for name in FAITHFUL if name.endswith("type3") and name in cells]
    if OWN_BASELINE not in cells or not smooth:
        return None
    jumps = {
        name: _epochs(cells[name])["vali_metric"].diff().dropna().abs().to_numpy()
        for name in (OWN_BASELINE, *smooth)
    }
    findings = []
    for name in smooth:
        findings.append(
            Finding.of(
                *difference_over_trials(jumps[OWN_BASELINE], jumps[name]),
                comparison=f"mean |change| per epoch, {OWN_BASELINE} − {cells[name].label}",
                expected="more",
                dataset=cells[name].dataset,
                sample=f"{len(jumps[OWN_BASELINE])} against {len(jumps[name])} steps",
                test="Welch's t test over the steps from epoch to epoch",
                unit="nDCG@5",
            )
        )
    return Outcome(findings, (), "Fold 1.")


def _epochs(cell: Method) -> pd.DataFrame:
    """Training loss and validation metric per epoch of the first fold's run, over its trials."""
    history = cell.runs[0].result.history
    return history.groupby("epoch")[["train_loss", "vali_metric"]].mean()


def finding(a: Method, b: Method, heading: str, metric: str, expected: Expected) -> Finding:
    """One cell against another, paired by query over the pooled test folds.

    Args:
        a, b: the cells; the effect is the first minus the second.
        heading: the metric in print.
        metric: its column in the results.
        expected: what is claimed.
    """
    folds = len(a.runs)
    ours, theirs = paired_values([a, b], metric)
    return Finding.of(
        mean_interval(ours.to_numpy() - theirs.to_numpy()),
        wilcoxon(ours, theirs).p_value,
        comparison=f"{a.label} − {b.label}, {heading}",
        expected=expected,
        dataset=a.dataset,
        sample=f"{len(ours)} test queries" + (f" of {folds} folds" if folds > 1 else ""),
        test="Wilcoxon's signed-rank test over the pooled queries; 95% t interval of the mean",
        unit=heading.partition("@")[0],
    )


def _outcome(
    evidence: Sequence[Evidence | None], pairs: Sequence[Pair], metrics: Mapping[str, str] = NDCG
) -> Outcome | None:
    """Every pair of methods in every metric.

    Args:
        evidence: of a table of the grid and of the table on OHSUMED, which counts where nothing
            was run of the grid; None for one that the edition does not make.
        pairs: methods and what is claimed of them.
        metrics: heading → column of the results.
    """
    on_grid, on_ohsumed = evidence
    if on_grid is not None and has_runs(on_grid, *GRID):
        cells, remarks = reported(grid(on_grid)), []
    elif on_ohsumed is not None and has_runs(on_ohsumed, *OHSUMED):
        cells, remarks = ohsumed_cells(on_ohsumed), [ELSEWHERE]
    else:
        return None
    findings, missing = [], []
    for a, b, expected in pairs:
        if a not in cells or b not in cells:
            missing.append(f"{a} against {b}")
            continue
        findings += [finding(cells[a], cells[b], *metric, expected) for metric in metrics.items()]
    if not findings:
        return None
    held = sum(item.effect > 0 for item in findings)
    remarks.append(f"{held} of {len(findings)} differences of means have the claimed sign.")
    return Outcome(findings, missing, " ".join(remarks))
