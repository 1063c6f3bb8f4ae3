"""The study's plan, and the functions that rules ask about it. No rules here."""

import os
import platform
import re
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.settings.types import SharedFSUsage

# The clone that these rules belong to, whatever includes them.
ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=False)).parents[1]
# Rules and package are of one version, also where another one is installed (a container).
sys.path.insert(0, str(ROOT / "src"))

try:
    from directrank.study import plan as study
    from directrank.study import provenance, results
    from directrank.study import run as runs
    from directrank.system import arithmetic, clock
    from directrank.data import catalog, fetch, prepared
    from directrank.system.errors import DirectrankError
    from directrank.system.io import digest_of, json_text
    from directrank.system.locks import Claim
    from directrank.papers.shared import claims
    from directrank.papers.shared import product as papers
except ImportError as error:
    raise WorkflowError(
        f"the package directrank cannot be imported ({error})\n"
        "  remedy: run `make setup`, then `.venv/bin/snakemake` (or activate .venv)"
    )

try:
    STUDY = study.load(config, ROOT)
except DirectrankError as error:
    raise WorkflowError(str(error))

# Without a shared file system a job sees its declared inputs alone, so rules declare every file. With
# one, the record that is written last stands for all files of a run or a data set: a study of a
# thousand runs is planned twice as fast.
FILES_ARE_SHARED = (
    SharedFSUsage.INPUT_OUTPUT in workflow.storage_settings.shared_fs_usage
)

EDITION = STUDY.edition
RAW = STUDY.config["raw_dir"]
RESULTS = f"results/{EDITION}"

# Before Snakemake reads the times of files. Here they are changed in a dry run, too: it shall plan
# what a run does.
if workflow.is_main_process:
    _made = [RESULTS, "data/prepared"]
    _made += [f"{kind}/{EDITION}" for kind in ("figures", "paper_tables", "report")]
    _brought = [ROOT / name for name in ("paper_tables/published", "src", "workflow")]
    if _late := clock.date_back([*_made, *_brought]):
        logger.warning(
            f"{_late} files were dated in the future, as after a clock has been set back; "
            "the last of them is dated now."
        )

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
    # A job ends when the Snakemake that started it has died.
    "DIRECTRANK_PARENT": str(os.getpid()),
    "DIRECTRANK_RAW": str(Path(RAW).absolute()),
    # Where a fit runs decides nothing of its results, so none of this is a parameter of a rule.
    "DIRECTRANK_FITS_PER_GPU": str(STUDY.config["fits_per_gpu"]),
    "DIRECTRANK_STAGE": STUDY.config["stage_dir"],
}
if STUDY.config["arithmetic"] == "portable":
    _exports |= arithmetic.PORTABLE
    if platform.machine().lower() in ("x86_64", "amd64"):
        _exports |= arithmetic.PORTABLE_X86
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
    # Not a choice of all runs, which would be tried for every file that any job reads.
    run=r"[a-z][a-z0-9_]*(-f\d+)?-[a-z0-9_]+-[0-9a-f]{8}",
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


def figures_folder(wildcards, input):
    """The edition's figures; also where there are none."""
    return (
        str(Path(input.figures[0]).parents[1])
        if input.figures
        else f"figures/{EDITION}"
    )


def claims_files():
    """The verdicts on the papers' claims."""
    return [f"paper_tables/{EDITION}/claims.{form}" for form in ("csv", "md")]


def run_files(runs):
    """What a job declares that reads the results of runs."""
    names = [results.RECORD] if FILES_ARE_SHARED else results.FILES
    return [f"{RESULTS}/runs/{run}/{name}" for run in runs for name in names]


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
        f"figures/{EDITION}/data/{name}"
        for name in [*pages, "datasets.csv", "datasets.md"]
    ]


def store_files(key):
    """The arrays of a prepared data set, and its record."""
    return [f"data/prepared/{key}/{name}" for name in prepared.FILES]


def split_files(key, splits):
    """The files that say which part of the arrays each of ``splits`` is."""
    return [f"data/prepared/{key}/{split}/{prepared.SPLIT_FILE}" for split in splits]


def splits_of(key):
    """The names of the splits of a prepared data set, such as ``Fold1/train``."""
    return tuple(catalog.get(STUDY.data[key].name).split_names)


def split_shapes():
    """The keys of the edition's data sets by the names of their splits."""
    shapes = {}
    for key in sorted(STUDY.data):
        shapes.setdefault(splits_of(key), []).append(key)
    return shapes


def data_files(key):
    """What a job declares that reads a prepared data set, its record first.

    Scaled copies are no part of it: a job that does not find one makes it for itself.
    """
    files = store_files(key) + split_files(key, splits_of(key))
    return files[:1] if FILES_ARE_SHARED else files


def folders_of_data(files):
    """The folders of prepared data sets whose records are among ``files``."""
    return [
        str(Path(name).parent) for name in files if Path(name).name == prepared.FILES[0]
    ]


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


def run_specification(wildcards):
    """What a run trains."""
    if wildcards.run not in STUDY.runs:
        raise WorkflowError(f"edition '{EDITION}' has no run '{wildcards.run}'")
    return STUDY.runs[wildcards.run]


def run_data(wildcards):
    """The prepared data that a run reads, its record first."""
    run_specification(wildcards)  # refuses a run that nobody planned
    return data_files(STUDY.run_data[wildcards.run])


def fit_group(wildcards):
    """The fits of a data set: how many of them share a cluster's job is the profile's to say."""
    return f"fits_{STUDY.data[STUDY.run_data[wildcards.run]].name}"


def run_code(wildcards):
    """A digest of the code that decides a run's results: a changed loss reruns its runs alone."""
    return provenance.code_digest(runs.modules_of(run_specification(wildcards)))


def fit_gpus(wildcards):
    """GPUs of a fit: one where networks are trained on them; nothing else uses any."""
    learner = run_specification(wildcards)["learner"]
    return int(STUDY.config["device"] == "cuda" and learner == "neural")


def run_memory(wildcards, attempt):
    """Memory of a fit in MB, more at each retry."""
    return 2000 * attempt


def product_plan(wildcards):
    """A product's plan as JSON, from the wildcards of its file."""
    return json_text(STUDY.products[wildcards.paper, wildcards.product])


def product_runs(wildcards):
    """The result files that a figure or table is drawn from."""
    plan = STUDY.products[wildcards.paper, wildcards.product]
    cells = [cell for cells in plan["experiments"].values() for cell in cells]
    return run_files(sorted({cell["run"] for cell in cells}))


def product_data(wildcards):
    """The records of the prepared data sets that a figure or table describes."""
    plan = STUDY.products[wildcards.paper, wildcards.product]
    return [f"data/prepared/{key}/prepared.json" for key in plan["prepared"].values()]


def prepared_folder(wildcards, input):
    """Where the prepared data sets lie; also for a product that describes none."""
    return str(Path(input.data[0]).parents[1]) if input.data else "data/prepared"


def report_templates():
    """The report's templates; they come with the clone."""
    return [
        local(str(name))
        for name in sorted((ROOT / "src/directrank/report/templates").iterdir())
    ]


def published_values(wildcards):
    """The published values that stand beside a paper's; like the code, they come with the clone."""
    names = (ROOT / "paper_tables/published").glob(f"{wildcards.paper}_*.csv")
    return [local(str(name)) for name in sorted(names)]


def published_claims():
    """The claims, and the published values that some are set against; they come with the clone."""
    return [
        local(str(name))
        for name in sorted((ROOT / "paper_tables/published").glob("*.csv"))
    ]


def paper_code(wildcards):
    """A digest of the code that draws a figure or table, and of its entry among the products."""
    modules = papers.modules_of(wildcards.paper, wildcards.product)
    entry = papers.product(wildcards.paper, wildcards.product)
    return digest_of([provenance.code_digest(modules), repr(entry)])


def claims_code():
    """A digest of the code that evaluates claims, and of the papers' entries of them."""
    names = sorted({paper for paper, _ in STUDY.products})
    entries = [repr(claims.claims_of(paper)) for paper in names]
    return digest_of([provenance.code_digest(claims.modules_of(names)), *entries])


def claim_what_is_made():
    """Stop if another Snakemake makes this edition, or data of it, in this folder; else say so.

    It stands in for Snakemake's own locks, which a kill leaves behind (`nolock` in the profiles).
    """
    made = {
        job.wildcards.key
        for job in workflow.dag.needrun_jobs()
        if job.rule.name.startswith("prepare")
    }
    try:
        Claim(
            ".snakemake/claims",
            [f"edition-{EDITION}", *(f"data-{key}" for key in made)],
            [f"data-{key}" for key in STUDY.data if key not in made],
        )
    except DirectrankError as error:
        raise WorkflowError(str(error))


def wake_for_finished_jobs_alone():
    """Drop Snakemake's own limit of a hundred starts a second; one that was asked for stays.

    For the sake of the limit the scheduler wakes again a second after each time that it chose jobs,
    for ever: after three hundred jobs that took a third of a processor, and more with each job.
    """
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if limit is not None and (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


def refuse_missing_archives():
    """Fetch the archives that may be fetched; stop with one message that lists all others.

    Called before anything starts. What counts is which data sets are about to be prepared: also one
    whose prepared form is there, but was made by other code or from other settings.
    """
    keys = sorted(
        job.wildcards.key
        for job in workflow.dag.needrun_jobs()
        if job.rule.name.startswith("prepare")
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
