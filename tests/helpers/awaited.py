"""What the committed results of the edition ``real`` do not have yet of its configuration."""

from __future__ import annotations

#: Products that are planned and not made yet, by their files' path without suffix.
AWAITED: tuple[str, ...] = ()

#: Committed products that are planned no longer: their runs had 1 200 of MSRD's training queries.
FORMER = ("paper_tables/real/one_protocol/table_msrd_trees",)


def committed(files: list[str], folder: str, suffix: str) -> list[str]:
    """Those of an edition's ``files`` that are committed, and then those no longer planned."""
    former = [name + suffix for name in FORMER if name.startswith(f"{folder}/")]
    return [name for name in files if not name.startswith(AWAITED)] + former
