"""SmoothI, projected, LapSum, blackbox and PiRank ranks, and Gumbel noise over sigmoid ranks."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from directrank import losses, metrics
from directrank.kernels import soft_ranks
from directrank.learners.neural.objective import Objective
from directrank.lists.sorting import descending_order
from directrank.relaxations.fast_soft_rank import projected_ranks
from directrank.relaxations.lapsum import laplace_ranks
from directrank.relaxations.smooth_i import rank_indicators
from directrank.system.errors import DirectrankError
from losses_cases import random_lists, value_and_gradient
from training_data import fit, layout, made, mean_ndcg, splits

RECORD = json.loads(
    (Path(__file__).parents[1] / "helpers/relaxation_values.json").read_text(encoding="utf-8")
)
SCORES, LABELS, WEIGHTS = (
    torch.tensor(RECORD[key], dtype=torch.float64) for key in ("scores", "labels", "weights")
)
EVERYONE = torch.ones_like(SCORES, dtype=torch.bool)

NAMED = [
    "smooth_ndcg", "fast_soft_ndcg", "lapsum_ndcg", "blackbox_ndcg", "pirank",
    "gumbel_approx_ndcg",
]  # fmt: skip
METRICS = sorted(metrics.REGISTRY.keys() - metrics.CORRELATIONS)

#: Relaxations that are functions, with settings that make them smooth enough to see it.
SMOOTH = [
    {"name": "smooth_i", "alpha": 2.0, "stop_gradient": False},
    {"name": "fast_soft_rank", "tau": 0.3, "beta": 1.5},
    {"name": "fast_soft_rank", "tau": 0.3, "beta": 1.5, "regularisation": "entropic"},
    {"name": "lapsum", "tau": 0.5, "beta": 1.5},
    {"name": "pirank", "tau": 1.0, "straight_through": False},
]


def assert_recorded(found: tuple[Tensor, Tensor], expected: dict, tolerance: float = 1e-9) -> None:
    """Value and gradient against those of the authors' code."""
    for ours, key in zip(found, ("value", "gradient"), strict=True):
        theirs = torch.tensor(expected[key], dtype=torch.float64)
        torch.testing.assert_close(ours.double(), theirs, rtol=tolerance, atol=tolerance)


def pulled(ranks, values: Tensor, *arguments) -> tuple[Tensor, Tensor]:
    """Ranks at ``values``, and the gradient of their sum weighted as on file."""
    leaf = values.clone().requires_grad_()
    result = ranks(leaf, descending_order(leaf, EVERYONE), EVERYONE, *arguments)
    (gradient,) = torch.autograd.grad((result * WEIGHTS).sum(), leaf)
    return result.detach(), gradient


# ------------------------------------------------------------------------------ the authors' code


@pytest.mark.parametrize("stop", [True, False])
def test_smooth_i_agrees_with_its_authors(stop):
    """They sum over ranks ``2^y`` of the mean label, where ours sums the mean of ``2^y - 1``."""
    kind = "stopped" if stop else "whole"
    smooth = {"name": "smooth_i", "alpha": 2.0, "delta": 0.1, "stop_gradient": stop}
    value, gradient = value_and_gradient(
        losses.compose({"name": "precision", "k": 3}, smooth), SCORES, LABELS, None
    )
    assert_recorded((1 + value, gradient), RECORD["smooth_i"][f"precision_{kind}"], 1e-5)

    def theirs(scores: Tensor, labels: Tensor, mask: Tensor | None) -> Tensor:
        indicators = rank_indicators(scores, EVERYONE, 2.0, 0.1, stop, 3)
        discounts = 1 / torch.log2(torch.arange(2.0, 5.0, dtype=torch.float64))
        ideal = 2 ** labels.sort(1, descending=True).values[:, :3] @ discounts
        return 1 - 2 ** (indicators @ labels.unsqueeze(2)).squeeze(2) @ discounts / ideal

    found = value_and_gradient(theirs, SCORES, LABELS, None)
    assert_recorded(found, RECORD["smooth_i"][f"ndcg_{kind}"], 1e-5)


@pytest.mark.parametrize("tau", [0.02, 0.3, 5.0])
@pytest.mark.parametrize(("regularisation", "theirs"), [("l2", "l2"), ("entropic", "kl")])
@pytest.mark.parametrize("ranks", [projected_ranks, projected_ranks.__wrapped__])
def test_projected_ranks_agree_with_their_authors(ranks, regularisation, theirs, tau):
    found, gradient = pulled(ranks, SCORES / tau, regularisation)
    expected = RECORD["fast_soft_rank"][f"{theirs}_{tau}"]
    assert_recorded((found, gradient / tau), expected, 1e-8)


@pytest.mark.parametrize("tau", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("ranks", [laplace_ranks, laplace_ranks.__wrapped__])
def test_laplace_ranks_agree_with_their_authors(ranks, tau):
    found, gradient = pulled(ranks, SCORES / tau)
    assert_recorded((found - 1, gradient / tau), RECORD["lapsum"][str(tau)], 1e-6)


@pytest.mark.parametrize("lam", [2.4, 8.0, 80.0])
def test_blackbox_ndcg_agrees_with_its_authors(lam):
    found = value_and_gradient(losses.blackbox_ndcg, SCORES, LABELS, None, lam=lam)
    assert_recorded(found, RECORD["blackbox"][str(lam)], 1e-6)


@pytest.mark.parametrize("tau", [0.5, 5.0])
@pytest.mark.parametrize("hard", [True, False])
def test_pirank_agrees_with_its_authors(tau, hard):
    options = {"k": 3, "tau": tau, "straight_through": hard}
    found = value_and_gradient(losses.pirank, SCORES, LABELS, None, **options)
    assert_recorded(found, RECORD["pirank"][f"{tau}_{'hard' if hard else 'soft'}"], 1e-5)


def test_gumbel_approx_ndcg_agrees_with_rax(monkeypatch):
    noise = iter(torch.tensor(RECORD["gumbel"]["noise"], dtype=torch.float64))
    monkeypatch.setattr("directrank.losses._compose.gumbel_noise", lambda *_: next(noise))
    found = value_and_gradient(
        losses.gumbel_approx_ndcg, SCORES, LABELS, None, alpha=10.0, samples=3, noise=0.5
    )
    assert_recorded(found, RECORD["gumbel"], 1e-5)


# ----------------------------------------------------------------------------- brute force, limits


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_projected_ranks_are_nearest_of_all_mixtures_of_rankings(scale):
    """No ranking makes an acute angle with what is left: the optimum of a convex problem."""
    values = scale * torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    rankings = torch.tensor(list(itertools.permutations(range(1, 6))), dtype=torch.float64)
    mask = torch.ones(1, 5, dtype=torch.bool)
    order = descending_order(values[None], mask)
    near = projected_ranks(values[None], order, mask, "l2")[0]
    assert ((rankings - near) @ (-values - near)).max() < 1e-12
    entropic = projected_ranks(values[None], order, mask, "entropic")[0]
    assert ((rankings - entropic) @ (-values - entropic.log())).max() < 1e-12
    assert near.sum().item() == pytest.approx(15)
    assert entropic.sum().item() == pytest.approx(15)


def test_laplace_ranks_are_sums_over_all_pairs():
    scores, _, mask = random_lists(6, 40, seed=3)
    scores = torch.where(mask, scores, 0.0)
    scores[-1] = scores[-1].round()  # ties
    laplace = torch.distributions.Laplace(torch.tensor(0.0).double(), torch.tensor(1.0).double())
    pairs = laplace.cdf(scores.unsqueeze(1) - scores.unsqueeze(2)) * mask.unsqueeze(1)
    expected = 1 + (pairs * ~torch.eye(40, dtype=torch.bool)).sum(2)
    for ranks in (laplace_ranks, laplace_ranks.__wrapped__):
        found = ranks(scores, descending_order(scores, mask), mask)
        torch.testing.assert_close(found[mask], expected[mask])


def test_close_documents_share_a_block_and_those_far_apart_have_their_rank():
    scores = torch.tensor([[3.0, 2.5, 2.1, 0.0, -2.0]], dtype=torch.float64)
    mask = torch.ones_like(scores, dtype=torch.bool)
    found = projected_ranks(scores, descending_order(scores, mask), mask, "l2")[0]
    middle = (3.0 + 2.5 + 2.1) / 3
    expected = [2 - (3 - middle), 2 - (2.5 - middle), 2 - (2.1 - middle), 4, 5]
    assert found.tolist() == pytest.approx(expected)
    # The fourth is 1.2 from the others, but its place is 2 from the middle of theirs.
    pooled = torch.tensor([[0.0, 0.0, 0.0, -1.2]], dtype=torch.float64)
    mask = torch.ones_like(pooled, dtype=torch.bool)
    found = projected_ranks(pooled, descending_order(pooled, mask), mask, "l2")[0]
    assert found.tolist() == pytest.approx([2.2, 2.2, 2.2, 3.4])


def test_rank_indicators_are_distributions_over_the_documents():
    scores, _, mask = random_lists(6, 9, seed=3)
    scores = torch.where(mask, scores, 0.0)
    indicators = rank_indicators(scores, mask, 3.0, 0.1, True)
    inside = torch.arange(9) < mask.sum(1, keepdim=True)
    torch.testing.assert_close(indicators.sum(2), inside.double())
    assert (indicators.masked_select(~mask.unsqueeze(1)) == 0).all()
    first = torch.softmax(3 * scores[5][mask[5]], 0)
    torch.testing.assert_close(indicators[5, 0][mask[5]], first)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("smooth_ndcg", [{"alpha": alpha} for alpha in (1e2, 1e4, 1e6)]),
        ("fast_soft_ndcg", [{"tau": tau} for tau in (0.3, 0.03, 0.001)]),
        (
            "fast_soft_ndcg",
            [{"tau": tau, "regularisation": "entropic"} for tau in (0.3, 0.03, 0.001)],
        ),
        ("lapsum_ndcg", [{"tau": tau} for tau in (0.3, 0.03, 0.001)]),
        ("pirank", [{"tau": tau, "straight_through": False} for tau in (1.0, 0.1, 0.001)]),
    ],
)
def test_losses_come_nearer_to_ndcg_as_the_temperature_falls(name, settings):
    scores, labels, mask = random_lists(20, 12, seed=17)
    exact = metrics.ndcg(scores, labels, mask, empty="zero")
    off = [
        float((losses.get(name)(scores, labels, mask, **options) + exact).abs().max())
        for options in settings
    ]
    assert off[0] > off[1] > off[2]
    assert off[2] < 1e-3


# ----------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("relaxation", SMOOTH, ids=lambda r: "-".join(map(str, r.values())))
@pytest.mark.parametrize("metric", METRICS)
def test_every_composition_agrees_with_finite_differences(metric, relaxation):
    scores, labels, mask = random_lists(5, 7, seed=5, levels=3)
    loss = losses.compose({"name": metric, "k": 3}, relaxation)

    def of(scores):
        return loss(scores, labels, mask)

    assert torch.autograd.gradcheck(of, scores.requires_grad_(), eps=1e-6, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", NAMED)
def test_gradients_are_scaled_by_what_comes_from_above(name):
    scores, labels, mask = random_lists(6, 9, seed=2)
    weights = torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    loss = losses.get(name)
    torch.manual_seed(0)
    _, gradient = value_and_gradient(loss, scores, labels, mask)
    leaf = scores.clone().requires_grad_()
    torch.manual_seed(0)
    (weighted,) = torch.autograd.grad((weights * loss(leaf, labels, mask)).sum(), leaf)
    torch.testing.assert_close(weighted, weights.unsqueeze(1) * gradient)


@pytest.mark.parametrize("straight_through", [True, False])
@pytest.mark.parametrize("k", [2, None])
def test_straight_through_changes_the_value_and_no_gradient(k, straight_through):
    """Of NDCG, which is linear in the matrix."""
    scores, labels, mask = random_lists(6, 9, seed=2)
    options = {"k": k, "straight_through": straight_through}
    value, gradient = value_and_gradient(losses.pirank, scores, labels, mask, **options)
    neural = {"k": k, "tau": 5.0, "iterations": 0}
    soft, plain = value_and_gradient(losses.neural_ndcg, scores, labels, mask, **neural)
    torch.testing.assert_close(gradient, plain)
    exact = -metrics.ndcg(scores, labels, mask, k, empty="zero")
    torch.testing.assert_close(value, exact if straight_through else soft)


@pytest.mark.parametrize("metric", METRICS)
def test_blackbox_gradients_are_differences_of_ranks(metric):
    """Of every metric: the values are exact, and the ranks move as the slopes by them say."""
    scores, labels, mask = random_lists(12, 9, seed=7, levels=3)
    loss = losses.compose({"name": metric, "k": 4}, {"name": "blackbox", "lam": 5.0})
    value, gradient = value_and_gradient(loss, scores, labels, mask)
    exact = metrics.get(metric)(scores, labels, mask, 4, empty="zero")
    torch.testing.assert_close(-value, exact)
    assert torch.equal(loss(scores, labels, mask), value)
    steps = 5 * gradient
    torch.testing.assert_close(steps, steps.round())
    assert (gradient.sum(1).abs() < 1e-12).all(), "some fall as others rise"
    assert (gradient[~mask] == 0).all()
    assert (gradient != 0).any()


def test_blackbox_average_precision_takes_the_rank_among_the_relevant_for_a_constant():
    scores = torch.tensor([[0.0, 1.0, 0.5]], dtype=torch.float64)
    labels = torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)
    loss = losses.compose("average_precision", {"name": "blackbox", "lam": 9.0})
    value, gradient = value_and_gradient(loss, scores, labels, None)
    assert value.item() == pytest.approx(-(1 / 2 + 2 / 3) / 2)
    # By the ranks: 1/8 of the second document, (2/9)/2 of the third; times 9 they pass the first.
    torch.testing.assert_close(gradient, torch.tensor([[-1.0, 2.0, -1.0]]).double() / 9)


def test_a_margin_pushes_relevant_documents_that_lead_by_less():
    scores = torch.tensor([[0.5, 0.4, -2.0]], dtype=torch.float64)
    labels = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    plain, still = value_and_gradient(losses.blackbox_ndcg, scores, labels, None)
    assert plain.item() == -1.0
    assert (still == 0).all()
    value, gradient = value_and_gradient(losses.blackbox_ndcg, scores, labels, None, margin=0.5)
    assert value.item() == pytest.approx(-1 / math.log2(3))
    assert gradient[0, 0] < 0 < gradient[0, 1]


# ------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("L", [1, 2, 17, 400])
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0, 1e4])
def test_soft_ranks_equal_their_formulas(scale, L):
    scores, _, mask = random_lists(6, L, seed=L, scale=scale)
    scores = torch.where(mask, scores, 0.0)
    scores[-1] = scores[-1].round()  # ties
    weights = torch.randn(6, L, dtype=torch.float64)
    for ranks, options in (
        (laplace_ranks, ()), (projected_ranks, ("l2",)), (projected_ranks, ("entropic",)),
    ):  # fmt: skip
        parts = []
        for version in (ranks, ranks.__wrapped__):
            leaf = scores.clone().requires_grad_()
            found = version(leaf, descending_order(leaf, mask), mask, *options)
            assert (found >= 1 - 1e-9).all()
            found = found.masked_fill(~mask, 0.0)
            (gradient,) = torch.autograd.grad((found * weights).sum(), leaf)
            assert (gradient[~mask] == 0).all()
            parts.append((found.detach(), gradient))
        torch.testing.assert_close(*parts, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize(("B", "L"), [(0, 4), (3, 0), (0, 0), (2, 1)])
def test_formulas_take_lists_without_documents(name, B, L, monkeypatch):
    monkeypatch.setattr("directrank.kernels.dispatch.KERNELS", {})
    scores, masked = torch.zeros(B, L), torch.zeros(B, L, dtype=torch.bool)
    value, gradient = value_and_gradient(losses.get(name), scores, scores + 1, masked)
    assert value.tolist() == [0] * B
    assert (gradient == 0).all()


def test_blocks_that_grow_by_one_at_a_time_are_found():
    """The last document violates more the more it has been pooled with."""
    falling = -(torch.arange(300.0, dtype=torch.float64) ** 0.5 * 25)[None]
    falling[0, -1] = falling[0, -2]
    falling = falling.sort(1, descending=True).values
    mask = torch.ones_like(falling, dtype=torch.bool)
    order = torch.arange(300)[None]
    for kind in ("l2", "entropic"):
        found = projected_ranks(falling, order, mask, kind)
        plain = projected_ranks.__wrapped__(falling, order, mask, kind)
        torch.testing.assert_close(found, plain)
        assert (found.diff() > -1e-9).all()


@pytest.mark.parametrize("name", ["fast_soft_ndcg", "lapsum_ndcg", "blackbox_ndcg"])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("k", [10, None])
def test_memory_grows_with_the_length_of_lists_and_not_its_square(name, compiled, k, monkeypatch):
    if not compiled:
        monkeypatch.setattr("directrank.kernels.dispatch.KERNELS", {})
    B, L = 4, 2000
    scores, labels, mask = random_lists(B, L, dtype=torch.float32)
    scores.requires_grad_()
    losses.get(name)(scores, labels, mask, k=k).sum().backward()  # compiles
    with torch.profiler.profile(profile_memory=True) as profile:
        losses.get(name)(scores, labels, mask, k=k).sum().backward()
    assert max(event.cpu_memory_usage for event in profile.events()) < 4 * B * L * 60


@pytest.mark.parametrize("name", ["smooth_ndcg", "pirank"])
def test_compiled_rows_are_not_kept(name):
    B, L = 4, 800
    scores, labels, mask = random_lists(B, L, dtype=torch.float32)
    scores.requires_grad_()
    losses.get(name)(scores, labels, mask).sum().backward()
    with torch.profiler.profile(profile_memory=True) as profile:
        losses.get(name)(scores, labels, mask).sum().backward()
    assert max(event.cpu_memory_usage for event in profile.events()) < 4 * B * L * 60


@pytest.mark.parametrize("name", [name for name in NAMED if not name.startswith("gumbel")])
@pytest.mark.parametrize("compiled", [True, False])
def test_what_is_not_a_number_stays_so_in_its_list_alone(name, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr("directrank.kernels.dispatch.KERNELS", {})
    scores, labels, mask = random_lists(6, 12)
    mask[:] = True
    labels[:, 0] = 2
    clean = losses.get(name)(scores, labels, mask)
    scores[4, 5] = float("nan")
    value, _ = value_and_gradient(losses.get(name), scores, labels, mask)
    assert value.isnan().tolist() == [False] * 4 + [True, False]
    assert torch.equal(value[[0, 1, 2, 3, 5]], clean[[0, 1, 2, 3, 5]])


def test_the_projection_has_no_other_regularisation():
    with pytest.raises(DirectrankError, match="choose one of: l2, entropic"):
        losses.fast_soft_ndcg(SCORES, LABELS, regularisation="l3")


# ------------------------------------------------------------------------------ noise, and training


def test_noise_comes_from_the_generator_and_none_is_approx_ndcg():
    scores, labels, mask = random_lists(5, 6, seed=1)
    draws = [
        losses.gumbel_approx_ndcg(
            scores, labels, mask, generator=torch.Generator().manual_seed(seed)
        )
        for seed in (5, 5, 6)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    plain = losses.approx_ndcg(scores, labels, mask)
    assert torch.equal(losses.gumbel_approx_ndcg(scores, labels, mask, samples=0), plain)
    silent = losses.gumbel_approx_ndcg(scores, labels, mask, noise=0.0, samples=2)
    torch.testing.assert_close(silent, plain)
    assert losses.needs_of("gumbel_approx_ndcg").random({})
    assert not losses.needs_of("gumbel_approx_ndcg").random({"samples": 0})


@pytest.mark.parametrize(
    "relaxation",
    [
        "smooth_i",
        "fast_soft_rank",
        "lapsum",
        "blackbox",
        "pirank",
        "soft_sort",
        "sinkhorn_sort",
        "diff_sort",
    ],
)
def test_noise_goes_with_every_relaxation(relaxation):
    scores, labels, mask = random_lists(5, 6, seed=1)
    loss = losses.compose("ndcg", relaxation, samples=3)
    one, same, other = (
        value_and_gradient(
            loss, scores, labels, mask, generator=torch.Generator().manual_seed(seed)
        )
        for seed in (5, 5, 6)
    )
    assert torch.equal(one[0], same[0])
    assert torch.equal(one[1], same[1])
    assert not torch.equal(one[0], other[0])
    assert (one[1][~mask] == 0).all()


PER_LIST = [
    ("smooth_ndcg", "alpha", (0.5, 1.0, 4.0, 30.0)),
    ("fast_soft_ndcg", "tau", (0.01, 0.1, 1.0, 10.0)),
    ("lapsum_ndcg", "tau", (0.01, 0.1, 1.0, 10.0)),
    ("blackbox_ndcg", "lam", (0.5, 2.0, 10.0, 50.0)),
    ("pirank", "tau", (0.1, 1.0, 5.0, 20.0)),
    ("soft_sort_ndcg", "tau", (0.1, 1.0, 5.0, 20.0)),
    ("sinkhorn_ndcg", "tau", (0.01, 0.1, 1.0, 10.0)),
]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("name", "option", "values"), PER_LIST)
def test_a_temperature_may_differ_by_list(name, option, values, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr("directrank.kernels.dispatch.KERNELS", {})
    assert losses.needs_of(name).per_list == (option,)
    scores, labels, mask = random_lists(8, 15, seed=4)
    scores, labels, mask = scores[4:], labels[4:], mask[4:]
    together = value_and_gradient(
        losses.get(name), scores, labels, mask, **{option: torch.tensor(values).double()[:, None]}
    )
    for b, own in enumerate(values):
        alone = value_and_gradient(
            losses.get(name), scores[b : b + 1], labels[b : b + 1], mask[b : b + 1],
            **{option: own},
        )  # fmt: skip
        torch.testing.assert_close(together[0][b], alone[0][0])
        torch.testing.assert_close(together[1][b], alone[1][0])


@pytest.mark.parametrize("name", NAMED)
def test_a_linear_scorer_learns_from_every_loss(name):
    fitted = fit(splits(), model={"name": "linear"}, loss={"name": name}, max_epochs=25)[0]
    assert mean_ndcg(fitted, splits().test) > 0.9


@pytest.mark.parametrize("name", NAMED)
def test_models_trained_together_are_the_models_trained_alone(name):
    alone, together = (
        fit(
            splits(), 3, {"name": "linear"}, {"name": name}, dtype="float64", stack=stack,
            max_epochs=3,
        )
        for stack in (1, 0)
    )  # fmt: skip
    for one, other in zip(alone, together, strict=True):
        assert np.allclose(one.predict(splits().test), other.predict(splits().test), atol=1e-8)


@pytest.mark.parametrize(("name", "option", "values"), PER_LIST)
def test_models_that_differ_in_temperature_share_a_call(name, option, values):
    lists = made(12, 3)
    scores = torch.from_numpy(lists.features[:, :4].T.copy()).double()
    settings = [{"name": name, option: value} for value in values]
    objective = Objective(settings, "mean")
    together = objective(scores, layout(lists))
    assert len(objective._calls) == 1
    for model in range(4):
        alone = Objective([settings[model]], "mean")
        expected = alone(scores[model : model + 1], layout(lists))
        torch.testing.assert_close(together[model : model + 1], expected)


def test_kernels_work_on_as_many_threads_as_there_is_work_for(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "directrank.kernels.batch.over_lists", lambda kernel, work, *_: calls.append(work)
    )
    values = torch.zeros(3, 7)
    soft_ranks.laplace_ranks(values, torch.arange(7).expand(3, 7), values == 0)
    assert calls == [soft_ranks.WORK * 21]
