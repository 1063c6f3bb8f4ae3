"""Verdicts in tables and figures, which are always quoted from the file of claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from directrank.papers.shared.format import minus, p_value
from directrank.papers.shared.verdicts import RAN, UNMEASURED
from directrank.system.errors import DataError

#: The share of an interval's width below which an effect is a rounding error.
NOTHING = 1e-9


def quoted(claims_file: str | Path, names: Sequence[str]) -> list[str]:
    """A sentence or two for each claim: its verdict with collection, effect and interval.

    Measured times are left out, because they have a file of their own.

    Args:
        claims_file: a paper's ``claims.csv``.
        names: the claims, e.g. ``C08``.

    Raises:
        DataError: the file lacks one of the claims.
    """
    claims = pd.read_csv(claims_file)
    overall = claims[claims["comparison"] == "overall"].set_index("claim")
    sentences = []
    for name in names:
        if name not in overall.index:
            raise DataError(
                f"it has no verdict on {name}",
                "test the claims again with `directrank claims`",
                file=claims_file,
            )
        sentences.append(_sentence(name, overall.loc[name]))
    return sentences


def _sentence(name: str, row: Any) -> str:
    head = f"**{name}** ({row['where']}): {row['statement']}."
    if row["verdict"] == UNMEASURED:
        return f"{head} {UNMEASURED.capitalize()} here."
    if row["verdict"] == RAN:
        where = f"{row['dataset']}: {row['outcome']}"
        return f"{head} There is no verdict, because it ran only on generated data ({where})."
    text = f"{head} **{row['verdict'].capitalize()}** on {row['dataset']} ({row['group']})."
    remark = row["remark"] if isinstance(row["remark"], str) else ""
    if math.isnan(row["effect"]):
        return text
    decided = f"{remark} The effect there is {_number(row)}"
    return f"{text} {decided}".rstrip()


def _number(row: Any) -> str:
    unit = f" {row['unit']}" if isinstance(row["unit"], str) else ""
    # A mean of differences that cancel is not exactly 0.
    rounding = NOTHING * (row["high"] - row["low"])
    effect = 0.0 if abs(row["effect"]) < rounding else row["effect"]
    text = minus(f"{effect:.4g}{unit}")
    if math.isfinite(row["low"]):
        text += minus(f" (95 % interval {row['low']:.4g} to {row['high']:.4g})")
    if math.isfinite(row["p_holm"]):
        text += f", p (Holm) {p_value(row['p_holm'])}"
    if math.isfinite(row["detectable"]):
        text += f"; the smallest detectable difference is {row['detectable']:.2g}"
    return f"{text}. It is claimed to be {row['claimed']}."
