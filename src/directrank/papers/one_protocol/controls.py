"""The controls of the comparison: methods that hardly differ, and methods that learn nothing.

The largest difference of two methods that hardly differ shows what is noise: queries, trainings and
the choice of a configuration together. Nothing nearer than that is ranked. What the best single
feature reaches shows how much of a metric is due to learning.
"""

from __future__ import annotations

import pandas as pd

#: The end of the name of a method that is trained a second time, with other seeds.
AGAIN = " again"

#: Losses that are nearly the same function (``docs/neural_ndcg_transpose.md``).
ALIKE = (("NeuralNDCG", "NeuralNDCGᵀ"),)


def is_again(method: str) -> bool:
    """Whether a method is another one that is trained a second time."""
    return method.endswith(AGAIN)


def with_article(method: str) -> str:
    """A method that learns nothing, in a sentence.

    >>> with_article("best single feature")
    'the best single feature'
    """
    return f"{'the' if method.startswith('best') else 'a'} {method}"


def control_pairs(names: pd.DataFrame) -> list[tuple[int, int]]:
    """The positions of both methods of every control, the smaller one first.

    Args:
        names: ``method`` and ``scorer`` of each method.
    """
    place = {
        key: number
        for number, key in enumerate(names[["method", "scorer"]].itertuples(False, None))
    }
    pairs = []
    for (method, scorer), number in place.items():
        others = [method + AGAIN, *(second for first, second in ALIKE if first == method)]
        pairs += [
            (min(number, place[other, scorer]), max(number, place[other, scorer]))
            for other in others
            if (other, scorer) in place
        ]
    return pairs
