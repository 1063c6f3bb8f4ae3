"""The folder in which one's own data are compared."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.data.prepare import prepare
from directrank.data.prepared import open_dataset
from directrank.data.tables import Columns
from directrank.edition.plan import Study, load
from directrank.edition.workspace import SLOW, ComparisonRequest, make, name_of
from directrank.system.errors import ConfigError, DataError
from directrank.system.schema import read_yaml
from workflow_runs import ROOT


def clicks(queries: int = 12, first: int = 0) -> pd.DataFrame:
    """Rows of sessions in disorder, labels between 0 and 1."""
    rng = np.random.default_rng(queries + first)
    frame = pd.DataFrame(rng.random((queries * 4, 3)), columns=["price", "ctr", "age"])
    frame["label"] = np.where(rng.random(len(frame)) < 0.5, 0.0, frame["ctr"])
    number = first + np.repeat(np.arange(queries), 4)
    frame["session"] = [f"s{q:02d}" for q in number]
    frame["user"] = number // 2
    return frame.sample(frac=1, random_state=1)


def request_of(data: Path, **more) -> ComparisonRequest:
    columns = Columns(query="session", group="user")
    return ComparisonRequest(data, name_of(data), **{"columns": columns, **more})


def plan_in(folder: Path) -> Study:
    with contextlib.chdir(folder):
        return load(read_yaml("edition.yaml"), ROOT)


def prepared_in(folder: Path, name: str) -> Path:
    out = folder / "data/prepared" / name
    prepare(name, folder / "data/raw", out, catalogue=folder / "data/datasets.yaml")
    return out


def test_one_file_is_dealt_to_folds_with_its_groups_together(tmp_path: Path) -> None:
    clicks().to_parquet(tmp_path / "Shop Clicks.parquet")
    said = make(request_of(tmp_path / "Shop Clicks.parquet", budget="quick"), tmp_path / "work")
    assert said[0].startswith("12 queries, 48 documents, 3 features, labels 0 to 0.9")
    assert "6 groups of queries are kept together, in folds and in statistical tests" in said
    assert "the features are price, ctr, age" in said
    assert any(text.startswith("labels are cut into grades") for text in said)
    folder = prepared_in(tmp_path / "work", "shop_clicks")
    tested = [open_dataset(folder / f"Fold{fold}/test") for fold in (1, 2, 3)]
    assert sorted(np.concatenate([lists.query_ids for lists in tested])) == list(range(1, 13))
    groups = [set(lists.groups) for lists in tested]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 6
    assert all((lists.lengths == 4).all() for lists in tested)


def test_what_is_prepared_is_what_the_table_holds(tmp_path: Path) -> None:
    frame = clicks()
    frame.to_csv(tmp_path / "mine.csv", index=False)
    make(request_of(tmp_path / "mine.csv"), tmp_path)
    lists = open_dataset(prepared_in(tmp_path, "mine") / "Fold1/test")
    names = pd.read_csv(tmp_path / "data/raw/mine/queries.csv", index_col="query")["name"]
    for place, query in enumerate(lists.query_ids):
        rows = slice(lists.offsets[place], lists.offsets[place + 1])
        own = frame[frame["session"] == names[query]]
        expected = own[["price", "ctr", "age"]].to_numpy(np.float32)
        place = [int(np.argmin(abs(expected - row).sum(1))) for row in lists.features[rows]]
        assert np.array_equal(lists.features[rows], expected[place])
        order = np.argsort(own["label"].to_numpy()[place], kind="stable")
        assert (np.diff(lists.labels[rows][order]) >= 0).all()


def test_splits_stay_as_they_are_and_a_missing_validation_set_is_cut_off(tmp_path: Path) -> None:
    data = tmp_path / "mine"
    data.mkdir()
    clicks(10).to_csv(data / "train.csv", index=False)
    clicks(4).to_csv(data / "test.csv", index=False)  # the same names, but other queries
    said = make(request_of(data), tmp_path / "work")
    assert "the last 20% of the training queries are for validation" in said
    folder = prepared_in(tmp_path / "work", "mine")
    found = {split: open_dataset(folder / split).n_queries for split in ("train", "vali", "test")}
    assert found == {"train": 8, "vali": 2, "test": 4}
    clicks(3, 20).to_csv(data / "valid.csv", index=False)
    make(request_of(data), tmp_path / "whole")
    folder = prepared_in(tmp_path / "whole", "mine")
    found = {split: open_dataset(folder / split).n_queries for split in ("train", "vali", "test")}
    assert found == {"train": 10, "vali": 3, "test": 4}


def written_splits(folder: Path, **content: str) -> Path:
    folder.mkdir()
    for name, text in content.items():
        (folder / name.replace("_", ".", 1)).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def any_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test read a few rows, which are too few to compare methods."""
    monkeypatch.setattr("directrank.edition.workspace.refuse_unusable", lambda *_: None)


@pytest.mark.usefixtures("any_queries")
def test_splits_of_sparse_text_have_the_features_of_all_files(tmp_path: Path) -> None:
    data = written_splits(
        tmp_path / "mine",
        train_txt="1 qid:1 1:7 3:8\n0 qid:2 1:2\n",
        test_txt="1 qid:1 0:5 2:4\n",
    )
    said = make(ComparisonRequest(data, "mine"), tmp_path / "work")
    assert "the features are 0, 1, 2, 3" in said
    raw = tmp_path / "work/data/raw/mine"
    assert sorted((raw / "train.txt").read_text().split("\n")) == [
        "",
        "0\t2\t0\t2\t0\t0",
        "1\t1\t0\t7\t0\t8",
    ]
    assert (raw / "test.txt").read_text() == "1\t3\t5\t0\t4\t0\n"


def test_splits_that_lightgbm_and_xgboost_read_are_read(tmp_path: Path) -> None:
    data = tmp_path / "mine"
    data.mkdir()
    for split in ("train", "vali", "test"):
        (data / f"rank.{split}.gz").write_bytes(gzip.compress(b"1 0:2 1:3\n0 1:1\n1 1:4\n"))
        (data / f"rank.{split}.{'group' if split == 'vali' else 'query'}").write_text("2\n1\n")
        (data / f"rank.{split}.weight").write_text("1\n1\n1\n")
    said = make(ComparisonRequest(data, "mine"), tmp_path / "work")
    assert said[0] == "6 queries, 9 documents, 2 features, labels 0 to 1"
    ignored = [text for text in said if "weight is ignored" in text]
    assert [text.split()[0] for text in ignored] == [
        f"rank.{split}.weight" for split in ("train", "vali", "test")
    ]


@pytest.mark.usefixtures("any_queries")
def test_columns_of_splits_are_matched_by_name(tmp_path: Path) -> None:
    data = written_splits(
        tmp_path / "mine",
        train_csv="qid,label,a,b\n1,1,7,8\n2,0,3,4\n",
        test_csv="b,qid,a,label\n8,1,7,1\n",
    )
    make(ComparisonRequest(data, "mine"), tmp_path / "work")
    assert (tmp_path / "work/data/raw/mine/test.txt").read_text() == "1\t3\t7\t8\n"


@pytest.mark.usefixtures("any_queries")
def test_columns_that_differ_between_splits_are_named_or_left_out(tmp_path: Path) -> None:
    data = written_splits(
        tmp_path / "mine",
        train_csv="qid,label,a,b,c,d\n1,1,7,8,9,w\n2,0,3,4,5,6\n",
        test_csv="qid,label,a,b,d,e\n1,1,7,x,8,9\n",
    )
    with pytest.raises(DataError) as caught:
        make(ComparisonRequest(data, "mine"), tmp_path / "work")
    assert caught.value.file == str(data / "test.csv")
    for part in (
        "test.csv has no column c",
        "test.csv has words in the column b (row 1: 'x')",
        "train.csv has no column e",
        "train.csv has words in the column d (row 1: 'w')",
    ):
        assert part in caught.value.what
    columns = Columns(leave_out=("b", "c", "d", "e"))
    said = make(ComparisonRequest(data, "mine", columns), tmp_path / "work")
    assert "the features are a" in said


@pytest.mark.usefixtures("any_queries")
def test_cut_points_are_those_of_the_training_set(tmp_path: Path) -> None:
    rows = "".join(f"{n // 10},{n / 20},{n}\n" for n in range(20))
    data = written_splits(
        tmp_path / "mine",
        train_csv="qid,label,a\n" + rows,
        test_csv="qid,label,a\n1,0.1,0\n1,40.5,0\n1,-3,0\n",
    )
    said = make(ComparisonRequest(data, "mine"), tmp_path / "work")
    cut = "grades 1, 2, … begin at 0.2, 0.4, 0.6, 0.8 (quantiles of the labels of the training set)"
    assert any(cut in text for text in said)
    test = (tmp_path / "work/data/raw/mine/test.txt").read_text().splitlines()
    assert sorted(line.split("\t")[0] for line in test) == ["0", "0", "4"]


def test_the_order_of_rows_changes_nothing_and_tells_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 2, (600, 2)), columns=["a", "b"])
    frame["label"] = rng.integers(0, 3, 600)
    frame["query"] = np.repeat(np.arange(60), 10)
    best_first = frame.sort_values("label", ascending=False)
    made = []
    for name, rows in {"best": best_first, "worst": best_first[::-1], "stored": frame}.items():
        rows.to_csv(tmp_path / "mine.csv", index=False)
        make(ComparisonRequest(tmp_path / "mine.csv", "mine"), tmp_path / name)
        made.append((tmp_path / name / "data/raw/mine/all.txt").read_bytes())
    assert made[0] == made[1] == made[2]
    lists = open_dataset(prepared_in(tmp_path / "best", "mine") / "Fold1/test")
    first, last = lists.offsets[:-1], lists.offsets[1:] - 1
    # Of 20 queries, the first document is better than the last one about as often as worse.
    better = np.sign(lists.labels[first] - lists.labels[last])
    assert abs(better.sum()) < 10


def test_features_that_follow_rows_or_labels_are_named(tmp_path: Path) -> None:
    frame = clicks().sort_values("session")
    frame.assign(number=range(len(frame))).to_csv(tmp_path / "mine.csv", index=False)
    said = make(request_of(tmp_path / "mine.csv"), tmp_path / "work")
    assert any("'number' follows the order of the rows" in text for text in said)


@pytest.mark.slow
def test_a_budget_says_how_much_is_run(tmp_path: Path) -> None:
    clicks().to_csv(tmp_path / "mine.csv", index=False)
    plans = {}
    for budget in ("quick", "standard", "full"):
        make(request_of(tmp_path / "mine.csv", budget=budget), tmp_path / budget)
        plans[budget] = plan_in(tmp_path / budget).runs
    quick, standard, full = (list(plans[budget].values()) for budget in plans)
    assert len(quick) < len(standard) < len(full)
    assert {spec["trials"] for spec in quick} == {1}
    assert {spec["trials"] for spec in full} == {3}
    assert {spec.get("train_queries") for spec in standard} == {2000}
    assert {spec["learner"] for spec in quick} == {"neural"}
    assert {"lightgbm", "xgboost", "catboost"} < {spec["learner"] for spec in standard}


def test_losses_and_scorers_are_chosen(tmp_path: Path) -> None:
    clicks().to_csv(tmp_path / "mine.csv", index=False)
    chosen = {"losses": ["RankNet", "ListNet", "RMSE"], "scorers": ["linear"], "folds": 4}
    make(request_of(tmp_path / "mine.csv", **chosen), tmp_path)
    runs = plan_in(tmp_path).runs.values()
    assert {spec["loss"]["name"] for spec in runs} == {"ranknet", "listnet", "rmse"}
    assert {spec["fold"] for spec in runs} == {1, 2, 3, 4}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["web30k", "yahoo1", "msrd", "ohsumed", "cubic"])
def test_a_name_of_the_study_selects_none_of_its_settings(tmp_path: Path, name: str) -> None:
    plans = {}
    for own in (name, "plain"):
        clicks().to_csv(tmp_path / f"{own}.csv", index=False)
        make(request_of(tmp_path / f"{own}.csv", budget="quick"), tmp_path / own)
        specs = plan_in(tmp_path / own).runs.values()
        plans[own] = [{**spec, "data": None} for spec in specs]
    assert plans[name] == plans["plain"]
    assert name_of(Path(f"{name}.csv")) == f"own_{name}"
    assert name_of(Path("shop_standin.csv")) == "own_shop_standin"
    assert name_of(Path("collections.csv")) == "own_collections"


@pytest.mark.slow
def test_ensembles_are_chosen_and_left_out(tmp_path: Path) -> None:
    clicks().to_csv(tmp_path / "mine.csv", index=False)

    def trained(number: int, **chosen) -> set[str]:
        make(request_of(tmp_path / "mine.csv", folds=3, **chosen), tmp_path / str(number))
        cells = plan_in(tmp_path / str(number)).products["one_protocol", "table_mine"]
        return {
            cell["settings"]["method"] for runs in cells["experiments"].values() for cell in runs
        }

    quick = {"budget": "quick", "scorers": ["trees"]}
    few = ["LambdaMART", "YetiRankPairwise"]
    assert trained(1, **quick, ensembles=few) == set(few)
    assert not trained(2, **quick) & set(SLOW)
    assert trained(3, scorers=["trees"], budget="full") > set(SLOW)
    without = trained(4, **quick, without=["YetiRank"])
    assert "YetiRank NDCG@10" in without
    assert "YetiRank" not in without
    chosen = {"scorers": ["linear"], "losses": ["RankNet", "RMSE"], "ensembles": ["XGBoost"]}
    assert trained(5, **chosen) == {"RankNet", "RMSE", "XGBoost"}
    assert trained(6, **chosen, without=["RMSE"]) == {"RankNet", "XGBoost"}


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"losses": ["RankNets"]}, "did you mean 'RankNet'"),
        ({"losses": ["Bogus"], "scorers": ["trees"]}, "--losses names 'Bogus'"),
        ({"losses": ["RankNet"], "scorers": ["trees"]}, "the only scorer is trees"),
        ({"ensembles": ["LambdaMar"]}, "did you mean 'LambdaMART'"),
        ({"ensembles": ["RankNet"]}, "--ensembles names 'RankNet'"),
        ({"without": ["YetiRang"]}, "did you mean 'YetiRank'"),
        ({"losses": ["RMSE"], "without": ["RMSE"], "scorers": ["linear"]}, "every method"),
    ],
)
def test_methods_that_cannot_be_meant_are_refused(tmp_path: Path, chosen, message) -> None:
    with pytest.raises(ConfigError, match=message):
        make(request_of(tmp_path / "never_read.csv", **chosen), tmp_path)


def test_what_a_budget_leaves_out_and_what_cannot_be_ranked_is_said(tmp_path: Path) -> None:
    clicks().to_csv(tmp_path / "mine.csv", index=False)
    quick = {"budget": "quick", "scorers": ["trees"]}
    said = make(request_of(tmp_path / "mine.csv", **quick), tmp_path)
    assert "the budget quick leaves out YetiRankPairwise and CatBoost StochasticRank" in said[-1]
    one = {"budget": "quick", "scorers": ["linear"], "losses": ["RankNet"]}
    said = make(request_of(tmp_path / "mine.csv", **one), tmp_path)
    assert said[-1] == "1 method is too few to compare, so figures of differences are left out"
    products = {product for _, product in plan_in(tmp_path).products}
    assert {"table_mine", "per_query_mine", "figure_mine_time"} <= products
    assert not {"figure_mine", "table_mine_pairs"} & products


def test_an_edited_edition_is_kept_or_refused_but_never_overwritten(tmp_path: Path) -> None:
    clicks().to_csv(tmp_path / "mine.csv", index=False)
    path, request = tmp_path / "edition.yaml", request_of(tmp_path / "mine.csv", budget="quick")
    make(request, tmp_path)
    written = path.read_text(encoding="utf-8")
    edited = written.replace("max_epochs: 10", "max_epochs: 2")
    assert edited != written
    path.write_text(edited, encoding="utf-8")
    assert make(request, tmp_path)[-1].startswith("edition.yaml was changed by hand")
    assert path.read_text(encoding="utf-8") == edited
    with pytest.raises(ConfigError, match="changed by hand, and the options differ"):
        make(request_of(tmp_path / "mine.csv"), tmp_path)
    assert path.read_text(encoding="utf-8") == edited
    path.write_text(written, encoding="utf-8")
    make(request_of(tmp_path / "mine.csv"), tmp_path)  # other options, nothing edited
    assert path.read_text(encoding="utf-8") != written


def graded(queries: Sequence[Sequence[int]]) -> pd.DataFrame:
    """Queries with these labels, in columns that :func:`request_of` names."""
    rows = [(f"s{q}", label) for q, labels in enumerate(queries) for label in labels]
    frame = pd.DataFrame(rows, columns=["session", "label"])
    return frame.assign(f=np.arange(len(frame)) % 7, user=frame["session"])


@pytest.mark.parametrize(
    ("queries", "options", "message"),
    [
        ([[0, 1]], {}, "has 1 query, which is too few for 3 folds\n.*give at least 3 queries"),
        ([[0, 1]] * 2, {}, "has 2 queries, which are too few for 3 folds"),
        ([[0, 1]] * 3, {"folds": 5}, "has 3 queries, which are too few for 5 folds.*\n.*--folds"),
        ([[0, 0]] * 9, {}, "no query of the training set of fold 1 has a relevant document"),
        ([[0, 1]] + [[0, 0]] * 8, {}, "no query of the .* set of fold . has a relevant document"),
        ([[1, 1]] * 9, {}, "no query of the training set of fold 1 has documents of different"),
        ([[0], [1]] * 9, {}, "no query of the training set of fold 1 has documents of different"),
        ([[0, 1]] + [[0, 0]] * 990, {}, "drawn from more by the budget; --budget full takes all"),
    ],
)
def test_data_that_leave_nothing_to_learn_or_compare_are_refused(
    tmp_path: Path, queries, options, message
) -> None:
    graded(queries).to_csv(tmp_path / "mine.csv", index=False)
    with pytest.raises(DataError, match=message):
        make(request_of(tmp_path / "mine.csv", budget="quick", **options), tmp_path / "work")
    assert not list((tmp_path / "work").rglob("*.txt"))


def test_too_few_groups_are_refused(tmp_path: Path) -> None:
    graded([[0, 1]] * 9).assign(user=lambda frame: frame["session"] < "s4").to_csv(
        tmp_path / "mine.csv", index=False
    )
    with pytest.raises(DataError, match="has 2 groups of queries, which are too few for 3 folds"):
        make(request_of(tmp_path / "mine.csv", budget="quick"), tmp_path / "work")


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ([[0, 1]] * 9, [[0, 0]] * 4, "no query of the test set has a relevant document"),
        ([[0, 1]] * 9, [[0, 0], [0, 1]], "has 1 test query"),
        ([[0, 1]] * 8 + [[0, 0]] * 2, [[0, 1]] * 4, "no query of the validation set has"),
        ([[0, 1]], [[0, 1]] * 4, "has no query for the validation set"),
    ],
)
def test_splits_that_cannot_work_are_refused(tmp_path: Path, train, test, message) -> None:
    graded(train).to_csv(tmp_path / "train.csv", index=False)
    graded(test).to_csv(tmp_path / "test.csv", index=False)
    with pytest.raises(DataError, match=message):
        make(request_of(tmp_path), tmp_path / "work")


def test_the_workspaces_data_are_meant_wherever_other_archives_lie(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DIRECTRANK_RAW", "/archives")
    clicks().to_csv(tmp_path / "a.csv", index=False)
    make(request_of(tmp_path / "a.csv"), tmp_path / "out")
    assert plan_in(tmp_path / "out").config["raw_dir"] == "data/raw"


def test_data_that_changed_are_prepared_anew(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    clicks(12).to_csv(path, index=False)
    make(request_of(path), tmp_path)
    before = (tmp_path / "data/datasets.yaml").read_text(encoding="utf-8")
    clicks(12, 1).to_csv(path, index=False)
    make(request_of(path), tmp_path)
    assert (tmp_path / "data/datasets.yaml").read_text(encoding="utf-8") != before


def test_what_cannot_be_meant_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    frame = clicks()
    frame.assign(user=range(len(frame))).to_csv(path, index=False)
    with pytest.raises(DataError, match="rows of more than one group"):
        make(request_of(path), tmp_path / "work")
    with pytest.raises(ConfigError, match="2 folds"):
        make(request_of(path, folds=2), tmp_path / "work")
    for grades, message in {
        1: "1 grades are too few",
        17: "17 grades are too many",
        (0.5, 0.5): "do not rise",
        (0.5, np.nan): "do not rise",
    }.items():
        with pytest.raises(ConfigError, match=message):
            make(request_of(path, grades=grades), tmp_path / "work")
    with pytest.raises(DataError, match="no column 'prise' to leave out; the features are price"):
        columns = Columns(query="session", leave_out=("prise",))
        make(request_of(path, columns=columns), tmp_path / "work")
    with pytest.raises(DataError, match="no file of training queries"):
        make(request_of(tmp_path), tmp_path / "work")
    for name in ("train.csv", "training.tsv", "test.csv"):
        (tmp_path / name).touch()
    with pytest.raises(DataError, match="both train"):
        make(request_of(tmp_path), tmp_path / "work")
    assert not [found for found in tmp_path.rglob("*") if found.name.startswith(("all", "edition"))]


def test_names_are_made_of_file_names() -> None:
    assert name_of(Path("2026/Clicks (EU).csv")) == "clicks_eu"
    assert name_of(Path("2026.csv")) == "data_2026"
    assert name_of(Path("ü.csv")) == "data"
    assert name_of(Path("clicks.csv.gz")) == "clicks"
