"""The kernels for a GPU give the numbers of the formulas, in Triton's interpreter."""

import pytest
import torch

from directrank.kernels import dispatch
from directrank.kernels.gpu.lists import DeviceLists
from directrank.lists.inputs import examined_before
from gpu_cases import CASES, ONLY_GRADIENT, draws, given, loss_of, shown
from losses_cases import random_lists

#: Lengths of flat lists: an empty one, one document, and more than a tile.
LENGTHS = torch.tensor([0, 1, 7, 2, 45])


@pytest.fixture
def on_gpu(monkeypatch):
    """A function that calls another one with the kernels for a GPU, and fails if none is run."""

    def call(function, *arguments, **options):
        runs = []
        with monkeypatch.context() as patch:
            run = DeviceLists.run

            def counted(*given, **constants):
                runs.append(given[1])
                run(*given, **constants)

            patch.setattr(DeviceLists, "run", counted)
            patch.setattr(dispatch, "device_of", lambda values: "cuda")
            result = function(*arguments, **options)
        assert runs, "no kernel was run"
        return result

    return call


@pytest.fixture
def formula(monkeypatch):
    """A function that calls another one with the formulas alone."""

    def call(function, *arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr(dispatch, "KERNELS", {})
            return function(*arguments, **options)

    return call


def value_and_gradient(name, scores, labels, *arguments, **options):
    """A loss ``[B]`` and the gradient of its weighted sum, with the same draws at each call."""
    torch.manual_seed(3)
    leaf = scores.clone().requires_grad_()
    lists = len(options["lengths"]) if "lengths" in options else len(scores)
    value = loss_of(name)(leaf, labels, *arguments, **given(options, lists, scores))
    outer = torch.arange(1, len(value) + 1, dtype=value.dtype)
    (gradient,) = torch.autograd.grad((value * outer).sum(), leaf)
    return value.detach(), gradient


def assert_close(found, expected, relative):
    torch.testing.assert_close(found[0], expected[0], rtol=relative, atol=relative)
    largest = float(expected[1].abs().max()) if expected[1].numel() else 0.0
    torch.testing.assert_close(found[1], expected[1], rtol=0, atol=relative * (largest + 1e-3))


def lists_with_ties(L, dtype=torch.float64):
    """Lists with odd ones, holes, and ties of scores."""
    scores, labels, mask = random_lists(6, L, seed=L, dtype=dtype)
    scores[3:5] = (2 * scores[3:5]).round() / 2
    scores[~mask] = torch.nan
    return scores, labels, mask


@pytest.mark.parametrize("L", [1, 70])
@pytest.mark.parametrize(("name", "options"), CASES, ids=shown)
def test_padded_lists_give_value_and_gradient_of_the_formula(name, options, L, on_gpu, formula):
    scores, labels, mask = lists_with_ties(L)
    expected = formula(value_and_gradient, name, scores.nan_to_num(), labels, mask, **options)
    found = on_gpu(value_and_gradient, name, scores, labels, mask, **options)
    assert_close(found, expected, 1e-11)


@pytest.mark.parametrize(("name", "options"), CASES, ids=shown)
def test_flat_lists_give_value_and_gradient_of_the_formula(name, options, on_gpu, formula):
    N, stream = int(LENGTHS.sum()), torch.Generator().manual_seed(5)
    scores = torch.randn(N, generator=stream, dtype=torch.float64)
    call = name, scores, torch.randint(0, 5, (N,), generator=stream).double()
    # A formula pads lists before it draws. Kernels for a CPU draw as those for a GPU do.
    reference = [value_and_gradient] if draws(name) else [formula, value_and_gradient]
    expected = reference[0](*reference[1:], *call, lengths=LENGTHS, **options)
    assert_close(on_gpu(value_and_gradient, *call, lengths=LENGTHS, **options), expected, 1e-11)


@pytest.mark.parametrize(("name", "options"), CASES, ids=shown)
def test_single_precision_gives_the_formula_within_its_rounding(name, options, on_gpu, formula):
    scores, labels, _ = lists_with_ties(12)
    scores, labels = scores.nan_to_num().float(), labels.float()
    exact = (scores, labels) if draws(name) else (scores.double(), labels.double())
    expected = tuple(
        result.double() for result in formula(value_and_gradient, name, *exact, **options)
    )
    value, gradient = on_gpu(value_and_gradient, name, scores, labels, **options)
    assert value.dtype == gradient.dtype == torch.float32
    assert_close((value.double(), gradient.double()), expected, 3e-5)


WITH_VALUE = [case for case in CASES if case not in ONLY_GRADIENT]


@pytest.mark.parametrize(("name", "options"), WITH_VALUE, ids=shown)
def test_without_a_gradient_the_value_is_the_same(name, options, on_gpu):
    scores, labels, mask = lists_with_ties(33)
    with_gradient, _ = on_gpu(value_and_gradient, name, scores, labels, mask, **options)
    torch.manual_seed(3)
    options = given(options, len(scores), scores)
    alone = on_gpu(loss_of(name), scores, labels, mask, **options)
    assert torch.equal(alone, with_gradient)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("blackbox_ndcg", "lam"), ("fast_soft_ndcg", "tau"), ("lapsum_ndcg", "tau")],
)
def test_a_hyper_parameter_may_differ_from_list_to_list(name, parameter, on_gpu, formula):
    scores, labels, mask = lists_with_ties(20)
    options = {parameter: torch.linspace(0.2, 3.0, len(scores), dtype=scores.dtype)[:, None]}
    expected = formula(value_and_gradient, name, scores.nan_to_num(), labels, mask, **options)
    found = on_gpu(value_and_gradient, name, scores, labels, mask, **options)
    assert_close(found, expected, 1e-11)


@pytest.mark.parametrize(("name", "options"), CASES, ids=shown)
def test_a_score_that_is_nan_makes_value_and_gradient_of_its_list_nan(name, options, on_gpu):
    scores, labels, _ = lists_with_ties(20)
    scores = scores.nan_to_num()
    labels[:] = torch.arange(20) % 3
    scores[3, 5] = torch.nan
    with examined_before():  # as on a GPU, where the values are not examined
        value, gradient = on_gpu(value_and_gradient, name, scores, labels, **options)
    spoiled = [i == 3 for i in range(len(scores))]
    assert value.isnan().tolist() == spoiled
    if name != "pairwise_hinge":  # whose slope is a sign
        assert gradient.isnan().any(1).tolist() == spoiled
