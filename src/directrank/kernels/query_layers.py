"""Layers with norms per query as compiled loops, list by list.

Because each list has its own statistics, it passes through all layers while it is in the cache. A
list is a row of ``lists``: its model m, its first document, and the one after its last. A quantity
that each layer has is stored in one array, layer after layer, and all parameters are in one array.
BLAS computes the products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.layers import (
    add,
    add_product,
    columns,
    input_of,
    matrix,
    moments,
    pages,
)
from directrank.kernels.numbers import expm1
from directrank.kernels.philox import Dropping, draw, halves


class Arrays(NamedTuple):
    """What a pass reads and writes: the models of a stack, their layers and their lists.

    Attributes:
        lists: int64 ``[lists, 3]``, see above; the lists of a model are contiguous.
        chunks: int64 ``[chunks, 2]``, the first of the contiguous lists of a model that are
            processed in turn, and the one after the last.
        first: int64 ``[M + 1]``, each model's first chunk, and the number of chunks.
        layers: int64 ``[L, 8]``, of each layer: the widths of its input and of its output; how many
            of a model's numbers come before its weights, before the scale of its norm (-1 without a
            norm) and before its shift; how many columns of outputs come before its own; the
            position of its input among those with dropout (-1 without), and the room that the bits
            of those before it take for each document.
        epsilon: added to variances.
        celu: whether the activation is CELU with α = 1; otherwise it is ReLU.
        active: the number of layers with an activation, which are the first.
        x, rows: the input is ``x`` ``[M, N, F]``, or ``[1, N, F]`` for all models, if ``rows`` is
            ``[M, 0]``; otherwise ``x`` is ``[1, T, F]``, and ``rows`` ``[M, N]`` gives the row of
            each document.
        parameters: the parameters of all layers, one after the other.
        dropping: the dropout of inputs, whose bits are stored input by input, ``M · N`` rows each.
        standard: the products of all layers, standardised, ``M · N`` for each column; empty if no
            gradient is needed.
        outputs: the outputs of all layers, in the same form.
        inverse: one over the standard deviations, ``[lists, columns]``.
        y: ``[M, N]``, the scores; in :func:`backward`, their gradient.
    """

    lists: np.ndarray
    chunks: np.ndarray
    first: np.ndarray
    layers: np.ndarray
    epsilon: float
    celu: bool
    active: int
    x: np.ndarray
    rows: np.ndarray
    parameters: np.ndarray
    dropping: Dropping
    standard: np.ndarray
    outputs: np.ndarray
    inverse: np.ndarray
    y: np.ndarray


@compiled
def cut(lengths, most_chunks):
    """``lists``, ``chunks`` and ``first`` of the :class:`Arrays` for ``lengths`` int64 ``[M, B]``.

    A model has at most ``most_chunks`` chunks, all with the same number of lists except the last.
    """
    models, B = lengths.shape
    step = max(1, -(-B // most_chunks))
    own = -(-B // step)
    lists = np.empty((models * B, 3), np.int64)
    chunks = np.empty((models * own, 2), np.int64)
    for m in range(models):
        end = 0
        for b in range(B):
            begin, end = end, end + lengths[m, b]
            lists[m * B + b, 0], lists[m * B + b, 1], lists[m * B + b, 2] = m, begin, end
        for chunk in range(own):
            chunks[m * own + chunk, 0] = m * B + chunk * step
            chunks[m * own + chunk, 1] = m * B + min((chunk + 1) * step, B)
    return lists, chunks, np.arange(models + 1) * own


@inlined
def widest(arrays):
    """The largest width of an input or output of a layer."""
    most = 0
    for layer in range(len(arrays.layers)):
        most = max(most, arrays.layers[layer, 0], arrays.layers[layer, 1])
    return most


@inlined
def scratch_for(arrays, begin, end, count):
    """Room for ``count`` matrices of documents of the longest list of the chunks."""
    longest = 0
    for b in range(arrays.chunks[begin, 0], arrays.chunks[end - 1, 1]):
        longest = max(longest, arrays.lists[b, 2] - arrays.lists[b, 1])
    return np.empty((count, longest * widest(arrays)), arrays.y.dtype)


@inlined
def copy(values, into):
    """Copy a matrix; the assignment to a slice would take long to compile."""
    for i in range(into.shape[0]):
        for j in range(into.shape[1]):
            into[i, j] = values[i, j]


@inlined
def of_layer(arrays, values, layer, block):
    """From ``standard`` or ``outputs``, those of a layer and a list."""
    m, first, last = block
    models, N = arrays.y.shape
    return pages(values, arrays.layers[layer, 5] * N, models, N, arrays.layers[layer, 1])[m][
        first:last
    ]


@inlined
def parameters_of(arrays, layer, m):
    """A model's weights ``[in, out]`` of a layer, and the scale and shift that follow."""
    models = len(arrays.y)
    width_in, width, at_weight, at_scale, at_shift, _, _, _ = arrays.layers[layer]
    weight = pages(arrays.parameters, at_weight, models, width_in, width)[m]
    shift = columns(arrays.parameters, at_shift, models, width)[m]
    if at_scale < 0:
        return weight, np.ones(width, weight.dtype), shift
    return weight, columns(arrays.parameters, at_scale, models, width)[m], shift


@inlined
def bits_of(arrays, layer, block, width):
    """The bits drawn for the input of a layer and a list."""
    m, first, last = block
    models, N = arrays.y.shape
    row = 2 * -(-width // 8)
    begin = models * N * arrays.layers[layer, 7] + (m * N + first) * row
    return arrays.dropping.bits[begin : begin + (last - first) * row]


@inlined
def drop(arrays, layer, block, a):
    """Dropout of the input of a layer, or of its gradient, in place."""
    n, W = a.shape
    zero, factor = a.dtype.type(0), a.dtype.type(arrays.dropping.scale)
    dropped = np.uint16(arrays.dropping.dropped)
    drawn = halves(bits_of(arrays, layer, block, W), n)
    for i in range(n):
        for j in range(W):
            a[i, j] *= factor if drawn[i, j] >= dropped else zero


@inlined
def standardise(z, mean, inverse, epsilon):
    """Standardise the columns of ``z`` in place; ``mean`` is working space."""
    n, W = z.shape
    moments(z, mean, inverse)
    for j in range(W):
        inverse[j] = 1 / np.sqrt(inverse[j] / n + epsilon)
    for i in range(n):
        for j in range(W):
            z[i, j] = (z[i, j] - mean[j]) * inverse[j]


@inlined
def activate(standard, scale, shift, active, celu, a):
    """``a = activation(standard · scale + shift)``; NaN stays NaN."""
    n, W = a.shape
    zero = a.dtype.type(0)
    if active and celu:
        for i in range(n):
            for j in range(W):
                value = standard[i, j] * scale[j] + shift[j]
                a[i, j] = value if value > zero else expm1(zero if value > zero else value)
    elif active:
        for i in range(n):
            for j in range(W):
                value = standard[i, j] * scale[j] + shift[j]
                a[i, j] = zero if value < zero else value
    else:
        for i in range(n):
            for j in range(W):
                a[i, j] = standard[i, j] * scale[j] + shift[j]


@compiled
def forward(begin, end, arrays):
    """The scores of the lists of the chunks from ``begin`` to ``end``."""
    kept = len(arrays.standard) > 0
    scratch = scratch_for(arrays, begin, end, 4)
    mean = np.empty(widest(arrays), arrays.y.dtype)
    for b in range(arrays.chunks[begin, 0], arrays.chunks[end - 1, 1]):
        block = arrays.lists[b]
        m, first, last = block
        n = last - first
        if n == 0:
            continue
        x = input_of(arrays, block, scratch[0])
        for layer in range(len(arrays.layers)):
            width_in, width, _, at_scale, _, before, dropped, _ = arrays.layers[layer]
            weight, scale, shift = parameters_of(arrays, layer, m)
            if dropped >= 0:
                own = matrix(scratch[1], n, width_in)
                copy(x, own)
                bits = bits_of(arrays, layer, block, width_in)
                draw(arrays.dropping, b, dropped, 0, n, width_in, bits)
                drop(arrays, layer, block, own)
                x = own
            z, a = matrix(scratch[2], n, width), matrix(scratch[3], n, width)
            if kept:
                z = of_layer(arrays, arrays.standard, layer, block)
                a = of_layer(arrays, arrays.outputs, layer, block)
            np.dot(x, weight, z)
            if at_scale >= 0:
                inverse = arrays.inverse[b if kept else begin, before : before + width]
                standardise(z, mean[:width], inverse, arrays.epsilon)
            activate(z, scale, shift, layer < arrays.active, arrays.celu, a)
            x = a
        for i in range(n):
            arrays.y[m, first + i] = x[i, 0]


@inlined
def through_activation(gradient, a, standard, active, celu, to_shift, to_scale):
    """Back through an activation, in place; its output ``a`` gives the slope.

    ``to_shift`` is the sum of the gradient, and ``to_scale`` that of its product with ``standard``.
    """
    n, W = a.shape
    zero, one = a.dtype.type(0), a.dtype.type(1)
    to_shift[:] = 0
    to_scale[:] = 0
    for i in range(n):
        for j in range(W):
            below = a[i, j] + one if celu else zero
            passed = gradient[i, j] * (one if a[i, j] > zero or not active else below)
            gradient[i, j] = passed
            to_shift[j] += passed
            to_scale[j] += passed * standard[i, j]


@inlined
def through_norm(gradient, standard, scale, inverse, to_shift, to_scale):
    """Back through a norm, in place; the sums become means."""
    n, W = gradient.shape
    for j in range(W):
        to_shift[j] /= n
        to_scale[j] /= n
    for i in range(n):
        for j in range(W):
            centred = gradient[i, j] - to_shift[j] - standard[i, j] * to_scale[j]
            gradient[i, j] = centred * (scale[j] * inverse[j])


@compiled
def backward(begin, end, arrays, of_chunks):
    """The share of each chunk from ``begin`` to ``end`` in the gradients of the parameters.

    ``of_chunks`` has the form of the parameters of so many models. It must be zero for a chunk that
    begins with a list without documents.
    """
    chunks = len(arrays.chunks)
    scratch = scratch_for(arrays, begin, end, 3)
    most = widest(arrays)
    sums = np.empty((2, most), arrays.y.dtype)
    part = np.empty(most * most, arrays.y.dtype)
    for chunk in range(begin, end):
        for b in range(arrays.chunks[chunk, 0], arrays.chunks[chunk, 1]):
            block = arrays.lists[b]
            m, first, last = block
            n = last - first
            if n == 0:
                continue
            anew = b == arrays.chunks[chunk, 0]
            g = matrix(scratch[0], n, 1)
            for i in range(n):
                g[i, 0] = arrays.y[m, first + i]
            for layer in range(len(arrays.layers) - 1, -1, -1):
                width_in, width, at_weight, at_scale, at_shift, before, dropped, _ = arrays.layers[
                    layer
                ]
                weight, scale, _ = parameters_of(arrays, layer, m)
                standard = of_layer(arrays, arrays.standard, layer, block)
                a = of_layer(arrays, arrays.outputs, layer, block)
                to_shift, to_scale = sums[0, :width], sums[1, :width]
                active = layer < arrays.active
                through_activation(g, a, standard, active, arrays.celu, to_shift, to_scale)
                add(to_shift, anew, columns(of_chunks, at_shift, chunks, width)[chunk])
                if at_scale >= 0:
                    add(to_scale, anew, columns(of_chunks, at_scale, chunks, width)[chunk])
                    inverse = arrays.inverse[b, before : before + width]
                    through_norm(g, standard, scale, inverse, to_shift, to_scale)
                x = matrix(scratch[1], n, width_in)
                if layer == 0:
                    x = input_of(arrays, block, scratch[1])
                elif dropped < 0:
                    x = of_layer(arrays, arrays.outputs, layer - 1, block)
                else:
                    copy(of_layer(arrays, arrays.outputs, layer - 1, block), x)
                    drop(arrays, layer, block, x)
                to_weight = pages(of_chunks, at_weight, chunks, width_in, width)[chunk]
                add_product(x, g, anew, matrix(part, width_in, width), to_weight)
                if layer > 0:
                    result = matrix(scratch[2], n, width_in)
                    np.dot(g, weight.T, result)
                    g = matrix(scratch[0], n, width_in)
                    copy(result, g)
                    if dropped >= 0:
                        drop(arrays, layer, block, g)
