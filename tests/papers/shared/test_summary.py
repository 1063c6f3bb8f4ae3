"""Published against reproduced: the columns of every table, and the picture of a paper."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from directrank.edition.plan import load
from directrank.papers.shared import differences, gallery, summary
from directrank.papers.shared.product import products, target
from directrank.system.errors import DataError
from directrank.system.schema import read_yaml
from papers_synthetic import PUBLISHED, build, make_plan, ohsumed_runs
from studies import study_of

PAPERS = ("bruch2019", "qin2010", "yu2020", "pobrotyn2021", "burges2006")
OHSUMED = {"ApproxNDCG": 0.668, "ListNet": 0.6, "SoftRank": 0.65}


def test_a_difference_is_told_in_joint_standard_errors() -> None:
    data = pd.DataFrame(
        {"mean": [0.5, 0.5, math.nan], "half_width": [0.1, 0.1, math.nan], "n": [5, 1, 5]}
    )
    data["published"] = [0.4, 0.4, 0.4]
    ours = differences.standard_error(data["half_width"], data["n"])
    assert ours[0] == pytest.approx(0.1 / stats.t.ppf(0.975, 4))
    assert math.isnan(ours[1])  # the spread of a single value is unknown
    found = differences.add_differences(data, error=ours, published_error=0.05)
    assert found["difference"].tolist()[:2] == pytest.approx([0.1, 0.1])
    joint = math.hypot(ours[0], 0.05)
    assert found["difference_in_se"][0] == pytest.approx(0.1 / joint)
    assert found.loc[2, list(differences.COLUMNS)].isna().all()


def test_an_exact_value_has_no_error_but_that_of_rounding() -> None:
    data = pd.DataFrame({"mean": [1.0, 1.0], "published": [1.0, 1.001]})
    exact = differences.add_differences(data)
    assert exact["difference_se"].isna().all()
    rounded = differences.rounding_error(pd.Series([0.0005, 0.0005]))
    spread = np.random.default_rng(1).uniform(-0.0005, 0.0005, 100_000).std()
    assert rounded[0] == pytest.approx(spread, rel=0.01)


def drawn(folder: Path, repeats: list[str], **experiments: list) -> tuple[pd.DataFrame, str]:
    """The CSV and the caption of Qin2010's summary."""
    plan = make_plan(folder, "qin2010", "summary", experiments, edition="real", repeats=repeats)
    build(plan, folder / "runs", folder / "summary", PUBLISHED)
    _, caption = gallery.caption(folder / "summary.svg")
    return pd.read_csv(folder / "summary.csv"), caption


def test_the_picture_shows_the_cells_of_the_tables(
    tmp_path: Path,
) -> None:
    runs = ohsumed_runs(tmp_path / "runs", OHSUMED)
    data, caption = drawn(tmp_path, ["table1", "table4"], ohsumed_methods=runs)
    plan = make_plan(tmp_path, "qin2010", "table4", {"ohsumed_methods": runs}, edition="real")
    build(plan, tmp_path / "runs", tmp_path / "table4", PUBLISHED)
    table = pd.read_csv(tmp_path / "table4.csv")
    table = table[(table["discount"] == "letor") & table["published"].notna()]
    table = table[table["mean"].notna()]
    cells = data[data["table"] == "table4"]
    assert np.allclose(cells["reproduced"], table["mean"])
    assert np.allclose(cells["published"], table["published"])
    assert np.allclose(cells["difference_in_se"], table["difference_in_se"])
    assert f"The {len(data)} cells of this edition's tables" in caption
    assert "other data" not in caption
    assert np.allclose(cells["drawn"], cells["reproduced"] - cells["published"])
    assert np.allclose(cells["drawn_half_width"], cells["half_width"])
    assert (cells["drawn_published"] == 0).all()
    text = (tmp_path / "table4.md").read_text(encoding="utf-8")
    row = table[(table["method"] == "ListNet") & (table["metric"] == "NDCG@n")].iloc[0]
    assert f"0.6600 (−{-row['difference_in_se']:.1f} SE)" in text


def test_tables_that_an_edition_does_not_make_are_left_out(tmp_path: Path) -> None:
    data, _ = drawn(tmp_path, ["table1"])
    assert set(data["table"]) == {"table1"}
    with pytest.raises(DataError, match="no table of this edition"):
        drawn(tmp_path / "none", [])
    assert not (tmp_path / "none" / "summary.csv").exists()


def test_the_cells_of_a_stand_in_are_shown_and_nothing_is_said_of_their_agreement(
    tmp_path: Path,
) -> None:
    levels = {"AdaRank.NDCG": 0.5, "SoftRank": 0.52, "Ranking SVM": 0.4, "ListNet": 0.45}
    runs = ohsumed_runs(tmp_path / "runs", levels, dataset="ohsumed_standin")
    data, caption = drawn(tmp_path, ["table4"], ohsumed_methods=runs)
    assert len(data) > 4
    assert "Kendall" not in caption
    assert "standard errors, and the largest" not in caption
    assert caption.count("says nothing about the paper") == 1
    assert "On other data the values themselves cannot be compared" in caption
    # Of a level that means nothing only the distance between methods is left.
    means = data.groupby("frame")[["drawn", "drawn_published"]].mean()
    assert np.allclose(means, 0.0, atol=1e-6)
    apart = data.pivot(index="frame", columns="row", values=["drawn", "reproduced"])
    for column in apart["drawn"]:
        ours = apart["drawn"][column] - apart["drawn"]["ListNet"]
        levels = apart["reproduced"][column] - apart["reproduced"]["ListNet"]
        assert np.allclose(ours, levels, equal_nan=True, atol=2e-6)


@pytest.mark.parametrize("edition", ["demo", "real"])
def test_no_run_is_made_for_the_picture_alone(root: Path, edition: str) -> None:
    planned = study_of(edition)
    shown = [paper for paper, name in planned.products if name == "summary"]
    assert len(shown) >= 4
    for paper in shown:
        plan = planned.products[paper, "summary"]
        made = set(planned.config["papers"][paper]["products"])
        assert set(plan["repeats"]) == made & set(products(paper)["summary"].repeats)
    config = read_yaml(root / f"config/{edition}.yaml")
    for paper in shown:
        entries = planned.config["papers"][paper]["products"]
        config["papers"][paper]["products"] = [name for name in entries if name != "summary"]
    assert set(load(config, root).runs) == set(planned.runs)


@pytest.mark.parametrize("paper", PAPERS)
def test_panels_show_the_tables_that_the_product_repeats(paper: str) -> None:
    known = products(paper)
    panels = import_module(target(paper, known["summary"].function)[0]).PANELS
    assert summary.tables_of(panels) == known["summary"].repeats
    assert {known[name].kind for name in known["summary"].repeats} == {"table"}
    for panel in panels:
        assert not panel.timed or known["summary"].timed
