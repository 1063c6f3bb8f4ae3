"""The rule by which a method is taken, tuned or avoided, on made-up values with known means.

NeuralNDCG and its transpose are the control: how far they are apart is the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from directrank.papers.one_protocol.advice import Field, Standing, advise
from directrank.papers.one_protocol.by_loss import Together, read_losses
from published_losses import write_published

#: NDCG@10: the control is 0.004 apart. RankNet is tied with the highest mean, LambdaRank is not.
LEVELS = {
    "NeuralNDCGᵀ": 0.500, "NeuralNDCG": 0.496, "RankNet": 0.497, "LambdaRank": 0.480, "RMSE": 0.45,
}  # fmt: skip

#: Milliseconds.
COST = {"NeuralNDCGᵀ": 85.0, "NeuralNDCG": 86.0, "RankNet": 2.8, "LambdaRank": 1.0, "RMSE": 0.6}


def field(
    folder: Path,
    *levels: Mapping[str, float],
    cost: Mapping[str, float] = COST,
    moves: Mapping[str, float] | None = None,
    margin: float = 0.01,
    spread: float = 0.003,
) -> Field:
    """What a choice rests on, with a collection for each of ``levels``."""
    studies = [
        read_losses(write_published(folder, f"of{number}", means, spread=spread, margin=margin))
        for number, means in enumerate(levels)
    ]
    each = [Together([study]) for study in studies]
    whole, *singles = (
        Standing(one, set(LEVELS), one.distance) for one in (Together(studies), *each)
    )
    return Field(whole, singles, cost, moves or {})


def test_the_highest_mean_of_those_that_are_tied_and_cheap_is_taken(tmp_path: Path) -> None:
    found = field(tmp_path, LEVELS)
    assert 0.004 < found.whole.distance < 0.005
    assert found.whole.tied == ["NeuralNDCGᵀ", "RankNet", "NeuralNDCG"]
    assert advise(found).default == "RankNet"  # NeuralNDCG takes thirty times as long
    cheap = field(tmp_path, LEVELS, cost=COST | {"NeuralNDCGᵀ": 27.0})
    assert advise(cheap).default == "NeuralNDCGᵀ"


def test_controls_that_chance_made_equal_still_tie_what_may_be_apart(tmp_path: Path) -> None:
    equal = LEVELS | {"NeuralNDCG": 0.5}
    few = field(tmp_path, equal)
    assert 0 < few.whole.distance < 0.001
    assert few.whole.tied == ["NeuralNDCGᵀ", "NeuralNDCG"]
    noisy = field(tmp_path, equal, spread=0.04)
    assert noisy.whole.distance > 0.003
    assert "RankNet" in noisy.whole.tied


def test_nothing_within_the_controls_is_ranked(tmp_path: Path) -> None:
    wide = LEVELS | {"NeuralNDCG": 0.479}  # a control that is 0.021 apart ties LambdaRank, too
    found = field(tmp_path, wide)
    assert "LambdaRank" in found.whole.tied
    assert advise(found).default == "RankNet"  # LambdaRank is cheaper, and has a lower mean
    assert found.whole.behind == ["RMSE"]  # LambdaRank is significantly lower and tied all the same
    assert found.whole.beaten_by("LambdaRank") == 0


def test_only_methods_that_are_asked_for_are_counted_as_better(tmp_path: Path) -> None:
    whole = field(tmp_path, LEVELS).whole
    assert whole.beaten_by("RMSE") == 4
    asked = Standing(whole.together, set(LEVELS) - {"RankNet"}, whole.distance)
    assert asked.beaten_by("RMSE") == 3


def test_what_needs_tuning_is_an_alternative(tmp_path: Path) -> None:
    needs = advise(field(tmp_path, LEVELS, moves={"RankNet": 0.006, "NeuralNDCG": 0.003}))
    assert (needs.default, needs.tuned) == ("NeuralNDCGᵀ", "RankNet")
    robust = advise(field(tmp_path, LEVELS, moves={"RankNet": 0.003}))  # less than the controls
    assert (robust.default, robust.tuned) == ("RankNet", "")


def test_if_all_need_tuning_the_rule_is_the_same(tmp_path: Path) -> None:
    advice = advise(field(tmp_path, LEVELS, moves=dict.fromkeys(LEVELS, 0.02)))
    assert (advice.default, advice.tuned) == ("RankNet", "NeuralNDCGᵀ")


def test_controls_that_one_collection_lacks_count_where_they_are(tmp_path: Path) -> None:
    again = LEVELS | {"RankNet again": 0.467}
    whole = field(tmp_path, again, LEVELS).whole
    assert "RankNet again" not in whole.together.labels
    assert 0.015 < whole.distance < 0.016  # half of 0.03, and what it may be more


def test_to_avoid_is_what_most_others_beat(tmp_path: Path) -> None:
    advice = advise(field(tmp_path, LEVELS))
    assert advice.avoided == "RMSE"
    assert advice.field.whole.beaten_by("RMSE") == 4
    assert advice.field.whole.beaten_by("LambdaRank") == 3
    assert advice.also_behind == ["LambdaRank"]


def test_what_is_shown_to_be_as_good_is_not_behind(tmp_path: Path) -> None:
    assert advise(field(tmp_path, LEVELS)).also_behind == ["LambdaRank"]
    assert advise(field(tmp_path, LEVELS, margin=0.03)).also_behind == []
    assert advise(field(tmp_path, LEVELS, margin=0.09)).avoided == ""


def test_an_unknown_cost_is_not_cheap(tmp_path: Path) -> None:
    known = {"NeuralNDCG": 86.0}
    assert advise(field(tmp_path, LEVELS, cost=known)).default == "NeuralNDCG"
    assert advise(field(tmp_path, LEVELS, cost={})).default == "NeuralNDCGᵀ"  # the highest mean
