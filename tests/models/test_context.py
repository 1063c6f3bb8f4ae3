"""The context-aware ranker: a list attends to itself alone, however lists are stacked or padded."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from directrank import models
from directrank.learners.neural.batches import Feeder
from directrank.lists.packed import RankedLists
from directrank.models.context_layers import StackedLayerNorm
from directrank.models.dropout import Dropout
from directrank.models.encoder import Encoder
from directrank.system.errors import ConfigError
from directrank.system.seeds import torch_stream
from scorer_steps import counters

F = 5
LENGTHS = np.array([3, 40, 1, 7, 40, 12, 2, 39])
SMALL = {"name": "context", "width": 8, "inner": 16, "heads": 2, "output": "tanh"}


def streams(count: int, first: int = 0) -> list[torch.Generator]:
    return [torch_stream("context", first + number) for number in range(count)]


def built(count: int = 1, first: int = 0, **settings) -> nn.Module:
    return models.build(SMALL | settings, F, streams(count, first))


def documents(*shape: int) -> Tensor:
    return torch.randn(*shape, F, generator=torch_stream("documents"))


@pytest.fixture(autouse=True)
def small_buckets(monkeypatch):
    """Several groups of lists, also of so few documents."""
    from directrank.models import context_layers

    monkeypatch.setattr(context_layers, "SMALL_GROUP", 1)


@pytest.fixture
def by_pytorch(monkeypatch):
    """PyTorch's layers in place of compiled loops."""
    monkeypatch.setattr(Encoder, "accept", lambda self, x: False)


@pytest.fixture(params=["loops", "pytorch"])
def each_way(request):
    """Compiled loops, and PyTorch's layers."""
    if request.param == "pytorch":
        request.getfixturevalue("by_pytorch")


@pytest.mark.usefixtures("each_way")
def test_each_list_is_scored_as_if_it_were_alone():
    model = built().eval()
    x = documents(1, LENGTHS.sum())
    together = model(x, None, LENGTHS[None])[0].split(LENGTHS.tolist())
    for own, scores in zip(x[0].split(LENGTHS.tolist()), together, strict=True):
        assert torch.allclose(model(own[None])[0], scores, atol=1e-6)


def test_grouping_lists_by_length_changes_nothing_but_rounding(by_pytorch, monkeypatch):
    from directrank.models import context_layers

    x = documents(1, LENGTHS.sum())
    weights = torch.randn(LENGTHS.sum(), generator=torch_stream("weights"))

    def outcome() -> list[Tensor]:
        model = built(dropout=0.3).train()
        scores = model(x, None, LENGTHS[None], counters(1, len(LENGTHS)))[0]
        (scores * weights).sum().backward()
        return [scores.detach(), *(p.grad.clone() for p in model.parameters())]

    grouped = outcome()
    monkeypatch.setattr(context_layers, "buckets", lambda lengths, small: [np.arange(len(lengths))])
    for one, other in zip(grouped, outcome(), strict=True):
        assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.usefixtures("each_way")
def test_a_permutation_of_a_list_permutes_its_scores_and_no_others():
    model = built().eval()
    lengths = np.array([[9, 30, 4]])
    x = documents(1, 43)
    order = torch.arange(43)
    order[9:39] = 9 + torch.randperm(30, generator=torch_stream("order"))
    assert torch.allclose(
        model(x[:, order], None, lengths), model(x, None, lengths)[:, order], atol=1e-6
    )


@pytest.mark.usefixtures("each_way")
def test_the_scores_of_a_list_depend_on_all_its_documents_but_not_on_other_lists():
    model = built().eval()
    x = documents(1, 12)
    changed = x.clone()
    changed[0, 2] += 1
    difference = (model(changed, None, np.array([[5, 7]])) - model(x, None, np.array([[5, 7]])))[0]
    assert (difference[:5].abs() > 1e-6).all()
    assert (difference[5:] == 0).all()


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("training", [False, True])
def test_a_stack_scores_and_learns_as_its_models_do_alone(training):
    lengths = np.array([[3, 40, 1, 6], [20, 9, 9, 4], [5, 5, 5, 5]])
    totals = lengths.sum(1)
    x = documents(3, 50)
    rows = torch.arange(50) < torch.from_numpy(totals)[:, None]
    stack = built(3).train(training)
    seen = torch.where(rows[..., None], x, 99.0)
    together = stack(seen, rows, lengths, counters(3, 4))
    (together * rows).sin().sum().backward()
    for number, total in enumerate(totals):
        alone = built(1, number).train(training)
        own, drawn = x[number : number + 1, :total], counters(1, 4, first=number)
        scores = alone(own, None, lengths[number : number + 1], drawn)
        assert torch.allclose(scores[0], together[number, :total], atol=1e-5)
        scores.sin().sum().backward()
        for single, shared in zip(alone.parameters(), stack.parameters(), strict=True):
            assert torch.allclose(single.grad[0], shared.grad[number], atol=1e-4)


@pytest.mark.usefixtures("each_way")
def test_models_that_share_documents_score_them_as_each_alone():
    x, lengths = documents(1, LENGTHS.sum()), LENGTHS[None]
    together = built(3).eval()(x, None, lengths)
    for number in range(3):
        alone = built(1, number).eval()(x, None, lengths)[0]
        assert torch.allclose(alone, together[number], atol=1e-6)


def reference_of(model: nn.Module) -> nn.Module:
    """PyTorch's own encoder with the weights of the single model of a stack."""
    width, inner = SMALL["width"], SMALL["inner"]
    layer = nn.TransformerEncoderLayer(
        width, SMALL["heads"], inner, dropout=0.0, batch_first=True, norm_first=True,
        layer_norm_eps=StackedLayerNorm.EPSILON,
    )  # fmt: skip
    encoder = nn.TransformerEncoder(
        layer, 2, nn.LayerNorm(width, StackedLayerNorm.EPSILON), enable_nested_tensor=False
    )

    def copy(target, weight: Tensor, bias: Tensor) -> None:
        target.weight.data, target.bias.data = weight.data.clone(), bias.data.flatten().clone()

    def copy_norm(target: nn.LayerNorm, norm: StackedLayerNorm) -> None:
        # The unbiased standard deviation is larger by √(width / (width - 1)).
        copy(target, norm.weight.flatten() * ((width - 1) / width) ** 0.5, norm.bias)

    for own, block in zip(encoder.layers, model.blocks, strict=True):
        attention = block.attention
        own.self_attn.in_proj_weight.data = attention.project.weight[0].T.data.clone()
        own.self_attn.in_proj_bias.data = attention.project.bias.data.flatten().clone()
        copy(own.self_attn.out_proj, attention.output.weight[0].T, attention.output.bias)
        copy_norm(own.norm1, block.attention_norm)
        copy_norm(own.norm2, block.norm)
        copy(own.linear1, block.widen.weight[0].T, block.widen.bias)
        copy(own.linear2, block.narrow.weight[0].T, block.narrow.bias)
    copy_norm(encoder.norm, model.norm)
    return encoder


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("training", [False, True])
def test_it_is_pytorchs_pre_norm_encoder_between_two_linear_layers(training):
    model = built(dropout=0.0).train(training)
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms as after training
            parameter += 0.3 * torch.randn(parameter.shape, generator=torch_stream("shift"))
    encoder = reference_of(model).train(training)
    lengths = np.array([[6, 4, 6, 1]])
    x = documents(1, 17)
    mask = torch.arange(6) < torch.from_numpy(lengths[0])[:, None]
    padded = torch.zeros(4, 6, F)
    padded[mask] = x[0]
    hidden = padded @ model.input.weight[0] + model.input.bias[0]
    hidden = encoder(hidden, src_key_padding_mask=~mask)
    expected = torch.tanh(hidden @ model.output.weight[0] + model.output.bias[0])[..., 0][mask]
    assert torch.allclose(model(x, None, lengths)[0], expected, atol=1e-5)


def test_dropout_acts_on_attention_hidden_values_and_what_a_block_adds(by_pytorch, monkeypatch):
    drawn = []

    def factors(values: Tensor, *_: object) -> Tensor:
        stream = torch_stream("drawn", len(drawn))
        drawn.append(torch.rand(values.shape, generator=stream).round() * 2)
        return drawn[-1].clone()

    monkeypatch.setattr("directrank.models.dropout._of_rows", factors)
    monkeypatch.setattr("directrank.models.dropout._of_pairs", factors)
    model = built(blocks=1, heads=1, dropout=0.5).train()
    x = documents(1, 9)
    result = model(x, counters=counters(1, 1))[0]
    gradients = torch.autograd.grad(result.sin().sum(), list(model.parameters()))
    (block,) = model.blocks
    attention, added, hidden, added_last = (each.view(1, 9, -1) for each in drawn)
    y = model.input(x)
    query, key, value = block.attention.project(block.attention_norm(y)).chunk(3, 2)
    weights = torch.softmax(query @ key.mT / SMALL["width"] ** 0.5, 2) * attention
    y = y + added * block.attention.output(weights @ value)
    inner = torch.relu(block.widen(block.norm(y))) * hidden
    y = y + added_last * block.narrow(inner)
    expected = torch.tanh(model.output(model.norm(y)))[0, :, 0]
    assert torch.allclose(result, expected, atol=1e-6)
    expected_gradients = torch.autograd.grad(expected.sin().sum(), list(model.parameters()))
    for one, other in zip(gradients, expected_gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_dropout_drops_the_share_asked_for_and_keeps_the_mean():
    for probability in (0.1, 0.5, 0.9):
        dropout = Dropout(probability, counters(1, 1), np.array([[4001]]), 1, 4001)
        factors = dropout.of_rows(torch.zeros(1, 4001, 50))
        assert (factors == 0).float().mean() == pytest.approx(probability, abs=5e-3)
        assert factors.mean() == pytest.approx(1, abs=0.02)
        assert factors.unique().tolist() == [0, np.float32(dropout.scale)]


@pytest.mark.usefixtures("each_way")
def test_dropout_depends_on_the_step_and_on_nothing_before_it():
    x, lengths = documents(1, 20), np.array([[8, 12]])
    model = built().train()
    model(x, None, lengths, counters(1, 2, step=1))
    expected = model(x, None, lengths, counters(1, 2, step=2))
    assert torch.equal(built().train()(x, None, lengths, counters(1, 2, step=2)), expected)
    assert not torch.equal(model(x, None, lengths, counters(1, 2, step=1)), expected)
    with pytest.raises(ValueError, match="counters"):
        model(x, None, lengths)


def test_the_layer_norm_has_the_unbiased_deviation_and_survives_equal_values():
    norm = StackedLayerNorm(2, 6)
    x = torch.randn(2, 4, 6, generator=torch_stream("norm"))
    x[0, 0] = 2.5
    expected = (x - x.mean(2, keepdim=True)) / (x.std(2, keepdim=True) + 1e-6)
    assert torch.allclose(norm(x), expected, atol=1e-5)
    single = StackedLayerNorm(1, 6)
    assert torch.allclose(single(x[:1]), expected[:1], atol=1e-5)


def test_sizes_are_the_papers():
    model = models.build({"name": "context"}, 136, streams(1))
    block = 2 * (2 * 96) + (96 * 288 + 288) + (96 * 96 + 96) + (96 * 384 + 384) + (384 * 96 + 96)
    expected = (136 * 96 + 96) + 2 * block + 2 * 96 + (96 + 1)
    assert sum(p.numel() for p in model.parameters()) == expected
    bound = (6 / (96 + 96)) ** 0.5
    largest = model.blocks[0].attention.project.weight.abs().max()
    assert 0.99 * bound < largest <= bound


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"heads": 3}, "cannot be shared by 3 heads"),
        ({"dropout": 1.0}, "choose a rate in"),
        ({"output": "relu"}, "unknown output 'relu'"),
        ({"widht": 8}, "did you mean 'width'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        models.build(SMALL | settings, F, streams(1))


def test_cut_lists_keep_a_relevant_document_where_there_is_one():
    lists = RankedLists(
        features=np.arange(60, dtype=np.float32)[:, None],
        labels=np.array([0] * 29 + [1] + [0] * 30, dtype=np.float32),
        offsets=np.array([0, 30, 60]),
        query_ids=np.array([1, 2]),
    )
    feeder = Feeder(lists, torch.float32, torch.device("cpu"), 3, "random_relevant")
    draws = [feeder.draw(np.array([[0, 1]]), [1], step) for step in range(30)]
    for batch in draws:
        assert batch.lengths.ravel().tolist() == [3, 3]
        assert 29 in batch.features[0, :3, 0]
        assert (batch.features[0, 3:, 0] >= 30).all()
    assert len({batch.features[0, 0, 0].item() for batch in draws}) > 5
