"""Optimisers that update every model of a stack with a learning rate of its own.

Every parameter has a leading dimension M, and so has all that is kept of past gradients: a model of
a stack is updated as `torch.optim` would update it alone. Each operation is one call for all
parameters, as in `torch.optim` with `foreach`: calls are what a step of a small network costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from directrank.errors import ConfigError
from directrank.schema import suggest


class SGD:
    """``w ← w - rate · g``.

    Args:
        parameters: each ``[M, …]``.
        weight_decay: multiple of the weights that is added to their gradient.
    """

    def __init__(self, parameters: Sequence[Tensor], *, weight_decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.weight_decay = weight_decay

    @torch.no_grad()
    def step(self, rates: Tensor, gradients: Sequence[Tensor]) -> None:
        """Move the weights; ``rates`` ``[M]`` in the type of the parameters."""
        if self.weight_decay:
            gradients = torch._foreach_add(gradients, self.parameters, alpha=self.weight_decay)
        self._move(gradients, self._along(rates))

    def _move(self, gradients: Sequence[Tensor], rates: Sequence[Tensor]) -> None:
        torch._foreach_addcmul_(self.parameters, gradients, rates, value=-1)

    def _along(self, values: Tensor) -> list[Tensor]:
        """``values`` ``[M]`` in shapes that broadcast along the first dimension of parameters."""
        shapes = {
            parameter.ndim: values.view(-1, *[1] * (parameter.ndim - 1))
            for parameter in self.parameters
        }
        return [shapes[parameter.ndim] for parameter in self.parameters]

    def memory(self) -> dict[str, Tensor]:
        """What is kept of past gradients, by name, each with a leading dimension M; not copied."""
        return {}

    def forget(self, model: int) -> None:
        """Let the model at this position begin anew."""


class Adagrad(SGD):
    """``G ← G + g²``, ``w ← w - rate · g / (√G + 1e-10)`` (Duchi et al., 2011).

    Args:
        parameters: each ``[M, …]``.
        weight_decay: see :class:`SGD`.
        initial_accumulator_value: where G starts.
    """

    EPSILON = 1e-10

    def __init__(
        self,
        parameters: Sequence[Tensor],
        *,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.1,
    ) -> None:
        super().__init__(parameters, weight_decay=weight_decay)
        self.start = initial_accumulator_value
        self.sums = [torch.full_like(parameter, self.start) for parameter in self.parameters]

    def _move(self, gradients: Sequence[Tensor], rates: Sequence[Tensor]) -> None:
        torch._foreach_addcmul_(self.sums, gradients, gradients)
        sizes = torch._foreach_sqrt(self.sums)
        torch._foreach_add_(sizes, self.EPSILON)
        steps = torch._foreach_mul(gradients, rates)
        torch._foreach_addcdiv_(self.parameters, steps, sizes, value=-1)

    def memory(self) -> dict[str, Tensor]:
        """See :meth:`SGD.memory`."""
        return {f"sum.{number}": value for number, value in enumerate(self.sums)}

    def forget(self, model: int) -> None:
        """See :meth:`SGD.forget`."""
        for total in self.sums:
            total[model] = self.start


class Adam(SGD):
    """Adam (Kingma and Ba, 2015) with β = (0.9, 0.999) and ε = 1e-8.

    Args:
        parameters: each ``[M, …]``.
        weight_decay: see :class:`SGD`.
    """

    BETAS = (0.9, 0.999)
    EPSILON = 1e-8

    def __init__(self, parameters: Sequence[Tensor], *, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, weight_decay=weight_decay)
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.steps = torch.zeros(len(self.parameters[0]), dtype=torch.float64)

    @torch.no_grad()
    def step(self, rates: Tensor, gradients: Sequence[Tensor]) -> None:
        """See :meth:`SGD.step`."""
        self.steps += 1
        first, second = (1 - beta**self.steps for beta in self.BETAS)
        self._root = second.sqrt().to(rates)
        super().step((rates.cpu() / first).to(rates), gradients)

    def _move(self, gradients: Sequence[Tensor], rates: Sequence[Tensor]) -> None:
        torch._foreach_lerp_(self.means, gradients, 1 - self.BETAS[0])
        torch._foreach_mul_(self.squares, self.BETAS[1])
        torch._foreach_addcmul_(self.squares, gradients, gradients, value=1 - self.BETAS[1])
        sizes = torch._foreach_sqrt(self.squares)
        torch._foreach_div_(sizes, self._along(self._root))
        torch._foreach_add_(sizes, self.EPSILON)
        steps = torch._foreach_mul(self.means, rates)
        torch._foreach_addcdiv_(self.parameters, steps, sizes, value=-1)

    def memory(self) -> dict[str, Tensor]:
        """See :meth:`SGD.memory`."""
        kept = {"steps": self.steps}
        for number, (mean, square) in enumerate(zip(self.means, self.squares, strict=True)):
            kept |= {f"mean.{number}": mean, f"square.{number}": square}
        return kept

    def forget(self, model: int) -> None:
        """See :meth:`SGD.forget`."""
        for value in self.memory().values():
            value[model] = 0


OPTIMISERS: dict[str, type[SGD]] = {"sgd": SGD, "adagrad": Adagrad, "adam": Adam}


def build(settings: Mapping[str, Any], parameters: Sequence[Tensor]) -> SGD:
    """The optimiser that ``settings`` (``name``, ``lr`` and its own settings) describe.

    Raises:
        ConfigError: an unknown optimiser, or a setting that it does not have.
    """
    options = {key: value for key, value in settings.items() if key not in ("name", "lr")}
    name = settings["name"]
    if name not in OPTIMISERS:
        raise ConfigError(f"unknown optimizer '{name}'", suggest(name, OPTIMISERS))
    try:
        return OPTIMISERS[name](parameters, **options)
    except TypeError as error:
        raise ConfigError(
            f"optimizer '{name}' does not take {sorted(options)}",
            "all take weight_decay, adagrad also initial_accumulator_value",
        ) from error
