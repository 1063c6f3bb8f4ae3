"""The pages of results: the landing page, the gallery, a page per paper, claims, one protocol.

At each build they are made from the committed files, so that they cannot say anything else: a page
per paper below ``docs/papers``, which is no part of the repository, and parts of other pages in the
places that these mark by ``<!-- study: NAME -->``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from directrank.system.io import write_text
from study_pages import claims, data, gallery, landing, paper_page, protocol
from study_pages.outputs import papers

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[3]

#: Page → name of a part → what it is made with, of the repository's folder and the built page's.
PARTS: dict[str, dict[str, Callable[[Path, Path], str]]] = {
    "docs/index": {
        "what we found": lambda root, _: landing.what_we_found(root),
        "papers": lambda root, _: landing.links_to_papers(),
    },
    "docs/gallery": {"gallery": gallery.cards},
    "docs/claims": {
        "every claim": lambda root, _: claims.every_claim(root),
        "meaning": lambda root, _: claims.what_verdicts_mean(),
    },
    "docs/data_pages": {"editions": lambda root, _: data.of_editions(root)},
    "docs/one_protocol": {
        "every method": lambda root, _: protocol.every_method(root),
        "every table": lambda root, _: protocol.every_table(root),
    },
}


def write_pages(folder: Path, root: Path = ROOT) -> None:
    """Write the page of every paper, and remove those of papers that are gone.

    A page that would be the same is left as it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pages = {folder / f"{paper}.md": paper_page.page(root, paper) for paper in papers()}
    for path, text in pages.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
    for path in set(folder.glob("*.md")) - set(pages):
        path.unlink()


def filled(page: str, text: str, root: Path, folder: Path) -> str:
    """The text of a page with its parts.

    Args:
        page: e.g. ``docs/claims``.
        text: in Markdown.
        root: the repository's folder.
        folder: where the built page will lie.

    Raises:
        LookupError: the page has no place, or several, for a part.
    """
    for name, part in PARTS.get(page, {}).items():
        mark = f"<!-- study: {name} -->"
        if text.count(mark) != 1:
            raise LookupError(f"{page}.md has no place, or several, for “{name}”")
        text = text.replace(mark, part(root, folder))
    return text


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for pages, and fill the others as they are read."""

    def begin(app: Sphinx) -> None:
        write_pages(ROOT / "docs/papers")

    def read(app: Sphinx, docname: str, source: list[str]) -> None:
        source[0] = filled(docname, source[0], ROOT, Path(app.outdir) / "docs")

    def outdated(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]):
        # Sphinx does not know the files that the parts come from.
        return [page for page in PARTS if page in env.found_docs]

    app.connect("builder-inited", begin)
    app.connect("source-read", read)
    app.connect("env-get-outdated", outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
