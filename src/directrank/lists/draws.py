"""Random numbers for the documents of lists.

Training draws numbers that are functions of what they are for, not of what was drawn before. They
come from Philox (Salmon et al., 2011), keyed by a model's seed and counted by the step, the draw
within the step, the list within the step, the document within its list, and a column. So neither
padding, nor other models of a stack, nor the device changes them, and no generator has to be kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from directrank.lists.flat import Flat, Lists

#: Philox's multipliers, and what is added to the two halves of its key in each of its rounds.
MULTIPLIERS, WEYL, ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10

#: Bits of the number of a list; the number of a draw within a step takes those above.
LIST_BITS = 20

#: Values whose factors of dropout one count gives, 16 bits each.
FACTORS = 8


@dataclass
class Counters:
    """Random numbers of a step, by what they are for.

    Attributes:
        seeds: int64 ``[B]``, for each list, of its model.
        numbers: int64 ``[B]``, which of its model's lists in this step each list is.
        step: int64 ``[1]``, the number of the step.
        draw: gives uniform numbers of so many draws, as :func:`uniform_by_document` does; None
            where only dropout draws.
        calls: draws in this step so far.
    """

    seeds: Tensor
    numbers: Tensor
    step: Tensor
    draw: Callable[[Tensor, Lists, Counters, int], Tensor] | None = None
    calls: int = 0

    @classmethod
    def of_models(
        cls,
        seeds: Tensor,
        step: Tensor,
        lists: int,
        draw: Callable[[Tensor, Lists, Counters, int], Tensor] | None = None,
    ) -> Counters:
        """Those of M models with so many lists each, model by model; seeds are int64 ``[M]``."""
        shape = len(seeds), lists
        numbers = torch.arange(lists, device=seeds.device).expand(shape)
        return cls(seeds[:, None].expand(shape).reshape(-1), numbers.reshape(-1), step, draw)

    def of(self, lists: Tensor) -> Counters:
        """Those of some lists, int64 positions, with as many draws so far."""
        return replace(self, seeds=self.seeds[lists], numbers=self.numbers[lists])

    def next(self, draws: int = 1) -> int:
        """The number of the next draw, the first of so many."""
        self.calls += draws
        return self.calls - draws + 1


#: A source of random numbers; None is PyTorch's own stream.
Source = torch.Generator | Counters | None


def uniform(values: Tensor, lists: Lists, source: Source, dtype: torch.dtype) -> Tensor:
    """Numbers from [0, 1) in the shape of ``values``; those at masked positions have no meaning."""
    return uniforms(values, lists, source, dtype, 1)[0]


def uniforms(
    values: Tensor, lists: Lists, source: Source, dtype: torch.dtype, draws: int
) -> Tensor:
    """The numbers of so many draws, one after the other, ``[draws, …]``."""
    if isinstance(source, Counters):
        assert source.draw is not None
        return source.draw(values, lists, source, draws).to(dtype)
    shape, device = values.shape, values.device
    drawn = [torch.rand(shape, generator=source, dtype=dtype, device=device) for _ in range(draws)]
    return torch.stack(drawn) if draws > 1 else drawn[0][None]


def normal(values: Tensor, lists: Lists, source: Source, dtype: torch.dtype) -> Tensor:
    """Standard normal numbers in the shape of ``values``; likewise."""
    if isinstance(source, Counters):
        radius, angle = uniforms(values, lists, source, torch.float32, 2)
        return (torch.sqrt(-2 * torch.log1p(-radius)) * torch.cos(2 * torch.pi * angle)).to(dtype)
    return torch.randn(values.shape, generator=source, dtype=dtype, device=values.device)


def philox(
    seeds: Tensor, first: Tensor, second: Tensor, third: Tensor, fourth: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Philox-4x32-10: four words of 32 random bits for each key and counter.

    Args:
        seeds: int64, the keys.
        first, second, third, fourth: int64, the words of the counters.

    Returns:
        Four times int64 in the common shape.

    >>> [hex(int(word)) for word in philox(*torch.zeros(5, 1, dtype=torch.int64))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    low = 0xFFFFFFFF
    a, b, c, d, keys = torch.broadcast_tensors(first, second, third, fourth, seeds)
    key, other = keys & low, keys >> 32 & low
    for _ in range(ROUNDS):
        # Products of 64 bits wrap around, and the shift's copies of the sign are cut off.
        p, q = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (q >> 32 & low) ^ b ^ key, q & low, (p >> 32 & low) ^ d ^ other, p & low
        key, other = key + WEYL[0] & low, other + WEYL[1] & low
    return a, b, c, d


def uniform_by_document(values: Tensor, lists: Lists, counters: Counters, draws: int) -> Tensor:
    """Numbers from [0, 1) for the documents of lists in so many draws, float32 ``[draws, …]``.

    A count gives four documents of a list their numbers, multiples of 2⁻²⁴.

    Args:
        values: ``[B, L]``, or flat ``[N]``; only their shape and device matter.
        lists: their mask, or their positions: the lists that have counters, or several copies of
            them, which get other numbers.
        counters: of the lists.
        draws: the number of draws.
    """
    known = len(counters.seeds)
    if isinstance(lists, Flat):
        owner = lists.owners
        place = torch.arange(len(owner), device=owner.device) - lists.spans[owner, 0]
        place = place.clamp_min(0)  # between lists
    else:
        rows, width = values.shape
        owner = torch.arange(rows, device=values.device)[:, None]
        place = torch.arange(width, device=values.device)
    place, owner = torch.broadcast_tensors(place, owner)
    own = owner % known if known else owner
    copy, results = owner // max(known, 1), []
    for _ in range(draws):
        second = counters.next() << LIST_BITS | counters.numbers[own]
        words = philox(counters.seeds[own], counters.step, second, place // 4, copy)
        word = torch.stack(words).gather(0, (place % 4)[None])[0]
        results.append((word >> 8).float() * 2.0**-24)
    return torch.stack(results)


def factors_of_rows(values: Tensor, lists: Flat, counters: Counters, dropped: int) -> Tensor:
    """The factors of dropout for values of documents: 0 or, for those kept, 1 / their share.

    Args:
        values: ``[M, N, W]``; only their shape, type and device matter.
        lists: the positions of the lists of all models in ``[M · N]``.
        counters: of these lists.
        dropped: the share of values that are dropped, times 2¹⁶.

    Returns:
        ``[M, N, W]`` in the type of the values, float32 if that has fewer bits; factors of
        documents that are in no list have no meaning.
    """
    models, rows, width = values.shape
    owner = lists.owners[:, None]
    place = torch.arange(models * rows, device=values.device)[:, None] - lists.spans[owner, 0]
    column = torch.arange(width, device=values.device)
    factors = _factors(values, counters, owner, place.clamp_min(0), column, 0, dropped)
    return factors.view(values.shape)


def factors_of_pairs(values: Tensor, counters: Counters, dropped: int) -> Tensor:
    """The same for values of pairs of documents ``[B, heads, L, L]``, of B lists with counters."""
    B, heads, L, _ = values.shape
    shapes = ((B, 1, 1, 1), (heads, 1, 1), (L, 1), (L,))
    owner, head, row, column = (
        torch.arange(shape[0], device=values.device).view(shape) for shape in shapes
    )
    return _factors(values, counters, owner, row, column, (1 + head) << 16, dropped)


def factor_type(values: Tensor) -> torch.dtype:
    """The type of the factors of these values."""
    return torch.promote_types(values.dtype, torch.float32)


def _factors(
    values: Tensor,
    counters: Counters,
    owner: Tensor,
    row: Tensor,
    column: Tensor,
    head: Tensor | int,
    dropped: int,
) -> Tensor:
    """The factors of columns of rows of lists; ``head`` is 0 for documents."""
    second = counters.next() << LIST_BITS | counters.numbers[owner]
    fourth = column // FACTORS + head
    words = torch.stack(philox(counters.seeds[owner], counters.step, second, row, fourth))
    half = (column % FACTORS).expand(words.shape[1:])
    word = words.gather(0, (half // 2)[None])[0]
    kept = (word >> (16 * (half % 2)) & 0xFFFF) >= dropped
    return kept.to(factor_type(values)) * (2**16 / (2**16 - dropped))
