"""ApproxNDCG of stochastic scores on a GPU, all draws of which are further lists."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import DeviceLists, bounds, own_documents
from directrank.kernels.gpu.sigmoid import ndcg
from directrank.lists.conventions import DISCOUNT
from directrank.lists.draws import Source, uniform
from directrank.lists.flat import Lists, repeated
from directrank.lists.gradient import once_differentiable


def gumbel_approx_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Lists | None,
    *,
    k: int | None,
    alpha: float,
    beta: float,
    gain: str,
    samples: int,
    noise: float,
    generator: Source,
) -> Tensor:
    """See :func:`directrank.losses.gumbel_approx_ndcg`."""
    loss = partial(ndcg, k=k, gain=gain, discount=DISCOUNT, alpha=alpha, beta=beta)
    if not samples:
        return loss(scores, labels, mask)
    own = DeviceLists(scores, labels, mask)
    drawn = torch.cat([own.drawn(uniform, generator) for _ in range(samples)])
    copies = None if mask is None else repeated(mask, samples)
    noisy = _Noisy.apply(scores, drawn, copies, samples, own.shape[0], float(noise))
    value = loss(noisy, torch.cat([own.labels] * samples), copies)
    return value.view(samples, own.shape[0]).mean(0)


class _Noisy(torch.autograd.Function):
    """Copies of scores with Gumbel noise from the numbers ``drawn``, ``[S B, L]`` or ``[S N]``."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        drawn: Tensor,
        copies: Lists | None,
        samples: int,
        lists: int,
        noise: float,
    ) -> Tensor:
        ctx.shape, ctx.dtype = (samples, *scores.shape), scores.dtype
        places = DeviceLists(drawn, drawn, copies)
        own, noisy = scores.detach().to(drawn.dtype).contiguous(), places.per_document()
        tiny = torch.finfo(drawn.dtype).tiny
        places.run(_noisy, places.tiles, own, drawn, lists, own.numel(), noise, tiny, noisy)
        return noisy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        gradient = grad_output.view(ctx.shape).sum(0).to(ctx.dtype)
        return gradient, None, None, None, None, None


@triton.jit
def _noisy(
    spans, mask, L, scores, drawn, lists, documents, noise: tl.float64, tiny: tl.float64, noisy
):  # fmt: skip
    """Scores with the Gumbel noise of numbers that are uniform on [0, 1), ``[S N]``."""
    begin, n, places = bounds(spans, mask, L)
    i, real = own_documents(mask, begin, n)
    original = begin - (tl.program_id(0) // lists).to(tl.int64) * documents
    s = tl.load(scores + original + i, mask=real, other=0.0)
    u = tl.load(drawn + begin + i, mask=real, other=0.5)
    least = tl.full((), tiny, s.dtype)
    gumbel = -tl.log(tl.maximum(-tl.log(tl.maximum(u, least)), least))
    noisy_scores = tl.where(real, s + tl.full((), noise, s.dtype) * gumbel, 0.0)
    tl.store(noisy + begin + i, noisy_scores, mask=i < places)
