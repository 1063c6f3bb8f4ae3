"""Losses within what PyTorch does with functions: compiling, processes, autocasting, pickling."""

from __future__ import annotations

import pickle
from functools import partial

import pytest
import torch

from directrank import losses, metrics
from directrank.lists import compiled
from directrank.system.errors import DirectrankError
from losses_cases import LOSSES, random_lists, value_and_gradient
from two_processes import batch, gradients, half, scorer

FEATURES, LABELS, MASK, WEIGHTS = batch()

COMPOSED = {"metric": {"name": "err", "k": 4}, "relaxation": "neural_sort"}

#: Every loss, and compositions that are made beforehand.
CASES = {
    **{name: partial(losses.get(name), **options) for name, options in LOSSES.items()},
    "composed": partial(losses.composed, **COMPOSED),
    "compose": losses.compose(**COMPOSED),
    "compose, noisy": losses.compose("ndcg", {"name": "sigmoid", "alpha": 2}, samples=2),
}

LENGTHS = torch.tensor([5, 0, 12, 3])


def results_of(step, model) -> dict[str, tuple[torch.Tensor, list[torch.Tensor]]]:
    """The values and the gradient by the parameters of every case, with the same draws."""
    torch.manual_seed(0)
    values = step(model, FEATURES, LABELS, MASK)
    weights = torch.linspace(0.5, 2.0, len(LABELS), dtype=torch.float64)
    return {
        name: (
            value.detach(),
            torch.autograd.grad((weights * value).sum(), model.parameters(), retain_graph=True),
        )
        for name, value in zip(CASES, values, strict=True)
    }


def every_loss(model, features, labels, mask):
    scores = model(features)
    return [loss(scores, labels, mask) for loss in CASES.values()]


def both_ways(backend: str):
    """Of every case, what eager calls and compiled ones give."""
    torch.compiler.reset()
    model = scorer()
    step = torch.compile(every_loss, fullgraph=True, backend=backend)
    return results_of(every_loss, model), results_of(step, model)


@pytest.fixture(scope="module")
def eager_and_compiled():
    return both_ways("aot_eager")


def test_every_loss_is_compiled():
    assert set(losses.REGISTRY) <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_model_and_loss_have_the_eager_values_and_gradients(name, eager_and_compiled):
    eager, compiled = (results[name] for results in eager_and_compiled)
    assert torch.equal(compiled[0], eager[0])
    torch.testing.assert_close(compiled[1], eager[1])


@pytest.mark.long
def test_inductor_gives_the_eager_values_and_gradients():
    eager, compiled = both_ways("inductor")
    for name in CASES:
        torch.testing.assert_close(compiled[name], eager[name], msg=name)


def test_flat_lists_weights_and_half_precision_are_compiled_too():
    steepness = torch.linspace(1.0, 4.0, len(LENGTHS))[:, None]
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(int(LENGTHS.sum()), generator=generator).bfloat16()
    labels = torch.randint(0, 4, scores.shape, generator=generator)

    def step(scores, labels, lengths, weights):
        first = losses.approx_ndcg(
            scores, labels, lengths=lengths, weights=weights, alpha=steepness
        )
        return first + losses.xe_ndcg(scores, labels, lengths=lengths, document_weights=labels)

    torch.compiler.reset()
    compiled_step = torch.compile(step, fullgraph=True, backend="aot_eager")
    weights = torch.arange(4.0)
    value, gradient = value_and_gradient(step, scores, labels, LENGTHS, weights=weights)
    found = value_and_gradient(compiled_step, scores, labels, LENGTHS, weights=weights)
    assert found[0].dtype == torch.float32
    assert found[1].dtype == torch.bfloat16
    torch.testing.assert_close(found, (value, gradient))
    with torch.no_grad():
        torch.manual_seed(0)
        torch.testing.assert_close(compiled_step(scores, labels, LENGTHS, weights), value)
    with pytest.raises(DirectrankError, match="a weight is negative"):
        compiled_step(scores, labels, LENGTHS, -weights)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_a_reduction_is_compiled_with_its_loss(reduction):
    def step(scores, labels, mask, weights):
        return losses.lambdarank(scores, labels, mask, weights=weights, reduction=reduction)

    scores, labels, mask = random_lists(4, 5)
    weights = torch.tensor([1.0, 0.0, 2.0, 0.5])
    torch.compiler.reset()
    compiled_step = torch.compile(step, fullgraph=True, backend="aot_eager")
    found = value_and_gradient(compiled_step, scores, labels, mask, weights=weights)
    torch.testing.assert_close(
        found, value_and_gradient(step, scores, labels, mask, weights=weights)
    )


def test_two_equal_calls_of_a_random_loss_draw_twice():
    def step(scores, labels):
        return losses.xe_ndcg(scores, labels) - losses.xe_ndcg(scores, labels)

    scores, labels, _ = random_lists(4, 5)
    assert torch.compile(step, backend="aot_eager")(scores.requires_grad_(), labels).abs().min() > 0


def test_a_generator_breaks_the_graph_once_and_is_used():
    def step(scores, labels, generator):
        return 2 * losses.xe_ndcg(scores.tanh(), labels, generator=generator)

    scores, labels, _ = random_lists(4, 5)
    seeded = torch.Generator().manual_seed
    found = torch.compile(step, backend="aot_eager")(scores, labels, seeded(3))
    assert torch.equal(found, step(scores, labels, seeded(3)))
    torch.compiler.reset()
    with pytest.raises(Exception, match="called_outside_the_graph"):
        torch.compile(step, backend="aot_eager", fullgraph=True)(scores, labels, seeded(3))


@pytest.mark.parametrize("lists", ["lengths", "query_ids", "mask"])
def test_the_operator_keeps_its_promises_to_the_compiler(lists):
    scores, labels, mask = random_lists(4, 5, dtype=torch.float32)
    tensors = [labels, mask]
    if lists != "mask":
        scores, labels = scores.flatten(), labels.flatten()
        ids = torch.repeat_interleave(torch.arange(4), 5)
        tensors = [labels, torch.full((4,), 5) if lists == "lengths" else ids]
    text = compiled._text("directrank.losses._ranknet:ranknet", {"labels": [0], lists: [1]})
    arguments = scores.requires_grad_(), tensors, text, True
    torch.library.opcheck(torch.ops.directrank.loss.default, arguments)


@pytest.mark.slow
def test_two_processes_have_the_gradients_of_one(tmp_path):
    """That they start at all says that losses can be sent to new processes."""
    chosen = [
        losses.listnet,
        losses.lambdarank,
        partial(losses.approx_ndcg, alpha=5.0),
        losses.compose("average_precision", "sigmoid"),
    ]
    torch.multiprocessing.get_context("forkserver").set_forkserver_preload(["two_processes"])
    torch.multiprocessing.start_processes(
        half, (chosen, tmp_path), nprocs=2, start_method="forkserver"
    )
    found = torch.load(tmp_path / "gradients")
    for loss, of_two in zip(chosen, found, strict=True):
        torch.testing.assert_close(of_two, gradients(scorer(), loss, slice(None)))


@pytest.mark.parametrize("name", CASES)
def test_autocasting_does_not_reach_into_a_loss(name):
    scores, labels, mask = random_lists(6, 7, dtype=torch.bfloat16)
    expected = value_and_gradient(CASES[name], scores, labels, mask)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.is_autocast_enabled("cpu")
        found = value_and_gradient(CASES[name], scores, labels, mask)
    assert found[0].dtype == torch.float32
    assert found[0].isfinite().all()
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", ["listnet", "ranknet", "lambdarank", "approx_ndcg"])
def test_an_autocast_model_has_nearly_the_gradients_of_float32(name):
    model, loss = scorer().float(), losses.get(name)
    found = []
    for enabled in (True, False):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            scores = model(FEATURES.float())
            value = loss(scores, LABELS, MASK).mean()
        assert scores.dtype == (torch.bfloat16 if enabled else torch.float32)
        value.backward()
        found.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
    assert found[0].dtype == torch.float32
    torch.testing.assert_close(*found, rtol=0.05, atol=0.02 * float(found[1].abs().max()))


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_labels_are_data_and_get_no_gradient(name, flat):
    scores, labels, lists = LABELS.sin(), LABELS, {"mask": MASK}
    if flat:
        scores, labels, lists = scores[MASK], labels[MASK], {"lengths": MASK.sum(1)}
    gradients = []
    for given in (labels, labels.clone().requires_grad_()):
        torch.manual_seed(0)
        student = scores.clone().requires_grad_()
        losses.get(name)(student, given, **lists, **LOSSES[name]).sum().backward()
        gradients.append(student.grad)
    assert given.grad is None
    assert torch.equal(*gradients)


@pytest.mark.parametrize("name", [*LOSSES, *metrics.REGISTRY])
def test_every_function_is_pickled_by_its_name(name):
    function = losses.get(name) if name in LOSSES else metrics.get(name)
    assert pickle.loads(pickle.dumps(function)) is function


def test_a_composition_is_pickled_with_its_settings():
    settings = {"name": "sigmoid", "alpha": torch.tensor([[2.0]])}
    loss = losses.compose({"name": "ndcg", "k": 3}, settings, samples=2, noise=0.5)
    again = pickle.loads(pickle.dumps(loss))
    values = []
    for one in (loss, again):
        torch.manual_seed(0)
        values.append(one(LABELS.sin(), LABELS, MASK))
    assert torch.equal(*values)


@pytest.mark.parametrize("name", ["listnet", "lambdarank", "approx_ndcg", "neural_ndcg"])
@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.grad])
def test_transforms_of_functions_are_refused_and_the_way_out_is_said(name, transform):
    loss = losses.get(name)
    with pytest.raises(DirectrankError, match=r"vmap.*\n.*scores \[B, L\] of all lists and a mask"):
        transform(lambda s, y: loss(s[None], y[None]).sum())(LABELS[0], LABELS[0])


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_has_its_value_in_inference_mode(name):
    # No other test has lists of this length, for which tables are kept.
    lists = random_lists(3, 41, seed=9)
    torch.manual_seed(1)
    with torch.inference_mode():
        value = losses.get(name)(*lists, **LOSSES[name])
    torch.manual_seed(1)
    torch.testing.assert_close(value, losses.get(name)(*lists, **LOSSES[name]), rtol=0, atol=0)
