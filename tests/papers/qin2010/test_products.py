"""Qin2010: the numbers of Table 4, and of the tables that train nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.data.prepared import FORMAT
from directrank.papers.shared.verdicts import CONTRADICTED
from directrank.system.errors import DataError
from directrank.system.io import read_json, write_json
from papers_synthetic import build, make_plan, ohsumed_runs, overall, verdicts_file

LEVELS = {"LambdaMART": 0.62, "ApproxNDCG": 0.668, "RankNet": 0.65, "ListNet": 0.666}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a built Table 4 of four methods."""
    folder = tmp_path_factory.mktemp("table4")
    entries = ohsumed_runs(folder / "runs", LEVELS)
    plan = make_plan(folder, "qin2010", "table4", {"ohsumed_methods": entries}, edition="real")
    build(plan, folder / "runs", folder / "table4")
    return folder


def cells(folder: Path) -> pd.DataFrame:
    """The table's CSV by method, metric and discount."""
    return pd.read_csv(folder / "table4.csv").set_index(["method", "metric", "discount"])


def test_methods_stand_in_the_papers_order_then_the_rest(built: Path) -> None:
    order = ["AdaRank.NDCG", "SoftRank", "Ranking SVM", "ListNet", "ApproxNDCG"]
    methods = pd.read_csv(built / "table4.csv")["method"].unique()
    assert list(methods) == [*order, "LambdaMART", "RankNet"]


def test_mean_is_the_mean_of_the_fold_means(built: Path) -> None:
    folds = []
    for fold in range(1, 6):
        frame = pd.read_parquet(built / "runs" / f"ohsumed-1-f{fold}" / "per_query.parquet")
        folds.append(frame.loc[frame["split"] == "test", "ndcg@10/letor"])
    cell = cells(built).loc[("ApproxNDCG", "NDCG@10", "letor")]
    assert cell["mean"] == pytest.approx(np.mean([fold.mean() for fold in folds]), rel=1e-5)
    assert cell["queries"] == 106
    pooled = pd.concat(folds)
    assert cell["half_width"] == pytest.approx(
        1.98282 * pooled.std(ddof=1) / np.sqrt(106), rel=1e-4
    )


def test_empty_queries_count_as_zero(tmp_path: Path) -> None:
    entries = ohsumed_runs(tmp_path / "runs", {"ApproxNDCG": 0.6})
    for entry in entries:
        file = tmp_path / "runs" / entry["run"] / "per_query.parquet"
        frame = pd.read_parquet(file)
        labels = [column for column in frame if column.startswith("ndcg")]
        frame[labels] = 0.5
        frame.loc[frame["query_id"] % 100 < 7, labels] = np.nan
        frame.to_parquet(file)
    plan = make_plan(tmp_path, "qin2010", "table4", {"ohsumed_methods": entries})
    build(plan, tmp_path / "runs", tmp_path / "table4")
    expected = np.mean([0.5 * (n - 7) / n for n in (22, 21, 21, 21, 21)])
    assert cells(tmp_path).loc[("ApproxNDCG", "NDCG@5", "log2"), "mean"] == pytest.approx(
        expected, rel=1e-5
    )


def test_published_values_stand_under_the_discount_they_were_measured_with(built: Path) -> None:
    data = cells(built)
    assert data.loc[("ListNet", "NDCG@10", "letor"), "published"] == 0.4410
    assert np.isnan(data.loc[("ListNet", "NDCG@10", "log2"), "published"])
    assert data.loc[("ApproxNDCG", "NDCG@n", "letor"), "published"] == 0.6680
    assert np.isnan(data.loc[("ApproxNDCG", "NDCG@10", "letor"), "published"])  # lost
    assert data.loc[("Ranking SVM", "NDCG@1", "letor"), "status"] == "not run here"


def test_clearly_worse_method_is_marked_and_a_close_one_is_not(built: Path) -> None:
    data = cells(built)
    assert data.loc[("LambdaMART", "NDCG@n", "letor"), "p_holm"] < 0.01
    assert data.loc[("ListNet", "NDCG@n", "letor"), "p_holm"] > 0.05
    assert np.isnan(data.loc[("ApproxNDCG", "NDCG@n", "letor"), "p_value"])
    lines = (built / "table4.md").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("| LambdaMART") and "* ± " in line for line in lines)


@pytest.mark.slow
def test_the_table_quotes_the_verdicts_and_says_nothing_else_of_them(tmp_path: Path) -> None:
    levels = {"ApproxNDCG": 0.6, "ListNet": 0.66}
    entries = ohsumed_runs(tmp_path / "runs", levels, trials=3)
    plan = make_plan(tmp_path, "qin2010", "table4", {"ohsumed_methods": entries})
    file = verdicts_file(plan)
    build(plan, tmp_path / "runs", tmp_path / "table4", claims_file=file)
    text = (tmp_path / "table4.md").read_text(encoding="utf-8")
    assert overall(plan, only=["C08"]).loc["C08", "verdict"] == CONTRADICTED
    assert "**C08** (Table 4): ApproxNDCG best of five" in text
    assert "**Contradicted** on OHSUMED (the paper's own data)." in text
    (after,) = text.split("Edition ")[1:]  # of the caption, which only verdicts follow
    assert [line[:7] for line in after.splitlines()[1:] if line] == ["**C08**", "**D07**"]


@pytest.mark.slow
def test_standin_is_never_set_against_the_papers_level(tmp_path: Path) -> None:
    entries = ohsumed_runs(
        tmp_path / "runs", {"ApproxNDCG": 0.6, "ListNet": 0.5}, "ohsumed_standin"
    )
    plan = make_plan(tmp_path, "qin2010", "table4", {"ohsumed_methods": entries})
    build(plan, tmp_path / "runs", tmp_path / "table4")
    text = (tmp_path / "table4.md").read_text(encoding="utf-8")
    assert " SE)" not in text
    assert text.count("says nothing about the paper") == 1


def test_missing_fold_is_an_error(tmp_path: Path) -> None:
    entries = ohsumed_runs(tmp_path / "runs", {"ApproxNDCG": 0.6, "ListNet": 0.66})[:-1]
    plan = make_plan(tmp_path, "qin2010", "table4", {"ohsumed_methods": entries})
    with pytest.raises(DataError, match=r"'ListNet' was run on the folds \[1, 2, 3, 4\]"):
        build(plan, tmp_path / "runs", tmp_path / "table4")


def analytic(folder: Path, product: str, **plan: object) -> pd.DataFrame:
    """The CSV of a product that trains nothing."""
    file = make_plan(folder, "qin2010", product, {})
    write_json(file, read_json(file) | plan)
    build(file, folder / "runs", folder / product, folder / "prepared")
    return pd.read_csv(folder / f"{product}.csv")


def test_table_1_has_the_papers_gap_and_only_the_closest_pair_is_off(tmp_path: Path) -> None:
    data = analytic(tmp_path, "table1").dropna(subset="document")
    values = data.pivot(index="document", columns="quantity", values="value")
    assert values["s_x"].sort_values().diff().min() == pytest.approx(0.06744, abs=1e-6)
    error = (values["pi_hat(x)"] - values["pi(x)"]).abs()
    assert list(error.round(4)) == [0, 0.0012, 0.0012, 0, 0]
    text = (tmp_path / "table1.md").read_text(encoding="utf-8")
    assert "The paper's scores are lost. These are ours" in text
    assert (tmp_path / "table1.tex").read_text(encoding="utf-8").isascii()


def test_bounds_of_section_4_are_the_papers_and_the_errors_lie_below(tmp_path: Path) -> None:
    data = analytic(tmp_path, "table1")
    bounds = data.dropna(subset="published").set_index("published")["value"]
    assert list(bounds.index) == [0.00118, 0.00471, 0.001386, 0.0024, 0.00085]
    for printed, decimals in zip(bounds.index, (5, 5, 6, 4, 5), strict=True):
        assert round(bounds[printed], decimals) == printed
    errors = data[data["document"].isna() & data["published"].isna()]
    assert list(errors["status"]) == ["below its bound"] * 2
    assert (errors["value"] > 0).all()


def test_table_2_counts_the_prepared_and_leaves_the_others_blank(tmp_path: Path) -> None:
    folder = tmp_path / "prepared" / "ohsumed"
    folder.mkdir(parents=True)
    record = {
        "format": FORMAT,
        "name": "ohsumed",
        "title": "OHSUMED",
        "origin": "real",
        "label_levels": 3,
        "total": {"queries": 106, "documents": 16140},
    }
    write_json(folder / "prepared.json", record)
    data = analytic(tmp_path, "table2", prepared={"ohsumed": "ohsumed"})
    ours = data[data["paper_dataset"] == "OHSUMED"]
    assert list(ours["value"]) == pytest.approx([106, 3, 152.264], abs=1e-3)
    assert set(ours["status"]) == {"met"}
    others = data[data["paper_dataset"] != "OHSUMED"]
    assert others["value"].isna().all()
    assert set(others["status"]) == {"not prepared here"}
    assert "| TD2003 (not prepared here) |" in (tmp_path / "table2.md").read_text(encoding="utf-8")
