"""Measuring a machine's :class:`Rates` in well under a minute."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import batch_norm

from directrank import learners, losses
from directrank.cost.rates import Rates
from directrank.cost.work import work_of
from directrank.learners.contract import FitJob, Splits, no_progress
from directrank.learners.neural.precision import products
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.study.provenance import environment

#: Narrower sides of the products measured, and documents of each.
WIDTHS = (16, 64, 100, 256, 1024)
DOCUMENTS = 4096

#: Lengths of the lists of which losses are measured, and documents of each measurement.
LENGTHS = (20, 80, 320)
DOCUMENTS_OF_LISTS = 7680
#: So that a call's own time does not count, but no loss takes seconds.
SLOW = {"softrank": 4, "neural_ndcg": 8, "neural_ndcg_transposed": 8, "lambda_family": 8}

#: Losses that need more than their defaults to be measured.
OPTIONS: dict[str, dict[str, Any]] = {"approx_precision": {"k": 10}}

#: Compositions take as long as the loss that has their relaxation.
COMPOSED = "composed"

#: Settings with which the other learners are measured.
SMALL: dict[str, dict[str, Any]] = {
    "lightgbm": {
        "n_trees": 20,
        "min_data_in_leaf": 5,
        "min_sum_hessian_in_leaf": 0.001,
    },
    "xgboost": {"n_trees": 20},
    "adarank": {"rounds": 10},
    # In the middle of the values that are tried: the smaller ones end sooner.
    "ranking_svm": {"c": 100.0},
    "svmmap": {"c": 100.0},
}
SELECTION = {"name": "ndcg", "k": 5}


def measure(device: str = "cpu", threads: int = 1, note: Callable[[str], None] = print) -> Rates:
    """The rates of this machine.

    Args:
        device: ``cpu`` or ``cuda``.
        threads: threads that a fit will have.
        note: told what is being measured.

    Raises:
        TrainingError, ConfigError: the device cannot be used.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return _measure(torch.device(device), threads, note)
    finally:
        torch.set_num_threads(before)


def _measure(device: torch.device, threads: int, note: Callable[[str], None]) -> Rates:
    note("matrix products and passes over memory")
    precisions = {
        name: [[width, _product_rate(width, name, device)] for width in WIDTHS]
        for name in ("float32", "float64", "bfloat16")
    }
    element = _element_seconds(device)
    note("steps of training")
    small, many, deep = (
        _step_seconds(*case, device, threads)
        for case in (
            ({"name": "linear"}, 1),
            ({"name": "linear"}, 8),
            ({"name": "tower", "hidden": [4] * 8}, 1),
        )
    )
    operations = work_of({"name": "tower", "hidden": [4] * 8}, 8).operations
    per_operation = max(deep - small, 0.0) / operations
    per_model = max(many - small, 0.0) / 7
    note("losses")
    lists = {
        name: [[length, _list_seconds(name, length, device)] for length in LENGTHS]
        for name in losses.REGISTRY
        if name != COMPOSED
    }
    note("trees and other learners")
    documents, pairs = (_pass_seconds(name, threads) for name in ("per_query", "per_pair"))
    facts = environment()
    return Rates(
        device=device.type,
        machine=_machine(device, facts),
        threads=threads,
        measured=True,
        note=f"measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC",
        products=precisions,
        element_seconds=element,
        operation_seconds=per_operation,
        step_seconds=[max(small - per_model, 0.0), per_model],
        evaluation_seconds=_evaluation_seconds(),
        lists=lists,
        trees={name: _tree_seconds(name, threads) for name in ("lightgbm", "xgboost")},
        learners={
            name: _learner_seconds(name, threads) for name in ("adarank", "ranking_svm", "svmmap")
        },
        passes={"per_query": documents, "per_pair": pairs},
        start_seconds=_start_seconds(),
    )


def machine(device: str) -> str:
    """What the rates of this machine are called; rates of another one are not this one's."""
    return _machine(torch.device(device), environment())


def _machine(device: torch.device, facts: Mapping[str, Any]) -> str:
    name = facts["processor"]
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    return f"{name}, torch {facts['packages'].get('torch', torch.__version__)}"


def _fastest(work: Callable[[], object], device: torch.device, seconds: float = 0.15) -> float:
    """The least seconds of several calls, the first of which does not count."""
    work()
    _wait(device)
    # On one thread the processor's time, so that what else the machine does counts little.
    alone = device.type == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    best, spent, calls = float("inf"), 0.0, 0
    while calls < 3 or (spent < seconds and calls < 100):
        began = clock()
        work()
        _wait(device)
        took = clock() - began
        best, spent, calls = min(best, took), spent + took, calls + 1
    return best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _product_rate(width: int, precision: str, device: torch.device) -> float:
    dtype = torch.float64 if precision == "float64" else torch.float32
    x = torch.randn(DOCUMENTS, width, dtype=dtype, device=device)
    weights = torch.randn(width, width, dtype=dtype, device=device)
    if precision == "bfloat16":
        x = x.bfloat16()  # activations stay in it, weights are converted at each use

    def work() -> None:
        with products(precision, device):
            torch.mm(x, weights)

    return 2 * DOCUMENTS * width * width / _fastest(work, device, 0.1)


def _element_seconds(device: torch.device) -> float:
    """Batch norm and ReLU, which write three elements each way for every one of their input."""
    x = torch.randn(DOCUMENTS, 256, device=device, requires_grad=True)
    weight = torch.ones(256, device=device, requires_grad=True)
    bias = torch.zeros(256, device=device, requires_grad=True)

    def work() -> None:
        x.grad = None
        batch_norm(x, None, None, weight, bias, training=True).relu().sum().backward()

    return _fastest(work, device) / (2 * x.numel())


def _lists(queries: int, length: int, features: int) -> RankedLists:
    stream = np.random.Generator(np.random.PCG64(0))
    documents = queries * length
    values = stream.standard_normal((documents, features), dtype=np.float32)
    # Something can be learnt, and every list has two grades.
    noisy = values[:, 0] + 0.5 * stream.standard_normal(documents)
    labels = np.searchsorted([0.1, 0.8, 1.4, 2.3], noisy)
    labels[::length], labels[1::length] = 2, 0
    return RankedLists(
        features=values,
        labels=labels.astype(np.float32),
        offsets=np.arange(0, documents + 1, length, dtype=np.int64),
        query_ids=np.arange(queries, dtype=np.int64),
    )


def _splits(queries: int, length: int, features: int) -> Splits:
    small = _lists(1, 2, features)
    return Splits(_lists(queries, length, features), small, small, 5)


def _job(threads: int, device: str, trial: int = 0) -> FitJob:
    return FitJob("measure", trial, SELECTION, threads, device, no_progress)


def _step_seconds(
    model: Mapping[str, Any], models: int, device: torch.device, threads: int
) -> float:
    """Seconds of a step on next to nothing."""
    steps = 40
    data = _splits(2 * steps, 2, 8)
    settings = {
        "model": model,
        "loss": {"name": "approx_ndcg"},
        "training": {
            "optimizer": {"name": "adam", "lr": 0.001},
            "batch_queries": 2,
            "max_epochs": 6,
            "stack": 0,
        },
    }
    jobs = [_job(threads, device.type, trial) for trial in range(models)]
    fitted = learners.get("neural").load()(data, [settings] * models, jobs)
    epochs = [sum(fit.history[epoch]["seconds"] for fit in fitted) for epoch in range(6)]
    return min(epochs) / steps


def _list_seconds(name: str, length: int, device: torch.device) -> float:
    queries = min(DOCUMENTS_OF_LISTS // length, SLOW.get(name, DOCUMENTS_OF_LISTS))
    lists = _lists(queries, length, 1)
    labels = torch.from_numpy(lists.labels).view(queries, length).to(device)
    scores = torch.randn(labels.shape, device=device, requires_grad=True)
    mask = torch.ones(labels.shape, dtype=torch.bool, device=device)
    loss: Callable[..., Tensor] = losses.get(name)

    def work() -> None:
        scores.grad = None
        loss(scores, labels, mask, **OPTIONS.get(name, {})).sum().backward()

    return _fastest(work, device, 0.05) / queries


def _evaluation_seconds() -> float:
    lists = _lists(64, 60, 1)
    scores = torch.randn(lists.n_documents)
    found = [{"name": "ndcg", "k": 5}, {"name": "average_precision"}]
    cpu = torch.device("cpu")
    seconds = _fastest(lambda: metrics_per_query(scores, lists, found), cpu)
    return seconds / (len(found) * lists.n_documents)


def _fit_seconds(name: str, settings: Mapping[str, Any], data: Splits, threads: int) -> float:
    fit, took = learners.get(name).load(), []
    clock = time.process_time if threads == 1 else time.perf_counter
    for _ in range(2):
        began = clock()
        fit(data, settings, _job(threads, "cpu"))
        took.append(clock() - began)
    return min(took)


def _tree_seconds(name: str, threads: int) -> list[float]:
    """Seconds per row, level and feature of a tree, per leaf and feature, and per tree."""
    features, few, many = 40, 32, 512

    def of_a_tree(queries: int, depth: int) -> float:
        size = {"num_leaves": 2**depth} if name == "lightgbm" else {"max_depth": depth}
        settings = {**SMALL[name], **size}
        data = _splits(queries, 60, features)
        return _fit_seconds(name, settings, data, threads) / settings["n_trees"]

    small, deep, large = of_a_tree(few, 2), of_a_tree(few, 5), of_a_tree(many, 5)
    per_row = max(large - deep, 0.0) / (60 * (many - few) * features * 5)
    # Deeper trees pass over the rows more often, too.
    leaves = max(deep - small - per_row * 60 * few * features * 3, 0.0)
    per_leaf = leaves / ((2**5 - 2**2) * features)
    rest = small - per_row * 60 * few * features * 2 - per_leaf * 2**2 * features
    return [per_row, per_leaf, max(rest, 0.0)]


def _learner_seconds(name: str, threads: int) -> float:
    features, settings = 20, SMALL.get(name, {})
    data = _splits(20, 40, features)
    rounds = settings.get("rounds", 1)
    return _fit_seconds(name, settings, data, threads) / (
        data.train.n_documents * features * rounds
    )


def _pass_seconds(name: str, threads: int) -> list[float]:
    """Seconds per document and weight, and per pair, of a learner that goes query by query."""
    model, features = {"name": "two_layer", "hidden": 10}, 50
    loss = "lambdarank" if name == "per_query" else "ranknet"
    settings = {
        "model": model,
        "loss": {"name": loss},
        "training": {
            "optimizer": {"name": "sgd", "lr": 1e-6},
            "batch_queries": 1,
            "reduction": "sum",
            "max_epochs": 8,
        },
    }
    found = []
    for length in (10, 160):
        data = _splits(4800 // length, length, features)
        (fitted,) = learners.get(name).load()(data, [settings], [_job(threads, "cpu")])
        found.append(min(row["seconds"] for row in fitted.history) / data.train.n_documents)
    weights = work_of(model, features).flops([1]) / 2
    per_pair = max(found[1] - found[0], 0.0) / (160 - 10)
    return [max(found[0] - 10 * per_pair, 0.0) / weights, per_pair]


def _start_seconds() -> float:
    command: Sequence[str] = [sys.executable, "-c", "import directrank.study.run"]
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began
