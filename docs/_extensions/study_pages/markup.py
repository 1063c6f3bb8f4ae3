"""HTML that Markdown has no words for: tables and lists whose entries can be chosen by a property.

A choice is a menu above the entries; ``choices.js`` shows those whose ``data-…`` has its value.
Links lead from a page of ``docs/`` to pages of the repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from docutils.nodes import make_id

#: Between the values of an entry that has several of a property.
SEVERAL = "|"


@dataclass(frozen=True)
class Row:
    """A row of a table: HTML by column, and its properties with all their values."""

    cells: Sequence[str]
    properties: Mapping[str, Sequence[str]]


def link(path: str, text: str, heading: str = "") -> str:
    """A link to a page, by its path in the repository without an ending.

    Args:
        path: e.g. ``paper_tables/real/qin2010/table4``.
        text: of the link.
        heading: below which to begin.
    """
    place = f"#{make_id(heading)}" if heading else ""
    return f'<a href="../{path}.html{place}">{escape(text)}</a>'


def choices(
    items: str, entries: Iterable[Mapping[str, Sequence[str]]], names: Mapping[str, str]
) -> str:
    """A menu for each property.

    Args:
        items: a CSS selector of what is chosen from.
        entries: the properties of each.
        names: property → how the menu calls it.
    """
    entries = list(entries)
    menus = []
    for key, name in names.items():
        values = dict.fromkeys(value for entry in entries for value in entry[key])
        options = "".join(f"<option>{escape(value)}</option>" for value in values)
        menus.append(
            f'<label>{escape(name)} <select name="{key}"><option value="">all</option>{options}'
            "</select></label>"
        )
    return (
        f'<form class="choices" data-items="{escape(items)}" hidden>{"".join(menus)}'
        '<span role="status"></span></form>'
    )


def properties(of_entry: Mapping[str, Sequence[str]]) -> str:
    """The properties of an entry as attributes."""
    return " ".join(
        f'data-{key}="{escape(SEVERAL.join(values))}"' for key, values in of_entry.items()
    )


def table(
    name: str,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Row],
    menus: Mapping[str, str],
) -> str:
    """A table below its menus.

    Args:
        name: its ``id`` on the page.
        caption: what it is.
        columns: their headings.
        rows: in order.
        menus: property → how its menu is called.
    """
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "\n".join(
        f"<tr {properties(row.properties)}>"
        + "".join(f"<td>{cell}</td>" for cell in row.cells)
        + "</tr>"
        for row in rows
    )
    return "\n".join(
        [
            choices(f"#{name} > tbody > tr", (row.properties for row in rows), menus),
            f'<div class="table-wrapper"><table class="study" id="{name}">'
            f"<caption>{escape(caption)}</caption>",
            f"<thead><tr>{head}</tr></thead>",
            f"<tbody>\n{body}\n</tbody></table></div>",
        ]
    )
