"""Values with an explicit gradient, which is not derived by PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from directrank.lists.flat import Lists, spread

#: What is said where a gradient is differentiated that has no derivative here.
ONCE = (
    "this gradient is not computed by PyTorch and cannot be differentiated again; the losses can "
    "be differentiated once (once_differentiable)"
)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A ``backward`` whose gradients raise :class:`RuntimeError` where they are differentiated.

    PyTorch's decorator of this name lets those pass whose incoming gradient is a constant, as that
    of a sum or mean is: their derivative would be taken for zero. It also costs as much as ListNet.
    """

    @wraps(backward)
    def once(ctx: Any, *gradients: Tensor) -> Any:
        # Gradients are recorded here only if they are to be differentiated (`create_graph`).
        if not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return backward(ctx, *gradients)
        # The graph must lead on to what the gradient depends on, which `forward` has saved: else
        # PyTorch would not come to the refusal, and take the derivative for zero.
        inputs = [tensor for tensor in ctx.saved_tensors if tensor is not None]
        with torch.no_grad():
            found = backward(ctx, *gradients)
        if not isinstance(found, tuple):
            return _refuse(found, inputs)
        return tuple(_refuse(one, inputs) for one in found)

    return once


def _refuse(gradient: Tensor | None, inputs: Sequence[Tensor]) -> Tensor | None:
    if gradient is None:
        return None
    return _Refused.apply(gradient.detach().requires_grad_(), *inputs)


class _Refused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gradient: Tensor, *_: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx, _: Tensor) -> Tensor:
        raise RuntimeError(ONCE)


def with_gradient(
    scores: Tensor, value: Tensor, gradient: Tensor, lists: Lists | None = None
) -> Tensor:
    """``value [B]`` as a function of ``scores [B, L]`` with the given ``gradient [B, L]``.

    It can be differentiated once. For flat lists, which must then be given, scores and gradient are
    ``[N]``.
    """
    return _WithGradient.apply(scores, (value, gradient), lists)


class _WithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor, result: tuple[Tensor, Tensor], lists: Lists | None) -> Tensor:
        value, gradient = result
        ctx.lists = lists
        ctx.save_for_backward(gradient, scores)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        gradient, _ = ctx.saved_tensors
        return spread(grad_output, ctx.lists) * gradient, None, None
