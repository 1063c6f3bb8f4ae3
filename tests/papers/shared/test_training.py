"""The sentence of a caption about the training of networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from directrank.papers.shared.evidence import Dataset, PlannedRun
from directrank.papers.shared.training import training_sentence
from directrank.study.results import RunResult, write_run

ADAM = {"name": "adam", "lr": 0.001}
DATA = Dataset("ohsumed", "OHSUMED", "real")


def planned(folder: Path, fits: list[tuple[int, int, bool, bool]], **training: Any) -> PlannedRun:
    """A run of candidates: number, epochs, stopped early, selected."""
    frame = pd.DataFrame(fits, columns=["candidate", "epochs", "stopped_early", "selected"])
    frame["n_parameters"] = 1000 * (frame["candidate"] + 1)
    spec = {"trials": 1} | (
        {"training": {"batch_queries": 4, "optimizer": ADAM} | training} if training else {}
    )
    values = pd.DataFrame({"trial": [0], "split": ["test"], "query_id": [1], "ndcg@10": [0.5]})
    write_run(folder, values, pd.DataFrame({"epoch": [1]}), frame, {"spec": spec})
    return PlannedRun({}, DATA, RunResult(folder))


def test_epochs_sizes_and_budget_are_those_of_the_chosen_networks(tmp_path):
    runs = [
        planned(
            tmp_path / "a", [(0, 40, True, True), (1, 99, True, False)], max_epochs=300, patience=20
        ),
        planned(
            tmp_path / "b",
            [(0, 55, True, False), (1, 300, False, True)],
            max_epochs=300,
            patience=20,
        ),
    ]
    assert training_sentence(runs) == (
        "Networks: 1\u00a0000 to 2\u00a0000 weights, 2 configurations each, chosen on validation; "
        "trained for 170 epochs in the median (40 to 300), ended after 20 epochs without a better "
        "validation metric or after 300 epochs, 4 queries per step. The largest number of epochs "
        "ended 1 of 2."
    )


def test_without_a_rule_the_number_of_epochs_is_all_that_ends_training(tmp_path):
    run = planned(tmp_path / "a", [(0, 100, False, True)], max_epochs=100, patience=None)
    assert "trained for 100 epochs in the median (100), a number that was set" in training_sentence(
        [run]
    )


def test_trees_have_no_sentence(tmp_path):
    assert training_sentence([planned(tmp_path / "a", [(0, 300, True, True)])]) == ""
