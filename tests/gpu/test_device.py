"""The kernels on a real GPU: the formula's numbers, the same bytes each time, no waiting."""

import numpy as np
import pytest
import torch

from directrank import losses
from directrank.kernels import dispatch
from directrank.learners.neural.monitor_pairs import tied_pairs
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import Evaluator
from gpu_cases import CASES, given, loss_of, shown

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

#: What has no kernel of its own waits where PyTorch's derivative of a product does.
ERR = {"name": "err", "k": 5}
WAITING = [
    (ERR, {"name": "sigmoid", "alpha": 0.7, "beta": 2.3}),
    (ERR, {"name": "fast_soft_rank", "tau": 0.4}),
    (ERR, {"name": "lapsum", "tau": 0.4}),
]

#: Documents of the lists: none, one, and more and fewer than a tile.
LENGTHS = [0, 1, 2, 31, 64, 120, 240]


@pytest.fixture
def padded():
    """Scores, labels and mask of lists with ties."""
    stream = torch.Generator().manual_seed(4)
    lengths = torch.tensor(LENGTHS)
    mask = torch.arange(max(LENGTHS)) < lengths[:, None]
    scores = torch.randn(mask.shape, generator=stream, dtype=torch.float64)
    scores[4] = (2 * scores[4]).round() / 2
    labels = torch.randint(0, 5, mask.shape, generator=stream)
    return scores.cuda(), labels.double().cuda(), mask.cuda()


def result(name, scores, labels, mask, options):
    """A loss ``[B]`` and the gradient of its weighted sum, with the same draws at each call."""
    torch.manual_seed(3)
    leaf = scores.clone().requires_grad_()
    value = loss_of(name)(leaf, labels, mask, **given(options, len(scores), scores))
    outer = torch.arange(1, len(value) + 1, dtype=value.dtype, device=value.device)
    (gradient,) = torch.autograd.grad((value * outer).sum(), leaf)
    return value.detach(), gradient


def draws(name, options):
    """Whether a case draws random numbers, which another type or shape changes."""
    return isinstance(name, str) and losses.needs_of(name).random(options)


def distance(found, expected):
    """The largest differences of values and of gradients, the latter beside the largest one."""
    value = (found[0] - expected[0]).abs().max() / (1 + expected[0].abs().max())
    gradient = (found[1] - expected[1]).abs().max() / (1e-3 + expected[1].abs().max())
    return max(float(value), float(gradient))


@pytest.mark.parametrize(("dtype", "relative"), [(torch.float64, 1e-10), (torch.float32, 3e-4)])
@pytest.mark.parametrize(("name", "options"), CASES, ids=shown)
def test_kernels_give_the_formula(name, options, dtype, relative, padded, monkeypatch):
    scores, labels, mask = padded
    scores = scores.to(dtype)  # ties and orders are those of the narrow type
    found = result(name, scores, labels.to(dtype), mask, options)
    monkeypatch.setattr(dispatch, "KERNELS", {})
    # PyTorch draws other numbers of another type.
    exact = scores if draws(name, options) else scores.double()
    expected = [values.double() for values in result(name, exact, labels.to(exact), mask, options)]
    assert distance((found[0].double(), found[1].double()), expected) < relative


@pytest.mark.parametrize(("name", "options"), CASES, ids=shown)
def test_kernels_give_the_same_bytes_each_time(name, options, padded):
    single = [values.float() for values in padded[:2]]
    first = result(name, *single, padded[2], options)
    again = result(name, *single, padded[2], options)
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])


@pytest.mark.parametrize(("name", "options"), CASES, ids=shown)
def test_flat_lists_give_the_numbers_of_padded_ones(name, options, padded):
    if draws(name, options):
        pytest.skip("another order of the draws")
    scores, labels, mask = padded[0].float(), padded[1].float(), padded[2]
    value, gradient = result(name, scores, labels, mask, options)
    leaf = scores[mask].requires_grad_()
    own = given(options, len(LENGTHS), scores)
    if "document_weights" in own:
        own["document_weights"] = own["document_weights"][mask]
    found = loss_of(name)(leaf, labels[mask], lengths=torch.tensor(LENGTHS), **own)
    outer = torch.arange(1, len(value) + 1, device="cuda")
    (slope,) = torch.autograd.grad((found * outer).sum(), leaf)
    assert distance((found, slope), (value, gradient[mask])) < 1e-5


def test_metrics_of_many_models_are_those_of_a_cpu():
    stream = torch.Generator().manual_seed(5)
    lengths = torch.tensor(LENGTHS * 40)
    documents = int(lengths.sum())
    lists = RankedLists(
        features=np.zeros((documents, 1), np.float32),
        labels=torch.randint(0, 3, (documents,), generator=stream).numpy(),
        offsets=np.concatenate([[0], lengths.cumsum(0)]),
        query_ids=np.arange(len(lengths)),
    )
    scores = (2 * torch.randn(50, documents, generator=stream)).round() / 2
    scores[3, 200] = torch.nan
    wanted = [{"name": "ndcg", "k": 10}, {"name": "average_precision"}, {"name": "nerr", "k": 5}]
    expected = Evaluator(lists, wanted)(scores)
    found = Evaluator(lists, wanted)(scores.cuda())
    for label, values in expected.items():
        np.testing.assert_allclose(found[label], values, rtol=0, atol=1e-12)


def test_ties_of_many_models_are_those_of_a_cpu():
    stream = torch.Generator().manual_seed(6)
    lengths = torch.tensor(LENGTHS * 40)
    documents = int(lengths.sum())
    lists = RankedLists(
        features=np.zeros((documents, 1), np.float32),
        labels=np.zeros(documents),
        offsets=np.concatenate([[0], lengths.cumsum(0)]),
        query_ids=np.arange(len(lengths)),
    )
    scores = torch.randn(50, documents, generator=stream).relu().round(decimals=2)
    scores[1] = -scores[0]  # some are minus zero
    scores[2, ::2] = -0.0
    expected = tied_pairs(scores, lists, [])["tied_pairs"]
    assert len(np.unique(expected)) > 40
    assert np.array_equal(tied_pairs(scores.cuda(), lists, [])["tied_pairs"], expected)


@pytest.mark.parametrize(("name", "options"), CASES, ids=shown)
def test_a_step_waits_for_nothing_and_can_be_captured(name, options, padded):
    if name in WAITING:
        pytest.skip("the derivative of a product waits")
    scores, labels = (values.float() for values in padded[:2])
    leaf, own = scores.clone().requires_grad_(), given(options, len(scores), scores)

    def step():
        value = loss_of(name)(leaf, labels, padded[2], **own)
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach(), gradient

    step()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        expected = step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    graph.replay()
    torch.cuda.synchronize()
    if not draws(name, options):
        assert torch.equal(captured[0], expected[0])
        assert torch.equal(captured[1], expected[1])
