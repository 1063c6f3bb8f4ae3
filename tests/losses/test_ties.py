"""Broken ties of twin-sigmoid ranks are in the order of their random numbers."""

from __future__ import annotations

import pytest
import torch

from directrank.relaxations import twin
from directrank.system.seeds import torch_stream


def tied_lists(queries: int, longest: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of few values, some infinite, of lists of any length, and their mask."""
    stream = torch_stream("ties", longest)
    values = torch.tensor([-torch.inf, -1.5, -0.0, 0.0, 0.25, torch.inf])
    scores = values[torch.randint(len(values), (queries, longest), generator=stream)]
    scores[0] = torch.randn(longest, generator=stream)  # a list without ties
    lengths = torch.randint(longest + 1, (queries, 1), generator=stream)
    lengths[1] = longest
    return scores, torch.arange(longest) < lengths


@pytest.mark.parametrize("longest", [1, 2, 9, 130])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ties_fall_by_their_noise_as_two_stable_sorts_have_them(longest, padded, dtype):
    scores, mask = tied_lists(12, longest)
    scores = scores.to(dtype)
    if not padded:
        mask = torch.ones_like(mask)
    found = twin._order(scores, mask, True, torch_stream("noise"))
    noise = torch.rand(scores.shape, generator=torch_stream("noise"))
    expected = twin._shuffled_order(scores, mask, noise)
    for own, other, real in zip(found, expected, mask.sum(1).tolist(), strict=True):
        assert torch.equal(own[:real], other[:real])
        assert sorted(own.tolist()) == list(range(longest))


def test_equal_noise_leaves_documents_in_their_order(monkeypatch):
    monkeypatch.setattr(twin, "uniform", lambda values, *_: torch.full(values.shape, 0.5))
    scores = torch.tensor([[1.0, 2.0, 1.0, 2.0, 1.0]])
    found = twin._order(scores, torch.ones_like(scores, dtype=torch.bool), True, None)
    assert found.tolist() == [[1, 3, 0, 2, 4]]


def test_lists_too_long_for_one_key_are_ordered_alike(monkeypatch):
    scores, mask = tied_lists(6, 40)
    found = twin._order(scores, mask, True, torch_stream("noise"))
    monkeypatch.setattr(twin, "LONGEST", 39)
    other = twin._order(scores, mask, True, torch_stream("noise"))
    for own, expected, real in zip(found, other, mask.sum(1).tolist(), strict=True):
        assert torch.equal(own[:real], expected[:real])


def test_every_order_of_ties_is_equally_likely():
    scores, mask = torch.zeros(6000, 3), torch.ones(6000, 3, dtype=torch.bool)
    found = twin._order(scores, mask, True, torch_stream("orders"))
    _, counts = torch.unique(found, dim=0, return_counts=True)
    assert len(counts) == 6
    assert (counts - 1000).abs().max() < 130  # four and a half standard deviations
