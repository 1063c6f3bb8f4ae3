"""A scorer in a file."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from directrank import models
from directrank.models import scorer as module
from directrank.models.scorer import Scorer
from directrank.system.errors import DataError

SETTINGS = [
    {"name": "linear", "bias": True},
    {"name": "two_layer", "hidden": 4},
    {"name": "tower", "hidden": [6]},
    {"name": "feed_forward", "activation": "relu", "output_activation": True, "hidden": [6]},
    {"name": "context", "width": 8, "blocks": 1, "inner": 8},
]


def made(settings: dict) -> Scorer:
    """A scorer of five features with random weights."""
    network = models.build(settings, 5, [torch.Generator().manual_seed(3)])
    return Scorer(settings, network.state_dict(), np.arange(5.0), np.array([2.0, 1, 4, 1, 1]))


@pytest.fixture
def features() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(23, 5))


def test_every_scorer_is_tried():
    assert {settings["name"] for settings in SETTINGS} == set(models.REGISTRY)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings["name"])
def test_a_loaded_scorer_scores_scaled_features_as_its_network(settings, features, tmp_path):
    scorer = made(settings)
    scorer.save(tmp_path / "scorer.npz")
    again = Scorer.load(tmp_path / "scorer.npz")
    lengths = np.array([10, 1, 12])
    scaled = ((features - np.arange(5)) / [2, 1, 4, 1, 1]).astype(np.float32)
    with torch.no_grad():
        expected = scorer.network(torch.from_numpy(scaled)[None], None, lengths[None])[0].numpy()
    np.testing.assert_array_equal(again(features, lengths), expected)
    assert again.sees_lists == (settings["name"] in ("feed_forward", "context"))
    if again.sees_lists:
        with pytest.raises(DataError, match="scores the documents of a query together"):
            again(features)
    else:
        np.testing.assert_array_equal(again(features), expected)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings["name"])
def test_blocks_of_queries_give_the_same_scores(settings, features, monkeypatch):
    scorer, lengths = made(settings), np.array([10, 1, 12])
    whole = scorer(features, lengths)
    monkeypatch.setattr(module, "BLOCK", 11)
    np.testing.assert_allclose(scorer(features, lengths), whole, rtol=1e-5, atol=1e-6)


def test_names_and_notes_are_kept_and_equal_scorers_give_equal_files(tmp_path):
    scorer = made(SETTINGS[0])
    scorer.features, scorer.about = ["ä", "b", "c", "d", "e"], {"loss": "lambdarank"}
    for name in ("one.npz", "other"):
        scorer.save(tmp_path / name)
    again = Scorer.load(tmp_path / "other")
    assert (again.features, again.about) == (scorer.features, scorer.about)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other").read_bytes()


def test_what_does_not_fit_is_one_error(features, tmp_path):
    scorer = made(SETTINGS[2])
    with pytest.raises(DataError, match=r"must be \[documents, 5\]"):
        scorer(features[:, :4])
    with pytest.raises(DataError, match="the queries have 22 documents, but there are 23"):
        scorer(features, np.array([10, 12]))
    scorer.settings = {"name": "tower", "hidden": [7]}
    del scorer.network
    with pytest.raises(DataError, match="not the weights of a model 'tower' of 5 features"):
        scorer(features)


def test_what_is_no_scorer_is_one_error(tmp_path):
    (tmp_path / "text").write_text("nothing")
    np.savez(tmp_path / "other.npz", a=np.ones(2))
    np.savez(tmp_path / "pickled.npz", about=np.array([{}], dtype=object))
    for name in ("text", "other.npz", "pickled.npz"):
        with pytest.raises(DataError, match="not a saved scorer"):
            Scorer.load(tmp_path / name)
    with pytest.raises(DataError, match="no such file"):
        Scorer.load(tmp_path / "absent.npz")


def test_a_file_of_a_later_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "VERSION", 2)
    made(SETTINGS[0]).save(tmp_path / "later.npz")
    monkeypatch.undo()
    with pytest.raises(DataError, match="version 2 of the format, not 1"):
        Scorer.load(tmp_path / "later.npz")
