"""Dense, batch norm, ReLU, layer after layer, in training on a CPU.

Norms and activations wait for memory, and so do products of narrow layers. Here a block of
documents small enough for the cache goes through all that lies between two norms at a time, and
only what comes out of each product is kept. Padding is not worked. The threads are those of
:mod:`directrank.relaxations._compiled`; sums of blocks are added in their order, so that nothing
depends on the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank.documents import Documents
from directrank.models.stacked import StackedBatchNorm, StackedLinear
from directrank.relaxations._compiled import array, over_lists, usable

#: Documents in one step from which on the layers of a model alone are worked in blocks. Those of
#: several models together always are.
LEAST = 1000

#: A model's blocks make up so many runs at most. Each has weights' gradients of its own.
MOST_RUNS = 32


def relu_layers(
    x: Tensor | Documents,
    rows: Tensor | None,
    lengths: np.ndarray | None,
    layers: Sequence[tuple[StackedLinear, StackedBatchNorm]],
    input_norm: StackedBatchNorm | None = None,
) -> Tensor:
    """``relu(norm(layer(x)))`` layer after layer, in blocks where that is faster.

    Args:
        x: ``[M, N, in]``. Blocks take their documents out of a table themselves, if given one.
        rows: bool ``[M, N]``, True for a real document; None where all are. Padding is last.
        lengths: int ``[M, B]``, documents per query.
        layers: each with its norm, whose running statistics are brought up to date in training.
        input_norm: a norm before the first layer.

    Returns:
        ``[M, N, out]``; ``x`` itself without any layers.
    """
    if in_blocks(layers, x.shape[1]) and _allow_blocks(x, rows, lengths, layers):
        return _by_blocks(x, rows, lengths, layers, input_norm)
    x = x.tensor() if isinstance(x, Documents) else x
    if input_norm is not None:
        x = input_norm(x, rows)
    for layer, norm in layers:
        x = torch.relu(norm(layer(x), rows))
    return x


def in_blocks(layers: Sequence[tuple[StackedLinear, StackedBatchNorm]], documents: float) -> bool:
    """Whether training steps of so many documents of each model go through ``layers`` in blocks."""
    if not layers:
        return False
    weight = layers[0][0].weight
    return (
        (len(weight) > 1 or documents >= LEAST)
        and usable(weight)
        and _blas_is_installed()
        and all(layer.bias is None for layer, _ in layers)
    )


def _allow_blocks(
    x: Tensor | Documents,
    rows: Tensor | None,
    lengths: np.ndarray | None,
    layers: Sequence[tuple[StackedLinear, StackedBatchNorm]],
) -> bool:
    """Whether nothing is wanted of a step that is not done in blocks."""
    return (
        (rows is None or lengths is not None)
        and torch.is_grad_enabled()
        and (isinstance(x, Documents) or not x.requires_grad)
        and not torch.is_autocast_enabled("cpu")
        and all(norm.training and norm.weight.dtype == x.dtype for _, norm in layers)
    )


@cache
def _blas_is_installed() -> bool:
    return all(find_spec(name) is not None for name in ("scipy", "threadpoolctl"))


@cache
def _blas() -> Any:
    """The BLAS that compiled loops call, SciPy's. Its own threads would get in the way of ours."""
    import scipy.linalg.cython_blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _by_blocks(
    x: Tensor | Documents,
    rows: Tensor | None,
    lengths: np.ndarray | None,
    layers: Sequence[tuple[StackedLinear, StackedBatchNorm]],
    input_norm: StackedBatchNorm | None,
) -> Tensor:
    counts = np.full(x.shape[0], x.shape[1]) if rows is None else lengths.sum(1)
    blocks = _Blocks.of(counts, rows is not None)
    norms = [norm for _, norm in layers]
    norms = norms if input_norm is None else [input_norm, *norms]
    affine = [value for norm in norms for value in (norm.weight, norm.bias)]
    weights = [layer.weight for layer, _ in layers]
    epsilons = [norm.epsilon for norm in norms]
    y, *statistics = _Layers.apply(x, blocks, epsilons, len(layers), *weights, *affine)
    count = torch.from_numpy(blocks.counts)[:, None, None]
    for norm, mean, variance in zip(norms, statistics[::2], statistics[1::2], strict=True):
        norm.follow(mean[:, None], variance[:, None], count.to(mean.dtype))
    return y


@dataclass(frozen=True)
class _Blocks:
    """Which blocks there are, and the threads that work on them.

    Attributes:
        items: int64 ``[blocks, 3]``, see :mod:`._block_kernels`; those of a model are neighbours.
        runs: int64 ``[runs, 2]``, the first block of neighbours that are worked in turn, and the
            one after the last.
        first: int64 ``[M]``, each model's first run.
        counts: int64 ``[M]``, each model's documents.
        padded: whether there are documents beyond those.
    """

    items: np.ndarray
    runs: np.ndarray
    first: np.ndarray
    counts: np.ndarray
    padded: bool

    @classmethod
    def of(cls, counts: np.ndarray, padded: bool) -> _Blocks:
        """The blocks of models with so many documents ``[M]``."""
        from directrank.models._block_kernels import BLOCK

        items, _ = _pieces(counts, np.full_like(counts, BLOCK))
        blocks = -(-counts // BLOCK)
        runs, first = _pieces(blocks, -(-blocks // MOST_RUNS))
        runs = runs[:, 1:] + (np.cumsum(blocks) - blocks)[runs[:, :1]]
        return cls(items, runs, first, counts, padded)

    def sums(self, like: np.ndarray, width: int) -> np.ndarray:
        """Room for two numbers per block and column, ``[2, blocks, width]``."""
        return np.empty((2, len(self.items), width), like.dtype)

    def by_model(self, values: np.ndarray) -> np.ndarray:
        """The sums of values of runs ``[runs, ...]`` over each model's, ``[M, ...]``."""
        from directrank.models import _block_kernels as kernels

        if len(self.first) == len(self.runs):
            return values
        total = np.empty((len(self.first), *values.shape[1:]), values.dtype)
        flat = values.reshape(len(values), -1), total.reshape(len(total), -1)
        columns = flat[0].shape[1]
        over_lists(kernels.sum_of_runs, values.size, columns, flat[0], self.first, flat[1])
        return total

    def work(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """Let a kernel work all blocks, each run on one thread."""
        arrays = [value for value in arguments if isinstance(value, np.ndarray)]
        widest = max(value.shape[2] for value in arrays if value.ndim == 3)
        elements = int(self.counts.sum()) * widest
        over_lists(kernel, elements, len(self.runs), self.runs, self.items, *arguments)


def _pieces(totals: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut each of ``totals`` into pieces of its length.

    Returns:
        Per piece whose it is, its begin and its end, ``[pieces, 3]``; each one's first piece.
    """
    numbers = -(-totals // lengths)
    first = np.cumsum(numbers) - numbers
    owner = np.repeat(np.arange(len(totals)), numbers)
    begin = (np.arange(len(owner)) - first[owner]) * lengths[owner]
    end = np.minimum(begin + lengths[owner], totals[owner])
    return np.stack([owner, begin, end], 1), first


@dataclass(frozen=True)
class _Norm:
    """A norm of this step: ``z · scale + shift``, and what its gradient needs.

    All are ``[M, W]``; ``inverse`` is one over the standard deviation.
    """

    mean: np.ndarray
    variance: np.ndarray
    inverse: np.ndarray
    scale: np.ndarray
    shift: np.ndarray

    @classmethod
    def of(
        cls,
        blocks: _Blocks,
        parts: np.ndarray,
        epsilon: float,
        weight: np.ndarray,
        bias: np.ndarray,
    ) -> _Norm:
        """From the moments of blocks, ``[2, blocks, W]``, and a weight and bias ``[M, 1, W]``."""
        from directrank.models import _block_kernels as kernels

        weight, bias = weight[:, 0], bias[:, 0]
        found = np.empty((5, *weight.shape), parts.dtype)
        kernels.norm(blocks.items, blocks.counts, *parts, weight, bias, epsilon, *found)
        return cls(*found)


def _input(x: Tensor | Documents) -> tuple[np.ndarray, np.ndarray]:
    """The first layer's ``x`` and ``rows`` as :mod:`._block_kernels` takes them."""
    if isinstance(x, Documents):
        return array(x.table)[None], x.rows
    return array(x), np.empty((len(x), 0), np.int64)


class _Layers(torch.autograd.Function):
    """The layers' output, with mean and variance of each norm, which have no gradient."""

    @staticmethod
    def forward(
        ctx,
        x: Tensor | Documents,
        blocks: _Blocks,
        epsilons: Sequence[float],
        layers: int,
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        from directrank.models import _block_kernels as kernels

        weights = [array(weight) for weight in parameters[:layers]]
        affine = [array(value) for value in parameters[layers:]]
        below, norms, outputs = _input(x), [], []

        def add_norm(parts: np.ndarray) -> _Norm:
            number = len(norms)
            pair = affine[2 * number : 2 * number + 2]
            norms.append(_Norm.of(blocks, parts, epsilons[number], *pair))
            return norms[-1]

        with _blas().limit(limits=1):
            nothing = np.empty((len(blocks.counts), 0), weights[0].dtype)
            about = (nothing, nothing)
            if len(epsilons) > layers:
                parts = blocks.sums(nothing, x.shape[2])
                blocks.work(kernels.input_moments, *below, *parts)
                norm = add_norm(parts)
                about = (norm.scale, norm.shift)
            product = kernels.first_product
            for weight in weights:
                shape = (len(weight), x.shape[1], weight.shape[2])
                z, parts = np.empty(shape, weight.dtype), blocks.sums(weight, shape[2])
                blocks.work(product, *below, *about, weight, z, *parts)
                norm = add_norm(parts)
                outputs.append(z)
                product, below, about = kernels.product, (z,), (norm.scale, norm.shift)
            y = np.zeros_like(z) if blocks.padded else np.empty_like(z)
            blocks.work(kernels.output, z, norm.scale, norm.shift, y)
        ctx.save_for_backward(*parameters[:layers], *map(torch.from_numpy, outputs))
        ctx.x, ctx.blocks, ctx.norms = x, blocks, norms
        statistics = [
            torch.from_numpy(value) for norm in norms for value in (norm.mean, norm.variance)
        ]
        ctx.mark_non_differentiable(*statistics)
        return torch.from_numpy(y), *statistics

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, slopes: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        from directrank.models import _block_kernels as kernels

        blocks, norms = ctx.blocks, ctx.norms
        saved = [array(value) for value in ctx.saved_tensors]
        layers = len(saved) // 2
        weights, outputs = saved[:layers], saved[layers:]
        of_layers, last = norms[-layers:], norms[-1]
        to_weights: list[np.ndarray] = []
        to_affine: list[np.ndarray] = []
        with _blas().limit(limits=1):
            behind, parts = array(slopes).copy(), blocks.sums(last.mean, last.mean.shape[1])
            about = (outputs[-1], last.mean, last.scale, last.shift)
            blocks.work(kernels.through_output, behind, *about, *parts)
            for number in reversed(range(layers)):
                norm, z, weight = of_layers[number], outputs[number], weights[number]
                found = np.empty((4, *norm.mean.shape), z.dtype)
                kernels.norm_slopes(
                    blocks.items, blocks.counts, parts, norm.scale, norm.inverse, *found
                )
                to_affine[:0] = found[:2]
                above = (behind, z, norm.mean, norm.scale, *found[2:])
                to_weight = np.empty((len(blocks.runs), *weight.shape[1:]), z.dtype)
                if number:
                    x, below = outputs[number - 1], of_layers[number - 1]
                    # In the place of those they come from, where they fit: less leaves the cache.
                    behind = behind if behind.shape == x.shape else np.empty_like(x)
                    parts = blocks.sums(x, x.shape[2])
                    about = (x, below.mean, below.scale, below.shift, weight)
                    blocks.work(kernels.through_product, *above, *about, to_weight, behind, *parts)
                else:
                    nothing = np.empty((len(weight), 0), z.dtype)
                    about = (*_input(ctx.x), norms[0].mean if len(norms) > layers else nothing)
                    blocks.work(kernels.through_input, *above, *about, to_weight)
                to_weights.insert(0, blocks.by_model(to_weight))
        if len(norms) > layers:
            # What reaches the input sums to zero over the documents, as a norm follows.
            norm, product = norms[0], to_weights[0]
            to_weights[0] = product * norm.scale[:, :, None]
            to_scale = norm.inverse * (weights[0] * product).sum(2)
            to_affine[:0] = [to_scale, np.zeros_like(to_scale)]
        gradients = [torch.from_numpy(value) for value in to_weights]
        gradients += [torch.from_numpy(value[:, None]) for value in to_affine]
        return None, None, None, None, *gradients
