"""The picture of a paper: published against reproduced."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.edition.plan import load
from directrank.papers.shared import pages, summary
from directrank.papers.shared.product import products, target
from directrank.system.errors import DataError
from directrank.system.schema import read_yaml
from papers_synthetic import build, make_plan, ohsumed_runs
from studies import study_of

PAPERS = ("bruch2019", "qin2010", "yu2020", "pobrotyn2021", "burges2006")
OHSUMED = {"ApproxNDCG": 0.668, "ListNet": 0.6, "SoftRank": 0.65}


def drawn(folder: Path, repeats: list[str], **experiments: list) -> tuple[pd.DataFrame, str]:
    """The CSV and the caption of Qin2010's summary."""
    plan = make_plan(folder, "qin2010", "summary", experiments, edition="real", repeats=repeats)
    build(plan, folder / "runs", folder / "summary")
    _, caption = pages.caption(folder / "summary.svg")
    return pd.read_csv(folder / "summary.csv"), caption


@pytest.mark.slow
def test_the_picture_shows_the_cells_of_the_tables(
    tmp_path: Path,
) -> None:
    runs = ohsumed_runs(tmp_path / "runs", OHSUMED)
    data, caption = drawn(tmp_path, ["table1", "table4"], ohsumed_methods=runs)
    plan = make_plan(tmp_path, "qin2010", "table4", {"ohsumed_methods": runs}, edition="real")
    build(plan, tmp_path / "runs", tmp_path / "table4")
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


def part(
    difference: float, half_width: float = float("nan"), status: Sequence[str] = ("", "")
) -> summary._Part:
    """A part with two cells, of which the second is so far from the print."""
    cells = pd.DataFrame(
        {
            "cell": ["one", "other"],
            "data": "artificial",
            "drawn": [0.0, difference],
            "drawn_half_width": half_width,
            "status": status,
        }
    )
    return summary._Part(summary.Panel("Table 9", "NDCG", ["table9"], "row", ["row"]), cells, True)


def test_what_agrees_with_the_print_is_told_and_not_drawn(tmp_path: Path) -> None:
    assert part(0.0, status=("met", "met")).told == "Table 9 (2 cells)"
    one = part(0.1, status=("met", "not met"))
    assert one.agrees
    assert one.told == "Table 9 (1 of 2 cells; other: not met)"
    assert not part(0.1, status=("not met", "not met")).agrees
    assert not part(0.1, status=("compared", "compared")).agrees
    runs = ohsumed_runs(tmp_path / "runs", OHSUMED)
    data, caption = drawn(tmp_path, ["table1", "table4"], ohsumed_methods=runs)
    assert set(data["table"]) == {"table4"}
    assert "within its rounding or their interval: Section 4, bounds (5 cells)." in caption


def test_a_mark_is_open_if_its_interval_excludes_the_print() -> None:
    assert part(0.02, half_width=0.01).open.tolist() == [False, True]
    assert part(0.005, half_width=0.01).open.tolist() == [False, False]
    assert part(0.02).open.tolist() == [False, False]  # nothing is known of its error


@pytest.mark.slow
def test_of_a_stand_in_the_distances_between_methods_are_shown(tmp_path: Path) -> None:
    levels = {"AdaRank.NDCG": 0.5, "SoftRank": 0.52, "Ranking SVM": 0.4, "ListNet": 0.45}
    runs = ohsumed_runs(tmp_path / "runs", levels, dataset="ohsumed_standin")
    data, caption = drawn(tmp_path, ["table4"], ohsumed_methods=runs)
    assert len(data) > 4
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


@pytest.mark.slow
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
