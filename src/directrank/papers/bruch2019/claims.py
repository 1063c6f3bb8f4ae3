"""Tests of Bruch2019's claims."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from directrank.papers.bruch2019.runs import CUTOFFS, alpha, depth
from directrank.papers.bruch2019.sigmoid import sigmoid_curves
from directrank.papers.bruch2019.table1 import OWN, TABLE1_PARTS
from directrank.papers.shared.evidence import Dataset, Evidence, PlannedRun
from directrank.papers.shared.findings import (
    MORE,
    SAME,
    Claimed,
    Finding,
    Outcome,
    computed,
    over_trials_and_queries,
)
from directrank.papers.shared.methods import Method
from directrank.system.seeds import numpy_stream


def claim_rankers(
    evidence: Evidence, others: Sequence[str], above: bool, parts: Mapping[str, str] = TABLE1_PARTS
) -> Outcome | None:
    """ApproxNDCG against ``others`` in Table 1 (C01 to C03).

    Args:
        evidence: of Table 1.
        others: methods of Table 1.
        above: whether ApproxNDCG is claimed to be the better one.
        parts: the data sets that the claim is about, in the form of :data:`TABLE1_PARTS`.
    """
    findings, missing = [], []
    for experiment, printed_name in parts.items():
        runs = {run.setting("method"): run for run in evidence.runs(experiment)}
        for other in others:
            if not {OWN, other} <= set(runs):
                missing.append(f"{OWN} against {other} on {printed_name}")
                continue
            pair = (OWN, other) if above else (other, OWN)
            findings += [
                _finding(runs[pair[0]], runs[pair[1]], *pair, "test", cutoff) for cutoff in CUTOFFS
            ]
    return Outcome(findings, missing)


#: The values of Figure 2, and those that do not differ according to the text (section 3.3).
ALPHAS = ("1", "5", "10", "20", "40", "100", "200")
ALIKE = ("5", "10", "20", "40")

#: The value that the paper chooses by NDCG@5 on the validation set.
CHOSEN = "10"


def claim_alpha(evidence: Evidence, experiment: str) -> Outcome | None:
    """Figure 2 is an inverted U: 5 to 40 do not differ, and 10 is best in NDCG@5 (C04; D24 on
    Yahoo).

    10 must be above every other value; that it is above both ends is the inverted U.
    """
    runs = {f"{alpha(run):g}": run for run in evidence.runs(experiment)}
    if CHOSEN not in runs or len(runs) < 2:
        return None
    missing = [f"α = {value}" for value in ALPHAS if value not in runs]

    def against(first: str, second: str, claimed: Claimed) -> Finding:
        names = (f"α = {first}", f"α = {second}")
        return _finding(runs[first], runs[second], *names, "vali", 5, claimed)

    findings = [against(CHOSEN, value, MORE) for value in runs if value != CHOSEN]
    findings += [
        against(first, second, SAME)
        for first, second in itertools.combinations(ALIKE, 2)
        if first in runs and second in runs
    ]
    return Outcome(findings, missing)


def claim_depth(evidence: Evidence, experiment: str) -> Outcome | None:
    """Figure 3: B1024 is above B64 in NDCG@5 and @10, and they are alike in NDCG@1 (C05; D25)."""
    runs = {depth(run): run for run in evidence.runs(experiment)}
    if not {"B64", "B1024"} <= set(runs):
        return None
    claimed = {1: SAME, 5: MORE, 10: MORE}
    return Outcome(
        [
            _finding(runs["B1024"], runs["B64"], "B1024", "B64", "vali", cutoff, claimed[cutoff])
            for cutoff in CUTOFFS
        ]
    )


def claim_sigmoid(evidence: Evidence) -> Outcome:
    """A larger α brings the sigmoid closer to the indicator (D01; from Figure 1's data)."""
    curves = sigmoid_curves()
    distances = {
        alpha: float(np.abs(values - (delta > 0)).mean())
        for alpha, (delta, values) in curves.items()
    }
    findings = [
        Finding(
            comparison=f"mean distance from the indicator at α = {low} − at α = {high}",
            claimed=MORE,
            dataset=Dataset("bruch2019_figure1", "score differences of Figure 1", "generated"),
            unit="",
            measurements=[
                computed(distances[low] - distances[high], f"{len(curves[low][0])} values of Δ")
            ],
        )
        for low, high in itertools.pairwise(curves)
    ]
    return Outcome(findings)


def claim_overfitting(evidence: Evidence) -> Outcome | None:
    """The largest network is worse than the next smaller one on the validation set (D02)."""
    runs = {depth(run): run for run in evidence.runs("depth_sweep")}
    if not {"B1024", "B2048"} <= set(runs):
        return None
    pair = (runs["B1024"], runs["B2048"], "B1024", "B2048", "vali")
    return Outcome([_finding(*pair, cutoff) for cutoff in (5, 10)])


def _finding(
    a: PlannedRun,
    b: PlannedRun,
    a_name: str,
    b_name: str,
    split: str,
    cutoff: int,
    claimed: Claimed = MORE,
) -> Finding:
    """The difference of two runs, in per cent of NDCG."""
    metric = f"ndcg@{cutoff}"
    return over_trials_and_queries(
        Method(a_name, [a], "exclude"),
        Method(b_name, [b], "exclude"),
        metric,
        numpy_stream("bruch2019", "claims", a.result.name, b.result.name, metric),
        split,
        heading=f"NDCG@{cutoff}",
        claimed=claimed,
    )
