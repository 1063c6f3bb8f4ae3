"""The grid of metrics and relaxations: every cell is a loss, and every cell trains."""

from __future__ import annotations

import pytest
import torch

from directrank import losses, metrics, relaxations
from directrank.relaxations.gumbel import gumbel_noise
from directrank.system.errors import ConfigError
from losses_cases import random_lists, value_and_gradient

METRICS = sorted(metrics.REGISTRY.keys() - metrics.CORRELATIONS)
RELAXATIONS = [
    {"name": "sigmoid"},
    {"name": "twin", "gradient": "type1"},
    {"name": "twin", "gradient": "type2"},
    {"name": "twin", "gradient": "type3"},
    {"name": "neural_sort"},
    {"name": "rank_binomial"},
    {"name": "smooth_i"},
    {"name": "fast_soft_rank", "regularisation": "l2"},
    {"name": "fast_soft_rank", "regularisation": "entropic"},
    {"name": "lapsum"},
    {"name": "blackbox"},
    {"name": "pirank"},
    {"name": "soft_sort"},
    {"name": "sinkhorn_sort"},
    {"name": "diff_sort", "network": "bitonic"},
    {"name": "diff_sort", "network": "odd_even"},
]


def test_the_grid_holds_every_relaxation():
    assert {relaxation["name"] for relaxation in RELAXATIONS} == set(relaxations.REGISTRY)


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=lambda r: "-".join(r.values()))
@pytest.mark.parametrize("metric", METRICS)
def test_every_cell_trains(metric, relaxation):
    """A few steps on a linear scorer raise the metric itself."""
    generator = torch.Generator().manual_seed(2)
    features = torch.randn(8, 12, 4, generator=generator)
    truth = features @ torch.tensor([2.0, -1.0, 0.5, 0.0])
    labels = (truth > 0.5).float() + (truth > 2.0)
    labels[:, 0] = 1  # no list without a relevant document
    mask = torch.rand(8, 12, generator=generator) > 0.1
    mask[:, 0] = True
    # Nearly every list has a hit among its first five, so that nothing is left to learn.
    k = 3 if metric == "hit_rate" else 5
    loss = losses.compose({"name": metric, "k": k}, relaxation)
    weights = torch.tensor([-0.3, 0.5, 0.0, 0.3], requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.1)
    measure = metrics.get("ndcg")
    before = measure(features @ weights, labels, mask).mean()
    for _ in range(60):
        optimizer.zero_grad()
        loss(features @ weights, labels, mask, generator=generator).mean().backward()
        optimizer.step()
    after = measure(features @ weights, labels, mask).mean()
    assert after > before + 0.05


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [2, None])
@pytest.mark.parametrize(
    "relaxation",
    [
        {"name": "sigmoid", "alpha": 1e4, "beta": 1e3},
        {"name": "twin"},
        {"name": "neural_sort", "tau": 1e-4},
        {"name": "rank_binomial", "sigma": 1e-5},
        {"name": "smooth_i", "alpha": 1e9, "delta": 0.05},
        {"name": "fast_soft_rank", "tau": 1e-4, "beta": 1e3},
        {"name": "lapsum", "tau": 1e-4, "beta": 1e3},
        {"name": "blackbox"},
        {"name": "pirank", "tau": 1e-4},
        {"name": "soft_sort", "tau": 1e-4},
        {"name": "sinkhorn_sort", "tau": 1e-6},
        {"name": "diff_sort", "alpha": 1e9},
        {"name": "diff_sort", "alpha": 1e9, "network": "odd_even"},
    ],
    ids=lambda r: "-".join([r["name"], *r.get("network", "").split()]),
)
def test_at_the_limit_every_relaxation_gives_the_metric_itself(metric, relaxation, k):
    scores, labels, mask = random_lists(12, 9, seed=17)
    options = {"name": metric, "k": k}
    counted = ("precision", "recall", "hit_rate")
    if metric in counted and k is None and relaxation["name"] not in ("twin", "blackbox"):
        with pytest.raises(ConfigError, match="does not depend on the scores"):
            losses.compose(options, relaxation)(scores, labels, mask)
        return
    value = losses.compose(options, relaxation)(scores, labels, mask)
    exact = metrics.get(metric)(scores, labels, mask, k, empty="zero")
    torch.testing.assert_close(-value, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "metric", "relaxation"),
    [
        ("approx_ndcg", {"k": 3}, {"name": "ndcg", "k": 3}, "sigmoid"),
        ("approx_ap", {}, "average_precision", "sigmoid"),
        ("approx_precision", {"k": 3}, {"name": "precision", "k": 3}, "sigmoid"),
        ("neural_ndcg", {"k": 3}, {"name": "ndcg", "k": 3}, "neural_sort"),
        ("neural_ndcg", {"tau": 0.5}, "ndcg", {"name": "neural_sort", "tau": 0.5}),
        ("softrank", {}, "ndcg", "rank_binomial"),
        ("softrank", {"k": 3, "sigma": 0.4}, {"name": "ndcg", "k": 3},
         {"name": "rank_binomial", "sigma": 0.4}),
        ("twin_precision", {"k": 3, "gradient": "type1"}, {"name": "precision", "k": 3},
         {"name": "twin", "gradient": "type1"}),
        ("twin_ap", {"gradient": "type2"}, "average_precision",
         {"name": "twin", "gradient": "type2"}),
        ("twin_ndcg", {}, "ndcg", "twin"),
        ("twin_nerr", {}, {"name": "nerr", "k": 10}, "twin"),
    ],
)  # fmt: skip
def test_named_losses_equal_their_compositions(name, options, metric, relaxation):
    scores, labels, mask = random_lists(7, 15, seed=31)
    named = value_and_gradient(losses.get(name), scores, labels, mask, **options)
    composed = value_and_gradient(
        losses.composed, scores, labels, mask, metric=metric, relaxation=relaxation
    )
    torch.testing.assert_close(named, composed, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("metric", ["ndcg", "err"])
@pytest.mark.parametrize("relaxation", ["sigmoid", "neural_sort", "rank_binomial", "twin"])
def test_samples_of_any_composition_are_drawn_from_the_generator(metric, relaxation):
    scores, labels, mask = random_lists(5, 6, seed=1)
    loss = losses.compose(metric, relaxation, samples=4)
    one = loss(scores, labels, mask, generator=torch.Generator().manual_seed(5))
    same = loss(scores, labels, mask, generator=torch.Generator().manual_seed(5))
    other = loss(scores, labels, mask, generator=torch.Generator().manual_seed(6))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_samples_are_the_mean_of_the_loss_at_noisy_scores():
    scores, labels, mask = random_lists(5, 6, seed=1)
    found = value_and_gradient(
        losses.composed, scores, labels, mask, metric="ndcg", relaxation="sigmoid",
        samples=3, noise=0.5, generator=torch.Generator().manual_seed(5),
    )  # fmt: skip
    generator = torch.Generator().manual_seed(5)
    scores = torch.where(mask, scores, 0.0)
    noisy = [scores + 0.5 * gumbel_noise(scores, mask, generator) for _ in range(3)]
    each = [value_and_gradient(losses.approx_ndcg, one, labels, mask) for one in noisy]
    for part in (0, 1):
        torch.testing.assert_close(found[part], sum(one[part] for one in each) / 3)


@pytest.mark.parametrize(
    ("metric", "relaxation", "message"),
    [
        ("ndgc", "sigmoid", "unknown metric 'ndgc'"),
        ("ndcg", "sigmid", "did you mean 'sigmoid'"),
        ("ndcg", {"name": "sigmoid", "alfa": 1.0}, "has no option 'alfa'"),
        ({"name": "ndcg", "denominator": "R"}, "sigmoid", "has no option 'denominator'"),
        ("ndcg", {"name": "neural_sort", "noise": 1.0}, "give it to the composition"),
    ],
)
def test_a_wrong_composition_is_one_clear_error(metric, relaxation, message):
    with pytest.raises(ConfigError, match=message):
        losses.compose(metric, relaxation)


def test_rank_distributions_sum_to_one_and_match_simulation():
    from directrank.relaxations.rank_binomial import rank_probabilities

    scores = torch.tensor([[0.3, -0.2, 1.0, 0.6]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False]])
    distribution = rank_probabilities(scores, mask, 0.5)
    torch.testing.assert_close(
        distribution.sum(2), torch.tensor([[1.0, 1.0, 1.0, 0.0]], dtype=torch.float64)
    )
    assert (distribution[:, :, 3] == 0).all(), "no document is behind the end of the list"
    # Independent contests, as the recursion takes them.
    generator = torch.Generator().manual_seed(0)
    for j in range(3):
        others = [i for i in range(3) if i != j]
        win = torch.special.ndtr((scores[0, others] - scores[0, j]) / (2**0.5 * 0.5))
        ranks = (torch.rand(200_000, 2, generator=generator, dtype=torch.float64) < win).sum(1)
        shares = torch.bincount(ranks, minlength=4) / 200_000
        torch.testing.assert_close(distribution[0, j], shares.double(), atol=0.005, rtol=0)
    wide = rank_probabilities(scores, mask, 1e-9)
    assert wide[0].argmax(1)[:3].tolist() == [1, 2, 0]


def test_sinkhorn_makes_a_matrix_doubly_stochastic_and_leaves_padding_empty():
    from directrank.relaxations.neural_sort import sinkhorn, sorting_matrix

    scores, _, mask = random_lists(6, 8, seed=3)
    matrix = sinkhorn(sorting_matrix(scores, mask, 1.0), 3000, 1e-10)
    n = mask.sum(1, keepdim=True)
    inside = (torch.arange(8) < n).double()
    torch.testing.assert_close(matrix.sum(2), inside, atol=1e-9, rtol=0)
    torch.testing.assert_close(matrix.sum(1), mask.double(), atol=1e-9, rtol=0)
