"""Running the workflow as a user does, in a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.reduction import DupFd
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "tests/editions/tiny.yaml"

CONTEXT = get_context("forkserver")
PRELOADED = ["snakemake.cli", "directrank.edition.workflow"]


def snakemake(
    folder: Path,
    *arguments: str,
    config: Path = TINY,
    forked: bool = True,
    root: Path = ROOT,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Run the workflow with ``folder`` as its working folder; the finished process.

    Unless it is to be ``forked``, it is started as a user starts it. ``root`` is the clone whose
    rules and package are used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = ["--snakefile", str(root / "Snakefile"), "--directory", str(folder)]
    command += ["--configfile", str(config)]
    command += ["--workflow-profile", str(root / "workflow/profiles/default")]
    command += arguments if "--cores" in arguments else ["--cores", "2", *arguments]
    environment = {**os.environ, **variables}
    environment.pop("DIRECTRANK_RAW", None) if "DIRECTRANK_RAW" not in variables else None
    if forked:
        return fork(*command, environment=environment)
    return subprocess.run(
        [sys.executable, "-m", "snakemake", *command],
        capture_output=True,
        text=True,
        env=environment,
        cwd=root,
        timeout=600,
    )


def fork(
    *arguments: str, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Snakemake as a fork of a process that has imported it, which takes longer than most tests."""
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        CONTEXT.set_forkserver_preload(PRELOADED)
        streams = [DupFd(stream.fileno()) for stream in (out, err)]
        process = CONTEXT.Process(target=_snakemake, args=(arguments, dict(environment), streams))
        process.start()
        process.join(600)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(arguments, 600)
        printed = []
        for stream in (out, err):
            stream.seek(0)
            printed.append(stream.read())
    return subprocess.CompletedProcess(arguments, process.exitcode, *printed)


def _snakemake(arguments: Sequence[str], environment: dict[str, str], streams: list[Any]) -> None:
    """Be Snakemake."""
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream.detach(), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    sys.argv = ["snakemake", *arguments]
    runpy.run_module("snakemake", run_name="__main__")


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
