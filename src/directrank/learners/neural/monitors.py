"""Quantities that a run records in its history during training, beyond the selection metric.

They cost a pass over a split each time, so a run has none unless its specification lists them.
Values on the test set are only recorded; training does not use them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank import losses, metrics
from directrank.learners.contract import Splits
from directrank.learners.neural import QUANTITIES
from directrank.learners.neural.batches import uniform_by_document
from directrank.lists.buckets import buckets
from directrank.lists.draws import Counters
from directrank.lists.packed import RankedLists, concatenated_ranges
from directrank.lists.padding import pad, padded_positions
from directrank.metrics.packed import metrics_per_query
from directrank.system.registry import look_up
from directrank.system.seeds import derive_seed

#: The splits on which a quantity may be measured; the training set is the default.
SPLITS = ("train", "vali", "test")


def columns(quantities: Sequence[Mapping[str, Any]]) -> list[str]:
    """The history's column of each quantity.

    Raises:
        ConfigError: the metric is unknown.
    """
    return [_column(quantity) for quantity in quantities]


def due(settings: Mapping[str, Any] | None, epoch: int, ends: bool) -> bool:
    """Whether the quantities are due after ``epoch``; they always are at the end of training."""
    return settings is not None and (ends or epoch % settings.get("every", 1) == 0)


def watch(
    quantities: Sequence[Mapping[str, Any]],
    data: Splits,
    score: Callable[[RankedLists], Tensor],
    loss_settings: Sequence[Mapping[str, Any]],
) -> dict[str, np.ndarray]:
    """Each quantity on its split; ``score`` returns the scores ``[M, N]`` of lists."""
    values: dict[str, np.ndarray] = {}
    for split in SPLITS:
        of_split = [item for item in quantities if _split(item) == split]
        if of_split:
            lists = getattr(data, split)
            values |= monitor(of_split, score(lists), lists, loss_settings)
    return values


def monitor(
    quantities: Sequence[Mapping[str, Any]],
    scores: Tensor,
    lists: RankedLists,
    loss_settings: Sequence[Mapping[str, Any]],
) -> dict[str, np.ndarray]:
    """Each quantity for every model.

    Args:
        quantities: ``{"quantity": name, "metric": mapping}`` with one of the names

            - ``approximation_error``: mean over the queries of ``|-loss(q) - metric(q)|``, the ρ of
              Qin2010 (section 5.2) for a loss that approximates the metric;
            - ``metric``: mean of the metric;
            - ``objective``: mean of the loss, without a metric;
            - a name of :data:`directrank.learners.neural.QUANTITIES`, without a metric.

            and with ``split`` if it is not the training set. A query without a relevant document is
            left out, unless the metric says otherwise.
        scores: packed scores ``[M, N]`` of all documents of ``lists``; metrics are computed on
            their device.
        lists: the queries of that split.
        loss_settings: the loss of each model; one that draws has the same numbers each time.

    Returns:
        Column of the history → float64 ``[M]``.

    Raises:
        ConfigError: a loss or metric is unknown.
    """
    relevant = lists.relevant_counts() > 0
    values: dict[str, np.ndarray] = {}

    @cache
    def losses_per_query() -> np.ndarray:
        return loss_per_query(scores.cpu(), lists, loss_settings)

    for quantity in quantities:
        name, column = quantity["quantity"], _column(quantity)
        if name in QUANTITIES:
            several = look_up(QUANTITIES, name, "quantity")(scores, lists, loss_settings)
            values |= {f"{_split(quantity)}_{key}": value for key, value in several.items()}
            continue
        if name == "objective":
            values[column] = losses_per_query()[:, relevant].mean(1)
            continue
        mapping = quantity["metric"]
        measured = metrics_per_query(scores, lists, [mapping])[metrics.label(mapping)]
        if name == "approximation_error":
            measured = np.abs(-losses_per_query() - measured)
        values[column] = np.nanmean(measured, axis=1)
    return values


def loss_per_query(
    scores: Tensor, lists: RankedLists, loss_settings: Sequence[Mapping[str, Any]]
) -> np.ndarray:
    """The loss of every query under each model's own settings, float64 ``[M, Q]``."""
    labels = torch.as_tensor(np.array(lists.labels), dtype=scores.dtype)
    lengths = np.asarray(lists.lengths)
    result = np.zeros((len(scores), lists.n_queries))
    for group in buckets(lengths):
        rows = torch.from_numpy(concatenated_ranges(lists.offsets[group], lengths[group]))
        mask, index = padded_positions(torch.from_numpy(lengths[group]))
        padded_labels = pad(labels[rows], mask, index)
        for model, settings in enumerate(loss_settings):
            options = dict(settings)
            loss = losses.get(options.pop("name"))
            if losses.needs_of(settings["name"]).random(settings):
                seeds = torch.full((len(group),), derive_seed("monitor"))
                numbers = torch.from_numpy(group)
                options["generator"] = Counters(
                    seeds, numbers, torch.zeros(1, dtype=torch.int64), uniform_by_document
                )
            with torch.no_grad():
                value = loss(pad(scores[model, rows], mask, index), padded_labels, mask, **options)
            result[model, group] = value.double().numpy()
    return result


def _column(quantity: Mapping[str, Any]) -> str:
    if "metric" not in quantity:
        return f"{_split(quantity)}_{quantity['quantity']}"
    label = metrics.label(quantity["metric"])
    if quantity["quantity"] == "metric":
        return f"{_split(quantity)}_{label}"
    return f"{quantity['quantity']}_{label}"


def _split(quantity: Mapping[str, Any]) -> str:
    return quantity.get("split", "train")
