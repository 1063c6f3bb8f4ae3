"""Norms with the statistics of each query."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from directrank.models.query_norm import QueryNorm, Segments

LENGTHS = np.array([[5, 1, 9, 12], [3, 3, 3, 3]])
EPSILON = 1e-5


def segments(lengths: np.ndarray, width: int) -> Segments:
    return Segments.of(lengths, len(lengths), width, torch.device("cpu"))


def documents(width: int) -> Tensor:
    """Those of two models with 30 rows each, the last of which are padding."""
    return 5 + 3 * torch.randn(2, 30, width, generator=torch.Generator().manual_seed(2)).double()


def test_each_query_has_mean_zero_and_variance_one():
    norm = QueryNorm(2, 4, EPSILON).double()
    y = norm(documents(4), segments(LENGTHS, 30)).detach()
    for model, first, last in ((0, 0, 5), (0, 6, 15), (0, 15, 27), (1, 0, 3), (1, 3, 6)):
        query = y[model, first:last]
        assert torch.allclose(query.mean(0), torch.zeros(4, dtype=y.dtype), atol=1e-12)
        assert torch.allclose(query.var(0, correction=0), torch.ones(4).double(), atol=1e-4)
    assert (y[0, 5] == 0).all()  # the only document of its query


def test_gradients_are_those_of_finite_differences():
    norm, of = QueryNorm(2, 3, 1e-3).double(), segments(LENGTHS, 30)
    norm.weight.data += 0.5
    assert torch.autograd.gradcheck(lambda x: norm(x, of), documents(3).requires_grad_())


def test_more_documents_than_rows_are_refused():
    with pytest.raises(ValueError, match="more documents than the 20 rows"):
        segments(LENGTHS, 20)
