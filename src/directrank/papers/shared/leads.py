"""The sentence on top of a table: what is to be seen, computed from what the table shows."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from directrank.papers.shared.differences import MET, NOT_MET
from directrank.papers.shared.evidence import NOT_COMPARABLE
from directrank.papers.shared.format import DIGITS, listed, share

#: Standard errors within which a value is called near the printed one.
NEAR = 2


def extremes(means: Mapping[str, float], heading: str, digits: int = DIGITS) -> str:
    """Which methods have the highest and the lowest mean.

    Args:
        means: by method, at least one; NaN for one that was not run.
        heading: of what, e.g. ``NDCG@10``.
        digits: decimals.
    """
    run = {name: mean for name, mean in means.items() if mean == mean}
    high, low = max(run.values()), min(run.values())
    first = [name for name, mean in run.items() if mean == high]
    if high == low:
        which = "all methods have" if len(first) > 1 else f"{first[0]} has"
        return f"{which} {heading} {high:.{digits}f}"
    last = [name for name, mean in run.items() if mean == low]
    return (
        f"{listed(first)} {'has' if len(first) == 1 else 'have'} the highest {heading}, "
        f"{high:.{digits}f}, and {listed(last)} the lowest, {low:.{digits}f}"
    )


def near_print(data: pd.DataFrame) -> str:
    """How many values lie near the printed ones; empty where none can be compared.

    Args:
        data: with the columns ``data`` and ``difference_in_se``.
    """
    comparable = data[~data["data"].isin(NOT_COMPARABLE)]["difference_in_se"].dropna()
    if comparable.empty:
        return ""
    near = int((comparable.abs() <= NEAR).sum())
    return (
        f"{share(near, len(comparable))} values that can be compared lie within {NEAR} standard "
        "errors of the printed ones"
    )


def met(data: pd.DataFrame) -> str:
    """How many printed numbers have ours to their digits or tolerance; empty where none can.

    Args:
        data: with the column ``status``.
    """
    compared = data.loc[data["status"].isin([MET, NOT_MET]), "status"]
    if compared.empty:
        return ""
    return f"{share(int((compared == MET).sum()), len(compared))} printed numbers are met"


def lead(*parts: str) -> str:
    """Parts that say something, as sentences."""
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts if part)
