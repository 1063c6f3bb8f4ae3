"""The figures and tables of a report, as HTML; the Markdown of tables gets heads and links."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markdown_it import MarkdownIt

from directrank.papers.shared import pages
from directrank.papers.shared.product import Product, product

#: What stands in the place of a file of values.
VALUES = (
    "<p>Every method's value of every test query, to compute with: "
    "<code>directrank.open_results</code> reads the file.</p>"
)

#: How the sentence begins with which a caption turns from what is drawn to where it is from.
_ORIGIN = re.compile(r"(?<=\.) (?:Data:|Edition |These data |Analytic:|[A-Z]\d\d \()")

#: A claim's name, where a caption begins to quote the verdict on it.
_QUOTED = re.compile(r"\b([A-Z]\d\d) \(")


@dataclass(frozen=True)
class Cell:
    """A run that a product is made of, with the settings that identify it in the product."""

    run: str
    settings: Mapping[str, Any]

    def __str__(self) -> str:
        return ", ".join(f"{key} {value}" for key, value in self.settings.items())


@dataclass(frozen=True)
class ProductSection:
    """A figure or a table with how it was made.

    Attributes:
        name: e.g. ``table1``.
        kind: ``figure``, ``table`` or ``values``.
        address: where it is within the page.
        title: its heading.
        body: HTML: the picture with its caption, or the table with its notes.
        files: link text → address, relative to the report.
        command: what makes it again.
        experiments: name → the runs.
        seconds: time that its runs took together.
    """

    name: str
    kind: str
    address: str
    title: str
    body: str
    files: Mapping[str, str]
    command: str
    experiments: Mapping[str, Sequence[Cell]]
    seconds: float

    @property
    def short_title(self) -> str:
        """Its title without the paper, for a place where that is known."""
        return short(self.title)


def anchor(paper: str, name: str) -> str:
    """The address of a product within the page."""
    return f"{paper}-{name}"


def short(title: str) -> str:
    """The title of a product without the paper that it names.

    >>> short("Figure 2 of Bruch et al. (2019): NDCG against the sigmoid exponent")
    'Figure 2: NDCG against the sigmoid exponent'
    """
    return re.sub(r" of [^:]*?\(\d{4}\)", "", title)


def cells(plan: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The runs of a product's plan, each with the settings that identify it."""
    return (cell for listed in plan["experiments"].values() for cell in listed)


def product_section(
    plan: Mapping[str, Any],
    seconds: Mapping[str, float],
    folders: Mapping[str, Path],
    here: Path,
    command: str,
) -> ProductSection:
    """What the report shows of a product.

    Args:
        plan: of the product.
        seconds: run → how long it took.
        folders: kind of product → where the edition has its files.
        here: the folder of the report; links are relative to it.
        command: what makes a file again, the file left out.
    """
    paper, name = plan["paper"], plan["product"]
    item = product(paper, name)
    stem = folders[item.kind] / paper / name
    body = {"figure": _picture, "table": _table, "values": _values}[item.kind]
    return ProductSection(
        name=name,
        kind=item.kind,
        address=anchor(paper, name),
        title=item.title,
        body=body(stem, item, plan),
        files={
            suffix.lstrip("._"): Path(os.path.relpath(f"{stem}{suffix}", here)).as_posix()
            for suffix in item.suffixes
        },
        command=f"{command} {stem}{item.suffixes[0]}",
        experiments={
            key: [Cell(cell["run"], cell["settings"]) for cell in listed]
            for key, listed in plan["experiments"].items()
            if listed
        },
        seconds=sum(seconds[run] for run in {cell["run"] for cell in cells(plan)}),
    )


def _values(stem: Path, item: Product, plan: Mapping[str, Any]) -> str:
    return VALUES


def _picture(stem: Path, item: Product, plan: Mapping[str, Any]) -> str:
    """The drawing as an image, so that identifiers in it cannot meet those of another."""
    svg = stem.with_name(f"{stem.name}.svg")
    _, caption = pages.caption(svg)
    linked = _QUOTED.sub(
        lambda found: (
            f'<a href="#{found[1]}">{found[1]}</a> (' if found[1] in item.claims else found[0]
        ),
        escape(caption),
    )
    return (
        f'<figure><img alt="{escape(_what_is_drawn(caption))}" src="{_data_address(svg)}">'
        f"<figcaption>{linked}</figcaption></figure>"
    )


def _what_is_drawn(caption: str) -> str:
    """The sentences of a caption that say what is drawn."""
    return _ORIGIN.split(caption, maxsplit=1)[0]


def _data_address(svg: Path) -> str:
    """The drawing in an address, as text: that is a fifth shorter than Base64."""
    text = re.sub(r"\s+", " ", svg.read_text(encoding="utf-8"))
    address = "data:image/svg+xml," + quote(text, safe=" !$&'()*+,-./:;=?@[]^_`{|}~<>")
    return address.replace("&", "&amp;")  # all that an attribute in quotes needs


def _table(stem: Path, item: Product, plan: Mapping[str, Any]) -> str:
    runs: dict[str, dict[str, str]] = {}
    for cell in cells(plan):
        for value in cell["settings"].values():
            runs.setdefault(str(value), {})[cell["run"]] = str(Cell(cell["run"], cell["settings"]))
    markdown = stem.with_name(f"{stem.name}.md").read_text(encoding="utf-8")
    return table(markdown, item.title, item.claims, runs)


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
    html = re.sub(
        r"(?:<h2>(.*?)</h2>\s*)?<table>", lambda found: _table_start(found[1], title), html
    )
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


def _table_start(heading: str | None, title: str) -> str:
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
        lambda cell: f"<td{_cell_class(cell[2])}{cell[1]}>{cell[2]}</td>",
        rest,
    )
    if not text:
        return f"<tr><td{style}></td>{rest}"
    named = {} if "not run" in rest else runs.get(re.sub(r"<[^>]+>", "", text).strip(), {})
    links = "".join(
        f' <a class="to-run" href="#run-{run}" title="{escape(settings)}">{number}</a>'
        for number, (run, settings) in enumerate(named.items(), 1)
    )
    return f'<tr><th scope="row"{_cell_class(text)}{style}>{text}{links}</th>{rest}'


def _cell_class(text: str) -> str:
    """The class of a cell that has words, which may be broken into lines."""
    return ' class="text"' if len(text) >= _PHRASE else ""
