"""The parts of the pages that come from the files of claims."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from directrank.papers.one_protocol.by_collection import ONE_PROTOCOL
from directrank.papers.shared.format import listed
from directrank.papers.shared.verdicts import MEANING, RAN, STANDIN, UNMEASURED
from study_pages.markup import Row, link, table
from study_pages.outputs import Output, Verdict, editions, figures, measured_on, tables, verdicts

#: Above the table.
MENUS = {
    "paper": "Paper",
    "verdict": "Verdict",
    "edition": "Edition",
    "evidence": "Evidence",
    "collection": "Collection",
}

COLUMNS = (
    "claim", "paper", "statement", "verdict", "evidence", "edition", "measured on",
    "the printed numbers",
)  # fmt: skip


def every_claim(root: Path) -> str:
    """The table of all verdicts of all editions."""
    rows = []
    for edition in editions(root):
        found = verdicts(root, edition)
        shown = {
            paper: [*figures(root, edition, paper), *tables(root, edition, paper)]
            for paper in dict.fromkeys(verdict.paper for verdict in found)
        }
        rows += [_row(verdict, shown[verdict.paper]) for verdict in found]
    caption = "The verdict of each edition on each claim"
    return table("claims", caption, COLUMNS, rows, MENUS)


def what_verdicts_mean() -> str:
    """Every verdict in words, as Markdown."""
    words = [f"**{word}**\n: {meaning}" for word, meaning in MEANING.items()]
    return "\n\n".join([*words, f"**{RAN}**\n: {STANDIN}"])


def link_to(output: Output) -> str:
    """A link to a figure or table on the pages of its edition."""
    if output.kind == "figure":
        return link(f"figures/{output.edition}/README", output.label, output.title)
    return link(output.stem, output.label)


def link_to_tests(verdict: Verdict) -> str:
    """A link from the number of a claim to its tests, or to why there are none."""
    folder = f"paper_tables/{verdict.edition}"
    if verdict.evidence == ONE_PROTOCOL:
        return link(f"{folder}/claims_by_collection", verdict.claim)
    if verdict.verdict == UNMEASURED:
        return link(f"{folder}/claims", verdict.claim, "Not measured")
    return link(f"{folder}/claims", verdict.claim, f"{verdict.claim}: {verdict.statement}")


def badge(verdict: str) -> str:
    """A verdict, marked as such."""
    return f'<span class="verdict" data-verdict="{escape(verdict)}">{escape(verdict)}</span>'


def _row(verdict: Verdict, shown: Sequence[Output]) -> Row:
    cells = [
        link_to_tests(verdict),
        f"{link(f'docs/papers/{verdict.paper}', verdict.paper.capitalize())}, "
        f"{escape(verdict.where)}",
        escape(verdict.statement),
        badge(verdict.verdict),
        escape(_evidence(verdict)),
        verdict.edition,
        _sources(verdict, shown),
        escape(verdict.printed),
    ]
    properties = {
        "paper": [verdict.paper.capitalize()],
        "verdict": [verdict.verdict],
        "edition": [verdict.edition],
        "evidence": [verdict.evidence] if verdict.evidence else [],
        "collection": verdict.collections,
    }
    return Row(cells, properties)


def _sources(verdict: Verdict, shown: Sequence[Output]) -> str:
    if verdict.evidence == ONE_PROTOCOL:
        return link("docs/one_protocol", ONE_PROTOCOL)
    links = [link_to(output) for output in measured_on(verdict, shown)]
    return listed(links) if links else "–"


def _evidence(verdict: Verdict) -> str:
    return f"{verdict.evidence}: {listed(verdict.collections)}" if verdict.collections else "–"
