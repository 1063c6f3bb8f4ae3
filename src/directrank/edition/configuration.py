"""The configuration of an edition, complete: with that of the edition it extends, and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from directrank.data import catalog
from directrank.study.specification import plain_copy
from directrank.system.errors import ConfigError
from directrank.system.schema import check, complete, read_yaml, suggest

#: The file by which a clone of the repository is recognised.
_SNAKEFILE = "workflow/Snakefile"

#: The source of a data set that is not available: what needs it is left out.
NONE = "none"


def repository() -> Path:
    """The clone of the repository to which this package belongs, or else the working folder's.

    Raises:
        ConfigError: the package was installed without a clone, and the working folder is not one.
    """
    for root in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (root / _SNAKEFILE).is_file():
            return root
    raise ConfigError(
        "the installed package does not include the workflow",
        "clone the repository, run `make setup` there, and use its .venv/bin/directrank",
    )


def edition_with_defaults(config: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """``config`` with the edition that it extends and the schema's defaults, reduced to the papers
    and collections that it makes.

    Products that a paper's entry does not name are filled in by the plan.

    Args:
        config: the edition's configuration, as read from its file.
        root: the repository's folder.

    Raises:
        ConfigError: a key or value is not valid, or the edition that it extends does not exist.
    """
    schema = read_yaml(root / "workflow/schemas/edition.schema.yaml")
    where = f"configuration of edition '{config.get('edition', '?')}'"
    extended = _extended(plain_copy(config), root, schema, where)
    completed = _of_papers(complete(extended, schema, where), where)
    for entry in completed["papers"].values():
        for collection in entry.setdefault("collections", []):
            catalog.get(collection)
            completed["datasets"].setdefault(collection, {"source": "archive"})
        entry["collections"] = [
            name for name in entry["collections"] if is_available(completed, name)
        ]
    return {**completed, "raw_dir": str(catalog.raw_folder(completed.get("raw_dir")))}


def is_available(config: Mapping[str, Any], name: str) -> bool:
    """Whether an edition has a source for the data set ``name``, or does not mention it."""
    return bool(config["datasets"].get(name, {}).get("source") != NONE)


def _extended(
    config: dict[str, Any], root: Path, schema: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """``config``, with all that it does not set itself taken from the edition that it extends."""
    if "extends" not in config:
        return config
    check(config, schema, where)
    name = config.pop("extends")
    path = root / "config" / f"{name}.yaml"
    known = sorted(file.stem for file in path.parent.glob("*.yaml"))
    if name not in known:
        raise ConfigError(
            f"edition '{config['edition']}' extends '{name}', but there is no config/{name}.yaml",
            suggest(name, known),
        )
    base = read_yaml(path)
    if "extends" in base:
        raise ConfigError(
            f"edition '{config['edition']}' extends '{name}', which itself extends another",
            f"extend '{base['extends']}' and repeat what config/{name}.yaml sets",
        )
    papers = {
        paper: {**base["papers"].get(paper, {}), **entry}
        for paper, entry in config.get("papers", {}).items()
    }
    joined = {
        "datasets": {**base["datasets"], **config.get("datasets", {})},
        "papers": {**base["papers"], **papers},
        "overrides": [*base.get("overrides", []), *config.get("overrides", [])],
    }
    return {**base, **config, **joined}


def _of_papers(config: dict[str, Any], where: str) -> dict[str, Any]:
    """``config`` with only the papers that ``only`` lists, and without overrides of others."""
    if "only" not in config:
        return config
    wanted, papers = config.pop("only"), config["papers"]
    for name in wanted:
        if name not in papers:
            raise ConfigError(f"{where}: 'only' names '{name}'", suggest(name, papers))
    overrides = [
        override
        for override in config.get("overrides", [])
        if override.get("where", {}).get("paper", wanted[0]) in wanted
    ]
    kept = {name: entry for name, entry in papers.items() if name in wanted}
    return {**config, "papers": kept, "overrides": overrides}
