"""The committed pages of figures and tables are what the commands write from the files."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from awaited import committed
from directrank.edition.workflow import Workflow
from directrank.papers.one_protocol import numbers_page
from directrank.papers.shared import pages
from studies import study_of, workflow_of
from workflow_runs import ROOT

pytestmark = pytest.mark.slow

EDITIONS = ("demo", "real")


@pytest.fixture(scope="module", params=EDITIONS)
def study(request: pytest.FixtureRequest) -> Workflow:
    """A committed edition."""
    return workflow_of(study_of(request.param))


def rewritten(write, inputs: list[str], page: Path, tmp_path: Path) -> str:
    """What ``write`` makes of the committed files, in a copy of the folder's layout."""
    out = tmp_path / page.relative_to(ROOT)
    for name in inputs:
        for source in (ROOT / name, (ROOT / name).with_suffix(".csv")):
            copy = tmp_path / source.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.exists():
                copy.symlink_to(source)
    write([tmp_path / name for name in inputs], out)
    return out.read_text(encoding="utf-8")


def test_the_page_of_figures(study: Workflow, tmp_path: Path) -> None:
    page = ROOT / f"figures/{study.edition}/README.md"
    figures = committed(study.product_files("figure", ".svg"), f"figures/{study.edition}", ".svg")
    text = rewritten(pages.write_figures, figures, page, tmp_path)
    assert text == page.read_text(encoding="utf-8")
    assert "**In the paper:** NDCG (%) against alpha" in text


def test_the_page_of_tables(study: Workflow, tmp_path: Path) -> None:
    page = ROOT / f"paper_tables/{study.edition}/README.md"
    folder = f"paper_tables/{study.edition}"
    tables = committed(study.product_files("table", ".md"), folder, ".md")
    write = partial(pages.write_tables, claims=True, figures=True)
    text = rewritten(write, tables, page, tmp_path)
    assert text == page.read_text(encoding="utf-8")
    assert text.count("\n- [") == len(tables)


def test_the_page_of_tables_links_only_the_pages_that_its_edition_has(tmp_path: Path) -> None:
    table = tmp_path / "paper_tables/mine/qin2010/table1.md"
    table.parent.mkdir(parents=True)
    table.write_text("# A table\n\nWhat is seen.\n", encoding="utf-8")
    out = tmp_path / "paper_tables/mine/README.md"
    for pages_of, links in (
        ({}, []),
        ({"claims": True}, ["claims.md"]),
        ({"claims": True, "figures": True}, ["claims.md", "../../figures/mine/README.md"]),
    ):
        pages.write_tables([table], out, **pages_of)
        text = out.read_text(encoding="utf-8")
        assert re.findall(r"\]\((.*?)\)", text) == [*links, "qin2010/table1.md"]


def test_the_page_with_all_numbers_of_one_protocol(study: Workflow, tmp_path: Path) -> None:
    page = ROOT / f"paper_tables/{study.edition}/one_protocol/README.md"
    folder = f"paper_tables/{study.edition}"
    tables = committed(study.tables_of_one_protocol(".md"), folder, ".md")
    text = rewritten(numbers_page.write, tables, page, tmp_path)
    assert text == page.read_text(encoding="utf-8")
    assert text.count("\n## ") == len(study.product_files("values")) + 1


def test_what_a_figure_shows_in_its_paper_is_said_panel_by_panel() -> None:
    (left,) = pages.in_the_paper("burges2006", "figure2a")
    (right,) = pages.in_the_paper("burges2006", "figure2b")
    assert left != right
    assert pages.in_the_paper("bruch2019", "summary") == []
