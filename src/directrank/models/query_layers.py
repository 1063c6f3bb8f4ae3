"""Layers with a norm per query, computed list by list for training and scoring on a CPU.

A list that fits into the cache passes through all layers at once. The threads are those of
:mod:`directrank.kernels.threads`; sums of lists are added in order, so that no result depends on
the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from directrank.kernels.philox import bits_for
from directrank.lists.documents import Documents
from directrank.models.compiled import (
    CompiledLayers,
    CompiledPass,
    dropping_of,
    flattened,
    lengths_of_models,
    table_and_rows,
)
from directrank.models.dropout import Dropout
from directrank.models.query_norm import QueryNorm, documents_of
from directrank.models.stacked import StackedLinear

if TYPE_CHECKING:
    from directrank.kernels.query_layers import Arrays

#: The widest layers that are computed list by list. PyTorch computes wider ones, as it divides the
#: products of a single list among threads.
WIDEST = 512

#: The most chunks into which a model's lists are divided. Each has its own gradient.
MOST_CHUNKS = 16


class QueryLayers(CompiledLayers):
    """Layers of dense, norm per query and activation, the last of which has one output.

    Args:
        layers: those with a norm have no bias.
        norms: of all layers, or of all but the last.
        celu: whether the activation is CELU with α = 1; otherwise it is ReLU.
        output_activation: whether the activation also follows the last layer.
    """

    def __init__(
        self,
        layers: Sequence[StackedLinear],
        norms: Sequence[QueryNorm],
        celu: bool,
        output_activation: bool,
    ) -> None:
        narrow = max(layer.weight.shape[2] for layer in layers) <= WIDEST
        super().__init__((*layers, *norms), narrow)
        place = dict(zip(map(id, self.parameters), self.sizes[:, 0].tolist(), strict=True))
        rows, columns, bits = [], 0, 0
        for number, layer in enumerate(layers):
            _, width_in, width = layer.weight.shape
            norm = norms[number] if number < len(norms) else None
            scale, shift = (-1, layer.bias) if norm is None else (place[id(norm.weight)], norm.bias)
            dropped = number - 1 if 0 < number < len(layers) - 1 else -1
            at_weight, at_shift = place[id(layer.weight)], place[id(shift)]
            rows.append([width_in, width, at_weight, scale, at_shift, columns, dropped, bits])
            columns += width
            bits += bits_for(width_in) if dropped >= 0 else 0
        #: See :class:`directrank.kernels.query_layers.Arrays`.
        self.layers = np.array(rows, np.int64)
        self.layers_without_dropout = self.layers.copy()
        self.layers_without_dropout[:, 6] = -1
        self.columns, self.bits = columns, bits
        self.widest = int(self.layers[:, :2].max())
        self.epsilon = norms[0].epsilon
        self.celu = celu
        self.active = len(layers) if output_activation else len(layers) - 1

    def begin(
        self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None
    ) -> CompiledPass:
        """See :meth:`.CompiledLayers.begin`; dropout is that of the inputs of all layers but the
        first and the last."""
        from directrank.kernels import query_layers as kernels

        arrays = self._arrays(x, lengths, dropout)
        complete = bool((arrays.lists[:, 1] < arrays.lists[:, 2]).all())
        work = arrays.y.size * self.widest
        return CompiledPass(kernels, arrays, self.sizes, work, complete)

    def _arrays(
        self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None
    ) -> Arrays:
        """A step in the form that kernels take, with room for their results."""
        from directrank.kernels.query_layers import Arrays, cut

        parameters = flattened(self.parameters)
        models, N, dtype = len(self.parameters[0]), x.shape[1], parameters.dtype
        lengths = lengths_of_models(lengths, models)
        documents_of(lengths, N)
        features, rows = table_and_rows(x, models)
        gradient_needed = torch.is_grad_enabled()
        lists, chunks, first = cut(lengths, MOST_CHUNKS if gradient_needed else lengths.shape[1])
        kept = models * N * self.columns if gradient_needed else 0
        drawn = dropping_of(dropout, max(len(self.layers) - 2, 0), models * N * self.bits)
        return Arrays(
            lists=lists,
            chunks=chunks,
            first=first,
            layers=self.layers_without_dropout if dropout is None else self.layers,
            epsilon=self.epsilon,
            celu=self.celu,
            active=self.active,
            x=features,
            rows=rows,
            parameters=parameters,
            dropping=drawn,
            standard=np.empty(kept, dtype),
            outputs=np.empty(kept, dtype),
            inverse=np.empty((len(lists) if gradient_needed else len(chunks), self.columns), dtype),
            y=np.zeros((models, N), dtype),
        )
