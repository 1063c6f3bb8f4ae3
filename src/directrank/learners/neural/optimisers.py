"""Optimisers that update every model of a stack with its own learning rate.

Every parameter has a leading dimension M, and so has an optimiser's state: a model of a stack is
updated as `torch.optim` would update it alone. All parameters are in one vector, so that an update
takes few operations, because calls dominate the cost of a step of a small network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from directrank.kernels.dispatch import find
from directrank.system.errors import ConfigError
from directrank.system.schema import suggest


class SGD:
    """``w ← w - rate · g``.

    Args:
        parameters: each ``[M, …]``; they are moved into a vector and become views of it.
        weight_decay: the factor with which weights are added to their gradient.
    """

    def __init__(self, parameters: Sequence[Tensor], *, weight_decay: float = 0.0) -> None:
        self.shapes = [parameter.shape for parameter in parameters]
        self.weights = _concatenated([parameter.detach() for parameter in parameters])
        for parameter, place in zip(parameters, self._views(self.weights), strict=True):
            parameter.data = place
        self.weight_decay = weight_decay
        #: Learning rates ``[M]``, always in the same place, from which captured steps read them.
        self.rates = self.weights.new_zeros(len(parameters[0]))

    def set_rates(self, rates: Sequence[float]) -> None:
        """Take other learning rates for the next steps, one per model."""
        self.rates.copy_(torch.tensor(rates, dtype=self.rates.dtype))

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Move the weights."""
        gradient = _concatenated(gradients)
        if self.weight_decay:
            gradient = gradient.add(self.weights, alpha=self.weight_decay)
        self._move(gradient)

    def _move(self, gradient: Tensor) -> None:
        self.weights.addcmul_(gradient, self._of_weights(self.rates), value=-1)

    def _of_weights(self, values: Tensor) -> Tensor:
        """The ``values`` ``[M]`` of models, for each of their weights; ``[1]`` of a single one."""
        return values if len(values) == 1 else values.index_select(0, self._models)

    @cached_property
    def _models(self) -> Tensor:
        """The model of each weight."""
        sizes = [(shape[0], shape.numel() // shape[0]) for shape in self.shapes]
        models = [
            torch.arange(number, dtype=torch.int32).repeat_interleave(size)
            for number, size in sizes
        ]
        return _concatenated(models).to(self.weights.device)

    def _views(self, vector: Tensor) -> list[Tensor]:
        """Views of the parts of a vector that belong to each parameter."""
        parts = vector.split([shape.numel() for shape in self.shapes])
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def memory(self) -> dict[str, Tensor]:
        """Views of the state by name, each with a leading dimension M."""
        return {}

    def forget(self, model: int) -> None:
        """Reset the state of the model at this position."""


class Adagrad(SGD):
    """``G ← G + g²``, ``w ← w - rate · g / (√G + 1e-10)`` (Duchi et al., 2011).

    Args:
        parameters, weight_decay: see :class:`SGD`.
        initial_accumulator_value: the initial value of G.
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
        self.sums = torch.full_like(self.weights, self.start)

    def _move(self, gradient: Tensor) -> None:
        kernel = find(Adagrad, self.weights)
        if kernel is not None:
            kernel(self.weights, gradient, self.sums, self._models, self.rates, self.EPSILON)
            return
        self.sums.addcmul_(gradient, gradient)
        sizes = self.sums.sqrt().add_(self.EPSILON)
        self.weights.addcdiv_(gradient * self._of_weights(self.rates), sizes, value=-1)

    def memory(self) -> dict[str, Tensor]:
        """See :meth:`SGD.memory`."""
        return {f"sum.{number}": value for number, value in enumerate(self._views(self.sums))}

    def forget(self, model: int) -> None:
        """See :meth:`SGD.forget`."""
        for total in self._views(self.sums):
            total[model] = self.start


class Adam(SGD):
    """Adam (Kingma and Ba, 2015) with β = (0.9, 0.999) and ε = 1e-8.

    Args:
        parameters, weight_decay: see :class:`SGD`.
    """

    BETAS = (0.9, 0.999)
    EPSILON = 1e-8

    def __init__(self, parameters: Sequence[Tensor], *, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, weight_decay=weight_decay)
        self.means = torch.zeros_like(self.weights)
        self.squares = torch.zeros_like(self.weights)
        device = self.weights.device
        self.steps = torch.zeros(self.shapes[0][0], dtype=torch.float64, device=device)

    def _move(self, gradient: Tensor) -> None:
        keep, keep_square = self.BETAS
        factors = 1 - keep, keep_square, 1 - keep_square
        self.steps += 1
        move = (self.rates / (1 - torch.pow(keep, self.steps))).to(gradient.dtype)
        root = (1 - torch.pow(keep_square, self.steps)).sqrt().to(gradient.dtype)
        kernel = find(Adam, self.weights)
        if kernel is not None:
            kernel(self.weights, gradient, self.means, self.squares, self._models, move, root,
                   self.BETAS, self.EPSILON)  # fmt: skip
            return
        self.means.lerp_(gradient, factors[0])
        self.squares.mul_(factors[1]).addcmul_(gradient, gradient, value=factors[2])
        sizes = self.squares.sqrt().div_(self._of_weights(root)).add_(self.EPSILON)
        self.weights.addcdiv_(self.means * self._of_weights(move), sizes, value=-1)

    def memory(self) -> dict[str, Tensor]:
        """See :meth:`SGD.memory`."""
        kept = {"steps": self.steps}
        pairs = zip(self._views(self.means), self._views(self.squares), strict=True)
        for number, (mean, square) in enumerate(pairs):
            kept |= {f"mean.{number}": mean, f"square.{number}": square}
        return kept

    def forget(self, model: int) -> None:
        """See :meth:`SGD.forget`."""
        for value in self.memory().values():
            value[model] = 0


def _concatenated(values: Sequence[Tensor]) -> Tensor:
    """The values in one vector; a single tensor is not copied if it is contiguous."""
    flat = [value.reshape(-1) for value in values]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


OPTIMISERS: dict[str, type[SGD]] = {"sgd": SGD, "adagrad": Adagrad, "adam": Adam}


def build(settings: Mapping[str, Any], parameters: Sequence[Tensor]) -> SGD:
    """The optimiser that ``settings`` (``name``, ``lr`` and its own settings) describe.

    Raises:
        ConfigError: the optimiser is unknown, or it lacks a setting.
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
