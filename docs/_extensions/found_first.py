"""Pages that a search for some words finds first, and pages of source code that lead somewhere."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def add_words(app: Sphinx, doctree: nodes.document) -> None:
    """Make the words of ``found_first`` entries of the index, whose matches lead the results.

    The search leaves out short words: it takes "which loss" for "loss", which every page has.
    """
    entries = []
    for words, place in app.config.found_first.items():
        page, _, anchor = place.partition("#")
        if page == app.env.docname:
            entries.append(("single", words, anchor, "main", None))
    if entries:
        doctree.insert(0, addnodes.index(entries=entries))


def forget_unused(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    """List no module of which nothing is documented, such as that of an attribute's type."""
    modules = getattr(app.env, "_viewcode_modules", {})
    for name in [name for name, entry in modules.items() if not (entry and entry[2])]:
        del modules[name]
    return iter(())


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both; Sphinx makes the pages of source code after the second."""
    app.add_config_value("found_first", {}, "env", dict)
    app.connect("doctree-read", add_words)
    app.connect("html-collect-pages", forget_unused, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
