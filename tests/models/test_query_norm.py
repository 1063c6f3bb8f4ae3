"""Norms with the statistics of each query: the formula, and the compiled loop that equals it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from directrank.models.query_norm import Segments, standardised

LENGTHS = np.array([[5, 1, 9, 12], [3, 3, 3, 3]])
EPSILON = 1e-5


def segments(lengths: np.ndarray, width: int) -> Segments:
    return Segments.of(lengths, len(lengths), width, torch.device("cpu"))


def value_and_gradient(
    standardise: Callable[..., Tensor], x: Tensor, of: Segments
) -> tuple[Tensor, Tensor]:
    x = x.clone().requires_grad_()
    y = standardise(x, of, EPSILON)
    outer = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype)
    (gradient,) = torch.autograd.grad(y, x, outer)
    return y.detach(), gradient


def documents(width: int, dtype: torch.dtype) -> Tensor:
    """Those of two models with 30 rows each, the last of which are padding."""
    return 5 + 3 * torch.randn(60, width, generator=torch.Generator().manual_seed(2)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 7, 100])
def test_the_compiled_loop_gives_the_bytes_of_the_formula(width, dtype):
    x, of = documents(width, dtype), segments(LENGTHS, 30)
    fast = value_and_gradient(standardised, x, of)
    plain = value_and_gradient(standardised.__wrapped__, x, of)
    for ours, expected in zip(fast, plain, strict=True):
        assert ours.numpy().tobytes() == expected.numpy().tobytes()


def test_each_query_has_mean_zero_and_variance_one():
    y = standardised(documents(4, torch.float64), segments(LENGTHS, 30), EPSILON)
    for first, last in ((0, 5), (6, 15), (15, 27), (30, 33), (33, 36)):
        assert torch.allclose(y[first:last].mean(0), torch.zeros(4, dtype=y.dtype), atol=1e-12)
        assert torch.allclose(y[first:last].var(0, correction=0), torch.ones(4).double(), atol=1e-4)
    assert (y[5] == 0).all()  # the only document of its query


def test_gradients_are_those_of_finite_differences():
    x, of = documents(3, torch.float64).requires_grad_(), segments(LENGTHS, 30)
    for standardise in (standardised, standardised.__wrapped__):
        assert torch.autograd.gradcheck(lambda values, f=standardise: f(values, of, 1e-3), x)


def test_half_precision_is_computed_by_the_formula():
    x, of = documents(7, torch.float32).bfloat16(), segments(LENGTHS, 30)
    assert torch.equal(standardised(x, of, EPSILON), standardised.__wrapped__(x, of, EPSILON))


def test_more_documents_than_rows_are_refused():
    with pytest.raises(ValueError, match="more documents than the 20 rows"):
        segments(LENGTHS, 20)
