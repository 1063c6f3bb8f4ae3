"""A method's runs over folds, and the guard that methods are compared on the same queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.papers.shared.evidence import Dataset, PlannedRun
from directrank.papers.shared.methods import (
    Method,
    by_method,
    paired_test,
    paired_values,
    signed_rank_p,
)
from directrank.stats.intervals import mean_interval
from directrank.study.results import load_run
from directrank.system.errors import DataError
from papers_synthetic import make_run

OHSUMED = Dataset("ohsumed", "OHSUMED", "real")


def planned(
    folder: Path, method: str, folds: Sequence[int], *, shift: int = 0, level: float = 0.5
) -> list[PlannedRun]:
    """A run per fold in the order given; query ids differ between folds, and by ``shift``."""
    runs = []
    for fold in folds:
        make_run(
            folder,
            f"{method}-f{fold}",
            {"ndcg@5": level},
            dataset="ohsumed",
            fold=fold,
            queries=20 + fold,
            first_query=100 * fold + shift,
        )
        result = load_run(folder / f"{method}-f{fold}")
        runs.append(PlannedRun({"method": method, "fold": fold}, OHSUMED, result))
    return runs


def test_folds_are_put_in_order_so_that_queries_meet_their_own(tmp_path: Path) -> None:
    runs = [*planned(tmp_path, "a", (1, 2, 3)), *planned(tmp_path, "b", (3, 1, 2), level=0.6)]
    methods = by_method(runs, "exclude")
    assert methods["b"].folds == [1, 2, 3]
    a, b = paired_values(methods.values(), "ndcg@5")
    assert a.index.equals(b.index)
    # The difficulty of a query is in both values: paired by query, little is left of it.
    assert (b - a).std() < 0.5 * b.std()


def test_folds_in_another_order_are_refused(tmp_path: Path) -> None:
    a = Method("a", planned(tmp_path, "a", (1, 2)), "exclude")
    b = Method("b", planned(tmp_path, "b", (2, 1)), "exclude")
    with pytest.raises(DataError, match="'b' and 'a' were not evaluated on the same queries"):
        paired_values([a, b], "ndcg@5")


def test_other_queries_are_refused_and_the_run_is_named(tmp_path: Path) -> None:
    runs = [*planned(tmp_path, "a", (1, 2)), *planned(tmp_path, "b", (1, 2), shift=1)]
    with pytest.raises(DataError, match="b-f1: 'b' and 'a' were not evaluated on the same queries"):
        paired_values(by_method(runs, "exclude").values(), "ndcg@5")


def test_a_missing_and_a_repeated_fold_are_refused(tmp_path: Path) -> None:
    runs = [*planned(tmp_path, "a", (1, 2, 3)), *planned(tmp_path, "b", (1, 3))]
    with pytest.raises(
        DataError, match=r"'b' was run on the folds \[1, 3\], but others on \[1, 2, 3\]"
    ):
        by_method(runs, "exclude")
    with pytest.raises(DataError, match="'a' has a fold twice"):
        by_method([*runs[:3], runs[0]], "exclude")


def test_means_are_those_of_the_folds_and_follow_the_convention(tmp_path: Path) -> None:
    runs = planned(tmp_path, "a", (1, 2))
    frames = [run.result.per_query.query("split == 'test'") for run in runs]
    by_trial = [frame.groupby("trial")["ndcg@5"].mean() for frame in frames]
    method = Method("a", runs, "exclude")
    assert method.trial_means("ndcg@5") == pytest.approx(np.mean(by_trial, axis=0))
    assert method.mean("ndcg@5") == pytest.approx(np.mean(by_trial))
    filled = [frame.fillna({"ndcg@5": 0.0}).groupby("trial")["ndcg@5"].mean() for frame in frames]
    assert method.trial_means("ndcg@5", empty="zero") == pytest.approx(np.mean(filled, axis=0))
    assert len(method.query_values("ndcg@5")) == 19 + 20
    assert len(method.query_values("ndcg@5", empty="one")) == 21 + 22


def test_methods_of_an_order_come_first(tmp_path: Path) -> None:
    runs = [run for name in ("x", "b", "a") for run in planned(tmp_path, name, (1,))]
    methods = by_method(runs, "zero", order=("a", "absent", "b"), suffix=", linear")
    assert list(methods) == ["a", "b", "x"]
    assert methods["x"].label == "x, linear"


def test_a_paired_test_is_of_the_mean_difference() -> None:
    generator = np.random.default_rng(3)
    a = pd.Series(generator.normal(0.2, 0.1, 50))
    b = pd.Series(generator.normal(0.1, 0.1, 50))
    test = paired_test(a, b, ("test",), resamples=999)
    assert test.difference == mean_interval(a - b)
    assert test.p_value == 1 / 1000


def test_a_paired_test_of_grouped_queries_flips_signs_group_by_group() -> None:
    generator = np.random.default_rng(3)
    groups = np.repeat(np.arange(10), 20)
    shared = np.repeat(generator.normal(0.0, 0.1, 10), 20)  # a group's queries differ alike
    a = pd.Series(0.5 + shared + generator.normal(0.0, 0.01, 200))
    b = pd.Series(np.full(200, 0.5))
    alone = paired_test(a, b, ("test",), resamples=999)
    grouped = paired_test(a, b, ("test",), groups=groups, resamples=999)
    assert grouped.difference.mean == pytest.approx(alone.difference.mean)
    assert grouped.difference.half_width > 3 * alone.difference.half_width
    assert grouped.p_value > alone.p_value
    own = paired_test(a, b, ("test",), groups=np.arange(200), resamples=999)
    assert own.p_value == alone.p_value
    assert own.difference.half_width == pytest.approx(alone.difference.half_width)


def test_wilcoxons_test_gives_way_to_one_by_group() -> None:
    a, b = pd.Series([0.5, 0.6, 0.7, 0.9]), pd.Series([0.1, 0.4, 0.6, 0.3])
    assert signed_rank_p(a, b, None) == 0.125
    assert signed_rank_p(a, b, np.array([1, 1, 2, 2])) > 0.01
