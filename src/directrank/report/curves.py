"""The training curve of a run, as a small SVG drawing to stand in a page."""

from __future__ import annotations

import numpy as np
import pandas as pd

WIDTH, HEIGHT = 320, 130
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 8, 22

#: Points that a line keeps; more cannot be seen at this width.
MOST_POINTS = 120


def validation_curve(history: pd.DataFrame, fits: pd.DataFrame) -> str:
    """The validation metric of each trial's chosen candidate against its epochs or trees.

    Args:
        history: a run's ``history.csv``.
        fits: its ``fits.csv``, which says which candidate was chosen.

    Returns:
        An ``<svg>`` element; empty where nothing was recorded.
    """
    keys = [key for key in ("trial", "candidate", "restart") if key in history]
    rows = history.merge(fits.loc[fits["selected"], keys], on=keys)
    rows = rows[rows["vali_metric"].notna()]
    if rows.empty:
        return ""
    low, high = rows["vali_metric"].min(), rows["vali_metric"].max()
    last = max(int(rows["epoch"].max()), 2)
    spread = (high - low) or 1.0
    lines = []
    for _, trial in rows.groupby("trial"):
        kept = trial.iloc[_thinned(len(trial))]
        x = LEFT + (kept["epoch"].to_numpy() - 1) / (last - 1) * (WIDTH - LEFT - RIGHT)
        y = TOP + (high - kept["vali_metric"].to_numpy()) / spread * (HEIGHT - TOP - BOTTOM)
        lines.append(_line(x, y))
    floor = HEIGHT - BOTTOM
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="validation metric from {low:.4f} to {high:.4f} over {last} epochs">'
        f'<path class="axis" d="M{LEFT} {TOP}V{floor}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 4}" y="{TOP + 8}" text-anchor="end">{high:.4f}</text>'
        f'<text x="{LEFT - 4}" y="{floor}" text-anchor="end">{low:.4f}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 6}">1</text>'
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{last}</text>'
        f"{''.join(lines)}</svg>"
    )


def _thinned(points: int) -> np.ndarray:
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).round().astype(int))


def _line(x: np.ndarray, y: np.ndarray) -> str:
    if len(x) == 1:
        return f'<circle cx="{x[0]:.1f}" cy="{y[0]:.1f}" r="2"/>'
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline points="{points}"/>'
