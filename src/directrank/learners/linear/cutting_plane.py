"""Regularised risk by cutting planes: ``min_w ½‖w‖² + C R(w)`` for a convex, piecewise linear R.

The one-slack form of the structural support vector machine (Joachims, Finley and Yu, 2009). Every
step adds the plane that touches R at the present weights and solves the small quadratic programme
over all planes. A proximal term in the slack turns that programme into Lawson and Hanson's least
distance problem, which SciPy's non-negative least squares solves; the term vanishes as the slack
converges.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from directrank.learners.contract import FitJob, Fitted, history_row
from directrank.learners.linear.linear import fitted
from directrank.system.errors import TrainingError

Risk = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""``risk(weights [F]) -> (R, a subgradient of R [F])``; R is never negative."""


@dataclass(frozen=True)
class Minimum:
    """The result of a minimisation.

    Attributes:
        weights: float64 ``[F]``, the best seen.
        objective: ``½‖w‖² / C + R(w)`` at these weights.
        gap: an upper bound of the distance of the objective from its minimum; at most the
            tolerance.
        history: per step ``epoch``, ``train_loss`` (the objective, the best so far),
            ``vali_metric`` (NaN) and ``seconds``.
    """

    weights: np.ndarray
    objective: float
    gap: float
    history: list[dict[str, Any]]


def minimise(
    risk: Risk,
    n_features: int,
    c: float,
    tolerance: float,
    max_planes: int,
    report: Callable[[int, float], None] = lambda done, gap: None,
) -> Minimum:
    """Minimise ``½‖w‖² + C R(w)`` to a proven gap.

    Args:
        risk: the convex risk and a subgradient.
        n_features: F.
        c: weight of the risk.
        tolerance: largest gap between the objective over C and its lower bound.
        max_planes: most planes to try.
        report: called with the number of planes and the present gap.

    Raises:
        TrainingError: the gap is not closed after ``max_planes``.
    """
    normals, heights = [np.zeros(n_features)], [0.0]  # the first plane: R is not negative
    weights = best_weights = np.zeros(n_features)
    best, bound, slack = np.inf, 0.0, 0.0
    history: list[dict[str, Any]] = []
    for step in range(1, max_planes + 1):
        began = time.perf_counter()
        value, subgradient = risk(weights)
        objective = 0.5 * float(weights @ weights) / c + value
        if objective < best:
            best, best_weights = objective, weights
        normals.append(subgradient)
        heights.append(value - float(subgradient @ weights))
        shares, slack = _shares(np.array(normals), np.array(heights), c, slack)
        mixed = shares @ np.array(normals)
        bound = max(bound, float(shares @ heights) - 0.5 * c * float(mixed @ mixed))
        weights = -c * mixed
        history.append(history_row(step, time.perf_counter() - began, train_loss=best))
        report(step, best - bound)
        if best - bound <= tolerance:
            return Minimum(best_weights, best, best - bound, history)
    raise TrainingError(
        f"the gap is {best - bound:.2g} after {max_planes} planes",
        "raise max_planes or tolerance, or lower c",
    )


def _shares(
    normals: np.ndarray, heights: np.ndarray, c: float, slack: float
) -> tuple[np.ndarray, float]:
    """Each plane's share of the dual weight (they add to 1), and the new slack.

    With ``w = √c v`` and ``slack' = slack - 1 + u`` the programme with the proximal term
    ``(c/2) (slack' - slack)²`` is ``min ‖v‖² + u²`` under
    ``u - √c normals·v ≥ heights - slack + 1`` (Lawson and Hanson, chapter 23).
    """
    bounds = heights - slack + 1
    left = np.concatenate(
        [-np.sqrt(c) * normals.T, np.ones((1, len(heights))), bounds[None]], axis=0
    )
    right = np.zeros(len(left))
    right[-1] = 1.0
    multipliers, _ = nnls(left, right, maxiter=50 * left.shape[1])
    residual = left @ multipliers - right
    shares = multipliers / multipliers.sum()
    return shares, slack - 1 - residual[-2] / residual[-1]


def fit_risk(risk: Risk, n_features: int, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """The linear scorer of least ``½‖w‖² + c · risk``.

    Args:
        risk: the convex risk and a subgradient.
        n_features: F.
        settings: complete; ``c`` and the keys of :data:`.SOLVER`.
        job: its progress is reported.

    Raises:
        TrainingError: the solver did not reach its tolerance.
    """
    most = settings["max_planes"]
    minimum = minimise(
        risk,
        n_features,
        settings["c"],
        settings["tolerance"],
        most,
        lambda done, gap: job.progress(done, most, f"gap {gap:.2g}"),
    )
    steps = len(minimum.history)
    info = {"best_epoch": steps, "epochs": steps, "stopped_early": True, "gap": minimum.gap}
    return fitted(minimum.weights, minimum.history, info)
