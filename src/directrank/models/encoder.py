"""The context-aware ranker, computed some lists at a time for training and scoring on a CPU.

The documents of a few lists fit into the cache, and pass through all layers at once. The threads
are those of :mod:`directrank.kernels.threads`; sums of lists are added in order, so that no result
depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from directrank.kernels.philox import bits_for
from directrank.lists.documents import Documents
from directrank.lists.draws import FACTORS
from directrank.models.compiled import (
    CompiledLayers,
    CompiledPass,
    dropping_of,
    flattened,
    lengths_of_models,
    table_and_rows,
)
from directrank.models.context_layers import Block, StackedLayerNorm
from directrank.models.dropout import Dropout
from directrank.models.query_norm import documents_of
from directrank.models.stacked import StackedLinear

if TYPE_CHECKING:
    from directrank.kernels.encoder import Arrays

#: The widest documents and hidden layers that are computed some lists at a time. PyTorch divides
#: the products of wider ones among threads.
WIDEST = 1024

#: The most chunks into which a model's lists are divided. Each has its own gradient.
MOST_CHUNKS = 16


class Encoder(CompiledLayers):
    """All layers of context-aware rankers up to the score.

    Args:
        input_layer: from features to the documents' width.
        blocks: of the encoder.
        norm: before the output.
        output: of one score per document.
    """

    def __init__(
        self,
        input_layer: StackedLinear,
        blocks: Sequence[Block],
        norm: StackedLayerNorm,
        output: StackedLinear,
    ) -> None:
        modules: list[nn.Module] = [input_layer]
        for block in blocks:
            attention = block.attention
            modules += [block.attention_norm, attention.project, attention.output]
            modules += [block.norm, block.widen, block.narrow]
        modules += [norm, output]
        self.layers = len(blocks)
        self.heads = blocks[0].attention.heads if blocks else 1
        self.width = output.weight.shape[1]
        self.inner = blocks[0].widen.weight.shape[2] if blocks else 0
        # In the order of directrank.kernels.encoder.OF_HALF.
        super().__init__(modules, max(self.width, self.inner) <= WIDEST)

    def begin(
        self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None
    ) -> CompiledPass:
        """See :meth:`.CompiledLayers.begin`; documents that are in no list get zeros."""
        from directrank.kernels import encoder as kernels

        arrays = self._arrays(x, lengths, dropout)
        complete = bool((arrays.first[:-1] < arrays.first[1:]).all())
        work = arrays.y.size * max(3 * self.width, self.inner)
        return CompiledPass(kernels, arrays, self.sizes, work, complete)

    def _arrays(
        self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None
    ) -> Arrays:
        """A step in the form that kernels take, with room for their results."""
        from directrank.kernels.encoder import BLOCK, Arrays, cut

        parameters = flattened(self.parameters)
        models, N, dtype = len(self.parameters[0]), x.shape[1], parameters.dtype
        lengths = lengths_of_models(lengths, models)
        documents_of(lengths, N)
        features, rows = table_and_rows(x, models)
        gradient_needed = torch.is_grad_enabled()
        items, chunks, first, starts, pairs = cut(
            lengths, MOST_CHUNKS if gradient_needed else lengths.size
        )
        kept = models * N if gradient_needed else 0
        of_pairs, at_bits, room = self._bits(lengths, N, BLOCK, dropout is not None)
        return Arrays(
            items=items,
            chunks=chunks,
            first=first,
            starts=starts,
            pairs=pairs,
            heads=self.heads,
            halves=2 * self.layers,
            x=features,
            rows=rows,
            width=self.width,
            inner=self.inner,
            parameters=parameters,
            before=self.sizes[:, 0],
            dropping=dropping_of(dropout, 4 * self.layers, room),
            at_bits=at_bits,
            of_pairs=of_pairs,
            kept=np.empty(kept * (self.layers * (6 * self.width + self.inner) + self.width), dtype),
            weights=np.empty(
                int(pairs[-1, -1]) * self.heads * self.layers if gradient_needed else 0, dtype
            ),
            inverse=np.empty(kept * (2 * self.layers + 1), dtype),
            y=np.zeros((models, N), dtype),
        )

    def _bits(
        self, lengths: np.ndarray, N: int, block: int, drops: bool
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """``of_pairs`` and ``at_bits`` of the arrays, and the room of all bits.

        Without dropout there is room for those of a single block or list.
        """
        of_lists = self.heads * lengths * 2 * -(-lengths // FACTORS)
        ends = of_lists.cumsum()
        of_pairs = ends.reshape(lengths.shape) - of_lists
        if not drops:
            most, longest = max(block, int(lengths.max(initial=0))), of_lists.max(initial=0)
            room = most * bits_for(max(self.width, self.inner))
            return of_pairs, np.empty((0, 2), np.int64), max(room, int(longest))
        result, hidden = (len(lengths) * N * bits_for(width) for width in (self.width, self.inner))
        sizes = np.tile([[int(ends[-1]) if ends.size else 0, result], [hidden, result]],
                        (self.layers, 1))  # fmt: skip
        after = sizes.cumsum().reshape(sizes.shape)
        return of_pairs, after - sizes, int(sizes.sum())
