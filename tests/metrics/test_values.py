"""Metrics by hand, by brute force, against published conventions and against other libraries."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from directrank import metrics
from directrank.lists.conventions import discount
from directrank.metrics.conventions import TIES
from directrank.system.errors import DirectrankError
from oracles import READS_MEASURES

#: Metrics with a cut-off and rules for ties.
NAMES = [name for name in metrics.REGISTRY if name not in metrics.CORRELATIONS]


def lists(B: int, L: int, *, seed: int = 0, ties: bool = False):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(B, L, generator=generator, dtype=torch.float64)
    if ties:
        scores = (scores * 2).round()
    labels = torch.multinomial(
        torch.tensor([0.55, 0.23, 0.13, 0.08, 0.01]), B * L, replacement=True, generator=generator
    ).view(B, L)
    mask = torch.rand(B, L, generator=generator) > 0.2
    labels[0] = 0
    return scores, labels.double(), mask


def ranked(scores, labels, mask, b):
    """The labels of list b in the order of the scores, ties as they stand."""
    s, y = scores[b][mask[b]], labels[b][mask[b]]
    return y[torch.sort(s, descending=True, stable=True).indices].tolist()


def by_hand(name: str, y: list[float], k: int | None) -> float:
    """The metrics as their definitions read, for one ranked list; 0 where there is nothing."""
    top = y[:k]
    relevant = sum(label > 0 for label in y)
    if relevant == 0:
        return 0.0
    if name == "ndcg":
        dcg = sum((2**g - 1) / math.log2(r + 2) for r, g in enumerate(top))
        best = sorted(y, reverse=True)[:k]
        return dcg / sum((2**g - 1) / math.log2(r + 2) for r, g in enumerate(best))
    if name == "dcg":
        return sum((2**g - 1) / math.log2(r + 2) for r, g in enumerate(top))
    if name == "recall":
        return sum(label > 0 for label in top) / relevant
    if name == "hit_rate":
        return float(any(label > 0 for label in top))
    if name == "precision":
        return sum(label > 0 for label in top) / (k or len(y))
    if name == "average_precision":
        hits, total = 0, 0.0
        for place, label in enumerate(top, 1):
            if label > 0:
                hits += 1
                total += hits / place
        return total / relevant
    if name == "reciprocal_rank":
        return next((1 / place for place, label in enumerate(top, 1) if label > 0), 0.0)

    def err(order):
        reach, total = 1.0, 0.0
        for place, label in enumerate(order[:k], 1):
            stop = (2**label - 1) / 2 ** max(y)
            total += reach * stop / place
            reach *= 1 - stop
        return total

    return err(y) if name == "err" else err(y) / err(sorted(y, reverse=True))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [None, 1, 3, 10, 100])
@pytest.mark.parametrize("ties", [False, True])
def test_metrics_equal_their_definitions(name, k, ties):
    scores, labels, mask = lists(30, 15, ties=ties)
    found = metrics.get(name)(scores, labels, mask, k, empty="zero")
    expected = [by_hand(name, ranked(scores, labels, mask, b), k) for b in range(30)]
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize(
    ("ties", "of_all_orders"),
    [("expected", torch.mean), ("optimistic", torch.amax), ("pessimistic", torch.amin)],
)
def test_rules_for_ties_are_the_mean_the_best_and_the_worst_of_all_orders(
    name, k, ties, of_all_orders
):
    generator = torch.Generator().manual_seed(4)
    metric = metrics.get(name)
    for n in (1, 2, 4, 6):
        scores = torch.randint(0, 3, (n,), generator=generator).double()
        labels = torch.randint(0, 4, (n,), generator=generator).double()
        orders = torch.tensor(list(itertools.permutations(range(n))))
        wanted = of_all_orders(metric(scores[orders], labels[orders], None, k, empty="zero"), 0)
        padded = torch.cat([scores, scores[:1]])[None], torch.cat([labels, labels[:1]])[None]
        mask = torch.tensor([[True] * n + [False]])
        found = metric(*padded, mask, k, empty="zero", ties=ties)
        assert found.item() == pytest.approx(wanted.item(), abs=1e-12)


@pytest.mark.parametrize("options", [{"min_label": 2.0}, {"denominator": "graded_ideal"}])
def test_optimistic_ties_are_the_best_order_under_other_conventions_too(options):
    generator = torch.Generator().manual_seed(9)
    scores = torch.randint(0, 2, (6,), generator=generator).double()
    labels = torch.tensor([0.0, 1, 2, 3, 1, 2], dtype=torch.float64)
    orders = torch.tensor(list(itertools.permutations(range(6))))
    values = metrics.average_precision(scores[orders], labels[orders], None, 3, **options)
    for ties, wanted in (("optimistic", values.max()), ("pessimistic", values.min())):
        found = metrics.average_precision(scores[None], labels[None], None, 3, ties=ties, **options)
        assert found.item() == pytest.approx(wanted.item(), abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_optimistic_ties_are_the_stable_sort_of_lists_sorted_by_label(name):
    scores, labels, mask = lists(20, 12, ties=True)
    order = torch.sort(-labels.masked_fill(~mask, -1), dim=1, stable=True).indices
    metric = metrics.get(name)
    for k in (None, 4):
        found = metric(scores, labels, mask, k, ties="optimistic")
        by_label = metric(*(tensor.gather(1, order) for tensor in (scores, labels, mask)), k)
        torch.testing.assert_close(found, by_label, equal_nan=True)
        assert (found >= metric(scores, labels, mask, k, ties="expected") - 1e-12)[1:].all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ties", TIES)
def test_ties_do_not_matter_where_there_are_none(name, ties):
    scores, labels, mask = lists(20, 12)
    metric = metrics.get(name)
    for k in (None, 4):
        torch.testing.assert_close(
            metric(scores, labels, mask, k, ties=ties),
            metric(scores, labels, mask, k),
            equal_nan=True,
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_constant_scorer_is_not_rewarded_for_lists_sorted_by_label(name):
    """On lists stored by falling label a stable sort gives it 1; the expectation does not."""
    labels = torch.tensor([[3.0, 2, 1, 0, 0, 0, 0, 0]])
    constant = torch.zeros(1, 8)
    metric = metrics.get(name)
    stable = metric(constant, labels, None, 1)
    expected = metric(constant, labels, None, 1, ties="expected")
    assert stable.item() == metric(labels, labels, None, 1).item()
    assert expected.item() < 0.7 * stable.item()


def test_sorting_is_stable_on_long_lists():
    """torch.sort permutes ties arbitrarily beyond 16 elements unless told not to."""
    labels = torch.zeros(1, 500)
    labels[0, 7] = 1
    assert metrics.reciprocal_rank(torch.zeros(1, 500), labels).item() == pytest.approx(1 / 8)


@pytest.mark.parametrize("name", NAMES)
def test_conventions_for_empty_queries(name):
    labels = torch.tensor([[0.0, 0, 0], [0, 2, 0]])
    scores = torch.tensor([[3.0, 2, 1], [3, 2, 1]])
    metric = metrics.get(name)
    excluded = metric(scores, labels)
    assert torch.isnan(excluded[0])
    assert not torch.isnan(excluded[1])
    assert metric(scores, labels, empty="zero")[0] == 0
    assert metric(scores, labels, empty="one")[0] == 1
    for empty in ("zero", "one"):
        assert metric(scores, labels, empty=empty)[1] == excluded[1]
    nothing = metric(scores, labels, torch.zeros(2, 3, dtype=torch.bool))
    assert torch.isnan(nothing).all(), "a list without documents is empty, too"


def test_means_under_the_three_conventions_convert_into_each_other():
    scores, labels, mask = lists(40, 10)
    labels[:7] = 0
    excluded = metrics.ndcg(scores, labels, mask, 5)
    N, E = 40, int(torch.isnan(excluded).sum())
    mean = excluded.nanmean()
    one = metrics.ndcg(scores, labels, mask, 5, empty="one").mean()
    zero = metrics.ndcg(scores, labels, mask, 5, empty="zero").mean()
    assert E >= 7
    assert one.item() == pytest.approx(((mean * (N - E) + E) / N).item())
    assert zero.item() == pytest.approx((mean * (N - E) / N).item())


def test_letor_discounts_are_those_of_the_perl_tool():
    ranks = torch.arange(1.0, 6.0, dtype=torch.float64)
    expected = [1, 1, 1 / math.log2(3), 0.5, 1 / math.log2(5)]
    assert discount("letor", ranks).tolist() == pytest.approx(expected)
    assert [round(v, 4) for v in expected[2:]] == [0.6309, 0.5, 0.4307]


def test_letor_ndcg_by_hand():
    labels = torch.tensor([[0.0, 2, 1, 0, 1]])
    scores = torch.tensor([[5.0, 4, 3, 2, 1]])
    dcg = 3 + 1 / math.log2(3) + 1 / math.log2(5)
    best = 3 + 1 + 1 / math.log2(3)
    assert metrics.ndcg(scores, labels, discount="letor").item() == pytest.approx(dcg / best)
    assert metrics.ndcg(scores, labels, k=1, discount="letor") == metrics.ndcg(scores, labels, k=1)


def test_mslr_tool_counts_labels_from_two_as_relevant():
    labels = torch.tensor([[1.0, 2, 0, 3]])
    scores = torch.tensor([[4.0, 3, 2, 1]])
    assert metrics.precision(scores, labels, k=2, min_label=2).item() == 0.5
    ap = metrics.average_precision(scores, labels, min_label=2)
    assert ap.item() == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert metrics.reciprocal_rank(scores, labels, min_label=2).item() == 0.5


def test_precision_of_a_short_list_counts_irrelevant_documents_beyond_its_end():
    labels = torch.tensor([[1.0, 1.0, 1.0]])
    mask = torch.tensor([[True, True, False]])
    assert metrics.precision(labels, labels, mask, 10).item() == pytest.approx(0.2)
    assert metrics.precision(labels, labels, mask).item() == 1.0


def test_the_three_denominators_of_average_precision_at_k():
    labels = torch.tensor([[0.0, 3, 1, 0, 2]])
    scores = torch.tensor([[5.0, 4, 3, 2, 1]])
    hits = 1 / 2 + 2 / 3  # relevant at places 2 and 3, cut at 3

    def ap(denominator):
        return metrics.average_precision(scores, labels, k=3, denominator=denominator).item()

    assert ap("R") == pytest.approx(hits / 3)
    assert ap("min(k,R)") == pytest.approx(hits / 3)
    assert metrics.average_precision(
        scores, labels, k=2, denominator="min(k,R)"
    ).item() == pytest.approx(0.5 / 2)
    assert ap("graded_ideal") == pytest.approx(hits / (3 + 2 + 1))
    perfect = metrics.average_precision(labels, labels, k=3, denominator="graded_ideal")
    assert perfect.item() == pytest.approx(3 / 6), "the best value is below one"


def test_only_the_graded_denominator_is_flat_in_k_on_lists_like_web30k():
    """Why Yu2020's MAP@k must be it: its values hardly change from k = 1 to k = 20."""
    generator = torch.Generator().manual_seed(0)
    shares = torch.tensor([0.52, 0.32, 0.13, 0.02, 0.01])
    labels = torch.multinomial(shares, 200 * 120, True, generator=generator).view(200, 120).double()
    scores = labels + 2 * torch.randn(200, 120, generator=generator, dtype=torch.float64)

    def spread(denominator):
        values = [
            metrics.average_precision(scores, labels, None, k, denominator=denominator).nanmean()
            for k in (1, 3, 5, 10, 20)
        ]
        return float(max(values) / min(values))

    assert spread("graded_ideal") < 1.35
    assert spread("R") > 5


def test_err_with_the_scale_of_the_data_set():
    labels = torch.tensor([[1.0, 2.0]])
    scores = torch.tensor([[2.0, 1.0]])
    expected = 1 / 16 + (15 / 16) * (3 / 16) / 2
    assert metrics.err(scores, labels, max_label=4).item() == pytest.approx(expected)
    own = 1 / 4 + (3 / 4) * (3 / 4) / 2
    assert metrics.err(scores, labels).item() == pytest.approx(own)


def test_nerr_values_printed_by_pt_ranking():
    """Labels [3, 2, 4] in this order, the largest label of the query: .4667, .5154, .6640."""
    scores, labels = torch.tensor([[3.0, 2, 1]]), torch.tensor([[3.0, 2, 4]])
    found = [metrics.nerr(scores, labels, k=k).item() for k in (1, 2, 3)]
    assert found == pytest.approx([0.4667, 0.5154, 0.6640], abs=5e-5)


def test_linear_gain():
    scores, labels = torch.tensor([[2.0, 1.0]]), torch.tensor([[1.0, 3.0]])
    expected = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert metrics.ndcg(scores, labels, gain="linear").item() == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ties", TIES)
def test_order_padding_and_content_of_padding_do_not_matter(name, ties):
    scores, labels, mask = lists(20, 11)
    metric = metrics.get(name)
    value = metric(scores, labels, mask, 4, ties=ties)
    order = torch.rand(20, 11, generator=torch.Generator().manual_seed(1)).argsort(1)
    moved = [tensor.gather(1, order) for tensor in (scores, labels, mask)]
    torch.testing.assert_close(metric(*moved, 4, ties=ties), value, equal_nan=True)
    spoiled = scores.masked_fill(~mask, float("nan")), labels.masked_fill(~mask, 9.0)
    torch.testing.assert_close(metric(*spoiled, mask, 4, ties=ties), value, equal_nan=True)
    wide = [torch.cat([t, t[:, :3]], 1) for t in (scores, labels)]
    wide_mask = torch.cat([mask, torch.zeros(20, 3, dtype=torch.bool)], 1)
    torch.testing.assert_close(metric(*wide, wide_mask, 4, ties=ties), value, equal_nan=True)
    alone = torch.cat([metric(scores[b : b + 1], labels[b : b + 1], mask[b : b + 1], 4, ties=ties)
                       for b in range(20)])  # fmt: skip
    torch.testing.assert_close(alone, value, equal_nan=True)


def test_documents_scored_minus_infinity_still_come_before_padding():
    scores = torch.tensor([[0.0, 1.0, float("-inf")]])
    labels = torch.tensor([[1.0, 0.0, 1.0]])
    mask = torch.tensor([[False, True, True]])
    assert metrics.reciprocal_rank(scores, labels, mask).item() == 0.5


def test_metrics_have_no_gradient_and_run_in_float64():
    scores = torch.randn(2, 5, requires_grad=True)
    for name in NAMES:
        value = metrics.get(name)(scores, torch.ones(2, 5))
        assert not value.requires_grad
        assert value.dtype == torch.float64


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("B", "L"), [(0, 4), (3, 0)])
@pytest.mark.parametrize("ties", TIES)
def test_empty_batches_and_lists_of_no_width_are_allowed(name, B, L, ties):
    value = metrics.get(name)(torch.zeros(B, L), torch.zeros(B, L), None, 3, ties=ties)
    assert value.shape == (B,)
    assert torch.isnan(value).all()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ndcg", {"discount": "ln"}),
        ("ndcg", {"gain": "exp"}),
        ("ndcg", {"empty": "skip"}),
        ("err", {"ties": "random"}),
        ("average_precision", {"denominator": "k"}),
    ],
)
def test_an_unknown_option_lists_the_known_ones(name, options):
    with pytest.raises(DirectrankError, match="choose one of"):
        metrics.get(name)(torch.zeros(1, 3), torch.ones(1, 3), **options)


@pytest.mark.parametrize("k", [1, 5, 10])
def test_ndcg_agrees_with_scikit_learn_ties_included(k):
    """scikit-learn averages over ties, as ``ties="expected"`` does; an empty query is 0 there."""
    from sklearn.metrics import ndcg_score

    for ties in (False, True):
        scores, labels, _ = lists(25, 20, seed=k, ties=ties)
        found = metrics.ndcg(scores, labels, None, k, ties="expected", empty="zero")
        expected = [
            ndcg_score([(2**y - 1).numpy()], [s.numpy()], k=k)
            for s, y in zip(scores, labels, strict=True)
        ]
        assert found.tolist() == pytest.approx(expected, abs=1e-6)


def test_average_precision_agrees_with_scikit_learn():
    from sklearn.metrics import average_precision_score

    scores, labels, _ = lists(25, 20)
    found = metrics.average_precision(scores, labels)
    for b in range(1, 25):
        expected = average_precision_score((labels[b] > 0).numpy(), scores[b].numpy())
        assert found[b].item() == pytest.approx(expected, abs=1e-6)


@READS_MEASURES
@pytest.mark.parametrize(
    ("text", "name", "k", "options"),
    [
        ("nDCG(gains={0:0,1:1,2:3,3:7,4:15})@10", "ndcg", 10, {}),
        ("nDCG@5", "ndcg", 5, {"gain": "linear"}),
        ("P@5", "precision", 5, {}),
        ("P(rel=2)@5", "precision", 5, {"min_label": 2}),
        ("AP", "average_precision", None, {}),
        ("AP@5", "average_precision", 5, {}),
        ("RR", "reciprocal_rank", None, {}),
        ("R@5", "recall", 5, {}),
        ("R(rel=2)@3", "recall", 3, {"min_label": 2}),
        ("Success@1", "hit_rate", 1, {}),
        ("Success(rel=2)@4", "hit_rate", 4, {"min_label": 2}),
    ],
)  # fmt: skip
def test_metrics_agree_with_ir_measures(text, name, k, options):
    import ir_measures
    from ir_measures import Qrel, ScoredDoc

    scores, labels, mask = lists(25, 18, seed=9)
    qrels, run = [], []
    for b, i in itertools.product(range(25), range(18)):
        if mask[b, i]:
            qrels.append(Qrel(f"q{b}", f"d{i}", int(labels[b, i])))
            run.append(ScoredDoc(f"q{b}", f"d{i}", float(scores[b, i])))
    measure = ir_measures.parse_measure(text)
    expected = {m.query_id: m.value for m in ir_measures.iter_calc([measure], qrels, run)}
    found = metrics.get(name)(scores, labels, mask, k, empty="zero", **options)
    for b in range(25):
        assert found[b].item() == pytest.approx(expected[f"q{b}"], abs=1e-6)


def test_ndcg_agrees_with_lightgbms_own_evaluation():
    """LightGBM breaks ties by order and counts an empty query as 1."""
    import lightgbm

    scores, labels, mask = lists(40, 20, seed=12, ties=True)
    lengths = mask.sum(1)
    keep = lengths > 0
    flat_scores = scores[mask].numpy()
    data = lightgbm.Dataset(
        np.zeros((len(flat_scores), 1)),
        label=labels[mask].numpy(),
        group=lengths[keep].numpy(),
        init_score=flat_scores,
        free_raw_data=False,
    )
    seen: dict = {}
    lightgbm.train(
        {"objective": "lambdarank", "metric": "ndcg", "eval_at": [1, 5, 10], "verbosity": -1,
         "num_threads": 1, "feature_pre_filter": False},
        data, num_boost_round=1, valid_sets=[data], valid_names=["here"],
        callbacks=[lightgbm.record_evaluation(seen)],
    )  # fmt: skip
    for k in (1, 5, 10):
        expected = seen["here"][f"ndcg@{k}"][0]
        found = metrics.ndcg(scores, labels, mask, k, empty="one")[keep].mean().item()
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [None, 2])
def test_the_order_by_label_is_the_best_of_all_permutations(name, k):
    generator = torch.Generator().manual_seed(7)
    metric = metrics.get(name)
    for n in (1, 3, 6):
        labels = torch.randint(0, 4, (n,), generator=generator).double()
        labels[0] = 2
        orders = torch.tensor(list(itertools.permutations(range(n)))).double()
        every = metric(orders, labels.expand_as(orders), None, k)
        best = metric(labels[None], labels[None], None, k)
        assert every.max().item() == pytest.approx(best.item())
        if name in ("ndcg", "nerr"):
            assert best.item() == pytest.approx(1.0)


@pytest.mark.parametrize("ties", ["stable", "optimistic", "pessimistic"])
def test_a_hit_is_one_and_not_nearly_one(ties):
    generator = torch.Generator().manual_seed(1)
    scores, chance = torch.rand(2, 64, 200, generator=generator)
    labels = (chance < 0.01).double()
    for k in (7, 100, None):
        hits = metrics.hit_rate(scores, labels, k=k, ties=ties)
        assert set(hits.nan_to_num().tolist()) == {0.0, 1.0}
