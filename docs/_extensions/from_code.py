"""Directives that write the reference from the code: registries, and the command line's help."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from importlib import import_module

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from directrank.cli import parser


class Registered(Directive):
    """``.. registered:: directrank.losses``: every function of a registry, by its public name.

    What a user adds to the registry appears in the reference without another line.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The functions, as autodoc documents them."""
        module = import_module(self.arguments[0])
        lines = []
        for name, place in module.REGISTRY.items():
            public = f"{module.__name__}.{name}" if hasattr(module, name) else place
            lines.append(f".. autofunction:: {public.replace(':', '.')}")
        return _parsed(self, lines)


class Commands(Directive):
    """``.. commands::``: the help text of every command of ``directrank``."""

    def run(self) -> list[nodes.Node]:
        """A section per command."""
        os.environ["COLUMNS"] = "96"
        result = []
        for command in _commands(parser()):
            section = nodes.section(ids=[nodes.make_id(command.prog)])
            section += nodes.title(text=command.prog)
            section += nodes.literal_block(text=command.format_help(), language="text")
            result.append(section)
        return result


def _commands(command: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A command and the commands below it, depth first."""
    yield command
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _commands(child)


def escape_bars(app, what, name, obj, options, lines: list[str]) -> None:
    """Bars outside of literals are absolute values, not substitutions of reStructuredText."""
    for number, line in enumerate(lines):
        parts = re.split(r"(``.*?``)", line)
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[number] = "".join(parts)


def _parsed(directive: Directive, lines: list[str]) -> list[nodes.Node]:
    container = nodes.Element()
    text = StringList(lines, source="registry")
    directive.state.nested_parse(text, directive.content_offset, container)
    return container.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive("registered", Registered)
    app.add_directive("commands", Commands)
    app.connect("autodoc-process-docstring", escape_bars)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
