"""Newton losses: closed forms of the step, finite differences, and what they leave of a loss."""

from __future__ import annotations

import itertools

import pytest
import torch

from directrank import losses, nn
from directrank.system.errors import ArgumentError, ConfigError
from losses_cases import random_lists, value_and_gradient

#: Without relevant documents no gradient, and ranks that are smooth in the scores.
SMOOTH = {"name": "approx_ndcg", "alpha": 2.0}


def step_of(scores, labels, mask=None, **options):
    """The step on the scores, whose value has been checked."""
    value, step = value_and_gradient(losses.newton, scores, labels, mask, **options)
    torch.testing.assert_close(value, step.square().sum(1) / 2)
    return step


def test_the_steps_of_an_absolute_error_have_their_closed_forms():
    """A list of one document: sqrt((y - s)²) has no curvature, and the square of its slope is 1."""
    scores, labels = torch.tensor([[0.4]]).double(), torch.tensor([[2.0]])
    raw = {"name": "rmse", "levels": None}
    assert step_of(scores, labels, of=raw, lam=0.5).item() == pytest.approx(-1 / 1.5)
    hessian = step_of(scores, labels, of=raw, lam=0.5, curvature="hessian")
    assert hessian.item() == pytest.approx(-1 / 0.5)


def test_a_step_of_two_documents_is_that_of_logistic_regression_in_their_difference():
    """RankNet's cost is log(1 + e^-d): slope σ(-d) along (-1, 1), curvature σ(d) σ(-d)."""
    difference = 0.7
    scores = torch.tensor([[difference, 0.0]], dtype=torch.float64)
    labels = torch.tensor([[1.0, 0.0]])
    up = torch.sigmoid(torch.tensor(-difference, dtype=torch.float64)).item()
    for curvature, along in (("hessian", 2 * up * (1 - up)), ("fisher", 2 * up**2)):
        step = step_of(scores, labels, of="ranknet", lam=0.3, curvature=curvature)
        expected = up / (0.3 + along)
        torch.testing.assert_close(step, torch.tensor([[-expected, expected]]).double())


def test_newton_steps_alone_reach_the_minimum_of_a_convex_loss():
    """The softmax has the labels' distribution after a few steps."""
    labels = torch.tensor([[3.0, 1.0, 2.0, 2.0]], dtype=torch.float64)
    scores = torch.tensor([[0.3, 0.0, -0.4, 0.9]], dtype=torch.float64)
    options = {"of": "softmax_cross_entropy", "lam": 1e-6, "curvature": "hessian"}
    for _ in range(8):
        scores = scores - step_of(scores, labels, **options)
    torch.testing.assert_close(scores.softmax(1), labels / labels.sum())


@pytest.mark.parametrize("of", ["ranknet", "softmax_cross_entropy", SMOOTH])
def test_the_step_solves_the_system_of_finite_differences_of_the_loss(of):
    scores, labels, mask = random_lists(5, 6, seed=7)
    name, settings = (of, {}) if isinstance(of, str) else ("approx_ndcg", {"alpha": 2.0})
    loss, h, lam = losses.get(name), 1e-4, 0.7
    step = step_of(scores, labels, mask, of=of, lam=lam, curvature="hessian")

    def value(b, changes):
        moved = scores.clone()
        for place, by in changes:
            moved[b, place] += by
        return loss(moved, labels, mask, **settings)[b].item()

    for b in range(5):
        slope = torch.zeros(6, dtype=torch.float64)
        curvature = torch.zeros(6, 6, dtype=torch.float64)
        for i, j in itertools.product(range(6), repeat=2):
            slope[i] = (value(b, [(i, h)]) - value(b, [(i, -h)])) / (2 * h)
            corners = [
                x * y * value(b, [(i, x * h), (j, y * h)])
                for x, y in itertools.product((1, -1), repeat=2)
            ]
            curvature[i, j] = sum(corners) / (4 * h * h)
        found = (curvature + lam * torch.eye(6).double()) @ step[b]
        torch.testing.assert_close(found, slope, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("of", ["lambdarank", "neural_ndcg", "twin_ndcg", "rmse"])
def test_the_step_with_the_fisher_matrix_solves_its_system(of):
    scores, labels, mask = random_lists(6, 9, seed=5)
    _, gradient = value_and_gradient(losses.get(of), scores, labels, mask)
    step = step_of(scores, labels, mask, of=of, lam=0.01)
    matrix = gradient.unsqueeze(2) * gradient.unsqueeze(1) + 0.01 * torch.eye(9).double()
    torch.testing.assert_close((matrix @ step.unsqueeze(2)).squeeze(2), gradient)
    assert step.norm(dim=1).max() <= 1 / (2 * 0.01**0.5) + 1e-12
    assert step.norm(dim=1).max() > 1


@pytest.mark.parametrize("curvature", ["fisher", "hessian"])
def test_a_large_damping_leaves_the_gradient(curvature):
    scores, labels, mask = random_lists(6, 9, seed=6)
    _, gradient = value_and_gradient(losses.approx_ndcg, scores, labels, mask)
    step = step_of(scores, labels, mask, of="approx_ndcg", lam=1e7, curvature=curvature)
    torch.testing.assert_close(1e7 * step, gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("curvature", ["fisher", "hessian"])
@pytest.mark.parametrize("of", ["lambdarank", "neural_ndcg"])
def test_padding_and_the_order_of_documents_change_nothing(of, curvature):
    scores, labels, mask = random_lists(6, 9, seed=8)
    options = {"of": of, "lam": 2.0, "curvature": curvature}
    step = step_of(scores, labels, mask, **options)
    assert (step[~mask] == 0).all()
    assert (step[3:] != 0).any(1).all()
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    turned = step_of(scores[:, order], labels[:, order], mask[:, order], **options)
    torch.testing.assert_close(turned, step[:, order], rtol=1e-6, atol=1e-8)
    nothing = torch.full((6, 3), float("nan"), dtype=torch.float64)
    wide = [torch.cat([values, nothing.to(values)], 1) for values in (scores, labels)]
    wider = torch.cat([mask, torch.zeros(6, 3, dtype=torch.bool)], 1)
    padded = step_of(*wide, wider, **options)
    torch.testing.assert_close(padded[:, :9], step, rtol=1e-6, atol=1e-8)
    assert (padded[:, 9:] == 0).all()


@pytest.mark.parametrize("curvature", ["fisher", "hessian"])
def test_a_query_has_its_own_curvature_and_damping(curvature):
    scores, labels, mask = random_lists(5, 7, seed=9)
    lam = torch.tensor([[0.1], [0.2], [0.5], [1.0], [3.0]], dtype=torch.float64)
    step = step_of(scores, labels, mask, of=SMOOTH, lam=lam, curvature=curvature)
    for b in range(5):
        alone = [values[b : b + 1] for values in (scores, labels, mask)]
        own = step_of(*alone, of=SMOOTH, lam=lam[b].item(), curvature=curvature)
        torch.testing.assert_close(own, step[b : b + 1], rtol=1e-7, atol=1e-9)


def test_values_are_the_same_without_gradients_and_in_float32():
    scores, labels, mask = random_lists(5, 7, seed=9)
    for curvature in ("fisher", "hessian"):
        options = {"of": SMOOTH, "lam": 0.5, "curvature": curvature}
        value = losses.newton(scores, labels, mask, **options)
        for context in (torch.no_grad, torch.inference_mode):
            with context():
                assert torch.equal(losses.newton(scores + 0, labels, mask, **options), value)
        single = losses.newton(scores.float(), labels, mask, **options)
        assert single.dtype == torch.float32
        torch.testing.assert_close(single.double(), value, rtol=1e-4, atol=1e-6)


def test_a_loss_that_draws_takes_its_numbers_from_the_generator():
    scores, labels, _ = random_lists(5, 7, seed=9)

    def step(seed, of):
        generator = torch.Generator().manual_seed(seed)
        return step_of(scores, labels, of=of, lam=0.5, generator=generator)

    noisy = {"name": "gumbel_approx_ndcg", "samples": 2}
    for of in ("pl_rank", noisy):
        assert torch.equal(step(1, of), step(1, of))
        assert not torch.equal(step(1, of), step(2, of))
        with pytest.raises(ConfigError, match="so that it has no Hessian"):
            losses.newton(scores, labels, of=of, lam=0.5, curvature="hessian")
        assert losses.needs_of("newton").random({"name": "newton", "of": of})
    quiet = {**noisy, "samples": 0}
    assert not losses.needs_of("newton").random({"name": "newton", "of": quiet})
    assert losses.newton(scores, labels, of=quiet, lam=0.5, curvature="hessian").isfinite().all()


def test_settings_that_do_not_fit_are_errors():
    scores, labels, mask = random_lists(3, 4)
    for of, message in (
        ("aprox_ndcg", "unknown loss"),
        ({"name": "approx_ndcg", "alpah": 1.0}, "no option 'alpah'"),
        ({"name": "approx_ndcg", "alpha": 0.0}, "alpha must be"),
    ):
        with pytest.raises(ConfigError, match=message):
            losses.newton(scores, labels, mask, of=of, lam=1.0)
    with pytest.raises(ConfigError, match="lam must be"):
        losses.newton(scores, labels, mask, of="ranknet", lam=0.0)
    with pytest.raises(ArgumentError, match="unknown curvature"):
        losses.newton(scores, labels, mask, of="ranknet", lam=1.0, curvature="diagonal")


def test_a_module_of_a_composition_learns():
    torch.manual_seed(0)
    features = torch.randn(20, 8, 3)
    labels = (features[..., 0] > 0.5).float()
    scorer = torch.nn.Linear(3, 1)
    of = {"name": "composed", "metric": "err", "relaxation": {"name": "sigmoid", "alpha": 1.0}}
    loss = nn.Newton(of=of, lam=0.01)
    optimizer = torch.optim.SGD(scorer.parameters(), lr=0.05)

    def err():
        return losses.composed(scorer(features).squeeze(2), labels, metric="err",
                               relaxation={"name": "sigmoid", "alpha": 1.0}).mean()  # fmt: skip

    before = err().item()
    for _ in range(30):
        optimizer.zero_grad()
        loss(scorer(features).squeeze(2), labels).backward()
        optimizer.step()
    assert err().item() < before - 0.05
