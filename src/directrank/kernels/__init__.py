"""Compiled loops that compute the package's formulas fast on a CPU.

Losses, relaxations, layers and updates of optimisers are written as plain PyTorch in their own
packages. A function marked :func:`accelerated` has a kernel in :data:`KERNELS`, which replaces it
on a CPU if only the gradient with respect to its first argument is needed. Nothing else decides
whether a kernel is used.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from directrank.system import sources
from directrank.system.registry import imported_modules

if TYPE_CHECKING:
    from torch import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])

#: A function's name, or a metric and a relaxation → ``module:function`` of its kernel. A kernel
#: takes the arguments of the formula, a ``generator`` only if the relaxation draws, and returns
#: ``NotImplemented`` for options that it does not support; the formula is then used.
KERNELS: dict[str | tuple[str, str], str] = {
    "costs_of_neighbours": "directrank.kernels.yeti_loss:costs_of_neighbours",
    "cross_entropy": "directrank.kernels.xe_ndcg:cross_entropy",
    "drawn_dcg": "directrank.kernels.pl_rank:drawn_dcg",
    "encoder": "directrank.kernels.encoder:forward",
    "hinged_dcg": "directrank.kernels.k_song:hinged_dcg",
    "lambda_loss": "directrank.kernels.lambda_loss:lambda_loss",
    "lambdarank": "directrank.kernels.lambdarank:lambdarank",
    "laplace_ranks": "directrank.kernels.soft_ranks:laplace_ranks",
    "layers": "directrank.kernels.layers:forward",
    "likelihood": "directrank.kernels.listmle:likelihood",
    "listnet": "directrank.kernels.listnet:listnet",
    "optimisers": "directrank.kernels.optimisers:move",
    "order_with_noise": "directrank.kernels.twin:order_with_noise",
    "projected_ranks": "directrank.kernels.soft_ranks:projected_ranks",
    "noisy_dcg": "directrank.kernels.stochastic_rank:noisy_dcg",
    "query_layers": "directrank.kernels.query_layers:forward",
    "ranknet": "directrank.kernels.ranknet:ranknet",
    "sorted_expectation": "directrank.kernels.neural_sort:sorted_expectation",
    "soft_counts": "directrank.kernels.sigmoid:soft_counts",
    "twin_ranks": "directrank.kernels.twin:twin_ranks",
    ("average_precision", "twin"): "directrank.kernels.twin:average_precision",
    ("ndcg", "blackbox"): "directrank.kernels.blackbox:ndcg",
    ("ndcg", "fast_soft_rank"): "directrank.kernels.soft_ndcg:fast_soft_ndcg",
    ("ndcg", "lapsum"): "directrank.kernels.soft_ndcg:lapsum_ndcg",
    ("ndcg", "neural_sort"): "directrank.kernels.neural_sort:ndcg",
    ("ndcg", "pirank"): "directrank.kernels.pirank:ndcg",
    ("ndcg", "rank_binomial"): "directrank.kernels.softrank:ndcg",
    ("ndcg", "sigmoid"): "directrank.kernels.sigmoid:ndcg",
    ("ndcg", "smooth_i"): "directrank.kernels.smooth_i:ndcg",
    ("ndcg", "twin"): "directrank.kernels.twin:ndcg",
    ("nerr", "twin"): "directrank.kernels.twin:nerr",
    ("precision", "twin"): "directrank.kernels.twin:precision",
}


def find(
    key: str | tuple[str, str], values: Tensor, options: Iterable[Any] = ()
) -> Callable[..., Any] | None:
    """The kernel of ``key`` if it can be used on ``values``, else None.

    Args:
        key: a key of :data:`KERNELS`; None is returned for any other.
        values: the first argument, which may require a gradient.
        options: the other arguments; if one requires a gradient, PyTorch is needed.
    """
    if key not in KERNELS or values.device.type != "cpu" or not values.is_floating_point():
        return None
    for option in options:
        if getattr(option, "requires_grad", False):
            return None
    return _load(key)


def accelerated(formula: Function) -> Function:
    """Make a function that calls the kernel of its name if possible, and otherwise the ``formula``.

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
    """The modules on which a kernel's numbers depend, sorted; empty if there is no kernel."""
    if key not in KERNELS:
        return []
    return list(imported_modules(KERNELS[key].split(":")[0]))


def with_kernels(modules: Iterable[str]) -> list[str]:
    """``modules`` and those on which the kernels of their :func:`accelerated` functions depend."""
    result = set(modules)
    for module in tuple(result):
        for function in _accelerated_in(module):
            result.update(modules_of(function))
    return sorted(result)


@cache
def _accelerated_in(module: str) -> tuple[str, ...]:
    """The functions that a module marks :func:`accelerated`, read from its source."""
    functions = [
        node
        for node in ast.parse(sources.text_of(module)).body
        if isinstance(node, ast.FunctionDef)
    ]
    return tuple(
        function.name
        for function in functions
        if any(
            isinstance(mark, ast.Name) and mark.id == "accelerated"
            for mark in function.decorator_list
        )
    )


@cache
def _load(key: str | tuple[str, str]) -> Callable[..., Any]:
    module, function = KERNELS[key].split(":")
    return getattr(import_module(module), function)
