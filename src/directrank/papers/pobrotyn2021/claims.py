"""The claim of Pobrotyn2021 about the smoothness of its losses."""

from __future__ import annotations

from dataclasses import replace

from directrank.papers.pobrotyn2021.accuracy import CUTOFFS, metric
from directrank.papers.pobrotyn2021.training import PAPER_VALUE, SMOOTHNESS
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.findings import (
    NOT_MORE,
    Finding,
    Outcome,
    difference,
    over_queries_and_trainings,
)
from directrank.papers.shared.methods import Method, by_method


def claim_smoothness(evidence: Evidence) -> Outcome | None:
    """No α of ApproxNDCG and no τ of NeuralNDCG other than 1 does better on the test set (D14)."""
    findings, missing = [], []
    for experiment, (loss, setting, symbol) in SMOOTHNESS.items():
        tried = by_method(
            evidence.runs(experiment), "one", setting=setting, name=f"{symbol} = {{:g}}"
        )
        paper = tried.pop(f"{symbol} = {PAPER_VALUE:g}", None)
        if paper is None or not tried:
            missing.append(f"{loss} at several {symbol}")
            continue
        for other in tried.values():
            findings += [_finding(loss, other, paper, cutoff) for cutoff in CUTOFFS]
    return Outcome(findings, missing)


def _finding(loss: str, other: Method, paper: Method, cutoff: int) -> Finding:
    tests = over_queries_and_trainings(other, paper, metric(cutoff), scale=100)
    found = difference(other, paper, f"NDCG@{cutoff}", NOT_MORE, "NDCG (%)", tests)
    return replace(found, comparison=f"{loss}, {found.comparison}")
