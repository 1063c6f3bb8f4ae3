"""How much a plain random split of MSRD leaks from training to test, beside the split in groups.

    python benchmarks/msrd_split.py data/raw/MSRD.zip

Writes benchmarks/results/msrd_split.csv. Both splits have five parts of the same queries: three
train, one validates, one tests (the first fold).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from directrank.data.archives import open_archive
from directrank.data.msrd.features import features
from directrank.data.msrd.source import answers, communities, folds, read
from directrank.data.prepared import ring_split
from directrank.data.text.judged import Judged, as_lists
from directrank.data.text.words import trigrams, words
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.seeds import numpy_stream

OUT = Path(__file__).parent / "results/msrd_split.csv"

#: Facts of a movie that say nothing of the query.
METADATA = ("votes", "popularity", "rating", "year", "budget")

#: Queries as alike as that in their runs of three characters are near duplicates.
ALIKE = 0.7


def main(archive: str) -> None:
    """Measure both splits and write the table."""
    collection = read(open_archive(archive))
    answering = answers(collection)
    group, part = folds(answering, communities(answering, len(collection.documents)), 5)
    names, values = features(collection)
    lists = as_lists(collection, values, group)
    kept = np.flatnonzero(part >= 0)
    plain_parts = np.full(len(part), -1)
    order = numpy_stream("msrd_split").permutation(kept)
    for number, queries in enumerate(np.array_split(order, 5)):
        plain_parts[queries] = number
    rows = []
    for name, parts in (("groups", part), ("plain random", plain_parts)):
        split = {
            which: np.flatnonzero(np.isin(parts, [number - 1 for number in ring_split(1, which)]))
            for which in ("train", "vali", "test")
        }
        rows.append(
            {
                "split": name,
                "queries_with_an_answer_of_training": shared_answers(answering, split),
                "near_duplicates_in_training": near_duplicates(collection, split),
                "ndcg@10_metadata": boosted(lists, split, [names.index(key) for key in METADATA]),
                "ndcg@10_all": boosted(lists, split, list(range(len(names)))),
            }
        )
        print(rows[-1], flush=True)
    pd.DataFrame(rows).round(4).to_csv(OUT, index=False)


def shared_answers(answering: list[np.ndarray], split: Mapping[str, np.ndarray]) -> float:
    """Share of the test queries of which an answer is one of a training query."""
    trained = np.unique(np.concatenate([answering[query] for query in split["train"]]))
    return float(np.mean([np.isin(answering[query], trained).any() for query in split["test"]]))


def near_duplicates(collection: Judged, split: Mapping[str, np.ndarray]) -> float:
    """Share of the test queries that are near duplicates of a training query."""
    runs = CountVectorizer(analyzer=lambda query: trigrams(words(query)), binary=True)
    counts = runs.fit_transform(collection.queries)
    size = np.asarray(counts.sum(axis=1)).ravel()
    common = sparse.coo_array(counts[split["test"]] @ counts[split["train"]].T)
    either = size[split["test"]][common.row] + size[split["train"]][common.col] - common.data
    return len(np.unique(common.row[common.data >= ALIKE * either])) / len(split["test"])


def boosted(lists: RankedLists, split: Mapping[str, np.ndarray], columns: list[int]) -> float:
    """Test NDCG@10 of LightGBM's LambdaMART on some of the features, stopped early."""
    parts = {which: lists.select(queries) for which, queries in split.items()}
    data = {
        which: lightgbm.Dataset(some.features[:, columns], some.labels, group=some.lengths)
        for which, some in parts.items()
    }
    settings = {"objective": "lambdarank", "eval_at": [10], "num_leaves": 15, "seed": 1}
    settings |= {"verbosity": -1, "deterministic": True, "num_threads": 1, "metric": "ndcg"}
    model = lightgbm.train(
        settings,
        data["train"],
        400,
        [data["vali"]],
        callbacks=[lightgbm.early_stopping(50, verbose=False)],
    )
    scores = model.predict(parts["test"].features[:, columns])
    mapping = {"name": "ndcg", "k": 10}
    values = metrics_per_query(np.asarray(scores, np.float32)[None], parts["test"], [mapping])
    return float(np.nanmean(values["ndcg@10"]))


if __name__ == "__main__":
    main(sys.argv[1])
