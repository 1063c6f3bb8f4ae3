"""Layers with batch norm and ReLU as compiled loops over blocks of documents.

A block is a row of ``items``: its model m, its first document, and the one after its last. The
arrays have these shapes: documents ``[M, N, W]``, one number per column ``[M, W]``, sums over the
documents of each block ``[blocks, W]``, weights ``[M, in, out]``. BLAS computes the products.

A quantity that each layer has is stored in one array, layer after layer; :class:`Plan` says at
which positions. A call of :func:`forward` or :func:`backward` processes either one layer of some
runs of blocks, so that threads can share the documents of a model, or all layers of some models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from directrank.kernels.compiling import compiled, inlined

#: The largest number of documents in a block.
BLOCK = 512

#: In place of the number of a layer: all layers.
ALL = -2


class Plan(NamedTuple):
    """Models of a stack, their layers and their blocks.

    Attributes:
        items: int64 ``[blocks, 3]``, see above; the blocks of a model are contiguous.
        runs: int64 ``[runs, 2]``, the first of the contiguous blocks that are processed in turn,
            and the one after the last.
        first: int64 ``[M + 1]``, each model's first run, and the number of runs.
        counts: int64 ``[M]``, each model's documents.
        layers: int64 ``[L, 6]``, of each layer: the widths of its input and of its output; how many
            columns of norms, numbers of weights, columns of outputs and columns of their gradients
            come before its own.
        epsilons: float64 ``[norms]``; that of the norm of the input, if there is one, comes first.
        x, rows: the input is ``x`` ``[M, N, F]`` if ``rows`` is ``[M, 0]``; otherwise ``x`` is
            ``[1, T, F]``, and ``rows`` ``[M, N]`` gives the row of each document.
        weights: the weights of all layers.
        affine: the weights of all norms, and their biases, ``[2, columns]``.
        norms: the statistics of all norms in a step, ``[5, columns]``: mean, variance, one over the
            standard deviation, and ``scale`` and ``shift``; the norm is ``z · scale + shift``.
        z: outputs of the products of all layers, ``M · N`` for each column.
        parts: two sums of each block, ``[2, blocks, widest]``.
        y: ``[M, N, out]``, the output; in :func:`backward`, its gradient.
    """

    items: np.ndarray
    runs: np.ndarray
    first: np.ndarray
    counts: np.ndarray
    layers: np.ndarray
    epsilons: np.ndarray
    x: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    affine: np.ndarray
    norms: np.ndarray
    z: np.ndarray
    parts: np.ndarray
    y: np.ndarray


class Gradients(NamedTuple):
    """The gradients that :func:`backward` computes.

    Attributes:
        of_norms: of the norms' outputs, in the form of ``z``; adjacent layers of one width share a
            place.
        terms: ``along`` and ``offset`` of :func:`through_norm` for all norms, ``[2, columns]``.
        of_runs: the share of each run in the gradients of the weights, stored as the weights of so
            many models would be.
        of_weights: in the form of the weights; ``of_runs`` itself if each model has one run.
        of_affine: of the norms' weights and biases, ``[2, columns]``.
    """

    of_norms: np.ndarray
    terms: np.ndarray
    of_runs: np.ndarray
    of_weights: np.ndarray
    of_affine: np.ndarray


@compiled
def cut(counts, most_runs):
    """``items``, ``runs`` and ``first`` of a :class:`Plan`.

    A model has at most ``most_runs`` runs, all with the same number of blocks except the last.
    """
    blocks = 0
    for count in counts:
        blocks += -(-count // BLOCK)
    items = np.empty((blocks, 3), np.int64)
    runs = np.empty((blocks, 2), np.int64)
    first = np.empty(len(counts) + 1, np.int64)
    block, run = 0, 0
    for m in range(len(counts)):
        first[m] = run
        own = -(-counts[m] // BLOCK)
        step = max(1, -(-own // most_runs))
        for begin in range(block, block + own, step):
            runs[run, 0], runs[run, 1] = begin, min(begin + step, block + own)
            run += 1
        for number in range(own):
            items[block, 0], items[block, 1] = m, number * BLOCK
            items[block, 2] = min((number + 1) * BLOCK, counts[m])
            block += 1
    first[len(counts)] = run
    return items, runs[:run].copy(), first


@inlined
def columns(values, before, models, width):
    """From ``values`` with one number per column, those of a layer or norm, ``[M, width]``."""
    return values[models * before : models * (before + width)].reshape((models, width))


@inlined
def pages(values, before, models, height, width):
    """From weights or documents of all layers, those of one layer, ``[M, height, width]``."""
    begin = models * before
    return values[begin : begin + models * height * width].reshape((models, height, width))


@inlined
def gather(block, x, rows, into):
    """Copy the documents of a block of the input into ``into``.

    They are read one after the other, which is how the processor prefetches memory, whereas BLAS
    reads several at once.
    """
    m, first, last = block
    for i in range(last - first):
        if rows.shape[1] == 0:
            for j in range(x.shape[2]):
                into[i, j] = x[m, first + i, j]
        else:
            row = rows[m, first + i]
            for j in range(x.shape[2]):
                into[i, j] = x[0, row, j]


@inlined
def moments(z, mean, squares):
    """The mean of each column, and the sum of the squared distances from it.

    Documents are taken four at a time, so that sums are stored less often.
    """
    n, W = z.shape
    fours = n - n % 4
    mean[:] = 0
    squares[:] = 0
    for i in range(0, fours, 4):
        for j in range(W):
            mean[j] += (z[i, j] + z[i + 1, j]) + (z[i + 2, j] + z[i + 3, j])
    for i in range(fours, n):
        for j in range(W):
            mean[j] += z[i, j]
    for j in range(W):
        mean[j] /= n
    for i in range(0, fours, 4):
        for j in range(W):
            a = z[i, j] - mean[j]
            b = z[i + 1, j] - mean[j]
            c = z[i + 2, j] - mean[j]
            d = z[i + 3, j] - mean[j]
            squares[j] += (a * a + b * b) + (c * c + d * d)
    for i in range(fours, n):
        for j in range(W):
            a = z[i, j] - mean[j]
            squares[j] += a * a


@inlined
def normalise(z, scale, shift, a):
    """``a = z · scale + shift``."""
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            a[i, j] = z[i, j] * scale[j] + shift[j]


@inlined
def activate(z, scale, shift, a):
    """``a = relu(z · scale + shift)``; NaN stays NaN."""
    zero = a.dtype.type(0)
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            value = z[i, j] * scale[j] + shift[j]
            a[i, j] = zero if value < zero else value


@inlined
def through_norm(block, gradient, z, mean, scale, along, offset, result):
    """Back through a norm: the gradient of a block's input from that of its output.

    It is ``scale · gradient - offset - along (z - mean)``.
    """
    m, first, last = block
    own, at = gradient[m][first:last], z[m][first:last]
    for i in range(last - first):
        for j in range(z.shape[2]):
            result[i, j] = (
                scale[m, j] * own[i, j] - offset[m, j] - along[m, j] * (at[i, j] - mean[m, j])
            )


@inlined
def through_relu(gradient, a, z, mean, to_shift, to_scale):
    """Back through a ReLU, in place; its output ``a`` says where the gradient is zero.

    ``to_shift`` is the sum of the gradient, and ``to_scale`` that of its product with ``z - mean``.
    """
    zero = a.dtype.type(0)
    to_shift[:] = 0
    to_scale[:] = 0
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            passed = zero if a[i, j] <= zero else gradient[i, j]
            gradient[i, j] = passed
            to_shift[j] += passed
            to_scale[j] += passed * (z[i, j] - mean[j])


@inlined
def add_product(a, g, anew, part, total):
    """Add ``a.T @ g`` to ``total``, or store it there if ``anew``; ``part`` is working space."""
    if anew:
        np.dot(a.T, g, total)
        return
    np.dot(a.T, g, part)
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            total[i, j] += part[i, j]


@inlined
def columns_of_norm(plan, layer):
    """The number of columns of norms before those of the norm after a layer, and its width."""
    if layer < 0:
        return 0, plan.x.shape[2]
    return plan.layers[layer, 2], plan.layers[layer, 1]


@inlined
def norm_of(plan, layer):
    """The statistics of the norm after a layer in a step, each ``[M, width]``.

    They are mean, variance, one over the standard deviation, scale and shift; see :class:`Plan`.
    """
    models = len(plan.counts)
    before, width = columns_of_norm(plan, layer)
    return (
        columns(plan.norms[0], before, models, width),
        columns(plan.norms[1], before, models, width),
        columns(plan.norms[2], before, models, width),
        columns(plan.norms[3], before, models, width),
        columns(plan.norms[4], before, models, width),
    )


@inlined
def finish_norm(plan, m, layer):
    """The statistics of the norm after a layer, from the moments of a model's blocks.

    Combining the blocks' means (Chan et al., 1979) keeps digits that sums of squares would lose.
    """
    models = len(plan.counts)
    number = layer + len(plan.epsilons) - len(plan.layers)
    before, width = columns_of_norm(plan, layer)
    weight = columns(plan.affine[0], before, models, width)
    bias = columns(plan.affine[1], before, models, width)
    mean, variance, inverse, scale, shift = norm_of(plan, layer)
    means, squares = plan.parts[0], plan.parts[1]
    begin, end = plan.runs[plan.first[m], 0], plan.runs[plan.first[m + 1] - 1, 1]
    total = np.zeros(width)
    squared = np.zeros(width)
    count, epsilon = plan.counts[m], plan.epsilons[number]
    for item in range(begin, end):
        _, first, last = plan.items[item]
        for j in range(width):
            total[j] += (last - first) * np.float64(means[item, j])
    for item in range(begin, end):
        _, first, last = plan.items[item]
        for j in range(width):
            distance = means[item, j] - total[j] / count
            squared[j] += squares[item, j] + (last - first) * distance * distance
    for j in range(width):
        centre, square = total[j] / count, squared[j] / count
        over = 1 / np.sqrt(square + epsilon)
        mean[m, j], variance[m, j], inverse[m, j] = centre, square, over
        scale[m, j] = weight[m, j] * over
        shift[m, j] = bias[m, j] - centre * weight[m, j] * over


@inlined
def finish_norm_gradient(plan, gradients, m, layer):
    """The gradients of a norm's weight and bias, from the sums of :func:`through_relu`.

    The terms of :func:`through_norm` are computed as well.
    """
    models = len(plan.counts)
    before, width = columns_of_norm(plan, layer)
    _, _, inverse, scale, _ = norm_of(plan, layer)
    along = columns(gradients.terms[0], before, models, width)
    offset = columns(gradients.terms[1], before, models, width)
    to_weight = columns(gradients.of_affine[0], before, models, width)
    to_bias = columns(gradients.of_affine[1], before, models, width)
    begin, end = plan.runs[plan.first[m], 0], plan.runs[plan.first[m + 1] - 1, 1]
    sums = np.zeros((2, width))
    count = plan.counts[m]
    for item in range(begin, end):
        for j in range(width):
            sums[0, j] += plan.parts[0, item, j]
            sums[1, j] += plan.parts[1, item, j]
    for j in range(width):
        to_bias[m, j] = sums[0, j]
        to_weight[m, j] = sums[1, j] * inverse[m, j]
        offset[m, j] = scale[m, j] * sums[0, j] / count
        along[m, j] = scale[m, j] * inverse[m, j] * to_weight[m, j] / count


@inlined
def sum_of_runs(plan, gradients, m, layer, begin, end):
    """Sum the gradients of a layer's weights over the runs of a model.

    This covers the numbers from ``begin`` to ``end`` of the ``in · out`` weights. There is nothing
    to do if each model has one run.
    """
    if len(plan.runs) == len(plan.counts):
        return
    width_in, width, _, before, _, _ = plan.layers[layer]
    size = width_in * width
    parts = columns(gradients.of_runs, before, len(plan.runs), size)
    total = columns(gradients.of_weights, before, len(plan.counts), size)
    for j in range(begin, end):
        total[m, j] = parts[plan.first[m], j]
    for run in range(plan.first[m] + 1, plan.first[m + 1]):
        for j in range(begin, end):
            total[m, j] += parts[run, j]


@inlined
def input_moments(plan, begin, end):
    """The moments of each block of the input."""
    width = plan.x.shape[2]
    scratch = np.empty((BLOCK, width), plan.z.dtype)
    for item in range(plan.runs[begin, 0], plan.runs[end - 1, 1]):
        _, first, last = plan.items[item]
        own = scratch[: last - first]
        gather(plan.items[item], plan.x, plan.rows, own)
        moments(own, plan.parts[0, item, :width], plan.parts[1, item, :width])


@inlined
def first_product(plan, begin, end):
    """The first layer's product with the input, or with its norm, and the moments of its blocks."""
    models, N = len(plan.counts), plan.y.shape[1]
    width_in, width, _, at_weights, at_z, _ = plan.layers[0]
    weight = pages(plan.weights, at_weights, models, width_in, width)
    z = pages(plan.z, at_z * N, models, N, width)
    scratch = np.empty((2, BLOCK, width_in), z.dtype)
    for item in range(plan.runs[begin, 0], plan.runs[end - 1, 1]):
        m, first, last = plan.items[item]
        own, result = scratch[0, : last - first], z[m][first:last]
        gather(plan.items[item], plan.x, plan.rows, own)
        if len(plan.epsilons) > len(plan.layers):
            _, _, _, scale, shift = norm_of(plan, -1)
            normed = scratch[1, : last - first]
            normalise(own, scale[m], shift[m], normed)
            own = normed
        np.dot(own, weight[m], result)
        moments(result, plan.parts[0, item, :width], plan.parts[1, item, :width])


@inlined
def product(plan, layer, begin, end):
    """A later layer's product with the activations, and the moments of its blocks."""
    models, N = len(plan.counts), plan.y.shape[1]
    width_in, width, _, at_weights, at_z, _ = plan.layers[layer]
    at_x = plan.layers[layer - 1, 4]
    weight = pages(plan.weights, at_weights, models, width_in, width)
    x = pages(plan.z, at_x * N, models, N, width_in)
    z = pages(plan.z, at_z * N, models, N, width)
    _, _, _, scale, shift = norm_of(plan, layer - 1)
    scratch = np.empty((BLOCK, width_in), z.dtype)
    for item in range(plan.runs[begin, 0], plan.runs[end - 1, 1]):
        m, first, last = plan.items[item]
        a, result = scratch[: last - first], z[m][first:last]
        activate(x[m][first:last], scale[m], shift[m], a)
        np.dot(a, weight[m], result)
        moments(result, plan.parts[0, item, :width], plan.parts[1, item, :width])


@inlined
def output(plan, begin, end):
    """``y = relu(z · scale + shift)`` of the last layer; zero at padding."""
    models, N = len(plan.counts), plan.y.shape[1]
    _, width, _, _, at_z, _ = plan.layers[-1]
    z = pages(plan.z, at_z * N, models, N, width)
    _, _, _, scale, shift = norm_of(plan, len(plan.layers) - 1)
    for item in range(plan.runs[begin, 0], plan.runs[end - 1, 1]):
        m, first, last = plan.items[item]
        activate(z[m][first:last], scale[m], shift[m], plan.y[m][first:last])
        if last == plan.counts[m]:
            for i in range(last, N):
                for j in range(width):
                    plan.y[m, i, j] = 0


@compiled
def forward(begin, end, layer, plan):
    """All layers of the models from ``begin`` to ``end``, or one ``layer`` of the runs from
    ``begin`` to ``end``.

    Layer -1 is the norm of the input, and the layer after the last is the output. After a single
    layer, :func:`norm` has to be called.
    """
    depth = len(plan.layers)
    whole = layer == ALL
    lowest = depth - len(plan.epsilons) if whole else layer
    for m in range(begin, end if whole else begin + 1):
        runs = (plan.first[m], plan.first[m + 1]) if whole else (begin, end)
        for each in range(lowest, depth + 1 if whole else layer + 1):
            if each < 0:
                input_moments(plan, runs[0], runs[1])
            elif each == 0:
                first_product(plan, runs[0], runs[1])
            elif each < depth:
                product(plan, each, runs[0], runs[1])
            else:
                output(plan, runs[0], runs[1])
            if whole and each < depth:
                finish_norm(plan, m, each)


@compiled
def norm(layer, plan):
    """The statistics of the norm after a layer, for all models."""
    for m in range(len(plan.counts)):
        finish_norm(plan, m, layer)


@inlined
def through_output(plan, gradients, begin, end):
    """Back through :func:`output`: the gradient of the last norm's output, and its block sums."""
    models, N = len(plan.counts), plan.y.shape[1]
    _, width, _, _, at_z, at_gradient = plan.layers[-1]
    z = pages(plan.z, at_z * N, models, N, width)
    gradient = pages(gradients.of_norms, at_gradient * N, models, N, width)
    mean, _, _, scale, shift = norm_of(plan, len(plan.layers) - 1)
    scratch = np.empty((BLOCK, width), z.dtype)
    for item in range(plan.runs[begin, 0], plan.runs[end - 1, 1]):
        m, first, last = plan.items[item]
        a, own, result = scratch[: last - first], z[m][first:last], gradient[m][first:last]
        activate(own, scale[m], shift[m], a)
        for i in range(last - first):
            for j in range(width):
                result[i, j] = plan.y[m, first + i, j]
        to_shift, to_scale = plan.parts[0, item, :width], plan.parts[1, item, :width]
        through_relu(result, a, own, mean[m], to_shift, to_scale)


@inlined
def gradients_of(plan, gradients, layer):
    """The gradients of a layer, ``[M, height, width]``: its runs' weights, and its norm's output.

    With them comes what else :func:`through_norm` needs.
    """
    models, N = len(plan.counts), plan.y.shape[1]
    width_in, width, at_norm, at_weights, at_z, at_gradient = plan.layers[layer]
    mean, _, _, scale, _ = norm_of(plan, layer)
    return (
        pages(gradients.of_runs, at_weights, len(plan.runs), width_in, width),
        pages(gradients.of_norms, at_gradient * N, models, N, width),
        pages(plan.z, at_z * N, models, N, width),
        mean,
        scale,
        columns(gradients.terms[0], at_norm, models, width),
        columns(gradients.terms[1], at_norm, models, width),
    )


@inlined
def through_product(plan, gradients, layer, begin, end):
    """Back through the norm after a layer and through :func:`product`.

    The gradient of that norm's output gives the gradient of the output of the norm below, its sums
    by block, and the share of each run in the gradient of the weights.
    """
    models, N = len(plan.counts), plan.y.shape[1]
    width_x, width, _, at_weights, _, _ = plan.layers[layer]
    _, _, _, _, at_x, at_gradient_x = plan.layers[layer - 1]
    weight = pages(plan.weights, at_weights, models, width_x, width)
    x = pages(plan.z, at_x * N, models, N, width_x)
    gradient_x = pages(gradients.of_norms, at_gradient_x * N, models, N, width_x)
    mean, _, _, scale, shift = norm_of(plan, layer - 1)
    to_weight, gradient, z, z_mean, z_scale, along, offset = gradients_of(plan, gradients, layer)
    of_z = np.empty((BLOCK, width), z.dtype)
    of_x = np.empty((BLOCK, width_x), z.dtype)
    part = np.empty((width_x, width), z.dtype)
    for run in range(begin, end):
        for item in range(plan.runs[run, 0], plan.runs[run, 1]):
            m, first, last = plan.items[item]
            g, a = of_z[: last - first], of_x[: last - first]
            own, result = x[m][first:last], gradient_x[m][first:last]
            through_norm(plan.items[item], gradient, z, z_mean, z_scale, along, offset, g)
            activate(own, scale[m], shift[m], a)
            first_of_run = item == plan.runs[run, 0]
            add_product(a, g, first_of_run, part, to_weight[run])
            np.dot(g, weight[m].T, result)
            to_shift, to_scale = plan.parts[0, item, :width_x], plan.parts[1, item, :width_x]
            through_relu(result, a, own, mean[m], to_shift, to_scale)


@inlined
def through_input(plan, gradients, begin, end):
    """Back through the first layer's norm and through :func:`first_product`.

    This gives the share of each run in ``x.T @ gradient``, with ``x - mean`` in place of ``x`` if
    the input has a norm.
    """
    width_x, width = plan.layers[0, 0], plan.layers[0, 1]
    to_weight, gradient, z, z_mean, z_scale, along, offset = gradients_of(plan, gradients, 0)
    of_z = np.empty((BLOCK, width), z.dtype)
    of_x = np.empty((2, BLOCK, width_x), z.dtype)
    part = np.empty((width_x, width), z.dtype)
    for run in range(begin, end):
        for item in range(plan.runs[run, 0], plan.runs[run, 1]):
            m, first, last = plan.items[item]
            g, own = of_z[: last - first], of_x[0, : last - first]
            through_norm(plan.items[item], gradient, z, z_mean, z_scale, along, offset, g)
            gather(plan.items[item], plan.x, plan.rows, own)
            if len(plan.epsilons) > len(plan.layers):
                mean, _, _, _, _ = norm_of(plan, -1)
                centred = of_x[1, : last - first]
                for i in range(last - first):
                    for j in range(width_x):
                        centred[i, j] = own[i, j] - mean[m, j]
                own = centred
            first_of_run = item == plan.runs[run, 0]
            add_product(own, g, first_of_run, part, to_weight[run])


@compiled
def backward(begin, end, layer, plan, gradients):
    """Back through all layers of the models from ``begin`` to ``end``, or through one ``layer`` of
    the runs from ``begin`` to ``end``.

    The layer after the last is the output. After a single layer, :func:`norm_gradient` of the layer
    below has to be called, and after the last of them :func:`weights_gradient`.
    """
    depth = len(plan.layers)
    whole = layer == ALL
    for m in range(begin, end if whole else begin + 1):
        runs = (plan.first[m], plan.first[m + 1]) if whole else (begin, end)
        for each in range(depth if whole else layer, -1 if whole else layer - 1, -1):
            if each == depth:
                through_output(plan, gradients, runs[0], runs[1])
            elif each > 0:
                through_product(plan, gradients, each, runs[0], runs[1])
            else:
                through_input(plan, gradients, runs[0], runs[1])
            if whole and each < depth:
                size = plan.layers[each, 0] * plan.layers[each, 1]
                sum_of_runs(plan, gradients, m, each, 0, size)
            if whole and each > 0:
                finish_norm_gradient(plan, gradients, m, each - 1)


@compiled
def norm_gradient(layer, plan, gradients):
    """:func:`finish_norm_gradient` of the norm after a layer, for all models."""
    for m in range(len(plan.counts)):
        finish_norm_gradient(plan, gradients, m, layer)


@compiled
def weights_gradient(begin, end, plan, gradients):
    """:func:`sum_of_runs` of all models, of the numbers from ``begin`` to ``end`` of all layers."""
    for layer in range(len(plan.layers)):
        width_in, width, _, before, _, _ = plan.layers[layer]
        first, last = max(begin, before), min(end, before + width_in * width)
        if first < last:
            for m in range(len(plan.counts)):
                sum_of_runs(plan, gradients, m, layer, first - before, last - before)
