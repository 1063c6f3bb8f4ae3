"""Lists on the CPU, with another device as PyTorch's default for new tensors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from directrank import losses, metrics, nn
from losses_cases import DRAWN, LOSSES, random_lists, value_and_gradient

#: A length that no other test has: tables by length are kept.
LENGTH = 37


@pytest.fixture(autouse=True)
def another_default() -> Iterator[None]:
    with torch.device("meta"):
        yield


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("flat", [False, True])
def test_a_loss_computes_where_its_scores_are(name, flat):
    scores, labels, mask = lists_on_the_cpu()
    options = dict(LOSSES[name])
    if flat:
        scores, labels, options["lengths"] = scores[mask], labels[mask], mask.sum(1).tolist()
        mask = None
    if name in DRAWN:
        options["generator"] = torch.Generator("cpu").manual_seed(0)
    value, gradient = value_and_gradient(losses.get(name), scores, labels, mask, **options)
    assert value.device.type == gradient.device.type == "cpu"
    assert value.isfinite().all()


@pytest.mark.parametrize("name", metrics.REGISTRY)
def test_a_metric_computes_where_its_scores_are(name):
    scores, labels, mask = lists_on_the_cpu()
    cut = {"k": 3} if name in ("precision", "recall", "hit_rate") else {}
    assert metrics.get(name)(scores, labels, mask, **cut).device.type == "cpu"


def test_modules_are_made():
    nn.ApproxNDCG()
    nn.TwinNDCG()
    nn.NeuralNDCG()


def lists_on_the_cpu() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    with torch.device("cpu"):
        return random_lists(3, LENGTH, seed=4)
