"""Layers in compiled loops: when they can be used, and their scores and gradients.

The lists of a model are divided into runs, each of which has its own gradient of the parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from directrank.kernels.batch import array
from directrank.kernels.dispatch import find
from directrank.kernels.threads import blas_on_one_thread, over_lists
from directrank.lists.documents import Documents
from directrank.lists.gradient import once_differentiable
from directrank.models.context_layers import Dropout


class LayersInLoops(ABC):
    """Layers that compiled loops can compute together.

    Args:
        modules: the layers, in the order in which kernels take their parameters.
        narrow: whether they are narrow enough; PyTorch divides products of wide layers among
            threads.
    """

    def __init__(self, modules: Sequence[nn.Module], narrow: bool) -> None:
        self.narrow = narrow
        self.parameters = [parameter for module in modules for parameter in module.parameters()]
        counts = [parameter[0].numel() for parameter in self.parameters]
        #: int64 ``[parameters, 2]``, see :func:`directrank.kernels.query_layers.sum_of_runs`.
        self.sizes = np.stack([np.cumsum([0, *counts])[:-1], counts], 1)

    def __call__(
        self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None
    ) -> Tensor:
        """Scores ``[M, N]`` before an activation that the loops do not contain.

        Arguments and errors are those of :meth:`begin`.
        """
        return ScoresOfPass.apply(self.begin(x, lengths, dropout), *self.parameters)

    @abstractmethod
    def begin(self, x: Tensor | Documents, lengths: np.ndarray, dropout: Dropout | None) -> Pass:
        """A pass over documents, which allots room for a gradient if PyTorch records one.

        Args:
            x: ``[M, N, F]`` or ``[1, N, F]``, packed documents of whole lists, in their order.
            lengths: int ``[M, B]`` or ``[1, B]``, documents per list.
            dropout: None for no dropout.

        Raises:
            ValueError: more documents than rows.
        """

    @property
    def available(self) -> bool:
        """Whether loops can compute these layers where their parameters are."""
        weight = self.parameters[0]
        return (
            self.narrow
            and find(type(self), weight) is not None
            and weight.dtype in (torch.float32, torch.float64)
        )

    def accept(self, x: Tensor | Documents) -> bool:
        """Whether loops can compute the scores of these documents."""
        return (
            self.available
            and x.dtype == self.parameters[0].dtype
            and (isinstance(x, Documents) or not x.requires_grad)
            and not torch.is_autocast_enabled("cpu")
        )


def unchanged(scores: Tensor) -> Tensor:
    """The scores themselves."""
    return scores


@dataclass(frozen=True)
class Pass:
    """A pass of a stack of models over the documents of a batch.

    Attributes:
        kernels: a module with ``forward(begin, end, plan)`` and ``backward(begin, end, plan,
            of_runs)``, as :mod:`directrank.kernels.query_layers` has them.
        plan: with attributes ``runs``, ``first``, ``parameters`` and ``y``, see
            :class:`directrank.kernels.query_layers.Plan`.
        sizes: int64 ``[parameters, 2]``, see :func:`directrank.kernels.query_layers.sum_of_runs`.
        work: for :func:`directrank.kernels.threads.over_lists`.
        complete: whether each run gives a gradient of each parameter, and each model has a run.
        activation: of the scores, after the loops.
    """

    kernels: ModuleType
    plan: Any
    sizes: np.ndarray
    work: int
    complete: bool
    activation: Callable[[Tensor], Tensor] = unchanged

    def scores(self) -> Tensor:
        """The scores ``[M, N]`` before the activation, without a graph for autograd."""
        with blas_on_one_thread():
            over_lists(self.kernels.forward, self.work, len(self.plan.runs), self.plan)
        return torch.from_numpy(self.plan.y)

    def gradient(self, of_scores: Tensor) -> Tensor:
        """The gradients of all parameters, one after the other, from that of the scores."""
        from directrank.kernels.query_layers import sum_of_runs

        plan = self.plan._replace(y=array(of_scores))
        models, runs, dtype = len(plan.y), len(plan.runs), plan.parameters.dtype
        room = np.empty if self.complete else np.zeros
        of_runs = room(len(plan.parameters) // models * runs, dtype)
        with blas_on_one_thread():
            over_lists(self.kernels.backward, self.work, runs, plan, of_runs)
        if runs == models and self.complete:
            return torch.from_numpy(of_runs)
        gradients = room(len(plan.parameters), dtype)
        arguments = self.sizes, plan.first, of_runs, gradients
        over_lists(sum_of_runs, len(of_runs), len(self.sizes), *arguments)
        return torch.from_numpy(gradients)


class ScoresOfPass(torch.autograd.Function):
    """The scores ``[M, N]`` of a :class:`Pass`, and the gradients of its parameters."""

    @staticmethod
    def forward(ctx, passed: Pass, *parameters: Tensor) -> Tensor:
        ctx.passed = passed
        ctx.shapes = [parameter.shape for parameter in parameters]
        return passed.scores()

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        counts = [shape.numel() for shape in ctx.shapes]
        parts = ctx.passed.gradient(gradient).split(counts)
        return None, *(part.view(shape) for part, shape in zip(parts, ctx.shapes, strict=True))
