"""SL@K and PSL: the authors' values, the softmax loss as a limit, and sigmoid ranks."""

from __future__ import annotations

import pytest
import torch

from directrank import losses, metrics
from losses_cases import random_lists, value_and_gradient

#: What the losses of IR-Benchmark (commit 1dd8de9) make of a user's items, whose cosines these are;
#: every item is among the sampled ones, and the threshold of SL@K is the score at rank k.
COSINES = torch.tensor([[0.3, -0.5, 0.8, 0.1, -0.9, 0.55]], dtype=torch.float64)
RELEVANT = torch.tensor([[1.0, 0, 0, 1, 0, 1]], dtype=torch.float64)
RECORDED = [
    (
        "sl_at_k",
        {"k": 2},
        0.7386232235808944,
        [0.0743603702194798, 0.0361288176565806, 0.1325673502323147, 0.0870298738816280,
         0.0242178707147724, 0.0578362040499493],
    ),
    (
        "sl_at_k",
        {"k": 3, "tau": 0.4, "beta": 4.0},
        0.9098796205651748,
        [0.4186561846652269, 0.0243072256597805, 0.6268916122096553, 0.5542448194359025,
         0.0089421285921482, 0.0781780276800685],
    ),
    (
        "psl",
        {},
        1.5840467097630888,
        [-0.1018087262830335, 0.1104376867162663, 0.1683450866508491, -0.0655191957637393,
         0.0608111181282528, -0.1722659693485954],
    ),
    (
        "psl",
        {"tau": 0.4},
        1.7234399151957753,
        [-0.2196716063040096, 0.0468239741472171, 0.6323871758315897, -0.2351521839347559,
         0.0093156360486361, -0.2337029957886767],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "value", "gradient"), RECORDED)
def test_values_and_gradients_are_the_authors(name, options, value, gradient):
    found = value_and_gradient(losses.get(name), COSINES, RELEVANT, None, **options)
    expected = tuple(torch.tensor([each], dtype=torch.float64) for each in (value, gradient))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_a_list_that_is_not_cut_off_has_the_softmax_loss():
    scores, labels, mask = random_lists(8, 9, seed=5)
    for loss in (
        lambda s, y, m: losses.sl_at_k(s, y, m, k=9, gain="linear"),
        lambda s, y, m: losses.sl_at_k(s, y, m, k=40, gain="linear"),
        lambda s, y, m: losses.softmax_cross_entropy(s, y, m, normalize=True),
    ):
        found = value_and_gradient(loss, scores, labels, mask)
        expected = value_and_gradient(
            losses.softmax_cross_entropy, scores, labels, mask, normalize=True
        )
        torch.testing.assert_close(found, expected)


def test_a_steep_cutoff_leaves_the_first_documents_and_half_of_the_last_one():
    scores, labels, mask = random_lists(8, 12, seed=6)
    value = losses.sl_at_k(scores, labels, mask, k=3, beta=1e6)
    for b in range(3, 8):
        s, gains = scores[b][mask[b]], 2 ** labels[b][mask[b]] - 1
        order = s.argsort(descending=True)[:3]
        costs = torch.logsumexp(s, 0) - s[order]
        weights = torch.tensor([1, 1, 0.5], dtype=torch.float64) * gains[order] / gains.sum()
        assert value[b].item() == pytest.approx((weights * costs).sum().item(), rel=1e-9)


def test_masked_documents_are_not_among_the_first():
    scores = torch.tensor([[9.0, 0.4, 0.1, -0.2, 0.3]], dtype=torch.float64)
    labels = torch.tensor([[4.0, 0.0, 1.0, 2.0, 0.0]], dtype=torch.float64)
    mask = torch.tensor([[False, True, True, True, True]])
    value = losses.sl_at_k(scores, labels, mask, k=2)
    torch.testing.assert_close(value, losses.sl_at_k(scores[:, 1:], labels[:, 1:], k=2))


@pytest.mark.parametrize("name", ["sl_at_k", "psl"])
def test_grades_weight_the_losses_of_relevant_documents_by_their_gains(name):
    scores, labels, _ = random_lists(6, 8, seed=7)
    loss, options = losses.get(name), {"k": 3} if name == "sl_at_k" else {}
    alone = torch.stack(
        [loss(scores, one.expand_as(scores), **options) for one in torch.eye(8).double()], 1
    )
    gains = 2**labels - 1
    expected = (gains * alone).sum(1) / gains.sum(1).clamp_min(1)
    torch.testing.assert_close(loss(scores, labels, **options), expected)


def test_psl_is_a_logarithm_of_sigmoid_ranks_of_steepness_two():
    scores, labels, mask = random_lists(8, 9, seed=8)
    value = losses.psl(scores, labels, mask)
    for b in range(3, 8):
        s, gains = scores[b][mask[b]], 2 ** labels[b][mask[b]] - 1
        ranks = 0.5 + torch.sigmoid(2 * (s[None] - s[:, None])).sum(1)
        expected = (gains * torch.log(2 * ranks - 1)).sum() / gains.sum()
        assert value[b].item() == pytest.approx(expected.item(), rel=1e-12)


@pytest.mark.parametrize("scale", [0.3, 1.0, 10.0])
def test_psl_lies_between_the_logarithm_of_the_rank_and_the_softmax_loss(scale):
    """1{d ≥ 0} ≤ 1 + tanh(d) ≤ exp(d) for every d, not only for differences of cosines."""
    scores, labels, mask = random_lists(40, 15, seed=9, scale=scale)
    value = losses.psl(scores, labels, mask, gain="linear")
    softmax = losses.softmax_cross_entropy(scores, labels, mask, normalize=True)
    ranks = (scores[:, None] >= scores[:, :, None]).masked_fill(~mask[:, None], 0).sum(2)
    share = labels * mask / (labels * mask).sum(1, keepdim=True).clamp_min(1)
    of_ranks = (share * ranks.clamp_min(1).double().log()).sum(1)
    assert (of_ranks <= value + 1e-12).all()
    assert (value <= softmax + 1e-12).all()
    assert (value[3:] < softmax[3:]).all()


def test_with_one_relevant_document_psl_bounds_what_ndcg_lacks():
    scores, _, _ = random_lists(40, 12, seed=10)
    labels = torch.zeros_like(scores)
    labels[:, 4] = 1
    value = losses.psl(scores, labels)
    assert (value >= -metrics.ndcg(scores, labels).log() - 1e-12).all()
