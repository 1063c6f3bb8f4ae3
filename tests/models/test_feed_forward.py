"""Yu2020's scorers: the four architectures by hand, norms per query, dropout."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from directrank import models
from directrank.system.errors import ConfigError
from directrank.system.seeds import torch_stream
from scorer_steps import counters

ARCHITECTURES = {
    "R5": {"activation": "relu", "output_activation": True},
    "CE5": {"activation": "celu", "output_activation": True},
    "R4.L": {"activation": "relu", "output_activation": False},
    "CE4.L": {"activation": "celu", "output_activation": False},
}
SMALL = {"name": "feed_forward", "hidden": [8, 8, 8, 8], "dropout": 0.0}
QUERIES = np.array([[5, 1, 9, 12]])


def streams(count: int, first: int = 0) -> list[torch.Generator]:
    return [torch_stream("model", first + number) for number in range(count)]


def build(architecture: str, count: int = 1, first: int = 0, **settings) -> nn.Module:
    options = {**SMALL, **ARCHITECTURES[architecture], **settings}
    model = models.build(options, 6, streams(count, first))
    # Norms start as the identity; elsewhere a mistake in weight or bias would not show.
    for number, parameter in enumerate(model.parameters()):
        noise = torch.randn(parameter.shape[1:], generator=torch_stream("noise", number))
        parameter.data += 0.3 * noise
    return model


def documents(count: int = 27, stacked: int = 1) -> torch.Tensor:
    return torch.randn(stacked, count, 6, generator=torch_stream("x"))


def reference(model: nn.Module, architecture: str) -> nn.Sequential:
    """The released scorer in PyTorch's own layers, with the weights of ``model``."""
    activation = {"R": nn.ReLU, "C": nn.CELU}[architecture[0]]
    layers: list[nn.Module] = []
    for number, (layer, norm) in enumerate(zip(model.layers, model.norms, strict=True)):
        fan_in, fan_out = layer.weight.shape[1:]
        dense = nn.Linear(fan_in, fan_out)  # the norm behind it takes any bias out
        dense.weight.data = layer.weight[0].data.T
        batch_norm = nn.BatchNorm1d(fan_out, momentum=1.0, track_running_stats=False)
        batch_norm.weight.data, batch_norm.bias.data = norm.weight.data[0, 0], norm.bias.data[0, 0]
        layers += [dense, batch_norm]
        if number < 4 or architecture.endswith("5"):
            layers.append(activation())
    return nn.Sequential(*layers)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("training", [True, False])
def test_each_architecture_is_the_released_one_query_by_query(architecture, training):
    model = build(architecture).train(training)
    released = reference(model, architecture).train(training)
    assert len(model.layers) == 5
    x = documents(26)
    scores = model(x, None, np.array([[5, 9, 12]]))[0]
    for first, last in ((0, 5), (5, 14), (14, 26)):
        assert torch.allclose(scores[first:last], released(x[0, first:last])[:, 0], atol=1e-5)


def test_the_last_layer_has_its_activation_or_not():
    x, lengths = documents(), QUERIES
    scores = {name: build(name)(x, None, lengths) for name in ARCHITECTURES}
    assert (scores["R5"] >= 0).all()
    assert (scores["R5"] == 0).sum() > 5
    assert (scores["CE5"] > -1).all()
    assert (scores["CE5"] < 0).any()
    assert torch.equal(scores["R5"], scores["R4.L"].relu())
    assert torch.allclose(scores["CE5"], torch.celu(scores["CE4.L"]), atol=1e-6)
    assert (scores["R4.L"] < -1).any()


def test_several_queries_per_step_have_the_scores_and_gradients_of_one_query_at_a_time():
    together, alone = build("R4.L"), build("R4.L")
    x, lengths = documents().double(), QUERIES
    together.double(), alone.double()
    weights = torch.randn(27, generator=torch_stream("weights")).double()
    (together(x, None, lengths)[0] * weights).sum().backward()
    ends = np.cumsum(lengths[0])
    for first, last in zip(ends - lengths[0], ends, strict=True):
        one = alone(x[:, first:last], None, np.array([[last - first]]))[0]
        (one * weights[first:last]).sum().backward()
    for ours, theirs in zip(together.parameters(), alone.parameters(), strict=True):
        assert torch.allclose(ours.grad, theirs.grad, atol=1e-10)


def test_the_gradient_of_a_norm_per_query_is_that_of_finite_differences():
    model = build("CE5").double()
    x = documents().double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: model(x, None, QUERIES), (x,))


def test_the_order_of_documents_and_of_queries_changes_no_score():
    model = build("CE4.L").eval()
    x, lengths = documents(), QUERIES
    scores = model(x, None, lengths)[0]
    within = torch.cat([torch.arange(5).flip(0), torch.arange(5, 27)])
    assert torch.allclose(model(x[:, within], None, lengths)[0], scores[within], atol=1e-5)
    blocks = torch.cat([torch.arange(6, 27), torch.arange(6)])
    swapped = model(x[:, blocks], None, np.array([[9, 12, 5, 1]]))[0]
    assert torch.allclose(swapped, scores[blocks], atol=1e-5)


@pytest.mark.parametrize("norm", ["query", "batch"])
@pytest.mark.parametrize("output_norm", [True, False])
def test_a_stack_trains_as_its_models_do_alone_whatever_the_padding(norm, output_norm):
    settings = {"norm": norm, "output_norm": output_norm, "dropout": 0.3}
    lengths = np.array([[5, 1, 9], [4, 3, 2], [6, 6, 3]])
    totals = lengths.sum(1)
    rows = torch.arange(15) < torch.from_numpy(totals)[:, None]
    x = torch.where(rows[..., None], documents(15, 3), 99.0)
    stack = build("R5", 3, **settings).train()
    for number in (1, 2):
        together = stack(x, rows, lengths, counters(3, 3, step=number))
    for number in range(3):
        alone = build("R5", 1, number, **settings).train()
        own = x[number : number + 1, : totals[number]]
        for taken in (1, 2):
            drawn = counters(1, 3, step=taken, first=number)
            scores = alone(own, None, lengths[number : number + 1], drawn)[0]
        assert torch.allclose(together[number, : totals[number]], scores, atol=1e-5)
        for name, value in alone.state_dict().items():
            assert torch.allclose(value[0], stack.state_dict()[name][number], atol=1e-5), name


def test_models_that_see_the_same_documents_score_them_as_alone():
    stack = build("CE5", 3).eval()
    x = documents()
    together = stack(x, None, QUERIES)
    for number in range(3):
        alone = build("CE5", 1, number).eval()
        assert torch.allclose(together[number], alone(x, None, QUERIES)[0], atol=1e-5)


def test_batch_statistics_are_of_the_whole_step_and_running_ones_score():
    model = build("R4.L", norm="batch", decay=0.0)
    x = documents()
    in_training = model.train()(x, None, QUERIES)
    assert torch.allclose(in_training, build("R4.L")(x, None, np.array([[27]])), atol=1e-5)
    part = model.eval()(x[:, :5], None, np.array([[5]]))
    whole = model(x, None, QUERIES)
    assert torch.allclose(part, whole[:, :5], atol=1e-5)


def test_without_output_norm_scores_keep_their_scale_and_their_bias():
    x = documents()
    normed = build("R4.L").eval()(x, None, np.array([[27]]))
    free = build("R4.L", output_norm=False).eval()
    assert len(free.norms) == 4
    shift = free(x, None, np.array([[27]]))
    free.layers[-1].bias.data += 1.0
    assert torch.allclose(free(x, None, np.array([[27]])), shift + 1, atol=1e-5)
    spreads = [scores.detach().std(unbiased=False).item() for scores in (normed, shift)]
    assert abs(spreads[0] - spreads[1]) > 0.05


def test_dropout_falls_before_the_second_to_fourth_layer_in_training_alone():
    model = build("R4.L", dropout=0.5, norm="batch", hidden=[400] * 4).train()
    seen = []
    for layer in model.layers:
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    model(documents(), None, QUERIES, counters(1, QUERIES.shape[1]))
    # ReLU leaves half of the values at zero, dropout half of the rest.
    zeros = [float((x == 0).float().mean()) for x in seen]
    assert zeros[0] == 0
    assert all(share > 0.65 for share in zeros[1:4])
    assert zeros[4] < 0.6
    assert torch.equal(model.eval()(documents()), model(documents()))


def test_settings_that_cannot_be_meant_are_refused():
    with pytest.raises(ConfigError, match="did you mean 'relu'"):
        build("R5", activation="rellu")
    with pytest.raises(ConfigError, match="no norm 'layer'"):
        build("R5", norm="layer")
    with pytest.raises(ConfigError, match="dropout rate"):
        build("R5", dropout=1.0)
    with pytest.raises(ValueError, match="the documents of each query"):
        build("R5")(documents())
