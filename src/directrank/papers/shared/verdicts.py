"""The five verdicts on a claim, their meanings and counts, and the data on which they rest.

Pages, tables, the report and the README take their words from here. Tables and figures quote
verdicts, which are always read from the file of claims.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from directrank.papers.shared.format import listed, minus, p_value
from directrank.system.errors import DataError

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
        "significant; it may even be shown to be within the margin"
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


#: The share of an interval's width below which an effect is a rounding error.
NOTHING = 1e-9


def quoted(claims_file: str | Path, names: Sequence[str]) -> list[str]:
    """A sentence or two for each claim: its verdict with collection, effect and interval.

    Measured times are left out, because they have a file of their own.

    Args:
        claims_file: a paper's ``claims.csv``.
        names: the claims, e.g. ``C08``.

    Raises:
        DataError: the file lacks one of the claims.
    """
    claims = pd.read_csv(claims_file)
    overall = claims[claims["comparison"] == "overall"].set_index("claim")
    sentences = []
    for name in names:
        if name not in overall.index:
            raise DataError(
                f"it has no verdict on {name}",
                "test the claims again with `directrank claims`",
                file=claims_file,
            )
        sentences.append(_quotation(name, overall.loc[name]))
    return sentences


def _quotation(name: str, row: Any) -> str:
    head = f"**{name}** ({row['where']}): {row['statement']}."
    if row["verdict"] == UNMEASURED:
        return f"{head} {UNMEASURED.capitalize()} here."
    if row["verdict"] == RAN:
        where = f"{row['dataset']}: {row['outcome']}"
        return f"{head} There is no verdict, because it ran only on generated data ({where})."
    text = f"{head} **{row['verdict'].capitalize()}** on {row['dataset']} ({row['group']})."
    remark = row["remark"] if isinstance(row["remark"], str) else ""
    if math.isnan(row["effect"]):
        return text
    decided = f"{remark} The effect there is {_number(row)}"
    return f"{text} {decided}".rstrip()


def _number(row: Any) -> str:
    unit = f" {row['unit']}" if isinstance(row["unit"], str) else ""
    # A mean of differences that cancel is not exactly 0.
    rounding = NOTHING * (row["high"] - row["low"])
    effect = 0.0 if abs(row["effect"]) < rounding else row["effect"]
    text = minus(f"{effect:.4g}{unit}")
    if math.isfinite(row["low"]):
        text += minus(f" (95 % interval {row['low']:.4g} to {row['high']:.4g})")
    if math.isfinite(row["p_holm"]):
        text += f", p (Holm) {p_value(row['p_holm'])}"
    if math.isfinite(row["p_range_holm"]):
        text += f" and {p_value(row['p_range_holm'])} that it is outside the claimed range"
    if math.isfinite(row["detectable"]):
        text += f"; the smallest detectable difference is {row['detectable']:.2g}"
    return f"{text}. It is claimed to be {row['claimed']}."
