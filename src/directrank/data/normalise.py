"""Scaling of features, as in each paper.

Per-query normalisations need no statistics. Global ones take theirs from the training split only,
with one documented exception (:func:`log_standardise`). Everything is computed in float64 by blocks
of whole queries and stored as float32. Runs read stored copies of the results
(:mod:`directrank.data.normalised`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from directrank.data.filters import Selection
from directrank.lists.packed import RankedLists
from directrank.system.errors import ConfigError
from directrank.system.schema import refuse_unknown, suggest

#: Rows that are scaled together; a block contains whole queries, at least one.
ROWS = 1 << 14

Splits = Mapping[str, Selection]
Transform = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Maps float64 features ``[n, F]`` and the starts of their queries to scaled features."""

# Pobrotyn2021 on Web30K (allRank's normalize_features.py): 0-based columns.
#: Columns of MSLR that are negative and are negated first: BM25-like and language models.
MSLR_NEGATED = (*range(110, 121), 123, 124)
#: Columns of MSLR that are left unchanged.
MSLR_WITHOUT_LOG = (
    *(5, 6, 7, 8, 9, 15, 19, 57, 58, 62, 75, 79, 85),
    *range(95, 105),
    *(121, 122, 127, 129, 130),
)


def fit(settings: Mapping[str, Any], splits: Splits) -> Transform | None:
    """The transform that scales the features of the splits; None if they are left unchanged.

    Args:
        settings: ``name``, a key of :data:`NORMALISATIONS`, and that function's settings.
        splits: ``train`` and any others; none is needed if :func:`is_local`.

    Raises:
        ConfigError: see :func:`check`.
    """
    check(settings)
    options = dict(settings)
    return NORMALISATIONS[options.pop("name")](splits, **options)


def scaled(selection: Selection, transform: Transform | None) -> Iterator[RankedLists]:
    """The queries with scaled features, float32, block by block."""
    for block in selection.blocks(ROWS):
        if transform is None:
            yield block
            continue
        features = transform(block.features.astype(np.float64), block.offsets[:-1])
        yield replace(block, features=features.astype(np.float32))


def apply(settings: Mapping[str, Any], splits: Mapping[str, RankedLists]) -> dict[str, RankedLists]:
    """Scale the features of lists in memory.

    >>> features, labels = np.array([[2], [4], [10]], np.float32), np.array([0, 1, 0], np.float32)
    >>> lists = RankedLists(features, labels, np.array([0, 3]), np.array([7]))
    >>> apply({"name": "query_minmax"}, {"train": lists})["train"].features.ravel().tolist()
    [0.0, 0.25, 1.0]

    Args:
        settings: see :func:`fit`.
        splits: ``train`` and any others; the originals are not changed.

    Returns:
        The splits by the same names; those of ``none`` are the originals.

    Raises:
        ConfigError: see :func:`check`.
    """
    selections = {name: Selection.of_all(lists) for name, lists in splits.items()}
    transform = fit(settings, selections)
    if transform is None:
        return dict(splits)
    result = {}
    for name, lists in splits.items():
        features, row = np.empty(lists.features.shape, np.float32), 0
        for block in scaled(selections[name], transform):
            features[row : row + block.n_documents] = block.features
            row += block.n_documents
        result[name] = replace(lists, features=features)
    return result


def check(settings: Mapping[str, Any]) -> None:
    """Raise a :class:`ConfigError` if ``settings`` names no normalisation or an unknown setting."""
    name = settings.get("name")
    if name not in NORMALISATIONS:
        raise ConfigError(f"unknown normalisation '{name}'", suggest(str(name), NORMALISATIONS))
    known = list(inspect.signature(NORMALISATIONS[name]).parameters)[1:]
    refuse_unknown(settings, ["name", *known], f"normalisation '{name}'")


def is_local(settings: Mapping[str, Any]) -> bool:
    """Whether a query's scaled features depend only on that query, not on a split or fold."""
    return settings["name"] in _LOCAL


def none(splits: Splits, clip: float | None = None) -> Transform | None:
    """Unscaled features, limited to ``[-clip, clip]`` if ``clip`` is given."""
    if clip is None:
        return None
    return lambda block, starts: np.clip(block, -clip, clip)


def query_zscore(splits: Splits, clip: float | None = None) -> Transform:
    """(x - mean) / standard deviation within each query (Yu2020).

    The standard deviation is the population's; a feature that is constant in a query becomes 0.
    """

    def transform(block: np.ndarray, starts: np.ndarray) -> np.ndarray:
        block = _clipped(block, clip)
        lengths = np.diff(np.append(starts, len(block)))
        low = np.minimum.reduceat(block, starts)
        constant = low == np.maximum.reduceat(block, starts)
        mean = np.where(constant, low, np.add.reduceat(block, starts) / lengths[:, None])
        centred = block - np.repeat(mean, lengths, axis=0)
        variance = np.add.reduceat(centred**2, starts) / lengths[:, None]
        return centred / np.repeat(_scale(np.sqrt(variance)), lengths, axis=0)

    return transform


def query_minmax(splits: Splits, clip: float | None = None) -> Transform:
    """(x - min) / (max - min) within each query, LETOR's QueryLevelNorm; 0 if constant."""

    def transform(block: np.ndarray, starts: np.ndarray) -> np.ndarray:
        block = _clipped(block, clip)
        lengths = np.diff(np.append(starts, len(block)))
        low = np.minimum.reduceat(block, starts)
        spread = _scale(np.maximum.reduceat(block, starts) - low)
        return (block - np.repeat(low, lengths, axis=0)) / np.repeat(spread, lengths, axis=0)

    return transform


def standardise(splits: Splits, epsilon: float = 1e-6, clip: float | None = None) -> Transform:
    """(x - mean) / (standard deviation + epsilon), both of the training split."""
    return _standardised(splits, lambda block: _clipped(block, clip), epsilon)


def log_standardise(
    splits: Splits,
    negate: Sequence[int] = MSLR_NEGATED,
    without_log: Sequence[int] = MSLR_WITHOUT_LOG,
    offset: float = 0.01,
    epsilon: float = 1e-6,
    clip: float | None = None,
) -> Transform:
    """Pobrotyn2021 on Web30K: log of most columns, then :func:`standardise`.

    The columns ``negate`` change their sign. Then x becomes ln(x + offset) in every column that is
    not in ``without_log`` and not negative in any given split. The paper's code does the same and
    uses validation and test for this decision only. Columns are counted from 0.

    Raises:
        ConfigError: the data lack a column.
    """
    n_features = splits["train"].n_features
    for column in (*negate, *without_log):
        if not 0 <= column < n_features:
            raise ConfigError(
                f"normalisation 'log_standardise': there is no column {column} of {n_features}",
                "the default columns are those of MSLR; set 'negate' and 'without_log'",
            )
    sign = np.ones(n_features)
    sign[list(negate)] = -1.0
    logged = np.ones(n_features, bool)
    logged[list(without_log)] = False
    for selection in splits.values():
        for block in _features(selection):
            logged &= (_clipped(block, clip) * sign >= 0).all(axis=0)

    def prepare(block: np.ndarray) -> np.ndarray:
        block = _clipped(block, clip) * sign
        block[:, logged] = np.log(block[:, logged] + offset)
        return block

    return _standardised(splits, prepare, epsilon)


def signed_log_standardise(
    splits: Splits,
    skewness: float = 2.0,
    epsilon: float = 1e-6,
    clip: float | None = 1e6,
) -> Transform:
    """For Istella, without a list in Pobrotyn2021: sign(x) ln(1 + |x|), then standardise.

    The logarithm is taken of the columns whose skewness in the training split exceeds ``skewness``.
    """

    def clipped(block: np.ndarray) -> np.ndarray:
        return _clipped(block, clip)

    mean, deviation = _moments(splits["train"], clipped)
    third = np.zeros(splits["train"].n_features)
    for block in _features(splits["train"]):
        third += (((clipped(block) - mean) / _scale(deviation)) ** 3).sum(axis=0)
    logged = third / splits["train"].n_documents > skewness

    def prepare(block: np.ndarray) -> np.ndarray:
        block = clipped(block)
        chosen = block[:, logged]
        block[:, logged] = np.sign(chosen) * np.log1p(np.abs(chosen))
        return block

    return _standardised(splits, prepare, epsilon)


#: Normalisations by their names in a run's specification.
NORMALISATIONS: dict[str, Callable[..., Transform | None]] = {
    function.__name__: function
    for function in (
        none,
        query_zscore,
        query_minmax,
        standardise,
        log_standardise,
        signed_log_standardise,
    )
}
_LOCAL = {"none", "query_zscore", "query_minmax"}


def _standardised(
    splits: Splits, prepare: Callable[[np.ndarray], np.ndarray], epsilon: float
) -> Transform:
    mean, deviation = _moments(splits["train"], prepare)
    scale = _scale(deviation + epsilon)
    return lambda block, starts: (prepare(block) - mean) / scale


def _moments(
    selection: Selection, prepare: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and population standard deviation ``[F]`` of the prepared features, in two passes."""
    total = np.zeros(selection.n_features)
    low, high = np.full((2, selection.n_features), [[np.inf], [-np.inf]])
    for block in _features(selection):
        block = prepare(block)
        total += block.sum(axis=0)
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
    # A constant column must equal its mean exactly; a rounded mean would leave noise that is scaled
    # up.
    mean = np.where(low == high, low, total / selection.n_documents)
    squares = np.zeros(selection.n_features)
    for block in _features(selection):
        squares += ((prepare(block) - mean) ** 2).sum(axis=0)
    return mean, np.sqrt(squares / selection.n_documents)


def _features(selection: Selection) -> Iterator[np.ndarray]:
    """Float64 copies of the features, block by block."""
    for block in selection.blocks(ROWS):
        yield block.features.astype(np.float64)


def _clipped(block: np.ndarray, clip: float | None) -> np.ndarray:
    return block if clip is None else np.clip(block, -clip, clip)


def _scale(spread: np.ndarray) -> np.ndarray:
    """``spread`` with 1 instead of 0, so that constant columns become 0."""
    return np.where(spread > 0, spread, 1.0)
