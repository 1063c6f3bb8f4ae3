"""Quality against training time, with the methods that no other beats in both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from directrank.papers.one_protocol.dots import LOOKS
from directrank.papers.one_protocol.methods import CONTROLS, PRIMARY, SCORERS, labels_of
from directrank.papers.one_protocol.protocol import protocol
from directrank.papers.shared import figures
from directrank.papers.shared.evidence import Evidence, origin_line
from directrank.papers.shared.methods import Method
from directrank.papers.shared.product import FigureResult
from directrank.papers.shared.tables import in_front
from directrank.stats.estimates import mean_interval

#: The share of methods that the axis is high enough for.
SHOWN = 0.9


def pareto_front(
    cost: Sequence[float] | np.ndarray, gain: Sequence[float] | np.ndarray
) -> list[int]:
    """Positions of the points that no other point equals or beats in both, by rising cost.

    Args:
        cost: ``[n]``, less is better.
        gain: ``[n]``, more is better.
    """
    cost, gain = np.asarray(cost, dtype=float), np.asarray(gain, dtype=float)
    front: list[int] = []
    for number in np.lexsort((-gain, cost)):
        if not front or gain[number] > gain[front[-1]]:
            front.append(int(number))
    return front


def number_points(axes: Axes, points: Sequence[tuple[str, float, float]]) -> None:
    """Number points from 1 above themselves, and list their names to the right of the axes.

    A number rises until it covers none of those before it; a thin line then leads to its point.
    """
    root = axes.get_figure(root=True)
    assert root is not None
    key = axes.legend(
        [Line2D([], [], linestyle="none")] * len(points),
        [f"{number}  {name}" for number, (name, _, _) in enumerate(points, start=1)],
        loc="center left",
        bbox_to_anchor=(1, 0.5),
        frameon=False,
        handlelength=0,
        handletextpad=0,
        title="On the line",
        alignment="left",
    )
    key.get_title().set_fontweight("bold")
    root.draw_without_rendering()  # only then is it known where points lie
    placed: list[Bbox] = []
    for number, (_, x, y) in enumerate(points, start=1):
        text = axes.annotate(
            str(number),
            (x, y),
            (-3, 4),
            textcoords="offset points",
            ha="right",
            fontsize=6.5,
            fontweight="bold",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.3},
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "shrinkA": 0, "shrinkB": 1.5},
        )
        while any(extent_of_words(text).overlaps(other) for other in placed):
            text.xyann = (text.xyann[0], text.xyann[1] + 1)
        placed.append(extent_of_words(text))


def extent_of_words(annotation: Annotation) -> Bbox:
    """Where an annotation's words are, without its line, in pixels."""
    annotation.get_window_extent()  # puts them where they belong
    return Text.get_window_extent(annotation)


def training_seconds(method: Method) -> float:
    """Training time of one configuration in seconds, validation included, as measured.

    It is the median over trials, configurations and folds, which a fit that had to wait for the
    processor does not move.
    """
    histories = [run.result.history for run in method.runs]
    fits = [history.groupby(["trial", "candidate"])["seconds"].sum() for history in histories]
    return float(pd.concat(fits).median())


def on_a_gpu(method: Method) -> bool:
    """Whether a run of a method was trained on a GPU, where many models share each step."""
    return any(run.result.record["device"] != "cpu" for run in method.runs)


def where_timed(methods: Iterable[Method]) -> str:
    """What a caption says if times were measured on more than one kind of processor."""
    kinds = {run.result.record["environment"]["processor"] for m in methods for run in m.runs}
    if len(kinds) == 1:
        return ""
    return f"Methods were timed on {len(kinds)} kinds of processors, which differ in speed. "


def figure_time(evidence: Evidence, dataset: str) -> FigureResult:
    """NDCG@10 of what is trained against the training time of one configuration, and the front.

    Methods that were trained on a GPU are left out where others were not: a model's share of a pass
    says nothing of what its own loss costs.
    """
    every = protocol(evidence, dataset)
    trained = [method for method in every.methods if method.variant != CONTROLS] or every.methods
    timed = [method for method in trained if not on_a_gpu(method)] or trained
    left_out = len(trained) - len(timed)
    study = replace(every, methods=timed)
    quality = [mean_interval(method.trial_means(PRIMARY)) for method in study.methods]
    means = np.array([interval.mean for interval in quality])
    seconds = np.array([training_seconds(method) for method in study.methods])
    front = pareto_front(seconds, means)
    named = in_front(study.names, study.about).assign(metric="NDCG@10")
    data = named.assign(
        mean=means,
        half_width=[interval.half_width for interval in quality],
        trials=[interval.n for interval in quality],
    )
    times = named.assign(
        seconds=seconds, on_front=[number in front for number in range(len(seconds))]
    )
    figure = draw(data, times)
    figures.small_print(figure, origin_line([study.dataset], study.evidence.edition))
    caption = (
        "Test NDCG@10 against the time that one configuration of one trial takes to train, "
        "including validation. Times are medians "
        "over trials, configurations and folds, as the runs measured them while the machine did "
        "other work (trials and configurations of a network are trained together and share their "
        "time equally). The line joins the methods that no other "
        "method equals in both, which have numbers; small steps mean nothing: 95% intervals over "
        "trials are in the CSV file. A triangle at the foot stands for a method that is further "
        "below. Times differ from run to run and are in a separate file. "
        f"{where_timed(timed)}{_without(left_out)}"
        f"Queries without a relevant document are left out. {study.scale()}"
    )
    headline = f"{study.dataset.short}: what quality costs in training time"
    return FigureResult(figure, data, caption, times, headline)


def _without(left_out: int) -> str:
    """What the caption says of methods that are not in the figure."""
    if not left_out:
        return ""
    methods = "One method was" if left_out == 1 else f"{left_out} methods were"
    return f"{methods} trained on a GPU, where models share their steps, and not timed. "


def draw(data: pd.DataFrame, times: pd.DataFrame) -> Figure:
    """The figure of a product's two tables, whose rows are the methods."""
    seconds, means = times["seconds"].to_numpy(), data["mean"].to_numpy()
    figure, axes = figures.new_figure(width=2 * figures.COLUMN, height=3.4)
    low, high = np.quantile(means, 1 - SHOWN), means.max()
    foot = low - 0.08 * max(high - low, 1e-3)
    small: dict[str, Any] = {
        "linestyle": "none", "markersize": 4, "markeredgecolor": "white", "markeredgewidth": 0.3,
    }  # fmt: skip
    for scorer, look in LOOKS.items():
        own = (data["scorer"] == SCORERS[scorer]).to_numpy()
        if own.any():
            shown, below = own & (means >= foot), own & (means < foot)
            label = {"label": SCORERS[scorer]}
            axes.plot(seconds[shown], means[shown], **small, **look, **label)
            for second in seconds[below]:
                axes.plot(second, foot, clip_on=False, zorder=4, **small, **look | {"marker": "v"})
    front = sorted(np.flatnonzero(times["on_front"]), key=seconds.__getitem__)
    axes.step(
        [*seconds[front], seconds.max()],
        [*means[front], means[front[-1]]],
        where="post",
        color="#777777",
        linewidth=0.8,
        zorder=1,
    )
    if (means < foot).any():
        axes.set_ylim(bottom=foot)
    axes.set(xscale="log", xlabel="training time of one configuration (s)", ylabel="NDCG@10, test")
    figures.plain_log_ticks(axes.xaxis)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside upper center",
        ncols=len(SCORERS),
        frameon=False,
        handlelength=1.0,
        columnspacing=1.4,
    )
    names = labels_of(data)
    number_points(axes, [(names[n], seconds[n], max(means[n], foot)) for n in front])
    return figure
