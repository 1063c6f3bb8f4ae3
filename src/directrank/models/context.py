"""The context-aware ranker of Pobrotyn2021, section 5.2: self-attention over a query's documents.

The architecture is that of Pobrotyn et al. (2020). Details that the papers leave open follow the
authors' released code: pre-norm blocks and no positional encoding, so a permutation of a list
permutes its scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from directrank.lists.documents import Documents, copied
from directrank.lists.draws import Counters
from directrank.lists.flat import DeviceFlat
from directrank.models.compiled import CompiledPass
from directrank.models.context_layers import Block, PaddedLists, PaddedOnDevice, StackedLayerNorm
from directrank.models.dropout import Dropout, dropout_of
from directrank.models.encoder import Encoder
from directrank.models.outputs import output_activation
from directrank.models.stacked import StackedLinear, glorot_uniform
from directrank.system.errors import ConfigError

#: Documents per list, or the lists of a captured step.
Lengths: TypeAlias = np.ndarray | DeviceFlat | None


class ContextRanker(nn.Module):
    """A stack of context-aware rankers; see :func:`context` for the settings."""

    def __init__(
        self,
        input_layer: StackedLinear,
        blocks: Sequence[Block],
        norm: StackedLayerNorm,
        output: StackedLinear,
        activation: Callable[[Tensor], Tensor],
        dropout: float,
    ) -> None:
        super().__init__()
        self.input = input_layer
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm
        self.output = output
        self.activation = activation
        self.dropout = dropout
        self.encoder = Encoder(input_layer, blocks, norm, output)

    #: A training step may be captured in a CUDA graph.
    capturable = True

    #: A document's score depends on the other documents of its query.
    sees_lists = True

    @property
    def compiled(self) -> bool:
        """Whether compiled loops compute training steps."""
        return self.encoder.available

    def compiled_pass(
        self, features: Tensor | Documents, lengths: np.ndarray, counters: Counters | None
    ) -> CompiledPass | None:
        """A pass from which gradients are had without autograd; None where loops cannot be used.

        Arguments are as in :meth:`forward`.
        """
        if not self.encoder.accept(features):
            return None
        dropout = self._dropout(counters, lengths, features.shape[1])
        return replace(self.encoder.begin(features, lengths, dropout), activation=self.activation)

    def _dropout(
        self, counters: Counters | None, lengths: np.ndarray | DeviceFlat, rows: int
    ) -> Dropout | None:
        """Dropout of a pass; None if nothing is dropped."""
        if not (self.training and self.dropout):
            return None
        return dropout_of(self.dropout, counters, lengths, len(self.output.weight), rows)

    def forward(
        self,
        features: Tensor | Documents,
        rows: Tensor | None = None,
        lengths: Lengths = None,
        counters: Counters | None = None,
    ) -> Tensor:
        """Scores ``[M, N]`` of ``features`` ``[M, N, F]`` or ``[1, N, F]``.

        Args:
            features: packed documents of whole lists, list by list, padding last.
            rows: bool ``[M, N]``, True for a real document; None if all are.
            lengths: int ``[M, B]`` or ``[1, B]``, documents per list; None if each model's
                documents form one list; or the lists of a captured step.
            counters: of the lists of all models, for dropout in training.

        Raises:
            ValueError: counters for dropout are missing.
        """
        n = features.shape[1]
        if lengths is None:
            lengths = (
                np.full((1, 1), n) if rows is None else rows.sum(1, keepdim=True).cpu().numpy()
            )
        dropout = self._dropout(counters, lengths, n)
        if isinstance(lengths, np.ndarray) and self.encoder.accept(features):
            return self.activation(self.encoder(features, lengths, dropout))
        x, models = self.input(copied(features)), len(self.output.weight)
        lists: PaddedLists | PaddedOnDevice
        if isinstance(lengths, DeviceFlat):
            lists = PaddedOnDevice(lengths, models, n)
        else:
            lists = PaddedLists(lengths, models, n, x.device)
        for block in self.blocks:
            x = block(x, lists, dropout)
        return self.activation(self.output(self.norm(x))).squeeze(-1)


def context(
    n_features: int,
    generators: Sequence[torch.Generator],
    *,
    width: int = 96,
    blocks: int = 2,
    heads: int = 1,
    inner: int = 384,
    dropout: float = 0.1,
    output: str = "linear",
) -> ContextRanker:
    """Context-aware rankers, one per generator.

    Args:
        n_features: F.
        generators: one random stream per model, for weights (Xavier-uniform; biases start at
            zero).
        width: the width to which a document's features are projected, without activation; 96 on
            Web30K and 128 on Istella.
        blocks: number of encoder blocks.
        heads: attention heads per block; they divide the width.
        inner: hidden width of a block's feed-forward part, the paper's "hidden dimension".
        dropout: probability of dropping a weight of the attention, a hidden value of the
            feed-forward part or a value that a block adds (0.1 in the released configurations).
        output: ``tanh`` (for NeuralNDCG) or ``linear``.

    Raises:
        ConfigError: the settings are not valid.
    """
    if heads < 1 or width % heads:
        raise ConfigError(
            f"model 'context': a width of {width} cannot be shared by {heads} heads",
            "choose a multiple of the number of heads",
        )
    if not 0 <= dropout < 1:
        raise ConfigError(f"model 'context': dropout is {dropout}", "choose a rate in [0, 1)")
    first = StackedLinear(glorot_uniform(generators, n_features, width))
    stages = [Block(generators, width, heads, inner) for _ in range(blocks)]
    last = StackedLinear(glorot_uniform(generators, width, 1))
    return ContextRanker(
        first,
        stages,
        StackedLayerNorm(len(generators), width),
        last,
        output_activation(output),
        dropout,
    )
