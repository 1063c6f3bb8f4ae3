import numpy as np
import torch

from directrank.lists.packed import RankedLists, concatenated_ranges
from directrank.lists.padding import pad, padded_positions


def small_lists() -> RankedLists:
    return RankedLists(
        features=np.arange(12, dtype=np.float32).reshape(6, 2),
        labels=np.array([0, 2, 0, 0, 1, 1], dtype=np.float32),
        offsets=np.array([0, 2, 3, 6]),
        query_ids=np.array([7, 3, 5]),
    )


def test_ranges_are_joined_in_order_and_empty_ones_vanish():
    joined = concatenated_ranges(np.array([5, 9, 0]), np.array([2, 0, 3]))
    assert joined.tolist() == [5, 6, 0, 1, 2]
    assert concatenated_ranges(np.array([], dtype=int), np.array([], dtype=int)).tolist() == []


def test_sizes_and_relevant_counts_follow_the_offsets():
    lists = small_lists()
    assert (lists.n_queries, lists.n_documents, lists.n_features) == (3, 6, 2)
    assert lists.lengths.tolist() == [2, 1, 3]
    assert lists.relevant_counts().tolist() == [1, 0, 2]
    assert lists.relevant_counts(min_label=2).tolist() == [1, 0, 0]


def test_selecting_queries_copies_them_in_the_order_asked_for():
    chosen = small_lists().select(np.array([2, 0]))
    assert chosen.query_ids.tolist() == [5, 7]
    assert chosen.labels.tolist() == [0, 1, 1, 0, 2]
    assert chosen.offsets.tolist() == [0, 3, 5]
    assert chosen.features[3].tolist() == [0, 1]


def test_padding_puts_each_document_in_its_list_and_passes_gradients_back():
    mask, index = padded_positions(torch.tensor([2, 0, 3]))
    values = torch.arange(1.0, 6.0, requires_grad=True)
    padded = pad(values, mask, index, fill=-1)
    assert padded.tolist() == [[1, 2, -1], [-1, -1, -1], [3, 4, 5]]
    (padded * torch.arange(9).view(3, 3)).sum().backward()
    assert values.grad.tolist() == [0, 1, 6, 7, 8]
