"""What is known of the differences of pairs of methods, after correction over a family of pairs.

Three questions are asked of a pair, and each family of tests is corrected by Holm's method: do the
two differ, do they differ by more than a margin, and by less than it? The margin is the smallest
difference of interest, the same for "more" as for "same".
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from directrank.stats.estimates import of_row
from directrank.stats.tests import holm

#: The significance level of corrected p values.
SIGNIFICANT = 0.05

BETTER, WORSE, EQUIVALENT, INCONCLUSIVE = "better", "worse", "equivalent", "inconclusive"

#: What is said of a pair.
WORDS = (BETTER, WORSE, EQUIVALENT, INCONCLUSIVE)

#: What is said of it when its methods change places.
TURNED = {BETTER: WORSE, WORSE: BETTER}

#: What is known of the size of a difference.
MORE_THAN, WITHIN, UNKNOWN = "more than the margin", "within the margin", ""


def decide(pairs: pd.DataFrame, margin: float, level: float = SIGNIFICANT) -> pd.DataFrame:
    """Decide each of a family of pairs.

    Args:
        pairs: ``difference``, ``error`` and ``freedom`` of each, such as the result of
            :meth:`directrank.stats.two_way.Crossed.differences`. A pair whose error is unknown
            (NaN) stays undecided.
        margin: the smallest difference of interest, above zero.
        level: that of the tests after correction.

    Returns:
        ``pairs`` with the corrected p values ``p_differs``, ``p_beyond`` (of a difference of at
        most the margin) and ``p_within`` (of one of at least the margin, by two one-sided tests);
        ``verdict``, one of :data:`WORDS` (a pair may differ by less than the margin: it is better
        or worse then); and ``size``, one of :data:`MORE_THAN`, :data:`WITHIN` and :data:`UNKNOWN`.

    Raises:
        ValueError: the margin is not above zero.

    >>> pairs = pd.DataFrame({"difference": [0.03, 0.005, 0.0], "error": 0.001, "freedom": 20.0})
    >>> decide(pairs, 0.01)[["verdict", "size"]].values.tolist()
    [['better', 'more than the margin'], ['better', 'within the margin'], \
['equivalent', 'within the margin']]
    """
    if not margin > 0:
        raise ValueError(f"the margin {margin} is not above zero")
    estimates = [of_row(row) for row in pairs[["difference", "error", "freedom"]].itertuples()]
    differs = _holm([one.p_differs() for one in estimates])
    within = _holm([one.p_within(-margin, margin) for one in estimates])
    beyond = _holm(
        [one.p_above(margin) if one.mean > 0 else one.p_below(-margin) for one in estimates]
    )
    ahead = np.where(pairs["difference"] > 0, BETTER, WORSE)
    small = np.where(within < level, EQUIVALENT, INCONCLUSIVE)
    size = np.where(beyond < level, MORE_THAN, np.where(within < level, WITHIN, UNKNOWN))
    return pairs.assign(
        p_differs=differs,
        p_beyond=beyond,
        p_within=within,
        verdict=np.where(differs < level, ahead, small),
        size=size,
    )


def in_words(verdict: str, size: str, margin: float) -> str:
    """A decision in print.

    >>> in_words("better", "within the margin", 0.01), in_words("equivalent", "", 0.01)
    ('better, within 0.01', 'equivalent within 0.01')
    """
    if verdict == EQUIVALENT:
        return f"{verdict} within {margin:g}"
    if verdict in TURNED and size == MORE_THAN:
        return f"{verdict} by more than {margin:g}"
    if verdict in TURNED and size == WITHIN:
        return f"{verdict}, within {margin:g}"
    return verdict


def between(pairs: pd.DataFrame, methods: int) -> np.ndarray:
    """What is said of each method beside each other one.

    Args:
        pairs: ``a``, ``b`` and ``verdict`` of some pairs.
        methods: their number.

    Returns:
        Words of :data:`WORDS`, ``[methods, methods]``; empty for a pair that is not among them.

    >>> between(pd.DataFrame({"a": [0], "b": [1], "verdict": ["better"]}), 2).tolist()
    [['', 'better'], ['worse', '']]
    """
    words = np.full((methods, methods), "", dtype=object)
    a, b, verdicts = (pairs[column].to_numpy() for column in ("a", "b", "verdict"))
    words[a, b] = verdicts
    words[b, a] = [TURNED.get(word, word) for word in verdicts]
    return words


def may_be_best(pairs: pd.DataFrame, methods: int, level: float = SIGNIFICANT) -> np.ndarray:
    """The methods that may be the best: the best is among them with probability ``1 - level``.

    A method is left out if another one is ahead of it by a one-sided test, corrected over the
    ``methods - 1`` others. Only the tests of the truly best method can err, so the number of
    methods need not be corrected for (Hsu, The Annals of Statistics 9, 1981, with Bonferroni's
    bound).

    Args:
        pairs: every pair of methods: ``a``, ``b``, ``difference``, ``error`` and ``freedom``.
        methods: their number.

    Returns:
        bool ``[methods]``.

    >>> pairs = pd.DataFrame({"a": [0, 0, 1], "b": [1, 2, 2], "difference": [0.0, 0.03, 0.03]})
    >>> may_be_best(pairs.assign(error=0.001, freedom=20.0), 3).tolist()
    [True, True, False]
    """
    best = np.ones(methods, bool)
    threshold = level / max(1, methods - 1)
    for row in pairs.itertuples():
        one = of_row(row)
        if one.p_above(0.0) < threshold:
            best[row.b] = False
        elif one.p_below(0.0) < threshold:
            best[row.a] = False
    return best


def places(verdicts: np.ndarray) -> np.ndarray:
    """The first and last place that each method may have, int ``[k, 2]``.

    With corrected tests of all pairs, all true places lie between these with the probability of the
    correction (Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 91, 2024).

    Args:
        verdicts: ``[k, k]``, 1 where the row's method is better than the column's, -1 where it is
            worse, 0 where the two are tied or that cannot be told.

    >>> places(np.array([[0, 0, 1], [0, 0, 0], [-1, 0, 0]])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    worse, better = (verdicts < 0).sum(axis=1), (verdicts > 0).sum(axis=1)
    return np.stack([1 + worse, len(verdicts) - better], axis=1)


def ranked_pairs(verdicts: np.ndarray) -> int:
    """How many pairs are not tied.

    Args:
        verdicts: as for :func:`places`.

    >>> ranked_pairs(np.array([[0, 0, 1], [0, 0, 0], [-1, 0, 0]]))
    1
    """
    return int((verdicts[np.triu_indices(len(verdicts), 1)] != 0).sum())


def _holm(p_values: list[float]) -> np.ndarray:
    """Holm's correction; a test that cannot be made counts as one with p = 1."""
    return holm(np.nan_to_num(np.array(p_values, float), nan=1.0))
