"""Normalisation of layers on a GPU, with the documents of a model or of each query.

A sum over documents is made of sums of :data:`CHUNK` documents, which are added in order.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from directrank.kernels.gpu.lists import EXACT
from directrank.lists.flat import DeviceFlat
from directrank.lists.gradient import once_differentiable

#: Documents and columns that a program reads at a time, and documents whose sum it makes.
ROWS, WIDTH, CHUNK = 32, 64, 128

#: Columns of which a program combines the sums.
FEW = 8


def batch_norm(
    x: Tensor, weight: Tensor, bias: Tensor, documents: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise each model's documents with their mean and population variance.

    Args:
        x: ``[M, N, W]``, documents before padding.
        weight, bias: ``[M, 1, W]``.
        documents: int64 ``[M]``, the number of documents of each model.
        epsilon: added to the variance.

    Returns:
        The normalised ``[M, N, W]``, whose gradient may be anything at padding; mean and variance
        ``[M, 1, W]``, without a gradient.
    """
    return _BatchNorm.apply(x, weight, bias, documents, epsilon)


class _BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, documents: Tensor, epsilon: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = x.contiguous()
        M, N, W = x.shape
        chunks = triton.cdiv(N, CHUNK)
        parts = x.new_empty(2, M, chunks, W)
        grid, columns = (M, chunks, triton.cdiv(W, WIDTH)), {"WIDTH": WIDTH, "ROWS": ROWS}
        _moments[grid](x, documents, parts, N, W, chunks, CHUNK=CHUNK, **columns, **EXACT)
        mean, variance = x.new_empty(M, 1, W), x.new_empty(M, 1, W)
        _combined[M, triton.cdiv(W, FEW)](parts, documents, mean, variance, W, chunks, CHUNK=CHUNK,
                                          CHUNKS=triton.next_power_of_2(chunks), WIDTH=FEW,
                                          **EXACT)  # fmt: skip
        y = torch.empty_like(x)
        _normalised[grid](x, mean, variance, weight, bias, y, N, W, epsilon, CHUNK=CHUNK,
                          **columns, **EXACT)  # fmt: skip
        ctx.save_for_backward(x, mean, variance, weight, documents)
        ctx.epsilon = epsilon
        ctx.mark_non_differentiable(mean, variance)
        ctx.set_materialize_grads(False)
        return y, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, mean, variance, weight, documents = ctx.saved_tensors
        gradient = gradient.contiguous()
        M, N, W = x.shape
        chunks = triton.cdiv(N, CHUNK)
        parts = x.new_empty(2, M, chunks, W)
        grid, columns = (M, chunks, triton.cdiv(W, WIDTH)), {"WIDTH": WIDTH, "ROWS": ROWS}
        _pushes[grid](gradient, x, mean, variance, documents, parts, N, W, chunks, ctx.epsilon,
                      CHUNK=CHUNK, **columns, **EXACT)  # fmt: skip
        to_bias, to_weight = parts.sum(2, keepdim=True).unbind(0)
        if not ctx.needs_input_grad[0]:
            return None, to_weight, to_bias, None, None
        to_x = torch.empty_like(x)
        _to_x[grid](gradient, x, mean, variance, weight, to_bias, to_weight, documents, to_x, N, W,
                    ctx.epsilon, CHUNK=CHUNK, **columns, **EXACT)  # fmt: skip
        return to_x, to_weight, to_bias, None, None


@triton.jit
def _place(N, W, CHUNK: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """This program's model, first document, columns, and which of them there are."""
    column = tl.program_id(2) * WIDTH + tl.arange(0, WIDTH)
    return tl.program_id(0).to(tl.int64), tl.program_id(1) * CHUNK, column, column < W


@triton.jit
def _moments(
    x, documents, parts, N, W, chunks,
    CHUNK: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The mean of a chunk's documents and their squares around it, ``[2, M, chunks, W]``."""
    m, first, column, known = _place(N, W, CHUNK, ROWS, WIDTH)
    n = tl.load(documents + m)
    x += m * N * W
    dtype = x.dtype.element_ty
    total = tl.zeros([WIDTH], dtype)
    for start in range(0, tl.minimum(n - first, CHUNK), ROWS):
        row = first + start + tl.arange(0, ROWS)
        there = (row < n)[:, None] & known[None, :]
        values = tl.load(x + row[:, None] * W + column[None, :], mask=there, other=0.0)
        total += tl.sum(values, 0)
    count = tl.maximum(tl.minimum(n - first, CHUNK), 1).to(dtype)
    mean = total / count
    squares = tl.zeros([WIDTH], dtype)
    for start in range(0, tl.minimum(n - first, CHUNK), ROWS):
        row = first + start + tl.arange(0, ROWS)
        there = (row < n)[:, None] & known[None, :]
        values = tl.load(x + row[:, None] * W + column[None, :], mask=there, other=0.0)
        away = tl.where(there, values - mean[None, :], 0.0)
        squares += tl.sum(away * away, 0)
    out = parts + (m * chunks + tl.program_id(1)) * W + column
    tl.store(out, mean, mask=known)
    tl.store(out + tl.num_programs(0).to(tl.int64) * chunks * W, squares, mask=known)


@triton.jit
def _combined(
    parts, documents, mean, variance, W, chunks,
    CHUNK: tl.constexpr, CHUNKS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Mean and variance of all chunks."""
    m = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    chunk = tl.arange(0, CHUNKS)
    there = (chunk < chunks)[:, None] & (column < W)[None, :]
    n = tl.load(documents + m)
    dtype = parts.dtype.element_ty
    own = parts + (m * chunks + chunk[:, None]) * W + column[None, :]
    means = tl.load(own, mask=there, other=0.0)
    squares = tl.load(own + tl.num_programs(0).to(tl.int64) * chunks * W, mask=there, other=0.0)
    counts = tl.minimum(tl.maximum(n - chunk * CHUNK, 0), CHUNK).to(dtype)[:, None]
    count = tl.maximum(n, 1).to(dtype)
    average = tl.sum(counts * means, 0) / count
    away = means - average[None, :]
    tl.store(mean + m * W + column, average, mask=column < W)
    total = tl.sum(squares + counts * away * away, 0)
    tl.store(variance + m * W + column, total / count, mask=column < W)


@triton.jit
def _normalised(
    x, mean, variance, weight, bias, y, N, W, epsilon: tl.float64,
    CHUNK: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    m, first, column, known = _place(N, W, CHUNK, ROWS, WIDTH)
    dtype = x.dtype.element_ty
    of_model = m * W + column
    average = tl.load(mean + of_model, mask=known, other=0.0)
    spread = tl.load(variance + of_model, mask=known, other=1.0)
    scale = tl.load(weight + of_model, mask=known, other=0.0) / tl.sqrt(
        spread + tl.full((), epsilon, dtype)
    )
    shift = tl.load(bias + of_model, mask=known, other=0.0)
    for start in range(0, tl.minimum(N - first, CHUNK), ROWS):
        row = first + start + tl.arange(0, ROWS)
        there = (row < N)[:, None] & known[None, :]
        place = m * N * W + row[:, None] * W + column[None, :]
        values = tl.load(x + place, mask=there, other=0.0)
        values = (values - average[None, :]) * scale[None, :] + shift[None, :]
        tl.store(y + place, values, mask=there)


@triton.jit
def _pushes(
    gradient, x, mean, variance, documents, parts, N, W, chunks, epsilon: tl.float64,
    CHUNK: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The sums of a chunk's gradients, and of their products with the normalised values."""
    m, first, column, known = _place(N, W, CHUNK, ROWS, WIDTH)
    dtype = x.dtype.element_ty
    n = tl.load(documents + m)
    average = tl.load(mean + m * W + column, mask=known, other=0.0)
    spread = tl.load(variance + m * W + column, mask=known, other=1.0)
    scale = 1.0 / tl.sqrt(spread + tl.full((), epsilon, dtype))
    plain, along = tl.zeros([WIDTH], dtype), tl.zeros([WIDTH], dtype)
    for start in range(0, tl.minimum(n - first, CHUNK), ROWS):
        row = first + start + tl.arange(0, ROWS)
        there = (row < n)[:, None] & known[None, :]
        place = m * N * W + row[:, None] * W + column[None, :]
        push = tl.load(gradient + place, mask=there, other=0.0)
        values = tl.load(x + place, mask=there, other=0.0)
        plain += tl.sum(push, 0)
        along += tl.sum(push * ((values - average[None, :]) * scale[None, :]), 0)
    out = parts + (m * chunks + tl.program_id(1)) * W + column
    tl.store(out, plain, mask=known)
    tl.store(out + tl.num_programs(0).to(tl.int64) * chunks * W, along, mask=known)


@triton.jit
def _to_x(
    gradient, x, mean, variance, weight, to_bias, to_weight, documents, to_x, N, W,
    epsilon: tl.float64, CHUNK: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradient by the input; 0 at padding."""
    m, first, column, known = _place(N, W, CHUNK, ROWS, WIDTH)
    dtype = x.dtype.element_ty
    n = tl.load(documents + m)
    of_model = m * W + column
    average = tl.load(mean + of_model, mask=known, other=0.0)
    spread = tl.load(variance + of_model, mask=known, other=1.0)
    scale = 1.0 / tl.sqrt(spread + tl.full((), epsilon, dtype))
    factor = scale * tl.load(weight + of_model, mask=known, other=0.0)
    count = tl.maximum(n, 1).to(dtype)
    plain = tl.load(to_bias + of_model, mask=known, other=0.0) / count
    along = tl.load(to_weight + of_model, mask=known, other=0.0) / count
    for start in range(0, tl.minimum(N - first, CHUNK), ROWS):
        row = first + start + tl.arange(0, ROWS)
        there = (row < N)[:, None] & known[None, :]
        place = m * N * W + row[:, None] * W + column[None, :]
        push = tl.load(gradient + place, mask=there, other=0.0)
        values = tl.load(x + place, mask=there, other=0.0)
        standard = (values - average[None, :]) * scale[None, :]
        result = factor[None, :] * (push - plain[None, :] - standard * along[None, :])
        tl.store(to_x + place, tl.where((row < n)[:, None], result, 0.0), mask=there)


def query_norm(
    x: Tensor, weight: Tensor, bias: Tensor, lists: DeviceFlat, epsilon: float
) -> Tensor:
    """Normalise the documents of each query with their mean and population variance.

    Args:
        x: ``[M, N, W]``.
        weight, bias: ``[M, 1, W]``.
        lists: the queries of all models, model by model.
        epsilon: added to the variance.

    Returns:
        The normalised ``[M, N, W]``; 0 at places that are in no query.
    """
    return _QueryNorm.apply(x, weight, bias, lists, epsilon)


class _QueryNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, lists: DeviceFlat, epsilon: float
    ) -> Tensor:
        x = x.contiguous()
        M, _, W = x.shape
        y, scale = torch.zeros_like(x), x.new_empty(lists.count, W)
        mean = torch.empty_like(scale)
        grid = lists.count, triton.cdiv(W, WIDTH)
        _of_queries[grid](x, lists.spans, lists.count // M, weight, bias, mean, scale, y, W,
                          epsilon, ROWS=ROWS, WIDTH=WIDTH, **EXACT)  # fmt: skip
        ctx.save_for_backward(x, mean, scale, weight)
        ctx.lists = lists
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, mean, scale, weight = ctx.saved_tensors
        lists, gradient = ctx.lists, gradient.contiguous()
        M, _, W = x.shape
        to_x, parts = torch.zeros_like(x), x.new_empty(2, lists.count, W)
        grid = lists.count, triton.cdiv(W, WIDTH)
        _to_queries[grid](gradient, x, lists.spans, lists.count // M, weight, mean, scale, parts,
                          to_x, W, ROWS=ROWS, WIDTH=WIDTH, **EXACT)  # fmt: skip
        to_bias, to_weight = parts.view(2, M, -1, W).sum(2, keepdim=True).unbind(0)
        return to_x, to_weight, to_bias, None, None


@triton.jit
def _of_queries(
    x, spans, B, weight, bias, mean, scale, y, W, epsilon: tl.float64,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Normalise one query's documents, in three passes over them."""
    number = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(spans + 2 * number), tl.load(spans + 2 * number + 1)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    known = column < W
    dtype = x.dtype.element_ty
    count = tl.maximum(end - begin, 1).to(dtype)
    total = tl.zeros([WIDTH], dtype)
    for first in range(begin, end, ROWS):
        row = first + tl.arange(0, ROWS)
        there = (row < end)[:, None] & known[None, :]
        total += tl.sum(tl.load(x + row[:, None] * W + column[None, :], mask=there, other=0.0), 0)
    average = total / count
    squares = tl.zeros([WIDTH], dtype)
    for first in range(begin, end, ROWS):
        row = first + tl.arange(0, ROWS)
        there = (row < end)[:, None] & known[None, :]
        values = tl.load(x + row[:, None] * W + column[None, :], mask=there, other=0.0)
        away = tl.where(there, values - average[None, :], 0.0)
        squares += tl.sum(away * away, 0)
    factor = 1.0 / tl.sqrt(squares / count + tl.full((), epsilon, dtype))
    tl.store(mean + number * W + column, average, mask=known)
    tl.store(scale + number * W + column, factor, mask=known)
    of_model = number // B * W + column
    slope = factor * tl.load(weight + of_model, mask=known, other=0.0)
    shift = tl.load(bias + of_model, mask=known, other=0.0)
    for first in range(begin, end, ROWS):
        row = first + tl.arange(0, ROWS)
        there = (row < end)[:, None] & known[None, :]
        values = tl.load(x + row[:, None] * W + column[None, :], mask=there, other=0.0)
        values = (values - average[None, :]) * slope[None, :] + shift[None, :]
        tl.store(y + row[:, None] * W + column[None, :], values, mask=there)


@triton.jit
def _to_queries(
    gradient, x, spans, B, weight, mean, scale, parts, to_x, W,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradients of one query, in two passes over its documents."""
    number = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(spans + 2 * number), tl.load(spans + 2 * number + 1)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    known = column < W
    dtype = x.dtype.element_ty
    average = tl.load(mean + number * W + column, mask=known, other=0.0)
    factor = tl.load(scale + number * W + column, mask=known, other=0.0)
    plain, along = tl.zeros([WIDTH], dtype), tl.zeros([WIDTH], dtype)
    for first in range(begin, end, ROWS):
        row = first + tl.arange(0, ROWS)
        there = (row < end)[:, None] & known[None, :]
        place = row[:, None] * W + column[None, :]
        push = tl.load(gradient + place, mask=there, other=0.0)
        values = tl.load(x + place, mask=there, other=0.0)
        plain += tl.sum(push, 0)
        along += tl.sum(push * ((values - average[None, :]) * factor[None, :]), 0)
    own = parts + number * W + column
    tl.store(own, plain, mask=known)
    tl.store(own + tl.num_programs(0).to(tl.int64) * W, along, mask=known)
    count = tl.maximum(end - begin, 1).to(dtype)
    slope = factor * tl.load(weight + number // B * W + column, mask=known, other=0.0)
    plain, along = plain / count, along / count
    for first in range(begin, end, ROWS):
        row = first + tl.arange(0, ROWS)
        there = (row < end)[:, None] & known[None, :]
        place = row[:, None] * W + column[None, :]
        push = tl.load(gradient + place, mask=there, other=0.0)
        values = tl.load(x + place, mask=there, other=0.0)
        standard = (values - average[None, :]) * factor[None, :]
        result = slope[None, :] * (push - plain[None, :] - standard * along[None, :])
        tl.store(to_x + place, result, mask=there)
