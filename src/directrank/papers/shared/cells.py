"""The cells of every table: a value measured here, a printed one beside it, their difference."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import scipy

from directrank.papers.shared.evidence import NOT_COMPARABLE
from directrank.papers.shared.format import DIGITS, interval, signed

#: Stands for a value of a method that was not run.
NOT_RUN = "not run"

#: Stands for a value that the paper does not print, or that did not survive in its text.
UNPRINTED = "–"

#: What a caption says of the brackets behind a printed value.
BRACKETS = (
    "In brackets: ours minus the printed value, in standard errors of ours (that of the printed "
    "value is not known)"
)

#: The same where the printed values have intervals of their own.
JOINT_BRACKETS = "In brackets: ours minus the printed value, in joint standard errors"


def measured(
    mean: float,
    half_width: float = math.nan,
    digits: int = DIGITS,
    *,
    best: bool = False,
    mark: str = "",
) -> str:
    """A mean with the half width of its interval, as in ``0.527 ± 0.089``.

    Args:
        mean: NaN where nothing was run.
        half_width: NaN where there is none.
        digits: decimals of both.
        best: whether the mean is bold.
        mark: follows the mean, such as an asterisk.
    """
    if math.isnan(mean):
        return NOT_RUN
    return interval(_with_marks(mean, digits, best, mark), half_width, digits)


def printed(
    value: float,
    digits: int,
    half_width: float = math.nan,
    *,
    best: bool = False,
    mark: str = "",
    in_errors: float = math.nan,
    kind: str = "",
) -> str:
    """A published value with the decimals that it has in print, so that a reader finds it there.

    Args:
        value: NaN where none is printed.
        digits: its decimals in print.
        half_width: the printed half width of its interval.
        best, mark: as for :func:`measured`.
        in_errors: ours minus the printed value in standard errors; see :data:`BRACKETS`.
        kind: the column ``data`` of ours. On other data than the paper's the distance means
            nothing and is left out.
    """
    if math.isnan(value):
        return UNPRINTED
    text = interval(_with_marks(value, digits, best, mark), half_width, digits)
    if kind in NOT_COMPARABLE or math.isnan(in_errors):
        return text
    return f"{text} ({signed(in_errors, 1)} SE)"


def difference(value: float, half_width: float = math.nan, digits: int = DIGITS) -> str:
    """A difference with its sign and the half width of its interval; empty for NaN."""
    return interval(signed(value, digits), half_width, digits)


def _with_marks(value: float, digits: int, best: bool, mark: str) -> str:
    text = f"{value:.{digits}f}"
    return (f"**{text}**" if best else text) + mark


#: The status of a computed value that is the printed one to its digits.
MET = "met"

#: The status of one that is not.
NOT_MET = "not met"

#: The status of a value that did not survive in a paper's text.
LOST = "published: lost"

#: The status of a row about a data set that the edition does not prepare.
UNPREPARED = "not prepared here"

#: Ours minus the printed value; the joint standard error of the two; the one in units of the other.
DIFFERENCES = ("difference", "difference_se", "difference_in_se")


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
    """``data`` with :data:`DIFFERENCES`, which are empty where nothing is printed or was run.

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
