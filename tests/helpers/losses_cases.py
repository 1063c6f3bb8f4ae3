"""What the tests of the losses share: every loss by name, and random lists."""

from __future__ import annotations

import torch
from torch import Tensor

#: name → hyper-parameters it cannot do without.
LOSSES: dict[str, dict] = {
    "rmse": {},
    "ranknet": {},
    "lambdarank": {},
    "lambda_family": {"force": "spring", "margin": 0.5},
    "listnet": {},
    "listmle": {},
    "wassrank": {},
    "softrank": {},
    "approx_ndcg": {},
    "approx_ap": {},
    "approx_precision": {"k": 3},
    "neural_ndcg": {},
    "neural_ndcg_transposed": {},
    "twin_precision": {"k": 3},
    "twin_ap": {},
    "twin_ndcg": {},
    "twin_nerr": {},
    "smooth_ndcg": {},
    "fast_soft_ndcg": {},
    "lapsum_ndcg": {},
    "blackbox_ndcg": {},
    "pirank": {},
    "gumbel_approx_ndcg": {"noise": 0.0, "samples": 2},  # without noise nothing is random
    "lambda_loss": {},
    "k_song": {},
    "xe_ndcg": {},
    "pl_rank": {},
    "yeti_loss": {},
    "stochastic_rank": {},
    "softmax_cross_entropy": {},
    "poly1": {},
    "unique_softmax": {},
    "pairwise_hinge": {},
    "sigmoid_cross_entropy": {},
    "ordinal": {},
    "adr_mse": {},
    "sl_at_k": {"k": 3},
    "psl": {},
    "soft_sort_ndcg": {},
    "sinkhorn_ndcg": {},
    "diff_sort_ndcg": {},
    "newton": {"of": "neural_ndcg", "lam": 0.1},
}

#: Losses of one document at a time, which are not of differences of scores.
POINTWISE = ["rmse", "sigmoid_cross_entropy", "ordinal"]

#: Losses that are sums over documents and take weights of them.
WEIGHTED = [
    *POINTWISE, "listnet", "xe_ndcg", "softmax_cross_entropy", "unique_softmax",
]  # fmt: skip

#: Losses that draw a number for each place of the batch. Where documents move to other places, they
#: are tested with their draws given, in ``test_drawn.py``.
DRAWN = ["xe_ndcg", "pl_rank", "yeti_loss", "stochastic_rank"]

#: Losses that are minus a relaxed metric: 0 where the query has no relevant document.
METRIC_LOSSES = [
    name for name in LOSSES if name.startswith(("approx", "neural", "twin", "softrank"))
] + [
    "smooth_ndcg",
    "fast_soft_ndcg",
    "lapsum_ndcg",
    "blackbox_ndcg",
    "pirank",
    "gumbel_approx_ndcg",
    "soft_sort_ndcg",
    "sinkhorn_ndcg",
    "diff_sort_ndcg",
]

#: Losses that are sums over pairs of documents with different labels.
PAIR_LOSSES = ["ranknet", "lambdarank", "pairwise_hinge"]


def random_lists(
    B: int,
    L: int,
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    scale: float = 1.0,
    levels: int = 5,
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores without ties, labels and a mask with holes; the first lists are the odd ones.

    List 0 has no relevant document, list 1 no document at all, list 2 equal labels.
    """
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(B, L, generator=generator, dtype=torch.float64).to(dtype)
    labels = torch.randint(0, levels, (B, L), generator=generator).to(dtype)
    mask = torch.rand(B, L, generator=generator) > 0.25
    labels[0] = 0
    mask[1] = False
    labels[2] = 3
    return scores, labels, mask


def value_and_gradient(loss, scores: Tensor, labels: Tensor, mask: Tensor, **options):
    """The loss ``[B]`` and the gradient of its sum ``[B, L]``, with the same draws at each call."""
    torch.manual_seed(0)
    scores = scores.detach().clone().requires_grad_()
    value = loss(scores, labels, mask, **options)
    (gradient,) = torch.autograd.grad(value.sum(), scores)
    return value.detach(), gradient
