"""Gradients of a step's forward pass, with and without compiled loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from directrank import models
from directrank.learners.neural.forward import forward
from directrank.system.seeds import torch_stream
from scorer_steps import counters

QUERY_LAYERS = {
    "name": "feed_forward",
    "activation": "celu",
    "output_activation": False,
    "hidden": [12, 9],
    "dropout": 0.2,
}
CONTEXT = {"name": "context", "width": 8, "blocks": 2, "heads": 2, "inner": 12, "dropout": 0.2}
LENGTHS = {1: np.array([[4, 9, 1]]), 3: np.array([[4, 9, 1], [1, 1, 12], [7, 7, 0]])}


def build(settings, stack: int) -> nn.Module:
    return models.build(settings, 5, [torch_stream("forward", n) for n in range(stack)]).train()


def objective(scores: Tensor) -> Tensor:
    return torch.sin(scores).sum(1)


@pytest.mark.parametrize("stack", [1, 3])
@pytest.mark.parametrize("settings", [QUERY_LAYERS, CONTEXT, {**CONTEXT, "output": "tanh"}])
def test_gradients_without_autograd_are_those_that_it_gives_in_the_order_of_parameters(
    settings, stack
):
    x = torch.randn(stack, 14, 5, generator=torch_stream("documents"))
    model, same = build(settings, stack), build(settings, stack)
    lengths = LENGTHS[stack]
    drawn = counters(stack, 3)
    passed = forward(model, list(model.parameters()), x, None, lengths, drawn, torch.float32)
    assert passed.compiled is not None
    (found,) = passed.gradients(objective(passed.scores))
    scores = same(x, None, lengths, counters(stack, 3))
    expected = torch.autograd.grad(objective(scores).sum(), list(same.parameters()))
    assert torch.equal(passed.scores, scores)
    assert torch.equal(found, torch.cat([gradient.flatten() for gradient in expected]))


def test_a_scorer_without_loops_leaves_gradients_to_autograd():
    model = build({"name": "linear"}, 2)
    x = torch.randn(2, 14, 5, generator=torch_stream("documents"))
    drawn = counters(len(next(model.parameters())), 3)
    passed = forward(model, list(model.parameters()), x, None, LENGTHS[1], drawn, torch.float32)
    assert passed.compiled is None
    found = passed.gradients(objective(passed.scores))
    assert [gradient.shape for gradient in found] == [p.shape for p in model.parameters()]
    assert any(gradient.any() for gradient in found)


@pytest.mark.parametrize("settings", [QUERY_LAYERS, {"name": "linear"}])
def test_values_that_do_not_depend_on_the_scores_have_gradients_of_zero(settings):
    model = build(settings, 1)
    x = torch.randn(1, 14, 5, generator=torch_stream("documents"))
    drawn = counters(len(next(model.parameters())), 3)
    passed = forward(model, list(model.parameters()), x, None, LENGTHS[1], drawn, torch.float32)
    for gradient in passed.gradients(torch.zeros(1)):
        assert not gradient.any()
