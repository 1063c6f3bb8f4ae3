"""The default of a hyper-parameter stands once; what is given it by others has none of its own."""

from __future__ import annotations

import ast
import inspect

import pytest

from directrank import losses, metrics, relaxations
from directrank.kernels import KERNELS
from directrank.system import sources
from losses_cases import LOSSES

#: Kernels of networks and optimisers, which import them themselves.
NETWORKS = {"layers", "encoder", "query_layers", "optimisers", "norms"}

TARGETS = sorted(
    target
    for table in KERNELS.values()
    for target in table.values()
    if target.split(":")[0].rsplit(".")[-1] not in NETWORKS
)

#: Defaults that switch something off, as None does.
OFF = {"samples": 0, "rows_first": False}


def literal_defaults(module: str, function: str) -> list[str]:
    """The options that have a literal for their default, other than those that are off."""
    tree = ast.parse(sources.text_of(module))
    (found,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function
    )
    given = zip(found.args.kwonlyargs, found.args.kw_defaults, strict=True)
    return [
        argument.arg
        for argument, default in given
        if isinstance(default, ast.Constant)
        and default.value is not None
        and (argument.arg, default.value) not in OFF.items()
    ]


def composed_of(name: str) -> bool:
    """Whether a loss is declared as a metric under a relaxation."""
    return losses.REGISTRY[name].startswith(losses.COMPOSITIONS)


@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_has_no_defaults(target):
    module, function = f"directrank.{target}".split(":")
    tree = ast.parse(sources.text_of(module))
    named = {function, "loss"}  # what a decorator makes of a kernel of twin-sigmoid ranks
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in named]
    assert function in {node.name for node in found}
    for node in found:
        if node.name == "loss" and not node.args.kwonlyargs:
            continue  # a method
        assert not node.args.defaults
        assert node.args.kw_defaults == [None] * len(node.args.kwonlyargs)


@pytest.mark.parametrize("name", [name for name in LOSSES if composed_of(name)])
def test_a_composition_takes_its_defaults_from_its_parts(name):
    own = {"gumbel_approx_ndcg": ["samples"], "twin_nerr": ["k"]}
    assert literal_defaults(*losses.REGISTRY[name].split(":")) == own.get(name, [])


def test_the_compositions_are_known():
    assert not composed_of("ranknet")
    assert sum(composed_of(name) for name in LOSSES) == 19


@pytest.mark.parametrize("name", relaxations.REGISTRY)
def test_a_relaxation_names_its_defaults(name):
    assert literal_defaults(*relaxations.REGISTRY[name].split(":")) == []


@pytest.mark.parametrize("name", metrics.REGISTRY)
def test_a_metric_has_the_defaults_of_its_formula(name):
    of_formula = inspect.signature(metrics.formula(name)).parameters
    of_metric = inspect.signature(metrics.get(name)).parameters
    options = [key for key in of_formula if key not in ("ranking", "judgements")]
    assert {key: of_formula[key].default for key in options} == {
        key: of_metric[key].default for key in options
    }
    for function in (name, f"{name}_of"):
        found = literal_defaults(metrics.REGISTRY[name].split(":")[0], function)
        assert set(found) <= {"empty", "ties"}


def test_a_signature_shows_the_values_of_defaults():
    text = str(inspect.signature(losses.approx_ndcg))
    assert "alpha: 'float | Tensor' = 10.0" in text
    assert "gain: 'str' = 'exp2'" in text
