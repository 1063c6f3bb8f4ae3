"""Layers of dense, batch norm and ReLU, computed in blocks for training on a CPU.

Norms, activations and products of narrow layers are bound by memory. Here a block of documents that
fits into the cache passes through everything between two norms at once, and only the output of each
product is kept. Padding is skipped. The threads are those of :mod:`directrank.kernels.threads`;
sums of blocks are added in order, so that no result depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.batch import array
from directrank.kernels.dispatch import find
from directrank.kernels.threads import blas_on_one_thread, over_lists, threads_for
from directrank.lists.documents import Documents, copied
from directrank.lists.gradient import once_differentiable
from directrank.models.plans import flattened, table_and_rows
from directrank.models.stacked import StackedBatchNorm, StackedLinear, unbiasing

if TYPE_CHECKING:
    from directrank.kernels.layers import Gradients, Plan

#: The least documents in a step for which the layers of a single model are computed in blocks.
#: Those of several models together always are.
LEAST = 1000

#: The most runs into which a model's blocks are divided. Each has its own gradient of the weights.
MOST_RUNS = 32


def relu_layers(
    x: Tensor | Documents,
    rows: Tensor | None,
    lengths: np.ndarray | None,
    layers: Sequence[tuple[StackedLinear, StackedBatchNorm]],
    input_norm: StackedBatchNorm | None = None,
) -> Tensor:
    """``relu(norm(layer(x)))`` layer after layer, in blocks if that is faster.

    Args:
        x: ``[M, N, in]``; blocks read :class:`Documents` from their table directly.
        rows: bool ``[M, N]``, True for a real document; None if all are. Padding is last.
        lengths: int ``[M, B]``, documents per query.
        layers: each with its norm, whose running statistics training updates.
        input_norm: a norm before the first layer.

    Returns:
        ``[M, N, out]``; ``x`` itself without any layers.
    """
    if in_blocks(layers, x.shape[1]) and _allow_blocks(x, rows, lengths, layers):
        return _by_blocks(x, rows, lengths, layers, input_norm)
    y = copied(x)
    if input_norm is not None:
        y = input_norm(y, rows)
    for layer, norm in layers:
        y = torch.relu(norm(layer(y), rows))
    return y


def in_blocks(layers: Sequence[tuple[StackedLinear, StackedBatchNorm]], documents: float) -> bool:
    """Whether training steps with this many documents per model go through ``layers`` in blocks."""
    if not layers:
        return False
    weight = layers[0][0].weight
    return (
        (len(weight) > 1 or documents >= LEAST)
        and weight.dtype in (torch.float32, torch.float64)
        and find(relu_layers, weight) is not None
        and all(layer.bias is None for layer, _ in layers)
    )


def _allow_blocks(
    x: Tensor | Documents,
    rows: Tensor | None,
    lengths: np.ndarray | None,
    layers: Sequence[tuple[StackedLinear, StackedBatchNorm]],
) -> bool:
    """Whether this step can be computed in blocks."""
    return (
        (rows is None or lengths is not None)
        and torch.is_grad_enabled()
        and (isinstance(x, Documents) or not x.requires_grad)
        and not torch.is_autocast_enabled("cpu")
        and all(norm.training and norm.weight.dtype == x.dtype for _, norm in layers)
    )


def _by_blocks(
    x: Tensor | Documents,
    rows: Tensor | None,
    lengths: np.ndarray | None,
    layers: Sequence[tuple[StackedLinear, StackedBatchNorm]],
    input_norm: StackedBatchNorm | None,
) -> Tensor:
    counts = np.full(x.shape[0], x.shape[1])
    if rows is not None and lengths is not None:
        counts = lengths.sum(1)
    norms = [norm for _, norm in layers]
    norms = norms if input_norm is None else [input_norm, *norms]
    weights = [layer.weight for layer, _ in layers]
    affine = [norm.weight for norm in norms], [norm.bias for norm in norms]
    epsilons = np.array([norm.epsilon for norm in norms])
    sizes = tuple(tuple(weight.shape) for weight in weights)
    shape = _Shape.of(sizes, with_input_norm=input_norm is not None)
    plan = _plan(x, counts, epsilons, shape, weights, affine)
    y = _Layers.apply(plan, shape, *weights, *affine[0], *affine[1])
    factor = unbiasing(torch.from_numpy(counts).to(weights[0].dtype)[:, None, None])
    for norm, mean, variance in zip(norms, *map(shape.by_norm, plan.norms[:2]), strict=True):
        norm.follow(mean, variance, factor)
    return y


class _Layers(torch.autograd.Function):
    """The output of layers whose parameters are in a plan, and are passed again for autograd."""

    @staticmethod
    def forward(ctx, plan: Plan, shape: _Shape, *_: Tensor) -> Tensor:
        from directrank.kernels import layers as kernels

        with blas_on_one_thread():
            if _by_models(plan):
                _over_models(plan, kernels.forward, plan)
            else:
                layers = len(plan.layers)
                for layer in range(layers - len(plan.epsilons), layers):
                    _over_runs(plan, kernels.forward, layer, plan)
                    kernels.norm(layer, plan)
                _over_runs(plan, kernels.forward, layers, plan)
        ctx.plan, ctx.shape = plan, shape
        return torch.from_numpy(plan.y)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from directrank.kernels import layers as kernels

        shape, plan = ctx.shape, ctx.plan._replace(y=array(gradient))
        gradients = _gradients(plan, shape)
        layers = len(plan.layers)
        with blas_on_one_thread():
            if _by_models(plan):
                _over_models(plan, kernels.backward, plan, gradients)
            else:
                for layer in reversed(range(layers + 1)):
                    _over_runs(plan, kernels.backward, layer, plan, gradients)
                    if layer:
                        kernels.norm_gradient(layer - 1, plan, gradients)
                numbers = len(plan.weights) // len(plan.counts)
                work = len(gradients.of_runs)
                over_lists(kernels.weights_gradient, work, numbers, plan, gradients)
        to_weights = shape.by_layer(gradients.of_weights)
        to_scales, to_shifts = map(shape.by_norm, gradients.of_affine)
        if len(plan.epsilons) > layers:
            # A norm follows the first product, so its gradient sums to zero over the documents.
            inverse, scale = (shape.by_norm(values)[0].numpy() for values in plan.norms[2:4])
            product, weight = to_weights[0].numpy(), shape.by_layer(plan.weights)[0].numpy()
            to_weights[0] = torch.from_numpy(product * scale.transpose(0, 2, 1))
            to_scales[0] = torch.from_numpy(inverse * (weight * product).sum(2)[:, None])
            to_shifts[0] = torch.zeros_like(to_shifts[0])
        return None, None, *to_weights, *to_scales, *to_shifts


@dataclass(frozen=True)
class _Shape:
    """The shape of layers that are computed in blocks, the same at every step.

    Attributes:
        models: M.
        weights: the layers' weights' shapes.
        layers: see :class:`~directrank.kernels.layers.Plan`.
        widths: of the norms, in their order.
        gradient_columns: how many columns the gradients of norms' outputs need.
    """

    models: int
    weights: tuple[tuple[int, int, int], ...]
    layers: np.ndarray
    widths: tuple[int, ...]
    gradient_columns: int

    @classmethod
    @cache
    def of(cls, sizes: tuple[tuple[int, int, int], ...], with_input_norm: bool) -> _Shape:
        """The shape of layers with weights of these shapes."""
        widths = [width for _, _, width in sizes]
        norms = (sizes[0][1], *widths) if with_input_norm else tuple(widths)
        at_gradient = np.zeros(len(widths), np.int64)
        for layer in range(1, len(widths)):
            # A gradient overwrites the one from which it is computed if it fits, to stay in the
            # cache.
            same = widths[layer] == widths[layer - 1]
            at_gradient[layer] = at_gradient[layer - 1] + (0 if same else widths[layer - 1])
        layers = np.stack(
            [
                [width for _, width, _ in sizes],
                widths,
                np.cumsum([0, *norms])[-len(widths) - 1 : -1],
                np.cumsum([0, *(width_in * width for _, width_in, width in sizes)])[:-1],
                np.cumsum([0, *widths])[:-1],
                at_gradient,
            ],
            1,
        )
        return cls(sizes[0][0], sizes, layers, norms, int(at_gradient[-1]) + widths[-1])

    def by_norm(self, values: np.ndarray) -> list[Tensor]:
        """Split numbers per column of all norms by norm, ``[M, 1, width]``."""
        parts = torch.from_numpy(values).split(self._columns)
        return [part.view(self.models, 1, -1) for part in parts]

    def by_layer(self, values: np.ndarray) -> list[Tensor]:
        """Split weights of all layers by layer, ``[M, in, out]``."""
        parts = torch.from_numpy(values).split(self._numbers)
        return [part.view(size) for part, size in zip(parts, self.weights, strict=True)]

    @cached_property
    def _columns(self) -> list[int]:
        return [self.models * width for width in self.widths]

    @cached_property
    def _numbers(self) -> list[int]:
        return [models * width_in * width for models, width_in, width in self.weights]


def _plan(
    x: Tensor | Documents,
    counts: np.ndarray,
    epsilons: np.ndarray,
    shape: _Shape,
    weights: Sequence[Tensor],
    affine: tuple[Sequence[Tensor], Sequence[Tensor]],
) -> Plan:
    """A step in the form that kernels take, with room for their results."""
    from directrank.kernels.layers import Plan, cut

    models, N, _ = x.shape
    items, runs, first = cut(counts, MOST_RUNS)
    flat = flattened(weights)
    features, rows = table_and_rows(x, models)
    dtype = flat.dtype
    return Plan(
        items=items,
        runs=runs,
        first=first,
        counts=counts,
        layers=shape.layers,
        epsilons=epsilons,
        x=features,
        rows=rows,
        weights=flat,
        affine=np.stack([*map(flattened, affine)]),
        norms=np.empty((5, models * sum(shape.widths)), dtype),
        z=np.empty(models * N * int(shape.layers[:, 1].sum()), dtype),
        parts=np.empty((2, len(items), max(shape.widths)), dtype),
        y=np.empty((models, N, shape.widths[-1]), dtype),
    )


def _gradients(plan: Plan, shape: _Shape) -> Gradients:
    """Room for the results of :func:`directrank.kernels.layers.backward`."""
    from directrank.kernels.layers import Gradients

    models, N, _ = plan.y.shape
    of_weights = np.empty_like(plan.weights)
    of_runs = of_weights
    if len(plan.runs) > models:
        of_runs = np.empty(len(plan.weights) // models * len(plan.runs), plan.z.dtype)
    return Gradients(
        of_norms=np.empty(models * N * shape.gradient_columns, plan.z.dtype),
        terms=np.empty_like(plan.affine),
        of_runs=of_runs,
        of_weights=of_weights,
        of_affine=np.empty_like(plan.affine),
    )


def _work(plan: Plan, width: int) -> int:
    """The number of elements of all documents with ``width`` columns."""
    return int(plan.counts.sum()) * width


def _by_models(plan: Plan) -> bool:
    """Whether each model goes through all layers on one thread, rather than all threads share it.

    Results do not depend on it.
    """
    threads = threads_for(_work(plan, plan.parts.shape[2]))
    return threads == 1 or len(plan.counts) >= 2 * threads


def _over_models(plan: Plan, kernel: Callable[..., None], *arguments: Any) -> None:
    """Run a kernel on all layers of each model."""
    from directrank.kernels.layers import ALL

    work = _work(plan, plan.parts.shape[2])
    over_lists(kernel, work, len(plan.counts), ALL, *arguments)


def _over_runs(plan: Plan, kernel: Callable[..., None], layer: int, *arguments: Any) -> None:
    """Run a kernel on one layer of each run."""
    shown = plan.layers[max(layer, 0) :, :2]
    width = int(shown[0].max()) if len(shown) else plan.y.shape[2]
    over_lists(kernel, _work(plan, width), len(plan.runs), layer, *arguments)
