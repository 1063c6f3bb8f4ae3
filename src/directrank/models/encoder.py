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

from directrank.lists.documents import Documents
from directrank.models.context_layers import Block, Dropout, StackedLayerNorm
from directrank.models.plans import flattened, lengths_of_models, table_and_rows
from directrank.models.query_norm import documents_of
from directrank.models.runs import LayersInLoops, Pass
from directrank.models.stacked import StackedLinear

if TYPE_CHECKING:
    from directrank.kernels.encoder import Plan

#: The widest documents and hidden layers that are computed some lists at a time. PyTorch divides
#: the products of wider ones among threads.
WIDEST = 1024

#: The most runs into which a model's lists are divided. Each has its own gradient.
MOST_RUNS = 16


class Encoder(LayersInLoops):
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

    def begin(self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None) -> Pass:
        """See :meth:`.LayersInLoops.begin`; documents that are in no list get zeros."""
        from directrank.kernels import encoder as kernels

        plan = self._plan(x, lengths, dropout)
        complete = bool((plan.first[:-1] < plan.first[1:]).all())
        work = plan.y.size * max(3 * self.width, self.inner)
        return Pass(kernels, plan, self.sizes, work, complete)

    def _plan(self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None) -> Plan:
        """A step in the form that kernels take, with room for their results."""
        from directrank.kernels.encoder import BLOCK, Plan, cut

        parameters = flattened(self.parameters)
        models, N, dtype = len(self.parameters[0]), x.shape[1], parameters.dtype
        lengths = lengths_of_models(lengths, models)
        documents = documents_of(lengths, N)
        features, rows = table_and_rows(x, models)
        gradient_needed = torch.is_grad_enabled()
        items, runs, first, starts, pairs = cut(
            lengths, MOST_RUNS if gradient_needed else lengths.size
        )
        kept = models * N if gradient_needed else 0
        if dropout is not None:
            drawn, at_drawn = self._drawn(dropout, documents, pairs)
        else:
            most = max(BLOCK, int(lengths.max(initial=0)))
            drawn = np.zeros(most * max(most, self.width, self.inner), np.int16)
            at_drawn = np.empty((0, 2, models), np.int64)
        return Plan(
            items=items,
            runs=runs,
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
            drawn=drawn,
            at_drawn=at_drawn,
            threshold=0 if dropout is None else dropout.threshold,
            factor=1.0 if dropout is None else dropout.scale,
            kept=np.empty(kept * (self.layers * (6 * self.width + self.inner) + self.width), dtype),
            weights=np.empty(
                int(pairs[-1, -1]) * self.heads * self.layers if gradient_needed else 0, dtype
            ),
            inverse=np.empty(kept * (2 * self.layers + 1), dtype),
            y=np.zeros((models, N), dtype),
        )

    def _drawn(
        self, dropout: Dropout, documents: np.ndarray, pairs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The numbers drawn for dropout, layer by layer, and where those of each model begin."""
        of_lists = self.heads * (pairs[:, -1] - pairs[:, 0])
        result, hidden = self.width * documents, self.inner * documents
        counts = np.tile(np.stack([of_lists, result, hidden, result]), (self.layers, 1))
        room = dropout.room(counts)
        ends = room.cumsum().reshape(counts.shape)
        drawn = np.empty(int(room.sum()), np.int16)
        starts = ends - room
        for row, model in np.ndindex(counts.shape):
            own = drawn[starts[row, model] : ends[row, model]]
            dropout.draw(model, torch.from_numpy(own))
        return drawn, starts.reshape(-1, 2, len(documents))
