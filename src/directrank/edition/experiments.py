"""The experiments of a paper's file, including those that are made for each collection."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from directrank import learners
from directrank.data import catalog
from directrank.study.specification import NEURAL_SECTIONS, plain_copy
from directrank.system.errors import ConfigError
from directrank.system.schema import check, read_yaml, suggest

#: Sections of a run that a later setting replaces as a whole if it names something else.
NAMED_SECTIONS = ("model", "loss", "normalisation")


def experiments_of(paper: str, entry: Mapping[str, Any], root: Path) -> dict[str, dict[str, Any]]:
    """The experiments of a paper's file, and those made for the edition's collections, by name.

    The paper's defaults are part of each one's ``run``. ``chosen`` holds the variants that are run,
    if not all are; it is empty if the edition leaves the experiment out. A variant that the paper's
    file leaves out on a collection is run there nevertheless if the edition names it.

    Args:
        paper: its short name.
        entry: what the edition says of the paper, with ``collections``.
        root: the repository's folder.

    Raises:
        ConfigError: a paper, experiment or size is unknown, or collections are listed for a paper
            without per-collection experiments.
    """
    content = paper_experiments(paper, root)
    templates = content.get("for_each_collection", {})
    if entry["collections"] and not templates:
        raise ConfigError(
            f"'{paper}' has no experiments that are made for each collection",
            f"remove papers.{paper}.collections, or add for_each_collection to its file",
        )
    experiments = plain_copy(content.get("experiments", {}))
    known = _variant_names(content)
    # Name in the edition → the experiments that it stands for.
    names = {name: [name] for name in experiments}
    for name, template in templates.items():
        names[name] = [f"{collection}_{name}" for collection in entry["collections"]]
        for full, collection in zip(names[name], entry["collections"], strict=True):
            facts = _facts(content, collection)
            experiments[full] = _for_collection(paper, template, collection, facts)
            where = f"config/papers/{paper}.yaml: collections.{collection}.without"
            without = facts.get("without", ())
            if isinstance(without, Mapping):
                _refuse_unknown_experiments(where, without, templates)
                without = without.get(name, ())
            if without == "all":
                experiments[full]["chosen"] = []
            else:
                _leave_out(where, known, [experiments[full]], without)
    for experiment in experiments.values():
        experiment["run"] = merged(content.get("defaults", {}), experiment.get("run", {}))
    wanted = entry.get("experiments", list(names))
    variants = entry.get("variants", {})
    for name in (*wanted, *variants):
        if name not in names:
            raise ConfigError(
                f"edition: papers.{paper} names '{name}', which is not an experiment of "
                f"config/papers/{paper}.yaml",
                suggest(name, names),
            )
    for name, meant in names.items():
        for experiment in (experiments[full] for full in meant):
            if name not in wanted:
                experiment["chosen"] = []
            elif name in variants:
                _refuse_unknown_variants(paper, name, experiment, variants[name])
                experiment["chosen"] = variants[name]
    _leave_out(f"papers.{paper}.without", known, experiments.values(), entry.get("without", ()))
    return experiments


def variants_of(experiment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The variants of an experiment that are run; one variant without settings if it lists none.

    Args:
        experiment: one of :func:`experiments_of`.
    """
    every: list[Mapping[str, Any]] = experiment.get("variants", [{"settings": {}}])
    if "chosen" not in experiment:
        return every
    chosen = experiment["chosen"]
    return [variant for variant in every if label(variant) in chosen]


def label(variant: Mapping[str, Any]) -> Any:
    """The name of a variant in an edition: the first of the settings that identify it."""
    return next(iter(variant["settings"].values()), None)


def paper_experiments(paper: str, root: Path) -> dict[str, Any]:
    """The experiments file of ``paper``, checked against its schema."""
    path = root / "config/papers" / f"{paper}.yaml"
    if not path.is_file():
        known = [file.stem for file in sorted(path.parent.glob("*.yaml"))]
        raise ConfigError(f"unknown paper '{paper}'", suggest(paper, known))
    experiments = read_yaml(path)
    check(experiments, read_yaml(root / "workflow/schemas/experiments.schema.yaml"), str(path))
    return experiments


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` updated by ``change``, section by section.

    A section that names something else (another model, another loss) replaces the old one as a
    whole, because the old settings would not apply to it. The same holds for the model of another
    learner; trees and linear baselines also drop a network's grid.
    """
    result = plain_copy(dict(base))
    if change.get("learner", result.get("learner")) != result.get("learner"):
        for section in ("model", *NEURAL_SECTIONS):
            result.pop(section, None)
        if not learners.get(change["learner"]).neural:
            result.pop("tune", None)
            result.pop("grow", None)
    for key, value in change.items():
        old = result.get(key)
        renamed = (
            key in NAMED_SECTIONS
            and isinstance(value, Mapping)
            and isinstance(old, Mapping)
            and value.get("name", old.get("name")) != old.get("name")
        )
        if isinstance(value, Mapping) and isinstance(old, Mapping) and not renamed:
            result[key] = merged(old, value)
        else:
            result[key] = plain_copy(value)
    return result


def _variant_names(content: Mapping[str, Any]) -> set[str]:
    """The names of all variants in a paper's file, those of every size of collection."""
    every = (content.get(key, {}) for key in ("experiments", "for_each_collection"))
    experiments = [experiment for part in every for experiment in part.values()]
    parts = [
        *experiments,
        *(size for item in experiments for size in item.get("sizes", {}).values()),
    ]
    return {str(label(variant)) for part in parts for variant in part.get("variants", [])}


def _facts(content: Mapping[str, Any], collection: str) -> Mapping[str, Any]:
    """The entry for a collection in a paper's file."""
    facts: Mapping[str, Mapping[str, Any]] = content["collections"]
    return {**facts["default"], **facts.get(collection, {})}


def _for_collection(
    paper: str, template: Mapping[str, Any], collection: str, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """The experiment of ``template`` on a collection with the particulars ``facts``."""
    experiment = {key: value for key, value in template.items() if key != "sizes"}
    if "sizes" in template:
        size = facts.get("size")
        if size not in template["sizes"]:
            raise ConfigError(
                f"config/papers/{paper}.yaml: collection '{collection}' has the size '{size}'",
                suggest(str(size), template["sizes"]),
            )
        of_size = template["sizes"][size]
        experiment |= {key: value for key, value in of_size.items() if key != "run"}
        experiment["run"] = merged(template.get("run", {}), of_size.get("run", {}))
    experiment["run"] = merged(experiment.get("run", {}), facts.get("run", {}))
    folds = facts.get("folds") or list(range(1, (catalog.get(collection).folds or 0) + 1))
    return plain_copy(experiment | {"data": collection} | ({"folds": folds} if folds else {}))


def _leave_out(
    where: str,
    known: Collection[str],
    experiments: Iterable[dict[str, Any]],
    without: Collection[str],
) -> None:
    """Remove variants from the choice of every experiment; unknown names are refused."""
    for name in without:
        if name not in known:
            raise ConfigError(
                f"{where}: no experiment has a variant '{name}'", suggest(name, known)
            )
    for experiment in experiments if without else ():
        if "variants" in experiment:
            every = [label(variant) for variant in experiment["variants"]]
            chosen = experiment.get("chosen", every)
            experiment["chosen"] = [name for name in chosen if str(name) not in without]


def _refuse_unknown_experiments(
    where: str, named: Iterable[str], templates: Collection[str]
) -> None:
    for name in named:
        if name not in templates:
            raise ConfigError(
                f"{where}: no experiment has the name '{name}'", suggest(name, templates)
            )


def _refuse_unknown_variants(
    paper: str, name: str, experiment: Mapping[str, Any], chosen: Iterable[str]
) -> None:
    known = [str(label(variant)) for variant in experiment.get("variants", [])]
    for variant in chosen:
        if variant not in known:
            raise ConfigError(
                f"papers.{paper}.variants: experiment '{name}' has no variant '{variant}'",
                suggest(variant, known),
            )
