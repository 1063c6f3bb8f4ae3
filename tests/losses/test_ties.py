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
    noise = torch.rand(scores.shape, generator=torch_stream("noise"))
    found = twin.order_with_noise(scores, mask, noise)
    expected = twin.order_with_noise.__wrapped__(scores, mask, noise)
    for own, other, real in zip(found, expected, mask.sum(1).tolist(), strict=True):
        assert torch.equal(own[:real], other[:real])
        assert sorted(own.tolist()) == list(range(longest))


def test_equal_noise_leaves_documents_in_their_order():
    scores = torch.tensor([[1.0, 2.0, 1.0, 2.0, 1.0]])
    mask = torch.ones_like(scores, dtype=torch.bool)
    found = twin.order_with_noise(scores, mask, torch.full_like(scores, 0.5))
    assert found.tolist() == [[1, 3, 0, 2, 4]]


def test_masked_documents_between_others_come_last():
    scores, _ = tied_lists(6, 40)
    mask = torch.rand(scores.shape, generator=torch_stream("mask")) < 0.7
    noise = torch.rand(scores.shape, generator=torch_stream("noise"))
    found = twin.order_with_noise(scores, mask, noise)
    real = mask.gather(1, found)
    assert (real[:, 1:] <= real[:, :-1]).all()
    for own, order, drawn, kept in zip(scores, found, noise, mask, strict=True):
        places = order[: int(kept.sum())].tolist()
        assert places == sorted(places, key=lambda i: (-float(own[i]), -float(drawn[i]), i))


def test_every_order_of_ties_is_equally_likely():
    scores, mask = torch.zeros(6000, 3), torch.ones(6000, 3, dtype=torch.bool)
    found = twin._order(scores, mask, True, torch_stream("orders"))
    _, counts = torch.unique(found, dim=0, return_counts=True)
    assert len(counts) == 6
    assert (counts - 1000).abs().max() < 130  # four and a half standard deviations
