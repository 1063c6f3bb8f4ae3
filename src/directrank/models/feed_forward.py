"""The feed-forward scorers of Yu2020, section 6.2: R5, CE5, R4.L and CE4.L.

The name states the activation (R for ReLU, CE for CELU) and whether it also follows the last layer:
R5 has it after all five layers, R4.L after four. Differences between the released code and the
printed description are separate settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise

import numpy as np
import torch
from torch import Tensor, nn

from directrank.lists.documents import Documents
from directrank.lists.flat import DeviceFlat
from directrank.models.blocks import in_blocks, relu_layers
from directrank.models.context_layers import CPU, CountedDropout, Dropout
from directrank.models.query_layers import QueryLayers
from directrank.models.query_norm import QueryNorm, Segments
from directrank.models.runs import Pass
from directrank.models.stacked import StackedBatchNorm, StackedLinear
from directrank.system.errors import ConfigError
from directrank.system.registry import nearest

ACTIVATIONS = {"relu": torch.relu, "celu": torch.celu}
NORMS = ("query", "batch")


class FeedForward(nn.Module):
    """A stack of feed-forward scorers; see :func:`feed_forward` for the settings.

    Attributes:
        generators: each model's random stream for dropout, on the CPU. Their state is part of the
            state of training.
    """

    def __init__(
        self,
        layers: Sequence[StackedLinear],
        norms: Sequence[QueryNorm | StackedBatchNorm],
        activation: str,
        output_activation: bool,
        dropout: float,
        generators: Sequence[torch.Generator],
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norms = nn.ModuleList(norms)
        self.dropout = dropout
        self.generators = list(generators)
        self.activation = ACTIVATIONS[activation]
        self.output_activation = output_activation
        #: All layers, if their norms take the statistics of each query.
        self.by_query: QueryLayers | None = None
        of_queries = [norm for norm in norms if isinstance(norm, QueryNorm)]
        if of_queries:
            self.by_query = QueryLayers(layers, of_queries, activation == "celu", output_activation)
        #: The first layers with their norms, if only batch norm and ReLU follow.
        self.plain: list[tuple[StackedLinear, StackedBatchNorm]] = []
        if activation == "relu" and not dropout:
            followed = layers if output_activation else layers[:-1]
            for layer, norm in zip(followed, norms, strict=False):
                if isinstance(norm, StackedBatchNorm):
                    self.plain.append((layer, norm))

    #: A training step may be captured in a CUDA graph.
    capturable = True

    @property
    def sees_lists(self) -> bool:
        """Whether a document's score depends on the other documents of its query."""
        return self.by_query is not None

    def in_loops(self, documents: float) -> bool:
        """Whether training steps with this many documents per model are mostly compiled loops."""
        if self.by_query is not None:
            return self.by_query.available
        return in_blocks(self.plain, documents)

    def begin_in_loops(self, features: Tensor | Documents, lengths: np.ndarray) -> Pass | None:
        """A pass from which gradients are had without autograd; None where loops cannot be used.

        Arguments are as in :meth:`forward`.
        """
        if self.by_query is None or not self.by_query.accept(features):
            return None
        return self.by_query.begin(features, lengths, self._dropout(CPU))

    def _dropout(self, device: torch.device) -> Dropout | None:
        """Dropout of a pass on this device; None if nothing is dropped."""
        if not (self.training and self.dropout):
            return None
        return Dropout(self.dropout, self.generators, device)

    def forward(
        self,
        features: Tensor | Documents,
        rows: Tensor | None = None,
        lengths: np.ndarray | DeviceFlat | None = None,
    ) -> Tensor:
        """Scores ``[M, N]`` of ``features`` ``[M, N, F]`` or ``[1, N, F]``.

        Args:
            features: documents of whole queries, in their order.
            rows: bool ``[M, N]``, True for a real document; None if all are.
            lengths: int ``[M, B]`` or ``[1, B]``, documents per query.

        Raises:
            ValueError: ``lengths`` are missing although queries have their own statistics.
        """
        segments: Segments | DeviceFlat | None = None
        weight = next(self.parameters())
        if self.by_query is not None:
            if lengths is None:
                raise ValueError("norm 'query' needs to know the documents of each query")
            if isinstance(lengths, np.ndarray) and self.by_query.accept(features):
                return self.by_query(features, lengths, self._dropout(CPU))
            if isinstance(lengths, DeviceFlat):
                segments = lengths
            else:
                segments = Segments.of(lengths, len(weight), features.shape[1], weight.device)
        known = lengths if isinstance(lengths, np.ndarray) else None
        dropout: Dropout | CountedDropout | None
        x, dropout = relu_layers(features, rows, known, self.plain), self._dropout(weight.device)
        if dropout is not None and isinstance(lengths, DeviceFlat):
            dropout = CountedDropout(self.dropout, lengths)
        first, last = len(self.plain), len(self.layers) - 1
        for number, layer in enumerate(islice(self.layers, first, None), first):
            if dropout is not None and 0 < number < last:
                x = _dropped(x, rows, known, dropout)
            x = layer(x)
            if number < len(self.norms):
                norm = self.norms[number]
                x = norm(x, segments if isinstance(norm, QueryNorm) else rows)
            if number < last or self.output_activation:
                x = self.activation(x)
        return x.squeeze(-1)


def _dropped(
    x: Tensor, rows: Tensor | None, lengths: np.ndarray | None, dropout: Dropout | CountedDropout
) -> Tensor:
    if isinstance(dropout, CountedDropout):
        return x * dropout.of_rows(None, *x.shape[1:]).to(x.dtype)
    # A model of a stack draws the same numbers as it would alone, so none for padding.
    models, n, width = x.shape
    totals = [n] * models
    if rows is not None:
        own = rows if lengths is None else np.broadcast_to(lengths, (models, lengths.shape[1]))
        totals = own.sum(1).tolist()
    return x * dropout.of_rows(totals, n, width).to(x.dtype)


def feed_forward(
    n_features: int,
    generators: Sequence[torch.Generator],
    *,
    activation: str,
    output_activation: bool,
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
            code; biases start at zero) and dropout.
        activation: ``relu`` or ``celu`` (α = 1).
        output_activation: whether the activation also follows the last layer.
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
    if activation not in ACTIVATIONS:
        raise ConfigError(f"no activation '{activation}'", nearest(activation, ACTIVATIONS))
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
    return FeedForward(layers, norms, activation, output_activation, dropout, generators)


def _glorot_normal(generators: Sequence[torch.Generator], fan_in: int, fan_out: int) -> Tensor:
    """Weights ``[M, fan_in, fan_out]`` from N(0, 2 / (fan_in + fan_out)), one stream per model."""
    deviation = (2 / (fan_in + fan_out)) ** 0.5
    return torch.stack([torch.randn(fan_in, fan_out, generator=g) for g in generators]) * deviation
