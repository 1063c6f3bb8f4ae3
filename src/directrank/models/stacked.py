"""Layers that hold the parameters of several models and apply each to its own documents.

Every parameter and buffer has a leading dimension M, the number of models in the stack. The models
share nothing but the layer's shape: a stack of M gives what M separate models would give.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class StackedLinear(nn.Module):
    """``y[m] = x[m] @ weight[m] + bias[m]``.

    Args:
        weight: ``[M, in, out]``, the initial weights.
        bias: whether to add a bias, initially zero.
    """

    def __init__(self, weight: Tensor, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = (
            nn.Parameter(weight.new_zeros(len(weight), 1, weight.shape[2])) if bias else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """``[M, N, in]`` (``[1, N, in]`` where all models share documents) to ``[M, N, out]``."""
        if len(self.weight) == 1:
            y = torch.mm(x[0], self.weight[0])[None]
        else:
            y = torch.matmul(x, self.weight)
        return y if self.bias is None else y + self.bias


class StackedBatchNorm(nn.Module):
    """Batch normalisation over the real documents of each model's batch.

    Args:
        models: M.
        width: number of features.
        decay: weight of the *old* running statistic, TensorFlow's convention for "momentum"
            (PyTorch's momentum is ``1 - decay``).
        epsilon: added to the variance.
    """

    def __init__(self, models: int, width: int, decay: float, epsilon: float) -> None:
        super().__init__()
        self.decay = decay
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(models, 1, width))
        self.bias = nn.Parameter(torch.zeros(models, 1, width))
        self.register_buffer("running_mean", torch.zeros(models, 1, width))
        self.register_buffer("running_var", torch.ones(models, 1, width))

    def forward(self, x: Tensor, rows: Tensor | None) -> Tensor:
        """Normalise ``x`` ``[M, N, width]``; ``rows`` bool ``[M, N]`` marks real documents."""
        # PyTorch's own layer is faster, but refuses to train on a single document.
        if len(self.weight) == 1 and rows is None and (x.shape[1] > 1 or not self.training):
            return self._single(x)
        if not self.training:
            mean, variance = self.running_mean, self.running_var
        else:
            mean, variance = self._batch_statistics(x, rows)
        scale = self.weight * torch.rsqrt(variance + self.epsilon)
        return x * scale + (self.bias - mean * scale)

    def _single(self, x: Tensor) -> Tensor:
        return torch.nn.functional.batch_norm(
            x[0],
            self.running_mean.view(-1),
            self.running_var.view(-1),
            self.weight.view(-1),
            self.bias.view(-1),
            training=self.training,
            momentum=1 - self.decay,
            eps=self.epsilon,
        )[None]

    def _batch_statistics(self, x: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        if rows is None:
            count = torch.full((len(self.weight), 1, 1), x.shape[1], dtype=x.dtype, device=x.device)
            mean = x.mean(1, keepdim=True)
            variance = (x - mean).square().mean(1, keepdim=True)
        else:
            weight = rows.to(x.dtype)[..., None]
            count = weight.sum(1, keepdim=True)
            mean = (x * weight).sum(1, keepdim=True) / count
            variance = ((x - mean).square() * weight).sum(1, keepdim=True) / count
        with torch.no_grad():
            unbiased = variance * (count / (count - 1).clamp_min(1))
            self.running_mean.lerp_(mean, 1 - self.decay)
            self.running_var.lerp_(unbiased, 1 - self.decay)
        return mean, variance


def glorot_uniform(generators: Sequence[torch.Generator], fan_in: int, fan_out: int) -> Tensor:
    """Glorot-uniform weights ``[M, fan_in, fan_out]``, each model's from its own generator."""
    bound = (6 / (fan_in + fan_out)) ** 0.5
    return uniform(generators, fan_in, fan_out, bound)


def uniform(
    generators: Sequence[torch.Generator], fan_in: int, fan_out: int, bound: float
) -> Tensor:
    """Weights ``[M, fan_in, fan_out]`` from U(-bound, bound), one generator per model."""
    return torch.stack(
        [(torch.rand(fan_in, fan_out, generator=g) * 2 - 1) * bound for g in generators]
    )
