"""The picture of all claims: each claim that was measured, with the effect that decided it."""

import math

import pandas as pd
import pytest

from directrank.papers.shared import overview, pages
from directrank.papers.shared.claims import OVERALL, read_claims
from directrank.papers.shared.verdicts import CONTRADICTED, INCONCLUSIVE, RAN, UNMEASURED
from workflow_runs import ROOT

EDITIONS = ("demo", "real")


@pytest.fixture(params=EDITIONS)
def claims(request: pytest.FixtureRequest) -> pd.DataFrame:
    return read_claims(ROOT / f"paper_tables/{request.param}/claims.csv")


def test_it_shows_each_claim_that_was_measured_once_by_verdict(claims: pd.DataFrame):
    shown = overview.table(claims)
    overall = claims[claims["comparison"] == OVERALL]
    measured = overall[~overall["verdict"].isin([RAN, UNMEASURED])]
    assert sorted(shown["claim"]) == sorted(measured["claim"])
    assert list(dict.fromkeys(shown["verdict"])) == [
        verdict for verdict in overview.VERDICTS if (shown["verdict"] == verdict).any()
    ]
    assert shown["name"].is_unique


def test_it_shows_the_effect_of_the_comparison_that_decided():
    claims = read_claims(ROOT / "paper_tables/real/claims.csv")
    row = overview.table(claims).set_index("claim").loc["D07"]
    decided = claims[(claims["claim"] == "D07") & (claims["comparison"] == OVERALL)].iloc[0]
    assert row["verdict"] == CONTRADICTED
    assert row[["effect", "low", "high"]].tolist() == decided[["effect", "low", "high"]].tolist()
    assert row["high"] < overview.agreeing(row["claimed"])[0]


def test_measured_times_are_left_out_because_they_differ_between_runs():
    shown = overview.table(read_claims(ROOT / "paper_tables/real/claims.csv"))
    times = shown[shown["unit"] == "times"]
    assert len(times) > 0
    assert times["effect"].isna().all()


def test_a_band_ends_at_what_a_claim_says():
    assert overview.agreeing("above 0") == (0, math.inf)
    assert overview.agreeing("equivalent, within ±1") == (-1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("edition", EDITIONS)
def test_the_committed_picture_is_what_the_committed_claims_say(edition: str, tmp_path):
    claims = read_claims(ROOT / f"paper_tables/{edition}/claims.csv")
    for path in overview.draw(claims, tmp_path / "overview"):
        committed = ROOT / f"figures/{edition}/{path.name}"
        assert committed.is_file()
        if path.suffix == ".csv":
            assert committed.read_bytes() == path.read_bytes()
    title, caption = pages.caption(ROOT / f"figures/{edition}/overview.svg")
    assert title == overview.TITLE
    assert caption == overview.caption(claims, overview.table(claims))


def test_without_a_measured_claim_it_says_so(tmp_path):
    claims = pd.read_csv(ROOT / "paper_tables/real/claims.csv")
    claims.assign(verdict=UNMEASURED, outcome=None).to_csv(tmp_path / "claims.csv", index=False)
    times = pd.read_csv(ROOT / "paper_tables/real/claims_times.csv")
    times.to_csv(tmp_path / "claims_times.csv", index=False)
    nothing = read_claims(tmp_path / "claims.csv")
    overview.draw(nothing, tmp_path / "overview")
    assert overview.table(nothing).empty
    assert len(pd.read_csv(tmp_path / "overview.csv")) == 0


def test_shapes_tell_verdicts_apart_without_colour():
    markers = [look["marker"] for look in overview.VERDICTS.values()]
    assert len(set(markers)) == len(markers)
    assert INCONCLUSIVE in overview.VERDICTS


def test_a_picture_of_one_claim_has_room_for_its_row_and_heading():
    claims = read_claims(ROOT / "paper_tables/real/claims.csv")
    figure = overview._figure(overview.table(claims[claims["claim"] == "C04"]))
    (axes,) = figure.axes
    rows = abs(axes.get_ylim()[1] - axes.get_ylim()[0])
    assert axes.get_position().height * figure.get_figheight() / rows > 0.1  # inches
