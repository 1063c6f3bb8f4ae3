"""The compiled passes of Burges2006 give what the general engine gives, and V1 what V2 gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from directrank import learners, models
from directrank.data.cubic import generate
from directrank.kernels.per_query import LAWS
from directrank.learners.contract import FitJob, Fitted, Splits, no_progress
from directrank.lists.packed import RankedLists
from directrank.losses._lambda_family import FORCES
from directrank.system.errors import ConfigError

RATES = [1e-4, 1e-3]
NETS = {
    "linear": {"name": "linear", "init_bound": None},
    "two layer": {"name": "two_layer", "hidden": 4},
}


@pytest.fixture(scope="module")
def data() -> Splits:
    """A little of the artificial data."""
    settings = {"queries": {"train": 25, "vali": 20, "test": 2}, "documents_per_query": 12}
    parts = generate({**settings, "n_features": 6})
    return Splits(parts["train"], parts["vali"], parts["test"], 5)


def fitted(learner: str, data: Splits, net: str, loss: dict, **training) -> list[Fitted]:
    """One model per learning rate, trained together."""
    settings = [
        {
            "model": NETS[net],
            "loss": loss,
            "training": {
                "optimizer": {"name": "sgd", "lr": rate},
                "batch_queries": 1,
                "reduction": "sum",
                "max_epochs": 3,
                "stack": 0,
                "dtype": "float64",
                **training,
            },
        }
        for rate in RATES
    ]
    jobs = [FitJob("run", 0, {"name": "ndcg", "k": 5}, 1, "cpu", no_progress) for _ in RATES]
    return learners.get(learner).load()(data, settings, jobs)


def lists_of_two(lists: RankedLists) -> RankedLists:
    """The first two documents of each query whose labels differ."""
    chosen = []
    for begin, end in zip(lists.offsets, lists.offsets[1:], strict=False):
        labels = lists.labels[begin:end]
        other = np.flatnonzero(labels != labels[0])
        if len(other):
            chosen += [begin, begin + other[0]]
    queries = len(chosen) // 2
    return RankedLists(
        lists.features[chosen], lists.labels[chosen], np.arange(queries + 1) * 2, np.arange(queries)
    )


def column(models: list[Fitted], name: str) -> list[list[float]]:
    """A column of each model's history."""
    return [[row[name] for row in model.history] for model in models]


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize(
    "loss",
    [
        {"name": "ranknet"},
        {"name": "lambdarank"},
        {"name": "lambdarank", "gain": "burges2006"},
        *(
            {"name": "lambda_family", "force": force, "pairs": pairs, "margin": 0.3}
            for force in FORCES
            for pairs in ("all", "neighbours")
        ),
    ],
    ids=lambda loss: "-".join(map(str, loss.values())),
)
def test_compiled_passes_train_what_the_engine_trains(data, net, loss):
    theirs = fitted("neural", data, net, loss, keep="last")
    ours = fitted("per_query", data, net, loss, keep="last")
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(b.predict(data.test), a.predict(data.test), rtol=1e-9)
    assert column(ours, "vali_metric") == column(theirs, "vali_metric")


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("learner", ["ranknet_v1", "ranknet_v2", "ranknet_v2_stored"])
def test_every_way_to_update_per_query_gives_the_same_weights(data, learner, net):
    fast = fitted("per_query", data, net, {"name": "ranknet"}, keep="last")
    slow = fitted(learner, data, net, {"name": "ranknet"}, keep="last")
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(b.predict(data.test), a.predict(data.test), rtol=1e-9)
    np.testing.assert_allclose(column(slow, "train_loss"), column(fast, "train_loss"), rtol=1e-9)


@pytest.mark.parametrize("net", NETS)
def test_an_update_per_pair_is_one_per_query_where_each_query_is_a_pair(data, net):
    pairs = replace(data, train=lists_of_two(data.train))
    each, batch = (
        fitted(learner, pairs, net, {"name": "ranknet"}, keep="last")
        for learner in ("ranknet_v1_each_pair", "ranknet_v1")
    )
    for a, b in zip(each, batch, strict=True):
        np.testing.assert_allclose(a.predict(data.test), b.predict(data.test), rtol=1e-9)
    np.testing.assert_allclose(column(each, "train_loss"), column(batch, "train_loss"), rtol=1e-9)


def test_an_update_per_pair_sees_the_weights_that_the_pair_before_it_left(data):
    one = replace(data, train=data.train.select(np.array([0])))
    settings = {"keep": "last", "max_epochs": 1}
    found = fitted("ranknet_v1_each_pair", one, "linear", {"name": "ranknet"}, **settings)
    still = fitted(
        "ranknet_v1", one, "linear", {"name": "ranknet"}, **settings,
        optimizer={"name": "sgd", "lr": 1e-30},
    )  # fmt: skip
    x, y = one.train.features.astype(np.float64), one.train.labels
    probe = data.vali.features.astype(np.float64)
    for model, start, rate in zip(found, still, RATES, strict=True):
        w = np.linalg.lstsq(probe, start.predict(data.vali), rcond=None)[0]
        falling = np.argsort(-y, kind="stable")
        for i in falling:
            for j in falling:
                if y[i] > y[j]:
                    w += rate * (x[i] - x[j]) / (1 + np.exp((x[i] - x[j]) @ w))
        np.testing.assert_allclose(model.predict(data.vali), probe @ w, rtol=1e-6)


def test_cost_of_ranknet_is_its_loss_and_that_of_lambdarank_is_ndcg_at_10(data):
    """Section 6.3; a rate so small that the weights stay shows both at the initial weights."""
    loss = {"name": "ranknet"}
    theirs, ours = (fitted(learner, data, "linear", loss) for learner in ("neural", "per_query"))
    np.testing.assert_allclose(column(ours, "train_loss"), column(theirs, "train_loss"), rtol=1e-9)
    watch = {"quantities": [{"quantity": "metric", "metric": {"name": "ndcg", "k": 10}}]}
    still = {"optimizer": {"name": "sgd", "lr": 1e-30}, "monitor": watch}
    model = fitted("per_query", data, "linear", {"name": "lambdarank"}, **still)[0]
    watched = [key for key in model.history[0] if "ndcg@10" in key]
    assert len(watched) == 1
    assert model.history[0]["train_loss"] == pytest.approx(1 - model.history[0][watched[0]])


def test_schedule_and_restarts_are_the_engines(data):
    settings = {
        "schedule": {"name": "on_worse_cost", "factor": 0.8},
        "restart_after": 1,
        "max_epochs": 12,
        "optimizer": {"name": "sgd", "lr": 0.5},
    }
    theirs, ours = (
        fitted(learner, data, "linear", {"name": "ranknet"}, **settings)
        for learner in ("neural", "per_query")
    )
    assert column(ours, "vali_metric") == column(theirs, "vali_metric")
    assert [model.info["redrawn"] for model in ours] == [model.info["redrawn"] for model in theirs]
    assert ours[0].info["redrawn"] > 0


def test_two_layer_net_is_a_tanh_layer_and_a_linear_output(data):
    model = models.build(NETS["two layer"], 6, [torch.Generator().manual_seed(s) for s in (0, 1)])
    with torch.no_grad():
        model.hidden.bias.uniform_()
        found = model(torch.from_numpy(data.test.features)[None])
        for m in range(2):
            hidden = np.tanh(data.test.features @ model.hidden.weight[m].numpy()
                             + model.hidden.bias[m].numpy())  # fmt: skip
            expected = (hidden @ model.output.weight[m].numpy())[:, 0]
            np.testing.assert_allclose(found[m].numpy(), expected, rtol=1e-4, atol=1e-6)


def test_time_of_the_pass_is_part_of_the_epochs(data):
    for row in fitted("per_query", data, "linear", {"name": "ranknet"})[0].history:
        assert 0 < row["pass_seconds"] < row["seconds"]


def test_forces_are_numbered_as_the_loss_names_them():
    assert tuple(FORCES) == LAWS


@pytest.mark.parametrize(
    ("learner", "net", "loss", "training", "text"),
    [
        ("ranknet_v1", "linear", {"name": "lambdarank"}, {}, "trains ranknet"),
        ("per_query", "linear", {"name": "listnet"}, {}, "trains ranknet and lambdarank"),
        ("per_query", "linear", {"name": "ranknet", "k": 5}, {}, "'k': 5"),
        ("per_query", "linear", {"name": "ranknet"}, {"batch_queries": 2}, "batch_queries must"),
        ("per_query", "linear", {"name": "ranknet"}, {"reduction": "mean"}, "reduction must"),
        (
            "per_query",
            "linear",
            {"name": "ranknet"},
            {"optimizer": {"name": "adam", "lr": 0.1}},
            "plain sgd",
        ),
    ],
)
def test_what_the_passes_do_not_know_is_refused(data, learner, net, loss, training, text):
    with pytest.raises(ConfigError, match=text):
        fitted(learner, data, net, loss, **training)


def test_other_models_are_refused(data, monkeypatch):
    monkeypatch.setitem(NETS, "tower", {"name": "tower", "hidden": [4]})
    with pytest.raises(ConfigError, match="linear, without bias, and two_layer"):
        fitted("per_query", data, "tower", {"name": "ranknet"})


def test_jobs_for_a_gpu_run_on_the_cpu(data):
    settings = {
        "model": NETS["linear"],
        "loss": {"name": "ranknet"},
        "training": {
            "optimizer": {"name": "sgd", "lr": 1e-3},
            "batch_queries": 1,
            "reduction": "sum",
            "max_epochs": 1,
        },
    }
    job = FitJob("run", 0, {"name": "ndcg", "k": 5}, 1, "cuda", no_progress)
    model = learners.get("per_query").load()(data, [settings], [job])[0]
    assert np.isfinite(model.predict(data.test)).all()
