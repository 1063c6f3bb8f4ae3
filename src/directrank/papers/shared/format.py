"""How numbers and names are set in print: signs, intervals, p values, counts, lists."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

#: Decimals of a metric, a difference or a half width that is not in per cent.
DIGITS = 3


def paper_name(package: str) -> str:
    """A paper's first author and year.

    >>> paper_name("qin2010")
    'Qin 2010'
    >>> paper_name("one_protocol")
    'One protocol'
    """
    return re.sub(r"(\d+)", r" \1", package).replace("_", " ").capitalize()


def minus(text: str) -> str:
    """``text`` with every hyphen replaced by the sign −."""
    return text.replace("-", "−")


def number(value: float, digits: int = DIGITS) -> str:
    """``value`` to ``digits`` decimals; empty for NaN."""
    return "" if math.isnan(value) else minus(f"{value:.{digits}f}")


def signed(value: float, digits: int = DIGITS) -> str:
    """``value`` with its sign, to ``digits`` decimals; empty for NaN.

    A value that rounds to zero has no sign: the digits that are shown do not say which.
    """
    if math.isnan(value):
        return ""
    rounded = round(value, digits)
    return minus(f"{rounded:+.{digits}f}") if rounded else f"{0:.{digits}f}"


def counted(count: int, what: str) -> str:
    """``count`` and a regular noun, as in ``1 curve`` and ``2 curves``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def interval(text: str, half_width: float, digits: int = DIGITS) -> str:
    """A mean that is already set, with the half width of its interval, as in ``0.527 ± 0.089``.

    Without a half width (NaN) the mean stands alone; an empty ``text`` stays empty.
    """
    return f"{text} ± {half_width:.{digits}f}" if text and not math.isnan(half_width) else text


def p_value(value: float, digits: int = 4) -> str:
    """A p value to ``digits`` decimals, or below which power of ten it is; empty for NaN."""
    least = 10.0**-digits
    return f"< {least:.{digits}f}" if value < least else number(value, digits)


def count(value: int) -> str:
    """A count with thousands separated by a no-break space, as in ``18 919``."""
    return f"{value:,}".replace(",", "\u00a0")


def spread(numbers: Sequence[int], what: str, several: str = "") -> str:
    """``5 trials``, or ``3 to 5 trials`` where they differ; ``a single trial`` for one.

    Args:
        numbers: at least one.
        what: the noun.
        several: its plural, where that is not made with an s.
    """
    low, high = min(numbers), max(numbers)
    several = several or f"{what}s"
    if high == 1:
        return f"a single {what}"
    return f"{low} {several}" if low == high else f"{low} to {high} {several}"


def count_range(numbers: Sequence[int]) -> str:
    """Equal counts, or the smallest and the largest, as in ``1 200`` and ``300 to 1 200``."""
    low, high = int(min(numbers)), int(max(numbers))
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def share(part: int, whole: int) -> str:
    """A part of a whole, as in ``3 of the 5``, ``all 5``, ``none of the 5`` or ``both``."""
    if whole == 1:
        return f"{part} of 1"
    if part == whole:
        return "both" if whole == 2 else f"all {whole}"
    return f"{part or 'none'} of the {whole}"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, or ``a, b and c``."""
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def headings(first: str, names: Iterable[str], *beside: str) -> list[str]:
    """A table's headings: ``first``, then every name, each followed by the headings ``beside``."""
    return [first, *(heading for name in names for heading in (name, *beside))]
