"""What the report says, gathered from plans, result files, figures, tables and verdicts."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markdown_it import MarkdownIt

from directrank.papers.shared import gallery
from directrank.papers.shared.claims import OVERALL, read_claims
from directrank.papers.shared.product import TIMES, Product, paper_module, product
from directrank.papers.shared.verdicts import GROUPS, RAN, UNMEASURED
from directrank.report.curves import validation_curve
from directrank.stats.means import mean_over_queries, rows_of_trials
from directrank.study.results import RunResult, load_run
from directrank.system.errors import ConfigError
from directrank.system.io import json_text, read_json

#: Columns of a run's results: heading → split, and what a query without a relevant document counts.
MEANS = {
    "validation": ("vali", "exclude"),
    "test": ("test", "exclude"),
    "test, empty as 0": ("test", "zero"),
    "test, empty as 1": ("test", "one"),
}


#: What stands in the place of a file of values.
VALUES = (
    "<p>Every method's value of every test query, to compute with: "
    "<code>directrank.open_results</code> reads the file.</p>"
)


@dataclass(frozen=True)
class Cell:
    """A run that a product is made of, with the settings that identify it in the product."""

    run: str
    settings: Mapping[str, Any]

    def __str__(self) -> str:
        return ", ".join(f"{key} {value}" for key, value in self.settings.items())


@dataclass(frozen=True)
class ProductSection:
    """A figure or a table with how it was made.

    Attributes:
        name: e.g. ``table1``.
        title: its heading.
        body: HTML: the picture with its caption, or the table with its notes.
        files: link text → address, relative to the report.
        command: what makes it again.
        experiments: name → the runs.
        seconds: time that its runs took together.
    """

    name: str
    title: str
    body: str
    files: Mapping[str, str]
    command: str
    experiments: Mapping[str, Sequence[Cell]]
    seconds: float


@dataclass(frozen=True)
class PaperSection:
    """A paper: its name, what it is, its products in their order."""

    name: str
    title: str
    products: Sequence[ProductSection]


@dataclass(frozen=True)
class RunSection:
    """A run: what it is, its results and how to make it again."""

    name: str
    dataset: str
    standin: bool
    facts: Mapping[str, str]
    means: Sequence[Sequence[str]]
    curve: str
    settings: str
    command: str
    used_by: Sequence[str]


@dataclass(frozen=True)
class Verdict:
    """A claim's verdict, with the comparisons behind it."""

    claim: Mapping[str, Any]
    comparisons: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Report:
    """Everything that the page shows.

    Attributes:
        edition: its name.
        verdicts: on every claim.
        tally: group of data → how many claims have which verdict on it.
        ran: how many claims ran on stand-ins alone.
        unmeasured: how many were not measured.
        papers: with their products.
        runs: with their results.
        seconds: of training, together.
        environments: that runs were made in.
        datasets: title → whether it is a stand-in.
    """

    edition: str
    verdicts: Sequence[Verdict]
    tally: Mapping[str, Mapping[str, int]]
    ran: int
    unmeasured: int
    papers: Sequence[PaperSection]
    runs: Sequence[RunSection]
    seconds: float
    environments: Sequence[Mapping[str, Any]]
    datasets: Mapping[str, bool] = field(default_factory=dict)


def gather(
    plan_files: Sequence[str | Path],
    results: str | Path,
    claims_csv: str | Path,
    figures_folder: str | Path,
    tables_folder: str | Path,
    out: str | Path,
) -> Report:
    """Read everything that the report shows.

    Args:
        plan_files: the plans of the edition's products (JSON).
        results: the edition's results, such as ``results/demo``.
        claims_csv: the verdicts.
        figures_folder, tables_folder: the edition's, such as ``figures/demo``.
        out: where the report will lie; links are relative to its folder.

    Raises:
        DirectrankError: plans of several editions, or files that are missing.
    """
    plans = [read_json(file) for file in plan_files]
    editions = {plan["edition"] for plan in plans}
    if len(editions) != 1:
        raise ConfigError(f"plans of one edition are needed, not {sorted(editions)}", "plan again")
    edition = editions.pop()
    used: dict[str, list[str]] = {}
    for plan in plans:
        for cell in _cells(plan):
            used.setdefault(cell["run"], []).append(anchor(plan["paper"], plan["product"]))
    loaded = {name: load_run(Path(results) / "runs" / name) for name in sorted(used)}
    tables = Path(tables_folder)
    folders = {"figure": Path(figures_folder), "table": tables, "values": tables}
    papers: dict[str, list[ProductSection]] = {}
    for plan in sorted(plans, key=_place):
        section = _product_section(plan, loaded, folders, Path(out).parent)
        papers.setdefault(plan["paper"], []).append(section)
    verdicts = _verdicts(read_claims(claims_csv))
    tally: dict[str, dict[str, int]] = {group: {} for group in GROUPS}
    for verdict in verdicts:
        name, group = verdict.claim["verdict"], verdict.claim["group"]
        if group in tally:
            tally[group][name] = tally[group].get(name, 0) + 1
    words = [verdict.claim["verdict"] for verdict in verdicts]
    return Report(
        edition=edition,
        verdicts=verdicts,
        tally={group: counts for group, counts in tally.items() if counts},
        ran=words.count(RAN),
        unmeasured=words.count(UNMEASURED),
        papers=[
            PaperSection(name, _first_line(paper_module(name).__doc__), papers[name])
            for name in dict.fromkeys(plan["paper"] for plan in plans)
        ],
        runs=[_run_section(run, edition, used[name]) for name, run in loaded.items()],
        seconds=sum(run.record["seconds"] for run in loaded.values()),
        environments=_environments(loaded.values()),
        datasets={
            run.record["data"]["title"]: run.record["data"]["origin"] == "standin"
            for run in loaded.values()
        },
    )


def anchor(paper: str, name: str) -> str:
    """The address of a product within the page."""
    return f"{paper}-{name}"


def duration(seconds: float) -> str:
    """Seconds in the unit that a reader would choose.

    >>> [duration(seconds) for seconds in (45, 720, 12300)]
    ['45 s', '12 min', '3.4 h']
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _place(plan: Mapping[str, Any]) -> tuple[bool, list[int | str]]:
    """Sorts products by their number, after the picture of all of them."""
    return plan["product"] != "summary", gallery.natural(plan["product"])


def _cells(plan: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (cell for cells in plan["experiments"].values() for cell in cells)


def _product_section(
    plan: Mapping[str, Any],
    loaded: Mapping[str, RunResult],
    folders: Mapping[str, Path],
    here: Path,
) -> ProductSection:
    paper, name = plan["paper"], plan["product"]
    item = product(paper, name)
    stem = folders[item.kind] / paper / name
    body = VALUES
    if item.kind != "values":
        body = _picture(stem) if item.kind == "figure" else _table(stem, plan)
    files = {
        suffix.lstrip("._"): Path(os.path.relpath(f"{stem}{suffix}", here)).as_posix()
        for suffix in _suffixes(item)
    }
    runs = {cell["run"] for cell in _cells(plan)}
    return ProductSection(
        name=name,
        title=item.title,
        body=body,
        files=files,
        command=_snakemake(plan["edition"], f"{stem}{item.suffixes[0]}"),
        experiments={
            key: [Cell(cell["run"], cell["settings"]) for cell in cells]
            for key, cells in plan["experiments"].items()
            if cells
        },
        seconds=sum(loaded[run].record["seconds"] for run in runs),
    )


def _suffixes(item: Product) -> Sequence[str]:
    return (*item.suffixes, TIMES) if item.timed else item.suffixes


def _picture(stem: Path) -> str:
    svg = stem.with_name(f"{stem.name}.svg")
    title, caption = gallery.caption(svg)
    # As an image, so that identifiers inside one drawing cannot meet those of another.
    content = base64.b64encode(svg.read_bytes()).decode()
    return (
        f'<figure><img alt="{_escaped(title)}" src="data:image/svg+xml;base64,{content}">'
        f"<figcaption>{_escaped(caption)}</figcaption></figure>"
    )


def _table(stem: Path, plan: Mapping[str, Any]) -> str:
    """The table's Markdown as HTML; a row that is named after a run's setting leads to its runs."""
    text = stem.with_name(f"{stem.name}.md").read_text(encoding="utf-8")
    text = text.split("\n", 1)[1]  # the heading is the section's own
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    # The only mark-up that tables use besides bold.
    html = re.sub(r"&lt;(/?su[bp])&gt;", r"<\1>", html)
    html = re.sub(r"<(/?)h2>", r"<\1h4>", html)
    html = html.replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>"
    )
    named: dict[str, dict[str, str]] = {}
    for cell in _cells(plan):
        for value in cell["settings"].values():
            named.setdefault(str(value), {})[cell["run"]] = str(Cell(cell["run"], cell["settings"]))
    return re.sub(
        r"(<tr>\s*<td[^>]*>)(.*?)(</td>.*?</tr>)",
        lambda row: _linked(row, named),
        html,
        flags=re.DOTALL,
    )


def _linked(row: re.Match[str], named: Mapping[str, Mapping[str, str]]) -> str:
    """A table row with links to the runs that its first cell names, unless it was not run."""
    before, text, after = row.groups()
    runs = named.get(re.sub(r"<[^>]+>", "", text).strip(), {})
    if "not run" in after:
        return row.group()
    links = "".join(
        f' <a class="to-run" href="#run-{run}" title="{_escaped(settings)}">{number}</a>'
        for number, (run, settings) in enumerate(runs.items(), 1)
    )
    return f"{before}{text}{links}{after}"


def _run_section(run: RunResult, edition: str, used_by: Sequence[str]) -> RunSection:
    record, spec, fits = run.record, run.spec, run.fits
    data = record["data"]
    chosen = fits[fits["selected"]]
    facts = {
        "fold": str(spec["fold"] or "–"),
        "learner": spec["learner"]
        + (f", loss {spec['loss']['name']}" if "loss" in spec else "")
        + (f", scorer {spec['model']['name']}" if "name" in spec["model"] else ""),
        "trials": str(spec["trials"]),
        "candidates tuned": str(fits["candidate"].nunique()),
        "best epoch": _range(chosen["best_epoch"]),
        "trained in": duration(record["seconds"]),
        "started": record["started"],
        "data digest": data["digest"][:12],
    }
    return RunSection(
        name=run.name,
        dataset=data["title"],
        standin=data["origin"] == "standin",
        facts=facts,
        means=_means(run.per_query),
        curve=validation_curve(run.history, fits),
        settings=json_text(spec),
        command=_snakemake(edition, f"results/{edition}/runs/{run.name}/run.json"),
        used_by=list(dict.fromkeys(used_by)),
    )


def _means(per_query: pd.DataFrame) -> list[list[str]]:
    """The label of each metric, and its mean over trials for each of :data:`MEANS`."""
    trials = rows_of_trials(per_query)
    rows = []
    for label in per_query.columns:
        if label in ("trial", "split", "query_id", "n_documents", "n_relevant"):
            continue
        values, row = per_query[label].to_numpy(), [label]
        for split, empty in MEANS.values():
            places = [rows for (_, name), rows in trials.items() if name == split]
            means = np.array([mean_over_queries(values[place], empty) for place in places])
            row.append(f"{mean_over_queries(means):.4f}")
        rows.append(row)
    return rows


def _range(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


def _snakemake(edition: str, target: str) -> str:
    return f"snakemake --cores 2 --configfile config/{edition}.yaml --force {target}"


def _verdicts(claims: pd.DataFrame) -> list[Verdict]:
    claims = claims.astype(object).where(claims.notna(), None)
    return [
        Verdict(
            claim=rows[rows["comparison"] == OVERALL].iloc[0].to_dict(),
            comparisons=rows[rows["comparison"] != OVERALL].to_dict("records"),
        )
        for _, rows in claims.groupby("claim", sort=False)
    ]


def _environments(runs: Iterable[RunResult]) -> list[Mapping[str, Any]]:
    """The different environments that the runs were made in, the first met first."""
    environments: list[Mapping[str, Any]] = []
    for run in runs:
        if run.record["environment"] not in environments:
            environments.append(run.record["environment"])
    return environments


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n", 1)[0]


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
