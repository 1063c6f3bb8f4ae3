"""The gallery: every figure small, with what the published picture shows and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from study_pages.claims import badge, link_to_tests
from study_pages.markup import choices, link, properties
from study_pages.outputs import (
    COMPARISON,
    Output,
    Verdict,
    bears_on,
    editions,
    figures,
    in_the_paper,
    papers,
    verdicts,
)
from study_pages.thumbnails import thumbnail

#: Above the cards.
MENUS = {"paper": "Paper", "edition": "Edition"}

#: Where the small copies lie, beside the page.
THUMBNAILS = "thumbnails"


def cards(root: Path, folder: Path) -> str:
    """The cards of all figures, and their thumbnails.

    Args:
        root: the repository's folder.
        folder: of the built page, which gets the thumbnails.
    """
    found = []
    for edition in editions(root):
        of_claims = {verdict.claim: verdict for verdict in reversed([*verdicts(root, edition)])}
        for paper in (*papers(), COMPARISON):
            found += [(figure, of_claims) for figure in figures(root, edition, paper)]
    entries = [_properties(figure) for figure, _ in found]
    items = [_card(root, folder, figure, of_claims) for figure, of_claims in found]
    menus = choices("#gallery > li", entries, MENUS)
    return "\n".join([menus, '<ul class="gallery" id="gallery">', *items, "</ul>"])


def _properties(figure: Output) -> Mapping[str, Sequence[str]]:
    return {"paper": [name_of(figure.paper)], "edition": [figure.edition]}


def name_of(paper: str) -> str:
    """A paper's name, or the comparison's, in print."""
    return paper.replace("_", " ").capitalize()


def _card(root: Path, folder: Path, figure: Output, of_claims: Mapping[str, Verdict]) -> str:
    place = f"{THUMBNAILS}/{figure.edition}/{figure.paper}/{figure.name}.png"
    width, height = thumbnail(root / f"{figure.stem}.png", folder / place)
    parts = [
        f"<li {properties(_properties(figure))}>",
        f'<img src="{place}" alt="" width="{width}" height="{height}" loading="lazy">',
        f"<h2>{link(f'figures/{figure.edition}/README', figure.title, figure.title)}</h2>",
        f'<p class="of">{name_of(figure.paper)}, edition {figure.edition}</p>',
    ]
    described = in_the_paper(figure)
    parts += [f"<p><b>In the paper:</b> {escape(text)}</p>" for text in described]
    said = [of_claims[claim] for claim in bears_on(figure) if claim in of_claims]
    if said:
        parts.append(f'<ul class="verdicts">{"".join(map(_in_short, said))}</ul>')
    parts.append(f"<details><summary>Caption</summary><p>{escape(figure.text)}</p></details></li>")
    return "".join(parts)


def _in_short(verdict: Verdict) -> str:
    text = f"{link_to_tests(verdict)} {badge(verdict.verdict)}: {escape(verdict.statement)}"
    return f"<li>{text}</li>"
