"""The ranker with scikit-learn's interface: its conventions, and what it learns."""

from __future__ import annotations

import contextlib
import copy
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars
import pytest
import torch
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import _num_samples

from directrank import losses, metrics
from directrank.models.scorer import Scorer
from directrank.sklearn import DirectRanker
from directrank.system.errors import ConfigError, DataError
from training_data import made
from workflow_runs import ROOT

NAMES = [f"feature{number}" for number in range(5)]

#: Checks of scikit-learn that a ranker cannot pass, and what they do.
DIFFERENT = "give the documents of a query different weights"
EXCLUDED = {
    "check_sample_weights_not_overwritten": DIFFERENT,
    "check_sample_weight_equivalence_on_dense_data": DIFFERENT,
}


class Data:
    """Documents of some queries, and their queries in every form."""

    def __init__(self, queries: int, seed: int) -> None:
        lists = made(queries, seed)
        # Far from standardised, as features of real collections are.
        self.X = lists.features.astype(float) * [1e3, 1, 1e-3, 1, 5] + [1e4, 0, 0, -3, 0]
        self.y = lists.labels
        self.group = lists.lengths
        self.qid = np.repeat(np.arange(queries) + 100, self.group)
        self.frame = pd.DataFrame(self.X, columns=NAMES)


@pytest.fixture(scope="module")
def train() -> Data:
    return Data(40, 0)


@pytest.fixture(scope="module")
def test() -> Data:
    return Data(30, 2)


def ranker(**settings) -> DirectRanker:
    """A small ranker on the CPU that is the same in each call."""
    return DirectRanker(
        **{"max_epochs": 3, "random_state": 0, "batch_queries": 8, "device": "cpu"} | settings
    )


def per_query_ndcg(scores, data: Data) -> np.ndarray:
    return metrics.ndcg(scores, data.y, lengths=data.group, k=10).numpy()


class InQueriesOfFive(DirectRanker):
    """Takes the queries that scikit-learn's checks do not give."""

    def fit(self, X, y, *, sample_weight=None):
        return super().fit(X, y, qid=self._ids(X), sample_weight=sample_weight)

    def score(self, X, y):
        return super().score(X, y, qid=self._ids(X))

    @staticmethod
    def _ids(X):
        try:
            return np.arange(_num_samples(X)) // 5
        except TypeError:
            return np.arange(0)


def test_it_passes_every_check_of_scikit_learn_that_knows_queries():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(InQueriesOfFive(max_epochs=2, device="cpu"), on_fail=None)
    status = {each["check_name"]: each["status"] for each in found}
    assert {name for name, each in status.items() if each == "failed"} == set(EXCLUDED)
    skipped = {name for name, each in status.items() if each == "skipped"}
    assert skipped <= {"check_array_api_input"}  # needs an environment variable
    assert len(status) > 40


@pytest.mark.slow
@pytest.mark.parametrize("scorer", ["network", "linear", "context"])
def test_it_learns_what_the_features_say(scorer, train, test):
    found = ranker(scorer=scorer, max_epochs=40, random_state=1).fit(
        train.X, train.y, group=train.group
    )
    score = found.score(test.X, test.y, group=test.group)
    assert score > 0.93
    assert score > np.nanmean(per_query_ndcg(np.zeros(len(test.y)), test)) + 0.1
    predicted = found.predict(test.X, group=test.group)
    assert predicted.shape == (len(test.y),)
    assert score == pytest.approx(np.nanmean(per_query_ndcg(predicted, test)))


def test_one_line_takes_the_place_of_lightgbms_ranker(train, test):
    lightgbm = pytest.importorskip("lightgbm")
    for kind in (
        lightgbm.LGBMRanker(n_estimators=5, min_child_samples=2, verbose=-1),
        ranker(),
    ):
        kind.fit(
            train.X,
            train.y,
            group=train.group,
            eval_set=[(test.X, test.y)],
            eval_group=[test.group],
        )
        assert np.nanmean(per_query_ndcg(kind.predict(test.X), test)) > 0.8


def test_every_way_to_give_queries_gives_the_same_ranker(train, test):
    expected = ranker().fit(train.X, train.y, group=train.group).predict(test.X)
    names = np.array([f"q{id}" for id in train.qid])
    with_ids = train.frame.assign(qid=train.qid)
    # Documents of different queries in turn; those of a query keep their order.
    rank = np.concatenate([np.arange(n) for n in train.group])
    mixed = np.lexsort((train.qid, rank))
    for found in (
        ranker().fit(train.X, train.y, qid=train.qid),
        ranker().fit(train.X, train.y, qid=names),
        ranker().fit(train.X, train.y, qid=pd.Series(train.qid)),
        ranker().fit(train.X, train.y, group=pd.Series(train.group)),
        ranker().fit(train.X, train.y, group=[*list(train.group.astype(float)), 0]),
        ranker().fit(train.X[mixed], train.y[mixed], qid=train.qid[mixed]),
        ranker().fit(with_ids, pd.Series(train.y)),
        ranker().fit(polars.DataFrame(with_ids.to_dict("list")), train.y),
    ):
        X = test.X if found.scorer_.features is None else test.frame
        np.testing.assert_array_equal(found.predict(X), expected)


def test_scores_of_a_context_aware_scorer_depend_on_the_query_and_not_on_its_place(train, test):
    found = ranker(scorer="context", max_epochs=1).fit(train.X, train.y, group=train.group)
    expected = found.predict(test.X, group=test.group)
    order = np.random.default_rng(0).permutation(len(test.X))
    mixed = found.predict(test.X[order], qid=test.qid[order])
    np.testing.assert_allclose(mixed, expected[order], rtol=1e-4, atol=1e-5)
    alone = found.predict(test.X, qid=np.arange(len(test.X)))
    assert np.abs(alone - expected).max() > 0.01
    with pytest.raises(ValueError, match="neither of group and qid"):
        found.predict(test.X)


def test_the_best_epoch_on_the_validation_set_is_kept_and_ends_training(train, test):
    found = ranker(max_epochs=200, patience=3)
    found.fit(train.X, train.y, group=train.group, eval_set=(test.X, test.y), eval_qid=test.qid)
    course = [row["vali_metric"] for row in found.history_]
    assert len(course) == found.best_epoch_ + 3 < 200
    assert int(np.argmax(course)) + 1 == found.best_epoch_
    assert found.score(test.X, test.y, qid=test.qid) == pytest.approx(max(course))
    whole = ranker(max_epochs=12, patience=3).fit(train.X, train.y, group=train.group)
    assert whole.best_epoch_ == len(whole.history_) == 12
    assert all(np.isnan(row["vali_metric"]) for row in whole.history_)


def test_the_random_state_decides_everything(train, test):
    first, same = (ranker().fit(train.X, train.y, qid=train.qid) for _ in range(2))
    np.testing.assert_array_equal(first.predict(test.X), same.predict(test.X))
    for other in (1, np.random.RandomState(5), None):
        found = ranker(random_state=other).fit(train.X, train.y, qid=train.qid)
        assert np.abs(found.predict(test.X) - first.predict(test.X)).max() > 0.01


@pytest.mark.parametrize(
    "scorer",
    [{"name": "linear"}, {"name": "tower", "hidden": np.array([8])}],
    ids=["linear", "tower"],
)
def test_a_weight_of_two_is_the_query_twice_and_a_weight_of_zero_none(scorer, train, test):
    # A single step per epoch, so that the two draw the same batches.
    settings = {"scorer": scorer, "batch_queries": 100, "max_epochs": 5}
    weights = np.array([2.0, 1, 0, 1] * 10)
    rows = np.repeat(weights, train.group)
    weighted = ranker(**settings).fit(train.X, train.y, group=train.group, sample_weight=weights)
    each = ranker(**settings).fit(train.X, train.y, group=train.group, sample_weight=7 * rows)
    np.testing.assert_allclose(each.predict(test.X), weighted.predict(test.X), rtol=1e-5, atol=1e-6)
    places = np.flatnonzero(rows)
    single = ranker(**settings).fit(train.X[places], train.y[places], qid=train.qid[places])
    assert np.abs(single.predict(test.X) - weighted.predict(test.X)).max() > 1e-3
    places = np.concatenate([places, np.flatnonzero(rows == 2)])
    ids = np.concatenate([train.qid[rows > 0], train.qid[rows == 2] + 1000])
    twice = ranker(**settings).fit(train.X[places], train.y[places], qid=ids)
    if scorer["name"] == "linear":  # batch norm averages over documents, which have no weights
        np.testing.assert_allclose(
            twice.predict(test.X), weighted.predict(test.X), rtol=1e-4, atol=1e-5
        )
    zeros = ranker(**settings).fit(
        train.X, train.y, group=train.group, sample_weight=(weights > 0).astype(int)
    )
    np.testing.assert_allclose(zeros.predict(test.X), single.predict(test.X), rtol=1e-6, atol=1e-7)


@contextlib.contextmanager
def _global(set_, value, before):
    set_(value)
    try:
        yield
    finally:
        set_(before)


#: What a caller may have set of PyTorch.
MODES = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "set_grad_enabled": lambda: _global(torch.set_grad_enabled, False, True),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "default type": lambda: _global(torch.set_default_dtype, torch.float64, torch.float32),
    "default device": lambda: _global(torch.set_default_device, "meta", None),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scorer", ["network", "linear", "context"])
def test_what_the_caller_has_set_of_pytorch_changes_nothing(scorer, mode, train, test):
    def fitted() -> DirectRanker:
        return ranker(scorer=scorer, max_epochs=1).fit(train.X, train.y, group=train.group)

    found = fitted()
    before, known = pickle.dumps(found), found.predict(test.X, group=test.group)
    with MODES[mode]():
        other = fitted()
        for each in (other, pickle.loads(before)):
            np.testing.assert_array_equal(each.predict(test.X, group=test.group), known)
        state = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_default_device()
    np.testing.assert_array_equal(other.predict(test.X, group=test.group), known)
    assert state == {
        "default type": (True, torch.float64, torch.device("cpu")),
        "default device": (True, torch.float32, torch.device("meta")),
        "autocast": (True, torch.float32, torch.device("cpu")),
    }.get(mode, (False, torch.float32, torch.device("cpu")))


def test_the_score_is_the_weighted_mean_of_ndcg(train, test):
    found = ranker().fit(train.X, train.y, group=train.group)
    values = per_query_ndcg(found.predict(test.X), test)
    weights = np.arange(30.0)
    known = ~np.isnan(values)
    expected = np.average(values[known], weights=weights[known])
    score = found.score(test.X, test.y, group=test.group, sample_weight=weights)
    assert score == pytest.approx(expected)
    assert score != pytest.approx(np.nanmean(values), abs=1e-6)


@pytest.mark.slow
def test_a_grid_is_searched_over_a_frame_with_ids(train):
    frame = train.frame.assign(qid=train.qid)
    grid = {"loss": ["listnet", {"name": "approx_ndcg", "alpha": 5}],
            "learning_rate": [1e-9, 0.03]}  # fmt: skip
    search = GridSearchCV(ranker(), grid, cv=GroupKFold(3))
    search.fit(frame, train.y, groups=train.qid)
    assert search.best_params_["learning_rate"] == 0.03
    assert search.best_score_ > search.cv_results_["mean_test_score"].min() + 0.05
    assert list(search.best_estimator_.feature_names_in_) == NAMES
    first = next(GroupKFold(3).split(frame, train.y, train.qid))
    again = clone(search.best_estimator_).fit(frame.iloc[first[0]], train.y[first[0]])
    score = again.score(frame.iloc[first[1]], train.y[first[1]])
    assert score == search.cv_results_["split0_test_score"][search.best_index_]


def test_a_pipeline_takes_queries_and_its_grid_is_searched_with_metadata_routing(train, test):
    pipeline = make_pipeline(StandardScaler(), ranker(scorer="context"))
    pipeline.fit(train.X, train.y, directranker__group=train.group)
    assert pipeline.predict(test.X, group=test.group).shape == test.y.shape
    with config_context(enable_metadata_routing=True):
        asking = ranker().set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), asking),
            {"directranker__learning_rate": [1e-9, 0.03]},
            cv=GroupKFold(3),
        )
        search.fit(train.X, train.y, qid=train.qid, groups=train.qid)
        assert search.best_params_ == {"directranker__learning_rate": 0.03}
        assert search.score(test.X, test.y, qid=test.qid) > 0.8


@pytest.mark.parametrize("scorer", ["network", "context"])
def test_a_ranker_is_saved_and_loaded_without_pickle(scorer, train, test, tmp_path):
    alpha = np.float32(5) if scorer == "network" else torch.tensor(5.0)
    settings = {"loss": {"name": "approx_ndcg", "alpha": alpha}, "max_epochs": np.int64(2)}
    found = ranker(scorer=scorer, **settings).fit(train.frame, train.y, group=train.group)
    file = tmp_path / "ranker.npz"
    found.save(file)
    with np.load(file, allow_pickle=False) as content:
        assert all(content[name].dtype != object for name in content.files)
    again = DirectRanker.load(file)
    expected = found.predict(test.frame, group=test.group)
    np.testing.assert_array_equal(again.predict(test.frame, group=test.group), expected)
    assert again.get_params() == found.get_params()
    assert again.history_ == found.history_ or np.isnan(found.history_[0]["vali_metric"])
    assert again.best_epoch_ == found.best_epoch_ == 2
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(test.frame[NAMES[::-1]], group=test.group)
    np.testing.assert_array_equal(Scorer.load(file)(test.X, test.group), expected)
    for copied in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        np.testing.assert_array_equal(copied.predict(test.frame, group=test.group), expected)


def test_what_is_no_saved_ranker_is_one_error(tmp_path):
    with pytest.raises(NotFittedError):
        DirectRanker().save(tmp_path / "new.npz")
    scorer = Scorer({"name": "linear"}, {}, np.zeros(2), np.ones(2))
    scorer.save(tmp_path / "scorer.npz")
    with pytest.raises(DataError, match="without the parameters of a ranker"):
        DirectRanker.load(tmp_path / "scorer.npz")


@pytest.mark.parametrize(
    "loss", ["rmse", "neural_ndcg", "pl_rank", {"name": "composed", "metric": "err",
                                               "relaxation": {"name": "lapsum"}}]
)  # fmt: skip
def test_losses_of_every_kind_train_it(loss, train, test):
    found = ranker(loss=loss, max_epochs=25).fit(train.X, train.y, group=train.group)
    assert found.score(test.X, test.y, group=test.group) > 0.85


def test_documents_without_variation_and_queries_without_relevance_do_no_harm(train, test):
    X = np.hstack([train.X, np.full((len(train.X), 1), 1e30)])
    found = ranker(max_epochs=20).fit(X, train.y, group=train.group)
    wide = np.hstack([test.X, np.full((len(test.X), 1), 1e30)])
    assert found.score(wide, test.y, group=test.group) > 0.85
    assert np.isnan(found.score(wide, 0 * test.y, group=test.group))


def test_sparse_features_are_one_clear_error(train):
    with pytest.raises(TypeError, match="dense data is required"):
        ranker().fit(sparse.csr_matrix(train.X), train.y, group=train.group)


#: What is given in place of a proper argument → the error.
WRONG = {
    "neither of group and qid": {"group": None},
    "both of group and qid": {"qid": "qid"},
    "ids of queries are given as qid": {"group": "qid"},
    r"group adds up to 3, but there are \d+ documents": {"group": [1, 2]},
    "group is not a list of whole numbers": {"group": ["a"]},
    r"qid \(3,\) must be": {"group": None, "qid": [1, 2, 3]},
    "qid has missing values": {"group": None, "qid": "missing"},
    "a label is -1": {"y": -1},
    "sample_weight differs between documents": {"sample_weight": "varied"},
    r"sample_weight \[3\] must be \[40\]": {"sample_weight": [1, 1, 1]},
    "sample_weight is negative": {"sample_weight": [-1] * 40},
    "neither of eval_group and eval_qid": {"eval_set": "itself"},
    "eval_set has 2 elements": {"eval_set": ["a", "b"]},
    "no query of the validation set": {"eval_set": "irrelevant", "eval_group": "group"},
    "group is not a list of numbers": {"group": 8},
    "a number of group is -1": {"group": "negative"},
    "labels are not numbers": {"y": "good"},
    "a label is NaN": {"y": None},
    "eval_group is not a list of numbers": {"eval_set": "itself", "eval_group": "nested"},
    "eval_group is not a list of": {"eval_set": "listed", "eval_group": [80]},
    "eval_group has 40 elements": {"eval_set": "listed", "eval_group": "sizes"},
    "eval_group is given without eval_set": {"eval_group": "group"},
    "eval_qid is given without eval_set": {"eval_qid": "qid"},
    "eval_set is not a pair": {"eval_set": 5},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_input_is_an_error_that_says_what_to_do(message, train):
    special = {
        "qid": train.qid,
        "group": train.group,
        "missing": np.where(train.qid == 101, np.nan, train.qid),
        "varied": np.arange(len(train.y)),
        "itself": (train.X, train.y),
        "irrelevant": (train.X, 0 * train.y),
        "negative": [-1, len(train.y) + 1],
        "listed": [(train.X, train.y)],
        "nested": [train.group],
        "sizes": train.group.tolist(),
    }
    given = {
        key: special.get(value, value) if isinstance(value, str) else value
        for key, value in WRONG[message].items()
    }
    y = np.full(len(train.y), given.pop("y")) if "y" in given else train.y
    with pytest.raises(ValueError, match=message) as caught:
        ranker().fit(train.X, y, **{"group": train.group} | given)
    assert caught.value.remedy


def test_queries_are_given_once(train):
    with pytest.raises(ValueError, match="has a column 'qid', and queries are given as well"):
        ranker().fit(train.frame.assign(qid=train.qid), train.y, qid=train.qid)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "lambdaranks"}, "did you mean 'lambdarank'"),
        ({"loss": {"name": "approx_ndcg", "alfa": 5}}, "no setting 'alfa'"),
        ({"scorer": "contxt"}, "did you mean 'context'"),
        ({"scorer": {"name": "tower"}}, "hidden"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'"),
        ({"max_epochs": 0}, "max_epochs is 0"),
        ({"batch_queries": 0.5}, "batch_queries is 0.5"),
        ({"patience": -1}, "patience is -1"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"loss": {"name": "approx_ndcg", "alpha": 0}}, "alpha must be .* above 0, not 0"),
        ({"loss": {"name": "approx_ndcg", "reduction": "sum"}}, "no setting 'reduction'"),
        ({"scorer": {"name": "tower", "hidden": [0]}}, r"hidden is \[0\]"),
        ({"loss": "sl_at_k"}, "loss 'sl_at_k' needs the setting 'k'\n.*'k': …"),
        ({"loss": None}, "loss is None, which has no name"),
        ({"loss": {"alpha": 5}}, "loss is {'alpha': 5}, which has no name"),
        ({"scorer": None}, "scorer is None, which has no name"),
        ({"scorer": {}}, "scorer is {}, which has no name"),
        ({"device": None}, "unknown device None"),
        ({"patience": "long"}, "patience is 'long'"),
    ],
)
def test_a_setting_that_is_not_valid_is_one_error(settings, message, train):
    with pytest.raises(ConfigError, match=message) as caught:
        ranker(**settings).fit(train.X, train.y, group=train.group)
    assert isinstance(caught.value, ValueError)


@pytest.mark.slow
def test_without_scikit_learn_the_error_names_the_extra():
    code = """
import sys
sys.modules["sklearn"] = None
try:
    from directrank.sklearn import DirectRanker
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install '.[sklearn]'" in done.stdout


def test_every_loss_may_be_named():
    assert all(DirectRanker(loss=name).get_params()["loss"] == name for name in losses.REGISTRY)


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/sklearn.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks[0].strip().splitlines()) <= 6, "a first model in five lines, and a blank one"
    exec("\n".join(blocks), {})
    ndcg, best, same = capsys.readouterr().out.splitlines()
    assert 0 < float(ndcg) <= 1
    assert "learning_rate" in best
    assert same == "True"
    for name, reason in EXCLUDED.items():
        assert f"`{name}`" in page
        assert reason in page
