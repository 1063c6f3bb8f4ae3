"""The two layer nets of Burges2006, section 6: hidden tanh units and a linear output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from directrank.lists.draws import Counters
from directrank.models.stacked import StackedLinear, glorot_uniform


class TwoLayer(nn.Module):
    """A stack of networks with one hidden layer; see :func:`two_layer` for the settings."""

    #: A training step may be captured in a CUDA graph.
    capturable = True

    def __init__(self, hidden: StackedLinear, output: StackedLinear) -> None:
        super().__init__()
        self.hidden = hidden
        self.output = output

    def forward(
        self,
        features: Tensor,
        rows: Tensor | None = None,
        lengths: np.ndarray | None = None,
        counters: Counters | None = None,
    ) -> Tensor:
        """Scores ``[M, N]`` of ``features`` ``[M, N, F]`` or ``[1, N, F]``."""
        return self.output(torch.tanh(self.hidden(features))).squeeze(-1)


def two_layer(
    n_features: int, generators: Sequence[torch.Generator], *, hidden: int = 10
) -> TwoLayer:
    """Networks ``s = v · tanh(W x + b)``, one per generator.

    The paper gives the number of hidden nodes and not their nonlinearity. The output has no bias:
    it cannot change a ranking, and forces that sum to zero never move it.

    Args:
        n_features: F.
        generators: one random stream per model; weights are Glorot-uniform, biases zero.
        hidden: hidden units (paper: 10).
    """
    return TwoLayer(
        StackedLinear(glorot_uniform(generators, n_features, hidden)),
        StackedLinear(glorot_uniform(generators, hidden, 1), bias=False),
    )
