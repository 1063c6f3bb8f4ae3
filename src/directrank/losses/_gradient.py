"""Losses whose gradient is worked out together with their value."""

from __future__ import annotations

import torch
from torch import Tensor


class _WithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return value.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return grad_output.unsqueeze(1) * gradient, None, None


def with_gradient(scores: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
    """``value [B]`` as a function of ``scores [B, L]`` with the given ``gradient [B, L]``.

    It can be differentiated once.
    """
    return _WithGradient.apply(scores, value, gradient)
