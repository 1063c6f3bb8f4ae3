"""The study's plan, and the functions that rules ask about it. No rules here."""

import re
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

try:
    from directrank import provenance, runs, study
    from directrank.data import catalog, fetch
    from directrank.errors import DirectrankError
    from directrank.io import json_text
    from directrank.papers import product as papers
    from directrank.papers.evidence import PUBLISHED
except ImportError as error:
    raise WorkflowError(
        f"the package directrank cannot be imported ({error})\n"
        "  remedy: run `make setup`, then `.venv/bin/snakemake` (or activate .venv)"
    )

ROOT = (
    Path(workflow.basedir).parent
    if Path(workflow.basedir).name == "workflow"
    else Path(workflow.basedir)
)

try:
    STUDY = study.load(config, ROOT)
except DirectrankError as error:
    raise WorkflowError(str(error))

EDITION = STUDY.edition
RAW = STUDY.config["raw_dir"]
RESULTS = f"results/{EDITION}"

# The rules' own interpreter, also where the environment has not been activated. Conda puts its
# interpreter on the path itself.
_conda = any(
    str(method).lower().endswith("conda")
    for method in workflow.deployment_settings.deployment_method
)
PYTHON = "python" if _conda else shlex.quote(sys.executable)

_exports = {
    "PYTHONPATH": str(ROOT / "src"),
    "PYTHONHASHSEED": "0",
    "DIRECTRANK_RAW": str(Path(RAW).absolute()),
}
if STUDY.config["arithmetic"] == "portable":
    _exports |= {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_CBWR": "AVX2",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    }
shell.prefix(
    "set -euo pipefail; "
    + " ".join(
        f"export {name}={shlex.quote(value)};" for name, value in _exports.items()
    )
    + " "
)


def _choice(names):
    return "|".join(re.escape(name) for name in sorted(names)) or "none"


wildcard_constraints:
    key=_choice(STUDY.data),
    run=_choice(STUDY.runs),
    paper=_choice({paper for paper, _ in STUDY.products}),
    product=_choice({product for _, product in STUDY.products}),


def product_files(kind):
    """Every file of the edition's figures or tables."""
    top = {"figure": "figures", "table": "paper_tables"}[kind]
    return [
        f"{top}/{EDITION}/{paper}/{name}{suffix}"
        for paper, name in STUDY.products
        for item in [papers.product(paper, name)]
        if item.kind == kind
        for suffix in (*item.suffixes, *([papers.TIMES] if item.timed else []))
    ]


def gallery_files():
    """The page that shows every figure with its caption."""
    return [f"figures/{EDITION}/README.md"] if product_files("figure") else []


def figure_svgs():
    """What the page of figures is made of: captions lie in the SVG files."""
    return [name for name in product_files("figure") if name.endswith(".svg")]


def figures_folder(wildcards):
    """The edition's figures."""
    return f"figures/{EDITION}"


def claims_files():
    """The verdicts on the papers' claims."""
    return [f"paper_tables/{EDITION}/claims.{form}" for form in ("csv", "md")]


def run_records():
    """The last file that each run writes."""
    return [f"{RESULTS}/runs/{run}/run.json" for run in STUDY.runs]


def plan_files():
    """What each figure and table is made of."""
    return [
        f"{RESULTS}/plan/{paper}/{product}.json" for paper, product in STUDY.products
    ]


def data_page_files():
    """A page for each data set of the edition, and the table of all of them."""
    names = {source.name for source in STUDY.data.values()}
    if not names:
        return []
    pages = [
        f"{name}.{form}"
        for name in sorted(names)
        for form in ("md", "csv", "png", "svg")
    ]
    return [
        f"data/pages/{EDITION}/{name}"
        for name in [*pages, "datasets.csv", "datasets.md"]
    ]


def data_records():
    """The record of every prepared data set of the edition."""
    return [f"data/prepared/{key}/prepared.json" for key in sorted(STUDY.data)]


def data_source(wildcards):
    """The data set behind a prepared folder's key."""
    return STUDY.data[wildcards.key]


def data_code(wildcards):
    """A digest of the code that makes a prepared data set, its generator's included."""
    generator = catalog.get(data_source(wildcards).name).generator
    modules = ["directrank.data.prepare"]
    return provenance.code_digest(
        modules + ([generator.split(":")[0]] if generator else [])
    )


def data_entry(wildcards):
    """A digest of what the catalogue says of a data set."""
    return catalog.fingerprint(catalog.get(data_source(wildcards).name))


def run_data(wildcards):
    """The prepared data that a run reads."""
    return f"data/prepared/{STUDY.run_data[wildcards.run]}/prepared.json"


def run_code(wildcards):
    """A digest of the code that decides a run's results: a changed loss reruns its runs alone."""
    return provenance.code_digest(runs.modules_of(STUDY.runs[wildcards.run]))


def run_memory(wildcards, attempt):
    """Memory of a fit in MB, more at each retry."""
    return 2000 * attempt


def product_plan(wildcards):
    """A product's plan as JSON, from the wildcards of its file."""
    return json_text(STUDY.products[wildcards.paper, wildcards.product])


def product_runs(wildcards):
    """The result files that a figure or table is drawn from."""
    plan = STUDY.products[wildcards.paper, wildcards.product]
    return sorted(
        {
            f"{RESULTS}/runs/{cell['run']}/run.json"
            for cells in plan["experiments"].values()
            for cell in cells
        }
    )


def product_data(wildcards):
    """The records of the prepared data sets that a figure or table describes."""
    plan = STUDY.products[wildcards.paper, wildcards.product]
    return [f"data/prepared/{key}/prepared.json" for key in plan["prepared"].values()]


def published_values(wildcards):
    """The published values that stand beside a paper's."""
    return sorted(map(str, PUBLISHED.glob(f"{wildcards.paper}_*.csv")))


def paper_code(wildcards):
    """A digest of the code that draws a paper's figures and tables."""
    return provenance.code_digest(
        [f"directrank.papers.{wildcards.paper}", "directrank.papers.product"]
    )


def claims_code():
    """A digest of the code that evaluates claims, those of each paper included."""
    modules = {f"directrank.papers.{paper}" for paper, _ in STUDY.products}
    return provenance.code_digest(["directrank.papers.claims", *modules])


def refuse_missing_archives():
    """Fetch the archives that may be fetched; stop with one message that lists all others.

    Called before anything starts. What counts is which data sets are about to be prepared: also one
    whose prepared form is there, but was made by other code or from other settings.
    """
    keys = sorted(
        job.wildcards.key
        for job in workflow.dag.needrun_jobs()
        if job.rule.name == "prepare"
        and STUDY.data[job.wildcards.key].source == "archive"
    )
    wanted = [catalog.get(STUDY.data[key].name) for key in keys]
    failures = {}
    if STUDY.config["download"]:
        failures = fetch.fetch_missing(wanted, RAW, STUDY.config["accept_licences"])
    try:
        catalog.require(wanted, RAW, failures)
    except DirectrankError as error:
        outdated = [key for key in keys if Path(f"data/prepared/{key}").is_dir()]
        advice = (
            f"\n  {', '.join(outdated)}: prepared data are there, but by other code or settings "
            "than now; `snakemake --touch` takes them as they are"
        )
        raise WorkflowError(str(error) + (advice if outdated else ""))


def closing_words():
    """What a reader opens now."""
    return (
        f"\nEdition '{EDITION}' is complete.\n"
        f"  report   report/{EDITION}/report.html\n"
        f"  figures  figures/{EDITION}/\n"
        f"  tables   paper_tables/{EDITION}/\n"
        f"  claims   paper_tables/{EDITION}/claims.md\n"
    )
