"""Layers in compiled loops: when they can be used, and their scores and gradients.

The lists of a model are divided into runs, each of which has its own gradient of the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from directrank.kernels import find
from directrank.kernels.batch import array
from directrank.kernels.threads import blas_on_one_thread, over_lists
from directrank.lists.documents import Documents


class LayersInLoops:
    """Layers that compiled loops can compute together.

    Args:
        kernel: their key in :data:`directrank.kernels.KERNELS`.
        modules: the layers, in the order in which kernels take their parameters.
        narrow: whether they are narrow enough; PyTorch divides products of wide layers among
            threads.
    """

    def __init__(self, kernel: str, modules: Sequence[nn.Module], narrow: bool) -> None:
        self.kernel = kernel
        self.narrow = narrow
        self.parameters = [parameter for module in modules for parameter in module.parameters()]
        counts = [parameter[0].numel() for parameter in self.parameters]
        #: int64 ``[parameters, 2]``, see :func:`directrank.kernels.query_layers.sum_of_runs`.
        self.sizes = np.stack([np.cumsum([0, *counts])[:-1], counts], 1)

    @property
    def available(self) -> bool:
        """Whether loops can compute these layers where their parameters are."""
        weight = self.parameters[0]
        return (
            self.narrow
            and find(self.kernel, weight) is not None
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


class ScoresOfRuns(torch.autograd.Function):
    """Scores ``[M, N]`` that compiled loops compute, and the gradients of the models' parameters.

    Args:
        kernels: a module with ``forward(begin, end, plan)`` and ``backward(begin, end, plan,
            of_runs)``, as :mod:`directrank.kernels.query_layers` has them.
        plan: with attributes ``runs``, ``first``, ``parameters`` and ``y``, see
            :class:`directrank.kernels.query_layers.Plan`.
        sizes: int64 ``[parameters, 2]``, see :func:`directrank.kernels.query_layers.sum_of_runs`.
        work: of a pass, for :func:`directrank.kernels.threads.over_lists`.
        complete: whether each run gives a gradient of each parameter, and each model has a run.
        parameters: those of the plan, again for autograd.
    """

    @staticmethod
    def forward(
        ctx,
        kernels: ModuleType,
        plan: Any,
        sizes: np.ndarray,
        work: int,
        complete: bool,
        *parameters: Tensor,
    ) -> Tensor:
        with blas_on_one_thread():
            over_lists(kernels.forward, work, len(plan.runs), plan)
        ctx.of_plan = kernels, plan, sizes, work, complete
        ctx.shapes = [parameter.shape for parameter in parameters]
        return torch.from_numpy(plan.y)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from directrank.kernels.query_layers import sum_of_runs

        kernels, plan, sizes, work, complete = ctx.of_plan
        plan = plan._replace(y=array(gradient))
        models, runs, dtype = len(plan.y), len(plan.runs), plan.parameters.dtype
        room = np.empty if complete else np.zeros
        of_runs = room(len(plan.parameters) // models * runs, dtype)
        with blas_on_one_thread():
            over_lists(kernels.backward, work, runs, plan, of_runs)
        gradients = of_runs
        if runs > models or not complete:
            gradients = room(len(plan.parameters), dtype)
            arguments = sizes, plan.first, of_runs, gradients
            over_lists(sum_of_runs, len(of_runs), len(sizes), *arguments)
        parts = torch.from_numpy(gradients).split((models * sizes[:, 1]).tolist())
        values = [part.view(shape) for part, shape in zip(parts, ctx.shapes, strict=True)]
        return None, None, None, None, None, *values
