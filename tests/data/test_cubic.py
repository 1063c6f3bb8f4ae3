"""The artificial data of Burges et al. (2006)."""

import itertools

import numpy as np
import pytest

from directrank.data.cubic import Cubic, CubicSettings, generate, polynomial
from directrank.system.errors import ConfigError

SMALL = {"queries": {"train": 60, "vali": 20, "test": 30}, "documents_per_query": 20}


def test_default_is_the_papers_size():
    settings = CubicSettings()
    assert dict(settings.queries) == {"train": 10_000, "vali": 5_000, "test": 10_000}
    assert (settings.documents_per_query, settings.n_features) == (50, 50)


def test_shapes_ranges_and_ids():
    data = generate(SMALL)
    assert list(data) == ["train", "vali", "test"]
    ids = np.concatenate([lists.query_ids for lists in data.values()])
    assert (ids == np.arange(1, 111)).all()
    for split, count in SMALL["queries"].items():
        lists = data[split]
        assert lists.features.shape == (count * 20, 50)
        assert lists.features.dtype == lists.labels.dtype == np.float32
        assert lists.offsets.dtype == lists.query_ids.dtype == np.int64
        assert (lists.lengths == 20).all()
        assert -1 <= lists.features.min() < -0.99 < 0.99 < lists.features.max() <= 1
    assert abs(data["train"].features.mean()) < 0.01


def test_label_shares_are_the_quantiles_asked_for():
    labels = np.concatenate([lists.labels for lists in generate(SMALL).values()])
    shares = np.bincount(labels.astype(int), minlength=5) / len(labels)
    assert np.allclose(shares, CubicSettings().label_shares, atol=1 / len(labels) + 1e-9)


def test_cuts_are_global_so_queries_differ_in_relevant_documents():
    counts = generate(SMALL)["train"].relevant_counts()
    assert counts.min() < counts.max()


def test_cuts_from_train_use_train_only():
    train = generate({**SMALL, "quantiles": "train"})["train"].labels
    assert np.allclose(
        np.bincount(train.astype(int), minlength=5) / len(train),
        CubicSettings().label_shares,
        atol=1 / len(train) + 1e-9,
    )


def test_labels_are_monotone_in_the_polynomial():
    settings = CubicSettings.from_mapping(SMALL)
    lists = generate(settings)["train"]
    values = polynomial(settings)(lists.features.astype(np.float64))
    order = np.argsort(values)
    # float32 features move a value by about 1e-6, so only neighbours at a cut may change places.
    assert np.count_nonzero(np.diff(lists.labels[order]) < 0) <= 2


@pytest.mark.parametrize("weighting", ["monomial", "symmetric"])
def test_polynomial_is_the_sum_over_all_monomials(weighting):
    stream = np.random.default_rng(3)
    cubic = Cubic.draw(4, (-1.0, 1.0), weighting, stream)
    x = stream.uniform(-1, 1, size=(70, 4))
    expected = x @ cubic.linear
    for i, j in itertools.combinations_with_replacement(range(4), 2):
        expected += cubic.quadratic[i, j] * x[:, i] * x[:, j]
    for i, j, k in itertools.combinations_with_replacement(range(4), 3):
        expected += cubic.cubic[i, j, k] * x[:, i] * x[:, j] * x[:, k]
    assert np.allclose(cubic(x), expected, atol=1e-13)


def test_every_monomial_has_a_coefficient_in_range():
    cubic = Cubic.draw(6, (-1.0, 1.0), "monomial", np.random.default_rng(0))
    assert np.count_nonzero(cubic.quadratic) == 6 * 7 // 2
    assert np.count_nonzero(cubic.cubic) == 6 * 7 * 8 // 6
    for part in (cubic.linear, cubic.quadratic, cubic.cubic):
        assert np.abs(part).max() <= 1


def test_symmetric_reading_counts_permutations():
    one = Cubic.draw(4, (-1.0, 1.0), "monomial", np.random.default_rng(0))
    two = Cubic.draw(4, (-1.0, 1.0), "symmetric", np.random.default_rng(0))
    assert two.cubic[0, 1, 2] == 6 * one.cubic[0, 1, 2]
    assert two.cubic[0, 0, 2] == 3 * one.cubic[0, 0, 2]
    assert two.cubic[1, 2, 2] == 3 * one.cubic[1, 2, 2]
    assert two.cubic[3, 3, 3] == one.cubic[3, 3, 3]
    assert two.quadratic[0, 1] == 2 * one.quadratic[0, 1]
    assert two.quadratic[1, 1] == one.quadratic[1, 1]


def test_a_value_depends_on_its_row_only():
    cubic = Cubic.draw(50, (-1.0, 1.0), "monomial", np.random.default_rng(1))
    x = np.random.default_rng(2).uniform(-1, 1, size=(200, 50))
    whole = cubic(x)
    assert (np.concatenate([cubic(x[:7]), cubic(x[7:130]), cubic(x[130:])]) == whole).all()


def test_chunks_of_the_drawing_leave_no_trace(monkeypatch):
    from directrank.data import cubic as module

    whole = generate(SMALL)["train"]
    draw = module._draw_split
    monkeypatch.setattr(module, "_draw_split", lambda *given: draw(*given, chunk=64))
    pieces = generate(SMALL)["train"]
    assert (pieces.features == whole.features).all()
    assert (pieces.labels == whole.labels).all()


def test_same_seed_same_data_other_seed_other_data():
    first, again = generate(SMALL)["test"], generate(SMALL)["test"]
    other = generate({**SMALL, "seed": 1})["test"]
    assert (first.features == again.features).all()
    assert (first.labels == again.labels).all()
    assert (first.features != other.features).mean() > 0.99


def test_queries_do_not_depend_on_how_many_there_are():
    few = generate({**SMALL, "queries": {"train": 10}})["train"]
    assert (few.features == generate(SMALL)["train"].features[: 10 * 20]).all()


@pytest.mark.parametrize("length", [4, 512])
def test_list_lengths_of_the_timing_figure(length):
    data = generate({"queries": {"train": 5}, "documents_per_query": length})["train"]
    assert data.n_documents == 5 * length


def test_noise_changes_labels_but_no_features():
    clean, noisy = generate(SMALL)["train"], generate({**SMALL, "noise": 1.0})["train"]
    assert (clean.features == noisy.features).all()
    assert 0.2 < (clean.labels != noisy.labels).mean() < 0.8


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"quries": {}}, "did you mean 'queries'"),
        ({"queries": {"training": 5}}, "use the splits"),
        ({"queries": {"train": 0}}, "each with 1 or more"),
        ({"documents_per_query": 0}, "at least 1"),
        ({"label_shares": [0.5, 0.4]}, "shares of 1"),
        ({"feature_range": [1, -1]}, "increasing"),
        ({"coefficients": "both"}, "one of: monomial, symmetric"),
        ({"quantiles": "train", "queries": {"test": 5}}, "need a training split"),
        ({"noise": -1}, "must not be negative"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings, said):
    with pytest.raises(ConfigError, match=said):
        generate(settings)
