"""The house style: the palette, and what every picture of the study looks like."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import matplotlib.style

#: Okabe and Ito's palette (2008), told apart with any of the common colour-vision deficiencies.
BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # shipped with matplotlib, so the same everywhere
    "font.size": 7.5,
    "mathtext.fontset": "dejavusans",
    "axes.labelsize": 7.5,
    "axes.titlesize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "legend.fontsize": 7,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "#CCCCCC",
    "legend.fancybox": False,
    "legend.handlelength": 2.6,
    "legend.borderpad": 0.4,
    "legend.labelspacing": 0.35,
    "errorbar.capsize": 2,
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "directrank",
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Matplotlib's defaults plus :data:`STYLE`, whatever the user's own settings are."""
    with matplotlib.style.context(["default", STYLE]):
        yield
