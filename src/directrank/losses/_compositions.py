"""Losses that are minus a metric under a relaxation, each declared by its two parts.

They are one file, but a run depends on the declaration of its own loss and on the parts that this
names, not on the others: see :mod:`directrank.study.provenance`.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from directrank.kernels.dispatch import accelerated
from directrank.lists.calls import ranking_loss
from directrank.lists.conventions import DISCOUNT, GAIN
from directrank.losses._compose import NOISE, compose
from directrank.losses._needs import needs
from directrank.metrics._average_precision import average_precision_of
from directrank.metrics._err import nerr_of
from directrank.metrics._ndcg import ndcg_of
from directrank.metrics._precision import precision_of
from directrank.metrics.conventions import MIN_LABEL
from directrank.relaxations import (
    blackbox,
    diff_sort,
    fast_soft_rank,
    lapsum,
    neural_sort,
    rank_binomial,
    real_valued,
    sigmoid,
    sinkhorn_sort,
    smooth_i,
    soft_sort,
    twin,
)
from directrank.relaxations import pirank as pirank_rows


@ranking_loss
@needs(per_list=("alpha",), flat=True)
def approx_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    alpha: float | Tensor = sigmoid.ALPHA,
    k: int | None = None,
    beta: float = real_valued.BETA,
    gain: str = GAIN,
    discount: str = DISCOUNT,
) -> Tensor:
    """ApproxNDCG (Qin2010 eq. 13; Bruch2019 eq. 6).

    Minus NDCG at the ranks ``1 + Σ_{j≠i} sigmoid(alpha (s_j - s_i))``, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        alpha: steepness of the ranks (Bruch2019, Yu2020: 10; Pobrotyn2021: 1; Qin2010: 50-300);
            a tensor ``[B, 1]`` sets it per query.
        k: cut-off, through the smooth truncation ``sigmoid(beta (k + 1/2 - rank))`` (Qin2010
            eq. 16); None takes the whole list.
        beta: steepness of the truncation.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        discount: ``log2`` or ``letor``, as in :func:`directrank.metrics.ndcg`.

    Returns:
        The loss per query, ``[B]``, in [-1, 0] without a cut-off; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.approx_ndcg(scores, labels)
    tensor([-0.9528, -1.0000])
    """
    metric = partial(ndcg_of, k=k, gain=gain, discount=discount)
    return compose(metric, partial(sigmoid.sigmoid, alpha=alpha, beta=beta))(scores, labels, mask)


@ranking_loss
def approx_ap(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    alpha: float = sigmoid.ALPHA,
    beta: float = real_valued.BETA,
    k: int | None = None,
    min_label: float = MIN_LABEL,
) -> Tensor:
    """ApproxAP (Qin2010 eq. 15).

    Minus average precision at sigmoid ranks, per query.

    ``(1/R) Σ_i b_i [1 + Σ_{j≠i} b_j sigmoid(beta (r_i - r_j))] / r_i`` with
    ``r_i = 1 + Σ_{j≠i} sigmoid(alpha (s_j - s_i))``.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        alpha: steepness of the ranks.
        beta: steepness of the comparison of ranks, and of the truncation.
        k: cut-off, through the smooth truncation; None takes the whole list.
        min_label: the least label that counts as relevant.

    Returns:
        The loss per query, ``[B]``; 0 for a query without a relevant document.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.approx_ap(scores, labels)
    tensor([-0.9194, -1.0000])
    """
    metric = partial(average_precision_of, k=k, min_label=min_label)
    return compose(metric, partial(sigmoid.sigmoid, alpha=alpha, beta=beta))(scores, labels, mask)


@ranking_loss
def approx_precision(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int,
    alpha: float = sigmoid.ALPHA,
    beta: float = real_valued.BETA,
    min_label: float = MIN_LABEL,
) -> Tensor:
    """Precision at k under sigmoid ranks and the smooth truncation (Qin2010 eq. 16).

    ``-(1/k) Σ_i b_i sigmoid(beta (k + 1/2 - r_i))`` at sigmoid ranks r, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; without one precision does not depend on the scores.
        alpha: steepness of the ranks.
        beta: steepness of the truncation.
        min_label: the least label that counts as relevant.

    Returns:
        The loss per query, ``[B]``; 0 for a query without a relevant document.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.approx_precision(scores, labels, k=2)
    tensor([-0.9709, -0.5000])
    """
    metric = partial(precision_of, k=k, min_label=min_label)
    return compose(metric, partial(sigmoid.sigmoid, alpha=alpha, beta=beta))(scores, labels, mask)


@ranking_loss
@needs(draws="samples")
@accelerated
def gumbel_approx_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    alpha: float = sigmoid.ALPHA,
    beta: float = real_valued.BETA,
    gain: str = GAIN,
    samples: int = 8,
    noise: float = NOISE,
    generator: torch.Generator | None = None,
) -> Tensor:
    """ApproxNDCG of stochastic scores (Bruch et al., 2020).

    The mean of ApproxNDCG at scores with Gumbel noise, per query.

    Sorting noisy scores draws orders from the Plackett-Luce model whose log-weights are the scores.
    So this is the expected loss of a stochastic ranker, which is smoother.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, through the smooth truncation ``sigmoid(beta (k + 1/2 - rank))``; None takes the
            whole list.
        alpha: steepness of the ranks.
        beta: steepness of the truncation.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        samples: the number of draws over which the loss is averaged; 0 means no noise.
        noise: scale of the noise (the paper's β).
        generator: random stream of the noise, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.gumbel_approx_ndcg(scores, labels, noise=0.0)
    tensor([-0.9528, -1.0000])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    ranks = partial(sigmoid.sigmoid, alpha=alpha, beta=beta)
    loss = compose(metric, ranks, samples=samples, noise=noise)
    return loss(scores, labels, mask, generator)


@ranking_loss
@needs(draws="break_ties")
def twin_precision(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    gradient: str = twin.GRADIENT,
    alpha_b: float = twin.ALPHA_B,
    break_ties: bool = twin.BREAK_TIES,
    min_label: float = MIN_LABEL,
    generator: torch.Generator | None = None,
) -> Tensor:
    """TwinPrecision (Yu2020 eq. 13): precision at exact ranks with a twin-sigmoid gradient.

    ``-(1/k) Σ_{p≤k} b_p p/r_p`` over places p, per query (Yu2020 eq. 13).

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
    ranks = partial(twin.twin, gradient=gradient, alpha_b=alpha_b, break_ties=break_ties)
    metric = partial(precision_of, k=k, min_label=min_label)
    return compose(metric, ranks)(scores, labels, mask, generator)


@ranking_loss
@needs(draws="break_ties")
def twin_ap(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    gradient: str = twin.GRADIENT,
    alpha_b: float = twin.ALPHA_B,
    break_ties: bool = twin.BREAK_TIES,
    min_label: float = MIN_LABEL,
    generator: torch.Generator | None = None,
) -> Tensor:
    """TwinAP (Yu2020 eq. 14): average precision at exact ranks with a twin-sigmoid gradient.

    ``-(1/R) Σ_p b_p (1/p) Σ_{q≤p} b_q q/r_q`` over places, per query (Yu2020 eq. 14).

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
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
    >>> losses.twin_ap(scores, labels)
    tensor([-0.5833, -0.3333])
    """
    ranks = partial(twin.twin, gradient=gradient, alpha_b=alpha_b, break_ties=break_ties)
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
    gradient: str = twin.GRADIENT,
    alpha_b: float = twin.ALPHA_B,
    break_ties: bool = twin.BREAK_TIES,
    generator: torch.Generator | None = None,
) -> Tensor:
    """TwinNDCG (Yu2020 eq. 15): NDCG at exact ranks with a twin-sigmoid gradient.

    Minus NDCG at exact ranks, per query (Yu2020 eq. 15).

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None, the paper's choice, takes the whole list.
        gradient: ``type1``, ``type2`` or ``type3``; see
            :class:`directrank.relaxations.twin.TwinRanking`.
        alpha_b: steepness of the backward sigmoid.
        break_ties: rank tied documents in random order; otherwise each counts half for the other.
        generator: random stream for ties, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> losses.twin_ndcg(scores, labels)
    tensor([-0.5869, -0.5000])
    """
    ranks = partial(twin.twin, gradient=gradient, alpha_b=alpha_b, break_ties=break_ties)
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
    gradient: str = twin.GRADIENT,
    alpha_b: float = twin.ALPHA_B,
    break_ties: bool = twin.BREAK_TIES,
    max_label: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """TwinNERR (Yu2020 eq. 16): normalised ERR at exact ranks with a twin-sigmoid gradient.

    Minus normalised ERR@k at exact ranks, per query (Yu2020 eq. 16).

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        gradient: ``type1``, ``type2`` or ``type3``; see
            :class:`directrank.relaxations.twin.TwinRanking`.
        alpha_b: steepness of the backward sigmoid.
        break_ties: rank tied documents in random order; otherwise each counts half for the other.
        max_label: the largest label of the scale; None takes each query's own largest.
        generator: random stream for ties, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a query without a relevant document.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    >>> losses.twin_nerr(scores, labels)
    tensor([-0.4000, -0.3333])
    """
    ranks = partial(twin.twin, gradient=gradient, alpha_b=alpha_b, break_ties=break_ties)
    metric = partial(nerr_of, k=k, max_label=max_label)
    return compose(metric, ranks)(scores, labels, mask, generator)


@ranking_loss
@needs(draws="samples")
def neural_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float = neural_sort.TAU,
    iterations: int = neural_sort.ITERATIONS,
    tolerance: float = neural_sort.TOLERANCE,
    gain: str = GAIN,
    samples: int = 0,
    noise: float = NOISE,
    generator: torch.Generator | None = None,
) -> Tensor:
    """NeuralNDCG (Pobrotyn2021): NDCG of NeuralSort's doubly stochastic matrix.

    ``-(1/maxDCG@k) Σ_{r≤k} (P G(y))_r D(r)``, P NeuralSort's matrix after Sinkhorn, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        tau: temperature of NeuralSort.
        iterations: the most rounds of Sinkhorn scaling; 0 means none.
        tolerance: scaling ends when all sums differ from one by at most this.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        samples: 0 is the deterministic form; otherwise the loss is the mean over that many draws of
            Gumbel noise added to the scores, which are then log-weights of a Plackett-Luce model.
        noise: scale of the noise.
        generator: random stream of the noise, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.neural_ndcg(scores, labels)
    tensor([-0.8388, -0.9070])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    sorting = partial(neural_sort.neural_sort, tau=tau, iterations=iterations, tolerance=tolerance)
    loss = compose(metric, sorting, samples=samples, noise=noise)
    return loss(scores, labels, mask, generator)


@ranking_loss
@needs(draws="samples")
def neural_ndcg_transposed(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float = neural_sort.TAU,
    iterations: int = neural_sort.ITERATIONS,
    tolerance: float = neural_sort.TOLERANCE,
    gain: str = GAIN,
    samples: int = 0,
    noise: float = NOISE,
    generator: torch.Generator | None = None,
) -> Tensor:
    """NeuralNDCG's transpose (Pobrotyn2021), which scales the rows of NeuralSort's matrix first.

    ``-(1/maxDCG@k) Σ_i G(y_i) (scale(Pᵀ) D)_i``, per query; see :func:`neural_ndcg`.

    Once Sinkhorn has converged this *is* NeuralNDCG: both are ``G(y)ᵀ Pᵀ D``. If stopped early they
    differ, because scaling begins with the columns of P there and with those of its transpose here.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        tau: temperature of NeuralSort.
        iterations: the most rounds of Sinkhorn scaling; 0 means none.
        tolerance: scaling ends when all sums differ from one by at most this.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        samples: 0 is the deterministic form; otherwise the loss is the mean over that many draws of
            Gumbel noise added to the scores.
        noise: scale of the noise.
        generator: random stream of the noise, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.neural_ndcg_transposed(scores, labels)
    tensor([-0.8388, -0.9070])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    sorting = partial(
        neural_sort.neural_sort,
        tau=tau,
        iterations=iterations,
        tolerance=tolerance,
        rows_first=True,
    )
    loss = compose(metric, sorting, samples=samples, noise=noise)
    return loss(scores, labels, mask, generator)


@ranking_loss
@needs(per_list=("tau",))
def pirank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float | Tensor = pirank_rows.TAU,
    straight_through: bool = pirank_rows.STRAIGHT_THROUGH,
    gain: str = GAIN,
) -> Tensor:
    """PiRank (Swezey et al., 2021): NDCG of the first rows of NeuralSort's matrix.

    ``-(1/maxDCG@k) Σ_{r≤k} (P G(y))_r D(r)``, P NeuralSort's matrix unscaled, per query.

    The paper's loss, at depth 1, is larger by 1. With the straight-through estimator the value is
    exact NDCG@k, and P has the gradient.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, which makes it cheaper; None takes the whole list.
        tau: temperature of NeuralSort; a tensor ``[B, 1]`` sets it per query.
        straight_through: use the exact permutation forward.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.pirank(scores, labels)
    tensor([-1., -1.])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    ranks = partial(pirank_rows.pirank, tau=tau, straight_through=straight_through)
    return compose(metric, ranks)(scores, labels, mask)


@ranking_loss
def softrank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    sigma: float = rank_binomial.SIGMA,
    k: int | None = None,
) -> Tensor:
    """SoftRank (Taylor et al., 2008): expected NDCG under Gaussian scores.

    Minus ``(1/maxDCG) Σ_j G(y_j) Σ_r p_j(r) D(r)``, with the rank-binomial p, per query.

    Args:
        scores: ``[B, L]``, the means of the Gaussians.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        sigma: their standard deviation.
        k: cut-off; None takes the whole list.

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.softrank(scores, labels)
    tensor([-0.7988, -0.8870])
    """
    ranks = partial(rank_binomial.rank_binomial, sigma=sigma)
    return compose(partial(ndcg_of, k=k), ranks)(scores, labels, mask)


@ranking_loss
@needs(per_list=("alpha",))
def smooth_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    alpha: float | Tensor = smooth_i.ALPHA,
    delta: float = smooth_i.DELTA,
    stop_gradient: bool = smooth_i.STOP_GRADIENT,
    gain: str = GAIN,
) -> Tensor:
    """NDCG under SmoothI's rank indicators (Thonet et al., 2022).

    ``-(1/maxDCG@k) Σ_{r≤k} D(r) Σ_j I^r_j G(y_j)``, I SmoothI's indicators, per query.

    ``I^r_j = softmax_j(alpha S_j Π_{l<r} (1 - I^l_j - delta))`` with ``S = s - min(s)``: a softmax
    that skips the documents of earlier ranks. The total of a document over ranks may differ from
    one, so the loss may fall below -1. See :func:`directrank.relaxations.smooth_i.smooth_i` for
    what differs from the authors' NDCG.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, which makes it cheaper; None takes the whole list.
        alpha: steepness of the softmax; a tensor ``[B, 1]`` sets it per query.
        delta: how far below 0 the factor of a document that has been used lies.
        stop_gradient: treat the product as constant in the gradient, as the paper does.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.smooth_ndcg(scores, labels)
    tensor([-0.8678, -1.0649])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    indicators = partial(smooth_i.smooth_i, alpha=alpha, delta=delta, stop_gradient=stop_gradient)
    return compose(metric, indicators)(scores, labels, mask)


@ranking_loss
@needs(per_list=("tau",), flat=True)
def fast_soft_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float | Tensor = fast_soft_rank.TAU,
    regularisation: str = fast_soft_rank.REGULARISATION,
    beta: float = real_valued.BETA,
    gain: str = GAIN,
) -> Tensor:
    """NDCG at ranks projected onto the permutahedron (Blondel et al., 2020).

    Minus NDCG at the projection of ``-s / tau`` onto the hull of all rankings, per query.

    The ranks cost one sort and a pass of isotonic regression over the sorted list.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, through the smooth truncation ``sigmoid(beta (k + 1/2 - rank))``; None takes the
            whole list.
        tau: strength of the regularisation; towards 0 ranks become exact. A tensor ``[B, 1]`` sets
            it per query.
        regularisation: ``l2`` or ``entropic``.
        beta: steepness of the truncation.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.fast_soft_ndcg(scores, labels, tau=0.3)
    tensor([-0.8804, -1.0000])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    projection = partial(
        fast_soft_rank.fast_soft_rank, tau=tau, regularisation=regularisation, beta=beta
    )
    return compose(metric, projection)(scores, labels, mask)


@ranking_loss
@needs(per_list=("tau",), flat=True)
def lapsum_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float | Tensor = lapsum.TAU,
    beta: float = real_valued.BETA,
    gain: str = GAIN,
) -> Tensor:
    """NDCG at sums of Laplace distribution functions (Struski et al., 2025).

    Minus NDCG at the ranks ``1 + Σ_{j≠i} F((s_j - s_i) / tau)`` with Laplace's F, per query.

    This is ApproxNDCG with another sigmoid, ``exp(x) / 2`` below 0 and ``1 - exp(-x) / 2`` above,
    whose sums over all pairs cost one sort and a pass over the sorted list.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, through the smooth truncation ``sigmoid(beta (k + 1/2 - rank))``; None takes the
            whole list.
        tau: scale of the distribution; a tensor ``[B, 1]`` sets it per query.
        beta: steepness of the truncation.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.lapsum_ndcg(scores, labels)
    tensor([-0.9726, -1.0000])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    return compose(metric, partial(lapsum.lapsum, tau=tau, beta=beta))(scores, labels, mask)


@ranking_loss
@needs(per_list=("lam",), flat=True)
def blackbox_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    lam: float | Tensor = blackbox.LAM,
    margin: float = blackbox.MARGIN,
    gain: str = GAIN,
) -> Tensor:
    """NDCG at exact ranks, differentiated as a black box (Rolínek et al., 2020).

    Minus NDCG at exact ranks r, per query.

    Ranks have no slope, so that of an interpolation is used: the gradient is ``(r(s + lam g) -
    r(s)) / lam``, where g is the gradient with respect to the ranks.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list. No document beyond it is pulled up.
        lam: the distance of interpolation, by which scores move ``lam g``; a tensor ``[B, 1]`` sets
            it per query.
        margin: the lead that a relevant document needs to be ranked before another; it affects the
            value, too.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.blackbox_ndcg(scores, labels)
    tensor([-1., -1.])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    return compose(metric, partial(blackbox.blackbox, lam=lam, margin=margin))(scores, labels, mask)


@ranking_loss
@needs(per_list=("tau",))
def soft_sort_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float | Tensor = soft_sort.TAU,
    gain: str = GAIN,
) -> Tensor:
    """NDCG of SoftSort's matrix (Prillo and Eisenschlos, 2020).

    ``-(1/maxDCG@k) Σ_{r≤k} D(r) (P G(y))_r`` with ``P_ri = softmax_i(-|s_(r) - s_i| / tau)``, per
    query, where ``s_(r)`` is the score at rank r. The total of a document over ranks may differ
    from one, so the loss may fall below -1.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off, which makes it cheaper; None takes the whole list.
        tau: temperature of SoftSort; a tensor ``[B, 1]`` sets it per query.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.soft_sort_ndcg(scores, labels)
    tensor([-0.7949, -0.8440])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    return compose(metric, partial(soft_sort.soft_sort, tau=tau))(scores, labels, mask)


@ranking_loss
@needs(per_list=("tau",))
def sinkhorn_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float | Tensor = sinkhorn_sort.TAU,
    iterations: int = neural_sort.ITERATIONS,
    tolerance: float = neural_sort.TOLERANCE,
    gain: str = GAIN,
) -> Tensor:
    """NDCG of Sinkhorn sorting's transport plan (Cuturi et al., 2019).

    ``-(1/maxDCG@k) Σ_i G(y_i) Σ_{r≤k} T_ir D(r)``, T the plan, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        tau: strength of the entropy; a tensor ``[B, 1]`` sets it per query.
        iterations: the most rounds of Sinkhorn scaling.
        tolerance: scaling ends when all sums differ from one by at most this.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.sinkhorn_ndcg(scores, labels)
    tensor([-0.9999, -1.0000])
    """
    metric = partial(ndcg_of, k=k, gain=gain)
    plan = partial(sinkhorn_sort.sinkhorn_sort, tau=tau, iterations=iterations, tolerance=tolerance)
    return compose(metric, plan)(scores, labels, mask)


@ranking_loss
def diff_sort_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    alpha: float = diff_sort.ALPHA,
    network: str = diff_sort.NETWORK,
    distribution: str = diff_sort.DISTRIBUTION,
    gain: str = GAIN,
) -> Tensor:
    """NDCG of a differentiable sorting network's matrix (Petersen et al., 2021 and 2022).

    ``-(1/maxDCG@k) Σ_i G(y_i) Σ_{r≤k} P_ir D(r)``, P the network's doubly stochastic matrix, per
    query. See :func:`directrank.relaxations.diff_sort.diff_sort`. With the network ``odd_even`` and
    an even number of documents in falling order of their scores, this is diffNDCG minus one (Zhou
    et al., 2024, arXiv 2410.18127).

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None if all are real.
        k: cut-off; None takes the whole list.
        alpha: steepness of a comparison.
        network: ``bitonic`` or ``odd_even``.
        distribution: ``cauchy`` (2022) or ``logistic`` (2021).
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.

    >>> import torch
    >>> from directrank import losses
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> losses.diff_sort_ndcg(scores, labels)
    tensor([-0.9487, -0.9768])
    """
    sorting = partial(diff_sort.diff_sort, alpha=alpha, network=network, distribution=distribution)
    return compose(partial(ndcg_of, k=k, gain=gain), sorting)(scores, labels, mask)
