"""Scores of whole splits, in passes of whole queries."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import torch
from torch import nn

from directrank.learners.neural import scoring
from directrank.lists.packed import RankedLists

CPU = torch.device("cpu")


class Sums(nn.Module):
    """Scores documents by the sum of their features, times a weight per model.

    Attributes:
        passes: the lengths of the queries of each pass.
        scores: a weak reference to the scores of each pass.
    """

    def __init__(self, models: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(1.0, models + 1))
        self.passes: list[list[int]] = []
        self.scores: list[weakref.ref] = []

    def forward(self, features, rows, lengths):
        assert not any(scores() is not None for scores in self.scores)
        self.passes.append(lengths[0].tolist())
        scores = features.sum(-1) * self.weight[:, None]
        self.scores.append(weakref.ref(scores))
        return scores


@pytest.fixture
def lists():
    lengths = np.array([3, 4, 2, 9, 1])
    offsets = np.concatenate([[0], lengths.cumsum()])
    return RankedLists(
        features=np.arange(2.0 * offsets[-1], dtype=np.float32).reshape(-1, 2),
        labels=np.zeros(offsets[-1], np.float32),
        offsets=offsets[1:],  # the first document is not the first of the table
        query_ids=np.arange(4),
    )


def test_passes_have_whole_queries_and_give_every_document_its_score(lists, monkeypatch):
    monkeypatch.setattr(scoring, "SCORING_CHUNK", 16)
    model = Sums(2)
    scores = scoring.score(model, lists, torch.float32, CPU)
    assert model.passes == [[4, 2], [9], [1]]  # at most 8 documents, or one query
    sums = torch.from_numpy(np.asarray(lists.features)[3:]).sum(1)
    assert torch.equal(scores, torch.stack([sums, 2 * sums]))


def test_the_scores_of_a_pass_do_not_outlive_it(lists, monkeypatch):
    # Between the blocks that passes free, they would keep these from being used as a whole.
    monkeypatch.setattr(scoring, "SCORING_CHUNK", 1)
    model = Sums(1)
    scoring.score(model, lists, torch.float32, CPU)
    assert len(model.scores) == 4
