"""Metrics per query from packed scores, computed in groups of lists of similar length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property

import numpy as np
import torch
from torch import Tensor

from directrank import metrics
from directrank.lists.buckets import buckets
from directrank.lists.packed import RankedLists, concatenated_ranges
from directrank.metrics.conventions import Judgements
from directrank.metrics.evaluation import Evaluation
from directrank.relaxations.protocol import Ranking

#: The most elements of padded tensors that are processed together, on a CPU and on a GPU.
PADDED_AT_ONCE, PADDED_ON_GPU = 1 << 20, 1 << 24

#: A group with this many padded documents takes less time than another group.
SMALL_GROUP = 1 << 11


def metrics_per_query(
    scores: Tensor | np.ndarray, lists: RankedLists, mappings: Sequence[Mapping[str, object]]
) -> dict[str, np.ndarray]:
    """Compute every metric of ``mappings`` for every query.

    Args:
        scores: packed scores, ``[N]``, or ``[M, N]`` of M models.
        lists: the queries; ties are broken by their order in the file.
        mappings: metrics as in a configuration, e.g. ``{"name": "ndcg", "k": 5}``.

    Returns:
        Column label → float64 ``[Q]`` or ``[M, Q]``; NaN for a query without a relevant document.
    """
    scores = torch.as_tensor(scores)
    values = Evaluator(lists, mappings)(scores.reshape(-1, scores.shape[-1]))
    return {label: value[0] for label, value in values.items()} if scores.ndim == 1 else values


class Evaluator:
    """Evaluates many scorings of the same lists; quantities that depend only on labels are kept.

    Metrics are computed on the device of the scores.

    Args:
        lists: the queries.
        mappings: metrics as in a configuration.
    """

    def __init__(self, lists: RankedLists, mappings: Sequence[Mapping[str, object]]) -> None:
        self.n_queries = lists.n_queries
        self.metrics: list[tuple[str, Callable[..., tuple[Tensor, Tensor]], dict]] = []
        for mapping in mappings:
            options = dict(mapping)
            formula = metrics.formula(str(options.pop("name")))
            self.metrics.append((metrics.label(mapping), formula, options))
        lengths = np.asarray(lists.lengths)
        labels = np.asarray(lists.labels)
        self.groups = [
            _Group(lists.offsets[group] - lists.offsets[0], lengths[group], group, labels)
            for group in buckets(lengths, small=SMALL_GROUP, power=1)
        ]

    def __call__(self, scores: Tensor) -> dict[str, np.ndarray]:
        """Column label → float64 ``[M, Q]`` of packed ``scores`` ``[M, N]``.

        Queries with a score of NaN are NaN, so that a model that diverged is not the best.
        """
        scores = scores.detach()
        at_once = PADDED_AT_ONCE if scores.device.type == "cpu" else PADDED_ON_GPU
        unknown = scores.isnan()
        diverged = bool(unknown.any())
        empty = torch.full((len(scores), self.n_queries), torch.nan, dtype=torch.float64)
        result = {label: empty.to(scores.device, copy=True) for label, _, _ in self.metrics}
        for group in self.groups:
            group.move(scores.device)
            together = max(1, at_once // group.mask.numel())
            for first in range(0, len(scores), together):
                some = slice(first, first + together)
                evaluation = group.evaluation(scores[some])
                for label, formula, options in self.metrics:
                    value = evaluation.value(formula, **options).view(-1, len(group.queries))
                    if diverged:
                        value = value.masked_fill(group.holds(unknown[some]), torch.nan)
                    result[label][some].index_copy_(1, group.queries, value)
        return {label: values.cpu().numpy() for label, values in result.items()}


class _Group:
    """Lists of similar length: the positions of their documents, and their judgements."""

    def __init__(
        self, starts: np.ndarray, lengths: np.ndarray, queries: np.ndarray, labels: np.ndarray
    ) -> None:
        self.queries = torch.from_numpy(queries)
        places = np.arange(int(lengths[0]))
        mask = places < lengths[:, None]
        self.mask = torch.from_numpy(mask)
        # Positions beyond a list's end repeat its last document and are masked.
        last = np.maximum(lengths[:, None] - 1, 0)
        self.index = torch.from_numpy((starts[:, None] + np.minimum(places, last)).ravel())
        packed = torch.from_numpy(labels[concatenated_ranges(starts, lengths)].astype(np.float64))
        self.labels = torch.zeros(mask.shape, dtype=torch.float64)
        self.labels[self.mask] = packed
        self.repeated: _Repeated | None = None

    def move(self, device: torch.device) -> None:
        """Keep the lists on a device."""
        if self.mask.device != device:
            self.queries, self.mask = self.queries.to(device), self.mask.to(device)
            self.index, self.labels = self.index.to(device), self.labels.to(device)
            self.repeated = None

    def evaluation(self, scores: Tensor) -> Evaluation:
        """An evaluation of the scores ``[M, N]`` of these lists, as M times as many lists."""
        models = len(scores)
        if self.repeated is None or self.repeated.models != models:
            self.repeated = _Repeated(Judgements(self.labels, self.mask), models)
        padded = scores.index_select(1, self.index).view(-1, self.mask.shape[1])
        return _Evaluation(padded, self.repeated)

    def holds(self, chosen: Tensor) -> Tensor:
        """Whether a list has a chosen document, bool ``[M, lists]``, from ``[M, N]``."""
        padded = chosen.index_select(1, self.index).view(len(chosen), *self.mask.shape)
        return padded.any(2)


class _Evaluation(Evaluation):
    """An evaluation of lists whose judgements are given."""

    def __init__(self, scores: Tensor, judgements: Judgements) -> None:
        self.scores, self.mask, self.judgements = scores, judgements.mask, judgements


class _Repeated(Judgements):
    """The judgements of lists repeated M times, computed once and kept."""

    def __init__(self, once: Judgements, models: int) -> None:
        super().__init__(once.labels.repeat(models, 1), once.mask.repeat(models, 1))
        self.once = once
        self.models = models
        self._gains = cache(super().gains)

    def gains(self, kind: str | Sequence[float]) -> Tensor:
        """The gain of each document, ``[B, L]``."""
        return self._gains(kind if isinstance(kind, str) else tuple(kind))

    @cached_property
    def ideal(self) -> _RepeatedRanking:
        """The ranking by label."""
        return _RepeatedRanking(self.once.ideal, self.models, len(self.once.labels))


class _RepeatedRanking:
    """A ranking of lists repeated M times; see :class:`directrank.relaxations.Ranking`."""

    def __init__(self, once: Ranking, models: int, lists: int) -> None:
        self.once = once
        self.models = models
        self.lists = lists

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return self.once.weigh(gains[: self.lists], weight, k).repeat(self.models)

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return self.once.count(chosen[: self.lists], k).repeat(self.models)

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return self.once.precisions(chosen[: self.lists], k).repeat(self.models)

    def cascade(self, stops: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        return self.once.cascade(stops[: self.lists], k).repeat(self.models)
