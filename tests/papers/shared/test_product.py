"""Building a product: its files, their bytes, and what happens when something is missing."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pandas as pd
import pytest
from PIL import Image

from directrank.papers.shared import evidence, figures
from directrank.papers.shared.evidence import Dataset, gather, origin_line
from directrank.papers.shared.pages import caption, write_figures
from directrank.papers.shared.product import FigureResult, draw, product, products
from directrank.papers.shared.product import build as build_product
from directrank.system.errors import ConfigError, DataError, DirectrankError
from directrank.system.io import read_json
from papers_synthetic import alpha_sweep, build, make_plan, make_run, table1_runs


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A plan of Figure 2 and its runs."""
    folder = tmp_path_factory.mktemp("sweep")
    entries = alpha_sweep(folder / "runs")
    return make_plan(folder, "bruch2019", "figure2", {"alpha_sweep": entries}), folder / "runs"


@pytest.mark.slow
def test_figure_is_written_in_every_format(sweep: tuple[Path, Path], tmp_path: Path) -> None:
    paths = build(*sweep, tmp_path / "figure2", every_format=True)
    assert [path.name for path in paths] == [
        "figure2.png",
        "figure2.pdf",
        "figure2.svg",
        "figure2.csv",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    with Image.open(tmp_path / "figure2.png") as image:
        assert round(image.info["dpi"][0]) == 300
        assert round(image.width / 300, 2) == 3.35


@pytest.mark.slow
def test_equal_results_give_equal_bytes(sweep: tuple[Path, Path], tmp_path: Path) -> None:
    first = build(*sweep, tmp_path / "a" / "figure2", every_format=True)
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 20, "svg.hashsalt": "other"}):
        second = build(*sweep, tmp_path / "b" / "figure2", every_format=True)
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.suffix


@pytest.mark.slow
def test_files_carry_no_date_and_no_version(sweep: tuple[Path, Path], tmp_path: Path) -> None:
    for path in build(*sweep, tmp_path / "figure2", every_format=True):
        content = path.read_bytes()
        for word in (b"CreationDate", b"dc:date", b"matplotlib.org", b"Software"):
            assert word not in content, (path.suffix, word)


@pytest.mark.slow
def test_caption_travels_with_the_picture(sweep: tuple[Path, Path], tmp_path: Path) -> None:
    build(*sweep, tmp_path / "figure2", every_format=True)
    title, text = caption(tmp_path / "figure2.svg")
    assert title.startswith("Figure 2 of Bruch et al. (2019)")
    for part in (
        "stand-in for Web30K",
        "3 trials",
        "95% t interval",
        "Edition demo",
        "800 documents",
    ):
        assert part in text, part
    with Image.open(tmp_path / "figure2.png") as image:
        assert image.info["Description"] == text


def test_gallery_shows_every_figure_in_order(sweep: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    for name in ("figure10", "figure2"):
        build(*sweep, folder / "bruch2019" / name)
    write_figures(sorted(folder.glob("*/*.svg")), folder / "README.md")
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# Figures of the edition demo\n")
    assert text.index("(bruch2019/figure2.png)") < text.index("(bruch2019/figure10.png)")
    assert "means over 3 trials" in text
    with pytest.raises(DataError, match="not a figure"):
        write_figures([folder / "absent.svg"], folder / "README.md")


def test_standin_is_named_in_picture_and_csv(sweep: tuple[Path, Path], tmp_path: Path) -> None:
    found = gather(read_json(sweep[0]), sweep[1])
    with figures.style():
        result = draw(found)
    said = " ".join(result.figure.get_supxlabel().split())
    assert "Stand-in for Web30K: synthetic, not the paper's data" in said
    assert set(result.data["data"]) == {"stand-in"}


def test_every_kind_of_data_is_named_in_a_picture() -> None:
    kinds = [
        Dataset("a", "A", "real"),
        Dataset("b", "B", "real", in_place_of="C"),
        Dataset("d", "D", "standin"),
        Dataset("e", "E", "generated"),
    ]
    assert origin_line(kinds, "demo") == (
        "A: real data; E: artificial data; B: real, not the paper's data; "
        "D: synthetic, not the paper's data (edition demo)"
    )
    assert origin_line([], "demo") == ""


def test_a_figure_has_its_title_in_the_picture(
    sweep: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles = []
    monkeypatch.setattr(figures, "headline", lambda figure, text: titles.append(text))
    build(*sweep, tmp_path / "figure2", every_format=True)
    (title,) = titles
    assert title.startswith("Figure 2 of Bruch et al. (2019): NDCG@5 is highest at α")


def test_a_heading_is_what_is_to_be_seen_or_the_title() -> None:
    about = (figures.empty_figure(), pd.DataFrame(), "caption")
    title = "Figure 9 of A (2000): x against y"
    assert FigureResult(*about).heading(title) == title
    assert FigureResult(*about, headline="all equal").heading(title) == "all equal"
    assert FigureResult(*about, finding="y falls").heading(title) == "Figure 9 of A (2000): y falls"


def test_table_is_written_as_csv_markdown_and_latex(tmp_path: Path) -> None:
    entries = table1_runs(tmp_path / "runs")
    experiments = {"table1_web30k": entries, "table1_yahoo1": []}
    plan = make_plan(tmp_path, "bruch2019", "table1", experiments)
    paths = build(plan, tmp_path / "runs", tmp_path / "out" / "table1")
    assert [path.suffix for path in paths] == [".csv", ".md", ".tex"]
    assert "demo" in set(pd.read_csv(paths[0])["edition"])


def test_unknown_paper_and_product_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no paper 'nobody1999'"):
        products("nobody1999")
    with pytest.raises(ConfigError, match="did you mean 'figure2'"):
        product("bruch2019", "figur2")


def test_missing_run_leaves_nothing_behind(tmp_path: Path) -> None:
    entries = [{"run": "absent", "settings": {"loss.alpha": 1}}]
    plan = make_plan(tmp_path, "bruch2019", "figure2", {"alpha_sweep": entries})
    out = tmp_path / "out"
    with pytest.raises(DataError, match=r"absent.*missing"):
        build(plan, tmp_path / "runs", out / "figure2")
    assert not out.exists()


def test_plan_without_a_needed_experiment_is_refused(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, "bruch2019", "table1", {"table1_web30k": []})
    with pytest.raises(ConfigError, match="no experiment 'table1_yahoo1'"):
        build(plan, tmp_path, tmp_path / "table1")


def test_experiment_without_runs_is_refused(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, "bruch2019", "figure2", {"alpha_sweep": []})
    with pytest.raises(DirectrankError, match="nothing was run for figure2"):
        build(plan, tmp_path, tmp_path / "figure2")


def test_missing_published_values_are_an_error_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = table1_runs(tmp_path / "runs", methods={"ApproxNDCG": 0.45})
    experiments = {"table1_web30k": entries, "table1_yahoo1": []}
    plan = make_plan(tmp_path, "bruch2019", "table1", experiments)
    monkeypatch.setattr(evidence, "PUBLISHED", tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"nowhere/bruch2019_table1\.csv"):
        build(plan, tmp_path / "runs", tmp_path / "table1")


def test_missing_metric_is_an_error(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "one", {"ndcg@5": 0.4}, spec={"loss": {"alpha": 1}})
    entries = [{"run": "one", "settings": {"loss.alpha": 1}}]
    plan = make_plan(tmp_path, "bruch2019", "figure2", {"alpha_sweep": entries})
    with pytest.raises(DataError, match="ndcg@1"):
        build(plan, tmp_path / "runs", tmp_path / "figure2")


def test_a_plan_that_is_not_there_is_named_with_what_makes_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such plan") as caught:
        build_product(tmp_path / "figure2.json", tmp_path, tmp_path / "figure2")
    assert "make reproduce" in caught.value.remedy
