"""Means over queries and folds, and the conventions for empty queries."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.stats.means import (
    convert_mean,
    mean_metric,
    mean_of_fold_means,
    mean_over_queries,
)
from directrank.system.errors import ConfigError, DataError

PUBLISHED = Path(__file__).parents[2] / "paper_tables" / "published"


def results(values: dict[tuple[int, str], list[float]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"trial": trial, "split": split, "query_id": query, "ndcg@5": value}
            for (trial, split), column in values.items()
            for query, value in enumerate(column)
        ]
    )


def test_an_empty_query_counts_as_the_convention_says():
    values = np.array([0.5, np.nan, 0.25, np.nan])
    assert mean_over_queries(values, "exclude") == 0.375
    assert mean_over_queries(values, "zero") == 0.1875
    assert mean_over_queries(values, "one") == 0.6875


def test_a_mean_of_nothing_is_not_a_number():
    assert np.isnan(mean_over_queries(np.array([np.nan]), "exclude"))
    assert mean_over_queries(np.array([np.nan]), "one") == 1.0


def test_means_are_taken_per_trial_and_split():
    table = mean_metric(
        results({(0, "test"): [0.5, np.nan], (0, "vali"): [1.0], (1, "test"): [0.1, 0.3]}),
        "ndcg@5",
        "zero",
    )
    assert table.to_dict("list") == {
        "trial": [0, 0, 1],
        "split": ["test", "vali", "test"],
        "value": pytest.approx([0.25, 1.0, 0.2]),
        "n_queries": [2, 1, 2],
        "n_empty": [1, 0, 0],
    }


def test_conversion_agrees_with_taking_the_mean_again():
    values = np.random.default_rng(0).uniform(size=50)
    values[::7] = np.nan
    n_empty = int(np.isnan(values).sum())
    means = {empty: mean_over_queries(values, empty) for empty in ("exclude", "zero", "one")}
    for source in means:
        for target in means:
            converted = convert_mean(means[source], 50, n_empty, source, target)
            assert converted == pytest.approx(means[target], abs=1e-15)


def test_conversion_reproduces_the_papers_numbers_under_the_other_conventions():
    empty = pd.read_csv(PUBLISHED / "web30k_empty_queries.csv").set_index("fold").loc[1]
    n_queries, n_empty = int(empty["test_queries"]), int(empty["test_empty"])
    table = pd.read_csv(PUBLISHED / "derived_empty_query_conversions.csv")
    assert set(table["printed_convention"]) == {"empty=1", "empty excluded"}
    assert set(table["split"]) == {"Web30K Fold1 test"}
    for row in table.itertuples():
        source = {"empty=1": "one", "empty excluded": "exclude"}[row.printed_convention]
        for target in ("exclude", "zero", "one"):
            value = 100 * convert_mean(row.printed / 100, n_queries, n_empty, source, target)
            expected = row.as_excluded if target == "exclude" else getattr(row, f"as_{target}")
            assert value == pytest.approx(expected, abs=0.005 + 1e-9)


def test_the_best_of_several_models_is_the_same_under_every_convention():
    values = np.random.default_rng(1).uniform(size=(20, 30))
    values[:, ::4] = np.nan
    best = {e: int(np.argmax([mean_over_queries(v, e) for v in values]))
            for e in ("exclude", "zero", "one")}  # fmt: skip
    assert len(set(best.values())) == 1


def test_letors_mean_weighs_folds_alike_whatever_their_size():
    folds = [
        results({(0, "test"): [1.0]}),
        results({(0, "test"): [0.0, 0.5, np.nan]}),
    ]
    table = mean_of_fold_means(folds, "ndcg@5")
    assert table["value"].tolist() == pytest.approx([(1.0 + 0.5 / 3) / 2])
    assert table[["n_folds", "n_queries", "n_empty"]].to_numpy().tolist() == [[2, 4, 1]]
    pooled = mean_over_queries(pd.concat(folds)["ndcg@5"].to_numpy(), "zero")
    assert table["value"][0] != pytest.approx(pooled)


def test_folds_with_other_trials_are_not_averaged():
    with pytest.raises(DataError, match="differ in their trials"):
        mean_of_fold_means([results({(0, "test"): [1.0]}), results({(1, "test"): [1.0]})], "ndcg@5")
    with pytest.raises(DataError, match="no folds"):
        mean_of_fold_means([], "ndcg@5")


def test_a_metric_that_was_not_evaluated_is_named():
    with pytest.raises(DataError, match=r"no metric 'ndcg@7'(.|\n)*ndcg@5"):
        mean_metric(results({(0, "test"): [1.0]}), "ndcg@7")


def test_an_unknown_convention_is_named():
    with pytest.raises(ConfigError, match=r"'half'(.|\n)*exclude, zero, one"):
        mean_over_queries(np.array([1.0]), "half")


def test_a_set_of_empty_queries_only_has_no_mean_to_convert():
    with pytest.raises(ValueError, match="no mean"):
        convert_mean(1.0, 5, 5, "one", "exclude")
