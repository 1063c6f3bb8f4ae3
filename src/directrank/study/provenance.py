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

from directrank import learners, losses, metrics, models, relaxations
from directrank.kernels.dispatch import kernels_of
from directrank.learners import neural
from directrank.system import arithmetic, sources
from directrank.system.registry import target_of

RECORDED = (
    *("torch", "numpy", "scipy", "pandas", "lightgbm", "xgboost-cpu", "xgboost", "catboost"),
    *("numba", "scikit-learn", "snakemake"),
)

#: What an option of a loss names, and what it is named in.
PARTS = {"metric": metrics, "relaxation": relaxations, "of": losses}


def code_digest(modules: Iterable[str]) -> str:
    """A digest of the source of ``modules`` and of those on which their results depend."""
    return _code_digest(frozenset(modules))


def dependencies(modules: Iterable[str]) -> set[str]:
    """``modules``, those that they import, directly or not, and the kernels that replace parts.

    Packages' ``__init__`` count only if they are named: they list what there is, and a new entry
    does not affect what uses another one.
    """
    found = sources.dependencies(modules)
    while not (kernels := kernels_of(found)) <= found:
        found = sources.dependencies(found | kernels)
    return found


@cache
def _code_digest(modules: frozenset[str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(dependencies(modules)):
        digest.update(name.encode() + b"\0" + sources.text_of(name) + b"\0")
    return digest.hexdigest()[:16]


def run_digest(spec: Mapping[str, Any]) -> str:
    """A digest of the code that decides the results of the run ``spec``.

    It covers only the learner, loss, scorer, metrics and monitored quantities that the run names.
    """
    return code_digest(modules_of(spec))


def modules_of(spec: Mapping[str, Any]) -> set[str]:
    """The modules that a run names: those of its learner, loss, scorer, metrics, …

    A declared composition is named as ``module:function``.
    """
    modules = {"directrank.study.run", learners.get(spec["learner"]).module}
    named = [(metrics, metric) for metric in [spec["selection"], *spec["evaluation"]]]
    if "loss" in spec:
        named += [(losses, spec["loss"]), (models, spec["model"])]
        # The parts that a configuration composes, and the loss that another one wraps.
        loss = spec["loss"]
        while isinstance(loss, Mapping):
            named += [(registry, loss[part]) for part, registry in PARTS.items() if part in loss]
            loss = loss.get("of")
        modules |= neural.modules_of(spec.get("training", {}).get("monitor"))
    for registry, item in named:
        name = item if isinstance(item, str) else item["name"]
        modules.add(code_of(*target_of(registry.REGISTRY, name, registry.__name__)))
    return modules


def code_of(module: str, function: str) -> str:
    """The code of a registry's function: its module, or of the compositions its declaration alone.

    The file of the compositions imports the parts of all of them.
    """
    return f"{module}:{function}" if module == losses.COMPOSITIONS else module


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
        "arithmetic": arithmetic.of_this_process(),
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
