"""The house style: the palette, what every picture of the study looks like, and saving it."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import matplotlib.style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

#: The parts of an SVG file that are coordinates.
_COORDINATES = rb'(?<=[ "])(?:(?:d|x|y|width|height)="[^"]+|translate\([^)]+)'


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Matplotlib's defaults plus :data:`STYLE`, whatever the user's own settings are."""
    with matplotlib.style.context(["default", STYLE]):
        yield


def heading(figure: Figure, text: str, empty_lines: int = 0) -> int:
    """Write what is to be seen, in bold, above everything else, and so many empty lines below it.

    Returns:
        The number of lines of the text.
    """
    lines = textwrap.wrap(text, int(13.5 * figure.get_figwidth()))
    room = ["\u00a0"] * empty_lines
    figure.suptitle("\n".join([*lines, *room]), x=0.01, ha="left", fontsize=8, weight="bold")
    return len(lines)


def small_print(figure: Figure, text: str) -> None:
    """Small text at the figure's foot, such as the warning that the data are a stand-in."""
    width = int(21 * figure.get_figwidth())  # 21 such letters fit an inch
    lines = textwrap.fill(text, width)
    # Lines of about the same length, and no last line of two words.
    lines = textwrap.fill(text, max(len(text) // (1 + lines.count("\n")) + 8, width // 2))
    figure.supxlabel(lines, x=0.99, ha="right", fontsize=5.5, color="#444444")


def saved(figure: Figure, kind: str, metadata: Mapping[str, str | None], **options: Any) -> bytes:
    """A figure as a file of this kind (``png``, ``pdf`` or ``svg``); equal figures are equal files.

    Args:
        figure: the figure; call this within :func:`style`.
        kind: the file's format.
        metadata: what Matplotlib writes into it; None leaves a default out.
        options: others of :meth:`matplotlib.figure.Figure.savefig`.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=dict(metadata), **options)
    content = buffer.getvalue()
    return _without_rounding_errors(content) if kind == "svg" else content


def _without_rounding_errors(svg: bytes) -> bytes:
    """An SVG file without what differs between two layouts of the same figure: rounding errors.

    Coordinates are given to a thousandth of a point. Clip paths, which Matplotlib names by a digest
    of theirs, are numbered.
    """
    svg = re.sub(_COORDINATES, lambda part: re.sub(rb"-?\d+\.\d{4,}", _rounded, part[0]), svg)
    names = re.findall(rb'<clipPath id="(\w+)"', svg)
    numbered = {name: b"clip_%d" % number for number, name in enumerate(names, start=1)}
    uses = rb'(?<=<clipPath id=")\w+(?=")|(?<=url\(#)\w+(?=\))'
    return re.sub(uses, lambda use: numbered.get(use[0], use[0]), svg)


def _rounded(number: re.Match[bytes]) -> bytes:
    text = b"%.3f" % float(number[0])
    return re.sub(rb"^-0$", b"0", text.rstrip(b"0").rstrip(b"."))
