"""Scaling of features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from directrank.data import normalise
from directrank.lists.packed import RankedLists
from directrank.system.errors import ConfigError


def lists(seed: int, lengths: list[int], n_features: int = 6, scale: float = 50.0) -> RankedLists:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    features = rng.lognormal(1, 1, (int(offsets[-1]), n_features)) * scale
    features[:, 1] -= 300  # a column with negative values
    features[:, 2] = 7.3  # a constant one
    return RankedLists(
        features.astype(np.float32),
        rng.integers(0, 3, len(features)).astype(np.float32),
        offsets,
        np.arange(len(lengths)),
    )


@pytest.fixture
def splits() -> dict[str, RankedLists]:
    return {
        "train": lists(0, [5, 1, 30, 2]),
        "vali": lists(1, [4, 4]),
        "test": lists(2, [9, 1, 3]),
    }


def per_query(part: RankedLists, scaler) -> np.ndarray:
    return np.concatenate(
        [
            scaler.fit_transform(part.features[start:stop].astype(np.float64))
            for start, stop in zip(part.offsets[:-1], part.offsets[1:], strict=True)
        ]
    )


@pytest.fixture(params=[1, 7, 1 << 14])
def _any_block_size(request, monkeypatch):
    monkeypatch.setattr(normalise, "ROWS", request.param)


@pytest.mark.usefixtures("_any_block_size")
@pytest.mark.parametrize(
    ("name", "scaler"), [("query_zscore", StandardScaler()), ("query_minmax", MinMaxScaler())]
)
def test_per_query_scaling_equals_scikit_learn_query_by_query(splits, name, scaler):
    scaled = normalise.apply({"name": name}, splits)
    for split, part in splits.items():
        expected = per_query(part, scaler)
        np.testing.assert_allclose(scaled[split].features, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("_any_block_size")
def test_standardise_uses_the_training_split_alone(splits):
    scaled = normalise.apply({"name": "standardise", "epsilon": 0.0}, splits)
    train = splits["train"].features.astype(np.float64)
    deviation = train.std(axis=0)
    for split, part in splits.items():
        expected = (part.features - train.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
        np.testing.assert_allclose(scaled[split].features, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("_any_block_size")
def test_log_standardise_as_pobrotyn2021(splits):
    settings = {"name": "log_standardise", "negate": [4], "without_log": [5]}
    scaled = normalise.apply(settings, splits)

    def prepared(part):
        x = part.features.astype(np.float64)
        x[:, 4] *= -1  # becomes negative, so it is not logged
        for column in (0, 2, 3):
            x[:, column] = np.log(x[:, column] + 0.01)
        return x

    train = prepared(splits["train"])
    for split, part in splits.items():
        expected = (prepared(part) - train.mean(axis=0)) / (train.std(axis=0) + 1e-6)
        np.testing.assert_allclose(scaled[split].features, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("_any_block_size")
def test_signed_log_standardise_logs_skewed_columns_only(splits):
    rng = np.random.default_rng(3)
    for part in splits.values():
        part.features[:, 0] = rng.normal(size=len(part.labels))  # not skewed
        part.features[:, 3] = -(rng.random(len(part.labels)))
    splits["train"].features[0, 3] = 1.797e30  # clipped, then very skewed
    scaled = normalise.apply({"name": "signed_log_standardise"}, splits)
    train = np.clip(splits["train"].features.astype(np.float64), -1e6, 1e6)
    deviation = train.std(axis=0)
    z = (train - train.mean(axis=0)) / np.where(deviation > 1e-9, deviation, 1)
    skewed = (z**3).mean(axis=0) > 2
    assert skewed[3]
    assert not skewed[0]

    def prepared(part):
        x = np.clip(part.features.astype(np.float64), -1e6, 1e6)
        return np.where(skewed, np.sign(x) * np.log1p(np.abs(x)), x)

    base = prepared(splits["train"])
    for split, part in splits.items():
        expected = (prepared(part) - base.mean(axis=0)) / (base.std(axis=0) + 1e-6)
        columns = [0, 1, 3, 4, 5]
        np.testing.assert_allclose(
            scaled[split].features[:, columns], expected[:, columns], rtol=1e-4, atol=1e-5
        )


def test_what_is_constant_becomes_zero(splits):
    for name in ("query_zscore", "query_minmax", "standardise", "signed_log_standardise"):
        scaled = normalise.apply({"name": name}, splits)
        for part in scaled.values():
            assert (part.features[:, 2] == 0).all(), name
            assert np.isfinite(part.features).all()
    one = normalise.apply({"name": "query_zscore"}, splits)["train"]
    assert (one.features[5] == 0).all()  # the only document of its query


def test_large_offsets_do_not_spoil_the_variance():
    part = lists(0, [50], 3)
    part.features[:, 0] = 1e6 + np.arange(50) / 8
    scaled = normalise.apply({"name": "query_zscore"}, {"train": part})["train"].features
    assert scaled[:, 0].std() == pytest.approx(1, abs=1e-5)


def test_none_gives_the_originals_and_clip_limits_values(splits):
    same = normalise.apply({"name": "none"}, splits)
    assert all(same[name] is part for name, part in splits.items())
    clipped = normalise.apply({"name": "none", "clip": 20}, splits)["test"].features
    np.testing.assert_array_equal(clipped, np.clip(splits["test"].features, -20, 20))


def test_originals_are_not_changed_and_the_rest_is_shared(splits):
    before = {name: part.features.copy() for name, part in splits.items()}
    for name in normalise.NORMALISATIONS:
        extra = {"negate": [0], "without_log": []} if name == "log_standardise" else {}
        scaled = normalise.apply({"name": name, **extra}, splits)
        for split, part in splits.items():
            np.testing.assert_array_equal(part.features, before[split])
            assert scaled[split].labels is part.labels
            assert scaled[split].features.dtype == np.float32


def test_read_only_features_can_be_scaled(splits):
    for part in splits.values():
        part.features.setflags(write=False)
    for name in ("query_zscore", "standardise", "signed_log_standardise"):
        normalise.apply({"name": name}, splits)


def test_default_columns_are_those_of_web30k():
    assert (*range(110, 121), 123, 124) == normalise.MSLR_NEGATED
    assert {5, 6, 7, 8, 9, 15, 19, 57, 58, 62, 75, 79, 85, 121, 122, 127, 129, 130} | set(
        range(95, 105)
    ) == set(normalise.MSLR_WITHOUT_LOG)


def test_what_cannot_be_meant_is_a_configuration_error(splits):
    with pytest.raises(ConfigError, match="did you mean 'query_zscore'"):
        normalise.apply({"name": "query_zscor"}, splits)
    with pytest.raises(ConfigError, match="has no setting 'epsilom'"):
        normalise.apply({"name": "standardise", "epsilom": 1}, splits)
    with pytest.raises(ConfigError, match="has no setting 'splits'"):
        normalise.apply({"name": "standardise", "splits": 1}, splits)
    with pytest.raises(ConfigError, match="no column 110 of 6"):
        normalise.apply({"name": "log_standardise"}, splits)
    with pytest.raises(ConfigError, match="unknown normalisation 'None'"):
        normalise.check({})
