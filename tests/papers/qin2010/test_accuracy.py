"""Qin2010: Table 3, the baselines beside LETOR's values, all pairs, and the later methods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from directrank.papers.qin2010.claims import claim_map_ratios
from directrank.papers.shared.evidence import gather
from directrank.papers.shared.judging import judge
from directrank.papers.shared.verdicts import INCONCLUSIVE, OTHER, SUPPORTED, UNMEASURED
from directrank.stats.tests import holm
from directrank.stats.two_way import difference_between_folds
from papers_synthetic import build, make_plan, make_run, measured

SHIFTS = {"ndcg@1": -0.15, "ndcg@3": -0.2, "ndcg@5": -0.21, "ndcg@10": -0.22, "ndcg": 0.0}


def runs_of(
    folder: Path,
    methods: Mapping[str, float],
    *,
    prefix: str = "m",
    dataset: str = "ohsumed",
    trials: int = 1,
) -> list[dict[str, Any]]:
    """One run per method and fold (one split for a stand-in), in NDCG and average precision."""
    entries = []
    for number, (method, level) in enumerate(methods.items()):
        for fold in range(1, 6) if dataset == "ohsumed" else [1]:
            means = {label: level + shift for label, shift in SHIFTS.items()}
            means |= {f"{label}/letor": value for label, value in means.items()}
            means["ap"] = level - 0.22
            name = f"{prefix}-{number}-f{fold}"
            make_run(
                folder,
                name,
                means,
                dataset=dataset,
                fold=fold if dataset == "ohsumed" else None,
                trials=trials,
                queries=21 + (fold == 1),
                empty=0,
                first_query=100 * fold,
            )
            entries.append({"run": name, "settings": {"method": method, "fold": fold}})
    return entries


def make(folder: Path, product: str, experiments: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """The CSV and the Markdown of a product."""
    plan = make_plan(folder, "qin2010", product, experiments, edition="real")
    build(plan, folder / "runs", folder / product)
    text = (folder / f"{product}.md").read_text(encoding="utf-8")
    assert (folder / f"{product}.tex").read_text(encoding="utf-8").isascii()
    return pd.read_csv(folder / f"{product}.csv"), text


@pytest.fixture(scope="module")
def table3(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, str, Path]:
    folder = tmp_path_factory.mktemp("table3")
    levels = {"ListNet": 0.6, "ApproxAP": 0.62, "SVMmap": 0.5, "AdaRank.MAP": 0.61}
    entries = runs_of(folder / "runs", levels, dataset="td2003_standin")
    data, text = make(folder, "table3", {"td2003_methods": entries, "td2004_methods": []})
    return data, text, folder


def test_table_3_has_the_papers_rows_and_its_values_beside_a_standin(table3: Any) -> None:
    data, text, _ = table3
    part = data[data["paper_dataset"] == "TD2003"].set_index("method")
    assert list(part.index) == ["AdaRank.MAP", "SVMmap", "ApproxAP", "Ranking SVM", "ListNet"]
    assert part.loc["SVMmap", "published"] == 0.245
    assert np.isnan(part.loc["ApproxAP", "published"])
    assert part.loc["Ranking SVM", "status"] == "not run here"
    assert part.loc["SVMmap", "status"] == "stand-in: levels not comparable"
    assert part.loc["ApproxAP", "status"] == "published: lost"
    assert part.loc["SVMmap", "difference"] == pytest.approx(part.loc["SVMmap", "mean"] - 0.245)
    assert " SE)" not in text  # a stand-in's level is not the paper's
    assert text.count("says nothing about the paper") == 1
    assert set(data.loc[data["paper_dataset"] == "TD2004", "status"]) == {"not run here"}


def test_claim_about_ratios_holds_for_one_rival_and_not_for_the_other(table3: Any) -> None:
    _, _, folder = table3
    plan = {
        "edition": "real",
        "paper": "qin2010",
        "product": "table3",
        "experiments": {
            "td2003_methods": [
                {"run": f"m-{number}-f1", "settings": {"method": method, "fold": 1}}
                for number, method in enumerate(["ListNet", "ApproxAP", "SVMmap", "AdaRank.MAP"])
            ]
        },
    }
    outcome = claim_map_ratios(gather(plan, folder / "runs"))
    assert outcome is not None
    svm, ada = judge(outcome.findings, 0.01, ())
    assert (svm.bounds[0], ada.bounds[0]) == (1.15, 1.2)
    assert svm.finding.effect > 1.15
    assert ada.finding.effect < 1.2
    assert max(svm.p_value, ada.p_value) < 0.01


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The products that need OHSUMED."""
    folder = tmp_path_factory.mktemp("compared")
    methods = {"ApproxNDCG": 0.66, "Ranking SVM": 0.66, "ListNet": 0.61, "LambdaMART": 0.665}
    runs = folder / "runs"
    experiments = {
        "ohsumed_methods": runs_of(runs, methods),
        "ohsumed_map_methods": runs_of(runs, {"AdaRank.MAP": 0.687}, prefix="p"),
        "beyond_methods": runs_of(runs, {"NeuralNDCG (two layers)": 0.7}, prefix="b"),
        "ohsumed_weak_svm": [
            {"run": entry["run"], "settings": {"model.c": c, "fold": entry["settings"]["fold"]}}
            for c, level, prefix in ((0.001, 0.55, "w"), (0.01, 0.72, "v"))
            for entry in runs_of(runs, {"weak": level}, prefix=prefix)
        ],
    }
    return {name: make(folder, name, experiments) for name in ("baselines", "statistics", "beyond")}


def test_baselines_stand_beside_letors_values(compared: Mapping[str, Any]) -> None:
    data, text = compared["baselines"]
    cell = data.set_index(["method", "metric"])
    assert cell.loc[("AdaRank.MAP", "MAP"), "published"] == 0.4487
    assert cell.loc[("Ranking SVM, c = 0.001", "NDCG@10"), "published"] == 0.4140
    gap = cell.loc[("AdaRank.MAP", "MAP"), "difference"]
    assert gap == pytest.approx(cell.loc[("AdaRank.MAP", "MAP"), "mean"] - 0.4487, abs=1e-6)
    assert abs(gap) < 0.01
    assert re.search(r"\| Ranking SVM, c = 0\.01 +\|", text)
    assert "ApproxNDCG" not in set(data["method"])


def test_every_pair_is_tested_once_for_other_queries_and_trainings(
    compared: Mapping[str, Any], tmp_path: Path
) -> None:
    data, text = compared["statistics"]
    pairs = data[data["other"].notna()]
    for _, group in pairs.groupby("metric"):
        assert len(group) == 10  # of 5 methods
        assert group["p_holm"].to_numpy() == pytest.approx(holm(group["p_value"]), rel=1e-4)
    row = pairs.set_index(["metric", "method", "other"]).loc[("MAP", "ListNet", "ApproxNDCG")]
    assert row["difference"] == pytest.approx(-0.05, abs=0.02)
    # Trained once on each of five folds: the folds' differences have the error.
    runs_of(tmp_path, {"ApproxNDCG": 0.66, "Ranking SVM": 0.66, "ListNet": 0.61})
    frames = []
    for number in (2, 0):
        files = [tmp_path / f"m-{number}-f{fold}" / "per_query.parquet" for fold in range(1, 6)]
        rows = pd.concat(pd.read_parquet(file).assign(fold=n) for n, file in enumerate(files))
        frames.append(rows[rows["split"] == "test"].set_index(["fold", "query_id"])["ap"].fillna(0))
    folds = frames[0].index.get_level_values("fold")
    expected = difference_between_folds(*(row.to_numpy()[None] for row in frames), None, folds)
    assert row["p_value"] == pytest.approx(expected.p_differs(), rel=1e-4)
    section = text[text.index("## Pairs that differ in MAP") :]
    line = r"^\| ApproxNDCG +\| +ListNet \| +\+0\.0\d\d \| +(< )?0\.0\d\d \|$"
    assert re.search(line, section, re.MULTILINE)


def test_later_methods_are_tested_against_approx_ndcg(compared: Mapping[str, Any]) -> None:
    data, text = compared["beyond"]
    assert list(data["method"].unique()) == ["ApproxNDCG", "LambdaMART", "NeuralNDCG (two layers)"]
    cell = data.set_index(["method", "metric", "discount"])
    best = cell.loc[("NeuralNDCG (two layers)", "NDCG@n", "letor")]
    assert best["p_holm"] < 0.05 < cell.loc[("LambdaMART", "NDCG@n", "letor"), "p_holm"]
    assert best["gain_over_approxndcg"] == pytest.approx(0.04, abs=0.02)
    assert re.search(r"^\| NeuralNDCG \(two layers\) .*\* ±", text, re.MULTILINE)


def test_claims_about_map_and_gains_follow_the_methods(tmp_path: Path) -> None:
    levels = {"Ranking SVM": 0.6, "ListNet": 0.6, "ApproxNDCG": 0.72}
    weak = {"AdaRank.MAP": 0.5, "SVMmap": 0.5}
    experiments = {
        "ohsumed_methods": runs_of(tmp_path / "runs", levels, trials=3),
        "ohsumed_map_methods": runs_of(tmp_path / "runs", weak, prefix="map", trials=3),
    }
    plans = [
        make_plan(tmp_path, "qin2010", name, experiments, edition="real")
        for name in ("statistics", "table4")
    ]
    frame = measured(*plans, only=["D05", "D06", "D07"])
    overall = frame[frame["comparison"] == "overall"].set_index("claim")
    assert overall.loc["D06", "verdict"] == SUPPORTED
    assert overall.loc["D06", "group"] == OTHER
    assert "Measured on OHSUMED" in overall.loc["D06", "remark"]
    assert len(frame[frame["claim"] == "D06"]) == 5
    gain = overall.loc["D07"]
    assert gain["verdict"] == INCONCLUSIVE  # two of the three methods were not run
    row = frame[(frame["claim"] == "D07") & frame["comparison"].str.contains("Ranking")].iloc[0]
    assert (row["comparison"], row["claimed"]) == (
        "ApproxNDCG − Ranking SVM, NDCG@1",
        "at least 0.075",
    )
    assert row["verdict"] == SUPPORTED
    assert row["effect"] == pytest.approx(0.12, abs=0.03)
    assert overall.loc["D05", "verdict"] == UNMEASURED


def test_claim_of_map_order_expects_a_tie_on_the_second_data_set(tmp_path: Path) -> None:
    levels = {"ApproxAP": 0.7, "Ranking SVM": 0.5, "ListNet": 0.5}
    experiments = {
        "td2003_methods": runs_of(tmp_path / "runs", levels, dataset="td2003", trials=3),
        "td2004_methods": runs_of(
            tmp_path / "runs", dict.fromkeys(levels, 0.5), prefix="n", dataset="td2004", trials=3
        ),
    }
    frame = measured(make_plan(tmp_path, "qin2010", "table3", experiments), only=["D05"]).set_index(
        "claim"
    )
    rows = frame.loc["D05"]
    first = rows[rows["comparison"].str.endswith("TD2003")]
    second = rows[rows["comparison"].str.endswith("TD2004")]
    assert set(first["verdict"]) == {SUPPORTED}
    assert set(second["claimed"]) == {"equivalent, within ±0.01"}
