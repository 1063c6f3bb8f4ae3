"""Claims that compare methods: the rows that say what they compare, and what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from directrank.papers.shared.claim_rows import read_rows
from directrank.papers.shared.compare import compare
from directrank.papers.shared.evidence import Evidence, gather
from directrank.papers.shared.findings import SAME, Outcome
from directrank.system.errors import ConfigError
from directrank.system.io import read_json
from papers_synthetic import make_plan, make_run, ndcg_means

#: A row of the usual kind.
USUAL = """
claims:
  M01:
    name: ListNet beats RankNet
    own: [web30k]
    needs: [table1]
    compares:
      runs: methods
      empty: exclude
      unit: NDCG (%)
      metrics: {NDCG@5: ndcg@5, NDCG@10: ndcg@10}
      pairs: [{first: ListNet, second: RankNet}]
"""


def rows(folder: Path, text: str) -> Any:
    file = folder / "claims.yaml"
    file.write_text(text, encoding="utf-8")
    return read_rows(file)


def evidence(folder: Path, **experiments: dict[Any, float]) -> Evidence:
    """Runs of methods at these levels of NDCG@5, on the set of the experiment's name."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for experiment, levels in experiments.items():
        cells[experiment] = []
        for number, (method, level) in enumerate(levels.items()):
            name = f"{experiment}-{number}"
            make_run(folder / "runs", name, ndcg_means(level), dataset="web30k")
            cells[experiment].append({"run": name, "settings": {"method": method}})
    plan = make_plan(folder, "bruch2019", "table1", cells)
    return gather(read_json(plan), folder / "runs")


def outcome(folder: Path, text: str, *some: Evidence | None) -> Outcome | None:
    """The outcome of M01."""
    return compare("bruch2019", rows(folder, text)["M01"].compares, some)


def names(found: Outcome | None) -> list[str]:
    assert found is not None
    return [finding.comparison for finding in found.findings]


def test_each_first_is_set_against_each_second_in_each_metric(tmp_path: Path) -> None:
    some = evidence(tmp_path, methods={"ListNet": 0.6, "RankNet": 0.4, "RMSE": 0.3})
    text = USUAL.replace("second: RankNet", "second: [RankNet, RMSE]")
    found = outcome(tmp_path, text, None, some)
    assert names(found) == [
        "ListNet − RankNet, NDCG@5",
        "ListNet − RankNet, NDCG@10",
        "ListNet − RMSE, NDCG@5",
        "ListNet − RMSE, NDCG@10",
    ]
    first = found.findings[0]
    assert first.effect == pytest.approx(20, abs=3)
    assert first.measurement.test == "t test for other queries and other trainings"
    assert names(outcome(tmp_path, USUAL.replace("RankNet", "every other"), some)) == names(found)


def test_the_best_of_several_is_chosen_on_validation_in_each_metric(tmp_path: Path) -> None:
    some = evidence(tmp_path, methods={"ListNet": 0.6, "ListMLE": 0.7, "RankNet": 0.4})
    text = USUAL.replace("first: ListNet", "first: {best of: [ListNet, ListMLE]}")
    assert names(outcome(tmp_path, text, some))[0] == "ListMLE − RankNet, NDCG@5"
    some = evidence(tmp_path / "b", methods={"ListNet": 0.6, "RankNet": 0.4})
    assert names(outcome(tmp_path, text, some))[0] == "ListNet − RankNet, NDCG@5"


def test_methods_can_be_the_values_of_a_setting(tmp_path: Path) -> None:
    some = evidence(tmp_path, methods={1: 0.5, 10: 0.6, 100: 0.4})
    text = USUAL.replace("ListNet", "α = 1").replace("RankNet", "every other")
    text = text.replace("runs: methods", "runs: methods\n      name: α = {:g}")
    found = outcome(tmp_path, text, some)
    assert names(found)[::2] == ["α = 1 − α = 10, NDCG@5", "α = 1 − α = 100, NDCG@5"]


def test_what_was_not_run_is_named_by_its_data_set(tmp_path: Path) -> None:
    text = USUAL.replace("runs: methods", "runs: {Web: web, Yahoo: yahoo, Istella: istella}")
    text = text.replace("second: RankNet", "second: [RankNet, RMSE]")
    some = evidence(tmp_path, web={"ListNet": 0.6, "RankNet": 0.4}, yahoo={"RankNet": 0.4})
    found = outcome(tmp_path, text, some)
    assert len(names(found)) == 2
    assert found.missing == [
        "ListNet against RMSE on Web",
        "ListNet against RankNet on Yahoo",
        "ListNet against RMSE on Yahoo",
        "Istella",
    ]
    assert outcome(tmp_path, text, None) is None
    # On its only data set nothing could be compared.
    assert outcome(tmp_path, USUAL, evidence(tmp_path, methods={"ListNet": 0.6})) is None


def test_other_data_replace_those_of_which_nothing_was_run(tmp_path: Path) -> None:
    text = USUAL + (
        "      instead: {runs: other, note: Measured elsewhere., missing: [a part]}\n"
        '      remark: "{ahead} of {count} are ahead."\n'
    )
    spare = evidence(tmp_path, other={"ListNet": 0.6, "RankNet": 0.4})
    found = outcome(tmp_path, text, None, spare)
    assert len(names(found)) == 2
    assert found.remark == "Measured elsewhere. 2 of 2 are ahead."
    assert found.missing == ["a part"]
    own = evidence(tmp_path / "own", methods={"ListNet": 0.4, "RankNet": 0.6})
    found = outcome(tmp_path, text, own, spare)
    assert (found.remark, found.missing) == ("0 of 2 are ahead.", [])
    assert found.findings[0].effect < 0


def test_a_pair_can_be_about_some_metrics_and_data_sets(tmp_path: Path) -> None:
    text = USUAL.replace("runs: methods", "runs: {Web: web, Yahoo: yahoo}").replace(
        "second: RankNet", "second: RankNet, only: [Yahoo], metrics: [NDCG@10], claimed: same"
    )
    levels = {"ListNet": 0.6, "RankNet": 0.4}
    found = outcome(tmp_path, text, evidence(tmp_path, web=levels, yahoo=levels))
    assert names(found) == ["ListNet − RankNet, NDCG@10"]
    assert found.findings[0].claimed == SAME
    printed = text.replace("claimed: same", "claimed: {low: 1.5}")
    found = outcome(tmp_path, printed, evidence(tmp_path, web=levels, yahoo=levels))
    assert found.findings[0].claimed.bounds(0.01) == (1.5, float("inf"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pairs:", "pears:", r"claims\.yaml: unknown key 'pears' at claims\.M01\.compares"),
        ("unit: NDCG (%)", "", r"claims\.yaml, M01: 'unit' is a required property"),
        ("second: RankNet", "second: RankNet, claimed: less", r"pairs\.0\.claimed"),
        ("second: RankNet", "second: RankNet, metrics: [NDCG@3]", "'NDCG@3' in the 'metrics'"),
        ("second: RankNet", "second: RankNet, only: [Yahoo]", "'Yahoo' in the 'only'"),
        ("NDCG@5:", '"NDCG@5 on {titel}":', r"claims\.M01\.compares\.metrics"),
        ("runs: methods", "runs: methods\n      name: n = {0.x}", r"claims\.M01\.compares\.name"),
        ("runs: methods", 'runs: methods\n      remark: "{all}"', r"claims\.M01\.compares\.remark"),
        ("needs: [table1]", "", r"claims\.M01"),
        ("needs: [table1]", 'needs: [table1]\n    function: "a:b"', r"claims\.M01"),
    ],
)
def test_a_row_that_is_not_valid_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in USUAL
    with pytest.raises(ConfigError, match=said) as caught:
        rows(tmp_path, USUAL.replace(old, new))
    assert caught.value.remedy


def test_a_function_or_a_name_that_does_not_fit_is_said_to_be_so(tmp_path: Path) -> None:
    some = evidence(tmp_path, methods={"ListNet": 0.6, "RankNet": 0.4})
    for function in ("claims:nothing", "nowhere:test"):
        text = f"{USUAL}      methods: {function}\n"
        with pytest.raises(ConfigError, match=f"'bruch2019' has no function '{function}'"):
            outcome(tmp_path, text, some)
    text = USUAL + '      name: "{:g}"\n'
    with pytest.raises(ConfigError, match="does not fit the setting 'method', which is 'ListNet'"):
        outcome(tmp_path, text, some)
