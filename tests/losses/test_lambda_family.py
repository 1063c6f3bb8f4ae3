"""The family of lambda functions of Burges2006, section 6.2: what section 4 asks of forces."""

from __future__ import annotations

import pytest
import torch

from directrank import losses
from directrank.losses._lambda_family import FORCES
from directrank.metrics.conventions import Judgements
from directrank.system.errors import DirectrankError
from losses_cases import random_lists, value_and_gradient

FAMILY = [
    {"force": force, "pairs": pairs, "margin": 0.4}
    for force in FORCES
    for pairs in ("all", "neighbours")
]
MEMBERS = pytest.mark.parametrize(
    "options", FAMILY, ids=lambda options: f"{options['force']}-{options['pairs']}"
)


@MEMBERS
def test_forces_of_a_query_sum_to_zero(options):
    scores, labels, mask = random_lists(20, 15, seed=1)
    _, gradient = value_and_gradient(losses.lambda_family, scores, labels, mask, **options)
    torch.testing.assert_close(
        gradient.sum(1), torch.zeros(20, dtype=torch.float64), atol=1e-12, rtol=0
    )
    assert gradient.abs().max() > 1e-3
    assert (gradient[~mask] == 0).all()


@MEMBERS
def test_jacobian_of_the_forces_is_symmetric_while_the_order_stands(options):
    scores = random_lists(3, 8, seed=5)[0][:1]
    labels = torch.tensor([[0.0, 3, 1, 0, 2, 4, 1, 0]], dtype=torch.float64)

    def force(s):
        return value_and_gradient(losses.lambda_family, s, labels, None, **options)[1][0]

    step = 1e-5
    shifts = step * torch.eye(8, dtype=torch.float64)
    jacobian = torch.stack([(force(scores + e) - force(scores - e)) / (2 * step) for e in shifts])
    torch.testing.assert_close(jacobian, jacobian.T, atol=1e-8, rtol=1e-6)
    if options["force"] != "step":  # a constant force has no Jacobian but zero
        assert (jacobian - torch.diag(jacobian.diagonal())).abs().max() > 1e-4


@MEMBERS
def test_forces_are_those_of_the_potential_while_the_order_stands(options):
    """Poincaré's lemma: the value is a function whose gradient the forces are."""
    scores = random_lists(3, 8, seed=6)[0][:1]
    labels = torch.tensor([[0.0, 3, 1, 0, 2, 4, 1, 0]], dtype=torch.float64)

    def value(s):
        return losses.lambda_family(s, labels, None, **options)[0]

    step = 1e-6
    shifts = step * torch.eye(8, dtype=torch.float64)
    numeric = torch.stack([(value(scores + e) - value(scores - e)) / (2 * step) for e in shifts])
    exact = value_and_gradient(losses.lambda_family, scores, labels, None, **options)[1][0]
    torch.testing.assert_close(numeric, exact, atol=1e-7, rtol=1e-5)


def test_logistic_force_between_all_pairs_is_lambdarank():
    scores, labels, mask = random_lists(12, 20, seed=2)
    found = value_and_gradient(losses.lambda_family, scores, labels, mask)
    torch.testing.assert_close(found, value_and_gradient(losses.lambdarank, scores, labels, mask))


@pytest.mark.parametrize(
    ("force", "expected"),
    [
        ("step", [1, 1, 0]),
        ("spring", [1.5, 0.3, 0]),
        ("logistic", [1 / (1 + 2.718281828 ** (-1.5)), 1 / (1 + 2.718281828 ** (-0.3)), 0.3775407]),
        ("sigmoid", [0.1491465, 0.2444583, 0.2350037]),
        ("difference", [1, 2, 1]),
    ],
)
def test_force_of_a_pair_that_is_wrong_close_or_far_enough_in_front(force, expected):
    """Margin 0.5; the weight of the only pair is the same whatever its order."""
    labels = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    weight = 1 - 1 / torch.log2(torch.tensor(3.0, dtype=torch.float64))
    for lead, size in zip([-1.0, 0.2, 1.0], expected, strict=True):
        scores = torch.tensor([[lead, 0.0]], dtype=torch.float64)
        _, gradient = value_and_gradient(
            losses.lambda_family, scores, labels, None, force=force, margin=0.5
        )
        assert -gradient[0, 0].item() == pytest.approx(size * weight.item(), rel=1e-6)


def test_neighbours_alone_exert_a_force():
    """Between the first and the last stands a document of another label: no force across it."""
    scores = torch.tensor([[3.0, 2.0, 1.0]], dtype=torch.float64)
    labels = torch.tensor([[0.0, 0.0, 2.0]], dtype=torch.float64)
    options = {"force": "step", "margin": 0.1}
    near = value_and_gradient(
        losses.lambda_family, scores, labels, None, pairs="neighbours", **options
    )[1][0]
    everyone = value_and_gradient(losses.lambda_family, scores, labels, None, **options)[1][0]
    assert near[0] == 0
    assert near[1] > 0 > near[2]
    assert everyone[0] > 0


@pytest.mark.parametrize(
    "options",
    [
        {"force": "gravity"},
        {"pairs": "some"},
        {"margin": -0.1},
        {"force": "difference", "margin": 0.0},
    ],
)
def test_what_cannot_be_meant_is_refused(options):
    scores, labels, mask = random_lists(3, 4)
    with pytest.raises(DirectrankError):
        losses.lambda_family(scores, labels, mask, **options)


def test_printed_gains_are_those_of_section_6_3():
    labels = torch.arange(5.0)[None]
    judgements = Judgements(labels, torch.ones(1, 5, dtype=torch.bool))
    assert judgements.gains("burges2006").tolist() == [[0, 3, 7, 15, 31]]
