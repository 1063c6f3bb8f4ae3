"""The parts of the landing page: what was found, as the README has it, and the papers."""

from __future__ import annotations

import re
from pathlib import Path

from directrank.papers.shared.claims_page import BEGIN, END, in_short
from directrank.papers.shared.format import listed
from directrank.system.marked import with_part
from study_pages.outputs import claims, editions, papers

#: The README's section.
SECTION = "## What we found"


def what_we_found(root: Path) -> str:
    """The README's section, with links from ``docs/`` and the verdicts of the files of claims.

    Raises:
        LookupError: the README has no such section.
    """
    _, heading, rest = (root / "README.md").read_text(encoding="utf-8").partition(SECTION)
    if not heading:
        raise LookupError(f"README.md has no section “{SECTION}”")
    text = heading + rest.partition("\n## ")[0]
    for edition in editions(root):
        begin = BEGIN.format(edition=edition)
        if begin in text:
            counts = "\n".join(in_short(claims(root, edition)))
            text = with_part(text, begin, END, f"\n{counts.rstrip()}\n")
    return re.sub(r"\]\((?!https?:|#)", "](../", text).strip()


def links_to_papers() -> str:
    """The pages of the papers, in Markdown."""
    return listed([f"[{paper.capitalize()}](papers/{paper}.md)" for paper in papers()])
