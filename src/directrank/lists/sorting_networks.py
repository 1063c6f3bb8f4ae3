"""Sorting networks: which places are compared, layer by layer, whatever the values are."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

#: The networks, and the distribution functions of their soft comparisons.
NETWORKS, DISTRIBUTIONS = ("bitonic", "odd_even"), ("cauchy", "logistic")

#: The places that a layer compares, of which the larger value goes to the first.
Layer: TypeAlias = tuple[list[int], list[int]]


@lru_cache(maxsize=1024)
def sorting_network(kind: str, n: int) -> list[Layer]:
    """The layers of a network that sorts n values in falling order."""
    if kind == "odd_even":
        starts = [(n + layer) % 2 for layer in range(n)]
        return [_layer([(i, i + 1) for i in range(start, n - 1, 2)]) for start in starts if n > 1]
    width = 1 << max(n - 1, 0).bit_length()
    layers = []
    for block in range(width.bit_length() - 1):
        for step in (1 << power for power in range(block, -1, -1)):
            pairs = []
            for i in range(width):
                if i & step:
                    continue
                # Blocks are sorted in turn upwards and downwards, so that two of them are bitonic.
                up = i >> (block + 1) & 1
                pairs.append((i, i + step) if up else (i + step, i))
            # Counted from the end, the places beyond n hold values below all others, which a
            # comparison would leave where they are.
            places = [(width - 1 - a, width - 1 - b) for a, b in pairs]
            layers.append(_layer([pair for pair in places if max(pair) < n]))
    return layers


def _layer(pairs: list[tuple[int, int]]) -> Layer:
    return [first for first, _ in pairs], [second for _, second in pairs]
