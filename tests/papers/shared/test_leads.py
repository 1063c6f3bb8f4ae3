"""Sentences computed from results: on top of tables, and about the training of networks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from directrank.papers.shared import leads
from directrank.papers.shared.evidence import Dataset, FinishedRun
from directrank.study.results import RunResult, write_run

ADAM = {"name": "adam", "lr": 0.001}
DATA = Dataset("ohsumed", "OHSUMED", "real")


def planned(folder: Path, fits: list[tuple[int, int, bool, bool]], **training: Any) -> FinishedRun:
    """A run of candidates: number, epochs, stopped early, selected."""
    frame = pd.DataFrame(fits, columns=["candidate", "epochs", "stopped_early", "selected"])
    frame["n_parameters"] = 1000 * (frame["candidate"] + 1)
    spec = {"trials": 1} | (
        {"training": {"batch_queries": 4, "optimizer": ADAM} | training} if training else {}
    )
    values = pd.DataFrame({"trial": [0], "split": ["test"], "query_id": [1], "ndcg@10": [0.5]})
    write_run(folder, values, pd.DataFrame({"epoch": [1]}), frame, {"spec": spec})
    return FinishedRun({}, DATA, RunResult(folder))


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
    assert leads.training_sentence(runs) == (
        "The networks have 1\u00a0000 to 2\u00a0000 weights. Each is the best on the validation "
        "set of 2 configurations and was trained for a median of 170 epochs (40 to 300), until 20 "
        "epochs brought no better validation metric, or for at most 300 epochs, with 4 queries per "
        "step. 1 of 2 were trained for the largest number of epochs."
    )


def test_the_rule_and_the_size_of_networks_can_be_said_alone(tmp_path):
    network = planned(tmp_path / "a", [(0, 40, True, True)], max_epochs=300, patience=20)
    tree = planned(tmp_path / "b", [(0, 300, True, True)])
    assert leads.training_rule([network, tree]) == (
        "until 20 epochs brought no better validation metric, or for at most 300 epochs, with 4 "
        "queries per step"
    )
    assert leads.weights([network, tree]) == "1\u00a0000"
    assert leads.training_rule([tree]) == leads.weights([tree]) == ""


def test_without_a_rule_the_number_of_epochs_is_all_that_ends_training(tmp_path):
    run = planned(tmp_path / "a", [(0, 100, False, True)], max_epochs=100, patience=None)
    assert "for 100 epochs, a number that was fixed in advance" in (leads.training_sentence([run]))


def test_trees_have_no_sentence(tmp_path):
    assert leads.training_sentence([planned(tmp_path / "a", [(0, 300, True, True)])]) == ""


def test_lead_names_the_highest_and_the_lowest_mean_of_what_was_run() -> None:
    means = {"a": 0.5, "b": math.nan, "c": 0.7, "d": 0.6}
    said = leads.extremes(means, "MAP")
    assert said == "c has the highest MAP, 0.700, and a the lowest, 0.500"


def test_lead_names_all_methods_that_tie() -> None:
    assert leads.extremes({"a": 0.7, "b": 0.5, "c": 0.7}, "MAP").startswith("a and c have")
    assert leads.extremes({"a": 0.7, "b": 0.7}, "MAP") == "all methods have MAP 0.700"
    assert leads.extremes({"a": 0.7}, "MAP") == "a has MAP 0.700"


def test_lead_counts_values_near_print_where_levels_can_be_compared() -> None:
    data = pd.DataFrame(
        {"data": ["real", "real", "stand-in"], "difference_in_se": [1.5, -2.5, 0.0]}
    )
    assert leads.near_print(data).startswith("1 of the 2 values")
    assert leads.near_print(data[data["data"] == "stand-in"]) == ""


def test_lead_counts_printed_numbers_that_are_met() -> None:
    data = pd.DataFrame({"status": ["met", "not met", "met", "published: lost"]})
    assert leads.met(data) == "2 of the 3 printed numbers are met"
    assert leads.met(data[data["status"] == "published: lost"]) == ""


def test_lead_leaves_out_what_has_nothing_to_say() -> None:
    assert leads.lead("on A x is ahead", "", "none differ") == "On A x is ahead. None differ."
    assert leads.lead("nDCG-type3 is ahead") == "nDCG-type3 is ahead."


def test_only_differences_that_were_tested_are_counted() -> None:
    p_values = pd.Series([0.001, 0.2, float("nan")])
    assert leads.significant_share(p_values, 0.05, "others differ") == "1 of the 2 others differ"
    assert leads.significant_share(p_values[2:], 0.05, "others differ") == ""
