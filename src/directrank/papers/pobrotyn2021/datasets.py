"""Table 2 of Pobrotyn2021: statistics of the data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from directrank.data import catalog
from directrank.papers.shared import datasets
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.product import TableResult

#: Published name of a data set in Table 2 → its name in the catalogue.
DATASETS = {"Web30K": "web30k", "Istella": "istella"}


def table2(evidence: Evidence) -> TableResult:
    """Table 2: statistics of the data sets, of those that this edition prepares."""
    caption = (
        "Data sets: features, training and test queries, and queries without a relevant document "
        "in all splits together. For Web30K these are the numbers of fold 1; for Istella, training "
        "queries include the quarter that is set apart for validation. A dash marks a data set "
        "that this edition does not prepare; a stand-in is generated and smaller."
    )
    printed = evidence.published("pobrotyn2021_table2").set_index("Dataset")
    columns = {column: column for column in printed}
    return datasets.table(evidence, printed, DATASETS, _statistics, columns, caption)


def _statistics(name: str, record: Mapping[str, Any]) -> dict[str, int]:
    """The columns of Table 2 from the record of a prepared data set."""
    prefix = "Fold1/" if record["folds"] else ""
    queries = {
        split: record["splits"][prefix + split]["queries"] for split in ("train", "vali", "test")
    }
    whole_training = catalog.get(name).vali_from_train is not None
    return {
        "Features": record["n_features"],
        "Queries in training": queries["train"] + (queries["vali"] if whole_training else 0),
        "Queries in test": queries["test"],
        "Empty queries": record["total"]["empty_queries"],
    }
