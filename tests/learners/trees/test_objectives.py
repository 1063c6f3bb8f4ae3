"""Every objective of every library of trees: what it learns, what it keeps, what it is given."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from directrank import learners
from directrank.learners.contract import Fitted, Splits
from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError, TrainingError
from tree_data import job, lists, mean_ndcg, splits

SMALL = {
    "lightgbm": {"num_leaves": 7, "min_data_in_leaf": 5, "min_sum_hessian_in_leaf": 0.001},
    "xgboost": {"max_depth": 3, "min_child_weight": 0.01},
    "catboost": {"max_depth": 3},
}
OBJECTIVES = [
    ("lightgbm", {}),
    ("lightgbm", {"norm": False}),
    ("lightgbm", {"truncation_level": 3}),
    ("lightgbm", {"objective": "rank_xendcg"}),
    ("xgboost", {}),
    ("xgboost", {"score_norm": False}),
    ("xgboost", {"pair_method": "mean", "n_pairs": 2, "norm": False}),
    ("xgboost", {"objective": "rank:ndcg"}),
    ("xgboost", {"objective": "rank:ndcg", "norm": False, "score_norm": False}),
    ("xgboost", {"objective": "rank:ndcg", "pair_method": "mean"}),
    ("xgboost", {"objective": "rank:map"}),
    ("catboost", {}),
    ("catboost", {"metric": "NDCG", "k": 10}),
    ("catboost", {"metric": "DCG", "gain": "linear"}),
    ("catboost", {"metric": "MRR"}),
    ("catboost", {"metric": "ERR"}),
    ("catboost", {"metric": "MAP"}),
    ("catboost", {"objective": "YetiRankPairwise"}),
    ("catboost", {"objective": "StochasticRank"}),
    ("catboost", {"objective": "StochasticRank", "metric": "ERR"}),
    ("catboost", {"objective": "QueryRMSE"}),
    ("catboost", {"objective": "QuerySoftMax"}),
    ("catboost", {"objective": "PairLogit"}),
    ("catboost", {"objective": "LambdaMart"}),
    ("catboost", {"objective": "LambdaMart", "metric": "NDCG", "k": 10}),
    ("catboost", {"objective": "LambdaMart", "metric": "MAP"}),
    ("lightgbm", {"bagging_by_query": True, "bagging_fraction": 0.5}),
]
#: One objective of each library.
LIBRARIES = [("lightgbm", {}), ("xgboost", {}), ("catboost", {})]


def needs(library: str) -> None:
    pytest.importorskip(library, reason=f"NOT TESTED: the learner {library} needs its package")


def named(objectives: list[tuple[str, dict]]) -> pytest.MarkDecorator:
    names = ["-".join(map(str, (library, *own.values()))) for library, own in objectives]
    return pytest.mark.parametrize(("library", "own"), objectives, ids=names)


def fit(library: str, data: Splits, settings: dict, **changes) -> Fitted:
    needs(library)
    given = SMALL[library] | {"n_trees": 20, "early_stopping_rounds": 0} | settings
    return learners.get(library).load()(data, given, job(**changes))


def saved(fitted: Fitted, folder: Path) -> bytes:
    fitted.save(folder / "model")
    (path,) = folder.glob("model.*")
    content = path.read_bytes()
    path.unlink()
    return content


def scores_of_saved(library: str, fitted: Fitted, folder: Path, part: RankedLists, n_trees: int):
    """Scores of the saved model's first ``n_trees`` trees, by the library alone."""
    fitted.save(folder / "model")
    if library == "lightgbm":
        import lightgbm

        booster = lightgbm.Booster(model_file=folder / "model.txt")
        return booster.predict(part.features, num_iteration=n_trees)
    if library == "xgboost":
        import xgboost

        booster = xgboost.Booster(model_file=folder / "model.json")
        return booster.inplace_predict(part.features, iteration_range=(0, n_trees))
    import catboost

    model = catboost.CatBoost().load_model(folder / "model.cbm")
    return model.predict(part.features, ntree_end=n_trees)


@pytest.fixture(scope="module")
def data() -> Splits:
    return splits()


@pytest.fixture(scope="module")
def fitted_once(data):
    """The fit of an objective with the settings of :data:`SMALL`, made once for all tests of it."""

    @cache
    def fitted(library: str, own: str) -> Fitted:
        return fit(library, data, json.loads(own))

    return lambda library, own: fitted(library, json.dumps(own))


@named(OBJECTIVES)
def test_an_objective_ranks_far_better_than_chance(data, fitted_once, library, own):
    fitted = fitted_once(library, own)
    draw = np.random.default_rng(0).normal
    chance = np.mean([mean_ndcg(draw(size=data.test.n_documents), data.test) for _ in range(20)])
    assert mean_ndcg(fitted.predict(data.test), data.test) > chance + 0.15


@named(OBJECTIVES)
def test_the_same_run_and_trial_give_the_same_bytes(data, fitted_once, tmp_path, library, own):
    first, again = fitted_once(library, own), fit(library, data, own)
    assert saved(first, tmp_path) == saved(again, tmp_path)
    assert first.predict(data.test).tobytes() == again.predict(data.test).tobytes()


@named(OBJECTIVES)
def test_the_history_is_the_studys_metric_of_every_number_of_trees(
    data, fitted_once, tmp_path, library, own
):
    fitted = fitted_once(library, own)
    assert [row["epoch"] for row in fitted.history] == list(range(1, 21))
    for row in fitted.history[::3]:
        scores = scores_of_saved(library, fitted, tmp_path, data.vali, row["epoch"])
        assert row["vali_metric"] == pytest.approx(mean_ndcg(scores, data.vali), abs=1e-12)


@named(OBJECTIVES)
def test_early_stopping_keeps_the_best_number_of_trees(data, library, own):
    fitted = fit(library, data, own | {"n_trees": 400, "early_stopping_rounds": 8})
    values = [row["vali_metric"] for row in fitted.history]
    best = 1 + int(np.argmax(values))
    assert fitted.info["best_epoch"] == best
    assert len(values) == min(best + 8, 400)
    assert fitted.info["stopped_early"] == (len(values) < 400)
    kept = mean_ndcg(fitted.predict(data.vali), data.vali)
    assert kept == pytest.approx(values[best - 1], abs=1e-12)


@named(OBJECTIVES)
def test_a_saved_model_scores_exactly_as_the_fit(data, tmp_path, library, own):
    fitted = fit(library, data, own | {"early_stopping_rounds": 3})
    n_trees = fitted.info["best_epoch"]
    loaded = scores_of_saved(library, fitted, tmp_path, data.test, n_trees)
    assert loaded.tobytes() == fitted.predict(data.test).tobytes()


@named(OBJECTIVES)
def test_missing_features_are_taken(data, library, own):
    def holes(part: RankedLists, seed: int) -> RankedLists:
        features = part.features.copy()
        features[np.random.default_rng(seed).random(features.shape) < 0.1] = np.nan
        return replace(part, features=features)

    full_of_holes = Splits(holes(data.train, 0), holes(data.vali, 1), holes(data.test, 2), 4)
    scores = fit(library, full_of_holes, own).predict(full_of_holes.test)
    assert np.isfinite(scores).all()
    assert mean_ndcg(scores, data.test) > mean_ndcg(data.test.features[:, 5], data.test) + 0.1


@named(LIBRARIES)
def test_infinite_features_are_taken_or_refused(data, library, own):
    features = data.train.features.copy()
    features[::50, 0], features[1::50, 0] = np.inf, -np.inf
    infinite = replace(data, train=replace(data.train, features=features))
    if library == "xgboost":
        with pytest.raises(TrainingError, match="contains `inf`"):
            fit(library, infinite, own)
    else:
        assert np.isfinite(fit(library, infinite, own).predict(infinite.train)).all()


@named(LIBRARIES)
def test_huge_and_tiny_features_rank_as_moderate_ones(data, library, own):
    def scaled(part: RankedLists) -> RankedLists:
        factors = np.array([1e30, 1e37, 1e-20, 1, 1e6, 1], np.float32)
        return replace(part, features=part.features * factors)

    given = Splits(*(scaled(part) for part in (data.train, data.vali, data.test)), 4)
    scores = fit(library, given, own | {"n_trees": 60}).predict(given.test)
    assert np.isfinite(scores).all()
    assert mean_ndcg(scores, data.test) > mean_ndcg(data.test.features[:, 0], data.test)


@named(OBJECTIVES)
def test_queries_of_one_document_and_without_documents_change_nothing_of_the_metric(
    data, fitted_once, library, own
):
    def with_short(part: RankedLists) -> RankedLists:
        """Each list followed by an empty one; two lists of one irrelevant document at the end."""
        features = np.concatenate([part.features, part.features[:2]])
        labels = np.concatenate([part.labels, np.zeros(2, np.float32)])
        end = part.n_documents
        offsets = np.concatenate([part.offsets.repeat(2)[1:], [end + 1, end + 2]])
        return RankedLists(features, labels, offsets, np.arange(len(offsets) - 1))

    short = with_short(data.vali)
    few = own | {"n_trees": 6}
    fitted = fit(library, replace(data, vali=short), few)
    plain = fitted_once(library, own)
    assert [row["vali_metric"] for row in fitted.history] == pytest.approx(
        [row["vali_metric"] for row in plain.history[:6]], abs=1e-12
    )
    trained = fit(library, replace(data, train=with_short(data.train)), few)
    assert np.isfinite(trained.predict(short)).all()
    assert len(trained.predict(short)) == short.n_documents


@named(LIBRARIES)
def test_labels_of_one_grade_per_query_are_refused(data, library, own):
    grades = np.repeat(np.arange(data.train.n_queries) % 3, data.train.lengths).astype(np.float32)
    alike = replace(data, train=replace(data.train, labels=grades))
    with pytest.raises(DataError, match="no query of the training set has two grades"):
        fit(library, alike, own)


@named([*OBJECTIVES[:1], *OBJECTIVES[3:5], *OBJECTIVES[7:8], *OBJECTIVES[10:]])
def test_many_grades_are_taken_or_refused(library, own):
    """LightGBM's own gains end at label 30; XGBoost's NDCG at 31."""

    def graded(part: RankedLists) -> RankedLists:
        return replace(part, labels=part.labels * 12)

    data = splits()
    many = Splits(*(graded(part) for part in (data.train, data.vali, data.test)), 37)
    if own.get("objective") == "rank:ndcg":
        with pytest.raises(DataError, match=r"labels up to 31; these go up to 36(.|\n)*pairwise"):
            fit(library, many, own)
    else:
        scores = fit(library, many, own).predict(many.test)
        assert np.isfinite(scores).all()
        assert mean_ndcg(scores, data.test) > mean_ndcg(data.test.features[:, 5], data.test) + 0.1


@named(LIBRARIES)
def test_memory_mapped_lists_are_fitted_and_scored_as_their_copy(
    data, fitted_once, tmp_path, library, own
):
    np.save(tmp_path / "features.npy", data.train.features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    part = replace(data.train, features=mapped)
    fitted, plain = fit(library, replace(data, train=part), own), fitted_once(library, own)
    assert fitted.predict(part).tobytes() == plain.predict(data.train).tobytes()


@named(LIBRARIES)
def test_what_progress_raises_ends_the_fit(data, library, own):
    class StopError(Exception):
        pass

    def stop(done: int, total: int, text: str) -> None:
        seen.append(done)
        if done == 4:
            raise StopError("enough")

    seen: list[int] = []
    with pytest.raises(StopError, match="enough"):
        fit(library, data, own, progress=stop)
    assert seen == [1, 2, 3, 4]


@named(LIBRARIES)
def test_trials_and_folds_have_random_numbers_of_their_own(data, library, own):
    settings = own | {"feature_fraction": 0.5}
    jobs = [{"trial": 0}, {"trial": 1}, {"trial": 0, "streams": "another"}]
    scores = {fit(library, data, settings, **each).predict(data.test).tobytes() for each in jobs}
    assert len(scores) == 3


@named([("lightgbm", {"objective": "rank_xendcg", "feature_fraction": 1.0})])
def test_xe_ndcg_draws_its_noise_anew_in_each_trial(data, library, own):
    scores = {fit(library, data, own, trial=n).predict(data.test).tobytes() for n in (0, 1)}
    assert len(scores) == 2


def test_a_leaf_without_weight_is_one_clear_error_and_its_remedy_helps():
    """The settings of RankLib, with lists whose pairs have no weight beyond the first document."""
    generator = np.random.default_rng(0)

    def one_relevant(n_queries: int) -> RankedLists:
        features = generator.normal(size=(n_queries * 24, 4)).astype(np.float32)
        noisy = (features[:, 0] + 0.3 * generator.normal(size=len(features))).reshape(-1, 24)
        labels = (noisy == noisy.max(axis=1, keepdims=True)).ravel().astype(np.float32)
        return RankedLists(features, labels, np.arange(n_queries + 1) * 24, np.arange(n_queries))

    data = Splits(*(one_relevant(n) for n in (20, 30, 30)), label_levels=2)
    settings = {"num_leaves": 10, "min_data_in_leaf": 1, "truncation_level": 1}
    with pytest.raises(TrainingError) as caught:
        fit("lightgbm", data, settings | {"min_sum_hessian_in_leaf": 0.0})
    assert "set model.min_sum_hessian_in_leaf above 0, e.g. to 0.001" in caught.value.remedy
    scores = fit("lightgbm", data, settings | {"min_sum_hessian_in_leaf": 0.001}).predict(data.test)
    assert mean_ndcg(scores, data.test) > mean_ndcg(data.test.features[:, 1], data.test) + 0.3


def test_the_same_number_of_documents_in_both_sets_does_not_confuse_catboost(data, tmp_path):
    same = replace(data, vali=replace(data.train, features=-data.train.features))
    fitted = fit("catboost", same, {})
    scores = scores_of_saved("catboost", fitted, tmp_path, same.vali, 7)
    assert fitted.history[6]["vali_metric"] == pytest.approx(mean_ndcg(scores, same.vali))


def test_catboost_scores_in_blocks_as_at_once(data, fitted_once, monkeypatch):
    from directrank.learners.trees import catboost

    fitted = fitted_once("catboost", {})
    scores = fitted.predict(data.test)
    monkeypatch.setattr(catboost, "BLOCK", 37)
    assert fitted.predict(data.test).tobytes() == scores.tobytes()


@named(LIBRARIES)
def test_scoring_lists_with_other_features_is_refused(fitted_once, library, own):
    with pytest.raises(DataError, match="fitted to 6 features, but these lists have 4"):
        fitted_once(library, own).predict(lists(3, 0, n_features=4))


@named(LIBRARIES)
def test_trees_without_a_split_are_an_error_not_a_constant_model(data, library, own):
    constant = replace(data.train, features=np.ones_like(data.train.features))
    with pytest.raises(TrainingError, match=r"no tree found a split|constant"):
        fit(library, replace(data, train=constant), own)
