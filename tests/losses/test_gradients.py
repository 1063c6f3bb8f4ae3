"""Gradients by finite differences where there is a function, by the closed forms elsewhere."""

from __future__ import annotations

import itertools

import pytest
import torch

import losses_references
from directrank import losses
from losses_cases import LOSSES, random_lists, value_and_gradient

SMOOTH = [
    ("rmse", {}),
    ("rmse", {"levels": None}),
    ("ranknet", {}),
    ("ranknet", {"k": 4, "sigma": 0.7, "pair_reduction": "mean"}),
    ("listnet", {}),
    ("wassrank", {"gradient": "autograd"}),
    ("softrank", {}),
    ("softrank", {"k": 3}),
    ("approx_ndcg", {"alpha": 2.0}),
    ("approx_ndcg", {"alpha": 2.0, "k": 3, "beta": 2.0, "discount": "letor", "gain": "linear"}),
    ("approx_ap", {"alpha": 2.0, "beta": 1.0, "k": 4}),
    ("approx_precision", {"alpha": 2.0, "beta": 1.0, "k": 3}),
    ("neural_ndcg", {}),
    ("neural_ndcg", {"k": 3, "tau": 0.7, "iterations": 3}),
    ("neural_ndcg", {"iterations": 0}),
    ("neural_ndcg_transposed", {"iterations": 5}),
    ("softmax_cross_entropy", {}),
    ("softmax_cross_entropy", {"normalize": True}),
    ("poly1", {"epsilon": 2.0}),
    ("unique_softmax", {}),
    ("unique_softmax", {"gain": "linear"}),
    ("pairwise_hinge", {"margin": 0.7}),
    ("sigmoid_cross_entropy", {}),
    ("ordinal", {"levels": 6, "gap": 0.7}),
    ("adr_mse", {"alpha": 0.7}),
    ("soft_sort_ndcg", {"k": 3}),
    ("diff_sort_ndcg", {"alpha": 2.0, "k": 3}),
    ("diff_sort_ndcg", {"alpha": 2.0, "network": "odd_even", "distribution": "logistic"}),
    ("sinkhorn_ndcg", {"tau": 0.1, "k": 3}),
    ("sinkhorn_ndcg", {"tau": 0.3, "iterations": 2, "gain": "linear"}),
    ("psl", {}),
    ("psl", {"tau": 0.4, "gain": "linear"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), SMOOTH)
def test_gradient_equals_finite_differences(name, options):
    scores, labels, mask = random_lists(5, 9, seed=21)
    loss = losses.get(name)

    def of(scores):
        return loss(scores, labels, mask, **options)

    assert torch.autograd.gradcheck(of, scores.requires_grad_(), eps=1e-6, atol=1e-6, rtol=1e-5)


def test_listmle_gradient_equals_finite_differences():
    scores, _, mask = random_lists(5, 9, seed=21)
    labels = torch.arange(9.0, dtype=torch.float64).expand(5, 9).contiguous()

    def of(scores):
        return losses.listmle(scores, labels, mask)

    assert torch.autograd.gradcheck(of, scores.requires_grad_())


@pytest.mark.parametrize(
    "relaxation",
    [
        {"name": "sigmoid", "alpha": 2.0, "beta": 1.5},
        {"name": "neural_sort", "iterations": 4},
        {"name": "rank_binomial"},
    ],
)
@pytest.mark.parametrize(
    "metric", ["ndcg", "average_precision", "precision", "reciprocal_rank", "err", "nerr"]
)
def test_every_composition_with_a_function_agrees_with_finite_differences(metric, relaxation):
    scores, labels, mask = random_lists(5, 7, seed=5, levels=3)
    loss = losses.compose({"name": metric, "k": 3}, relaxation)

    def of(scores):
        return loss(scores, labels, mask)

    assert torch.autograd.gradcheck(of, scores.requires_grad_(), eps=1e-6, atol=1e-6, rtol=1e-5)


def test_gradients_of_the_lists_of_a_batch_are_scaled_by_what_comes_from_above():
    scores, labels, mask = random_lists(6, 9, seed=2)
    weights = torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for name in ("ranknet", "lambdarank", "neural_ndcg", "softrank", "wassrank", "approx_ndcg"):
        loss = losses.get(name)
        _, gradient = value_and_gradient(loss, scores, labels, mask)
        leaf = scores.clone().requires_grad_()
        (weighted,) = torch.autograd.grad((weights * loss(leaf, labels, mask)).sum(), leaf)
        torch.testing.assert_close(weighted, weights.unsqueeze(1) * gradient)


def test_lambdarank_gradient_is_the_written_down_force():
    """Burges2006: pushed by |ΔNDCG| / (1 + exp(s_i - s_j)) for every pair, up and down."""
    scores, labels, mask = random_lists(6, 9, seed=4)
    _, gradient = value_and_gradient(losses.lambdarank, scores, labels, mask)
    for b in range(6):
        s, y = scores[b][mask[b]], labels[b][mask[b]]
        n = len(s)
        order = s.argsort(descending=True)
        rank = torch.empty(n, dtype=torch.float64)
        rank[order] = torch.arange(1.0, n + 1, dtype=torch.float64)
        gain = 2**y - 1
        best = (gain.sort(descending=True).values / torch.log2(torch.arange(2.0, n + 2))).sum()
        force = torch.zeros(n, dtype=torch.float64)
        for i, j in itertools.permutations(range(n), 2):
            if y[i] > y[j]:
                change = (gain[i] - gain[j]) * (1 / (1 + rank[i]).log2() - 1 / (1 + rank[j]).log2())
                push = (change / best).abs() / (1 + torch.exp(s[i] - s[j]))
                force[i] += push
                force[j] -= push
        torch.testing.assert_close(gradient[b][mask[b]], -force)


def test_approx_ndcg_gradient_is_qin2010s_closed_form():
    """The appendix's formula: g_ij = e/(1+e)² with e = exp(-alpha (s_i - s_j))."""
    alpha = 3.0
    scores, labels, _ = random_lists(4, 8, seed=9)
    _, gradient = value_and_gradient(losses.approx_ndcg, scores, labels, None, alpha=alpha)
    for b in range(4):
        s, gains = scores[b], 2 ** labels[b] - 1
        e = torch.exp(-alpha * (s[:, None] - s[None]))
        g = (e / (1 + e) ** 2).fill_diagonal_(0)
        rank = 0.5 + torch.sigmoid(alpha * (s[None] - s[:, None])).sum(1)
        ideal = gains.sort(descending=True).values / torch.log2(torch.arange(2.0, 10.0))
        best = ideal.sum().clamp_min(1e-300)
        ln2 = torch.log(torch.tensor(2.0, dtype=torch.float64))
        slope = gains / (torch.log2(1 + rank) ** 2 * (1 + rank) * ln2 * best)
        jacobian = alpha * (g - torch.diag(g.sum(1)))  # dr_i/ds_j
        torch.testing.assert_close(gradient[b], slope @ jacobian)


@pytest.mark.parametrize("gradient", ["type1", "type2", "type3"])
def test_twin_rank_jacobian_is_the_table_of_derivatives(gradient):
    from directrank.relaxations.twin import TwinRanking

    scores, labels, mask = random_lists(4, 7, seed=13)
    leaf = scores.clone().requires_grad_()
    ranks = TwinRanking(leaf, labels, mask, gradient=gradient, alpha_b=1.3).ranks
    plain_leaf = scores.clone().requires_grad_()
    plain = losses_references.twin_ranks(plain_leaf, labels, mask, gradient, alpha_b=1.3)
    for i in range(7):
        chosen = mask[:, i]
        (row,) = torch.autograd.grad(ranks[:, i][chosen].sum(), leaf, retain_graph=True)
        (expected,) = torch.autograd.grad(plain[:, i][chosen].sum(), plain_leaf, retain_graph=True)
        torch.testing.assert_close(row, expected)


@pytest.mark.parametrize(("gradient", "sign"), [("type1", 1), ("type2", -1), ("type3", -1)])
def test_twin_type_1_is_even_and_types_2_and_3_are_odd(gradient, sign):
    """Raising the better document's score lowers *both* ranks under types 2 and 3."""
    from directrank.relaxations.twin import TwinRanking

    scores = torch.tensor([[0.4, 1.1]], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    ranks = TwinRanking(scores, labels, torch.ones(1, 2, dtype=torch.bool), gradient=gradient).ranks
    rows = [torch.autograd.grad(ranks[0, i], scores, retain_graph=True)[0][0] for i in (0, 1)]
    g_01, g_10 = -rows[0][0], -rows[1][1]
    torch.testing.assert_close(rows[0][1], g_01, msg="dr_i/ds_j = g_ij")
    torch.testing.assert_close(rows[1][0], g_10)
    torch.testing.assert_close(g_10, sign * g_01)


@pytest.mark.parametrize("name", ["twin_precision", "twin_ap", "twin_ndcg", "twin_nerr"])
def test_twin_type_3_pulls_relevant_documents_up(name):
    scores = torch.tensor([[0.0, 0.1, 0.2]], dtype=torch.float64)
    labels = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    _, gradient = value_and_gradient(losses.get(name), scores, labels, None)
    assert gradient[0, 0] < 0
    assert (gradient[0, 1:] > 0).all()


def test_twin_nerr_gradient_against_ranks_is_the_cascade_over_the_squared_rank():
    """d/d rbar of nERR treats the cascade as constant (Yu2020 eq. 16)."""
    from directrank.metrics._err import err_of
    from directrank.metrics.conventions import Judgements
    from directrank.relaxations.twin import TwinRanking

    scores, labels, mask = random_lists(5, 6, seed=3)
    ranking = TwinRanking(scores, labels, mask)
    ranking.ranks = ranking.ranks.detach().clone().requires_grad_()
    value, _ = err_of(ranking, Judgements(labels * mask, mask), 4)
    (slope,) = torch.autograd.grad(value.sum(), ranking.ranks)
    b = 4
    order = ranking.order[b][: int(mask[b].sum())]
    y = labels[b][order]
    stop = (2**y - 1) / 2 ** y.max()
    reach = 1.0
    for place, document in enumerate(order.tolist(), start=1):
        expected = -stop[place - 1] * reach / place**2 if place <= 4 else 0.0
        assert slope[b, document].item() == pytest.approx(float(expected))
        reach = reach * (1 - stop[place - 1])


def test_wassrank_dual_gradient_is_the_potential_through_the_softmax():
    scores, labels, mask = random_lists(4, 8, seed=6)
    _, gradient = value_and_gradient(losses.wassrank, scores, labels, mask)
    _, plain = value_and_gradient(losses_references.wassrank, scores, labels, mask, gradient="dual")
    torch.testing.assert_close(gradient, plain)
    assert gradient[3:].abs().max() > 1e-3
    assert gradient.sum(1).abs().max() < 1e-12


#: Losses whose gradient PyTorch derives, and which it can therefore derive again: with a constant
#: for the k-th score in `sl_at_k`.
DERIVED = ["softmax_cross_entropy", "sigmoid_cross_entropy", "poly1", "ordinal"]
NOT_COMPARED = ["sl_at_k"]


def two_lists() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(2, 5, dtype=torch.float64, generator=generator).requires_grad_()
    return scores, torch.tensor([[2.0, 1, 0, 0, 1], [0, 1, 0, 2, 0]], dtype=torch.float64)


def second_derivative(name: str, how: str) -> torch.Tensor:
    """Of the sum of a loss, by its scores: of a penalty on the gradient, or the Hessian itself."""
    scores, labels = two_lists()

    def total(of: torch.Tensor) -> torch.Tensor:
        return losses.get(name)(of, labels, **LOSSES[name]).sum()

    if how == "hessian":
        return torch.autograd.functional.hessian(total, scores).view(10, 10)
    (gradient,) = torch.autograd.grad(total(scores), scores, create_graph=True)
    (0 * total(scores) + gradient.square().sum() / 2).backward()
    return scores.grad


@pytest.mark.parametrize("how", ["hessian", "penalty"])
@pytest.mark.parametrize("name", [name for name in LOSSES if name not in DERIVED + NOT_COMPARED])
def test_a_second_derivative_is_refused_and_not_taken_for_zero(name, how):
    with pytest.raises(RuntimeError, match="differentiated once"):
        second_derivative(name, how)


@pytest.mark.parametrize("name", DERIVED)
def test_a_second_derivative_is_that_of_the_gradient_where_pytorch_derives_it(name):
    hessian = second_derivative(name, "hessian")
    assert hessian.abs().max() > 0.01
    torch.testing.assert_close(hessian, hessian.T)
    scores, labels = two_lists()
    (gradient,) = torch.autograd.grad(losses.get(name)(scores, labels).sum(), scores)
    penalty = second_derivative(name, "penalty")
    torch.testing.assert_close(penalty.flatten(), hessian @ gradient.flatten())
