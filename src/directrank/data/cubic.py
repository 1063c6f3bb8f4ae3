"""The artificial data of Burges et al. (2006), section 6.3: labels from a random cubic polynomial.

The paper points to the "prescription of RankNet" (Burges et al. 2005) and names 50 dimensions, 50
documents per query, 10K/5K/10K queries and five levels with "a label distribution corresponding to
real data sets". Everything else is our reading, and therefore a field of :class:`CubicSettings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from directrank.data.prepared import SPLITS
from directrank.lists.packed import RankedLists
from directrank.system.compiling import compiled
from directrank.system.errors import ConfigError
from directrank.system.schema import refuse_unknown
from directrank.system.seeds import numpy_stream

#: Documents that are evaluated together; values do not depend on it.
_BLOCK = 64


@dataclass(frozen=True)
class CubicSettings:
    """How the artificial data are drawn; the defaults are the study's reading of the paper.

    Attributes:
        queries: queries per split (paper: 10K/5K/10K).
        documents_per_query: documents of every query (paper: 50; 4 to 512 in its Figure 1, right).
        n_features: dimensions (paper: 50).
        feature_range: features are uniform on this interval.
        coefficient_range: coefficients are uniform on this interval.
        coefficients: ``monomial``: one coefficient for each distinct monomial; ``symmetric``: one
            for each distinct entry of symmetric tensors, so that ``x_i x_j x_k`` with three
            different indices counts six times, ``x_i^2 x_j`` three times and ``x_i^3`` once.
        label_shares: shares of the labels 0, 1, …, cut at quantiles of the polynomial. The default
            has the shape of Web30K, which stands for "real data sets".
        quantiles: ``all``: one set of cuts from all splits together; ``train``: from the training
            split. Cuts are never per query, so lists differ in their number of relevant documents.
        noise: standard deviation of Gaussian noise on the polynomial, in its own standard
            deviations (paper: none).
        seed: names the random streams.
    """

    queries: Mapping[str, int] = field(
        default_factory=lambda: {"train": 10_000, "vali": 5_000, "test": 10_000}
    )
    documents_per_query: int = 50
    n_features: int = 50
    feature_range: tuple[float, float] = (-1.0, 1.0)
    coefficient_range: tuple[float, float] = (-1.0, 1.0)
    coefficients: str = "monomial"
    label_shares: tuple[float, ...] = (0.52, 0.32, 0.13, 0.02, 0.01)
    quantiles: str = "all"
    noise: float = 0.0
    seed: int = 0

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> CubicSettings:
        """Settings from a configuration; raises :class:`ConfigError` if they are not valid."""
        refuse_unknown(settings, [entry.name for entry in fields(cls)], "cubic")
        values = dict(settings)
        for key in ("feature_range", "coefficient_range", "label_shares"):
            if key in values:
                values[key] = tuple(float(value) for value in values[key])
        result = cls(**values)
        result._check()
        return result

    def _check(self) -> None:
        for split, count in self.queries.items():
            if split not in SPLITS or count < 1:
                raise ConfigError(
                    f"cubic: queries: {split}: {count}",
                    f"use the splits {', '.join(SPLITS)}, each with 1 or more",
                )
        if self.documents_per_query < 1 or self.n_features < 1:
            raise ConfigError("cubic: documents_per_query and n_features must be at least 1")
        for name in ("feature_range", "coefficient_range"):
            bounds = getattr(self, name)
            if len(bounds) != 2 or not bounds[0] < bounds[1]:
                raise ConfigError(f"cubic: {name} must be two increasing numbers, not {bounds}")
        shares = np.asarray(self.label_shares)
        if len(shares) < 2 or (shares <= 0).any() or abs(shares.sum() - 1) > 1e-9:
            raise ConfigError(
                f"cubic: label_shares {self.label_shares} must be two or more positive shares of 1"
            )
        for name, allowed in (("coefficients", COEFFICIENTS), ("quantiles", QUANTILES)):
            if getattr(self, name) not in allowed:
                raise ConfigError(
                    f"cubic: {name} '{getattr(self, name)}'", f"choose one of: {', '.join(allowed)}"
                )
        if self.quantiles == "train" and "train" not in self.queries:
            raise ConfigError("cubic: quantiles from 'train' need a training split")
        if self.noise < 0:
            raise ConfigError(f"cubic: noise must not be negative, but is {self.noise}")


COEFFICIENTS = ("monomial", "symmetric")
QUANTILES = ("all", "train")


@dataclass(frozen=True)
class Cubic:
    """A polynomial of degree 3 in F variables, without its constant.

    Attributes:
        linear: float64 ``[F]``, the coefficients of ``x_i``.
        quadratic: float64 ``[F, F]``, those of ``x_i x_j``; entries with ``j < i`` are unused (0).
        cubic: float64 ``[F, F, F]``, those of ``x_i x_j x_k``; used where ``i <= j <= k``.
    """

    linear: np.ndarray
    quadratic: np.ndarray
    cubic: np.ndarray

    @classmethod
    def draw(
        cls,
        n_features: int,
        bounds: tuple[float, float],
        weighting: str,
        stream: np.random.Generator,
    ) -> Cubic:
        """All monomials of degree 1 to 3 with uniform coefficients (see :class:`CubicSettings`)."""
        F = n_features
        linear = stream.uniform(*bounds, size=F)
        i, j = np.triu_indices(F)
        quadratic = np.zeros((F, F))
        quadratic[i, j] = stream.uniform(*bounds, size=len(i))
        upper = np.arange(F)
        ordered = (upper[:, None, None] <= upper[:, None]) & (upper[:, None] <= upper)
        cubic = np.zeros((F, F, F))
        cubic[ordered] = stream.uniform(*bounds, size=int(ordered.sum()))
        if weighting == "symmetric":
            quadratic *= np.where(np.eye(F, dtype=bool), 1.0, 2.0)
            equal = (upper[:, None, None] == upper[:, None]).astype(int) + (upper[:, None] == upper)
            cubic *= np.array([6.0, 3.0, 1.0])[equal]
        return cls(linear, quadratic, cubic)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Values, float64 ``[N]``, at ``x`` ``[N, F]``.

        Each value is one sum in a fixed order in float64, so it depends only on its own row, not on
        other rows, the number of threads or the machine's vector width.
        """
        return _evaluate(np.ascontiguousarray(x), self.linear, self.quadratic, self.cubic)


@compiled
def _evaluate(x, linear, quadratic, cubic):
    N, F = x.shape
    out = np.empty(N)
    for block in range((N + _BLOCK - 1) // _BLOCK):
        first = block * _BLOCK
        count = min(_BLOCK, N - first)
        # Documents along the last axis: the inner loops are over documents and vectorise without
        # any reordering of a document's own sum. Horner in i, then j: F^3/6 multiply-adds.
        columns = np.zeros((F, _BLOCK))
        for n in range(count):
            for i in range(F):
                columns[i, n] = x[first + n, i]
        total = np.zeros(_BLOCK)
        outer = np.empty(_BLOCK)
        inner = np.empty(_BLOCK)
        for i in range(F):
            outer[:] = linear[i]
            for j in range(i, F):
                inner[:] = quadratic[i, j]
                for k in range(j, F):
                    weight = cubic[i, j, k]
                    column = columns[k]
                    for n in range(_BLOCK):
                        inner[n] += weight * column[n]
                column = columns[j]
                for n in range(_BLOCK):
                    outer[n] += inner[n] * column[n]
            column = columns[i]
            for n in range(_BLOCK):
                total[n] += outer[n] * column[n]
        for n in range(count):
            out[first + n] = total[n]
    return out


def polynomial(settings: CubicSettings) -> Cubic:
    """The polynomial behind the data of ``settings``."""
    return Cubic.draw(
        settings.n_features,
        settings.coefficient_range,
        settings.coefficients,
        numpy_stream("cubic", settings.seed, "coefficients"),
    )


def generate(settings: Mapping[str, Any] | CubicSettings | None = None) -> dict[str, RankedLists]:
    """The artificial data of Burges et al. (2006).

    Features are drawn and the polynomial is evaluated in float64; features are then stored as
    float32. A query's features depend on the seed, its split and its place in it only, not on how
    many queries there are. Memory beyond the result is one float64 per document.

    Args:
        settings: a mapping of the fields of :class:`CubicSettings`, or the settings themselves.

    Returns:
        One :class:`RankedLists` per split of ``settings.queries``; query ids count from 1 through
        train, vali and test.

    Raises:
        ConfigError: a setting is unknown or not valid.
    """
    if not isinstance(settings, CubicSettings):
        settings = CubicSettings.from_mapping(settings or {})
    target = polynomial(settings)
    splits = [split for split in SPLITS if split in settings.queries]
    features: dict[str, np.ndarray] = {}
    values: dict[str, np.ndarray] = {}
    for split in splits:
        features[split], values[split] = _draw_split(settings, split, target)
    if settings.noise:
        scale = settings.noise * np.std(np.concatenate([values[split] for split in splits]))
        for split in splits:
            stream = numpy_stream("cubic", settings.seed, split, "noise")
            values[split] += scale * stream.standard_normal(len(values[split]))
    source = splits if settings.quantiles == "all" else ["train"]
    cuts = np.quantile(
        np.concatenate([values[split] for split in source]), np.cumsum(settings.label_shares)[:-1]
    )
    result = {}
    first_id = 1
    for split in splits:
        count = settings.queries[split]
        result[split] = RankedLists(
            features=features[split],
            labels=np.searchsorted(cuts, values[split], side="right").astype(np.float32),
            offsets=np.arange(count + 1, dtype=np.int64) * settings.documents_per_query,
            query_ids=np.arange(first_id, first_id + count, dtype=np.int64),
        )
        first_id += count
    return result


def _draw_split(
    settings: CubicSettings, split: str, target: Cubic, chunk: int = 1 << 15
) -> tuple[np.ndarray, np.ndarray]:
    """Features (float32 ``[N, F]``) of a split and the polynomial's float64 values on them."""
    length = settings.documents_per_query
    low, high = settings.feature_range
    count = settings.queries[split]
    features = np.empty((count * length, settings.n_features), dtype=np.float32)
    values = np.empty(count * length)
    per_chunk = max(1, chunk // length)
    exact = np.empty((per_chunk * length, settings.n_features))
    for begin in range(0, count, per_chunk):
        end = min(begin + per_chunk, count)
        for query in range(begin, end):
            stream = numpy_stream("cubic", settings.seed, split, query)
            rows = exact[(query - begin) * length : (query - begin + 1) * length]
            stream.random(out=rows)
        used = exact[: (end - begin) * length]
        used *= high - low
        used += low
        features[begin * length : end * length] = used
        values[begin * length : end * length] = target(used)
    return features, values
