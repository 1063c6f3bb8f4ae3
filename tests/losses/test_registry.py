"""Losses by name: loaded one at a time, found with a typo, traced to their modules."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from directrank import losses
from directrank.system.errors import ConfigError
from losses_cases import LOSSES


def test_the_registry_holds_every_loss_and_its_function_carries_the_name():
    assert set(losses.REGISTRY) == {*LOSSES, "composed"}
    for name in losses.REGISTRY:
        assert losses.get(name).__name__ == name
        assert getattr(losses, name) is losses.get(name)


def test_every_loss_takes_scores_labels_mask_first_and_hyperparameters_by_name():
    for name in losses.REGISTRY:
        parameters = list(inspect.signature(losses.get(name)).parameters.values())
        assert [p.name for p in parameters[:3]] == ["scores", "labels", "mask"]
        assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters[3:])
        assert losses.get(name).__doc__


def test_an_unknown_loss_names_the_nearest_and_all():
    with pytest.raises(ConfigError, match="did you mean 'approx_ndcg'") as error:
        losses.get("aprox_ndcg")
    assert all(name in str(error.value) for name in losses.REGISTRY)
    with pytest.raises(AttributeError):
        losses.aprox_ndcg  # noqa: B018


def test_importing_losses_loads_no_loss_and_nothing_but_torch():
    code = (
        "import sys; from directrank import losses, metrics; before = set(sys.modules);"
        "print([m for m in before if m.startswith('directrank.losses.')]);"
        "losses.ranknet; losses.neural_ndcg; losses.softrank; metrics.ndcg;"
        "print([m for m in ('scipy', 'numba', 'pandas', 'yaml', 'sklearn') if m in sys.modules]);"
        "print('directrank.losses._twin' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split("\n")[:3] == ["[]", "[]", "False"]


def test_modules_of_a_loss_are_those_its_value_depends_on():
    modules = losses.modules_of("approx_ndcg")
    assert "directrank.losses._approx_ndcg" in modules
    assert "directrank.relaxations._pairs" in modules
    assert "directrank.metrics._ndcg" in modules
    assert "directrank.losses._ranknet" not in modules
    assert "directrank.relaxations.twin" not in modules
    assert modules == sorted(modules)
    assert losses.modules_of("rmse") == [
        "directrank.lists.inputs",
        "directrank.losses._gradient",
        "directrank.losses._rmse",
        "directrank.system.errors",
    ]
    with pytest.raises(ConfigError):
        losses.modules_of("rsme")
