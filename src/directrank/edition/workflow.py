"""What the rules of the workflow need: files, parameters, digests of code, the environment of jobs.

A rule's function takes what Snakemake passes to it: ``wildcards``, an object with an attribute for
each wildcard, and if it asks for it, ``input``, the rule's input files.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from directrank.data import catalog, fetch, prepared
from directrank.edition.plan import Study, runs_behind
from directrank.papers.shared import claims
from directrank.papers.shared import product as papers
from directrank.papers.shared.claim_rows import claims_of
from directrank.study import provenance, results
from directrank.system import arithmetic
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import digest_of, json_text, sha256_of
from directrank.system.locks import Claim
from directrank.system.schema import suggest

#: The folder of each kind of product.
FOLDERS: Mapping[papers.Kind, str] = {
    "figure": "figures",
    "table": "paper_tables",
    "values": "paper_tables",
}


class Workflow:
    """The workflow of one edition. Paths of files that it makes are relative to its working folder.

    Args:
        study: the edition's plan.
        root: the clone, whose source, templates and published values jobs read.
        files_are_shared: whether jobs see each other's files. Without a shared file system a job
            sees only its declared inputs, so every file is declared. With one, only the record of a
            run or data set is declared, because it is written last; this halves the time to plan a
            study of a thousand runs.
    """

    def __init__(self, study: Study, root: str | Path, files_are_shared: bool = True) -> None:
        self.study = study
        self.config = study.config
        self.edition = study.edition
        self.root = Path(root)
        self.files_are_shared = files_are_shared
        self.results = f"results/{study.edition}"

    # Jobs

    def job_environment(self) -> dict[str, str]:
        """The environment variables of jobs, in addition to the user's own."""
        variables = {
            "PYTHONPATH": str(self.root / "src"),
            "PYTHONHASHSEED": "0",
            # A job ends if the Snakemake process that started it dies.
            "DIRECTRANK_PARENT": str(os.getpid()),
            "DIRECTRANK_RAW": str(Path(self.config["raw_dir"]).absolute()),
            "DIRECTRANK_FITS_PER_GPU": str(self.config["fits_per_gpu"]),
            "DIRECTRANK_STAGE": self.config["stage_dir"],
            "DIRECTRANK_RECORD_FAILURE": "1" if self.config["record_failures"] else "",
        }
        return variables | arithmetic.variables(self.config["arithmetic"])

    def shell_prefix(self, python: str, forkserver: str) -> str:
        """The prefix of each job's shell commands: strict mode, and the job's environment.

        None of this affects results, so it is not a parameter of any rule. Braces are doubled
        because Snakemake formats the text.

        Args:
            python: the interpreter of jobs, ``$PYTHON`` in their commands; ``$DIRECTRANK`` is the
                script that it runs with ``-IS`` as the command line.
            forkserver: the socket where a fork server may be reached.
        """
        variables = self.job_environment() | {"DIRECTRANK_FORKSERVER": forkserver}
        exports = (f"export {name}={shlex.quote(value)};" for name, value in variables.items())
        command = shlex.quote(str(self.root / "src/directrank/cli/job.py"))
        names = f"PYTHON={shlex.quote(python)}; DIRECTRANK={command};"
        prefix = f"set -euo pipefail; {names} {' '.join(exports)} "
        return prefix.replace("{", "{{").replace("}", "}}")

    def wildcard_constraints(self) -> dict[str, str]:
        """The values that wildcards take, as regular expressions."""
        return {
            "key": choice(self.study.data),
            # An alternation of all runs would be slow: it would be tried on every input of every
            # job.
            "run": r"[a-z][a-z0-9_]*(-f\d+)?-[a-z0-9_]+-[0-9a-f]{8}",
            "paper": choice({paper for paper, _ in self.study.products}),
            # Any number of a figure or table, so that a message names those that are made.
            "product": choice({product for _, product in self.study.products})
            + r"|(?:figure|table)\d+[a-z]?",
            "top": choice(FOLDERS.values()),
        }

    def claim(self, keys: Collection[str]) -> Claim:
        """Claim the edition in this working folder, and the data sets ``keys`` that will be
        prepared.

        This replaces Snakemake's own locks, which a killed process leaves behind (``nolock`` in the
        profiles).

        Raises:
            ConfigError: another process is making the edition or working on its data.
        """
        return Claim(
            ".snakemake/claims",
            [f"edition-{self.edition}", *(f"data-{key}" for key in keys)],
            [f"data-{key}" for key in self.study.data if key not in keys],
        )

    def require_archives(self, keys: Iterable[str]) -> None:
        """Fetch the archives of the data sets ``keys`` that are missing and may be fetched.

        Raises:
            DataError: some archives cannot be fetched; the message lists them all and says how to
                get them.
        """
        keys = sorted(key for key in keys if self.study.data[key].source == "archive")
        entries = [catalog.get(self.study.data[key].name) for key in keys]
        raw, accepted = self.config["raw_dir"], self.config["accept_licences"]
        fetched = self.config["download"]
        failures = fetch.fetch_missing(entries, raw, accepted) if fetched else {}
        try:
            catalog.require(entries, raw, failures)
        except DataError as error:
            remedy = error.remedy
            optional = self._optional(entry for entry in entries if catalog.is_missing(entry, raw))
            if optional:
                sources = ", ".join(f"{name}: {{source: none}}" for name in optional)
                remedy += f"; or leave out what needs them: --config 'datasets={{{sources}}}'"
            outdated = [key for key in keys if Path(f"data/prepared/{key}").is_dir()]
            if outdated:
                remedy += (
                    f"\n  {', '.join(outdated)}: prepared data exist, but they were made by other "
                    "code or settings; `snakemake --touch` accepts them as they are"
                )
            raise DataError(error.what, remedy) from None

    def _optional(self, entries: Iterable[catalog.Entry]) -> list[str]:
        """The names of those data sets that take no other's place, so that the edition can do
        without them."""
        datasets = self.config["datasets"]
        substitutes = {entry.get("instead") for entry in datasets.values()}
        return [entry.name for entry in entries if entry.name not in substitutes]

    def closing_words(self) -> str:
        """A message that says where the finished edition is."""
        return (
            f"\nEdition '{self.edition}' is complete.\n"
            f"  report   report/{self.edition}/report.html\n"
            f"  figures  figures/{self.edition}/\n"
            f"  tables   paper_tables/{self.edition}/\n"
            + "".join(
                f"  claims   {name}\n" for name in self.claims_files() if name.endswith(".md")
            )
        )

    # Data

    def data_settings(self, wildcards: Any) -> str:
        """The settings of a prepared data set, as JSON."""
        return json_text(self.study.data[wildcards.key].settings)

    def data_name(self, wildcards: Any) -> str:
        """The name of a prepared data set."""
        return self.study.data[wildcards.key].name

    def data_code(self, wildcards: Any) -> str:
        """A digest of the code that makes a prepared data set, including its generator."""
        generator = catalog.get(self.data_name(wildcards)).generator
        return code("directrank.data.prepare", *([generator.split(":")[0]] if generator else []))

    def data_entry(self, wildcards: Any) -> str:
        """A digest of the catalogue's entry for a data set."""
        return catalog.fingerprint(catalog.get(self.data_name(wildcards)))

    def data_threads(self, wildcards: Any) -> int:
        """The threads that prepare a data set: two if files are parsed, one if it is generated."""
        return 1 if catalog.get(self.data_name(wildcards)).generator else 2

    def keys_by_splits(self) -> dict[tuple[str, ...], list[str]]:
        """The keys of the data sets by the names of their splits, such as ``Fold1/train``."""
        keys: dict[tuple[str, ...], list[str]] = {}
        for key in sorted(self.study.data):
            keys.setdefault(self._splits(key), []).append(key)
        return keys

    def data_files(self, key: str) -> list[str]:
        """The inputs of a job that reads a prepared data set, the record first.

        Scaled copies are not included, because a job that needs one makes it.
        """
        files = store_files(key) + split_files(key, self._splits(key))
        return files[:1] if self.files_are_shared else files

    def all_data_files(self) -> list[str]:
        """The inputs of a job that reads every prepared data set."""
        return [name for key in sorted(self.study.data) for name in self.data_files(key)]

    def data_page_files(self) -> list[str]:
        """A page for each data set, and the table of all of them."""
        names = sorted({source.name for source in self.study.data.values()})
        pages = [f"{name}.{form}" for name in names for form in ("md", "csv", "png", "svg")]
        pages += ["datasets.csv", "datasets.md"] if names else []
        return [f"figures/{self.edition}/data/{page}" for page in pages]

    # Runs

    def specification(self, wildcards: Any) -> Mapping[str, Any]:
        """The specification of a run; ConfigError if the edition has no such run."""
        if wildcards.run not in self.study.runs:
            raise ConfigError(f"edition '{self.edition}' has no run '{wildcards.run}'")
        return self.study.runs[wildcards.run]

    def specification_text(self, wildcards: Any) -> str:
        """The specification of a run, as JSON."""
        return json_text(self.specification(wildcards))

    def run_data(self, wildcards: Any) -> list[str]:
        """The prepared data that a run reads, the record first."""
        self.specification(wildcards)
        return self.data_files(self.study.run_data[wildcards.run])

    def run_code(self, wildcards: Any) -> str:
        """A digest of the code that decides a run's results."""
        return provenance.run_digest(self.specification(wildcards))

    def run_group(self, wildcards: Any) -> str:
        """The group of a data set's fits; a cluster's profile says how many of them share a job."""
        return f"fits_{self.study.data[self.study.run_data[wildcards.run]].name}"

    def run_gpus(self, wildcards: Any) -> int:
        """The number of GPUs that a fit uses: one if networks are trained on GPUs."""
        neural = self.specification(wildcards)["learner"] == "neural"
        return int(self.config["device"] == "cuda" and neural)

    def run_files(self, runs: Iterable[str]) -> list[str]:
        """The inputs of a job that reads the results of ``runs``."""
        names = [results.RECORD] if self.files_are_shared else results.FILES
        return [f"{self.results}/runs/{run}/{name}" for run in runs for name in names]

    def all_run_files(self) -> list[str]:
        """The inputs of a job that reads the results of every run."""
        return self.run_files(self.study.runs)

    # Products

    def product_files(self, kind: papers.Kind, suffix: str = "") -> list[str]:
        """All files of the figures, tables or values, or only those that end in ``suffix``."""
        names = (
            name
            for key in self.study.products
            if papers.product(*key).kind == kind
            for name in self._files_of(*key)
        )
        return [name for name in names if name.endswith(suffix)]

    def _files_of(self, paper: str, name: str) -> list[str]:
        """The files of one product."""
        item = papers.product(paper, name)
        endings = (*item.suffixes, *([papers.TIMES] if item.timed else []))
        stem = f"{FOLDERS[item.kind]}/{self.edition}/{paper}/{name}"
        return [stem + ending for ending in endings]

    def gallery_files(self) -> list[str]:
        """The page that shows every figure with its caption; empty if there are no figures."""
        return [f"figures/{self.edition}/README.md"] if self.product_files("figure") else []

    def claims_files(self) -> list[str]:
        """The verdicts on claims; empty without papers that have any or collections to compare."""
        if not self.papers_with_claims() and len(self.product_files("values")) < 2:
            return []
        return [f"paper_tables/{self.edition}/claims{end}" for end in (".csv", ".md", papers.TIMES)]

    def claims_by_collection(self) -> list[str]:
        """The verdicts on every collection side by side; empty unless there are several."""
        if len(self.product_files("values")) < 2:
            return []
        return [
            f"paper_tables/{self.edition}/claims_by_collection.{form}" for form in ("csv", "md")
        ]

    def papers_with_claims(self) -> list[str]:
        """The papers of the edition whose claims are measured."""
        names = sorted({paper for paper, _ in self.study.products})
        return [name for name in names if claims_of(name)]

    def claims_of_papers(self, ending: str = ".csv") -> list[str]:
        """The verdicts on each paper's claims, or the file beside them that ends in ``ending``."""
        names = self.papers_with_claims()
        return [f"paper_tables/{self.edition}/{name}/claims{ending}" for name in names]

    def paper_plans(self, paper: str) -> list[str]:
        """The plans of the figures and tables of a paper."""
        start = f"{self.results}/plan/{paper}/"
        return [name for name in self.plan_files() if name.startswith(start)]

    def plan_texts(self, paper: str) -> list[str]:
        """The contents of :meth:`paper_plans`, as JSON."""
        products = self.study.products.items()
        return [json_text(plan) for (name, _), plan in products if name == paper]

    def paper_runs(self, wildcards: Any) -> list[str]:
        """The result files of all runs of a paper."""
        products = self.study.products.items()
        return self._runs_behind(plan for (paper, _), plan in products if paper == wildcards.paper)

    def papers(self) -> list[str]:
        """The papers of the edition, in its order."""
        return list(dict.fromkeys(paper for paper, _ in self.study.products))

    def part_files(self, paper: str) -> list[str]:
        """All figures, tables and verdicts of one paper, and the results behind them."""
        made = [name for kind in FOLDERS for name in self.product_files(kind)]
        files = [name for name in made if name.split("/")[2] == paper]
        files += [name for name in self.claims_of_papers() if name.split("/")[2] == paper]
        return files + self.paper_runs(SimpleNamespace(paper=paper))

    def collections(self) -> list[str]:
        """The collections on which per-collection experiments are made."""
        every = (entry["collections"] for entry in self.config["papers"].values())
        return list(dict.fromkeys(name for names in every for name in names))

    def collection_files(self, collection: str) -> list[str]:
        """All figures, tables and values of one collection, and the results behind them."""
        keys = [key for key in self.study.products if papers.product(*key).collection == collection]
        files = [name for key in keys for name in self._files_of(*key)]
        return files + self._runs_behind(self.study.products[key] for key in keys)

    def plan_files(self) -> list[str]:
        """The plan of each figure and table."""
        return [f"{self.results}/plan/{paper}/{name}.json" for paper, name in self.study.products]

    def product_runs(self, wildcards: Any) -> list[str]:
        """The result files that a product is drawn from."""
        return self._runs_behind([self._plan(wildcards)])

    def _runs_behind(self, plans: Iterable[Mapping[str, Any]]) -> list[str]:
        """The result files of the runs that products with these plans are drawn from."""
        return self.run_files(sorted(runs_behind(plans)))

    def runs_of_first_figure(self, seconds: Mapping[str, float]) -> set[str]:
        """The runs behind the figure of real data that can be drawn first; empty if there is none.

        Figures that quote claims wait for all runs of their paper.

        Args:
            seconds: the predicted seconds of runs; those that are missing count as 1.
        """
        behind = []
        for key, plan in self.study.products.items():
            item = papers.product(*key)
            runs = runs_behind([plan])
            real = all(self._source(run) == "archive" for run in runs)
            if item.kind == "figure" and not item.claims and runs and real:
                behind.append(runs)
        return min(
            behind, key=lambda runs: sum(seconds.get(run, 1.0) for run in runs), default=set()
        )

    def _source(self, run: str) -> str:
        """Where a run's data come from; see :class:`directrank.edition.plan.DataSource`."""
        return self.study.data[self.study.run_data[run]].source

    def product_data(self, wildcards: Any) -> list[str]:
        """The records of the prepared data sets that a product describes."""
        keys = self._plan(wildcards)["prepared"].values()
        return [f"data/prepared/{key}/prepared.json" for key in keys]

    def product_values(self, wildcards: Any) -> list[str]:
        """The published values per query from which a product is made; empty for most products."""
        paper = wildcards.paper
        collections = self.config["papers"][paper]["collections"]
        names = papers.product(paper, wildcards.product).reads_of(collections)
        return [file for name in names for file in self._files_of(paper, name)]

    def product_claims(self, wildcards: Any) -> list[str]:
        """The verdicts that a product quotes; empty if it quotes none."""
        quotes = papers.product(wildcards.paper, wildcards.product).claims
        return [f"paper_tables/{self.edition}/{wildcards.paper}/claims.csv"] if quotes else []

    def product_code(self, wildcards: Any) -> str:
        """A digest of the code that draws a product, of its entry in the paper's table, and of all
        published values."""
        paper, name = wildcards.paper, wildcards.product
        digest = code(*papers.modules_of(paper, name))
        return digest_of([digest, repr(papers.product(paper, name)), self._published()])

    def claims_code(self, wildcards: Any) -> str:
        """A digest of the code that tests a paper's claims, of the paper's list of claims, and of
        all published values."""
        paper = wildcards.paper
        digest = code(*claims.modules_of(paper))
        return digest_of([digest, repr(claims_of(paper)), self._published()])

    def page_code(self, module: str) -> str:
        """A digest of the code of a page of claims, of their statements and of published values."""
        stated = claims.published_claims(self.root / "paper_tables/published").to_json()
        return digest_of([code(module), stated, self._published()])

    def report_code(self) -> str:
        """A digest of the code of the report and of its templates."""
        folder = self.root / "src/directrank/report/templates"
        return digest_of([code("directrank.report.build"), _digests(folder.iterdir())])

    def _published(self) -> dict[str, str]:
        """The digests of the published values.

        They are no input of a job: their paths differ where the repository lies elsewhere.
        """
        return _digests((self.root / "paper_tables/published").glob("*.csv"))

    def figures_folder(self, wildcards: Any, input: Any) -> str:
        """The folder of the figures, even if there are none."""
        return self._top("figures", input.figures)

    def tables_folder(self, wildcards: Any, input: Any) -> str:
        """The folder of the tables, even if there are none."""
        return self._top("paper_tables", input.tables)

    def _top(self, folder: str, products: Sequence[str]) -> str:
        return str(Path(products[0]).parents[1]) if products else f"{folder}/{self.edition}"

    def _splits(self, key: str) -> tuple[str, ...]:
        return tuple(catalog.get(self.study.data[key].name).split_names)

    def _plan(self, wildcards: Any) -> Mapping[str, Any]:
        paper, product = wildcards.paper, wildcards.product
        if (paper, product) not in self.study.products:
            made = [name for of, name in self.study.products if of == paper]
            raise ConfigError(
                f"edition '{self.edition}' makes no '{product}' of '{paper}'",
                suggest(product, made),
            )
        return self.study.products[paper, product]


def choice(names: Iterable[str]) -> str:
    """A regular expression that matches any of ``names``."""
    return "|".join(re.escape(name) for name in sorted(names)) or "none"


def _digests(files: Iterable[Path]) -> dict[str, str]:
    """The digests of files, by their names."""
    return {path.name: _digest(path) for path in sorted(files)}


@cache
def _digest(path: Path) -> str:
    return sha256_of(path)


def code(*modules: str) -> str:
    """A digest of ``modules`` and of the modules on which they depend."""
    return provenance.code_digest(modules)


def store_files(key: str) -> list[str]:
    """The record of a prepared data set, and its arrays."""
    return [f"data/prepared/{key}/{name}" for name in prepared.FILES]


def split_files(key: str, splits: Iterable[str]) -> list[str]:
    """The files that say which queries of a prepared data set are in each of ``splits``."""
    return [f"data/prepared/{key}/{split}/{prepared.SPLIT_FILE}" for split in splits]


def data_folders(wildcards: Any, input: Sequence[str]) -> list[str]:
    """The folders of the prepared data sets whose records are among ``input``."""
    return [str(Path(name).parent) for name in input if Path(name).name == prepared.FILES[0]]


def prepared_folder(wildcards: Any, input: Any) -> str:
    """The folder of the prepared data sets, even for a product that describes none."""
    return str(Path(input.data[0]).parents[1]) if input.data else "data/prepared"


def claims_option(wildcards: Any, input: Any) -> str:
    """The option that names the verdicts that a product quotes; empty if it quotes none."""
    return f"--claims {shlex.quote(input.claims[0])}" if input.claims else ""


def values_option(wildcards: Any, input: Any) -> str:
    """The option that names published values per query; empty if a product reads none."""
    return f"--values {' '.join(map(shlex.quote, input.values))}" if input.values else ""


def results_folder(wildcards: Any, input: Any) -> str:
    """The folder of the results that belong to the plans among ``input``."""
    return str(Path(input.plans[0]).parents[2])
