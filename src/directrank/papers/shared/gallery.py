"""The page of an edition's figures: each picture with the caption that its files contain."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from directrank.papers.shared.evidence import PUBLISHED, read_published
from directrank.system.errors import DataError
from directrank.system.io import write_text

#: What the second panel and the first are called in a figure that prints them side by side.
_SIDES = {"left": "a", "right": "b"}

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


def write(svg_files: Sequence[str | Path], out: str | Path) -> None:
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
    rows = read_published(PUBLISHED, "figures").astype(str)
    rows = rows[(rows["paper"] == paper) & (rows["figure"] == name[1])]
    return [_described(row) for row in rows.to_dict("records") if _has_panel(row, name[2])]


def _has_panel(row: dict[str, str], letter: str) -> bool:
    panel = _SIDES.get(row["panel"], row["panel"])
    if not letter or panel == "nan":
        return True
    first, _, last = panel.partition("-")
    return first <= letter <= (last or first)


def _described(row: dict[str, str]) -> str:
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
