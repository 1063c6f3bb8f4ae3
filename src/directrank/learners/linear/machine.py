"""What support vector machines share: the solver's settings, and a fit by cutting planes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from directrank.learners.contract import FitJob, Fitted
from directrank.learners.linear.cutting_plane import Risk, minimise
from directrank.learners.linear.linear import fitted

SOLVER: dict[str, Any] = {
    "tolerance": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 1e-3,
        "description": "tolerance is the gap at which the solver stops, in units of the loss",
    },
    "max_planes": {
        "type": "integer",
        "minimum": 1,
        "default": 2000,
        "description": "max_planes is the largest number of cutting planes",
    },
}


def fit_risk(risk: Risk, n_features: int, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """The linear scorer of least ``½‖w‖² + c · risk``.

    Args:
        risk: the convex risk and a subgradient.
        n_features: F.
        settings: complete; ``c`` and the keys of :data:`SOLVER`.
        job: its progress is reported.

    Raises:
        TrainingError: the solver did not reach its tolerance.
    """
    most = settings["max_planes"]
    found = minimise(
        risk,
        n_features,
        settings["c"],
        settings["tolerance"],
        most,
        lambda done, gap: job.progress(done, most, f"gap {gap:.2g}"),
    )
    steps = len(found.history)
    info = {"best_epoch": steps, "epochs": steps, "stopped_early": True, "gap": found.gap}
    return fitted(found.weights, found.history, info)
