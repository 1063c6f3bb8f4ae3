"""Markdown and LaTeX of tables."""

from __future__ import annotations

from directrank.papers.shared.tables import (
    Section,
    TableLayout,
    escape,
    latex,
    markdown,
    markdown_rows,
)

LAYOUT = TableLayout(
    lead="GBM is ahead by 8 points.",
    caption="Shares of 5% & more.",
    columns=("Method", "NDCG@1", "paper"),
    sections=(
        Section("On A", (("λMART<sub>GBM</sub>", "50.33 ± 0.22", ""), ("a_b|c", "1.0", "2.0"))),
        Section("", (("x", "−1", "β ≤ 3"),)),
    ),
    notes=("**Bold** note.",),
)


def test_markdown_says_what_to_see_above_the_table_and_how_to_read_it_below() -> None:
    lines = markdown(LAYOUT, "Table 1").splitlines()
    assert lines[0] == "# Table 1"
    assert lines[2] == LAYOUT.lead
    table = [number for number, line in enumerate(lines) if line.startswith("|")]
    assert lines.index("## On A") < table[0]
    assert lines[table[-1] + 2 :] == [LAYOUT.caption, "", "**Bold** note."]


def test_markdown_rows_are_aligned_and_escape_the_bar() -> None:
    rows = markdown_rows(("Method", "x"), (("a|b", "1"), ("c", "22.5")))
    assert rows == [
        "| Method |    x |",
        "| :----- | ---: |",
        "| a\\|b   |    1 |",
        "| c      | 22.5 |",
    ]


def test_latex_escapes_what_is_special() -> None:
    assert escape("5% & a_b #1") == r"5\% \& a\_b \#1"
    assert escape("λMART<sub>Rank_Lib</sub>") == r"$\lambda$MART\textsubscript{Rank\_Lib}"
    assert escape("**so** ±1") == r"\textbf{so} $\pm$1"
    assert escape("p < 0.05") == r"p $<$ 0.05"
    assert escape("χ² = 1.2") == r"$\chi$\textsuperscript{2} = 1.2"


def test_latex_is_balanced_and_ascii() -> None:
    text = latex(LAYOUT, "bruch2019-table1")
    assert text.isascii()
    assert text.count("{") == text.count("}")
    assert text.count(r"\begin{") == text.count(r"\end{")
    assert r"\label{tab:bruch2019-table1}" in text
    assert r"\caption{GBM is ahead by 8 points. Shares of 5\% \& more.}" in text


def test_latex_rows_have_one_cell_per_column() -> None:
    rows = [line for line in latex(LAYOUT, "t").splitlines() if line.endswith(r"\\")]
    cells = [row.replace(r"\&", "").count("&") for row in rows if "multicolumn" not in row]
    assert cells == [2, 2, 2, 2]


def test_section_may_have_headings_of_its_own() -> None:
    layout = TableLayout(
        "Lead.",
        "Caption.",
        ("a", "b"),
        (Section("", (("1", "2"),)), Section("More", (("3", "4", "5"),), ("c", "d", "e"))),
    )
    lines = markdown(layout, "T").splitlines()
    assert (
        lines.index("| c   |   d |   e |") > lines.index("## More") > lines.index("| a   |   b |")
    )
    text = latex(layout, "t")
    assert r"\begin{tabular}{lrr}" in text  # as wide as the widest section
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert [row for row in rows if "multicolumn" not in row] == [
        r"a & b \\",
        r"1 & 2 \\",
        r"c & d & e \\",
        r"3 & 4 & 5 \\",
    ]
