"""The provenance of results (code, versions, machine), and the code on which a run depends."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from directrank import learners, losses, metrics, models
from directrank.learners import neural
from directrank.system import sources

RECORDED = (
    *("torch", "numpy", "scipy", "pandas", "lightgbm", "xgboost-cpu", "xgboost", "catboost"),
    *("numba", "scikit-learn", "snakemake"),
)


def code_digest(modules: Iterable[str]) -> str:
    """A digest of the source of ``modules`` and of the directrank modules that they import,
    directly or not.

    Packages' ``__init__`` (the registries) and imports inside functions do not count, unless they
    are among ``modules``: see :func:`directrank.system.sources.dependencies`.
    """
    return _code_digest(frozenset(modules))


@cache
def _code_digest(modules: frozenset[str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(sources.dependencies(modules)):
        digest.update(name.encode() + b"\0" + sources.text_of(name) + b"\0")
    return digest.hexdigest()[:16]


def run_digest(spec: Mapping[str, Any]) -> str:
    """A digest of the code that decides the results of the run ``spec``.

    It covers only the learner, loss, scorer, metrics and monitored quantities that the run names.
    """
    modules = ["directrank.study.run", "directrank.metrics.evaluation"]
    modules.append(learners.get(spec["learner"]).module)
    for metric in [spec["selection"], *spec["evaluation"]]:
        modules += metrics.modules_of(metric["name"])
    if "loss" in spec:
        modules += losses.modules_of(spec["loss"]["name"], spec["loss"])
        modules += models.modules_of(spec["model"]["name"])
        modules += neural.modules_of(spec.get("training", {}).get("monitor"))
    return code_digest(modules)


@cache
def versions() -> Mapping[str, str]:
    """The versions of those :data:`RECORDED` packages that are installed."""
    found = {}
    for package in RECORDED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def environment() -> dict[str, Any]:
    """Versions, machine and code revision, for a result's record."""
    return {
        "directrank": version("directrank"),
        "python": platform.python_version(),
        "packages": dict(versions()),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "revision": _revision(),
    }


def _processor() -> str:
    try:
        described = processor_in(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        described = ""
    return described or platform.processor() or platform.machine()


def processor_in(cpuinfo: str) -> str:
    """The name of the first processor in the text of ``/proc/cpuinfo``, with its family and model.

    On a virtual machine the name may be ``AMD EPYC`` for every generation. Empty if there is no
    name.
    """
    lines = [line.partition(":") for line in cpuinfo.split("\n\n", 1)[0].splitlines()]
    facts = {key.strip(): value.strip() for key, _, value in lines}
    if "model name" not in facts:
        return ""
    numbers = {"cpu family": "family", "model": "model"}
    more = [f"{name} {facts[key]}" for key, name in numbers.items() if key in facts]
    return ", ".join([facts["model name"], *more])


def _revision() -> str | None:
    """The commit, with ``+changes`` if the package's files differ from it; None outside git."""

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
