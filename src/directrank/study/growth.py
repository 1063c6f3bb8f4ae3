"""Grids of tuned settings that grow while their best value is at an end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from directrank.system.errors import ConfigError

#: The settings of a candidate by their dotted paths.
Settings = dict[str, Any]


def half_decade(number: int) -> float:
    """1 or 3 times a power of ten: the ``number``-th of them, 0 being 1.

    >>> [half_decade(number) for number in (-3, -2, -1, 0, 1)]
    [0.03, 0.1, 0.3, 1.0, 3.0]
    """
    return float(f"{3 if number % 2 else 1}e{number // 2}")


def number_of(value: float) -> int:
    """The inverse of :func:`half_decade`.

    Raises:
        ConfigError: the value is no half decade.
    """
    number = round(2 * math.log10(value)) if value > 0 else 0
    if not math.isclose(half_decade(number), value, rel_tol=1e-9):
        raise ConfigError(f"{value} is not 1 or 3 times a power of ten", "take 0.003, 0.01 or 0.03")
    return number


def check(spec: Mapping[str, Any], where: str) -> None:
    """Raise :class:`ConfigError` if the ``grow`` of a run does not go with its ``tune``."""
    for path, limits in spec.get("grow", {}).items():
        values = spec.get("tune", {}).get(path)
        if len(values or ()) < 2:
            raise ConfigError(f"{where}: grow names '{path}', of which tune has no two values")
        for value in (*values, limits["lowest"], limits["highest"]):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"{where}: '{path}' cannot grow: {value!r} is no number")
            number_of(value)
        if not limits["lowest"] <= min(values) <= max(values) <= limits["highest"]:
            raise ConfigError(f"{where}: the values of '{path}' are not within the limits of grow")


@dataclass
class Grid:
    """The candidates of a run, which become more while the best is at an end of a setting.

    The best is the candidate with the largest validation metric on average over trials; among
    equals the first.

    Attributes:
        limits: of each setting that grows, ``lowest`` and ``highest``.
        tried: the settings of all candidates, in the order in which they were trained.
        closed: ends at which nothing is added, as ``(path, value)``, with the reason.
    """

    limits: Mapping[str, Mapping[str, float]]
    tried: list[Settings]
    closed: dict[tuple[str, float], str] = field(default_factory=dict)

    def further(self, metrics: Sequence[float]) -> list[Settings]:
        """The candidates to try next, after all so far have these mean validation ``metrics``.

        They have the next half decade of one setting, and every combination of the others. There
        are none if the best lies inside of every setting that grows, or at its limit.
        """
        for path, limits in self.limits.items():
            end = self._end(path, metrics)
            if end is None or (path, self._best(metrics)[path]) in self.closed:
                continue
            value = half_decade(number_of(self._best(metrics)[path]) + end)
            if not limits["lowest"] <= value <= limits["highest"]:
                continue
            others = [{key: s[key] for key in s if key != path} for s in self.tried]
            unique = [other for place, other in enumerate(others) if other not in others[:place]]
            return [{key: ({**other, path: value})[key] for key in self.tried[0]}
                    for other in unique]  # fmt: skip
        return []

    def close(self, metrics: Sequence[float], further: Sequence[Settings], reason: str) -> None:
        """Add nothing more at the end at which the ``further`` candidates could not be trained."""
        best = self._best(metrics)
        for path in self.limits:
            if any(other[path] not in self.values(path) for other in further):
                self.closed[path, best[path]] = reason

    def values(self, path: str) -> list[Any]:
        """The values tried of a setting, in ascending order."""
        return sorted({settings[path] for settings in self.tried})

    def inside(self, settings: Settings) -> bool:
        """Whether a candidate is at no end of a setting that grows."""
        return all(
            self.values(path)[0] < settings[path] < self.values(path)[-1] for path in self.limits
        )

    def record(self, metrics: Sequence[float]) -> dict[str, Any]:
        """For a run's record: of each setting the values tried, the best, and where it lies."""
        best = self._best(metrics)
        return {
            path: {
                "values": self.values(path),
                "best": best[path],
                "inside": self._end(path, metrics) is None,
                "limits": dict(limits),
                "closed": [reason for (name, _), reason in self.closed.items() if name == path],
            }
            for path, limits in self.limits.items()
        }

    def _best(self, metrics: Sequence[float]) -> Settings:
        return self.tried[int(np.argmax(np.nan_to_num(metrics, nan=-np.inf)))]

    def _end(self, path: str, metrics: Sequence[float]) -> int | None:
        """-1 or 1 if the best is at the lower or the upper end of a setting; otherwise None."""
        value, values = self._best(metrics)[path], self.values(path)
        return -1 if value == values[0] else 1 if value == values[-1] else None
