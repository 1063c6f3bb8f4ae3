"""What the report says, gathered from plans, result files, figures, tables and verdicts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from directrank.edition.configuration import repository
from directrank.papers.shared import pages
from directrank.papers.shared.claim_rows import claims_of
from directrank.papers.shared.claims import OVERALL, read_claims
from directrank.papers.shared.evidence import read_plan
from directrank.papers.shared.product import paper_title, product
from directrank.papers.shared.verdicts import GROUPS, RAN, UNMEASURED
from directrank.report.products import ProductSection, anchor, cells, product_section
from directrank.report.runs import RunSection, Use, run_section
from directrank.study.failures import FAILED
from directrank.study.results import RunResult, load_run
from directrank.system.errors import ConfigError

#: Kinds of products in the order in which a paper's are shown.
KINDS = ("figure", "table", "values")


@dataclass(frozen=True)
class PaperSection:
    """A paper: its name, its title, its products in their order."""

    name: str
    title: str
    products: Sequence[ProductSection]

    @property
    def groups(self) -> list[tuple[str, list[ProductSection]]]:
        """Its products in their order, neighbours of one kind together under their kind."""
        return [
            (kind, list(listed))
            for kind, listed in itertools.groupby(self.products, lambda product: product.kind)
        ]


@dataclass(frozen=True)
class Report:
    """Everything that the page shows.

    Attributes:
        edition: its name.
        verdicts: on every claim; empty if the edition makes no paper that has claims.
        tally: group of data → how many claims have which verdict on it.
        ran: how many claims ran only on stand-ins.
        unmeasured: how many were not measured.
        citations: name of a paper → its authors and year.
        papers: with their products.
        runs: with their results.
        failed: the names of runs that could not be trained, and why.
        seconds: of training, together.
        environments: that runs were made in.
        standins: what the data sets stand in for that are stand-ins.
    """

    edition: str
    verdicts: Sequence[ClaimSection]
    tally: Mapping[str, Mapping[str, int]]
    ran: int
    unmeasured: int
    citations: Mapping[str, str]
    papers: Sequence[PaperSection]
    runs: Sequence[RunSection]
    failed: Mapping[str, str]
    seconds: float
    environments: Sequence[Mapping[str, Any]]
    standins: Sequence[str]

    @property
    def products(self) -> Mapping[str, ProductSection]:
        """Every product by its address."""
        return {product.address: product for paper in self.papers for product in paper.products}

    def claims_about(self, product: ProductSection) -> list[ClaimSection]:
        """The verdicts that are measured on a product, or quoted in it."""
        return [
            verdict
            for verdict in self.verdicts
            for name in verdict.products
            if anchor(verdict.claim["paper"], name) == product.address
        ]


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
        claims_csv: the verdicts; not read if the edition makes no paper that has claims.
        figures_folder, tables_folder: the edition's, such as ``figures/demo``.
        out: where the report will lie; links are relative to its folder.

    Raises:
        DirectrankError: plans of several editions, or files that are missing.
    """
    plans = sorted((read_plan(file) for file in plan_files), key=_product_order)
    editions = {plan["edition"] for plan in plans}
    if len(editions) != 1:
        raise ConfigError(f"plans of one edition are needed, not {sorted(editions)}", "plan again")
    edition = editions.pop()
    command = f"snakemake --cores 2 --configfile config/{edition}.yaml"
    if Path("edition.yaml").is_file():  # a folder of `directrank compare`
        snakefile = repository() / "workflow/Snakefile"
        command = f"snakemake --snakefile {snakefile} --cores 2 --configfile edition.yaml"
    names = sorted({cell["run"] for plan in plans for cell in cells(plan)})
    loaded = {name: load_run(Path(results) / "runs" / name) for name in names}
    seconds = {name: run.record["seconds"] for name, run in loaded.items()}
    tables = Path(tables_folder)
    folders = {"figure": Path(figures_folder), "table": tables, "values": tables}
    made: dict[str, list[ProductSection]] = {}
    uses: dict[str, list[Use]] = {name: [] for name in names}
    for plan in plans:
        section = product_section(plan, seconds, folders, Path(out).parent, f"{command} --force")
        made.setdefault(plan["paper"], []).append(section)
        for experiment, listed in plan["experiments"].items():
            for cell in listed:
                uses[cell["run"]].append(
                    Use(section.address, section.title, plan["paper"], experiment, cell["settings"])
                )
    verdicts = []
    if any(map(claims_of, made)):
        verdicts = read_verdicts(
            claims_csv,
            {paper: [product.name for product in products] for paper, products in made.items()},
        )
    failed = {name: run.record[FAILED] for name, run in loaded.items() if FAILED in run.record}
    words = [verdict.claim["verdict"] for verdict in verdicts]
    return Report(
        edition=edition,
        verdicts=verdicts,
        tally=_tally(verdicts),
        ran=words.count(RAN),
        unmeasured=words.count(UNMEASURED),
        citations={
            name: paper_title(name).partition(":")[0]
            for name in {*made, *(verdict.claim["paper"] for verdict in verdicts)}
        },
        papers=[PaperSection(name, paper_title(name), products) for name, products in made.items()],
        runs=[
            run_section(run, f"rm -r results/{edition}/runs/{name}; {command}", uses[name])
            for name, run in loaded.items()
            if name not in failed
        ],
        failed=failed,
        seconds=sum(seconds.values()),
        environments=_environments(loaded.values()),
        standins=sorted(
            {
                run.record["data"]["title"].removeprefix("stand-in for ")
                for run in loaded.values()
                if run.record["data"]["origin"] == "standin"
            }
        ),
    )


def _product_order(plan: Mapping[str, Any]) -> tuple[str, bool, int, list[int | str]]:
    """Sorts products by paper, kind and number, after the picture of all of a paper, or the table
    of all methods of a collection."""
    item, name = product(plan["paper"], plan["product"]), plan["product"]
    first = name in ("summary", f"table_{item.collection}")
    return plan["paper"], not first, KINDS.index(item.kind), pages.natural(name)


def _tally(verdicts: Iterable[ClaimSection]) -> dict[str, dict[str, int]]:
    """Group of data → verdict → how many claims have it, of groups that have any."""
    tally: dict[str, dict[str, int]] = {group: {} for group in GROUPS}
    for verdict in verdicts:
        name, group = verdict.claim["verdict"], verdict.claim["group"]
        if group in tally:
            tally[group][name] = tally[group].get(name, 0) + 1
    return {group: counts for group, counts in tally.items() if counts}


def _environments(runs: Iterable[RunResult]) -> list[Mapping[str, Any]]:
    """The different environments that the runs were made in, the first met first."""
    environments: list[Mapping[str, Any]] = []
    for run in runs:
        if run.record["environment"] not in environments:
            environments.append(run.record["environment"])
    return environments


@dataclass(frozen=True)
class ClaimSection:
    """A claim's verdict, with the comparisons behind it.

    Attributes:
        claim: the row of the file of claims with the verdict on all of it.
        comparisons: the rows of its comparisons.
        measured_on: the products of its paper from whose runs it is measured, by name.
        quoted_in: further products that quote the verdict.
    """

    claim: Mapping[str, Any]
    comparisons: Sequence[Mapping[str, Any]]
    measured_on: Sequence[str]
    quoted_in: Sequence[str]

    @property
    def products(self) -> list[str]:
        """Every product that measures or quotes the claim."""
        return [*self.measured_on, *self.quoted_in]


def read_verdicts(claims_csv: str | Path, made: Mapping[str, Sequence[str]]) -> list[ClaimSection]:
    """The verdict on every claim.

    Args:
        claims_csv: an edition's ``claims.csv``.
        made: paper → the names of the products that the edition has of it, in their order.
    """
    claims = read_claims(claims_csv)
    claims = claims.astype(object).where(claims.notna(), None)
    verdicts = []
    for _, rows in claims.groupby("claim", sort=False):
        claim = rows[rows["comparison"] == OVERALL].iloc[0].to_dict()
        measured = _measured_on(claim) if claim["verdict"] != UNMEASURED else set()
        names = made.get(claim["paper"], ())
        verdicts.append(
            ClaimSection(
                claim=claim,
                comparisons=rows[rows["comparison"] != OVERALL].to_dict("records"),
                measured_on=[name for name in names if name in measured],
                quoted_in=[
                    name
                    for name in names
                    if name not in measured
                    and claim["claim"] in product(claim["paper"], name).claims
                ],
            )
        )
    return verdicts


def _measured_on(claim: Mapping[str, Any]) -> set[str]:
    return set(claims_of(claim["paper"])[claim["claim"]].products)
