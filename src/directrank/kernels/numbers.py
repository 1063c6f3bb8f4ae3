"""Operations on numbers that numba's loops need and that Python cannot express directly."""

from __future__ import annotations

import llvmlite.ir
import numpy as np
from numba import types
from numba.extending import intrinsic

from directrank.kernels.compiling import inlined


@intrinsic
def is_single(context, example):
    """Whether a number is float32; this is known at compile time."""

    def generate(context, builder, signature, arguments):
        return context.get_constant(types.boolean, signature.args[0] == types.float32)

    return types.boolean(example), generate


@intrinsic
def like(context, example, number):
    """A float64 ``number`` in the type of ``example``; bare constants would widen to float64."""

    def generate(context, builder, signature, arguments):
        return context.cast(builder, arguments[1], types.float64, signature.return_type)

    return example(example, types.float64), generate


@intrinsic
def power_of_two(context, exponent):
    """``2^exponent`` for a whole number held as a float, within the range of the type."""

    def generate(context, builder, signature, arguments):
        single = signature.return_type == types.float32
        bits = llvmlite.ir.IntType(32 if single else 64)
        real = llvmlite.ir.FloatType() if single else llvmlite.ir.DoubleType()
        whole = builder.fptosi(arguments[0], bits)
        biased = builder.add(whole, llvmlite.ir.Constant(bits, 127 if single else 1023))
        shifted = builder.shl(biased, llvmlite.ir.Constant(bits, 23 if single else 52))
        return builder.bitcast(shifted, real)

    return exponent(exponent), generate


@intrinsic
def slope_of(context, e, s):
    """``(e · s) · s`` in this order, because s² may underflow; fast arithmetic would change it."""

    def generate(context, builder, signature, arguments):
        e, s = arguments
        return builder.fmul(builder.fmul(e, s), s)

    return e(e, s), generate


@intrinsic
def _larger(context, x, y):
    """The larger of two numbers, in a form that vectorises within a loop, unlike ``max``."""

    def generate(context, builder, signature, arguments):
        x, y = arguments
        flags = ("nnan", "nsz")
        return builder.select(builder.fcmp_ordered(">", x, y, flags=flags), x, y, flags=flags)

    return x(x, y), generate


@inlined
def largest(values, n):
    """The largest of n values; a NaN among them may be ignored."""
    top = values[0]
    for j in range(1, n):
        top = _larger(values[j], top)
    return top


@inlined
def exp(x):
    """``exp(x)`` for x ≤ 0, in a form that vectorises; 0 below 1e-18 (float64: 1e-150)."""
    single = is_single(x)
    one = like(x, 1.0)
    whole = np.floor(x * like(x, 1.4426950408889634) + like(x, 0.5))
    y = x - like(x, 0.6931471805599453) * whole
    series = one
    if single:
        for term in range(7, 0, -1):
            series = one + y * series * like(x, 1.0 / term)
    else:
        for term in range(13, 0, -1):
            series = one + y * series * like(x, 1.0 / term)
    least = like(x, -60.0) if single else like(x, -500.0)
    # Where x is NaN, so is x - x.
    return series * power_of_two(max(whole, least)) if whole > least else x - x


@inlined
def expm1(x):
    """``exp(x) - 1`` for x ≤ 0, in a form that vectorises and keeps the digits near 0."""
    single = is_single(x)
    one = like(x, 1.0)
    least = like(x, -40.0)
    x = least if x < least else x
    whole = np.floor(x * like(x, 1.4426950408889634) + like(x, 0.5))
    y = x - like(x, 0.6931471805599453) * whole
    series = one
    if single:
        for term in range(7, 1, -1):
            series = one + y * series * like(x, 1.0 / term)
    else:
        for term in range(13, 1, -1):
            series = one + y * series * like(x, 1.0 / term)
    power = power_of_two(whole)
    return power * (y * series) + (power - one)
