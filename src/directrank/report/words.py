"""How the report says verdicts, durations and numbers."""

from __future__ import annotations

from collections.abc import Mapping

from directrank.papers.shared.format import listed, minus, p_value
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

#: What so many claims do, of one and of several.
_PREDICATES = {
    HOLDS: ("holds", "hold"),
    CONTRADICTED: ("is contradicted", "are contradicted"),
    SAME_DIRECTION: (
        "points the way it should but could be chance",
        "point the way they should but could be chance",
    ),
    CANNOT_TELL: ("cannot be decided", "cannot be decided"),
}


def tally_sentence(group: str, counts: Mapping[str, int]) -> str:
    """What became of the claims that were measured on one group of data.

    >>> tally_sentence("other real data", {"holds": 3, "contradicted": 1})
    'Of the 4 claims measured on other real data, 3 hold and 1 is contradicted.'
    >>> tally_sentence("other real data", {"holds": 1})
    'The one claim measured on other real data holds.'
    """
    claims = sum(counts.values())
    if claims == 1:
        (verdict,) = counts
        return f"The one claim measured on {group} {_PREDICATES[verdict][0]}."
    parts = [
        f"{counts[verdict]} {one if counts[verdict] == 1 else several}"
        for verdict, (one, several) in _PREDICATES.items()
        if verdict in counts
    ]
    return f"Of the {claims} claims measured on {group}, {listed(parts)}."


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
