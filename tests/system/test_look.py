"""Saved figures are equal files where they are equal figures."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from directrank.system import look


def drawn(move: float = 0.0) -> Figure:
    """Two axes, moved by a share of the figure's width."""
    figure = Figure(figsize=(4, 2), layout="none")
    for left in (0.1137, 0.6137):
        axes = figure.add_axes((left + move, 0.2, 0.3, 0.7))
        axes.plot([0, 1, 2], [1, 3, 2])
    return figure


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_what_a_layout_differs_in_beyond_the_printed_digits_does_not_change_a_file(kind):
    metadata = {"CreationDate": None} if kind == "pdf" else {}
    metadata |= {"Date": None} if kind == "svg" else {}
    with look.style():
        files = [look.saved(drawn(move), kind, metadata) for move in (0.0, 1e-14, 0.01)]
    assert drawn(1e-14).axes[0].get_position().x0 != drawn().axes[0].get_position().x0
    assert files[0] == files[1] != files[2]


def test_every_clip_path_of_an_svg_is_named_once_and_used():
    with look.style():
        svg = look.saved(drawn(), "svg", {"Date": None}).decode()
    named = re.findall(r'<clipPath id="(\w+)"', svg)
    used = re.findall(r"url\(#(\w+)\)", svg)
    assert named == ["clip_1", "clip_2"]
    assert list(np.unique(used)) == named
