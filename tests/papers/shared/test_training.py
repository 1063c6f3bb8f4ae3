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
        "The networks have 1\u00a0000 to 2\u00a0000 weights. Each is the best on the validation "
        "set of 2 configurations and was trained for a median of 170 epochs (40 to 300), until 20 "
        "epochs brought no better validation metric, or for at most 300 epochs, with 4 queries per "
        "step. 1 of 2 were trained for the largest number of epochs."
    )


def test_without_a_rule_the_number_of_epochs_is_all_that_ends_training(tmp_path):
    run = planned(tmp_path / "a", [(0, 100, False, True)], max_epochs=100, patience=None)
    assert "for a median of 100 epochs (100), a number that was fixed in advance" in (
        training_sentence([run])
    )


def test_trees_have_no_sentence(tmp_path):
    assert training_sentence([planned(tmp_path / "a", [(0, 300, True, True)])]) == ""
