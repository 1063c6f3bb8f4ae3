"""The pages of an edition: its figures with their captions, its tables with their first lines."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

from directrank.papers.shared.evidence import read_published
from directrank.papers.shared.format import paper_name
from directrank.system.errors import DataError
from directrank.system.io import write_text

#: What the second panel and the first are called in a figure that prints them side by side.
_SIDES = {"left": "a", "right": "b"}

#: Characters that reStructuredText would read as markup, or as part of an address.
_MARKUP = re.compile(r"[\\*`|_@]")

#: Markup of Markdown and HTML that captions contain: emphasis, code and indices.
_EMPHASIS = re.compile(r"\*\*|`|</?(?:sub|sup)>")

_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"


def caption(svg_file: str | Path) -> tuple[str, str]:
    """Title and caption of a figure, from its SVG file (its PNG and PDF files contain the same).

    Raises:
        DataError: the file is missing or is not a figure of this study.
    """
    try:
        tree = ElementTree.parse(svg_file)
    except (OSError, ElementTree.ParseError) as error:
        raise DataError(f"not a figure: {error}", "draw it again", file=svg_file) from error
    title, text = (
        tree.findtext(f".//{_DUBLIN_CORE}{name}") or "" for name in ("title", "description")
    )
    if not (title and text):
        raise DataError("this SVG file has no title and caption", "draw it again", file=svg_file)
    return title, text


def write_figures(svg_files: Sequence[str | Path], out: str | Path) -> None:
    """Write a Markdown page that shows the figures, sorted by paper and number.

    Args:
        svg_files: the figures; the other formats and the CSV file are beside each.
        out: the page, such as ``figures/demo/README.md``; links are relative to it.
    """
    out = Path(out)
    lines = [f"# Figures of the edition {out.parent.name}", ""]
    for file in sorted(map(Path, svg_files), key=_order):
        title, text = caption(file)
        stem = Path(os.path.relpath(file, out.parent)).with_suffix("").as_posix()
        links = ", ".join(f"[{kind}]({stem}.{kind})" for kind in ("png", "pdf", "svg", "csv"))
        lines += [f"## {title}", "", f"![{title}]({stem}.png)", ""]
        for said in in_the_paper(file.parent.name, file.stem):
            lines += [f"**In the paper:** {said}", ""]
        lines += [f"{text} ({links})", ""]
    write_text(out, "\n".join(lines))


def in_the_paper(paper: str, figure: str) -> list[str]:
    """What the published picture shows: a sentence or more for each of its panels.

    Args:
        paper: e.g. ``bruch2019``.
        figure: e.g. ``figure2a``; a name without a number is none of the paper's.
    """
    name = re.fullmatch(r"figure(\d+)([a-h]?)(_.*)?", figure)
    if not name:
        return []
    rows = read_published("figures").astype(str)
    rows = rows[(rows["paper"] == paper) & (rows["figure"] == name[1])]
    return [_published_picture(row) for row in rows.to_dict("records") if _has_panel(row, name[2])]


def _has_panel(row: dict[str, str], letter: str) -> bool:
    panel = _SIDES.get(row["panel"], row["panel"])
    if not letter or panel == "nan":
        return True
    first, _, last = panel.partition("-")
    return first <= letter <= (last or first)


def _published_picture(row: dict[str, str]) -> str:
    parts = {key: text for key, text in row.items() if text != "nan"}
    text = f"{parts['y_axis']} against {parts['x_axis']}"
    for word, key in (("Curves", "curves"), ("Setting", "setting"), ("It shows", "claim")):
        if key in parts:
            text += f". {word}: {parts[key]}"
    return f"{text}."


def natural(name: str) -> list[int | str]:
    """A key that sorts numbers as numbers: ``figure2`` before ``figure10``."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _order(file: Path) -> tuple[str, list[int | str]]:
    return file.parent.name, natural(file.stem)


def write_tables(
    tables: Sequence[Path], out: Path, claims: bool = False, figures: bool = False
) -> None:
    """Write a Markdown page that names the tables, by paper.

    Args:
        tables: Markdown files, each with a heading and then a sentence about what is seen.
        out: the page, such as ``paper_tables/demo/README.md``; links are relative to it.
        claims: whether the edition has a page of verdicts on claims, to which it then links.
        figures: whether it has a page of figures, likewise.
    """
    edition = out.parent.name
    lead = (
        "Each table shows the published value beside ours, and its first sentence is computed from "
        "it."
    )
    others = ["[the verdicts](claims.md) on the papers' claims"] if claims else []
    others += [f"[the figures](../../figures/{edition}/README.md)"] if figures else []
    if others:
        subject = " and ".join(others).replace("[t", "[T", 1)
        lead += f" {subject} have {'pages' if len(others) > 1 else 'a page'} of their own."
    lines = [f"# Tables of the edition {edition}", "", lead, ""]
    for paper, files in groupby(sorted(tables, key=_order), key=lambda file: file.parent.name):
        lines += [f"## {paper_name(paper)}", ""]
        for file in files:
            title, lead = opening(file)
            place = Path(os.path.relpath(file, out.parent)).as_posix()
            lines += [f"- [{title}]({place}). {lead}".rstrip()]
        lines.append("")
    write_text(out, "\n".join(lines).rstrip() + "\n")


def write_captions(products: Sequence[Path], out: Path) -> None:
    """Write a caption ``<out>/<paper>/<product>.rst`` for each product.

    Snakemake's own report shows them; it reads reStructuredText.

    Args:
        products: SVG files of figures and Markdown files of tables, whose first paragraph is taken.
        out: the folder of the captions.

    Raises:
        DataError: a figure has no caption.
    """
    for file in products:
        title, text = caption(file) if file.suffix == ".svg" else opening(file)
        content = f"**{_plain(title)}**\n\n{_plain(text)}".rstrip() + "\n"
        write_text(out / file.parent.name / f"{file.stem}.rst", content)


def _plain(text: str) -> str:
    """A paragraph of reStructuredText without markup.

    >>> _plain("α* of `ndcg_10` for λMART<sub>GBM</sub>")
    'α\\\\* of ndcg\\\\_10 for λMARTGBM'
    """
    return _MARKUP.sub(lambda found: f"\\{found[0]}", _EMPHASIS.sub("", text))


def heading_anchor(title: str) -> str:
    """The anchor that code hosts and the site give a heading.

    >>> heading_anchor("Figure 2 of Bruch et al. (2019): NDCG against α")
    'figure-2-of-bruch-et-al-2019-ndcg-against-α'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def opening(table: Path) -> tuple[str, str]:
    """The title of a table and the first paragraph of its Markdown file.

    The paragraph is empty where a table or a heading comes first.
    """
    title, text = table.read_text(encoding="utf-8").split("\n", 1)
    first = text.strip().split("\n\n")[0]
    lead = "" if first.startswith(("|", "#")) else first.replace("\n", " ")
    return title.removeprefix("# "), lead


def with_part(text: str, begin: str, end: str, part: str) -> str:
    """The ``text`` with ``part`` between the first ``begin`` and the ``end`` that follows it.

    Raises:
        ValueError: one of the marks is missing.

    >>> with_part("a <!-- b --> old <!-- e --> c", "<!-- b -->", "<!-- e -->", " new ")
    'a <!-- b --> new <!-- e --> c'
    """
    head, has_begin, rest = text.partition(begin)
    _, has_end, tail = rest.partition(end)
    if not (has_begin and has_end):
        raise ValueError(f"no {begin!r} followed by {end!r}")
    return f"{head}{begin}{part}{end}{tail}"


def write_part(page: str | Path, begin: str, end: str, part: str) -> None:
    """Write ``part`` between the marks of a page.

    Raises:
        DataError: the page has no such marks.
    """
    path = Path(page)
    try:
        text = with_part(path.read_text(encoding="utf-8"), begin, end, part)
    except ValueError:
        raise DataError(
            "the page lacks the marks between which to write",
            f"add the lines {begin.strip()} and {end.strip()} where the text belongs",
            file=path,
        ) from None
    write_text(path, text)
