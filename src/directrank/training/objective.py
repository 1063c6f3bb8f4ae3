"""The training objective of a stack of models: padded losses over packed scores."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank import losses
from directrank.lists import concatenated_ranges, pad, padded_positions
from directrank.training.batches import buckets


@dataclass(frozen=True)
class Objective:
    """The losses of a stack of models, and how the queries of a batch are reduced.

    Attributes:
        settings: one loss mapping per model (``name`` and hyper-parameters).
        reduction: ``"mean"`` over the queries with a relevant document, or ``"sum"``.
        generators: one random stream per model, for losses that draw.
    """

    settings: Sequence[Mapping[str, Any]]
    reduction: str
    generators: Sequence[torch.Generator]

    def __call__(self, scores: Tensor, labels: Tensor, lengths: np.ndarray) -> Tensor:
        """The objective of each model, ``[M]``.

        Args:
            scores: packed scores ``[S]`` of all models' batches, model by model.
            labels: ``[S]``, in the same order.
            lengths: int ``[M * B]``, documents per query.
        """
        per_model = len(lengths) // len(self.settings)
        starts = np.cumsum(lengths) - lengths
        values, counts = [], []
        for models, loss in self._groups():
            first, last = models[0] * per_model, (models[-1] + 1) * per_model
            value, relevant = _padded_loss(
                loss, scores, labels, starts[first:last], lengths[first:last]
            )
            values.append(value.view(len(models), per_model).sum(1))
            counts.append(relevant.view(len(models), per_model).sum(1))
        total = torch.cat(values)
        if self.reduction == "sum":
            return total
        return total / torch.cat(counts).clamp_min(1)

    def _groups(self) -> list[tuple[list[int], Callable[..., Tensor]]]:
        """Neighbouring models that share one call of a loss; one that draws is called per model."""
        groups = []
        for mapping, members in groupby(
            range(len(self.settings)), key=lambda model: dict(self.settings[model])
        ):
            options = dict(mapping)
            loss = losses.get(options.pop("name"))
            models = list(members)
            if "generator" in inspect.signature(loss).parameters:
                groups += [
                    ([m], partial(loss, **options, generator=self.generators[m])) for m in models
                ]
            else:
                groups.append((models, partial(loss, **options)))
        return groups


def _padded_loss(
    loss: Callable[..., Tensor],
    scores: Tensor,
    labels: Tensor,
    starts: np.ndarray,
    lengths: np.ndarray,
) -> tuple[Tensor, Tensor]:
    """The loss ``[B]`` of each list, and 1 or 0 where it has a relevant document or not."""
    values, relevant, order = [], [], []
    for group in buckets(lengths):
        rows = torch.from_numpy(concatenated_ranges(starts[group], lengths[group]))
        rows = rows.to(scores.device)
        mask, index = padded_positions(torch.from_numpy(lengths[group]).to(scores.device))
        padded_labels = pad(labels[rows], mask, index)
        values.append(loss(pad(scores[rows], mask, index), padded_labels, mask))
        relevant.append(((padded_labels > 0) & mask).any(1))
        order.append(group)
    back = torch.from_numpy(np.argsort(np.concatenate(order))).to(scores.device)
    return torch.cat(values)[back], torch.cat(relevant)[back].to(scores.dtype)
