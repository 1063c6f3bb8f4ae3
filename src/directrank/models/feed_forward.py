"""The feed-forward scorers of Yu2020, section 6.2: R5, CE5, R4.L and CE4.L.

The name states the activation (R for ReLU, CE for CELU) and whether it also follows the last layer:
R5 has it after all five layers, R4.L after four. Differences between the released code and the
printed description are separate settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from directrank.lists.documents import Documents, copied
from directrank.lists.draws import Counters
from directrank.lists.flat import DeviceFlat
from directrank.models.activations import ACTIVATIONS, Activations
from directrank.models.compiled import CompiledPass
from directrank.models.dropout import Dropout, dropout_of
from directrank.models.query_layers import QueryLayers
from directrank.models.query_norm import QueryNorm, Segments
from directrank.models.stacked import StackedBatchNorm, StackedLinear
from directrank.system.errors import ConfigError
from directrank.system.registry import nearest

NORMS = ("query", "batch")


class FeedForward(nn.Module):
    """A stack of feed-forward scorers; see :func:`feed_forward` for the settings."""

    def __init__(
        self,
        layers: Sequence[StackedLinear],
        norms: Sequence[QueryNorm | StackedBatchNorm],
        activations: Activations,
        dropout: float,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norms = nn.ModuleList(norms)
        self.dropout = dropout
        self.activations = activations
        of_queries = [norm for norm in norms if isinstance(norm, QueryNorm)]
        #: Whether a document's score depends on the other documents of its query.
        self.sees_lists = bool(of_queries)
        #: All layers, if their norms take the statistics of each query.
        self.by_query: QueryLayers | None = None
        name, after_last = activations.name, activations.after_last
        if of_queries and name is not None and after_last is not None:
            self.by_query = QueryLayers(layers, of_queries, name == "celu", after_last)

    #: A training step may be captured in a CUDA graph.
    capturable = True

    @property
    def compiled(self) -> bool:
        """Whether compiled loops compute training steps."""
        return self.by_query is not None and self.by_query.available

    def compiled_pass(
        self, features: Tensor | Documents, lengths: np.ndarray, counters: Counters | None
    ) -> CompiledPass | None:
        """A pass from which gradients are had without autograd; None where loops cannot be used.

        Arguments are as in :meth:`forward`.
        """
        if self.by_query is None or not self.by_query.accept(features):
            return None
        dropout = self._dropout(counters, lengths, features.shape[1])
        return self.by_query.begin(features, lengths, dropout)

    def _dropout(
        self, counters: Counters | None, lengths: np.ndarray | DeviceFlat | None, rows: int
    ) -> Dropout | None:
        """Dropout of a pass; None if nothing is dropped."""
        if not (self.training and self.dropout):
            return None
        if lengths is None:
            lengths = np.full((1, 1), rows)
        models = len(next(self.parameters()))
        return dropout_of(self.dropout, counters, lengths, models, rows)

    def forward(
        self,
        features: Tensor | Documents,
        rows: Tensor | None = None,
        lengths: np.ndarray | DeviceFlat | None = None,
        counters: Counters | None = None,
    ) -> Tensor:
        """Scores ``[M, N]`` of ``features`` ``[M, N, F]`` or ``[1, N, F]``.

        Args:
            features: documents of whole queries, in their order.
            rows: bool ``[M, N]``, True for a real document; None if all are.
            lengths: int ``[M, B]`` or ``[1, B]``, documents per query.
            counters: of the queries of all models, for dropout in training.

        Raises:
            ValueError: ``lengths`` are missing although queries have their own statistics, or
                counters for dropout.
        """
        segments: Segments | DeviceFlat | None = None
        weight = next(self.parameters())
        if self.sees_lists:
            if lengths is None:
                raise ValueError("norm 'query' needs to know the documents of each query")
            loops = self.by_query
            if isinstance(lengths, np.ndarray) and loops is not None and loops.accept(features):
                dropout = self._dropout(counters, lengths, features.shape[1])
                return loops(features, lengths, dropout)
            if isinstance(lengths, DeviceFlat):
                segments = lengths
            else:
                segments = Segments.of(lengths, len(weight), features.shape[1], weight.device)
        dropout = self._dropout(counters, lengths, features.shape[1])
        x, last = copied(features), len(self.layers) - 1
        for number, layer in enumerate(self.layers):
            if dropout is not None and 0 < number < last:
                x = x * dropout.of_rows(x).to(x.dtype)
            x = layer(x)
            if number < len(self.norms):
                norm = self.norms[number]
                x = norm(x, segments if isinstance(norm, QueryNorm) else rows)
            x = self.activations(x, number == last)
        return x.squeeze(-1)


def feed_forward(
    n_features: int,
    generators: Sequence[torch.Generator],
    *,
    activation: str | Sequence[str],
    output_activation: bool | Sequence[bool],
    hidden: Sequence[int] = (100, 100, 100, 100),
    norm: str = "query",
    output_norm: bool = True,
    dropout: float = 0.01,
    epsilon: float = 1e-5,
    decay: float = 0.9,
) -> FeedForward:
    """Feed-forward scorers, one per generator: per layer linear, normalisation, activation.

    R5 is ``relu`` with ``output_activation``, R4.L ``relu`` without, CE5 and CE4.L likewise.

    Args:
        n_features: F.
        generators: one random stream per model, for weights (Glorot-normal, as in the released
            code; biases start at zero).
        activation: ``relu`` or ``celu`` (α = 1); that of each model if they differ.
        output_activation: whether the activation also follows the last layer, likewise.
        hidden: widths of the hidden layers.
        norm: ``query`` takes the statistics of each query alone, in training and in scoring, which
            with one query per step is the batch norm of the released code; ``batch`` takes those of
            all documents of a step, and running ones in scoring.
        output_norm: normalise the score as well, before its activation, as the released code does;
            the paper speaks of batch normalisation "between consecutive layers" only.
        dropout: rate before each hidden layer except the first; the paper does not mention it.
        epsilon: added to the variance.
        decay: of ``batch``, weight of the old running statistic.

    Raises:
        ConfigError: an unknown activation or norm, or no such dropout rate.
    """
    names = [activation] if isinstance(activation, str) else activation
    for name in names:
        if name not in ACTIVATIONS:
            raise ConfigError(f"no activation '{name}'", nearest(name, ACTIVATIONS))
    if norm not in NORMS:
        raise ConfigError(f"no norm '{norm}'", nearest(norm, NORMS))
    if not 0 <= dropout < 1:
        raise ConfigError(f"a dropout rate lies in [0, 1), not at {dropout}")
    models = len(generators)
    widths = [n_features, *hidden, 1]
    normed = widths[1:] if output_norm else widths[1:-1]
    layers = [
        # A norm's mean takes a bias before it away.
        StackedLinear(_glorot_normal(generators, fan_in, fan_out), bias=number >= len(normed))
        for number, (fan_in, fan_out) in enumerate(pairwise(widths))
    ]
    norms = [
        QueryNorm(models, width, epsilon)
        if norm == "query"
        else StackedBatchNorm(models, width, decay, epsilon)
        for width in normed
    ]
    after_last = [output_activation] if isinstance(output_activation, bool) else output_activation
    return FeedForward(layers, norms, Activations(names, after_last), dropout)


def _glorot_normal(generators: Sequence[torch.Generator], fan_in: int, fan_out: int) -> Tensor:
    """Weights ``[M, fan_in, fan_out]`` from N(0, 2 / (fan_in + fan_out)), one stream per model."""
    deviation = (2 / (fan_in + fan_out)) ** 0.5
    return torch.stack([torch.randn(fan_in, fan_out, generator=g) for g in generators]) * deviation
