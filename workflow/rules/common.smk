"""Definitions that the rules share. Their functions are in directrank.edition.workflow."""

import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import SharedFSUsage


def clone():
    """The clone to which these rules belong, whichever workflow includes them.

    Rules that come from a Git host as a module are single files for Snakemake, and the study needs
    its package, schemas and data. They are cloned from the copy of the repository that Snakemake
    keeps of every Git host, once for each commit.
    """
    rules = workflow.current_basedir
    if rules.is_local:
        return Path(rules.get_path_or_uri(secret_free=False)).parents[1]
    kept = rules.hosted_repo
    commit = kept.repo.commit(rules.ref).hexsha
    folder = Path(".snakemake/study", commit).resolve()
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = tempfile.mkdtemp(dir=folder.parent)
        git = ["git", "-c", "advice.detachedHead=false"]
        subprocess.run([*git, "clone", "-qn", str(kept.repo_clone), made], check=True)
        subprocess.run([*git, "-C", made, "checkout", "-q", commit], check=True)
        try:
            Path(made).rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(made)
    return folder


ROOT = clone()
# Use the package of the same version as the rules, even if another one is installed (a container).
sys.path.insert(0, str(ROOT / "src"))

try:
    from directrank.cost.memory import requested_mb
    from directrank.cost.predict import planned_seconds
    from directrank.edition import workflow as edition
    from directrank.edition.plan import load
    from directrank.papers.shared.product import TIMES
    from directrank.system.errors import DirectrankError
except ImportError as error:
    raise WorkflowError(
        f"the package directrank cannot be imported ({error})\n"
        "  remedy: run `make setup`, then use `.venv/bin/snakemake` (or activate .venv)"
    )


@contextmanager
def plain_errors():
    """Print errors that the user can correct without a traceback."""
    try:
        yield
    except DirectrankError as error:
        raise WorkflowError(str(error))


with plain_errors():
    PLAN = load(config, ROOT)
    STUDY = edition.Workflow(
        PLAN,
        ROOT,
        planned_seconds(PLAN),
        SharedFSUsage.INPUT_OUTPUT in workflow.storage_settings.shared_fs_usage,
    )


def in_report(file):
    """The output `file`, marked for Snakemake's own report if that shows it."""
    flags = STUDY.in_report(file)
    if not flags:
        return file
    # The workflow writes captions. In a module from a Git host Snakemake would look for them there.
    found = workflow.current_basedir.join(flags["caption"])
    if found.get_path_or_uri(secret_free=True) != flags["caption"]:
        del flags["caption"]
    return report(file, **flags)


STUDY.forget_incomplete()
EDITION = STUDY.edition
RESULTS = STUDY.results

# Jobs use the interpreter of the rules, even if its environment has not been activated. Conda puts
# its own interpreter on the path.
CONDA = "conda" in str(workflow.deployment_settings.deployment_method).lower()
shell.prefix(STUDY.shell_prefix("python" if CONDA else sys.executable))


wildcard_constraints:
    key=edition.choice(PLAN.data),
