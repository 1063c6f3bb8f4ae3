"""The speed of a machine at the parts of a study, either measured or marked as assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from directrank.system.errors import ConfigError
from directrank.system.io import read_json, write_json

Curve = Sequence[Sequence[float]]
"""Points ``(x, y)``, joined by power laws; beyond them, that of the nearest two applies."""

#: The version of what predictions count, such as :func:`directrank.cost.predict.units`; rates of
#: another do not fit it.
UNITS = 5

#: What a process needs on a GPU before its first step, beyond what it needs on a CPU.
CUDA_SECONDS = 4.0


@dataclass(frozen=True)
class Rates:
    """Seconds that each part of the work takes on one device.

    Attributes:
        device: ``cpu`` or ``cuda``.
        machine: its name and the versions of libraries.
        threads: the number of threads of a fit.
        measured: whether the rates were measured; False if they are assumed.
        note: where the numbers come from.
        flops: precision → floating-point operations per second in a matrix product of PyTorch.
        flops_in_loops: the same for those of compiled loops, which are of another library.
        element_seconds: per element that a layer writes, forward and backward.
        tensor_seconds: per step and tensor of parameters, whatever its size.
        lists: loss → points (documents of a list, seconds of its forward and backward pass).
        calls: loss → seconds of a call with its backward pass, beyond those of its lists.
        evaluation_seconds: per document and metric.
        learners: learners other than networks trained in batches → seconds per unit of their work,
            which :func:`directrank.cost.predict.units` counts.
        start_seconds: the start of a job's process.
        units: the version of the units of work, :data:`UNITS`.
    """

    device: str
    machine: str
    threads: int
    measured: bool
    note: str
    flops: Mapping[str, float]
    flops_in_loops: Mapping[str, float]
    element_seconds: float
    tensor_seconds: float
    lists: Mapping[str, Curve]
    calls: Mapping[str, float]
    evaluation_seconds: float
    learners: Mapping[str, float]
    start_seconds: float
    units: int = UNITS

    @classmethod
    def read(cls, path: str | Path) -> Rates:
        """Rates from a file that :meth:`write` wrote.

        Raises:
            ConfigError: the file is missing, or does not contain rates of this version.
        """
        remedy = f"measure the machine: directrank cost --measure {path}"
        try:
            content = read_json(path)
        except FileNotFoundError:
            raise ConfigError(f"{path}: no such file", remedy) from None
        except ValueError as error:
            raise ConfigError(f"{path}: not valid JSON: {error}", remedy) from None
        names = {entry.name for entry in fields(cls)}
        fits = isinstance(content, Mapping) and set(content) == names
        if not fits or content["units"] != UNITS:
            raise ConfigError(f"{path}: this version cannot read these rates", remedy)
        return cls(**content)

    def write(self, path: str | Path) -> None:
        """Write the rates as JSON, atomically."""
        write_json(path, asdict(self))

    def of(self, kind: str, name: str) -> Any:
        """An entry of ``flops``, ``flops_in_loops``, ``lists``, ``calls`` or ``learners``.

        Raises:
            ConfigError: it is missing.
        """
        entries = getattr(self, kind)
        if name not in entries:
            what = {"lists": "loss", "calls": "loss", "learners": "learner"}.get(kind, "precision")
            raise ConfigError(
                f"the rates of '{self.machine}' lack the {what} '{name}'",
                "measure them again: directrank cost --measure FILE",
            )
        return entries[name]


def at(curve: Curve, x: float | Sequence[float] | np.ndarray) -> np.ndarray:
    """The value of a curve at ``x``.

    >>> at([[10, 1.0], [100, 100.0]], [20, 200]).round(3).tolist()  # y grows with the square of x
    [4.0, 400.0]
    """
    points = np.log(np.asarray(curve, dtype=float))
    places = np.log(np.maximum(np.asarray(x, dtype=float), 1.0))
    left = np.clip(np.searchsorted(points[:, 0], places) - 1, 0, len(points) - 2)
    exponents = np.diff(points[:, 1]) / np.diff(points[:, 0])
    return np.exp(points[left, 1] + exponents[left] * (places - points[left, 0]))


def document(name: str) -> dict[str, Any]:
    """The content of a YAML file in this package."""
    text = (files("directrank.cost") / f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def assumed_gpu(cpu: Rates) -> Rates:
    """The rates of a GPU that has not been measured: those of another, in ``gpu_known.json``.

    Work that runs on the CPU in any case (trees, linear baselines, metrics) has the rates of
    ``cpu``. A loss that was not measured on that GPU has the rates of ApproxNDCG.
    """
    with as_file(files("directrank.cost") / "gpu_known.json") as path:
        known = Rates.read(path)
    return replace(
        cpu,
        device="cuda",
        machine=known.machine,
        measured=False,
        note=f"rates of another, {known.note}",
        flops=known.flops,
        element_seconds=known.element_seconds,
        tensor_seconds=known.tensor_seconds,
        lists=dict.fromkeys(cpu.lists, known.lists["approx_ndcg"]) | dict(known.lists),
        calls=dict.fromkeys(cpu.calls, known.calls["approx_ndcg"]) | dict(known.calls),
        start_seconds=cpu.start_seconds + CUDA_SECONDS,
    )
