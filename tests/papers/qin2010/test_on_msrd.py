"""Qin2010's methods on MSRD: differences count if they hold for other groups and trainings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.stats.two_way import difference_over_queries_and_starts
from directrank.system.io import read_json, write_json
from papers_synthetic import build, make_plan, make_run
from studies import study_of

LEVELS = {"RankNet": 0.64, "ApproxNDCG": 0.66, "ListNet": 0.5}
METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg", "ap")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a built table of three methods; two queries form a group."""
    return build_table(tmp_path_factory.mktemp("msrd"))


def build_table(folder: Path, once: str = "") -> Path:
    """A folder with the table, in which one method may be trained ``once``."""
    entries = []
    for number, (method, level) in enumerate(LEVELS.items()):
        for fold in (1, 2):
            name = f"{number}-{fold}"
            make_run(
                folder / "runs", name, dict.fromkeys(METRICS, level), dataset="msrd", fold=fold,
                trials=1 if method == once else 3, empty=0, first_query=100 * fold, groups_of=2,
            )  # fmt: skip
            entries.append({"run": name, "settings": {"method": method, "fold": fold}})
    for entry in entries:
        file = folder / "runs" / entry["run"] / "run.json"
        record = read_json(file)
        record["spec"] |= {"train_queries": 1200, "training": {"max_epochs": 7}, "loss": {}}
        write_json(file, record)
    plan = make_plan(folder, "qin2010", "table_msrd", {"msrd_methods": entries}, edition="real")
    build(plan, folder / "runs", folder / "table_msrd")
    return folder


def test_a_difference_is_that_of_the_two_way_test_corrected_within_the_column(built: Path) -> None:
    data = pd.read_csv(built / "table_msrd.csv").set_index(["metric", "method"])
    frames = {}
    for number, method in enumerate(LEVELS):
        runs = [built / "runs" / f"{number}-{fold}/per_query.parquet" for fold in (1, 2)]
        folds = [pd.read_parquet(run).assign(fold=n) for n, run in enumerate(runs)]
        frame = pd.concat(folds)
        frames[method] = frame[frame["split"] == "test"].pivot(
            index=["fold", "query_id", "group"], columns="trial", values="ndcg@10"
        )
    index = frames["RankNet"].index.to_frame()
    expected = {
        method: difference_over_queries_and_starts(
            frames[method].to_numpy().T,
            frames["ApproxNDCG"].to_numpy().T,
            (1000 * index["fold"] + index["group"]).to_numpy(),
            index["fold"].to_numpy(),
        )
        for method in ("RankNet", "ListNet")
    }
    p_values = {method: one.p_differs() for method, one in expected.items()}
    small, large = sorted(p_values, key=lambda method: p_values[method])
    for method, one in expected.items():
        row = data.loc["NDCG@10", method]
        assert row["difference"] == pytest.approx(one.mean, rel=1e-5)
        assert row["difference_half_width"] == pytest.approx(one.interval().half_width, rel=1e-5)
        assert row["p_value"] == pytest.approx(one.p_differs(), rel=1e-5)
    assert data.loc[("NDCG@10", small), "p_holm"] == pytest.approx(2 * p_values[small], rel=1e-5)
    assert data.loc[("NDCG@10", large), "p_holm"] == pytest.approx(
        max(p_values[large], 2 * p_values[small]), rel=1e-5
    )
    assert np.isnan(data.loc[("NDCG@10", "ApproxNDCG"), "p_holm"])


def test_a_method_that_was_trained_once_is_not_tested(tmp_path: Path, built: Path) -> None:
    once, expected = (
        pd.read_csv(folder / "table_msrd.csv").set_index(["method", "metric"])
        for folder in (build_table(tmp_path, once="ListNet"), built)
    )
    assert once.loc["ListNet", ["difference_half_width", "p_value", "p_holm"]].isna().all(axis=None)
    assert once.loc["ListNet", "difference"].notna().all()
    # What is left is corrected for alone.
    pairs = once.loc["RankNet", ["p_value", "p_holm"]]
    assert np.allclose(pairs["p_holm"], pairs["p_value"], rtol=1e-5)
    assert np.allclose(pairs["p_value"], expected.loc["RankNet", "p_value"], rtol=1e-5)


def test_the_caption_says_on_what_the_methods_were_trained(built: Path) -> None:
    text = (built / "table_msrd.md").read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert "2 folds; trained on 1 200 random queries of each; test sets of all: 80 queries" in text
    assert "other groups of related queries and other trainings" in text
    lines = [line for line in text.splitlines() if line.startswith("| ListNet")]
    assert "\\*" in lines[0] or "*" in lines[0]
    assert "**" in next(line for line in text.splitlines() if line.startswith("| ApproxNDCG"))


def test_the_edition_real_trains_the_methods_of_table_4_with_every_training_query() -> None:
    study = study_of("real")
    methods = {}
    for product, experiment in (("table4", "ohsumed_methods"), ("table_msrd", "msrd_methods")):
        cells = study.products["qin2010", product]["experiments"][experiment]
        methods[product] = {cell["settings"]["method"] for cell in cells}
        if product == "table_msrd":
            specs = [study.runs[cell["run"]] for cell in cells]
            assert not any("train_queries" in spec for spec in specs)
            assert {spec["normalisation"]["name"] for spec in specs} == {"query_minmax"}
            assert {spec["fold"] for spec in specs} == {1, 2, 3, 4, 5}
    assert methods["table4"] == methods["table_msrd"]
