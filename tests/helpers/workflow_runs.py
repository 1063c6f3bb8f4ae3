"""Running the workflow as a user does, in a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import yaml

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "tests/editions/tiny.yaml"


def snakemake(folder: Path, *arguments: str, config: Path = TINY, **variables: str):
    """Run the workflow with ``folder`` as its working folder; the finished process."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    command += ["--directory", str(folder), "--configfile", str(config)]
    command += ["--workflow-profile", str(ROOT / "workflow/profiles/default")]
    command += arguments if "--cores" in arguments else ["--cores", "2", *arguments]
    environment = {**os.environ, **variables}
    environment.pop("DIRECTRANK_RAW", None) if "DIRECTRANK_RAW" not in variables else None
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=600
    )


def output_of(process) -> str:
    """Everything the process printed, with the terminal's line breaks undone."""
    return re.sub(r"\s+", " ", process.stdout + process.stderr)


def edition(folder: Path, **changes) -> Path:
    """The tiny edition with some of its keys replaced, as a file in ``folder``."""
    content = yaml.safe_load(TINY.read_text(encoding="utf-8"))
    content.update(changes)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "edition.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    return path


def tables(folder: Path) -> dict[str, bytes]:
    """Every CSV below ``figures`` and ``paper_tables``, by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for top in ("figures", "paper_tables")
        for path in sorted((folder / top).rglob("*.csv"))
    }


def load_script(name: str) -> ModuleType:
    """A script of the repository that is part of no package, as a module."""
    path = ROOT / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module
