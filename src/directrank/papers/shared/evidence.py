"""The inputs of a figure, table or claim: planned runs, their results, and published values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from directrank.data.prepared import read_record
from directrank.papers.shared.format import count
from directrank.stats.means import mean_metric
from directrank.study.failures import FAILED
from directrank.study.results import RunResult, load_run
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import read_json

#: The folder of published values in the repository to which this file belongs.
PUBLISHED = Path(__file__).resolve().parents[4] / "paper_tables" / "published"

#: The folder of prepared data sets, relative to the workflow's working folder.
PREPARED = Path("data/prepared")

#: The value of queries without a relevant document; see the metrics' option of the same name.
Empty = Literal["exclude", "zero", "one"]
CONVENTIONS: tuple[Empty, ...] = get_args(Empty)


#: The kind of real data that replace the paper's.
OTHER_REAL = "other real"

#: Kinds of data whose levels cannot be compared with those that the paper prints.
NOT_COMPARABLE = ("stand-in", OTHER_REAL)


@dataclass(frozen=True)
class Dataset:
    """What a reader must know about a data set.

    Attributes:
        name: its name in the configuration, e.g. ``web30k_standin``.
        title: its name in print.
        origin: ``real``, ``standin`` (generated to replace the paper's data) or ``generated``
            (artificial in the paper as well).
        in_place_of: the title of the paper's data if these real data replace them.
    """

    name: str
    title: str
    origin: str
    in_place_of: str | None = None

    @property
    def short(self) -> str:
        """Its title without what is in brackets."""
        return re.sub(r" \([^)]*\)", "", self.title)

    @property
    def standin(self) -> bool:
        """Whether it is generated to replace the paper's data."""
        return self.origin == "standin"

    @property
    def of_the_paper(self) -> bool:
        """Whether its levels can be compared with those that the paper prints."""
        return self.kind not in NOT_COMPARABLE

    @property
    def kind(self) -> str:
        """``real``, ``other real``, ``stand-in`` or ``artificial``; ``data`` of every CSV file."""
        if self.in_place_of is not None:
            return OTHER_REAL
        return {"real": "real", "standin": "stand-in", "generated": "artificial"}[self.origin]


@dataclass(frozen=True)
class FinishedRun:
    """One run of an experiment: the settings that identify it, its data, and its results."""

    settings: Mapping[str, Any]
    dataset: Dataset
    result: RunResult

    @property
    def n_trials(self) -> int:
        """Number of independent repetitions."""
        return int(self.result.spec["trials"])

    def setting(self, name: str) -> Any:
        """The value of a setting that identifies this run; raises ConfigError without it."""
        if name not in self.settings:
            raise ConfigError(
                f"the plan has no setting '{name}' for the run '{self.result.name}'",
                "add it to the experiment, and write the plans again",
            )
        return self.settings[name]

    @property
    def fold(self) -> int | None:
        """The fold of the data set; None for data with a single split."""
        return self.result.spec["fold"]

    @property
    def n_drawn(self) -> int | None:
        """Number of queries that were drawn from the training set; None if all are used."""
        queries = int(self.result.record["data"]["splits"]["train"]["queries"])
        return queries if self.result.spec.get("train_queries") == queries else None

    @property
    def trained_on(self) -> str:
        """Size of the training set, in words."""
        size = self.result.record["data"]["splits"]["train"]
        return f"{count(size['queries'])} queries ({count(size['documents'])} documents)"

    @property
    def kept_history(self) -> pd.DataFrame:
        """The history of the candidate that validation chose in each trial."""
        fits = self.result.fits
        return self.result.history.merge(fits.loc[fits["selected"], ["trial", "candidate"]])

    def rows(self, split: str) -> pd.DataFrame:
        """The per-query results of ``split``, as the run wrote them; DataError without any."""
        rows = self.result.by_split.get(split)
        if rows is None:
            raise DataError(
                f"this run has no values for the split '{split}'",
                "train this run again",
                file=self.result.folder,
            )
        return rows

    def trial_means(self, split: str, metric: str, empty: Empty) -> np.ndarray:
        """The mean of ``metric`` over the queries of ``split`` per trial, float64 ``[trials]``."""
        return mean_metric(self.rows(split), metric, empty)["value"].to_numpy()

    def query_values(self, split: str, metric: str, empty: Empty) -> pd.Series:
        """``metric`` per query, averaged over the trials; indexed by query id.

        With ``empty="exclude"`` queries without a relevant document are absent.
        """
        values = self._measured(split, metric).groupby("query_id")[metric].mean()
        return values.dropna() if empty == "exclude" else values.fillna(float(empty == "one"))

    def trial_values(self, split: str, metric: str, empty: Empty) -> pd.DataFrame:
        """``metric`` per query, with a column per trial; otherwise like :meth:`query_values`."""
        rows = self._measured(split, metric)
        values = rows.pivot(index="query_id", columns="trial", values=metric)
        return values.dropna() if empty == "exclude" else values.fillna(float(empty == "one"))

    def query_groups(self, split: str) -> pd.Series:
        """The group of every query, by query id. Queries of the same group are not independent."""
        rows = self.rows(split).drop_duplicates("query_id").set_index("query_id")
        return rows["group"] if "group" in rows else rows.index.to_series()

    def scale(self, split: str) -> Scale:
        """The numbers of queries and documents of ``split``."""
        rows = self.rows(split)
        rows = rows[rows["trial"] == rows["trial"].min()]
        return Scale(
            queries=len(rows),
            empty=int((rows["n_relevant"] == 0).sum()),
            documents=int(rows["n_documents"].sum()),
            groups=rows["group"].nunique() if "group" in rows else len(rows),
        )

    def _measured(self, split: str, metric: str) -> pd.DataFrame:
        rows = self.rows(split)
        if metric not in rows:
            raise DataError(
                f"this run has no values of the metric '{metric}'",
                "add it to the run's evaluation",
                file=self.result.folder,
            )
        return rows


@dataclass(frozen=True)
class FailedMethod:
    """A method that could not be trained, on one fold at least.

    Attributes:
        experiment: the name of its experiment.
        name: the method's name.
        reason: what its first run that failed says, and how many did if not all.
        run: the name of that run.
    """

    experiment: str
    name: str
    reason: str
    run: str


@dataclass(frozen=True)
class Scale:
    """Size of a split.

    Attributes:
        queries: the number of queries.
        empty: the number of those without a relevant document.
        documents: of all queries.
        groups: the number of groups of dependent queries; that of the queries if all are
            independent.
    """

    queries: int
    empty: int
    documents: int
    groups: int

    def __str__(self) -> str:
        text = f"{count(self.queries)} queries"
        if self.groups < self.queries:
            text += f" in {count(self.groups)} groups"
        if self.empty:
            text += f" ({count(self.empty)} of them without a relevant document)"
        return f"{text}, {count(self.documents)} documents"


@dataclass(frozen=True)
class Evidence:
    """All inputs of a product.

    Attributes:
        edition: the edition of the study, e.g. ``demo``.
        paper: the paper's short name.
        product: ``figure2``, ``table1``, …
        experiments: name → the planned runs, in the plan's order; empty if nothing was run.
        prepared: name that the experiments use → the record of the prepared data set, for the data
            sets that the product describes and the edition prepares.
        repeats: those of the edition's products whose cells this one shows again.
        values_files: files of published values per query from which it is made.
        failed: the methods that could not be trained; ``experiments`` has none of their runs.
        margin: the smallest difference of a metric that is of interest; NaN if the plan has none.
    """

    edition: str
    paper: str
    product: str
    experiments: Mapping[str, Sequence[FinishedRun]]
    prepared: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    repeats: Sequence[str] = ()
    values_files: Sequence[Path] = ()
    failed: Sequence[FailedMethod] = ()
    margin: float = math.nan

    @property
    def n_methods(self) -> int:
        """The number of methods, in all experiments together."""
        return sum(len(_by_method(runs)) for runs in self.experiments.values())

    def runs(self, experiment: str) -> Sequence[FinishedRun]:
        """The runs of ``experiment``; raises :class:`ConfigError` if the plan lacks it."""
        if experiment not in self.experiments:
            raise ConfigError(
                f"the plan of {self.paper} {self.product} has no experiment '{experiment}'",
                f"add it to the edition's experiments of {self.paper} (it may be empty)",
            )
        return self.experiments[experiment]

    def only_run(self, experiment: str) -> FinishedRun:
        """The only run of an experiment; raises :class:`DataError` if there is not exactly one."""
        runs = self.runs(experiment)
        if len(runs) != 1:
            raise DataError(
                f"'{experiment}' has {len(runs)} runs", "give it a single run that tunes"
            )
        return runs[0]

    def about(self, dataset: Dataset | None, **first: Any) -> dict[str, Any]:
        """The first columns of every row of a CSV file: edition, data set and kind of data.

        Args:
            dataset: the data set; None if there is none.
            first: further columns, between the edition and the data set.
        """
        return {
            "edition": self.edition,
            **first,
            "dataset": None if dataset is None else dataset.title,
            "data": None if dataset is None else dataset.kind,
        }

    def sources(
        self, runs: Sequence[FinishedRun], part: str = "test set", split: str = "test"
    ) -> str:
        """The end of a caption: :func:`data_sentence` and the edition."""
        return f"{data_sentence(runs, split, part)} Edition {self.edition}."

    def prepared_dataset(self, name: str) -> Dataset:
        """What a reader must know about the prepared data set ``name``."""
        record = self.prepared[name]
        return Dataset(record["name"], record["title"], record["origin"])

    def published(self, name: str) -> pd.DataFrame:
        """The published values in ``<name>.csv``."""
        return read_published(name)


def has_runs(evidence: Evidence | None, *experiments: str) -> bool:
    """Whether one of the experiments has runs."""
    return evidence is not None and any(evidence.experiments.get(name) for name in experiments)


def read_published(name: str) -> pd.DataFrame:
    """The published values in ``<name>.csv``; callers share the frame and must not change it."""
    return _read(PUBLISHED / f"{name}.csv")


@cache
def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise DataError(
            "the published values are missing",
            "restore this file of the repository",
            file=path,
        )
    return pd.read_csv(path)


def read_plan(path: str | Path) -> dict[str, Any]:
    """The plan of a product, which the workflow has written.

    Raises:
        DataError: there is no such file.
    """
    try:
        return read_json(path)
    except FileNotFoundError as error:
        remedy = "run the workflow first (`make reproduce` for the demo), which writes it"
        raise DataError("there is no such plan", remedy, file=path) from error


def gather(
    plan: Mapping[str, Any],
    runs_folder: str | Path,
    prepared_folder: str | Path = PREPARED,
    values_files: Sequence[str | Path] = (),
) -> Evidence:
    """The evidence for one product.

    Args:
        plan: its plan: ``edition``, ``paper``, ``product``, ``experiments`` (name → list of
            ``{"run": name, "settings": {…}}``, with ``in_place_of`` if the data are not the
            paper's), ``prepared`` (name → folder) if the product describes data sets,
            ``repeats`` if it shows cells of other products, and ``margin`` if it tests differences.
            The data on which a run was trained are in its own record.
        runs_folder: where each run has its folder.
        prepared_folder: where each prepared data set has its folder.
        values_files: published values per query, for a product that is made from them.

    Raises:
        ConfigError: the plan is not complete. DataError: a run's results are not complete.
    """
    try:
        experiments, failed = {}, []
        for name, entries in plan["experiments"].items():
            planned = [_finished_run(entry, Path(runs_folder)) for entry in entries]
            experiments[name], lost = _without_failed(name, planned)
            failed += lost
        return Evidence(
            edition=plan["edition"],
            paper=plan["paper"],
            product=plan["product"],
            experiments=experiments,
            prepared={
                name: read_record(Path(prepared_folder) / key)
                for name, key in plan.get("prepared", {}).items()
            },
            repeats=tuple(plan.get("repeats", ())),
            values_files=tuple(map(Path, values_files)),
            failed=failed,
            margin=float(plan.get("margin", math.nan)),
        )
    except KeyError as error:
        raise ConfigError(f"the plan lacks {error}", "write the plans again") from error


def _finished_run(entry: Mapping[str, Any], runs_folder: Path) -> FinishedRun:
    result = load_run(runs_folder / entry["run"])
    facts = result.record["data"]
    place = entry.get("in_place_of")
    dataset = Dataset(facts["name"], facts["title"], facts["origin"], place)
    return FinishedRun(entry["settings"], dataset, result)


def _by_method(runs: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """The runs of each method, which differ in their fold alone."""
    methods: dict[str, list[FinishedRun]] = {}
    for run in runs:
        values = [str(value) for name, value in run.settings.items() if name != "fold"]
        methods.setdefault(", ".join(values), []).append(run)
    return methods


def _without_failed(
    experiment: str, runs: Sequence[FinishedRun]
) -> tuple[tuple[FinishedRun, ...], list[FailedMethod]]:
    """The runs of the methods that were trained on every fold, and the methods that were not."""
    lost, failed = [], []
    for name, of_method in _by_method(runs).items():
        found = [run.result for run in of_method if FAILED in run.result.record]
        if found:
            lost += of_method
            some = f" ({len(found)} of {len(of_method)} folds)"
            reason = found[0].record[FAILED] + (some if len(found) < len(of_method) else "")
            failed.append(FailedMethod(experiment, name, reason, found[0].name))
    return tuple(run for run in runs if run not in lost), failed


_KINDS = {
    "real": "real data",
    "standin": "generated to replace the paper's data",
    "generated": "artificial data, as in the paper",
}


def data_sentence(runs: Sequence[FinishedRun], split: str, part: str) -> str:
    """A sentence that names the data of runs that share a data set, their origin and their size.

    Args:
        runs: the runs, of one fold or several.
        split: ``vali`` or ``test``.
        part: what to call the split in print.
    """
    by_fold = {run.result.spec["fold"]: run for run in runs}
    folds = sorted(fold for fold in by_fold if fold is not None)
    dataset = runs[0].dataset
    kind = _KINDS[dataset.origin]
    if dataset.in_place_of is not None:
        kind += f", used in place of {dataset.in_place_of}"
    if len(folds) > 1:
        scales = [run.scale(split) for run in by_fold.values()]
        total = Scale(*(sum(sizes) for sizes in zip(*map(astuple, scales), strict=True)))
        drawn = [number for run in by_fold.values() if (number := run.n_drawn) is not None]
        trained = f" trained on {count(max(drawn))} random queries of each;" if drawn else ""
        return (
            f"Data: {dataset.title} ({kind}), {len(folds)} folds;{trained} {part} of all: {total}."
        )
    fold = f", fold {folds[0]}" if folds else ""
    trained = f"trained on {runs[0].trained_on}"
    return f"Data: {dataset.title}{fold} ({kind}); {trained}; {part}: {runs[0].scale(split)}."


def origin_line(datasets: Sequence[Dataset], edition: str) -> str:
    """The line inside a picture that says what kind of data it shows; empty without data."""
    said = {
        "real": "real data",
        "artificial": "artificial data",
        OTHER_REAL: "real, not the paper's data",
        "stand-in": "synthetic, not the paper's data",
    }
    parts = []
    for kind, text in said.items():
        titles = dict.fromkeys(data.title for data in datasets if data.kind == kind)
        if titles:
            names = ", ".join(titles)
            parts.append(f"{names[0].upper()}{names[1:]}: {text}")
    return f"{'; '.join(parts)} (edition {edition})" if parts else ""


def heading_of(title: str, kind: str, dataset: str) -> str:
    """The paper's name of a data set, and the data that replace it, if any."""
    if kind == "real":
        return title
    return f"{title} (here: {dataset if kind == OTHER_REAL else kind})"
