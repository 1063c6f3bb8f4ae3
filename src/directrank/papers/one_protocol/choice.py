"""Which loss and which trees to take in which situation, as the result files of one protocol say.

A situation is a kind of task and data; the collections that are of this kind stand for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from directrank.papers.one_protocol.advice import CHEAP, Advice, Field, Standing, advise
from directrank.papers.one_protocol.by_loss import Losses, Together, read_losses
from directrank.papers.one_protocol.controls import is_again
from directrank.papers.one_protocol.derived import Trees
from directrank.papers.one_protocol.settings import most_chosen, movements
from directrank.system.errors import DataError

#: The measured time and memory of the losses, in the repository to which this file belongs.
BENCHMARK = Path(__file__).resolve().parents[4] / "benchmarks/results/losses.csv"

#: Lists of no more documents on average are short, and training sets of fewer queries are small.
SHORT, FEW = 50, 1000

#: Shapes of the benchmark at which times are quoted, and memory.
TIMED, REMEMBERED = "128x120", "128x240"


@dataclass(frozen=True)
class ComparedCollection:
    """A collection of the comparison, as the catalogue and the edition have it.

    Attributes:
        name: in the catalogue.
        title: in print.
        levels: of relevance.
        documents: per query on average; None where the catalogue does not count them.
        trained_on: training queries, in the median fold; None likewise.
        cut: to how many random documents longer lists are cut in training; None for whole lists.
        scorers: what a scorer consists of, by its name in print; without those whose name says it.
    """

    name: str
    title: str
    levels: int
    documents: float | None
    trained_on: int | None
    cut: int | None
    scorers: Mapping[str, str]

    @property
    def short(self) -> str:
        """Its title without the part in brackets."""
        return self.title.split(" (")[0]


@dataclass(frozen=True)
class ComparedLoss:
    """A loss under one protocol.

    Attributes:
        name: in print.
        loss: of :data:`directrank.losses.REGISTRY`.
    """

    name: str
    loss: str


@dataclass(frozen=True)
class Ensemble:
    """A kind of boosted trees under one protocol.

    Attributes:
        name: in print.
        library: in print.
        options: of its objective that are set, by the library's own names; see ``docs/trees.md``.
    """

    name: str
    library: str
    options: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that the pages quote.

    Attributes:
        edition: whose results these are.
        collections: of the comparison.
        methods: the losses of the comparison.
        ensembles: its boosted trees.
        tables: the folder of the comparison's files.
        benchmark: the file of measured times and memory of losses.
        times: the files of measured training times, one per collection.
    """

    edition: str
    collections: Sequence[ComparedCollection]
    methods: Sequence[ComparedLoss]
    ensembles: Sequence[Ensemble]
    tables: Path
    benchmark: Path
    times: Sequence[Path] = ()

    @cached_property
    def studies(self) -> dict[str, Losses]:
        """Collection → what it says of the losses."""
        return {
            one.name: read_losses(self.tables / f"per_query_{one.name}.parquet")
            for one in self.collections
        }

    @cached_property
    def costs(self) -> pd.DataFrame:
        """A row per loss and shape of the benchmark: ``loss``, ``lists``, ``documents``, ``ms``
        (per 1000 lists) and ``mb`` (of all lists, missing where it was not measured)."""
        if not self.benchmark.exists():
            raise DataError(
                "the measured times of the losses are missing",
                "write them with `python benchmarks/bench_losses.py`, in a clone",
                file=self.benchmark,
            )
        measured = pd.read_csv(self.benchmark)
        sizes = measured["shape"].str.extract(r"^(\d+)x(\d+)$").astype(float)
        measured["lists"], measured["documents"] = sizes[0], sizes[1]
        measured["ms"] = measured["directrank_ms"] / measured["lists"] * 1000
        measured["mb"] = measured["directrank_peak_mb"]
        return measured.loc[sizes.notna().all(axis=1) & measured["ms"].notna()]

    @cached_property
    def trees(self) -> dict[str, Trees]:
        """Collection → what it says of boosted trees."""
        return {name: Trees(study.every) for name, study in self.studies.items()}

    def seconds(self, collections: Sequence[ComparedCollection]) -> pd.DataFrame:
        """The time that one configuration of an ensemble takes to train: a row per ensemble, a
        column per collection; only what is known on every one."""
        known = [self._seconds[one.title] for one in collections if one.title in self._seconds]
        if not known or len(known) < len(collections):
            return pd.DataFrame()
        return pd.concat(known, axis=1, join="inner")

    @cached_property
    def _seconds(self) -> dict[str, pd.Series]:
        frames = [pd.read_csv(file).query("scorer == 'trees'") for file in self.times]
        return {
            frame["dataset"].iloc[0]: frame.set_index("method")["seconds"]
            for frame in frames
            if len(frame)
        }

    def moves(self, name: str, collections: Sequence[ComparedCollection]) -> tuple[str, float]:
        """A method's own setting, and how far validation NDCG@10 moves with it: the mean over
        these collections. An empty name and NaN for a method without a setting."""
        keys = [(one.name, name) for one in collections]
        own = self.moved.loc[[key for key in keys if key in self.moved.index]]
        setting = str(own["setting"].iloc[0]) if len(own) else ""
        return setting, float(own["moves_with_setting"].mean()) if setting else math.nan

    def together(self, names: Iterable[str]) -> Together:
        """The losses that these collections have in common."""
        key = tuple(names)
        if key not in self._together:
            self._together[key] = Together([self.studies[name] for name in key])
        return self._together[key]

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
        """The methods whose loss fits a small budget; that is, at most
        :data:`~.advice.CHEAP` times the time of the fastest."""
        times = {method.name: self.ms(method.loss) for method in self.methods}
        known = {name: ms for name, ms in times.items() if ms is not None}
        fastest = min(known.values(), default=0.0)
        return [name for name, ms in known.items() if ms <= CHEAP * fastest]

    @cached_property
    def moved(self) -> pd.DataFrame:
        """Collection and method → ``setting``, ``moves_with_setting`` and ``moves_with_rate``: how
        far validation NDCG@10 moves, the mean over scorers."""
        return self._of_settings(
            lambda table: (
                movements(table)
                .groupby("method")
                .agg(
                    setting=("setting", "first"),
                    moves_with_setting=("moves_with_setting", "mean"),
                    moves_with_rate=("moves_with_rate", "mean"),
                )
            )
        )

    @cached_property
    def chosen(self) -> pd.DataFrame:
        """Collection and method → the configuration that the validation set chose most often with
        the network; see :func:`~.settings.most_chosen`."""
        return self._of_settings(lambda table: most_chosen(table, "network"))

    def _of_settings(self, by_method: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
        """Collection and method → what a function says of a collection's table of settings."""
        frames = {name: by_method(table) for name, table in self._settings.items()}
        return pd.concat(frames, names=["collection", "method"])

    @cached_property
    def _settings(self) -> dict[str, pd.DataFrame]:
        """Collection → the file of its table of settings."""
        files = {
            one.name: self.tables / f"table_{one.name}_settings.csv" for one in self.collections
        }
        return {name: pd.read_csv(file) for name, file in files.items()}

    def loss_of(self, method: str) -> str:
        """The loss behind a method's name; the name itself where the edition knows none."""
        return next((one.loss for one in self.methods if one.name == method), method)

    def _cost(self, loss: str, shape: str, column: str) -> float | None:
        found = self.costs.loc[
            (self.costs["loss"] == loss) & (self.costs["shape"] == shape), column
        ].dropna()
        return float(found.iloc[0]) if len(found) else None


def read(file: Path, benchmark: Path = BENCHMARK, times: Sequence[Path] = ()) -> Results:
    """The results of an edition.

    Args:
        file: ``compared.json`` of the edition, beside the files of its comparison.
        benchmark: the measured time and memory of the losses.
        times: the files of training times, one per collection.
    """
    facts = json.loads(file.read_text(encoding="utf-8"))
    collections = [ComparedCollection(**one) for one in facts["collections"]]
    methods = [ComparedLoss(**one) for one in facts["methods"]]
    ensembles = [Ensemble(**one) for one in facts["trees"]]
    return Results(facts["edition"], collections, methods, ensembles, file.parent, benchmark, times)


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
    holds: Callable[[ComparedCollection], bool]
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
        "More queries",
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
class Recommendation:
    """What the results say of a situation.

    Attributes:
        situation: of what.
        stands_on: the collections whose results say so.
        advice: which loss to take.
    """

    situation: Situation
    stands_on: Sequence[ComparedCollection]
    advice: Advice

    @property
    def together(self) -> Together:
        """The losses on these collections."""
        return self.advice.field.whole.together

    @property
    def candidates(self) -> list[str]:
        """The losses that are asked for and may be the best of all, the highest mean first."""
        among = self.advice.field.whole.among
        return [name for name in self.together.candidates if name in among]


def recommendations(results: Results) -> list[Recommendation]:
    """What the results say of each situation for which a collection stands."""
    found = (recommendation(results, situation) for situation in SITUATIONS)
    return [one for one in found if one]


def recommendation(results: Results, situation: Situation) -> Recommendation | None:
    """What the results say of a situation; None where no collection or no loss is of its kind."""
    there = [one for one in results.collections if situation.holds(one)]
    if not there:
        return None
    whole = results.together(one.name for one in there)
    among = {name for name in whole.labels if not is_again(name)}
    if situation.cheap:
        among &= set(results.cheap)
    if not among:
        return None
    each = [results.together([one.name]) for one in there]
    standing, *singles = (Standing(one, among, one.distance) for one in (whole, *each))
    costs = {name: results.ms(results.loss_of(name)) for name in among}
    known = {name: ms for name, ms in costs.items() if ms is not None}
    field = Field(standing, singles, known, _moves(results, among, there))
    return Recommendation(situation, there, advise(field))


def advice_on_trees(results: Results, collections: Sequence[ComparedCollection]) -> Advice | None:
    """Which boosted trees to take, on some collections; None if none have been compared there.

    Where no ensemble was trained a second time, the controls of the losses stand in.
    """
    studies = [results.trees[one.name] for one in collections]
    every = [Together([study]) for study in studies]
    whole = Together(studies)
    among = {name for name in whole.labels if not is_again(name)}
    if len(among) < 2:
        return None
    losses = [results.together([one.name]) for one in collections]
    of_losses = results.together(one.name for one in collections)
    standing, *singles = (
        Standing(one, among, one.distance or other.distance)
        for one, other in zip([whole, *every], [of_losses, *losses], strict=True)
    )
    moves = _moves(results, among, collections)
    seconds = results.seconds(collections).mean(axis=1).to_dict()
    return advise(Field(standing, singles, seconds, moves))


def _moves(
    results: Results, names: Iterable[str], collections: Sequence[ComparedCollection]
) -> dict[str, float]:
    """How far validation moves with the setting of each method that has one."""
    moved = {name: results.moves(name, collections)[1] for name in names}
    return {name: value for name, value in moved.items() if not math.isnan(value)}
