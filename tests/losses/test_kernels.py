"""Every kernel equals the formula in whose place it is called: value and gradient."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from directrank import kernels, losses
from directrank.kernels import compiling, dispatch, threads
from directrank.kernels.dispatch import find
from directrank.kernels.neural_sort import LONG
from directrank.relaxations.neural_sort import sorted_expectation
from directrank.relaxations.sigmoid import soft_counts
from directrank.relaxations.twin import twin_ranks
from directrank.system.seeds import torch_stream
from losses_cases import DRAWN, LOSSES, random_lists, value_and_gradient

SORTING = {"name": "neural_sort", "iterations": 7}

CASES = [
    *(
        ("composed", {"metric": {"name": metric, "k": k}, "relaxation": SORTING})
        for metric, k in (("average_precision", 5), ("err", None), ("reciprocal_rank", 3))
    ),
    ("composed", {"metric": {"name": "precision", "k": 4}, "relaxation": "neural_sort"}),
    ("composed", {"metric": "nerr", "relaxation": {"name": "rank_binomial", "sigma": 0.5}}),
    (
        "composed",
        {
            "metric": {"name": "ndcg", "gain": "linear", "discount": "letor", "k": 6},
            "relaxation": SORTING | {"rows_first": True},
        },
    ),
    ("composed", {"metric": {"name": "ndcg", "gain": "linear"}, "relaxation": "rank_binomial"}),
    ("composed", {"metric": {"name": "ndcg", "discount": "letor"}, "relaxation": "rank_binomial"}),
    ("approx_ndcg", {}),
    ("approx_ndcg", {"alpha": 300.0}),
    ("approx_ndcg", {"alpha": 0.1, "k": 4, "beta": 1.0, "discount": "letor", "gain": "linear"}),
    ("approx_ap", {"alpha": 3.0}),
    ("approx_ap", {"alpha": 50.0, "k": 5, "beta": 2.0}),
    ("approx_precision", {"k": 4, "beta": 3.0}),
    ("ranknet", {}),
    ("ranknet", {"k": 7, "sigma": 3.0, "pair_reduction": "mean"}),
    ("pairwise_hinge", {}),
    ("pairwise_hinge", {"margin": 0.3}),
    ("lambdarank", {}),
    ("lambdarank", {"k": 5, "sigma": 2.0}),
    ("lambdarank", {"k": 5, "cutoff": "either", "gain": "linear"}),
    ("listnet", {}),
    ("listmle", {}),
    ("softrank", {}),
    ("softrank", {"sigma": 0.2}),
    ("neural_ndcg", {}),
    ("neural_ndcg", {"iterations": 0, "k": 3}),
    ("neural_ndcg", {"iterations": 1, "tau": 0.3}),
    ("neural_ndcg", {"samples": 2}),
    ("neural_ndcg_transposed", {"iterations": 7}),
    ("neural_ndcg_transposed", {"iterations": 0}),
    ("neural_ndcg_transposed", {"iterations": 200, "tolerance": 1e-4, "tau": 4.0}),
    *(("twin_ndcg", {"gradient": kind, "alpha_b": 1.7}) for kind in ("type1", "type2", "type3")),
    ("twin_ap", {}),
    ("twin_ap", {"break_ties": False}),
    ("twin_precision", {"k": 4}),
    ("twin_nerr", {"gradient": "type2"}),
    *(("fast_soft_ndcg", {"regularisation": kind, "tau": 0.2}) for kind in ("l2", "entropic")),
    ("fast_soft_ndcg", {"k": 4, "beta": 2.0, "gain": "linear"}),
    ("lapsum_ndcg", {}),
    ("lapsum_ndcg", {"k": 4, "beta": 2.0}),
    ("composed", {"metric": {"name": "ndcg", "discount": "letor"}, "relaxation": "lapsum"}),
    ("composed", {"metric": "average_precision", "relaxation": "lapsum"}),
    ("composed", {"metric": {"name": "precision", "k": 4}, "relaxation": "fast_soft_rank"}),
    ("blackbox_ndcg", {}),
    ("blackbox_ndcg", {"k": 4, "lam": 60.0, "margin": 0.5}),
    (
        "composed",
        {"metric": {"name": "ndcg", "discount": "letor", "k": 5}, "relaxation": "blackbox"},
    ),
    ("diff_sort_ndcg", {}),
    ("diff_sort_ndcg", {"k": 4, "gain": "linear", "alpha": 3.0, "network": "odd_even"}),
    ("diff_sort_ndcg", {"distribution": "logistic"}),
    ("composed", {"metric": {"name": "ndcg", "discount": "letor"}, "relaxation": "diff_sort"}),
    ("soft_sort_ndcg", {}),
    ("soft_sort_ndcg", {"tau": 0.2, "k": 4, "gain": "linear"}),
    ("composed", {"metric": {"name": "ndcg", "discount": "letor"}, "relaxation": "soft_sort"}),
    ("smooth_ndcg", {"gain": "linear"}),
    ("smooth_ndcg", {"alpha": 30.0, "delta": 0.02, "k": 5}),
    ("pirank", {"tau": 1.0}),
    ("pirank", {"straight_through": False, "k": 5}),
    ("lambda_loss", {"scheme": "ndcg_loss1", "k": 7}),
    ("lambda_loss", {"scheme": "ndcg_loss2", "sigma": 3.0}),
    ("lambda_loss", {"scheme": "ndcg_loss2pp", "mu": 0.5, "gain": "linear"}),
    ("lambda_loss", {"scheme": "ndcg_loss2_at_k"}),
    ("lambda_loss", {"scheme": "ndcg_loss2_at_k", "k": 4, "sigma": 2.0}),
    ("lambda_loss", {"scheme": "ndcg_loss2_at_k", "k": 1, "gain": "linear"}),
    ("k_song", {}),
    ("k_song", {"k": 4, "margin": 0.3, "beta": 5.0}),
    ("xe_ndcg", {}),
    ("pl_rank", {"samples": 3}),
    ("pl_rank", {"samples": 3, "k": 4}),
    ("yeti_loss", {"samples": 3, "k": 4, "neighbours": 3}),
    ("stochastic_rank", {"samples": 3, "sigma": 0.4}),
    ("stochastic_rank", {"k": 4, "mu": 0.5}),
]


@pytest.fixture
def formula(monkeypatch):
    """A function that calls another one with the formulas alone."""

    def call(function, *arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr("directrank.kernels.dispatch.KERNELS", {})
            return function(*arguments, **options)

    return call


def found(name, scores, labels, mask, **options):
    torch.manual_seed(0)
    return value_and_gradient(losses.get(name), scores, labels, mask, **options)


def assert_same(compiled, plain, relative):
    """Equal but for rounding, which is to be seen beside the largest entries of a gradient."""
    torch.testing.assert_close(compiled[0], plain[0], rtol=relative, atol=relative)
    largest = float(plain[1].abs().max())
    torch.testing.assert_close(compiled[1], plain[1], rtol=0.0, atol=relative * (3 * largest + 0.1))


@pytest.mark.parametrize("L", [1, 2, 17, 83])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_kernels_equal_the_formulas(name, options, L, formula):
    for dtype, relative in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        scores, labels, mask = random_lists(6, L, dtype=dtype, seed=L)
        if dtype == torch.float32 and (options.get("alpha", 0) > 100 or options.get("tau", 1) < 1):
            relative = 1e-3  # scores that steep have no more digits
        compiled = found(name, scores, labels, mask, **options)
        plain = formula(found, name, scores, labels, mask, **options)
        assert_same(compiled, plain, relative)


def test_lists_too_long_to_keep_their_pairs_equal_the_formula(formula):
    # Over 1 << 16 pairs of each list with a gain.
    scores, labels, mask = random_lists(3, 500, seed=5)
    labels[0] += 1
    compiled = found("approx_ndcg", scores, labels, mask)
    plain = formula(found, "approx_ndcg", scores, labels, mask)
    assert_same(compiled, plain, 1e-10)


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("neural_ndcg", {"iterations": 10}),
        ("neural_ndcg", {"iterations": 3, "tau": 0.3, "k": 10}),
        ("neural_ndcg_transposed", {"iterations": 3}),
    ],
)
def test_sorted_long_lists_equal_the_formula(name, options, scale, formula):
    scores, labels, mask = random_lists(4, LONG + 40, seed=6, scale=scale)
    mask[2] = True
    scores[2, 100:300] = scores[2, 100:300].round()  # ties
    arguments = scores, labels, mask
    plain = formula(found, name, *arguments, **options)
    assert_same(found(name, *arguments, **options), plain, 1e-10)
    if scale <= 1:  # greater logits have no more digits in float32
        single = found(name, scores.float(), labels.float(), mask, **options)
        assert_same(tuple(part.double() for part in single), plain, 3e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("neural_ndcg", {"iterations": 3}),
        (
            "composed",
            {"metric": {"name": "average_precision"}, "relaxation": {"name": "neural_sort"}},
        ),
    ],
)
def test_a_long_list_in_a_batch_does_not_change_the_others(name, options, dtype):
    scores, labels, mask = random_lists(4, LONG + 1, seed=8)
    scores, labels = scores.to(dtype), labels.to(dtype)
    mask[0] = True
    short = torch.tensor([20, 150, LONG])
    mask[1:] = torch.arange(LONG + 1) < short[:, None]
    together = found(name, scores, labels, mask, **options)
    without = (part[1:, :LONG] for part in (scores, labels, mask))
    value, gradient = found(name, *without, **options)
    assert torch.equal(together[0][1:], value)
    assert torch.equal(together[1][1:, :LONG], gradient)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_score_of_a_sorted_long_list_that_is_not_finite_spoils_its_value(bad):
    scores, labels, mask = random_lists(4, LONG + 1)
    mask[:] = True
    scores[2, 5] = bad
    value, _ = found("neural_ndcg", scores, labels, mask)
    assert value.isfinite().tolist() == [True, True, False, True]


@pytest.mark.parametrize("scale", [30.0, 1e4])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_kernels_equal_the_formulas_far_apart(name, options, scale, formula):
    scores, labels, mask = random_lists(6, 23, seed=3, scale=scale)
    compiled = found(name, scores, labels, mask, **options)
    plain = formula(found, name, scores, labels, mask, **options)
    assert_same(compiled, plain, 1e-9)


@pytest.mark.parametrize(
    "name",
    ["approx_ndcg", "ranknet", "lambdarank", "twin_ndcg", "lambda_loss", "k_song", "pl_rank"],
)
def test_ties_and_fractional_labels_are_ordered_as_in_the_formula(name, formula):
    scores, labels, mask = random_lists(6, 30, seed=8)
    scores, labels = scores.round(), labels / 3
    compiled = found(name, scores, labels, mask)
    plain = formula(found, name, scores, labels, mask)
    assert_same(compiled, plain, 1e-10)


def test_a_gradient_is_right_where_a_sigmoid_has_lost_its_digits():
    """``σ - σ²`` is 0 in float32 from a gap of 17 on; the kernel's ``e / (1 + e)²`` is not."""
    for gap in (25.0, 40.0):
        scores = torch.tensor([[gap, 0.0]])
        _, gradient = value_and_gradient(
            losses.approx_ndcg, scores, torch.tensor([[1.0, 0.0]]), None, alpha=1.0
        )
        # dNDCG/dr = -1 / (4 ln 2) · 1/log2(2)² · 2 at rank 1; dr/ds = -e / (1 + e)².
        slope = -torch.exp(torch.tensor(-gap, dtype=torch.float64)) / (
            2 * torch.log(torch.tensor(2.0))
        )
        assert gradient[0, 0].item() == pytest.approx(slope.item(), rel=1e-4)
        assert gradient[0, 1].item() == -gradient[0, 0].item()


@pytest.mark.parametrize("name", LOSSES)
def test_the_number_of_threads_does_not_change_a_byte(name, monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    scores, labels, mask = random_lists(40, 31, dtype=torch.float32)
    before = torch.get_num_threads()
    results = []
    try:
        for number in (1, 2, 5):
            torch.set_num_threads(number)
            results.append(found(name, scores, labels, mask, **LOSSES[name]))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert torch.equal(other[0], results[0][0])
        assert torch.equal(other[1], results[0][1])


@pytest.mark.parametrize("name", ["approx_ndcg", "ranknet", "listnet", "listmle", "neural_ndcg"])
def test_what_is_not_a_number_stays_so_in_its_list_alone(name):
    scores, labels, mask = random_lists(6, 12)
    mask[:] = True
    labels[:, 0] = 2
    clean, _ = found(name, scores, labels, mask)
    for bad in (float("nan"), float("inf")):
        spoiled = scores.clone()
        spoiled[4, 5] = bad
        value, _ = found(name, spoiled, labels, mask)
        assert not torch.isfinite(value[4])
        others = torch.arange(6) != 4
        assert torch.equal(value[others], clean[others])


def test_softrank_of_a_score_that_is_not_a_number_is_none_either():
    scores, labels, mask = random_lists(6, 12)
    mask[:] = True
    clean, _ = found("softrank", scores, labels, mask)
    scores[4, 5] = float("nan")
    value, _ = found("softrank", scores, labels, mask)
    assert value.isnan().tolist() == [False] * 4 + [True, False]
    assert torch.equal(value[:4], clean[:4])


def test_softrank_keeps_its_digits_where_contests_are_nearly_decided(formula):
    """Both tails of the normal distribution, up to where float64 ends, from polynomials."""
    labels = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    for gap in (0.0, 1e-9, 0.3, 2.0, 6.0, 12.0, 30.0):
        for sign in (1, -1):
            scores = torch.tensor([[sign * gap, 0.0]], dtype=torch.float64)
            _, gradient = found("softrank", scores, labels, None)
            _, plain = formula(found, "softrank", scores, labels, None)
            torch.testing.assert_close(gradient, plain, rtol=1e-12, atol=1e-150)


def test_steepness_may_differ_by_list_and_may_want_a_gradient():
    scores, labels, mask = random_lists(6, 20)
    alpha = torch.tensor([[0.5], [1.0], [2.0], [10.0], [50.0], [300.0]], dtype=torch.float64)
    value, gradient = value_and_gradient(losses.approx_ndcg, scores, labels, mask, alpha=alpha)
    for b in range(6):
        one = value_and_gradient(
            losses.approx_ndcg, scores[b : b + 1], labels[b : b + 1], mask[b : b + 1],
            alpha=float(alpha[b]),
        )  # fmt: skip
        assert torch.equal(one[0][0], value[b])
        assert torch.equal(one[1][0], gradient[b])
    wanted = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda alpha: losses.approx_ndcg(scores, labels, mask, alpha=alpha), wanted
    )


def test_without_a_gradient_the_value_is_the_same():
    scores, labels, mask = random_lists(6, 20)
    for name in ("approx_ndcg", "neural_ndcg"):
        value, _ = value_and_gradient(losses.get(name), scores, labels, mask)
        assert torch.equal(losses.get(name)(scores, labels, mask), value)
        with torch.no_grad():
            assert torch.equal(losses.get(name)(scores.requires_grad_(), labels, mask), value)
        scores = scores.detach()


def test_tensors_need_not_be_contiguous():
    scores, labels, mask = random_lists(6, 20)
    for name in LOSSES:
        expected = found(name, scores, labels, mask, **LOSSES[name])
        turned = (tensor.t().contiguous().t() for tensor in (scores, labels, mask))
        value, gradient = found(name, *turned, **LOSSES[name])
        torch.testing.assert_close(value, expected[0])
        torch.testing.assert_close(gradient, expected[1])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_numbers_do_not_depend_on_where_compiled_code_comes_from(tmp_path):
    """Just compiled, read from disk, or after another kernel that shares parts with it.

    In processes of their own: forks of one that has imported PyTorch and nothing of numba.
    """
    code = """
import os, sys, torch
from directrank import losses
from losses_cases import random_lists, value_and_gradient
scores, labels, mask = random_lists(6, 83, seed=2)
for names in (["ranknet", "twin_ndcg"], ["ranknet", "twin_ndcg"], ["twin_ndcg", "ranknet"]):
    assert "numba" not in sys.modules
    child = os.fork()
    if child == 0:
        for name in names:
            found = value_and_gradient(losses.get(name), scores, labels, mask)
            print(name, *(tensor.numpy().tobytes().hex() for tensor in found), flush=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    helpers = os.pathsep.join([str(Path(__file__).parents[1] / "helpers"), *sys.path])
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": helpers},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    fresh, again, turned = printed[:2], printed[2:4], printed[4:]
    assert any(tmp_path.iterdir()), "compiled code was kept"
    assert again == fresh
    assert len(set(fresh)) == 2
    assert turned == fresh[::-1]


@pytest.mark.parametrize("lists", [1, 2, 7, 31, 128, 10_000])
@pytest.mark.parametrize("number", [1, 2, 5, 64])
def test_threads_take_every_list_once_the_longest_turns_first(lists, number, monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(threads, "_threads", number)
    turns: list[tuple[int, int]] = []
    threads.over_lists(lambda begin, end: turns.append((begin, end)), lists, lists)
    turns.sort()
    assert turns[0][0] == 0
    assert turns[-1][1] == lists
    assert all(one[1] == other[0] for one, other in pairwise(turns))
    sizes = [end - begin for begin, end in turns]
    assert sizes == sorted(sizes, reverse=True)
    if 1 < number <= lists:
        assert number <= len(turns) <= 32 * number
        assert sizes[-1] <= max(1, lists // (16 * number))


def test_a_kernel_is_compiled_even_where_it_cannot_be_kept(monkeypatch):
    import numba

    njit, asked = numba.njit, []

    def without_a_place(**options):
        asked.append(options.get("cache"))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr("directrank.system.compiling.njit", without_a_place)

    def double(x):
        return 2 * x

    assert compiling.compiled(double)(3) == 6
    assert asked == [True, None]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_process_makes_threads_of_its_own(monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    scores, labels, mask = random_lists(40, 31)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        expected = losses.approx_ndcg(scores, labels, mask)
        child = os.fork()
        if child == 0:
            same = torch.equal(losses.approx_ndcg(scores, labels, mask), expected)
            os._exit(0 if same else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        torch.set_num_threads(before)


#: Metrics that compiled loops take at once under twin-sigmoid ranks.
AT_EXACT_RANKS = [
    {"name": "ndcg"},
    {"name": "ndcg", "k": 4, "gain": "linear"},
    {"name": "precision"},
    {"name": "precision", "k": 5, "min_label": 2.0},
    {"name": "average_precision"},
    {"name": "average_precision", "k": 7},
    {"name": "nerr"},
    {"name": "nerr", "k": 10, "max_label": 4.0},
]


@pytest.mark.parametrize("L", [1, 2, 9, 33, 150])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("metric", AT_EXACT_RANKS, ids=repr)
def test_derivatives_by_exact_ranks_are_those_of_pytorch_to_the_last_bit(
    metric, dtype, L, monkeypatch
):
    loss = losses.compose(metric, "twin")
    scores, labels, mask = random_lists(5, L, dtype=dtype, seed=L)
    outer = torch.rand(5, dtype=dtype, generator=torch_stream("outer", L))

    def gradient():
        leaf = scores.clone().requires_grad_()
        value = loss(leaf, labels, mask, generator=torch_stream("ties"))
        return torch.autograd.grad((value * outer).sum(), leaf)[0]

    found = gradient()
    monkeypatch.delitem(kernels.KERNELS["cpu"], kernels_key(metric["name"], "twin"))
    assert torch.equal(found, gradient())


def kernels_key(metric, relaxation):
    """The key of a metric under a relaxation in the table of kernels."""
    pairs = [key for key in kernels.KERNELS["cpu"] if isinstance(key, tuple)]
    endings = f":{metric}_of", f":{relaxation}"
    (key,) = [pair for pair in pairs if all(map(str.endswith, pair, endings))]
    return key


def function(name):
    """What a name of the table of kernels stands for."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"directrank.{module}"), attribute)


@pytest.mark.parametrize("key", kernels.KERNELS["cpu"], ids=str)
def test_every_kernel_replaces_something_that_exists(key):
    scores = torch.zeros(2, 3)
    replaced = tuple(map(function, key)) if isinstance(key, tuple) else function(key)
    assert find(replaced, scores) is function(kernels.KERNELS["cpu"][key])
    assert find(replaced, scores, [torch.zeros(1, requires_grad=True)]) is None
    assert find(replaced, scores.int()) is None
    assert find(function, scores) is None


def expectation(function, scores, weights, mask, discounts, *settings):
    """An expectation under NeuralSort's matrix, and the gradient of its weighted sum."""
    leaf = scores.clone().requires_grad_()
    value = function(leaf, weights, mask, discounts, *settings)
    outer = torch.arange(1, len(scores) + 1)
    (gradient,) = torch.autograd.grad((value * outer).sum(), leaf)
    return value.detach(), gradient


#: Length, whether rows are first, and rounds; of long lists few: the formula keeps a matrix each.
SCALINGS = [
    *itertools.product((1, 6, 40), (False, True), (0, 1, 30, 200)),
    (500, False, 0),
    (500, False, 1),
    *((LONG + 150, rows_first, 4) for rows_first in (False, True)),
]


@pytest.mark.parametrize(("L", "rows_first", "rounds"), SCALINGS)
@pytest.mark.parametrize("kind", ["weigh", "precisions", "cascade"])
def test_expectations_under_neural_sort_are_those_of_the_formula(L, rows_first, rounds, kind):
    scores, labels, mask = random_lists(5 if L < 500 else 3, L, seed=L)
    scores = torch.where(mask, scores, 0.0)
    scores[-1] = scores[-1].round()  # ties
    weights = torch.where(mask, labels / 5, 0.0)
    weights[-1] = (weights[-1] > 0.5).double()  # certain to stop
    for ranks in (L, 1 + L // 2):
        discounts = 1 / torch.arange(1, ranks + 1, dtype=torch.float64)
        arguments = scores, weights, mask, discounts, kind, 0.7, rounds, 1e-6, rows_first
        plain = expectation(sorted_expectation.__wrapped__, *arguments)
        assert_same(expectation(sorted_expectation, *arguments), plain, 1e-10)


@pytest.mark.parametrize("kind", ["weigh", "precisions", "cascade"])
@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_the_derivative_of_the_scaling_agrees_with_finite_differences(rounds, kind):
    scores, labels, mask = random_lists(4, 7, seed=2)
    scores = torch.where(mask, scores, 0.0).requires_grad_()
    weights = torch.where(mask, labels / 5, 0.0)
    discounts = 1 / torch.arange(1, 6, dtype=torch.float64)
    for rows_first in (False, True):
        settings = kind, 0.8, rounds, 0.0, rows_first
        assert torch.autograd.gradcheck(
            lambda s, settings=settings: sorted_expectation(s, weights, mask, discounts, *settings),
            scores,
        )


@pytest.mark.parametrize("L", [1, 17, 83])
def test_soft_counts_and_twin_ranks_equal_their_formulas(L):
    scores, labels, mask = random_lists(6, L, seed=L)
    scores = torch.where(mask, scores, 0.0)
    weights = torch.randn(6, L, dtype=torch.float64)
    front = mask & (labels > 1)
    exact = scores.argsort(1, descending=True).argsort(1) + 1.0
    calls = [(soft_counts, (front, mask), front)] + [
        (twin_ranks, (exact.double(), labels, mask, f"type{number}", 1.3), mask)
        for number in (1, 2, 3)
    ]
    for function, arguments, seen in calls:
        parts = []
        for version in (function, function.__wrapped__):
            leaf = scores.clone().requires_grad_()
            result = torch.where(seen, version(leaf, *arguments), 0.0)
            (gradient,) = torch.autograd.grad((result * weights).sum(), leaf)
            parts.append((result.detach(), torch.where(mask, gradient, 0.0)))
        assert_same(*parts, 1e-10)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_padded_lists_and_lists_with_holes_run_the_same_loop(name, options):
    if name in ("listmle", *DRAWN) or options.get("samples"):
        pytest.skip("draws a number for every position")
    scores, labels, mask = random_lists(6, 40, seed=9)
    order = torch.sort((~mask).long(), dim=1, stable=True).indices
    together = [tensor.gather(1, order) for tensor in (scores, labels, mask)]
    value, gradient = found(name, scores, labels, mask, **options)
    other_value, other_gradient = found(name, *together, **options)
    torch.testing.assert_close(value, other_value, rtol=1e-14, atol=1e-15)
    torch.testing.assert_close(gradient.gather(1, order), other_gradient, rtol=1e-12, atol=1e-14)


def test_kernels_for_a_gpu_are_used_only_with_triton_and_a_compiler(monkeypatch):
    scores = torch.zeros(2, 3)
    monkeypatch.setattr(dispatch, "device_of", lambda values: "cuda")
    monkeypatch.setattr(dispatch, "find_spec", lambda name: name)
    found = {}
    for compiler in (None, "/usr/bin/gcc"):
        monkeypatch.setattr(dispatch, "which", lambda name, compiler=compiler: compiler)
        monkeypatch.setattr(dispatch, "_load", lambda target: target)
        dispatch.has_triton.cache_clear()
        found[compiler] = find(losses.ranknet.__wrapped__.__wrapped__, scores)
    dispatch.has_triton.cache_clear()
    assert found == {None: None, "/usr/bin/gcc": "kernels.gpu.logistic:ranknet"}
