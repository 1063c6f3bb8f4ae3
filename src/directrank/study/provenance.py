"""Where a result comes from: code, versions, machine; and which code a run depends on."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from directrank.system import sources

#: Registries name every loss, model and learner. A run names those it uses itself, so an edit to
#: another one must not count as a change of its code.
REGISTRIES = ("directrank.learners", "directrank.losses", "directrank.metrics", "directrank.models")

RECORDED = ("torch", "numpy", "scipy", "pandas", "lightgbm", "numba", "scikit-learn", "snakemake")


def code_digest(modules: Iterable[str]) -> str:
    """A digest of the source of ``modules`` and of every directrank module they import, in turn.

    Registries are left out (see :data:`REGISTRIES`), and so are imports inside functions: name the
    modules that are reached through them.
    """
    return _code_digest(frozenset(modules))


@cache
def _code_digest(modules: frozenset[str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(closure(modules)):
        digest.update(name.encode() + b"\0" + sources.text_of(name) + b"\0")
    return digest.hexdigest()[:16]


def closure(modules: Iterable[str]) -> set[str]:
    """``modules`` with all directrank modules that they import at their top level, in turn."""
    return sources.reached(
        modules,
        lambda name: [other for other in sources.imports_of(name) if other not in REGISTRIES],
    )


def environment() -> dict[str, Any]:
    """Versions, machine and code revision, for a result's record."""
    versions = {}
    for package in RECORDED:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "directrank": version("directrank"),
        "python": platform.python_version(),
        "packages": versions,
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "revision": _revision(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _revision() -> str | None:
    """The commit, with ``+changes`` where the package's files differ from it; None outside git."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(sources.PACKAGE), *arguments],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "-s", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
