"""Claims of a paper measured from made-up runs, merged, put on a page and quoted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from directrank.papers.shared import claims, claims_page, verdicts
from directrank.papers.shared.evidence import Dataset
from directrank.papers.shared.findings import MORE, Finding, Measurement, Outcome
from directrank.papers.shared.product import build
from directrank.papers.shared.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    MEANING,
    OTHER,
    OWN,
    RAN,
    SUPPORTED,
    TREND,
    UNMEASURED,
    VERDICTS,
    tally,
)
from directrank.stats.estimates import Estimate
from directrank.system.errors import ConfigError, DataError
from papers_synthetic import (
    alpha_sweep,
    depth_sweep,
    make_plan,
    make_run,
    measured,
    ndcg_means,
    ohsumed_runs,
    overall,
    table1_runs,
    verdicts_file,
)

#: Far enough apart for five trials and forty queries.
CLEAR = {"ListMLE": 0.30, "RankNet": 0.35, "λMART_GBM": 0.55, "ApproxNDCG": 0.47}


def table1(
    folder: Path,
    levels: dict[str, float] = CLEAR,
    datasets: Sequence[str] = ("web30k", "yahoo1"),
) -> Path:
    """The plan of Bruch2019's Table 1 on two data sets, beside its runs."""
    web, yahoo = datasets
    experiments = {
        "table1_web30k": table1_runs(folder / "runs", web, levels),
        "table1_yahoo1": table1_runs(folder / "runs", yahoo, levels) if yahoo else [],
    }
    return make_plan(folder, "bruch2019", "table1", experiments)


def test_every_published_claim_of_a_paper_is_listed_once(tmp_path: Path) -> None:
    found = overall(make_plan(tmp_path, "bruch2019", "figure1", {}))
    names = ["C01", "C02", "C03", "C04", "C05", "D01", "D02", "D24", "D25"]
    assert list(found.index) == names
    assert set(found["verdict"].drop("D01")) == {UNMEASURED}
    assert found.loc["D01", "verdict"] == SUPPORTED  # analytic
    assert found.loc["C01", "remark"].endswith("runs behind table1, which this edition lacks.")
    assert found.loc["D24", "remark"].startswith("Testing it needs the runs behind figure2_yahoo")


def test_a_claim_that_no_list_has_is_stated_in_its_row(monkeypatch: Any) -> None:
    row = claims.Claim("A", "A beats B", "Table 1", needs=("table1",), function="x:x")

    def published(paper: str) -> dict[str, claims.Claim]:
        return {"M01": row} if paper == "bruch2019" else {}

    monkeypatch.setattr(claims, "claims_of", published)
    last = claims.published_claims().iloc[-1]
    assert list(last) == ["M01", "bruch2019", "A beats B", "Table 1", ""]
    row = replace(row, statement="", where="")
    with pytest.raises(ConfigError, match=r"claims\.yaml: M01 is stated nowhere"):
        claims.published_claims()
    monkeypatch.setattr(
        claims, "claims_of", lambda paper: {"C01": claims.Claim("A", "A beats B", "B")}
    )
    with pytest.raises(ConfigError, match="C01 is stated twice"):
        claims.published_claims()


def test_clear_differences_on_the_papers_data_hold(tmp_path: Path) -> None:
    found = overall(table1(tmp_path))
    assert list(found.loc[["C02", "C03"], "verdict"]) == [SUPPORTED] * 2
    assert set(found.loc[["C02", "C03"], "group"]) == {OWN}
    assert found.loc["C02", "dataset"] == "Web30K, Yahoo set 1"
    assert found.loc["C04", "verdict"] == UNMEASURED


def test_without_ranklib_there_is_no_verdict_on_ranklib(tmp_path: Path) -> None:
    found = overall(table1(tmp_path, {**CLEAR, "λMART_RankLib-like": 0.3}), only=["C01"])
    assert found.loc["C01", "verdict"] == UNMEASURED
    assert "Not run: ApproxNDCG against λMART_RankLib on Web30K" in found.loc["C01", "remark"]


def test_reversed_differences_contradict(tmp_path: Path) -> None:
    plan = table1(tmp_path, {**CLEAR, "ApproxNDCG": 0.65}, ("web30k", ""))
    found = overall(plan, only=["C02"])
    assert found.loc["C02", "verdict"] == CONTRADICTED
    assert found.loc["C02", "effect"] < 0


def test_a_claim_of_which_a_part_was_not_run_cannot_hold(tmp_path: Path) -> None:
    found = overall(table1(tmp_path, CLEAR, ("web30k", "")), only=["C02", "C03"])
    assert found.loc["C02", "verdict"] == INCONCLUSIVE
    assert "Yahoo! Set 1" in found.loc["C02", "remark"]
    assert found.loc["C03", "verdict"] == SUPPORTED  # claimed for Web30K only


def test_on_stand_ins_a_claim_ran_whatever_came_out(tmp_path: Path) -> None:
    plan = table1(tmp_path, {**CLEAR, "ApproxNDCG": 0.2}, ("web30k_standin", "yahoo1_standin"))
    rows = measured(plan, only=["C03"])
    assert set(rows["verdict"]) == {RAN}
    assert rows["outcome"].iloc[0] == "0 of 6 comparisons as stated"


def test_a_single_trial_allows_no_verdict(tmp_path: Path) -> None:
    entries = alpha_sweep(tmp_path / "runs", trials=1, dataset="web30k")
    plan = make_plan(tmp_path, "bruch2019", "figure2", {"alpha_sweep": entries})
    assert overall(plan, only=["C04"]).loc["C04", "verdict"] == INCONCLUSIVE


@pytest.mark.slow
def test_alike_is_shown_within_the_margin_and_not_within_a_narrower_one(tmp_path: Path) -> None:
    entries = []
    levels = {1: 0.30, 5: 0.44, 10: 0.4401, 20: 0.44, 40: 0.44, 100: 0.4, 200: 0.3}
    for number, level in levels.items():
        make_run(
            tmp_path / "runs",
            f"a{number}",
            ndcg_means(level),
            dataset="web30k",
            trials=10,
            queries=400,
            spread_of_trials=0.0,
            spec={"loss": {"alpha": number}},
        )
        entries.append({"run": f"a{number}", "settings": {"loss.alpha": number}})
    plan = make_plan(tmp_path, "bruch2019", "figure2", {"alpha_sweep": entries})

    wide, narrow = (measured(plan, margin=margin, only=["C04"]) for margin in (0.01, 0.0005))

    def outcomes(found: pd.DataFrame) -> list[str]:
        part = found[found["claimed"].str.startswith("equivalent")]
        return part[part["comparison"] != "overall"]["outcome"].tolist()

    assert outcomes(wide) == ["equivalent"] * 6
    assert "equivalent" not in outcomes(narrow)
    best = wide[wide["claimed"] == "above 0"]
    assert len(best) == 2  # 10 against both ends
    assert wide["verdict"].iloc[0] == SUPPORTED  # what the paper describes
    assert narrow["verdict"].iloc[0] != SUPPORTED


def test_the_largest_network_must_be_worse_by_more_than_chance(tmp_path: Path) -> None:
    entries = depth_sweep(tmp_path / "runs", dataset="web30k")
    plan = make_plan(tmp_path, "bruch2019", "figure3", {"depth_sweep": entries})
    found = overall(plan)
    assert found.loc["D02", "effect"] > 0
    assert found.loc["D02", "verdict"] in (SUPPORTED, TREND)
    assert found.loc["C05", "verdict"] != UNMEASURED


def test_ohsumed_claim_counts_only_the_papers_methods(tmp_path: Path) -> None:
    levels = {"ApproxNDCG": 0.668, "ListNet": 0.6, "LambdaMART": 0.75}
    experiments = {"ohsumed_methods": ohsumed_runs(tmp_path / "runs", levels)}
    plan = make_plan(tmp_path, "qin2010", "table4", experiments, edition="real")
    claim = overall(plan, only=["C08"]).loc["C08"]
    assert (claim["verdict"], claim["group"]) == (INCONCLUSIVE, OWN)
    assert "higher mean in 5 of 5 comparisons" in claim["remark"]
    assert claim["remark"].endswith(
        "Not run: ApproxNDCG against AdaRank.NDCG, ApproxNDCG against SoftRank, "
        "ApproxNDCG against Ranking SVM."
    )


@pytest.mark.slow
def test_real_data_that_are_not_the_papers_are_another_group(tmp_path: Path) -> None:
    levels = {"Ranking SVM": 0.7, "ListNet": 0.7, "AdaRank.MAP": 0.5, "SVMmap": 0.5}
    entries = ohsumed_runs(tmp_path / "runs", levels, trials=3)
    for entry in entries:
        folder = tmp_path / "runs" / entry["run"]
        values = pd.read_parquet(folder / "per_query.parquet")
        values.assign(ap=values["ndcg"]).to_parquet(folder / "per_query.parquet")
    experiments = {"ohsumed_methods": entries[:10], "ohsumed_map_methods": entries[10:]}
    plan = make_plan(tmp_path, "qin2010", "statistics", experiments, edition="real")
    claim = overall(plan, only=["D06"]).loc["D06"]
    assert (claim["verdict"], claim["group"], claim["dataset"]) == (SUPPORTED, OTHER, "OHSUMED")


def test_plans_of_two_papers_or_editions_are_refused() -> None:
    plans = [
        {"edition": "demo", "paper": paper, "product": "table1"}
        for paper in ("bruch2019", "qin2010")
    ]
    with pytest.raises(ConfigError, match="one edition and paper"):
        claims.evaluate(plans, Path("runs"), 0.01)


@pytest.mark.slow
def test_equal_results_give_equal_files_and_the_merged_list_has_every_claim(tmp_path: Path) -> None:
    plan = table1(tmp_path)
    one, other = (tmp_path / folder / "claims.csv" for folder in ("a", "b"))
    for out in (one, other):
        claims.write_claims([plan], tmp_path / "runs", out, 0.01)
    assert one.read_bytes() == other.read_bytes()
    merged = claims.merge([one], "demo", tmp_path / "claims.csv")
    listed = [f"C{number:02d}" for number in range(1, 24)]
    listed += [f"D{number:02d}" for number in range(1, 26)]
    found = merged[merged["comparison"] == "overall"]
    assert list(found["claim"]) == listed
    assert set(found["verdict"]) == {SUPPORTED, UNMEASURED}
    again = claims.read_claims(tmp_path / "claims.csv")
    pd.testing.assert_frame_equal(again, merged, check_dtype=False)
    text = claims_page.markdown(merged)
    assert re.search(r"To cite a number, .* For example: claim [CD]\d\d, .*, commit …, ", text)
    assert (
        "**Edition demo, 48 claims.** The 2 claims measured on the paper's own data are "
        "supported. 46 claims were not measured."
    ) in text
    assert "The papers' own tables contradict C12, C13, C14, C17 and D21 at least in part." in text
    assert "**supported** on Web30K, Yahoo set 1 (the paper's own data)" in text
    table = text.split("## Bruch 2019\n")[1].split("\n## ")[0]
    told = [re.search(r"\*\*(\w+)\*\*|not measured", line)[0] for line in table.splitlines()[3:]]
    assert told == ["**supported**"] * 2 + ["not measured"] * (len(told) - 2)
    assert "\n### C02\n" in text  # a short link, which stays
    assert "| [C02](#c02) | LightGBM's LambdaMART beats" in re.sub(" +", " ", table)
    assert "### C04" not in text
    assert all(f"*{word}*: {MEANING[word]}" in text for word in VERDICTS)


def test_claims_of_another_edition_are_not_merged(tmp_path: Path) -> None:
    file = verdicts_file(make_plan(tmp_path, "bruch2019", "figure1", {}))
    with pytest.raises(DataError, match="claims are not of the edition 'real'"):
        claims.merge([file], "real", tmp_path / "claims.csv")


def test_a_file_that_other_code_wrote_is_refused(tmp_path: Path) -> None:
    for name in ("claims.csv", "claims_times.csv"):
        (tmp_path / name).write_text("claim,comparison,dataset\n", encoding="utf-8")
    with pytest.raises(DataError, match="columns differ"):
        claims.read_claims(tmp_path / "claims.csv")


def test_measured_times_change_their_own_file_alone(tmp_path: Path, monkeypatch: Any) -> None:
    def written(folder: str, effect: float) -> Path:
        estimate = Estimate(effect, 0.1)
        test = Measurement("t test", "3 epochs", estimate, estimate.p_differs())
        data = Dataset("a", "A", "generated")
        timed = Finding("a − b", MORE, data, "s", test, timed=True)
        exact = replace(timed, comparison="c − d", timed=False)
        row = claims.Claim(function="x:x")
        monkeypatch.setattr(claims, "claims_of", lambda paper: {"C01": row})
        monkeypatch.setattr(claims, "call", lambda *names: Outcome([timed, exact]))
        plan = make_plan(tmp_path / folder, "bruch2019", "figure1", {})
        out = tmp_path / folder / "claims.csv"
        claims.write_claims([plan], tmp_path, out, 0.01)
        return out

    one, other = written("a", 1.0), written("b", 2.0)
    rows = [pd.read_csv(file).set_index("comparison") for file in (one, other)]
    assert rows[0].loc["a − b"].equals(rows[1].loc["a − b"])
    assert rows[0].loc["c − d", "effect"] != rows[1].loc["c − d", "effect"]
    whole = claims.read_claims(other)
    mine = whole[(whole["claim"] == "C01") & (whole["comparison"] != "overall")]
    assert mine["effect"].tolist() == [2.0, 2.0]
    assert mine["timed"].tolist() == [True, False]


def test_an_effect_that_is_a_rounding_error_is_quoted_as_zero() -> None:
    row = {"unit": "NDCG", "effect": -1e-17, "low": -0.03, "high": 0.03, "claimed": "above 0"}
    row |= dict.fromkeys(("p_holm", "p_range_holm", "detectable"), float("nan"))
    assert verdicts._number(row).startswith("0 NDCG (95 % interval −0.03 to 0.03)")
    assert verdicts._number(row | {"effect": -1e-5}).startswith("−1e−05 NDCG")


def test_what_is_claimed_to_be_in_a_range_has_the_p_value_of_the_range() -> None:
    row = {"unit": "NDCG", "effect": 0.001, "low": -0.03, "high": 0.03, "detectable": float("nan")}
    row |= {"claimed": "equivalent, within ±0.1", "p_holm": 1.0, "p_range_holm": 0.0024}
    said = verdicts._number(row)
    assert "p (Holm) 1.0000 and 0.0024 that it is outside the claimed range" in said


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        ("equivalent", ["0.0500", "0.0600"]),
        ("not decided", ["0.0500", "0.0600"]),
        ("inside", ["0.0500", "0.0600"]),
        ("different", ["0.0010", "0.0020"]),
        ("outside", ["0.0010", "0.0020"]),
    ],
)
def test_the_page_shows_the_p_values_that_decide(outcome: str, shown: list[str]) -> None:
    row = {"comparison": "A − B", "dataset": "MSRD", "claimed": "equivalent, within ±0.01"}
    row |= {"effect": -0.008, "low": -0.010, "high": -0.005, "unit": "nDCG", "detectable": 0.004}
    row |= {"p_value": 0.001, "p_holm": 0.002, "p_range": 0.05, "p_range_holm": 0.06}
    row |= {"verdict": "inconclusive", "outcome": outcome, "sample": "3 trainings", "test": "t"}
    line = claims_page._details(pd.DataFrame([row]))[2]
    assert [cell.strip() for cell in line.split("|")][6:8] == shown


def test_products_quote_the_verdicts_on_their_claims(tmp_path: Path) -> None:
    plan = table1(tmp_path)
    file = verdicts_file(plan)
    out = tmp_path / "table1"
    build(plan, tmp_path / "runs", out, claims_file=file)
    text = out.with_suffix(".md").read_text(encoding="utf-8")
    for sentence in verdicts.quoted(file, ("C01", "C02", "C03")):
        assert sentence in text
    assert (
        "**Supported** on Web30K, Yahoo set 1 (the paper's own data). The verdict follows" in text
    )
    assert "Not measured here." in text  # RankLib
    with pytest.raises(ConfigError, match="quotes the verdicts on C01, C02, C03"):
        build(plan, tmp_path / "runs", out)
    with pytest.raises(DataError, match="no verdict on X99"):
        verdicts.quoted(file, ["X99"])


def test_a_stand_in_is_described_in_one_sentence(tmp_path: Path) -> None:
    plan = table1(tmp_path, CLEAR, ("web30k_standin", "yahoo1_standin"))
    out = tmp_path / "table1"
    build(plan, tmp_path / "runs", out, claims_file=verdicts_file(plan))
    text = out.with_suffix(".md").read_text(encoding="utf-8")
    assert text.count("says nothing about the paper") == 1
    assert (
        "There is no verdict, because it ran only on generated data "
        "(stand-in for Web30K: 6 of 6 comparisons as stated)."
    ) in text
    assert "may be compared" not in text


@pytest.mark.parametrize(
    ("counts", "ran", "unmeasured", "said"),
    [
        (
            {"it": {SUPPORTED: 3, CONTRADICTED: 1}},
            6,
            11,
            "Of the 4 claims measured on it, 3 are supported and 1 is contradicted. "
            "6 claims ran only on stand-ins, which give no verdict. 11 claims were not measured.",
        ),
        (
            {"it": {INCONCLUSIVE: 1}},
            0,
            1,
            "The one claim measured on it is inconclusive. 1 claim was not measured.",
        ),
        (
            {"it": {INCONCLUSIVE: 2, TREND: 1, SUPPORTED: 1}},
            0,
            0,
            "Of the 4 claims measured on it, 1 is supported, 1 shows a trend and 2 are "
            "inconclusive.",
        ),
    ],
)
def test_verdicts_are_counted_in_sentences(counts, ran, unmeasured, said) -> None:
    assert tally(counts, ran, unmeasured) == said


def test_the_count_is_written_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("a\n<!-- claims: demo -->\nold\n<!-- claims: end -->\nb\n", encoding="utf-8")
    file = verdicts_file(make_plan(tmp_path, "bruch2019", "figure1", {}))
    frame = claims.read_claims(file)
    claims_page.replace_block(page, frame)
    count = "\n".join(claims_page.in_short(frame)).rstrip()
    written = f"a\n<!-- claims: demo -->\n{count}\n<!-- claims: end -->\nb\n"
    assert page.read_text(encoding="utf-8") == written
    with pytest.raises(DataError, match="lacks the marks between which to write"):
        claims_page.replace_block(page, frame.assign(edition="real"))


def test_a_cell_has_the_verdict_with_its_collection() -> None:
    row = SimpleNamespace(verdict=CONTRADICTED, dataset="OHSUMED", group=OTHER)
    assert claims_page.in_cell(row) == "**contradicted** on OHSUMED (other real data)"
    row = SimpleNamespace(verdict=RAN, dataset="stand-in for A", outcome="1 of 2 as stated")
    assert claims_page.in_cell(row) == "ran on stand-in for A: 1 of 2 as stated"
