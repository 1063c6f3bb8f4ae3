"""Table 2 of Pobrotyn2021: statistics of the data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from directrank.data import catalog
from directrank.papers.shared.differences import MET, UNPREPARED, add_differences
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import count
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section

#: Published name of a data set in Table 2 → its name in the catalogue.
DATASETS = {"Web30K": "web30k", "Istella": "istella"}


def table2(evidence: Evidence) -> TableResult:
    """Table 2: statistics of the data sets, of those that this edition prepares."""
    printed = evidence.published("pobrotyn2021_table2").set_index("Dataset")
    rows = []
    for title, name in DATASETS.items():
        record = evidence.prepared.get(name)
        dataset = None if record is None else evidence.prepared_dataset(name)
        statistics = None if record is None else _statistics(name, record)
        for statistic in printed.columns:
            published = int(printed.loc[title, statistic])
            row = evidence.about(dataset, paper_dataset=title) | {
                "statistic": statistic,
                "value": None if statistics is None else statistics[statistic],
                "published": published,
                "status": UNPREPARED,
            }
            if statistics is not None and dataset is not None:
                met = MET if statistics[statistic] == published else "not met"
                row["status"] = "stand-in" if dataset.standin else met
            rows.append(row)
    data = pd.DataFrame(rows).astype({"value": "Int64"})
    data = add_differences(data, value="value")
    lines = []
    for title, part in data.groupby("paper_dataset", sort=False):
        first = part.iloc[0]
        ours = ["" if pd.isna(value) else count(value) for value in part["value"]]
        lines.append([f"{title}, paper", *(count(value) for value in part["published"])])
        missing = first["status"] == UNPREPARED
        label = f"{title}, not prepared here" if missing else f"{first['dataset']}, here"
        lines.append([label, *ours])
    caption = (
        "Data sets: features, queries in training and test, and queries without a relevant "
        "document in all parts together (of Web30K Fold 1; of Istella the training queries before "
        "a quarter is set apart for validation). A blank is a data set that this edition does not "
        f"prepare; a stand-in is generated and smaller. Edition {evidence.edition}."
    )
    return TableResult(data, Layout(caption, ["", *printed.columns], [Section("", lines)]))


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
