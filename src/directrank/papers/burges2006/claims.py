"""Burges2006's claims that are no comparisons of methods."""

from __future__ import annotations

import numpy as np

from directrank.papers.burges2006.ndcg import LEVELS, curves_of, ndcg, pairs
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
    Claimed,
    Finding,
    Outcome,
    mean_of,
    over_queries_and_trainings,
    value,
)

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
    test = mean_of(values, f"{len(values)} processes", "t test over processes")
    return Finding(
        comparison=comparison,
        claimed=claimed,
        dataset=dataset,
        unit=unit,
        measurement=test,
        timed=True,
    )


def claim_gap(evidence: Evidence) -> Outcome | None:
    """LambdaRank's lead is larger at the top of the list than at rank 10 (D15)."""
    runs = evidence.runs("artificial")
    if not runs:
        return None
    top, bottom = LEVELS[0], LEVELS[-1]
    findings = []
    for ours, theirs in pairs(curves_of(runs)):
        name = f"{ours.label} − {theirs.label}: lead @{top} − lead @{bottom}"
        at_top, at_bottom = ndcg(ours, top), ndcg(ours, bottom)
        test = over_queries_and_trainings(ours, theirs, at_top, less=at_bottom)
        findings.append(Finding(name, MORE, ours.dataset, "NDCG", test))
    remark = (
        "The paper says that the gap increases “at higher relevance levels”; if it means larger "
        "truncation levels, the opposite is claimed."
    )
    return Outcome(findings, remark=remark)
