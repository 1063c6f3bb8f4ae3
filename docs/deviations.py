"""The tables in deviations.md: which settings of the papers' protocols editions change.

    python docs/deviations.py

compares the plans of the editions ``demo`` and ``real`` with that of ``paper``, and rewrites them.
A test does the same. The comparison of all losses belongs to no paper and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from artefact import markdown

from directrank.edition.plan import Study, load
from directrank.papers.shared.claims import published_claims
from directrank.papers.shared.pages import write_part
from directrank.system.schema import read_yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/deviations.md"
EDITIONS = ("demo", "real")
BEGIN = "<!-- written by docs/deviations.py -->\n"
END = "<!-- end -->\n"

#: What no protocol is about: where the data come from, which split this is, and how many networks
#: share a pass.
OTHER = ("data.settings", "fold", "training.stack")


class Change(NamedTuple):
    """A setting, its value in the edition ``paper``, and its value in another edition."""

    setting: str
    paper: str
    edition: str


def papers_alone(edition: str) -> Study:
    """An edition's plan of the five papers."""
    papers = list(dict.fromkeys(published_claims()["paper"]))
    return load({**read_yaml(ROOT / f"config/{edition}.yaml"), "only": papers}, ROOT)


def methods(study: Study, paper: str) -> dict[str, dict[str, list[Mapping[str, Any]]]]:
    """Experiment of a paper → its methods, as their settings name them → specification per fold."""
    runs: dict[str, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for (of, _), plan in study.products.items():
        for name, cells in plan["experiments"].items() if of == paper else ():
            for cell in cells:
                method = {key: value for key, value in cell["settings"].items() if key != "fold"}
                spec = study.runs[cell["run"]]
                runs.setdefault(name, {})[str(method), cell["run"]] = spec
    found: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for name, specs in runs.items():
        for (method, _), spec in specs.items():
            found.setdefault(name, {}).setdefault(method, []).append(spec)
    return found


def flat(mapping: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The dotted path and the value of each setting."""
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)


def changes(paper: Mapping[str, list[Any]], edition: Mapping[str, list[Any]]) -> set[Change]:
    """What an experiment changes, in the methods that both editions have."""
    found = set()
    if len(edition) != len(paper):
        found.add(Change("methods", str(len(paper)), str(len(edition))))
    for method in paper.keys() & edition.keys():
        pair = (paper[method], edition[method])
        theirs, ours = (dict(flat(runs[0])) for runs in pair)
        for path in theirs.keys() | ours.keys():
            change = Change(path, theirs.get(path, "–"), ours.get(path, "–"))
            if change.paper != change.edition and not path.startswith(OTHER):
                found.add(change)
        if len(pair[0]) != len(pair[1]):
            found.add(Change("folds", *(str(len(runs)) for runs in pair)))
    return found


def rows(original: Study, study: Study, paper: str) -> list[list[str]]:
    """The rows of a paper in an edition: changes that several experiments share are one row."""
    known, shared = methods(original, paper), {}
    for experiment, ours in methods(study, paper).items():
        for change in sorted(changes(known[experiment], ours) if experiment in known else ()):
            shared.setdefault(change, []).append(experiment)
    return [
        [", ".join(f"`{name}`" for name in experiments), f"`{setting}`", theirs, ours]
        for (setting, theirs, ours), experiments in shared.items()
    ]


def shown(study: Study, paper: str) -> str:
    """A list that says which figures and tables are made from which experiments."""
    found: dict[tuple[str, ...], list[str]] = {}
    for experiment in methods(study, paper):
        names = [
            name
            for (of, name), plan in study.products.items()
            if of == paper and plan["experiments"].get(experiment) and name != "summary"
        ]
        found.setdefault(tuple(names), []).append(experiment)
    lines = (
        f"- {', '.join(f'`{name}`' for name in experiments)}: {', '.join(names)}\n"
        for names, experiments in found.items()
    )
    return "".join(lines)


def products(one: Study, other: Study, paper: str) -> str:
    """The figures and tables of a paper that one edition makes and the other does not."""
    names = [name for of, name in one.products if of == paper and (of, name) not in other.products]
    return ", ".join(names)


def content() -> str:
    """Everything between the page's marks."""
    original, parts = papers_alone("paper"), []
    for name in EDITIONS:
        study = papers_alone(name)
        parts.append(f"## The edition `{name}`\n")
        for paper in study.config["papers"]:
            parts += [f"### {paper.capitalize()}\n", shown(study, paper)]
            if left_out := products(original, study, paper):
                parts.append(f"Left out: {left_out}.\n")
            if added := products(study, original, paper):
                parts.append(f"Only in `{name}`: {added}.\n")
            head = ["experiments", "setting", "`paper`", f"`{name}`"]
            parts.append(markdown(head, rows(original, study, paper)))
    return "\n".join(parts)


if __name__ == "__main__":
    write_part(PAGE, BEGIN, END, f"\n{content()}\n")
