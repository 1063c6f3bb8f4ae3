"""The training objective of a stack of models: padded losses over packed scores."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank import losses
from directrank.lists import concatenated_ranges, pad, padded_positions
from directrank.training.batches import buckets


@dataclass(frozen=True)
class Call:
    """One call of a loss for neighbouring models of a stack.

    Attributes:
        first, last: the models ``first … last - 1``.
        loss: the loss with the hyper-parameters that these models share.
        varied: hyper-parameters in which they differ, float64 ``[last - first]`` each.
    """

    first: int
    last: int
    loss: Callable[..., Tensor]
    varied: Mapping[str, Tensor] = field(default_factory=dict)


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
        for call in self._calls:
            lists = slice(call.first * per_model, call.last * per_model)
            value, relevant = _padded_loss(call, scores, labels, starts[lists], lengths[lists])
            values.append(value.view(-1, per_model).sum(1))
            counts.append(relevant.view(-1, per_model).sum(1))
        total = torch.cat(values)
        if self.reduction == "sum":
            return total
        return total / torch.cat(counts).clamp_min(1)

    @cached_property
    def _calls(self) -> list[Call]:
        """As few calls as the losses allow; a loss that draws is called once per model."""
        calls = []
        for key, members in groupby(range(len(self.settings)), key=self._shared):
            models = list(members)
            options = dict(key)
            loss = losses.get(options.pop("name"))
            if "generator" in inspect.signature(loss).parameters:
                calls += [
                    Call(m, m + 1, partial(loss, **options, generator=self.generators[m]))
                    for m in models
                ]
                continue
            names = self.settings[models[0]].keys() - key.keys()
            varied = {
                name: torch.tensor([self.settings[m][name] for m in models], dtype=torch.float64)
                for name in sorted(names)
            }
            calls.append(Call(models[0], models[-1] + 1, partial(loss, **options), varied))
        return calls

    def _shared(self, model: int) -> dict[str, Any]:
        """The settings that models of one call must share: those that take no tensor."""
        settings = self.settings[model]
        parameters = inspect.signature(losses.get(settings["name"])).parameters
        return {
            name: value
            for name, value in settings.items()
            if name == "name" or "Tensor" not in str(parameters[name].annotation)
        }


def _padded_loss(
    call: Call, scores: Tensor, labels: Tensor, starts: np.ndarray, lengths: np.ndarray
) -> tuple[Tensor, Tensor]:
    """The loss ``[B]`` of each list, and 1 or 0 where it has a relevant document or not."""
    per_model = len(lengths) // (call.last - call.first)
    values, relevant, order = [], [], []
    for group in buckets(lengths):
        rows = torch.from_numpy(concatenated_ranges(starts[group], lengths[group]))
        rows = rows.to(scores.device)
        mask, index = padded_positions(torch.from_numpy(lengths[group]).to(scores.device))
        padded_labels = pad(labels[rows], mask, index)
        models = torch.from_numpy(group // per_model)
        varied = {name: value[models, None].to(scores) for name, value in call.varied.items()}
        values.append(call.loss(pad(scores[rows], mask, index), padded_labels, mask, **varied))
        relevant.append(((padded_labels > 0) & mask).any(1))
        order.append(group)
    back = torch.from_numpy(np.argsort(np.concatenate(order))).to(scores.device)
    return torch.cat(values)[back], torch.cat(relevant)[back].to(scores.dtype)
