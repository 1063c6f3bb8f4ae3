"""The loss that a configuration composes of a metric and a relaxation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from directrank import relaxations
from directrank.lists.calls import ranking_loss
from directrank.losses._compose import NOISE, compose
from directrank.losses._needs import needs


def _draws(settings: Mapping[str, Any]) -> bool:
    relaxation = settings["relaxation"]
    options = {"name": relaxation} if isinstance(relaxation, str) else relaxation
    return settings.get("samples", 0) > 0 or relaxations.random(options["name"], options)


@ranking_loss
@needs(draws=_draws)
def composed(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    metric: str | Mapping[str, Any],
    relaxation: str | Mapping[str, Any],
    samples: int = 0,
    noise: float = NOISE,
    generator: torch.Generator | None = None,
) -> Tensor:
    """:func:`compose` in one call, so that a configuration can name any composition.

    >>> import torch
    >>> from directrank import losses
    >>> scores, labels = torch.tensor([[1.0, 3.0, 2.0]]), torch.tensor([[0.0, 0.0, 1.0]])
    >>> sigmoid = {"name": "sigmoid", "alpha": 1.0}
    >>> losses.composed(scores, labels, metric="reciprocal_rank", relaxation=sigmoid)
    tensor([-0.5000])
    """
    loss = compose(metric, relaxation, samples=samples, noise=noise)
    return loss(scores, labels, mask, generator)
