"""A loss and its derivative along one document's score, drawn."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from directrank import kernels, losses
from directrank.papers.shared import figures, gallery
from directrank.papers.shared.format import listed, minus
from directrank.study import provenance
from directrank.system.io import atomic_path
from directrank.system.look import saved

#: Scores and labels of the documents that do not move, and the label of the one that moves.
OTHERS = {1.5: 0, 0.5: 1, -0.5: 0, -1.5: 0}
MOVING = 2

#: The scores that it takes: never exactly that of another document.
PLACES = torch.linspace(-4, 4, 320, dtype=torch.float64)

#: Draws that the curves of a loss that draws are means of.
DRAWS = 400

#: The cut-off of a loss that asks for one.
CUTOFF = 3

#: The first of these that a loss has is what its curves differ in: the default, a quarter of it,
#: and four times as much.
STEEPNESS = ("alpha", "tau", "sigma", "lam", "noise", "margin")

#: Losses whose curves differ in something that says more.
VARIED: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "twin_precision": [{"gradient": f"type{number}", "k": CUTOFF} for number in (1, 2, 3)],
    **{
        f"twin_{metric}": [{"gradient": f"type{number}"} for number in (1, 2, 3)]
        for metric in ("ap", "ndcg", "nerr")
    },
    "wassrank": [{"lam": lam} for lam in (0.1, 0.5, 2.5)],
    "k_song": [{"margin": margin} for margin in (1.0, 2.0, 4.0)],
    "lambda_loss": [{"scheme": scheme} for scheme in ("ndcg_loss1", "ndcg_loss2", "ndcg_loss2pp")],
    "lambda_family": [
        {"force": force, "margin": 0.5} for force in ("step", "logistic", "difference")
    ],
    "gumbel_approx_ndcg": [{"noise": noise} for noise in (0.2, 1.0, 3.0)],
    "composed": [
        {"metric": "err", "relaxation": {"name": "sigmoid", "alpha": 3.0}},
        {"metric": "err", "relaxation": {"name": "neural_sort"}},
        {"metric": "err", "relaxation": {"name": "rank_binomial"}},
    ],
}


#: What a curve's name takes of a panel's width and height.
NAME = (0.24, 0.08)

#: Curves that are nowhere farther apart, as a part of the panel's height, have one name.
ALIKE = 0.01


@dataclass(frozen=True)
class Curve:
    """A loss at one of its settings.

    Attributes:
        label: the setting that tells it from the others; empty for the only one.
        value: of the list at each of :data:`PLACES`.
        slope: the derivative of that by the score of the document that moves.
    """

    label: str
    value: np.ndarray
    slope: np.ndarray


def curves(name: str) -> list[Curve]:
    """The curves of a loss; none if it needs settings that no rule here gives."""
    function = losses.get(name)
    parameters = inspect.signature(function).parameters
    required = {key for key, item in parameters.items() if item.default is item.empty}
    fixed: dict[str, Any] = dict.fromkeys(required & {"k"}, CUTOFF)
    if "break_ties" in parameters:
        fixed["break_ties"] = False  # there are none
    chosen = variants(name)
    if required - {"scores", "labels", *fixed, *chosen[0]}:
        return []
    found = []
    for one, label in zip(chosen, _labels(chosen), strict=True):
        settings = fixed | dict(one)
        draws = losses.needs_of(name).random(settings)
        found.append(Curve(label, *_along(function, settings, draws)))
    return found


def variants(name: str) -> Sequence[Mapping[str, Any]]:
    """The settings that the curves of a loss differ in."""
    if name in VARIED:
        return VARIED[name]
    parameters = inspect.signature(losses.get(name)).parameters
    for key in STEEPNESS:
        default = parameters[key].default if key in parameters else None
        if isinstance(default, float) and default > 0:
            return [{key: default / 4}, {key: default}, {key: default * 4}]
    return [{}]


def _labels(chosen: Sequence[Mapping[str, Any]]) -> list[str]:
    """What tells each of the settings from the others: ``alpha 10``, ``type3``."""
    differing = [key for key in chosen[0] if any(one[key] != chosen[0][key] for one in chosen)]
    return [", ".join(_in_words(key, one[key]) for key in differing) for one in chosen]


def _in_words(key: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{key} {value:g}"
    name = value["name"] if isinstance(value, Mapping) else str(value)
    return name.replace("_", " ")


def _along(
    function: Callable[..., Tensor], settings: Mapping[str, Any], draws: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Value and slope at each of :data:`PLACES`; with the same draws at each."""
    others = torch.tensor(list(OTHERS), dtype=torch.float64)
    labels = torch.tensor([MOVING, *OTHERS.values()], dtype=torch.float64)
    lists = torch.cat([PLACES[:, None], others.expand(len(PLACES), -1)], 1)
    # The formulas say the same as the kernels, and need no compilation.
    with mock.patch.dict(kernels.KERNELS, clear=True):
        if not draws:
            return _value_and_slope(function, lists, labels, settings)
        values, slopes = [], []
        for row in lists:
            generator = torch.Generator().manual_seed(0)
            value, slope = _value_and_slope(
                function, row.expand(DRAWS, -1), labels, {**settings, "generator": generator}
            )
            values.append(value.mean())
            slopes.append(slope.mean())
    return np.array(values), np.array(slopes)


def _value_and_slope(
    function: Callable[..., Tensor], scores: Tensor, labels: Tensor, settings: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    leaf = scores.clone().requires_grad_()
    value = function(leaf, labels.expand(len(leaf), -1), None, **settings)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach().numpy(), gradient[:, 0].numpy()


def alternative(name: str, drawn: Sequence[Curve]) -> str:
    """The picture in words."""
    others = listed([minus(f"{score:g}") for score in sorted(OTHERS)])
    texts = []
    for curve in drawn:
        least = int(np.argmin(curve.slope))
        texts.append(
            f"{curve.label or 'the loss'}: from {_short(curve.value[0])} to "
            f"{_short(curve.value[-1])}, steepest downwards at the score "
            f"{_short(float(PLACES[least]))} with a slope of {_short(curve.slope[least])}"
        )
    return (
        f"Two panels: {name} of a list of five documents, and its derivative, while the score of "
        f"the most relevant one rises from −4 to 4 and the others stay at {others}. "
        f"{'; '.join(texts)}."
    )


def _short(value: float) -> str:
    return minus(f"{value:.2g}")


def picture(name: str, path: Path) -> str:
    """Draw a loss to an SVG file, unless the file there is of the same code.

    Returns:
        What it shows, in words; empty where there is nothing to draw, and no file.
    """
    digest = _digest(name)
    if path.is_file() and digest in path.read_text(encoding="utf-8"):
        return gallery.caption(path)[1]
    drawn = curves(name)
    if not drawn:
        path.unlink(missing_ok=True)
        return ""
    text = alternative(name, drawn)
    facts = {"Title": name, "Description": text, "Identifier": digest, "Date": None}
    with figures.style(), atomic_path(path) as temporary:
        temporary.write_bytes(saved(draw(drawn), "svg", facts))
    return text


def draw(drawn: Sequence[Curve]) -> Figure:
    """The picture of curves. Call it within the figures' style."""
    figure, (left, right) = figures.new_figure(width=6.9, height=2.7, ncols=2)
    _panel(left, [(curve.label, curve.value) for curve in drawn], "loss of the list")
    _panel(right, [(curve.label, curve.slope) for curve in drawn], "its derivative by that score")
    right.axhline(0, color="#777777", linewidth=0.6, zorder=1)
    return figure


def _digest(name: str) -> str:
    """Of the code that decides what the picture of a loss shows."""
    modules = losses.REGISTRY[name].split(":")[0], figures.__name__
    code = provenance.code_digest(modules).encode() + Path(__file__).read_bytes()
    return hashlib.sha256(code).hexdigest()


def _panel(axes: Axes, drawn: Sequence[tuple[str, np.ndarray]], title: str) -> None:
    x = PLACES.numpy()
    for number, (_, y) in enumerate(drawn):
        axes.plot(x, y, **figures.line(number), zorder=3)
    axes.set(xlabel=f"score of the document with label {MOVING}", xlim=(x[0], x[-1]))
    axes.set_title(title, loc="left", pad=12)
    axes.margins(y=0.08)
    for score, label in OTHERS.items():
        axes.axvline(score, color="#BBBBBB", linewidth=0.6, zorder=1)
        axes.annotate(
            f"label {label}",
            (score, 1),
            (0, 2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            fontsize=5,
            color="#555555",
        )
    low, high = axes.get_ylim()
    heights = [(y - low) / (high - low) for _, y in drawn]
    for number, place in _places_of_names(heights).items():
        alone = _alike(heights, number)
        axes.text(
            x[place],
            drawn[number][1][place],
            drawn[number][0] if len(alone) == 1 else "all alike",
            color=figures.line(number)["color"] if len(alone) == 1 else "#333333",
            fontsize=6.5,
            ha="center",
            va="center",
            zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )


def _alike(heights: Sequence[np.ndarray], number: int) -> list[int]:
    """The curves that are nowhere told from curve ``number``, itself included."""
    return [other for other, y in enumerate(heights) if np.abs(y - heights[number]).max() < ALIKE]


def _places_of_names(heights: Sequence[np.ndarray]) -> dict[int, int]:
    """Curve → where its name stands: far from other curves and names, and from the margins.

    Of curves that are alike the first has the name.
    """
    if len(heights) == 1:
        return {}
    count = len(heights[0])
    inner = np.arange(count // 8, count - count // 8)
    named: dict[int, int] = {}
    for number, y in enumerate(heights):
        alike = _alike(heights, number)
        if number != alike[0]:
            continue
        room = np.ones(len(inner))
        for other, theirs in enumerate(heights):
            if other not in alike:
                room = np.minimum(room, _distance(theirs, y, inner))
        for other, place in named.items():
            beside = np.abs(inner - place) > NAME[0] * count
            above = np.abs(heights[other][place] - y[inner]) > NAME[1]
            room = np.where(beside | above, room, -1)
        named[number] = int(inner[int(np.argmax(room))])
    return named


def _distance(curve: np.ndarray, y: np.ndarray, places: np.ndarray) -> np.ndarray:
    """How near a curve comes to what a name at each of ``places`` on ``y`` would cover."""
    reach = len(y) // 14
    offsets = range(-reach, reach + 1, 4)
    return np.min([np.abs(curve[places + offset] - y[places]) for offset in offsets], axis=0)
