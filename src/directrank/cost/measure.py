"""Measure a machine's :class:`Rates` in a few seconds: products, memory, a step, and every loss."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import as_file, files
from typing import Any

import numpy as np
import torch
from scipy.linalg import get_blas_funcs
from torch.nn.functional import batch_norm

from directrank import losses, models
from directrank.cost.rates import Rates, document
from directrank.learners.neural.precision import products
from directrank.study.provenance import environment
from directrank.system import arithmetic, blas

#: Documents and width of the products and layers that are measured on a CPU; and on a GPU, where
#: smaller ones take as long as the CPU needs to start them.
DOCUMENTS, WIDTH = 4096, 256
DOCUMENTS_ON_GPU, WIDTH_ON_GPU = 16384, 1024

#: A deep but very narrow network, whose steps measure the overhead of calls.
DEEP = {"name": "tower", "hidden": [4] * 8}

#: Lengths of the lists on which losses are measured, and documents of each measurement.
LENGTHS, DOCUMENTS_OF_LISTS = (20, 80, 320), 7680

#: Hyper-parameters of losses whose defaults are not enough to measure them.
OPTIONS: dict[str, dict[str, Any]] = {"approx_precision": {"k": 10}}


def measure(device: str = "cpu", threads: int = 1) -> Rates:
    """The rates of this machine.

    Rates of evaluation, of starting a process and of learners that do not train networks in batches
    come from recorded runs (``reference.yaml`` beside this module), scaled by the rate of this
    machine's products in float64; :func:`directrank.cost.estimate.calibrated` corrects them by its
    own runs.

    Args:
        device: ``cpu`` or ``cuda``.
        threads: the number of threads of a fit.

    Raises:
        ConfigError: the device cannot be used.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return _measure(torch.device(device), threads)
    finally:
        torch.set_num_threads(before)


def covers_everything(rates: Rates) -> bool:
    """Whether rates that were measured earlier cover every present loss and learner."""
    measured = losses.REGISTRY.keys() - {"composed"}
    return measured <= rates.lists.keys() and (
        document("reference")["learners"].keys() <= rates.learners.keys()
    )


def of_another_machine() -> Rates:
    """Rates for every loss of the machine in ``cpu_known.json``, beside this module.

    A loss that was not measured there has the rates of ApproxNDCG.
    """
    with as_file(files("directrank.cost") / "cpu_known.json") as path:
        known = Rates.read(path)
    lists = dict.fromkeys(losses.REGISTRY, known.lists["approx_ndcg"]) | dict(known.lists)
    calls = dict.fromkeys(losses.REGISTRY, known.calls["approx_ndcg"]) | dict(known.calls)
    return replace(known, lists=lists, calls=calls)


def _measure(device: torch.device, threads: int) -> Rates:
    flops = {name: _flops(name, device) for name in ("float32", "float64", "bfloat16")}
    element, tensor = _element_seconds(device), _tensor_seconds(device)
    lists, calls = {}, {}
    for name in losses.REGISTRY:
        if name != "composed":
            lists[name], calls[name] = _loss_rates(name, device)
    on_cpu = device.type == "cpu"
    products = flops["float64"] if on_cpu else _flops("float64", torch.device("cpu"))
    return Rates(
        device=device.type,
        machine=machine(device.type),
        threads=threads,
        measured=True,
        note=f"measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC, "
        f"{arithmetic.of_this_process()} arithmetic, BLAS for {blas.kernels() or 'this processor'}",
        flops=flops,
        flops_in_loops={name: _flops_in_loops(name, threads) for name in ("float32", "float64")},
        element_seconds=element,
        tensor_seconds=tensor,
        lists=lists,
        calls=calls,
        **scaled_reference(products),
    )


def scaled_reference(products: float) -> dict[str, Any]:
    """The rates of recorded runs, for a CPU with this rate of products in float64."""
    reference = document("reference")
    slower = reference["products"] / products
    return {
        "evaluation_seconds": slower * reference["evaluation_seconds"],
        "learners": {name: slower * value for name, value in reference["learners"].items()},
        "start_seconds": slower * reference["start_seconds"],
    }


def machine(device: str) -> str:
    """The name of this machine in its rates, by which rates of another machine are recognised."""
    facts = environment()
    name = torch.cuda.get_device_name() if device == "cuda" else facts["processor"]
    return f"{name}, torch {facts['packages'].get('torch', torch.__version__)}"


def _fastest(work: Callable[[], object], device: torch.device, seconds: float) -> float:
    """The least seconds of several calls; the first call does not count."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    work()
    wait()
    # With one thread, CPU time is used, so that other processes affect it little.
    alone = device.type == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    took: list[float] = []
    while len(took) < 3 or (sum(took) < seconds and len(took) < 100):
        began = clock()
        work()
        wait()
        took.append(clock() - began)
    return min(took)


def _shape(device: torch.device) -> tuple[int, int]:
    """Documents and width of what is measured on a device."""
    return (DOCUMENTS, WIDTH) if device.type == "cpu" else (DOCUMENTS_ON_GPU, WIDTH_ON_GPU)


def _flops(precision: str, device: torch.device) -> float:
    dtype = torch.float64 if precision == "float64" else torch.float32
    documents, width = _shape(device)
    x = torch.randn(documents, width, dtype=dtype, device=device)
    weights = torch.randn(width, width, dtype=dtype, device=device)
    if precision == "bfloat16":
        x = x.bfloat16()  # activations stay in bfloat16, weights are converted at each use

    def work() -> None:
        with products(precision, device):
            torch.mm(x, weights)

    return 2 * documents * width**2 / _fastest(work, device, 0.1)


def _flops_in_loops(precision: str, threads: int) -> float:
    """The rate of the BLAS that compiled loops call."""
    numbers = np.random.default_rng(0).standard_normal
    x, weights = numbers((DOCUMENTS, WIDTH)), numbers((WIDTH, WIDTH))
    product = get_blas_funcs("gemm", dtype=precision)
    x, weights = (np.asfortranarray(values, precision) for values in (x, weights))

    def work() -> None:
        product(1.0, x, weights)

    with blas.libraries().limit(limits=threads):
        return 2 * DOCUMENTS * WIDTH**2 / _fastest(work, torch.device("cpu"), 0.1)


def _element_seconds(device: torch.device) -> float:
    """Seconds per element of batch norm and ReLU, which write two elements per input."""
    documents, width = _shape(device)
    x = torch.randn(documents, width, device=device, requires_grad=True)
    weight, bias = (torch.ones(width, device=device, requires_grad=True) for _ in range(2))

    def work() -> None:
        x.grad = None
        batch_norm(x, None, None, weight, bias, training=True).relu().sum().backward()

    return _fastest(work, device, 0.15) / (2 * x.numel())


def _tensor_seconds(device: torch.device) -> float:
    """Seconds per tensor of parameters of a step on almost no data."""
    scorer = models.build(DEEP, 8, [torch.Generator().manual_seed(0)]).to(device)
    parameters = list(scorer.parameters())
    optimizer = torch.optim.Adam(parameters)
    x = torch.ones(1, 4, 8, device=device)

    def work() -> None:
        optimizer.zero_grad()
        scorer(x, None, np.array([[4]])).sum().backward()
        optimizer.step()

    return _fastest(work, device, 0.15) / len(parameters)


def _loss_rates(name: str, device: torch.device) -> tuple[list[list[float]], float]:
    """The entries of a loss in ``lists`` and ``calls``."""
    queries = [DOCUMENTS_OF_LISTS // length for length in LENGTHS]
    together = [_loss_seconds(name, *of, device) for of in zip(queries, LENGTHS, strict=True)]
    # A call of one list and one of many have the same overhead.
    alone = _loss_seconds(name, 1, LENGTHS[0], device)
    call = max(alone - together[0] / queries[0], 0.0) * queries[0] / (queries[0] - 1)
    points = zip(LENGTHS, together, queries, strict=True)
    # The least share is for a call of few lists whose overhead is most of it.
    return [[n, max(t - call, 0.1 * t) / q] for n, t, q in points], call


def _loss_seconds(name: str, queries: int, length: int, device: torch.device) -> float:
    """Seconds of a call of a loss and of its gradient."""
    stream = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 5, (queries, length), generator=stream).float().to(device)
    scores = torch.randn(labels.shape, generator=stream).to(device).requires_grad_()
    mask = torch.ones(labels.shape, dtype=torch.bool, device=device)
    loss: Callable[..., torch.Tensor] = losses.get(name)

    def work() -> None:
        scores.grad = None
        loss(scores, labels, mask, **OPTIONS.get(name, {})).sum().backward()

    return _fastest(work, device, 0.05)
