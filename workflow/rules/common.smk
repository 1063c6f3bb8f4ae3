"""Definitions that the rules share. Their functions are in directrank.edition.workflow."""

import sys
from contextlib import contextmanager
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import SharedFSUsage

# The clone to which these rules belong, whichever workflow includes them.
ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=False)).parents[1]
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
    return report(file, **flags) if flags else file


STUDY.forget_incomplete()
EDITION = STUDY.edition
RESULTS = STUDY.results

# Jobs use the interpreter of the rules, even if its environment has not been activated. Conda puts
# its own interpreter on the path.
CONDA = "conda" in str(workflow.deployment_settings.deployment_method).lower()
shell.prefix(STUDY.shell_prefix("python" if CONDA else sys.executable))


wildcard_constraints:
    key=edition.choice(PLAN.data),
