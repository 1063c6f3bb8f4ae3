"""How many claims have which verdict, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from directrank.papers.shared.format import listed
from directrank.papers.shared.verdicts import CANNOT_TELL, CONTRADICTED, HOLDS, SAME_DIRECTION

#: What is said of one claim and of several claims with a verdict.
_PREDICATES = {
    HOLDS: ("holds", "hold"),
    CONTRADICTED: ("is contradicted", "are contradicted"),
    SAME_DIRECTION: (
        "points in the stated direction but could be chance",
        "point in the stated direction but could be chance",
    ),
    CANNOT_TELL: ("cannot be decided", "cannot be decided"),
}


def tally(counts: Mapping[str, Mapping[str, int]], ran: int, unmeasured: int) -> str:
    """The verdicts of an edition, counted.

    Args:
        counts: group of data → verdict → how many claims have it on this group.
        ran: how many claims were run only on stand-ins.
        unmeasured: how many claims were not measured.

    >>> tally({"other real data": {"holds": 3, "contradicted": 1}}, 0, 2)
    'Of the 4 claims measured on other real data, 3 hold and 1 is contradicted. 2 claims were not \
measured.'
    """
    sentences = [_sentence(group, verdicts) for group, verdicts in counts.items()]
    if ran:
        sentences.append(f"{_claims(ran)} ran only on stand-ins, which give no verdict.")
    if unmeasured:
        verb = "was" if unmeasured == 1 else "were"
        sentences.append(f"{_claims(unmeasured)} {verb} not measured.")
    return " ".join(sentences)


def _sentence(group: str, verdicts: Mapping[str, int]) -> str:
    claims = sum(verdicts.values())
    if len(verdicts) == 1:
        (verdict,) = verdicts
        which = "one claim" if claims == 1 else f"{claims} claims"
        return f"The {which} measured on {group} {_predicate(verdict, claims)}."
    parts = [
        f"{verdicts[verdict]} {_predicate(verdict, verdicts[verdict])}"
        for verdict in _PREDICATES
        if verdict in verdicts
    ]
    return f"Of the {claims} claims measured on {group}, {listed(parts)}."


def _predicate(verdict: str, claims: int) -> str:
    return _PREDICATES[verdict][claims > 1]


def _claims(count: int) -> str:
    return "1 claim" if count == 1 else f"{count} claims"
