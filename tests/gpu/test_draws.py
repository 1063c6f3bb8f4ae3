"""Random numbers of captured steps: distributed as they should be, whatever is around them."""

import pytest
import torch

from directrank.kernels.gpu import draws
from directrank.lists.draws import Counters
from directrank.lists.flat import DeviceFlat

SEEDS = torch.tensor([11, 12])


def counters(seeds=SEEDS, step=7, lists=3):
    return Counters(seeds, torch.tensor([step]), lists)


def lists_of(models, rows, lengths=(4, 0, 9)):
    """The same lists for every model, with padding behind them."""
    ends = torch.tensor(lengths).cumsum(0)
    spans = torch.stack([ends - torch.tensor(lengths), ends], dim=1)
    first = rows * torch.arange(models)
    return DeviceFlat((spans + first[:, None, None]).flatten(0, 1), 16, models * rows)


def test_factors_of_dropout_keep_the_share_and_the_expectation():
    lists = lists_of(2, 600, (200, 0, 400))
    factors = draws.factors_of_rows(counters(), lists, 600, 30, 0.8)
    assert set(factors.unique().tolist()) == {0.0, 1.25}
    assert factors.mean() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("rows", [13, 40])
def test_factors_depend_on_the_model_and_the_document_alone(rows):
    together = draws.factors_of_rows(counters(), lists_of(2, 20), 20, 9, 0.5)
    alone = draws.factors_of_rows(counters(SEEDS[1:]), lists_of(1, rows), rows, 9, 0.5)
    assert torch.equal(alone[0, :13], together[1, :13])
    assert not torch.equal(together[0], together[1])


def test_factors_of_pairs_do_not_depend_on_the_length_to_which_lists_are_padded():
    short = draws.factors_of_pairs(counters(), 6, 2, 8, 0.5)
    long = draws.factors_of_pairs(counters(), 6, 2, 20, 0.5)
    assert torch.equal(short, long[:, :, :8, :8])
    assert not torch.equal(short[:, 0], short[:, 1])


def test_each_draw_and_each_step_has_other_numbers():
    source, values, lists = counters(), torch.zeros(40), lists_of(2, 20)
    first = draws.drawn(source, values, lists, normal=False)
    second = draws.drawn(source, values, lists, normal=False)
    later = draws.drawn(counters(step=8), values, lists, normal=False)
    again = draws.drawn(counters(), values, lists, normal=False)
    assert torch.equal(first, again)
    real = first != 0
    assert not (first == second)[real].any()
    assert not (first == later)[real].any()


def test_repeated_lists_of_a_model_have_numbers_of_their_own():
    source, lists = counters(), lists_of(2, 20)
    spans = torch.cat([lists.spans, lists.spans + 40])
    twice = draws.drawn(source, torch.zeros(80), DeviceFlat(spans, 16, 80), normal=False)
    once = draws.drawn(counters(), torch.zeros(40), lists, normal=False)
    assert torch.equal(twice[:40], once)
    assert not torch.equal(twice[40:], once)


def test_normal_numbers_have_mean_zero_and_deviation_one():
    lists = lists_of(2, 3000, (1000, 0, 2000))
    lists.__dict__["_longest"] = 2000
    numbers = draws.drawn(counters(), torch.zeros(6000), lists, normal=True)
    assert numbers.mean() == pytest.approx(0, abs=0.05)
    assert numbers.std() == pytest.approx(1, abs=0.03)
    assert numbers.unique().numel() > 5990
