"""Run the tiny edition through Snakemake's Kubernetes executor and here; compare byte for byte.

    pip install -e '.[kubernetes]' snakemake-storage-plugin-fs     (and rsync, which that one calls)
    python tests/kubernetes/compare.py

The executor is the official one. It talks to a stand-in of Kubernetes' API (api.py) which runs each
pod's command in an empty folder of this machine; the object store is a folder that only Snakemake
sees. Ends with 0 if every CSV is the same as from a local run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from api import serving

ROOT = Path(__file__).resolve().parents[2]
TINY = "tests/editions/tiny.yaml"


def clone(folder: Path) -> None:
    """The files of this clone as they are now, in a repository of their own."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith(("figures/", "paper_tables/demo", "paper_tables/real")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


def snakemake(folder: Path, profile: str, *options: str, **variables: str) -> None:
    """Run the tiny edition in a clone."""
    command = [sys.executable, "-m", "snakemake", "--configfile", TINY]
    command += ["--workflow-profile", f"workflow/profiles/{profile}", *options]
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, **variables})


def tables(folder: Path) -> dict[str, bytes]:
    """Every CSV of figures and tables, by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for top in ("figures/tiny", "paper_tables/tiny")
        for path in sorted((folder / top).rglob("*.csv"))
    }


def models(folder: Path) -> set[str]:
    """The paths of all trained models."""
    found = folder.glob("results/tiny/runs/*/models/[!.]*")
    return {str(path.relative_to(folder)) for path in found}


def main() -> int:
    """Compare; 0 if all is the same, 1 if not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--here", type=Path, help="a finished local run, instead of a new one")
    options = parser.parse_args()
    if shutil.which("rsync") is None:
        raise SystemExit("error: rsync is not installed\n  remedy: apt-get install rsync")
    with tempfile.TemporaryDirectory(prefix="kubernetes-") as name:
        folder = Path(name)
        for place in ("pods", "store", "main"):
            (folder / place).mkdir()
        clone(folder / "main")
        with serving(folder) as (cluster, kubeconfig):
            snakemake(
                folder / "main",
                "kubernetes",
                "--jobs=2",
                "--default-storage-provider=fs",
                f"--default-storage-prefix={folder / 'store'}",
                "--seconds-between-status-checks=1",
                KUBECONFIG=str(kubeconfig),
            )
        if options.here is None:
            clone(folder / "here")
            snakemake(folder / "here", "default", "--cores=2")
        here, there = tables(options.here or folder / "here"), tables(folder / "store")
        missing = models(options.here or folder / "here") ^ models(folder / "store")
    different = [name for name in sorted({*here, *there}) if here.get(name) != there.get(name)]
    for name in different:
        print(f"differs: {name}")
    print(f"{len(cluster.started)} pods; {len(missing)} trained models are not on both sides")
    print(f"{len(here)} CSV files, {len(different)} differ")
    return int(bool(different) or bool(missing) or not here)


if __name__ == "__main__":
    sys.exit(main())
