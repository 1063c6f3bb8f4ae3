"""Losses as modules: the same numbers, and what PyTorch does with modules."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc

import pytest
import torch

from directrank import losses, nn
from directrank.system.errors import ArgumentError
from losses_cases import LOSSES, random_lists, value_and_gradient

COMPOSED = {"metric": {"name": "err", "k": 4}, "relaxation": "neural_sort"}

#: The class of each loss.
CLASSES = {
    one.function.__name__: one
    for one in vars(nn).values()
    if isinstance(one, type) and issubclass(one, nn.RankingLoss) and one is not nn.RankingLoss
}

#: Options that differ from the defaults, for every loss.
OPTIONS = {
    **LOSSES,
    "approx_ndcg": {"alpha": 3.0, "k": 4},
    "ranknet": {"sigma": 2.0, "pair_reduction": "mean"},
    "twin_ap": {"gradient": "type1"},
    "composed": COMPOSED,
}


def made(name: str, **more) -> nn.RankingLoss:
    return CLASSES[name](**OPTIONS[name], **more)


def test_every_loss_has_a_module_of_its_name():
    assert set(CLASSES) == set(losses.REGISTRY)
    assert set(dir(nn)) == {one.__name__ for one in CLASSES.values()} | {"RankingLoss"}
    for name, one in CLASSES.items():
        assert one.__name__.lower() == name.replace("_", "")
        assert getattr(nn, one.__name__) is one


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_a_module_gives_what_its_function_gives(name, reduction):
    scores, labels, mask = random_lists(5, 6)
    weights = torch.tensor([1.0, 2.0, 0.5, 0.0, 1.0])
    module = made(name, reduction=reduction)
    found = value_and_gradient(module, scores, labels, mask, weights=weights)
    expected = value_and_gradient(
        losses.get(name), scores, labels, mask,
        weights=weights, reduction=reduction, **OPTIONS[name],
    )  # fmt: skip
    assert all(map(torch.equal, found, expected))
    lengths = mask.sum(1)
    torch.manual_seed(0)
    flat = module(scores[mask], labels[mask], lengths=lengths)
    torch.manual_seed(0)
    assert torch.equal(
        flat,
        losses.get(name)(
            scores[mask], labels[mask], lengths=lengths, reduction=reduction, **OPTIONS[name]
        ),
    )


@pytest.mark.parametrize("name", CLASSES)
def test_the_mean_is_the_default(name):
    scores, labels, mask = random_lists(4, 5)
    torch.manual_seed(0)
    found = made(name)(scores, labels, mask)
    torch.manual_seed(0)
    assert torch.equal(found, losses.get(name)(scores, labels, mask, **OPTIONS[name]).mean())


@pytest.mark.parametrize("name", CLASSES)
def test_a_module_shows_its_settings(name):
    module = made(name)
    signature = inspect.signature(CLASSES[name])
    assert set(signature.parameters) == {
        parameter.name
        for parameter in inspect.signature(losses.get(name)).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    } - {"lengths", "query_ids", "weights", "document_weights", "generator"}
    assert signature.parameters["reduction"].default == "mean"
    shown = repr(module)
    for option in signature.parameters:
        assert f"{option}={getattr(module, option)!r}" in shown
    for option, value in OPTIONS[name].items():
        assert getattr(module, option) == value
    text = pydoc.render_doc(CLASSES[name])
    assert f"directrank.losses.{name}" in text
    for option in set(signature.parameters) - {"reduction"}:
        assert f"{option}" in text


@pytest.mark.parametrize("name", CLASSES)
def test_a_module_is_copied_pickled_and_saved_with_its_model(name, tmp_path):
    scores, labels, mask = random_lists(4, 5)
    model = torch.nn.ModuleDict({"scorer": torch.nn.Linear(3, 1), "loss": made(name)})
    torch.save(model, tmp_path / "model.pt")
    again = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        torch.load(tmp_path / "model.pt", weights_only=False),
    ]
    expected = value_and_gradient(model["loss"], scores, labels, mask)
    for one in again:
        assert repr(one) == repr(model)
        found = value_and_gradient(one["loss"], scores, labels, mask)
        assert all(map(torch.equal, found, expected))
    assert set(model.state_dict()) == {"scorer.weight", "scorer.bias"}


def test_a_tensor_among_the_settings_moves_with_the_module():
    scores, labels, mask = random_lists(3, 5)
    alpha = torch.tensor([[1.0], [5.0], [10.0]])
    module = nn.ApproxNDCG(alpha=alpha)
    expected = losses.approx_ndcg(scores, labels, mask, alpha=alpha.double()).mean()
    assert torch.equal(module.double()(scores, labels, mask), expected)
    assert module.alpha.dtype == torch.float64
    assert module.to("meta").alpha.is_meta


def test_a_setting_that_is_learned_is_a_parameter():
    scores, labels, mask = random_lists(3, 5)
    module = nn.ApproxNDCG(alpha=torch.nn.Parameter(torch.tensor(5.0, dtype=torch.float64)))
    assert [name for name, _ in module.named_parameters()] == ["alpha"]
    module(scores, labels, mask).backward()
    assert module.alpha.grad != 0


def test_a_generator_and_weights_of_documents_are_given_to_a_call():
    scores, labels, _ = random_lists(4, 5)
    seeded = torch.Generator().manual_seed
    found = nn.XENDCG(reduction="none")(
        scores, labels, document_weights=labels, generator=seeded(3)
    )
    expected = losses.xe_ndcg(scores, labels, document_weights=labels, generator=seeded(3))
    assert torch.equal(found, expected)
    with pytest.raises(TypeError, match="generator"):
        nn.RankNet()(scores, labels, generator=seeded(3))


@pytest.mark.parametrize("name", CLASSES)
def test_a_compiled_model_with_its_loss_has_the_eager_gradients(name):
    torch.manual_seed(1)
    scorer = torch.nn.Linear(3, 1).double()
    features = torch.randn(4, 5, 3, dtype=torch.float64)
    _, labels, mask = random_lists(4, 5)
    module = made(name)

    def step(features, labels, mask):
        return module(scorer(features).squeeze(2), labels, mask)

    torch.compiler.reset()
    results = []
    for run in (step, torch.compile(step, fullgraph=True, backend="aot_eager")):
        torch.manual_seed(0)
        value = run(features, labels, mask)
        results.append([value.detach(), *torch.autograd.grad(value, scorer.parameters())])
    torch.testing.assert_close(*results)


def test_making_a_module_draws_no_random_numbers():
    before = torch.get_rng_state()
    for name in CLASSES:
        made(name)
    assert torch.equal(torch.get_rng_state(), before)


#: Settings that are words, of modules that know no such word.
UNKNOWN = {
    nn.ApproxNDCG: {"gain": "exp3"},
    nn.DiffSortNDCG: {"network": "bubble"},
    nn.LambdaLoss: {"scheme": "ndcg_loss3"},
    nn.LambdaRank: {"cutoff": "neither"},
    nn.RankNet: {"pair_reduction": "median"},
    nn.TwinNDCG: {"gradient": "type4"},
}


def test_a_setting_that_does_not_fit_is_an_error_at_once():
    with pytest.raises(ArgumentError, match="k must be a whole number"):
        nn.ApproxNDCG(k=0)
    with pytest.raises(ArgumentError, match="unknown reduction"):
        nn.ApproxNDCG(reduction="average")
    with pytest.raises(ArgumentError, match="samples"):
        nn.PLRank(samples=0)
    for module, words in UNKNOWN.items():
        with pytest.raises(ArgumentError, match="unknown"):
            module(**words)
    with pytest.raises(TypeError, match="alpah"):
        nn.ApproxNDCG(alpah=1.0)
    with pytest.raises(TypeError, match="'k'"):
        nn.ApproxPrecision()


def test_a_subclass_keeps_the_loss():
    class Steep(nn.ApproxNDCG):
        def __init__(self) -> None:
            super().__init__(alpha=50.0)

    scores, labels, mask = random_lists(4, 5)
    expected = losses.approx_ndcg(scores, labels, mask, alpha=50.0).mean()
    assert torch.equal(Steep()(scores, labels, mask), expected)
