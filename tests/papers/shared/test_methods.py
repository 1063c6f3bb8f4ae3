"""A method's runs over folds, and the guard that methods are compared on the same queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.papers.shared.evidence import Dataset, FinishedRun
from directrank.papers.shared.methods import (
    Method,
    by_method,
    compared,
    how_tested,
    paired_values,
    signed_rank_p,
)
from directrank.stats.two_way import difference_over_queries_and_starts
from directrank.study.results import load_run
from directrank.system.errors import DataError
from papers_synthetic import make_run

OHSUMED = Dataset("ohsumed", "OHSUMED", "real")


def planned(
    folder: Path, method: str, folds: Sequence[int], *, shift: int = 0, level: float = 0.5
) -> list[FinishedRun]:
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
        runs.append(FinishedRun({"method": method, "fold": fold}, OHSUMED, result))
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


def trained(folder: Path, name: str, folds: int, trials: int, level: float) -> Method:
    """A method with runs on the first folds."""
    runs = []
    for fold in range(1, folds + 1):
        run = f"{name}-f{fold}"
        make_run(
            folder, run, {"ndcg@5": level}, fold=fold, trials=trials, first_query=100 * fold
        )  # fmt: skip
        result = load_run(folder / run)
        runs.append(FinishedRun({"method": name, "fold": fold}, OHSUMED, result))
    return Method(name, runs, "exclude")


def test_methods_with_several_trials_are_compared_by_queries_and_trainings(tmp_path: Path) -> None:
    a, b = (trained(tmp_path, name, 3, 2, level) for name, level in (("a", 0.5), ("b", 0.7)))
    values = [method.trial_values("ndcg@5").dropna() for method in (a, b)]
    folds = values[0].index.get_level_values("fold").to_numpy()
    expected = difference_over_queries_and_starts(
        *(frame.to_numpy().T for frame in values), None, folds
    )
    assert compared(a, b, "ndcg@5") == expected


def test_of_methods_with_one_trial_the_folds_tell_what_trainings_matter(tmp_path: Path) -> None:
    a, b = (trained(tmp_path, name, 3, 1, level) for name, level in (("a", 0.5), ("b", 0.7)))
    estimate = compared(a, b, "ndcg@5")
    assert estimate.freedom == 2
    gaps = [
        float((x - y).mean())
        for x, y in (
            (a.query_values("ndcg@5").xs(fold, level="fold"),
             b.query_values("ndcg@5").xs(fold, level="fold"))
            for fold in (1, 2, 3)
        )
    ]  # fmt: skip
    assert estimate.mean == pytest.approx(np.mean(gaps))  # the folds have as many queries
    assert estimate.error == pytest.approx(np.std(gaps, ddof=1) / 3**0.5)
    assert "over the folds" in how_tested([a, b])


def test_two_folds_with_one_trial_say_nothing_of_other_trainings(tmp_path: Path) -> None:
    a, b = (trained(tmp_path, name, 2, trials, 0.5) for name, trials in (("a", 1), ("b", 3)))
    assert np.isnan(compared(a, b, "ndcg@5").error)
    assert np.isnan(compared(a, b, "ndcg@5").p_differs())
    assert "which methods that were trained once lack" in how_tested([a, b])


def test_wilcoxons_test_gives_way_to_one_by_group() -> None:
    a, b = pd.Series([0.5, 0.6, 0.7, 0.9]), pd.Series([0.1, 0.4, 0.6, 0.3])
    assert signed_rank_p(a, b, None) == 0.125
    assert signed_rank_p(a, b, np.array([1, 1, 2, 2])) > 0.01
