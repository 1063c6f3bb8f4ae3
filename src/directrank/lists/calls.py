"""Calls of losses and metrics with padded or flat lists, and with weights of queries.

A loss or metric is written for padded lists. If it accepts a :class:`directrank.lists.flat.Flat`
instead of a mask, flat lists stay as they are. Otherwise it raises
:class:`directrank.lists.flat.PaddingNeededError`, and is then called for groups of lists of similar
length, which are padded for it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from textwrap import fill
from typing import Any, ParamSpec, Protocol, TypeAlias, overload

import numpy as np
import torch
from torch import Tensor

from directrank.lists.buckets import buckets, small_call
from directrank.lists.devices import on_device
from directrank.lists.flat import Flat, PaddingNeededError, flat_lists
from directrank.system.errors import DirectrankError

Own = ParamSpec("Own")

#: Numbers as a tensor, an array or a list.
Numbers: TypeAlias = Tensor | np.ndarray | Sequence[float]

_within_transform = torch._C._functorch.is_functorch_wrapped_tensor

#: The parameters that a decorator adds: names, types and docstrings.
_LISTS = {
    "lengths": "int ``[B]``, documents per query, if scores and labels are flat ``[N]``; "
    "LightGBM's and XGBoost's ``group``.",
    "query_ids": "``[N]``, instead of lengths: the query of each document; equal neighbours "
    "form a query.",
}
_WEIGHTS = {"weights": "``[B]``, the factor of each query's loss."}


class Metric(Protocol[Own]):
    """A function of padded or flat lists."""

    @overload
    def __call__(self, *args: Own.args, **options: Own.kwargs) -> Tensor: ...
    @overload
    def __call__(
        self, scores: Tensor, labels: Tensor, *, lengths: Numbers, **options: Any
    ) -> Tensor: ...
    @overload
    def __call__(
        self, scores: Tensor, labels: Tensor, *, query_ids: Numbers, **options: Any
    ) -> Tensor: ...


class Loss(Metric[Own], Protocol[Own]):
    """A function of padded or flat lists, and of weights of their queries."""

    @overload
    def __call__(self, *args: Own.args, **options: Own.kwargs) -> Tensor: ...
    @overload
    def __call__(
        self, scores: Tensor, labels: Tensor, *, lengths: Numbers, **options: Any
    ) -> Tensor: ...
    @overload
    def __call__(
        self, scores: Tensor, labels: Tensor, *, query_ids: Numbers, **options: Any
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        weights: Numbers,
        **options: Any,
    ) -> Tensor: ...


def ranking_loss(loss: Callable[Own, Tensor]) -> Loss[Own]:
    """Make a loss of padded lists accept flat ones too, and a weight per query.

    The parameters ``lengths``, ``query_ids`` and ``weights`` are added to its signature and
    docstring. Weights multiply the values, so that the weighted mean of a batch is
    ``loss(…, weights=weights).sum() / weights.sum()``.

    Raises:
        DirectrankError: raised by the loss as by :func:`directrank.lists.flat.flat_lists`; weights
            are not ``[B]`` or negative; the loss takes no weights of documents.
    """
    known = inspect.signature(loss).parameters
    name, names = f"{loss.__module__}:{loss.__qualname__}", tuple(known)[3:]

    @wraps(loss)
    def call(
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *positional: Any,
        lengths: Numbers | None = None,
        query_ids: Numbers | None = None,
        weights: Numbers | None = None,
        **options: Any,
    ) -> Tensor:
        if torch.compiler.is_compiling():
            from directrank.lists import compiled

            given = {"labels": labels, "mask": mask, "lengths": lengths, "query_ids": query_ids,
                     "weights": weights, **dict(zip(names, positional, strict=False))}  # fmt: skip
            return compiled.call(call, name, scores, given | options)
        if "document_weights" in options and "document_weights" not in known:
            raise DirectrankError(
                f"{loss.__name__} takes no weights of documents, because it is a value of the "
                "whole ranking, not a sum over documents",
                "use weights for queries; rmse, listnet and xe_ndcg take document_weights",
            )
        return called(loss, scores, labels, mask, *positional, lengths=lengths,
                      query_ids=query_ids, weights=weights, **options)  # fmt: skip

    return _documented(call, loss, _LISTS | _WEIGHTS)


def ranking_metric(metric: Callable[Own, Tensor]) -> Metric[Own]:
    """Make a metric of padded lists accept flat ones too.

    The parameters ``lengths`` and ``query_ids`` are added to its signature and docstring. Weights
    do not change the value of a query; for the weighted mean see :func:`directrank.metrics.mean`.

    Raises:
        DirectrankError: raised by the metric as by :func:`directrank.lists.flat.flat_lists`;
            weights are given.
    """

    @wraps(metric)
    def call(
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *positional: Any,
        lengths: Numbers | None = None,
        query_ids: Numbers | None = None,
        **options: Any,
    ) -> Tensor:
        if "weights" in options or "document_weights" in options:
            raise DirectrankError(
                f"{metric.__name__} takes no weights, because they do not change the value of a "
                "query, and documents have no weights in a ranking",
                f"take the weighted mean: metrics.mean(metrics.{metric.__name__}(…), weights)",
            )
        return called(metric, scores, labels, mask, *positional, lengths=lengths,
                      query_ids=query_ids, **options)  # fmt: skip

    return _documented(call, metric, _LISTS)


def called(
    function: Callable[..., Tensor],
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None,
    *positional: Any,
    lengths: Numbers | None = None,
    query_ids: Numbers | None = None,
    weights: Numbers | None = None,
    **options: Any,
) -> Tensor:
    """Call ``function(scores, labels, mask, …)`` for padded or flat lists, and weigh its values.

    Autocasting is disabled here, because sums over a list need full precision.

    Raises:
        DirectrankError: as for :func:`directrank.lists.flat.flat_lists`; flat lists have a mask;
            weights are not ``[B]`` or negative; scores are within a transform of ``torch.func``.
    """
    if _within_transform(scores):
        raise DirectrankError(
            "losses and metrics cannot be transformed by torch.func (vmap, grad, …)",
            "call them without vmap, with the scores [B, L] of all lists and a mask: they return a "
            "value per list, and torch.autograd.grad of their sum the gradient of each",
        )
    if torch.is_autocast_enabled(scores.device.type):
        with torch.autocast(scores.device.type, enabled=False):
            return called(function, scores, labels, mask, *positional, lengths=lengths,
                          query_ids=query_ids, weights=weights, **options)  # fmt: skip
    if lengths is None and query_ids is None:
        values = function(scores, labels, mask, *positional, **options)
    elif mask is not None:
        raise DirectrankError(
            "flat lists have no mask, but one is given", "leave it out, because nothing is padded"
        )
    else:
        lists = flat_lists(scores, labels, lengths, query_ids)
        try:
            values = function(scores, labels, lists, *positional, **options)
        except PaddingNeededError:
            values = _in_groups(function, scores, labels, lists, positional, options)
    return values if weights is None else values * of_queries(weights, values)


def _in_groups(
    function: Callable[..., Tensor],
    scores: Tensor,
    labels: Tensor,
    lists: Flat,
    positional: Sequence[Any],
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
        own = {name: _of_group(value, lists, index, rows) for name, value in options.items()}
        padded = _padded(scores, index), _padded(labels, index), mask
        values.append(function(*padded, *positional, **own))
    if len(groups) == 1:
        return values[0]
    return torch.cat(values)[on_device(np.argsort(np.concatenate(groups)), scores.device)]


def _of_group(option: Any, lists: Flat, index: Tensor, rows: Tensor) -> Any:
    """A group's part of an option with a number per list ``[B, 1]`` or document ``[N]``."""
    if not isinstance(option, Tensor) or option.ndim == 0:
        return option
    if option.ndim == 1:
        return _padded(option, index)
    return option.expand(len(lists.lengths), -1)[rows]


def _padded(values: Tensor, index: Tensor) -> Tensor:
    """``values [N]`` at an index ``[B, L]``."""
    return values.index_select(0, index.flatten()).view(index.shape)


def of_queries(weights: Numbers, values: Tensor) -> Tensor:
    """Weights as a tensor like the ``values [B]``."""
    given = torch.as_tensor(weights).to(values)
    if given.shape != values.shape:
        raise DirectrankError(
            f"weights {tuple(given.shape)} must be [{len(values)}], one for each query",
            "repeat one weight for all, or give weights of documents as document_weights",
        )
    if given.device.type == "cpu" and bool((given < 0).any()):
        raise DirectrankError("a weight is negative", "use 0 to leave a query out")
    return given


def _documented(call: Any, function: Callable[..., Tensor], added: Mapping[str, str]) -> Any:
    """``call`` with the signature and docstring of a function, and the parameters added to them."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    place = sum(parameter.kind is not parameter.KEYWORD_ONLY for parameter in parameters)
    parameters[place:place] = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Numbers | None"
        )
        for name in added
    ]
    call.__signature__ = signature.replace(parameters=parameters)

    def with_added(mask: re.Match[str]) -> str:
        lines = [
            fill(f"{name}: {text}", 100, initial_indent=mask[1], subsequent_indent=f"{mask[1]}    ")
            for name, text in added.items()
        ]
        return "\n".join([mask[0].rstrip("\n"), *lines, ""])

    entry = r"(?m)^( *)mask: .*\n(?:\1 +.*\n)*"
    call.__doc__ = re.sub(entry, with_added, function.__doc__ or "", count=1)
    return call
