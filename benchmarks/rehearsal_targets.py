"""What the fits of a rehearsal should keep to, and which of them do not."""

from __future__ import annotations

import math

import pandas as pd

#: Measured times should be within this factor of the predicted ones, for this share of the fits.
FACTOR, SHARE = 1.5, 0.9

#: No fit should take less than this share of the memory that it requests, or more than all of it.
LEAST = 0.5


def within(ratio: pd.Series) -> pd.Series:
    """Whether each measured ÷ predicted time is within :data:`FACTOR` of 1."""
    return ratio.between(1 / FACTOR, FACTOR)


def above(fits: pd.DataFrame) -> pd.Series:
    """Whether each fit took more memory than it requests."""
    return fits["memory_share"] > 1


def below(fits: pd.DataFrame) -> pd.Series:
    """Whether each fit took less than :data:`LEAST` of the memory that it requests."""
    return fits["memory_share"] < LEAST


def faults(fit: pd.Series) -> dict[str, float]:
    """How often a fit exceeds each target, by a description of how it does; empty if it does not.

    The number is 1 for a fit that just meets the target.
    """
    ratio, share = fit["ratio"], fit["memory_share"]
    slower = ratio if ratio > 1 else 1 / ratio
    processor = fit["processor_s"] / fit["predicted_s"]
    aside = "" if math.isnan(processor) else f" ({processor:.2g} times in processor seconds)"
    told = {
        f"took {ratio:.2g} times the predicted {fit['predicted_s']:.3g} s{aside}": slower / FACTOR,
        f"took {share:.0%} of its {fit['mem_mb']} MB": max(share, LEAST / share),
    }
    return {words: times for words, times in told.items() if times > 1}


def offenders(fits: pd.DataFrame) -> list[tuple[str, str]]:
    """Name and faults of each fit that misses a target, that which misses one farthest first."""
    found = [(fit["run"], faults(fit)) for _, fit in fits.iterrows()]
    found = [(run, own) for run, own in found if own]
    found.sort(key=lambda item: -max(item[1].values()))
    return [(run, ", ".join(own)) for run, own in found]
