"""What figures of papers have in common: labels at the ends of curves, plain ticks, small print."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

from directrank.papers.shared import figures


def labelled(axes: Axes) -> dict[str, Text]:
    return {text.get_text(): text for text in axes.texts}


def test_labels_at_the_ends_of_close_curves_lie_apart_in_the_order_of_the_curves():
    with figures.style():
        figure, axes = figures.new_figure()
        for height in (0.50, 0.51, 0.52, 5.0):
            axes.plot([0, 1], [0, height], label=f"to {height:.2f}")
        figures.label_ends(axes)
        figure.draw_without_rendering()
        # Their words alone: the extent of an annotation takes in its line.
        boxes = [Text.get_window_extent(text) for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert [box.y0 for box in boxes] == sorted(box.y0 for box in boxes)
    assert all(box.x0 > axes.transData.transform((1, 0))[0] for box in boxes)


def test_a_label_has_its_curve_s_colour_and_curves_without_one_get_none():
    with figures.style():
        _, axes = figures.new_figure()
        axes.plot([0, 1], [0, 1], label="named", **figures.line(1))
        axes.plot([0, 1], [1, 0])
        figures.label_ends(axes)
    assert list(labelled(axes)) == ["named"]
    assert labelled(axes)["named"].get_color() == figures.VERMILLION


def test_a_curve_has_its_label_at_its_last_number_and_one_without_numbers_has_none():
    with figures.style():
        figure, axes = figures.new_figure()
        axes.plot([0, 1, 2], [3, 4, np.nan], label="ends early")
        axes.plot([0, 1], [np.nan, np.nan], label="never begins")
        figures.label_ends(axes)
        figure.draw_without_rendering()
    assert list(labelled(axes)) == ["ends early"]
    assert tuple(axes.texts[0].xy) == (1, 4)


@pytest.mark.parametrize("limits", [(0.003, 0.007), (0.008, 0.9), (70, 12_000), (1e-5, 1e5)])
def test_ticks_of_a_logarithmic_axis_are_plain_numbers_that_do_not_touch(limits):
    with figures.style():
        figure, axes = figures.new_figure()
        axes.set(xscale="log", xlim=limits)
        figures.plain_log_ticks(axes.xaxis)
        figure.draw_without_rendering()
        shown = [
            tick.label1
            for tick in axes.xaxis.get_major_ticks()
            if limits[0] <= tick.get_loc() <= limits[1]
        ]
        boxes = [label.get_window_extent() for label in shown]
    assert len(shown) > 1
    assert not any(one.overlaps(other) for one, other in itertools.pairwise(boxes))
    numbers = [float(label.get_text().replace("\u00a0", "")) for label in shown]
    assert numbers == pytest.approx([tick for tick in axes.get_xticks() if tick in numbers])


def test_small_print_leaves_no_word_alone_in_its_last_line():
    with figures.style():
        figure, _ = figures.new_figure()
        figures.small_print(
            figure, "Stand-in for LETOR 3.0 TD2004: generated, not the paper's data (edition demo)"
        )
    lines = figure.get_supxlabel().split("\n")
    assert len(lines) == 2
    assert len(lines[1]) > len(lines[0]) / 2


@pytest.mark.parametrize("legend", [False, True])
def test_a_headline_stands_above_all_and_the_figure_grows_by_it(legend):
    with figures.style():
        figure, axes = figures.new_figure()
        axes.plot([0, 1], label="a curve")
        axes.set_title("of the axes")
        if legend:
            figure.legend(loc="outside upper center")
        height = figure.get_figheight()
        figures.headline(figure, "What is to be seen in this picture, in more than one line of it")
        figure.draw_without_rendering()
    (title,) = figure.findobj(lambda one: one is figure._suptitle)
    text = title.get_window_extent()
    said = [line for line in title.get_text().split("\n") if line.strip()]
    assert len(said) == 2
    assert figure.get_figheight() == pytest.approx(height + 0.05 + 0.14 * 2)
    assert text.x0 >= 0
    assert text.x1 <= figure.bbox.x1
    assert text.y1 <= figure.bbox.y1
    inside = axes.get_tightbbox()
    assert inside.y1 <= text.y0
    for one in figure.legends:
        box = one.get_window_extent()
        assert inside.y1 <= box.y0
        # Below the lines that say something: the empty ones are kept for it.
        assert box.y1 <= figure.bbox.y1 - 0.14 * 2 * figure.dpi
