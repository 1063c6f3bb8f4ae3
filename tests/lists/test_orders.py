"""Orders by scores with noise are the same however they are drawn and stored."""

import pytest
import torch

from directrank.lists import orders
from directrank.lists.flat import Flat
from directrank.lists.orders import drawn_orders
from directrank.lists.sorting import descending_order

GENERATOR = torch.Generator()
FULL = torch.ones(4, 9, dtype=torch.bool)
RAGGED = torch.arange(9) < torch.tensor([[9], [2], [1], [0]])
HOLES = RAGGED & (torch.arange(9) != 1)


@pytest.mark.parametrize("mask", [FULL, RAGGED, HOLES], ids=["full", "ragged", "holes"])
@pytest.mark.parametrize("together", [1, 100, 10_000])
def test_orders_are_those_of_one_draw_after_the_other(mask, together, monkeypatch):
    monkeypatch.setattr(orders, "TOGETHER", together)
    scores = torch.randn(4, 9, generator=GENERATOR.manual_seed(1))
    stream = GENERATOR.manual_seed(2)
    expected = [
        descending_order(scores + torch.logit(torch.rand(4, 9, generator=stream)), mask)
        for _ in range(7)
    ]
    found = list(drawn_orders(scores, mask, GENERATOR.manual_seed(2), 7, torch.logit))
    assert max(map(len, found)) == min(7, max(1, together // 36))
    for order, other in zip(torch.cat(found), expected, strict=True):
        assert torch.equal(order.sort(1).values, torch.arange(9).expand(4, 9))
        for b, n in enumerate(mask.sum(1).tolist()):
            assert torch.equal(order[b, :n], other[b, :n])


def test_orders_of_flat_lists_count_from_each_lists_start():
    lists = Flat(RAGGED.sum(1).numpy(), torch.device("cpu"))
    scores = torch.randn(12, generator=GENERATOR.manual_seed(1))
    (found,) = drawn_orders(scores, lists, GENERATOR.manual_seed(2), 3, torch.logit)
    stream = GENERATOR.manual_seed(2)
    for order in found:
        noisy = scores + torch.logit(torch.rand(12, generator=stream))
        assert torch.equal(order, descending_order(noisy, lists))
