"""Tests of Pobrotyn2021's claims that need training, on Table 3's losses.

Table 3 is on Web30K and Istella. If an edition runs nothing of it, the claims are tested on
OHSUMED, and say so. A query without a relevant document counts 1; NDCG is in per cent. Several
variants are represented by the one that is best on the validation set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from directrank.papers.pobrotyn2021.methods import (
    APPROX,
    CUTOFFS,
    LAMBDARANK,
    OWN,
    PARTS,
    methods_of,
    metric,
    ndcg,
)
from directrank.papers.pobrotyn2021.selection import PAPER_VALUE, SMOOTHNESS
from directrank.papers.shared.claims import has_runs
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.findings import (
    MORE,
    NOT_MORE,
    SAME,
    Claimed,
    Finding,
    Outcome,
    over_trials_and_queries,
)
from directrank.papers.shared.methods import Method
from directrank.system.seeds import numpy_stream

ELSEWHERE = "Measured on OHSUMED instead of Web30K and Istella."

#: The data set and cut-off at which the paper has LambdaRank@max, not NeuralNDCG, as the best.
EXCEPTION = ("Istella", 10)

Methods = Mapping[str, Method]


def claim_above_approx(table3: Evidence | None, ohsumed: Evidence | None) -> Outcome | None:
    """Every NeuralNDCG variant beats ApproxNDCG on both data sets (C19).

    Args:
        table3: that of Table 3; None if the edition does not make it.
        ohsumed: that of the table on OHSUMED; None likewise.
    """
    parts, remark = _parts(table3, ohsumed)
    findings, missing = [], []
    for title, methods in parts.items():
        for method in OWN:
            if not {method, APPROX} <= set(methods):
                missing.append(f"{method} against {APPROX} on {title}")
                continue
            findings += [finding(methods, method, APPROX, cutoff, MORE) for cutoff in CUTOFFS]
    return Outcome(findings, missing, remark) if parts else None


def claim_best(table3: Evidence | None, ohsumed: Evidence | None) -> Outcome | None:
    """The best loss is NeuralNDCG, except for LambdaRank@max in Istella's NDCG@10 (C20).

    The variant of NeuralNDCG that is best on the validation set must be above every other loss.
    """
    parts, remark = _parts(table3, ohsumed)
    evidence = table3 or ohsumed
    if evidence is None or not parts:
        return None
    order = list(evidence.published("pobrotyn2021_table3")["Loss"])
    findings, missing = [], []
    for title, methods in parts.items():
        printed = {name: method for name, method in methods.items() if name in order}
        for cutoff in CUTOFFS:
            champions = (LAMBDARANK,) if (title, cutoff) == EXCEPTION else OWN
            ours = [name for name in champions if name in printed]
            others = [name for name in printed if name not in champions]
            absent = [name for name in order if name not in printed]
            if absent:
                missing.append(f"{', '.join(absent)} on {title} (NDCG@{cutoff})")
            if not ours or not others:
                continue
            best = _chosen(printed, ours, cutoff)
            findings += [finding(printed, best, other, cutoff, MORE) for other in others]
    if EXCEPTION[0] not in parts:
        missing.append(f"{LAMBDARANK} as the best in NDCG@{EXCEPTION[1]} on {EXCEPTION[0]}")
    return Outcome(findings, missing, remark)


def claim_on_par(table3: Evidence | None, ohsumed: Evidence | None) -> Outcome | None:
    """NeuralNDCG's variant that is best on validation is on par with LambdaRank@max (D13)."""
    parts, remark = _parts(table3, ohsumed)
    findings, missing = [], []
    for title, methods in parts.items():
        ours = [name for name in OWN if name in methods]
        if not ours or LAMBDARANK not in methods:
            missing.append(f"NeuralNDCG against {LAMBDARANK} on {title}")
            continue
        findings += [
            finding(methods, _chosen(methods, ours, cutoff), LAMBDARANK, cutoff, SAME)
            for cutoff in CUTOFFS
        ]
    return Outcome(findings, missing, remark) if parts else None


def claim_smoothness(evidence: Evidence) -> Outcome | None:
    """No α of ApproxNDCG and no τ of NeuralNDCG other than 1 does better on the test set (D14)."""
    findings, missing = [], []
    for experiment, (loss, setting, symbol) in SMOOTHNESS.items():
        tried = {}
        for run in evidence.runs(experiment):
            name = f"{symbol} = {run.setting(setting):g}"
            tried[name] = Method(name, [run], "one")
        paper = f"{symbol} = {PAPER_VALUE:g}"
        others = [name for name in tried if name != paper]
        if paper not in tried or not others:
            missing.append(f"{loss} at several {symbol}")
            continue
        findings += [
            finding(tried, other, paper, cutoff, NOT_MORE, f"{loss}, ")
            for other in others
            for cutoff in CUTOFFS
        ]
    return Outcome(findings, missing)


def finding(
    methods: Methods, first: str, second: str, cutoff: int, claimed: Claimed, what: str = ""
) -> Finding:
    """The difference of two losses in NDCG on the test set.

    Args:
        methods: the methods by name.
        first, second: the effect is the first minus the second.
        cutoff: that of NDCG on the test set.
        claimed: what is claimed.
        what: what both have in common, to begin the comparison's name.
    """
    a, b = methods[first], methods[second]
    stream = ("pobrotyn2021", "claims", first, second, metric(cutoff), a.dataset.name)
    finding = over_trials_and_queries(
        a, b, metric(cutoff), numpy_stream(*stream), heading=f"NDCG@{cutoff}", claimed=claimed
    )
    return replace(finding, comparison=what + finding.comparison)


def _parts(table3: Evidence | None, ohsumed: Evidence | None) -> tuple[dict[str, Methods], str]:
    """The losses by data set, of Table 3 or else of OHSUMED, and a remark on them."""
    if table3 is not None and has_runs(table3, *PARTS):
        return {title: methods_of(table3, name) for name, (title, _) in PARTS.items()}, ""
    if ohsumed is not None and has_runs(ohsumed, "ohsumed_losses"):
        return {"OHSUMED": methods_of(ohsumed, "ohsumed_losses")}, ELSEWHERE
    return {}, ""


def _chosen(methods: Methods, names: Sequence[str], cutoff: int) -> str:
    """The one of ``names`` that is best on the validation set."""
    return max(names, key=lambda name: float(ndcg(methods[name], cutoff, "vali").mean()))
