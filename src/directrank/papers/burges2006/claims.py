"""Tests of Burges2006's claims."""

from __future__ import annotations

import math

import numpy as np

from directrank.papers.burges2006.choices import LEVEL, lambda_functions
from directrank.papers.burges2006.ndcg import (
    LEVELS,
    METHODS,
    compare,
    compare_leads,
    curves_of,
    pairs,
)
from directrank.papers.burges2006.speed import (
    FACTORS,
    NETS,
    SLOPES,
    V1,
    V2,
    published,
    slopes,
    speedups,
    timings,
)
from directrank.papers.shared.evidence import Dataset, Evidence
from directrank.papers.shared.findings import (
    MORE,
    SAME,
    Claimed,
    Finding,
    Measurement,
    Outcome,
    value,
)
from directrank.papers.shared.methods import Method
from directrank.stats.estimates import Estimate

#: Truncation levels that count as the larger ones.
LARGER = LEVELS[5:]

#: The tolerance of a speed-up is a tenth of the printed one; a slope's is 0.3 around a whole
#: number.
FACTOR_TOLERANCE, SLOPE_TOLERANCE = 0.1, 0.3


def claim_speed(
    lengths: Evidence, web: Evidence | None, artificial: Evidence | None
) -> Outcome | None:
    """V2 is 5.1 and 8.0 times as fast as V1; its slope is near 1, and V1's is near 2 (C22).

    Args:
        lengths: that of Figure 1, right: lists of several lengths of the artificial data.
        web: that of the table of section 6.1, on the substitute for the paper's Web data; None if
            the edition does not make it.
        artificial: the same on artificial data with lists of that length; None likewise.
    """
    runs = lengths.runs("lengths")
    if not runs:
        return None
    findings, nets = [], set()
    for evidence, experiment in ((web, "factors"), (artificial, "factors_cubic")):
        timed_runs = evidence.runs(experiment) if evidence is not None else ()
        if not timed_runs:
            continue
        timed = timings(timed_runs)
        for net, title in NETS.items():
            for length, ratios in speedups(timed, net, V2).items():
                printed = published(lengths, FACTORS[net])
                spread = FACTOR_TOLERANCE * printed
                name = f"V1's seconds ÷ V2's, {title} nets, {length} documents per query"
                claimed = value(round(printed - spread, 2), round(printed + spread, 2))
                findings.append(_timed(name, claimed, timed_runs[0].dataset, "times", ratios))
                nets.add(net)
    timed = timings(runs)
    for method, whole in ((V1, 2), (V2, 1)):
        some = timed.get(("two_layer", method), [])
        if len(some) > 2:
            name = f"slope of log seconds over log documents, {method}, two layer nets"
            claimed = value(whole - SLOPE_TOLERANCE, whole + SLOPE_TOLERANCE)
            findings.append(_timed(name, claimed, runs[0].dataset, "", slopes(some)))
    missing = [f"{title} nets" for net, title in NETS.items() if net not in nets]
    printed_slopes = " and ".join(f"{published(lengths, SLOPES[method]):g}" for method in (V1, V2))
    return Outcome(findings, missing, f"The paper's slopes are {printed_slopes}.")


def _timed(
    comparison: str, claimed: Claimed, dataset: Dataset, unit: str, values: np.ndarray
) -> Finding:
    """A finding about ``values`` of a quantity that was measured once per process."""
    n = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    estimate = Estimate(float(values.mean()), error, max(n - 1, 1), n)
    test = Measurement("t test over processes", f"{n} processes", estimate, estimate.p_differs())
    return Finding(
        comparison=comparison,
        claimed=claimed,
        dataset=dataset,
        unit=unit,
        measurements=[test],
        timed=True,
    )


def claim_better(
    artificial: Evidence, web: Evidence | None, small: Evidence | None
) -> Outcome | None:
    """LambdaRank is above RankNet on artificial and Web data, and equal on the small set (C23).

    Args:
        artificial: that of Figure 2, left.
        web: that of Figure 3; None if the edition does not draw it.
        small: that of Figure 2, right; None likewise.
    """
    parts: tuple[tuple[Evidence | None, str, Claimed, str], ...] = (
        (artificial, "artificial", MORE, "artificial data"),
        (web, "web", MORE, "Web data"),
        (small, "intranet", SAME, "the small set"),
    )
    findings, missing = [], []
    for evidence, experiment, claimed, name in parts:
        runs = evidence.runs(experiment) if evidence is not None else ()
        if not runs:
            missing.append(name)
            continue
        both = pairs(curves_of(runs))
        if experiment == "intranet":
            both = _linear(both)
        findings += [_finding(*pair, level, claimed) for pair in both for level in LEVELS]
    gaps = [finding.effect for finding in findings if finding.claimed == MORE]
    ahead = f"{sum(gap > 0 for gap in gaps)} of the {len(gaps)}"
    remark = f"LambdaRank has the higher mean in {ahead} comparisons in which it should lead."
    return Outcome(findings, missing, remark if gaps else "")


def claim_gap(evidence: Evidence) -> Outcome | None:
    """LambdaRank's lead is larger at the top of the list than at rank 10 (D15)."""
    runs = evidence.runs("artificial")
    if not runs:
        return None
    top, bottom = LEVELS[0], LEVELS[-1]
    findings = []
    for ours, theirs in pairs(curves_of(runs)):
        name = f"{ours.label} − {theirs.label}: lead @{top} − lead @{bottom}"
        findings.append(_compared(name, MORE, ours, compare_leads(ours, theirs, top, bottom)))
    return Outcome(findings)


def claim_small(evidence: Evidence) -> Outcome | None:
    """On the small set, linear LambdaRank's mean is above RankNet's at every level (D17)."""
    runs = evidence.runs("intranet")
    both = _linear(pairs(curves_of(runs))) if runs else []
    return Outcome([_finding(*pair, level, MORE) for pair in both for level in LEVELS])


def claim_linear(evidence: Evidence) -> Outcome | None:
    """Linear LambdaRank is as good as two layer RankNet at the larger levels (D18)."""
    runs = evidence.runs("web")
    by_name = {(curve.name, curve.variant): curve for curve in curves_of(runs)} if runs else {}
    ours, theirs = by_name.get((METHODS[0], "linear")), by_name.get((METHODS[1], "two_layer"))
    if ours is None or theirs is None:
        return None
    return Outcome([_finding(ours, theirs, level, SAME) for level in LARGER])


def claim_chosen(evidence: Evidence) -> Outcome | None:
    """LambdaRank's lambda function is the best in validation NDCG@10 (D16)."""
    functions = lambda_functions(evidence, "lambdas_web")
    own = functions.get(METHODS[0])
    if own is None:
        return None
    others = [curve for curve in functions.values() if curve is not own]
    return Outcome([_finding(own, other, LEVEL, MORE, "vali") for other in others])


def _linear(both: list[tuple[Method, Method]]) -> list[tuple[Method, Method]]:
    """The pairs with linear nets, which are those of the paper's panel of the small set."""
    return [pair for pair in both if pair[0].variant == "linear"]


def _finding(
    ours: Method, theirs: Method, level: int, claimed: Claimed, split: str = "test"
) -> Finding:
    where = "" if split == "test" else "validation "
    name = f"{ours.label} − {theirs.label}, {where}NDCG@{level}"
    return _compared(name, claimed, ours, compare(ours, theirs, level, split))


def _compared(name: str, claimed: Claimed, ours: Method, estimate: Estimate) -> Finding:
    test = Measurement(
        "t test over queries and starts", f"{estimate.n} queries", estimate, estimate.p_differs()
    )
    return Finding(name, claimed, ours.dataset, "NDCG", [test])
