"""Values whose gradient is written down, not derived."""

from __future__ import annotations

import torch
from torch import Tensor


def with_gradient(scores: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
    """``value [B]`` as a function of ``scores [B, L]`` with the given ``gradient [B, L]``.

    It can be differentiated once.
    """
    return _WithGradient.apply(scores, (value, gradient))


class _WithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores: Tensor, result: tuple[Tensor, Tensor]) -> Tensor:
        value, gradient = result
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
        # The decorator costs as much as ListNet: only where a graph of the gradient is made.
        work = _once if torch.is_grad_enabled() else _scaled
        return work(ctx, grad_output)


def _scaled(ctx, grad_output: Tensor) -> tuple[Tensor, None]:
    (gradient,) = ctx.saved_tensors
    return grad_output.unsqueeze(1) * gradient, None


_once = torch.autograd.function.once_differentiable(_scaled)
