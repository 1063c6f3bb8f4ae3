"""Signatures read from source text are those of the imported modules."""

import inspect
from importlib import import_module

import pytest

from directrank import losses, metrics
from directrank.system import sources

#: What every loss or metric is given by a decorator, and none by a configuration.
ADDED = ("lengths", "query_ids", "weights", "reduction")


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


def test_a_function_uses_what_it_names_alone(made_up):
    for name in ("ranks", "sums", "pairs"):
        made_up("LEAST = 1\ndef both(x): ...\n", name)
    module = made_up(
        "from directrank import pairs, ranks as order\n"
        "from directrank.sums import both\n"
        "import torch\n"
        "LEAST, MOST = 1, 2\n"
        "def mark(f):\n    return f\n"
        "@mark\n"
        "def first(a, b=order.LEAST):\n"
        "    return [helper(x) for x in both(a)]\n"
        "def helper(x):\n    return x + LEAST\n"
        "def second(least=pairs.LEAST): ...\n"
    )
    first, second = f"{module}:first", f"{module}:second"
    assert sources.imports_of(first) == {"directrank.ranks", "directrank.sums"}
    assert sources.imports_of(second) == {"directrank.pairs"}
    text = sources.text_of(first).decode()
    for part in ("LEAST, MOST = 1, 2", "def mark", "@mark\ndef first", "def helper"):
        assert part in text
    assert "def second" not in text
    assert sources.text_of(second) == b"def second(least=pairs.LEAST): ...\n"


def test_every_kind_of_parameter_is_read(made_up):
    module = made_up("def f(a, /, b, c=1, *rest, d, e=None, g=[1][0], **more): ...\nh = f\n")
    signature = sources.signature_of(module, "f")
    assert str(signature) == "(a, /, b, c=1, *rest, d, e=None, g='[1][0]', **more)"
    assert sources.signature_of(module, "h") is None
