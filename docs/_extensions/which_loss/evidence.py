"""What the result files say of the losses, as far as the files are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from directrank.data import catalog
from directrank.edition.plan import load
from directrank.papers.one_protocol.by_loss import Losses, Together, read_losses
from directrank.papers.one_protocol.methods import MARGINS
from directrank.papers.one_protocol.settings import movements
from directrank.system.schema import read_yaml

#: The edition whose results count.
EDITION = "real"

#: Lists of no more documents on average are short, and training sets of fewer queries are small.
SHORT, FEW = 50, 1000

#: Of the losses whose time was measured, those that take at most so many times that of the fastest
#: fit a small budget.
CHEAP = 10

#: Shapes of the benchmark at which times are quoted, and memory.
TIMED, REMEMBERED = "128x120", "128x240"

#: Folds that LETOR's rotation trains on, of five.
TRAINED_SHARE = 3 / 5


@dataclass(frozen=True)
class Collection:
    """A collection of the comparison, as the catalogue and the edition have it.

    Attributes:
        name: in the catalogue.
        title: in print.
        levels: of relevance.
        documents: per query on average; None where the catalogue does not count them.
        trained_on: training queries, in the median fold; None likewise.
        cut: to how many random documents longer lists are cut in training; None for whole lists.
    """

    name: str
    title: str
    levels: int
    documents: float | None
    trained_on: int | None
    cut: int | None

    @property
    def short(self) -> str:
        """Its title without the part in brackets."""
        return self.title.split(" (")[0]


@dataclass(frozen=True)
class Method:
    """A loss under one protocol.

    Attributes:
        name: in print.
        loss: of :data:`directrank.losses.REGISTRY`.
    """

    name: str
    loss: str


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that the pages quote.

    Attributes:
        collections: of the comparison, whether their results are there or not.
        methods: the losses of the comparison.
        tables: the folder of the comparison's files.
        benchmark: the file of measured times and memory.
    """

    collections: Sequence[Collection]
    methods: Sequence[Method]
    tables: Path
    benchmark: Path

    @cached_property
    def studies(self) -> dict[str, Losses]:
        """Collection → what it says of the losses, for those whose file is there."""
        files = {
            collection.name: self.tables / f"per_query_{collection.name}.parquet"
            for collection in self.collections
        }
        return {name: read_losses(file) for name, file in files.items() if file.is_file()}

    @property
    def missing(self) -> list[Collection]:
        """The collections whose results are not there."""
        return [one for one in self.collections if one.name not in self.studies]

    @cached_property
    def costs(self) -> pd.DataFrame:
        """A row per loss and shape of the benchmark: ``loss``, ``lists``, ``documents``, ``ms``
        (per 1000 lists) and ``mb`` (of all lists, missing where it was not measured)."""
        columns = ["loss", "shape", "lists", "documents", "ms", "mb"]
        if not self.benchmark.is_file():
            return pd.DataFrame(columns=columns)
        measured = pd.read_csv(self.benchmark)
        sizes = measured["shape"].str.extract(r"^(\d+)x(\d+)$").astype(float)
        measured["lists"], measured["documents"] = sizes[0], sizes[1]
        measured["ms"] = measured["directrank_ms"] / measured["lists"] * 1000
        measured["mb"] = measured["directrank_peak_mb"]
        return measured.loc[sizes.notna().all(axis=1) & measured["ms"].notna(), columns]

    def together(self, names: Iterable[str]) -> Together | None:
        """The losses that these collections have in common; None where that is fewer than two."""
        key = tuple(names)
        if key and key not in self._together:
            self._together[key] = Together([self.studies[name] for name in key])
        found = self._together.get(key)
        return found if found and len(found.labels) > 1 else None

    @cached_property
    def _together(self) -> dict[tuple[str, ...], Together]:
        """What was asked for once: situations rest on the same collections."""
        return {}

    def ms(self, loss: str) -> float | None:
        """Milliseconds per 1000 lists at :data:`TIMED`; None where it was not measured."""
        return self._cost(loss, TIMED, "ms")

    def mb(self, loss: str) -> float | None:
        """MB of the lists of :data:`REMEMBERED`; None where it was not measured."""
        return self._cost(loss, REMEMBERED, "mb")

    @cached_property
    def cheap(self) -> list[str]:
        """The methods whose loss fits a small budget; see :data:`CHEAP`."""
        times = {method.name: self.ms(method.loss) for method in self.methods}
        known = {name: ms for name, ms in times.items() if ms is not None}
        return [name for name, ms in known.items() if ms <= CHEAP * min(known.values())]

    @cached_property
    def moved(self) -> pd.DataFrame:
        """Collection and method → ``setting``, ``moves_with_setting`` and ``moves_with_rate``: how
        far validation NDCG@10 moves, the mean over scorers. Of the collections whose file is
        there."""
        frames = []
        for collection in self.collections:
            file = self.tables / f"table_{collection.name}_settings.csv"
            if file.is_file():
                of_scorers = movements(pd.read_csv(file))
                frames.append(
                    of_scorers.groupby("method")
                    .agg(
                        setting=("setting", "first"),
                        moves_with_setting=("moves_with_setting", "mean"),
                        moves_with_rate=("moves_with_rate", "mean"),
                    )
                    .assign(collection=collection.name)
                    .reset_index()
                )
        columns = ["collection", "method", "setting", "moves_with_setting", "moves_with_rate"]
        frame = pd.concat(frames) if frames else pd.DataFrame(columns=columns)
        return frame.set_index(["collection", "method"])

    def loss_of(self, method: str) -> str:
        """The loss behind a method's name; the name itself where the edition knows none."""
        return next((one.loss for one in self.methods if one.name == method), method)

    def _cost(self, loss: str, shape: str, column: str) -> float | None:
        found = self.costs.loc[
            (self.costs["loss"] == loss) & (self.costs["shape"] == shape), column
        ].dropna()
        return float(found.iloc[0]) if len(found) else None


def gather(root: Path, tables: Path | None = None, benchmark: Path | None = None) -> Results:
    """What the repository has.

    Args:
        root: its folder.
        tables, benchmark: other results than those in it.
    """
    config = read_yaml(root / f"config/{EDITION}.yaml")
    study = load(config, root)
    collections, methods = [], {}
    for name in study.config["papers"]["one_protocol"]["collections"]:
        cells = study.products["one_protocol", f"per_query_{name}"]["experiments"][f"{name}_linear"]
        specs = [study.runs[cell["run"]] for cell in cells]
        collections.append(_collection(catalog.get(name, root / "data/datasets.yaml"), specs[0]))
        for cell, spec in zip(cells, specs, strict=True):
            methods[cell["settings"]["method"]] = spec["loss"]["name"]
    return Results(
        collections,
        [Method(name, loss) for name, loss in methods.items()],
        tables or root / f"paper_tables/{EDITION}/one_protocol",
        benchmark or root / "benchmarks/results/losses.csv",
    )


def _collection(entry: catalog.Entry, spec: Mapping[str, Any]) -> Collection:
    total = entry.expect.get("total", {})
    queries, documents = total.get("queries"), total.get("documents")
    of_folds = [
        facts["queries"]
        for split, facts in entry.expect.items()
        if split.split("/")[-1] == "train" and "queries" in facts
    ]
    trained_on = median(of_folds) if of_folds else queries and queries * TRAINED_SHARE
    if trained_on and "train_queries" in spec:
        trained_on = min(trained_on, spec["train_queries"])
    return Collection(
        entry.name,
        entry.title,
        entry.label_levels,
        documents / queries if queries and documents else None,
        round(trained_on) if trained_on else None,
        spec["training"].get("max_documents"),
    )


@dataclass(frozen=True)
class Situation:
    """A kind of task and data.

    Attributes:
        title: of it.
        meaning: what counts as such, in words; empty where the title says it.
        holds: which collections stand for it.
        cheap: whether only losses that fit a small budget are asked for.
    """

    title: str
    meaning: str
    holds: Callable[[Collection], bool]
    cheap: bool = False


SITUATIONS: Sequence[Situation] = (
    Situation("Nothing known", "all collections", lambda one: True),
    Situation("Binary labels", "two levels", lambda one: one.levels == 2),
    Situation("Graded labels", "more than two levels", lambda one: one.levels > 2),
    Situation(
        "Short lists",
        f"up to {SHORT} documents per query on average",
        lambda one: one.documents is not None and one.documents <= SHORT,
    ),
    Situation(
        "Long lists",
        f"more than {SHORT} documents per query on average",
        lambda one: one.documents is not None and one.documents > SHORT,
    ),
    Situation(
        "Few queries",
        f"fewer than {FEW} to train on",
        lambda one: one.trained_on is not None and one.trained_on < FEW,
    ),
    Situation(
        "Many queries",
        f"{FEW} or more to train on",
        lambda one: one.trained_on is not None and one.trained_on >= FEW,
    ),
    Situation(
        "Small CPU budget",
        f"at most {CHEAP} times as long as the fastest loss, all collections",
        lambda one: True,
        cheap=True,
    ),
)


@dataclass(frozen=True)
class Answer:
    """What the results say of a situation.

    Attributes:
        situation: of what.
        stands_on: the collections whose results say so.
        awaited: those that would stand for it too, and have no results yet.
        together: the losses on them; None where there is no result, or no loss that fits.
        take: the loss with the best mean rank; empty likewise.
        within: margin → the losses that are shown to be as good within it, the best rank first.
        apart: the losses that differ significantly from it.
        untold: those that are neither.
        cheaper: the loss as good within the wider margin that takes the least time, where that is
            less than :attr:`take` takes; empty where there is none.
        gamble: likewise of :attr:`untold`.
    """

    situation: Situation
    stands_on: Sequence[Collection]
    awaited: Sequence[Collection]
    together: Together | None = None
    take: str = ""
    within: Mapping[float, Sequence[str]] = field(default_factory=dict)
    apart: Sequence[str] = ()
    untold: Sequence[str] = ()
    cheaper: str = ""
    gamble: str = ""


def answer(results: Results, situation: Situation) -> Answer:
    """What the results say of a situation."""
    meant = [one for one in results.collections if situation.holds(one)]
    there = [one for one in meant if one.name in results.studies]
    awaited = [one for one in meant if one.name not in results.studies]
    together = results.together(one.name for one in there)
    among = set(together.labels if together else ())
    if situation.cheap:
        among &= set(results.cheap)
    if together is None or not among:
        return Answer(situation, there, awaited)
    take = together.best(among)
    within = {
        margin: [name for name in together.equivalent(take, margin) if name in among]
        for margin in MARGINS
    }
    apart = [name for name in together.told_apart(take) if name in among]
    known = {take, *within[max(MARGINS)], *apart}
    untold = [name for name in together.labels if name in among - known]
    return Answer(
        situation,
        there,
        awaited,
        together,
        take,
        within,
        apart,
        untold,
        _cheapest(results, take, within[max(MARGINS)]),
        _cheapest(results, take, untold),
    )


def _cheapest(results: Results, take: str, others: Sequence[str]) -> str:
    times = {name: results.ms(results.loss_of(name)) for name in (take, *others)}
    known = {name: ms for name, ms in times.items() if ms is not None}
    if take not in known:
        return ""
    fastest = min(known, key=lambda name: known[name])
    return "" if known[fastest] == known[take] else fastest


def command(collection: Collection) -> str:
    """What makes a collection's results."""
    return f"make {EDITION}-{collection.name}"
