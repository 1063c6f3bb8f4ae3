"""From an edition's configuration to the runs, data sets and products of the study."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from directrank import learners
from directrank.data import catalog
from directrank.papers.shared import product as papers
from directrank.study.specification import (
    NEURAL_SECTIONS,
    plain_copy,
    run_name,
    validate,
    value_at,
    with_settings,
)
from directrank.system.errors import ConfigError
from directrank.system.io import digest_of
from directrank.system.schema import check, complete, read_yaml, suggest

#: Sections of a run that a later setting replaces whole when it names something else.
NAMED_SECTIONS = ("model", "loss", "normalisation")


@dataclass(frozen=True)
class DataSource:
    """A prepared data set that the study needs.

    Attributes:
        key: its folder below ``data/prepared``; it carries a digest of the settings, if any.
        name: the data set's name, ``<name>_standin`` for a stand-in.
        settings: what it is generated with; empty for one from an archive.
        source: ``archive``, ``standin`` or ``generated``.
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


def load(config: Mapping[str, Any], root: str | Path = ".") -> Study:
    """Plan an edition.

    Args:
        config: the edition's configuration, as read from ``config/<edition>.yaml``.
        root: the repository's folder.

    Raises:
        ConfigError: naming the file, the key and what is known instead.
    """
    root = Path(root)
    config = edition_with_defaults(config, root)
    for name in config["accept_licences"]:
        catalog.get(name)
    study = Study(config)
    used: set[int] = set()
    chosen: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for paper, entry in config["papers"].items():
        experiments = paper_experiments(paper, root)
        needs: dict[str, tuple[str, ...]] = {}
        for product in entry["products"]:
            shown = [product, *_repeated(study, paper, product)]
            needs[product] = tuple(
                dict.fromkeys(need for name in shown for need in papers.product(paper, name).needs)
            )
        cells: dict[str, list[dict[str, Any]]] = {}
        for name in dict.fromkeys(itertools.chain.from_iterable(needs.values())):
            if name not in experiments["experiments"]:
                raise ConfigError(
                    f"config/papers/{paper}.yaml has no experiment '{name}'",
                    suggest(name, experiments["experiments"]),
                )
            cells[name] = []
            for settings, spec, source in _runs(study, paper, experiments, name, used):
                run = run_name(spec)
                study.runs[run] = spec
                study.run_data[run] = source.key
                study.data[source.key] = source
                cells[name].append({"run": run, "settings": settings})
        for product, names in needs.items():
            chosen[paper, product] = {name: cells[name] for name in names}
    # Last, because a product may describe the data sets of all others.
    for (paper, product), experiments in chosen.items():
        study.products[paper, product] = _plan(study, paper, product, experiments)
    _refuse_idle_overrides(config, used)
    return study


def edition_with_defaults(config: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """``config``, checked against the edition's schema, with the schema's defaults filled in."""
    schema = read_yaml(root / "workflow/schemas/edition.schema.yaml")
    completed = complete(config, schema, f"configuration of edition '{config.get('edition', '?')}'")
    raw = {"raw_dir": str(catalog.raw_folder(config.get("raw_dir")))}
    return {**plain_copy(completed), **raw}


def paper_experiments(paper: str, root: Path) -> dict[str, Any]:
    """The experiments file of ``paper``, checked against its schema."""
    path = root / "config/papers" / f"{paper}.yaml"
    if not path.is_file():
        known = [file.stem for file in sorted(path.parent.glob("*.yaml"))]
        raise ConfigError(f"unknown paper '{paper}'", suggest(paper, known))
    experiments = read_yaml(path)
    check(experiments, read_yaml(root / "workflow/schemas/experiments.schema.yaml"), str(path))
    return experiments


def _runs(
    study: Study, paper: str, experiments: Mapping[str, Any], name: str, used: set[int]
) -> Iterator[tuple[dict[str, Any], dict[str, Any], DataSource]]:
    """Settings, specification and data of every run of an experiment."""
    experiment = experiments["experiments"][name]
    source = _data_source(study.config, experiment["data"])
    chosen = study.config["papers"][paper].get("variants", {}).get(name)
    folds = experiment.get("folds", [None])
    if source.source != "archive":
        folds = folds[:1]
    for variant in experiment.get("variants", [{"settings": {}}]):
        label = next(iter(variant["settings"].values()), None)
        if chosen is not None and label not in chosen:
            continue
        base = _merge(experiments.get("defaults", {}), experiment.get("run", {}))
        base = _merge(base, variant.get("run", {}))
        if learners.get(base["learner"]).missing(base["model"]):
            continue  # an external program that is not installed; the table says so
        base["data"] = {"name": source.name, "settings": dict(source.settings)}
        sweep = experiment.get("sweep", {})
        for values in itertools.product(*sweep.values()):
            swept = dict(zip(sweep, values, strict=True))
            for fold in folds:
                spec = with_settings(base, swept)
                # What is generated has one split; it stands for the first fold.
                spec["fold"] = fold if source.source == "archive" else None
                spec = _override(study.config, spec, paper, name, used)
                settings = {**variant["settings"], **swept}
                if fold is not None:
                    settings["fold"] = fold
                validate(spec, f"{paper}, experiment '{name}', {settings}")
                yield settings, spec, source


def _merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``change`` laid over it, section by section.

    A section that names something else (another model, another loss) replaces the old one whole:
    its settings would not be the new one's. So does the model of another learner.
    """
    result = plain_copy(dict(base))
    if change.get("learner", result.get("learner")) != result.get("learner"):
        for section in ("model", *NEURAL_SECTIONS):
            result.pop(section, None)
    for key, value in change.items():
        old = result.get(key)
        renamed = (
            key in NAMED_SECTIONS
            and isinstance(value, Mapping)
            and isinstance(old, Mapping)
            and value.get("name", old.get("name")) != old.get("name")
        )
        if isinstance(value, Mapping) and isinstance(old, Mapping) and not renamed:
            result[key] = _merge(old, value)
        else:
            result[key] = plain_copy(value)
    return result


def _override(
    config: Mapping[str, Any], spec: dict[str, Any], paper: str, experiment: str, used: set[int]
) -> dict[str, Any]:
    facts = {**spec, "paper": paper, "experiment": experiment}
    for number, override in enumerate(config.get("overrides", [])):
        where = override.get("where", {})
        if all(value_at(facts, path) == value for path, value in where.items()):
            used.add(number)
            spec = with_settings(spec, override["set"])
            facts = {**spec, "paper": paper, "experiment": experiment}
    return spec


def _refuse_idle_overrides(config: Mapping[str, Any], used: set[int]) -> None:
    for number, override in enumerate(config.get("overrides", [])):
        if number not in used:
            raise ConfigError(
                f"override {number + 1} (where: {dict(override.get('where', {}))}) matches no run",
                "correct its 'where' or remove it",
            )


def _data_source(config: Mapping[str, Any], name: str) -> DataSource:
    if name not in config["datasets"]:
        raise ConfigError(
            f"edition '{config['edition']}' does not say where data set '{name}' comes from",
            f"add it under 'datasets'; known are: {', '.join(sorted(config['datasets']))}",
        )
    entry = config["datasets"][name]
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
        for shown in [product, *repeats]
        for name in papers.product(paper, shown).data
        if name in study.config["datasets"]
        for source in [_data_source(study.config, name)]
        if source.key in study.data
    }
    keys = {study.run_data[cell["run"]] for cells in experiments.values() for cell in cells}
    return {
        "edition": study.edition,
        "paper": paper,
        "product": product,
        "experiments": dict(experiments),
        "prepared": prepared,
        "datasets": {
            study.data[key].name: {
                "title": catalog.get(study.data[key].name).title,
                "standin": study.data[key].source == "standin",
            }
            for key in sorted(keys)
        },
        **({"repeats": repeats} if repeats else {}),
    }


def _repeated(study: Study, paper: str, product: str) -> list[str]:
    """The products whose cells ``product`` shows again, of those that the edition makes."""
    made = study.config["papers"][paper]["products"]
    return [name for name in papers.product(paper, product).repeats if name in made]
