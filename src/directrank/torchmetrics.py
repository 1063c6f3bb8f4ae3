"""Ranking metrics of torchmetrics' form: updated batch by batch, added up over processes."""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch
from torch import Tensor

from directrank import metrics
from directrank.lists.calls import of_queries
from directrank.lists.parameters import NUMBERS, check_options
from directrank.metrics.conventions import with_empty
from directrank.system.errors import ArgumentError
from directrank.system.registry import refuse_options

try:
    import torchmetrics
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "directrank.torchmetrics needs the package 'torchmetrics', which is not installed: run "
        "`pip install '.[torchmetrics]'` in a clone of the repository",
        name="torchmetrics",
    ) from None

#: Options of ``torchmetrics.Metric`` itself.
SETTINGS = (
    "compute_on_cpu",
    "compute_with_cache",
    "dist_sync_fn",
    "dist_sync_on_step",
    "distributed_available_fn",
    "process_group",
    "sync_on_compute",
)

#: What ``update`` gives a metric, and what is applied to its values.
GIVEN = ("scores", "labels", "mask", "lengths", "query_ids", "empty")


class RankingMetric(torchmetrics.Metric):
    """The mean over queries of a metric of this library.

    Every query is complete within one call of ``update``. Sums are kept in float64, so that neither
    the size of batches nor the number of processes changes the mean beyond its last digits. In a
    ``MetricCollection``, only metrics with equal options share their state.

    Args:
        metric: the name of a metric of :data:`directrank.metrics.REGISTRY`.
        per_query: whether ``compute`` returns the value of every query, in the order of the updates
            and then of the processes, instead of the mean.
        empty: a query for which the metric is undefined, such as one without a relevant document,
            is left out of the mean (``exclude``), or counts as 0 (``zero``) or 1 (``one``).
        options: of the metric, such as ``k`` and ``ties``; and those of ``torchmetrics.Metric``,
            such as ``dist_sync_on_step`` and ``process_group``.

    Raises:
        ConfigError: the metric or an option is unknown, or an option is outside of its range.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_upper_bound: float | None = 1.0

    def __init__(
        self, metric: str, *, per_query: bool = False, empty: str = "exclude", **options: Any
    ) -> None:
        super().__init__(**{key: options.pop(key) for key in SETTINGS if key in options})
        self.function = metrics.get(metric)
        given = {key: value for key, value in options.items() if value is not None}
        self.options = check_options(given, NUMBERS)
        known = [key for key in signature(self.function).parameters if key not in GIVEN]
        refuse_options(f"metric '{metric}'", self.options, known)
        # What an update would refuse; labels of 0 suit every gain and the largest label.
        nothing = torch.zeros(1, 2, device="cpu")
        with_empty(self.function(nothing, nothing, **self.options), nothing[:, 0] > 0, empty)
        self.metric = metric
        self.per_query = per_query
        self.empty = empty
        # A collection takes metrics whose states have the same names and values for the same.
        label = f"{metrics.label({'name': metric, **self.options})}, {empty}"
        self._total, self._weight = f"total of {label}", f"weight of {label}"
        self._values = f"values of {label}"
        if per_query:
            self.add_state(self._values, [], dist_reduce_fx="cat")
            self.set_dtype(torch.float64)  # of the nothing that a process without queries sends
        else:
            for name in (self._total, self._weight):
                nothing = torch.zeros((), dtype=torch.float64)
                self.add_state(name, nothing, dist_reduce_fx="sum")

    def update(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        lengths: Any = None,
        query_ids: Any = None,
        weights: Any = None,
    ) -> None:
        """Add queries.

        Args:
            scores: ``[B, L]``, or flat ``[N]``; higher ranks first.
            labels: in the same shape.
            mask: bool ``[B, L]``, True for a real document; None where all are real.
            lengths, query_ids: the queries of flat lists, see :func:`directrank.metrics.ndcg`.
            weights: ``[B]``, of the queries in the mean.

        Raises:
            DirectrankError: raised by the metric; or weights are given for values per query.
        """
        values = self.function(
            scores, labels, mask, lengths=lengths, query_ids=query_ids, **self.options
        )
        values = with_empty(values, ~values.isnan(), self.empty)
        if self.per_query:
            if weights is not None:
                raise ArgumentError(
                    "weights are of the mean, but there is none with per_query",
                    "take the mean of the values by directrank.metrics.mean(values, weights)",
                )
            getattr(self, self._values).append(values.to(self.device))
            return
        given = torch.ones_like(values)
        if weights is not None:
            given = of_queries(weights, len(values), values)
        known = ~values.isnan()
        for name, added in (
            (self._total, (given * values)[known].sum()),
            (self._weight, given[known].sum()),
        ):
            setattr(self, name, getattr(self, name) + added.to(self.device))

    def compute(self) -> Tensor:
        """The mean, a float64 number, NaN without a query; or float64 ``[Q]``, of every query."""
        if not self.per_query:
            return getattr(self, self._total) / getattr(self, self._weight)
        values = getattr(self, self._values)
        if isinstance(values, Tensor):  # of several processes
            return values
        return torch.cat(values) if values else torch.zeros(0, dtype=torch.float64)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """A picture of the mean, or of several, as other metrics draw it (Matplotlib is needed).

        Args:
            val: what :meth:`compute` or a call returned, or a list of them; None computes it.
            ax: Matplotlib's axes; None makes some.

        Returns:
            The figure and its axes.
        """
        return self._plot(val, ax)

    def extra_repr(self) -> str:
        """The options that were set; and the metric, where the class does not name it."""
        given = dict(self.options)
        if self.per_query:
            given["per_query"] = True
        if self.empty != "exclude":
            given["empty"] = self.empty
        shown = [f"{key}={value!r}" for key, value in given.items()]
        return ", ".join([repr(self.metric), *shown] if type(self) is RankingMetric else shown)


class NDCG(RankingMetric):
    """Normalised discounted cumulative gain, by :func:`directrank.metrics.ndcg`.

    Args:
        k: cut-off; None takes the whole list.
        options: ``gain``, ``discount`` and ``ties``, and those of :class:`RankingMetric`.
    """

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__("ndcg", k=k, **options)


class DCG(RankingMetric):
    """Discounted cumulative gain, by :func:`directrank.metrics.dcg`.

    Args:
        k: cut-off; None takes the whole list.
        options: ``gain``, ``discount`` and ``ties``, and those of :class:`RankingMetric`.
    """

    plot_upper_bound = None

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__("dcg", k=k, **options)


class MAP(RankingMetric):
    """Mean average precision, by :func:`directrank.metrics.average_precision`.

    Args:
        k: cut-off; None takes the whole list.
        options: ``denominator``, ``min_label`` and ``ties``, and those of :class:`RankingMetric`.
    """

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__("average_precision", k=k, **options)


class MRR(RankingMetric):
    """Mean reciprocal rank, by :func:`directrank.metrics.reciprocal_rank`.

    Args:
        k: cut-off; None takes the whole list.
        options: ``min_label`` and ``ties``, and those of :class:`RankingMetric`.
    """

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__("reciprocal_rank", k=k, **options)


class ERR(RankingMetric):
    """Expected reciprocal rank, by :func:`directrank.metrics.err`.

    Args:
        k: cut-off; None takes the whole list.
        options: ``max_label`` and ``ties``, and those of :class:`RankingMetric`.
    """

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__("err", k=k, **options)


class Precision(RankingMetric):
    """Precision at k, by :func:`directrank.metrics.precision`.

    Args:
        k: cut-off; None takes the whole list.
        options: ``min_label`` and ``ties``, and those of :class:`RankingMetric`.
    """

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__("precision", k=k, **options)


class Recall(RankingMetric):
    """Recall at k, by :func:`directrank.metrics.recall`.

    Args:
        k: cut-off; None takes the whole list.
        options: ``min_label`` and ``ties``, and those of :class:`RankingMetric`.
    """

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__("recall", k=k, **options)


class HitRate(RankingMetric):
    """Share of queries with a relevant document among the first k.

    The mean of :func:`directrank.metrics.hit_rate`.

    Args:
        k: cut-off; None takes the whole list.
        options: ``min_label`` and ``ties``, and those of :class:`RankingMetric`.
    """

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__("hit_rate", k=k, **options)


def __dir__() -> list[str]:
    """The classes of this module, for TAB."""
    return sorted(
        name
        for name, value in globals().items()
        if isinstance(value, type) and issubclass(value, RankingMetric)
    )
