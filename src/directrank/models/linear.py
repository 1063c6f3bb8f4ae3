"""The linear scorer s = w·x of Qin2010 and Burges2006."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from directrank.lists.draws import Counters
from directrank.models.stacked import StackedLinear, glorot_uniform, uniform


class Linear(nn.Module):
    """A stack of linear scorers; see :func:`linear` for the settings."""

    #: A training step may be captured in a CUDA graph.
    capturable = True

    #: ``features`` may be ``[G, N, F]`` where M / G neighbouring models each share their documents.
    shares_documents = True

    def __init__(self, layer: StackedLinear) -> None:
        super().__init__()
        self.layer = layer

    def forward(
        self,
        features: Tensor,
        rows: Tensor | None = None,
        lengths: np.ndarray | None = None,
        counters: Counters | None = None,
    ) -> Tensor:
        """Scores ``[M, N]`` of ``features`` ``[M, N, F]`` or ``[G, N, F]``."""
        return self.layer(features).squeeze(-1)


def linear(
    n_features: int,
    generators: Sequence[torch.Generator],
    *,
    bias: bool = False,
    init_bound: float | None = 1.0,
) -> Linear:
    """Linear scorers, one per generator.

    Args:
        n_features: F.
        generators: one random stream per model.
        bias: add a bias; it cannot change a ranking.
        init_bound: weights start from U(-init_bound, init_bound), which Qin2010 leaves open;
            None starts from Glorot's uniform distribution.
    """
    if init_bound is None:
        weight = glorot_uniform(generators, n_features, 1)
    else:
        weight = uniform(generators, n_features, 1, init_bound)
    return Linear(StackedLinear(weight, bias=bias))
