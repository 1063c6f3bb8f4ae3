"""The pages of results: what they say is what the committed files say."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from directrank.papers.shared.claims import OVERALL
from workflow_runs import ROOT

sys.path.append(str(ROOT / "docs/_extensions"))
import study_pages
from study_pages import claims, data, gallery, landing, paper_page, protocol
from study_pages.outputs import Output, editions, figures, in_the_paper, papers, verdicts
from study_pages.thumbnails import WIDTH, thumbnail


@pytest.fixture
def edition(tmp_path: Path) -> Path:
    """A folder with the committed claims of the edition real, and one of one protocol."""
    for path in ("config/real.yaml", "paper_tables/real/claims.csv"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    own = pd.read_csv(tmp_path / "paper_tables/real/claims.csv")
    row = {key: own.loc[0, key] for key in ("edition", "claim", "paper", "statement")}
    rows = [
        {**row, "dataset": "MSRD", "verdict": "holds", "source": "one protocol"},
        {**row, "dataset": "OHSUMED", "verdict": "holds", "source": "the paper's experiments"},
        {**row, "dataset": "MQ2008", "verdict": "not measured", "source": "one protocol"},
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "paper_tables/real/claims_by_collection.csv", index=False)
    return tmp_path


def figure(paper: str, name: str) -> Output:
    return Output("figure", "real", paper, name, "title", "caption")


def test_every_claim_of_every_edition_has_a_row():
    table = claims.every_claim(ROOT)
    for name in editions(ROOT):
        rows = pd.read_csv(ROOT / f"paper_tables/{name}/claims.csv")
        for row in rows[rows["comparison"] == OVERALL].itertuples():
            pattern = (
                rf'<tr [^>]*data-verdict="{row.verdict}" data-edition="{name}"[^\n]*>{row.claim}<'
            )
            assert re.search(pattern, table), (name, row.claim)


def test_one_protocol_adds_the_verdicts_that_the_papers_experiments_did_not_give(edition):
    found = verdicts(edition, "real")
    assert [one.collections for one in found if one.evidence == "one protocol"] == [("MSRD",)]
    assert claims.every_claim(edition).count('data-evidence="one protocol"') == 1


def test_a_claim_leads_to_the_figures_and_tables_that_it_is_measured_from():
    rows = claims.every_claim(ROOT).splitlines()
    real = [row for row in rows if 'data-edition="real"' in row and ">C08<" in row]
    (own,) = (row for row in real if 'data-collection="LETOR 3.0 OHSUMED"' in row)
    assert '<a href="../paper_tables/real/qin2010/table4.html">Table 4</a>' in own
    # On other collections one protocol decides.
    assert len(real) == 4
    assert all(
        '<a href="../docs/one_protocol.html">one protocol</a>' in row for row in real if row != own
    )


@pytest.mark.parametrize(
    ("paper", "name", "panels"),
    [
        ("burges2006", "figure1b", ["Log Seconds per Epoch"]),
        ("bruch2019", "figure2_yahoo", ["alpha, categorical positions"]),
        ("yu2020", "figure2c", ["nDCG@5"]),
        ("yu2020", "figure1", ["", "", ""]),
        ("qin2010", "summary", []),
        ("one_protocol", "figure_ohsumed", []),
    ],
)
def test_a_figure_is_described_by_the_published_panels_that_it_redraws(paper, name, panels):
    described = in_the_paper(figure(paper, name))
    assert len(described) == len(panels)
    assert all(part in text for part, text in zip(panels, described, strict=True))


def test_the_gallery_has_a_card_and_a_thumbnail_for_every_figure(tmp_path):
    text = gallery.cards(ROOT, tmp_path)
    for name in editions(ROOT):
        for paper in papers():
            for one in figures(ROOT, name, paper):
                place = f"thumbnails/{name}/{paper}/{one.name}.png"
                assert f'src="{place}"' in text
                assert (tmp_path / place).is_file()


def test_a_thumbnail_is_small_and_on_white_and_made_again_with_its_picture(tmp_path):
    picture, small = tmp_path / "large.png", tmp_path / "small.png"
    Image.new("RGBA", (3 * WIDTH, 30), (0, 0, 0, 0)).save(picture)
    assert thumbnail(picture, small) == (WIDTH, 10)
    assert Image.open(small).convert("RGB").getpixel((0, 0)) == (255, 255, 255)
    first = small.read_bytes()
    small.unlink()
    thumbnail(picture, small)
    assert small.read_bytes() == first


def test_the_page_of_a_paper_has_its_verdicts_tables_and_figures_each_once():
    text = paper_page.page(ROOT, "qin2010")
    headings = re.findall(r"^### (.*)$", text, flags=re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert "../../figures/real/qin2010/figure2.png" in text
    assert re.search(r"^\| C08 ", text, flags=re.MULTILINE)
    assert "| ApproxNDCG " in text


def test_pages_of_papers_that_are_gone_are_removed(tmp_path):
    (tmp_path / "nobody1900.md").write_text("# Nobody1900\n", encoding="utf-8")
    study_pages.write_pages(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(papers())


def test_one_protocol_has_a_row_per_method_and_scorer_of_each_collection():
    table = protocol.every_method(ROOT)
    expected = 0
    for name in editions(ROOT):
        for file in ROOT.glob(f"paper_tables/{name}/one_protocol/table_*.csv"):
            frame = pd.read_csv(file)
            if "better_than" in frame and "metric" in frame:
                expected += len(frame.drop_duplicates(["dataset", "scorer", "method"]))
    assert table.count("<tr data-") == expected > 0


def test_the_landing_page_counts_the_verdicts_of_the_files():
    text = landing.what_we_found(ROOT)
    overall = pd.read_csv(ROOT / "paper_tables/real/claims.csv").query("comparison == @OVERALL")
    assert f"**Edition real, {len(overall)} claims.**" in text
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert target.startswith("http") or (ROOT / "docs" / target).exists(), target


def test_every_edition_has_a_tree_of_its_data():
    assert all(f"../figures/{name}/data/*" in data.of_editions(ROOT) for name in editions(ROOT))


@pytest.mark.parametrize("page", study_pages.PARTS)
def test_a_page_without_a_place_for_a_part_is_an_error(page, tmp_path):
    with pytest.raises(LookupError, match=re.escape(page)):
        study_pages.filled(page, "no marks", ROOT, tmp_path)


def test_every_collection_has_a_page_of_its_data():
    compared = ROOT.glob("paper_tables/*/one_protocol/per_query_*.parquet")
    places = [(path.parents[1].name, path.stem.removeprefix("per_query_")) for path in compared]
    assert len(places) > 4
    for edition, name in places:
        folder = ROOT / "figures" / edition / "data"
        assert name in set(pd.read_csv(folder / "datasets.csv")["data set"])
        for suffix in ("md", "csv", "png", "svg"):
            assert (folder / f"{name}.{suffix}").is_file(), (edition, name, suffix)
