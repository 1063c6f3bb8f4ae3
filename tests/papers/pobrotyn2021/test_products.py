"""Pobrotyn2021: Tables 1 and 2, Figures 1 and 2 and claim C21, beside what the paper prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from directrank import metrics
from directrank.data.prepared import FORMAT
from directrank.edition.plan import load
from directrank.papers.pobrotyn2021 import accuracy, analytic
from directrank.papers.shared.verdicts import SUPPORTED
from directrank.system.errors import DataError
from directrank.system.io import read_json, write_json
from directrank.system.schema import read_yaml
from papers_synthetic import PUBLISHED, build, make_plan, overall


def built(folder: Path, product: str, **plan: Any) -> pd.DataFrame:
    """The CSV of a product."""
    file = make_plan(folder, "pobrotyn2021", product, {})
    write_json(file, read_json(file) | plan)
    build(file, folder / "runs", folder / product, folder / "prepared")
    return pd.read_csv(folder / f"{product}.csv", keep_default_na=False, na_values=[""])


def record(folder: Path, key: str, **changes: Any) -> None:
    """The record of a prepared Web30K, as its publisher counts it."""
    queries = {"train": 18919, "vali": 6306, "test": 6306}
    content = {
        "format": FORMAT,
        "name": "web30k",
        "title": "MSLR-WEB30K",
        "origin": "real",
        "folds": [1, 2, 3, 4, 5],
        "n_features": 136,
        "splits": {f"Fold1/{split}": {"queries": number} for split, number in queries.items()},
        "total": {"empty_queries": 982},
    }
    (folder / "prepared" / key).mkdir(parents=True)
    write_json(folder / "prepared" / key / "prepared.json", content | changes)


def test_all_entries_of_table_1_are_the_papers_to_their_printed_digits(tmp_path: Path) -> None:
    data = built(tmp_path, "table1")
    entries = data[(data["place"] != "sum") & (data["tau"] != "lim tau->0")]
    assert len(entries) == 18
    assert (entries["difference"].abs() <= 0.5e-4).all()
    finer = entries.set_index(["tau", "place"])["difference"].abs()
    assert finer["0.01", "q5"] <= 0.5e-5
    assert finer["0.01", "q6"] <= 0.5e-8
    limit = data[(data["place"] != "sum") & (data["tau"] == "lim tau->0")]
    assert list(limit["value"]) == [4, 4, 3, 2, 1, 0]


def test_misprinted_sum_of_table_1_is_shown_and_explained(tmp_path: Path) -> None:
    data = built(tmp_path, "table1")
    sums = data[data["place"] == "sum"].set_index("tau")
    assert sums.loc["1", "status"] == "misprint in the paper"
    assert sums.loc["1", "published"] == 10.388
    assert sums.loc["1", "sum_of_printed"] == pytest.approx(13.7781, abs=1e-9)
    assert set(sums.drop("1")["status"]) == {"met"}
    text = (tmp_path / "table1.md").read_text(encoding="utf-8")
    assert "All 18 printed numbers are met at temperatures above 0." in text
    assert "|  3.9995 |  3.9995 |" in text  # τ = 0.1, the printed number beside ours
    assert "10.388, is a misprint" in text
    assert "add up to 13.7781" in text
    assert "without the first, 3.3893, they add up to 10.3888" in text


@pytest.mark.parametrize(("figure", "points"), [("figure1", 80), ("figure2", 70)])
def test_curves_agree_with_the_recomputed_values_to_their_printed_digits(
    tmp_path: Path, figure: str, points: int
) -> None:
    data = built(tmp_path, figure)
    reference = pd.read_csv(PUBLISHED / f"pobrotyn2021_{figure.replace('ure', '')}_recomputed.csv")
    assert set(data["curve"]) == set(reference.columns) - {"x"}
    known = data.dropna(subset="reference")
    assert (known.groupby("curve").size() == points).all()
    assert len(reference) == points
    assert known["difference"].abs().max() <= 0.5001e-6
    wide = known.pivot(index="x", columns="curve", values="reference")
    expected = reference.set_index("x")[wide.columns]
    pd.testing.assert_frame_equal(wide, expected, check_names=False)


def test_ndcg_of_figure_1_steps_down_where_the_last_document_passes_another() -> None:
    def ndcg(x: float) -> float:
        return metrics.ndcg(
            torch.tensor([[4.0, 1, 0, 0, x]]), torch.tensor([[2.0, 1, 0, 0, 0]])
        ).item()

    assert ndcg(0.9) == pytest.approx(1.0)
    assert ndcg(1.1) == pytest.approx(0.9639, abs=5e-5)
    assert ndcg(4.1) == pytest.approx(0.6590, abs=5e-5)


def test_no_point_of_a_figure_ties_with_a_score() -> None:
    for figure, (_, fixed) in (
        ("1", analytic.FIGURE1),
        ("2", analytic.FIGURE2),
    ):
        known = pd.read_csv(PUBLISHED / f"pobrotyn2021_fig{figure}_recomputed.csv")["x"]
        x = analytic._grid(known)
        assert set(known.round(9)) <= set(x)
        assert min(abs(x - score).min() for score in fixed) > 0.005


def test_table_2_sets_the_prepared_beside_the_published(tmp_path: Path) -> None:
    record(tmp_path, "web30k")
    data = built(tmp_path, "table2", prepared={"web30k": "web30k"})
    ours = data[data["paper_dataset"] == "Web30K"]
    assert list(ours["value"]) == [136, 18919, 6306, 982]
    assert set(ours["status"]) == {"met"}
    assert set(ours["data"]) == {"real"}
    missing = data[data["paper_dataset"] == "Istella"]
    assert missing["value"].isna().all()
    assert set(missing["status"]) == {"not prepared here"}
    text = (tmp_path / "table2.md").read_text(encoding="utf-8")
    assert "| Istella (not prepared here) |" in text
    assert "All 4 printed numbers are met." in text
    assert "| Web30K                      |      136 |   136 |" in text


def test_table_2_says_of_a_standin_that_it_is_one(tmp_path: Path) -> None:
    splits = {split: {"queries": 20} for split in ("train", "vali", "test")}
    standin = {"name": "web30k_standin", "origin": "standin", "title": "stand-in for MSLR-WEB30K"}
    record(tmp_path, "web30k_standin-1", folds=None, splits=splits, **standin)
    data = built(tmp_path, "table2", prepared={"web30k": "web30k_standin-1"})
    ours = data[data["paper_dataset"] == "Web30K"]
    assert set(ours["status"]) == {"stand-in"} == set(ours["data"].str.strip())
    assert ours["value"].iloc[1] == 20
    assert ours["difference"].iloc[1] == 20 - 18919


def test_plan_of_table_2_names_the_data_sets_that_the_edition_prepares(root: Path) -> None:
    demo = read_yaml(root / "config/demo.yaml")

    def prepared(config: dict[str, Any]) -> dict[str, str]:
        return load(config, root).products["pobrotyn2021", "table2"]["prepared"]

    keys = prepared(demo)
    assert set(keys) == {"istella"}  # another collection stands in the place of Web30K
    assert keys["istella"].startswith("istella_standin-")
    nothing_trained = {"pobrotyn2021": {"products": ["table2"]}}
    assert prepared(demo | {"papers": nothing_trained, "overrides": []}) == {}


def test_missing_record_of_a_prepared_data_set_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a prepared data set"):
        built(tmp_path, "table2", prepared={"web30k": "web30k"})


def test_istellas_training_queries_are_those_before_validation_was_set_apart() -> None:
    splits = {"train": {"queries": 17415}, "vali": {"queries": 5804}, "test": {"queries": 9799}}
    content = {
        "folds": None,
        "splits": splits,
        "n_features": 220,
        "total": {"empty_queries": 50},
    }
    assert list(accuracy._statistics("istella", content).values()) == [
        220,
        23219,
        9799,
        50,
    ]


def test_claim_holds_and_would_fail_without_scaling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [make_plan(tmp_path, "pobrotyn2021", name, {}) for name in ("figure1", "figure2")]

    def verdict() -> pd.Series:
        return overall(*plans, only=["C21"]).loc["C21"]

    found = verdict()
    assert found["verdict"] == SUPPORTED
    assert "climbs by 0.02" in found["remark"]
    monkeypatch.setattr(analytic, "ROUNDS", 0)
    assert verdict()["verdict"] != SUPPORTED
