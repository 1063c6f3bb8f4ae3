"""Ranking metrics per query: ``name(scores, labels, mask, k=None, …) -> Tensor [B]``.

Each metric is one file: a formula over any ranking, and the function that applies it to the stable
sort. Metrics are listed below, by the import for type checkers, and loaded on first use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from directrank.system.errors import ArgumentError
from directrank.system.registry import listed, look_up, refuse_options, target_of

if TYPE_CHECKING:
    from torch import Tensor

    from directrank.lists.calls import Numbers
    from directrank.metrics._average_precision import average_precision as average_precision
    from directrank.metrics._correlation import kendall as kendall
    from directrank.metrics._correlation import spearman as spearman
    from directrank.metrics._dcg import dcg as dcg
    from directrank.metrics._err import err as err
    from directrank.metrics._err import nerr as nerr
    from directrank.metrics._ndcg import ndcg as ndcg
    from directrank.metrics._precision import precision as precision
    from directrank.metrics._recall import hit_rate as hit_rate
    from directrank.metrics._recall import recall as recall
    from directrank.metrics._reciprocal_rank import reciprocal_rank as reciprocal_rank

#: name → module:function
REGISTRY: dict[str, str] = listed(__name__)

#: Metrics that compare ranks with labels as a whole: they have no cut-off, and no relaxation.
CORRELATIONS = ("spearman", "kendall")

#: The name of a metric in the label of a column.
SHORT_NAMES = {"average_precision": "ap", "reciprocal_rank": "rr"}

__all__ = [
    *REGISTRY,
    "CORRELATIONS",
    "REGISTRY",
    "evaluate",
    "formula",
    "get",
    "label",
    "mean",
]


def get(name: str) -> Callable[..., Tensor]:
    """The metric ``name``; raises ``ConfigError``, which lists the known ones, if it is unknown."""
    return look_up(REGISTRY, name, "metric")


def formula(name: str) -> Callable[..., tuple[Tensor, Tensor]]:
    """The metric ``name`` over any ranking, ``(ranking, judgements, k, …) -> (value, defined)``."""
    return getattr(import_module(get(name).__module__), f"{name}_of")


def label(mapping: Mapping[str, Any]) -> str:
    """The column name of a configured metric, e.g. ``ndcg@5/letor`` or ``ap@5/graded_ideal``.

    Options with their default values are left out. So is ``empty``, because values are stored per
    query, and a convention for empty queries is applied only to means.

    Raises:
        ConfigError: an unknown metric.
    """
    options = dict(mapping)
    if not isinstance(options.get("gain", ""), str):
        from directrank.lists.parameters import check_options

        options = check_options(options)
    name = options.pop("name")
    target_of(REGISTRY, name, "metric")
    text = SHORT_NAMES.get(name, name)
    if options.get("k") is not None:
        text += f"@{options['k']}"
    named = options.keys() - {"k", "empty"}
    # In the order of the metric's parameters, which are looked up only if an option is given.
    for key, parameter in inspect.signature(get(name)).parameters.items() if named else ():
        value = options.get(key, parameter.default)
        if key not in named or value == parameter.default:
            continue
        if isinstance(value, Sequence) and not isinstance(value, str):
            text += f"/{key}={','.join(f'{number:g}' for number in value)}"
        else:
            text += f"/{value}" if isinstance(value, str) else f"/{key}={value:g}"
    return text


def evaluate(
    mappings: Iterable[str | Mapping[str, Any]],
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    lengths: Numbers | None = None,
    query_ids: Numbers | None = None,
) -> dict[str, Tensor]:
    """Several metrics of the same lists, which are sorted only once.

    Args:
        mappings: metrics by name, or as in a configuration, e.g. ``{"name": "ndcg", "k": 5}``.
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        lengths: int ``[B]``, documents per query, if scores and labels are flat ``[N]``.
        query_ids: ``[N]``, instead of lengths: the query of each document; equal neighbours form a
            query.

    Returns:
        Column label (:func:`label`) → float64 ``[B]``; NaN for an empty query, unless the mapping
        names another convention.

    Raises:
        ConfigError: an unknown metric, or an option that it does not have; two different metrics
            have the same label.
    """
    import torch

    from directrank.lists.calls import called
    from directrank.metrics.evaluation import Evaluation

    if isinstance(mappings, str | Mapping):
        raise ArgumentError(f"{mappings!r} is no list of metrics", f"give a list: [{mappings!r}]")
    chosen = [_checked(mapping) for mapping in mappings]
    labelled: dict[str, Mapping[str, Any]] = {}
    for mapping in chosen:
        other = labelled.setdefault(label(mapping), mapping)
        if other != mapping and _settings(other) != _settings(mapping):
            raise ArgumentError(
                f"{other} and {mapping} have the same label, '{label(mapping)}'",
                "evaluate them in two calls",
            )

    def values(scores: Tensor, labels: Tensor, mask: Tensor | None) -> Tensor:
        evaluation = Evaluation(scores, labels, mask)
        columns = [scores.new_empty(len(evaluation.mask), 0, dtype=torch.float64)]
        for mapping in chosen:
            options = dict(mapping)
            value = evaluation.value(formula(options.pop("name")), **options)
            columns.append(value.unsqueeze(1))
        return torch.cat(columns, 1)

    found = called(
        values, scores, labels, mask, lengths=lengths, query_ids=query_ids, is_metric=True
    )
    return {label(mapping): found[:, column] for column, mapping in enumerate(chosen)}


def _checked(mapping: str | Mapping[str, Any]) -> dict[str, Any]:
    """The name and the options of a metric.

    Raises:
        ConfigError: the metric is unknown, or it does not have an option.
    """
    from directrank.lists.calls import OF_LISTS
    from directrank.lists.parameters import NUMBERS, check_options

    if not isinstance(mapping, Mapping):
        mapping = {"name": mapping}
    if not isinstance(mapping.get("name"), str):
        raise ArgumentError(
            f"{dict(mapping)} does not name a metric", 'give its name, such as {"name": "ndcg"}'
        )
    known = [each for each in inspect.signature(get(mapping["name"])).parameters
             if each not in OF_LISTS]  # fmt: skip
    refuse_options(f"metric '{mapping['name']}'", (key for key in mapping if key != "name"), known)
    return check_options(mapping, NUMBERS)


def _settings(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """The name of a metric and all of its options."""
    parameters = inspect.signature(get(mapping["name"])).parameters
    return {name: parameter.default for name, parameter in parameters.items()} | dict(mapping)


def mean(values: Numbers, weights: Numbers | None = None, *, empty: str = "exclude") -> Tensor:
    """The mean of a metric over queries, weighted or not; a query of weight 2 counts twice.

    Args:
        values: ``[B]``, the values of any metric, as a tensor or an array; NaN for an empty query.
        weights: ``[B]``, not negative; None takes the plain mean.
        empty: an empty query is left out with its weight (``exclude``), or counts as 0 (``zero``)
            or 1 (``one``).

    Returns:
        A number; NaN if no query with a weight is left.

    Raises:
        DirectrankError: weights are not ``[B]`` or negative, or the convention is unknown.

    >>> import torch
    >>> from directrank import metrics
    >>> values = torch.tensor([0.5, 1.0, torch.nan])
    >>> metrics.mean(values, weights=[3, 1, 6])
    tensor(0.6250)
    >>> metrics.mean(values, weights=[3, 1, 6], empty="zero")
    tensor(0.2500)
    """
    import torch

    from directrank.lists.arrays import tensor_of
    from directrank.lists.calls import of_queries
    from directrank.metrics.conventions import with_empty

    values = tensor_of(values, "values")
    values = values if values.is_floating_point() else values.double()
    given = torch.ones_like(values) if weights is None else of_queries(weights, len(values), values)
    known = ~values.isnan()
    if empty == "exclude":
        given = given * known
    filled = with_empty(values, known, empty).masked_fill(given == 0, 0.0)
    return (given * filled).sum() / given.sum()


def __getattr__(name: str) -> Any:
    if name in REGISTRY:
        return get(name)
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
