"""Signatures and constants read from source text are those of the imported modules."""

import inspect
import sys
from importlib import import_module

import pytest

from directrank import learners, losses, metrics
from directrank.system import sources

#: What every loss or metric is given by a decorator, and none by a configuration.
ADDED = ("lengths", "query_ids", "weights")


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """The name of a module ``made_up`` of a package of its own, and how to write it."""
    monkeypatch.setattr(sources, "PACKAGE", tmp_path / "directrank")
    (tmp_path / "directrank").mkdir()

    def write(text, name="made_up"):
        (tmp_path / f"directrank/{name}.py").write_text(text)
        for value in vars(sources).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
        return f"directrank.{name}"

    yield write
    monkeypatch.undo()
    write("")


@pytest.mark.parametrize("registry", [losses.REGISTRY, metrics.REGISTRY])
def test_signatures_are_those_of_the_functions(registry):
    for target in registry.values():
        module, function = target.split(":")
        read = sources.signature_of(module, function)
        if read is None:
            continue  # not made by a `def`
        real = inspect.signature(getattr(import_module(module), function))
        assert [(p.name, p.kind, p.default is p.empty) for p in read.parameters.values()] == [
            (p.name, p.kind, p.default is p.empty)
            for p in real.parameters.values()
            if p.name not in ADDED
        ]


def test_every_kind_of_parameter_is_read(made_up):
    module = made_up("def f(a, /, b, c=1, *rest, d, e=None, g=[1][0], **more): ...\nh = f\n")
    signature = sources.signature_of(module, "f")
    assert str(signature) == "(a, /, b, c=1, *rest, d, e=None, g='[1][0]', **more)"
    assert sources.signature_of(module, "h") is None


def test_constants_are_read_through_imports(made_up):
    made_up("SHARED = {'x': {'default': 1}}\n", "shared")
    module = made_up(
        "from directrank.shared import SHARED\n"
        "LIMIT: int = 3\n"
        "SETTINGS: dict = {'a': LIMIT, 'b': {**SHARED, 'y': [1, 2]}}\n"
        "COMPUTED = len('abc')\n"
    )
    content = {"a": 3, "b": {"x": {"default": 1}, "y": [1, 2]}}
    assert sources.constant_of(module, "SETTINGS") == content
    with pytest.raises(LookupError, match="NOTHING"):
        sources.constant_of(module, "NOTHING")
    with pytest.raises(ValueError, match="malformed"):
        sources.constant_of(module, "COMPUTED")


@pytest.mark.parametrize("name", [n for n, each in learners.REGISTRY.items() if not each.neural])
def test_learners_settings_are_those_of_their_modules(name):
    learner = learners.get(name)
    settings = learner.settings
    assert settings == import_module(learner.module).SETTINGS
    assert sys.modules[learner.module].SETTINGS["properties"]


def test_every_module_of_the_package_is_named(made_up):
    made_up("")
    folder = sources.PACKAGE / "inner"
    folder.mkdir()
    for name in ("__init__", "_own"):
        (folder / f"{name}.py").write_text("")
    expected = ["directrank.inner", "directrank.inner._own", "directrank.made_up"]
    assert sources.modules() == expected
