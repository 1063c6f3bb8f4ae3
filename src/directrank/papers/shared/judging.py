"""Decide the verdict on a claim from its findings: correction, decision, power."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from directrank.papers.shared import verdicts
from directrank.papers.shared.findings import Finding, Outcome
from directrank.papers.shared.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    RAN,
    STANDIN_GROUP,
    SUPPORTED,
    TREND,
    UNMEASURED,
)
from directrank.stats.decisions import MORE_THAN, SIGNIFICANT, UNKNOWN, WITHIN
from directrank.stats.estimates import TIE
from directrank.stats.power import smallest_difference, smallest_margin
from directrank.stats.tests import holm_of_known

#: The power that defines the smallest difference that a collection could show.
POWER = 0.8


@dataclass(frozen=True)
class JudgedFinding:
    """A finding with the decision on it.

    Attributes:
        finding: the comparison.
        group: whose data were used; see :mod:`directrank.papers.shared.verdicts`.
        bounds: the range in which its effect is claimed to lie.
        p_value: of the hypothesis that there is no effect, or that it equals the claimed bound.
        p_holm: the same, corrected.
        p_range: of the hypothesis that the effect is outside a range with two ends; NaN for other
            claims.
        p_range_holm: the same, corrected.
        detectable: the smallest difference, or the smallest margin, that could have been shown.
        outcome: the result in words: ``above, within the margin``, ``equivalent``, ``outside``, …
        verdict: the verdict on this comparison; for a stand-in
            :data:`directrank.papers.shared.verdicts.RAN`.
    """

    finding: Finding
    group: str
    bounds: tuple[float, float]
    p_value: float
    p_holm: float
    p_range: float
    p_range_holm: float
    detectable: float
    outcome: str
    verdict: str

    @property
    def as_claimed(self) -> bool:
        """Whether the effect has the claimed direction; a tie does not."""
        return _points(self.finding, self.bounds)


def judge(findings: Sequence[Finding], margin: float, own: tuple[str, ...]) -> list[JudgedFinding]:
    """Decide each finding, with Holm's correction over the tests of the claim.

    Tests of a difference form one family, and tests of lying within a range another. Measurements
    on stand-ins are corrected separately and decide nothing.

    Args:
        findings: those of one claim.
        margin: the smallest difference of interest, for “more” as for “same”, in units of a metric.
        own: names of the data sets that the claim is about.
    """
    groups = [
        verdicts.group_of(finding.dataset.name, finding.dataset.origin, own) for finding in findings
    ]
    judged: dict[int, JudgedFinding] = {}
    for standin in (False, True):
        places = [i for i, group in enumerate(groups) if (group == STANDIN_GROUP) == standin]
        family = [findings[place] for place in places]
        for place, decided in zip(places, _family(family, margin), strict=True):
            judged[place] = JudgedFinding(
                findings[place], groups[place], **decided | ({"verdict": RAN} if standin else {})
            )
    return [judged[place] for place in range(len(findings))]


def _family(findings: Sequence[Finding], margin: float) -> list[dict[str, Any]]:
    """The decisions on findings whose p values are corrected together."""
    bounds = [finding.claimed.bounds(margin * finding.scale) for finding in findings]
    differs = [_p_differs(finding, ends) for finding, ends in zip(findings, bounds, strict=True)]
    within = [
        finding.p_within(*ends) if _has_two_ends(ends) else math.nan
        for finding, ends in zip(findings, bounds, strict=True)
    ]
    margins = [margin * finding.scale for finding in findings]
    near, beyond = (
        [
            test(finding, each) if finding.claimed.kind in kinds else math.nan
            for finding, each in zip(findings, margins, strict=True)
        ]
        for test, kinds in ((_p_near, ("more",)), (_p_beyond, ("more", "same")))
    )
    # A difference can be seen or missed in error, and each kind of error is kept below the level.
    differs_holm, within_holm, near_holm, beyond_holm = (
        holm_of_known(some) for some in (differs, within, near, beyond)
    )
    decided = []
    for number, (finding, ends) in enumerate(zip(findings, bounds, strict=True)):
        p_holm, p_range_holm = float(differs_holm[number]), float(within_holm[number])
        size = _size(near_holm[number], beyond_holm[number])
        verdict, outcome = _decide(finding, ends, p_holm, p_range_holm, size)
        family = within_holm if _has_two_ends(ends) else differs_holm
        undecided = int(np.sum(family >= SIGNIFICANT))
        decided.append(
            {
                "bounds": ends,
                "p_value": differs[number],
                "p_holm": p_holm,
                "p_range": within[number],
                "p_range_holm": p_range_holm,
                "detectable": _detectable(finding, ends, SIGNIFICANT / max(1, undecided)),
                "outcome": outcome,
                "verdict": verdict,
            }
        )
    return decided


def _p_differs(finding: Finding, bounds: tuple[float, float]) -> float:
    """The p value of the hypothesis that the effect equals the claimed bound.

    For a range with two ends, the hypothesis is that there is no effect if equivalence is claimed,
    and otherwise that the effect equals the end beyond which it lies; p is 1 within the range.
    """
    low, high = bounds
    if not _has_two_ends(bounds):
        return finding.p_differs(low if math.isfinite(low) else high)
    if finding.claimed.kind == "same":
        return finding.p_value
    if low - TIE <= finding.effect <= high + TIE:
        return math.nan if math.isnan(finding.half_width) else 1.0
    return finding.p_differs(low if finding.effect < low else high)


def _p_near(finding: Finding, margin: float) -> float:
    """The p value of a difference of at least the margin."""
    return finding.p_within(-margin, margin)


def _p_beyond(finding: Finding, margin: float) -> float:
    """The p value of a difference of at most the margin, in the direction of the effect."""
    estimate = finding.measurement.estimate
    return estimate.p_above(margin) if finding.effect > 0 else estimate.p_below(-margin)


def _size(near_holm: float, beyond_holm: float) -> str:
    """What is known of the size of a difference beside the margin."""
    if near_holm < SIGNIFICANT:
        return WITHIN
    return MORE_THAN if beyond_holm < SIGNIFICANT else UNKNOWN


def _decide(
    finding: Finding,
    bounds: tuple[float, float],
    p_holm: float,
    p_range_holm: float,
    size: str,
) -> tuple[str, str]:
    """The verdict on a comparison, and its result in words.

    What is claimed to be more and is less, but by less than the margin, is the same in practice: no
    contradiction. What is claimed to be the same is contradicted by a difference that is shown to
    be larger than the margin, not by one that may be smaller.
    """
    if finding.claimed.kind == "same":
        # Lakens (2017): a significant difference that is smaller than the margin is equivalent.
        if p_range_holm < SIGNIFICANT:
            return SUPPORTED, "equivalent"
        if size == MORE_THAN:
            return CONTRADICTED, "different"
        return INCONCLUSIVE, "not decided"
    points = _points(finding, bounds)
    if math.isnan(p_holm):
        return INCONCLUSIVE, f"{_side(finding, bounds)}, not tested"
    if _has_two_ends(bounds) and points:
        sure = p_range_holm < SIGNIFICANT
    else:
        sure = p_holm < SIGNIFICANT and not _tied(finding, bounds)
    side = _side(finding, bounds) + (f", {size}" if size else "")
    if points:
        return SUPPORTED if sure else TREND, side
    return CONTRADICTED if sure and size != WITHIN else INCONCLUSIVE, side


def _points(finding: Finding, bounds: tuple[float, float]) -> bool:
    """Whether the effect is as claimed: above zero (a tie is not) or within the range."""
    low, high = bounds
    if finding.claimed.kind == "more":
        return finding.effect > TIE
    return low - TIE <= finding.effect <= high + TIE


def _tied(finding: Finding, bounds: tuple[float, float]) -> bool:
    return any(abs(finding.effect - end) <= TIE for end in bounds if math.isfinite(end))


def _side(finding: Finding, bounds: tuple[float, float]) -> str:
    if finding.claimed.kind == "more":
        if abs(finding.effect) <= TIE:
            return "tie"
        return "above" if finding.effect > 0 else "below"
    return "inside" if _points(finding, bounds) else "outside"


def _has_two_ends(bounds: tuple[float, float]) -> bool:
    return math.isfinite(bounds[0]) and math.isfinite(bounds[1])


def _detectable(finding: Finding, bounds: tuple[float, float], level: float) -> float:
    """The smallest difference, or half-width of a range, that could have been shown.

    Args:
        level: 5 % divided by the number of tests that the correction leaves undecided, which is the
            threshold for the next of them.
    """
    smallest = smallest_margin if _has_two_ends(bounds) else smallest_difference
    estimate = finding.measurement.estimate
    return smallest(estimate.error, estimate.freedom, level, POWER)


@dataclass(frozen=True)
class Verdict:
    """The verdict on a whole claim.

    Attributes:
        verdict: one of the five verdicts, or :data:`directrank.papers.shared.verdicts.RAN`.
        group: whose data it rests on; empty if nothing was measured.
        datasets: titles of the data sets of this group, separated by commas.
        decisive: the comparison that decided it; None if nothing was measured.
        outcome: how many comparisons agree with the direction of the statement.
        remark: what a reader must know about it.
    """

    verdict: str
    group: str
    datasets: str
    decisive: JudgedFinding | None
    outcome: str
    remark: str


def conclude(outcome: Outcome, judged: Sequence[JudgedFinding]) -> Verdict:
    """The verdict on a claim from the decisions on its comparisons.

    It rests only on comparisons that were not made on stand-ins. If all were, there is no verdict;
    a part of a claim that was measured on a stand-in only counts as missing. Where one comparison
    decides, the verdict is about data of its group; a claim of which every part agrees rests on all
    of them, and is said to be about the weakest group.
    """
    counted = [item for item in judged if item.group != STANDIN_GROUP]
    missing = list(outcome.missing)
    remarks = [outcome.remark] if outcome.remark else []
    if not judged:
        return Verdict(UNMEASURED, "", "", None, "", " ".join([*remarks, *_not_run(missing)]))
    if not counted:
        said = " ".join([*remarks, *_not_run(missing)])
        titles = _titles(judged)
        return Verdict(RAN, STANDIN_GROUP, titles, judged[0], _direction(judged), said)
    on_standins = dict.fromkeys(
        item.finding.dataset.title for item in judged if item.group == STANDIN_GROUP
    )
    missing += [f"the part that was run only on the {title}" for title in on_standins]
    found = [item.verdict for item in counted]
    verdict = worst(found, incomplete=bool(missing))
    same = [item for item in counted if item.verdict == verdict]
    rests_on = counted
    if same:
        decisive = max(same, key=lambda item: weight(item, verdict))
        found_in = f"{decisive.finding.comparison}, on {decisive.finding.dataset.title}"
        start = f"The verdict follows from {found_in}."
        if verdict != SUPPORTED:
            rests_on = [item for item in counted if item.group == decisive.group]
    else:
        decisive = max(counted, key=lambda item: weight(item, item.verdict))
        start = "The parts that were run agree with the statement, but some parts were not run."
    remarks = [start, *remarks, *_not_run(missing)]
    group = verdicts.weakest([item.group for item in rests_on])
    titles = _titles(rests_on)
    return Verdict(verdict, group, titles, decisive, _direction(counted), " ".join(remarks))


def _titles(judged: Sequence[JudgedFinding]) -> str:
    return ", ".join(dict.fromkeys(item.finding.dataset.title for item in judged))


def worst(found: Collection[str], incomplete: bool = False) -> str:
    """The verdict on a claim from those on its comparisons, of which some may not have been run."""
    if CONTRADICTED in found:
        return CONTRADICTED
    if INCONCLUSIVE in found or incomplete:
        return INCONCLUSIVE
    return TREND if TREND in found else SUPPORTED


def weight(item: Any, verdict: str) -> float:
    """The weight of a comparison: its clearest test for a contradiction, else its weakest.

    Args:
        item: a :class:`JudgedFinding`, or a row of the file of claims with its p values.
        verdict: on the claim.
    """
    p_value = item.p_range_holm if math.isfinite(item.p_range_holm) else item.p_holm
    if verdict == CONTRADICTED:
        return 1 - item.p_holm
    return 2.0 if math.isnan(p_value) else p_value


def _direction(judged: Sequence[JudgedFinding]) -> str:
    """How many comparisons agree with the direction of the statement."""
    along = sum(item.as_claimed for item in judged)
    return f"{along} of {len(judged)} comparisons as stated"


def _not_run(missing: Sequence[str]) -> list[str]:
    return [f"Not run: {', '.join(missing)}."] if missing else []


def row(judged: JudgedFinding, margin: float) -> Mapping[str, Any]:
    """The columns of one comparison in the file of claims."""
    finding = judged.finding
    undecided = judged.verdict in (TREND, INCONCLUSIVE)
    return {
        "comparison": finding.comparison,
        "dataset": finding.dataset.title,
        "group": judged.group,
        "claimed": finding.claimed.words(margin * finding.scale),
        "sample": finding.measurement.sample,
        "test": finding.measurement.test,
        "effect": finding.effect,
        "low": finding.effect - finding.half_width,
        "high": finding.effect + finding.half_width,
        "unit": finding.unit,
        "p_value": judged.p_value,
        "p_holm": judged.p_holm,
        "p_range": judged.p_range,
        "p_range_holm": judged.p_range_holm,
        "detectable": judged.detectable if undecided else math.nan,
        "outcome": judged.outcome,
        "verdict": judged.verdict,
        "timed": finding.timed,
    }
