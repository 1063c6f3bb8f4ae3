"""The five verdicts on a claim, what each means, and on whose data it was reached.

Page, tables, report and README take their words from here.
"""

from __future__ import annotations

HOLDS = "holds"
CONTRADICTED = "contradicted"
SAME_DIRECTION = "same direction, could be chance"
CANNOT_TELL = "cannot tell"
UNMEASURED = "not measured"

#: The verdicts in the order of every page, with what each says.
MEANING = {
    HOLDS: "every part of the statement came out as it says, by more than chance",
    CONTRADICTED: "some part of the statement came out otherwise, by more than chance",
    SAME_DIRECTION: (
        "every part was measured and points the way the statement says, but at least one of them "
        "could be chance"
    ),
    CANNOT_TELL: (
        "some part points the other way, is a tie, has too few values for a test, was not run, or "
        "is said to be the same and is neither shown to be nor to differ; none by more than chance "
        "otherwise"
    ),
    UNMEASURED: "nothing of it was run",
}

VERDICTS = tuple(MEANING)

#: What stands in the place of a verdict where everything was measured on generated stand-ins.
RAN = "ran"

#: What a stand-in is, in the one sentence that every page has for it.
STANDIN = (
    "A stand-in is generated in the shape of a real collection. It shows that a method runs; what "
    "comes out says nothing about the paper."
)

#: On whose data a verdict rests, the strongest first.
OWN, OTHER, RECOMPUTED = (
    "the paper's own data",
    "other real data",
    "recomputed or artificial data",
)
STANDIN_GROUP = "stand-in"

#: The same of real data in the place of the paper's.
OTHER_DATA = (
    "These data are real, and not the paper's: their levels cannot be compared with the printed "
    "ones, and a verdict on them is one on other real data."
)

#: Groups that verdicts are counted in.
GROUPS = (OWN, OTHER, RECOMPUTED)


def group_of(name: str, origin: str, own: tuple[str, ...]) -> str:
    """The group of a result.

    Args:
        name: of its data set in the catalogue.
        origin: ``real``, ``standin`` or ``generated``.
        own: names of the data sets that the paper's statement is about.
    """
    if origin == "standin":
        return STANDIN_GROUP
    if origin == "generated":
        return RECOMPUTED
    return OWN if name in own else OTHER


def weakest(groups: list[str]) -> str:
    """The group of a verdict that rests on results of several groups."""
    order = (*GROUPS, STANDIN_GROUP)
    return max(groups, key=order.index)
