"""Editions that extend another, make some of its papers, or do without a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from directrank.edition.configuration import edition_with_defaults
from directrank.edition.plan import Study, load, runs_behind
from directrank.system.errors import ConfigError
from directrank.system.schema import read_yaml
from studies import study_of

ROOT = Path(__file__).parents[2]
PAPERS = sorted(read_yaml(ROOT / "config/paper.yaml")["papers"])


def without(edition: str, *names: str) -> Study:
    """The plan of an edition that does without some of its data sets."""
    config = read_yaml(ROOT / f"config/{edition}.yaml")
    return load({**config, "datasets": {name: {"source": "none"} for name in names}}, ROOT)


def products(study: Study) -> set[str]:
    return {product for _, product in study.products}


def extending(**own: Any) -> dict[str, Any]:
    return edition_with_defaults({"edition": "mine", "extends": "paper", **own}, ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_a_papers_own_edition_makes_what_the_papers_scale_makes_of_it(paper: str) -> None:
    own, everything = study_of(f"paper_{paper}"), study_of("paper")
    assert own.edition == f"paper_{paper}"
    expected = {key: plan for key, plan in everything.products.items() if key[0] == paper}
    assert list(own.products) == list(expected)
    for key, plan in expected.items():
        assert own.products[key]["experiments"] == plan["experiments"]
    runs = runs_behind(expected.values())
    assert own.runs == {run: everything.runs[run] for run in own.runs}
    assert set(own.runs) == runs
    assert set(own.data) == {everything.run_data[run] for run in runs}


def test_an_edition_takes_from_the_other_what_it_does_not_set() -> None:
    paper = edition_with_defaults(read_yaml(ROOT / "config/paper.yaml"), ROOT)
    override = {"set": {"trials": 1}}
    mine = extending(
        margin=0.02,
        datasets={"web30k": {"source": "standin"}},
        papers={"bruch2019": {"without": ["RankNet"]}},
        overrides=[override],
    )
    assert (mine["margin"], mine["arithmetic"]) == (0.02, paper["arithmetic"])
    assert mine["datasets"] == {**paper["datasets"], "web30k": {"source": "standin"}}
    assert mine["papers"]["qin2010"] == paper["papers"]["qin2010"]
    assert mine["papers"]["bruch2019"] == {**paper["papers"]["bruch2019"], "without": ["RankNet"]}
    assert mine["overrides"] == [*paper["overrides"], override]


def test_without_a_data_set_the_products_of_others_remain() -> None:
    study = without("paper_bruch2019", "yahoo1")
    assert set(study.data) == {"web30k"}
    assert products(study_of("paper_bruch2019")) - products(study) == {
        "figure2_yahoo",
        "figure3_yahoo",
    }
    # A table of two data sets shows the other one.
    cells = study.products["bruch2019", "table1"]["experiments"]
    assert {name: bool(runs) for name, runs in cells.items()} == {
        "table1_web30k": True,
        "table1_yahoo1": False,
    }


def test_without_any_data_set_what_is_analytic_remains() -> None:
    study = without("paper_bruch2019", "yahoo1", "web30k")
    assert not study.runs
    assert products(study) == {"figure1"}


def test_a_collection_without_a_source_is_left_out_of_one_protocol() -> None:
    study = without("paper_one_protocol", "yahoo1", "istella", "ohsumed")
    assert set(study.data) == {"web30k"}
    assert products(study) < products(study_of("paper_one_protocol"))
    assert all("web30k" in product for product in products(study))
    assert set(study.runs) < set(study_of("paper_one_protocol").runs)


def test_a_summary_shows_the_tables_that_are_made() -> None:
    study = without("paper_qin2010", "td2003", "td2004")
    assert "table3" not in products(study)
    assert "table3" not in study.products["qin2010", "summary"]["repeats"]
    assert "table4" in study.products["qin2010", "summary"]["repeats"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"extends": "papr"}, "did you mean 'paper'"),
        ({"extends": "paper_qin2010"}, "extend 'paper'"),
        ({"extends": ["paper"]}, "extends"),
        ({"extends": "paper", "only": ["qin2011"]}, "did you mean 'qin2010'"),
        ({"extends": "paper", "only": []}, "only"),
        ({"extends": "paper", "papers": {"mine2026": {"without": ["x"]}}}, "papers.mine2026"),
        ({"datasets": {}}, "'papers' is a required property"),
        ({"datasets": {}, "papers": {"qin2010": {}}}, "papers.qin2010"),
    ],
)
def test_what_cannot_be_extended_is_refused_with_a_remedy(
    config: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load({"edition": "mine", **config}, ROOT)
    assert caught.value.remedy


@pytest.mark.slow
def test_an_override_of_a_data_set_that_is_there_must_still_match() -> None:
    where = {"paper": "bruch2019", "dataset": "cubic"}
    config = {"extends": "paper", "overrides": [{"where": where, "set": {"trials": 1}}]}
    with pytest.raises(ConfigError, match="matches no run"):
        load({"edition": "mine", **config}, ROOT)


@pytest.mark.parametrize("extended", ["demo", "real", "paper"])
def test_an_edition_of_one_figure_ignores_the_inherited_overrides_of_others(extended: str) -> None:
    figure = {"bruch2019": {"products": ["figure2"]}}
    edition = {"edition": "mine", "extends": extended, "only": ["bruch2019"], "papers": figure}
    study = load(edition, ROOT)
    assert list(study.products) == [("bruch2019", "figure2")]
    assert len(study.runs) == 7
    own = [{"where": {"learner": "lightgbm"}, "set": {"trials": 2}}]
    with pytest.raises(ConfigError, match=r"override 1 of edition 'mine' .* matches no run"):
        load({**edition, "overrides": own}, ROOT)
