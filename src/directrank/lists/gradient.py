"""Values with an explicit gradient, which is not derived by PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from directrank.lists.flat import Lists, spread


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch's decorator of this name, which is passed by unless a graph of the gradient is made.

    It costs as much as ListNet.
    """
    once = torch.autograd.function.once_differentiable(backward)

    @wraps(backward)
    def either(ctx: Any, *gradients: Tensor) -> Any:
        return (once if torch.is_grad_enabled() else backward)(ctx, *gradients)

    return either


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
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return spread(grad_output, ctx.lists) * gradient, None, None
