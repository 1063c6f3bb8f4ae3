"""How Burges2006's claims about NDCG are measured; that about speed is beside its figure."""

from __future__ import annotations

from collections.abc import Sequence

from directrank.papers.burges2006.choices import LEVEL, lambda_functions
from directrank.papers.burges2006.ndcg import (
    LEVELS,
    METHODS,
    compare,
    compare_leads,
    curves_of,
    pairs,
)
from directrank.papers.shared.claims import Expected, Finding, Outcome
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.methods import Method
from directrank.stats.estimates import Estimate

#: Truncation levels that count as the larger ones.
LARGER = LEVELS[5:]


def claim_better(
    artificial: Evidence, web: Evidence | None, small: Evidence | None
) -> Outcome | None:
    """LambdaRank above RankNet on artificial and Web data, on the small set about equal (C23).

    Args:
        artificial: of Figure 2, left.
        web: of Figure 3, None where the edition does not draw it.
        small: of Figure 2, right, likewise.
    """
    parts: tuple[tuple[Evidence | None, str, Expected, str], ...] = (
        (artificial, "artificial", "more", "artificial data"),
        (web, "web", "more", "Web data"),
        (small, "intranet", "same", "the small set"),
    )
    findings, missing = [], []
    for evidence, experiment, expected, name in parts:
        runs = evidence.runs(experiment) if evidence is not None else ()
        if not runs:
            missing.append(name)
            continue
        for ours, theirs in pairs(curves_of(runs)):
            findings += [_finding(ours, theirs, level, expected) for level in LEVELS]
    if not findings:
        return None
    gaps = [finding.effect for finding in findings if finding.expected == "more"]
    ahead = f"{sum(gap > 0 for gap in gaps)} of {len(gaps)}"
    remark = f"Where it should be ahead LambdaRank has the higher mean in {ahead} comparisons."
    return Outcome(findings, missing, remark)


def claim_gap(evidence: Evidence) -> Outcome | None:
    """LambdaRank's lead is larger at the top of the list than at ten (D15)."""
    runs = evidence.runs("artificial")
    if not runs:
        return None
    top, bottom = LEVELS[0], LEVELS[-1]
    findings = []
    for ours, theirs in pairs(curves_of(runs)):
        paired = compare_leads(ours, theirs, top, bottom)
        name = f"{ours.label} − {theirs.label}: lead @{top} − lead @{bottom}"
        findings.append(_over_queries(name, ours, paired, "more"))
    return Outcome(findings) if findings else None


def claim_chosen(evidence: Evidence) -> Outcome | None:
    """LambdaRank's is the best of the lambda functions in validation NDCG@10 (D16)."""
    functions = lambda_functions(evidence)
    own = functions.get(METHODS[0])
    if own is None or len(functions) < 2:
        return None
    others = [curve for curve in functions.values() if curve is not own]
    return Outcome([_finding(own, other, LEVEL, "first", "vali") for other in others])


def claim_small(evidence: Evidence) -> Outcome | None:
    """On the small set LambdaRank's mean is nowhere below RankNet's, linear nets (D17)."""
    runs = evidence.runs("intranet")
    both = pairs(curves_of(runs)) if runs else []
    findings = [finding for pair in both for finding in _at(pair, "first")]
    return Outcome(findings) if findings else None


def claim_linear(evidence: Evidence) -> Outcome | None:
    """Linear LambdaRank is as good as two layer RankNet at the larger levels (D18)."""
    runs = evidence.runs("web")
    by_name = {(curve.name, curve.variant): curve for curve in curves_of(runs)} if runs else {}
    ours, theirs = by_name.get((METHODS[0], "linear")), by_name.get((METHODS[1], "two_layer"))
    if ours is None or theirs is None:
        return None
    return Outcome(_at((ours, theirs), "same", LARGER))


def _at(
    pair: tuple[Method, Method], expected: Expected, levels: Sequence[int] = LEVELS
) -> list[Finding]:
    return [_finding(*pair, level, expected) for level in levels]


def _finding(
    ours: Method, theirs: Method, level: int, expected: Expected, split: str = "test"
) -> Finding:
    where = "" if split == "test" else "validation "
    name = f"{ours.label} − {theirs.label}, {where}NDCG@{level}"
    return _over_queries(name, ours, compare(ours, theirs, level, split), expected)


def _over_queries(comparison: str, ours: Method, paired: Estimate, expected: Expected) -> Finding:
    return Finding.of(
        paired.interval(),
        paired.p_differs(),
        comparison=comparison,
        expected=expected,
        dataset=ours.dataset,
        sample=f"{paired.n} queries",
        test="t test over queries and starts",
        unit="NDCG",
    )
