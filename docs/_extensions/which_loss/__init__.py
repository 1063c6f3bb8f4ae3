"""The page "Which loss?" and a page per loss, made from the code and the result files.

At each build: the losses of the registry have pages below ``docs/losses``, which are not part of
the repository, and ``docs/which_loss.md`` has the numbers of the files in the places that it marks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from directrank import losses
from directrank.system.io import write_text
from which_loss import chooser, evidence, library, loss_page, pictures

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[3]
PAGE = "docs/which_loss"


def write_pages(folder: Path, results: evidence.Results, root: Path = ROOT) -> None:
    """Write the page and the picture of every loss, and remove those of losses that are gone.

    A file whose content would be the same is left as it is.

    Args:
        folder: of the pages.
        results: of the comparison, and measured times.
        root: the repository's folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in losses.REGISTRY:
        shown = pictures.picture(name, folder / f"{name}.svg")
        text = loss_page.page(library.Loss(name, root), results, shown)
        path = folder / f"{name}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
    for path in folder.iterdir():
        if path.suffix in (".md", ".svg") and path.stem not in losses.REGISTRY:
            path.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for pages, and fill "Which loss?" as it is read."""
    gathered: list[evidence.Results] = []

    def begin(app: Sphinx) -> None:
        gathered.append(evidence.gather(ROOT))
        write_pages(ROOT / "docs/losses", gathered[0])

    def read(app: Sphinx, docname: str, source: list[str]) -> None:
        if docname == PAGE:
            source[0] = chooser.filled(source[0], gathered[0])

    def outdated(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]):
        # Sphinx does not know the files that the page comes from.
        return [PAGE] if PAGE in env.found_docs else []

    app.connect("builder-inited", begin)
    app.connect("source-read", read)
    app.connect("env-get-outdated", outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
