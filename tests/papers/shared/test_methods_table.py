"""A declared table of methods: its rows, marks, headings and CSV columns."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from directrank.papers.shared.evidence import Evidence, gather
from directrank.papers.shared.methods import Method, by_method
from directrank.papers.shared.methods_table import MethodsTable, in_print, over_trials_times
from directrank.system.io import read_json
from papers_synthetic import make_plan, make_run, ndcg_means

TABLE = MethodsTable(
    first="Method",
    metrics={"NDCG@1": "ndcg@1", "NDCG@5": "ndcg@5"},
    csv=("edition", "data", "method", "metric", "mean", "trials", "published", "status"),
    measure=over_trials_times(100),
    digits=2,
    beside={"paper": in_print(1)},
    error_over="trials",
    unprinted="not in print",
)
#: b was not run, and c is not printed.
PRINTED = pd.DataFrame({"NDCG@1": [41.0, 60.0], "NDCG@5": [40.0, 60.0]}, index=["b", "a"])

Methods = dict[str, Method]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Evidence, Methods]:
    """Evidence of the methods a and c, of which c is better."""
    folder = tmp_path_factory.mktemp("methods")
    entries = []
    for name, level in {"a": 0.4, "c": 0.5}.items():
        make_run(folder / "runs", name, ndcg_means(level), dataset="web30k")
        entries.append({"run": name, "settings": {"method": name}})
    plan = read_json(make_plan(folder, "bruch2019", "table1", {"methods": entries}))
    evidence = gather(plan, folder / "runs")
    return evidence, by_method(evidence.runs("methods"), "exclude")


def rows(found: tuple[Evidence, Methods], table: MethodsTable = TABLE, **how: Any) -> pd.DataFrame:
    evidence, methods = found
    return table.rows(evidence, methods, table.printed(PRINTED, published="{}"), **how)


def test_rows_follow_the_print_and_say_what_each_can_be_used_for(found: Any) -> None:
    data = rows(found)
    assert [*data["method"]] == ["b", "b", "a", "a", "c", "c"]
    status = dict(zip(data["method"], data["status"], strict=True))
    assert status == {"b": "not run here", "a": "compared", "c": "not in print"}
    assert data.loc[2, "difference"] == pytest.approx(data.loc[2, "mean"] - 60)
    assert [*rows(found, order=["c"])["method"].unique()] == ["c", "b", "a"]
    by_metric = rows(found, replace(TABLE, by_metric=True))
    assert [*by_metric["metric"]] == ["NDCG@1"] * 3 + ["NDCG@5"] * 3


def test_a_mean_has_the_scale_and_the_queries_that_count(found: Any) -> None:
    data = rows(found).set_index(["method", "metric"])
    method = found[1]["a"]
    expected = 100 * method.query_values("ndcg@5").mean()
    assert data.loc[("a", "NDCG@5"), "mean"] == pytest.approx(expected)
    assert data.loc[("a", "NDCG@5"), "queries"] == 38  # two of forty are empty
    assert math.isnan(data.loc[("b", "NDCG@5"), "queries"])


def test_the_csv_has_the_declared_columns_and_whole_numbers(found: Any) -> None:
    data = rows(found)
    result = TABLE.result(data, "", "", [TABLE.section(data)])
    assert tuple(result.data) == TABLE.csv
    assert result.data["trials"].dtype == "Int64"
    assert result.layout.columns == ["Method", "NDCG@1", "paper", "NDCG@5", "paper"]


def test_the_best_of_the_contenders_is_bold_on_either_side(found: Any) -> None:
    table = replace(TABLE, contenders=lambda data: data["published"].notna())
    lines = {line[0]: line[1:] for line in table.lines(rows(found, table))}
    assert lines["a"][0].startswith("**")
    assert lines["a"][1].startswith("**60.0** (")
    assert lines["b"] == ["not run", "41.0", "not run", "40.0"]
    assert "*" not in "".join(lines["c"])  # better, but not in print


def test_an_asterisk_stands_at_a_mean_that_is_not_the_best(found: Any) -> None:
    data = rows(found).assign(star=1, best=[False] * 4 + [True] * 2)
    a, c = TABLE.lines(data)[1:]
    assert "* ±" in a[1]
    assert "* ±" not in c[1].replace("** ±", "")
    assert c[1].startswith("**")


def test_columns_may_stand_before_and_after_the_values(found: Any) -> None:
    table = replace(TABLE, front={"net": "net"}, end={"of": "dataset"}, beside={})
    data = rows(found).assign(net=["x", "x", None, None, "y", "y"])
    assert table.columns == ["Method", "net", "NDCG@1", "NDCG@5", "of"]
    assert [(line[1], line[-1]) for line in table.lines(data)] == [
        (net, "Web30K") for net in ("x", "", "y")
    ]


def test_what_is_ahead_is_told_of_what_was_run_and_where(found: Any) -> None:
    data = rows(found, paper_dataset="Set 1")
    said = TABLE.extremes(data, "NDCG@5")
    assert said.startswith("on Set 1, c has the highest NDCG@5, ")
    assert " and a the lowest, " in said
    assert TABLE.extremes(data[data["method"] == "b"], "NDCG@5") == ""
    assert TABLE.section(data).title == "Set 1"
    assert TABLE.section(data).columns == ()
    assert TABLE.section(data, "", headed=True).columns == TABLE.columns
