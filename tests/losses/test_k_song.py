"""SONG and K-SONG: LibAUC's gradients, bounds and limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from directrank import losses, metrics
from directrank.losses._k_song import hinged_dcg
from directrank.system.errors import DirectrankError
from losses_cases import random_lists, value_and_gradient

RECORD = json.loads(
    (Path(__file__).parents[1] / "helpers/authors_values.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("k", [None, 3])
def test_gradients_are_libaucs_without_memory(k):
    """Its loss is one whose gradient alone means something."""
    scores, labels = torch.tensor(RECORD["scores"]), torch.tensor(RECORD["labels"])
    _, gradient = value_and_gradient(losses.k_song, scores, labels, None, k=k)
    expected = torch.tensor(RECORD["k_song"][f"@{k}"]["gradient"])
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"margin": 0.5, "gain": "linear"}], ids=str)
def test_the_gradient_of_song_equals_finite_differences(options):
    scores, labels, mask = random_lists(6, 9, seed=21)

    def of(scores):
        return losses.k_song(scores, labels, mask, **options)

    assert torch.autograd.gradcheck(of, scores.requires_grad_(), eps=1e-6, atol=1e-6, rtol=1e-5)


def test_weights_of_the_cutoff_are_constants_of_the_gradient():
    scores, labels, mask = random_lists(6, 9, seed=22)
    value, gradient = value_and_gradient(losses.k_song, scores, labels, mask, k=3)
    weights = torch.rand(6, 9, dtype=torch.float64) * mask

    def of(scores):
        return hinged_dcg(scores, weights, mask, 1.0)

    assert torch.autograd.gradcheck(of, scores.requires_grad_(), eps=1e-6, atol=1e-6, rtol=1e-5)
    assert (value[3:] < 0).all()
    assert gradient.sum(1).abs().max() < 1e-12


def test_a_margin_of_one_counts_no_less_than_ranks_so_that_ndcg_is_bounded():
    scores, labels, mask = random_lists(60, 15, seed=9)
    value = -losses.k_song(scores, labels, mask)
    assert (value <= metrics.ndcg(scores, labels, mask, empty="zero") + 1e-12).all()


def test_of_documents_a_margin_apart_or_more_in_the_best_order_the_bound_is_ndcg():
    scores = torch.tensor([[5.0, 3.5, 1.0, -2.0]], dtype=torch.float64)
    assert losses.k_song(scores, torch.tensor([[3.0, 0, 0, 0]])).item() == pytest.approx(-1)


def test_a_steep_cutoff_leaves_the_first_k_documents():
    scores, labels, mask = random_lists(8, 12, seed=4)
    steep = losses.k_song(scores, labels, mask, k=3, beta=1e6)
    for b in range(3, 8):
        s, y = scores[b][mask[b]], labels[b][mask[b]]
        first = s >= s.sort(descending=True).values[2]
        gains = 2**y - 1
        ideal = gains.sort(descending=True).values[:3] / torch.log2(torch.arange(2, 5).double())
        counts = (1 - (s[:, None] - s[None])).clamp_min(0).square().sum(1)
        expected = -((gains / torch.log2(1 + counts))[first]).sum() / ideal.sum()
        assert steep[b].item() == pytest.approx(expected.item(), rel=1e-12)


def test_of_a_list_no_longer_than_the_cutoff_nothing_is_cut_off():
    scores, labels, mask = random_lists(8, 12, seed=4)
    torch.testing.assert_close(
        losses.k_song(scores, labels, mask, k=12), losses.k_song(scores, labels, mask)
    )
    short = mask.clone()
    short[:, 4:] = False
    torch.testing.assert_close(
        losses.k_song(scores, labels, short, k=4), losses.k_song(scores, labels, short)
    )


def test_a_margin_of_nothing_is_refused():
    with pytest.raises(DirectrankError, match="above 0"):
        losses.k_song(torch.zeros(2, 3), torch.ones(2, 3), margin=0.0)
