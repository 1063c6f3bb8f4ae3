"""How Bruch2019's claims are measured."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from directrank.papers.bruch2019.runs import CUTOFFS, alpha, depth, ndcg
from directrank.papers.bruch2019.sigmoid import sigmoid_curves
from directrank.papers.bruch2019.table1 import OWN, RANKLIB, RANKLIB_LIKE, TABLE1_PARTS
from directrank.papers.shared.claims import (
    Expected,
    Finding,
    Outcome,
    over_trials_and_queries,
    without_sampling,
)
from directrank.papers.shared.evidence import Dataset, Evidence, PlannedRun
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
        parts: the data sets that the claim is about, as :data:`TABLE1_PARTS`.
    """
    findings, missing, remark = [], [], ""
    for experiment, printed_name in parts.items():
        runs = {run.setting("method"): run for run in evidence.runs(experiment)}
        for other in others:
            if other == RANKLIB and other not in runs and RANKLIB_LIKE in runs:
                other = RANKLIB_LIKE
                remark = "RankLib itself was not run: LightGBM with its settings is in its place."
            if not {OWN, other} <= set(runs):
                missing.append(f"{OWN} against {other} on {printed_name}")
                continue
            pair = (OWN, other) if above else (other, OWN)
            findings += [
                _finding(runs[pair[0]], runs[pair[1]], *pair, "test", cutoff) for cutoff in CUTOFFS
            ]
    return Outcome(findings, missing, remark) if findings else None


def claim_alpha(evidence: Evidence) -> Outcome | None:
    """Figure 2's inverted U, with 5 to 40 alike and 10 best in NDCG@5 (C04)."""
    runs = {f"{alpha(run):g}": run for run in evidence.runs("alpha_sweep")}
    if not runs:
        return None
    printed = ("1", "5", "10", "20", "40", "100", "200")
    missing = [f"α = {value}" for value in printed if value not in runs]

    def against(first: str, second: str, expected: Expected) -> Finding:
        names = (f"α = {first}", f"α = {second}")
        return _finding(runs[first], runs[second], *names, "vali", 5, expected)

    best = max(runs, key=lambda value: ndcg(runs[value], "vali", 5).mean())
    findings = [against(best, end, "more") for end in ("1", "200") if end in runs and end != best]
    findings += [
        against(first, second, "same")
        for first, second in itertools.combinations(printed[1:5], 2)
        if first in runs and second in runs
    ]
    if "10" in runs and len(runs) > 1:
        rest = {value: run for value, run in runs.items() if value != "10"}
        rival = max(rest, key=lambda value: ndcg(rest[value], "vali", 5).mean())
        findings.append(against("10", rival, "first"))
    remark = f"The best α in NDCG@5 is {best}."
    return Outcome(findings, missing, remark) if findings else None


def claim_depth(evidence: Evidence) -> Outcome | None:
    """Figure 3: B1024 above B64 in NDCG@5 and @10, not significantly in NDCG@1 (C05)."""
    runs = {depth(run): run for run in evidence.runs("depth_sweep")}
    if not {"B64", "B1024"} <= set(runs):
        return None
    expected: dict[int, Expected] = {1: "same", 5: "more", 10: "more"}
    return Outcome(
        [
            _finding(runs["B1024"], runs["B64"], "B1024", "B64", "vali", cutoff, expected[cutoff])
            for cutoff in CUTOFFS
        ]
    )


def claim_sigmoid(evidence: Evidence) -> Outcome:
    """A larger α brings the sigmoid closer to the indicator (D01); computed from Figure 1."""
    curves = sigmoid_curves()
    distances = {
        alpha: float(np.abs(values - (delta > 0)).mean())
        for alpha, (delta, values) in curves.items()
    }
    findings = [
        without_sampling(
            f"mean distance from the indicator at α = {low} − at α = {high}",
            distances[low] - distances[high],
            expected="more",
            dataset=Dataset("bruch2019_figure1", "score differences of Figure 1", "generated"),
            sample=f"{len(curves[low][0])} values of Δ",
            unit="",
        )
        for low, high in itertools.pairwise(curves)
    ]
    return Outcome(findings)


def claim_overfitting(evidence: Evidence) -> Outcome | None:
    """The largest network is not better than the next smaller one on validation (D02)."""
    runs = {depth(run): run for run in evidence.runs("depth_sweep")}
    if not {"B1024", "B2048"} <= set(runs):
        return None
    pair = (runs["B1024"], runs["B2048"], "B1024", "B2048", "vali")
    return Outcome([_finding(*pair, cutoff, "first") for cutoff in (5, 10)])


def _finding(
    a: PlannedRun,
    b: PlannedRun,
    a_name: str,
    b_name: str,
    split: str,
    cutoff: int,
    expected: Expected = "more",
) -> Finding:
    """One run against another: Welch over trials and a paired test over queries, the larger p."""
    metric = f"ndcg@{cutoff}"
    return over_trials_and_queries(
        Method(a_name, [a], "exclude"),
        Method(b_name, [b], "exclude"),
        metric,
        numpy_stream("bruch2019", "claims", a.result.name, b.result.name, metric),
        split,
        heading=f"NDCG@{cutoff}",
        expected=expected,
    )
