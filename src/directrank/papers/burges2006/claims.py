"""How Burges2006's claims are measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from directrank.papers.burges2006.ndcg import (
    LEVELS,
    METHODS,
    RESAMPLES,
    curves_of,
    ndcg,
    pairs,
)
from directrank.papers.burges2006.speed import (
    FACTORS,
    NETS,
    PAPER_LENGTH,
    SLOPES,
    V1,
    V2,
    Timing,
    by_net,
    pass_seconds,
    published,
    slope,
    speedups,
    timings,
)
from directrank.papers.shared.evidence import Evidence, PlannedRun
from directrank.papers.shared.findings import (
    MORE,
    SAME,
    Claimed,
    Finding,
    Measurement,
    Outcome,
    paired,
    value,
)
from directrank.papers.shared.methods import Method, paired_values
from directrank.stats.estimates import Estimate
from directrank.system.seeds import numpy_stream

#: Truncation levels that count as the larger ones.
LARGER = LEVELS[5:]

#: A factor of speed is met within a tenth of the printed one, a slope within 0.3 of a whole number.
FACTOR_TOLERANCE, SLOPE_TOLERANCE = 0.1, 0.3


def claim_speed(evidence: Evidence, web: Evidence | None) -> Outcome | None:
    """V2 is 5.1 and 8.0 times as fast as V1; its slope is near 1 where V1's is near 2 (C22).

    Args:
        evidence: of Figure 1, right: lists of several lengths of the artificial data. The factors
            are those of the paper's Web data, so the length nearest to that counts.
        web: of Figure 1, left; None where the edition does not draw it.
    """
    runs = evidence.runs("lengths")
    if not runs:
        return None
    timed = timings(runs)
    findings, found = [], set()
    for net, title in NETS.items():
        factor = published(evidence, FACTORS[net])
        if web is not None and net in by_net(web):
            v1, v2 = by_net(web)[net]
            once = {(net, V1): [_timing(v1)], (net, V2): [_timing(v2)]}
            findings.append(_factor(v1, once, net, 0, f"{title} nets, Web data", factor))
            found.add(net)
        ratios = speedups(timed, net)
        if ratios:
            near = min(ratios, key=lambda length: abs(math.log(length / PAPER_LENGTH)))
            where = f"{title} nets, {near} documents per query"
            findings.append(_factor(runs[0], timed, net, near, where, factor))
            found.add(net)
    for method, whole in ((V1, 2), (V2, 1)):
        if len(timed.get(("two_layer", method), [])) > 2:
            findings.append(_slope(runs[0], timed["two_layer", method], method, whole))
    missing = [f"{title} nets" for net, title in NETS.items() if net not in found]
    slopes = " and ".join(f"{published(evidence, SLOPES[method]):g}" for method in (V1, V2))
    return Outcome(findings, missing, f"The paper's slopes are {slopes}.")


def _timing(run: PlannedRun) -> Timing:
    """A run on lists of different lengths."""
    return Timing(0, 0, pass_seconds(run))


def _factor(
    run: PlannedRun,
    timed: Mapping[tuple[str, str], Sequence[Timing]],
    net: str,
    length: int,
    where: str,
    printed: float,
) -> Finding:
    """The speed-up of lists of one length, as the table of Figure 1 has it."""
    ratio, error, _ = speedups(timed, net)[length]
    epochs = [
        len(timing.seconds)
        for method in (V1, V2)
        for timing in timed[net, method]
        if timing.length == length
    ]
    estimate = Estimate(ratio, error, max(min(epochs) - 1, 1), min(epochs))
    test = Measurement(
        "t test, error from the spread of the epochs' logarithms",
        f"{epochs[0]} against {epochs[1]} epochs",
        estimate,
        estimate.p_differs(1.0),
    )
    spread = FACTOR_TOLERANCE * printed
    return Finding(
        comparison=f"V1's fastest epoch ÷ V2's, {where}",
        claimed=value(round(printed - spread, 2), round(printed + spread, 2)),
        dataset=run.dataset,
        unit="times",
        measurements=[test],
        timed=True,
    )


def _slope(run: PlannedRun, timed: Sequence[Timing], method: str, whole: int) -> Finding:
    line = slope(timed)
    estimate = Estimate(float(line.slope), float(line.stderr), len(timed) - 2, len(timed))
    test = Measurement(
        "t test of the fitted slope", f"{len(timed)} lengths", estimate, estimate.p_differs()
    )
    return Finding(
        comparison=f"slope of log seconds over log documents, {method}, two layer nets",
        claimed=value(whole - SLOPE_TOLERANCE, whole + SLOPE_TOLERANCE),
        dataset=run.dataset,
        unit="",
        measurements=[test],
        timed=True,
    )


def claim_better(
    artificial: Evidence, web: Evidence | None, small: Evidence | None
) -> Outcome | None:
    """LambdaRank above RankNet on artificial and Web data, on the small set about equal (C23).

    Args:
        artificial: of Figure 2, left.
        web: of Figure 3, None where the edition does not draw it.
        small: of Figure 2, right, likewise.
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
        for ours, theirs in pairs(curves_of(runs)):
            findings += [_finding(ours, theirs, level, claimed) for level in LEVELS]
    gaps = [finding.effect for finding in findings if finding.claimed == MORE]
    ahead = f"{sum(gap > 0 for gap in gaps)} of {len(gaps)}"
    remark = f"Where it should be ahead LambdaRank has the higher mean in {ahead} comparisons."
    return Outcome(findings, missing, remark if gaps else "")


def claim_gap(evidence: Evidence) -> Outcome | None:
    """LambdaRank's lead is larger at the top of the list than at ten (D15)."""
    runs = evidence.runs("artificial")
    if not runs:
        return None
    top, bottom = LEVELS[0], LEVELS[-1]
    findings = []
    for ours, theirs in pairs(curves_of(runs)):
        values = [paired_values([ours, theirs], ndcg(ours, level)) for level in (top, bottom)]
        at_top, at_bottom = (a - b for a, b in values)
        stream = numpy_stream("burges2006", "gap", ours.label, theirs.label)
        name = f"{ours.label} − {theirs.label}: lead @{top} − lead @{bottom}"
        test = paired(at_top, at_bottom, f"{len(at_top)} queries", stream, RESAMPLES)
        findings.append(Finding(name, MORE, ours.dataset, "NDCG", [test]))
    return Outcome(findings)


def claim_small(evidence: Evidence) -> Outcome | None:
    """On the small set LambdaRank's mean is above RankNet's at every level, linear nets (D17)."""
    runs = evidence.runs("intranet")
    both = pairs(curves_of(runs)) if runs else []
    return Outcome([_finding(*pair, level, MORE) for pair in both for level in LEVELS])


def claim_linear(evidence: Evidence) -> Outcome | None:
    """Linear LambdaRank is as good as two layer RankNet at the larger levels (D18)."""
    runs = evidence.runs("web")
    by_name = {(curve.name, curve.variant): curve for curve in curves_of(runs)} if runs else {}
    ours, theirs = by_name.get((METHODS[0], "linear")), by_name.get((METHODS[1], "two_layer"))
    if ours is None or theirs is None:
        return None
    return Outcome([_finding(ours, theirs, level, SAME) for level in LARGER])


def _finding(ours: Method, theirs: Method, level: int, claimed: Claimed) -> Finding:
    of_ours, of_theirs = paired_values([ours, theirs], ndcg(ours, level))
    stream = numpy_stream("burges2006", ours.label, theirs.label, level)
    test = paired(of_ours, of_theirs, f"{len(of_ours)} queries", stream, RESAMPLES)
    name = f"{ours.label} − {theirs.label}, NDCG@{level}"
    return Finding(name, claimed, ours.dataset, "NDCG", [test])
