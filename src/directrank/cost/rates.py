"""How fast a machine is at the parts of a study: measured, or assumed and called so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from directrank.system.errors import ConfigError
from directrank.system.io import read_json, write_json

Curve = Sequence[Sequence[float]]
"""Points ``(x, y)``; between them a power law, beyond them that of the nearest two."""


@dataclass(frozen=True)
class Rates:
    """Seconds that things take on one device.

    Attributes:
        device: ``cpu`` or ``cuda``.
        machine: its name, and the libraries' versions, in words.
        threads: threads of a fit.
        measured: False for what is assumed.
        note: where the numbers come from.
        products: precision → points (narrower side of the weights, flops per second).
        element_seconds: per element that an operation of the network writes, forward and backward.
        operation_seconds: per operation of the network, forward and backward, at no size.
        step_seconds: per step beyond the network's operations, ``(per step, per model)``.
        evaluation_seconds: per document and metric.
        lists: loss → points (documents, seconds of a list, forward and backward).
        trees: learner → seconds of a tree ``(per row, level and feature, per leaf and feature,
            whatever its size)``.
        learners: other learners → seconds per document, feature and round.
        passes: learners that go query by query → seconds ``(per document and weight, per pair)``.
        start_seconds: until a job's process begins to train.
    """

    device: str
    machine: str
    threads: int
    measured: bool
    note: str
    products: Mapping[str, Curve]
    element_seconds: float
    operation_seconds: float
    step_seconds: Sequence[float]
    evaluation_seconds: float
    lists: Mapping[str, Curve]
    trees: Mapping[str, Sequence[float]]
    learners: Mapping[str, float]
    passes: Mapping[str, Sequence[float]]
    start_seconds: float

    @classmethod
    def read(cls, path: str | Path) -> Rates:
        """Rates from a file that :meth:`write` wrote.

        Raises:
            ConfigError: the file is missing or is not one of rates.
        """
        try:
            content = read_json(path)
        except FileNotFoundError:
            raise ConfigError(
                f"{path}: no such file", f"measure it: directrank cost --measure {path}"
            ) from None
        except ValueError as error:
            raise ConfigError(
                f"{path}: not valid JSON: {error}", f"directrank cost --measure {path}"
            ) from None
        names = {field.name for field in fields(cls)}
        if not isinstance(content, Mapping) or set(content) != names:
            raise ConfigError(
                f"{path}: not a file of rates of this version",
                f"measure again: directrank cost --measure {path}",
            )
        return cls(**content)

    def write(self, path: str | Path) -> None:
        """Write the rates as JSON, atomically."""
        write_json(path, asdict(self))


def at(curve: Curve, x: float | np.ndarray) -> np.ndarray:
    """The value of a curve at ``x``."""
    points = np.log(np.asarray(curve, dtype=float))
    places = np.log(np.maximum(np.asarray(x, dtype=float), 1.0))
    if len(points) == 1:
        return np.full_like(places, np.exp(points[0, 1]))
    left = np.clip(np.searchsorted(points[:, 0], places) - 1, 0, len(points) - 2)
    slopes = np.diff(points[:, 1]) / np.diff(points[:, 0])
    return np.exp(points[left, 1] + slopes[left] * (places - points[left, 0]))


def assumed_gpu(cpu: Rates) -> Rates:
    """Rates of a GPU that nobody has measured: a peak rate times a share, and so on.

    The assumptions are in ``gpu_assumed.yaml`` beside this module. What runs on the CPU there too
    (trees, linear baselines) has the rates of ``cpu``.
    """
    text = (files("directrank.cost") / "gpu_assumed.yaml").read_text(encoding="utf-8")
    assumed: dict[str, Any] = yaml.safe_load(text)
    faster = assumed["lists_times_faster_than_cpu"]
    least = assumed["least_list_seconds"]
    lists = {
        loss: [[x, max(y / faster, least)] for x, y in curve] for loss, curve in cpu.lists.items()
    }
    return Rates(
        device="cuda",
        machine=assumed["machine"],
        threads=cpu.threads,
        measured=False,
        note=assumed["note"],
        products={
            precision: [
                [width, assumed["share_of_peak"] * peak * width / (width + assumed["width"])]
                for width in (16, 64, 256, 1024)
            ]
            for precision, peak in assumed["peak_flops"].items()
        },
        element_seconds=assumed["element_seconds"],
        operation_seconds=assumed["operation_seconds"],
        step_seconds=assumed["step_seconds"],
        evaluation_seconds=cpu.evaluation_seconds,
        lists=lists,
        trees=cpu.trees,
        learners=cpu.learners,
        passes=cpu.passes,
        start_seconds=cpu.start_seconds + assumed["start_seconds"],
    )
