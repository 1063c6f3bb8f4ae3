"""The walk through the papers' experiments: its values are those that the edition `paper` plans."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

import pytest
import yaml

from directrank import learners, losses, models
from directrank.data import normalise
from directrank.data.cubic import CubicSettings
from directrank.edition.plan import load
from directrank.study.specification import NEURAL_SECTIONS, value_at
from directrank.system.registry import look_up
from directrank.system.schema import package_schema, read_yaml
from workflow_runs import ROOT

PAGE = ROOT / "docs/protocols.md"
HEADER = "| the paper | runs | key | value | is | remarks |"
STANDINGS = {"printed", "code", "LETOR", "choice", "deviates"}
#: What is recorded of a run and how many share a pass; no row need say it.
RECORDED = ("evaluation", "training.monitor", "training.stack")
ABSENT = "<absent>"


@dataclass
class Row:
    """A row of the page, and the values that the plan has in its place."""

    paper: str
    experiments: tuple[str, ...]
    runs: tuple[str, ...]
    key: str
    values: list[Any]
    standing: str
    found: list[Any] = field(default_factory=list)

    def where(self) -> str:
        names = ", ".join(self.experiments) or "every experiment"
        return f"{self.paper}, {names} ({', '.join(self.runs) or 'all runs'}): {self.key}"


class Run(NamedTuple):
    """A planned run: who asks for it, as what, and its specification."""

    paper: str
    experiment: str
    labels: frozenset[str]
    spec: Mapping[str, Any]


def code(cell: str) -> tuple[str, ...]:
    """What stands in code font in a cell or a heading."""
    return tuple(re.findall(r"`([^`]+)`", cell))


def rows_of(text: str) -> list[Row]:
    """The rows of the page: a heading of level 2 names the paper, of level 3 the experiments."""
    rows, paper, experiments, inside = [], "", (), False
    for line in text.splitlines():
        if line.startswith("## "):
            paper, experiments = line[3:].lower(), ()
        elif line.startswith("### "):
            experiments = code(line)
        inside = line.startswith("|") and (inside or line == HEADER)
        if inside and line != HEADER and not line.startswith("| ---"):
            _, runs, key, values, standing, _ = line.removeprefix("| ").split(" | ")
            read = [yaml.safe_load(value) for value in code(values)]
            rows.append(
                Row(paper, experiments, code(runs), "".join(code(key)), read, standing.strip())
            )
    return rows


@cache
def planned() -> tuple[Run, ...]:
    """The runs of the five papers in the edition `paper`, those of programs not installed too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learners.Learner, "missing", lambda learner, settings: None)
        study = load(read_yaml(ROOT / "config/paper.yaml"), ROOT)
    found: dict[tuple[str, str, str], Run] = {}
    for (paper, _), product in study.products.items():
        for experiment, cells in product["experiments"].items() if paper != "one_protocol" else ():
            for cell in cells:
                spec = study.runs[cell["run"]]
                labels = {str(value) for value in cell["settings"].values()}
                labels |= {experiment, spec["learner"]}
                if learners.get(spec["learner"]).neural:
                    labels.add("neural")
                # The same run may stand for two methods.
                at = (paper, experiment, cell["run"] + str(cell["settings"]))
                found[at] = Run(paper, experiment, frozenset(labels), spec)
    return tuple(found.values())


def is_tuned(spec: Mapping[str, Any], key: str) -> bool:
    """Whether candidates differ in ``key``, so that the value outside the grid is not used."""
    return any(within(key, path) for path in spec.get("tune", {}))


def value_of(spec: Mapping[str, Any], key: str) -> Any:
    """What a run has at ``key``, the default of the code where the configuration is silent."""
    section, _, name = key.partition(".")
    if section == "tune":
        return spec.get("tune", {}).get(name, ABSENT)
    value = value_at(spec, key, ABSENT)
    return default_of(spec, section, name) if value == ABSENT else value


def default_of(spec: Mapping[str, Any], section: str, name: str) -> Any:
    """What the code takes for a setting that a run does not have; ABSENT where there is none."""
    learner = learners.get(spec["learner"])
    if section == "loss":
        function = losses.get(spec["loss"]["name"])
    elif section == "normalisation":
        function = normalise.NORMALISATIONS[spec["normalisation"]["name"]]
    elif section == "model" and learner.neural:
        function = look_up(models.REGISTRY, spec["model"]["name"], "model")
    elif section == "data":
        return asdict(CubicSettings()).get(name.removeprefix("settings."), ABSENT)
    else:
        schema = learner.settings if section == "model" else package_schema("run")
        for part in (name if section == "model" else f"{section}.{name}".rstrip(".")).split("."):
            schema = schema.get("properties", {}).get(part, {})
        return schema.get("default", ABSENT)
    parameter = inspect.signature(function).parameters.get(name)
    return (
        ABSENT if parameter is None or parameter.default is parameter.empty else parameter.default
    )


def plain(value: Any) -> Any:
    """``value`` as YAML would have it."""
    return list(value) if isinstance(value, tuple) else value


def leaves(document: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The dotted paths of all values; those of a grid as ``tune.<path>``."""
    for key, value in document.items():
        if isinstance(value, Mapping) and value and path != "tune.":
            yield from leaves(value, f"{path}{key}.")
        elif value != {}:
            yield f"{path}{key}"


def is_named(run: Run, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(label, pattern) for label in run.labels for pattern in patterns)


def within(path: str, key: str) -> bool:
    """Whether ``path`` is ``key``, or a part of the section that it names."""
    return path == key or path.startswith(f"{key}.")


def said_of(run: Run, rows: list[Row]) -> list[Row]:
    """The rows that hold for ``run``: those of its experiment before those of the whole paper."""
    meant = [
        row
        for row in rows
        if row.key
        and row.paper == run.paper
        and (not row.experiments or run.experiment in row.experiments)
        and (not row.runs or is_named(run, row.runs))
        and (row.key.split(".")[0] not in NEURAL_SECTIONS or "neural" in run.labels)
        and not is_tuned(run.spec, row.key)
    ]
    own = [row for row in meant if row.experiments]
    return own + [
        row for row in meant if not row.experiments and not any(within(row.key, o.key) for o in own)
    ]


def compared(rows: list[Row]) -> tuple[list[str], list[str]]:
    """What is wrong with the rows, and what runs have that no row says.

    A row is wrong where its values are not those of its runs, in the order of the plan. Runs that
    have no such setting are none of its runs; a row without any is wrong.
    """
    silent: dict[str, None] = {}
    for run in planned():
        meant = said_of(run, rows)
        for row in meant:
            value = plain(value_of(run.spec, row.key))
            if value not in (ABSENT, *row.found):
                row.found.append(value)
        keys = [row.key for row in meant]
        for leaf in leaves(run.spec):
            covered = any(within(leaf, key) for key in (*keys, *RECORDED))
            if not covered and not is_tuned(run.spec, leaf):
                silent[f"{run.paper}, {run.experiment}: {leaf}"] = None
    wrong = [
        f"{row.where()}\n  the page has {row.values}\n  the plan has {row.found}"
        for row in rows
        if row.key and row.found != row.values
    ]
    return wrong, list(silent)


def page() -> list[Row]:
    return rows_of(PAGE.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_every_value_on_the_page_is_the_planned_one():
    rows = page()
    assert sum(bool(row.key) for row in rows) > 150
    wrong, _ = compared(rows)
    assert not wrong, "docs/protocols.md and config/paper.yaml differ:\n" + "\n".join(wrong)


def test_the_page_says_every_setting_of_every_experiment():
    rows = page()
    named = {(row.paper, name) for row in rows for name in row.experiments}
    assert named == {(run.paper, run.experiment) for run in planned()}
    _, silent = compared(rows)
    assert not silent, "docs/protocols.md has no row for:\n" + "\n".join(silent)


def test_every_row_says_how_the_value_stands_to_the_paper():
    odd = [row for row in page() if row.standing not in STANDINGS]
    assert not odd
    assert {row.standing for row in page()} == STANDINGS


def test_a_wrong_value_and_a_missing_one_would_be_found():
    rows = page()
    alpha = next(row for row in rows if row.key == "loss.alpha" and row.paper == "bruch2019")
    alpha.values = [11]
    rows.remove(next(row for row in rows if row.key == "trials" and row.paper == "bruch2019"))
    wrong, silent = compared(rows)
    assert len(wrong) == 1
    assert "[11]" in wrong[0]
    assert "bruch2019, depth_sweep: trials" in silent
