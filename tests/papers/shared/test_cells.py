"""The cells of tables: numbers as they are set, and differences from print."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from directrank.papers.shared import cells, format


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format.signed(0.01234), "+0.012"),
        (format.signed(-0.0004), "0.000"),
        (format.signed(-1.26, 1), "−1.3"),
        (format.signed(math.nan), ""),
        (format.number(0.5, 2), "0.50"),
        (format.number(math.nan), ""),
        (format.interval("0.457", 0.0123), "0.457 ± 0.012"),
        (format.interval("45.67*", 1.234, 2), "45.67* ± 1.23"),
        (format.interval("0.457", math.nan), "0.457"),
        (format.interval("", 0.1), ""),
        (format.p_value(0.00004), "< 0.0001"),
        (format.p_value(0.0004, 3), "< 0.001"),
        (format.p_value(0.04), "0.0400"),
        (format.p_value(math.nan), ""),
        (format.count(18919), "18\u00a0919"),
        (format.spread([5, 5], "trial"), "5 trials"),
        (format.spread([3, 5], "trial"), "3 to 5 trials"),
        (format.spread([1], "trial"), "a single trial"),
        (format.share(3, 5), "3 of the 5"),
        (format.share(0, 5), "none of the 5"),
        (format.share(5, 5), "all 5"),
        (format.share(2, 2), "both"),
        (format.share(1, 1), "1 of 1"),
        (format.listed(["a"]), "a"),
        (format.listed(["a", "b", "c"]), "a, b and c"),
        (format.minus("1.0e-05"), "1.0e−05"),
    ],
)
def test_numbers_and_lists_as_they_are_set(text: str, expected: str) -> None:
    assert text == expected


def test_headings_stand_beside_each_name() -> None:
    assert format.headings("Method", ["NDCG@1", "MAP"], "paper") == [
        "Method",
        "NDCG@1",
        "paper",
        "MAP",
        "paper",
    ]


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


def test_a_difference_is_told_in_joint_standard_errors() -> None:
    data = pd.DataFrame(
        {"mean": [0.5, 0.5, math.nan], "half_width": [0.1, 0.1, math.nan], "n": [5, 1, 5]}
    )
    data["published"] = [0.4, 0.4, 0.4]
    ours = cells.standard_error(data["half_width"], data["n"])
    assert ours[0] == pytest.approx(0.1 / stats.t.ppf(0.975, 4))
    assert math.isnan(ours[1])  # the spread of a single value is unknown
    found = cells.add_differences(data, error=ours, published_error=0.05)
    assert found["difference"].tolist()[:2] == pytest.approx([0.1, 0.1])
    joint = math.hypot(ours[0], 0.05)
    assert found["difference_in_se"][0] == pytest.approx(0.1 / joint)
    assert found.loc[2, list(cells.DIFFERENCES)].isna().all()


def test_an_exact_value_has_no_error_but_that_of_rounding() -> None:
    data = pd.DataFrame({"mean": [1.0, 1.0], "published": [1.0, 1.001]})
    exact = cells.add_differences(data)
    assert exact["difference_se"].isna().all()
    rounded = cells.rounding_error(pd.Series([0.0005, 0.0005]))
    spread = np.random.default_rng(1).uniform(-0.0005, 0.0005, 100_000).std()
    assert rounded[0] == pytest.approx(spread, rel=0.01)
