"""The forward pass of a training step, and the gradients of what it leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from directrank.lists.documents import Documents
from directrank.lists.draws import Counters
from directrank.lists.flat import DeviceFlat
from directrank.models.compiled import CompiledPass


@dataclass(frozen=True)
class Forward:
    """Scores of a stack of models, and how to differentiate by the parameters.

    Attributes:
        scores: ``[M, N]``.
        leaves: the tensors at which autograd ends: the parameters or, after compiled loops, the
            scores that these gave.
        compiled: the pass in compiled loops; None if autograd recorded all of it.
    """

    scores: Tensor
    leaves: Sequence[Tensor]
    compiled: CompiledPass | None

    def gradients(self, values: Tensor) -> list[Tensor]:
        """The gradients by the parameters, in their order, of the ``values`` ``[M]`` of models.

        After compiled loops they are one vector.
        """
        if values.requires_grad:
            # Of the sum, as models share nothing: weights for each would load SymPy first.
            found = torch.autograd.grad(
                values.sum(), self.leaves, allow_unused=True, materialize_grads=True
            )
        else:
            found = tuple(torch.zeros_like(leaf) for leaf in self.leaves)
        if self.compiled is None:
            return list(found)
        return [self.compiled.gradient(found[0])]


def forward(
    model: nn.Module,
    parameters: Sequence[Tensor],
    documents: Tensor | Documents,
    rows: Tensor | None,
    lengths: np.ndarray | DeviceFlat,
    counters: Counters | None,
    dtype: torch.dtype,
) -> Forward:
    """The pass of a model with these ``parameters``, and scores of type ``dtype``.

    Autograd is spared where compiled loops compute the layers, because it takes a fifth of a step
    with one query. The other arguments are those of the model.
    """
    begin = getattr(model, "compiled_pass", None)
    compiled = None
    if begin is not None and isinstance(lengths, np.ndarray):
        compiled = begin(documents, lengths, counters)
    if compiled is None:
        return Forward(model(documents, rows, lengths, counters).to(dtype), parameters, None)
    leaf = compiled.scores().requires_grad_()
    return Forward(compiled.activation(leaf).to(dtype), (leaf,), compiled)
