"""Jobs that see nothing but what they declare, as on a cluster without shared files."""

import subprocess
import sys

import pytest

from workflow_runs import ROOT, TINY, output_of, tables

#: The workflow, with every job in an empty folder into which its declared inputs are linked, and
#: out of which its declared outputs alone are taken.
EACH_ALONE = """\
settings, shared = workflow.storage_settings, workflow.storage_settings.shared_fs_usage
settings.shared_fs_usage = frozenset()

include: {workflow!r}

settings.shared_fs_usage = shared
for each in workflow.rules:
    if not each.norun:
        each.shadow_depth = "minimal"
"""


@pytest.mark.long
def test_jobs_read_and_write_only_what_they_declare(finished, tmp_path):
    snakefile = tmp_path / "Snakefile"
    snakefile.write_text(EACH_ALONE.format(workflow=str(ROOT / "workflow/Snakefile")))
    folder = tmp_path / "alone"
    command = [sys.executable, "-m", "snakemake", "all", "--cores", "2", "--snakefile", snakefile]
    command += ["--directory", folder, "--configfile", TINY]
    command += ["--workflow-profile", ROOT / "workflow/profiles/default"]
    process = subprocess.run(map(str, command), capture_output=True, text=True, cwd=ROOT)
    assert process.returncode == 0, output_of(process)
    assert tables(folder) == tables(finished)
    models = [
        sorted(path.relative_to(top) for path in top.glob("results/tiny/runs/*/models/[!.]*"))
        for top in (folder, finished)
    ]
    assert models[0] == models[1] != []
