import pytest
import torch
from torch import nn

from directrank import models
from directrank.system.errors import ConfigError
from directrank.system.seeds import torch_stream

TOWER = {"name": "tower", "hidden": [8, 4], "decay": 0.8}
LINEAR = {"name": "linear"}


def streams(count: int, first: int = 0) -> list[torch.Generator]:
    return [torch_stream("model", first + number) for number in range(count)]


@pytest.mark.parametrize("settings", [TOWER, LINEAR])
@pytest.mark.parametrize("training", [True, False])
def test_a_stack_scores_as_its_models_do_alone(settings, training):
    x = torch.randn(3, 20, 5, generator=torch_stream("x"))
    stack = models.build(settings, 5, streams(3)).train(training)
    together = stack(x)
    for number in range(3):
        alone = models.build(settings, 5, streams(1, number)).train(training)
        assert torch.allclose(alone(x[number : number + 1])[0], together[number], atol=1e-6)


@pytest.mark.parametrize("settings", [TOWER, LINEAR])
def test_padding_rows_change_neither_scores_nor_running_statistics(settings):
    x = torch.randn(2, 12, 5, generator=torch_stream("x"))
    rows = torch.arange(12) < torch.tensor([[12], [7]])
    stack = models.build(settings, 5, streams(2)).train()
    padded = stack(torch.where(rows[..., None], x, 99.0), rows)
    alone = models.build(settings, 5, streams(1, 1)).train()
    assert torch.allclose(padded[1, :7], alone(x[1:2, :7])[0], atol=1e-5)
    for name, value in alone.state_dict().items():
        assert torch.allclose(value[0], stack.state_dict()[name][1], atol=1e-5), name


def test_the_tower_is_dense_batchnorm_relu_with_tensorflows_momentum():
    tower = models.build(TOWER, 5, streams(1)).train()
    x = torch.randn(30, 5, generator=torch_stream("x"))
    layers = [nn.BatchNorm1d(5, eps=1e-3, momentum=0.2)]
    for width, weight in zip([8, 4], [layer.weight[0] for layer in tower.hidden], strict=True):
        dense = nn.Linear(weight.shape[0], width, bias=False)
        dense.weight.data = weight.data.T
        layers += [dense, nn.BatchNorm1d(width, eps=1e-3, momentum=0.2), nn.ReLU()]
    dense = nn.Linear(4, 1)
    dense.weight.data, dense.bias.data = tower.output.weight[0].data.T, tower.output.bias[0, 0].data
    reference = nn.Sequential(*layers, dense)
    for _ in range(3):
        assert torch.allclose(tower(x[None])[0], reference(x)[:, 0], atol=1e-5)
    tower.eval(), reference.eval()
    assert torch.allclose(tower(x[None])[0], reference(x)[:, 0], atol=1e-5)


def test_a_linear_scorer_starts_from_the_interval_asked_for():
    weight = models.build({"name": "linear", "init_bound": 0.5}, 1000, streams(1)).layer.weight
    assert weight.abs().max() <= 0.5
    assert weight.min() < -0.45
    assert weight.max() > 0.45


def test_unknown_models_and_settings_name_what_is_known():
    with pytest.raises(ConfigError, match="did you mean 'tower'"):
        models.build({"name": "tovver"}, 5, streams(1))
    with pytest.raises(ConfigError, match="did you mean 'hidden'"):
        models.build({"name": "tower", "hiden": [3]}, 5, streams(1))
    with pytest.raises(ConfigError, match="hidden"):
        models.build({"name": "tower"}, 5, streams(1))
