"""How numbers are set in print."""

from __future__ import annotations

import math

import pytest

from directrank.papers.shared import format


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
