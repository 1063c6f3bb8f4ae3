"""Yu (2020): Figure 2, and what its argument says of gradients and ties, measured in training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.ticker import MaxNLocator

from directrank.papers.shared import figures
from directrank.papers.shared.evidence import Evidence, FinishedRun, data_sentence, origin_line
from directrank.papers.shared.format import listed, spread
from directrank.papers.shared.methods import Method, by_method
from directrank.papers.shared.product import FigureResult
from directrank.papers.yu2020.grid import ARCHITECTURES, grid, kept_epochs, reported
from directrank.system.errors import DataError

#: What the methods that minimise a metric's negative are said to optimise.
METRIC_VALUES = {
    "ApproxNDCG": "approximate nDCG",
    "nERR@10-type3": "nERR@10",
    "AP-type3": "AP",
    "nDCG-type3": "nDCG",
}

#: Objectives of the twin sigmoid by the start of their methods' names.
OBJECTIVES = ("Pre", "AP", "nERR@10", "nDCG")

#: Architecture → what it is, for a legend.
OUTPUTS = {
    "R5": "R5: ReLU, output too",
    "CE5": "CE5: CELU, output too",
    "R4.L": "R4.L: ReLU, linear output",
    "CE4.L": "CE4.L: CELU, linear output",
}

#: Architectures that tie no larger share of pairs are not drawn among those that do.
FEW_TIES = 0.001

_TRAIN: dict[str, Any] = {"color": figures.BLACK, "linestyle": "-", "linewidth": 1.1}
_VALI: dict[str, Any] = {"color": figures.BLUE, "linestyle": "--", "linewidth": 1.1}
_TEST: dict[str, Any] = {"color": figures.VERMILLION, "linestyle": "-.", "linewidth": 1.1}


def figure2(evidence: Evidence, method: str) -> FigureResult:
    """A panel of Figure 2: what training minimises, and nDCG@5 of validation and test set.

    Raises:
        DataError: the method was not run.
    """
    cells = reported(grid(evidence), [method])
    if not cells:
        raise DataError(f"{method} was not run", "let the edition run it in any architecture")
    cell = cells[method]
    run = cell.runs[0]
    figure = figures.empty_figure(height=2.6)
    curves, top = _draw_panel(figure, cell)
    figures.label_ends(top)
    top.set_title(_named(cell), loc="left")
    figures.small_print(figure, origin_line([run.dataset], evidence.edition))
    architecture = f" in {cell.variant}" if cell.variant else ""
    caption = (
        f"{method}{architecture}: nDCG@5 on the validation and test set beside what is optimised "
        f"on the training set, with {spread([run.n_trials], 'trial')}. "
        f"{data_sentence([run], 'test', 'test set')} "
        "The paper gives this figure's values only as a picture, so none are drawn beside ours. "
        f"Edition {evidence.edition}."
    )
    return FigureResult(figure, curves, caption)


def figure2_sheet(evidence: Evidence, panels: Mapping[str, str]) -> FigureResult:
    """The panels of Figure 2 on one sheet, each with its letter and method.

    Args:
        evidence: with the grid.
        panels: letter → method; those that were not run are left out.

    Raises:
        DataError: none of the methods was run.
    """
    cells = reported(grid(evidence), list(panels.values()))
    shown = {letter: cells[method] for letter, method in panels.items() if method in cells}
    if not shown:
        raise DataError("no method of Figure 2 was run", "let the edition run one of them")
    columns = 4
    rows = math.ceil(len(shown) / columns)
    figure = figures.empty_figure(width=2 * figures.COLUMN, height=0.4 + 1.9 * rows)
    places = figure.subfigures(nrows=rows, ncols=columns, squeeze=False).flat
    frames, tops = [], []
    for place, (letter, cell) in zip(places, shown.items(), strict=False):
        curves, top = _draw_panel(place, cell)
        place.suptitle(f"({letter}) {_named(cell)}", x=0.08, ha="left", fontsize=7)
        frames.append(curves)
        if cell.variant:
            tops.append(top)
    _same_limits(tops)
    handles = {
        str(line.get_label()): line
        for ax in figure.axes
        for line in ax.get_lines()
        if not str(line.get_label()).startswith("_")
    }
    figure.legend(
        handles.values(), handles, loc="outside upper center", ncols=len(handles), frameon=False
    )
    runs = [cell.runs[0] for cell in shown.values()]
    codes = [OUTPUTS[name] for name in ARCHITECTURES if name in {c.variant for c in shown.values()}]
    origin = origin_line([runs[0].dataset], evidence.edition)
    figures.small_print(figure, "; ".join([*codes, origin]))
    caption = (
        "nDCG@5 on the validation and test set and, below it, what a method optimises on the "
        "training set; for trees, that is nDCG@5 on the training set itself. The letters in "
        "brackets are the paper's, and the architecture of a method is the best by validation "
        "nDCG@5; the networks' axes of nDCG@5 are the same. "
        f"Curves are those of {spread([run.n_trials for run in runs], 'trial')}. "
        f"{data_sentence(runs[:1], 'test', 'test set')} "
        "The paper gives this figure's values only as a picture, so none are drawn beside ours. "
        f"Edition {evidence.edition}."
    )
    return FigureResult(figure, pd.concat(frames, ignore_index=True), caption)


def _same_limits(frames: Sequence[Axes]) -> None:
    """Give all frames the y axis that holds what each shows."""
    limits = [axes.get_ylim() for axes in frames]
    for axes in frames:
        axes.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def _named(cell: Method) -> str:
    return f"{cell.name}, {cell.variant}" if cell.variant else cell.name


def _draw_panel(place: FigureBase, cell: Method) -> tuple[pd.DataFrame, Axes]:
    """Draw a method's training; what is drawn, and the axes of nDCG@5."""
    run = cell.runs[0]
    history = _over_trials(run)
    if cell.name == "LambdaMART(L)":
        curves = _panel_curves(history, "train", _column(history, "train_ndcg@5"))
        top = bottom = place.subplots()
        top.plot(*_points(curves, "train"), label="train", **_TRAIN)
        bottom.set_xlabel("trees")
    else:
        is_metric = cell.name in METRIC_VALUES
        what = METRIC_VALUES.get(cell.name, "train loss")
        sign = -1.0 if is_metric else 1.0
        curves = _panel_curves(history, what, sign * history["train_loss"])
        # One above the other: on two scales in one frame it would mean nothing where curves cross.
        top, bottom = place.subplots(nrows=2, sharex=True)
        bottom.plot(*_points(curves, what), **_TRAIN)
        short = what.replace("approximate", "approx.")
        bottom.set(xlabel="epoch", ylabel=f"{short},\ntrain" if is_metric else what)
    for label, look in (("validation", _VALI), ("test", _TEST)):
        top.plot(*_points(curves, label), label=label, **look)
    top.set_ylabel("nDCG@5")
    figures.whole_ticks(bottom.xaxis)
    place.align_ylabels()
    named = curves.assign(
        method=cell.name,
        architecture=cell.variant,
        dataset=run.dataset.title,
        data=run.dataset.kind,
    )
    return named, top


def _points(curves: pd.DataFrame, label: str) -> tuple[np.ndarray, np.ndarray]:
    part = curves[curves["curve"] == label]
    return part["step"].to_numpy(), part["value"].to_numpy()


def _over_trials(run: FinishedRun) -> pd.DataFrame:
    """The history of the fits that were kept, averaged over trials, by epoch or tree."""
    return run.kept_history.groupby("epoch").mean(numeric_only=True)


def _column(history: pd.DataFrame, name: str) -> pd.Series:
    if name not in history:
        raise DataError(
            f"the runs' histories hold no '{name}'", "add it to the runs' training.monitor"
        )
    return history[name].dropna()


def _curve(label: str, values: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"curve": label, "step": values.index, "value": values.to_numpy()})


def _panel_curves(history: pd.DataFrame, what: str, trained: pd.Series) -> pd.DataFrame:
    """What training optimises, and nDCG@5 of the validation and the test set."""
    curves = {
        what: trained,
        "validation": history["vali_metric"],
        "test": _column(history, "test_ndcg@5"),
    }
    return pd.concat([_curve(*item) for item in curves.items()], ignore_index=True)


def inconsistency(evidence: Evidence) -> FigureResult:
    """The share of pairs that the gradient pulls against their labels, over training, per type."""
    rows = {
        "pull_against_labels": (
            "pairs pulled\nagainst labels (%)",
            "by the pull of the pair itself, through the ranks of its two documents; types 2 and 3 "
            "exclude such pulls",
        ),
        "net_against_labels": (
            "pairs that the gradient\npulls against labels (%)",
            "by the whole gradient, to which all other pairs contribute",
        ),
    }
    what = (
        "The share of the training set's pairs of documents with different labels that the "
        "gradient of a method pulls against their labels, which is the paper's “optimisation "
        "inconsistency”"
    )
    return _gradients(evidence, rows, what, 100.0, seen_of_inconsistency)


def seen_of_inconsistency(data: pd.DataFrame) -> str:
    """Which types pull pairs against their labels, in a few words."""
    most = data[data["quantity"] == "net_against_labels"].groupby("method")["value"].max()
    of = {kind: most[most.index.str.endswith(kind)].max() for kind in ("type1", "type2", "type3")}
    others = max(of["type2"], of["type3"])
    return (
        f"type 1 pulls up to {of['type1']:.0f}% of pairs against their labels, types 2 and 3 "
        f"{f'up to {others:.1g}%' if others else 'none'}"
    )


def difficulty(evidence: Evidence) -> FigureResult:
    """The size of the gradient on badly ordered pairs, over training, per type."""
    rows = {
        "pull_on_badly_ordered": (
            "pull on badly\nordered pairs\n(on all: 1)",
            "all badly ordered pairs",
        ),
        "pull_on_far_apart": (
            "pull on those\nfar apart\n(on all: 1)",
            "those that are badly ordered by more than the standard deviation of their query's "
            "scores",
        ),
    }
    what = (
        "The mean size of the pull on badly ordered pairs of documents of the training set, "
        "relative to its mean size over all pairs with different labels; small values are the "
        "paper's “optimisation difficulty”"
    )
    return _gradients(evidence, rows, what, 1.0, seen_of_difficulty)


def seen_of_difficulty(data: pd.DataFrame) -> str:
    """Which type pulls hardest where it should, in a few words."""
    types = data[data["quantity"] == "pull_on_far_apart"].groupby("method")["value"].mean()
    by_type = types.groupby(types.index.str[-5:]).mean().reindex(["type1", "type2", "type3"])
    hardest = str(by_type.idxmax())
    return (
        f"on badly ordered pairs with distant scores, type {hardest[-1]} pulls "
        f"{by_type.max():.1f} times as hard as on all"
    )


def _gradients(
    evidence: Evidence,
    rows: Mapping[str, tuple[str, str]],
    what: str,
    scale: float,
    seen: Callable[[pd.DataFrame], str],
) -> FigureResult:
    """Quantities of the gradient over training, a row of frames for each that is not 0 throughout.

    Args:
        evidence: with the runs.
        rows: quantity → label of its axis, and what it is for the caption.
        what: what all of them are.
        scale: their factor.
        seen: says what is to be seen in the data.
    """
    cells = by_method(evidence.runs(ARCHITECTURES["R4.L"]), "exclude")
    runs = {name: cell.runs[0] for name, cell in cells.items()}
    frames = []
    for objective in OBJECTIVES:
        curves = [f"{objective}-type{kind}" for kind in (1, 2, 3)]
        curves += ["ApproxNDCG"] if objective == "nDCG" else []
        for method in curves:
            if method not in runs:
                continue
            history = _over_trials(runs[method])
            for quantity in rows:
                values = _column(history, f"train_{quantity}") * scale
                frame = _curve(method, values).rename(columns={"curve": "method"})
                frames.append(frame.assign(objective=objective, quantity=quantity))
    if not frames:
        raise DataError("no type was run in R4.L", f"let the edition run {ARCHITECTURES['R4.L']}")
    data = pd.concat(frames, ignore_index=True)
    shown = shown_of(data, list(rows))
    figure, axes = figures.new_figure(
        width=2 * figures.COLUMN, height=0.8 + 1.2 * len(shown), nrows=len(shown), ncols=4,
        sharex=True, sharey="row", squeeze=False,
    )  # fmt: skip
    names = ["type 1", "type 2", "type 3", "ApproxNDCG"]
    for row, quantity in enumerate(shown):
        for column, objective in enumerate(OBJECTIVES):
            part = data[(data["objective"] == objective) & (data["quantity"] == quantity)]
            _types(axes[row, column], part, names)
            if row == 0:
                axes[row, column].set_title(objective)
        axes[row, 0].set_ylabel(rows[quantity][0])
        axes[row, 0].set_ylim(bottom=0)
    for ax in axes[-1]:
        ax.set_xlabel("epoch")
        figures.whole_ticks(ax.xaxis)
    handles = {
        label: handle
        for ax in axes.flat
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles, loc="outside upper center", ncols=len(handles), frameon=False
    )
    some = list(runs.values())
    figures.small_print(figure, origin_line([some[0].dataset], evidence.edition))
    places = ["Top: ", "Bottom: "] if len(shown) > 1 else ["Drawn: "]
    said = [place + rows[quantity][1] for place, quantity in zip(places, shown, strict=True)]
    said += [f"Not drawn, because it is 0 for all: {rows[q][1]}" for q in rows if q not in shown]
    caption = (
        f"{what}. {'. '.join(said)}. Values are means over queries in R4.L, by the objective that "
        f"is optimised, with {spread([run.n_trials for run in some], 'trial')} (the first of each "
        "fold). "
        f"{data_sentence(some[:1], 'test', 'test set')} The paper has no such figure and argues "
        f"from the formulas. Edition {evidence.edition}."
    )
    data.insert(0, "dataset", some[0].dataset.title)
    return FigureResult(figure, data, caption, finding=seen(data))


def shown_of(data: pd.DataFrame, quantities: Sequence[str]) -> list[str]:
    """The quantities that are not 0 throughout; all of them if each one is."""
    largest = data.groupby("quantity")["value"].max()
    return [name for name in quantities if largest[name] > 0] or list(quantities)


def _types(axes: Axes, data: pd.DataFrame, names: Sequence[str]) -> None:
    for method, curve in data.groupby("method", sort=False):
        label = "ApproxNDCG" if method == "ApproxNDCG" else f"type {str(method)[-1]}"
        look = figures.SERIES[names.index(label)] | {"markersize": 2.5, "linewidth": 0.9}
        every = max(1, len(curve) // 8)
        axes.plot(curve["step"], curve["value"], label=label, markevery=every, **look)


def ties(evidence: Evidence) -> FigureResult:
    """The share of tied pairs per method and architecture, and what their order is worth."""
    everything = grid(evidence)
    rows = []
    for method, cells in everything.items():
        for architecture, cell in cells.items():
            if architecture:
                rows.append(
                    {
                        "method": method,
                        "architecture": architecture,
                        "tied_pairs": tied_share(cell),
                        **{
                            f"ndcg@{k}": cell.mean(f"ndcg@{k}") - cell.mean(f"ndcg@{k}/expected")
                            for k in (1, 5, 20)
                        },
                    }
                )
    if not rows:
        raise DataError("no network was run", f"let the edition run {', '.join(ARCHITECTURES)}")
    data = pd.DataFrame(rows)
    tied = data.groupby("architecture")["tied_pairs"].max()
    shown = [name for name in ARCHITECTURES if tied.get(name, 0) > FEW_TIES] or list(tied.index)
    methods = list(dict.fromkeys(data["method"]))
    figure, axes = figures.new_figure(
        width=2 * figures.COLUMN, height=1.0 + 0.16 * len(methods), nrows=1, ncols=3, sharey=True
    )
    panels = {
        "tied_pairs": "tied pairs of documents (%)",
        "ndcg@5": "effect on nDCG@5 (points)",
        "ndcg@20": "effect on nDCG@20 (points)",
    }
    for ax, (column, title) in zip(axes, panels.items(), strict=True):
        ax.axvline(0, color="#777777", linewidth=0.8, zorder=0.5)
        for number, architecture in enumerate(shown):
            part = data[data["architecture"] == architecture]
            apart = 0.2 * (number - (len(shown) - 1) / 2)
            places = part["method"].map(methods.index).to_numpy() + apart
            look = figures.SERIES[number] | {"linestyle": "none", "markersize": 3}
            label = OUTPUTS[architecture] if ax is axes[0] else None
            ax.plot(100 * part[column], places, label=label, **look)
        ax.set_xlabel(title)
        ax.xaxis.set_major_locator(MaxNLocator(nbins=4))  # more ticks of small effects collide
    axes[0].set_yticks(range(len(methods)), methods)
    axes[0].invert_yaxis()
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    runs = [run for some in everything.values() for cell in some.values() for run in cell.runs]
    figures.small_print(figure, origin_line([runs[0].dataset], evidence.edition))
    caption = (
        "Left: the share of a test query's pairs of documents whose scores are equal, as a mean "
        "over queries at the epoch that was kept. Middle and right: nDCG with tied documents in "
        "the order of the file minus its exact mean over all their orders. "
        f"{_without_ties(tied, shown)}{data_sentence(runs, 'test', 'test set')} "
        "The paper has no such figure; its released code orders every list by its labels before "
        "training and testing, so that a stable sort would favour ties. "
        f"Edition {evidence.edition}."
    )
    data.insert(0, "dataset", runs[0].dataset.title)
    effect = 100 * data[["ndcg@5", "ndcg@20"]].abs().to_numpy().max()
    finding = (
        f"with ReLU as output up to {100 * tied.max():.0f}% of pairs are tied, whose order changes "
        f"nDCG by at most {effect:.2f} points"
        if shown == ["R5"]
        else ""
    )
    return FigureResult(figure, data, caption, finding=finding)


def _without_ties(tied: pd.Series, shown: Sequence[str]) -> str:
    """A sentence that names the architectures that are not drawn, because they tie nothing."""
    rest = [name for name in ARCHITECTURES if name in tied.index and name not in shown]
    if not rest:
        return ""
    return f"{listed(rest)} tie fewer than {FEW_TIES:.1%} of pairs and are not drawn. "


def tied_share(cell: Method) -> float:
    """Share of tied pairs on the test set at the kept epochs, mean over folds and trials."""
    return float(
        np.mean([_column(kept_epochs(run), "test_tied_pairs").mean() for run in cell.runs])
    )
