"""The experiments of an edition: of a paper's file, and one for each collection that is listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from directrank.edition.experiments import experiments_of, label, variants_of
from directrank.edition.plan import load
from directrank.study.specification import candidate_settings
from directrank.system.errors import ConfigError
from directrank.system.io import json_text
from directrank.system.schema import read_yaml

ROOT = Path(__file__).parents[2]


def edition(paper: str = "one_protocol", overrides: Any = None, **entry: Any) -> dict[str, Any]:
    config = {"edition": "mine", "datasets": {}, "papers": {paper: entry}}
    return config | ({"overrides": overrides} if overrides else {})


def test_a_collection_has_each_experiment_on_its_folds_and_comes_from_its_archive():
    study = load(edition(collections=["ohsumed"]), ROOT)
    specs = list(study.runs.values())
    assert {source.source for source in study.data.values()} == {"archive"}
    assert {spec["fold"] for spec in specs} == {1, 2, 3, 4, 5}
    assert {spec["normalisation"]["name"] for spec in specs} == {"standardise"}
    assert {spec["model"].get("name") for spec in specs} == {"linear", "tower", "context", None}
    products = {product for _, product in study.products}
    assert {"table_ohsumed", "table_ohsumed_pairs", "figure_ohsumed_time"} <= products


def test_a_collection_without_a_line_of_its_own_takes_the_default():
    entry = {"collections": ["mq2007"]}
    experiment = experiments_of("one_protocol", entry, ROOT)["mq2007_linear"]
    assert experiment["run"]["normalisation"] == {"name": "query_zscore"}
    assert experiment["folds"] == [1, 2, 3, 4, 5]
    assert experiment["run"]["training"]["batch_queries"] == 16


def test_a_collections_size_decides_about_networks_training_and_trees():
    entry = {"collections": ["ohsumed", "web30k"]}
    experiments = experiments_of("one_protocol", entry, ROOT)
    hidden = [
        experiments[f"{name}_tower"]["run"]["model"]["hidden"] for name in entry["collections"]
    ]
    assert hidden == [[32], [256, 128, 64, 32]]
    trees = [experiments[f"{name}_trees"]["variants"][0]["run"] for name in entry["collections"]]
    assert [run["model"]["n_trees"] for run in trees] == [300, 1000]


def test_experiments_that_an_edition_does_not_name_are_not_run_and_shown_without():
    study = load(edition(collections=["ohsumed"], experiments=["linear", "trees"]), ROOT)
    cells = study.products["one_protocol", "table_ohsumed"]["experiments"]
    assert {name: bool(runs) for name, runs in cells.items()} == {
        "ohsumed_linear": True,
        "ohsumed_tower": False,
        "ohsumed_context": False,
        "ohsumed_trees": True,
        "ohsumed_untrained": False,
    }


def test_an_experiment_that_is_left_out_needs_no_data():
    entry = {"products": ["table1"], "experiments": ["table1_web30k"]}
    config = edition("bruch2019", **entry) | {"datasets": {"web30k": {"source": "standin"}}}
    study = load(config, ROOT)
    assert [source.name for source in study.data.values()] == ["web30k_standin"]


@pytest.mark.slow
def test_settings_of_networks_pass_over_trees():
    overrides = [{"set": {"trials": 2, "training.max_epochs": 7}}]
    study = load(edition(overrides=overrides, collections=["ohsumed"]), ROOT)
    assert {spec["trials"] for spec in study.runs.values()} == {2}
    trained = {spec["learner"]: spec.get("training", {}) for spec in study.runs.values()}
    assert trained["neural"]["max_epochs"] == 7
    assert trained["lightgbm"] == {}


def test_only_the_last_candidate_is_tried_where_an_edition_asks_for_it():
    config = edition(collections=["ohsumed"], experiments=["linear", "trees"])
    every, last = (load(config | {"candidates": value}, ROOT) for value in ("all", "last"))
    assert max(len(candidate_settings(spec)) for spec in every.runs.values()) > 1
    for before, after in zip(every.runs.values(), last.runs.values(), strict=True):
        assert candidate_settings(after) == candidate_settings(before)[-1:]


def test_an_override_of_what_is_tuned_holds_where_only_the_last_candidate_is_tried():
    tune = {"model.max_depth": [2, 4]}
    overrides = [{"where": {"learner": "xgboost"}, "set": {"tune": tune}}]
    config = edition(overrides=overrides, collections=["ohsumed"], experiments=["trees"])
    study = load(config | {"candidates": "last"}, ROOT)
    tuned = {spec["learner"]: spec.get("tune") for spec in study.runs.values()}
    assert tuned["xgboost"] == tune
    assert all(len(values) == 1 for values in tuned["lightgbm"].values())


def test_settings_of_networks_for_trees_alone_are_refused():
    overrides = [{"where": {"learner": "lightgbm"}, "set": {"training.max_epochs": 7}}]
    with pytest.raises(ConfigError, match=r"override 1 .* matches no run"):
        load(edition(overrides=overrides, collections=["ohsumed"]), ROOT)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"collections": ["ohsumd"]}, "ohsumed"),
        ({"collections": ["ohsumed"], "experiments": ["tree"]}, "trees"),
        ({"collections": ["ohsumed"], "variants": {"linear": ["RankNets"]}}, "RankNet"),
        ({"collections": ["ohsumed"], "variants": {"linear": []}}, "papers.one_protocol"),
        ({"products": ["table_ohsumed"]}, "add 'ohsumed' to papers.one_protocol.collections"),
    ],
)
def test_what_is_not_there_is_refused_with_a_remedy(entry, message):
    with pytest.raises(ConfigError, match=message):
        load(edition(**entry), ROOT)


def test_collections_are_refused_where_a_paper_makes_nothing_for_each():
    with pytest.raises(ConfigError, match=r"remove papers\.bruch2019\.collections"):
        load(edition("bruch2019", collections=["ohsumed"]), ROOT)


def in_the_place_of_web30k(**more: Any) -> dict[str, Any]:
    datasets = {"web30k": {"instead": "msrd_sample"}} | more
    return edition("bruch2019", products=["figure2"]) | {"datasets": datasets}


def test_a_real_collection_stands_in_the_place_of_one_that_cannot_be_had():
    study = load(in_the_place_of_web30k(), ROOT)
    (source,) = study.data.values()
    assert (source.key, source.source) == ("msrd_sample", "archive")
    assert {(spec["data"]["name"], spec["fold"]) for spec in study.runs.values()} == {
        ("msrd_sample", None)
    }
    plan = study.products["bruch2019", "figure2"]
    places = {cell["in_place_of"] for cells in plan["experiments"].values() for cell in cells}
    assert places == {"MSLR-WEB30K"}


def test_folds_are_those_that_the_other_collection_has():
    study = load(in_the_place_of_web30k(web30k={"instead": "ohsumed"}), ROOT)
    assert {spec["fold"] for spec in study.runs.values()} == {1}


def test_the_first_of_its_folds_stands_in_the_place_of_the_paper_s_one_split():
    config = edition("bruch2019", products=["figure2_yahoo"])
    config["datasets"] = {"yahoo1": {"instead": "mq2008"}}
    study = load(config, ROOT)
    assert {spec["fold"] for spec in study.runs.values()} == {1}
    assert len(study.runs) == 7


def test_a_data_set_has_a_source_or_another_in_its_place():
    both = {"source": "standin", "instead": "msrd_sample"}
    with pytest.raises(ConfigError, match="web30k"):
        load(in_the_place_of_web30k(web30k=both), ROOT)
    with pytest.raises(ConfigError, match="unknown data set 'msrd_smaple'"):
        load(in_the_place_of_web30k(web30k={"instead": "msrd_smaple"}), ROOT)


def test_a_product_that_describes_data_sets_does_not_describe_another_ones():
    config = in_the_place_of_web30k(istella={"source": "standin"})
    config["papers"] = {"pobrotyn2021": {"products": ["table2", "table3"]}}
    study = load(config, ROOT)
    assert set(study.products["pobrotyn2021", "table2"]["prepared"]) == {"istella"}


def changed_paper(root: Path, **collections: Any) -> Path:
    """A root whose file of one protocol says so of these collections."""
    paper, schema = "config/papers/one_protocol.yaml", "workflow/schemas/experiments.schema.yaml"
    content = read_yaml(ROOT / paper)
    content["collections"] |= collections
    for name, text in {
        paper: json_text(content),  # which is YAML, too
        schema: (ROOT / schema).read_text("utf-8"),
    }.items():
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.mark.slow
def test_what_a_collection_is_too_large_for_is_left_out_there_alone(tmp_path):
    root = changed_paper(tmp_path, mq2008={"without": ["SoftRank", "YetiRank"]})
    entry = {"collections": ["ohsumed", "mq2008"]}
    made = experiments_of("one_protocol", entry, root)
    names = {name: {label(one) for one in variants_of(item)} for name, item in made.items()}
    for scorer in ("linear", "tower", "context", "trees"):
        left = names[f"ohsumed_{scorer}"] - names[f"mq2008_{scorer}"]
        assert left == ({"YetiRank"} if scorer == "trees" else {"SoftRank"})
    # An edition's own list of what is left out comes on top; what it names is run.
    both = entry | {"without": ["RankNet"], "variants": {"trees": ["YetiRank", "XGBoost"]}}
    made = experiments_of("one_protocol", both, root)
    assert made["mq2008_trees"]["chosen"] == ["YetiRank", "XGBoost"]
    assert not {"SoftRank", "RankNet"} & set(made["mq2008_linear"]["chosen"])


def test_an_experiment_may_be_left_out_on_a_collection(tmp_path):
    root = changed_paper(tmp_path, mq2008={"without": {"linear": "all", "tower": ["SoftRank"]}})
    entry = {"collections": ["ohsumed", "mq2008"]}
    made = experiments_of("one_protocol", entry, root)
    assert variants_of(made["mq2008_linear"]) == []
    assert variants_of(made["mq2008_tower"])
    assert variants_of(made["ohsumed_linear"])
    named = experiments_of("one_protocol", entry | {"variants": {"linear": ["RankNet"]}}, root)
    assert named["mq2008_linear"]["chosen"] == ["RankNet"]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"without": {"liner": "all"}}, "no experiment has the name 'liner'"),
        ({"without": {"linear": "every"}}, "collections.mq2008.without"),
        ({"without": ["YetiRnk"]}, r"collections\.mq2008\.without: no experiment .* 'YetiRnk'"),
        ({"without": []}, "collections.mq2008.without"),
        ({"wihout": ["YetiRank"]}, "wihout"),
    ],
)
def test_what_is_left_out_on_a_collection_is_checked(tmp_path, facts, message):
    root = changed_paper(tmp_path, mq2008=facts)
    with pytest.raises(ConfigError, match=message):
        experiments_of("one_protocol", {"collections": ["mq2008"]}, root)


def test_a_variant_of_another_size_of_collection_may_be_left_out():
    entry = {"collections": ["web30k"], "without": ["YetiRankPairwise", "YetiRank"]}
    chosen = experiments_of("one_protocol", entry, ROOT)["web30k_trees"]["chosen"]
    assert "LambdaMART" in chosen
    assert not {"YetiRankPairwise", "YetiRank"} & set(chosen)


def test_variants_are_left_out_of_every_experiment():
    entry = {"collections": ["ohsumed"], "without": ["SoftRank", "XGBoost"]}
    experiments = experiments_of("one_protocol", entry, ROOT)
    for name in ("linear", "tower", "context", "trees"):
        assert not {"SoftRank", "XGBoost"} & set(experiments[f"ohsumed_{name}"]["chosen"])
    assert "RankNet" in experiments["ohsumed_linear"]["chosen"]
    both = entry | {"variants": {"linear": ["SoftRank", "RankNet"]}}
    chosen = experiments_of("one_protocol", both, ROOT)["ohsumed_linear"]["chosen"]
    assert chosen == ["RankNet"]
    with pytest.raises(ConfigError, match="no experiment has a variant 'SoftRnk'"):
        experiments_of("one_protocol", entry | {"without": ["SoftRnk"]}, ROOT)
