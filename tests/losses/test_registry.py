"""Losses by name: loaded one at a time, found with a typo, traced to their modules."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import directrank
from directrank import losses, metrics, nn
from directrank.system.errors import ConfigError
from losses_cases import LOSSES


def test_the_registry_holds_every_loss_and_its_function_carries_the_name():
    assert set(losses.REGISTRY) == {*LOSSES, "composed"}
    for name in losses.REGISTRY:
        assert losses.get(name).__name__ == name
        assert getattr(losses, name) is losses.get(name)


def test_completion_shows_the_functions():
    assert {*losses.REGISTRY, "compose", "get", "needs_of"} < set(dir(losses))
    assert {*metrics.REGISTRY, "evaluate", "mean"} < set(dir(metrics))
    assert {"losses", "metrics", "open_dataset"} < set(dir(directrank))
    assert {"ApproxNDCG", "LambdaRank", "Newton", "RankingLoss"} < set(dir(nn))
    for module in (losses, metrics, directrank):
        assert all(hasattr(module, name) for name in dir(module))
        assert not [name for name in dir(module) if name.startswith("_") and name[:2] != "__"]


def test_every_loss_takes_scores_labels_mask_first_and_hyperparameters_by_name():
    for name in losses.REGISTRY:
        parameters = list(inspect.signature(losses.get(name)).parameters.values())
        assert [p.name for p in parameters[:3]] == ["scores", "labels", "mask"]
        assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters[3:])
        assert losses.get(name).__doc__


def test_help_says_where_a_loss_comes_from():
    for name in set(losses.REGISTRY) - {"composed"}:
        assert re.search(r"(19|20)\d\d", losses.get(name).__doc__.split("Args:")[0]), name


def test_an_unknown_loss_names_the_nearest_and_all():
    with pytest.raises(ConfigError, match="did you mean 'approx_ndcg'") as error:
        losses.get("aprox_ndcg")
    assert all(name in str(error.value) for name in losses.REGISTRY)
    with pytest.raises(AttributeError):
        losses.aprox_ndcg  # noqa: B018


@pytest.mark.slow
def test_importing_losses_loads_no_loss_and_nothing_but_torch():
    code = (
        "import sys; from directrank import losses, metrics; before = set(sys.modules);"
        "print([m for m in before if m.startswith('directrank.losses.')]);"
        "losses.ranknet; losses.pl_rank; losses.softrank; metrics.ndcg;"
        "print([m for m in ('scipy', 'numba', 'pandas', 'yaml', 'sklearn') if m in sys.modules]);"
        "print('directrank.losses._rmse' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ["directrank.losses._needs"]  # the declaration, not a loss
    assert out.stdout.split("\n")[:3] == [str(loaded), "[]", "False"]


@pytest.mark.parametrize(
    ("name", "settings", "draws"),
    [
        ("approx_ndcg", {"alpha": 3.0}, False),
        ("neural_ndcg", {}, False),
        ("neural_ndcg", {"samples": 2}, True),
        ("listmle", {}, True),
        ("xe_ndcg", {}, True),
        ("pl_rank", {}, True),
        ("yeti_loss", {}, True),
        ("stochastic_rank", {}, True),
        ("k_song", {"k": 5}, False),
        ("adr_mse", {}, False),
        ("twin_ap", {}, True),
        ("twin_ap", {"break_ties": False}, False),
        ("composed", {"metric": "ndcg", "relaxation": "sigmoid"}, False),
        ("composed", {"metric": "ndcg", "relaxation": "sigmoid", "samples": 1}, True),
        ("composed", {"metric": "ndcg", "relaxation": "twin"}, True),
        (
            "composed",
            {"metric": "ndcg", "relaxation": {"name": "twin", "break_ties": False}},
            False,
        ),
    ],
)
def test_a_loss_declares_whether_it_draws(name, settings, draws):
    assert losses.needs_of(name).random(settings) is draws


def test_steepness_may_be_given_per_list_where_a_loss_declares_it():
    assert losses.needs_of("approx_ndcg").per_list == ("alpha",)
    assert losses.needs_of("rmse").per_list == ()
