"""The forward pass of a training step, and the gradients of what it leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from directrank.lists.documents import Documents
from directrank.lists.flat import DeviceFlat
from directrank.models.runs import Pass


@dataclass(frozen=True)
class Forward:
    """Scores of a stack of models, and how to differentiate by the parameters.

    Attributes:
        scores: ``[M, N]``.
        leaves: the tensors at which autograd ends: the parameters or, after compiled loops, the
            scores that these gave.
        in_loops: the pass in compiled loops; None if autograd recorded all of it.
    """

    scores: Tensor
    leaves: Sequence[Tensor]
    in_loops: Pass | None

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
        if self.in_loops is None:
            return list(found)
        return [self.in_loops.gradient(found[0])]


def forward(
    model: nn.Module,
    parameters: Sequence[Tensor],
    documents: Tensor | Documents,
    rows: Tensor | None,
    lengths: np.ndarray | DeviceFlat,
    dtype: torch.dtype,
) -> Forward:
    """The pass of a model with these ``parameters``, and scores of type ``dtype``.

    Autograd is spared where compiled loops compute the layers, because it takes a fifth of a step
    with one query. The other arguments are those of the model.
    """
    begin = getattr(model, "begin_in_loops", None)
    in_loops = None
    if begin is not None and isinstance(lengths, np.ndarray):
        in_loops = begin(documents, lengths)
    if in_loops is None:
        return Forward(model(documents, rows, lengths).to(dtype), parameters, None)
    leaf = in_loops.scores().requires_grad_()
    return Forward(in_loops.activation(leaf).to(dtype), (leaf,), in_loops)
