"""Any metric under any relaxation as a loss: minus the relaxed metric."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from directrank.lists.inputs import checked
from directrank.metrics._average_precision import average_precision_of
from directrank.metrics._err import err_of, nerr_of
from directrank.metrics._ndcg import ndcg_of
from directrank.metrics._precision import precision_of
from directrank.metrics._reciprocal_rank import reciprocal_rank_of
from directrank.metrics.conventions import Judgements
from directrank.relaxations import Ranking
from directrank.relaxations.distribution import RankDistribution
from directrank.relaxations.neural_sort import gumbel_noise, neural_sort, sinkhorn
from directrank.relaxations.rank_binomial import rank_binomial
from directrank.relaxations.sigmoid import SigmoidRanking
from directrank.relaxations.twin import TwinRanking
from directrank.system.errors import ConfigError
from directrank.system.registry import nearest


def compose(
    metric: str | Mapping[str, Any], relaxation: str | Mapping[str, Any], *, samples: int = 1
) -> Callable[..., Tensor]:
    """A loss made of a metric and of what supplies its ranks.

    Args:
        metric: ``ndcg``, ``average_precision``, ``precision``, ``reciprocal_rank``, ``err`` or
            ``nerr``, or a mapping with ``name`` and the metric's options (``k``, ``gain``, …).
        relaxation: ``sigmoid`` (alpha, beta), ``twin`` (gradient, alpha_b, break_ties),
            ``neural_sort`` (tau, iterations, tolerance, noise) or ``rank_binomial`` (sigma), or a
            mapping with ``name`` and those options.
        samples: draws of a stochastic relaxation that the loss is averaged over.

    Returns:
        ``loss(scores, labels, mask=None, generator=None) -> Tensor [B]``: minus the relaxed metric,
        0 for a query without a relevant document.

    Raises:
        ConfigError: an unknown name or option.
    """
    formula, metric_options = _resolve(METRICS, metric, "metric")
    build, options = _resolve(RELAXATIONS, relaxation, "relaxation")
    if formula is precision_of and build is not _twin and metric_options.get("k") is None:
        raise ConfigError(
            "precision without a cut-off does not depend on the scores", "give the metric a 'k'"
        )

    def loss(
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        scores, labels, mask = checked(scores, labels, mask)
        judgements = Judgements(labels, mask)
        values = []
        for _ in range(samples):
            ranking = build(scores, labels, mask, generator, **options)
            value, defined = formula(ranking, judgements, **metric_options)
            values.append(torch.where(defined, value, 0.0))
        return -sum(values) / samples

    return loss


def composed(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    metric: str | Mapping[str, Any],
    relaxation: str | Mapping[str, Any],
    samples: int = 1,
    generator: torch.Generator | None = None,
) -> Tensor:
    """:func:`compose` in one call, so that a configuration can name any composition."""
    return compose(metric, relaxation, samples=samples)(scores, labels, mask, generator)


def _sigmoid(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    alpha: float = 10.0,
    beta: float = 10.0,
) -> Ranking:
    return SigmoidRanking(scores, mask, alpha=alpha, beta=beta)


def _twin(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    gradient: str = "type3",
    alpha_b: float = 1.0,
    break_ties: bool = True,
) -> Ranking:
    return TwinRanking(
        scores,
        labels,
        mask,
        gradient=gradient,
        alpha_b=alpha_b,
        break_ties=break_ties,
        generator=generator,
    )


def _neural_sort(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    tau: float = 1.0,
    iterations: int = 30,
    tolerance: float = 1e-6,
    noise: float = 0.0,
) -> Ranking:
    if noise:
        scores = scores + noise * gumbel_noise(scores, mask, generator)
    matrix = sinkhorn(neural_sort(scores, mask, tau), iterations, tolerance)
    return RankDistribution(matrix.transpose(1, 2))


def _rank_binomial(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    sigma: float = 1.0,
) -> Ranking:
    return RankDistribution(rank_binomial(scores, mask, sigma))


METRICS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "ndcg": ndcg_of,
    "average_precision": average_precision_of,
    "precision": precision_of,
    "reciprocal_rank": reciprocal_rank_of,
    "err": err_of,
    "nerr": nerr_of,
}

RELAXATIONS: dict[str, Callable[..., Ranking]] = {
    "sigmoid": _sigmoid,
    "twin": _twin,
    "neural_sort": _neural_sort,
    "rank_binomial": _rank_binomial,
}


def _resolve(
    known: Mapping[str, Callable[..., Any]], wanted: str | Mapping[str, Any], kind: str
) -> tuple[Callable[..., Any], dict[str, Any]]:
    options = {"name": wanted} if isinstance(wanted, str) else dict(wanted)
    name = options.pop("name", None)
    if name not in known:
        raise ConfigError(f"unknown {kind} '{name}'", nearest(str(name), known))
    function = known[name]
    taken = ("ranking", "judgements", "scores", "labels", "mask", "generator")
    allowed = [key for key in inspect.signature(function).parameters if key not in taken]
    for option in options:
        if option not in allowed:
            raise ConfigError(f"{kind} '{name}' has no option '{option}'", nearest(option, allowed))
    return function, options
