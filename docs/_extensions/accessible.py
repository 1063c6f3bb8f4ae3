"""Mends what Sphinx and the theme write that assistive technology cannot read."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

#: The parameters of a long signature: a definition list without terms.
_PARAMETERS = re.compile(r'(<span class="sig-paren">\(</span>)\s*<dl>(.*?)</dl>', re.DOTALL)


def mended(html: str) -> str:
    """The captions of trees have a level; the parameters of a long signature are lines.

    >>> mended('<p class="caption" role="heading">')
    '<p class="caption" role="heading" aria-level="2">'
    """
    html = re.sub(r'role="heading"(?! aria-level)', 'role="heading" aria-level="2"', html)
    return _PARAMETERS.sub(_as_lines, html)


def _as_lines(found: re.Match[str]) -> str:
    lines = found[2].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
    return found[1] + lines


def mend(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Mend the content of a page, and the theme's tree of pages."""
    for part in ("body", "furo_navigation_tree"):
        if context.get(part):
            context[part] = mended(context[part])


def setup(app: Sphinx) -> dict[str, bool]:
    """Mend after the theme has added its own."""
    app.connect("html-page-context", mend, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
