"""What the context-aware ranker is made of: dropout with a stream per model, layer norm, and
attention within lists.

All layers hold M models, as those of :mod:`directrank.models.stacked` do, and work on packed
documents ``[M, N, width]``; lists are padded inside attention only, in groups of similar length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from directrank.lists.buckets import buckets
from directrank.lists.packed import concatenated_ranges
from directrank.lists.padding import padded_positions
from directrank.models.stacked import StackedLinear, glorot_uniform

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Group:
    """Lists of similar length that lie one after the other.

    Attributes:
        rows: where their documents lie among those of a model.
        mask: bool ``[lists, longest]``, True where a document is; all True where none is padding.
        index: int64, where each document goes in the flattened padded lists; None where they are
            all of one length, so that padded and packed are the same.
    """

    rows: slice
    mask: Tensor
    index: Tensor | None

    def pad(self, x: Tensor) -> Tensor:
        """``[documents, width]`` as ``[lists, longest, width]``."""
        if self.index is not None:
            x = x.new_zeros(self.mask.numel(), x.shape[1]).index_copy(0, self.index, x)
        return x.view(*self.mask.shape, -1)

    def pack(self, x: Tensor) -> Tensor:
        """The reverse of :meth:`pad`."""
        x = x.reshape(self.mask.numel(), -1)
        return x if self.index is None else x.index_select(0, self.index)


class Lists:
    """One model's documents arranged so that lists of similar length lie together, long ones first.

    Args:
        lengths: int ``[B]``, documents per list as they were given.
        device: of the tensors.
    """

    def __init__(self, lengths: np.ndarray, device: torch.device) -> None:
        groups = buckets(lengths)
        lists = np.concatenate(groups)
        starts = np.cumsum(lengths) - lengths
        #: For each arranged document its place as given, int64 numpy ``[documents]``.
        self.order = concatenated_ranges(starts[lists], lengths[lists])
        self.groups: list[Group] = []
        begin = 0
        for group in groups:
            mask, index = padded_positions(torch.from_numpy(lengths[group]).to(device))
            rows = slice(begin, begin + len(index))
            even = len(index) == mask.numel()
            self.groups.append(Group(rows, mask, None if even else index))
            begin = rows.stop


class Dropout:
    """Inverted dropout, each model from a random stream of its own.

    Args:
        probability: of dropping a value; it is rounded to a multiple of 2⁻¹⁶, so that one draw of
            64 bits serves four values: drawing is what dropout costs on a CPU.
        generators: one random stream per model, on the CPU.
        device: where the values are; elsewhere than on the CPU each draw is seeded from the stream,
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

    def factors(self, model: int, *shape: int) -> Tensor:
        """What ``model`` multiplies values with, float32: 0, or for those kept 1 / their share."""
        generator = self.generators[model]
        if self.device.type != "cpu":
            seed = int(torch.randint(2**62, (), generator=generator))
            generator = torch.Generator(self.device).manual_seed(seed)
        count = math.prod(shape)
        bits = torch.empty(-(-count // 4), dtype=torch.int64, device=self.device)
        bits.random_(-(2**63), None, generator=generator)
        factors = bits.view(torch.int16)[:count].view(shape).float()
        return factors.ge_(self.threshold).mul_(self.scale)

    def of_rows(self, totals: Sequence[int], rows: int, width: int) -> Tensor:
        """:meth:`factors` of all models, ``[M, rows, width]``; 0 beyond each one's ``totals``."""
        drawn = [self.factors(model, total, width) for model, total in enumerate(totals)]
        if len(drawn) == 1 and totals[0] == rows:
            return drawn[0][None]
        return torch.stack([functional.pad(each, (0, 0, 0, rows - len(each))) for each in drawn])


class _DroppedReLU(torch.autograd.Function):
    """``max(x, 0)`` times the factors of dropout; backward needs the result alone.

    Where the result is positive the value was, and was kept; elsewhere there is no gradient.
    """

    @staticmethod
    def forward(ctx, x: Tensor, factors: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        result = (x * factors if x.dtype != factors.dtype else factors.mul_(x)).relu_().to(x.dtype)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (result,) = ctx.saved_tensors
        gradient = torch.ops.aten.threshold_backward(grad_output, result, 0)
        return gradient.mul_(ctx.scale), None, None


class StackedLayerNorm(nn.Module):
    """``a (x - mean) / (s + 1e-6) + b`` over a document's values, with the unbiased deviation s.

    Worked out as PyTorch's layer norm with the biased variance and 1e-12 beside it; unless the
    values are nearly equal, the two are the same in float32.

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
            return functional.layer_norm(x, shape, weight[0, 0], self.bias[0, 0], self.EPSILON)
        return torch.addcmul(self.bias, functional.layer_norm(x, shape, eps=self.EPSILON), weight)


class SelfAttention(nn.Module):
    """Multi-head scaled dot-product attention of a list's documents to each other.

    Args:
        generators: one random stream per model, for the initial weights.
        width: number of values of a document.
        heads: number of heads; it divides the width.
    """

    def __init__(self, generators: Sequence[torch.Generator], width: int, heads: int) -> None:
        super().__init__()
        # Xavier-uniform for each of the three matrices that are kept side by side.
        matrices = [glorot_uniform(generators, width, width) for _ in range(3)]
        self.project = StackedLinear(torch.cat(matrices, 2))
        self.output = StackedLinear(glorot_uniform(generators, width, width))
        self.heads = heads

    def forward(self, x: Tensor, lists: Sequence[Lists], dropout: Dropout | None) -> Tensor:
        """``[M, N, width]`` to the same shape; documents that are in no list get zeros.

        Args:
            x: the documents, arranged as ``lists`` says.
            lists: one per model, or one for all.
            dropout: dropout of the weights; None without.
        """
        projected = self.project(x)
        rows = x.shape[1]
        results = []
        for model, documents in enumerate(projected):
            arranged = lists[model if len(lists) > 1 else 0]
            parts = [
                group.pack(self._attend(group, documents[group.rows], dropout, model))
                for group in arranged.groups
            ]
            attended = parts[0] if len(parts) == 1 else torch.cat(parts)
            results.append(functional.pad(attended, (0, 0, 0, rows - len(attended))))
        return self.output(results[0][None] if len(results) == 1 else torch.stack(results))

    def _attend(
        self, group: Group, projected: Tensor, dropout: Dropout | None, model: int
    ) -> Tensor:
        """Attention within padded lists, ``[lists, longest, width]``."""
        count, longest = group.mask.shape
        # lists × (query, key, value) × heads × documents × width of a head
        parts = group.pad(projected).view(count, longest, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        known = None if group.index is None else group.mask[:, None, None, :]
        if dropout is None:
            result = functional.scaled_dot_product_attention(query, key, value, attn_mask=known)
        else:
            # PyTorch's own has no random stream of one's own for dropout.
            logits = torch.matmul(query * query.shape[-1] ** -0.5, key.transpose(2, 3))
            if known is not None:
                logits = logits.masked_fill(~known, float("-inf"))
            weights = torch.softmax(logits, 3)
            factors = dropout.factors(model, count, self.heads, longest, longest)
            result = torch.matmul(_DroppedReLU.apply(weights, factors, dropout.scale), value)
        return result.transpose(1, 2)


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

    def forward(
        self, x: Tensor, lists: Sequence[Lists], totals: Sequence[int], dropout: Dropout | None
    ) -> Tensor:
        """``[M, N, width]`` to the same shape; ``totals`` counts the real documents per model."""
        attended = self.attention(self.attention_norm(x), lists, dropout)
        x = _added(x, attended, totals, dropout)
        hidden = self.widen(self.norm(x))
        if dropout is None:
            return x + self.narrow(hidden.relu_())
        factors = dropout.of_rows(totals, *hidden.shape[1:])
        hidden = _DroppedReLU.apply(hidden, factors, dropout.scale)
        return _added(x, self.narrow(hidden), totals, dropout)


def _added(x: Tensor, y: Tensor, totals: Sequence[int], dropout: Dropout | None) -> Tensor:
    """``x + Drop(y)``."""
    if dropout is None:
        return x + y
    return torch.addcmul(x, y, dropout.of_rows(totals, *y.shape[1:]))
