"""What rules share. Their functions are in the package: directrank.edition.workflow."""

import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import SharedFSUsage

# The clone that these rules belong to, whatever includes them.
ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=False)).parents[1]
# Rules and package are of one version, also where another one is installed (a container).
sys.path.insert(0, str(ROOT / "src"))

try:
    from directrank.cli import forkserver
    from directrank.edition import workflow as edition
    from directrank.edition.plan import load
    from directrank.edition.progress import Progress, predicted_by
    from directrank.edition.scheduling import keep_one_timer, longest_first
    from directrank.papers.shared.product import TIMES
    from directrank.system.errors import DirectrankError
except ImportError as error:
    raise WorkflowError(
        f"the package directrank cannot be imported ({error})\n"
        "  remedy: run `make setup`, then `.venv/bin/snakemake` (or activate .venv)"
    )


@contextmanager
def plain_errors():
    """What a user can mend is printed without a traceback."""
    try:
        yield
    except DirectrankError as error:
        raise WorkflowError(str(error))


with plain_errors():
    STUDY = edition.Workflow(
        load(config, ROOT),
        ROOT,
        SharedFSUsage.INPUT_OUTPUT in workflow.storage_settings.shared_fs_usage,
    )

EDITION = STUDY.edition
RESULTS = STUDY.results

# The rules' own interpreter, also where the environment has not been activated. Conda puts its
# interpreter on the path itself.
CONDA = "conda" in str(workflow.deployment_settings.deployment_method).lower()
FORKSERVER = forkserver.socket_path()
shell.prefix(STUDY.shell_prefix("python" if CONDA else sys.executable, FORKSERVER))

PROGRESS = Progress(
    lambda: predicted_by([sys.executable, "-m", "directrank"], config, ROOT)
)


wildcard_constraints:
    **STUDY.wildcard_constraints(),
