"""The page of a paper: its verdicts, its tables with the published values, its figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from directrank.papers.one_protocol.by_collection import ONE_PROTOCOL
from directrank.papers.shared.product import paper_module
from directrank.papers.shared.tables import markdown_rows
from study_pages.outputs import Output, Verdict, editions, figures, in_the_paper, tables, verdicts

#: From a page below ``docs/papers`` to the repository's root.
UP = "../.."


def page(root: Path, paper: str) -> str:
    """The page in Markdown."""
    title = paper_module(paper).TITLE
    lines = [f"# {paper.capitalize()}", "", f"{title}.", "", *_verdicts(root, paper)]
    for heading, kind, shown in (("Tables", tables, _table), ("Figures", figures, _figure)):
        lines += [f"## {heading}", ""]
        of_names: dict[str, list[Output]] = {}
        for edition in editions(root):
            for output in kind(root, edition, paper):
                of_names.setdefault(output.name, []).append(output)
        for first, *others in of_names.values():
            lines += [f"### {first.title}", "", _editions(first, others), "", *shown(first), ""]
    return "\n".join(lines)


def _verdicts(root: Path, paper: str) -> Iterator[str]:
    """A row per claim, a column per edition."""
    names = editions(root)
    of_claims: dict[str, dict[str, Verdict]] = {}
    for edition in names:
        for verdict in verdicts(root, edition):
            if verdict.paper == paper and verdict.evidence != ONE_PROTOCOL:
                of_claims.setdefault(verdict.claim, {})[edition] = verdict
    rows = []
    for claim, found in of_claims.items():
        any_of_them = next(iter(found.values()))
        cells = [_cell(found[name]) if name in found else "–" for name in names]
        statement = f"{any_of_them.statement} ({any_of_them.where})"
        rows.append([claim, statement, *cells, any_of_them.printed])
    columns = ["claim", "statement", *(f"edition {name}" for name in names), "the printed numbers"]
    yield "## Verdicts"
    yield ""
    yield from markdown_rows(columns, rows, left=len(columns))
    yield ""
    links = ", ".join(f"[{name}]({UP}/paper_tables/{name}/claims.md)" for name in names)
    yield (
        f"The tests behind them, by edition: {links}. [All claims](../claims.md) can be chosen "
        "from by verdict and collection."
    )
    yield ""


def _cell(verdict: Verdict) -> str:
    return verdict.verdict + (f" ({verdict.evidence})" if verdict.evidence else "")


def _editions(first: Output, others: Sequence[Output]) -> str:
    text = f"Edition {first.edition}."
    if others:
        links = ", ".join(f"[{one.edition}]({_address(one)})" for one in others)
        text += f" Also made in: {links}."
    return text


def _address(output: Output) -> str:
    if output.kind == "figure":
        return f"{UP}/figures/{output.edition}/README.md"
    return f"{UP}/{output.stem}.md"


def _table(table: Output) -> Iterator[str]:
    """The table itself; its headings stand below the page's."""
    yield re.sub(r"^##", "####", table.text, flags=re.MULTILINE)
    yield ""
    yield _files(table, ("csv", "tex"))


def _figure(figure: Output) -> Iterator[str]:
    yield f"![{figure.title}]({UP}/{figure.stem}.png)"
    yield ""
    for text in in_the_paper(figure):
        yield f"**In the paper:** {text}"
        yield ""
    yield f"{figure.text} {_files(figure, ('pdf', 'svg', 'csv'))}"


def _files(output: Output, kinds: Sequence[str]) -> str:
    links = ", ".join(f"[{kind}]({UP}/{output.stem}.{kind})" for kind in kinds)
    return f"({links})"
