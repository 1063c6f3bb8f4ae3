"""SoftSort and Sinkhorn sorting: their matrices, the transport problem, and OTT-JAX."""

from __future__ import annotations

import pytest
import torch

from directrank import losses
from directrank.relaxations.sinkhorn_sort import standardised
from directrank.relaxations.soft_sort import top_rows
from losses_cases import random_lists, value_and_gradient


def entropic_plan(x: torch.Tensor, tau: float) -> torch.Tensor:
    """The transport plan of one list's squashed scores to the grid, by Sinkhorn in logarithms."""
    grid = torch.linspace(1, 0, len(x), dtype=x.dtype)
    logs = -((x[:, None] - grid) ** 2) / tau
    for _ in range(20_000):
        logs = logs - logs.logsumexp(1, keepdim=True)
        logs = logs - logs.logsumexp(0, keepdim=True)
    return logs.exp()


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.02, 0.1, 1.0])
def test_the_loss_is_ndcg_of_the_entropic_transport_plan(tau):
    scores, labels, mask = random_lists(6, 8, seed=3)
    value = losses.sinkhorn_ndcg(scores, labels, mask, tau=tau, iterations=20_000, tolerance=1e-12)
    for b in range(3, 6):
        s, gains = scores[b][mask[b]], 2 ** labels[b][mask[b]] - 1
        # With the smallest spread of scores, 1e-3, which is added to theirs.
        x = torch.sigmoid((s - s.mean()) / (s.var(correction=0) + 1e-6).sqrt())
        discounts = 1 / torch.log2(torch.arange(2, len(s) + 2).double())
        best = gains.sort(descending=True).values @ discounts
        expected = -(gains @ entropic_plan(x, tau) @ discounts) / best
        assert value[b].item() == pytest.approx(expected.item(), rel=1e-9)


@pytest.mark.parametrize(
    ("tau", "expected", "gradient", "tolerance"),
    [
        (0.05, -0.5706526710, [-0.0481236893, 0.0128360902, 0.0144370911, 0.0201632755,
                               -0.0054161687, 0.0061034010], 2e-5),
        (0.2, -0.5945002138, [-0.0267833361, 0.0178971742, 0.0070503361, 0.0063645048,
                              -0.0125286385, 0.0079999596], 1e-7),
    ],
)  # fmt: skip
def test_values_and_gradients_are_ott_jaxs(tau, expected, gradient, tolerance):
    """Recorded from version 0.6.0; at the smaller entropy its plan has not converged as far."""
    scores = torch.tensor([[0.9, -0.3, 0.4, 1.7, -1.2, 0.1]], dtype=torch.float64)
    labels = torch.tensor([[2.0, 0, 1, 0, 3, 1]], dtype=torch.float64)
    found = value_and_gradient(
        losses.sinkhorn_ndcg, scores, labels, None, tau=tau, iterations=20_000, tolerance=1e-12
    )
    for ours, theirs in zip(found, ([expected], [gradient]), strict=True):
        theirs = torch.tensor(theirs, dtype=torch.float64)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


def test_neither_shift_nor_scale_of_the_scores_matters_to_sinkhorn_sorting():
    scores, labels, mask = random_lists(6, 9, seed=4)
    value = losses.sinkhorn_ndcg(scores, labels, mask)
    torch.testing.assert_close(
        losses.sinkhorn_ndcg(50 * scores - 7, labels, mask), value, rtol=1e-5, atol=1e-7
    )


def test_standardised_scores_have_mean_0_and_spread_1_and_equal_ones_are_0():
    scores, _, mask = random_lists(6, 9, seed=5)
    scores[4] = 0.3
    z = standardised(scores.masked_fill(~mask, 0.0), mask)
    assert (z[~mask] == 0).all()
    assert z.sum(1).abs().max() < 1e-10
    assert z[4].abs().max() < 1e-10
    for b in (0, 2, 3, 5):
        assert z[b][mask[b]].std(correction=0).item() == pytest.approx(1, rel=1e-5)


def test_the_rows_of_softsort_are_distributions_around_the_document_of_their_rank():
    scores, _, mask = random_lists(6, 9, seed=6)
    shown = scores.masked_fill(~mask, 0.0)
    matrix = top_rows(shown, mask, None)
    n = mask.sum(1, keepdim=True)
    torch.testing.assert_close(matrix.sum(2), (torch.arange(9) < n).double())
    assert (matrix.mT[~mask] == 0).all()
    for b in (0, 2, 3, 4, 5):
        order = shown[b].masked_fill(~mask[b], -torch.inf).argsort(descending=True)
        assert torch.equal(matrix[b].argmax(1)[: n[b]], order[: n[b]])
        # Unimodal: probabilities fall with the distance of the scores.
        ordered = matrix[b][: n[b], order[: n[b]]]
        for r in range(n[b]):
            assert (ordered[r, r:].diff() <= 0).all()
            assert (ordered[r, : r + 1].diff() >= 0).all()


def test_softsort_of_two_documents_is_a_sigmoid_of_their_distance():
    scores = torch.tensor([[0.2, 0.9]], dtype=torch.float64)
    matrix = top_rows(scores / 0.5, torch.ones(1, 2, dtype=torch.bool), None)
    near = torch.sigmoid(torch.tensor(0.7 / 0.5).double()).item()
    expected = torch.tensor([[[1 - near, near], [near, 1 - near]]], dtype=torch.float64)
    torch.testing.assert_close(matrix, expected)


def test_the_first_rows_of_softsort_are_those_of_the_whole_matrix():
    scores, _, mask = random_lists(6, 9, seed=7)
    shown = scores.masked_fill(~mask, 0.0)
    torch.testing.assert_close(top_rows(shown, mask, 4), top_rows(shown, mask, None)[:, :4])


def test_documents_with_equal_scores_do_not_push_each_other_apart(monkeypatch):
    """The kernel's passes over the sorted list take no side, as the formula does."""
    generator = torch.Generator().manual_seed(3)
    scores = torch.randint(0, 4, (30, 12), generator=generator).double()
    labels = torch.randint(0, 3, (30, 12), generator=generator).double()
    mask = torch.arange(12) < torch.randint(1, 13, (30, 1), generator=generator)
    for options in ({}, {"k": 3, "tau": 0.4}):
        found = value_and_gradient(losses.soft_sort_ndcg, scores, labels, mask, **options)
        with monkeypatch.context() as patch:
            patch.setattr("directrank.kernels.dispatch.KERNELS", {})
            expected = value_and_gradient(losses.soft_sort_ndcg, scores, labels, mask, **options)
        torch.testing.assert_close(found, expected)
