"""The context-aware ranker in compiled loops gives what PyTorch's layers give."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from directrank import models
from directrank.kernels import threads
from directrank.kernels.encoder import BLOCK
from directrank.lists.documents import Documents
from directrank.models.encoder import WIDEST, Encoder
from directrank.system.seeds import torch_stream
from scorer_steps import counters, documents_seen, step

F = 5
BASE = {"name": "context", "width": 8, "inner": 12, "blocks": 2, "heads": 1, "dropout": 0.0}
SETTINGS = (
    {},
    {"heads": 2},
    {"dropout": 0.3},
    {"dropout": 0.3, "heads": 4, "blocks": 1, "output": "tanh"},
    {"blocks": 3, "inner": 30, "width": 6},
)

#: Documents of each list of each model: one list; several, of one document and of none; more than
#: fit into a block; one list longer than a block; models of different numbers, one of which has
#: none.
LENGTHS = (
    [[20]],
    [[5, 1, 9, 0, 40]],
    [[30 + number % 7 for number in range(40)]],
    [[2, BLOCK + 3, 4]],
    [[5, 9, 0], [0, 0, 0], [14, 1, 2]],
)


def build(count: int = 1, **settings) -> nn.Module:
    streams = [torch_stream("model", number) for number in range(count)]
    model = models.build({**BASE, **settings}, F, streams)
    for number, parameter in enumerate(model.parameters()):
        noise = torch.randn(parameter.shape, generator=torch_stream("noise", number))
        parameter.data += 0.3 * noise
    return model.train()


def batch(lengths: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Documents, which of them are real, and the numbers of each list; the rest is padding."""
    numbers = np.array(lengths)
    totals = torch.from_numpy(numbers.sum(1))
    count = int(totals.max()) + 2
    x = torch.randn(len(totals), count, F, generator=torch_stream("x")) + 1
    rows = torch.arange(count) < totals[:, None]
    return torch.where(rows[:, :, None], x, 99.0), rows, numbers


@pytest.fixture
def compiled(monkeypatch) -> list[int]:
    """Numbers of documents per model that passed through compiled loops, from the first on."""
    return documents_seen(Encoder, monkeypatch)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.long)], ids=str
)
def test_scores_and_gradients_are_those_of_pytorchs_layers(
    settings, lengths, dtype, compiled, monkeypatch
):
    x, rows, numbers = batch(lengths)
    result = step(build(len(lengths), **settings).to(dtype), x.to(dtype), rows, numbers)
    assert compiled == [x.shape[1]]
    monkeypatch.setattr(Encoder, "accept", lambda self, x: False)
    plain = step(build(len(lengths), **settings).double(), x.double(), rows, numbers)
    assert compiled == [x.shape[1]]
    assert result.keys() == plain.keys()
    near = 1e-10 if dtype == torch.float64 else 1e-4
    for name, expected in plain.items():
        assert (result[name].double() - expected).norm() <= near * max(expected.norm(), 1), name


@pytest.mark.long  # it compiles the loops for float64
@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
def test_gradients_are_those_of_finite_differences(settings, compiled):
    model = build(**settings, width=4, inner=5).double()
    x, rows, lengths = batch([[4, 3]])
    parameters = [parameter.detach().requires_grad_() for parameter in model.encoder.parameters]

    def scores(*values: torch.Tensor) -> torch.Tensor:
        model.encoder.parameters = list(values)
        return model(x.double(), rows, lengths)

    assert torch.autograd.gradcheck(scores, parameters)
    assert compiled


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_the_number_of_threads_changes_no_byte(lengths, dropout, compiled, monkeypatch):
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


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_model_of_a_stack_has_the_bytes_that_it_has_alone(dropout, compiled):
    lengths = LENGTHS[-1]
    x, rows, numbers = batch(lengths)
    together = step(build(3, dropout=dropout), x, rows, numbers)
    for own in (0, 2):
        alone = build(3, dropout=dropout)
        for parameter in alone.parameters():
            parameter.data = parameter.data[own : own + 1]
        count = numbers[own].sum()
        drawn = counters(1, numbers.shape[1], first=own)
        scores = alone(x[own : own + 1, :count], None, numbers[own : own + 1], drawn)
        assert torch.equal(scores[0], together["scores"][own, :count])
    assert not together["input.weight"][1].any()


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_documents_are_taken_out_of_a_table_with_the_same_bytes(lengths, compiled):
    model, (x, rows, numbers) = build(len(lengths)), batch(lengths)
    order = torch.randperm(x.shape[0] * x.shape[1], generator=torch_stream("order"))
    table = torch.empty(len(order) + 5, F)
    table[order] = x.reshape(len(order), -1)
    taken = Documents(table, order.view(x.shape[:2]).numpy(), torch.float32)
    result, expected = step(model, taken, rows, numbers), step(model, x, rows, numbers)
    assert len(compiled) == 2
    assert all(torch.equal(result[name], expected[name]) for name in expected)


def test_pytorchs_layers_take_documents_out_of_a_table_as_well(compiled, monkeypatch):
    monkeypatch.setattr(Encoder, "accept", lambda self, x: False)
    model, (x, rows, numbers) = build(), batch(LENGTHS[1])
    taken = Documents(x[0], np.arange(x.shape[1])[None], torch.float32)
    assert torch.equal(model(taken, rows, numbers), model(x, rows, numbers))
    assert compiled == []


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_scoring_gives_the_bytes_of_training_without_dropout(lengths, compiled):
    model, (x, rows, numbers) = build(len(lengths), dropout=0.4), batch(lengths)
    trained_as = build(len(lengths))(x, rows, numbers)
    with torch.no_grad():
        assert torch.equal(model.eval()(x, rows, numbers), trained_as)
    assert len(compiled) == 2


def test_what_is_not_a_number_stays_in_its_list(compiled):
    x, rows, lengths = batch(LENGTHS[1])
    x[0, 20, 2] = float("nan")
    scores = build(dropout=0.3)(x, rows, lengths, counters(1, lengths.shape[1]))[0]
    assert scores[15:55].isnan().all()
    assert not scores[:15].isnan().any()


def test_a_model_that_was_copied_uses_its_own_parameters(compiled):
    model, (x, rows, lengths) = build(), batch(LENGTHS[1])
    before = model(x, rows, lengths)
    other = copy.deepcopy(model)
    for parameter in other.parameters():
        parameter.data += 0.1
    assert torch.equal(model(x, rows, lengths), before)
    assert not torch.equal(other(x, rows, lengths), before)


def test_gradients_of_documents_wide_layers_and_half_precision_are_left_to_pytorch(compiled):
    x, rows, lengths = batch(LENGTHS[1])
    assert build()(x.requires_grad_(), rows, lengths).requires_grad
    x = x.detach()
    build(inner=WIDEST + 1)(x, rows, lengths)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        build()(x, rows, lengths)
    assert compiled == []


def test_steps_are_known_to_be_compiled_loops():
    assert build().compiled
    assert not build(inner=WIDEST + 1).compiled
    assert not build().to(torch.bfloat16).compiled


def test_more_documents_than_rows_are_refused():
    x, rows, lengths = batch(LENGTHS[1])
    with pytest.raises(ValueError, match="more documents than the 57 rows"):
        build()(x, rows, lengths + 1)
