"""A page on which a loss is seen over the score of one document, with a slider for its setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from directrank import losses, metrics
from directrank.report.build import environment_of_pages, script_data
from directrank.system.io import write_text

#: The setting of each loss that the slider moves, and its values. The library computes every curve:
#: nothing is drawn that a call of the loss does not give.
SETTINGS: Mapping[str, tuple[str, Sequence[float]]] = {
    "approx_ndcg": ("alpha", (0.5, 1, 2, 5, 10, 20, 50, 100)),
    "approx_ap": ("alpha", (0.5, 1, 2, 5, 10, 20, 50, 100)),
    "smooth_ndcg": ("alpha", (0.5, 1, 2, 5, 10, 20, 50)),
    "softrank": ("sigma", (0.05, 0.1, 0.2, 0.5, 1, 2)),
    "neural_ndcg": ("tau", (0.05, 0.1, 0.2, 0.5, 1, 2, 5)),
    "soft_sort_ndcg": ("tau", (0.05, 0.1, 0.2, 0.5, 1, 2, 5)),
    "fast_soft_ndcg": ("tau", (0.05, 0.1, 0.2, 0.5, 1, 2, 5)),
    "lapsum_ndcg": ("tau", (0.05, 0.1, 0.2, 0.5, 1, 2, 5)),
    "pirank": ("tau", (0.1, 0.2, 0.5, 1, 2, 5)),
    "twin_ndcg": ("alpha_b", (0.2, 0.5, 1, 2, 5, 10)),
    "ranknet": ("sigma", (0.2, 0.5, 1, 2, 5)),
    "lambdarank": ("sigma", (0.2, 0.5, 1, 2, 5)),
    "pairwise_hinge": ("margin", (0.2, 0.5, 1, 2, 3)),
}

#: Scores of the relevant document, and those of three others, which are not relevant.
SCORES = np.linspace(-4, 4, 161)
OTHERS = (-1.5, 0.0, 1.5)

#: Digits of a value on the page.
DIGITS = 5


def write(out: Path) -> None:
    """Write the page as one HTML file that loads nothing else."""
    data = {
        "scores": SCORES.round(DIGITS).tolist(),
        "others": list(OTHERS),
        "metric": _rounded(1 - metrics.ndcg(*_list()).double()),
        "losses": list(_curves()),
    }
    page = environment_of_pages().get_template("curves.html.j2")
    write_text(out, page.render(data=script_data(data)))


def _list() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores, labels and mask of a list for each of :data:`SCORES`, ``[S, 4]``."""
    own = torch.tensor(SCORES)[:, None]
    scores = torch.cat([own, torch.tensor(OTHERS).double().expand(len(own), -1)], dim=1)
    labels = torch.zeros_like(scores)
    labels[:, 0] = 1
    return scores, labels, torch.ones_like(scores, dtype=torch.bool)


def _curves() -> Iterator[dict[str, Any]]:
    for name, (setting, values) in SETTINGS.items():
        curves = [_curve(name, {setting: value}) for value in values]
        yield {
            "name": name,
            "setting": setting,
            "values": list(values),
            "loss": [loss for loss, _ in curves],
            "gradient": [gradient for _, gradient in curves],
        }


def _curve(name: str, settings: Mapping[str, float]) -> tuple[list[float], list[float]]:
    """The loss for each score of the relevant document, and its derivative by this score."""
    scores, labels, mask = _list()
    scores.requires_grad_()
    values = getattr(losses, name)(scores, labels, mask, **settings)
    (gradient,) = torch.autograd.grad(values.sum(), scores)
    return _rounded(values.detach()), _rounded(gradient[:, 0])


def _rounded(values: torch.Tensor) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
