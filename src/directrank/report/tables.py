"""The tables of a report: Markdown as HTML, with heads, captions and links."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from html import escape

from markdown_it import MarkdownIt

#: A cell with so many characters has words, not numbers.
_PHRASE = 24


def table(
    markdown: str,
    title: str,
    claims: Collection[str],
    runs: Mapping[str, Mapping[str, str]],
) -> str:
    """A product's tables and the notes around them.

    Args:
        markdown: the product's file, whose first line is its heading.
        title: names a table that has no heading of its own to those who do not see where it is.
        claims: the claims that the product quotes; their names lead to the verdicts.
        runs: what a row may be named → run → its settings; the row leads to these runs, unless it
            says that it was not run.
    """
    _, _, body = markdown.partition("\n")
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(body)
    # The only mark-up that tables use besides bold.
    html = re.sub(r"&lt;(/?su[bp])&gt;", r"<\1>", html)
    html = re.sub(r"(?:<h2>(.*?)</h2>\s*)?<table>", lambda found: _beginning(found[1], title), html)
    html = html.replace("</table>", "</table></div>")
    html = re.sub(r"<(/?)h2>", r"<\1h4>", html)
    # A head without text is the head of nothing.
    html = re.sub(r"<th(?: [^>]*)?></th>", "<td></td>", html)
    html = re.sub(r"<th(?=[ >])", '<th scope="col"', html)
    html = re.sub(r"<strong>([A-Z]\d\d)</strong>", lambda found: _claim(found, claims), html)
    return re.sub(
        r"<tr>\s*<td([^>]*)>(.*?)</td>(.*?</tr>)",
        lambda found: _row(found[1], found[2], found[3], runs),
        html,
        flags=re.DOTALL,
    )


def _beginning(heading: str | None, title: str) -> str:
    """The beginning of a table, up to its caption: its heading, or else the title, unseen."""
    caption = (
        f"<caption>{heading}</caption>"
        if heading
        else f'<caption class="unseen">{escape(title)}</caption>'
    )
    return f'<div class="wide"><table>{caption}'


def _claim(found: re.Match[str], claims: Collection[str]) -> str:
    name, bold = found[1], found[0]
    return f'<a href="#{name}">{bold}</a>' if name in claims else bold


def _row(style: str, text: str, rest: str, runs: Mapping[str, Mapping[str, str]]) -> str:
    """A row, its first cell as its head, with links to the runs that this names."""
    rest = re.sub(
        r"<td([^>]*)>([^<]*)</td>",
        lambda cell: f"<td{_folding(cell[2])}{cell[1]}>{cell[2]}</td>",
        rest,
    )
    if not text:
        return f"<tr><td{style}></td>{rest}"
    named = {} if "not run" in rest else runs.get(re.sub(r"<[^>]+>", "", text).strip(), {})
    links = "".join(
        f' <a class="to-run" href="#run-{run}" title="{escape(settings)}">{number}</a>'
        for number, (run, settings) in enumerate(named.items(), 1)
    )
    return f'<tr><th scope="row"{_folding(text)}{style}>{text}{links}</th>{rest}'


def _folding(text: str) -> str:
    """The class of a cell that has words, which may be broken into lines."""
    return ' class="text"' if len(text) >= _PHRASE else ""
