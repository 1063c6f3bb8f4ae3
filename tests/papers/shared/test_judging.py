"""From findings to verdicts: every direction, correction, stand-ins, power."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.papers.shared import verdicts
from directrank.papers.shared.evidence import Dataset, gather
from directrank.papers.shared.findings import (
    MORE,
    NOT_MORE,
    SAME,
    Claimed,
    Finding,
    Measurement,
    Outcome,
    computed,
    over_queries_and_trainings,
    paired,
    value,
    welch_over_trials,
)
from directrank.papers.shared.judging import JudgedFinding, conclude, judge
from directrank.papers.shared.methods import by_method
from directrank.papers.shared.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    OTHER,
    OWN,
    RAN,
    RECOMPUTED,
    SUPPORTED,
    TREND,
    UNMEASURED,
)
from directrank.stats.decisions import decide
from directrank.stats.estimates import Estimate
from directrank.system.errors import DataError
from directrank.system.io import read_json
from papers_synthetic import make_plan, make_run

REAL = Dataset("a", "A", "real")
ELSEWHERE = Dataset("b", "B", "real")
STANDIN = Dataset("a_standin", "stand-in for A", "standin")
ARTIFICIAL = Dataset("c", "C", "generated")


def finding(
    claimed: Claimed, effect: tuple[float, float], dataset: Dataset = REAL, scale: float = 1.0
) -> Finding:
    """A made-up comparison with a normal estimate: an effect and its error."""
    estimate = Estimate(*effect)
    test = Measurement("z test", "", estimate, estimate.p_differs())
    return Finding("a − b", claimed, dataset, "", test, scale)


def decided(*findings: Finding, margin: float = 0.01) -> list[JudgedFinding]:
    return judge(findings, margin, ("a",))


def verdict(*findings: Finding, missing: Sequence[str] = (), margin: float = 0.01) -> str:
    outcome = Outcome(findings, missing)
    return conclude(outcome, decided(*findings, margin=margin)).verdict


@pytest.mark.parametrize(
    ("claimed", "effect", "error", "expected"),
    [
        (MORE, 0.1, 0.02, SUPPORTED),
        (MORE, -0.1, 0.02, CONTRADICTED),
        (MORE, 0.1, 0.1, TREND),
        (MORE, -0.1, 0.1, INCONCLUSIVE),
        (MORE, 0.1, math.nan, INCONCLUSIVE),
        (MORE, 0.0, 0.0, INCONCLUSIVE),
        (MORE, 1e-12, 0.0, INCONCLUSIVE),
        (MORE, -1e-12, 0.0, INCONCLUSIVE),
        (MORE, 1e-6, 0.0, SUPPORTED),
        (MORE, -0.00007, 0.00001, INCONCLUSIVE),
        (MORE, -0.004, 0.001, INCONCLUSIVE),
        (MORE, -0.012, 0.004, CONTRADICTED),
        (MORE, -0.02, 0.001, CONTRADICTED),
        (SAME, 0.001, 0.002, SUPPORTED),
        (SAME, 0.004, 0.001, SUPPORTED),
        (SAME, 0.1, 0.02, CONTRADICTED),
        (SAME, 0.0, 0.02, INCONCLUSIVE),
        (SAME, 0.0327, 0.035, INCONCLUSIVE),
        (SAME, 0.001, math.nan, INCONCLUSIVE),
        (NOT_MORE, -0.1, 0.02, SUPPORTED),
        (NOT_MORE, 0.005, 0.001, SUPPORTED),
        (NOT_MORE, 0.005, 0.02, TREND),
        (NOT_MORE, 0.05, 0.01, CONTRADICTED),
        (value(low=0.95), 0.97, 0.005, SUPPORTED),
        (value(low=0.95), 0.97, 0.05, TREND),
        (value(low=0.95), 0.90, 0.005, CONTRADICTED),
        (value(low=0.95), 0.94, 0.05, INCONCLUSIVE),
        (value(4.59, 5.61), 5.0, 0.1, SUPPORTED),
        (value(4.59, 5.61), 5.0, 2.0, TREND),
        (value(4.59, 5.61), 13.9, 1.0, CONTRADICTED),
        (value(4.59, 5.61), 6.0, 2.0, INCONCLUSIVE),
        (value(4.59, 5.61), 5.0, math.nan, INCONCLUSIVE),
        (value(0.0, 0.0), 0.0, 0.0, SUPPORTED),
        (value(0.0, 0.0), 2.0, 0.0, CONTRADICTED),
    ],
)
def test_verdict_of_one_comparison(
    claimed: Claimed, effect: float, error: float, expected: str
) -> None:
    assert verdict(finding(claimed, (effect, error))) == expected


def test_the_size_of_what_is_more_is_told_beside_the_margin() -> None:
    sizes = [(0.004, 0.001), (0.02, 0.001), (0.012, 0.004), (-0.004, 0.001), (-0.02, 0.001)]
    outcomes = [decided(finding(MORE, size))[0].outcome for size in sizes]
    assert outcomes == [
        "above, within the margin",
        "above, more than the margin",
        "above",
        "below, within the margin",
        "below, more than the margin",
    ]
    per_cent = decided(finding(MORE, (-0.4, 0.1), scale=100))[0]
    assert (per_cent.verdict, per_cent.outcome) == (INCONCLUSIVE, "below, within the margin")


@pytest.mark.slow
def test_no_pair_is_equivalent_in_one_place_and_contradicted_in_another() -> None:
    """The same estimates, as pairs of a table and as the comparisons of a claim."""
    stream = np.random.default_rng(3)
    for _ in range(200):
        rows = pd.DataFrame({"difference": stream.normal(0, 0.01, 6), "freedom": math.inf})
        rows["error"] = stream.uniform(0.0005, 0.01, 6)
        table = decide(rows, 0.01)
        some = rows.iloc[:3]
        judged = decided(
            *(finding(MORE, pair) for pair in zip(some["difference"], some["error"], strict=True))
        )
        for row, one in zip(table.itertuples(), judged, strict=False):
            small = row.verdict == "equivalent" or row.size == "within the margin"
            assert not (small and one.verdict == CONTRADICTED)


def test_what_demo_c04_and_d13_once_said_holds_is_left_open() -> None:
    """Intervals of −3.4 to 9.9 and of 0.07 to 3.12, in per cent, do not show that two are alike,
    nor that they differ by more than 1."""
    wide = finding(SAME, (3.27, 3.4), scale=100)
    some = finding(SAME, (1.6, 0.78), scale=100)
    assert verdict(wide) == verdict(some) == INCONCLUSIVE
    assert decided(some)[0].outcome == "not decided"


def test_what_is_called_the_same_is_contradicted_by_a_difference_of_more_than_the_margin() -> None:
    clear = finding(SAME, (3.0, 0.78), scale=100)
    assert verdict(clear) == CONTRADICTED
    assert decided(clear)[0].outcome == "different"


def test_a_claim_is_as_weak_as_its_weakest_part() -> None:
    sure, unsure, against, away = (
        finding(MORE, (effect, error))
        for effect, error in ((0.1, 0.01), (0.1, 0.1), (-0.1, 0.01), (-0.1, 0.1))
    )
    assert verdict(sure, sure) == SUPPORTED
    assert verdict(sure, unsure) == TREND
    assert verdict(sure, unsure, away) == INCONCLUSIVE
    assert verdict(sure, against, away) == CONTRADICTED
    assert verdict(sure, missing=["the rest"]) == INCONCLUSIVE
    assert verdict(unsure, missing=["the rest"]) == INCONCLUSIVE
    assert verdict(against, missing=["the rest"]) == CONTRADICTED
    assert verdict(missing=["everything"]) == UNMEASURED


def test_holms_correction_is_over_the_tests_of_the_claim() -> None:
    p_values = (0.03, 0.04, 0.001)
    effects = [-float(Estimate(0.0, 1.0).interval(1 - p).half_width) for p in p_values]
    judged = decided(*(finding(MORE, (-effect, 1.0)) for effect in effects))
    assert [one.verdict for one in judged] == [TREND, TREND, SUPPORTED]
    assert [one.p_holm for one in judged] == pytest.approx([0.06, 0.06, 0.003])
    both = decided(finding(SAME, (0.0, 0.003)))[0]
    assert (both.p_holm, both.p_range_holm) == pytest.approx((1.0, both.p_range))


def test_power_is_told_of_what_was_left_undecided() -> None:
    one = decided(finding(MORE, (0.1, 0.1)))[0]
    assert one.detectable == pytest.approx(2.802 * 0.1, rel=1e-3)
    several = decided(finding(MORE, (0.1, 0.1)), *[finding(MORE, (0.1, 0.2))] * 3)[0]
    assert several.detectable == pytest.approx((2.4977 + 0.8416) * 0.1, rel=1e-3)
    beside_sure = decided(finding(MORE, (0.1, 0.1)), *[finding(MORE, (0.1, 0.001))] * 3)[0]
    assert beside_sure.detectable == pytest.approx(one.detectable)
    margin = decided(finding(SAME, (0.0, 0.02)))[0]
    assert margin.detectable == pytest.approx((1.64485 + 1.28155) * 0.02, rel=1e-3)


def test_a_difference_of_that_size_is_found_as_often_as_promised() -> None:
    """In simulated comparisons over queries, three in a claim of which none is decided."""
    rng, spread, queries = np.random.default_rng(6), 0.2, 60
    told = []
    for _ in range(30):
        empty = [_over_queries(rng.normal(0.0, spread, queries), rng) for _ in range(3)]
        told += [one.detectable for one in decided(*empty) if one.verdict != CONTRADICTED]
    true = float(np.mean(told))
    found = [
        _over_queries(rng.normal(true, spread, queries), rng).p_value < 0.05 / 3 for _ in range(400)
    ]
    assert 0.73 < np.mean(found) < 0.87


def _over_queries(differences: np.ndarray, rng: np.random.Generator) -> Finding:
    test = paired(differences, np.zeros(len(differences)), "queries", rng, 2000)
    return Finding("a − b", MORE, REAL, "", test)


def test_stand_ins_give_no_verdict_and_show_their_direction() -> None:
    outcome = Outcome([finding(MORE, (-0.1, 0.01), dataset=STANDIN)])
    concluded = conclude(outcome, decided(*outcome.findings))
    assert (concluded.verdict, concluded.group) == (RAN, verdicts.STANDIN_GROUP)
    assert concluded.outcome == "0 of 1 comparisons as stated"


def test_a_part_on_a_stand_in_counts_as_missing() -> None:
    findings = [finding(MORE, (0.1, 0.01)), finding(MORE, (-0.1, 0.01), dataset=STANDIN)]
    concluded = conclude(Outcome(findings), decided(*findings))
    assert (concluded.verdict, concluded.group) == (INCONCLUSIVE, OWN)
    assert "Not run: the part that was run only on the stand-in for A." in concluded.remark


@pytest.mark.parametrize(
    ("datasets", "group"),
    [((REAL,), OWN), ((REAL, ELSEWHERE), OTHER), ((REAL, ARTIFICIAL), RECOMPUTED)],
)
def test_a_verdict_names_the_weakest_of_its_groups(datasets: tuple, group: str) -> None:
    findings = [finding(MORE, (0.1, 0.01), dataset=dataset) for dataset in datasets]
    assert conclude(Outcome(findings), decided(*findings)).group == group


@pytest.mark.parametrize("other", [(-0.1, 0.01), (-0.1, 0.1), (0.1, 0.1)])
def test_where_one_comparison_decides_the_verdict_is_about_its_data(other: tuple) -> None:
    sure = [finding(MORE, (0.1, 0.01), dataset=dataset) for dataset in (REAL, ARTIFICIAL)]
    findings = [*sure, finding(MORE, other, dataset=ELSEWHERE)]
    concluded = conclude(Outcome(findings), decided(*findings))
    assert concluded.verdict != SUPPORTED
    assert (concluded.group, concluded.datasets) == (OTHER, ELSEWHERE.title)
    supported = conclude(Outcome(sure), decided(*sure))
    assert supported.datasets == f"{REAL.title}, {ARTIFICIAL.title}"


def test_the_clearest_contradiction_and_the_weakest_support_decide() -> None:
    weak, strong = finding(MORE, (0.1, 0.03)), finding(MORE, (0.1, 0.01))
    against, clearly = finding(MORE, (-0.1, 0.03)), finding(MORE, (-0.2, 0.03))

    def effect(*findings: Finding) -> Finding:
        decisive = conclude(Outcome(findings), decided(*findings)).decisive
        assert decisive is not None
        return decisive.finding

    assert effect(strong, weak) is weak
    assert effect(strong, against, clearly) is clearly


def test_welch_over_trials_needs_two_of_them() -> None:
    a, b = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.5, 0.2])
    assert welch_over_trials(a, b).estimate.mean == pytest.approx(2.5 - 0.7 / 3)
    assert math.isnan(welch_over_trials(a, b[:1]).p_value)
    assert welch_over_trials(np.ones(3), np.zeros(3)).p_value == 0
    assert computed(0.0, "").p_value == 1


def test_methods_of_other_queries_are_refused_whatever_the_claim(tmp_path: Path) -> None:
    for name, first in (("one", 0), ("other", 5)):
        make_run(tmp_path / "runs", name, {"ndcg@5": 0.5}, first_query=first)
    entries = [{"run": name, "settings": {"method": name}} for name in ("one", "other")]
    plan = make_plan(tmp_path, "bruch2019", "table1", {"table1_web30k": entries})
    evidence = gather(read_json(plan), tmp_path / "runs")
    methods = by_method(evidence.runs("table1_web30k"), "exclude")
    with pytest.raises(DataError, match="not evaluated on the same queries"):
        over_queries_and_trainings(methods["one"], methods["other"], "ndcg@5")


@pytest.mark.parametrize(
    ("trials", "learner", "model", "tested"),
    [
        (3, "neural", {}, True),
        (1, "neural", {}, False),
        (1, "ranking_svm", {}, True),
        (1, "lightgbm", {}, False),
        (1, "lightgbm", {"feature_fraction": 1.0}, True),
    ],
)
def test_a_single_training_tells_nothing_of_others_unless_nothing_is_random(
    tmp_path: Path, trials: int, learner: str, model: Mapping[str, float], tested: bool
) -> None:
    entries = []
    for name, level in (("one", 0.5), ("other", 0.3)):
        spec = {"learner": learner, "model": model}
        make_run(tmp_path / "runs", name, {"ndcg@5": level}, trials=trials, spec=spec)
        entries.append({"run": name, "settings": {"method": name}})
    plan = make_plan(tmp_path, "bruch2019", "table1", {"table1_web30k": entries})
    evidence = gather(read_json(plan), tmp_path / "runs")
    methods = by_method(evidence.runs("table1_web30k"), "exclude")
    test = over_queries_and_trainings(methods["one"], methods["other"], "ndcg@5", scale=100)
    assert test.estimate.mean == pytest.approx(20, abs=2)
    assert (test.p_value < 0.001) == tested
    assert math.isnan(test.p_value) == (not tested)
    assert verdict(Finding("a − b", MORE, REAL, "", test)) == (
        SUPPORTED if tested else INCONCLUSIVE
    )


def test_trainings_that_share_the_choice_of_a_configuration_tell_less(tmp_path: Path) -> None:
    tune = {"tune": {"training.optimizer.lr": [0.01, 0.1]}}
    errors = []
    for number, where in enumerate(("each_trial", "first_trial")):
        entries = []
        for name, level in (("one", 0.5), ("other", 0.3)):
            spec = {**tune, "tune_in": where}
            make_run(tmp_path / f"runs{number}", name, {"ndcg@5": level}, trials=3, spec=spec)
            entries.append({"run": name, "settings": {"method": name}})
        plan = make_plan(tmp_path, "bruch2019", "table1", {"table1_web30k": entries})
        evidence = gather(read_json(plan), tmp_path / f"runs{number}")
        methods = by_method(evidence.runs("table1_web30k"), "exclude")
        assert methods["one"].one_choice == (where == "first_trial")
        test = over_queries_and_trainings(methods["one"], methods["other"], "ndcg@5")
        errors.append(test.estimate.error)
    assert errors[0] < errors[1]


def test_what_is_claimed_is_told_in_words() -> None:
    assert MORE.words(0.01) == "above 0"
    assert SAME.words(1.0) == "equivalent, within ±1"
    assert NOT_MORE.words(0.01) == "at most 0.01"
    assert value(low=-0.5).words(0.01) == "at least −0.5"
    assert value(1.7, 2.3).words(0.01) == "1.7 to 2.3"
    assert value(0, 0).words(0.01) == "0"
