"""Pulls on pairs of documents against the whole gradient, and what the gradient types change."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from directrank import losses
from directrank.learners.contract import FitJob, Splits
from directrank.learners.neural.fit import fit_many
from directrank.learners.neural.monitor_pairs import pair_gradients, pulls, tied_pairs
from directrank.lists.packed import RankedLists
from directrank.system.seeds import numpy_stream, torch_stream

METRICS = ("precision", "ap", "ndcg", "nerr")
TWINS = [
    {"name": f"twin_{metric}", "gradient": f"type{number}"}
    for metric in METRICS
    for number in (1, 2, 3)
]


def made(queries: int = 12, name: str = "train") -> RankedLists:
    stream = numpy_stream("pairs", name)
    lengths = stream.integers(10, 25, queries)
    features = stream.normal(size=(lengths.sum(), 5)).astype(np.float32)
    labels = np.clip(np.round(features[:, 0] + 0.8 + stream.normal(size=len(features))), 0, 4)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return RankedLists(features, labels.astype(np.float32), offsets, np.arange(queries))


def padded(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    g = torch_stream("padded pairs", seed)
    scores = torch.randn(4, 9, generator=g, dtype=torch.float64)
    labels = torch.randint(0, 4, (4, 9), generator=g).double()
    mask = torch.arange(9) < torch.tensor([[9], [5], [7], [9]])
    return scores, labels.masked_fill(~mask, 0.0), mask


@pytest.mark.parametrize(
    "settings",
    [*TWINS, {"name": "twin_ndcg", "alpha_b": 0.5, "k": 4}, {"name": "approx_ndcg", "alpha": 10.0}],
    ids=str,
)
def test_pulls_are_opposite_and_add_up_to_the_whole_gradient(settings):
    scores, labels, mask = padded()
    pull = pulls(settings, scores, labels, mask)
    assert torch.equal(pull, -pull.transpose(1, 2))
    leaf = scores.clone().requires_grad_()
    options = {key: value for key, value in settings.items() if key != "name"}
    loss = losses.get(settings["name"])(leaf, labels, mask, **options)
    (slope,) = torch.autograd.grad(loss.sum(), leaf)
    assert torch.allclose(pull.sum(2), -slope, atol=1e-10)
    assert pull.abs().sum() > 0


def test_losses_that_see_more_than_ranks_have_no_pulls():
    assert pulls({"name": "listnet"}, *padded()) is None
    assert pulls({"name": "approx_ndcg", "k": 3}, *padded()) is None


@pytest.mark.parametrize("metric", METRICS)
def test_types_2_and_3_never_pull_against_the_labels_and_type_1_does(metric):
    lists = made()
    scores = torch.randn(3, lists.n_documents, generator=torch_stream("scores"))
    settings = [{"name": f"twin_{metric}", "gradient": f"type{number}"} for number in (1, 2, 3)]
    found = pair_gradients(scores, lists, settings)
    against = found["pull_against_labels"]
    assert against[0] > 0.01
    assert against[1] == against[2] == 0
    assert found["pull_against_labels_relevant"][0] > against[0]
    # Type 3 does not let go of a pair that is badly ordered; the others do.
    far = found["pull_on_far_apart"]
    assert far[2] > 1.3 * far[1]
    assert far[1] < 1
    assert np.ptp(found["pairs_badly_ordered"]) > 0


def test_columns_by_hand_for_one_query():
    lists = RankedLists(
        np.zeros((3, 1), np.float32),
        np.array([2.0, 1.0, 0.0], np.float32),
        np.array([0, 3]),
        np.array([7]),
    )
    scores = torch.tensor([[0.0, 1.0, 0.5]])
    found = pair_gradients(scores, lists, [{"name": "twin_ndcg", "gradient": "type1"}])
    assert found["pairs_badly_ordered"][0] == pytest.approx(2 / 3)
    # d(-NDCG)/d rank of the documents at ranks 3, 1 and 2, up to a factor.
    slopes = [
        gain / (np.log2(rank + 1) ** 2 * (rank + 1)) for gain, rank in ((3, 3), (1, 1), (0, 2))
    ]
    bell = {z: 1 / ((1 + np.exp(-z)) * (1 + np.exp(z))) for z in (-1.0, -0.5, 0.5)}
    pull = [
        (slopes[0] - slopes[1]) * bell[-1.0],
        (slopes[0] - slopes[2]) * bell[-0.5],
        (slopes[1] - slopes[2]) * bell[0.5],
    ]
    assert pull[0] < 0 < min(pull[1:])
    assert found["pull_against_labels"][0] == pytest.approx(1 / 3)
    assert found["pull_against_labels_relevant"][0] == 1
    size = np.abs(pull)
    assert found["pull_on_badly_ordered"][0] == pytest.approx(size[:2].mean() / size.mean())
    # The scores' standard deviation is 0.41: both bad pairs are further apart.
    assert found["pull_on_far_apart"][0] == pytest.approx(size[:2].mean() / size.mean())
    net = [pull[0] + pull[1], pull[2] - pull[0], -pull[1] - pull[2]]
    expected = np.mean([net[0] < net[1], net[0] < net[2], net[1] < net[2]])
    assert found["net_against_labels"][0] == pytest.approx(expected)


def test_tied_pairs_are_counted_within_queries():
    lists = RankedLists(
        np.zeros((7, 1), np.float32), np.zeros(7, np.float32), np.array([0, 4, 7]), np.arange(2)
    )
    scores = torch.tensor([[1.0, 1.0, 1.0, 2.0, 1.0, 2.0, 3.0], [0.0] * 7])
    assert tied_pairs(scores, lists, [{}, {}])["tied_pairs"].tolist() == [0.25, 1.0]


@pytest.mark.parametrize("norm", ["query", "batch"])
def test_trials_trained_together_are_those_trained_alone_dropout_included(norm):
    data = Splits(made(), made(6, "vali"), made(6, "test"), label_levels=5)
    training = {
        "optimizer": {"name": "adam", "lr": 0.01, "weight_decay": 0.001},
        "schedule": {"name": "step", "every": 2, "factor": 0.5},
        "batch_queries": 5,
        "max_epochs": 8,
        "patience": 1,
        "dtype": "float64",
    }
    model = {"name": "feed_forward", "activation": "celu", "output_activation": False}
    model |= {"hidden": [6, 6, 6], "norm": norm, "dropout": 0.2}
    fits = []
    for stack in (1, 0):
        settings = {
            "model": model,
            "loss": {"name": "twin_ndcg"},
            "training": training | {"stack": stack},
        }
        jobs = [
            FitJob("run", trial, {"name": "ndcg", "k": 5}, 1, "cpu", lambda *_: None)
            for trial in range(5)
        ]
        fits.append(fit_many(data, [settings] * 5, jobs))
    for alone, together in zip(*fits, strict=True):
        # A shift of all scores changes no ranking loss: the last bias follows rounding errors.
        scores = [
            fit.predict(data.test) - fit.predict(data.test).mean() for fit in (alone, together)
        ]
        assert np.allclose(*scores, atol=1e-6)
        assert alone.info["epochs"] == together.info["epochs"]
    assert len({fit.info["epochs"] for fit in fits[0]}) > 1  # some leave the stack before others


def test_a_run_records_pairs_ties_and_the_test_metric_of_each_epoch_and_learns_the_same():
    data = Splits(made(), made(6, "vali"), made(6, "test"), label_levels=5)
    metric = {"name": "ndcg", "k": 5}
    quantities = [
        {"quantity": "metric", "metric": metric, "split": "test"},
        {"quantity": "pair_gradients"},
        {"quantity": "tied_pairs", "split": "test"},
    ]
    settings = {
        "model": {
            "name": "feed_forward",
            "activation": "relu",
            "output_activation": True,
            "hidden": [6, 6],
        },
        "loss": {"name": "twin_ap", "gradient": "type1"},
        "training": {
            "optimizer": {"name": "adam", "lr": 0.01},
            "batch_queries": 4,
            "max_epochs": 3,
        },
    }
    job = FitJob("run", 0, metric, 1, "cpu", lambda done, total, text: None)
    plain = fit_many(data, [settings], [job])[0]
    settings["training"]["monitor"] = {"quantities": quantities}
    watched = fit_many(data, [settings], [job])[0]
    assert plain.predict(data.test).tobytes() == watched.predict(data.test).tobytes()
    for row in watched.history:
        assert 0 < row["train_pull_against_labels"] < 0.5
        assert 0.1 < row["test_tied_pairs"] < 0.6  # half of a query's scores are at ReLU's zero
        assert row["train_loss"] == plain.history[row["epoch"] - 1]["train_loss"]
    assert watched.history[-1]["test_ndcg@5"] > 0.3
