"""Layers of the context-aware ranker: dropout with a stream per model, layer norm, and attention.

All layers contain M models, as in :mod:`directrank.models.stacked`, and work on packed documents
``[M, N, width]``. Lists are padded only inside attention, in groups of similar length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from directrank.lists.buckets import buckets
from directrank.lists.devices import on_device
from directrank.lists.flat import DeviceFlat
from directrank.lists.gradient import once_differentiable
from directrank.models.stacked import StackedLinear, glorot_uniform

CPU = torch.device("cpu")

#: A group of lists with this many padded pairs takes less time than another group, on a CPU and on
#: a GPU.
SMALL_GROUP, SMALL_GROUP_ON_GPU = 1 << 15, 1 << 21


@dataclass(frozen=True)
class Group:
    """Lists of similar length that are padded together, of all models of a stack.

    Attributes:
        lengths: int64 numpy ``[lists]``.
        pairs: where each list's pairs of documents begin among those of all lists, int64 numpy
            ``[lists]``.
        mask: bool ``[lists, longest]``, True at documents; None if there is no padding.
        source: int64 ``[lists × longest]``, the document in each place; padded places have the last
            of the list.
        places: int64, the places that contain documents; None if all do.
        rows: int64, the documents in these places.
    """

    lengths: np.ndarray
    pairs: np.ndarray
    mask: Tensor | None
    source: Tensor
    places: Tensor | None
    rows: Tensor
    _of_pairs: dict[int, Tensor] = field(default_factory=dict, init=False)

    def of_pairs(self, heads: int) -> Tensor:
        """Where the value of each pair lies among those of all lists, int64.

        ``[lists, heads, longest, longest]``; values are stored list by list, head by head, document
        by document. Those of padded places have no meaning. All blocks share them.
        """
        if heads not in self._of_pairs:
            self._of_pairs[heads] = self._index_of_pairs(heads)
        return self._of_pairs[heads]

    def _index_of_pairs(self, heads: int) -> Tensor:
        device = self.source.device
        n, first = on_device(np.stack([self.lengths, heads * self.pairs]), device)[
            :, :, None, None, None
        ]
        place = torch.arange(len(self.source) // len(self.lengths), device=device)
        head = torch.arange(heads, device=device)[:, None, None]
        column = torch.minimum(place, n - 1)
        return first + head * n * n + column.mT * n + column


class Lists:
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
        #: Documents of each model.
        self.totals: list[int] = own.sum(1).tolist()
        #: Pairs of documents of one list, of each model.
        self.pairs: list[int] = (own**2).sum(1).tolist()
        self.shape = (models, rows)
        every = own.ravel()
        pairs = (every**2).cumsum() - every**2
        known = np.flatnonzero(every)
        small = SMALL_GROUP if device.type == "cpu" else SMALL_GROUP_ON_GPU
        groups = buckets(every[known], small=small) if len(known) else []
        self.groups = [
            _group(every[known[group]], starts[known[group]], pairs[known[group]], device)
            for group in groups
        ]

    def pad(self, x: Tensor) -> tuple[Tensor, ...]:
        """Pad ``[M, N, width]`` to the lists of each group, ``[lists, longest, width]``."""
        padded = _Padded.apply(x.flatten(0, 1), self.groups)
        return tuple(
            each.view(len(group.lengths), -1, x.shape[2])
            for each, group in zip(padded, self.groups, strict=True)
        )

    def pack(self, padded: Sequence[Tensor]) -> Tensor:
        """The inverse of :meth:`pad`; documents that are in no list get zeros."""
        flat = [each.flatten(0, 1) for each in padded]
        return _Packed.apply(self.shape[0] * self.shape[1], self.groups, *flat).view(
            *self.shape, -1
        )


class ListsOnDevice:
    """As :class:`Lists`, of lists whose lengths only the device knows: one group, padded to L.

    Args:
        flat: the lists of all models.
        models: M.
        rows: documents per model, N.
    """

    totals = None

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
        """See :meth:`Lists.pad`."""
        source, mask, places, within = self._maps
        padded = _Moved.apply(x.flatten(0, 1), source, mask, places, within)
        return (padded.view(len(self.groups[0].mask), -1, x.shape[2]),)

    def pack(self, padded: Sequence[Tensor]) -> Tensor:
        """See :meth:`Lists.pack`."""
        source, mask, places, within = self._maps
        flat = padded[0].flatten(0, 1)
        return _Moved.apply(flat, places, within, source, mask).view(*self.shape, -1)


@dataclass(frozen=True)
class GroupOnDevice:
    """As :class:`Group`, for what attention needs to know: ``mask`` ``[lists, longest]``."""

    mask: Tensor


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
    lengths: np.ndarray, starts: np.ndarray, pairs: np.ndarray, device: torch.device
) -> Group:
    place = np.arange(lengths.max())
    source = (starts[:, None] + np.minimum(place, lengths[:, None] - 1)).ravel()
    real = place < lengths[:, None]
    everywhere = on_device(source, device)
    if real.all():
        return Group(lengths, pairs, None, everywhere, None, everywhere)
    places = np.flatnonzero(real)
    return Group(
        lengths,
        pairs,
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


class Dropout:
    """Inverted dropout, each model from a random stream of its own.

    Args:
        probability: the probability of dropping a value. It is rounded to a multiple of 2⁻¹⁶, so
            that one draw of 64 bits serves four values, because draws dominate the cost of dropout
            on a CPU.
        generators: one random stream per model, on the CPU.
        device: the device of the values; other than on a CPU, each draw is seeded from the stream,
            so that the streams are the whole state of dropout.
    """

    def __init__(
        self,
        probability: float,
        generators: Sequence[torch.Generator],
        device: torch.device = CPU,
    ) -> None:
        dropped = round(probability * 2**16)
        self.generators = generators
        self.device = device
        self.threshold = dropped - 2**15
        self.scale = 2**16 / (2**16 - dropped)

    def drawn(self, model: int, count: int) -> Tensor:
        """Uniform int16 ``[count]`` from the stream of ``model``."""
        generator = self.generators[model]
        if self.device.type != "cpu":
            seed = int(torch.randint(2**62, (), generator=generator))
            generator = torch.Generator(self.device).manual_seed(seed)
        bits = torch.empty(-(-count // 4), dtype=torch.int64, device=self.device)
        return bits.random_(-(2**63), None, generator=generator).view(torch.int16)[:count]

    def draw(self, model: int, into: Tensor) -> None:
        """What :meth:`drawn` returns, on the CPU, ``into`` an int16 tensor of :meth:`room`."""
        into.view(torch.int64).random_(-(2**63), None, generator=self.generators[model])

    @staticmethod
    def room(counts: np.ndarray) -> np.ndarray:
        """The room for so many drawn numbers, in whole draws."""
        return counts + -counts % 4

    def factors(self, drawn: Tensor) -> Tensor:
        """The factors of values, float32: 0 or, for those kept, 1 / their share."""
        return drawn.float().ge_(self.threshold).mul_(self.scale)

    def of_rows(self, totals: Any, rows: int, width: int) -> Tensor:
        """:meth:`factors` of all models, ``[M, rows, width]``; 0 beyond each one's ``totals``."""
        if len(totals) == 1 and totals[0] == rows:
            return self.factors(self.drawn(0, rows * width)).view(1, rows, width)
        every = torch.full(
            (len(totals), rows * width), -(2**15), dtype=torch.int16, device=self.device
        )
        for model, total in enumerate(totals):
            every[model, : total * width] = self.drawn(model, total * width)
        return self.factors(every).view(-1, rows, width)

    def of_pairs(self, lists: Any, heads: int) -> list[Tensor]:
        """:meth:`factors` of the pairs of documents of the lists of each group.

        ``[lists, heads, longest, longest]``. The factors of a list depend on its model's stream and
        the lists before it, not on the grouping of lists.
        """
        drawn = [self.drawn(model, heads * pairs) for model, pairs in enumerate(lists.pairs)]
        every = torch.cat(drawn)
        results = []
        for group in lists.groups:
            index = group.of_pairs(heads)
            own = every.index_select(0, index.flatten())
            results.append(self.factors(own).view(index.shape))
        return results


class CountedDropout:
    """Dropout in a captured step, by counters; otherwise as :class:`Dropout`.

    Args:
        probability: the probability of dropping a value.
        lists: those of the step, with its counters.
    """

    def __init__(self, probability: float, lists: DeviceFlat) -> None:
        assert lists.counters is not None
        self.kept = 1 - probability
        self.scale = 1 / self.kept
        self.flat = lists
        self.counters = lists.counters

    def of_rows(self, totals: Any, rows: int, width: int) -> Tensor:
        """The factors of all models' documents, ``[M, rows, width]``; at padding they are any."""
        from directrank.kernels.gpu import draws  # only with Triton

        return draws.factors_of_rows(self.counters, self.flat, rows, width, self.kept)

    def of_pairs(self, lists: Any, heads: int) -> list[Tensor]:
        """The factors of pairs of documents, ``[lists, heads, longest, longest]``, in a list."""
        from directrank.kernels.gpu import draws  # only with Triton

        count, L = self.flat.count, self.flat.longest
        return [draws.factors_of_pairs(self.counters, count, heads, L, self.kept)]


AnyLists: TypeAlias = Lists | ListsOnDevice
AnyDropout: TypeAlias = Dropout | CountedDropout


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

    def forward(self, x: Tensor, lists: AnyLists, dropout: AnyDropout | None) -> Tensor:
        """``[M, N, width]`` to the same shape; documents that are in no list get zeros.

        Args:
            x: the documents.
            lists: the positions of their lists.
            dropout: dropout of the weights; None for no dropout.
        """
        factors = (
            [None] * len(lists.groups) if dropout is None else dropout.of_pairs(lists, self.heads)
        )
        scale = 1.0 if dropout is None else dropout.scale
        groups: Sequence[Group | GroupOnDevice] = lists.groups
        attended = [
            self._attend(group, padded, own, scale)
            for group, padded, own in zip(groups, lists.pad(self.project(x)), factors, strict=True)
        ]
        return self.output(lists.pack(attended))

    def _attend(
        self, group: Group | GroupOnDevice, projected: Tensor, factors: Tensor | None, scale: float
    ) -> Tensor:
        """Attention within the padded lists of a group, ``[lists, longest, width]``.

        ``factors`` are those of dropout, which multiplies the values that it keeps by ``scale``.
        """
        count, longest = projected.shape[:2]
        # lists × (query, key, value) × heads × documents × width of a head
        parts = projected.view(count, longest, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        known = None if group.mask is None else group.mask[:, None, None, :]
        if factors is None:
            result = functional.scaled_dot_product_attention(query, key, value, attn_mask=known)
        else:
            # PyTorch's own attention does not accept a random stream for dropout.
            logits = torch.matmul(query * query.shape[-1] ** -0.5, key.transpose(2, 3))
            if known is not None:
                logits = logits.masked_fill(~known, float("-inf"))
            weights = torch.softmax(logits, 3)
            result = torch.matmul(_DroppedReLU.apply(weights, factors, scale), value)
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

    def forward(self, x: Tensor, lists: AnyLists, dropout: AnyDropout | None) -> Tensor:
        """``[M, N, width]`` to the same shape."""
        attended = self.attention(self.attention_norm(x), lists, dropout)
        x = _added(x, attended, lists, dropout)
        hidden = self.widen(self.norm(x))
        if dropout is None:
            return x + self.narrow(hidden.relu_())
        factors = dropout.of_rows(lists.totals, *hidden.shape[1:])
        hidden = _DroppedReLU.apply(hidden, factors, dropout.scale)
        return _added(x, self.narrow(hidden), lists, dropout)


def _added(x: Tensor, y: Tensor, lists: AnyLists, dropout: AnyDropout | None) -> Tensor:
    """``x + Drop(y)``."""
    if dropout is None:
        return x + y
    return torch.addcmul(x, y, dropout.of_rows(lists.totals, *y.shape[1:]))
