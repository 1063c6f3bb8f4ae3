"""Access to runs for Bruch2019's figures, table and claims.

Queries without a relevant document are left out of every mean, as in the paper (section 3.1);
NDCG is in per cent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from directrank.papers.shared.evidence import PlannedRun
from directrank.study.specification import value_at
from directrank.system.errors import DataError

CUTOFFS = (1, 5, 10)


def ndcg(run: PlannedRun, split: str, cutoff: int) -> np.ndarray:
    """Mean NDCG@cutoff in per cent over the queries with a relevant document, ``[trials]``."""
    return 100 * run.trial_means(split, f"ndcg@{cutoff}", "exclude")


def alpha(run: PlannedRun) -> float:
    """The sigmoid exponent with which a run was trained."""
    return float(_setting(run, "loss.alpha"))


def width(run: PlannedRun) -> int:
    """The width of a run's first hidden layer."""
    return int(_setting(run, "model.hidden")[0])


def depth(run: PlannedRun) -> str:
    """The paper's name of a run's network: B and the width of the first hidden layer."""
    return f"B{width(run)}"


def _setting(run: PlannedRun, path: str) -> Any:
    value = value_at(run.result.spec, path)
    if value is None:
        raise DataError(
            f"this run's specification has no '{path}'",
            "set it in the experiment",
            file=run.result.folder,
        )
    return value
