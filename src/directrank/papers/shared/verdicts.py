"""The five verdicts on a claim, their meanings, and the groups of data on which they rest.

Pages, tables, the report and the README take their words from here.
"""

from __future__ import annotations

HOLDS = "holds"
CONTRADICTED = "contradicted"
SAME_DIRECTION = "same direction, could be chance"
CANNOT_TELL = "cannot tell"
UNMEASURED = "not measured"

#: The verdicts in the order of every page, with their meanings.
MEANING = {
    HOLDS: "every part of the statement was confirmed, and significantly so",
    CONTRADICTED: "some part of the statement was contradicted, and significantly so",
    SAME_DIRECTION: (
        "every part was measured and has the stated direction, but at least one of them "
        "could be chance"
    ),
    CANNOT_TELL: (
        "no part was contradicted significantly, but some part has the opposite "
        "direction, is a tie, has too few values for a test, was not run, or states an equality "
        "for which neither equivalence nor a difference was shown"
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
