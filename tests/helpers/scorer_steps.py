"""Steps of scorers whose layers compiled loops compute."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from directrank.lists.draws import Counters
from directrank.system.seeds import derive_seed, torch_stream


def counters(models: int, lists: int, step: int = 1, first: int = 0) -> Counters:
    """Random numbers of a step for so many lists of each of some models from ``first`` on."""
    seeds = [derive_seed("dropout", first + number) for number in range(models)]
    return Counters.of_models(torch.tensor(seeds), torch.tensor([step]), lists)


def step(model: nn.Module, x, rows, lengths) -> dict[str, torch.Tensor]:
    """Scores of real documents (all are if ``rows`` is None) and the gradients of a step."""
    drawn = counters(len(next(model.parameters())), np.shape(lengths)[1])
    scores = model(x, rows, lengths, drawn)
    if rows is not None:
        scores = torch.where(rows, scores, 0)
    weights = torch.randn(scores.shape, generator=torch_stream("weights")).to(scores)
    gradients = torch.autograd.grad((scores * weights).sum(), list(model.parameters()))
    names = [name for name, _ in model.named_parameters()]
    return dict(zip(names, gradients, strict=True)) | {"scores": scores.detach()}


def documents_seen(layers: type, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of documents per model that pass through ``layers`` in loops, from the first on."""
    seen: list[int] = []

    def spy(self, x, *others, call=layers.__call__):
        seen.append(x.shape[1])
        return call(self, x, *others)

    monkeypatch.setattr(layers, "__call__", spy)
    return seen
