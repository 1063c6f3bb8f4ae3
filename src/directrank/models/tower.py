"""The batch-normalised ReLU towers of Bruch2019, sections 3.2 to 3.5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from directrank.lists.draws import Counters
from directrank.models.outputs import output_activation
from directrank.models.stacked import StackedBatchNorm, StackedLinear, glorot_uniform


class Tower(nn.Module):
    """A stack of feed-forward scorers; see :func:`tower` for the settings."""

    #: A training step may be captured in a CUDA graph.
    capturable = True

    def __init__(
        self,
        input_norm: StackedBatchNorm | None,
        hidden: Sequence[StackedLinear],
        norms: Sequence[StackedBatchNorm],
        output: StackedLinear,
        activation: Callable[[Tensor], Tensor],
    ) -> None:
        super().__init__()
        self.input_norm = input_norm
        self.hidden = nn.ModuleList(hidden)
        self.norms = nn.ModuleList(norms)
        self.output = output
        self.activation = activation

    def forward(
        self,
        features: Tensor,
        rows: Tensor | None = None,
        lengths: np.ndarray | None = None,
        counters: Counters | None = None,
    ) -> Tensor:
        """Scores ``[M, N]`` of ``features`` ``[M, N, F]``; ``rows`` marks the real documents."""
        x = features if self.input_norm is None else self.input_norm(features, rows)
        for layer, norm in zip(self.hidden, self.norms, strict=True):
            x = torch.relu(norm(layer(x), rows))
        return self.activation(self.output(x)).squeeze(-1)


def tower(
    n_features: int,
    generators: Sequence[torch.Generator],
    *,
    hidden: Sequence[int],
    input_norm: bool = True,
    decay: float = 0.99,
    epsilon: float = 1e-3,
    output: str = "linear",
) -> Tower:
    """Feed-forward scorers, one per generator: Dense, batch norm, ReLU per hidden layer; Dense(1).

    Args:
        n_features: F.
        generators: one random stream per model.
        hidden: widths of the hidden layers, e.g. ``[64, 32, 16]`` for B64.
        input_norm: batch-normalise the raw features, as the paper does in place of scaling them.
        decay: weight of the old running statistic in batch norm (TensorFlow's "momentum").
        epsilon: batch norm's epsilon; TensorFlow's default.
        output: ``linear``, or ``tanh`` as Pobrotyn2021 has it for NeuralNDCG.
    """
    models = len(generators)
    widths = [n_features, *hidden]
    layers = [
        StackedLinear(glorot_uniform(generators, fan_in, fan_out), bias=False)
        for fan_in, fan_out in pairwise(widths)
    ]
    return Tower(
        StackedBatchNorm(models, n_features, decay, epsilon) if input_norm else None,
        layers,
        [StackedBatchNorm(models, width, decay, epsilon) for width in hidden],
        StackedLinear(glorot_uniform(generators, widths[-1], 1)),
        output_activation(output),
    )
