"""Losses equal independent code, closed forms, and other libraries' values."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

import losses_references
from directrank import losses
from directrank.losses._lambda_family import FORCES
from directrank.losses._lambda_loss import SCHEMES
from losses_cases import DRAWN, LOSSES, random_lists, value_and_gradient

VARIANTS = [
    ("approx_ndcg", {}),
    ("approx_ndcg", {"k": 3}),
    ("approx_ndcg", {"alpha": 1.0}),
    ("approx_ap", {}),
    ("approx_ap", {"alpha": 2.0, "beta": 1.0}),
    ("approx_precision", {"k": 3}),
    *((f"twin_{m}", {"gradient": f"type{t}", "alpha_b": 0.7})
      for m in ("precision", "ap", "ndcg", "nerr") for t in (1, 2, 3)),
    ("twin_precision", {"k": 3}),
    ("twin_ndcg", {"k": 3}),
    ("neural_ndcg", {}),
    ("neural_ndcg", {"k": 3}),
    ("neural_ndcg", {"tau": 0.1}),
    ("neural_ndcg", {"iterations": 0}),
    ("neural_ndcg_transposed", {}),
    ("neural_ndcg_transposed", {"k": 3}),
    ("neural_ndcg_transposed", {"tau": 0.1, "iterations": 4}),
    ("softrank", {}),
    ("softrank", {"k": 3}),
    ("softrank", {"sigma": 0.3}),
    ("wassrank", {"gradient": "dual"}),
    ("wassrank", {"gradient": "autograd"}),
    ("wassrank", {"gradient": "dual", "gap": 100.0, "iterations": 20}),
    ("rmse", {}),
    ("ranknet", {"sigma": 0.5}),
    ("lambdarank", {}),
    *(("lambda_family", {"force": force, "margin": 0.4}) for force in FORCES),
    ("lambda_family", {"force": "spring", "margin": 0.4, "pairs": "neighbours"}),
    *(("lambda_loss", {"scheme": scheme}) for scheme in SCHEMES),
    ("listnet", {}),
    ("smooth_ndcg", {"alpha": 2.0}),
    ("fast_soft_ndcg", {"tau": 0.4}),
    ("lapsum_ndcg", {"tau": 0.4}),
    ("blackbox_ndcg", {"lam": 7.0}),
    ("pirank", {"tau": 0.7}),
    ("k_song", {}),
    ("k_song", {"k": 3}),
    ("k_song", {"k": 6, "margin": 0.4, "beta": 7.0}),
    ("softmax_cross_entropy", {}),
    ("softmax_cross_entropy", {"normalize": True}),
    ("poly1", {}),
    ("poly1", {"epsilon": -1.0}),
    ("unique_softmax", {}),
    ("unique_softmax", {"gain": "linear"}),
    ("pairwise_hinge", {}),
    ("pairwise_hinge", {"margin": 0.3}),
    ("sigmoid_cross_entropy", {}),
    ("ordinal", {}),
    ("ordinal", {"levels": 7, "gap": 0.4}),
    ("soft_sort_ndcg", {}),
    ("soft_sort_ndcg", {"tau": 0.2}),
    ("diff_sort_ndcg", {}),
    ("diff_sort_ndcg", {"alpha": 1.0}),
    ("sinkhorn_ndcg", {"tau": 0.05}),
    ("sinkhorn_ndcg", {"tau": 0.2, "iterations": 3}),
    ("adr_mse", {}),
    ("adr_mse", {"alpha": 3.0}),
    ("sl_at_k", {"k": 3}),
    ("sl_at_k", {"k": 6, "tau": 0.4, "beta": 3.0, "gain": "linear"}),
    ("psl", {}),
    ("psl", {"tau": 0.4, "gain": "linear"}),
    ("lambda_loss", {"scheme": "ndcg_loss2_at_k", "k": 3, "sigma": 0.7}),
    ("newton", {"of": "neural_ndcg", "lam": 0.1}),
    ("newton", {"of": "lambdarank", "lam": 3.0}),
    ("newton", {"of": {"name": "approx_ndcg", "alpha": 1.0}, "lam": 0.5,
                "curvature": "hessian"}),
    ("newton", {"of": "ranknet", "lam": 10.0, "curvature": "hessian"}),
]  # fmt: skip

#: Losses that draw: the same numbers for a list alone and without padding.
DRAWING = [
    ("listmle", {}),
    ("xe_ndcg", {}),
    ("gumbel_approx_ndcg", {"noise": 0.5, "samples": 3}),
    ("pl_rank", {"samples": 3}),
    ("yeti_loss", {"noise": 0.5, "samples": 3}),
    ("stochastic_rank", {"sigma": 0.5, "samples": 2}),
]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.parametrize(("B", "L", "scale"), [(4, 1, 1.0), (6, 17, 1.0), (5, 33, 20.0)])
def test_losses_equal_independent_code(name, options, B, L, scale):
    scores, labels, mask = random_lists(B, L, seed=L, scale=scale)
    value, gradient = value_and_gradient(losses.get(name), scores, labels, mask, **options)
    plain, plain_gradient = value_and_gradient(
        getattr(losses_references, name), scores, labels, mask, **options
    )
    torch.testing.assert_close(value, plain, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(gradient, plain_gradient, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("name", "options"), DRAWING)
@pytest.mark.parametrize("L", [1, 2, 12])
def test_losses_that_draw_equal_independent_code(name, options, L):
    scores, labels, _ = random_lists(6, L, seed=L)
    for b in (0, 2, 3, 4, 5):
        alone = scores[b : b + 1], labels[b : b + 1], torch.ones(1, L, dtype=torch.bool)
        value, gradient = value_and_gradient(losses.get(name), *alone, **options)
        plain = value_and_gradient(getattr(losses_references, name), *alone, **options)
        torch.testing.assert_close(value, plain[0], rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(gradient, plain[1], rtol=1e-8, atol=1e-10)


def test_every_loss_has_its_independent_code():
    """The documentation shows it as the plain version."""
    compared = {name for name, _ in [*VARIANTS, *DRAWING]}
    assert compared == set(losses.REGISTRY) - {"composed"}


@pytest.mark.parametrize(
    "name", [name for name in LOSSES if name not in ("rmse", "listmle", "lambda_family", *DRAWN)]
)
def test_float32_agrees_with_float64(name):
    options = LOSSES[name]
    scores, labels, mask = random_lists(6, 60, seed=8)
    exact, exact_gradient = value_and_gradient(losses.get(name), scores, labels, mask, **options)
    value, gradient = value_and_gradient(
        losses.get(name), scores.float(), labels.float(), mask, **options
    )
    torch.testing.assert_close(value.double(), exact, rtol=2e-5, atol=2e-5)
    torch.testing.assert_close(gradient.double(), exact_gradient, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize(
    ("scores", "labels", "name", "options", "expected"),
    [
        # allRank's tests
        ([0.5, 0.3, 0.5], [0.5, 0.3, 0.5], "approx_ndcg", {"alpha": 1.0}, -0.8499219417),
        ([0.5, 0.3, 0.5], [0.5, 0.3, 0.5], "ranknet", {}, 1.1962778568),
        ([0.5, 0.3], [1, 0], "listmle", {}, 0.5981389284),
        # TensorFlow Ranking's tests
        ([1, 3, 2], [0, 0, 1], "ranknet", {"pair_reduction": "mean"}, 0.813262),
        ([1, 3], [0, 2], "ranknet", {"pair_reduction": "mean"}, 0.126928),
        ([1, 3, 2], [0, 0, 1], "neural_ndcg", {"iterations": 0}, -0.761571),
        ([1, 3], [0, 2], "neural_ndcg", {"iterations": 0}, -0.956006),
        ([1, 3, 2], [0, 0, 1], "approx_ndcg", {"alpha": 1.0}, -0.63093),
        ([1, 3], [0, 2], "approx_ndcg", {"alpha": 1.0}, -0.922917),
        # Rax's documentation
        ([2.2, -1.3, 5.4], [1, 0, 0], "approx_ndcg", {"alpha": 1.0}, -0.63282484),
    ],
)  # fmt: skip
@pytest.mark.parametrize("padding", [0, 1, 4])
def test_values_printed_by_other_libraries(scores, labels, name, options, expected, padding):
    mask = torch.tensor([[True] * len(scores) + [False] * padding])
    s = torch.tensor([[*scores, *[7.0] * padding]], dtype=torch.float32)
    y = torch.tensor([[*labels, *[3.0] * padding]], dtype=torch.float32)
    assert losses.get(name)(s, y, mask, **options).item() == pytest.approx(expected, rel=2e-6)


def test_gradient_printed_by_rax():
    scores, labels = torch.tensor([[2.2, -1.3, 5.4]]), torch.tensor([[1.0, 0, 0]])
    _, gradient = value_and_gradient(losses.approx_ndcg, scores, labels, None, alpha=1.0)
    expected = torch.tensor([[-0.01276882, 0.00549765, 0.00727116]])
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-7)


def test_approximate_reciprocal_rank_printed_by_tensorflow_ranking():
    loss = losses.compose("reciprocal_rank", {"name": "sigmoid", "alpha": 1.0})
    one = loss(torch.tensor([[1.0, 3, 2]]), torch.tensor([[0.0, 0, 1]]))
    two = loss(torch.tensor([[1.0, 3]]), torch.tensor([[0.0, 2]]))
    assert one.item() == pytest.approx(-0.5, rel=1e-6)
    assert two.item() == pytest.approx(-0.893493, rel=1e-5)


def test_neural_ndcg_at_low_temperature_is_ndcg():
    """allRank's test_neuralndcg."""
    from directrank import metrics

    s = torch.tensor([[0.5, 0.2, 0.1, 0.4, 1.0, -1.0, 0.63]], dtype=torch.float64)
    y = torch.tensor([[1.0, 2, 2, 4, 1, 4, 3]], dtype=torch.float64)
    for k in (None, 3):
        value = losses.neural_ndcg(s, y, None, tau=1e-4, k=k)
        torch.testing.assert_close(-value, metrics.ndcg(s, y, None, k))


def test_rmse_is_the_root_of_the_mean_square():
    scores = torch.tensor([[0.0, 2.0, -1.0]], dtype=torch.float64)
    labels = torch.tensor([[4.0, 1.0, 0.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False]])
    out = [5 / (1 + math.exp(-0.0)), 5 / (1 + math.exp(-2.0))]
    expected = math.sqrt(((4 - out[0]) ** 2 + (1 - out[1]) ** 2) / 2)
    assert losses.rmse(scores, labels, mask).item() == pytest.approx(expected)
    plain = losses.rmse(scores, labels, mask, levels=None).item()
    assert plain == pytest.approx(math.sqrt((16 + 1) / 2))


def test_listnet_is_the_cross_entropy_of_two_softmaxes():
    scores, labels, mask = random_lists(6, 9, seed=5)
    value = losses.listnet(scores, labels, mask)
    for b in range(6):
        s, y = scores[b][mask[b]], labels[b][mask[b]]
        expected = -(y.softmax(0) * s.log_softmax(0)).sum() if len(s) else torch.tensor(0.0)
        assert value[b].item() == pytest.approx(expected.item())


def test_listmle_is_the_plackett_luce_likelihood_of_its_order():
    scores, labels, mask = random_lists(6, 12, seed=6)
    labels = torch.arange(12.0, dtype=torch.float64).flip(0).expand(6, 12).contiguous()
    order = torch.arange(12).expand(6, 12)
    value, gradient = value_and_gradient(losses.listmle, scores, labels, mask)
    plain, plain_gradient = value_and_gradient(
        losses_references.listmle, scores, labels, mask,
        order=torch.sort((~mask).long(), dim=1, stable=True).indices.gather(1, order),
    )  # fmt: skip
    torch.testing.assert_close(value, plain)
    torch.testing.assert_close(gradient, plain_gradient)


def test_listmle_with_a_wide_spread_of_scores_equals_the_narrow_path():
    """Beyond what exponentials hold another path is taken; both give the same numbers."""
    labels = torch.tensor([[3.0, 2.0, 1.0, 0.0]], dtype=torch.float64)
    near = torch.tensor([[0.0, 250.0, -30.0, 1.0]], dtype=torch.float64)
    far = near.clone()
    far[0, 2] = -400.0
    for scores in (near, far):
        value, gradient = value_and_gradient(losses.listmle, scores, labels, None)
        rest = scores.flip(1).logcumsumexp(1).flip(1)
        torch.testing.assert_close(value, (rest - scores).sum(1))
        share = torch.stack([
            torch.stack([torch.exp(scores[0, k] - rest[0, : k + 1]).sum() for k in range(4)])
        ])  # fmt: skip
        torch.testing.assert_close(gradient, share - 1)


@pytest.mark.parametrize("fractional", [False, True])
def test_listmle_shuffles_tied_labels_anew_and_by_its_generator(fractional):
    from directrank.losses._listmle import shuffled_order

    labels = torch.tensor([[2.0, 1, 1, 1, 0, 0]]) + (0.25 if fractional else 0.0)
    mask = torch.tensor([[True] * 6])
    generator = torch.Generator().manual_seed(3)
    orders = [tuple(shuffled_order(labels, mask, generator)[0].tolist()) for _ in range(400)]
    assert {order[0] for order in orders} == {0}
    middles = {order[1:4] for order in orders}
    assert len(middles) == 6, "all orders of three tied documents occur"
    assert all(set(order[1:4]) == {1, 2, 3} for order in orders)
    again = torch.Generator().manual_seed(3)
    assert orders[0] == tuple(shuffled_order(labels, mask, again)[0].tolist())


@pytest.mark.parametrize("length", [1, 7, 700])
def test_listmle_orders_grades_in_one_sort_as_in_two(length):
    from directrank.lists.sorting import descending_order
    from directrank.losses._listmle import shuffled_order

    generator = torch.Generator().manual_seed(length)
    labels = torch.randint(0, 5, (6, length), generator=generator).float()
    ends = torch.tensor([0, 1, 2, length // 3, length // 2, length])
    mask = (torch.arange(length) < ends[:, None]) & (
        torch.rand(6, length, generator=generator) < 0.9
    )
    noise = torch.rand(labels.shape, generator=torch.Generator().manual_seed(5))
    shuffle = descending_order(noise, torch.ones_like(mask))
    apart = descending_order(labels.gather(1, shuffle), mask.gather(1, shuffle))
    expected = shuffle.gather(1, apart)
    found = shuffled_order(labels, mask, torch.Generator().manual_seed(5))
    for one, other, n in zip(found, expected, mask.sum(1), strict=True):
        assert one[:n].tolist() == other[:n].tolist()
        assert sorted(one.tolist()) == list(range(length))


def test_stochastic_neural_ndcg_pairs_each_sample_with_its_own_list():
    """With lists of different length a batch gives what the lists give alone, on average."""
    scores = torch.tensor([[3.0, 1.0, 0.0, 0.0], [2.0, 0.0, -1.0, 1.0]])
    labels = torch.tensor([[1.0, 0, 0, 0], [2.0, 0, 1, 0]])
    mask = torch.tensor([[True, True, False, False], [True] * 4])
    options = {"samples": 600, "noise": 0.5}
    together = losses.neural_ndcg(
        scores, labels, mask, generator=torch.Generator().manual_seed(0), **options
    )
    for b, n in enumerate((2, 4)):
        alone = losses.neural_ndcg(
            scores[b : b + 1, :n], labels[b : b + 1, :n], mask[b : b + 1, :n],
            generator=torch.Generator().manual_seed(1), **options,
        )  # fmt: skip
        assert together[b].item() == pytest.approx(alone.item(), abs=0.02)
    still = losses.neural_ndcg(scores, labels, mask, samples=3, noise=0.0)
    torch.testing.assert_close(still, losses.neural_ndcg(scores, labels, mask))


def test_transposed_neural_ndcg_is_the_same_function_once_sinkhorn_converged():
    scores, labels, mask = random_lists(8, 12, seed=11)
    options = {"iterations": 2000, "tolerance": 1e-12}
    one = value_and_gradient(losses.neural_ndcg, scores, labels, mask, **options)
    other = value_and_gradient(losses.neural_ndcg_transposed, scores, labels, mask, **options)
    torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)
    early = losses.neural_ndcg(scores, labels, mask, iterations=1)
    assert not torch.allclose(
        early, losses.neural_ndcg_transposed(scores, labels, mask, iterations=1)
    )


def test_powers_of_the_discount_reach_their_accuracy():
    from directrank.kernels.softrank import powers_of_discount

    for length in (1, 7, 120, 1000, 5000):
        for dtype, goal in ((torch.float32, 1e-8), (torch.float64, 1e-12)):
            bases, weights = powers_of_discount(length, dtype)
            ranks = torch.arange(length, dtype=torch.float64)
            powers = torch.tensor(bases, dtype=torch.float64) ** ranks.unsqueeze(1)
            found = powers @ torch.tensor(weights, dtype=torch.float64)
            assert (found - 1 / torch.log2(2 + ranks)).abs().max() < goal


def test_wassrank_transports_nothing_between_equal_histograms():
    labels = torch.tensor([[2.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    value, gradient = value_and_gradient(losses.wassrank, labels.clone(), labels, None)
    assert value.item() == pytest.approx(0.0, abs=1e-10)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-10, rtol=0)


def test_wassrank_cost_is_symmetric_with_a_zero_diagonal():
    from directrank.losses._wassrank import _LabelKernel

    labels = torch.tensor([[0.0, 1.0, 2.0, 2.0]], dtype=torch.float64)
    kernel = _LabelKernel(labels, torch.ones(1, 4, dtype=torch.bool), 0.1, 10.0, 4.0, math.e)
    torch.testing.assert_close(kernel.costs, kernel.costs.T)
    assert kernel.costs.diagonal().tolist() == [math.e] * 3, "equal labels are e apart"
    assert kernel.costs[0].tolist() == [math.e, 13.0, 25.0]
    # A document alone has K_ii = exp(0) = 1.
    unit = torch.full((1, 4), -1e30, dtype=torch.float64)
    unit[0, 2] = 0.0
    product = kernel.product(unit)[0]
    assert product[2].item() == pytest.approx(0.0, abs=1e-12)
    assert product[3].item() == pytest.approx(-math.e / 0.1)
    assert product[1].item() == pytest.approx(-12.0 / 0.1)


def test_softrank_is_the_expectation_over_all_outcomes_of_the_contests():
    """Brute force: a document's rank is one more than the number of contests it loses."""
    for n in range(1, 7):
        scores, labels, _ = random_lists(4, n, seed=n)
        s, gains = scores[3], 2 ** labels[3] - 1
        gains[0] += 1
        labels[3, 0] = torch.log2(gains[0] + 1)
        expected = 0.0
        for j in range(n):
            others = [i for i in range(n) if i != j]
            lose = torch.special.ndtr((s[others] - s[j]) / math.sqrt(2))
            for outcome in itertools.product((0, 1), repeat=n - 1):
                o = torch.tensor(outcome, dtype=torch.float64)
                chance = (lose * o + (1 - lose) * (1 - o)).prod().item()
                expected += gains[j].item() * chance / math.log2(2 + sum(outcome))
        best = sum(g / math.log2(2 + r) for r, g in enumerate(sorted(gains.tolist(), reverse=True)))
        found = losses.softrank(s[None], labels[3:4], None)
        assert -found.item() == pytest.approx(expected / best, rel=1e-10)
