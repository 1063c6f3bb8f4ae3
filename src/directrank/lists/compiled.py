"""Losses within ``torch.compile``: a single operator that calls the loss.

The compiler sees only the operator and calls it; the work of a loss, in kernels or in PyTorch, is
not traced. The operator returns the gradient with the values, so that the backward pass is a
product.

Import this module only where something is compiled, because it imports the compiler.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any

import torch
from torch import Tensor

from directrank.lists.flat import flat_lists
from directrank.lists.inputs import widened

_numbers = count()


def call(loss: Callable[..., Tensor], name: str, scores: Tensor, options: dict[str, Any]) -> Tensor:
    """Call ``loss(scores, **options)`` as one operator of the graph, named by the loss's
    ``module:name``.

    It is an ordinary call, which breaks the graph, if an operator cannot receive what it needs:
    with a generator, an argument other than the scores that requires a gradient, or a loss that its
    module does not have under its name.
    """
    for key in ("lengths", "query_ids", "weights"):
        if options.get(key) is not None:
            options[key] = torch.as_tensor(options[key])
    tensors: list[Tensor] = []
    rest: list[Any] = []
    plain = _packed(options, tensors, rest)
    if rest or "<locals>" in name:
        return called_outside_the_graph(loss, scores, options)
    text = _text(name, plain)
    gradient = scores.requires_grad and torch.is_grad_enabled()
    return torch.ops.directrank.loss(scores, tensors, text, gradient)[0]


@torch.compiler.disable
def called_outside_the_graph(
    function: Callable[..., Tensor], scores: Any, options: dict[str, Any]
) -> Tensor:
    """Call ``function(scores, **options)``, a loss or metric, which examines its arguments."""
    return function(scores, **options)


def _packed(option: Any, tensors: list[Tensor], rest: list[Any]) -> Any:
    """An option in a form for JSON, in which numbers replace tensors; these are added to a list.

    Options that an operator cannot receive are added to ``rest``.
    """
    if isinstance(option, Tensor) and not option.requires_grad:
        tensors.append(option)
        return [len(tensors) - 1]
    if isinstance(option, dict):
        return {name: _packed(value, tensors, rest) for name, value in option.items()}
    if not (option is None or isinstance(option, bool | int | float | str)):
        rest.append(option)
    return option


@torch.compiler.assume_constant_result
def _text(name: str, options: dict[str, Any]) -> str:
    """A call as text that an operator can receive, with a unique number.

    A loss may draw random numbers, and the compiler merges calls with equal arguments, whatever the
    operator's tag says.
    """
    return json.dumps([name, options, next(_numbers)])


def _read(text: str, tensors: list[Tensor]) -> tuple[Callable[..., Tensor], dict[str, Any]]:
    """The loss and its options of a :func:`_text`."""

    def with_tensors(option: Any) -> Any:
        if isinstance(option, list):
            return tensors[option[0]]
        if isinstance(option, dict):
            return {name: with_tensors(value) for name, value in option.items()}
        return option

    name, options, _ = json.loads(text)
    module, loss = name.split(":")
    return getattr(import_module(module), loss), with_tensors(options)


# A loss may draw random numbers, so it must be neither computed in advance nor recomputed.
torch.library.define(
    "directrank::loss",
    "(Tensor scores, Tensor[] tensors, str call, bool gradient) -> (Tensor, Tensor, Tensor)",
    tags=torch.Tag.nondeterministic_seeded,
)


@torch.library.impl("directrank::loss", "default")
@torch.compiler.disable
def _loss(
    scores: Tensor, tensors: list[Tensor], call: str, gradient: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The values ``[B]``, their gradient and, for flat lists, the list of each document."""
    loss, options = _read(call, tensors)
    owners = torch.empty(0, dtype=torch.int64, device=scores.device)
    if not gradient:
        return loss(scores, **options), widened(scores).new_empty(0), owners
    leaf = widened(scores.detach()).requires_grad_()
    # Inside an operator, PyTorch records no graph unless it is told to.
    with (
        torch.enable_grad(),
        torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.AutogradFunctionality, False),
    ):
        values = loss(leaf, **options)
        (slope,) = torch.autograd.grad(values.sum(), leaf)
    lengths, query_ids = options.get("lengths"), options.get("query_ids")
    if lengths is not None or query_ids is not None:
        owners = flat_lists(scores, options["labels"], lengths, query_ids).owners
    return values.detach(), slope.contiguous(), owners


@torch.library.register_fake("directrank::loss")
def _shapes(
    scores: Tensor, tensors: list[Tensor], call: str, gradient: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The shapes and types of the results of :func:`_loss`."""
    _, options = _read(call, tensors)
    queries: int | torch.SymInt = len(scores)
    flat = True
    if options.get("lengths") is not None:
        queries = len(options["lengths"])
    elif options.get("query_ids") is not None:
        queries = torch.library.get_ctx().new_dynamic_size()
    else:
        flat = False
    wide = widened(scores)
    return (
        wide.new_empty(queries),
        wide.new_empty(scores.shape if gradient else 0),
        wide.new_empty(len(scores) if flat and gradient else 0, dtype=torch.int64),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, tensors, *_ = inputs
    _, slope, owners = output
    ctx.dtype, ctx.tensors = scores.dtype, len(tensors)
    ctx.save_for_backward(slope, owners)


def _backward(ctx: Any, grad_values: Tensor, *_: Any) -> tuple[Any, ...]:
    slope, owners = ctx.saved_tensors
    above = grad_values[owners] if slope.ndim == 1 else grad_values.unsqueeze(1)
    return (above * slope).to(ctx.dtype), [None] * ctx.tensors, None, None


torch.library.register_autograd("directrank::loss", _backward, setup_context=_keep)
