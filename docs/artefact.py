"""The tables in artefact.md: what it takes to check each claim of the papers.

``python docs/artefact.py`` rewrites them, and a test compares them. Editions say what is made, the
papers' packages say from which products a claim is measured, and ``benchmarks/results/jobs.csv``
records what jobs took (``benchmarks/record_jobs.py`` writes it). Of a command of which not every
job was measured, the times are those that ``directrank cost`` predicts of its runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from directrank import learners
from directrank.cost.machine import as_recorded
from directrank.cost.predict import planned_seconds
from directrank.data import catalog
from directrank.edition.plan import Study, load
from directrank.papers.shared import product as papers
from directrank.papers.shared.claim_rows import Claim, claims_of
from directrank.papers.shared.claims import published_claims
from directrank.papers.shared.pages import write_part
from directrank.system.schema import read_yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/artefact.md"
FACTS = ROOT / "benchmarks/results/jobs.csv"
BEGIN = "<!-- written by docs/artefact.py -->\n"
END = "<!-- end -->\n"
NOT_MEASURED = "not measured"

#: The cores for which times are given.
CORES = 2

Key = tuple[str, str]


@dataclass(frozen=True)
class Edition:
    """An edition as it is planned, and the measured costs of its jobs.

    Attributes:
        study: the plan.
        jobs: a row per measured job, by its name: ``seconds``, ``memory_mb``, ``disk_mb``.
    """

    study: Study
    jobs: pd.DataFrame

    @cached_property
    def predicted(self) -> dict[str, float]:
        """The seconds of every run on the machine of the recorded runs."""
        return planned_seconds(self.study)

    @cached_property
    def keys(self) -> list[Key]:
        """Paper and name of every product."""
        return list(self.study.products)

    def runs(self, keys: Iterable[Key]) -> set[str]:
        """The runs from which products are drawn, except those of external programs."""
        plans = (self.study.products[key]["experiments"] for key in keys)
        cells = (cell for plan in plans for part in plan.values() for cell in part)
        return {
            cell["run"]
            for cell in cells
            if not learners.get(self.study.runs[cell["run"]]["learner"]).external
        }

    def data(self, runs: Iterable[str]) -> set[str]:
        """The keys of the prepared data sets of runs."""
        return {self.study.run_data[run] for run in runs}

    def names(self, runs: Iterable[str]) -> str:
        """The data sets of runs, as a catalogue calls them."""
        return ", ".join(sorted({self.study.data[key].name for key in self.data(runs)}))

    def archives(self, runs: Iterable[str]) -> str:
        """The archives that runs need, except those that are part of the repository."""
        sources = [self.study.data[key] for key in self.data(runs)]
        names = sorted({source.name for source in sources if source.source == "archive"})
        entries = {name: catalog.get(name) for name in names}
        files = [
            entry.archives[0].name if entry.archives else name
            for name, entry in entries.items()
            if not entry.embedded
        ]
        return ", ".join(f"`{file}`" for file in dict.fromkeys(files)) or "none"

    def measured(self, jobs: Collection[str]) -> pd.DataFrame | None:
        """The costs of jobs; None if one of them was not measured."""
        if not set(jobs) <= set(self.jobs.index):
            return None
        return self.jobs.loc[sorted(jobs)]

    def part(self, keys: Collection[Key]) -> set[str]:
        """The jobs of whole products: data, fits, drawing."""
        runs = self.runs(keys)
        fits = {f"fit/{run}" for run in runs} | {f"prepare/{key}" for key in self.data(runs)}
        return fits | {f"{papers.product(*key).kind}/{'/'.join(key)}" for key in keys}

    def evidence(self, paper: str, claim: Claim) -> list[Key]:
        """The products from which a claim is measured; none if it is not measured."""
        needed = [(paper, name) for name in claim.needs]
        further = [key for name in claim.optional if (key := (paper, name)) in self.study.products]
        if not set(needed) <= set(self.study.products):
            return []
        keys = [*needed, *further]
        # If an edition leaves out what a product compares, it has no runs and nothing to measure.
        return [key for key in keys if self.runs([key]) or not papers.product(*key).needs]


def load_edition(name: str, facts: pd.DataFrame) -> Edition:
    """The edition of ``config/<name>.yaml``."""
    jobs = facts[facts["edition"] == name].set_index("job")
    jobs = jobs.assign(seconds=as_recorded(jobs["seconds"], jobs["processor"]))
    return Edition(load(read_yaml(ROOT / f"config/{name}.yaml"), ROOT), jobs)


def on_two_cores(seconds: Iterable[float]) -> str:
    """How long jobs that use one core each take on :data:`CORES`, to two digits."""
    times = list(seconds)
    took = max([*times, sum(times) / CORES], default=0.0)
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if took >= length:
            return f"{float(f'{took / length:.2g}'):g} {unit}"
    return f"{max(1.0, float(f'{took:.2g}')):g} s"


def costs(edition: Edition, keys: Collection[Key]) -> list[str]:
    """The cells of what products take: runs, time, longest job, memory, disk, archives."""
    runs = edition.runs(keys)
    took = edition.measured(edition.part(keys))
    if took is None:
        seconds = [edition.predicted[run] for run in runs]
        times = [f"{on_two_cores(some)}, predicted" for some in (seconds, [max(seconds)])]
        return [str(len(runs)), *times, *[NOT_MEASURED] * 2, edition.archives(runs)]
    memory, disk = took["memory_mb"].max() / 1000, took["disk_mb"].sum() / 1000
    longest = took["seconds"].max()
    sizes = [f"{memory:.1f} GB", f"{max(disk, 0.1):.1f} GB"]
    times = [on_two_cores(took["seconds"]), on_two_cores([longest])]
    return [str(len(runs)), *times, *sizes, edition.archives(runs)]


def commands(demo: Edition, real: Edition) -> str:
    """The table of commands."""
    rows = [("`make reproduce`", "the whole edition `demo`", demo, demo.keys)]
    for paper in dict.fromkeys(paper for paper, _ in real.keys):
        keys = [key for key in real.keys if key[0] == paper]
        what = f"{paper.capitalize()} in `real`"
        if claims_of(paper) == {}:
            what = "one protocol on all its collections"
        rows.append((f"`make real-{paper}`", what, real, keys))
    parts = dict.fromkeys(papers.product(*key).made_in for key in real.keys)
    for name in (part for part in parts if part not in (None, papers.ACROSS)):
        keys = [key for key in real.keys if papers.product(*key).made_in == name]
        what = f"one protocol on {name}"
        if name not in catalog.load():
            what = f"one protocol: {', '.join(f'`{product}`' for _, product in keys)}"
        rows.append((f"`make real-{name}`", what, real, keys))
    rows.append(("`make real`", "the whole edition `real`", real, real.keys))
    head = [
        "command",
        "makes",
        "runs",
        "time on two cores",
        "longest job",
        "memory of a job",
        "disk",
    ]
    body = [[command, what, *costs(edition, keys)] for command, what, edition, keys in rows]
    return markdown([*head, "archives"], body)


def claims_table(paper: str, editions: Mapping[str, Edition]) -> str:
    """The table of one paper's claims: a column per command."""
    published = published_claims()
    body = []
    for row in published[published["paper"] == paper].itertuples():
        claim = claims_of(paper).get(row.claim)
        cells = [measurement(edition, paper, claim) for edition in editions.values()]
        body.append([row.claim, row.where, row.statement, *cells])
    return markdown(["claim", "in the paper", "statement", *editions], body)


def measurement(edition: Edition, paper: str, claim: Claim | None) -> str:
    """From which products a claim is measured, on which data, and how long that takes."""
    keys = edition.evidence(paper, claim) if claim else []
    if not keys:
        return "–"
    runs = edition.runs(keys)
    shown = ", ".join(f"`{name}`" for _, name in keys)
    on = f" on {edition.names(runs)}" if runs else ", computed"
    took = edition.measured(edition.part(keys))
    return shown + on + ("" if took is None else f"; {on_two_cores(took['seconds'])}")


def markdown(head: list[str], body: Iterable[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *body]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped) + "\n"


def content() -> str:
    """Everything between the page's marks."""
    facts = pd.read_csv(FACTS)
    demo, real, paper = (load_edition(name, facts) for name in ("demo", "real", "paper"))
    known = facts.dropna(subset="processor")[["processor", "cores"]].drop_duplicates()
    machines = [f"{row.processor}, {row.cores:.0f} cores" for row in known.itertuples()]
    parts = ["## The commands\n", commands(demo, real)]
    parts.append(f"Measured on: {'; '.join(machines) or 'no machine yet'}.\n")
    for name in published_claims()["paper"].unique():
        made = {"`make reproduce`": demo, f"`make real-{name}`": real, "`make paper`": paper}
        parts += [f"## {name.capitalize()}\n", claims_table(name, made)]
    return "\n".join(parts)


if __name__ == "__main__":
    write_part(PAGE, BEGIN, END, f"\n{content()}\n")
