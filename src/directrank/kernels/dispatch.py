"""The choice between a formula and its kernel, the same for all of the package."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from shutil import which
from typing import TYPE_CHECKING, Any, TypeVar

from directrank.kernels import KERNELS, Key

if TYPE_CHECKING:
    from torch import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = __package__.partition(".")[0]


def find(
    replaced: Callable[..., Any] | tuple[Callable[..., Any], Callable[..., Any]],
    values: Tensor,
    options: Iterable[Any] = (),
) -> Callable[..., Any] | None:
    """The kernel that replaces a function if it can be used on ``values``, else None.

    Args:
        replaced: a function or class that :data:`directrank.kernels.KERNELS` names, or a metric's
            formula and a relaxation; None is returned for any other.
        values: the first argument, which may require a gradient.
        options: the other arguments; if one requires a gradient, PyTorch is needed.
    """
    if not values.is_floating_point():
        return None
    for option in options:
        if getattr(option, "requires_grad", False):
            return None
    device = device_of(values)
    key: Key
    if isinstance(replaced, tuple):
        key = _name(replaced[0]), _name(replaced[1])
    else:
        key = _name(replaced)
    target = KERNELS.get(device, {}).get(key)
    if target is None or (device == "cuda" and not has_triton()):
        return None
    return _load(target)


def device_of(values: Tensor) -> str:
    """The kind of device whose kernels are used for ``values``."""
    return values.device.type


@cache
def has_triton() -> bool:
    """Whether Triton can be used; PyTorch's builds for CUDA bring it, on Linux.

    It compiles the code that starts a kernel with a C compiler, and needs a GPU of 2017 or later.
    """
    if find_spec("triton") is None:
        return False
    import torch  # here, because a plan of runs needs no PyTorch

    if torch.cuda.is_available() and torch.cuda.get_device_capability() < (7, 0):
        return False
    compilers = [*os.environ.get("CC", "gcc").split()[:1], "clang"]
    return any(map(which, compilers))


def accelerated(formula: Function) -> Function:
    """Make a function that calls the kernel of the ``formula`` if possible, otherwise the formula.

    The formula is its attribute ``__wrapped__``. The kernel, which has no defaults of its own, is
    given those of the formula.
    """
    defaults = formula.__kwdefaults__ or {}

    @wraps(formula)
    def fastest(values: Tensor, *arguments: Any, **options: Any) -> Any:
        kernel = find(formula, values, (*arguments, *options.values()))
        if kernel is not None:
            result = kernel(values, *arguments, **{**defaults, **options})
            if result is not NotImplemented:
                return result
        return formula(values, *arguments, **options)

    return fastest  # type: ignore[return-value]


def kernels_of(modules: Collection[str]) -> set[str]:
    """The modules of the kernels that replace something in ``modules``, of a pair in two of them.

    They are those of every device, because a run may be trained on any. ``module:function`` stands
    for a function.

    >>> sorted(kernels_of(["directrank.losses._listnet"]))
    ['directrank.kernels.gpu.cross_entropy', 'directrank.kernels.listnet']
    >>> pair = ["directrank.metrics._ndcg", "directrank.relaxations.smooth_i"]
    >>> kernels_of(pair[:1]), sorted(kernels_of(pair))
    (set(), ['directrank.kernels.gpu.smooth_i', 'directrank.kernels.smooth_i'])
    """
    return {
        _module(kernel)
        for kernels in KERNELS.values()
        for key, kernel in kernels.items()
        if all(
            _module(name) in modules or f"{_PACKAGE}.{name}" in modules
            for name in (key if isinstance(key, tuple) else (key,))
        )
    }


def _module(target: str) -> str:
    return f"{_PACKAGE}.{target.partition(':')[0]}"


@cache
def _name(function: Callable[..., Any]) -> str:
    """A function's name in the table."""
    return f"{function.__module__.removeprefix(f'{_PACKAGE}.')}:{function.__qualname__}"


@cache
def _load(target: str) -> Callable[..., Any]:
    return getattr(import_module(_module(target)), target.partition(":")[2])
