"""ADR-MSE: its minimum, its limit at exact ranks, and its discount."""

from __future__ import annotations

import math

import pytest
import torch

from directrank import losses
from losses_cases import random_lists, value_and_gradient


def test_of_two_documents_the_loss_is_its_formula():
    scores = torch.tensor([[0.4, -0.3]], dtype=torch.float64)
    value = losses.adr_mse(scores, torch.tensor([[0.0, 2.0]]), alpha=2.0)
    first = 1 / (1 + math.exp(-2 * (-0.3 - 0.4)))  # how far the first one is behind the second
    errors = (1 + first - 2) ** 2 / math.log2(3), (1 + (1 - first) - 1) ** 2 / math.log2(2)
    assert value.item() == pytest.approx(sum(errors) / 2, rel=1e-12)


def test_documents_of_equal_labels_are_asked_for_equal_scores():
    scores = torch.full((1, 5), 0.7, dtype=torch.float64)
    value, gradient = value_and_gradient(losses.adr_mse, scores, torch.full((1, 5), 2.0), None)
    assert value.item() == pytest.approx(0, abs=1e-28)
    assert gradient.abs().max() < 1e-14


def test_steep_ranks_in_the_order_of_the_labels_cost_nothing_and_in_reverse_the_most():
    labels = torch.tensor([[3.0, 2.0, 1.0, 0.0]], dtype=torch.float64)
    best = losses.adr_mse(labels, labels, alpha=1e3)
    worst = losses.adr_mse(-labels, labels, alpha=1e3)
    assert best.item() == pytest.approx(0, abs=1e-12)
    errors = [(5 - 2 * r) ** 2 / math.log2(1 + r) for r in (1, 2, 3, 4)]
    assert worst.item() == pytest.approx(sum(errors) / 4)


def test_an_error_counts_more_at_the_top():
    """The same error in the labels' order is made at its top or at its end."""
    labels = torch.tensor([[4.0, 3.0, 2.0, 1.0]], dtype=torch.float64)
    top = losses.adr_mse(torch.tensor([[3.0, 4.0, 2.0, 1.0]]).double(), labels, alpha=1e3)
    end = losses.adr_mse(torch.tensor([[4.0, 3.0, 1.0, 2.0]]).double(), labels, alpha=1e3)
    assert top.item() == pytest.approx((1 + 1 / math.log2(3)) / 4)
    assert end.item() == pytest.approx((1 / 2 + 1 / math.log2(5)) / 4)


def test_the_mean_is_over_the_documents_of_each_list():
    scores, labels, mask = random_lists(8, 12, seed=3)
    value = losses.adr_mse(scores, labels, mask)
    twice = torch.cat([mask, torch.zeros_like(mask)], 1)
    wide = losses.adr_mse(torch.cat([scores] * 2, 1), torch.cat([labels] * 2, 1), twice)
    torch.testing.assert_close(wide, value)


def test_forces_of_a_query_sum_to_zero():
    scores, labels, mask = random_lists(8, 12, seed=4)
    _, gradient = value_and_gradient(losses.adr_mse, scores, labels, mask)
    assert gradient.sum(1).abs().max() < 1e-12
    assert gradient.abs().max() > 1e-3
