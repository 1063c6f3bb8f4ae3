"""What the rules of the workflow need: files, parameters, digests of code, the environment of jobs.

A rule's function takes what Snakemake passes to it: ``wildcards``, an object with an attribute for
each wildcard, and if it asks for it, ``input``, the rule's input files.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from directrank.data import catalog, fetch, prepared
from directrank.edition.batches import RunBatch, batches, gpus, processes
from directrank.edition.compared import compared
from directrank.edition.manifest import made_elsewhere
from directrank.edition.plan import Study, runs_behind
from directrank.edition.progress import Drawing, Span, TrainingProgress
from directrank.papers.one_protocol.choice import BENCHMARK
from directrank.papers.shared import claims
from directrank.papers.shared import product as papers
from directrank.papers.shared.claim_rows import claims_of
from directrank.study import provenance, results
from directrank.study.batch import PlannedRun, plan_text
from directrank.system import arithmetic
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import digest_of, json_text, read_json, sha256_of
from directrank.system.locks import HeldLocks
from directrank.system.usage import read_usage

#: The folder of each kind of product.
FOLDERS: Mapping[papers.Kind, str] = {
    "figure": "figures",
    "table": "paper_tables",
    "values": "paper_tables",
}

#: The priority of preparing data, for which most jobs wait, of long fits, and of products.
PREPARING, GPU, LONG, DRAWING = 4, 3, 2, 1


@dataclass(frozen=True)
class ProductGroup:
    """Products of a paper that are made by one job.

    Attributes:
        paper: the paper.
        part: the part of the paper of which they are, such as a collection; None for all of it.
        products: their names.
        has_claims: whether the job tests the paper's claims, too.
    """

    paper: str
    part: str | None
    products: tuple[str, ...]
    has_claims: bool


class Workflow:
    """The workflow of one edition. Paths of files that it makes are relative to its working folder.

    Args:
        study: the edition's plan.
        root: the clone, whose source, templates and published values jobs read.
        seconds: the predicted seconds of each run, the same for every process of the workflow.
        files_are_shared: whether jobs see each other's files. Without a shared file system a job
            sees only its declared inputs, so every file is declared, and a batch is a single run,
            because nothing is kept of a job that fails. With one, only the record of a batch or
            data set is declared, because it is written last; the runs of a batch that are done are
            kept if another one fails.
    """

    def __init__(
        self,
        study: Study,
        root: str | Path,
        seconds: Mapping[str, float],
        files_are_shared: bool = True,
    ) -> None:
        self.study = study
        self.config = study.config
        self.edition = study.edition
        self.root = Path(root)
        self.seconds = seconds
        self.files_are_shared = files_are_shared
        self.results = f"results/{study.edition}"
        self.batches = (
            batches(study, seconds, 60 * self.config["batch_minutes"])
            if files_are_shared
            else {run: RunBatch(key, (run,)) for run, key in study.run_data.items()}
        )
        self._batch_of = {run: name for name, item in self.batches.items() for run in item.runs}

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

    def shell_prefix(self, python: str) -> str:
        """The prefix of each job's shell commands: strict mode, and the job's environment.

        None of this affects results, so it is not a parameter of any rule. Braces are doubled
        because Snakemake formats the text.

        Args:
            python: the interpreter of jobs, ``$PYTHON`` in their commands.
        """
        variables = self.job_environment().items()
        exports = (f"export {name}={shlex.quote(value)};" for name, value in variables)
        prefix = f"set -euo pipefail; PYTHON={shlex.quote(python)}; {' '.join(exports)} "
        return prefix.replace("{", "{{").replace("}", "}}")

    def claim(self, keys: Collection[str]) -> HeldLocks:
        """Claim the edition in this working folder, and the data sets ``keys`` that will be
        prepared.

        This replaces Snakemake's own locks, which a killed process leaves behind (``nolock`` in the
        profiles).

        Raises:
            ConfigError: another process is making the edition or working on its data.
        """
        return HeldLocks(
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
            + self._of_processors()
        )

    def _of_processors(self) -> str:
        """That numbers differ from the committed ones, where another processor made these."""
        committed, now = made_elsewhere(Path(f"paper_tables/{self.edition}/manifest.json"))
        if not committed:
            return ""
        return (
            f"The committed files were made on {', '.join(committed)}, these on {', '.join(now)}:\n"
            "their numbers differ by about what other seeds would change (docs/start.md).\n"
        )

    # Data

    def data_settings(self, wildcards: Any) -> str:
        """The settings of a prepared data set, as JSON."""
        return json_text(self.study.data[wildcards.key].settings)

    def data_name(self, wildcards: Any) -> str:
        """The name of a prepared data set."""
        return self.study.data[wildcards.key].name

    def data_code(self, wildcards: Any) -> str:
        """A digest of the code that makes a prepared data set, with its generator or extractor."""
        entry = catalog.get(self.data_name(wildcards))
        own = entry.generator or entry.extractor
        return code("directrank.data.prepare", *([own.split(":")[0]] if own else []))

    def data_entry(self, wildcards: Any) -> str:
        """A digest of the catalogue's entry for a data set."""
        return catalog.fingerprint(catalog.get(self.data_name(wildcards)))

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

    # Batches

    def fit_rules(self) -> dict[str, tuple[str, int]]:
        """Rules that train batches: the batches of each, as a regular expression, and its priority.

        A run that is longer than a batch should be starts before what needs no data. What is
        trained on a GPU comes first, so that a GPU never waits for a core.
        """
        if not self.files_are_shared:  # an alternation of all runs would be slow
            return {"fit": (r"[a-z][a-z0-9_]*(-f\d+)?-[a-z0-9_]+-[0-9a-f]{8}", 0)}
        names: dict[str, list[str]] = {"fit": [], "fit_long": [], "fit_gpu": []}
        for name, item in self.batches.items():
            on_gpu = gpus(self.study, item.runs[0])
            names["fit_gpu" if on_gpu else "fit_long" if item.is_long else "fit"].append(name)
        if not names["fit_gpu"]:
            del names["fit_gpu"]
        priorities = {"fit": 0, "fit_long": LONG, "fit_gpu": GPU}
        return {rule: (choice(some), priorities[rule]) for rule, some in names.items()}

    def batch(self, wildcards: Any) -> RunBatch:
        """The batch of a job; ConfigError if the edition has no such batch."""
        if wildcards.batch not in self.batches:
            raise ConfigError(f"edition '{self.edition}' has no batch '{wildcards.batch}'")
        return self.batches[wildcards.batch]

    def batch_texts(self, wildcards: Any) -> list[str]:
        """What says which runs a batch trains: the contents of its only file."""
        return [plan_text(map(self._planned, self.batch(wildcards).runs))]

    def batch_outputs(self, directory: Callable[[str], Any]) -> dict[str, Any]:
        """The outputs of a batch: its record or, without shared files, all those of its run.

        Args:
            directory: Snakemake's mark of a folder.
        """
        if self.files_are_shared:
            return {"record": f"{self.results}/batches/{{batch}}.json"}
        folder = f"{self.results}/runs/{{batch}}"
        files = [f"{folder}/{name}" for name in (results.SPECIFICATION, *results.FILES)]
        return {"files": files, "models": directory(f"{folder}/{results.MODELS}")}

    def batch_logs(self) -> dict[str, str]:
        """The log of a batch and, without shared files, those of its run."""
        logs = f"logs/{self.edition}"
        own = {"batch": f"{logs}/batches/{{batch}}.log"}
        if self.files_are_shared:
            return own
        fit = f"{logs}/fit/{{batch}}"
        return {**own, "fit": f"{fit}.log", "usage": f"{fit}.benchmark.tsv"}

    def batch_data(self, wildcards: Any) -> list[str]:
        """The prepared data that a batch reads, the record first."""
        return self.data_files(self.batch(wildcards).data)

    def batch_runs(self, wildcards: Any) -> list[str]:
        """The runs of a batch, named by their specifications, each with the digest of its code."""
        return [f"{run} {self.run_code(run)}" for run in self.batch(wildcards).runs]

    def batch_gpus(self, wildcards: Any) -> int:
        """The number of GPUs that a batch uses."""
        return gpus(self.study, self.batch(wildcards).runs[0])

    def batch_at_once(self, wildcards: Any) -> int:
        """The number of processes at a time: as many as share a GPU, else one."""
        if not self.batch_gpus(wildcards):
            return 1
        return min(
            self.config["fits_per_gpu"], len(processes(self.study, self.batch(wildcards).runs))
        )

    def batch_threads(self, wildcards: Any) -> int:
        """The threads of a batch."""
        return int(self.config["fit_threads"] * self.batch_at_once(wildcards))

    def forget_incomplete(self) -> None:
        """Remove the records of batches that lack a run, which its user removed to train it again.

        Such a record is not true, and without it Snakemake plans the batch, which trains that run.
        Runs that a record does not name are planned because the batch has changed.
        """
        for name in self.batches:
            record = Path(f"{self.results}/batches/{name}.json")
            named = read_json(record) if record.is_file() else {}
            runs = (Path(f"{self.results}/runs/{run}/{results.RECORD}") for run in named)
            if not all(run.is_file() for run in runs):
                record.unlink(missing_ok=True)

    # Runs

    def progress(
        self, batches: Iterable[str], parts: Iterable[str], say: Callable[[str], None]
    ) -> TrainingProgress:
        """The progress of training ``batches``, without the runs that are trained already, and of
        making the products of ``parts``.

        It is seen in their files, so nothing is known of it where files are not shared.
        """
        known = batches if self.files_are_shared else ()
        due: list[dict[str, float]] = []
        for name in known:
            runs = [run for run in self.batches[name].runs if not self._is_trained(run)]
            seconds = {run: self.seconds[run] for run in runs}
            # Several fits that share a GPU are trained at a time.
            shared = bool(runs) and gpus(self.study, runs[0]) and self.config["fits_per_gpu"] > 1
            due += [{run: seconds[run]} for run in runs] if shared else [seconds]
        return TrainingProgress(due, self._span_of, say, list(map(self.drawing, parts)))

    def _span_of(self, job: str) -> Span:
        """When a run was trained, or a product made."""
        return self._product_span(job) if "/" in job else self._run_span(job)

    def _product_span(self, product: str) -> Span:
        """When a product was made: its usage is written last."""
        usage = Path(f"logs/{self.edition}/{product}.benchmark.tsv")
        used = read_usage(usage)
        if used is None:
            return Span()
        ended = usage.stat().st_mtime
        return Span(ended - used["s"], ended)

    def _run_span(self, run: str) -> Span:
        """When a run was trained: its specification is written first, and its usage last."""
        usage = Path(f"logs/{self.edition}/fit/{run}.benchmark.tsv")
        try:
            began = Path(f"{self.results}/runs/{run}/{results.SPECIFICATION}").stat().st_mtime
        except FileNotFoundError:
            return Span()
        try:
            ended = usage.stat().st_mtime
        except FileNotFoundError:
            return Span(began)
        # Until a run begins, the usage of the last time that it was trained is there.
        return Span(began, ended, not self._is_trained(run)) if ended >= began else Span(began)

    def _is_trained(self, run: str) -> bool:
        return self._planned(run).is_current(f"{self.results}/runs/{run}")

    def _planned(self, run: str) -> PlannedRun:
        return PlannedRun(run, self.study.runs[run], self.run_code(run))

    def run_code(self, run: str) -> str:
        """A digest of the code that decides a run's results."""
        return provenance.run_digest(self.study.runs[run])

    def run_files(self, runs: Iterable[str]) -> list[str]:
        """The inputs of a job that reads the results of ``runs``: the records of their batches or,
        without shared files, all their files."""
        if self.files_are_shared:
            names = dict.fromkeys(self._batch_of[run] for run in runs)
            return [f"{self.results}/batches/{name}.json" for name in names]
        return [f"{self.results}/runs/{run}/{name}" for run in runs for name in results.FILES]

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
        stem = f"{FOLDERS[item.kind]}/{self.edition}/{paper}/{name}"
        return [stem + suffix for suffix in item.suffixes]

    def caption_files(self) -> list[str]:
        """The captions that Snakemake's own report shows with figures and tables."""
        shown = [*self.product_files("figure", ".svg"), *self.product_files("table", ".md")]
        return [self._caption(file) for file in shown]

    def _caption(self, file: str) -> str:
        paper, name = Path(file).parts[-2:]
        return f"{self.results}/captions/{paper}/{Path(name).stem}.rst"

    def in_report(self, file: str) -> dict[str, Any] | None:
        """How Snakemake's own report shows an output: arguments of its flag ``report``.

        None for what it leaves out: it shows the drawing of a figure, and the numbers of a table.
        """
        folder, _, paper, name = file.split("/")
        stem, suffix = name.split(".")
        if (paper, stem) not in self.study.products:
            return None
        item = papers.product(paper, stem)
        if suffix != {"figure": "svg", "table": "csv"}.get(item.kind):
            return None
        return {
            "caption": str(Path(self._caption(file)).absolute()),
            "category": papers.paper_title(paper),
            "subcategory": folder.removeprefix("paper_").capitalize(),
            "labels": {"product": stem, "title": item.title},
        }

    def gallery_files(self) -> list[str]:
        """The page that shows every figure with its caption; empty if there are no figures."""
        return [f"figures/{self.edition}/README.md"] if self.product_files("figure") else []

    def claims_files(self) -> list[str]:
        """The verdicts on claims; empty without papers that have any or collections to compare."""
        if not self.papers_with_claims() and len(self.product_files("values")) < 2:
            return []
        return [f"paper_tables/{self.edition}/claims{end}" for end in (".csv", ".md", papers.TIMES)]

    def overview_files(self) -> list[str]:
        """The picture of all claims; empty if there are none."""
        forms = papers.SUFFIXES["figure"] if self.claims_files() else ()
        return [f"figures/{self.edition}/overview{form}" for form in forms]

    def claims_by_collection(self) -> list[str]:
        """The verdicts on every collection side by side; empty unless there are several."""
        if len(self.product_files("values")) < 2:
            return []
        return [
            f"paper_tables/{self.edition}/claims_by_collection.{form}" for form in ("csv", "md")
        ]

    def tables_of_one_protocol(self, ending: str) -> list[str]:
        """The files of the tables of one protocol that end in ``ending``."""
        folder = f"paper_tables/{self.edition}/one_protocol/"
        return [name for name in self.product_files("table", ending) if name.startswith(folder)]

    def training_sizes(self) -> list[str]:
        """The values of methods by the number of training queries, if the edition has them."""
        files = self.product_files("figure", ".csv")
        return [name for name in files if name.endswith("/figure_training_size.csv")]

    def training_times(self) -> list[str]:
        """The measured training times of the methods of one protocol, a file per collection."""
        end = "_time" + papers.TIMES
        return [name for name in self.product_files("figure", end) if "/one_protocol/" in name]

    def compared(self) -> str:
        """The collections and losses of one protocol, as JSON; empty unless they are compared."""
        return json_text(compared(self.study)) if self.compares_losses() else ""

    def compares_losses(self) -> bool:
        """Whether several collections have values and tried settings of losses."""
        values, settings = (
            self.product_files("values"),
            self.tables_of_one_protocol("_settings.csv"),
        )
        return len(settings) == len(values) > 1

    def page_files(self) -> list[str]:
        """The pages that show the tables of the edition, or what follows from them."""
        pages = ["README.md"] if self.product_files("table") else []
        pages += ["one_protocol/README.md"] if self.tables_of_one_protocol(".md") else []
        if self.compares_losses():
            pages += ["one_protocol/compared.json", "which_loss.md", "losses.md"]
        found = [f"paper_tables/{self.edition}/{page}" for page in pages]
        if self.compares_losses():
            found.append(f"report/{self.edition}/leaderboard.html")
        return found

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

    def papers(self) -> list[str]:
        """The papers of the edition, in its order."""
        return list(dict.fromkeys(paper for paper, _ in self.study.products))

    def targets(self) -> dict[str, list[str]]:
        """What can be made by itself: each paper, each collection, and what is a part of its own.

        Returns:
            Name → all figures, tables, values and verdicts, and the results behind them.
        """
        found: dict[str, list[ProductGroup]] = {paper: [] for paper in self.papers()}
        for one in self.parts.values():
            found[one.paper].append(one)
            if one.part not in (None, papers.ACROSS):
                found.setdefault(one.part, []).append(one)
        made = (self.part_figures, self.part_tables, self.part_runs)
        return {
            name: [file for one in parts for files in made for file in files(one)]
            for name, parts in found.items()
        }

    def plan_files(self) -> list[str]:
        """The plan of each figure and table."""
        return [f"{self.results}/plan/{paper}/{name}.json" for paper, name in self.study.products]

    @cached_property
    def parts(self) -> dict[str, ProductGroup]:
        """The parts of the edition whose products one job makes, by name."""
        parts: dict[str, list[str]] = {}
        found: dict[str, ProductGroup] = {}
        for paper, product in self.study.products:
            item = papers.product(paper, product)
            of = item.made_in
            name = paper if of is None else f"{paper}_{of}"
            parts.setdefault(name, []).append(product)
            measured = of is None and bool(claims_of(paper))
            found[name] = ProductGroup(paper, of, tuple(parts[name]), measured)
        return found

    def part_plans(self, part: ProductGroup) -> list[str]:
        """The plans of the products of a part."""
        return [f"{self.results}/plan/{part.paper}/{name}.json" for name in part.products]

    def part_figures(self, part: ProductGroup) -> list[str]:
        """All files of the figures of a part."""
        return self._files_of_part(part, {"figure"})

    def part_tables(self, part: ProductGroup) -> list[str]:
        """All files of the tables and values of a part, and its verdicts."""
        folder = f"paper_tables/{self.edition}/{part.paper}"
        verdicts = [f"{folder}/claims{end}" for end in (".csv", papers.TIMES)]
        tables = self._files_of_part(part, FOLDERS.keys() - {"figure"})
        return tables + (verdicts if part.has_claims else [])

    def _files_of_part(self, part: ProductGroup, kinds: Collection[str]) -> list[str]:
        return [
            file
            for name in part.products
            if papers.product(part.paper, name).kind in kinds
            for file in self._files_of(part.paper, name)
        ]

    def part_runs(self, part: ProductGroup) -> list[str]:
        """The result files from which the products of a part are made."""
        return self.run_files(sorted(self._runs_behind(part)))

    def _runs_behind(self, part: ProductGroup) -> set[str]:
        return runs_behind([self.study.products[part.paper, name] for name in part.products])

    def part_data(self, part: ProductGroup) -> list[str]:
        """The records of the prepared data sets that products of a part describe."""
        plans = (self.study.products[part.paper, name] for name in part.products)
        keys = dict.fromkeys(key for plan in plans for key in plan["prepared"].values())
        return [f"data/prepared/{key}/prepared.json" for key in keys]

    def part_values(self, part: ProductGroup) -> list[str]:
        """The published values per query from which products of a part are made."""
        collections = self.config["papers"][part.paper]["collections"]
        items = (papers.product(part.paper, name) for name in part.products)
        names = dict.fromkeys(name for item in items for name in item.reads_of(collections))
        return [file for name in names for file in self._files_of(part.paper, name)]

    def part_logs(self, name: str) -> list[str]:
        """The log of a part's job and, without shared files, those of its products."""
        logs = f"logs/{self.edition}"
        own = [f"{logs}/{product}.log" for product in self._drawn(self.parts[name])]
        return [f"{logs}/products/{name}.log", *([] if self.files_are_shared else own)]

    def drawing(self, name: str) -> Drawing:
        """The products of a part and the tests of its claims, as their logs are named."""
        part = self.parts[name]
        tests = [f"claims/{part.paper}"] if part.has_claims else []
        return Drawing([*self._drawn(part), *tests], self._runs_behind(part))

    def _drawn(self, part: ProductGroup) -> list[str]:
        """The products of a part, as their logs are named."""
        kinds = [papers.product(part.paper, product).kind for product in part.products]
        return [
            f"{kind}/{part.paper}/{product}"
            for kind, product in zip(kinds, part.products, strict=True)
        ]

    def part_code(self, part: ProductGroup) -> str:
        """A digest of the code that makes the products of a part and tests its claims, of their
        entries in the paper's lists, and of all published values."""
        modules = set[str]()
        for name in part.products:
            modules |= papers.modules_of(part.paper, name)
        if part.has_claims:
            modules |= set(claims.modules_of(part.paper))
        entries = [repr(papers.product(part.paper, name)) for name in part.products]
        stated = repr(claims_of(part.paper)) if part.has_claims else ""
        return digest_of([code(*modules), entries, stated, self._published()])

    def page_code(self, module: str) -> str:
        """A digest of the code of a page of claims, of their words and of published values."""
        stated = claims.published_claims().to_json()
        rows = [row for paper in self.papers_with_claims() for row in claims_of(paper).values()]
        return digest_of([code(module), stated, [row.name for row in rows], self._published()])

    def report_code(self, module: str = "directrank.report.build") -> str:
        """A digest of the code of a page of the report, and of all templates."""
        folder = self.root / "src/directrank/report/templates"
        return digest_of([code(module), _digests(folder.iterdir())])

    def _published(self) -> dict[str, str]:
        """The digests of the published values.

        They are no input of a job: their paths differ where the repository lies elsewhere.
        """
        return _digests((self.root / "paper_tables/published").glob("*.csv"))

    def figures_folder(self, files: Any) -> str:
        """The folder of the figures among a job's files, even if there are none."""
        return self._top("figures", files.figures)

    def tables_folder(self, files: Any) -> str:
        """The folder of the tables among a job's files, even if there are none."""
        return self._top("paper_tables", files.tables)

    def _top(self, folder: str, products: Sequence[str]) -> str:
        return str(Path(products[0]).parents[1]) if products else f"{folder}/{self.edition}"

    def _splits(self, key: str) -> tuple[str, ...]:
        return tuple(catalog.get(self.study.data[key].name).split_names)


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


def which_loss_code() -> str:
    """A digest of the code of the pages on losses, and of the measured times that they quote."""
    module = "directrank.papers.one_protocol.choice_page"
    return digest_of([code(module), _digest(BENCHMARK)])


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


def values_option(wildcards: Any, input: Any) -> str:
    """The option that names published values per query; empty if no product is made from any."""
    return _option("--values", input.values)


def sizes_option(wildcards: Any, input: Any) -> str:
    """The option that names values by the number of training queries; empty if there are none."""
    return _option("--training-sizes", input.sizes)


def times_option(wildcards: Any, input: Any) -> str:
    """The option that names measured training times; empty if there are none."""
    return _option("--times", input.times)


def _option(name: str, files: Sequence[str]) -> str:
    """An option with its files, for a shell; empty if there are none."""
    return f"{name} {shlex.join(files)}" if files else ""


def record_option(wildcards: Any, output: Any) -> str:
    """The option that names the record of a batch; empty for a batch that is a single run."""
    return f"--record {shlex.quote(output.record)}" if hasattr(output, "record") else ""


def results_folder(wildcards: Any, input: Any) -> str:
    """The folder of the results that belong to the plans among ``input``."""
    return str(_plan(input).parents[2])


def logs_folder(wildcards: Any, input: Any) -> str:
    """The folder of the logs of the edition whose plans are among ``input``."""
    results = _plan(input).parents[2]
    return str(results.parents[1] / "logs" / results.name)


def _plan(input: Any) -> Path:
    """A plan among ``input``, such as ``results/demo/plan/bruch2019/figure2.json``."""
    return Path(input.plans if isinstance(input.plans, str) else input.plans[0])
