"""The page of an edition's claims, and the count of verdicts that another page repeats."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from directrank import __version__
from directrank.papers.shared.claim_rows import claims_of, name_of
from directrank.papers.shared.claims import OVERALL
from directrank.papers.shared.format import listed, minus, p_value, paper_name
from directrank.papers.shared.pages import caption, heading_anchor, opening, write_part
from directrank.papers.shared.tables import markdown_rows
from directrank.papers.shared.verdicts import (
    GROUPS,
    MEANING,
    RAN,
    STANDIN,
    UNMEASURED,
    VERDICTS,
    tally,
)
from directrank.stats.estimates import TIE
from directrank.system.io import write_text

#: Marks around the part of a page that is written from a file of claims.
BEGIN, END = "<!-- claims: {edition} -->", "<!-- claims: end -->"


#: Results that say how sure it is that the effect is inside the claimed range.
OF_RANGE = ("equivalent", "not decided", "inside")

#: What a page says of the one beside it.
BY_COLLECTION = """\
This page has the verdicts by the papers' own experiments on whole claims. [Another \
page](claims_by_collection.md) has a verdict for every collection: on the part of a claim that was \
run there, or by one protocol where it was not. It may differ from the one here.
"""


def markdown(
    claims: pd.DataFrame,
    by_collection: bool = False,
    drawn: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The claims as a page: the count, all verdicts, then what is behind each.

    Args:
        claims: what :func:`directrank.papers.shared.claims.merge` returns.
        by_collection: whether there is a page of the verdicts on every collection.
        drawn: what :func:`drawn_from` returns.
    """
    overall = claims[claims["comparison"] == OVERALL]
    lines = ["# The papers' claims", "", *in_short(claims)]
    lines += [BY_COLLECTION] if by_collection else []
    lines += _how_to_cite(claims)
    lines += _how_to_read()
    columns = ["claim", "in words", "verdict here", "the printed numbers"]
    for paper in dict.fromkeys(overall["paper"]):
        own = overall[overall["paper"] == paper]
        rows = [
            [_link(row), name_of(row), in_cell(row), _text(row.printed_numbers)]
            for row in own.sort_values("verdict", key=_place, kind="stable").itertuples()
        ]
        lines += [
            f"## {paper_name(paper)}",
            "",
            *markdown_rows(columns, rows, left=len(columns)),
            "",
        ]
    lines += ["## The comparisons behind the verdicts", ""]
    for row in overall[overall["verdict"] != UNMEASURED].itertuples():
        part = claims[(claims["claim"] == row.claim) & (claims["comparison"] != OVERALL)]
        # The heading is the code alone, so that a link to the claim is short and stays.
        lines += [f"### {row.claim}", "", f"{name_of(row)}.", ""]
        lines += [f"The statement: {row.statement} ({row.paper}, {row.where}).", ""]
        lines += [f"{in_cell(row)}. {_text(row.remark)}".rstrip(), ""]
        links = (drawn or {}).get(row.claim)
        lines += [f"How it was measured: {'; '.join(links)}.", ""] if links else []
        lines += [*_details(part), ""]
    absent = overall[overall["verdict"] == UNMEASURED]
    if len(absent):
        lines += ["## Not measured", ""]
        for row in absent.itertuples():
            text = f"- {row.claim} ({row.paper}, {row.where}): {row.statement}. {_text(row.remark)}"
            lines.append(text.rstrip())
    return "\n".join(lines).rstrip() + "\n"


def _how_to_cite(claims: pd.DataFrame) -> list[str]:
    """How to cite a row, by the first comparison with an interval; nothing if there is none."""
    known = claims[(claims["comparison"] != OVERALL) & claims["low"].notna()]
    if known.empty:
        return []
    row = known.iloc[0]
    unit = f" {row['unit']}" if isinstance(row["unit"], str) and row["unit"] else ""
    numbers = f"{row['effect']:.4g}{unit} (95 % interval {row['low']:.4g} to {row['high']:.4g})"
    return [
        "To cite a number, name its row of [the CSV file](claims.csv), which also has the sample "
        "and the test, with the version and the commit of the repository. For example: claim "
        f"{row['claim']}, {row['comparison']}, {row['dataset']}: {minus(numbers)}, directrank "
        f"{__version__}, commit …, paper_tables/{row['edition']}/claims.csv.",
        "",
    ]


def _link(row: Any) -> str:
    """The code of a claim, with a link to what is behind its verdict."""
    known = row.verdict != UNMEASURED
    return f"[{row.claim}](#{row.claim.lower()})" if known else str(row.claim)


def drawn_from(claims: pd.DataFrame, tables: Path) -> dict[str, list[str]]:
    """Links to the figures and tables with whose runs each claim is tested; their captions describe
    training sets and settings.

    Args:
        claims: with the edition, and each claim's paper.
        tables: the edition's folder of tables; those that the edition does not make are left out.
    """
    figures = tables.parents[1] / "figures" / tables.name
    drawn: dict[str, list[str]] = {}
    for paper, name in claims[["paper", "claim"]].drop_duplicates().itertuples(index=False):
        known = claims_of(paper).get(name)
        for product in known.products if known else ():
            table, figure = (folder / paper / product for folder in (tables, figures))
            if (page := table.with_suffix(".md")).is_file():
                title, part = opening(page)[0], ""
            elif (picture := figure.with_suffix(".svg")).is_file():
                title, page = caption(picture)[0], figures / "README.md"
                part = f"#{heading_anchor(title)}"
            else:
                continue
            place = Path(os.path.relpath(page, tables)).as_posix()
            drawn.setdefault(name, []).append(f"[{title}]({place}{part})")
    return drawn


def write_page(claims: pd.DataFrame, path: str | Path, by_collection: bool = False) -> None:
    """Write :func:`markdown` to ``path``, with links to the figures and tables of its edition."""
    drawn = drawn_from(claims, Path(path).resolve().parent)
    write_text(path, markdown(claims, by_collection, drawn))


def in_cell(row: Any) -> str:
    """A verdict with the collection on which it rests, as table cells show it.

    Args:
        row: the row of the comparison ``overall``, with its columns as attributes.
    """
    if row.verdict == UNMEASURED:
        return UNMEASURED
    if row.verdict == RAN:
        return f"{RAN} on {row.dataset}: {row.outcome}"
    return f"**{row.verdict}** on {row.dataset} ({row.group})"


def in_short(claims: pd.DataFrame) -> list[str]:
    """Lines of Markdown: the counts of the verdicts, and a table of the claims that have each.

    Args:
        claims: with the comparison ``overall`` of each claim.
    """
    overall = claims[claims["comparison"] == OVERALL]
    counts = {
        group: overall["verdict"][overall["group"] == group].value_counts().to_dict()
        for group in GROUPS
        if (overall["group"] == group).any()
    }
    ran, absent = (int((overall["verdict"] == word).sum()) for word in (RAN, UNMEASURED))
    edition = overall["edition"].iloc[0]
    text = f"**Edition {edition}, {len(overall)} claims.** {tally(counts, ran, absent)}"
    in_doubt = overall["printed_numbers"].astype(str).str.contains("FALSE|mixed")
    if in_doubt.any():
        names = listed(overall.loc[in_doubt, "claim"].tolist())
        text += f" The papers' own tables contradict {names} at least in part."
    rows = []
    for verdict in VERDICTS[:-1]:
        cells = [verdict]
        for group in GROUPS:
            ids = overall["claim"][(overall["group"] == group) & (overall["verdict"] == verdict)]
            cells.append(f"{len(ids)}: {', '.join(ids)}" if len(ids) else "–")
        rows.append(cells)
    columns = ["verdict", *(f"on {group}" for group in GROUPS)]
    return [text, "", *markdown_rows(columns, rows, left=len(columns)), ""]


def replace_block(page: str | Path, claims: pd.DataFrame) -> None:
    """Write :func:`in_short` between the marks of the claims' edition in ``page``.

    Raises:
        DataError: the page has no such marks.
    """
    begin = BEGIN.format(edition=claims["edition"].iloc[0])
    write_part(page, begin, END, f"\n{chr(10).join(in_short(claims)).rstrip()}\n")


def _place(words: pd.Series) -> pd.Series:
    """Where verdicts stand in a table: those that decide first, what was not measured last."""
    order = [*VERDICTS[:-1], RAN, UNMEASURED]
    return words.map(order.index)


def _how_to_read() -> list[str]:
    meanings = "; ".join(f"*{word}*: {meaning}" for word, meaning in MEANING.items())
    return [
        "## How to read this page",
        "",
        f"There are five verdicts. {meanings}.",
        "",
        "A difference counts if p < 0.05 after Holm's correction over the tests of the claim. "
        "“The same” is tested by two one-sided tests: *equivalent* if the difference is smaller "
        "than the edition's margin, *different* if it is shown to be larger, and otherwise *not "
        "decided*. “The best” must be above every competitor. A number in a statement stands for a "
        "range, given by its rounding or a stated tolerance, in which the effect must lie. "
        "*Detectable* is the smallest difference, or the smallest margin, that these data would "
        "have shown with a probability of 80 % after the correction. Intervals are not corrected. "
        "*p* usually tests that there is no difference. Where “the same” or a range is claimed, it "
        "tests that the effect lies outside that range, unless it is shown to lie outside. [The "
        "standard of evidence](../../docs/evidence.md) says how differences are tested, and [the "
        "glossary](../../docs/glossary.md) explains the words.",
        "",
        "A verdict applies only to the data in its cell. If a claim is about several kinds of "
        f"data, its verdict is counted under the kind that decided it. {STANDIN} C01 to C23 are "
        "the claims with which the study began; D01 and later ones are further claims of the "
        "papers.",
        "",
    ]


def _details(part: pd.DataFrame) -> list[str]:
    columns = ["comparison", "data", "claimed", "effect", "95 % interval", "p", "p (Holm)",
               "detectable", "verdict"]  # fmt: skip
    rows = []
    for row in part.itertuples():
        of_range = math.isfinite(row.p_range) and row.outcome in OF_RANGE
        rows.append(
            [
                row.comparison,
                row.dataset,
                row.claimed,
                minus(f"{_rounded(row.effect):+.4g} {_text(row.unit)}".strip()),
                "" if math.isnan(row.low) else minus(f"{row.low:.4g} to {row.high:.4g}"),
                p_value(row.p_range if of_range else row.p_value),
                p_value(row.p_range_holm if of_range else row.p_holm),
                "" if math.isnan(row.detectable) else f"{row.detectable:.2g}",
                f"{row.verdict} ({row.outcome})",
            ]
        )
    how = dict.fromkeys(zip(part["sample"], part["test"], strict=True))
    note = " ".join(f"{sample}: {test}." for sample, test in how)
    return [*markdown_rows(columns, rows, left=3), "", note]


def _rounded(effect: float) -> float:
    """The effect, or 0 if it is a rounding error."""
    return 0.0 if abs(effect) < TIE else effect


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
