"""The figures and tables of a report, as HTML."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from directrank.papers.shared import gallery
from directrank.papers.shared.product import TIMES, Product, product
from directrank.report.tables import table

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
            for suffix in _suffixes(item)
        },
        command=f"{command} {stem}{item.suffixes[0]}",
        experiments={
            key: [Cell(cell["run"], cell["settings"]) for cell in listed]
            for key, listed in plan["experiments"].items()
            if listed
        },
        seconds=sum(seconds[run] for run in {cell["run"] for cell in cells(plan)}),
    )


def _suffixes(item: Product) -> Sequence[str]:
    return (*item.suffixes, TIMES) if item.timed else item.suffixes


def _values(stem: Path, item: Product, plan: Mapping[str, Any]) -> str:
    return VALUES


def _picture(stem: Path, item: Product, plan: Mapping[str, Any]) -> str:
    """The drawing as an image, so that identifiers in it cannot meet those of another."""
    svg = stem.with_name(f"{stem.name}.svg")
    _, caption = gallery.caption(svg)
    linked = _QUOTED.sub(
        lambda found: (
            f'<a href="#{found[1]}">{found[1]}</a> (' if found[1] in item.claims else found[0]
        ),
        escape(caption),
    )
    return (
        f'<figure><img alt="{escape(_seen(caption))}" src="{_data_address(svg)}">'
        f"<figcaption>{linked}</figcaption></figure>"
    )


def _seen(caption: str) -> str:
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
