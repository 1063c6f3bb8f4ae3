"""What the tables of Pobrotyn2021 on training share: where a row comes from, and its numbers."""

from __future__ import annotations

import math
from typing import Any

from directrank.papers.shared.evidence import Evidence, PlannedRun

#: What a reader of a table on stand-ins must know.
STANDIN = "The data are a generated stand-in: differences may be compared, levels may not."


def about(evidence: Evidence, run: PlannedRun) -> dict[str, Any]:
    """Edition and data set of a row."""
    return {
        "edition": evidence.edition,
        "dataset": run.dataset.title,
        "data": run.dataset.kind,
    }


def standin_note(run: PlannedRun) -> list[str]:
    """The paragraph that warns of stand-ins, where they are."""
    return [STANDIN] if run.dataset.standin else []


def points(value: float) -> str:
    """A difference in NDCG points with its sign."""
    return f"{value:+.2f}".replace("-", "−")


def signed(value: float, half_width: float) -> str:
    """The same with the half width of its interval; empty for NaN."""
    if math.isnan(value):
        return ""
    return points(value) + ("" if math.isnan(half_width) else f" (±{half_width:.2f})")
