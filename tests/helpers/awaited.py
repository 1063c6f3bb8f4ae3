"""What the committed results of the edition ``real`` do not have yet of its configuration.

They are from a run with fewer training queries and configurations. What is here goes once they are
made again.
"""

#: Products that are planned and not made yet, by their files' path without suffix.
AWAITED = (
    "figures/real/bruch2019/summary",
    "paper_tables/real/bruch2019/table1",
)

#: Committed products that are planned no longer.
FORMER = ("paper_tables/real/one_protocol/table_msrd_trees",)

#: Collection → the number of training queries of the committed results.
TRAINED_ON = {"msrd": 1200}


def committed(files: list[str], folder: str, suffix: str) -> list[str]:
    """Those of an edition's ``files`` that are committed, and then those no longer planned."""
    former = [name + suffix for name in FORMER if name.startswith(f"{folder}/")]
    return [name for name in files if not name.startswith(AWAITED)] + former
