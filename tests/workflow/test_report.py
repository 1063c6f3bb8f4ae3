"""Snakemake's own report shows every product, by paper, with its caption."""

import json
import re
import zipfile

import pytest

from workflow_runs import output_of, snakemake

pytestmark = pytest.mark.slow


def variable(page: str, name: str):
    """What a script of the page assigns to a variable."""
    text = page[re.search(rf"var {name} = (?=\{{\")", page).end() :]
    return json.JSONDecoder().raw_decode(text)[0]


def test_snakemakes_report_shows_every_figure_and_table_with_its_caption(finished, tmp_path):
    out = tmp_path / "report.zip"
    process = snakemake(finished, "--report", str(out))
    assert process.returncode == 0, output_of(process)
    with zipfile.ZipFile(out) as archive:
        page = archive.read("report/report.html").decode()
    figure, table = "figures/tiny/bruch2019/figure1.svg", "paper_tables/tiny/bruch2019/table1.csv"
    assert variable(page, "categories") == {
        "Bruch et al. (2019): revisiting approximate metric optimisation": {
            "Figures": [figure],
            "Tables": [table],
        },
        "Claims": {"Other": ["paper_tables/tiny/claims.csv"]},
    }
    shown = variable(page, "results")
    assert shown[figure]["labels"]["product"] == "figure1"
    assert "sigmoid approximation" in shown[figure]["labels"]["title"]
    assert "The curves are analytic" in shown[figure]["caption"]
    assert "has the highest NDCG@10" in shown[table]["caption"].replace("&#64;", "@")
    assert not any("mailto" in item["caption"] for item in shown.values())
    assert "Five papers train a ranker" in page
