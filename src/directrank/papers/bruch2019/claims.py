"""Bruch2019's claim that is no comparison of methods."""

from __future__ import annotations

import itertools

import numpy as np

from directrank.papers.bruch2019.figures import sigmoid_curves
from directrank.papers.shared.evidence import Dataset, Evidence
from directrank.papers.shared.findings import (
    MORE,
    Finding,
    Outcome,
    computed,
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
