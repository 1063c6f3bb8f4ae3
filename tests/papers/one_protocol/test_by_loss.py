"""Losses whatever the scorer, on one collection and on several, from made-up published values."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import directrank
from directrank.papers.one_protocol.by_loss import Together, read_losses
from directrank.stats.estimates import Estimate
from directrank.stats.two_way import difference_over_queries_and_starts
from directrank.system.errors import DataError
from published_losses import write_published

LEVELS = {"RankNet": 0.45, "ListNet": 0.45, "LambdaRank": 0.48, "RMSE": 0.40}


def expected_difference(path: Path, a: str, b: str) -> Estimate:
    """Of every training and query, over the scorers: ``[T, Q]`` of both."""
    values = directrank.open_results(path)
    values = values[values["scorer"] != "trees"]
    wide = values.pivot_table("ndcg@10", ["method", "trial"], "query_id", observed=True)
    groups = None
    if "group" in values:
        groups = values.drop_duplicates("query_id").set_index("query_id")["group"]
        groups = groups.reindex(wide.columns).to_numpy()
    return difference_over_queries_and_starts(
        wide.loc[a].to_numpy(), wide.loc[b].to_numpy(), groups
    )


def test_a_losss_value_of_a_query_is_the_mean_over_scorers(tmp_path: Path) -> None:
    path = write_published(tmp_path, "ohsumed", LEVELS)
    losses = read_losses(path)
    assert losses.labels == list(LEVELS)  # no trees
    row = losses.pairs[(losses.pairs["a"] == 0) & (losses.pairs["b"] == 3)].iloc[0]
    expected = expected_difference(path, "RankNet", "RMSE")
    assert row["difference"] == pytest.approx(expected.mean, abs=1e-7)
    assert row["error"] == pytest.approx(expected.error, rel=1e-5)


def test_a_loss_that_lacks_a_scorer_is_left_out(tmp_path: Path) -> None:
    path = write_published(tmp_path, "ohsumed", LEVELS, lacks=[("ListNet", "context-aware")])
    assert read_losses(path).labels == ["RankNet", "LambdaRank", "RMSE"]
    alone = write_published(tmp_path, "mq2008", {"RankNet": 0.5})
    with pytest.raises(DataError, match="fewer than two losses"):
        read_losses(alone)


def test_a_scorer_that_few_losses_were_run_with_does_not_leave_the_others_out(
    tmp_path: Path,
) -> None:
    few = [(loss, "context-aware") for loss in ("RankNet", "LambdaRank", "ListNet")]
    losses = read_losses(write_published(tmp_path, "msrd", LEVELS, lacks=few))
    assert losses.labels == list(LEVELS)
    assert losses.scorers == ["linear", "network"]


def test_what_is_said_of_a_loss_is_the_decision_of_each_pair(tmp_path: Path) -> None:
    losses = read_losses(write_published(tmp_path, "ohsumed", LEVELS))
    assert losses.against("LambdaRank")["better"] == ["RankNet", "ListNet", "RMSE"]
    said = losses.against("RankNet")
    assert said == {
        "better": ["RMSE"], "worse": ["LambdaRank"], "equivalent": ["ListNet"], "inconclusive": [],
    }  # fmt: skip
    few = write_published(tmp_path, "few", dict.fromkeys(LEVELS, 0.5), queries=9, spread=0.2)
    assert len(read_losses(few).against("RMSE")["inconclusive"]) == 3


def test_every_collection_weighs_the_same_however_many_queries_it_has(tmp_path: Path) -> None:
    turned = LEVELS | {"LambdaRank": 0.36}
    files = [
        write_published(tmp_path, "ohsumed", LEVELS, queries=40),
        write_published(tmp_path, "msrd", turned, queries=400, groups_of=4),
    ]
    together = Together([read_losses(file) for file in files])
    pair = together.pairs[(together.pairs["a"] == 0) & (together.pairs["b"] == 2)].iloc[0]
    parts = [expected_difference(file, "RankNet", "LambdaRank") for file in files]
    assert pair["difference"] == pytest.approx(sum(part.mean for part in parts) / 2, abs=1e-7)
    error = np.hypot(parts[0].error, parts[1].error) / 2
    assert pair["error"] == pytest.approx(error, rel=1e-5)
    assert min(part.freedom for part in parts) < pair["freedom"]
    assert pair["freedom"] < sum(part.freedom for part in parts)
    assert together.mean["LambdaRank"] == pytest.approx((0.48 + 0.36) / 2, abs=1e-6)


@pytest.mark.parametrize(
    ("margin", "as_good"),
    [(0.01, ["ListNet", "RankNet"]), (0.006, ["ListNet"]), (0.005, [])],
)
def test_what_is_shown_to_be_as_good_depends_on_the_margin(
    tmp_path: Path, margin: float, as_good: list[str]
) -> None:
    levels = {"RankNet": 0.48, "ListNet": 0.483, "LambdaRank": 0.4885, "RMSE": 0.40}
    path = write_published(tmp_path, "ohsumed", levels, spread=0.002, margin=margin)
    together = Together([read_losses(path)])
    assert together.candidates == ["LambdaRank"]
    assert together.equivalent("LambdaRank") == as_good
    assert together.told_apart("LambdaRank") == ["ListNet", "RankNet", "RMSE"]


def test_the_controls_show_how_far_apart_equals_are(tmp_path: Path) -> None:
    levels = LEVELS | {"NeuralNDCG": 0.45, "NeuralNDCGᵀ": 0.456, "RMSE again": 0.402}
    losses = read_losses(write_published(tmp_path, "ohsumed", levels, spread=0.001))
    assert losses.distance == pytest.approx(0.006, abs=1e-6)
    # Averaged over scorers few pairs are left: the end of the interval counts.
    assert 0.006 < Together([losses]).distance < 0.0065
    place = {label: number for number, label in enumerate(losses.labels)}
    # Significant, and no further apart than the controls: a tie.
    assert "NeuralNDCG" in losses.against("NeuralNDCGᵀ")["better"]
    assert losses.verdicts[place["NeuralNDCGᵀ"], place["NeuralNDCG"]] == 0
    assert losses.verdicts[place["LambdaRank"], place["RankNet"]] == 1
    assert losses.places[place["LambdaRank"]].tolist() == [1, 1]
    assert losses.places[place["RankNet"]].tolist() == [2, 5]
    assert losses.places[place["RMSE"]].tolist() == [6, 7]


def test_few_queries_show_neither_a_difference_nor_that_there_is_none(tmp_path: Path) -> None:
    levels = dict.fromkeys(LEVELS, 0.5)
    path = write_published(tmp_path, "ohsumed", levels, queries=12, spread=0.2)
    together = Together([read_losses(path)])
    assert sorted(together.candidates) == sorted(LEVELS)
    assert together.equivalent(together.candidates[0]) == []
    assert together.told_apart(together.candidates[0]) == []


def test_losses_that_a_collection_lacks_are_left_out_of_all(tmp_path: Path) -> None:
    fewer = {name: level for name, level in LEVELS.items() if name != "RankNet"}
    files = [
        write_published(tmp_path, "ohsumed", LEVELS),
        write_published(tmp_path, "msrd", fewer),
    ]
    together = Together([read_losses(file) for file in files])
    assert together.labels == ["ListNet", "LambdaRank", "RMSE"]
    assert together.candidates == ["LambdaRank"]
    assert together.means.loc["MSRD", "RMSE"] < together.means.loc["MSRD", "ListNet"]
    assert len(together.pairs) == 3


def test_controls_without_a_known_error_are_as_far_apart_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = LEVELS | {"NeuralNDCG": 0.45, "NeuralNDCGᵀ": 0.456}
    together = Together([read_losses(write_published(tmp_path, "ohsumed", levels))])
    unknown = {
        names: [(difference, math.nan, freedom) for difference, _, freedom in pair]
        for names, pair in together._controls.items()
    }
    monkeypatch.setitem(together.__dict__, "_controls", unknown)
    assert together.distance == pytest.approx(0.006, abs=1e-6)
