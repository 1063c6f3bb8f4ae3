"""Yu (2020): the claims of section 7, C11 to C17, measured on the reported cells of the grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from directrank.papers.claims import Expected, Finding, Outcome
from directrank.papers.evidence import Evidence
from directrank.papers.yu2020_figures import tied_share
from directrank.papers.yu2020_grid import CUTOFFS, TABLES, TWIN, Cell, grid, reported
from directrank.stats.intervals import mean_interval
from directrank.stats.tests import wilcoxon

Pair = tuple[str, str, Expected]
"""Two methods and what is claimed of the first minus the second."""

TREES = "LambdaMART(L)"
OWN_BASELINE = "ApproxNDCG"
SURROGATES = ("ListMLE", "ListNet", "WassRank")


def claim_trees(evidence: Evidence) -> Outcome | None:
    """LambdaMART(L) has the best nDCG of the baselines (C11)."""
    rivals = [name for name in TABLES[4] if name != TREES]
    return _outcome(evidence, [(TREES, rival, "more") for rival in rivals])


def claim_listmle(evidence: Evidence) -> Outcome | None:
    """ListMLE is the worst baseline in nDCG (C12)."""
    rivals = [name for name in TABLES[4] if name != "ListMLE"]
    return _outcome(evidence, [(rival, "ListMLE", "first") for rival in rivals])


def claim_approx_ndcg(evidence: Evidence) -> Outcome | None:
    """ApproxNDCG is the best neural baseline in nDCG (C13)."""
    return _outcome(evidence, [(OWN_BASELINE, rival, "first") for rival in SURROGATES])


def claim_type1(evidence: Evidence) -> Outcome | None:
    """nDCG-type1 outperforms ListMLE, ListNet and WassRank (C14)."""
    return _outcome(evidence, [("nDCG-type1", rival, "first") for rival in SURROGATES])


def claim_types(evidence: Evidence) -> Outcome | None:
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


def claim_direct(evidence: Evidence) -> Outcome | None:
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
        findings.append(finding(linear, relu, 5, "more"))
        shares.append([tied_share(relu), tied_share(linear)])
        worth.append(relu.mean("test", "ndcg@5") - relu.mean("test", "ndcg@5/expected"))
    if not findings:
        return None
    lower = sum(item.effect > 0 for item in findings)
    with_relu, without = 100 * np.mean(shares, axis=0)
    remark = (
        f"R5 is below R4.L for {lower} of {len(findings)} methods. On average {with_relu:.1f}% of "
        f"a test query's pairs of documents are tied in R5 and {without:.1f}% in R4.L; the order "
        f"of the file shifts nDCG@5 in R5 by {100 * np.mean(worth):+.2f} points against the mean "
        "over all orders of ties."
    ).replace("-", "−")
    return Outcome(findings, missing, remark)


def finding(a: Cell, b: Cell, cutoff: int, expected: Expected) -> Finding:
    """One cell against another in nDCG, paired by query over the pooled test folds."""
    metric, folds = f"ndcg@{cutoff}", len(a.runs)
    ours, theirs = a.pooled(metric), b.pooled(metric)
    interval = mean_interval(ours.to_numpy() - theirs.loc[ours.index].to_numpy())
    return Finding(
        comparison=f"{a.label} − {b.label}, nDCG@{cutoff}",
        expected=expected,
        dataset=a.runs[0].dataset,
        sample=f"{len(ours)} test queries" + (f" of {folds} folds" if folds > 1 else ""),
        test="Wilcoxon's signed-rank test over the pooled queries; 95% t interval of the mean",
        effect=interval.mean,
        low=interval.low,
        high=interval.high,
        unit="nDCG",
        p_value=wilcoxon(ours, theirs.loc[ours.index]).p_value,
    )


def _outcome(evidence: Evidence, pairs: Sequence[Pair]) -> Outcome | None:
    """Every pair of reported cells at every cut-off."""
    named = {name for a, b, _ in pairs for name in (a, b)}
    cells = reported(grid(evidence), sorted(named))
    findings, missing = [], []
    for a, b, expected in pairs:
        if a not in cells or b not in cells:
            missing.append(f"{a} against {b}")
            continue
        findings += [finding(cells[a], cells[b], k, expected) for k in CUTOFFS]
    if not findings:
        return None
    held = sum(item.effect > 0 for item in findings)
    remark = f"{held} of {len(findings)} differences of means have the claimed sign."
    return Outcome(findings, missing, remark)
