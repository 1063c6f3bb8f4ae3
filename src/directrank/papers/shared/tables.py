"""Tables as Markdown and LaTeX, from one description of what the reader sees."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

#: What LaTeX needs in the place of a character; mark-up is handled separately.
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "$": r"\$",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "δ": r"$\delta$",
    "η": r"$\eta$",
    "λ": r"$\lambda$",
    "ρ": r"$\rho$",
    "ε": r"$\varepsilon$",
    "π": r"$\pi$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "χ": r"$\chi$",
    "±": r"$\pm$",
    "−": r"$-$",
    "×": r"$\times$",
    "≈": r"$\approx$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\to$",
    "⁻": r"\textsuperscript{$-$}",
    "¹": r"\textsuperscript{1}",
    "²": r"\textsuperscript{2}",
    "ᵀ": r"\textsuperscript{T}",
    "ŝ": r"$\hat{s}$",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "“": "``",
    "”": "''",
    "’": "'",
    "\u00a0": "~",
}


@dataclass(frozen=True)
class Section:
    """Rows under a common heading.

    Attributes:
        title: the heading; empty for none.
        rows: one string per column.
        columns: headings of this section, where they are not the table's.
    """

    title: str
    rows: Sequence[Sequence[str]]
    columns: Sequence[str] = ()


@dataclass(frozen=True)
class TableLayout:
    """A table as a reader sees it.

    All text is plain; the only mark-up is ``<sub>…</sub>`` and ``**…**`` (bold).

    Attributes:
        lead: the sentence on top, which says what is to be seen. What it states of results is
            computed from them.
        caption: what the table shows, on what data, at what scale.
        columns: the headings; the first column is set flush left, the others flush right.
        sections: the rows.
        notes: paragraphs under the table.
    """

    lead: str
    caption: str
    columns: Sequence[str]
    sections: Sequence[Section]
    notes: Sequence[str] = ()


Cells = Mapping[str, Callable[[Mapping[str, Any]], str]]
"""Heading → what a row shows below it, from the row's columns."""


def sections_of(data: pd.DataFrame, cells: Cells, by: str = "", title: str = "{}") -> list[Section]:
    """Sections with a line per row.

    Args:
        data: the rows; a number that a row does not have is NaN.
        cells: what a line shows, by the table's headings.
        by: the column whose values have a section each; all rows are in one without it.
        title: the heading of such a section, in which the braces stand for the value.
    """
    parts = [("", data)]
    if by:
        parts = [(title.format(name), part) for name, part in data.groupby(by, sort=False)]
    return [
        Section(name, [[cell(row) for cell in cells.values()] for row in part.to_dict("records")])
        for name, part in parts
    ]


def in_front(data: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """``data`` with constant columns in front."""
    own = [name for name in data if name not in columns]
    return data.assign(**columns)[[*columns, *own]]


def markdown(layout: TableLayout, title: str) -> str:
    """``layout`` as a Markdown page with the heading ``title``.

    What it says comes first, then the table, then how it is read.
    """
    lines = [f"# {title}", "", layout.lead, ""]
    for section in layout.sections:
        if section.title:
            lines += [f"## {section.title}", ""]
        lines += [*markdown_rows(section.columns or layout.columns, section.rows), ""]
    for paragraph in (layout.caption, *layout.notes):
        lines += [paragraph, ""]
    return "\n".join(lines)


def markdown_rows(
    columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1
) -> list[str]:
    """The lines of a Markdown table; the first ``left`` columns are set flush left."""
    cells = [[_cell(cell) for cell in row] for row in (columns, *rows)]
    # Padded to equal width, so that the file reads as a table without being rendered.
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(columns))]
    rule = [
        ":" + "-" * (width - 1) if i < left else "-" * (width - 1) + ":"
        for i, width in enumerate(widths)
    ]
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(padded) + " |")
    lines.insert(1, "| " + " | ".join(rule) + " |")
    return lines


def latex(layout: TableLayout, label: str) -> str:
    r"""``layout`` as a LaTeX ``table*`` labelled ``tab:<label>``; it needs the package booktabs."""
    headings = [section.columns or layout.columns for section in layout.sections]
    width = max(len(columns) for columns in headings)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{escape(f'{layout.lead} {layout.caption}')}}}",
        rf"\label{{tab:{label}}}",
        r"\scriptsize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
        r"\toprule",
        " & ".join(escape(column) for column in layout.columns) + r" \\",
    ]
    for section in layout.sections:
        lines.append(r"\midrule")
        if section.title:
            lines.append(rf"\multicolumn{{{width}}}{{c}}{{\textbf{{{escape(section.title)}}}}} \\")
            lines.append(r"\midrule")
        if section.columns:
            lines.append(" & ".join(escape(column) for column in section.columns) + r" \\")
            lines.append(r"\midrule")
        for row in section.rows:
            lines.append(" & ".join(escape(cell) for cell in row).rstrip() + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    if layout.notes:
        lines.append(r"\par\medskip\begin{minipage}{\textwidth}\footnotesize")
        lines += [escape(note) + r"\par" for note in layout.notes]
        lines.append(r"\end{minipage}")
    lines += [r"\end{table*}", ""]
    return "\n".join(lines)


def escape(text: str) -> str:
    """``text`` for LaTeX: special characters escaped, ``<sub>`` and ``**`` as commands."""
    parts = []
    for part in re.split(r"(<sub>.*?</sub>|\*\*.*?\*\*)", text):
        if part.startswith("<sub>"):
            parts.append(rf"\textsubscript{{{_characters(part[5:-6])}}}")
        elif part.startswith("**"):
            parts.append(rf"\textbf{{{_characters(part[2:-2])}}}")
        else:
            parts.append(_characters(part))
    return "".join(parts)


def _characters(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
