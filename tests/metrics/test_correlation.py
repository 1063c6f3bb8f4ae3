"""Correlations of scores and labels, with SciPy as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from directrank import losses, metrics
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.metrics.retrieved import metrics_of_rankings
from directrank.system.errors import ConfigError

ORACLES = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}

each = pytest.mark.parametrize("name", metrics.CORRELATIONS)


def lists(rounded: bool, seed: int = 0):
    """Lists of 2 to 13 documents with ties of labels and, where scores are rounded, of scores."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(60, 13, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 5, (60, 13), generator=generator).double()
    mask = torch.rand(60, 13, generator=generator) > 0.4
    mask[:, 3] = mask[:, 8] = True
    labels[:, 3], labels[:, 8] = 0, 1
    if rounded:
        scores = scores.round()
        scores[0] = 1  # orders nothing
    return scores, labels, mask


@each
@pytest.mark.parametrize("rounded", [False, True])
def test_values_are_scipys_with_ties_of_labels_and_of_scores(name, rounded):
    scores, labels, mask = lists(rounded)
    found = metrics.get(name)(scores, labels, mask)
    expected = [
        ORACLES[name](score[real], label[real]).statistic
        for score, label, real in zip(
            scores[rounded:], labels[rounded:], mask[rounded:], strict=True
        )
    ]
    if rounded:
        expected.insert(0, 0.0)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    assert found.min() < -0.5 < 0.5 < found.max()


@each
def test_the_order_by_label_has_1_and_its_reverse_minus_1(name):
    _, labels, mask = lists(False)
    metric = metrics.get(name)
    torch.testing.assert_close(metric(labels, labels, mask), torch.ones(60).double())
    torch.testing.assert_close(metric(-labels, labels, mask), -torch.ones(60).double())


@each
def test_queries_without_different_labels_are_empty(name):
    metric = metrics.get(name)
    scores, labels = torch.tensor([[1.0, 2.0, 3.0]] * 2), torch.tensor([[2.0] * 3, [0.0, 0.0, 1.0]])
    for empty, value in (("exclude", torch.nan), ("zero", 0.0), ("one", 1.0)):
        found = metric(scores, labels, empty=empty)
        np.testing.assert_equal(found[0].item(), value)
        assert found[1] > 0.5


@each
@pytest.mark.parametrize(("B", "L"), [(0, 4), (3, 0), (2, 1)])
def test_empty_batches_and_lists_are_allowed(name, B, L):
    value = metrics.get(name)(torch.zeros(B, L), torch.zeros(B, L))
    assert value.shape == (B,)
    assert value.isnan().all()


@each
def test_order_padding_and_infinities_do_not_matter(name):
    scores, labels, mask = lists(True)
    metric = metrics.get(name)
    value = metric(scores, labels, mask)
    order = torch.rand(60, 13, generator=torch.Generator().manual_seed(1)).argsort(1)
    moved = [tensor.gather(1, order) for tensor in (scores, labels, mask)]
    torch.testing.assert_close(metric(*moved), value)
    top = scores == scores.amax()
    torch.testing.assert_close(metric(scores.masked_fill(top, torch.inf), labels, mask), value)
    torch.testing.assert_close(metric(scores.exp(), labels, mask), value)


@each
def test_packed_lists_have_the_values_of_padded_ones(name):
    scores, labels, mask = lists(True)
    lengths = mask.sum(1).numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    packed = RankedLists(
        np.zeros((offsets[-1], 1)), labels[mask].float().numpy(), offsets, np.arange(60)
    )
    both = torch.stack([scores[mask], -scores[mask]])
    found = metrics_per_query(both, packed, [{"name": name}])[name]
    expected = metrics.get(name)(scores, labels, mask).numpy()
    np.testing.assert_allclose(found, [expected, -expected], atol=1e-12)


@each
def test_what_has_no_ranks_of_scores_is_one_error(name):
    scores, labels, mask = lists(True)
    loss = losses.compose(name, "sigmoid")
    with pytest.raises(ConfigError, match=f"{name} compares the ranks of given scores"):
        loss(scores, labels, mask)
    with pytest.raises(ConfigError, match="has no option 'k'"):
        losses.compose({"name": name, "k": 5}, "sigmoid")
    with pytest.raises(ConfigError, match=f"{name} compares the ranks of given scores"):
        metrics_of_rankings(np.ones(3), np.array([3]), np.array([2]), [{"name": name}])
    with pytest.raises(ConfigError, match="has no option 'ties'"):
        metrics.evaluate([{"name": name, "ties": "expected"}], scores, labels, mask)
