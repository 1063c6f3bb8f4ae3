"""The training curve of a run, as a small SVG drawing to stand in a page."""

from __future__ import annotations

import numpy as np
import pandas as pd

#: In units of half a CSS pixel, so that whole numbers are fine enough for coordinates.
WIDTH, HEIGHT = 720, 280
LEFT, RIGHT, TOP, BOTTOM = 96, 16, 20, 48

#: Points that a line keeps; more cannot be seen at this width.
MOST_POINTS = 120


def validation_curve(history: pd.DataFrame, fits: pd.DataFrame, metric: str) -> str:
    """The validation metric of each trial's chosen candidate against its epochs or trees.

    Args:
        history: a run's ``history.csv``.
        fits: its ``fits.csv``, which says which candidate was chosen.
        metric: what the metric is called.

    Returns:
        An ``<svg>`` element, with a single path; empty where nothing was recorded.
    """
    keys = [key for key in ("trial", "candidate", "restart") if key in history]
    rows = history.merge(fits.loc[fits["selected"], keys], on=keys)
    rows = rows[rows["vali_metric"].notna()]
    if rows.empty:
        return ""
    low, high = rows["vali_metric"].min(), rows["vali_metric"].max()
    first, last = int(rows["epoch"].min()), int(rows["epoch"].max())
    lines = []
    for _, trial in rows.groupby("trial"):
        kept = trial.iloc[_thinned(len(trial))]
        epochs, values = kept["epoch"].to_numpy(), kept["vali_metric"].to_numpy()
        x = LEFT + (epochs - first) / max(last - first, 1) * (WIDTH - LEFT - RIGHT)
        y = TOP + (high - values) / ((high - low) or 1.0) * (HEIGHT - TOP - BOTTOM)
        lines.append(_line(x.round().astype(int), y.round().astype(int)))
    floor = HEIGHT - BOTTOM
    trials = len(lines)
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="'
        f"{'A line' if trials == 1 else f'{trials} lines, one per trial'}: {metric} on the "
        f"validation set from epoch {first} to {last}. The lowest value is {low:.4f}, the highest "
        f'{high:.4f}.">'
        f'<path class="axis" d="M{LEFT} {TOP}V{floor}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 8}" y="{TOP + 14}" text-anchor="end">{high:.4f}</text>'
        f'<text x="{LEFT - 8}" y="{floor}" text-anchor="end">{low:.4f}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 16}">epoch {first}</text>'
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 16}" text-anchor="end">{last}</text>'
        f'<path d="{"".join(lines)}"/></svg>'
    )


def _thinned(points: int) -> np.ndarray:
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).round().astype(int))


def _line(x: np.ndarray, y: np.ndarray) -> str:
    """A line through points, in relative steps; a single point is a dot."""
    steps = "".join(f"l{dx} {dy}" for dx, dy in zip(np.diff(x), np.diff(y), strict=True))
    return f"M{x[0]} {y[0]}{steps or 'h0'}"
