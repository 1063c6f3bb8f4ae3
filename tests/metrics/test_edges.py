"""What metrics do with values that no ranking has: each is right, or one error with its remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from directrank import metrics
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.errors import ConfigError, DirectrankError

NAN, INF = float("nan"), float("inf")

SCORES = torch.tensor([[0.3, -0.2, 1.0, 0.5], [0.9, 0.1, 0.4, 0.0]])
LABELS = torch.tensor([[2.0, 0.0, 1.0, 1.0], [0.0, 2.0, 1.0, 0.0]])
MASK = torch.tensor([[True] * 4, [True, True, True, False]])

#: Metrics with a cut-off and rules for ties.
RANKING = [name for name in metrics.REGISTRY if name not in metrics.CORRELATIONS]

every_metric = pytest.mark.parametrize("name", metrics.REGISTRY)
every_ranking_metric = pytest.mark.parametrize("name", RANKING)


def evaluated(name, *arguments, **options):
    """The same by ``metrics.evaluate``."""
    (value,) = metrics.evaluate([{"name": name, **options}], *arguments).values()
    return value


@every_metric
def test_scores_of_nan_are_an_error(name):
    """They would rank first, and a model that diverged would be perfect."""
    spoiled = SCORES.clone()
    spoiled[1, 1] = NAN
    for call in (
        lambda: metrics.get(name)(spoiled, LABELS, MASK),
        lambda: metrics.get(name)(spoiled[MASK], LABELS[MASK], lengths=[4, 3]),
        lambda: evaluated(name, spoiled, LABELS, MASK),
        lambda: metrics.ndcg(spoiled, LABELS, MASK, ties="expected"),
    ):
        with pytest.raises(DirectrankError, match="a score is NaN"):
            call()


@every_metric
def test_masked_scores_and_labels_may_be_anything(name):
    expected = metrics.get(name)(SCORES, LABELS, MASK)
    for content in (NAN, INF, -1.0, 1e6):
        spoiled = (values.masked_fill(~MASK, content) for values in (SCORES, LABELS))
        assert torch.equal(metrics.get(name)(*spoiled, MASK), expected)


@every_ranking_metric
@pytest.mark.parametrize("ties", ["stable", "expected", "optimistic", "pessimistic"])
def test_infinite_scores_are_ranked(name, ties):
    """Also before padding, and as equals of each other."""
    infinite = torch.tensor([[1.0, INF, -INF, 0.0], [INF, -INF, -INF, 0.0]])
    finite = torch.tensor([[1.0, 2.0, -1.0, 0.0], [2.0, -2.0, -2.0, 0.0]])
    value = metrics.get(name)(infinite, LABELS, MASK, ties=ties)
    assert torch.equal(value, metrics.get(name)(finite, LABELS, MASK, ties=ties))


@every_metric
def test_labels_below_0_are_an_error_that_names_the_mask(name):
    padded = LABELS.masked_fill(~MASK, -1.0)
    with pytest.raises(DirectrankError, match="give mask=labels >= 0"):
        metrics.get(name)(SCORES, padded)
    with pytest.raises(DirectrankError, match="give mask=labels >= 0"):
        evaluated(name, SCORES, padded)
    assert torch.equal(
        metrics.get(name)(SCORES, padded, padded >= 0), metrics.get(name)(SCORES, LABELS, MASK)
    )


@every_metric
@pytest.mark.parametrize("label", [NAN, INF])
def test_a_label_that_is_not_finite_is_an_error(name, label):
    """As NaN the query would be dropped by ``nanmean``."""
    spoiled = LABELS.clone()
    spoiled[0, 1] = label
    with pytest.raises(DirectrankError, match="a label is NaN or infinite"):
        metrics.get(name)(SCORES, spoiled, MASK)


@every_ranking_metric
@pytest.mark.parametrize("k", [-1, 0, True, 2.5, 2.0, "2", NAN, np.float64(2)])
def test_a_cutoff_that_is_no_whole_number_from_1_is_an_error(name, k):
    message = "k must be a whole number, 1 or more, or None"
    with pytest.raises(ConfigError, match=message):
        metrics.get(name)(SCORES, LABELS, MASK, k=k)
    with pytest.raises(ConfigError, match=message):
        metrics.get(name)(SCORES, LABELS, MASK, k)
    with pytest.raises(ConfigError, match=message):
        evaluated(name, SCORES, LABELS, MASK, k=k)


@every_ranking_metric
def test_whole_numbers_of_numpy_are_cutoffs(name):
    expected = metrics.get(name)(SCORES, LABELS, MASK, k=2)
    for k in (np.int32(2), torch.tensor(2)):
        assert torch.equal(metrics.get(name)(SCORES, LABELS, MASK, k=k), expected)


@pytest.mark.parametrize("name", ["err", "nerr"])
def test_a_label_above_the_largest_of_the_scale_is_an_error(name):
    """ERR would be above 1."""
    with pytest.raises(DirectrankError, match="a label is 2, above max_label 1"):
        metrics.get(name)(SCORES, LABELS, MASK, max_label=1)
    with pytest.raises(DirectrankError, match="above max_label 1"):
        evaluated(name, SCORES, LABELS, MASK, max_label=1)
    assert metrics.get(name)(SCORES, LABELS, MASK, max_label=2).le(1).all()
    assert metrics.get(name)(SCORES, LABELS, MASK, max_label=1000).isfinite().all()


@every_metric
@pytest.mark.parametrize("label", [200.0, 1000.0, 1330.0])
def test_large_labels_are_right_or_one_error_never_nan(name, label):
    """MQ2008-list has labels up to 1330."""
    labels = LABELS.clone()
    labels[0, 0] = label
    if name in ("ndcg", "dcg") and label > 1024:
        with pytest.raises(DirectrankError, match='choose gain="linear"'):
            metrics.get(name)(SCORES, labels, MASK)
        assert metrics.get(name)(SCORES, labels, MASK, gain="linear").isfinite().all()
    else:
        assert metrics.get(name)(SCORES, labels, MASK).isfinite().all()


@every_metric
def test_arrays_frames_and_lists_give_the_values_of_tensors(name):
    expected = metrics.get(name)(SCORES, LABELS, MASK)
    for made in (np.asarray, pd.DataFrame, lambda values: values.tolist()):
        arrays = (made(values.numpy()) for values in (SCORES, LABELS, MASK))
        assert torch.equal(metrics.get(name)(*arrays), expected)
    whole = metrics.get(name)([[3, 2, 1]], [[0, 1, 2]])
    assert torch.equal(whole, metrics.get(name)(torch.tensor([[3.0, 2, 1]]), [[0, 1, 2]]))


@every_metric
def test_columns_of_a_frame_are_flat_lists(name):
    """With ids of text, and lengths as a frame's groups have them."""
    frame = pd.DataFrame({
        "query": ["b", "b", "b", "b", "a", "a", "a"],
        "score": SCORES[MASK].numpy(),
        "label": LABELS[MASK].numpy().astype(int),
    })  # fmt: skip
    expected = metrics.get(name)(SCORES, LABELS, MASK)
    for ids in (frame["query"], frame["query"].to_numpy(), frame["query"].tolist(),
                frame["query"].astype("category"), frame["query"].astype("string")):  # fmt: skip
        assert torch.equal(
            metrics.get(name)(frame["score"], frame["label"], query_ids=ids), expected
        )
    lengths = frame.groupby("query", sort=False).size()
    for sizes in (lengths, lengths.astype("Int64"), lengths.tolist(), torch.tensor([4, 3])):
        assert torch.equal(
            metrics.get(name)(frame["score"], frame["label"], lengths=sizes), expected
        )


@pytest.mark.parametrize(
    "ids",
    [
        [NAN, NAN, 2.0, 2.0],
        torch.tensor([1.0, 1.0, NAN, NAN]),
        ["a", "a", NAN, "b"],
        ["a", "a", None, "b"],
        pd.Series(["a", "a", pd.NA, "b"], dtype="string"),
        pd.Series([1, 1, pd.NA, 2], dtype="Int64"),
        pd.to_datetime(pd.Series(["2020-01-01", "2020-01-01", None, "2020-01-02"])),
    ],
)
def test_a_missing_id_is_an_error(ids):
    with pytest.raises(DirectrankError, match="query_ids has missing values"):
        metrics.ndcg(SCORES[0], LABELS[0], query_ids=ids)


def test_ids_of_different_types_are_different_queries():
    assert metrics.ndcg(SCORES[0], LABELS[0], query_ids=[1, 1, "1", "1"]).shape == (2,)


def test_a_query_in_two_places_is_an_error_for_text_as_well():
    with pytest.raises(DirectrankError, match="not contiguous"):
        metrics.ndcg(SCORES[0], LABELS[0], query_ids=["a", "b", "b", "a"])


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (SCORES, [["a", "b", "c", "d"]] * 2, "labels are .*, not numbers"),
        (SCORES, [[1, 0, None, 1]] * 2, "labels are object, not numbers"),
        ([[1.0, 2.0], [1.0]], [[1, 0], [0]], "scores are not an array"),
        (SCORES, {"a": 1}, "labels are object, not numbers"),
        ([SCORES[0].clone().requires_grad_()], LABELS[:1], "scores are not an array"),
    ],
)
def test_what_is_not_numbers_is_one_clear_error(scores, labels, message):
    with pytest.raises(DirectrankError, match=message):
        metrics.ndcg(scores, labels)


def test_arrays_in_other_orders_and_of_other_machines_are_read():
    scores, labels = SCORES.numpy(), LABELS.numpy()
    expected = metrics.ndcg(SCORES, LABELS)
    frozen = scores.copy()
    frozen.setflags(write=False)
    for array in (
        scores[:, ::-1][:, ::-1],
        scores.astype(">f4"),
        frozen,
        np.asfortranarray(scores),
    ):
        assert torch.equal(metrics.ndcg(array, labels), expected)


def test_the_metric_of_a_model_that_diverged_is_nan_on_packed_lists():
    lists = RankedLists(
        features=np.zeros((4, 1), np.float32),
        labels=np.array([1.0, 0.0, 2.0, 0.0]),
        offsets=np.array([0, 2, 4]),
        query_ids=np.array([1, 2]),
    )
    scores = torch.tensor([[2.0, 1.0, 1.0, 0.0], [NAN, NAN, 1.0, 0.0]])
    values = metrics_per_query(scores, lists, [{"name": "ndcg"}])["ndcg"]
    np.testing.assert_array_equal(values, [[1.0, 1.0], [NAN, 1.0]])
    with pytest.raises(ConfigError, match="k must be"):
        metrics_per_query(scores[0], lists, [{"name": "ndcg", "k": 0}])
