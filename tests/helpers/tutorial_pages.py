"""Doing what a page of the documentation says, to the letter, in a copy of the repository."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from workflow_runs import ROOT

#: What a copy needs: code, configuration, the workflow, catalogue and published values.
COPIED = (
    "Snakefile",
    "config",
    "data/datasets.yaml",
    "envs",
    "paper_tables/published",
    "profiles",
    "pyproject.toml",
    "src/directrank",
    "tests",
    "workflow",
)


@dataclass(frozen=True)
class Block:
    """A block of code on a page: its language, the file that the line before names, its text."""

    language: str
    file: str
    text: str


def blocks(page: str) -> list[Block]:
    """The blocks of ``docs/tutorials/<page>.md`` in their order."""
    text = (ROOT / f"docs/tutorials/{page}.md").read_text(encoding="utf-8")
    found = []
    for match in re.finditer(r"([^\n]*)\n+```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        before, language, content = match.groups()
        named = re.findall(r"`([^`]+)`:$", before)
        found.append(Block(language, named[0] if named else "", content))
    return found


def repository(folder: Path) -> Path:
    """A copy of the repository, without results, in ``folder``."""
    # With the compiled kernels, which fit as long as the sources do; not with half-written ones.
    ignored = shutil.ignore_patterns("*.tmp.*", ".*")
    for name in COPIED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source.resolve(), target, ignore=ignored)
        else:
            shutil.copy(source, target)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def digests(folder: Path) -> dict[str, str]:
    """A digest of every source file of the copy, by its path."""
    suffixes = (".py", ".yaml", ".smk", ".csv", ".md")
    files = [
        file
        for top in ("src", "config", "data/datasets.yaml", "workflow", "paper_tables")
        for file in ([folder / top] if (folder / top).is_file() else (folder / top).rglob("*"))
    ]
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.suffix in suffixes
    }


def follow(page: str, folder: Path, train: bool = True) -> list[str]:
    """Do everything that a page says in a copy of the repository.

    A block after a line that ends with a file's name is that file, or, as a diff, lines that are
    added to it; a ``console`` block is run; a ``text`` block without a file is what the block
    before must have printed.

    Args:
        page: its name.
        folder: the copy.
        train: whether the workflow is run; without it, and what comes after it on the page,
            the rest is done.

    Returns:
        What each ``console`` block printed.
    """
    printed: list[str] = []
    for block in blocks(page):
        if not train and block.language == "console" and "snakemake" in block.text:
            break
        path = folder / block.file
        if block.language == "diff":
            add_lines(path, block.text)
        elif block.language == "console":
            printed.append(run(block.text, folder))
        elif block.file:
            assert not path.exists(), f"{block.file} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "text":
            assert block.text in printed[-1]
    return printed


def add_lines(path: Path, diff: str) -> None:
    """Add the lines marked ``+`` where the others, the context, stand; exactly one place fits."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line.startswith(" "))
    after = "".join(line[1:] for line in lines)
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{path.name}: the context does not fit one place"
    path.write_text(text.replace(before, after), encoding="utf-8")


def run(commands: str, folder: Path) -> str:
    """What a shell prints that runs ``commands`` in the copy; all must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    environment.pop("DIRECTRANK_RAW", None)
    process = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert process.returncode == 0, process.stdout[-4000:] + process.stderr[-4000:]
    return process.stdout
