"""Calls of losses and metrics with padded or flat lists, and with weights of queries.

A loss or metric is written for padded lists. If it accepts a :class:`directrank.lists.flat.Flat`
instead of a mask, flat lists stay as they are. Otherwise it raises
:class:`directrank.lists.flat.PaddingNeededError`, and is then called for groups of lists of similar
length, which are padded for it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, NoReturn, ParamSpec, Protocol, TypeAlias, overload

import numpy as np
import torch
from torch import Tensor

from directrank.lists.arrays import tensor_of
from directrank.lists.buckets import buckets, small_call
from directrank.lists.devices import on_device
from directrank.lists.flat import (
    Flat,
    Lists,
    PaddingNeededError,
    flat_lists,
    hidden,
    spread,
    sums,
)
from directrank.lists.inputs import are_examined, examine, examined_before, one_of
from directrank.lists.parameters import NUMBERS, RANGES, Kinds, check_options, kinds_of
from directrank.system.errors import ArgumentError

Own = ParamSpec("Own")

#: Numbers or ids as a tensor, an array, a series of pandas or a list.
Numbers: TypeAlias = Tensor | np.ndarray | Sequence[float] | Sequence[str] | Any

_within_transform = torch._C._functorch.is_functorch_wrapped_tensor

_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)

#: The parameters of a loss or metric that are not options of it.
OF_LISTS = ("scores", "labels", "mask", "lengths", "query_ids")

#: What :func:`reduced` can do with the values of queries.
REDUCTIONS = ("none", "mean", "sum")

#: The arguments that the decorators add, for the ends of docstrings.
_LISTS = """Keyword Args:
    lengths: int ``[B]``, documents per query, if scores and labels are flat ``[N]``; LightGBM's and
        XGBoost's ``group``.
    query_ids: ``[N]``, instead of lengths: the query of each document; equal neighbours form a
        query."""
_WEIGHTS = """
    weights: ``[B]``, the factor of each query's loss, not negative.
    reduction: ``none`` returns the loss of each query, ``sum`` their sum and ``mean`` their mean,
        which is weighted if there are weights."""


class Metric(Protocol[Own]):
    """A function of padded or flat lists."""

    @overload
    def __call__(self, *args: Own.args, **options: Own.kwargs) -> Tensor: ...
    @overload
    def __call__(
        self,
        scores: Numbers,
        labels: Numbers,
        mask: Numbers | None = None,
        k: int | None = None,
        *,
        lengths: Numbers | None = None,
        query_ids: Numbers | None = None,
        **options: Any,
    ) -> Tensor: ...


class Loss(Protocol[Own]):
    """A function of padded or flat lists, and of weights of their queries."""

    @overload
    def __call__(self, *args: Own.args, **options: Own.kwargs) -> Tensor: ...
    @overload
    def __call__(
        self,
        scores: Numbers,
        labels: Numbers,
        mask: Numbers | None = None,
        *,
        lengths: Numbers | None = None,
        query_ids: Numbers | None = None,
        weights: Numbers | None = None,
        reduction: str = "none",
        **options: Any,
    ) -> Tensor: ...


def ranking_loss(loss: Callable[Own, Tensor]) -> Loss[Own]:
    """Make a loss of padded lists accept flat ones too, weights of queries, and a reduction.

    The parameters of the function below that are keywords are added to its signature, and what they
    mean to its docstring. Weights multiply the values.

    Raises:
        ArgumentError: raised by the loss as by :func:`directrank.lists.flat.flat_lists`; weights
            are not ``[B]`` or negative; the loss takes no weights of documents; the reduction is
            unknown.
    """
    known = inspect.signature(loss).parameters
    kinds = kinds_of(loss)
    name = f"{loss.__module__}:{loss.__qualname__}"

    def call(
        scores: Numbers,
        labels: Numbers,
        mask: Numbers | None = None,
        *,
        lengths: Numbers | None = None,
        query_ids: Numbers | None = None,
        weights: Numbers | None = None,
        reduction: str = "none",
        **options: Any,
    ) -> Tensor:
        lists: dict[str, Any] = {"lengths": lengths, "query_ids": query_ids, "weights": weights}
        if torch.compiler.is_compiling():
            from directrank.lists import compiled

            given = {"labels": labels, "mask": mask, **lists, **options}
            values = compiled.call(call, name, torch.as_tensor(scores), given)
            return reduced(values, weights, reduction)
        if "document_weights" in options and "document_weights" not in known:
            raise ArgumentError(
                f"{loss.__name__} takes no weights of documents, because it is a value of the "
                "whole ranking, not a sum over documents",
                "use weights for queries; only sums over documents, such as listnet, take them",
            )
        values = called(of_queries_alone, scores, labels, mask, **lists, kinds=kinds, **options)
        return reduced(values, weights, reduction)

    def of_queries_alone(
        scores: Tensor, labels: Tensor, lists: Lists | None, **options: Any
    ) -> Tensor:
        values = loss(scores, labels, lists, **options)  # type: ignore[arg-type]
        queries = len(lists.lengths) if isinstance(lists, Flat) else len(scores)
        if not (isinstance(values, Tensor) and values.shape == (queries,)):
            _refuse_values(loss, values, queries)
        return values

    return _described(call, loss, _LISTS + _WEIGHTS)


def _refuse_values(loss: Callable[..., Tensor], values: Any, queries: int) -> NoReturn:
    """Raise ArgumentError because a loss did not return a value for each query."""
    returned = f"a tensor {tuple(values.shape)}" if isinstance(values, Tensor) else repr(values)
    raise ArgumentError(
        f"{loss.__name__} returned {returned} for {queries} lists",
        f"return a tensor [B], here ({queries},), with the loss of each list; reduction= and "
        "training take their mean",
    )


def ranking_metric(metric: Callable[Own, Tensor]) -> Metric[Own]:
    """Make a metric of padded lists accept flat ones too.

    The parameters of the function below that are keywords are added to its signature, and what they
    mean to its docstring. Weights do not change the value of a query; for the weighted mean see
    :func:`directrank.metrics.mean`.

    Raises:
        ArgumentError: raised by the metric as by :func:`directrank.lists.flat.flat_lists`;
            weights are given.
    """

    def call(
        scores: Numbers,
        labels: Numbers,
        mask: Numbers | None = None,
        k: int | None = None,
        *,
        lengths: Numbers | None = None,
        query_ids: Numbers | None = None,
        **options: Any,
    ) -> Tensor:
        if "weights" in options or "document_weights" in options:
            raise ArgumentError(
                f"{metric.__name__} takes no weights, because they do not change the value of a "
                "query, and documents have no weights in a ranking",
                f"take the weighted mean: metrics.mean(metrics.{metric.__name__}(…), weights)",
            )
        if k is not None:  # correlations have no cut-off
            options["k"] = k
        if torch.compiler.is_compiling():
            from directrank.lists import compiled

            lists: dict[str, Any] = {"mask": mask, "lengths": lengths, "query_ids": query_ids}
            given = {"labels": labels, **lists, **options}
            return compiled.called_outside_the_graph(call, scores, given)
        return called(metric, scores, labels, mask, lengths=lengths, query_ids=query_ids,
                      is_metric=True, **options)  # fmt: skip

    return _described(call, metric, _LISTS)


def _described(call: Any, function: Callable[..., Tensor], added: str) -> Any:
    """``call`` with the parameters of a function and, in front of its options, its own keywords."""
    own = inspect.signature(call).parameters.values()
    given = list(inspect.signature(function).parameters.values())
    place = sum(parameter.kind is not parameter.KEYWORD_ONLY for parameter in given)
    given[place:place] = [each for each in own if each.kind is each.KEYWORD_ONLY]
    update_wrapper(call, function)
    call.__signature__ = inspect.Signature(given, return_annotation="Tensor")
    call.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{added}"
    return call


def reduced(values: Tensor, weights: Numbers | None, reduction: str) -> Tensor:
    """The values ``[B]`` of queries, which have been multiplied by their weights, or one number.

    The mean divides by the sum of the weights; it is 0 if all of them are.
    """
    one_of(reduction, REDUCTIONS, "reduction")
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    if weights is None:
        return values.mean()
    total = torch.as_tensor(weights).to(values).sum()
    return values.sum() / total.masked_fill(total <= 0, 1.0)


def called(
    function: Callable[..., Tensor],
    scores: Numbers,
    labels: Numbers,
    mask: Numbers | Flat | None,
    *,
    lengths: Numbers | None = None,
    query_ids: Numbers | None = None,
    weights: Numbers | None = None,
    is_metric: bool = False,
    kinds: Kinds = NUMBERS,
    **options: Any,
) -> Tensor:
    """Call ``function(scores, labels, mask, …)`` for padded or flat lists, and weigh its values.

    Autocasting is disabled here, because sums over a list need full precision. Arrays become
    tensors. On a CPU the values of real documents are examined: a loss of a list with a score that
    is NaN or infinite is NaN, and a metric refuses scores that are NaN, but ranks infinite ones. On
    a GPU, which would have to be waited for, labels are not examined; a metric of NaN is NaN there,
    and a loss is what its formula gives.

    Raises:
        ArgumentError: as for :func:`directrank.lists.flat.flat_lists` and
            :func:`directrank.lists.inputs.examine`; flat lists have a mask; weights are not ``[B]``
            or negative; scores are within a transform of ``torch.func``, or of a metric and NaN; an
            option is outside of its range.
    """
    if isinstance(mask, Flat):  # a loss passes on its own lists
        return function(scores, labels, mask, **options)
    is_tensor = isinstance(scores, Tensor)
    scores = tensor_of(scores, "scores")
    if not (is_tensor or scores.is_floating_point()):
        scores = scores.double()
    labels = tensor_of(labels, "labels", scores.device)
    if labels.dtype in _UNSIGNED:  # for which PyTorch has few operations
        labels = labels.double()
    if labels.requires_grad:  # those of a teacher, for example
        labels = labels.detach()
    mask = None if mask is None else tensor_of(mask, "mask", scores.device)
    factors = options.get("document_weights")
    if factors is not None:
        options["document_weights"] = _of_documents(factors, scores)
    if _within_transform(scores):
        raise ArgumentError(
            "losses and metrics cannot be transformed by torch.func (vmap, grad, …)",
            "call them without vmap, with the scores [B, L] of all lists and a mask: they return a "
            "value per list, and torch.autograd.grad of their sum the gradient of each",
        )
    if torch.is_autocast_enabled(scores.device.type):
        with torch.autocast(scores.device.type, enabled=False):
            return called(function, scores, labels, mask, lengths=lengths,
                          query_ids=query_ids, weights=weights, is_metric=is_metric,
                          kinds=kinds, **options)  # fmt: skip
    lists: Lists | None = mask
    if lengths is not None or query_ids is not None:
        if mask is not None:
            raise ArgumentError(
                "flat lists have no mask, but one is given",
                "leave it out, because nothing is padded",
            )
        lists = flat_lists(scores, labels, lengths, query_ids)
    if are_examined():
        values = _of_lists(function, scores, labels, lists, options)
    else:
        queries = len(lists.lengths) if isinstance(lists, Flat) else sum(scores.shape[:1])
        options = check_options(options, kinds, queries)
        if factors is not None:
            _check_factors(options["document_weights"], lists)
        known = examine(scores, labels, lists)
        unknown = known.unknown
        if is_metric and unknown is not None:
            _refuse_nan(scores[unknown])
            unknown = None
        elif unknown is not None and weights is not None:
            # A query that is left out gets no gradient, whatever its scores are.
            left_out = spread(of_queries(weights, queries, scores) == 0, lists)
            scores = scores.masked_fill(unknown & left_out, 0.0)
            unknown = unknown & ~left_out
        with examined_before(known):
            values = _of_lists(function, scores, labels, lists, options)
        if is_metric and scores.device.type != "cpu":
            unknown = hidden(scores.isnan(), lists)
        if unknown is not None:
            nan = _nan_of(scores, unknown, lists)
            values = values + (nan if values.ndim == 1 else nan.unsqueeze(1))
    if weights is None:
        return values
    given = of_queries(weights, len(values), values)
    return torch.where(given > 0, values * given, 0.0)


def _of_documents(weights: Numbers, scores: Tensor) -> Tensor:
    """Weights of documents as a tensor in the shape of the scores, on their device.

    They are of the type in which a loss computes, which is that of its value.
    """
    given = tensor_of(weights, "document_weights", scores.device)
    if given.shape != scores.shape:
        raise ArgumentError(
            f"document_weights {tuple(given.shape)} must have the shape of the scores, "
            f"{tuple(scores.shape)}",
            "give a weight for each document, or weights for queries",
        )
    return given.to(scores.device, torch.promote_types(scores.dtype, torch.float32))


def _check_factors(weights: Tensor, lists: Lists | None) -> None:
    """Raise ArgumentError if a weight of a real document is no factor; nothing on a GPU."""
    if not weights.is_cpu or not weights.numel():
        return
    least, greatest = (bound.item() for bound in weights.detach().aminmax())
    if least >= 0 and greatest < math.inf:
        return
    # Those at masked positions may be anything.
    wrong = ~((weights >= 0) & (weights < math.inf))
    if bool(hidden(wrong, lists).any()):
        raise ArgumentError(
            "a weight of a document is negative, NaN or infinite", "use 0 to leave a document out"
        )


def _refuse_nan(scores: Tensor) -> None:
    """Raise ArgumentError if a score is NaN; infinite ones can be ranked."""
    if bool(scores.isnan().any()):
        raise ArgumentError(
            "a score is NaN, which has no rank",
            "find out where scores become NaN: the model may have diverged, or its features may "
            "contain NaN",
        )


def _nan_of(scores: Tensor, unknown: Tensor, lists: Lists | None) -> Tensor:
    """NaN for lists with unknown scores and 0 for others, ``[B]``; so is the gradient of scores."""
    factors = torch.zeros_like(scores).masked_fill(unknown, torch.nan)
    return sums(scores.masked_fill(~unknown, 0.0) * factors, lists)


def _of_lists(
    function: Callable[..., Tensor],
    scores: Tensor,
    labels: Tensor,
    lists: Lists | None,
    options: Mapping[str, Any],
) -> Tensor:
    """Call the function for padded lists, or for flat ones as it accepts them."""
    if not isinstance(lists, Flat):
        return function(scores, labels, lists, **options)
    try:
        return function(scores, labels, lists, **options)
    except PaddingNeededError:
        return _in_groups(function, scores, labels, lists, options)


def _in_groups(
    function: Callable[..., Tensor],
    scores: Tensor,
    labels: Tensor,
    lists: Flat,
    options: Mapping[str, Any],
) -> Tensor:
    """Call the function for padded groups of lists of similar length."""
    values = []
    groups = [np.sort(group) for group in buckets(lists.lengths, small=small_call(scores.device))]
    groups = groups or [np.arange(0)]
    for group in groups:
        lengths = lists.lengths[group][:, None]
        places = np.arange(lengths.max(initial=0))
        # Positions beyond a list's end repeat its last document and are masked.
        places_of = lists.starts[group][:, None] + np.minimum(places, np.maximum(lengths - 1, 0))
        index = on_device(places_of.clip(max=max(len(scores) - 1, 0)), scores.device)
        mask = on_device(places < lengths, scores.device)
        rows = on_device(group, scores.device)
        own = {name: _of_group(name, value, lists, index, rows) for name, value in options.items()}
        padded = _padded(scores, index), _padded(labels, index), mask
        values.append(function(*padded, **own))
    if len(groups) == 1:
        return values[0]
    return torch.cat(values)[on_device(np.argsort(np.concatenate(groups)), scores.device)]


def _of_group(name: str, option: Any, lists: Flat, index: Tensor, rows: Tensor) -> Any:
    """A group's part of an option with a number per list ``[B, 1]`` or document ``[N]``."""
    if not isinstance(option, Tensor) or option.ndim == 0:
        return option
    if option.ndim == 1:
        # A number, or gains that are learned, are not of documents.
        return option if name in RANGES or name == "gain" else _padded(option, index)
    return option.expand(len(lists.lengths), -1)[rows]


def _padded(values: Tensor, index: Tensor) -> Tensor:
    """``values [N]`` at an index ``[B, L]``."""
    return values.index_select(0, index.flatten()).view(index.shape)


def of_queries(weights: Numbers, queries: int, like: Tensor) -> Tensor:
    """Weights ``[B]`` of queries as a tensor of the type and on the device of another."""
    given = tensor_of(weights, "weights").to(like)
    if given.shape != (queries,):
        raise ArgumentError(
            f"weights {tuple(given.shape)} must be [{queries}], one for each query",
            "repeat one weight for all, or give weights of documents as document_weights",
        )
    if given.device.type == "cpu" and not bool(((given >= 0) & (given < torch.inf)).all()):
        raise ArgumentError("a weight is negative, NaN or infinite", "use 0 to leave a query out")
    return given
