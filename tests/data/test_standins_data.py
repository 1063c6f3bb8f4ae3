"""Stand-ins have the shape of the real sets and are reproducible query by query."""

import numpy as np
import pytest

from directrank.data import standins
from directrank.system.errors import ConfigError

#: columns, label levels, share of empty queries, mean documents per query in the demo
SHAPES = {
    "web30k_standin": (136, 5, 0.031, 60),
    "web10k_standin": (136, 5, 0.031, 60),
    "yahoo1_standin": (519, 5, 0.012, 23.7),
    "istella_standin": (220, 5, 0.0015, 100),
    "td2003_standin": (64, 2, 0.0, 1000),
    "td2004_standin": (64, 2, 0.0, 1000),
    "mq2007_standin": (46, 3, 0.14, 41.1),
}


@pytest.fixture(scope="module", params=sorted(SHAPES))
def made(request):
    return request.param, standins.generate(request.param)


def _all(data, what):
    return np.concatenate([getattr(lists, what) for lists in data.values()])


def test_every_profile_is_tested():
    assert sorted(SHAPES) == standins.names()


def test_shape_and_types(made):
    name, data = made
    columns = SHAPES[name][0]
    assert list(data) == ["train", "vali", "test"]
    for lists in data.values():
        assert lists.features.shape == (lists.n_documents, columns)
        assert lists.labels.shape == (lists.n_documents,)
        assert lists.features.dtype == lists.labels.dtype == np.float32
        assert lists.offsets.dtype == lists.query_ids.dtype == np.int64
        assert np.isfinite(lists.features).all()
        assert lists.lengths.min() >= 1
    ids = _all(data, "query_ids")
    assert (ids == np.arange(1, len(ids) + 1)).all()


def test_label_shares_follow_the_profile(made):
    name, data = made
    labels = _all(data, "labels")
    shares = np.array(standins.profile(name)["label_shares"])
    assert set(np.unique(labels)) == set(range(SHAPES[name][1]))
    drawn = np.bincount(labels.astype(int)) / len(labels)
    assert np.abs(drawn - shares).max() < 0.035
    assert (np.abs(np.log(drawn / shares)) < np.log(2)).all()


def test_empty_queries_come_at_the_real_rate(made):
    name, data = made
    empty = np.concatenate([lists.relevant_counts() == 0 for lists in data.values()])
    rate = SHAPES[name][2]
    assert abs(empty.mean() - rate) <= 3.5 * np.sqrt(rate * (1 - rate) / len(empty))


def test_list_lengths_follow_the_profile(made):
    name, data = made
    lengths = _all(data, "lengths")
    assert abs(lengths.mean() / SHAPES[name][3] - 1) < 0.1
    assert lengths.max() <= standins.profile(name)["lists"]["maximum"]


def test_no_column_is_a_copy_of_the_label_or_ranks_alone(made):
    _, data = made
    lists = data["train"]
    labels = lists.labels - lists.labels.mean()
    columns = lists.features - lists.features.mean(axis=0)
    norms = np.linalg.norm(columns.astype(np.float64), axis=0) * np.linalg.norm(labels)
    correlations = np.abs(labels @ columns.astype(np.float64)) / np.where(norms > 0, norms, 1)
    assert correlations.max() < 0.6


def test_web30k_lists_reach_one_document_and_very_long():
    lengths = np.concatenate(
        [
            lists.lengths
            for lists in standins.generate_chunks(
                "web30k_standin",
                "train",
                {"queries": {"train": 3000}, "mean_length": 6, "max_length": 70},
            )
        ]
    )
    assert (lengths == 1).any()
    assert lengths.max() == 70


def test_kinds_of_web30k_columns():
    x = standins.generate("web30k_standin")["train"].features
    whole = [j for j in range(136) if (x[:, j] == np.round(x[:, j])).all()]
    # Counts, flags and facts are whole numbers: the same 40 columns as in MSLR.
    assert set(range(0, 5)) | set(range(10, 15)) | set(range(20, 35)) <= set(whole)
    assert set(range(95, 100)) <= set(whole)
    assert len(whole) == 40
    assert set(np.unique(x[:, 95:100])) == {0, 1}
    heavy = x[:, 127].astype(np.float64)
    assert heavy.max() > 1e4 * np.median(heavy[heavy > 0])


def test_query_columns_are_constant_within_queries():
    lists = standins.generate("web30k_standin")["test"]
    for begin, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
        assert (np.ptp(lists.features[begin:end, 15:20], axis=0) == 0).all()


def test_whole_document_is_the_sum_of_its_streams():
    x = standins.generate("web30k_standin")["test"].features.astype(np.float64)
    assert (x[:, 10:14].sum(axis=1) == x[:, 14]).all()  # stream lengths
    assert (x[:, 20:24].sum(axis=1) == x[:, 24]).all()  # occurrences of the query's terms


def test_yahoo_is_sparse_on_the_unit_interval():
    x = standins.generate("yahoo1_standin")["train"].features
    assert x.min() == 0
    assert x.max() == 1
    assert 0.3 < (x == 0).mean() < 0.7


def test_istella_has_huge_markers():
    x = standins.generate("istella_standin")["train"].features
    marked = (x == standins.HUGE).any(axis=0)
    assert 5 <= marked.sum() <= 20
    assert (x[:, marked] == standins.HUGE).any(axis=1).mean() > 0.2


@pytest.mark.parametrize("name", ["td2003_standin", "td2004_standin"])
def test_topic_distillation_is_scaled_per_query_with_few_relevant(name):
    lists = standins.generate(name)["train"]
    for begin, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
        rows = lists.features[begin:end]
        assert (rows.min(axis=0) == 0).all()
        assert np.isin(rows.max(axis=0), (0, 1)).all()
    assert lists.relevant_counts().min() >= 1
    assert 5 < lists.relevant_counts().mean() < 30


def test_chunks_joined_equal_the_whole():
    settings = {"queries": {"train": 7, "vali": 23}, "mean_length": 20}
    whole = standins.generate("web30k_standin", settings)["vali"]
    parts = list(standins.generate_chunks("web30k_standin", "vali", settings, queries=5))
    assert [part.n_queries for part in parts] == [5, 5, 5, 5, 3]
    for what in ("features", "labels", "query_ids", "lengths"):
        assert (np.concatenate([getattr(p, what) for p in parts]) == getattr(whole, what)).all()


@pytest.mark.parametrize("name", ["web30k_standin", "yahoo1_standin"])
def test_a_query_does_not_depend_on_how_many_there_are(name):
    few = standins.generate(name, {"queries": {"train": 5}})["train"]
    more = standins.generate(name, {"queries": {"train": 40}})["train"]
    assert (few.features == more.features[: few.n_documents]).all()
    assert (few.labels == more.labels[: few.n_documents]).all()


def test_seed_changes_everything_and_noise_only_labels():
    small = {"queries": {"train": 30}}
    base = standins.generate("web30k_standin", small)["train"]
    again = standins.generate("web30k_standin", small)["train"]
    other = standins.generate("web30k_standin", {**small, "seed": 1})["train"]
    clean = standins.generate("web30k_standin", {**small, "noise": 0.0})["train"]
    assert (base.features == again.features).all()
    assert (base.labels == again.labels).all()
    assert base.n_documents != other.n_documents
    assert (base.features == clean.features).all()
    assert 0.1 < (base.labels != clean.labels).mean() < 0.7


def test_splits_share_no_document():
    data = standins.generate("web30k_standin", {"queries": {"train": 50, "test": 50}})
    train = {row.tobytes() for row in data["train"].features}
    assert not any(row.tobytes() in train for row in data["test"].features)


def test_full_is_the_size_of_the_real_set():
    assert standins.resolve("web30k_standin", {"queries": "full"}).queries == {
        "train": 18919,
        "vali": 6306,
        "test": 6306,
    }


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("web30_standin", {}, "did you mean 'web30k_standin'"),
        ("web30k_standin", {"nois": 1}, "did you mean 'noise'"),
        ("web30k_standin", {"queries": {"dev": 5}}, "train, vali, test"),
        ("web30k_standin", {"queries": "all"}, "'full'"),
        ("web30k_standin", {"queries": {"train": -1}}, "train, vali, test"),
        ("web30k_standin", {"mean_length": 0}, "at least 1"),
        ("web30k_standin", {"noise": -0.1}, "must not be negative"),
    ],
)
def test_what_cannot_be_meant_is_refused(name, settings, said):
    with pytest.raises(ConfigError, match=said):
        standins.generate(name, settings)
