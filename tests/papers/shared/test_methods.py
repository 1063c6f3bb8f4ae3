"""A method's runs over folds, and the guard that methods are compared on the same queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.papers.shared.evidence import Dataset, PlannedRun
from directrank.papers.shared.methods import Method, by_method, paired_test, paired_values
from directrank.stats.intervals import mean_interval, normal_interval
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
        DataError, match=r"'b' was run on the folds \[1, 3\], others on \[1, 2, 3\]"
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
    t, normal = (
        paired_test(a, b, ("test",), interval=interval, resamples=999)
        for interval in (mean_interval, normal_interval)
    )
    assert t.difference == mean_interval(a - b)
    assert normal.difference == normal_interval(a - b)
    assert t.p_value == normal.p_value == 1 / 1000
