"""Random numbers by counters: the formula, and the compiled loops that compute the same."""

import numpy as np
import pytest
import torch

from directrank.kernels import philox
from directrank.lists import draws
from directrank.lists.draws import Counters
from directrank.lists.flat import DeviceFlat, Flat

#: Keys whose highest bits are set and not, and a step that takes several bytes.
SEEDS, STEP = torch.tensor([-(2**63), 2**62 + 5, 7]), 70_000

#: Two models' lists, some without documents, in 60 places each.
LENGTHS = np.array([[5, 0, 9, 17], [4, 3, 2, 0], [0, 0, 33, 8]])


def counters(seeds=SEEDS, lists=4, step=STEP) -> Counters:
    return Counters.of_models(seeds, torch.tensor([step]), lists)


def lists_of(lengths: np.ndarray, rows: int) -> DeviceFlat:
    ends = lengths.cumsum(1)
    spans = np.stack([ends - lengths, ends], 2) + rows * np.arange(len(lengths))[:, None, None]
    return DeviceFlat(torch.from_numpy(spans.reshape(-1, 2)), int(lengths.max()), rows * len(spans))


def real(lengths: np.ndarray, rows: int) -> torch.Tensor:
    return torch.arange(rows) < torch.from_numpy(lengths.sum(1))[:, None]


def test_words_are_those_that_the_authors_of_philox_publish():
    """Known answers of Random123, philox4x32 with 10 rounds."""
    known = {
        (0, (0, 0, 0, 0)): (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
        (-1, (0xFFFFFFFF,) * 4): (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        (0x299F31D0A4093822, (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)): (
            0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1,
        ),
    }  # fmt: skip
    for (key, counter), expected in known.items():
        words = draws.philox(*(torch.tensor([number]) for number in (key, *counter)))
        assert tuple(int(word) for word in words) == expected


@pytest.mark.parametrize("copies", [1, 2])
def test_loops_give_uniform_numbers_of_the_formula(copies):
    flat = Flat(np.tile(LENGTHS.ravel(), copies), torch.device("cpu"))
    values, mask = torch.zeros(int(flat.lengths.sum())), torch.ones(12 * copies, 37) > 0
    for given, lists in ((values, flat), (torch.zeros(12 * copies, 37), mask)):
        expected = draws.uniform_by_document(given, lists, counters(), 1)[0]
        assert torch.equal(philox.uniform_by_document(given, lists, counters(), 1)[0], expected)
    first = expected.view(copies, 12, 37)
    assert copies == 1 or not (first[0] == first[1]).any()


def test_padding_changes_no_number_and_every_draw_has_its_own():
    flat = Flat(LENGTHS.ravel(), torch.device("cpu"))
    source = counters()
    packed = philox.uniform_by_document(torch.zeros(int(LENGTHS.sum())), flat, source, 1)[0]
    padded = philox.uniform_by_document(torch.zeros(12, 50), torch.ones(12, 50) > 0, counters(), 1)[
        0
    ]
    for start, length, row in zip(flat.starts, flat.lengths, padded, strict=True):
        assert torch.equal(packed[start : start + length], row[:length])
    again = philox.uniform_by_document(torch.zeros(12, 50), torch.ones(12, 50) > 0, source, 1)[0]
    later = counters(step=STEP + 1)
    later = philox.uniform_by_document(torch.zeros(12, 50), torch.ones(12, 50) > 0, later, 1)[0]
    assert not (padded == again).any()
    assert not (padded == later).any()
    assert padded.unique().numel() == padded.numel()  # no list has the numbers of another


@pytest.mark.parametrize("draw", [philox.uniform_by_document, draws.uniform_by_document])
def test_several_draws_at_once_are_those_in_turn(draw):
    flat, source = Flat(np.tile(LENGTHS.ravel(), 2), torch.device("cpu")), counters()
    values = torch.zeros(2 * int(LENGTHS.sum()))
    in_turn = [draw(values, flat, source, 1)[0] for _ in range(3)]
    assert torch.equal(draw(values, flat, counters(), 3), torch.stack(in_turn))
    padded, mask, source = torch.zeros(24, 37), torch.ones(24, 37) > 0, counters()
    in_turn = [draw(padded, mask, source, 1)[0] for _ in range(3)]
    assert torch.equal(draw(padded, mask, counters(), 3), torch.stack(in_turn))
    assert draw(torch.zeros(0, 5), torch.ones(0, 5) > 0, counters(), 2).shape == (2, 0, 5)


def test_uniform_numbers_are_spread_evenly():
    many = Counters.of_models(torch.tensor([1]), torch.tensor([1]), 400)
    numbers = philox.uniform_by_document(torch.zeros(400, 500), torch.ones(400, 500) > 0, many, 1)[
        0
    ]
    counts = torch.histc(numbers, 20, 0, 1)
    assert (counts - 10_000).abs().max() < 500  # five standard deviations
    assert numbers.max() < 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 7, 8, 100])
def test_loops_give_the_factors_of_the_formula(width, dtype):
    values, there = torch.zeros(3, 60, width, dtype=dtype), real(LENGTHS, 60)
    given = values, lists_of(LENGTHS, 60), counters(), 20_000
    expected = draws.factors_of_rows(*given)
    given = values, lists_of(LENGTHS, 60), counters(), 20_000
    found = philox.factors_of_rows(*given)
    assert found.dtype == dtype
    assert torch.equal(found[there], expected[there])
    kept = torch.tensor(2**16 / (2**16 - 20_000), dtype=dtype)
    assert set(found[there].unique().tolist()) <= {0, kept.item()}


def test_factors_of_pairs_depend_on_neither_grouping_nor_padding():
    expected = draws.factors_of_pairs(torch.zeros(12, 2, 19, 19), counters(), 30_000)
    found = philox.factors_of_pairs(torch.zeros(12, 2, 19, 19), counters(), 30_000)
    assert torch.equal(found, expected)
    some = torch.tensor([7, 2])
    wide = philox.factors_of_pairs(torch.zeros(2, 2, 40, 40), counters().of(some), 30_000)
    assert torch.equal(wide[:, :, :19, :19], found[some])
    assert not torch.equal(found[:, 0], found[:, 1])


def test_normal_numbers_have_mean_zero_and_deviation_one():
    source = Counters.of_models(
        torch.tensor([1]), torch.tensor([1]), 40, philox.uniform_by_document
    )
    numbers = draws.normal(torch.zeros(40, 500), torch.ones(40, 500) > 0, source, torch.float64)
    assert numbers.mean() == pytest.approx(0, abs=0.03)
    assert numbers.std() == pytest.approx(1, abs=0.03)
    assert numbers.abs().max() > 3
