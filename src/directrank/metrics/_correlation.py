"""Correlations of the order of the scores with that of the labels."""

from __future__ import annotations

import torch
from torch import Tensor

from directrank.lists.calls import ranking_metric
from directrank.lists.conventions import ratio
from directrank.metrics.conventions import Judgements
from directrank.metrics.evaluation import Evaluation
from directrank.metrics.mean_ranks import MeanRanks, mean_ranks
from directrank.relaxations.protocol import Ranking
from directrank.system.errors import ArgumentError


@ranking_metric
def spearman(
    scores: Tensor, labels: Tensor, mask: Tensor | None = None, *, empty: str = "exclude"
) -> Tensor:
    """Spearman's ρ per query: the correlation of the ranks by score and by label.

    Documents with equal scores or labels share the mean of their ranks, as in SciPy's
    ``spearmanr``. Where all scores are equal, which orders nothing, the value is 0, and NaN there.

    Args:
        scores: ``[B, L]``; higher ranks first.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        empty: a query whose documents all have one label is NaN (``exclude``), 0 or 1.

    Returns:
        float64 ``[B]``, from -1 to 1, without a gradient.

    >>> import torch
    >>> from directrank import metrics
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [0.0, 0.0, 1.0]])
    >>> metrics.spearman(scores, labels)
    tensor([-1.0000,  0.8660], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(spearman_of, empty=empty)


@ranking_metric
def kendall(
    scores: Tensor, labels: Tensor, mask: Tensor | None = None, *, empty: str = "exclude"
) -> Tensor:
    """Kendall's τ-b per query: pairs in the right order less those in the wrong one.

    Their number is divided by the geometric mean of the pairs with different scores and those with
    different labels, as in SciPy's ``kendalltau``. Where all scores are equal, which orders
    nothing, the value is 0, and NaN there. Arguments are as for :func:`spearman`.

    >>> import torch
    >>> from directrank import metrics
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [0.0, 0.0, 1.0]])
    >>> metrics.kendall(scores, labels)
    tensor([-1.0000,  0.8165], dtype=torch.float64)
    """
    return Evaluation(scores, labels, mask).value(kendall_of, empty=empty)


def spearman_of(ranking: Ranking | MeanRanks, judgements: Judgements) -> tuple[Tensor, Tensor]:
    """Spearman's ρ of mean ranks: value and where labels differ, ``[B]``.

    Raises:
        ConfigError: the ranking is another.
    """
    mask = judgements.mask
    by_score = _centred(_ranks_of(ranking, "spearman"), mask)
    by_label = _centred(mean_ranks(judgements.labels, mask), mask)
    scale = (by_score.square().sum(1) * by_label.square().sum(1)).sqrt()
    return ratio((by_score * by_label).sum(1), scale), by_label.any(1)


def kendall_of(ranking: Ranking | MeanRanks, judgements: Judgements) -> tuple[Tensor, Tensor]:
    """Kendall's τ-b of mean ranks: value and where labels differ, ``[B]``.

    Raises:
        ConfigError: the ranking is another.
    """
    ranks, labels, mask = _ranks_of(ranking, "kendall"), judgements.labels, judgements.mask
    # Document by document, which needs no matrix of pairs.
    counts = torch.zeros(3, len(ranks), dtype=torch.float64, device=ranks.device)
    for i in range(ranks.shape[1]):
        pairs = (mask & mask[:, i, None]).double()
        higher = (ranks - ranks[:, i, None]).sign() * pairs
        better = (labels - labels[:, i, None]).sign() * pairs
        counts += torch.stack([(higher * better).sum(1), higher.abs().sum(1), better.abs().sum(1)])
    balance, by_score, by_label = counts
    return ratio(balance, (by_score * by_label).sqrt()), by_label > 0


#: The rule for ties by which these are evaluated.
spearman_of.ties = kendall_of.ties = "mean_ranks"  # type: ignore[attr-defined]


def _ranks_of(ranking: Ranking | MeanRanks, name: str) -> Tensor:
    if not isinstance(ranking, MeanRanks):
        raise ArgumentError(
            f"{name} compares the ranks of given scores: it has no rule for ties, no relaxation, "
            "and no value where documents are left out",
            "choose a metric such as ndcg",
        )
    return ranking.ranks


def _centred(ranks: Tensor, mask: Tensor) -> Tensor:
    """Ranks less their mean in each list, 0 at masked positions."""
    mean = ranks.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp_min(1)
    return (ranks - mean) * mask
