"""NeuralNDCG and its transpose (Pobrotyn2021): NDCG of NeuralSort's doubly stochastic matrix."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from directrank.kernels.compiled import array, over_lists, usable
from directrank.lists.conventions import discount
from directrank.lists.inputs import checked
from directrank.losses._gradient import with_gradient
from directrank.metrics.conventions import Judgements
from directrank.relaxations._pairs import FAR, Packing, pairs_of
from directrank.relaxations.neural_sort import gumbel_noise


def neural_ndcg(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float = 1.0,
    iterations: int = 30,
    tolerance: float = 1e-6,
    gain: str = "exp2",
    samples: int = 0,
    noise: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``-(1/maxDCG@k) Σ_{r≤k} (P G(y))_r D(r)``, P NeuralSort's matrix after Sinkhorn, per query.

    Args:
        scores: ``[B, L]``.
        labels: ``[B, L]``.
        mask: bool ``[B, L]``, True for a real document; None where all are real.
        k: cut-off; None takes the whole list.
        tau: temperature of NeuralSort.
        iterations: rounds of Sinkhorn scaling at most; 0 leaves it out.
        tolerance: scaling ends when all sums are within it of one.
        gain: ``exp2`` (2^y - 1) or ``linear`` (y).
        samples: 0 is the deterministic form; else the loss is the mean over so many draws of
            Gumbel noise added to the scores, which are then log-weights of a Plackett-Luce model.
        noise: scale of the noise.
        generator: random stream of the noise, on the scores' device; None takes PyTorch's own.

    Returns:
        The loss per query, ``[B]``; 0 for a query without gain.
    """
    rounds = (iterations, tolerance, False)
    return _mean_loss(scores, labels, mask, k, tau, rounds, gain, samples, noise, generator)


def neural_ndcg_transposed(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    k: int | None = None,
    tau: float = 1.0,
    iterations: int = 30,
    tolerance: float = 1e-6,
    gain: str = "exp2",
    samples: int = 0,
    noise: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``-(1/maxDCG@k) Σ_i G(y_i) (scale(Pᵀ) D)_i``, per query; arguments as :func:`neural_ndcg`.

    Once Sinkhorn has converged this *is* NeuralNDCG: both are ``G(y)ᵀ Pᵀ D``. Stopped early they
    differ, because scaling begins with the columns of P there and with those of its transpose here.
    """
    rounds = (iterations, tolerance, True)
    return _mean_loss(scores, labels, mask, k, tau, rounds, gain, samples, noise, generator)


def _mean_loss(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None,
    k: int | None,
    tau: float,
    rounds: tuple[int, float, bool],
    gain: str,
    samples: int,
    noise: float,
    generator: torch.Generator | None,
) -> Tensor:
    scores, labels, mask = checked(scores, labels, mask)
    judgements = Judgements(labels, mask)
    gains = judgements.gains(gain)
    best = judgements.ideal.weigh(gains, partial(discount, "log2"), k)
    gains = gains / best.masked_fill(best <= 0, float("inf")).unsqueeze(1)
    values = []
    for _ in range(max(samples, 1)):
        noisy = scores + noise * gumbel_noise(scores, mask, generator) if samples else scores
        wanted = noisy.requires_grad and torch.is_grad_enabled()
        work = _compiled if usable(scores) else _value_and_gradient
        value, gradient = work(noisy.detach(), gains, mask, k, tau, rounds, wanted)
        values.append(with_gradient(noisy, -value, -gradient))
    return sum(values) / len(values)


def _compiled(
    scores: Tensor,
    gains: Tensor,
    mask: Tensor,
    k: int | None,
    tau: float,
    rounds: tuple[int, float, bool],
    gradient_wanted: bool,
) -> tuple[Tensor, Tensor]:
    """:func:`_value_and_gradient` on a CPU."""
    from directrank.kernels import neural_sort as _neural_kernel

    iterations, tolerance, rows_first = rounds
    value = scores.new_empty(len(scores))
    gradient = torch.zeros_like(scores, memory_format=torch.contiguous_format)
    ranks = torch.arange(1, scores.shape[1] + 1, dtype=scores.dtype)
    discounts = discount("log2", ranks)
    if k is not None:
        discounts *= ranks <= k
    over_lists(
        _neural_kernel.neural_ndcg,
        pairs_of(scores) * (1 + iterations),
        len(scores),
        *(array(tensor) for tensor in (scores, gains, mask, discounts)),
        float(tau),
        int(iterations),
        float(tolerance),
        rows_first,
        gradient_wanted,
        value.numpy(),
        gradient.numpy(),
    )
    return value, gradient


@torch.no_grad()
def _value_and_gradient(
    scores: Tensor,
    gains: Tensor,
    mask: Tensor,
    k: int | None,
    tau: float,
    rounds: tuple[int, float, bool],
    gradient_wanted: bool,
) -> tuple[Tensor, Tensor]:
    """``Σ_r D(r) (P gains)_r`` per list, ``[B]``, and its gradient (or 0), ``[B, L]``."""
    packing = Packing(gains.abs().sum(1, keepdim=True).expand_as(gains) > 0, mask)
    s, g, real = packing.pack(scores), packing.pack(gains), packing.real
    ranks = torch.arange(1, scores.shape[1] + 1, dtype=s.dtype, device=s.device)
    d = discount("log2", ranks)
    if k is not None:
        d = d * (ranks <= k)
    value = s.new_zeros(len(s))
    gradient = torch.zeros_like(s)
    for chunk in packing.chunks(CHUNK * packing.budget):
        part, width = chunk.lists, slice(chunk.columns)
        value[part], gradient[part, width] = _chunk(
            s[part, width],
            g[part, width],
            d[width],
            real[part, width],
            tau,
            rounds,
            gradient_wanted,
        )
    return packing.unpack_lists(value), packing.unpack(gradient)


def _chunk(
    s: Tensor,
    g: Tensor,
    d: Tensor,
    real: Tensor,
    tau: float,
    rounds: tuple[int, float, bool],
    gradient_wanted: bool,
) -> tuple[Tensor, Tensor | float]:
    """Value and gradient of a few lists; their matrices P are the only ``[b, n, n]`` tensors."""
    n = real.sum(1, keepdim=True)
    ranks = torch.arange(1, s.shape[1] + 1, dtype=s.dtype, device=s.device)
    slope = (n + 1 - 2 * ranks) / tau
    there = real.to(s.dtype)
    work = s.unsqueeze(2) - s.unsqueeze(1)
    apart = _left(there, work.abs()) / tau
    logits = torch.mul(slope.unsqueeze(2), s.unsqueeze(1), out=work)
    logits -= apart.masked_fill(~real, FAR).unsqueeze(1)
    P = torch.softmax(logits, 2)
    P *= there.unsqueeze(2)
    scaling = _Scaling(P, there, *rounds)
    u, v = scaling.u, scaling.v
    wanted, given = u * d, v * g
    value = (wanted * _right(P, given)).sum(1)
    if not gradient_wanted:
        return value, 0.0
    left, right = scaling.adjoint(d * _right(P, given), g * _left(wanted, P))
    left, right = [-wanted, *left], [given, *right]
    # -P̄ is a sum of outer products; through the softmax only its products with P are needed.
    P_bar = torch.bmm(torch.stack(left, 1).transpose(1, 2), torch.stack(right, 1), out=work)
    P_bar *= P
    row = P_bar.sum(2)
    by_slope = _left(slope * row * there, P) - _left(slope * there, P_bar)
    by_apart = (_left(there, P_bar) - _left(row * there, P)) / tau
    # |s_i - s_j| for all pairs: document m gains sign(s_m - s_j) from its own sum and from j's.
    sign = torch.sub(s.unsqueeze(2), s.unsqueeze(1), out=P).sign_()
    gradient = by_slope + by_apart * _right(sign, there) + _right(sign, by_apart * there)
    return value, gradient * there


#: Many small products of a chunk's matrices with vectors share one call; that they leave the
#: second-level cache costs less than calls would.
CHUNK = 4

#: Smaller sums count as empty: their inverse, squared, would overflow float32.
LEAST = 1e-18


class _Scaling:
    """Sinkhorn scaling of P to ``diag(u) P diag(v)``, of which only vectors are kept.

    A round sets ``first = 1 / sums`` of one side (columns, or rows if ``rows_first``) and then
    ``second = 1 / sums`` of the other. A list that has converged keeps its vectors.

    Args:
        P: ``[b, n, n]``.
        there: 1 for the rows and columns in use, ``[b, n]``.
        iterations: rounds at most.
        tolerance: a list has converged when all its sums are within it of one.
        rows_first: which side begins.
    """

    def __init__(
        self, P: Tensor, there: Tensor, iterations: int, tolerance: float, rows_first: bool
    ) -> None:
        self.P, self.there, self.rows_first = P, there, rows_first
        # Without padding, sums are empty only where probabilities have underflowed.
        self.full = bool(there.all()) and bool(P.amax(1).min() > LEAST)
        first = second = there
        self.rounds: list[tuple[Tensor, Tensor, Tensor, Tensor | None]] = []
        for number in range(iterations):
            sums = self._to_first(second)
            off = self._off(first * sums)
            if number == 0:  # later rounds leave the sums of the second side at one
                off = torch.maximum(off, self._off(second * self._to_second(first)))
            done = (off <= tolerance).unsqueeze(1)
            n_done = int(done.sum())
            if n_done == len(P):
                break
            before, kept = second, first
            first = self._inverse(sums)
            if n_done:
                first = torch.where(done, kept, first)
            second = self._inverse(self._to_second(first))
            if n_done:
                second = torch.where(done, before, second)
            self.rounds.append((before, first, second, done if n_done else None))
        self.u, self.v = (first, second) if rows_first else (second, first)

    def adjoint(self, u_bar: Tensor, v_bar: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """P's adjoint from those of u and v, as minus a sum of outer products ``left ⊗ right``."""
        first_bar, second_bar = (u_bar, v_bar) if self.rows_first else (v_bar, u_bar)
        firsts, seconds = [], []
        nothing = torch.zeros_like(u_bar)
        for before, first, second, done in reversed(self.rounds):
            by_second = _masked(second_bar * second * second, done)
            first_bar = first_bar - self._to_first(by_second)
            by_first = _masked(first_bar * first * first, done)
            firsts += [first, by_first]
            seconds += [by_second, before]
            if done is None:
                # What came before this round is overwritten in it.
                first_bar, second_bar = nothing, -self._to_second(by_first)
            else:
                first_bar = first_bar * done
                second_bar = torch.where(done, second_bar, -self._to_second(by_first))
        return (firsts, seconds) if self.rows_first else (seconds, firsts)

    def _to_first(self, values: Tensor) -> Tensor:
        return _right(self.P, values) if self.rows_first else _left(values, self.P)

    def _to_second(self, values: Tensor) -> Tensor:
        return _left(values, self.P) if self.rows_first else _right(self.P, values)

    def _off(self, sums: Tensor) -> Tensor:
        apart = sums.sub(1).abs_()
        return (apart if self.full else apart.mul_(self.there)).amax(1)

    def _inverse(self, sums: Tensor) -> Tensor:
        if self.full:
            return sums.reciprocal()
        return torch.where(sums > LEAST, self.there / sums, self.there)


def _masked(values: Tensor, done: Tensor | None) -> Tensor:
    return values if done is None else values.masked_fill(done, 0.0)


def _left(values: Tensor, matrix: Tensor) -> Tensor:
    """``valuesᵀ matrix`` per list, ``[b, n]``."""
    return torch.bmm(values.unsqueeze(1), matrix).squeeze(1)


def _right(matrix: Tensor, values: Tensor) -> Tensor:
    """``matrix values`` per list, ``[b, n]``.

    Written as a product from the left: a batched product with a column is ten times slower on CPUs.
    """
    return torch.bmm(values.unsqueeze(1), matrix.transpose(1, 2)).squeeze(1)
