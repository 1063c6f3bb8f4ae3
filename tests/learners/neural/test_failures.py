"""Losses that are not finite, memory that runs out, precision, and batch norm over padding."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open

from directrank import losses
from directrank.data.prepared import write_prepared
from directrank.learners.neural import precision
from directrank.learners.neural.batches import Feeder
from directrank.learners.neural.failures import naming_memory
from directrank.learners.neural.objective import Objective
from directrank.lists.packed import RankedLists
from directrank.stats.estimates import mean_interval
from directrank.study.run import execute, load_splits
from directrank.system.errors import ConfigError, TrainingError
from directrank.system.seeds import torch_stream
from training_data import LOSS, TOWER, fit, made, mean_ndcg, splits

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data():
    return splits()


def test_a_loss_without_a_gradient_is_an_error_and_not_trained(data, monkeypatch):
    def hard_ranks(scores, labels, mask=None, **_):
        return (scores.argsort(1).argsort(1) * labels).sum(1)

    monkeypatch.setattr(losses, "get", lambda name: hard_ranks)
    with pytest.raises(ConfigError, match="loss 'approx_ndcg' has no gradient") as caught:
        fit(data, loss={"name": "approx_ndcg"})
    assert "argsort" in str(caught.value)


def test_data_that_are_not_those_of_the_specification_are_an_error(tmp_path):
    record = {"name": "td2003_standin", "title": "t", "origin": "standin", "label_levels": 3,
              "source": {"settings": {"queries": {"train": 4}}}}  # fmt: skip
    write_prepared(tmp_path, {name: made(4, 0) for name in ("train", "vali", "test")}, record)
    spec = {"fold": None, "normalisation": {"name": "none"}, "filter": {}}
    for data, message in (
        ({"name": "web30k_standin", "settings": {}}, "of the data set web30k_standin, but"),
        (
            {"name": "td2003_standin", "settings": {"seed": 2}},
            r"with {'seed': 2}, but .*'train': 4",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            load_splits({**spec, "data": data}, tmp_path)
    same = {"name": "td2003_standin", "settings": {"queries": {"train": 4}}}
    assert load_splits({**spec, "data": same}, tmp_path)[0].train.n_queries == 4


def test_the_batch_of_a_loss_that_is_not_finite_is_written_beside_the_run(tmp_path):
    train = made(30, 0)
    features = train.features.copy()
    features[train.offsets[17], 2] = np.inf
    broken = RankedLists(features, train.labels, train.offsets, train.query_ids)
    folder = tmp_path / "data"
    record = {"name": "web30k_standin", "title": "t", "origin": "standin", "label_levels": 3}
    write_prepared(folder, {"train": broken, "vali": made(12, 1), "test": made(12, 2)}, record)
    spec = {
        "data": {"name": "web30k_standin", "settings": {}},
        "fold": None,
        "normalisation": {"name": "none"},
        "filter": {},
        "learner": "neural",
        "model": {"name": "linear"},
        "loss": LOSS,
        "training": {"optimizer": {"name": "sgd", "lr": 0.1}, "batch_queries": 4, "stack": 0},
        "selection": {"name": "ndcg"},
        "evaluation": [{"name": "ndcg"}],
        "trials": 2,
    }
    with pytest.raises(TrainingError, match=r"not finite in epoch 1.*safetensors") as raised:
        execute(spec, folder, tmp_path / "out")
    file = tmp_path / "out" / "not_finite.safetensors"
    assert str(file) in str(raised.value)
    with safe_open(file, "pt") as content:
        batch = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        settings = json.loads(content.metadata()["settings"])
    assert 17 in batch["query_ids"]
    assert len(batch["scores"]) == len(batch["labels"]) == int(batch["lengths"].sum())
    assert not torch.isfinite(batch["scores"]).all()
    at = 0
    for query, length in zip(batch["query_ids"], batch["lengths"], strict=True):
        begin = int(train.offsets[query])
        rows = slice(at, at + int(length))
        assert np.array_equal(batch["labels"][rows], train.labels[begin : begin + int(length)])
        assert np.array_equal(batch["features"][rows], features[begin : begin + int(length)])
        at += int(length)
    assert settings["epoch"] == 1
    assert settings["loss"] == LOSS
    assert not (tmp_path / "out" / "run.json").exists()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_memory_that_runs_out_names_the_settings_to_change(data, monkeypatch, error):
    def fails(*args, **kwargs):
        raise error

    monkeypatch.setattr(Objective, "__call__", fails)
    with pytest.raises(TrainingError, match=r"out of memory.*4 queries[\s\S]*batch_queries"):
        fit(data)


def test_memory_that_runs_out_before_the_first_step_is_named_too(data, monkeypatch):
    def fails(*args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("directrank.learners.neural.stack.Feeder", fails)
    with pytest.raises(TrainingError, match=r"setting up a stack of 1[\s\S]*training\.stack"):
        fit(data)


def test_other_errors_are_not_taken_for_memory():
    with pytest.raises(RuntimeError, match="shapes"), naming_memory("training", "buy some"):
        raise RuntimeError("shapes differ")


def test_memory_really_runs_out_on_the_cpu():
    with (
        pytest.raises(TrainingError, match="out of memory while training"),
        naming_memory("training", "lower it"),
    ):
        torch.empty(1 << 60)


def supported() -> bool:
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()


@pytest.mark.slow
@pytest.mark.skipif(not supported(), reason="this processor has no bfloat16")
@pytest.mark.parametrize("stack", [1, 0])
def test_bfloat16_leaves_the_metric_within_the_interval_over_trials(data, stack):
    of = {}
    for name in ("float32", "bfloat16"):
        fitted = fit(data, trials=8, precision=name, max_epochs=15, stack=stack)
        of[name] = [mean_ndcg(one, data.test) for one in fitted]
    wide, narrow = mean_interval(of["float32"]), mean_interval(of["bfloat16"])
    assert of["float32"] != of["bfloat16"]
    assert abs(wide.mean - narrow.mean) <= max(wide.half_width, narrow.half_width)


@pytest.mark.skipif(not supported(), reason="this processor has no bfloat16")
def test_only_the_networks_own_products_are_narrow(data, monkeypatch):
    seen = []
    plain = Objective.__call__
    monkeypatch.setattr(
        Objective, "__call__", lambda self, s, *of: seen.append(s.dtype) or plain(self, s, *of)
    )
    fitted = fit(data, precision="bfloat16", max_epochs=1)[0]
    assert set(seen) == {torch.float32}
    assert fitted.predict(data.test).dtype == np.float32


def test_bfloat16_is_refused_where_it_cannot_be_had(monkeypatch):
    with pytest.raises(ConfigError, match=r"does not go with training.dtype 'float64'"):
        precision.check("bfloat16", "float64", CPU)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    with pytest.raises(ConfigError, match=r"cpu has no bfloat16[\s\S]*float32"):
        precision.check("bfloat16", "float32", CPU)


def test_padding_is_passed_to_the_network_as_rows_of_zeros_where_asked():
    lists = made(6, 4)
    queries = np.array([[0, 3, 1], [5, 2, 4]])
    plain = Feeder(lists, torch.float32, CPU).draw(queries)
    padded = Feeder(lists, torch.float32, CPU, padded=True).draw(queries)
    for row in range(2):
        longest = int(lists.lengths[queries[row]].max())
        assert (padded.spans[row] == longest).all()
        for place in range(3):
            length = int(padded.lengths[row, place])
            assert length == lists.lengths[queries[row, place]]
            ours = slice(padded.starts[row, place], padded.starts[row, place] + length)
            theirs = slice(plain.starts[row, place], plain.starts[row, place] + length)
            assert torch.equal(padded.features[row, ours], plain.features[row, theirs])
            assert torch.equal(padded.labels[row, ours], plain.labels[row, theirs])
            rest = slice(ours.stop, padded.starts[row, place] + longest)
            assert (padded.features[row, rest] == 0).all()


def test_batch_norm_over_padding_takes_its_statistics_with_the_zeros(data):
    from directrank import models

    lists = data.train
    batch = Feeder(lists, torch.float64, CPU, padded=True).draw(np.arange(8)[None])
    model = models.build({**TOWER, "decay": 0.0}, 5, [torch_stream("padded")]).double()
    model.train()(batch.features, batch.rows, batch.spans)
    widest = int(lists.lengths[:8].max())
    block = np.zeros((8, widest, 5))
    for query in range(8):
        begin, end = lists.offsets[query : query + 2]
        block[query, : end - begin] = lists.features[begin:end]
    result = model.input_norm.running_mean.flatten().numpy()
    assert np.allclose(result, block.reshape(-1, 5).mean(0))


@pytest.mark.slow
def test_models_with_padding_in_batch_norm_train_together_as_alone(data):
    alone = fit(data, 3, dtype="float64", batch_norm="padded", stack=1)
    together = fit(data, 3, dtype="float64", batch_norm="padded", stack=0)
    plain = fit(data, 3, dtype="float64", stack=1)
    for one, other, without in zip(alone, together, plain, strict=True):
        assert np.allclose(one.predict(data.test), other.predict(data.test), atol=1e-7)
        assert not np.allclose(one.predict(data.test), without.predict(data.test), atol=1e-3)


def test_the_share_of_padding_among_pairs_is_reported(data):
    (flat,) = fit(data, max_epochs=1)
    assert flat.info["wasted_pairs"] == 0
    (one,) = fit(data, loss={"name": "softrank"}, max_epochs=1)
    lengths = data.train.lengths
    assert 0 < one.info["wasted_pairs"] < 1 - (lengths**2).mean() / lengths.max() ** 2
    same = splits()
    (even,) = fit(
        type(same)(same.train.select(np.flatnonzero(lengths == 7)), same.vali, same.test, 3),
        loss={"name": "softrank"},
        max_epochs=1,
    )
    assert even.info["wasted_pairs"] == 0


def test_models_whose_losses_have_the_same_settings_share_a_call():
    still = Objective([{"name": "neural_ndcg", "tau": 0.5}] * 4, "mean")
    noisy = Objective([{"name": "neural_ndcg", "samples": 2}] * 4, "mean")
    mixed = [{"name": "neural_ndcg", "tau": tau} for tau in (0.5, 1.0, 0.5, 1.0)]
    assert len(still._calls) == 1
    assert len(noisy._calls) == 1
    assert [list(call.models) for call in Objective(mixed, "mean")._calls] == [
        [0, 2],
        [1, 3],
    ]
