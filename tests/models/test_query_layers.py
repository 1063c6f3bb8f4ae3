"""Layers computed list by list give what PyTorch's layers give one after the other."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from directrank import models
from directrank.kernels import threads
from directrank.kernels.compiling import compiled
from directrank.kernels.numbers import expm1
from directrank.lists.documents import Documents
from directrank.models.query_layers import MOST_CHUNKS, WIDEST, QueryLayers
from directrank.system.seeds import torch_stream
from scorer_steps import documents_seen, step

BASE = {
    "name": "feed_forward",
    "activation": "relu",
    "output_activation": True,
    "hidden": [12, 9, 11],
    "dropout": 0.0,
}
SETTINGS = (
    {},
    {"activation": "celu"},
    {"output_activation": False},
    {"activation": "celu", "output_activation": False, "output_norm": False},
    {"dropout": 0.3},
    {"dropout": 0.3, "hidden": [12, 12, 12]},
    {"activation": "celu", "dropout": 0.3, "hidden": [20]},
    {"hidden": []},
)

#: Documents of each query of each model: one query, several, more than chunks, several models of
#: different numbers, queries of one document and of none.
LENGTHS = (
    [[30]],
    [[5, 1, 9, 40]],
    [[3 + number % 4 for number in range(2 * MOST_CHUNKS + 3)]],
    [[5, 9], [14, 1], [2, 3]],
    [[0, 7, 0], [4, 0, 6]],
)


def build(models_of_stack: int = 1, **settings) -> nn.Module:
    streams = [torch_stream("model", number) for number in range(models_of_stack)]
    model = models.build({**BASE, **settings}, 7, streams)
    for number, parameter in enumerate(model.parameters()):
        noise = torch.randn(parameter.shape, generator=torch_stream("noise", number))
        parameter.data += 0.3 * noise
    return model.train()


def batch(lengths: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor | None, np.ndarray]:
    """Documents, which of them are real (None if all are), and the numbers of each query."""
    numbers = np.array(lengths)
    totals = torch.from_numpy(numbers.sum(1))
    count = int(totals.max())
    x = 2 * torch.randn(len(totals), count, 7, generator=torch_stream("x")) + 1
    if (totals == count).all():
        return x, None, numbers
    rows = torch.arange(count) < totals[:, None]
    return torch.where(rows[:, :, None], x, 99.0), rows, numbers


@pytest.fixture
def by_list(monkeypatch) -> list[int]:
    """Numbers of documents per model that were computed list by list, from the first on."""
    return documents_seen(QueryLayers, monkeypatch)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 2e-4), (torch.float64, 1e-9)])
def test_scores_and_gradients_are_those_of_the_plain_layers(
    settings, lengths, dtype, near, by_list, monkeypatch
):
    x, rows, numbers = batch(lengths)
    result = step(build(len(lengths), **settings).to(dtype), x.to(dtype), rows, numbers)
    assert by_list == [x.shape[1]]
    monkeypatch.setattr(QueryLayers, "accept", lambda self, x: False)
    plain = step(build(len(lengths), **settings).double(), x.double(), rows, numbers)
    assert by_list == [x.shape[1]]
    assert result.keys() == plain.keys()
    for name, expected in plain.items():
        assert (result[name].double() - expected).norm() <= near * max(expected.norm(), 1), name


@pytest.mark.parametrize("settings", SETTINGS[:4], ids=str)
def test_gradients_are_those_of_finite_differences(settings, by_list):
    model = build(**settings).double()
    x, rows, lengths = batch([[4, 6]])
    parameters = [parameter.detach().requires_grad_() for parameter in model.parameters()]
    names = [name for name, _ in model.named_parameters()]

    def scores(*values: torch.Tensor) -> torch.Tensor:
        model.by_query.parameters = list(values)
        return model(x.double(), rows, lengths)

    assert torch.autograd.gradcheck(scores, parameters), names
    assert by_list


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_the_number_of_threads_changes_no_byte(lengths, dropout, by_list, monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 10)
    before, results = torch.get_num_threads(), []
    try:
        for number in (1, 2, 5):
            torch.set_num_threads(number)
            results.append(step(build(len(lengths), dropout=dropout), *batch(lengths)))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(results[0][name], other[name]) for name in other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_documents_are_taken_out_of_a_table_with_the_same_bytes(lengths, dtype, by_list):
    model, (x, rows, numbers) = build(len(lengths)).to(dtype), batch(lengths)
    order = torch.randperm(x.shape[0] * x.shape[1], generator=torch_stream("order"))
    table = torch.empty(len(order) + 5, x.shape[2])
    table[order] = x.reshape(len(order), -1)
    taken, x = Documents(table, order.view(x.shape[:2]).numpy(), dtype), x.to(dtype)
    result, expected = step(model, taken, rows, numbers), step(model, x, rows, numbers)
    assert len(by_list) == 2
    assert all(torch.equal(result[name], expected[name]) for name in expected)


def test_scoring_gives_the_bytes_of_training_without_dropout(by_list):
    model, (x, _, lengths) = build(dropout=0.4), batch(LENGTHS[1])
    trained_as = build(dropout=0.0)(x, None, lengths)
    with torch.no_grad():
        assert torch.equal(model.eval()(x, None, lengths), trained_as)
    assert len(by_list) == 2


def test_models_that_see_the_same_documents_score_them_as_alone(by_list):
    stack, (x, _, lengths) = build(3), batch(LENGTHS[1])
    with torch.no_grad():
        together = stack.eval()(x, None, lengths)
        each = stack(x.expand(3, -1, -1).contiguous(), None, lengths.repeat(3, 0))
    assert torch.equal(together, each)
    assert len(by_list) == 2


def test_a_query_of_one_document_has_the_score_of_its_norms_alone(by_list):
    x, _, lengths = batch([[1]])
    first, second = (build()(documents, None, lengths) for documents in (x, x + 5))
    assert torch.equal(first, second)


def test_what_is_not_a_number_is_not_hidden(by_list):
    for settings in SETTINGS[:2]:
        x, rows, lengths = batch(LENGTHS[1])
        x[0, 20, 2] = float("nan")
        scores = build(**settings)(x, rows, lengths)[0]
        assert scores[15:].isnan().all()
        assert not scores[:15].isnan().any()


def test_a_model_that_was_copied_uses_its_own_parameters(by_list):
    model, (x, _, lengths) = build(), batch(LENGTHS[1])
    before = model(x, None, lengths)
    other = copy.deepcopy(model)
    for parameter in other.parameters():
        parameter.data += 0.1
    assert torch.equal(model(x, None, lengths), before)
    assert not torch.equal(other(x, None, lengths), before)


def test_gradients_of_documents_wide_layers_and_half_precision_are_left_to_pytorch(by_list):
    x, _, lengths = batch(LENGTHS[1])
    assert build()(x.requires_grad_(), None, lengths).requires_grad
    x = x.detach()
    build(hidden=[WIDEST + 1])(x, None, lengths)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        build()(x, None, lengths)
    assert by_list == []


def test_steps_are_known_to_be_compiled_loops():
    assert build().compiled
    assert not build(hidden=[WIDEST + 1]).compiled
    assert not build().to(torch.bfloat16).compiled


def test_more_documents_than_rows_are_refused():
    x, _, lengths = batch(LENGTHS[1])
    with pytest.raises(ValueError, match="more documents than the 55 rows"):
        build()(x, None, lengths + 1)


@pytest.mark.parametrize(("dtype", "near"), [(np.float32, 2e-7), (np.float64, 3e-16)])
def test_expm1_keeps_its_digits_near_0_and_far_from_it(dtype, near):
    @compiled
    def of_all(values, result):
        for i in range(len(values)):
            result[i] = expm1(values[i])

    powers = -np.geomspace(1e-30, 1e30, 1201)
    values = np.concatenate([powers, [0.0, -np.inf, np.nan]]).astype(dtype)
    result = np.empty_like(values)
    of_all(values, result)
    expected = np.expm1(values.astype(np.float64))
    assert np.isnan(result[-1])
    assert np.allclose(result[:-1], expected[:-1], rtol=near, atol=0)
