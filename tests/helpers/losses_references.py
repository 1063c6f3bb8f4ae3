"""Losses in code that shares nothing with the library's, one formula each.

Compositions are written out, without a metric or a relaxation; most losses go list by list. The
documentation shows each as the plain version of its loss. Those that draw take their numbers as
the library does for a single list without padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus


def _pairs(values: Tensor) -> Tensor:
    """``values_i - values_j``, ``[B, i, j]``."""
    return values.unsqueeze(2) - values.unsqueeze(1)


def _ranks(scores: Tensor, mask: Tensor) -> Tensor:
    order = scores.masked_fill(~mask, -math.inf).argsort(dim=1, descending=True, stable=True)
    return order.argsort(1) + 1


def _ideal_dcg(gains: Tensor, k: int | None = None) -> Tensor:
    best = gains.sort(1, descending=True).values[:, :k]
    return (best / torch.log2(torch.arange(2, best.shape[1] + 2, dtype=gains.dtype))).sum(1)


def _divide(value: Tensor, by: Tensor) -> Tensor:
    return torch.where(by > 0, value / by.clamp_min(1e-30), 0.0)


def _list_by_list(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A loss of one list's scores and labels, for padded lists; 0 for one without documents."""

    @wraps(loss)
    def of_batch(scores, labels, mask, **options):
        rows = zip(scores, labels, mask, strict=True)
        values = [loss(s[m], y[m], **options) if m.any() else (s * 0).sum() for s, y, m in rows]
        return torch.stack(values)

    return of_batch


def _gains(y: Tensor, k: int | None = None) -> Tensor:
    """Each document's share of the largest DCG that the list can have."""
    gains = 2**y - 1
    return _divide(gains, _ideal_dcg(gains[None], k))


def _discounts(n: int) -> Tensor:
    """The weights of the ranks 1 to n."""
    return 1 / torch.log2(torch.arange(2, n + 2, dtype=torch.float64))


def _current_ranks(s: Tensor) -> Tensor:
    """The documents' ranks, from 1."""
    return (s.detach().argsort(descending=True, stable=True).argsort() + 1).to(s.dtype)


def _apart(values: Tensor) -> Tensor:
    """``values_i - values_j``, ``[i, j]``."""
    return values[:, None] - values[None]


def _with_gradient(value: Tensor, s: Tensor, gradient: Tensor) -> Tensor:
    """A value whose gradient by ``s`` is the given one."""
    return value + (gradient * (s - s.detach())).sum()


def _gumbel(s: Tensor) -> Tensor:
    return -torch.log(-torch.log(torch.rand_like(s)))


@_list_by_list
def rmse(s, y, levels=5.0):
    return (y - levels * torch.sigmoid(s)).square().mean().sqrt()


@_list_by_list
def ranknet(s, y, sigma=1.0):
    costs = softplus(-sigma * _apart(s))
    return costs[_apart(y) > 0].sum()


@_list_by_list
def lambdarank(s, y, sigma=1.0):
    of_swap = _apart(_gains(y)) * _apart(1 / torch.log2(1 + _current_ranks(s)))
    costs = of_swap.abs() * softplus(-sigma * _apart(s))
    return costs[_apart(y) > 0].sum()


@_list_by_list
def lambda_family(s, y, force="logistic", pairs="all", margin=0.0):
    lead, ranks = _apart(s), _current_ranks(s)
    missing = (margin - lead).clamp_min(0)
    potential = {
        "step": missing,
        "spring": missing**2 / 2,
        "logistic": softplus(margin - lead),
        "sigmoid": torch.sigmoid(margin - lead),
        "difference": 1
        - lead.clamp(-margin, margin) / margin
        - torch.sign(lead) * (lead.abs().clamp_min(margin) / margin).log(),
    }[force]
    counts = _apart(y) > 0
    if pairs == "neighbours":
        counts = counts & (_apart(ranks).abs() == 1)
    of_swap = (_apart(_gains(y)) * _apart(1 / torch.log2(1 + ranks))).abs()
    return (of_swap * potential)[counts].sum()


@_list_by_list
def lambda_loss(s, y, scheme="ndcg_loss2pp", mu=10.0, sigma=1.0, k=None):
    """A cut-off in the scheme that is for one."""
    gains, ranks = _gains(y, k), _current_ranks(s)
    distance = _apart(ranks).abs().clamp_min(1)
    delta = 1 / torch.log2(1 + distance) - 1 / torch.log2(2 + distance)
    discounts = 1 / torch.log2(1 + ranks)
    last = torch.maximum(ranks[:, None], ranks[None])
    beyond = torch.where(last > (k or len(s)), 1 / (1 - 1 / torch.log2(1 + last)), 1.0)
    weights = {
        "ndcg_loss1": (gains * discounts)[:, None].expand_as(delta),
        "ndcg_loss2": delta * _apart(gains).abs(),
        "ndcg_loss2_at_k": delta * beyond * _apart(gains).abs(),
        "ndcg_loss2pp": (_apart(discounts).abs() + mu * delta) * _apart(gains).abs(),
    }[scheme]
    pairs = _apart(y) > 0
    if scheme == "ndcg_loss1":
        pairs = ~torch.eye(len(s), dtype=torch.bool)
    return (weights * softplus(-sigma * _apart(s)) / math.log(2))[pairs].sum()


@_list_by_list
def listnet(s, y):
    return -(y.softmax(0) * s.log_softmax(0)).sum()


@_list_by_list
def xe_ndcg(s, y):
    target = 2**y - torch.rand_like(s)
    return -(target / target.sum() * s.log_softmax(0)).sum()


@_list_by_list
def softmax_cross_entropy(s, y, normalize=False):
    target = _divide(y, y.sum()) if normalize else y
    return -(target * s.log_softmax(0)).sum()


@_list_by_list
def poly1(s, y, epsilon=1.0):
    if y.sum() == 0:
        return (s * 0).sum()
    of_target = (y / y.sum() * s.softmax(0)).sum()
    return -(y * s.log_softmax(0)).sum() + epsilon * (1 - of_target)


@_list_by_list
def unique_softmax(s, y, gain="exp2"):
    gains = 2**y - 1 if gain == "exp2" else y
    total = (s * 0).sum()
    for i in range(len(s)):
        rivals = torch.cat([s[i : i + 1], s[y < y[i]]])
        total = total - gains[i] * rivals.log_softmax(0)[0]
    return total


@_list_by_list
def pairwise_hinge(s, y, margin=1.0):
    return (margin - _apart(s)).relu()[_apart(y) > 0].sum()


@_list_by_list
def sigmoid_cross_entropy(s, y):
    return binary_cross_entropy_with_logits(s, y.clamp(max=1))


@_list_by_list
def ordinal(s, y, levels=5, gap=1.0):
    thresholds = torch.arange(1, levels, dtype=s.dtype)
    logits = s[:, None] - gap * (thresholds - 1)
    target = (y[:, None] >= thresholds).to(s.dtype)
    return binary_cross_entropy_with_logits(logits, target, reduction="none").sum(1).mean()


@_list_by_list
def adr_mse(s, y, alpha=1.0):
    ranks = 0.5 + torch.sigmoid(-alpha * _apart(s)).sum(1)
    ahead, equal = (_apart(y) < 0).sum(1), (_apart(y) == 0).sum(1)
    wanted = ahead + (1 + equal) / 2
    return ((ranks - wanted) ** 2 / torch.log2(1 + wanted.to(s.dtype))).mean()


def _share(y, gain):
    gains = 2**y - 1 if gain == "exp2" else y
    return _divide(gains, gains.sum())


@_list_by_list
def sl_at_k(s, y, k, tau=1.0, beta=1.0, gain="exp2"):
    """The score at rank k is held fast."""
    within = torch.ones_like(s)
    if k < len(s):
        within = torch.sigmoid(beta * (s - s.detach().sort(descending=True).values[k - 1]))
    return (_share(y, gain) * within * torch.logsumexp(-_apart(s) / tau, 1)).sum()


@_list_by_list
def psl(s, y, tau=1.0, gain="exp2"):
    activation = 2 * torch.sigmoid(-2 * _apart(s))  # 1 + tanh
    return (_share(y, gain) * (activation ** (1 / tau)).sum(1).log()).sum()


def _soft_ranks(scores, mask, alpha):
    above = torch.sigmoid(-alpha * _pairs(scores)) * mask.unsqueeze(1)
    return 1 + above.masked_fill(torch.eye(scores.shape[1], dtype=torch.bool), 0.0).sum(2)


def approx_ndcg(scores, labels, mask, alpha=10.0, k=None, beta=10.0):
    gains = (2**labels - 1) * mask
    ranks = _soft_ranks(scores, mask, alpha)
    top = 1.0 if k is None else torch.sigmoid(beta * (k + 0.5 - ranks))
    return -_divide((gains * top / torch.log2(1 + ranks)).sum(1), _ideal_dcg(gains, k))


def approx_precision(scores, labels, mask, k, alpha=10.0, beta=10.0):
    ranks = _soft_ranks(scores, mask, alpha)
    return -(((labels > 0) & mask) * torch.sigmoid(beta * (k + 0.5 - ranks))).sum(1) / k


def approx_ap(scores, labels, mask, alpha=10.0, beta=10.0):
    relevant = ((labels > 0) & mask).to(scores.dtype)
    ranks = _soft_ranks(scores, mask, alpha)
    ahead = torch.sigmoid(beta * _pairs(ranks)) * relevant.unsqueeze(1)
    ahead = ahead.masked_fill(torch.eye(scores.shape[1], dtype=torch.bool), 0.0).sum(2)
    return -_divide((relevant * (1 + ahead) / ranks).sum(1), relevant.sum(1))


def listmle(scores, labels, mask, order=None):
    """Without an order that of falling labels, whole numbers, whose ties fall as they are drawn."""
    if order is None:
        drawn = (labels + torch.rand(labels.shape)).masked_fill(~mask, -math.inf)
        order = drawn.argsort(1, descending=True)
    lowest = torch.finfo(scores.dtype).min
    ordered = scores.masked_fill(~mask, lowest).gather(1, order)
    rest = ordered.flip(1).logcumsumexp(1).flip(1)
    return (rest - ordered).masked_fill(~mask.gather(1, order), 0.0).sum(1)


def neural_ndcg(
    scores, labels, mask, k=None, tau=1.0, iterations=30, tolerance=1e-6, first="columns"
):
    """One list at a time, unpadded, with autograd through every step."""
    values = []
    for s, y, m in zip(scores, labels, mask, strict=True):
        s, y = s[m], y[m]
        gains, n = 2**y - 1, len(s)
        best = _ideal_dcg(gains[None], k)[0] if n else torch.zeros(())
        if best <= 0:
            values.append(scores.sum() * 0)
            continue
        rank = torch.arange(1, n + 1, dtype=s.dtype)
        apart = (s[:, None] - s[None]).abs().sum(1)
        P = torch.softmax(((n + 1 - 2 * rank)[:, None] * s[None] - apart[None]) / tau, 1)
        sides = (0, 1) if first == "columns" else (1, 0)
        for _ in range(iterations):
            if max((P.sum(0) - 1).abs().max(), (P.sum(1) - 1).abs().max()) <= tolerance:
                break
            for side in sides:
                P = P / P.sum(side, keepdim=True)
        discount = 1 / torch.log2(1 + rank) * (rank <= (k or n))
        values.append(-(discount @ P @ gains) / best)
    return torch.stack(values)


def neural_ndcg_transposed(scores, labels, mask, **options):
    return neural_ndcg(scores, labels, mask, first="rows", **options)


@_list_by_list
def smooth_ndcg(s, y, alpha=1.0, delta=0.1):
    gains, discounts = _gains(y), _discounts(len(s))
    left, dcg = torch.ones_like(s), 0.0
    for discount in discounts:
        share = (alpha * (s - s.min()) * left).softmax(0)
        dcg = dcg + discount * (share @ gains)
        left = left * (1 - share.detach() - delta)
    return -dcg


@_list_by_list
def fast_soft_ndcg(s, y, tau=0.1):
    """Documents of a pool share a level, which falls from pool to pool."""
    order = s.argsort(descending=True)
    pools = []
    for place, z in enumerate(s[order] / tau, start=1):
        pools.append([place + z])
        while len(pools) > 1 and sum(pools[-2]) / len(pools[-2]) <= sum(pools[-1]) / len(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    levels = torch.cat([torch.stack(pool).mean().expand(len(pool)) for pool in pools])
    ranks = levels - s[order] / tau
    return -(_gains(y)[order] / torch.log2(1 + ranks)).sum()


@_list_by_list
def lapsum_ndcg(s, y, tau=0.1):
    behind = -_apart(s) / tau
    tail = torch.exp(-behind.abs()) / 2
    above = torch.where(behind < 0, tail, 1 - tail).fill_diagonal_(0)
    return -(_gains(y) / torch.log2(2 + above.sum(1))).sum()


@_list_by_list
def blackbox_ndcg(s, y, lam=100.0):
    ranks = _current_ranks(s).requires_grad_()
    with torch.enable_grad():
        value = -(_gains(y) / torch.log2(1 + ranks)).sum()
        (by_ranks,) = torch.autograd.grad(value, ranks)
    by_scores = (_current_ranks(s + lam * by_ranks) - ranks.detach()) / lam
    return _with_gradient(value.detach(), s, by_scores)


@_list_by_list
def pirank(s, y, tau=5.0):
    """The value of the exact order, the gradient of the soft one."""
    n, gains, discounts = len(s), _gains(y), _discounts(len(s))
    places = torch.arange(1, n + 1, dtype=s.dtype)
    logits = (n + 1 - 2 * places)[:, None] * s - _apart(s).abs().sum(1)
    soft = -(discounts @ (logits / tau).softmax(1) @ gains)
    exact = -(gains / torch.log2(1 + _current_ranks(s))).sum()
    return exact + soft - soft.detach()


@_list_by_list
def soft_sort_ndcg(s, y, tau=1.0):
    falling = s.sort(descending=True).values
    rows = (-(falling[:, None] - s[None]).abs() / tau).softmax(1)
    return -(_discounts(len(s)) @ rows @ _gains(y))


@_list_by_list
def sinkhorn_ndcg(s, y, tau=0.01, iterations=30, tolerance=1e-6):
    """Rounds of NeuralSort's matrix of the squashed scores; tests compare its limit with others."""
    n = len(s)
    x = torch.sigmoid((s - s.mean()) / (s.var(correction=0) + 1e-6).sqrt())
    places = torch.arange(1, n + 1, dtype=s.dtype)
    logits = (n + 1 - 2 * places)[:, None] * x - _apart(x).abs().sum(1)
    plan = (logits / (tau * max(n - 1, 1))).softmax(1)
    for _ in range(iterations):
        if max((plan.sum(side) - 1).abs().max() for side in (0, 1)) <= tolerance:
            break
        plan = plan / plan.sum(0, keepdim=True)
        plan = plan / plan.sum(1, keepdim=True)
    return -(_discounts(n) @ plan @ _gains(y))


@_list_by_list
def diff_sort_ndcg(s, y, alpha=10.0):
    """Batcher's bitonic network, one comparison after the other, on the sorted documents.

    Missing inputs are below all others, and stay where they are.
    """
    order = s.detach().argsort(descending=True)
    if len(s) < 2:
        return (s * 0).sum() - _gains(y).sum()
    n, width = len(s), 1 << (len(s) - 1).bit_length()
    values = [s[i] for i in order] + [None] * (width - n)
    mixtures = [*torch.eye(n, dtype=s.dtype)] + [None] * (width - n)

    def exchange(front, behind):
        if values[front] is None or values[behind] is None:
            return
        stays = torch.atan(alpha * (values[front] - values[behind])) / math.pi + 0.5
        for held in (values, mixtures):
            a, b = held[front], held[behind]
            held[front], held[behind] = stays * a + (1 - stays) * b, (1 - stays) * a + stays * b

    def merge(first, size, falling):
        if size > 1:
            for i in range(first, first + size // 2):
                pair = (i, i + size // 2)
                exchange(*(pair if falling else pair[::-1]))
            for half in (first, first + size // 2):
                merge(half, size // 2, falling)

    def sort(first, size, falling):
        if size > 1:
            sort(first, size // 2, falling=False)
            sort(first + size // 2, size // 2, falling=True)
            merge(first, size, falling)

    sort(0, width, falling=True)
    return -(_discounts(n) @ torch.stack(mixtures[:n]) @ _gains(y)[order])


@_list_by_list
def newton(s, y, of, lam, curvature="fisher"):
    """Half the squared distance to where a Newton step leads, with the matrices written out."""
    options = {"name": of} if isinstance(of, str) else dict(of)
    other = globals()[options.pop("name")]

    def cost(x):
        return other(x[None], y[None], torch.ones(1, len(y), dtype=torch.bool), **options)[0]

    x = s.detach().requires_grad_()
    (g,) = torch.autograd.grad(cost(x), x)
    fisher = curvature == "fisher"
    matrix = torch.outer(g, g) if fisher else torch.autograd.functional.hessian(cost, x.detach())
    target = x - torch.linalg.solve(matrix + lam * torch.eye(len(s), dtype=s.dtype), g)
    return ((s - target.detach()) ** 2).sum() / 2


@_list_by_list
def gumbel_approx_ndcg(s, y, alpha=10.0, noise=1.0, samples=8):
    total = 0.0
    for _ in range(samples):
        noisy = s + noise * _gumbel(s)
        ranks = 0.5 + torch.sigmoid(-alpha * _apart(noisy)).sum(1)
        total = total - (_gains(y) / torch.log2(1 + ranks)).sum()
    return total / samples


@_list_by_list
def pl_rank(s, y, samples=10):
    gains, theta = _gains(y), _discounts(len(s))
    value, gradient = 0.0, torch.zeros_like(s)
    for _ in range(samples):
        order = (s.detach() + _gumbel(s)).argsort(descending=True)
        g, weight = gains[order], s.detach()[order].exp()
        reward = theta * g
        from_here = reward.flip(0).cumsum(0).flip(0)
        rest = weight.flip(0).cumsum(0).flip(0)
        risk = g * (theta / rest).cumsum(0) - (from_here / rest).cumsum(0)
        value -= reward.sum() / samples
        gradient[order] -= (from_here - reward + weight * risk) / samples
    return _with_gradient(value, s, gradient)


@_list_by_list
def k_song(s, y, k=None, margin=1.0, beta=2.0):
    """The weights of the cut-off are held fast."""
    within = torch.ones_like(s)
    if k is not None and k < len(s):
        threshold = s.detach().sort(descending=True).values[k - 1 : k + 1].mean()
        within = torch.sigmoid(beta * (s.detach() - threshold))
    counts = (margin - _apart(s)).clamp_min(0).square().sum(1)
    return -(within * _gains(y, k) / torch.log2(1 + counts)).sum()


@_list_by_list
def yeti_loss(s, y, samples=10, noise=1.0):
    gains, discounts = _gains(y), _discounts(len(s))
    total = (s * 0).sum()
    for _ in range(samples):
        order = (s.detach() + noise * torch.logit(torch.rand_like(s))).argsort(descending=True)
        upper, lower = order[:-1], order[1:]
        of_swap = (gains[upper] - gains[lower]).abs() * (discounts[:-1] - discounts[1:])
        sign = torch.sign(gains[upper] - gains[lower])
        total = total + (of_swap * softplus(-sign * (s[upper] - s[lower]))).sum()
    return total / samples


@_list_by_list
def stochastic_rank(s, y, sigma=1.0, samples=1):
    gains, theta = _gains(y), _discounts(len(s) + 1)
    theta[-1] = 0
    z = (s - s.mean()) / (s.std(correction=0) + 0.01)
    value, gradient = 0.0, torch.zeros_like(s)
    for _ in range(samples):
        x = z.detach() + sigma * torch.randn_like(s)
        order = x.argsort(descending=True).tolist()
        value -= (theta[:-1] * gains[order]).sum() / samples
        for i in order:
            for rank, j in enumerate(other for other in order if other != i):
                at = (x[j] - z[i].detach()) / sigma
                density = torch.exp(-(at**2) / 2) / math.sqrt(2 * math.pi) / sigma
                jump = theta[rank] - theta[rank + 1]
                gradient[i] -= (gains[i] - gains[j]) * jump * density / samples
    return _with_gradient(value, z, gradient)


def softrank(scores, labels, mask, sigma=1.0, k=None):
    """The recursion, one list at a time."""
    values = []
    for s, y, m in zip(scores, labels, mask, strict=True):
        s, y = s[m], y[m]
        gains, n = 2**y - 1, len(s)
        best = _ideal_dcg(gains[None], k)[0] if n else torch.zeros(())
        if best <= 0:
            values.append(scores.sum() * 0)
            continue
        total = 0
        for j in range(n):
            p = torch.zeros(n, dtype=s.dtype)
            p[0] = 1
            for i in range(n):
                if i != j:
                    win = torch.special.ndtr((s[i] - s[j]) / (math.sqrt(2) * sigma))
                    p = p * (1 - win) + torch.cat([p.new_zeros(1), p[:-1]]) * win
            ranks = torch.arange(n, dtype=s.dtype)
            total = total + gains[j] * (p / torch.log2(2 + ranks) * (ranks < (k or n))).sum()
        values.append(-total / best)
    return torch.stack(values)


def wassrank(scores, labels, mask, gradient="autograd", lam=0.1, iterations=10, gap=10.0):
    """With the cost and kernel of every pair of documents, in log space."""
    values = []
    for s, y, m in zip(scores, labels, mask, strict=True):
        s, y = s[m], y[m]
        if len(s) == 0:
            values.append(scores.sum() * 0)
            continue
        height = torch.where(y >= 1, 4.0**y - 1, -gap)
        cost = (height[:, None] - height[None]).abs()
        cost = torch.where(cost < 1, math.e, cost).fill_diagonal_(0.0)
        log_mu, log_nu = s.log_softmax(0), y.log_softmax(0)
        log_u = torch.zeros_like(s)
        for _ in range(iterations):
            log_v = log_nu - torch.logsumexp(log_u[:, None] - cost / lam, 0)
            log_u = log_mu - torch.logsumexp(log_v[None] - cost / lam, 1)
        plan = torch.exp(log_u[:, None] - cost / lam + log_v[None])
        value = (plan * cost).sum()
        if gradient == "dual":
            surrogate = lam * (log_u - log_u.mean()).detach() @ s.softmax(0)
            value = value.detach() + surrogate - surrogate.detach()
        values.append(value)
    return torch.stack(values)


def twin_ranks(scores, labels, mask, gradient="type3", alpha_b=1.0):
    """Exact ranks (scores without ties) with the gradient of the type, from its closed form."""
    z = _pairs(scores)
    b = torch.sigmoid(alpha_b * z).detach()
    u = torch.sign(_pairs(labels))
    g = {
        "type1": alpha_b * b * (1 - b),
        "type2": u * alpha_b * b * (1 - b),
        "type3": torch.where(u > 0, 2 * alpha_b * (1 - b), 0)
        + torch.where(u < 0, -2 * alpha_b * b, 0),
    }[gradient]
    surrogate = -(g * z * mask.unsqueeze(1)).sum(2)
    return _ranks(scores.detach(), mask) + surrogate - surrogate.detach()


def _twin_sorted(scores, labels, mask, gradient, alpha_b):
    ranks = twin_ranks(scores, labels, mask, gradient, alpha_b)
    order = _ranks(scores.detach(), mask).argsort(1)
    return ranks.gather(1, order), (labels * mask).gather(1, order), mask.sum(1)


def twin_precision(scores, labels, mask, k=None, gradient="type3", alpha_b=1.0):
    rank, y, n = _twin_sorted(scores, labels, mask, gradient, alpha_b)
    place = torch.arange(1, rank.shape[1] + 1)
    top = place <= (k or rank.shape[1])
    return -((y > 0) * top * place / rank).sum(1) / (k or n.clamp_min(1))


def twin_ap(scores, labels, mask, gradient="type3", alpha_b=1.0):
    rank, y, _ = _twin_sorted(scores, labels, mask, gradient, alpha_b)
    place = torch.arange(1, rank.shape[1] + 1)
    relevant = (y > 0).to(rank.dtype)
    precision = (relevant * place / rank).cumsum(1) / place
    return -_divide((relevant * precision).sum(1), relevant.sum(1))


def twin_ndcg(scores, labels, mask, k=None, gradient="type3", alpha_b=1.0):
    rank, y, _ = _twin_sorted(scores, labels, mask, gradient, alpha_b)
    top = torch.arange(1, rank.shape[1] + 1) <= (k or rank.shape[1])
    gains = 2**y - 1
    return -_divide((gains * top / torch.log2(1 + rank)).sum(1), _ideal_dcg(gains, k))


def twin_nerr(scores, labels, mask, k=10, gradient="type3", alpha_b=1.0):
    rank, y, _ = _twin_sorted(scores, labels, mask, gradient, alpha_b)

    def err(y, rank):
        stop = (2**y - 1) / 2 ** y.amax(1, keepdim=True)
        passed = torch.cat([torch.ones_like(y[:, :1]), (1 - stop[:, :-1]).cumprod(1)], 1)
        return (stop * passed / rank)[:, :k].sum(1)

    places = torch.arange(1, rank.shape[1] + 1, dtype=rank.dtype)
    return -_divide(err(y, rank), err(y.sort(1, descending=True).values, places))
