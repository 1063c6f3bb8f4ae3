"""The page of an edition's tables: each by its title, with the sentence that says what is seen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from directrank.papers.shared.gallery import natural
from directrank.system.io import write_text


def write(tables: Sequence[Path], out: Path) -> None:
    """Write a Markdown page that names the tables, by paper.

    Args:
        tables: Markdown files, each with a heading and then a sentence about what is seen.
        out: the page, such as ``paper_tables/demo/README.md``; links are relative to it.
    """
    edition = out.parent.name
    lines = [
        f"# Tables of the edition {edition}",
        "",
        "Each table shows the published value beside ours, and its first sentence is computed from "
        "it. [The verdicts](claims.md) on the papers' claims and [the figures]"
        f"(../../figures/{edition}/README.md) have pages of their own.",
        "",
    ]
    order = sorted(tables, key=lambda file: (file.parent.name, natural(file.stem)))
    for paper, files in groupby(order, key=lambda file: file.parent.name):
        lines += [f"## {paper}", ""]
        for file in files:
            title, text = file.read_text(encoding="utf-8").split("\n", 1)
            place = Path(os.path.relpath(file, out.parent)).as_posix()
            lines += [f"- [{title.removeprefix('# ')}]({place}). {_lead(text)}".rstrip()]
        lines.append("")
    write_text(out, "\n".join(lines).rstrip() + "\n")


def _lead(text: str) -> str:
    """The first paragraph; empty where a table or a heading comes first."""
    first = text.strip().split("\n\n")[0]
    return "" if first.startswith(("|", "#")) else first.replace("\n", " ")
