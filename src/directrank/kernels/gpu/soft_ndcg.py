"""NDCG at projected and at Laplace ranks on a GPU."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import DeviceLists, bounds, own_documents
from directrank.kernels.gpu.pairs import add_dcg, discount_at
from directrank.kernels.gpu.soft_ranks import LaplaceRanks, ProjectedRanks
from directrank.lists.conventions import DISCOUNTS, gains
from directrank.lists.flat import Lists
from directrank.lists.inputs import one_of

REGULARISATIONS = ("l2", "entropic")


def fast_soft_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    tau: float | Tensor,
    regularisation: str,
    beta: float,
) -> Tensor:
    """Minus NDCG at projected ranks; see :func:`directrank.losses.fast_soft_ndcg`."""
    if regularisation not in REGULARISATIONS:
        return NotImplemented
    lists = DeviceLists(scores, labels, mask)
    return _loss(lists, ProjectedRanks(lists, tau, regularisation), k, gain, discount, beta)


def lapsum_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    gain: str,
    discount: str,
    tau: float | Tensor,
    beta: float,
) -> Tensor:
    """Minus NDCG at Laplace ranks; see :func:`directrank.losses.lapsum_ndcg`."""
    lists = DeviceLists(scores, labels, mask)
    return _loss(lists, LaplaceRanks(lists, tau), k, gain, discount, beta)


def _loss(
    lists: DeviceLists,
    relaxed: LaplaceRanks | ProjectedRanks,
    k: int | None,
    gain: str,
    discount: str,
    beta: float,
) -> Tensor:
    one_of(discount, DISCOUNTS, "discount")
    best, dcg = lists.per_list(lists.tiles), lists.per_list(lists.tiles)
    slopes, value = lists.per_document(), lists.per_list()
    lists.run(_at_ranks, lists.tiles, relaxed.ranks, gains(lists.labels, gain), k, float(beta),
              lists.tiles, best, dcg, slopes, LETOR=discount == "letor")  # fmt: skip
    gradient = lists.per_document() if lists.gradient_needed else None
    relaxed.through(slopes, gradient, best, dcg, value)
    return lists.loss(value, gradient)


@triton.jit
def _at_ranks(
    spans, mask, L, ranks, gains, k, beta: tl.float64, tiles, best, dcg, slopes,
    LETOR: tl.constexpr,
):  # fmt: skip
    """A tile's part of the ideal DCG and of the DCG at given ranks, ``[B, tiles]``, and the
    derivative of the latter by each rank, ``[N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    rank = tl.load(ranks + begin + i, mask=real, other=1.0)
    g = tl.load(gains + begin + i, mask=real, other=0.0)
    weight, slope = discount_at(rank, k, tl.full((), beta, g.dtype), LETOR)
    add_dcg(mask, gains, begin, n, places, i, real, g, weight, slope, k, tiles, best, dcg, slopes,
            LETOR)  # fmt: skip
