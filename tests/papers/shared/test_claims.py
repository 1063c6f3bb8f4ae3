"""Verdicts on the papers' claims."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from directrank.papers.shared import claims
from directrank.papers.shared.evidence import Dataset
from directrank.system.errors import ConfigError
from directrank.system.io import read_json
from papers_synthetic import (
    PUBLISHED,
    alpha_sweep,
    depth_sweep,
    make_plan,
    make_run,
    ndcg_means,
    ohsumed_runs,
    table1_runs,
)

#: Far enough apart for three trials and forty queries.
CLEAR = {
    "ListMLE": 0.30,
    "RankNet": 0.35,
    "λMART_RankLib-like": 0.40,
    "λMART_GBM": 0.55,
    "ApproxNDCG": 0.47,
}


def evaluated(folder: Path, paper: str, product: str, experiments: dict, **plan: Any) -> pd.Series:
    """Claims from the plan of one product: the rows ``overall`` by claim."""
    file = make_plan(folder, paper, product, experiments, **plan)
    frame = claims.evaluate({product: read_json(file)}, folder / "runs", PUBLISHED)
    return frame[frame["comparison"] == "overall"].set_index("claim")


def finding(expected: claims.Expected, effect: float, p_value: float) -> claims.Finding:
    """A made-up comparison."""
    data = Dataset("a", "A", "real")
    return claims.Finding("a − b", expected, data, "", "", effect, effect, effect, "", p_value)


def test_every_published_claim_is_listed_once(tmp_path: Path) -> None:
    overall = evaluated(tmp_path, "bruch2019", "figure1", {})
    listed = [f"C{number:02d}" for number in range(1, 24)]
    listed += [f"D{number:02d}" for number in range(1, 19)]
    assert list(overall.index) == listed
    assert set(overall["verdict"].drop("D01")) == {claims.UNMEASURED}
    assert overall.loc["D01", "verdict"] == claims.HOLDS  # analytic
    assert overall.loc["C01", "remark"].endswith("runs behind table1, which this edition lacks.")


def test_clear_differences_hold(tmp_path: Path) -> None:
    experiments = {
        "table1_web30k": table1_runs(tmp_path / "runs", methods=CLEAR),
        "table1_yahoo1": table1_runs(tmp_path / "runs", "yahoo1_standin", CLEAR),
    }
    overall = evaluated(tmp_path, "bruch2019", "table1", experiments)
    assert list(overall.loc[["C01", "C02", "C03"], "verdict"]) == [claims.HOLDS] * 3
    assert "RankLib itself was not run" in overall.loc["C01", "remark"]
    assert set(overall.loc[["C01", "C02", "C03"], "data"]) == {"stand-in"}
    assert overall.loc["C04", "verdict"] == claims.UNMEASURED


def test_reversed_differences_do_not_hold(tmp_path: Path) -> None:
    reversed_levels = {**CLEAR, "ApproxNDCG": 0.6}
    experiments = {
        "table1_web30k": table1_runs(tmp_path / "runs", methods=reversed_levels),
        "table1_yahoo1": [],
    }
    overall = evaluated(tmp_path, "bruch2019", "table1", experiments)
    assert overall.loc["C02", "verdict"] == claims.FAILS
    assert overall.loc["C02", "effect"] < 0


def test_claim_with_a_part_not_run_cannot_hold(tmp_path: Path) -> None:
    experiments = {
        "table1_web30k": table1_runs(tmp_path / "runs", methods=CLEAR),
        "table1_yahoo1": [],
    }
    overall = evaluated(tmp_path, "bruch2019", "table1", experiments)
    assert overall.loc["C02", "verdict"] == claims.UNCLEAR
    assert "Yahoo! Set 1" in overall.loc["C02", "remark"]
    assert overall.loc["C03", "verdict"] == claims.HOLDS  # claimed for Web30K only


def test_single_trial_allows_no_verdict(tmp_path: Path) -> None:
    entries = alpha_sweep(tmp_path / "runs", trials=1)
    overall = evaluated(tmp_path, "bruch2019", "figure2", {"alpha_sweep": entries})
    assert overall.loc["C04", "verdict"] == claims.UNCLEAR


def test_inverted_u_and_depth_are_evaluated(tmp_path: Path) -> None:
    entries = []
    levels = {1: 0.30, 5: 0.44, 10: 0.4401, 20: 0.44, 40: 0.44, 100: 0.4, 200: 0.3}
    for value, level in levels.items():
        make_run(
            tmp_path / "runs",
            f"a{value}",
            ndcg_means(level),
            trials=10,
            spread_of_trials=0.0,
            spec={"loss": {"alpha": value}},
        )
        entries.append({"run": f"a{value}", "settings": {"loss.alpha": value}})
    file = make_plan(tmp_path, "bruch2019", "figure2", {"alpha_sweep": entries})
    frame = claims.evaluate({"x": read_json(file)}, tmp_path / "runs", PUBLISHED)
    part = frame[(frame["claim"] == "C04") & (frame["comparison"] != "overall")]
    ends = part[part["remark"] == "claimed: above zero"]
    assert list(ends["verdict"]) == [claims.HOLDS] * 2
    assert (part["remark"] == "claimed: no significant difference").sum() == 6

    experiments = {"depth_sweep": depth_sweep(tmp_path / "runs")}
    overall = evaluated(tmp_path, "bruch2019", "figure3", experiments)
    assert overall.loc["C05", "verdict"] != claims.UNMEASURED


def test_ohsumed_claim_counts_only_the_papers_methods(tmp_path: Path) -> None:
    levels = {"ApproxNDCG": 0.668, "ListNet": 0.6, "LambdaMART": 0.75}
    experiments = {"ohsumed_methods": ohsumed_runs(tmp_path / "runs", levels)}
    overall = evaluated(tmp_path, "qin2010", "table4", experiments, edition="real")
    claim = overall.loc["C08"]
    assert claim["verdict"] == claims.UNCLEAR
    assert "higher mean in 5 of 5 comparisons" in claim["remark"]
    assert "Not run here: AdaRank.NDCG, SoftRank, Ranking SVM." in claim["remark"]
    assert claim["data"] == "real"


@pytest.mark.parametrize(
    ("expected", "effect", "p_value", "verdict"),
    [
        ("more", 0.1, 0.01, claims.HOLDS),
        ("more", -0.1, 0.01, claims.FAILS),
        ("more", 0.1, 0.2, claims.UNCLEAR),
        ("more", 0.1, math.nan, claims.UNCLEAR),
        ("same", 0.1, 0.2, claims.HOLDS),
        ("same", 0.1, 0.01, claims.FAILS),
        ("same", 0.1, math.nan, claims.UNCLEAR),
        ("first", 0.0, math.nan, claims.HOLDS),
        ("first", -2e-18, 0.8, claims.HOLDS),
        ("first", -0.1, 0.2, claims.UNCLEAR),
        ("first", -0.1, 0.01, claims.FAILS),
    ],
)
def test_verdict_of_one_comparison(
    expected: claims.Expected, effect: float, p_value: float, verdict: str
) -> None:
    assert claims._verdict(finding(expected, effect, p_value), p_value) == verdict


def test_correction_decides_between_many_comparisons() -> None:
    outcome = claims.Outcome([finding("more", 0.1, p) for p in (0.03, 0.04, 0.001)])
    rows = claims._rows(outcome)
    assert [row["verdict"] for row in rows[1:]] == [claims.UNCLEAR, claims.UNCLEAR, claims.HOLDS]
    assert rows[0]["verdict"] == claims.UNCLEAR
    assert rows[0]["p_value"] in (0.03, 0.04)


def test_difference_over_trials_is_welchs() -> None:
    a, b = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.5, 0.2])
    difference, p_value = claims.difference_over_trials(a, b)
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert difference.mean == pytest.approx(2.5 - 0.7 / 3)
    assert p_value == pytest.approx(welch.pvalue)
    assert (difference.low, difference.high) == pytest.approx(welch.confidence_interval(0.95))
    single, p_value = claims.difference_over_trials(a, b[:1])
    assert single.mean == 2.5
    assert math.isnan(single.half_width)
    assert math.isnan(p_value)
    certain, p_value = claims.difference_over_trials(np.ones(3), np.zeros(3))
    assert (certain.low, certain.high, p_value) == (1.0, 1.0, 0.0)


def test_files_are_written_and_equal_for_equal_results(tmp_path: Path) -> None:
    experiments = {"table1_web30k": table1_runs(tmp_path / "runs"), "table1_yahoo1": []}
    plan = make_plan(tmp_path, "bruch2019", "table1", experiments)
    first, second = (
        claims.write_claims([plan], tmp_path / "runs", tmp_path / folder / "claims", PUBLISHED)
        for folder in ("a", "b")
    )
    assert [path.name for path in first] == ["claims.csv", "claims.md", "claims_times.csv"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    text = first[1].read_text(encoding="utf-8")
    assert "### C01" in text
    frame = pd.read_csv(first[0])
    counts = frame[frame["comparison"] == "overall"]["verdict"].value_counts()
    assert f"of 41 claims {counts[claims.HOLDS]} hold" in text
    assert f"{counts[claims.UNMEASURED]} were not measured.**" in text
    assert "contradict C12, C13, C14 at least in part." in text


def test_measured_times_change_their_own_file_alone(tmp_path: Path, monkeypatch) -> None:
    def written(folder: str, effect: float) -> list[Path]:
        timed = replace(finding("more", effect, 0.001 * effect), timed=True)
        exact = replace(finding("more", 1.0, 0.01), comparison="c − d")
        monkeypatch.setattr(claims, "claims_of", lambda paper: {"C22": claims.Claim((), "x:x")})
        monkeypatch.setattr(claims, "call", lambda *names: claims.Outcome([timed, exact]))
        plan = make_plan(tmp_path / folder, "bruch2019", "figure1", {})
        return claims.write_claims([plan], tmp_path, tmp_path / folder / "claims", PUBLISHED)

    (one, _, its_times), (other, _, other_times) = written("a", 1.0), written("b", 2.0)
    assert one.read_bytes() == other.read_bytes()
    assert its_times.read_bytes() != other_times.read_bytes()
    whole = claims.read_claims(other)
    mine = whole[(whole["claim"] == "C22") & (whole["comparison"] != "overall")]
    assert mine["effect"].tolist() == [2.0, 1.0]
    assert mine["p_value"].tolist() == [0.002, 0.01]
    assert whole.columns.tolist() == list(claims.COLUMNS)


def test_plans_of_two_editions_are_refused() -> None:
    plans = {
        name: {"edition": name, "paper": "bruch2019", "product": "figure1"}
        for name in ("demo", "real")
    }
    with pytest.raises(ConfigError, match="one edition"):
        claims.evaluate(plans, Path("runs"), PUBLISHED)


def test_the_largest_network_may_be_worse_than_the_next_smaller_one(tmp_path: Path) -> None:
    overall = evaluated(
        tmp_path, "bruch2019", "figure3", {"depth_sweep": depth_sweep(tmp_path / "runs")}
    )
    assert overall.loc["D02", "verdict"] == claims.HOLDS  # B2048 was made 0.5 points worse
    assert overall.loc["D02", "effect"] > 0
