"""Classes of models separate on the stand-ins in the order known from the real sets.

Margins are generous: at this size a mean NDCG@5 over test queries has a standard error near 0.015.
Only classes of models are compared, never losses.
"""

import itertools

import lightgbm
import numpy as np
import pytest
import torch

from directrank.data import normalise, standins
from directrank.learners.contract import FitJob, Splits, no_progress
from directrank.learners.neural.fit import fit_many
from directrank.lists.packed import RankedLists
from directrank.lists.padding import pad, padded_positions
from directrank.metrics.packed import metrics_per_query

#: What networks see, and plausible levels of NDCG@5 of the best network and of trees.
WIDE = {
    "yahoo1_standin": ("none", (0.66, 0.74), (0.71, 0.79)),
    "istella_standin": ("signed_log_standardise", (0.59, 0.71), (0.67, 0.78)),
}


def ndcg5(scores: np.ndarray, lists: RankedLists) -> float:
    """Mean NDCG@5 in expectation over ties, queries without a relevant document left out."""
    ndcg = {"name": "ndcg", "k": 5, "ties": "expected"}
    (values,) = metrics_per_query(np.asarray(scores, np.float64), lists, [ndcg]).values()
    return float(np.nanmean(values))


def _boosted(train: RankedLists, vali: RankedLists, leaves: int = 31):
    data = lightgbm.Dataset(train.features, train.labels, group=train.lengths)
    check = lightgbm.Dataset(vali.features, vali.labels, group=vali.lengths, reference=data)
    settings = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [5],
        "num_leaves": leaves,
        "min_data_in_leaf": 20,
        "learning_rate": 0.1,
        "feature_fraction": 0.9,
        "num_threads": 1,
        "deterministic": True,
        "verbose": -1,
    }
    stop = lightgbm.early_stopping(30, verbose=False)
    return lightgbm.train(settings, data, 200, valid_sets=[check], callbacks=[stop]).predict


def _network(train, vali, hidden, epochs, seed=0, rate=0.05):
    """A batch-normalised ReLU tower trained on ListNet's loss; none hidden is linear."""
    torch.manual_seed(seed)
    sizes = [train.n_features, *hidden]
    layers = [torch.nn.BatchNorm1d(sizes[0])]
    for below, above in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(below, above), torch.nn.BatchNorm1d(above), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 1))
    optimiser = torch.optim.Adagrad(model.parameters(), lr=rate, initial_accumulator_value=0.1)
    features = torch.from_numpy(train.features)
    order = np.random.default_rng(seed)

    def predict(x):
        model.eval()
        with torch.no_grad():
            return model(torch.from_numpy(x)).squeeze(1).numpy()

    best, state = -1.0, None
    for _ in range(epochs):
        model.train()
        for batch in np.array_split(order.permutation(train.n_queries), train.n_queries // 15):
            lists = train.select(batch)
            rows = np.concatenate(
                [np.arange(train.offsets[q], train.offsets[q + 1]) for q in batch]
            )
            mask, index = padded_positions(torch.from_numpy(lists.lengths))
            scores = pad(model(features[rows]).squeeze(1), mask, index, fill=-1e9)
            gains = pad(torch.from_numpy(2.0**lists.labels - 1), mask, index)
            share = gains / gains.sum(dim=1, keepdim=True).clamp(min=1e-9)
            loss = -(share * torch.log_softmax(scores, dim=1)).sum(dim=1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        value = ndcg5(predict(vali.features), vali)
        if value > best:
            best = value
            state = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    model.load_state_dict(state)
    return predict


@pytest.mark.slow
def test_trees_beat_a_linear_model_and_both_beat_chance():
    data = standins.generate("web30k_standin", {"queries": {"train": 120, "vali": 60, "test": 120}})
    train, vali, test = data["train"], data["vali"], data["test"]
    chance = ndcg5(np.zeros(test.n_documents), test)
    linear = ndcg5(_network(train, vali, [], epochs=10)(test.features), test)
    trees = ndcg5(_boosted(train, vali)(test.features), test)
    assert linear > chance + 0.04
    assert trees > linear + 0.03


@pytest.mark.long
def test_trees_beat_deep_networks_beat_one_hidden_layer_beats_linear():
    values = []
    for seed in (0, 1, 2):
        data = standins.generate("web30k_standin", {"seed": seed})
        train, vali, test = data["train"], data["vali"], data["test"]
        models = {
            "linear": _network(train, vali, [], epochs=40),
            "hidden": _network(train, vali, [128], epochs=40),
            "deep": _network(train, vali, [128, 64, 32, 16], epochs=40),
            "trees": _boosted(train, vali),
        }
        values.append([ndcg5(model(test.features), test) for model in models.values()])
    linear, hidden, deep, trees = np.mean(values, axis=0)
    assert 0.30 < linear < 0.43
    assert hidden > linear + 0.005
    assert deep > hidden + 0.005
    assert trees > deep + 0.02
    assert 0.44 < trees < 0.56


def _tower(data, run, hidden):
    """Predictions for the test split of the package's own network, trained on ListNet's loss."""
    setting = {
        "model": {"name": "tower", "hidden": hidden},
        "loss": {"name": "listnet"},
        "training": {
            "optimizer": {"name": "adam", "lr": 0.001},
            "batch_queries": 16,
            "max_epochs": 60,
            "patience": 12,
        },
    }
    job = FitJob(run, 0, {"name": "ndcg", "k": 5}, 1, "cpu", no_progress)
    splits = Splits(data["train"], data["vali"], data["test"], 5)
    return fit_many(splits, [setting], [job])[0].predict(data["test"])


@pytest.mark.long
@pytest.mark.parametrize("name", WIDE)
def test_trees_beat_networks_beat_linear_on_wide_sets(name):
    scaling, network_level, tree_level = WIDE[name]
    values = []
    for seed in (0, 1, 2):
        data = standins.generate(name, {"seed": seed})
        test = data["test"]
        scaled = normalise.apply({"name": scaling}, data)
        scores = [_tower(scaled, f"{name}{seed}", hidden) for hidden in ([], [128], [256, 128, 64])]
        scores.append(_boosted(data["train"], data["vali"])(test.features))
        values.append([ndcg5(np.asarray(score), test) for score in scores])
    linear, hidden, deep, trees = np.mean(values, axis=0)
    best = max(hidden, deep)
    assert min(hidden, deep) > linear + 0.01
    assert best > linear + 0.02
    assert deep > hidden - 0.04
    assert trees > best + 0.02
    assert network_level[0] < best < network_level[1]
    assert tree_level[0] < trees < tree_level[1]
