"""How far a value reproduced here lies from the printed one: the same columns in every table."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import scipy

from directrank.papers.shared.evidence import NOT_COMPARABLE

#: The status of a computed value that is the printed one to its digits.
MET = "met"

#: The status of one that is not.
NOT_MET = "not met"

#: The status of a value that did not survive in a paper's text.
LOST = "published: lost"

#: The status of a row about a data set that the edition does not prepare.
UNPREPARED = "not prepared here"

#: Ours minus the printed value; the joint standard error of the two; the one in units of the other.
COLUMNS = ("difference", "difference_se", "difference_in_se")


def standard_error(half_width: pd.Series, n: pd.Series | int) -> pd.Series:
    """The standard error behind the half width of a 95 % t interval over ``n`` values.

    NaN where there is a single value, whose spread is unknown.
    """
    freedom = pd.Series(n, index=half_width.index, dtype="Float64").astype(float) - 1
    quantile = scipy.stats.t.ppf(0.975, freedom.where(freedom > 0))
    return half_width / quantile


def rounding_error(tolerance: pd.Series) -> pd.Series:
    """The standard deviation of a value that is rounded to within ± ``tolerance``, uniformly."""
    return tolerance / math.sqrt(3)


def add_differences(
    data: pd.DataFrame,
    *,
    value: str = "mean",
    error: pd.Series | float = 0.0,
    published_error: pd.Series | float = 0.0,
) -> pd.DataFrame:
    """``data`` with :data:`COLUMNS`, which are empty where nothing is printed or nothing was run.

    Args:
        data: with the columns ``published`` and ``value``.
        value: the column of values measured here.
        error: their standard error; 0 where they are exact.
        published_error: of the printed values; 0 where it is not known.

    Returns:
        A copy. The last column is empty where the joint error is 0 or not known.
    """
    data = data.copy()
    data["difference"] = data[value].astype(float) - data["published"].astype(float)
    joint = np.hypot(
        pd.Series(error, index=data.index, dtype=float),
        pd.Series(published_error, index=data.index, dtype=float),
    )
    data["difference_se"] = joint.where(data["difference"].notna() & (joint > 0))
    data["difference_in_se"] = data["difference"] / data["difference_se"]
    return data


def of_other_data(data: pd.DataFrame) -> bool:
    """Whether some rows are of other data than the paper's, so that levels cannot be compared."""
    return bool(data["data"].isin(NOT_COMPARABLE).any())
