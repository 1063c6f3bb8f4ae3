"""Newton losses, Newton steps on the scores of any loss (Petersen et al., NeurIPS 2024)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from directrank import losses
from directrank.lists.calls import ranking_loss
from directrank.lists.flat import Lists, spread, sums
from directrank.lists.gradient import with_gradient
from directrank.lists.inputs import checked, one_of, validated
from directrank.lists.parameters import check_options, kinds_of
from directrank.losses._needs import needs
from directrank.system.errors import ArgumentError
from directrank.system.registry import refuse_options

CURVATURES = ("fisher", "hessian")

#: The step of central differences in float64 that balances their two errors.
STEP = torch.finfo(torch.float64).eps ** (1 / 3)


def _draws(settings: Mapping[str, Any]) -> bool:
    name, options = _named(settings["of"])
    return losses.needs_of(name).random(options)


@ranking_loss
@needs(per_list=("lam",), draws=_draws)
def newton(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    of: str | Mapping[str, Any],
    lam: float | Tensor,
    curvature: str = "fisher",
    generator: torch.Generator | None = None,
) -> Tensor:
    """``½ ‖s - s*‖²`` per query, at the target ``s* = s - (C + lam I)⁻¹ g`` of a Newton step.

    ``g`` is the gradient of another loss, and ``C`` its curvature: the Hessian, or the empirical
    Fisher matrix ``g gᵀ``. The target is a constant, so that the gradient is the step
    ``(C + lam I)⁻¹ g``, with which a network is trained in place of ``g`` (Petersen et al., 2024,
    arXiv:2410.19055). A large ``lam`` leaves the direction of ``g``.

    Where the outputs of a batch have the same meaning, the mean of their curvatures can be taken.
    The places of a list have none, and lists differ in length, so that each query has its own
    curvature here. By the formula of Sherman and Morrison the step with the Fisher matrix is then
    ``g / (lam + ‖g‖²)``: it keeps the direction of ``g``, and its length is at most
    ``1 / (2 sqrt(lam))``, reached where ``‖g‖² = lam``.

    The Hessian is taken by central differences of the gradient in float64, which needs the loss
    twice per document of the longest list. Where a loss writes its gradient down, as LambdaRank
    does, it is the derivative of that. Losses that are not convex have Hessians with negative
    eigenvalues; where ``lam`` is not larger than these, a step may lead uphill.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        of: a name of :data:`directrank.losses.REGISTRY`, or a mapping with ``name`` and the
            loss's hyper-parameters.
        lam: what is added to the diagonal; a tensor ``[B, 1]`` sets it per query. It has to be
            chosen for each loss.
        curvature: ``fisher`` or ``hessian``.
        generator: random numbers of the loss, if it draws any.

    Returns:
        The loss per query, ``[B]``; 0 where the gradient of the other loss is 0.

    Raises:
        ConfigError: the loss or one of its hyper-parameters is unknown or outside of its range; or
            it draws random numbers, and a Hessian is asked for.
        ArgumentError: the curvature is unknown.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.newton(scores, labels, of={"name": "approx_ndcg", "alpha": 1.0}, lam=0.01)
    tensor([12.4999, 10.9941])
    """
    one_of(curvature, CURVATURES, "curvature")
    name, options = _named(of)
    if curvature == "hessian" and losses.needs_of(name).random(options):
        raise ArgumentError(
            f"'{name}' draws random numbers with these settings, so that it has no Hessian",
            'use curvature="fisher"',
        )
    other = losses.get(name)
    if "generator" in inspect.signature(other).parameters:
        options["generator"] = generator
    gradient_of = partial(_gradient, partial(other, **options))
    if curvature == "fisher":
        scores, labels, lists = validated(scores, labels, mask)
        gradient = gradient_of(scores, labels, lists)
        own = lam.flatten() if isinstance(lam, Tensor) else lam
        step = gradient / spread(own + sums(gradient.square(), lists), lists)
        return with_gradient(scores, sums(step.square(), lists) / 2, step, lists)
    scores, labels, mask = checked(scores, labels, mask)
    gradient = gradient_of(scores, labels, mask)
    system = _hessian(gradient_of, scores, labels, mask)
    system += torch.diag_embed(lam * torch.ones_like(scores, dtype=torch.float64))
    # A matrix that happens to be singular is not worth the end of a training.
    solved, _ = torch.linalg.solve_ex(system, gradient.double())
    step = solved.to(scores.dtype)
    return with_gradient(scores, step.square().sum(1) / 2, step)


def _named(loss: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the hyper-parameters of a loss."""
    options = {"name": loss} if isinstance(loss, str) else dict(loss)
    name = options.pop("name", "")
    function = losses.get(name)
    refuse_options(f"loss '{name}'", options, inspect.signature(function).parameters)
    return name, check_options(options, kinds_of(function))


def _gradient(
    loss: Callable[..., Tensor], scores: Tensor, labels: Tensor, lists: Lists | None
) -> Tensor:
    """The gradient of each query's loss by its scores, in their shape, also without autograd."""
    with torch.inference_mode(False), torch.enable_grad():
        leaf = scores.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(leaf, labels, lists).sum(), leaf)
    return gradient


def _hessian(
    gradient_of: Callable[..., Tensor], scores: Tensor, labels: Tensor, mask: Tensor
) -> Tensor:
    """The symmetric part of the derivative of the gradient, float64 ``[B, L, L]``."""
    scores, labels = scores.detach().double(), labels.double()
    columns = []
    for place in range(scores.shape[1]):
        moved = torch.zeros_like(scores)
        moved[:, place] = STEP
        ahead, behind = (gradient_of(scores + by, labels, mask) for by in (moved, -moved))
        columns.append((ahead - behind) / (2 * STEP))
    jacobian = torch.stack(columns, 2) if columns else scores.new_zeros(*scores.shape, 0)
    return (jacobian + jacobian.mT) / 2
