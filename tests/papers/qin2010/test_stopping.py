"""Qin2010: where random starts stopped, and what other caps on epochs would have given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from directrank.papers.qin2010.stopping import chosen_at, ending, starts_at
from directrank.papers.qin2010.training import along
from directrank.papers.shared.evidence import gather
from papers_synthetic import build, make_plan, make_run

#: As a run of two candidates with two starts each: restart 1 of candidate 0 never meets the rule.
ROWS = [
    # candidate, restart, epoch, met, objective, validation, test
    (0, 0, 100, False, -0.70, 0.60, 0.50),
    (0, 0, 300, True, -0.71, 0.61, 0.51),
    (0, 1, 100, False, -0.69, 0.70, 0.40),
    (0, 1, 500, False, -0.72, 0.62, 0.52),
    (0, 1, 800, False, -0.730, 0.62, 0.53),
    (0, 1, 1000, False, -0.733, 0.63, 0.54),
    (1, 0, 80, True, -0.60, 0.615, 0.45),
    (1, 1, 100, False, -0.50, 0.90, 0.99),
    (1, 1, 400, True, -0.55, 0.90, 0.99),
]
RULE = {
    "learner": "linear_ascent",
    "loss": {"name": "approx_ndcg"},
    "training": {
        "max_epochs": 1000,
        "tolerance": 0.001,
        "dtype": "float64",
        "monitor": {"at": [100, 500, 800]},
    },
}
TEST = [f"test_ndcg{k}/letor" for k in ("@1", "@3", "@5", "@10", "")]


@pytest.fixture
def history() -> pd.DataFrame:
    """The history of one trial."""
    names = ["candidate", "restart", "epoch", "met", "train_objective", "vali_metric", "test"]
    rows = pd.DataFrame(ROWS, columns=names).assign(trial=0)
    rows["train_ndcg/letor"] = -rows["train_objective"]
    for column in TEST:
        rows[column] = rows["test"]
    return rows.drop(columns="test")


def methods(folder: Path, history: pd.DataFrame) -> list[dict[str, Any]]:
    """Algorithm 1, and a method without a stopping rule, on five folds."""
    metrics = {f"ndcg{k}{d}": 0.5 for k in ("@1", "@3", "@5", "@10", "") for d in ("", "/letor")}
    entries = []
    for fold in range(1, 6):
        for method, spec in (
            ("ApproxNDCG", RULE),
            ("Ranking SVM", {"learner": "ranking_svm"}),
            ("ListNet", {"learner": "neural", "training": {"max_epochs": 100}}),
        ):
            name = f"{method.split()[0].lower()}-f{fold}"
            run = make_run(
                folder,
                name,
                metrics,
                dataset="ohsumed",
                fold=fold,
                trials=1,
                queries=21 + (fold == 1),
                first_query=100 * fold,
                spec=spec,
            )
            if spec is RULE:
                history.to_csv(run / "history.csv", index=False)
            entries.append({"run": name, "settings": {"method": method, "fold": fold}})
    return entries


def test_a_start_that_had_stopped_stays_where_it_was(history: pd.DataFrame) -> None:
    at = starts_at(history, 100).set_index(["candidate", "restart"])
    assert at["epoch"].to_dict() == {(0, 0): 100, (0, 1): 100, (1, 0): 80, (1, 1): 100}
    ends = starts_at(history).set_index(["candidate", "restart"])
    assert ends["epoch"].to_dict() == {(0, 0): 300, (0, 1): 1000, (1, 0): 80, (1, 1): 400}


def test_objective_chooses_the_start_and_validation_the_candidate(history: pd.DataFrame) -> None:
    # Candidate 1's better validation values are those of a start with a worse objective.
    for cap, epoch, restart, candidate in ((100, 80, 0, 1), (500, 500, 1, 0), (None, 1000, 1, 0)):
        (row,) = chosen_at(history, cap).to_dict("records")
        assert (row["epoch"], row["restart"], row["candidate"]) == (epoch, restart, candidate)


def test_the_ending_counts_starts_and_looks_at_the_last_fifth(
    history: pd.DataFrame, tmp_path: Path
) -> None:
    plan = {
        "edition": "real",
        "paper": "qin2010",
        "product": "stopping",
        "experiments": {"ohsumed_methods": methods(tmp_path, history)},
    }
    runs = gather(plan, tmp_path).runs("ohsumed_methods")
    end = ending([run for run in runs if run.setting("method") == "ApproxNDCG"])
    assert (end.starts, end.met, end.median) == (20, 15, 350)
    assert end.moves == pytest.approx({"the objective": 0.003, "training NDCG@n": 0.003})
    assert str(end) == (
        "15 of 20 random starts met δ = 0.001 within the cap of 1\u00a0000 epochs, and half of all "
        "ended within 350; over the last fifth the others moved at most in the objective by 0.0030 "
        "and training NDCG@n by 0.0030"
    )


@pytest.mark.slow
def test_table_4_says_how_its_methods_were_trained(history: pd.DataFrame, tmp_path: Path) -> None:
    entries = methods(tmp_path / "runs", history)
    plan = make_plan(tmp_path, "qin2010", "table4", {"ohsumed_methods": entries}, edition="real")
    build(plan, tmp_path / "runs", tmp_path / "table4")
    text = (tmp_path / "table4.md").read_text(encoding="utf-8")
    assert "trained by gradients have at most 100 epochs in float32" in text
    assert text.count("15 of 20 random starts met δ = 0.001") == 1


@pytest.mark.slow
def test_the_table_of_caps_ends_with_the_rule(history: pd.DataFrame, tmp_path: Path) -> None:
    entries = methods(tmp_path / "runs", history)
    plan = make_plan(tmp_path, "qin2010", "stopping", {"ohsumed_methods": entries})
    build(plan, tmp_path / "runs", tmp_path / "stopping")
    data = pd.read_csv(tmp_path / "stopping.csv").set_index("cap")
    assert set(data["method"]) == {"ApproxNDCG"}
    assert data["NDCG@n"].to_dict() == {100: 0.45, 500: 0.52, 1000: 0.54}
    assert data["met"].to_dict() == {100: 5, 500: 15, 1000: 15}
    assert data["median_epochs"].to_dict() == {100: 100, 500: 350, 1000: 350}


def test_a_curve_has_the_epochs_that_all_in_training_have() -> None:
    history = pd.DataFrame(
        [
            (0, 1, 0.1, False),
            (0, 10, 0.2, False),
            (0, 40, 0.3, True),
            (1, 1, 0.5, False),
            (1, 10, 0.6, False),
            (1, 100, 0.7, False),
            (1, 130, 0.8, True),
        ],
        columns=["trial", "epoch", "value", "met"],
    )
    curves = along(history, "value")
    assert list(curves.index) == [1, 10, 100, 130]
    np.testing.assert_array_equal(curves[0], [0.1, 0.2, 0.3, 0.3])
    np.testing.assert_array_equal(curves[1], [0.5, 0.6, 0.7, 0.8])
