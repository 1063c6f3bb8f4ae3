"""LambdaMART with LightGBM: what it learns, how it is chosen, and that it is the same again."""

import re
from dataclasses import replace
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest

from directrank import metrics
from directrank.learners.contract import FitJob, Splits, no_progress
from directrank.learners.trees import boosting
from directrank.learners.trees import lightgbm as learner
from directrank.learners.trees.settings import LIGHTGBM, complete
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.errors import DataError, TrainingError
from directrank.system.schema import read_yaml

NDCG5 = {"name": "ndcg", "k": 5}
SMALL = {
    "n_trees": 12,
    "early_stopping_rounds": 0,
    "num_leaves": 7,
    "min_data_in_leaf": 5,
    "min_sum_hessian_in_leaf": 0.1,
}


def lists(n_queries: int, seed: int, n_features: int = 8, longest: int = 25) -> RankedLists:
    """Lists of 1 to ``longest`` documents, every fourth query empty, labels from two features."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, longest + 1, n_queries)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    features = generator.normal(size=(offsets[-1], n_features)).astype(np.float32)
    signal = features[:, 0] + features[:, 1] * features[:, 2] + generator.normal(size=offsets[-1])
    labels = np.digitize(signal, [0.5, 1.5, 2.5]).astype(np.float32)
    labels[np.repeat(np.arange(n_queries) % 4 == 0, lengths)] = 0
    return RankedLists(features, labels, offsets, np.arange(n_queries) + 1000)


@pytest.fixture(scope="module")
def data() -> Splits:
    return Splits(lists(200, 0), lists(120, 1), lists(120, 2), label_levels=5)


def job(trial: int = 0, selection: dict = NDCG5, **changes) -> FitJob:
    return replace(FitJob("a-run", trial, selection, 1, "cpu", no_progress), **changes)


def mean(scores: np.ndarray, part: RankedLists, metric: dict) -> float:
    return float(np.nanmean(metrics_per_query(scores, part, [metric])[metrics.label(metric)]))


def saved(fitted, folder: Path) -> str:
    fitted.save(folder / "model")
    return (folder / "model.txt").read_text()


def trees_of(text: str) -> str:
    """The model without its list of parameters, which holds the seeds."""
    return text.split("\nparameters:")[0]


@pytest.mark.parametrize("selection", [NDCG5, {"name": "ndcg"}, {"name": "ndcg", "k": 1}])
def test_the_history_is_our_metric_of_every_number_of_trees(data, tmp_path, selection):
    fitted = learner.fit(data, SMALL, job(selection=selection))
    saved(fitted, tmp_path)
    booster = lightgbm.Booster(model_file=tmp_path / "model.txt")
    assert [row["epoch"] for row in fitted.history] == list(range(1, 13))
    for row in fitted.history:
        scores = booster.predict(data.vali.features, num_iteration=row["epoch"])
        assert row["vali_metric"] == pytest.approx(mean(scores, data.vali, selection), abs=1e-12)


def test_other_parts_are_watched_without_a_part_in_the_choice(data, tmp_path):
    watch = {"every": 5, "splits": ["train", "test"]}
    fitted = learner.fit(data, SMALL | {"watch": watch}, job())
    plain = learner.fit(data, SMALL, job())
    assert trees_of(saved(fitted, tmp_path)) == trees_of(saved(plain, tmp_path))
    booster = lightgbm.Booster(model_file=tmp_path / "model.txt")
    for row in fitted.history:
        assert ("test_ndcg@5" in row) == (row["epoch"] % 5 == 0)
        for split in ("train", "test"):
            if f"{split}_ndcg@5" in row:
                part = getattr(data, split)
                scores = booster.predict(part.features, num_iteration=row["epoch"])
                assert row[f"{split}_ndcg@5"] == pytest.approx(mean(scores, part, NDCG5), abs=1e-9)


def test_the_number_of_trees_is_the_same_whatever_empty_queries_count(data, tmp_path):
    fitted = learner.fit(data, SMALL | {"n_trees": 60, "early_stopping_rounds": 60}, job())
    values = np.array([row["vali_metric"] for row in fitted.history])
    assert fitted.info["best_epoch"] == 1 + values.argmax()
    # LightGBM's own choice, on its own values in which empty queries count 1.
    own = lightgbm.Dataset(
        data.vali.features, label=data.vali.labels, group=data.vali.lengths, free_raw_data=False
    )
    train = lightgbm.Dataset(data.train.features, data.train.labels, group=data.train.lengths)
    record: dict = {}
    parameters = learner._parameters(complete(SMALL, LIGHTGBM, "test"), data.label_levels)
    parameters |= {"seed": boosting.seed(job(), "lightgbm"), "num_threads": 1}
    lightgbm.train(
        parameters | {"metric": "ndcg", "eval_at": [5]},
        train,
        num_boost_round=60,
        valid_sets=[own],
        callbacks=[lightgbm.record_evaluation(record)],
    )
    theirs = np.array(record["valid_0"]["ndcg@5"])
    n_empty = int((data.vali.relevant_counts() == 0).sum())
    assert n_empty > 20
    assert theirs.argmax() == values.argmax()
    np.testing.assert_allclose(
        (theirs * data.vali.n_queries - n_empty) / (data.vali.n_queries - n_empty), values
    )


def test_a_metric_that_lightgbm_lacks_is_measured_by_ours(data):
    selection = {"name": "precision", "k": 3}
    fitted = learner.fit(data, SMALL | {"early_stopping_rounds": 5}, job(selection=selection))
    best = max(fitted.history, key=lambda row: row["vali_metric"])
    assert fitted.info["best_epoch"] == best["epoch"]
    assert best["vali_metric"] == pytest.approx(
        mean(fitted.predict(data.vali), data.vali, selection)
    )


def test_measuring_ndcg_by_lightgbm_or_by_ours_gives_the_same_fit(data, tmp_path, monkeypatch):
    settings = SMALL | {"n_trees": 40, "early_stopping_rounds": 8}
    native = learner.fit(data, settings, job())
    monkeypatch.setattr(learner._Selection, "native", False)
    ours = learner.fit(data, settings, job())
    assert ours.info == native.info
    assert [row["vali_metric"] for row in ours.history] == pytest.approx(
        [row["vali_metric"] for row in native.history], abs=1e-12
    )
    assert trees_of(saved(ours, tmp_path)) == trees_of(saved(native, tmp_path))


def test_training_stops_when_the_metric_has_not_risen_for_so_many_trees(data):
    fitted = learner.fit(data, SMALL | {"n_trees": 500, "early_stopping_rounds": 10}, job())
    assert fitted.info["stopped_early"]
    assert fitted.info["epochs"] == fitted.info["best_epoch"] + 10 < 500
    kept = fitted.history[fitted.info["best_epoch"] - 1]["vali_metric"]
    assert mean(fitted.predict(data.vali), data.vali, NDCG5) == pytest.approx(kept)


def test_it_learns_an_interaction_that_no_single_feature_shows(data):
    fitted = learner.fit(data, SMALL | {"n_trees": 60}, job())
    learned = mean(fitted.predict(data.test), data.test, NDCG5)
    best_feature = max(mean(column, data.test, NDCG5) for column in data.test.features.T)
    assert learned > best_feature + 0.03


def test_the_same_run_and_trial_give_the_same_bytes(data, tmp_path):
    settings = SMALL | {"feature_fraction": 0.5, "bagging_fraction": 0.7}
    first, again = (learner.fit(data, settings, job(trial=3)) for _ in range(2))
    assert saved(first, tmp_path) == saved(again, tmp_path)
    assert first.predict(data.test).tobytes() == again.predict(data.test).tobytes()


@pytest.mark.parametrize("sampling", [{"feature_fraction": 0.5}, {"bagging_fraction": 0.5}])
def test_trials_and_runs_draw_their_own_samples(data, tmp_path, sampling):
    settings = SMALL | {"feature_fraction": 1.0} | sampling
    jobs = [job(trial=0), job(trial=1), job(trial=0, streams="other-data")]
    models = {trees_of(saved(learner.fit(data, settings, each), tmp_path)) for each in jobs}
    assert len(models) == 3


def test_trials_without_sampling_are_the_same(data, tmp_path):
    settings = SMALL | {"feature_fraction": 1.0}
    models = {
        trees_of(saved(learner.fit(data, settings, job(trial)), tmp_path)) for trial in (0, 1)
    }
    assert len(models) == 1


def test_the_number_of_threads_does_not_change_the_trees(data, tmp_path):
    models = {trees_of(saved(learner.fit(data, SMALL, job(threads=n)), tmp_path)) for n in (1, 2)}
    assert len(models) == 1


def test_a_saved_model_scores_exactly_as_the_fit(data, tmp_path):
    fitted = learner.fit(data, SMALL | {"n_trees": 50, "early_stopping_rounds": 5}, job())
    fitted.save(tmp_path / "model-0")
    booster = lightgbm.Booster(model_file=tmp_path / "model-0.txt")
    assert booster.predict(data.test.features).tobytes() == fitted.predict(data.test).tobytes()
    assert booster.num_trees() == fitted.info["best_epoch"]
    nodes = booster.trees_to_dataframe()
    assert fitted.info["n_parameters"] == len(nodes)  # a threshold per split, an output per leaf


def test_settings_reach_lightgbm(data, tmp_path):
    settings = SMALL | {"truncation_level": 20, "norm": False, "max_bin": 63, "max_depth": 4}
    text = saved(learner.fit(data, settings, job()), tmp_path)
    for line in (
        "[lambdarank_truncation_level: 20]",
        "[lambdarank_norm: 0]",
        "[max_bin: 63]",
        "[max_depth: 4]",
        "[num_leaves: 7]",
        "[min_data_in_leaf: 5]",
        "[min_sum_hessian_in_leaf: 0.1]",
        "[learning_rate: 0.1]",
        "[label_gain: 0,1,3,7,15]",
        "[deterministic: 1]",
        "[force_row_wise: 1]",
        "[num_threads: 1]",
        "[data_random_seed: 1]",  # bins do not differ between trials
    ):
        assert line in text, line


def test_the_configured_settings_are_what_the_papers_print(root):
    table = pd.read_csv(root / "paper_tables/published/hyperparameters.csv")

    def printed(paper: str, method: str, parameter: str) -> float:
        rows = table.query("paper == @paper and method == @method and parameter == @parameter")
        return float(rows["value"].item())

    def experiment(paper: str, name: str) -> dict:
        return read_yaml(root / f"config/papers/{paper}.yaml")["experiments"][name]

    variants = experiment("bruch2019", "table1_web30k")["variants"]
    model = {entry["settings"]["method"]: entry["run"].get("model") for entry in variants}
    configured = {
        ("bruch2019", "lambdaMART GBM"): model["λMART_GBM"],
        ("yu2020", "LambdaMART(L)"): experiment("yu2020", "web30k_trees")["run"]["model"],
    }
    for (paper, method), settings in configured.items():
        for name in (
            "learning_rate",
            "num_leaves",
            "min_data_in_leaf",
            "min_sum_hessian_in_leaf",
        ):
            assert settings[name] == printed(paper, method, name)
    ranklib = model["λMART_RankLib-like"]
    assert ranklib["num_leaves"] == printed("bruch2019", "lambdaMART RankLib", "leaves")
    assert ranklib["learning_rate"] == printed("bruch2019", "lambdaMART RankLib", "learning rate")
    for settings in (*configured.values(), ranklib):
        assert (settings["n_trees"], settings["early_stopping_rounds"]) == (1000, 200)


def test_progress_counts_trees(data):
    seen = []
    learner.fit(data, SMALL, job(progress=lambda *arguments: seen.append(arguments)))
    assert [done for done, _, _ in seen] == list(range(1, 13))
    assert {total for _, total, _ in seen} == {12}
    assert re.fullmatch(r"ndcg@5 0\.\d{4}", seen[-1][2])


def test_missing_and_infinite_features_are_taken(data):
    def holes(part: RankedLists, seed: int) -> RankedLists:
        features = part.features.copy()
        chosen = np.random.default_rng(seed).random(features.shape)
        features[chosen < 0.1] = np.nan
        features[(chosen > 0.1) & (chosen < 0.12)] = np.inf
        features[(chosen > 0.12) & (chosen < 0.14)] = -np.inf
        return replace(part, features=features)

    full_of_holes = replace(
        data, train=holes(data.train, 0), vali=holes(data.vali, 1), test=holes(data.test, 2)
    )
    fitted = learner.fit(full_of_holes, SMALL | {"n_trees": 40}, job())
    scores = fitted.predict(full_of_holes.test)
    assert np.isfinite(scores).all()
    random = np.random.default_rng(0).normal(size=len(scores))
    assert mean(scores, data.test, NDCG5) > mean(random, data.test, NDCG5) + 0.05


def test_a_query_longer_than_lightgbm_ranks_is_named(data):
    long = replace(
        data.train,
        features=np.zeros((10_003, 8), np.float32),
        labels=(np.arange(10_003) % 2).astype(np.float32),
        offsets=np.array([0, 2, 10_003]),
        query_ids=np.array([5, 77]),
    )
    with pytest.raises(DataError, match="query 77 of the training set has 10001 documents"):
        learner.fit(replace(data, train=long), SMALL, job())
    with pytest.raises(DataError, match="query 77 of the validation set"):
        learner.fit(replace(data, vali=long), SMALL, job())


def test_labels_that_are_not_grades_are_refused(data):
    for label in (0.5, -1.0, 5.0, np.nan):
        labels = data.train.labels.copy()
        labels[3] = label
        with pytest.raises(DataError, match="training set is not one of 0 … 4"):
            learner.fit(replace(data, train=replace(data.train, labels=labels)), SMALL, job())


def test_a_validation_part_without_relevant_documents_is_refused(data):
    nothing = replace(data.vali, labels=np.zeros_like(data.vali.labels))
    with pytest.raises(DataError, match="no query of the validation set has a relevant"):
        learner.fit(replace(data, vali=nothing), SMALL, job())


def test_trees_without_a_split_are_an_error_not_a_constant_model(data):
    with pytest.raises(TrainingError, match=r"no tree found a split in \d+ documents(.|\n)*lower"):
        learner.fit(data, SMALL | {"min_sum_hessian_in_leaf": 1e9}, job())


def test_scoring_lists_with_other_features_is_refused(data):
    fitted = learner.fit(data, SMALL, job())
    with pytest.raises(DataError, match="fitted to 8 features, but these lists have 5"):
        fitted.predict(lists(3, 0, n_features=5))


def test_a_part_of_packed_lists_is_fitted_and_scored_as_its_copy(data):
    part = RankedLists(
        data.train.features,
        data.train.labels,
        data.train.offsets[50:151],
        data.train.query_ids[50:150],
    )
    copy = data.train.select(np.arange(50, 150))
    scores = [
        learner.fit(replace(data, train=train), SMALL, job()).predict(part)
        for train in (part, copy)
    ]
    assert len(scores[0]) == part.n_documents
    np.testing.assert_array_equal(*scores)


def test_memory_mapped_features_reach_lightgbm_without_a_copy(data, tmp_path, monkeypatch):
    np.save(tmp_path / "features.npy", data.train.features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    handed_over = []
    flatten = lightgbm.basic._np2d_to_np1d

    def watch(matrix):
        flat, layout = flatten(matrix)
        handed_over.append(flat)
        return flat, layout

    monkeypatch.setattr(lightgbm.basic, "_np2d_to_np1d", watch)
    part = replace(data.train, features=mapped)
    fitted = learner.fit(replace(data, train=part), SMALL, job())
    fitted.predict(part)
    assert len(handed_over) == 3  # training, validation, scoring
    assert np.shares_memory(handed_over[0], mapped)
    assert np.shares_memory(handed_over[2], mapped)
