"""Gains as a list, for metrics and losses."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

from directrank import losses, metrics
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.errors import DirectrankError
from losses_cases import LOSSES, random_lists, value_and_gradient

#: The list of the gains 2^y - 1, and another one.
EXP2, OTHER = [0, 1, 3, 7, 15], [0, 1, 1, 5, 40]

with_gain = pytest.mark.parametrize(
    "name", [name for name in LOSSES if "gain" in inspect.signature(losses.get(name)).parameters]
)


@pytest.mark.parametrize("name", ["ndcg", "dcg"])
@pytest.mark.parametrize("made", [list, tuple, np.array, torch.tensor])
def test_metrics_take_gains_as_a_list(name, made):
    scores, labels, mask = random_lists(12, 9, seed=3)
    metric = metrics.get(name)
    listed = metric(scores, labels, mask, 5, gain=made(EXP2))
    torch.testing.assert_close(listed, metric(scores, labels, mask, 5), equal_nan=True)
    by_label = torch.tensor(OTHER).double()[labels.long()]
    linear = metric(scores, by_label, mask, 5, gain="linear")
    other = metric(scores, labels, mask, 5, gain=made(OTHER))
    torch.testing.assert_close(other, linear, equal_nan=True)
    assert (other - listed).abs().nan_to_num().max() > 0.01


@pytest.mark.parametrize("made", [tuple, np.array, torch.tensor])
def test_a_metric_with_gains_is_named_by_their_numbers(made):
    assert metrics.label({"name": "ndcg", "k": 3, "gain": made([0.0, 1, 5])}) == "ndcg@3/gain=0,1,5"


@pytest.mark.parametrize("made", [np.array, torch.tensor])
@pytest.mark.parametrize("name", [*[p for p in LOSSES if "gain" in inspect.signature(
    losses.get(p)).parameters], "ndcg", "dcg"])  # fmt: skip
def test_an_array_of_gains_goes_with_flat_lists(name, made):
    """It has a number for each label, and not for each document."""
    function = losses.get(name) if name in LOSSES else metrics.get(name)
    scores, labels, mask = random_lists(6, 9, seed=3)
    values = []
    for gain in (OTHER, made(OTHER)):
        torch.manual_seed(0)
        options = LOSSES.get(name, {}) | {"gain": gain, "lengths": mask.sum(1)}
        values.append(function(scores[mask], labels[mask], **options))
    assert torch.equal(values[0].nan_to_num(), values[1].nan_to_num())


@with_gain
def test_losses_take_gains_as_a_list(name):
    scores, labels, mask = random_lists(6, 9, seed=3)
    results = {}
    for kind, gain in (("exp2", "exp2"), ("listed", EXP2), ("other", OTHER)):
        torch.manual_seed(0)
        options = LOSSES[name] | {"gain": gain}
        results[kind] = value_and_gradient(losses.get(name), scores, labels, mask, **options)
    torch.testing.assert_close(results["listed"], results["exp2"], rtol=1e-9, atol=1e-11)
    assert (results["other"][1] - results["exp2"][1]).abs().max() > 1e-6


def test_evaluation_of_packed_lists_takes_gains_as_a_list():
    scores, labels, mask = random_lists(12, 9, seed=3)
    lengths = mask.sum(1).numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    packed = RankedLists(
        np.zeros((offsets[-1], 1)), labels[mask].float().numpy(), offsets, np.arange(12)
    )
    found = metrics_per_query(scores[mask], packed, [{"name": "ndcg", "gain": OTHER}])
    expected = metrics.ndcg(scores, labels, mask, gain=OTHER)
    np.testing.assert_allclose(found["ndcg/gain=0,1,1,5,40"], expected.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("gain", "message"),
    [
        ([1, 2, 3, 4, 5], "do not begin with 0"),
        ([0, 3, 2, 4, 5], "or they fall"),
        ([0, 1, 2, 3, float("inf")], "or they fall"),
        ([], "do not begin with 0"),
        ([0, 1, 2], r"a label is 3, but there are gains for the labels 0 to 2"),
        ("exp", "choose one of"),
    ],
)
def test_gains_that_do_not_fit_are_one_error(gain, message):
    labels = torch.tensor([[0.0, 1.0, 3.0]])
    for function in (metrics.ndcg, metrics.dcg, losses.approx_ndcg, losses.lambdarank):
        with pytest.raises(DirectrankError, match=message):
            function(torch.zeros(1, 3), labels, gain=gain)


def test_labels_between_gains_are_an_error():
    with pytest.raises(DirectrankError, match=r"a label is 0\.5"):
        metrics.ndcg(torch.zeros(1, 2), torch.tensor([[0.5, 1.0]]), gain=[0, 1])
