"""The five verdicts on a claim, their meanings and counts, and the data on which they rest.

Pages, tables, the report and the README take their words from here.
"""

from __future__ import annotations

from collections.abc import Mapping

from directrank.papers.shared.format import listed

SUPPORTED = "supported"
CONTRADICTED = "contradicted"
TREND = "trend"
INCONCLUSIVE = "inconclusive"
UNMEASURED = "not measured"

#: The verdicts in the order of every page, with their meanings.
MEANING = {
    SUPPORTED: "every part of the statement was confirmed, and significantly so",
    CONTRADICTED: (
        "some part of the statement was contradicted, significantly so and by a difference that is "
        "not shown to be smaller than the margin"
    ),
    TREND: (
        "every part was measured and has the stated direction, but at least one of them is not "
        "significant"
    ),
    INCONCLUSIVE: (
        "no part was contradicted, but some part has the opposite direction, is a tie (also one "
        "within the margin), has too few values for a test, was not run, or states an equality "
        "for which neither equivalence nor a difference larger than the margin was shown"
    ),
    UNMEASURED: "no part of it was run",
}

VERDICTS = tuple(MEANING)

#: What replaces a verdict if everything was measured on generated stand-ins.
RAN = "ran"

#: The explanation of a stand-in that every page uses.
STANDIN = (
    "A stand-in is generated in the shape of a real collection. It shows that a method runs, but "
    "says nothing about the paper."
)

#: The groups of data on which a verdict can rest, the strongest first.
OWN, OTHER, RECOMPUTED = (
    "the paper's own data",
    "other real data",
    "recomputed or artificial data",
)
STANDIN_GROUP = "stand-in"

#: The same for real data that replace the paper's.
OTHER_DATA = (
    "These data are real, but not the paper's: their values cannot be compared with the printed "
    "ones, and verdicts on them are verdicts on other real data."
)

#: The groups for which verdicts are counted.
GROUPS = (OWN, OTHER, RECOMPUTED)


def group_of(name: str, origin: str, own: tuple[str, ...]) -> str:
    """The group of a result.

    Args:
        name: the name of its data set in the catalogue.
        origin: ``real``, ``standin`` or ``generated``.
        own: names of the data sets that the paper's statement is about.
    """
    if origin == "standin":
        return STANDIN_GROUP
    if origin == "generated":
        return RECOMPUTED
    return OWN if name in own else OTHER


def weakest(groups: list[str]) -> str:
    """The group of a verdict that rests on the results of several groups."""
    order = (*GROUPS, STANDIN_GROUP)
    return max(groups, key=order.index)


#: What is said of one claim and of several claims with a verdict.
_PREDICATES = {
    SUPPORTED: ("is supported", "are supported"),
    CONTRADICTED: ("is contradicted", "are contradicted"),
    TREND: ("shows a trend", "show a trend"),
    INCONCLUSIVE: ("is inconclusive", "are inconclusive"),
}


def tally(counts: Mapping[str, Mapping[str, int]], ran: int, unmeasured: int) -> str:
    """The verdicts of an edition, counted.

    Args:
        counts: group of data → verdict → how many claims have it on this group.
        ran: how many claims were run only on stand-ins.
        unmeasured: how many claims were not measured.

    >>> tally({"other real data": {"supported": 3, "contradicted": 1}}, 0, 2)
    'Of the 4 claims measured on other real data, 3 are supported and 1 is contradicted. 2 claims \
were not measured.'
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
