"""The tables of trees from made-up results; their configurations as planned, and a fit of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from directrank import learners
from directrank.edition.plan import Study, load
from directrank.papers.one_protocol.answers import (
    Answer,
    differences,
    in_words,
    judged,
    over_collections,
)
from directrank.papers.one_protocol.methods import METRICS
from directrank.papers.one_protocol.protocol import protocol
from directrank.papers.one_protocol.published import read
from directrank.papers.one_protocol.questions import FURTHER, LIBRARIES, QUESTIONS, Question
from directrank.papers.shared.evidence import gather
from directrank.stats.clusters import clustered_mean
from directrank.stats.estimates import Estimate, of_mean
from directrank.stats.two_way import difference_over_queries_and_starts
from directrank.study.published import write_results
from directrank.study.specification import candidates
from directrank.system.errors import DataError
from directrank.system.io import read_json, write_csv, write_json
from directrank.system.schema import complete
from papers_synthetic import TITLES, build, make_plan, make_run
from studies import study_of
from tree_data import job, lists, splits

ROOT = Path(__file__).parents[3]

NDCG, ALIKE, CUT = QUESTIONS[0], QUESTIONS[7], QUESTIONS[6]


def sure(mean: float, error: float = 0.0001) -> Estimate:
    return Estimate(mean, error, n=100)


# Answers


def judge(estimates: Mapping[Question, Estimate]) -> dict[Question, Answer]:
    """The answers, within a margin of 0.01."""
    rows = [(question, one.mean, one.error, one.freedom) for question, one in estimates.items()]
    columns = ["question", "difference", "error", "freedom"]
    return judged(pd.DataFrame(rows, columns=columns), 0.01)


def test_a_difference_is_better_worse_equivalent_or_cannot_be_told() -> None:
    means = {"better": sure(0.05), "worse": sure(-0.05), "equivalent": sure(0.0001, 0.001)}
    means["inconclusive"] = sure(0.02, 0.02)
    answers = judge(dict(zip(QUESTIONS, means.values(), strict=False)))
    assert [answer.verdict for answer in answers.values()] == list(means)


def test_a_difference_that_is_significant_and_small_is_said_to_be_both() -> None:
    answer = judge({NDCG: sure(-0.004)})[NDCG]
    assert answer.verdict == "worse"
    assert answer.verdict_in_print == "worse, within 0.01"
    assert answer.ahead == "XGBoost over XGBoost NDCG by 0.004 ± 0.000"
    assert judge({NDCG: sure(-0.04)})[NDCG].verdict_in_print == "worse by more than 0.01"
    unsure = judge({NDCG: sure(-0.01, 0.002)})[NDCG]
    assert unsure.verdict_in_print == "worse"


def test_every_test_is_corrected_over_the_questions() -> None:
    alone = sure(0.0022, 0.001)
    assert judge({NDCG: alone})[NDCG].verdict == "better"
    several = judge({NDCG: alone, CUT: sure(0.0), ALIKE: sure(0.0)})
    assert several[NDCG].p_holm == pytest.approx(3 * alone.p_differs())
    assert several[NDCG].verdict == "equivalent"


def test_methods_with_the_same_values_are_equivalent_and_what_has_no_error_is_unknown() -> None:
    answers = judge({NDCG: Estimate(0.0, 0.0), CUT: Estimate(0.2, math.nan)})
    assert [answer.verdict for answer in answers.values()] == ["equivalent", "inconclusive"]
    assert answers[CUT].difference == "+0.200"


def test_a_sentence_names_what_differs_and_what_is_equivalent() -> None:
    answers = judge(
        {NDCG: sure(0.05), CUT: sure(-0.004), ALIKE: sure(0.0), QUESTIONS[1]: sure(0.02, 0.02)}
    )
    assert in_words([*answers.values()], "105 test queries", 0.01) == (
        "Of 4 pairs on 105 test queries, 2 differ significantly (XGBoost NDCG over XGBoost by "
        "0.050 ± 0.000, LambdaMART cut 13 over LambdaMART by 0.004 ± 0.000), "
        "1 of them by no more than 0.01; 1 is equivalent within 0.01 (XGBoost NDCG and XGBoost "
        "NDCG mean pairs); 1 is inconclusive."
    )
    unknown = judge({NDCG: sure(0.02, 0.02)})
    assert in_words([*unknown.values()], "9 test queries", 0.01) == (
        "Of 1 pair on 9 test queries, none differ significantly; none is "
        "equivalent within 0.01; 1 is inconclusive."
    )


def test_a_sentence_over_collections_says_who_is_ahead_where_and_where_they_disagree() -> None:
    first = judge({NDCG: sure(0.05), CUT: sure(-0.05), ALIKE: sure(0.0)})
    second = judge({NDCG: sure(-0.05), CUT: sure(-0.03), ALIKE: sure(0.0)})
    overall = judge({NDCG: sure(0.0, 0.1), CUT: sure(-0.04, 0.01), ALIKE: sure(0.0)})
    said = over_collections([first, second], overall, 0.01)
    assert "behind on none: LambdaMART cut 13 over LambdaMART (2 of 2);" in said
    assert "behind on others: XGBoost NDCG and XGBoost (1 to 1);" in said
    assert "on every one: XGBoost NDCG and XGBoost NDCG mean pairs;" in said
    assert said.endswith("others: LambdaMART cut 13 over LambdaMART by 0.040 ± 0.020.")


# The table of a collection

#: Method → NDCG@10 of made-up runs; four questions can be asked of these.
LEVELS = {
    "LambdaMART": 0.50,
    "LambdaMART cut 13": 0.50,
    "XGBoost": 0.40,
    "XGBoost NDCG": 0.50,
    "XGBoost MAP": 0.50,
}


def make_trees(folder: Path, levels: Mapping[str, float] = LEVELS, **how: Any) -> dict[str, Any]:
    """Runs of trees on two folds, as a plan has them."""
    cells: list[dict[str, Any]] = []
    for number, (method, level) in enumerate(levels.items()):
        for fold in (1, 2):
            name = f"t{number}-{fold}"
            values = dict.fromkeys(METRICS.values(), level)
            run = make_run(
                folder, name, values, dataset="ohsumed", fold=fold, first_query=1000 * fold, **how
            )
            fits = pd.DataFrame({"trial": [0, 0], "candidate": [0, 1], "selected": [True, False]})
            fits = fits.assign(best_epoch=[10 * fold, 99], stopped_early=[fold == 1, True])
            write_csv(run / "fits.csv", fits)
            history = pd.DataFrame({"trial": 0, "candidate": [0, 0, 1, 1], "epoch": [1, 2, 1, 2]})
            write_csv(run / "history.csv", history.assign(seconds=1.0 + number))
            cells.append({"run": name, "settings": {"method": method, "fold": fold}})
    return {"ohsumed_trees": cells}


def table(folder: Path, **how: Any) -> tuple[pd.DataFrame, str, Path]:
    """CSV and page of the table of trees, and its plan."""
    experiments = make_trees(folder / "runs", **how)
    plan = make_plan(folder, "one_protocol", "table_ohsumed_trees", experiments)
    build(plan, folder / "runs", folder / "table")
    return pd.read_csv(folder / "table.csv"), (folder / "table.md").read_text("utf-8"), plan


def lines_of(page: str) -> dict[str, list[str]]:
    """First cell → the others, of every line of a page's tables."""
    rows = [line.strip("| ").split("|") for line in page.splitlines() if line.startswith("| ")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def test_the_table_has_every_question_that_can_be_asked_and_every_method(tmp_path: Path) -> None:
    data, page, _ = table(tmp_path)
    asked = data[data["question"].notna()]
    pairs = asked.drop_duplicates("question")[["method", "other"]]
    assert set(pairs.itertuples(index=False, name=None)) == {
        ("XGBoost NDCG", "XGBoost"),
        ("XGBoost NDCG", "XGBoost MAP"),
        ("LambdaMART", "LambdaMART cut 13"),
        ("LambdaMART", "XGBoost NDCG"),
    }
    assert asked.groupby("question")["metric"].apply(list).map(len).eq(len(METRICS)).all()
    primary = asked[asked["metric"] == "NDCG@10"].set_index(["method", "other"])
    assert primary["verdict"]["XGBoost NDCG", "XGBoost"] == "better"
    assert asked.loc[asked["metric"] != "NDCG@10", "verdict"].isna().all()
    assert page.splitlines()[2].startswith("Of 4 pairs on 76 test queries, ")
    assert "XGBoost NDCG over XGBoost by 0.09" in page.splitlines()[2]
    methods = data[data["mean"].notna()]
    assert methods.drop_duplicates("method")["method"].tolist() == list(LEVELS)
    assert len(methods) == len(LEVELS) * len(METRICS)
    # The trees of the chosen candidate; the training on the second fold grew all that it might.
    assert set(methods["trees_kept"]) == {15}
    assert set(methods["at_the_limit"]) == {1}
    assert lines_of(page)["XGBoost"][-3:] == ["15", "1 of 2", "6.00"]
    assert "NDCG@10. Data: OHSUMED" in page


def test_a_difference_of_the_table_is_that_of_the_runs(tmp_path: Path) -> None:
    data, _, _ = table(tmp_path, groups_of=8)
    frames = [
        pd.read_parquet(tmp_path / f"runs/t{number}-{fold}/per_query.parquet").assign(method=number)
        for number in (3, 2)
        for fold in (1, 2)
    ]
    both = pd.concat(frames)
    both = both[both["split"] == "test"].dropna()
    of = both.pivot_table("ap", ["method", "trial"], "query_id")
    groups = both.drop_duplicates("query_id").set_index("query_id")["group"].reindex(of.columns)
    folds = of.columns.to_numpy() // 1000
    expected = difference_over_queries_and_starts(
        of.loc[3].to_numpy(), of.loc[2].to_numpy(), groups.to_numpy(), folds
    )
    gap = (of.loc[3] - of.loc[2]).mean()
    chosen = (data["other"] == "XGBoost") & (data["metric"] == "MAP")
    (row,) = data[chosen].itertuples()
    assert row.difference == pytest.approx(expected.mean, abs=1e-5)
    assert row.half_width == pytest.approx(expected.interval().half_width, rel=1e-3)
    assert row.half_width > 1.5 * of_mean(gap.to_numpy()).interval().half_width
    assert row.queries == 76


@pytest.mark.slow
def test_times_stand_in_the_page_and_in_a_file_of_their_own(tmp_path: Path) -> None:
    data, page, _ = table(tmp_path)
    assert not [name for name in data if "second" in name]
    # Two trees of each candidate, of a second and the method's number each.
    assert lines_of(page)["LightGBM, or XGBoost?"][-2:] == ["2.00", "8.00"]
    times = pd.read_csv(tmp_path / "table_times.csv").set_index("method")["seconds"]
    assert times.to_dict() == {method: 2.0 * (1 + n) for n, method in enumerate(LEVELS)}


def test_a_page_with_times_of_several_kinds_of_processors_says_so(tmp_path: Path) -> None:
    _, page, plan = table(tmp_path)
    assert "kinds of processors" not in page
    record = read_json(tmp_path / "runs/t1-2/run.json")
    record["environment"]["processor"] = "another processor"
    write_json(tmp_path / "runs/t1-2/run.json", record)
    build(plan, tmp_path / "runs", tmp_path / "table")
    page = (tmp_path / "table.md").read_text("utf-8")
    assert "Methods were timed on 2 kinds of processors, which differ in speed." in page


def test_without_a_pair_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="leave this product out"):
        table(tmp_path, levels={"LambdaMART": 0.5, "XGBoost": 0.4})
    assert not list(tmp_path.glob("table.*"))


def test_beside_losses_stand_the_trees_that_no_choice_within_a_library_is_about(
    tmp_path: Path,
) -> None:
    levels = {**LEVELS, "YetiRank": 0.5, "my trees": 0.5}
    experiments = make_trees(tmp_path / "runs", levels)
    experiments |= {
        f"ohsumed_{scorer}": [] for scorer in ("linear", "tower", "context", "untrained")
    }
    plan = {"edition": "mine", "paper": "one_protocol", "product": "x", "experiments": experiments}
    study = protocol(gather(plan, tmp_path / "runs"), "ohsumed")
    shown = [study.methods[number].name for number in study.trees_beside_losses]
    assert shown == ["LambdaMART", "XGBoost", "YetiRank", "my trees"]
    assert study.elsewhere == "Other boosted trees are in the table of all methods. "


# Over collections


def published(
    folder: Path, name: str, levels: Mapping[str, float], groups_of: int = 1, queries: int = 400
) -> Path:
    """Published values of trees at these levels, and of a loss that is called like one of them."""
    rng = np.random.default_rng(5)
    of_query = rng.normal(0.0, 0.1, queries)
    of_group = np.arange(queries) // groups_of
    frames = []
    methods = [*((method, "trees") for method in levels), ("XGBoost", "linear")]
    for method, scorer in methods:
        own = rng.normal(0.0, 0.01, queries) + rng.normal(0.0, 0.05, queries)[of_group]
        values = (levels[method] if scorer == "trees" else 0.9) + of_query + own
        frame = pd.DataFrame({"fold": 1, "trial": 0, "query_id": np.arange(queries)})
        if groups_of > 1:
            frame["group"] = of_group
        frames.append(
            frame.assign(method=method, scorer=scorer, **dict.fromkeys(METRICS.values(), values))
        )
    about = {"edition": "mine", "collection": name, "title": TITLES[name], "origin": "real"}
    about |= {"margin": 0.01}
    path = folder / f"per_query_{name}.parquet"
    write_results(path, pd.concat(frames), about | {"methods": methods})
    return path


def across(folder: Path, files: Sequence[Path]) -> tuple[pd.DataFrame, str]:
    """CSV and page of the table of trees over collections."""
    plan = make_plan(folder, "one_protocol", "table_collections_trees", {}, edition="mine")
    build(plan, folder / "runs", folder / "table", values_files=files)
    return pd.read_csv(folder / "table.csv"), (folder / "table.md").read_text("utf-8")


def test_differences_of_published_values_are_of_trees_and_by_group(tmp_path: Path) -> None:
    study = read(published(tmp_path, "ohsumed", LEVELS, groups_of=20))
    found = differences(study).set_index("question").loc[NDCG]
    frame = study.frame[study.frame["scorer"] == "trees"].pivot(
        index="query_id", columns="method", values="ndcg@10"
    )
    gap = (frame["XGBoost NDCG"] - frame["XGBoost"]).to_numpy()
    expected = clustered_mean(gap, np.arange(400) // 20)
    assert found["difference"] == pytest.approx(expected.mean)
    assert found["error"] == pytest.approx(expected.error)
    assert found["error"] > 2 * of_mean(gap).error


def test_the_table_over_collections_has_what_two_of_them_have(tmp_path: Path) -> None:
    lower = {**LEVELS, "XGBoost NDCG": 0.30}
    del lower["XGBoost MAP"]
    levels = {"ohsumed": LEVELS, "mq2008": lower, "td2003": LEVELS}
    files = [published(tmp_path, name, of_name) for name, of_name in levels.items()]
    data, page = across(tmp_path, files)
    titles = [TITLES[name] for name in levels]
    primary = data[data["metric"] == "NDCG@10"].set_index(["other", "dataset"])
    assert primary.loc["XGBoost", "verdict"].tolist() == [
        "better",
        "worse",
        "better",
        "inconclusive",
    ]
    assert "XGBoost NDCG and XGBoost (2 to 1)" in page
    gaps = [primary.loc[("XGBoost", title), "difference"] for title in titles]
    row = primary.loc[("XGBoost", "all collections")]
    assert row["difference"] == pytest.approx(np.mean(gaps), abs=1e-5)
    assert row["half_width"] == pytest.approx(of_mean(gaps).interval().half_width, rel=1e-3)
    assert row["collections"] == 3
    assert primary.loc[("XGBoost MAP", "all collections"), "collections"] == 2
    cells = lines_of(page)
    assert cells["Pairs weighted by NDCG, or by AP?"][2] == "not run"  # on the second collection
    assert not [name for name in data if "second" in name]
    assert cells["XGBoost MAP"][0] == ""
    assert cells["XGBoost"][0] == "3.7"  # last of four, but for the second collection


def test_over_collections_nothing_can_be_asked_of_one(tmp_path: Path) -> None:
    others = {"LambdaMART": 0.5, "XGBoost": 0.4}
    files = [published(tmp_path, "ohsumed", LEVELS), published(tmp_path, "mq2008", others)]
    with pytest.raises(DataError, match="were run on two collections"):
        across(tmp_path, files)


# As planned

LIGHTGBM = {"objective": "lambdarank", "norm": True, "truncation_level": 30}
PAIRWISE = {"objective": "rank:pairwise", "min_child_weight": 1.0, "pair_method": "topk"}
PAIRWISE |= {"norm": True, "score_norm": True}
BY_NDCG = PAIRWISE | {"objective": "rank:ndcg", "min_child_weight": 0.001}
CATBOOST = {"objective": "YetiRank", "metric": None, "k": None, "gain": "exponential"}
AT_10 = {"metric": "NDCG", "k": 10}
RAW = {"norm": False, "score_norm": False}

#: Method → learner, and what its settings come to with the learner's defaults.
CLAIMED: dict[str, tuple[str, dict[str, Any]]] = {
    "LambdaMART": ("lightgbm", LIGHTGBM),
    "LambdaMART unnormalised": ("lightgbm", LIGHTGBM | {"norm": False}),
    "LambdaMART cut 13": ("lightgbm", LIGHTGBM | {"truncation_level": 13}),
    "XE-NDCG trees": ("lightgbm", {"objective": "rank_xendcg"}),
    "XGBoost": ("xgboost", PAIRWISE),
    "XGBoost unnormalised": ("xgboost", PAIRWISE | RAW),
    "XGBoost NDCG": ("xgboost", BY_NDCG),
    "XGBoost NDCG unnormalised": ("xgboost", BY_NDCG | RAW),
    "XGBoost NDCG mean pairs": ("xgboost", BY_NDCG | {"pair_method": "mean"}),
    "XGBoost MAP": ("xgboost", BY_NDCG | {"objective": "rank:map"}),
    "YetiRank": ("catboost", CATBOOST),
    "YetiRank NDCG@10": ("catboost", CATBOOST | AT_10),
    "YetiRankPairwise": ("catboost", CATBOOST | {"objective": "YetiRankPairwise"}),
    "CatBoost StochasticRank": ("catboost", CATBOOST | {"objective": "StochasticRank"} | AT_10),
    "QueryRMSE": ("catboost", CATBOOST | {"objective": "QueryRMSE"}),
    "QuerySoftMax": ("catboost", CATBOOST | {"objective": "QuerySoftMax"}),
    "LambdaMART half of queries": (
        "lightgbm", LIGHTGBM | {"bagging_by_query": True, "bagging_fraction": 0.5}
    ),
    "CatBoost LambdaMART": ("catboost", CATBOOST | {"objective": "LambdaMart"} | AT_10),
    "PairLogit": ("catboost", CATBOOST | {"objective": "PairLogit"}),
}  # fmt: skip


#: What takes too long for many queries.
SLOW = {"YetiRankPairwise", "CatBoost StochasticRank"}

SMALL = {"n_trees": 300, "early_stopping_rounds": 50, "feature_fraction": 0.9}
LARGE = {"n_trees": 1000, "early_stopping_rounds": 100, "feature_fraction": 0.9}
SIZES = {
    "lightgbm": ("model.num_leaves", [7, 15, 31], [31, 64, 200]),
    "xgboost": ("model.max_depth", [3, 5, 7], [4, 6, 8]),
    "catboost": ("model.max_depth", [4, 6, 8], [4, 6, 8]),
}


def planned(study: Study, collection: str) -> dict[str, dict[str, Any]]:
    """Method of trees → specification of its run on the first fold of a collection."""
    product = study.products["one_protocol", f"table_{collection}"]
    cells = product["experiments"][f"{collection}_trees"]
    specs = {cell["settings"]["method"]: study.runs[cell["run"]] for cell in reversed(cells)}
    assert specs.pop("LambdaMART again") == {**specs["LambdaMART"], "repeat": 2}  # a control
    return specs


@pytest.fixture(scope="module")
def real() -> Study:
    return study_of("real")


def check(specs: Mapping[str, Mapping[str, Any]], budget: Mapping[str, Any], large: bool) -> None:
    for method, spec in specs.items():
        learner, settings = CLAIMED[method]
        assert spec["learner"] == learner, method
        whole = complete(spec["model"], learners.get(learner).settings, method)
        assert (settings | budget).items() <= whole.items(), method
        path, *sizes = SIZES[learner]
        assert spec["tune"] == {path: sizes[large], "model.learning_rate": [0.05, 0.1]}, method
        assert spec["selection"] == {"name": "ndcg", "k": 10}


def test_the_configurations_are_run_on_all_four_collections_of_real(real: Study) -> None:
    for collection in ("ohsumed", "mq2008", "clueweb09", "msrd"):
        specs = planned(real, collection)
        on_all_queries = collection == "msrd"
        few, most = {"LambdaMART", "XGBoost"}, set(CLAIMED) - {"YetiRankPairwise"}
        assert set(specs) == (few if on_all_queries else most)
        check(specs, SMALL | ({"n_trees": 1000} if on_all_queries else {}), large=False)
        assert {spec["trials"] for spec in specs.values()} == {5 if on_all_queries else 3}
    assert ("one_protocol", "table_collections_trees") in real.products


def test_large_collections_have_larger_trees_and_not_the_slow_ones() -> None:
    study = study_of("paper")
    specs = planned(study, "web30k")
    assert set(specs) == set(CLAIMED) - SLOW - {"PairLogit"}  # which stores every pair
    check(specs, LARGE, large=True)
    lightgbm = [spec["model"] for spec in specs.values() if spec["learner"] == "lightgbm"]
    assert {model["min_sum_hessian_in_leaf"] for model in lightgbm} == {100.0}


def test_every_question_is_of_methods_that_are_run_and_every_method_is_asked_about() -> None:
    assert {name for question in QUESTIONS for name in question.pair} == set(CLAIMED)
    assert len({frozenset(question.pair) for question in QUESTIONS}) == len(QUESTIONS)
    assert {*LIBRARIES, *FURTHER} == set(CLAIMED)
    assert {CLAIMED[name][0] for name in LIBRARIES} == set(SIZES)


def test_an_edition_without_a_pair_has_no_table_of_trees() -> None:
    demo = study_of("demo")
    made = {name for paper, name in demo.products if paper == "one_protocol"}
    assert "table_msrd_sample" in made
    assert not [name for name in made if name.endswith("_trees")]


def own_edition(**entry: Any) -> dict[str, Any]:
    collections = {"collections": ["ohsumed", "mq2008"], "experiments": ["linear", "trees"]}
    papers = {"one_protocol": {**collections, "variants": {"linear": ["RankNet"]}, **entry}}
    return {"edition": "mine", "datasets": {}, "papers": papers}


def test_an_edition_with_a_pair_has_it_and_one_that_names_products_has_these() -> None:
    pair = {"linear": ["RankNet"], "trees": ["LambdaMART", "LambdaMART cut 13"]}
    study = load(own_edition(variants=pair), ROOT)
    made = {name for _, name in study.products}
    assert {"table_ohsumed_trees", "table_mq2008_trees", "table_collections_trees"} <= made
    cells = study.products["one_protocol", "table_ohsumed_trees"]["experiments"]
    assert list(cells) == ["ohsumed_trees"]  # drawn without the losses
    named = load(own_edition(products=["table_ohsumed"]), ROOT)
    assert {name for _, name in named.products} == {"table_ohsumed"}


def test_over_collections_a_pair_must_be_on_two_of_them() -> None:
    # MSRD has neither StochasticRank nor YetiRankPairwise.
    left = sorted(set(CLAIMED) - {"YetiRank", *SLOW})
    study = load(own_edition(collections=["ohsumed", "msrd"], without=left), ROOT)
    made = {name for _, name in study.products}
    assert "table_ohsumed_trees" in made
    assert "table_msrd_trees" not in made
    assert "table_collections_trees" not in made


@pytest.fixture(scope="module")
def data():
    whole = splits()
    return type(whole)(lists(60, 0), lists(30, 1), lists(20, 2), whole.label_levels)


@pytest.fixture(scope="module")
def every() -> dict[str, dict[str, Any]]:
    """All methods: on the sample none is left out for its time."""
    entry = own_edition(collections=["msrd_sample"], experiments=["trees"], variants={})
    return planned(load(entry, ROOT), "msrd_sample")


@pytest.mark.slow
@pytest.mark.parametrize("method", CLAIMED)
def test_every_configuration_trains(every, data, method: str) -> None:
    spec = every[method]
    library = spec["learner"]
    pytest.importorskip(library, reason=f"NOT TESTED: the learner {library} needs its package")
    few = {"n_trees": 3, "early_stopping_rounds": 0}
    every = list(candidates(spec))
    assert len(every) == 6
    settings = every[-1]["model"] | few
    fitted = learners.get(library).load()(data, settings, job())
    scores = fitted.predict(data.test)
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 0
    assert fitted.info["best_epoch"] == 3


@pytest.mark.parametrize(
    ("setting", "method"),
    [
        ("leaves of LightGBM (`num_leaves`)", "LambdaMART"),
        ("depth of XGBoost (`max_depth`)", "XGBoost"),
        ("depth of CatBoost (`max_depth`)", "YetiRank"),
    ],
)
def test_the_page_on_trees_has_the_sizes_that_are_tried(setting: str, method: str) -> None:
    path = ROOT / "config/papers/one_protocol.yaml"
    sizes = yaml.safe_load(path.read_text("utf-8"))["for_each_collection"]["trees"]["sizes"]
    cells = []
    for size in ("small", "large"):
        (run,) = (
            one["run"] for one in sizes[size]["variants"] if one["settings"]["method"] == method
        )
        name = setting.split("`")[1]
        cells.append(", ".join(map(str, run["tune"][f"model.{name}"])))
    page = (ROOT / "docs/trees.md").read_text("utf-8")
    assert f"\n| {setting} | {' | '.join(cells)} |\n" in page
