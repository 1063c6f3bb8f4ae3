"""The context-aware ranker as compiled loops, some lists at a time.

A block is a row of ``items``: some successive lists of a model, whose documents pass through all
layers while they are in the cache. A quantity of each document is stored in one array, column after
column as they are named in :func:`columns_of`, and all parameters are in one array. BLAS computes
the products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from directrank.kernels.compiling import compiled, inlined
from directrank.kernels.layers import add_product, columns, input_of, matrix, pages
from directrank.kernels.numbers import exp, largest
from directrank.kernels.philox import Dropping, draw, halves

#: The documents that a block has at most, unless a single list has more.
BLOCK = 256

#: Added to the variance of a document's values.
EPSILON = 1e-12

#: The parameters of half a layer: scale and shift of its norm, and weight and bias of its two
#: products. The first half of a layer is the attention, whose first product gives queries, keys and
#: values; the second is the feed-forward part. Weight and bias of the input come before all halves;
#: scale and shift of the last norm, and weight and bias of the output, come after them.
OF_HALF = 6


class Arrays(NamedTuple):
    """What a pass reads and writes: the models of a stack and their lists.

    Attributes:
        items: int64 ``[blocks, 5]``: the model m, the first document and the one after the last,
            the first list and the one after the last. The blocks of a model are contiguous.
        chunks: int64 ``[chunks, 2]``, the first of the contiguous blocks of a model that are
            processed in turn, and the one after the last.
        first: int64 ``[M + 1]``, each model's first chunk, and the number of chunks.
        starts: int64 ``[M, B + 1]``, each list's first document.
        pairs: int64 ``[M, B + 1]``, how many pairs of documents of one list come before each list,
            among those of all models.
        heads: of the attention.
        halves: the number of half layers.
        x, rows: the input is ``x`` ``[M, N, F]``, or ``[1, N, F]`` for all models, if ``rows`` is
            ``[M, 0]``; otherwise ``x`` is ``[1, T, F]``, and ``rows`` ``[M, N]`` gives the row of
            each document.
        width, inner: of a document, and of the hidden layer of the feed-forward part.
        parameters: all parameters, one after the other, see :data:`OF_HALF`.
        before: int64, how many numbers of a model come before each parameter.
        dropping: the dropout of what is between the products of a half (the weights of the
            attention, or the hidden layer) and of its result, which are drawn in this order.
        at_bits: int64 ``[halves, 2]``, where the bits of both begin, document by document, or list
            by list and head by head. Without dropout it is ``[0, 2]``, and all bits are zero.
        of_pairs: int64 ``[M, B]``, where those of each list's pairs begin among those of all.
        kept: of each document what the gradient needs, see :func:`columns_of`; empty if no gradient
            is needed.
        weights: those of the attention, before dropout, of each layer for all pairs of documents of
            one list; within a list they are stored head by head.
        inverse: one over the standard deviation of each document, for all norms.
        y: ``[M, N]``, the scores; in :func:`backward`, their gradient.
    """

    items: np.ndarray
    chunks: np.ndarray
    first: np.ndarray
    starts: np.ndarray
    pairs: np.ndarray
    heads: int
    halves: int
    x: np.ndarray
    rows: np.ndarray
    width: int
    inner: int
    parameters: np.ndarray
    before: np.ndarray
    dropping: Dropping
    at_bits: np.ndarray
    of_pairs: np.ndarray
    kept: np.ndarray
    weights: np.ndarray
    inverse: np.ndarray
    y: np.ndarray


@compiled
def cut(lengths, most_chunks):
    """``items``, ``chunks``, ``first``, ``starts`` and ``pairs`` of the :class:`Arrays`.

    Args:
        lengths: int64 ``[M, B]``.
        most_chunks: of a model; all have the same number of blocks except the last.
    """
    models, B = lengths.shape
    items = np.empty((models * B, 5), np.int64)
    chunks = np.empty((models * B, 2), np.int64)
    first = np.empty(models + 1, np.int64)
    starts = np.zeros((models, B + 1), np.int64)
    pairs = np.empty((models, B + 1), np.int64)
    block, chunk, total = 0, 0, 0
    for m in range(models):
        first[m] = chunk
        begin = block
        for b in range(B):
            n = lengths[m, b]
            starts[m, b + 1] = starts[m, b] + n
            pairs[m, b] = total
            total += n * n
            if n == 0:
                continue
            if block > begin and starts[m, b + 1] - items[block - 1, 1] <= BLOCK:
                items[block - 1, 2], items[block - 1, 4] = starts[m, b + 1], b + 1
                continue
            items[block, 0], items[block, 1], items[block, 2] = m, starts[m, b], starts[m, b + 1]
            items[block, 3], items[block, 4] = b, b + 1
            block += 1
        pairs[m, B] = total
        step = max(1, -(-(block - begin) // most_chunks))
        for own in range(begin, block, step):
            chunks[chunk, 0], chunks[chunk, 1] = own, min(own + step, block)
            chunk += 1
    first[models] = chunk
    return items[:block].copy(), chunks[:chunk].copy(), first, starts, pairs


@inlined
def columns_of(arrays, half):
    """How many columns of kept values come before those of a half, in the order of their use.

    They are the standardised input, the input of the second product and, of an attention, the
    queries, keys and values. The standardised input of the output follows all halves.
    """
    W = arrays.width
    begin = half // 2 * (6 * W + arrays.inner) + half % 2 * 5 * W
    second = begin + W
    return begin, second, second + W


@inlined
def region(values, before, width, size, row, n):
    """The matrix of ``n`` documents from ``row`` of all ``size``, after ``before`` columns."""
    begin = before * size + row * width
    return values[begin : begin + n * width].reshape((n, width))


@inlined
def parameter(arrays, values, number, copies, m, height, width):
    """From ``values`` of the form of the parameters of ``copies`` models, a matrix of one."""
    return pages(values, arrays.before[number], copies, height, width)[m]


@inlined
def vector(arrays, values, number, copies, m, width):
    """The same for a row of a scale, shift or bias."""
    return columns(values, arrays.before[number], copies, width)[m]


@inlined
def scratch_for(arrays, begin, end):
    """The most documents of a block and of a list of the chunks from ``begin`` to ``end``."""
    most, longest = 0, 0
    for item in range(arrays.chunks[begin, 0], arrays.chunks[end - 1, 1]):
        m, first, last, first_list, last_list = arrays.items[item]
        most = max(most, last - first)
        for b in range(first_list, last_list):
            longest = max(longest, arrays.starts[m, b + 1] - arrays.starts[m, b])
    return most, longest


@inlined
def standardise(x, standard, inverse):
    """Each document of ``x`` less its mean, over its standard deviation."""
    n, W = x.shape
    for i in range(n):
        mean = x.dtype.type(0)
        for j in range(W):
            mean += x[i, j]
        mean /= W
        square = x.dtype.type(0)
        for j in range(W):
            square += (x[i, j] - mean) * (x[i, j] - mean)
        inverse[i] = 1 / np.sqrt(square / W + x.dtype.type(EPSILON))
        for j in range(W):
            standard[i, j] = (x[i, j] - mean) * inverse[i]


@inlined
def scaled(standard, scale, shift, y):
    """``y = standard · scale · s + shift``, where s makes the standard deviation unbiased."""
    n, W = y.shape
    unbiased = y.dtype.type(np.sqrt((W - 1) / W))
    for i in range(n):
        for j in range(W):
            y[i, j] = standard[i, j] * (scale[j] * unbiased) + shift[j]


@inlined
def bits_of(arrays, half, which, m, first, height, width):
    """Bits of a block's documents: of what is between the products of a half, or of its result."""
    row = 2 * -(-width // 8)
    begin = 0
    if len(arrays.at_bits) > 0:
        begin = arrays.at_bits[half, which] + (m * arrays.y.shape[1] + first) * row
    return arrays.dropping.bits[begin : begin + height * row]


@inlined
def bits_of_pairs(arrays, half, m, b, head, n):
    """Those of the attention's weights of a list."""
    size = n * 2 * -(-n // 8)
    begin = arrays.at_bits[half, 0] + arrays.of_pairs[m, b] + head * size
    return arrays.dropping.bits[begin : begin + size]


@inlined
def draw_rows(arrays, half, which, item, width):
    """Draw the bits of a block's documents, list by list."""
    m, _, _, first_list, last_list = item
    for b in range(first_list, last_list):
        first, n = arrays.starts[m, b], arrays.starts[m, b + 1] - arrays.starts[m, b]
        bits = bits_of(arrays, half, which, m, first, n, width)
        number = m * (arrays.starts.shape[1] - 1) + b
        draw(arrays.dropping, number, 2 * half + which, 0, n, width, bits)


@inlined
def place_of_weights(arrays, half, m, b):
    """Where the attention's weights of a list begin."""
    return arrays.heads * (half // 2 * arrays.pairs[-1, -1] + arrays.pairs[m, b])


@inlined
def after_dropout(value, number, dropped, factor):
    """A value, or its gradient, after dropout."""
    return value * factor if number >= dropped else value * 0


@inlined
def drop(arrays, values, drawn, result):
    """Dropout of some values."""
    dropped, factor = np.uint16(arrays.dropping.dropped), result.dtype.type(arrays.dropping.scale)
    for i in range(result.shape[0]):
        for j in range(result.shape[1]):
            result[i, j] = after_dropout(values[i, j], drawn[i, j], dropped, factor)


@inlined
def add_dropped(arrays, y, bias, drawn, x):
    """``x += Drop(y + bias)``."""
    dropped, factor = np.uint16(arrays.dropping.dropped), x.dtype.type(arrays.dropping.scale)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += after_dropout(y[i, j] + bias[j], drawn[i, j], dropped, factor)


@inlined
def activate(arrays, bias, drawn, h):
    """``h = Drop(max(h + bias, 0))``; NaN stays NaN."""
    zero = h.dtype.type(0)
    dropped, factor = np.uint16(arrays.dropping.dropped), h.dtype.type(arrays.dropping.scale)
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            value = h[i, j] + bias[j]
            value = zero if value < zero else value
            h[i, j] = after_dropout(value, drawn[i, j], dropped, factor)


@inlined
def by_head(z, bias, heads, parts):
    """Queries, keys and values of each head from their joint product, and the queries scaled.

    ``z`` is ``[n, 3 · width]``, and ``parts`` ``[3 · heads, n, width of a head]``.
    """
    _, n, d = parts.shape
    one = z.dtype.type(1)
    for part in range(3 * heads):
        factor = one / np.sqrt(z.dtype.type(d)) if part < heads else one
        for i in range(n):
            for j in range(d):
                parts[part, i, j] = (z[i, part * d + j] + bias[part * d + j]) * factor


@inlined
def soft_max(logits):
    """The softmax of each row, in place."""
    n = logits.shape[1]
    for i in range(logits.shape[0]):
        top = largest(logits[i], n)
        total = logits.dtype.type(0)
        for j in range(n):
            value = exp(logits[i, j] - top)
            logits[i, j] = value
            total += value
        inverse = 1 / total
        for j in range(n):
            logits[i, j] *= inverse


@inlined
def attend(arrays, half, m, b, parts, weights, of_pairs, of_head, result):
    """The attention of the documents of a list; ``weights`` get those before dropout."""
    heads, n, d = arrays.heads, parts.shape[1], parts.shape[2]
    for head in range(heads):
        own, attended = matrix(weights[head * n * n :], n, n), matrix(of_head, n, d)
        np.dot(parts[head], parts[heads + head].T, own)
        soft_max(own)
        if len(arrays.at_bits) > 0:
            remaining = matrix(of_pairs, n, n)
            bits = bits_of_pairs(arrays, half, m, b, head, n)
            number = m * (arrays.starts.shape[1] - 1) + b
            draw(arrays.dropping, number, 2 * half, (1 + head) << 16, n, n, bits)
            drop(arrays, own, halves(bits, n), remaining)
            own = remaining
        np.dot(own, parts[2 * heads + head], attended)
        for i in range(n):
            for j in range(d):
                result[i, head * d + j] = attended[i, j]


@compiled
def forward(begin, end, arrays):
    """The scores of the lists of the chunks from ``begin`` to ``end``."""
    models, N = arrays.y.shape
    W, inner, heads, F, dtype = (
        arrays.width,
        arrays.inner,
        arrays.heads,
        arrays.x.shape[2],
        arrays.y.dtype,
    )
    d = W // heads
    keep = len(arrays.kept) > 0
    most, longest = scratch_for(arrays, begin, end)
    scratch = np.empty((2, most * W), dtype)
    wide = np.empty(most * max(3 * W, F), dtype)
    of_head, of_pairs = np.empty(longest * d, dtype), np.empty(longest * longest, dtype)
    queries = np.empty(longest * 3 * W, dtype)
    kept, weights, inverse, size = arrays.kept, arrays.weights, arrays.inverse, models * N
    if not keep:
        size = most
        kept = np.empty(size * (6 * W + inner), dtype)
        weights = np.empty(heads * longest * longest, dtype)
        inverse = np.empty(size, dtype)
    for item in range(arrays.chunks[begin, 0], arrays.chunks[end - 1, 1]):
        m, first, last, first_list, last_list = arrays.items[item]
        n = last - first
        row = m * N + first if keep else 0
        x, y = matrix(scratch[0], n, W), matrix(scratch[1], n, W)
        features = input_of(arrays, (m, first, last), wide)
        np.dot(features, parameter(arrays, arrays.parameters, 0, models, m, F, W), x)
        bias = vector(arrays, arrays.parameters, 1, models, m, W)
        for i in range(n):
            for j in range(W):
                x[i, j] += bias[j]
        for half in range(arrays.halves + 1):
            number, attends = 2 + OF_HALF * half, half % 2 == 0
            # Without a gradient, all halves use the room of the first two.
            at_standard, at_second, at_parts = columns_of(arrays, half if keep else half % 2)
            standard = region(kept, at_standard, W, size, row, n)
            at_norm = half * size + row if keep else 0
            standardise(x, standard, inverse[at_norm : at_norm + n])
            scale = vector(arrays, arrays.parameters, number, models, m, W)
            shift = vector(arrays, arrays.parameters, number + 1, models, m, W)
            scaled(standard, scale, shift, y)
            if half == arrays.halves:
                break
            width, between = (3 * W, W) if attends else (inner, inner)
            second = region(kept, at_second, between, size, row, n)
            product = matrix(wide, n, width) if attends else second
            np.dot(
                y, parameter(arrays, arrays.parameters, number + 2, models, m, W, width), product
            )
            bias = vector(arrays, arrays.parameters, number + 3, models, m, width)
            if attends:
                for b in range(first_list, last_list):
                    start = arrays.starts[m, b] - first
                    own = arrays.starts[m, b + 1] - arrays.starts[m, b]
                    if own == 0:
                        continue
                    parts = queries[: own * 3 * W]
                    at_weights = 0
                    if keep:
                        parts = region(kept, at_parts, 3 * W, size, row + start, own).reshape(-1)
                        at_weights = place_of_weights(arrays, half, m, b)
                    parts = parts.reshape((3 * heads, own, d))
                    by_head(product[start : start + own], bias, heads, parts)
                    result = second[start : start + own]
                    own_weights = weights[at_weights:]
                    attend(arrays, half, m, b, parts, own_weights, of_pairs, of_head, result)
            else:
                if len(arrays.at_bits) > 0:
                    draw_rows(arrays, half, 0, arrays.items[item], inner)
                bits = bits_of(arrays, half, 0, m, first, n, inner)
                activate(arrays, bias, halves(bits, n), second)
            np.dot(
                second, parameter(arrays, arrays.parameters, number + 4, models, m, between, W), y
            )
            bias = vector(arrays, arrays.parameters, number + 5, models, m, W)
            if len(arrays.at_bits) > 0:
                draw_rows(arrays, half, 1, arrays.items[item], W)
            add_dropped(arrays, y, bias, halves(bits_of(arrays, half, 1, m, first, n, W), n), x)
        number = 4 + OF_HALF * arrays.halves
        weight = vector(arrays, arrays.parameters, number, models, m, W)
        bias = vector(arrays, arrays.parameters, number + 1, models, m, 1)
        for i in range(n):
            score = bias[0]
            for j in range(W):
                score += y[i, j] * weight[j]
            arrays.y[m, first + i] = score


@inlined
def add_rows(gradient, anew, total):
    """Add the sum of the rows of ``gradient`` to ``total``, or store it there if ``anew``."""
    if anew:
        total[:] = 0
    for i in range(gradient.shape[0]):
        for j in range(gradient.shape[1]):
            total[j] += gradient[i, j]


@inlined
def through_norm(gradient, standard, inverse, scale, anew, to_scale, to_shift, total):
    """Back through a norm: add the gradient of its input to ``total``.

    ``to_scale`` and ``to_shift`` get the share of its parameters.
    """
    n, W = gradient.shape
    unbiased = gradient.dtype.type(np.sqrt((W - 1) / W))
    if anew:
        to_scale[:] = 0
        to_shift[:] = 0
    for i in range(n):
        mean, along = gradient.dtype.type(0), gradient.dtype.type(0)
        for j in range(W):
            passed = gradient[i, j]
            product = passed * standard[i, j]
            to_shift[j] += passed
            to_scale[j] += product * unbiased
            mean += passed * (scale[j] * unbiased)
            along += product * (scale[j] * unbiased)
        mean /= W
        along /= W
        for j in range(W):
            own = gradient[i, j] * (scale[j] * unbiased)
            total[i, j] += (own - mean - standard[i, j] * along) * inverse[i]


@inlined
def through_relu(arrays, h, gradient):
    """Back through a ReLU with dropout, in place; its output ``h`` says what has passed."""
    zero, factor = h.dtype.type(0), h.dtype.type(arrays.dropping.scale)
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            gradient[i, j] = gradient[i, j] * factor if h[i, j] > zero else zero


@inlined
def through_softmax(arrays, weights, drawn, gradient, remaining):
    """Back through dropout and softmax, in place; ``remaining`` gets the weights after dropout."""
    n, zero = len(weights), gradient.dtype.type(0)
    dropped, factor = np.uint16(arrays.dropping.dropped), gradient.dtype.type(arrays.dropping.scale)
    for i in range(n):
        along = zero
        for j in range(n):
            own = factor if drawn[i, j] >= dropped else zero
            remaining[i, j] = weights[i, j] * own
            gradient[i, j] *= own
            along += gradient[i, j] * weights[i, j]
        for j in range(n):
            gradient[i, j] = weights[i, j] * (gradient[i, j] - along)


@inlined
def through_attention(arrays, half, m, b, parts, weights, of_pairs, of_head, to_result, to_product):
    """Back through the attention of a list, to the product from which :func:`by_head` takes it."""
    heads, n, d = arrays.heads, parts.shape[1], parts.shape[2]
    one = to_result.dtype.type(1)
    to_attended, to_part = matrix(of_head[0], n, d), matrix(of_head[1], n, d)
    to_weights, remaining = matrix(of_pairs[0], n, n), matrix(of_pairs[1], n, n)
    for head in range(heads):
        own = matrix(weights[head * n * n :], n, n)
        for i in range(n):
            for j in range(d):
                to_attended[i, j] = to_result[i, head * d + j]
        np.dot(to_attended, parts[2 * heads + head].T, to_weights)
        bits = arrays.dropping.bits[: n * 2 * -(-n // 8)]
        if len(arrays.at_bits) > 0:
            bits = bits_of_pairs(arrays, half, m, b, head, n)
        through_softmax(arrays, own, halves(bits, n), to_weights, remaining)
        for kind in range(3):
            factor = one
            if kind == 0:
                np.dot(to_weights, parts[heads + head], to_part)
                factor = one / np.sqrt(to_result.dtype.type(d))
            elif kind == 1:
                np.dot(to_weights.T, parts[head], to_part)
            else:
                np.dot(remaining.T, to_attended, to_part)
            column = (kind * heads + head) * d
            for i in range(n):
                for j in range(d):
                    to_product[i, column + j] = to_part[i, j] * factor


@compiled
def backward(begin, end, arrays, of_chunks):
    """The share of each chunk from ``begin`` to ``end`` in the gradients of the parameters.

    ``of_chunks`` has the form of the parameters of so many models.
    """
    models, N = arrays.y.shape
    W, inner, heads, F, dtype = (
        arrays.width,
        arrays.inner,
        arrays.heads,
        arrays.x.shape[2],
        arrays.y.dtype,
    )
    d, size, chunks = W // heads, models * N, len(arrays.chunks)
    most, longest = scratch_for(arrays, begin, end)
    scratch = np.empty((4, most * W), dtype)
    wide = np.empty(most * max(3 * W, inner, F), dtype)
    of_head = np.empty((2, longest * d), dtype)
    of_pairs = np.empty((2, longest * longest), dtype)
    part = np.empty(W * max(3 * W, inner, F), dtype)
    for chunk in range(begin, end):
        for item in range(arrays.chunks[chunk, 0], arrays.chunks[chunk, 1]):
            m, first, last, first_list, last_list = arrays.items[item]
            n, row, anew = last - first, m * N + first, item == arrays.chunks[chunk, 0]
            to_x, y = matrix(scratch[0], n, W), matrix(scratch[1], n, W)
            to_y, to_result = matrix(scratch[2], n, W), matrix(scratch[3], n, W)
            to_x[:] = 0
            for half in range(arrays.halves, -1, -1):
                number, attends = 2 + OF_HALF * half, half % 2 == 0
                at_standard, at_second, at_parts = columns_of(arrays, half)
                standard = region(arrays.kept, at_standard, W, size, row, n)
                inverse = arrays.inverse[half * size + row : half * size + row + n]
                scale = vector(arrays, arrays.parameters, number, models, m, W)
                shift = vector(arrays, arrays.parameters, number + 1, models, m, W)
                scaled(standard, scale, shift, y)
                if half == arrays.halves:
                    weight = vector(arrays, arrays.parameters, number + 2, models, m, W)
                    to_weight = vector(arrays, of_chunks, number + 2, chunks, chunk, W)
                    to_bias = vector(arrays, of_chunks, number + 3, chunks, chunk, 1)
                    if anew:
                        to_weight[:] = 0
                        to_bias[:] = 0
                    for i in range(n):
                        to_score = arrays.y[m, first + i]
                        to_bias[0] += to_score
                        for j in range(W):
                            to_weight[j] += to_score * y[i, j]
                            to_y[i, j] = to_score * weight[j]
                else:
                    width, between = (3 * W, W) if attends else (inner, inner)
                    bits = bits_of(arrays, half, 1, m, first, n, W)
                    drop(arrays, to_x, halves(bits, n), to_result)
                    add_rows(
                        to_result, anew, vector(arrays, of_chunks, number + 5, chunks, chunk, W)
                    )
                    second = region(arrays.kept, at_second, between, size, row, n)
                    to_weights = parameter(arrays, of_chunks, number + 4, chunks, chunk, between, W)
                    add_product(second, to_result, anew, matrix(part, between, W), to_weights)
                    weights = parameter(
                        arrays, arrays.parameters, number + 4, models, m, between, W
                    )
                    to_product = matrix(wide, n, width)
                    to_second = to_y if attends else to_product
                    np.dot(to_result, weights.T, to_second)
                    if attends:
                        for b in range(first_list, last_list):
                            start = arrays.starts[m, b] - first
                            own = arrays.starts[m, b + 1] - arrays.starts[m, b]
                            if own == 0:
                                continue
                            parts = region(arrays.kept, at_parts, 3 * W, size, row + start, own)
                            parts = parts.reshape((3 * heads, own, d))
                            at_weights = place_of_weights(arrays, half, m, b)
                            through_attention(
                                arrays, half, m, b, parts, arrays.weights[at_weights:], of_pairs,
                                of_head, to_second[start : start + own],
                                to_product[start : start + own],
                            )  # fmt: skip
                    else:
                        through_relu(arrays, second, to_product)
                    to_bias = vector(arrays, of_chunks, number + 3, chunks, chunk, width)
                    add_rows(to_product, anew, to_bias)
                    to_weights = parameter(arrays, of_chunks, number + 2, chunks, chunk, W, width)
                    add_product(y, to_product, anew, matrix(part, W, width), to_weights)
                    weights = parameter(arrays, arrays.parameters, number + 2, models, m, W, width)
                    np.dot(to_product, weights.T, to_y)
                to_scale = vector(arrays, of_chunks, number, chunks, chunk, W)
                to_shift = vector(arrays, of_chunks, number + 1, chunks, chunk, W)
                through_norm(to_y, standard, inverse, scale, anew, to_scale, to_shift, to_x)
            add_rows(to_x, anew, vector(arrays, of_chunks, 1, chunks, chunk, W))
            features = input_of(arrays, (m, first, last), wide)
            to_weights = parameter(arrays, of_chunks, 0, chunks, chunk, F, W)
            add_product(features, to_x, anew, matrix(part, F, W), to_weights)
