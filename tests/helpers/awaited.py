"""What the committed results of the edition ``real`` do not have yet of its configuration.

They are from a run with fewer training queries and configurations. What is here goes once they are
made again.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from directrank.edition.compared import compared
from directrank.edition.plan import Study
from workflow_runs import ROOT

#: Products that are planned and not made yet, by their files' path without suffix.
AWAITED = ("paper_tables/real/one_protocol/table_training_size",)

#: Committed products that are planned no longer.
FORMER = ("paper_tables/real/one_protocol/table_msrd_trees",)

#: Collection → the number of training queries of the committed results.
TRAINED_ON = {"msrd": 1200}


def committed(files: list[str], folder: str, suffix: str) -> list[str]:
    """Those of an edition's ``files`` that are committed, and then those no longer planned."""
    former = [name + suffix for name in FORMER if name.startswith(f"{folder}/")]
    return [name for name in files if not name.startswith(AWAITED)] + former


def compared_so_far(study: Study) -> dict[str, Any]:
    """What one protocol compares in the committed tables: what is planned and trained."""
    facts = compared(study)
    methods = set[str]()
    for one in facts["collections"]:
        one["trained_on"] = TRAINED_ON.get(one["name"], one["trained_on"])
        table = ROOT / f"paper_tables/{study.edition}/one_protocol/table_{one['name']}.csv"
        methods |= set(pd.read_csv(table)["method"])
    for kind in ("methods", "trees"):
        facts[kind] = [one for one in facts[kind] if one["name"] in methods]
    return facts
