"""The size of a data set, known before it is prepared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from directrank.data import catalog, prepared, standins
from directrank.data.cubic import CubicSettings
from directrank.data.standin_pages import Lengths
from directrank.edition.plan import DataSource
from directrank.system.errors import DataError
from directrank.system.io import json_text
from directrank.system.seeds import numpy_stream

#: List lengths of unknown collections are assumed to be log-normal, like those of known ones.
_UNKNOWN = {"median": 90, "sigma": 0.5, "maximum": 1000, "single": 0.0, "short": 0.0, "long": 0.0}

#: Shares of the queries per split if only their total is known: those of LETOR's folds.
_SHARES = {"train": 0.6, "vali": 0.2, "test": 0.2}


@dataclass(frozen=True)
class Facts:
    """The size of a data set (of one fold).

    Attributes:
        lengths: documents per query of each split, int64 ``[Q]``.
        features: columns.
        origin: the source of these numbers, in words.
    """

    lengths: Mapping[str, np.ndarray]
    features: int
    origin: str

    def as_trained_on(self, spec: Mapping[str, Any]) -> Facts:
        """The size after a run's ``filter`` (by length), ``sample``, ``train_queries`` and so
        on."""
        shortest = spec["filter"].get("min_documents", 1)
        lengths = {split: value[value >= shortest] for split, value in self.lengths.items()}
        if "sample" in spec:
            lengths = _sampled(lengths, **spec["sample"])
        for split in ("train", "vali"):
            lengths[split] = lengths[split][: spec.get(f"{split}_queries")]
        if spec.get("train_on") == "train_and_vali":
            lengths["train"] = np.concatenate([lengths["train"], lengths["vali"]])
        return replace(self, lengths=lengths)


def _sampled(
    lengths: Mapping[str, np.ndarray], queries: Mapping[str, int], max_documents: int | None = None
) -> dict[str, np.ndarray]:
    """Random lists of all splits, as many and as long as those that a run's ``sample`` draws."""
    pool = np.concatenate([lengths[split] for split in prepared.SPLITS])
    pool = numpy_stream("cost", "sample").permutation(pool)
    if max_documents is not None:
        pool = pool.clip(max=max_documents)
    ends = np.cumsum([queries[split] for split in prepared.SPLITS])
    drawn = np.split(pool, ends)[: len(ends)]
    return dict(zip(prepared.SPLITS, drawn, strict=True))


def facts(source: DataSource, fold: int | None, prepared_folder: str | Path) -> Facts:
    """The size of a data set as prepared, or else as it will be generated, or else as published.

    Prepared data that are damaged count as not prepared: what opens them for their content says
    what is wrong with them.

    Args:
        source: the data set that the study needs.
        fold: counted from 1; None if there are no folds.
        prepared_folder: the folder that contains the prepared data sets.
    """
    folder = Path(prepared_folder) / source.key
    if (folder / "prepared.json").is_file():
        with suppress(DataError, ValueError, KeyError, TypeError):
            return _prepared(str(folder), fold)
    if source.source == "archive":
        return _published(source.name, fold)
    settings = json_text(dict(source.settings))
    return (_standin if source.name in standins.names() else _cubic)(source.name, settings)


@lru_cache(maxsize=64)
def _prepared(folder: str, fold: int | None) -> Facts:
    record = prepared.read_record(folder)
    lengths = {
        split: np.asarray(prepared.open_dataset(prepared.split_folder(folder, fold, split)).lengths)
        for split in prepared.SPLITS
    }
    return Facts(lengths, record["n_features"], "prepared data")


@lru_cache(maxsize=64)
def _published(name: str, fold: int | None) -> Facts:
    """The size by the catalogue's counts; list lengths are the stand-in's, scaled to the mean."""
    expect = catalog.get(name).expect
    total = expect.get("total", {})
    standin = name + catalog.STANDIN
    known = standin in standins.names()
    full = standins.profile(standin).get("full", {}) if known else {}
    lengths, guessed = {}, ""
    for split in prepared.SPLITS:
        counts = expect.get(prepared.split_name(fold, split), {})
        queries = counts.get("queries")
        if queries is None and (total.get("queries") or not full.get(split)):
            queries = round(_SHARES[split] * total.get("queries", 1000))
            guessed = ", queries per split assumed"
        queries = int(queries or full[split])
        documents = counts.get("documents")
        if documents is None and total.get("documents") and total.get("queries"):
            documents = queries * total["documents"] / total["queries"]
        lengths[split] = _draw(standin, split, queries, documents)
    origin = "published counts, list lengths " + ("as the stand-in's" if known else "assumed")
    return Facts(lengths, _features(name), origin + guessed)


@lru_cache(maxsize=64)
def _standin(name: str, settings: str) -> Facts:
    size = standins.resolve(name, json.loads(settings))
    lengths = {}
    for split in prepared.SPLITS:
        queries = size.queries.get(split, 0)
        lengths[split] = _draw(name, split, queries, queries * size.mean_length, size.max_length)
    return Facts(lengths, _features(name.removesuffix(catalog.STANDIN)), "settings of the stand-in")


@lru_cache(maxsize=64)
def _cubic(_: str, settings: str) -> Facts:
    size = CubicSettings.from_mapping(json.loads(settings))
    lengths = {
        split: np.full(size.queries.get(split, 0), size.documents_per_query)
        for split in prepared.SPLITS
    }
    return Facts(lengths, size.n_features, "settings of the generator")


def _features(name: str) -> int:
    # A user's own catalogue may lack the original of a stand-in.
    entry = catalog.load().get(name) or catalog.get(name, catalog.PACKAGED)
    return next(iter(entry.active_features), entry.features)


def _draw(
    standin: str, split: str, queries: int, documents: float | None, longest: int | None = None
) -> np.ndarray:
    """``queries`` lengths, scaled so that they sum to about ``documents`` if that is known."""
    shape = dict(standins.profile(standin)["lists"] if standin in standins.names() else _UNKNOWN)
    shape.pop("mean", None)
    distribution, stream = Lengths(**shape), numpy_stream("cost", standin, split)
    lengths = np.array([distribution.draw(stream) for _ in range(queries)], dtype=np.int64)
    if documents is None or not queries:
        return lengths
    scaled = np.round(lengths * (documents / lengths.sum()))
    return np.clip(scaled, 1, longest).astype(np.int64)
