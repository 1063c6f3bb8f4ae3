"""How the report shows verdicts, durations and numbers."""

from __future__ import annotations

from directrank.papers.shared.format import minus, p_value
from directrank.papers.shared.verdicts import (
    CANNOT_TELL,
    CONTRADICTED,
    HOLDS,
    RAN,
    SAME_DIRECTION,
    UNMEASURED,
)

#: How a verdict is shown beside its words: not by colour alone.
SIGNS = {
    HOLDS: "✓",
    CONTRADICTED: "✗",
    SAME_DIRECTION: "~",
    CANNOT_TELL: "?",
    UNMEASURED: "–",
    RAN: "·",
}


def duration(seconds: float) -> str:
    """Seconds in the unit that a reader would choose.

    >>> [duration(seconds) for seconds in (45, 720, 12300)]
    ['45 s', '12 min', '3.4 h']
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def number(value: float | None) -> str:
    """Four digits that count; empty for None."""
    return "" if value is None else minus(f"{value:.4g}")


def probability(value: float | None) -> str:
    """A p value; empty for None."""
    return "" if value is None else p_value(value)
