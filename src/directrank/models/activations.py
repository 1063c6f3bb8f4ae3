"""Activations between the layers of a stack, of which each model may have its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

#: CELU has α = 1.
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "celu": torch.celu}


class Activations(nn.Module):
    """The activation of each model of a stack.

    Args:
        names: of :data:`ACTIVATIONS`, of each model, or one for all.
        after_last: whether it also follows the last layer, likewise.

    Attributes:
        name, after_last: those of all models; None if they differ.
    """

    def __init__(self, names: Sequence[str], after_last: Sequence[bool]) -> None:
        super().__init__()
        self.name = names[0] if len(set(names)) == 1 else None
        self.after_last = after_last[0] if len(set(after_last)) == 1 else None
        for name in ACTIVATIONS:
            self._mark(f"has_{name}", [name == own for own in names])
        self._mark("has_last", after_last)

    def _mark(self, name: str, models: Sequence[bool]) -> None:
        """Keep which models it is true of, bool ``[M, 1, 1]``, on the device of the weights."""
        self.register_buffer(name, torch.tensor(models)[:, None, None], persistent=False)

    def forward(self, x: Tensor, last: bool) -> Tensor:
        """What follows the layer with the outputs ``x`` ``[M, N, width]``, or the ``last`` one."""
        if last and self.after_last is False:
            return x
        if self.name is not None:
            y = ACTIVATIONS[self.name](x)
        else:
            y = x
            for name, function in ACTIVATIONS.items():
                y = torch.where(self.get_buffer(f"has_{name}"), function(x), y)
        if last and self.after_last is None:
            y = torch.where(self.get_buffer("has_last"), y, x)
        return y
