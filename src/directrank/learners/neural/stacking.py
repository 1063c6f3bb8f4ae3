"""How many models are trained in one pass, and models of which runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from directrank import models
from directrank.learners.neural.objective import needs_padding
from directrank.learners.neural.precision import weight_type

#: Bytes of a GPU's memory for what the steps of a stack compute. It is the same on every GPU, so
#: that a stack has the same models on each.
ROOM = 16 << 30

#: Numbers that a step keeps for a pair of documents, for a loss whose lists are padded.
PAIR_COPIES = 6


def across_runs(device: str) -> bool:
    """Whether stacks have models of several runs: on a GPU, most of which small steps leave idle.

    On a CPU a run's models are no faster with those of others.
    """
    return torch.device(device).type != "cpu"


def models_at_once(
    lengths: np.ndarray,
    n_features: int,
    model: Mapping[str, Any],
    losses: Sequence[Mapping[str, Any]],
    training: Mapping[str, Any],
    device: str,
) -> int:
    """How many models a stack may have, at least 1.

    On a CPU it is ``training["stack"]``, where 0 stands for all; on a GPU as many as have room.

    Args:
        lengths: the documents of the longest queries of the training set that make up a step.
        n_features: F.
        model: the scorer.
        losses: of all models that have the shape of the stack.
        training: complete training settings.
        device: where they are trained.
    """
    count = len(losses)
    if not across_runs(device):
        return training["stack"] or count
    scorer = models.build(model, n_features, [torch.Generator()])
    # A layer's outputs are as many as the columns of its weights, biases and norms each.
    outputs = sum(parameter.shape[-1] for parameter in scorer.parameters())
    longest, dtype = int(lengths.max()), weight_type(training["dtype"])
    pairs = PAIR_COPIES * len(lengths) * longest**2
    padded = sum(needs_padding(loss, longest, dtype, torch.device(device)) for loss in losses)
    numbers = count * int(lengths.sum()) * (n_features + outputs) + padded * pairs
    share = ROOM / (numbers * torch.empty(0, dtype=dtype).element_size())
    return max(1, min(int(count * share), count))
