"""Yu2020's direct objectives: metrics at exact ranks with a twin-sigmoid gradient."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from directrank.lists.calls import ranking_loss
from directrank.losses._compose import compose
from directrank.losses._needs import needs
from directrank.metrics._average_precision import average_precision_of
from directrank.metrics._err import nerr_of
from directrank.metrics._ndcg import ndcg_of
from directrank.metrics._precision import precision_of
from directrank.metrics.conventions import MIN_LABEL
from directrank.relaxations.twin import ALPHA_B, BREAK_TIES, GRADIENT, twin


@ranking_loss
@needs(draws="break_ties")
def twin_precision(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    gradient: str = GRADIENT,
    alpha_b: float = ALPHA_B,
    break_ties: bool = BREAK_TIES,
    min_label: float = MIN_LABEL,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``-(1/k) Σ_{p≤k} b_p p/r_p`` over places p, per query (Yu2020 eq. 14).

    Without ``k`` the value is the constant -R/n, and only the gradient has an effect.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        gradient: ``type1``, ``type2`` or ``type3``; see
            :class:`directrank.relaxations.twin.TwinRanking`.
        alpha_b: steepness of the backward sigmoid.
        break_ties: rank tied documents in random order; otherwise each counts half for the other.
        min_label: the least label that counts as relevant.
        generator: random stream for ties, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a query without a relevant document.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> losses.twin_precision(scores, labels, k=2)
    tensor([-0.5000, -0.0000])
    """
    ranks = partial(twin, gradient=gradient, alpha_b=alpha_b, break_ties=break_ties)
    metric = partial(precision_of, k=k, min_label=min_label)
    return compose(metric, ranks)(scores, labels, mask, generator)


@ranking_loss
@needs(draws="break_ties")
def twin_ap(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    gradient: str = GRADIENT,
    alpha_b: float = ALPHA_B,
    break_ties: bool = BREAK_TIES,
    min_label: float = MIN_LABEL,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``-(1/R) Σ_p b_p (1/p) Σ_{q≤p} b_q q/r_q`` over places, per query (Yu2020 eq. 15).

    Arguments and result are those of :func:`twin_precision`.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> losses.twin_ap(scores, labels)
    tensor([-0.5833, -0.3333])
    """
    ranks = partial(twin, gradient=gradient, alpha_b=alpha_b, break_ties=break_ties)
    metric = partial(average_precision_of, min_label=min_label)
    return compose(metric, ranks)(scores, labels, mask, generator)


@ranking_loss
@needs(draws="break_ties")
def twin_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    gradient: str = GRADIENT,
    alpha_b: float = ALPHA_B,
    break_ties: bool = BREAK_TIES,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Minus NDCG at exact ranks, per query (Yu2020 eq. 18).

    Arguments and result are those of :func:`twin_precision`; k None is the paper's choice.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> losses.twin_ndcg(scores, labels)
    tensor([-0.5869, -0.5000])
    """
    ranks = partial(twin, gradient=gradient, alpha_b=alpha_b, break_ties=break_ties)
    metric = partial(ndcg_of, k=k)
    return compose(metric, ranks)(scores, labels, mask, generator)


@ranking_loss
@needs(draws="break_ties")
def twin_nerr(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = 10,
    gradient: str = GRADIENT,
    alpha_b: float = ALPHA_B,
    break_ties: bool = BREAK_TIES,
    max_label: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Minus normalised ERR@k at exact ranks, per query (Yu2020 eq. 16).

    See :func:`twin_precision`; ``max_label`` is the largest label of the scale, None takes each
    query's own largest.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> losses.twin_nerr(scores, labels)
    tensor([-0.4000, -0.3333])
    """
    ranks = partial(twin, gradient=gradient, alpha_b=alpha_b, break_ties=break_ties)
    metric = partial(nerr_of, k=k, max_label=max_label)
    return compose(metric, ranks)(scores, labels, mask, generator)
