"""What holds for every module: whom it may import, and that its examples run."""

import doctest
from importlib import import_module

import pytest

from directrank.system.sources import PACKAGE, imports_of, text_of

PATHS = [path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py")]
MODULES = sorted(".".join(path.parts).removesuffix(".__init__") for path in PATHS)


def is_private_elsewhere(module: str, importer: str) -> bool:
    """Whether ``module`` is in something private of a package that ``importer`` is not part of.

    A loss imports the formula of its metric, whose module is private only because a module of the
    metric's name would hide its function.
    """
    home, private, _ = module.partition("._")
    if home == "directrank.metrics" and importer.startswith("directrank.losses._"):
        return False
    return bool(private) and not f"{importer}.".startswith(f"{home}.")


# That no package imports one above it is an import contract: see `make lint`.
def test_no_private_module_is_imported_from_outside_its_package():
    assert is_private_elsewhere("directrank.losses._ranknet", "directrank.learners.contract")
    assert not is_private_elsewhere("directrank.losses._ranknet", "directrank.losses")
    assert not is_private_elsewhere("directrank.metrics._err", "directrank.losses._compositions")
    assert is_private_elsewhere("directrank.metrics._err", "directrank.papers.shared.product")
    assert len(MODULES) > 100
    outside = [
        f"{importer} imports {module}"
        for importer in MODULES
        for module in sorted(imports_of(importer))
        if is_private_elsewhere(module, importer)
    ]
    assert not outside, "\n".join(outside)


@pytest.mark.parametrize("module", [name for name in MODULES if b">>> " in text_of(name)])
def test_examples_print_what_they_say(module):
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert not result.failed
