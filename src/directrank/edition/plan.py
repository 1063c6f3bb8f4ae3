"""From an edition's configuration to the runs, data sets and products of the study."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from directrank import learners
from directrank.data import catalog
from directrank.edition.configuration import (
    NONE,
    edition_with_defaults,
    is_available,
    repository,
)
from directrank.edition.experiments import experiments_of, label, merged, variants_of
from directrank.papers.shared import product as papers
from directrank.study.specification import (
    NEURAL_SECTIONS,
    run_name,
    validate,
    value_at,
    with_settings,
)
from directrank.system.errors import ConfigError
from directrank.system.io import digest_of
from directrank.system.schema import suggest

#: A loss's number of label levels may be this word, which means that of the collection's catalogue
#: entry.
CATALOGUE = "catalogue"


@dataclass(frozen=True)
class DataSource:
    """A prepared data set that the study needs.

    Attributes:
        key: its folder below ``data/prepared``; it contains a digest of the settings, if any.
        name: the data set's name, ``<name>_standin`` for a stand-in.
        settings: the settings with which it is generated; empty if it comes from an archive.
        source: ``archive``, ``standin``, ``generated``, or ``none`` if it is left out.
    """

    key: str
    name: str
    settings: Mapping[str, Any]
    source: str


@dataclass(frozen=True)
class Study:
    """Everything an edition makes.

    Attributes:
        config: the edition's configuration with its defaults.
        data: prepared data sets by key.
        runs: run specifications by name.
        run_data: run name → key of its data set.
        products: ``(paper, product)`` → the product's plan, ready to be written as JSON.
    """

    config: Mapping[str, Any]
    data: dict[str, DataSource] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    run_data: dict[str, str] = field(default_factory=dict)
    products: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    @property
    def edition(self) -> str:
        """The edition's name."""
        return self.config["edition"]


def runs_behind(plans: Iterable[Mapping[str, Any]]) -> set[str]:
    """The runs that products with these plans are drawn from."""
    experiments = (cells for plan in plans for cells in plan["experiments"].values())
    return {cell["run"] for cells in experiments for cell in cells}


def runs_of_products(study: Study) -> dict[tuple[str, str], set[str]]:
    """The runs from which each product is drawn."""
    return {key: runs_behind([plan]) for key, plan in study.products.items()}


def runs_of_papers(study: Study) -> dict[str, set[str]]:
    """The runs of each paper; one that several papers share belongs to each of them."""
    papers: dict[str, set[str]] = {}
    for (paper, _), names in runs_of_products(study).items():
        papers[paper] = papers.get(paper, set()) | names
    return papers


def owners_of_runs(study: Study) -> dict[str, list[str]]:
    """The papers that need each run; of a paper in which one part alone does, that part."""
    parts: dict[str, dict[str, str | None]] = {}
    for (paper, product), runs in runs_of_products(study).items():
        part = papers.product(paper, product).part
        for run in runs:
            of_run = parts.setdefault(run, {})
            of_run[paper] = part if of_run.get(paper, part) == part else None
    return {
        run: [paper if part is None else f"{paper}_{part}" for paper, part in of_run.items()]
        for run, of_run in parts.items()
    }


def load(config: Mapping[str, Any], root: str | Path | None = None) -> Study:
    """Plan an edition.

    Args:
        config: the edition's configuration, as read from ``config/<edition>.yaml``.
        root: the repository's folder; the default is the clone that this package belongs to.

    Raises:
        ConfigError: a setting is not valid; the message names the file, the key and the known
            values.
    """
    root = repository() if root is None else Path(root)
    own_overrides = config.get("overrides", [])
    config = edition_with_defaults(config, root)
    for name in config["accept_licences"]:
        catalog.get(name)
    study = Study(config)
    used: set[int] = set()
    shown: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for paper, entry in config["papers"].items():
        experiments = experiments_of(paper, entry, root)
        entry.setdefault("products", _of_collections(paper, entry["collections"], experiments))
        needs = _needs(study, paper, experiments)
        cells: dict[str, list[dict[str, Any]]] = {}
        for name in dict.fromkeys(itertools.chain.from_iterable(needs.values())):
            cells[name] = []
            place = _place(config, experiments[name]["data"])
            for settings, spec, source in _runs(study, paper, name, experiments[name], used):
                if source.source == NONE:
                    continue
                run = run_name(spec)
                study.runs[run] = spec
                study.run_data[run] = source.key
                study.data[source.key] = source
                cells[name].append({"run": run, "settings": settings, **place})
        entry["products"] = _with_data(study, paper, experiments)
        for product in entry["products"]:
            names = needs[product]
            shown[paper, product] = {name: cells[name] for name in names}
    # This comes last, because a product may describe the data sets of all others.
    for (paper, product), runs in shown.items():
        study.products[paper, product] = _plan(study, paper, product, runs)
    _refuse_idle_overrides(config, own_overrides, used)
    return study


def _of_collections(
    paper: str, collections: Sequence[str], experiments: Mapping[str, Any]
) -> list[str]:
    """All products of single collections, and of several together, that have something to show."""
    made = papers.products(paper) if collections else {}
    names = [
        name
        for collection in collections
        for name, item in made.items()
        if item.collection == collection
    ]
    names += [name for name, item in made.items() if item.across and len(collections) > 1]
    return [
        name
        for name in names
        if _has_methods(made[name], experiments)
        and _has_pair(paper, made, name, collections, experiments)
    ]


def _has_methods(item: papers.Product, experiments: Mapping[str, Any]) -> bool:
    """Whether as many methods are run as a product compares."""
    methods = sum(len(variants_of(experiments[need])) for need in item.needs)
    return not item.needs or methods >= item.least


def _has_pair(
    paper: str,
    made: Mapping[str, papers.Product],
    name: str,
    collections: Sequence[str],
    experiments: Mapping[str, Any],
) -> bool:
    """Whether both of a pair are run, for a product that compares some; of all collections, on two
    of them."""
    item = made[name]
    if item.compares is None:
        return True
    sources = [made[read].needs for read in item.reads_of(collections)] or [item.needs]
    run = [
        {str(label(variant)) for need in needs for variant in variants_of(experiments[need])}
        for needs in sources
    ]
    enough = 2 if item.across else 1
    pairs = papers.call(paper, item.compares)
    return any(sum(names.issuperset(pair) for names in run) >= enough for pair in pairs)


def _with_data(study: Study, paper: str, experiments: Mapping[str, Any]) -> list[str]:
    """The products of a paper, except those all of whose experiments are on data sets without a
    source."""

    def is_made(product: str) -> bool:
        items = _with_repeated(study, paper, product)
        data = [experiments[name]["data"] for item in items for name in item.needs]
        analytic = any(not item.needs and not item.repeats for item in items)
        return analytic or any(is_available(study.config, name) for name in data)

    return [name for name in study.config["papers"][paper]["products"] if is_made(name)]


def _needs(study: Study, paper: str, experiments: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The experiments from which each product is made."""
    entry = study.config["papers"][paper]
    needs: dict[str, tuple[str, ...]] = {}
    for product in entry["products"]:
        items = _with_repeated(study, paper, product)
        for item in items:
            if item.collection not in (None, *entry["collections"]):
                raise ConfigError(
                    f"'{product}' of '{paper}' needs a collection that the edition does not list",
                    f"add '{item.collection}' to papers.{paper}.collections",
                )
        needs[product] = tuple(dict.fromkeys(name for item in items for name in item.needs))
        for name in (read for item in items for read in item.reads_of(entry["collections"])):
            if name not in entry["products"]:
                raise ConfigError(
                    f"'{product}' of '{paper}' needs '{name}', which is not made",
                    f"add it to papers.{paper}.products",
                )
        for name in needs[product]:
            if name not in experiments:
                raise ConfigError(
                    f"config/papers/{paper}.yaml has no experiment '{name}'",
                    suggest(name, experiments),
                )
    return needs


def _runs(
    study: Study, paper: str, name: str, experiment: Mapping[str, Any], used: set[int]
) -> Iterator[tuple[dict[str, Any], dict[str, Any], DataSource]]:
    """Settings, specification and data of every run of an experiment."""
    variants = variants_of(experiment)
    if not variants:
        return
    source = _data_source(study.config, experiment["data"])
    folds = experiment.get("folds", [None])
    has_folds = source.source == "archive" and catalog.get(source.name).folds is not None
    if not has_folds:
        folds = folds[:1]
    # If the data have folds where the paper has a single split, the first fold is used.
    split = 1 if has_folds and _place(study.config, experiment["data"]) else None
    for variant in variants:
        base = merged(experiment["run"], variant.get("run", {}))
        if learners.get(base["learner"]).missing(base["model"]):
            continue  # it needs an external program that is not installed; the table says so
        base["data"] = {"name": source.name, "settings": dict(source.settings)}
        sweep = experiment.get("sweep", {})
        for values in itertools.product(*sweep.values()):
            swept = dict(zip(sweep, values, strict=True))
            for fold in folds:
                spec = with_settings(base, swept)
                spec = _with_label_levels(spec, catalog.get(source.name).label_levels)
                # If there is only one split, it is used as the first fold.
                spec["fold"] = (fold or split) if has_folds else None
                if study.config["candidates"] == "last":
                    spec = _with_last_candidate(spec)
                facts = {"paper": paper, "experiment": name, "dataset": experiment["data"]}
                spec = _override(study.config, spec, facts, used)
                settings = {**variant["settings"], **swept}
                if fold is not None:
                    settings["fold"] = fold
                validate(spec, f"{paper}, experiment '{name}', {settings}")
                yield settings, spec, source


def _with_label_levels(spec: dict[str, Any], levels: int) -> dict[str, Any]:
    """``spec`` with the collection's number of label levels if the configuration asks for it."""
    if value_at(spec, "loss.levels") == CATALOGUE:
        spec = with_settings(spec, {"loss.levels": levels})
    grid = spec.get("tune", {})
    if CATALOGUE in grid.get("loss.levels", []):
        values = [levels if value == CATALOGUE else value for value in grid["loss.levels"]]
        spec["tune"] = {**grid, "loss.levels": values}
    return spec


def _with_last_candidate(spec: dict[str, Any]) -> dict[str, Any]:
    """``spec`` with only the last value of each tuned setting."""
    if "tune" not in spec:
        return spec
    spec = {key: value for key, value in spec.items() if key != "grow"}
    return {**spec, "tune": {path: values[-1:] for path, values in spec["tune"].items()}}


def _override(
    config: Mapping[str, Any], spec: dict[str, Any], facts: Mapping[str, str], used: set[int]
) -> dict[str, Any]:
    """``spec`` after the overrides that match it or ``facts``; adds their numbers to ``used``."""
    for number, override in enumerate(config.get("overrides", [])):
        where, known = override.get("where", {}), {**spec, **facts}
        if all(value_at(known, path) == value for path, value in where.items()):
            settings = {
                path: value
                for path, value in override["set"].items()
                if path.split(".")[0] not in NEURAL_SECTIONS or learners.get(spec["learner"]).neural
            }
            if settings:
                used.add(number)
            spec = with_settings(spec, settings)
    return spec


def _refuse_idle_overrides(
    config: Mapping[str, Any], own: Sequence[Mapping[str, Any]], used: set[int]
) -> None:
    """Raise ConfigError if an override of the edition's own file matches no run.

    One that comes from the edition that it extends may be about what this edition does not make.
    """
    idle = [
        (override.get("where", {}), override["set"])
        for number, override in enumerate(config.get("overrides", []))
        if number not in used
    ]
    for number, override in enumerate(own):
        where = override.get("where", {})
        named = (str(where.get(key, "")) for key in ("dataset", "data.name"))
        if (where, override["set"]) in idle and all(is_available(config, name) for name in named):
            raise ConfigError(
                f"override {number + 1} of edition '{config['edition']}' (where: {dict(where)}) "
                "matches no run",
                "correct its 'where' or remove it",
            )


def _place(config: Mapping[str, Any], name: str) -> dict[str, str]:
    """What a plan records of a run whose data are a substitute for the paper's."""
    if "instead" not in config["datasets"].get(name, {}):
        return {}
    return {"in_place_of": catalog.get(name).title}


def _data_source(config: Mapping[str, Any], name: str) -> DataSource:
    if name not in config["datasets"]:
        raise ConfigError(
            f"edition '{config['edition']}' does not say where data set '{name}' comes from",
            f"add it under 'datasets'; configured are: {', '.join(sorted(config['datasets']))}",
        )
    entry = config["datasets"][name]
    if "instead" in entry:
        return DataSource(entry["instead"], entry["instead"], {}, "archive")
    settings = entry.get("settings", {})
    full = f"{name}_standin" if entry["source"] == "standin" else name
    key = full if entry["source"] == "archive" else f"{full}-{digest_of(settings)[:8]}"
    return DataSource(key, full, settings, entry["source"])


def _plan(
    study: Study, paper: str, product: str, experiments: Mapping[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    repeats = _repeated(study, paper, product)
    prepared = {
        name: source.key
        for item in _with_repeated(study, paper, product)
        for name in item.data
        if "source" in study.config["datasets"].get(name, {})
        for source in [_data_source(study.config, name)]
        if source.key in study.data
    }
    return {
        "edition": study.edition,
        "paper": paper,
        "product": product,
        "margin": study.config["margin"],
        "experiments": dict(experiments),
        "prepared": prepared,
        **({"repeats": repeats} if repeats else {}),
    }


def _with_repeated(study: Study, paper: str, product: str) -> list[papers.Product]:
    """A product and those whose cells it shows again."""
    return [papers.product(paper, name) for name in [product, *_repeated(study, paper, product)]]


def _repeated(study: Study, paper: str, product: str) -> list[str]:
    """Those of the edition's products whose cells ``product`` shows again."""
    made = study.config["papers"][paper]["products"]
    return [name for name in papers.product(paper, product).repeats if name in made]
