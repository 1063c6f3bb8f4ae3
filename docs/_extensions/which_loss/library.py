"""What the code, its tests and the page of formulas say of a loss."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from directrank import losses, relaxations
from directrank.study import provenance

#: Where the plain versions are, and the test that compares them with the library.
PLAIN = "tests/helpers/losses_references.py"
PLAIN_TEST = "tests/losses/test_values.py"

#: What takes a plain version of one list through the lists of a batch: no part of a formula.
_PADDING = "_list_by_list"

_GIVEN = ("scores", "labels", "mask", "lengths", "query_ids", "weights")


@dataclass(frozen=True)
class Setting:
    """A hyper-parameter.

    Attributes:
        name: its name.
        default: as source text; empty for one that must be given.
        text: what it does, in Markdown; empty where nothing is said.
    """

    name: str
    default: str
    text: str


@dataclass(frozen=True)
class Loss:
    """A public loss.

    Attributes:
        name: of :data:`directrank.losses.REGISTRY`.
        root: the repository's folder.
    """

    name: str
    root: Path

    @property
    def function(self) -> Callable[..., Any]:
        """The loss."""
        return losses.get(self.name)

    @property
    def subject(self) -> str:
        """The first line of its file: what it is, and whose."""
        module = import_module(losses.REGISTRY[self.name].split(":")[0])
        return markdown(inspect.getdoc(module).split("\n")[0])

    @property
    def description(self) -> str:
        """What its docstring says before the arguments, in Markdown."""
        text, _ = _parts(inspect.getdoc(self.function))
        return markdown(text)

    @cached_property
    def settings(self) -> list[Setting]:
        """Its hyper-parameters, in the order of its signature."""
        said = _arguments(self.function)
        return [
            Setting(
                name,
                "" if parameter.default is parameter.empty else repr(parameter.default),
                said.get(name, ""),
            )
            for name, parameter in inspect.signature(self.function).parameters.items()
            if name not in _GIVEN
        ]

    @property
    def relaxations(self) -> list[str]:
        """The relaxations that it is made of, by name."""
        modules = provenance.dependencies([losses.REGISTRY[self.name].split(":")[0]])
        return [
            name for name, target in relaxations.REGISTRY.items() if target.split(":")[0] in modules
        ]

    @property
    def formula(self) -> str:
        """Its entry on the page of formulas; empty without one."""
        return next((text for names, text in formulas(self.root) if self.name in names), "")

    @property
    def plain_version(self) -> list[str]:
        """The functions of :data:`PLAIN` that are its plain version, helpers first; or none."""
        return plain_functions(self.root / PLAIN, self.name)


def formulas(root: Path) -> Iterator[tuple[list[str], str]]:
    """The losses of every entry of ``docs/formulas.md``, and its text, for a page one folder down.

    An entry is a line of names in code font, a line that begins with a colon, and what follows up
    to the next entry or heading.
    """
    page = (root / "docs/formulas.md").read_text(encoding="utf-8")
    entry = r"^((?:`\w+`(?:, )?)+)\n: (.*?)(?=^(?:`\w+`(?:, )?)+\n: |^## |\Z)"
    for section in re.split(r"^(?=## )", page, flags=re.MULTILINE):
        if section.startswith("## Losses"):
            for match in re.finditer(entry, section, flags=re.MULTILINE | re.DOTALL):
                yield re.findall(r"`(\w+)`", match[1]), _one_folder_down(match[2].strip())


def notation(root: Path) -> str:
    """What the first paragraph of ``docs/formulas.md`` says after its first sentence."""
    page = (root / "docs/formulas.md").read_text(encoding="utf-8")
    return _one_folder_down(page.split("\n\n")[1].partition(". ")[2])


def ranking(root: Path, relaxation: str) -> str:
    """What ``docs/formulas.md`` says of the ranks of a relaxation; empty without."""
    page = (root / "docs/formulas.md").read_text(encoding="utf-8")
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and f"`{relaxation}`" in cells[0]:
            return f"{cells[1]} ({cells[2]})"
    return ""


def plain_functions(file: Path, name: str) -> list[str]:
    """The functions of a module that ``name`` calls, in turn, in the order of the file, and itself.

    None where the module has no such function.
    """
    functions = {
        node.name: node
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    called: set[str] = set()
    waiting = [name] if name in functions else []
    while waiting:
        current = waiting.pop()
        if current not in called:
            called.add(current)
            names = [node.id for node in ast.walk(functions[current]) if isinstance(node, ast.Name)]
            waiting += [other for other in names if other in functions and other != _PADDING]
    return [function for function in functions if function in called]


def markdown(text: str) -> str:
    """A docstring's reStructuredText as Markdown."""
    text = re.sub(
        r":(func|class|data|mod):`([^`]+)`",
        lambda role: f"{{py:{role[1]}}}`{_in_full(role[2])}`",
        text,
    )
    return text.replace("``", "`")


def _in_full(name: str) -> str:
    return name if "." in name else f"directrank.losses.{name}"


def _parts(docstring: str) -> tuple[str, str]:
    """What a docstring says before its arguments, and its arguments."""
    before, _, after = docstring.partition("\n\nArgs:\n")
    before = before.split("\n\n>>>")[0]
    return before, re.split(r"\n\n(?=\S)", after)[0]


def _arguments(function: Callable[..., Any]) -> dict[str, str]:
    """What the docstring says of every argument, or that of the function it refers to."""
    before, section = _parts(inspect.getdoc(function))
    said: dict[str, str] = {}
    for names, text in re.findall(
        r"^    (\w[\w, ]*): (.*?)(?=^    \w[\w, ]*: |\Z)", section + "\n", re.MULTILINE | re.DOTALL
    ):
        for name in names.split(", "):
            said[name] = markdown(" ".join(text.split()))
    referred = re.search(r":func:`(\w+)`", before)
    if not said and referred:
        return _arguments(getattr(losses, referred[1]))
    return said


def _one_folder_down(text: str) -> str:
    return re.sub(r"\]\((?!https?:|#)", "](../", text)
