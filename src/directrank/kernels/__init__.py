"""Compiled loops: the numbers of formulas elsewhere in the package, fast, on a CPU.

Losses, relaxations and layers are written as plain PyTorch where they belong. A function marked
:func:`accelerated` has a kernel in :data:`KERNELS`, which is called in its place where it may be:
on a CPU, and where only the gradient by its first argument is asked for. Nothing else decides
whether a kernel is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, wraps
from importlib import import_module
from typing import Any, TypeVar

import torch
from torch import Tensor

from directrank.system.registry import imported_modules

Function = TypeVar("Function", bound=Callable[..., Any])

#: A function's name, or a metric and the relaxation it is under → ``module:function`` of its
#: kernel. A kernel takes the arguments of the formula; it returns ``NotImplemented`` for options that it
#: does not know, and the formula is used.
KERNELS: dict[str | tuple[str, str], str] = {
    "lambdarank": "directrank.kernels.lambdarank:lambdarank",
    "layers": "directrank.kernels.layers:forward",
    "likelihood": "directrank.kernels.listmle:likelihood",
    "listnet": "directrank.kernels.listnet:listnet",
    "ranknet": "directrank.kernels.ranknet:ranknet",
    "soft_counts": "directrank.kernels.sigmoid:soft_counts",
    "twin_ranks": "directrank.kernels.twin:twin_ranks",
    ("ndcg", "sigmoid"): "directrank.kernels.sigmoid:ndcg",
}

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def find(
    key: str | tuple[str, str], values: Tensor, options: Iterable[Any] = ()
) -> Callable[..., Any] | None:
    """The kernel of ``key`` if it may work on ``values``, else None.

    Args:
        key: a key of :data:`KERNELS`; None is returned for any other.
        values: the first argument, by which a gradient may be asked for.
        options: the other arguments; one that requires a gradient needs PyTorch.
    """
    if values.device.type != "cpu" or values.dtype not in FLOATS or key not in KERNELS:
        return None
    for option in options:
        if isinstance(option, Tensor) and option.requires_grad:
            return None
    return _load(key)


def accelerated(formula: Function) -> Function:
    """A function that calls the kernel of its name where it may, and the ``formula`` elsewhere.

    The formula is its attribute ``__wrapped__``.
    """
    name = formula.__name__

    @wraps(formula)
    def fastest(values: Tensor, *arguments: Any, **options: Any) -> Any:
        kernel = find(name, values, (*arguments, *options.values()))
        if kernel is not None:
            result = kernel(values, *arguments, **options)
            if result is not NotImplemented:
                return result
        return formula(values, *arguments, **options)

    return fastest  # type: ignore[return-value]


def modules_of(key: str | tuple[str, str]) -> list[str]:
    """The modules that the numbers of a kernel depend on, sorted; none where there is no kernel."""
    if key not in KERNELS:
        return []
    return list(imported_modules(KERNELS[key].split(":")[0]))


@cache
def _load(key: str | tuple[str, str]) -> Callable[..., Any]:
    module, function = KERNELS[key].split(":")
    return getattr(import_module(module), function)
