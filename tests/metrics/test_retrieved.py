"""Metrics of rankings that leave documents out."""

from __future__ import annotations

import numpy as np
import pytest

from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.metrics.retrieved import metrics_of_rankings
from directrank.system.errors import ConfigError
from oracles import READS_MEASURES

MAPPINGS = [
    {"name": "ndcg", "k": 10},
    {"name": "average_precision"},
    {"name": "precision", "k": 10},
    {"name": "nerr", "k": 10},
]


@pytest.fixture(scope="module")
def ranked():
    """Lengths, and labels in the order of ranks, of lists of 1 to 39 documents; one is empty."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 40, 30)
    labels = rng.choice(5, lengths.sum(), p=[0.6, 0.2, 0.1, 0.06, 0.04])
    labels[: lengths[0]] = 0
    return lengths, labels


def test_where_all_is_retrieved_values_are_those_of_whole_lists(ranked):
    lengths, labels = ranked
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    scores = -np.arange(len(labels), dtype=np.float64)
    lists = RankedLists(
        np.zeros((len(labels), 1)), labels.astype(np.float32), offsets, np.arange(len(lengths))
    )
    expected = metrics_per_query(scores, lists, MAPPINGS)
    found = metrics_of_rankings(labels, lengths, lengths, MAPPINGS)
    assert list(found) == list(expected)
    for label, values in found.items():
        np.testing.assert_array_equal(values, expected[label])
        assert np.isnan(values[0])


@READS_MEASURES
def test_where_documents_are_left_out_values_are_those_of_ir_measures(ranked):
    import ir_measures
    from ir_measures import Qrel, ScoredDoc

    lengths, labels = ranked
    retrieved = np.random.default_rng(4).integers(0, lengths + 1)
    retrieved[1], retrieved[2] = 0, 1
    starts = np.cumsum(lengths) - lengths
    qrels, run = [], []
    for query, (start, length, kept) in enumerate(zip(starts, lengths, retrieved, strict=True)):
        qrels += [Qrel(f"{query}", f"{i}", int(labels[start + i])) for i in range(length)]
        run += [ScoredDoc(f"{query}", f"{i}", float(-i)) for i in range(kept)]
    found = metrics_of_rankings(labels, lengths, retrieved, MAPPINGS)
    names = {
        "ndcg@10": "nDCG(gains={0:0,1:1,2:3,3:7,4:15})@10",
        "ap": "AP",
        "precision@10": "P@10",
    }
    measures = {ir_measures.parse_measure(text): label for label, text in names.items()}
    for value in ir_measures.iter_calc(list(measures), qrels, run):
        mine = found[measures[value.measure]][int(value.query_id)]
        assert np.nan_to_num(mine) == pytest.approx(value.value, abs=1e-6)


@pytest.mark.parametrize("k", [-1, 0, 2.5, True])
def test_a_cutoff_is_checked(ranked, k):
    """Precision at -1 was negative, and that at 0 NaN."""
    lengths, labels = ranked
    with pytest.raises(ConfigError, match="k must be a whole number, 1 or more, or None"):
        metrics_of_rankings(labels, lengths, lengths, [{"name": "precision", "k": k}])
