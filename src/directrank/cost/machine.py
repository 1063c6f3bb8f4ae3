"""The speed of a machine beside that of the recorded runs, by a probe of a few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from directrank.system.errors import ConfigError
from directrank.system.io import read_json, write_json

#: Seconds of each part of the probe on the machines of the recorded runs. On a GPU, where small
#: operations take as long as the CPU needs to start them, a product is no part of it.
RECORDED = {
    "cpu": {"product": 5.01e-3, "step": 3.90e-5, "loss": 2.88e-4},
    "cuda": {"step": 1.07e-4, "loss": 1.21e-3},
}

#: Processor of some recorded runs → how much longer fits took there: the median over the fits of
#: the demo that both have run.
SLOWER = {"AMD EPYC, family 25, model 1": 2.1, "AMD EPYC, family 25, model 17": 1.67}

#: Documents, inputs and outputs of the product; lists and their length for the loss.
PRODUCT, LISTS = (4096, 256, 256), (96, 80)

#: A deep but very narrow network, whose steps measure the overhead of calls.
DEEP = {"name": "tower", "hidden": [4] * 8}


def as_recorded(seconds: Iterable[float], processors: Iterable[str]) -> np.ndarray:
    """What recorded seconds would have been on the machine of most records; see :data:`SLOWER`."""
    factors = [SLOWER.get(processor, 1.0) for processor in processors]
    return np.fromiter(seconds, float) / factors


@dataclass(frozen=True)
class Machine:
    """A machine on which runs are predicted.

    Attributes:
        device: ``cpu`` or ``cuda``.
        name: of the processor or GPU, and the version of PyTorch.
        threads: of a fit.
        slowness: its seconds, divided by those of the machine of the recorded runs.
        measured: whether the probe measured it.
        note: where the slowness comes from.
    """

    device: str
    name: str
    threads: int
    slowness: float
    measured: bool
    note: str

    @classmethod
    def read(cls, path: str | Path) -> Machine:
        """A machine from a file that :meth:`write` wrote.

        Raises:
            ConfigError: the file is missing, or is not of this version.
        """
        remedy = f"measure the machine: directrank cost --measure {path}"
        try:
            content = read_json(path)
        except FileNotFoundError:
            raise ConfigError(f"{path}: no such file", remedy) from None
        except ValueError as error:
            raise ConfigError(f"{path}: not valid JSON: {error}", remedy) from None
        names = {entry.name for entry in fields(cls)}
        if not isinstance(content, Mapping) or set(content) != names:
            raise ConfigError(f"{path}: this version cannot read these rates", remedy)
        return cls(**content)

    def write(self, path: str | Path) -> None:
        """Write the machine as JSON, atomically."""
        write_json(path, asdict(self))


#: The machines of the recorded runs.
REFERENCE = {
    "cpu": Machine(
        "cpu",
        "AMD EPYC of 2024 (family 26)",
        threads=1,
        slowness=1.0,
        measured=False,
        note="the machine of the recorded runs",
    ),
    "cuda": Machine(
        "cuda",
        "NVIDIA H200, torch 2.11.0",
        threads=1,
        slowness=1.0,
        measured=False,
        note="extrapolated from epochs of four networks with ApproxNDCG and NeuralNDCG",
    ),
}


def measure(device: str = "cpu", threads: int = 1) -> Machine:
    """This machine, by a probe: a matrix product, a step of a narrow network, and a loss.

    Its slowness is the geometric mean of the three, each beside :data:`RECORDED`.

    Args:
        device: ``cpu`` or ``cuda``.
        threads: the number of threads of a fit.
    """
    import torch

    from directrank.system import arithmetic

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        took = {part: _PARTS[part](device) for part in RECORDED[device]}
    finally:
        torch.set_num_threads(before)
    ratios = [took[part] / seconds for part, seconds in RECORDED[device].items()]
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    return Machine(
        device,
        name_of(device),
        threads,
        float(f"{np.exp(np.mean(np.log(ratios))):.3g}"),
        measured=True,
        note=f"measured {when} UTC, {arithmetic.of_this_process()} arithmetic",
    )


def name_of(device: str) -> str:
    """The name of this machine, by which what was measured on another one is recognised."""
    import torch

    from directrank.study.provenance import environment

    name = torch.cuda.get_device_name() if device == "cuda" else environment()["processor"]
    return f"{name}, torch {torch.__version__}"


def _product(device: str) -> float:
    import torch

    documents, inputs, outputs = PRODUCT
    x = torch.randn(documents, inputs, device=device)
    weights = torch.randn(inputs, outputs, device=device)
    return _fastest(lambda: torch.mm(x, weights), device)


def _step(device: str) -> float:
    """Seconds per tensor of parameters of a step on almost no data."""
    import torch

    from directrank import models

    scorer = models.build(DEEP, 8, [torch.Generator().manual_seed(0)]).to(device)
    parameters = list(scorer.parameters())
    optimizer = torch.optim.Adam(parameters)
    x = torch.ones(1, 4, 8, device=device)

    def work() -> None:
        optimizer.zero_grad()
        scorer(x, None, np.array([[4]])).sum().backward()
        optimizer.step()

    return _fastest(work, device) / len(parameters)


def _loss(device: str) -> float:
    """Seconds of ApproxNDCG and its gradient."""
    import torch

    from directrank import losses

    stream = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 5, LISTS, generator=stream).float().to(device)
    scores = torch.randn(LISTS, generator=stream).to(device).requires_grad_()
    mask = torch.ones(LISTS, dtype=torch.bool, device=device)

    def work() -> None:
        scores.grad = None
        losses.approx_ndcg(scores, labels, mask).sum().backward()

    return _fastest(work, device)


_PARTS: dict[str, Callable[[str], float]] = {"product": _product, "step": _step, "loss": _loss}


def _fastest(work: Callable[[], object], device: str) -> float:
    """The least seconds of many calls within half a second; the first call does not count."""
    import torch

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    work()
    wait()
    # With one thread, CPU time is used, so that other processes affect it little.
    alone = device == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    took: list[float] = []
    while sum(took) < 0.5:
        began = clock()
        work()
        wait()
        took.append(clock() - began)
    return min(took)
