"""The cells of every table: a value measured here, a printed one beside it, a difference."""

from __future__ import annotations

import math

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
    return interval(_marked(mean, digits, best, mark), half_width, digits)


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
    text = interval(_marked(value, digits, best, mark), half_width, digits)
    if kind in NOT_COMPARABLE or math.isnan(in_errors):
        return text
    return f"{text} ({signed(in_errors, 1)} SE)"


def difference(value: float, half_width: float = math.nan, digits: int = DIGITS) -> str:
    """A difference with its sign and the half width of its interval; empty for NaN."""
    return interval(signed(value, digits), half_width, digits)


def _marked(value: float, digits: int, best: bool, mark: str) -> str:
    text = f"{value:.{digits}f}"
    return (f"**{text}**" if best else text) + mark
