"""Cells of tables, and the sentence on top of one."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from directrank.papers.shared import cells, leads


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (cells.measured(0.52663, 0.08912), "0.527 ± 0.089"),
        (cells.measured(52.663, 8.912, 2), "52.66 ± 8.91"),
        (cells.measured(0.5, 0.1, best=True), "**0.500** ± 0.100"),
        (cells.measured(0.5, 0.1, mark="*"), "0.500* ± 0.100"),
        (cells.measured(0.5), "0.500"),
        (cells.measured(math.nan), "not run"),
        (cells.difference(-0.0123, 0.0456), "−0.012 ± 0.046"),
        (cells.difference(math.nan), ""),
        (cells.printed(0.4637, 4, mark="*"), "0.4637*"),
        (cells.printed(50.33, 2, 0.22), "50.33 ± 0.22"),
        (cells.printed(math.nan, 4), "–"),
    ],
)
def test_a_cell_is_set_in_one_way(text: str, expected: str) -> None:
    assert text == expected


def test_distance_from_print_is_told_of_the_papers_own_data_alone() -> None:
    assert cells.printed(0.5388, 4, in_errors=-1.26, kind="real") == "0.5388 (−1.3 SE)"
    assert cells.printed(0.5388, 4, in_errors=-1.26, kind="other real") == "0.5388"
    assert cells.printed(0.5388, 4, in_errors=-1.26, kind="stand-in") == "0.5388"


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
