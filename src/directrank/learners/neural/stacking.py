"""How many models are trained in one pass, and which losses can be in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from directrank import losses, models
from directrank.kernels.dispatch import device_of, has_triton
from directrank.learners.contract import Splits
from directrank.learners.neural.batches import uniform_by_document
from directrank.learners.neural.captured import power_of_two
from directrank.learners.neural.precision import weight_type
from directrank.lists.draws import Counters
from directrank.lists.flat import DeviceFlat, PaddingNeededError
from directrank.lists.inputs import examined_before

#: Bytes of a GPU's memory for what the steps of a stack compute. It is the same on every GPU, so
#: that a stack has the same models on each.
ROOM = 6 << 30

#: Numbers that a step keeps of an output of a layer, and of a pair of documents for a loss whose
#: lists are padded.
OUTPUT_COPIES, PAIR_COPIES = 2, 6


def across_runs(device: str) -> bool:
    """Whether stacks have models of several runs: on a GPU, most of which small steps leave idle.

    On a CPU a run's models are no faster with those of others.
    """
    return torch.device(device).type != "cpu"


def models_at_once(
    data: Splits,
    model: Mapping[str, Any],
    loss_settings: Sequence[Mapping[str, Any]],
    training: Mapping[str, Any],
    device: str,
) -> int:
    """How many models a stack may have, at least 1.

    It is ``training["stack"]``, where 0 stands for all models. Where that is not set, it is one on
    a CPU; on a GPU it is as many as have room there.

    Args:
        data: the splits.
        model: the scorer.
        loss_settings: of all models that have the shape of the stack.
        training: complete training settings.
        device: where they are trained.
    """
    stack, count = training["stack"], len(loss_settings)
    if not across_runs(device):
        return (1 if stack is None else stack) or count
    limit = training["max_documents"] or np.inf
    lengths = np.sort(np.minimum(data.train.lengths, limit))[-training["batch_queries"] :]
    scorer = models.build(model, data.train.n_features, [torch.Generator()])
    # A layer's outputs are as many as the columns of its weights, biases and norms.
    outputs = sum(parameter.shape[-1] for parameter in scorer.parameters())
    numbers = lengths.sum() * (data.train.n_features + OUTPUT_COPIES * outputs)
    if not takes_flat_lists(loss_settings[0], training["dtype"], data.train.lengths, device):
        numbers += PAIR_COPIES * len(lengths) * lengths[-1] ** 2
    size = torch.empty(0, dtype=weight_type(training["dtype"])).element_size()
    return max(1, min(int(ROOM // (numbers * size)), stack or count))


def takes_flat_lists(
    loss_settings: Mapping[str, Any], dtype: str, lengths: np.ndarray, device: str
) -> bool:
    """Whether a loss can be computed on a GPU without knowing the lengths of lists there.

    Only such losses can be in captured steps; others would keep those of their stack from it.

    Args:
        loss_settings: its name and hyper-parameters.
        dtype: the type of its numbers.
        lengths: those of the lists of the training set.
        device: the GPU.
    """
    options = dict(loss_settings)
    name = str(options.pop("name"))
    numbers = torch.zeros(1, dtype=weight_type(dtype), device=device)
    if device_of(numbers) != "cuda" or not has_triton():
        return False
    one = torch.tensor([0, 1], device=device)
    lists = DeviceFlat(one[None], power_of_two(int(np.max(lengths))), 1)
    if losses.needs_of(name).random(loss_settings):
        options["generator"] = Counters.of_models(one[:1], one[:1], 1, uniform_by_document)
    try:
        with examined_before():
            losses.get(name)(numbers, numbers, lists, **options)
    except PaddingNeededError:
        return False
    return True
