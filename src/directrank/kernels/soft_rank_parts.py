"""Parts of kernels that process a sorted list: Laplace and projected ranks, and their gradients.

``place`` holds the positions of a list's n documents by descending value, counted from the first.
"""

from __future__ import annotations

import math

from directrank.kernels.compiling import inlined
from directrank.kernels.numbers import exp

#: A finite substitute for the logarithm of 0 in either type.
LOW = -1e37


@inlined
def neighbours(values, place, n, decays):
    """``exp(v_p - v_{p-1})`` of the places p of a sorted list; 0 at the first."""
    decays[0] = LOW
    for p in range(1, n):
        decays[p] = values[place[p]] - values[place[p - 1]]
    for p in range(n):
        decays[p] = exp(decays[p])


@inlined
def laplace(values, place, n, decays, ranks):
    """Laplace ranks; ``decays`` is working space and receives those of :func:`neighbours`."""
    neighbours(values, place, n, decays)
    ahead, behind = 0.0, 0.0
    for p in range(n):
        ahead = decays[p] * (1 + ahead)
        ranks[place[p]] = p + 1 - ahead / 2
    for p in range(n - 2, -1, -1):
        behind = decays[p + 1] * (1 + behind)
        ranks[place[p]] += behind / 2


@inlined
def laplace_gradient(place, n, decays, outer, gradient):
    """The gradient of ``Σ_i outer_i ranks_i`` with respect to the values.

    ``dr_i/dv_j = exp(-|v_i - v_j|) / 2``, and ``dr_i/dv_i`` is minus the sum of these over j.
    """
    near, pushed, before = 0.0, 0.0, 0.0
    for p in range(n):
        here = outer[place[p]]
        near = decays[p] * (1 + near)
        pushed = decays[p] * (before + pushed)
        gradient[place[p]] = (pushed - near * here) / 2
        before = here
    near, pushed = 0.0, 0.0
    for p in range(n - 2, -1, -1):
        here, before = outer[place[p]], outer[place[p + 1]]
        near = decays[p + 1] * (1 + near)
        pushed = decays[p + 1] * (before + pushed)
        gradient[place[p]] += (pushed - near * here) / 2


@inlined
def _log_of_sum(x, y):
    """``log(exp(x) + exp(y))``."""
    high, low = max(x, y), min(x, y)
    return high + math.log1p(math.exp(low - high))


@inlined
def _violates(of_values, of_places, top, entropic):
    """Whether the level of the second-to-last block is not below that of the last."""
    if entropic:
        return of_values[top - 1] - of_places[top - 1] >= of_values[top] - of_places[top]
    return of_values[top - 1] * of_places[top] >= of_values[top] * of_places[top - 1]


@inlined
def _pool(values, place, n, entropic, ends, room):
    """Pool adjacent violators; ``ends[p]`` becomes the end of the block of the place p.

    The blocks form a stack. For each it holds the end, and the sums over the values and the places
    of which its level is the quotient, or the logarithms of these sums.
    """
    end, of_values, of_places = room[0], room[1], room[2]
    top = -1
    for p in range(n):
        top += 1
        own = -float(values[place[p]])
        of_values[top] = own if entropic else own - (p + 1.0)
        of_places[top] = math.log(p + 1.0) if entropic else 1.0
        while top > 0 and _violates(of_values, of_places, top, entropic):
            top -= 1
            if entropic:
                of_values[top] = _log_of_sum(of_values[top], of_values[top + 1])
                of_places[top] = _log_of_sum(of_places[top], of_places[top + 1])
            else:
                of_values[top] += of_values[top + 1]
                of_places[top] += of_places[top + 1]
        end[top] = p + 1
    begin = 0
    for block in range(top + 1):
        stop = int(end[block])
        for p in range(begin, stop):
            ends[p] = stop
        begin = stop


@inlined
def project(values, place, n, entropic, ends, room, ranks):
    """Projected ranks; ``ends [n]`` becomes the end of each place's block.

    ``room`` is at least float64 ``[3, n]``.
    """
    _pool(values, place, n, entropic, ends, room)
    start = 0
    while start < n:
        stop = ends[start]
        middle, least = (start + 1 + stop) / 2, float(values[place[stop - 1]])
        total = 0.0
        for p in range(start, stop):
            apart = values[place[p]] - least
            total += math.exp(-apart) if entropic else apart
        mean = total / (stop - start)
        for p in range(start, stop):
            apart = values[place[p]] - least
            if entropic:
                ranks[place[p]] = math.exp(-apart) * (middle / mean)
            else:
                ranks[place[p]] = middle + (mean - apart)
        start = stop


@inlined
def project_gradient(place, n, entropic, ends, ranks, outer, gradient):
    """The gradient of ``Σ_i outer_i ranks_i`` by the values: blocks lose their (weighted) mean."""
    start = 0
    while start < n:
        stop = ends[start]
        total = 0.0
        for p in range(start, stop):
            total += outer[place[p]] * (ranks[place[p]] if entropic else 1.0)
        mean = total / (stop - start)
        if entropic:
            mean /= (start + 1 + stop) / 2
        for p in range(start, stop):
            lost = mean - outer[place[p]]
            gradient[place[p]] = lost * ranks[place[p]] if entropic else lost
        start = stop
