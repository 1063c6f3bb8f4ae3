"""The data sets of each edition: the table of all, and the tree of their pages."""

from __future__ import annotations

from pathlib import Path

from study_pages.outputs import editions


def of_editions(root: Path) -> str:
    """A section per edition, in Markdown."""
    parts = []
    for edition in editions(root):
        folder = f"figures/{edition}/data"
        overview = (root / folder / "datasets.md").read_text(encoding="utf-8").strip()
        pages = f"```{{toctree}}\n:maxdepth: 1\n:glob:\n\n../{folder}/*\n```"
        parts += [f"## Edition {edition}", overview, pages]
    return "\n\n".join(parts)
