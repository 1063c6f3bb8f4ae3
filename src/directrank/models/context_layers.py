"""Layers of the context-aware ranker: layer norm, and attention among the documents of a list.

All layers contain M models, as in :mod:`directrank.models.stacked`, and work on packed documents
``[M, N, width]``. Lists are padded only inside attention, in groups of similar length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from directrank.lists.buckets import buckets
from directrank.lists.devices import on_device
from directrank.lists.flat import DeviceFlat
from directrank.lists.gradient import once_differentiable
from directrank.models.dropout import Dropout
from directrank.models.stacked import StackedLinear, glorot_uniform

#: A group of lists with this many padded pairs takes less time than another group, on a CPU and on
#: a GPU.
SMALL_GROUP, SMALL_GROUP_ON_GPU = 1 << 15, 1 << 21


@dataclass(frozen=True)
class Group:
    """Lists of similar length that are padded together, of all models of a stack.

    Attributes:
        numbers: which of the lists of all models these are, int64 ``[lists]``.
        mask: bool ``[lists, longest]``, True at documents; None if there is no padding.
        source: int64 ``[lists × longest]``, the document in each place; padded places have the last
            of the list.
        places: int64, the places that contain documents; None if all do.
        rows: int64, the documents in these places.
    """

    numbers: Tensor
    mask: Tensor | None
    source: Tensor
    places: Tensor | None
    rows: Tensor


class PaddedLists:
    """The lists of all models of a stack, arranged for attention.

    Args:
        lengths: int ``[M, B]``, documents per list and model; ``[1, B]`` if they are the same.
        models: M.
        rows: documents per model, N, which may be more than those of its lists.
        device: of the tensors.
    """

    def __init__(self, lengths: np.ndarray, models: int, rows: int, device: torch.device) -> None:
        own = np.broadcast_to(lengths, (models, lengths.shape[1]))
        starts = (own.cumsum(1) - own + rows * np.arange(models)[:, None]).ravel()
        self.shape = (models, rows)
        every = own.ravel()
        known = np.flatnonzero(every)
        small = SMALL_GROUP if device.type == "cpu" else SMALL_GROUP_ON_GPU
        groups = buckets(every[known], small=small) if len(known) else []
        self.groups = [
            _group(known[group], every[known[group]], starts[known[group]], device)
            for group in groups
        ]

    def pad(self, x: Tensor) -> tuple[Tensor, ...]:
        """Pad ``[M, N, width]`` to the lists of each group, ``[lists, longest, width]``."""
        padded = _Padded.apply(x.flatten(0, 1), self.groups)
        return tuple(
            each.view(len(group.numbers), -1, x.shape[2])
            for each, group in zip(padded, self.groups, strict=True)
        )

    def pack(self, padded: Sequence[Tensor]) -> Tensor:
        """The inverse of :meth:`pad`; documents that are in no list get zeros."""
        flat = [each.flatten(0, 1) for each in padded]
        return _Packed.apply(self.shape[0] * self.shape[1], self.groups, *flat).view(
            *self.shape, -1
        )


class PaddedOnDevice:
    """As :class:`PaddedLists`, of lists whose lengths only the device knows. One group has all.

    Args:
        flat: the lists of all models.
        models: M.
        rows: documents per model, N.
    """

    def __init__(self, flat: DeviceFlat, models: int, rows: int) -> None:
        self.shape = models, rows
        begin, end = flat.spans.unbind(1)
        L, owners = flat.longest, flat.owners
        place = torch.arange(L, device=flat.device)
        lengths = (end - begin)[:, None]
        source = begin[:, None] + torch.minimum(place, (lengths - 1).clamp_min(0))
        mask = place < lengths
        row = torch.arange(models * rows, device=flat.device)
        within = (row >= begin[owners]) & (row < end[owners])
        places = torch.where(within, owners * L + row - begin[owners], 0)
        self._maps = source.clamp_max(models * rows - 1).flatten(), mask.flatten(), places, within
        # An empty list has a place all the same, because attention to nothing is not defined.
        self.groups = [GroupOnDevice(mask | (place == 0))]

    def pad(self, x: Tensor) -> tuple[Tensor, ...]:
        """See :meth:`PaddedLists.pad`."""
        source, mask, places, within = self._maps
        padded = _Moved.apply(x.flatten(0, 1), source, mask, places, within)
        return (padded.view(len(self.groups[0].mask), -1, x.shape[2]),)

    def pack(self, padded: Sequence[Tensor]) -> Tensor:
        """See :meth:`PaddedLists.pack`."""
        source, mask, places, within = self._maps
        flat = padded[0].flatten(0, 1)
        return _Moved.apply(flat, places, within, source, mask).view(*self.shape, -1)


@dataclass(frozen=True)
class GroupOnDevice:
    """As :class:`Group`, for what attention needs to know: ``mask`` ``[lists, longest]``.

    These are all lists.
    """

    mask: Tensor
    numbers = None


class _Moved(torch.autograd.Function):
    """Rows of ``x`` in other places, and zeros where a place has none.

    Both ways are given, so that the gradient is had by reading as well.

    Args:
        x: ``[rows, width]``.
        source, known: the row of each place, and whether there is one.
        places, moved: the place of each row, and whether it has one.
    """

    @staticmethod
    def forward(
        ctx, x: Tensor, source: Tensor, known: Tensor, places: Tensor, moved: Tensor
    ) -> Tensor:
        ctx.back = places, moved
        return x.index_select(0, source).masked_fill_(~known[:, None], 0.0)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        places, moved = ctx.back
        own = gradient.index_select(0, places).masked_fill_(~moved[:, None], 0.0)
        return own, None, None, None, None


def _group(
    numbers: np.ndarray, lengths: np.ndarray, starts: np.ndarray, device: torch.device
) -> Group:
    place = np.arange(lengths.max())
    source = (starts[:, None] + np.minimum(place, lengths[:, None] - 1)).ravel()
    real = place < lengths[:, None]
    everywhere, which = on_device(source, device), on_device(numbers, device)
    if real.all():
        return Group(which, None, everywhere, None, everywhere)
    places = np.flatnonzero(real)
    return Group(
        which,
        on_device(real, device),
        everywhere,
        on_device(places, device),
        on_device(source[places], device),
    )


class _Padded(torch.autograd.Function):
    """Documents ``[rows, width]`` in the places of each group, ``[lists × longest, width]``."""

    @staticmethod
    def forward(ctx, x: Tensor, groups: Sequence[Group]) -> tuple[Tensor, ...]:
        ctx.shape, ctx.groups = x.shape, groups
        return tuple(x.index_select(0, group.source) for group in groups)

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:
        return _in_rows(ctx.shape[0], ctx.groups, gradients), None


class _Packed(torch.autograd.Function):
    """The inverse of :class:`_Padded`."""

    @staticmethod
    def forward(ctx, rows: int, groups: Sequence[Group], *padded: Tensor) -> Tensor:
        ctx.groups = groups
        return _in_rows(rows, groups, padded)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        padded = []
        for group in ctx.groups:
            own = gradient.index_select(0, group.rows)
            if group.places is not None:
                zeros = own.new_zeros(len(group.source), own.shape[1])
                own = zeros.index_copy_(0, group.places, own)
            padded.append(own)
        return None, None, *padded


def _in_rows(rows: int, groups: Sequence[Group], padded: Sequence[Tensor]) -> Tensor:
    """The values in the places of groups as ``[rows, width]``; rows without a place are zero."""
    result = padded[0].new_zeros(rows, padded[0].shape[1])
    for group, values in zip(groups, padded, strict=True):
        real = values if group.places is None else values.index_select(0, group.places)
        result.index_copy_(0, group.rows, real)
    return result


AnyLists: TypeAlias = PaddedLists | PaddedOnDevice


class _DroppedReLU(torch.autograd.Function):
    """``max(x, 0)`` times the factors of dropout; the backward pass needs only the result.

    If the result is positive, the value was positive and kept; otherwise there is no gradient.
    """

    @staticmethod
    def forward(ctx, x: Tensor, factors: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        result = (x * factors if x.dtype != factors.dtype else factors.mul_(x)).relu_().to(x.dtype)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (result,) = ctx.saved_tensors
        gradient = torch.ops.aten.threshold_backward(grad_output, result, 0)
        return gradient.mul_(ctx.scale), None, None


class StackedLayerNorm(nn.Module):
    """``a (x - mean) / (s + 1e-6) + b`` over a document's values, with the unbiased deviation s.

    It is computed as PyTorch's layer norm with the biased variance and 1e-12; unless the values are
    nearly equal, the two agree in float32.

    Args:
        models: M.
        width: number of values of a document.
    """

    EPSILON = 1e-12

    def __init__(self, models: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(models, 1, width))
        self.bias = nn.Parameter(torch.zeros(models, 1, width))
        self.unbiased = ((width - 1) / width) ** 0.5

    def forward(self, x: Tensor) -> Tensor:
        """``[M, N, width]`` to the same shape."""
        shape, weight = x.shape[-1:], self.weight * self.unbiased
        if len(weight) == 1:
            return functional.layer_norm(
                x, shape, weight.view(-1), self.bias.view(-1), self.EPSILON
            )
        return torch.addcmul(self.bias, functional.layer_norm(x, shape, eps=self.EPSILON), weight)


class SelfAttention(nn.Module):
    """Multi-head scaled dot-product attention among the documents of a list.

    Args:
        generators: one random stream per model, for the initial weights.
        width: number of values of a document.
        heads: number of heads; it divides the width.
    """

    def __init__(self, generators: Sequence[torch.Generator], width: int, heads: int) -> None:
        super().__init__()
        # Xavier-uniform for each of the three matrices, which are stored side by side.
        matrices = [glorot_uniform(generators, width, width) for _ in range(3)]
        self.project = StackedLinear(torch.cat(matrices, 2))
        self.output = StackedLinear(glorot_uniform(generators, width, width))
        self.heads = heads

    def forward(self, x: Tensor, lists: AnyLists, dropout: Dropout | None) -> Tensor:
        """``[M, N, width]`` to the same shape; documents that are in no list get zeros.

        Args:
            x: the documents.
            lists: the positions of their lists.
            dropout: dropout of the weights; None for no dropout.
        """
        call = 0 if dropout is None else dropout.counters.next()
        groups: Sequence[Group | GroupOnDevice] = lists.groups
        attended = [
            self._attend(group, padded, dropout, call)
            for group, padded in zip(groups, lists.pad(self.project(x)), strict=True)
        ]
        return self.output(lists.pack(attended))

    def _attend(
        self, group: Group | GroupOnDevice, projected: Tensor, dropout: Dropout | None, call: int
    ) -> Tensor:
        """Attention within the padded lists of a group, ``[lists, longest, width]``.

        ``call`` is the number of the draw of dropout.
        """
        count, longest = projected.shape[:2]
        # lists × (query, key, value) × heads × documents × width of a head
        parts = projected.view(count, longest, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        known = None if group.mask is None else group.mask[:, None, None, :]
        if dropout is None:
            result = functional.scaled_dot_product_attention(query, key, value, attn_mask=known)
        else:
            # PyTorch's own attention would draw its own numbers for dropout.
            logits = torch.matmul(query * query.shape[-1] ** -0.5, key.transpose(2, 3))
            if known is not None:
                logits = logits.masked_fill(~known, float("-inf"))
            weights = torch.softmax(logits, 3)
            factors = dropout.of_pairs(weights, group.numbers, call)
            result = torch.matmul(_DroppedReLU.apply(weights, factors, dropout.scale), value)
        return result.transpose(1, 2).flatten(2)


class Block(nn.Module):
    """One encoder block: ``x + Drop(Attention(LN(x)))``, then ``x + Drop(FF(LN(x)))``.

    ``FF = Linear(width, inner), ReLU, Drop, Linear(inner, width)``.

    Args:
        generators: one random stream per model, for the initial weights.
        width: number of values of a document.
        heads: heads of the attention.
        inner: width of the feed-forward part's hidden layer.
    """

    def __init__(
        self, generators: Sequence[torch.Generator], width: int, heads: int, inner: int
    ) -> None:
        super().__init__()
        self.attention_norm = StackedLayerNorm(len(generators), width)
        self.attention = SelfAttention(generators, width, heads)
        self.norm = StackedLayerNorm(len(generators), width)
        self.widen = StackedLinear(glorot_uniform(generators, width, inner))
        self.narrow = StackedLinear(glorot_uniform(generators, inner, width))

    def forward(self, x: Tensor, lists: AnyLists, dropout: Dropout | None) -> Tensor:
        """``[M, N, width]`` to the same shape."""
        attended = self.attention(self.attention_norm(x), lists, dropout)
        x = _added(x, attended, dropout)
        hidden = self.widen(self.norm(x))
        if dropout is None:
            return x + self.narrow(hidden.relu_())
        hidden = _DroppedReLU.apply(hidden, dropout.of_rows(hidden), dropout.scale)
        return _added(x, self.narrow(hidden), dropout)


def _added(x: Tensor, y: Tensor, dropout: Dropout | None) -> Tensor:
    """``x + Drop(y)``."""
    return x + y if dropout is None else torch.addcmul(x, y, dropout.of_rows(y))
