"""Layers that hold the parameters of several models and apply each to its own documents.

Every parameter and buffer has a leading dimension M, the number of models in the stack. The models
share nothing but the layer's shape: a stack of M gives what M separate models would give.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from directrank.kernels.dispatch import find
from directrank.lists.gradient import once_differentiable


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
        """``[M, N, in]`` to ``[M, N, out]``.

        ``x`` may be ``[G, N, in]`` where M / G neighbouring models each share their documents. A
        single output, a score, is computed in the precision of the weights: its last digits decide
        the order of documents.
        """
        if self.weight.shape[2] == 1 and torch.is_autocast_enabled(x.device.type):
            with torch.autocast(x.device.type, enabled=False):
                return self._product(x.to(self.weight.dtype))
        return self._product(x)

    def _product(self, x: Tensor) -> Tensor:
        models, width, out = self.weight.shape
        rows, N, _ = x.shape
        if models == 1:
            y = torch.mm(x.squeeze(0), self.weight.squeeze(0))[None]
        elif rows == models and out > 1:
            y = torch.bmm(x, self.weight)
        else:
            # One product per row, with the weights of its models stacked: a product of few columns
            # is several times slower than one of few rows.
            stacked = self.weight if out == 1 else self.weight.transpose(1, 2)
            y = torch.bmm(stacked.reshape(rows, -1, width), x.transpose(1, 2))
            y = y.view(models, N, 1) if out == 1 else y.view(models, out, N).transpose(1, 2)
        if self.bias is None:
            return y
        # In place, where the types agree: no gradient needs the product without its bias.
        return y.add_(self.bias) if y.dtype == self.bias.dtype else y + self.bias


class StackedBatchNorm(nn.Module):
    """Batch normalisation over the real documents of each model's batch.

    Args:
        models: M.
        width: number of features.
        decay: weight of the *old* running statistic, TensorFlow's convention for "momentum"
            (PyTorch's momentum is ``1 - decay``).
        epsilon: added to the variance.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, models: int, width: int, decay: float, epsilon: float) -> None:
        super().__init__()
        self.decay = decay
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(models, 1, width))
        self.bias = nn.Parameter(torch.zeros(models, 1, width))
        self.register_buffer("running_mean", torch.zeros(models, 1, width))
        self.register_buffer("running_var", torch.ones(models, 1, width))

    def forward(self, x: Tensor, rows: Tensor | None) -> Tensor:
        """Normalise ``x`` ``[M, N, width]``; ``rows`` bool ``[M, N]`` marks real documents, which
        come first."""
        # PyTorch's own layer is faster, but refuses to train on a single document.
        if len(self.weight) == 1 and rows is None and (x.shape[1] > 1 or not self.training):
            return self._single(x)
        x = x.to(self.weight.dtype)  # sums of bfloat16 would lose their digits
        if not self.training:
            scale = self.weight * torch.rsqrt(self.running_var + self.epsilon)
            return x * scale + (self.bias - self.running_mean * scale)
        kernel = find(StackedBatchNorm, x)
        if kernel is not None and len(x) == len(self.weight):
            if rows is None:
                documents = torch.full((len(x),), x.shape[1], device=x.device)
            else:
                documents = rows.sum(1)
            y, mean, variance = kernel(x, self.weight, self.bias, documents, self.epsilon)
            self.follow(mean, variance, unbiasing(documents.to(x.dtype)[:, None, None]))
            return y
        mask = None if rows is None else rows.to(x.dtype)
        with torch.autocast(x.device.type, enabled=False):
            y, mean, variance, count = _Normalised.apply(
                x, self.weight, self.bias, mask, self.epsilon
            )
        self.follow(mean, variance, unbiasing(count))
        return y

    def follow(self, mean: Tensor, variance: Tensor, factor: Tensor) -> None:
        """Bring the running statistics up to date.

        Args:
            mean, variance: ``[M, 1, width]`` of a batch.
            factor: of the variance, from :func:`unbiasing`.
        """
        self.running_mean.lerp_(mean, 1 - self.decay)
        self.running_var.lerp_(variance * factor, 1 - self.decay)

    def _single(self, x: Tensor) -> Tensor:
        return torch.nn.functional.batch_norm(
            x.squeeze(0),
            self.running_mean.view(-1),
            self.running_var.view(-1),
            self.weight.view(-1),
            self.bias.view(-1),
            training=self.training,
            momentum=1 - self.decay,
            eps=self.epsilon,
        )[None]


def unbiasing(count: Tensor) -> Tensor:
    """The factor that makes a variance over ``count`` documents an unbiased estimate."""
    return count / (count - 1).clamp_min(1)


class _Normalised(torch.autograd.Function):
    """``(x - mean) / sqrt(variance + epsilon) * weight + bias`` over the real rows of each model.

    Returns it with mean, variance and number of rows, which have no gradient. The gradient of the
    output must be 0 at padding; that of the input then is as well.
    """

    @staticmethod
    def forward(
        ctx, x: Tensor, weight: Tensor, bias: Tensor, mask: Tensor | None, epsilon: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        if mask is None:
            count = x.new_full((1, 1, 1), x.shape[1])
            mean = x.mean(1, keepdim=True)
            standard = x - mean
        else:
            count = mask.sum(1)[:, None, None]
            mean = torch.bmm(mask.unsqueeze(1), x) / count
            standard = (x - mean).mul_(mask.unsqueeze(2))
        variance = torch.linalg.vector_norm(standard, dim=1, keepdim=True).square_() / count
        scale = torch.rsqrt(variance + epsilon)
        standard *= scale
        ctx.save_for_backward(standard, weight * scale, mask, count)
        ctx.mark_non_differentiable(mean, variance, count)
        ctx.set_materialize_grads(False)  # of these, which would be zeros
        return torch.addcmul(bias, standard, weight), mean, variance, count

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        standard, factor, mask, count = ctx.saved_tensors
        to_bias = gradient.sum(1, keepdim=True)
        to_weight = (gradient * standard).sum(1, keepdim=True)
        to_x = None
        if ctx.needs_input_grad[0]:
            to_x = (gradient - to_bias / count).addcmul_(standard, to_weight / count, value=-1)
            to_x *= factor
            if mask is not None:
                to_x *= mask.unsqueeze(2)
        return to_x, to_weight, to_bias, None, None


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
