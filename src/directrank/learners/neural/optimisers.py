"""Optimisers that update every model of a stack with its own learning rate.

Every parameter has a leading dimension M, and so has an optimiser's state: a model of a stack is
updated as `torch.optim` would update it alone. All parameters are in one vector, so that an update
takes few operations, because calls dominate the cost of a step of a small network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

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
        #: Learning rates stay the same for many steps: the latest, per model and per weight.
        self._latest = torch.empty(0), torch.empty(0)
        #: The model of each weight.
        self.models = _concatenated(
            [
                torch.arange(shape[0]).repeat_interleave(shape.numel() // shape[0])
                for shape in self.shapes
            ]
        ).to(self.weights.device)

    @torch.no_grad()
    def step(self, rates: Tensor, gradients: Sequence[Tensor]) -> None:
        """Move the weights; ``rates`` ``[M]`` in the type of the parameters."""
        gradient = _concatenated(gradients)
        if self.weight_decay:
            gradient = gradient.add(self.weights, alpha=self.weight_decay)
        self._move(gradient, self._per_weight(rates))

    def _move(self, gradient: Tensor, rates: Tensor) -> None:
        self.weights.addcmul_(gradient, rates, value=-1)

    def _per_weight(self, values: Tensor) -> Tensor:
        """The ``values`` ``[M]`` of models, for each of their weights."""
        if len(values) == 1:
            return values
        if values is not self._latest[0]:
            self._latest = values, values.index_select(0, self.models)
        return self._latest[1]

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

    def _move(self, gradient: Tensor, rates: Tensor) -> None:
        self.sums.addcmul_(gradient, gradient)
        sizes = self.sums.sqrt().add_(self.EPSILON)
        self.weights.addcdiv_(gradient * rates, sizes, value=-1)

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
        self.steps = torch.zeros(self.shapes[0][0], dtype=torch.float64)

    @torch.no_grad()
    def step(self, rates: Tensor, gradients: Sequence[Tensor]) -> None:
        """See :meth:`SGD.step`."""
        self.steps += 1
        taken = self.steps.tolist()  # numbers, because operations on small tensors take longer
        corrected = [
            rate / (1 - self.BETAS[0] ** t) for rate, t in zip(rates.tolist(), taken, strict=True)
        ]
        roots = [math.sqrt(1 - self.BETAS[1] ** t) for t in taken]
        self._root = torch.tensor(roots, dtype=rates.dtype, device=rates.device)
        super().step(torch.tensor(corrected, dtype=rates.dtype, device=rates.device), gradients)

    def _move(self, gradient: Tensor, rates: Tensor) -> None:
        self.means.lerp_(gradient, 1 - self.BETAS[0])
        self.squares.mul_(self.BETAS[1]).addcmul_(gradient, gradient, value=1 - self.BETAS[1])
        sizes = self.squares.sqrt().div_(self._per_weight(self._root)).add_(self.EPSILON)
        self.weights.addcdiv_(self.means * rates, sizes, value=-1)

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
