from dataclasses import replace

import numpy as np
import pytest
import torch

from directrank import losses
from directrank.learners.contract import Splits
from directrank.learners.neural.batches import Feeder, Layout, have_relevant
from directrank.learners.neural.fit import complete, fit_many
from directrank.learners.neural.objective import Objective
from directrank.learners.neural.stack import Stack
from directrank.lists.buckets import buckets
from directrank.lists.documents import Documents
from directrank.lists.packed import RankedLists
from directrank.models.linear import Linear
from directrank.system.errors import ConfigError, TrainingError
from directrank.system.seeds import numpy_stream
from training_data import LOSS, TOWER, TRAINING, fit, job, layout, made, mean_ndcg, splits


@pytest.fixture(scope="module")
def data() -> Splits:
    return splits()


def test_training_learns_what_the_features_say(data):
    fitted = fit(data, max_epochs=25)[0]
    assert mean_ndcg(fitted, data.test) > 0.93
    first, best = fitted.history[0], fitted.history[fitted.info["best_epoch"] - 1]
    assert best["vali_metric"] > first["vali_metric"]
    assert best["train_loss"] < first["train_loss"]


def test_the_same_job_gives_the_same_bytes_and_another_trial_does_not(data):
    first, second = fit(data)[0], fit(data)[0]
    assert first.predict(data.test).tobytes() == second.predict(data.test).tobytes()
    other = fit(data, trials=2)[1]
    assert first.predict(data.test).tobytes() != other.predict(data.test).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("model", [TOWER, {"name": "linear"}])
@pytest.mark.parametrize("loss", [LOSS, {"name": "listmle"}])
@pytest.mark.parametrize("extra", [{}, {"max_documents": 5}, {"batch_queries": 1, "patience": 2}])
def test_models_trained_together_are_the_models_trained_alone(data, model, loss, extra):
    alone = fit(data, 3, model, loss, dtype="float64", stack=1, **extra)
    together = fit(data, 3, model, loss, dtype="float64", stack=0, **extra)
    for one, other in zip(alone, together, strict=True):
        assert one.info["best_epoch"] == other.info["best_epoch"]
        assert np.allclose(one.predict(data.test), other.predict(data.test), atol=1e-8)
        for a, b in zip(one.history, other.history, strict=True):
            assert np.isclose(a["train_loss"], b["train_loss"])
            assert np.isclose(a["vali_metric"], b["vali_metric"])


def test_losses_are_compared_on_the_same_queries_from_the_same_weights(data):
    seen = []

    class Watched(Stack):
        def _step(self, queries, number):
            if number == 1 and self.epoch == 0:
                seen.append([p.detach().clone() for p in self.parameters])
            seen.append(queries.copy())
            return super()._step(queries, number)

    courses = []
    for name, trial in (("listnet", 0), ("ranknet", 0), ("ranknet", 1)):
        seen.clear()
        settings = {"model": TOWER, "loss": {"name": name}, "training": TRAINING}
        fit_many(data, [settings], [job(trial)], kind=Watched)
        courses.append((seen[0], np.concatenate(seen[1:], axis=1)))
    (weights, order), (same_weights, same_order), (others, other_order) = courses
    assert all(map(torch.equal, weights, same_weights))
    assert np.array_equal(order, same_order)
    assert not np.array_equal(order, other_order)
    assert not any(torch.equal(one, other) for one, other in zip(weights, others, strict=True)
                   if one.unique().numel() > 1)  # fmt: skip
    epochs = order.reshape(TRAINING["max_epochs"], -1)
    assert (np.sort(epochs) == np.arange(data.train.n_queries)).all()
    assert not np.array_equal(epochs[0], epochs[1])


def test_the_best_validation_epoch_is_kept(data):
    fitted = fit(data, max_epochs=12)[0]
    best = max(row["vali_metric"] for row in fitted.history)
    assert np.isclose(mean_ndcg(fitted, data.vali), best)
    assert fitted.history[fitted.info["best_epoch"] - 1]["vali_metric"] == best


def test_an_epoch_chosen_on_the_test_part_is_the_best_there(data):
    training = {"max_epochs": 8, "optimizer": {"name": "adam", "lr": 0.01}}
    honest = fit(data, **training)[0]
    leaked = fit(data, **training, select_on="test")[0]
    on_test = [row.pop("test_metric") for row in leaked.history]
    assert [row["vali_metric"] for row in leaked.history] == [
        row["vali_metric"] for row in honest.history
    ]
    assert leaked.info["best_epoch"] == int(np.argmax(on_test)) + 1 != honest.info["best_epoch"]
    assert np.isclose(mean_ndcg(leaked, data.test), max(on_test))
    assert mean_ndcg(leaked, data.test) > mean_ndcg(honest, data.test)
    assert leaked.history[0].keys() == honest.history[0].keys()


def test_patience_waits_for_the_part_that_chooses_the_epoch(data):
    training = {"max_epochs": 60, "patience": 2, "optimizer": {"name": "adam", "lr": 0.01}}
    fitted = fit(data, **training, select_on="test")[0]
    best = int(np.argmax([row["test_metric"] for row in fitted.history])) + 1
    assert len(fitted.history) == best + 2 != len(fit(data, **training)[0].history)


def test_keeping_the_last_epoch_keeps_it(data):
    fitted = fit(data, max_epochs=12, keep="last")[0]
    assert np.isclose(mean_ndcg(fitted, data.vali), fitted.history[-1]["vali_metric"])
    assert fitted.info["best_epoch"] == 12


def test_patience_stops_that_many_epochs_after_the_best(data):
    fitted = fit(data, max_epochs=60, patience=3)[0]
    assert fitted.info["stopped_early"]
    assert len(fitted.history) == fitted.info["best_epoch"] + 3


def test_a_weight_that_does_not_move_stops_the_fit(data):
    fitted = fit(data, model={"name": "linear"}, tolerance=1e6, keep="last")[0]
    assert len(fitted.history) == 1


def test_the_restart_with_the_lowest_training_loss_is_kept(data):
    fitted = fit(data, model={"name": "linear"}, restarts=4, keep="last", stack=0)[0]
    losses = []
    for restart in range(4):
        settings = {
            "model": {"name": "linear"},
            "loss": LOSS,
            "training": {**TRAINING, "restarts": restart + 1, "keep": "last"},
        }
        losses.append(fit_many(data, [settings], [job()])[0].info["train_objective"])
    assert fitted.info["train_objective"] == pytest.approx(min(losses[1:]))
    assert 0 <= fitted.info["restart"] < 4


def test_a_mean_over_queries_leaves_empty_ones_out(data):
    lists = data.train
    scores = torch.zeros(lists.n_documents)
    objective = Objective([LOSS], "mean")
    mean = objective(scores[None], layout(lists))
    total = Objective([LOSS], "sum")(scores[None], layout(lists))
    assert torch.allclose(mean * (lists.relevant_counts() > 0).sum(), total)


def test_buckets_hold_every_list_once_and_waste_little():
    lengths = numpy_stream("lengths").integers(1, 1251, 500)
    groups = buckets(lengths)
    assert sorted(np.concatenate(groups)) == list(range(500))
    padded = sum(len(group) * lengths[group].max() ** 2 for group in groups)
    assert padded < 1.4 * (lengths**2).sum()
    assert padded < 0.5 * len(lengths) * lengths.max() ** 2


def test_the_objective_in_buckets_is_the_objective_in_one_padded_batch(data):
    from directrank import losses
    from directrank.lists.padding import pad, padded_positions

    lists = made(40, 5, longest=200)
    scores = torch.from_numpy(lists.features[:, 1]).double()
    labels = torch.from_numpy(lists.labels).double()
    mask, index = padded_positions(torch.from_numpy(lists.lengths))
    whole = losses.approx_ndcg(pad(scores, mask, index), pad(labels, mask, index), mask, alpha=5.0)
    summed = Objective([LOSS], "sum")(scores[None], layout(lists))
    assert torch.allclose(summed, whole.sum())


@pytest.mark.parametrize("kind", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("queries", [[[4, 0, 2], [1, 3, 3]], [[3], [1]]], ids=["three", "one"])
def test_a_batch_holds_the_documents_of_its_queries_one_after_the_other(queries, kind):
    lists = made(5, 9, longest=50)
    batch = Feeder(lists, kind, torch.device("cpu")).draw(np.array(queries))
    assert isinstance(batch.documents, Documents)  # they stay where they are
    assert batch.features.dtype == kind
    for row, drawn in enumerate(queries):
        for query, start, length in zip(drawn, batch.starts[row], batch.lengths[row], strict=True):
            own = slice(lists.offsets[query], lists.offsets[query + 1])
            result = batch.features[row, start : start + length].numpy()
            assert (result == lists.features[own]).all()
            assert (batch.labels[row, start : start + length].numpy() == lists.labels[own]).all()


def test_long_lists_are_cut_to_random_documents_that_differ_between_draws():
    lists = made(3, 9, longest=50)
    feeder = Feeder(lists, torch.float32, torch.device("cpu"), max_documents=4)
    draws = [feeder.draw(np.array([[0, 1, 2]]), [1], step) for step in range(2)]
    for draw in draws:
        assert (draw.lengths == np.minimum(lists.lengths, 4)).all()
        assert draw.features.shape == (1, draw.lengths.sum(), 5)
    assert not torch.equal(draws[0].features, draws[1].features)


@pytest.mark.parametrize("queries", [1, 7])
@pytest.mark.parametrize("longest", [None, 3])
@pytest.mark.parametrize("padded", [True, False])
def test_a_batch_counts_its_queries_with_a_relevant_document(queries, longest, padded):
    stream = np.random.default_rng(4)
    lists = made(40, 3)
    labels = (stream.random(lists.n_documents) < 0.1).astype(np.float32) * 0.5
    lists = replace(lists, labels=labels)
    feeder = Feeder(lists, torch.float32, torch.device("cpu"), longest, padded=padded)
    drawn = stream.permutation(40)[: 2 * queries].reshape(2, queries)
    batch = feeder.draw(drawn, [1, 2])
    expected = [
        sum(bool((row[first : first + n] > 0).any()) for first, n in zip(*of_row, strict=True))
        for row, *of_row in zip(batch.labels, batch.starts, batch.lengths, strict=True)
    ]
    assert batch.relevant.tolist() == expected


# The last two make a finite loss of scores that are not finite.
@pytest.mark.parametrize("loss", ["ranknet", "twin_ndcg", "pl_rank"])
def test_a_loss_that_is_not_finite_stops_with_a_remedy(data, loss):
    broken = Splits(
        RankedLists(
            np.where(data.train.features > 2, np.inf, data.train.features).astype(np.float32),
            data.train.labels,
            data.train.offsets,
            data.train.query_ids,
        ),
        data.vali,
        data.test,
        3,
    )
    with pytest.raises(TrainingError, match=r"not finite in epoch 1[\s\S]*remedy"):
        fit(broken, model={"name": "linear"}, loss={"name": loss})


def test_unknown_training_settings_name_the_known_ones():
    with pytest.raises(ConfigError, match="did you mean 'patience'"):
        complete({**TRAINING, "patiance": 3})
    with pytest.raises(ConfigError, match="optimizer"):
        complete({"max_epochs": 3})


def test_saved_weights_are_the_models(data, tmp_path):
    from safetensors.torch import load_file

    fitted = fit(data, model={"name": "linear"})[0]
    fitted.save(tmp_path / "model-0")
    weight = load_file(tmp_path / "model-0.safetensors")["layer.weight"].numpy()
    assert np.allclose(data.test.features @ weight[0, :, 0], fitted.predict(data.test), atol=1e-6)


def test_candidates_that_differ_in_steepness_share_a_call_and_differ_in_their_values(data):
    settings = [{"name": "approx_ndcg", "alpha": alpha} for alpha in (1.0, 5.0, 20.0)]
    lists = data.train
    scores = torch.from_numpy(np.tile(lists.features[:, 1], (3, 1))).double()
    together = Objective(settings, "mean")
    assert len(together._calls) == 1
    values = together(scores, layout(lists))
    for number, setting in enumerate(settings):
        alone = Objective([setting], "mean")
        assert torch.allclose(values[number], alone(scores[:1], layout(lists))[0])


def test_models_of_different_losses_get_their_own_objectives_in_their_own_order(data):
    settings = [
        {"name": "neural_ndcg", "tau": 0.5},
        {"name": "listnet"},
        {"name": "neural_ndcg", "tau": 1.0},
        {"name": "approx_ndcg", "alpha": 2.0},
        {"name": "neural_ndcg", "tau": 0.5},
        {"name": "approx_ndcg", "alpha": 7.0},
    ]
    lists = data.train
    stream = torch.Generator().manual_seed(1)
    scores = torch.randn(6, lists.n_documents, generator=stream, dtype=torch.float64)
    for reduction in ("mean", "sum"):
        values = Objective(settings, reduction)(scores, layout(lists))
        for model, setting in enumerate(settings):
            alone = Objective([setting], reduction)
            expected = alone(scores[model : model + 1], layout(lists))[0]
            assert torch.allclose(values[model], expected)


def layout_of(labels: torch.Tensor, starts: np.ndarray, lengths: np.ndarray) -> Layout:
    rows = np.arange(len(labels))[:, None] * labels.shape[1]
    relevant = have_relevant(labels.numpy().ravel() > 0, starts + rows, lengths)
    return Layout(labels, starts, lengths, relevant.sum(1))


@pytest.mark.parametrize("name", [n for n in losses.REGISTRY if losses.needs_of(n).flat])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_flat_lists_train_to_the_bytes_of_padded_ones(name, dtype, monkeypatch):
    settings = [{"name": name}] * 4
    if key := losses.needs_of(name).per_list:
        settings = [{"name": name, key[0]: value} for value in (0.5, 1.0, 5.0, 20.0)]
    stream = torch.Generator().manual_seed(3)
    lengths = np.array([[30, 1, 17, 90], [64, 3, 40, 8]])
    starts = lengths.cumsum(1) - lengths + 2  # rows begin and end with what is in no list
    labels = torch.randint(0, 4, (2, 142), generator=stream).to(dtype)
    drawn = torch.randn(4, 142, generator=stream).to(dtype)
    bytes_of = {}
    for flat in (True, False):
        needs = replace(losses.needs_of(name), flat=flat)
        monkeypatch.setattr(losses, "needs_of", lambda _, needs=needs: needs)
        objective = Objective(settings, "mean")
        scores = drawn.clone().requires_grad_()
        values = objective(scores, layout_of(labels, starts, lengths))
        (gradient,) = torch.autograd.grad(values.sum(), scores)
        bytes_of[flat] = values.detach().numpy().tobytes(), gradient.numpy().tobytes()
        assert (objective.pairs[0] == objective.pairs[1]) == flat
    assert bytes_of[True] == bytes_of[False]


@pytest.mark.parametrize("small", [1, 1 << 22])
@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_however_lists_are_grouped_each_model_gets_its_own(monkeypatch, small, queries, rows):
    """Four models with lists of like and unlike length in few calls and in many."""
    monkeypatch.setattr("directrank.lists.buckets.SMALL_CALL", small)
    generator = np.random.default_rng(queries + rows)
    stream = torch.Generator().manual_seed(2)
    settings = [{"name": "approx_ndcg", "alpha": alpha} for alpha in (1.0, 5.0, 20.0, 50.0)]
    for shortest in (4, 19):  # in groups of their own, and all in one
        for _ in range(8):
            lengths = generator.integers(shortest, 24, (rows, queries))
            width = int(lengths.sum(1).max())
            labels = torch.randint(0, 3, (rows, width), generator=stream).double()
            scores = torch.randn(4, width, generator=stream, dtype=torch.float64)
            starts = lengths.cumsum(1) - lengths
            values = Objective(settings, "mean")(scores, layout_of(labels, starts, lengths))
            for model, setting in enumerate(settings):
                row = slice(model * rows // 4, model * rows // 4 + 1)
                own = layout_of(labels[row], starts[row], lengths[row])
                alone = Objective([setting], "mean")(scores[model : model + 1], own)
                assert torch.allclose(values[model], alone[0])


def test_candidates_that_share_documents_are_candidates_with_documents_of_their_own(
    data, monkeypatch
):
    training = {**TRAINING, "dtype": "float64", "stack": 0, "restarts": 2}
    settings = [
        {
            "model": {"name": "linear"},
            "loss": {"name": "approx_ndcg", "alpha": alpha},
            "training": training,
        }
        for alpha in (1.0, 5.0)
    ]
    shared = fit_many(data, settings, [job()] * 2)
    monkeypatch.setattr(Linear, "shares_documents", False)
    apart = fit_many(data, settings, [job()] * 2)
    for one, other in zip(shared, apart, strict=True):
        assert np.allclose(one.predict(data.test), other.predict(data.test), atol=1e-10)


CONTEXT = {"name": "context", "width": 8, "blocks": 1, "inner": 8, "dropout": 0.2}


@pytest.mark.slow
@pytest.mark.parametrize("queries", [1, 8])
@pytest.mark.parametrize(
    ("model", "dtype", "near"), [(TOWER, "float64", 1e-8), (CONTEXT, "float32", 0)]
)
def test_a_candidate_that_has_finished_leaves_the_others_as_they_would_be_alone(
    data, model, dtype, near, queries
):
    in_training = []

    class Watched(Stack):
        def _forward(self, batch, step):
            in_training.append(len(self.active))
            return super()._forward(batch, step)

    training = {
        **TRAINING,
        "dtype": dtype,
        "stack": 0,
        "batch_queries": queries,
        "max_documents": 9,
        "max_epochs": 12,
        "patience": 2,
    }
    settings = [
        {
            "model": model,
            "loss": {"name": "approx_ndcg", "alpha": alpha},
            "training": {**training, "optimizer": {**training["optimizer"], "lr": rate}},
        }
        for rate, alpha in ((1e-5, 1.0), (0.03, 1.0), (0.003, 5.0))
    ]
    together = fit_many(data, settings, [job()] * 3, kind=Watched)
    alone = [fit_many(data, [setting], [job()])[0] for setting in settings]
    assert len({fitted.info["epochs"] for fitted in together}) > 1
    steps = -(-data.train.n_queries // queries)
    assert sum(in_training) == steps * sum(fitted.info["epochs"] for fitted in together)
    for one, other in zip(together, alone, strict=True):
        assert one.info["epochs"] == other.info["epochs"]
        assert np.allclose(one.predict(data.test), other.predict(data.test), rtol=0, atol=near)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "threads"), [(TOWER, 2), (CONTEXT, 1)])
def test_pytorch_has_one_thread_in_steps_whose_layers_are_compiled_loops(
    data, monkeypatch, model, threads
):
    seen = set()

    def step(self, *batch, plain=Stack._step):
        seen.add(torch.get_num_threads())
        return plain(self, *batch)

    monkeypatch.setattr(Stack, "_step", step)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        fit(data, model=model)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == {threads}
