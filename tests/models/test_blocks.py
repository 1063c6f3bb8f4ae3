"""Layers worked block by block give what the same layers give one after the other."""

from __future__ import annotations

import copy
import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

from directrank import models
from directrank.kernels import threads
from directrank.kernels.layers import BLOCK
from directrank.lists.documents import Documents
from directrank.models import blocks, plans
from directrank.system.seeds import torch_stream

R5 = {
    "name": "feed_forward",
    "activation": "relu",
    "output_activation": True,
    "hidden": [12, 12, 9],
    "norm": "batch",
    "dropout": 0.0,
}
TOWER = {"name": "tower", "hidden": [12, 12, 9]}

#: Documents of each model: whole blocks, a part of one, runs of blocks, several models, padding.
COUNTS = (
    [2 * BLOCK],
    [6 * BLOCK + 7],
    [blocks.MOST_RUNS * BLOCK + 1],
    [BLOCK + 1, BLOCK + 1],
    [BLOCK - 2, (blocks.MOST_RUNS + 2) * BLOCK, 4],
)


SETTINGS = (
    {},
    {"output_activation": False},
    {"output_norm": False},
    TOWER,
    {**TOWER, "input_norm": False},
    {**TOWER, "hidden": [5]},
)


def build(models_of_stack: int = 1, **settings) -> nn.Module:
    settings = settings if "name" in settings else {**R5, **settings}
    streams = [torch_stream("model", number) for number in range(models_of_stack)]
    model = models.build(settings, 7, streams)
    for number, parameter in enumerate(model.parameters()):
        noise = torch.randn(parameter.shape, generator=torch_stream("noise", number))
        parameter.data += 0.3 * noise
    return model.train()


def documents(count: int, models_of_stack: int = 1) -> torch.Tensor:
    return 2 * torch.randn(models_of_stack, count, 7, generator=torch_stream("x")) + 1


def batch(counts: list[int]) -> tuple[torch.Tensor, torch.Tensor | None, np.ndarray]:
    """Documents, which are real (None where all are) and how many each of two queries has."""
    x, lengths = documents(max(counts), len(counts)), np.array(counts)[:, None] - [[1, 0]]
    lengths[:, 1] = 1
    if len(set(counts)) == 1:
        return x, None, lengths
    rows = torch.arange(max(counts)) < torch.tensor(counts)[:, None]
    return torch.where(rows[:, :, None], x, 0), rows, lengths


def step(model: nn.Module, x: torch.Tensor, rows=None, lengths=None) -> dict[str, torch.Tensor]:
    """Scores, gradients and running statistics of a step."""
    model = copy.deepcopy(model)
    scores = model(x, rows, lengths)
    if rows is not None:
        scores = torch.where(rows, scores, 0)
    weights = torch.randn(scores.shape, generator=torch_stream("weights")).to(scores)
    weights /= x.shape[1] ** 0.5  # so that gradients, sums over documents, are near 1
    gradients = torch.autograd.grad((scores * weights).sum(), list(model.parameters()))
    names = [name for name, _ in model.named_parameters()]
    result = dict(zip(names, gradients, strict=True)) | dict(model.named_buffers())
    return result | {"scores": scores.detach()}


@pytest.fixture
def worked(monkeypatch) -> list[int]:
    """Numbers of documents that were worked in blocks, from the first document on."""
    seen: list[int] = []

    def spy(x, *others, by_blocks=blocks._by_blocks):
        seen.append(x.shape[1])
        return by_blocks(x, *others)

    monkeypatch.setattr(blocks, "_by_blocks", spy)
    monkeypatch.setattr(blocks, "LEAST", 1)
    return seen


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(
    ("counts", "dtype", "near"),
    # Of few documents in float32: of many, one is so near to a ReLU's kink that rounding decides.
    [(COUNTS[0], torch.float32, 3e-5), *((counts, torch.float64, 1e-12) for counts in COUNTS)],
    ids=str,
)
def test_scores_gradients_and_running_statistics_are_those_of_the_plain_layers(
    settings, counts, dtype, near, worked, monkeypatch
):
    model = build(len(counts), **settings)
    x, rows, lengths = batch(counts)
    result = step(copy.deepcopy(model).to(dtype), x.to(dtype), rows, lengths)
    assert worked == [max(counts)]
    monkeypatch.setattr(blocks, "in_blocks", lambda layers, documents: False)
    plain = step(model.double(), x.double(), rows, lengths)
    assert worked == [max(counts)]
    # An offset before layers with a norm of their own changes nothing.
    assert not result.pop("input_norm.bias", torch.zeros(1)).any()
    assert plain.pop("input_norm.bias", torch.zeros(1)).abs().max() < 1e-9
    for name, expected in plain.items():
        assert (result[name].double() - expected).norm() <= near * max(expected.norm(), 0.1), name


@pytest.mark.parametrize("settings", [TOWER, {**TOWER, "input_norm": False}], ids=str)
@pytest.mark.parametrize("least", [1, 1 << 40], ids=["in blocks", "one by one"])
@pytest.mark.parametrize("counts", [COUNTS[1], COUNTS[4]], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_documents_are_taken_out_of_a_table_with_the_same_bytes(
    settings, counts, dtype, least, worked, monkeypatch
):
    monkeypatch.setattr(blocks, "LEAST", least)
    model = build(len(counts), **settings).to(dtype)
    x, rows, lengths = batch(counts)
    order = torch.randperm(x.shape[0] * x.shape[1], generator=torch_stream("order"))
    table = torch.empty(len(order) + 5, x.shape[2])
    table[order] = x.reshape(len(order), -1)
    taken, x = Documents(table, order.view(x.shape[:2]).numpy(), dtype), x.to(dtype)
    assert torch.equal(taken.tensor(), x)
    result, expected = step(model, taken, rows, lengths), step(model, x, rows, lengths)
    assert len(worked) == (0 if least > 1 and len(counts) == 1 else 2)
    assert all(torch.equal(result[name], expected[name]) for name in expected)


def test_the_gradient_is_that_of_finite_differences(worked):
    model, x = build(**TOWER), documents(BLOCK + 3)
    for name in ("input_norm.weight", "hidden.0.weight", "norms.1.bias"):
        gradient = step(model, x)[name]
        exact = copy.deepcopy(model).double()
        direction = torch.randn(gradient.shape, generator=torch_stream("direction")).double()
        values = []
        for side in (-1e-6, 1e-6):
            moved = copy.deepcopy(exact)
            moved.get_parameter(name).data += side * direction
            scores = moved(x.double())
            weights = torch.randn(scores.shape, generator=torch_stream("weights")).double()
            values.append((scores * weights).sum().item() / x.shape[1] ** 0.5)
        difference = (values[1] - values[0]) / 2e-6
        assert (gradient.double() * direction).sum().item() == pytest.approx(difference, rel=1e-3)


@pytest.mark.parametrize("settings", [TOWER, {**TOWER, "hidden": [9, 5]}, R5], ids=str)
@pytest.mark.parametrize(("count", "models_of_stack"), [(11 * BLOCK + 5, 1), (2 * BLOCK + 3, 4)])
def test_the_number_of_threads_changes_no_byte_and_is_left_as_it_was(
    settings, count, models_of_stack, worked, monkeypatch
):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1000)
    model, x = build(models_of_stack, **settings), documents(count, models_of_stack)
    before, results, by_model = torch.get_num_threads(), [], []

    def spy(plan, by_models=blocks._by_models):
        by_model.append(by_models(plan))
        return by_model[-1]

    monkeypatch.setattr(blocks, "_by_models", spy)
    try:
        for number in (1, 2, 5):
            torch.set_num_threads(number)
            results.append(step(model, x))
            assert torch.get_num_threads() == number
    finally:
        torch.set_num_threads(before)
    # Forwards and backwards: each model on its own while there are enough for the threads.
    expected = [True, models_of_stack == 4, False]
    assert by_model == [by_models for by_models in expected for _ in range(2)]
    for other in results[1:]:
        # No block has the output layer: its product is PyTorch's own, and on some processors
        # depends on the number of threads.
        for name, value in other.items():
            tolerance = 1e-4 if name in ("scores", "output.weight") else 0.0
            torch.testing.assert_close(results[0][name], value, rtol=tolerance, atol=tolerance)


def test_compiled_loops_keep_their_threads_while_pytorch_has_one(monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    before, workers = torch.get_num_threads(), set()

    def kernel(begin, end):
        workers.add(threading.get_ident())
        time.sleep(0.05)

    try:
        torch.set_num_threads(3)
        with pytest.raises(KeyError), threads.pytorch_on_one_thread():
            with threads.pytorch_on_one_thread():
                assert torch.get_num_threads() == 1
                threads.over_lists(kernel, 30, 30)
            assert torch.get_num_threads() == 1
            raise KeyError
        assert torch.get_num_threads() == 3
        assert len(workers) == 3
        assert threads._threads is None
    finally:
        torch.set_num_threads(before)


def test_a_first_document_far_from_all_others_costs_no_digits(worked):
    model, x = build(**TOWER), documents(2 * BLOCK)
    x[0, 0] = 1e6
    result, exact = step(model, x), step(copy.deepcopy(model).double(), x.double())
    for name in ("input_norm.running_mean", "input_norm.running_var"):
        assert (result[name].double() - exact[name]).norm() <= 1e-5 * exact[name].norm(), name


def test_what_is_not_a_number_is_not_hidden(worked):
    x = documents(2 * BLOCK)
    x[0, 3, 2] = float("nan")
    assert step(build(), x)["scores"].isnan().any()


@pytest.mark.parametrize(
    "settings",
    [{"dropout": 0.1}, {"activation": "celu"}, {"norm": "query"}],
    ids=str,
)
def test_other_layers_are_worked_one_by_one(settings, worked):
    build(**settings)(documents(700), None, np.array([[300, 400]]))
    assert worked == []


def test_scoring_short_steps_and_other_precisions_are_worked_one_by_one(worked, monkeypatch):
    model, x = build(), documents(BLOCK)
    model.eval()(x)
    with torch.no_grad():
        model.train()(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(x)
    monkeypatch.setattr(blocks, "LEAST", BLOCK + 1)
    model(x)
    assert worked == []


def test_short_steps_of_several_models_are_worked_in_blocks(worked, monkeypatch):
    monkeypatch.setattr(blocks, "LEAST", 1 << 40)
    build(2)(documents(3, models_of_stack=2))
    assert worked == [3]


def test_parameters_that_adjoin_in_memory_are_not_copied():
    vector = torch.arange(24.0)
    adjoining = [vector[2:8].view(1, 2, 3), vector[8:20].view(1, 3, 4)]
    apart = [vector[2:8].view(1, 2, 3), vector[12:24].view(1, 3, 4)]
    elsewhere = [vector[18:24].view(1, 2, 3), torch.ones(1, 3, 4)]
    for values, shared in ((adjoining, True), (apart, False), (elsewhere, False)):
        flat = plans.flattened(values)
        assert flat.tolist() == torch.cat([value.flatten() for value in values]).tolist()
        assert np.shares_memory(flat, vector.numpy()) == shared
