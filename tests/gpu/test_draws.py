"""Random numbers of a GPU are those of a CPU."""

import pytest
import torch

from directrank.kernels import philox
from directrank.kernels.gpu import draws
from directrank.lists.draws import Counters
from directrank.lists.flat import DeviceFlat

SEEDS = torch.tensor([-11, 2**62 + 12])


def counters(lists=3):
    return Counters.of_models(SEEDS, torch.tensor([70_000]), lists)


def lists_of(models, rows, lengths=(4, 0, 9)):
    """The same lists for every model, with padding behind them."""
    ends = torch.tensor(lengths).cumsum(0)
    spans = torch.stack([ends - torch.tensor(lengths), ends], dim=1)
    first = rows * torch.arange(models)
    return DeviceFlat((spans + first[:, None, None]).flatten(0, 1), 16, models * rows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 9, 600])
def test_factors_of_documents(width, dtype):
    values = torch.zeros(2, 20, width, dtype=dtype)
    found = draws.factors_of_rows(values, lists_of(2, 20), counters(), 9_000)
    expected = philox.factors_of_rows(values, lists_of(2, 20), counters(), 9_000)
    assert torch.equal(found[:, :13], expected[:, :13])


def test_factors_of_pairs():
    values = torch.zeros(6, 2, 11, 11)
    expected = philox.factors_of_pairs(values, counters(), 30_000)
    assert torch.equal(draws.factors_of_pairs(values, counters(), 30_000), expected)


@pytest.mark.parametrize("copies", [1, 2])
def test_uniform_numbers_of_padded_lists(copies):
    values, mask = torch.zeros(6 * copies, 21), torch.ones(6 * copies, 21) > 0
    expected = philox.uniform_by_document(values, mask, counters(), 1)[0]
    assert torch.equal(draws.uniform_by_document(values, mask, counters(), 1)[0], expected)


def test_uniform_numbers_of_flat_lists():
    padded = philox.uniform_by_document(torch.zeros(6, 9), torch.ones(6, 9) > 0, counters(), 1)[0]
    found = draws.uniform_by_document(torch.zeros(40), lists_of(2, 20), counters(), 1)[0]
    for model in range(2):
        own = found[20 * model : 20 * model + 20]
        assert torch.equal(own[:4], padded[3 * model, :4])
        assert torch.equal(own[4:13], padded[3 * model + 2])
        assert (own[13:] == 0).all()
