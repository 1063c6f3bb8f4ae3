"""The losses that Pobrotyn2021 trains: their names, their runs, and NDCG as the paper computes it.

A query without a relevant document counts 1, as in the paper (section 5.1); NDCG is in per cent.
"""

from __future__ import annotations

import numpy as np

from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.methods import Method, by_method

#: Experiment → the data set's name in the paper and in its published table.
PARTS = {"table3_web30k": ("Web30K", "WEB30K"), "table3_istella": ("Istella", "Istella")}

#: The rows that are a variant of the paper's own loss.
OWN = (
    "NeuralNDCG@5",
    "NeuralNDCG@10",
    "NeuralNDCG@max",
    "NeuralNDCG^T@5",
    "NeuralNDCG^T@10",
    "NeuralNDCG^T@max",
)
APPROX = "ApproxNDCG"
LAMBDARANK = "LambdaRank@max"

#: The row that the paper does not have.
ADDED = "LambdaMART"

CUTOFFS = (5, 10)


def methods_of(evidence: Evidence, experiment: str) -> dict[str, Method]:
    """The methods of an experiment, in the plan's order."""
    return by_method(evidence.runs(experiment), "one")


def metric(cutoff: int | None) -> str:
    """The column of NDCG@cutoff; of NDCG over whole lists for None."""
    return "ndcg" if cutoff is None else f"ndcg@{cutoff}"


def ndcg(method: Method, cutoff: int | None, split: str = "test") -> np.ndarray:
    """Mean NDCG@cutoff in per cent per trial, averaged over the folds: ``[trials]``."""
    return 100 * method.trial_means(metric(cutoff), split)


def printed_name(method: str) -> str:
    """The name of a method in print."""
    return method.replace("^T", "ᵀ")
