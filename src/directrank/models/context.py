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
from directrank.lists.flat import DeviceFlat
from directrank.models.context_layers import (
    AnyDropout,
    AnyLists,
    Block,
    CountedDropout,
    Dropout,
    Lists,
    ListsOnDevice,
    StackedLayerNorm,
)
from directrank.models.encoder import Encoder
from directrank.models.outputs import output_activation
from directrank.models.runs import Pass
from directrank.models.stacked import StackedLinear, glorot_uniform
from directrank.system.errors import ConfigError

#: Documents per list, or the lists of a captured step.
Lengths: TypeAlias = np.ndarray | DeviceFlat | None


class ContextRanker(nn.Module):
    """A stack of context-aware rankers; see :func:`context` for the settings.

    Attributes:
        generators: each model's random stream for dropout, on the CPU. Their state is part of the
            state of training.
    """

    def __init__(
        self,
        input_layer: StackedLinear,
        blocks: Sequence[Block],
        norm: StackedLayerNorm,
        output: StackedLinear,
        activation: Callable[[Tensor], Tensor],
        dropout: float,
        generators: Sequence[torch.Generator],
    ) -> None:
        super().__init__()
        self.input = input_layer
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm
        self.output = output
        self.activation = activation
        self.dropout = dropout
        self.generators = list(generators)
        self.encoder = Encoder(input_layer, blocks, norm, output)

    #: A training step may be captured in a CUDA graph.
    capturable = True

    #: A document's score depends on the other documents of its query.
    sees_lists = True

    def in_loops(self, documents: float) -> bool:
        """Whether training steps are mostly compiled loops."""
        return self.encoder.available

    def begin_in_loops(self, features: Tensor | Documents, lengths: np.ndarray) -> Pass | None:
        """A pass from which gradients are had without autograd; None where loops cannot be used.

        Arguments are as in :meth:`forward`.
        """
        if not self.encoder.accept(features):
            return None
        begun = self.encoder.begin(features, lengths, self._dropout())
        return replace(begun, activation=self.activation)

    def _dropout(self) -> Dropout | None:
        """Dropout of this pass; None if nothing is dropped."""
        if not (self.training and self.dropout):
            return None
        return Dropout(self.dropout, self.generators, self.output.weight.device)

    def forward(
        self,
        features: Tensor | Documents,
        rows: Tensor | None = None,
        lengths: Lengths = None,
    ) -> Tensor:
        """Scores ``[M, N]`` of ``features`` ``[M, N, F]`` or ``[1, N, F]``.

        Args:
            features: packed documents of whole lists, list by list, padding last.
            rows: bool ``[M, N]``, True for a real document; None if all are.
            lengths: int ``[M, B]`` or ``[1, B]``, documents per list; None if each model's
                documents form one list; or the lists of a captured step.
        """
        n = features.shape[1]
        if lengths is None:
            lengths = (
                np.full((1, 1), n) if rows is None else rows.sum(1, keepdim=True).cpu().numpy()
            )
        device, dropout = self.output.weight.device, self._dropout()
        if isinstance(lengths, np.ndarray) and self.encoder.accept(features):
            return self.activation(self.encoder(features, lengths, dropout))
        x = self.input(copied(features))
        if isinstance(lengths, DeviceFlat):
            counted = None if dropout is None else CountedDropout(self.dropout, lengths)
            x = self._through(x, ListsOnDevice(lengths, len(x), n), counted)
        else:
            x = self._through(x, Lists(lengths, len(x), n, device), dropout)
        return self.activation(self.output(self.norm(x))).squeeze(-1)

    def _through(self, x: Tensor, lists: AnyLists, dropout: AnyDropout | None) -> Tensor:
        """``x`` after all blocks."""
        for block in self.blocks:
            x = block(x, lists, dropout)
        return x


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
            zero) and dropout.
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
        generators,
    )
