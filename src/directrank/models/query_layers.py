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

from directrank.lists.documents import Documents
from directrank.models.context_layers import Dropout
from directrank.models.plans import flattened, lengths_of_models, table_and_rows
from directrank.models.query_norm import QueryNorm, documents_of
from directrank.models.runs import LayersInLoops, Pass
from directrank.models.stacked import StackedLinear

if TYPE_CHECKING:
    from directrank.kernels.query_layers import Plan

#: The widest layers that are computed list by list. PyTorch computes wider ones, as it divides the
#: products of a single list among threads.
WIDEST = 512

#: The most runs into which a model's lists are divided. Each has its own gradient.
MOST_RUNS = 16


class QueryLayers(LayersInLoops):
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
        rows, columns = [], 0
        for number, layer in enumerate(layers):
            _, width_in, width = layer.weight.shape
            norm = norms[number] if number < len(norms) else None
            scale, shift = (-1, layer.bias) if norm is None else (place[id(norm.weight)], norm.bias)
            dropped = number - 1 if 0 < number < len(layers) - 1 else -1
            at_weight, at_shift = place[id(layer.weight)], place[id(shift)]
            rows.append([width_in, width, at_weight, scale, at_shift, columns, dropped])
            columns += width
        #: See :class:`directrank.kernels.query_layers.Plan`.
        self.layers = np.array(rows, np.int64)
        self.layers_without_dropout = self.layers.copy()
        self.layers_without_dropout[:, 6] = -1
        self.columns = columns
        self.widest = int(self.layers[:, :2].max())
        self.epsilon = norms[0].epsilon
        self.celu = celu
        self.active = len(layers) if output_activation else len(layers) - 1

    def begin(self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None) -> Pass:
        """See :meth:`.LayersInLoops.begin`; dropout is that of the inputs of all layers but the
        first and the last."""
        from directrank.kernels import query_layers as kernels

        plan = self._plan(x, lengths, dropout)
        complete = bool((plan.lists[:, 1] < plan.lists[:, 2]).all())
        work = plan.y.size * self.widest
        return Pass(kernels, plan, self.sizes, work, complete)

    def _plan(self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None) -> Plan:
        """A step in the form that kernels take, with room for their results."""
        from directrank.kernels.query_layers import Plan, cut

        parameters = flattened(self.parameters)
        models, N, dtype = len(self.parameters[0]), x.shape[1], parameters.dtype
        lengths = lengths_of_models(lengths, models)
        documents = documents_of(lengths, N)
        features, rows = table_and_rows(x, models)
        gradient_needed = torch.is_grad_enabled()
        lists, runs, first = cut(lengths, MOST_RUNS if gradient_needed else lengths.shape[1])
        kept = models * N * self.columns if gradient_needed else 0
        drawn = np.empty((0, 0), np.int16)
        if dropout is not None:
            drawn = self._drawn(dropout, documents)
        return Plan(
            lists=lists,
            runs=runs,
            first=first,
            layers=self.layers_without_dropout if dropout is None else self.layers,
            epsilon=self.epsilon,
            celu=self.celu,
            active=self.active,
            x=features,
            rows=rows,
            parameters=parameters,
            drawn=drawn,
            threshold=0 if dropout is None else dropout.threshold,
            factor=1.0 if dropout is None else dropout.scale,
            standard=np.empty(kept, dtype),
            outputs=np.empty(kept, dtype),
            inverse=np.empty((len(lists) if gradient_needed else len(runs), self.columns), dtype),
            y=np.zeros((models, N), dtype),
        )

    def _drawn(self, dropout: Dropout, documents: np.ndarray) -> np.ndarray:
        """The numbers drawn for the inputs of each model's ``documents``, layer by layer."""
        widths = self.layers[self.layers[:, 6] >= 0, 0]
        counts = dropout.room(np.outer(widths, documents).ravel())
        drawn = torch.empty(len(counts), int(counts.max(initial=0)), dtype=torch.int16)
        if len(documents) == 1 and drawn.numel() and (counts == drawn.shape[1]).all():
            dropout.draw(0, drawn)  # the same numbers as row by row
            return drawn.numpy()
        for row, count in enumerate(counts.tolist()):
            dropout.draw(row % len(documents), drawn[row, :count])
        return drawn.numpy()
