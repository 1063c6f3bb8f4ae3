"""The neural learner: trains many models of one shape together.

The models of a call are the trials, tuning candidates and random restarts of one run. Each has its
own parameters, random streams, early stopping and result, equal to what it would get alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as serialise
from torch import Tensor, nn

from directrank import models
from directrank.errors import ConfigError, TrainingError
from directrank.evaluation import metrics_per_query
from directrank.io import atomic_path, digest_of
from directrank.learning import FitJob, Fitted, Splits
from directrank.lists import RankedLists
from directrank.schema import package_schema, suggest
from directrank.seeds import numpy_stream, torch_stream
from directrank.training.batches import Feeder
from directrank.training.objective import Objective

OPTIMIZERS = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam}

#: Documents scored at a time; bounds the memory of a forward pass over a whole part.
SCORING_CHUNK = 1 << 15


@dataclass(frozen=True)
class Member:
    """One model of a stack: a restart of a candidate of a trial."""

    job: int
    run: str
    trial: int
    restart: int
    loss: Mapping[str, Any]

    def names(self, purpose: str) -> tuple[str | int, ...]:
        """The names its random stream for ``purpose`` is derived from.

        Candidates of one trial share their streams, so that they differ in their settings alone.
        """
        return (self.run, self.trial, self.restart, purpose)


@dataclass
class Trained:
    """What is left of a member after training."""

    member: Member
    state: dict[str, Tensor]
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = 0
    best_metric: float = float("-inf")
    epochs: int = 0
    finished: bool = False
    objective: float = float("nan")


def fit_many(
    data: Splits, settings: Sequence[Mapping[str, Any]], jobs: Sequence[FitJob]
) -> list[Fitted]:
    """Train one model per job, with as many restarts as its settings ask for.

    Args:
        data: the splits.
        settings: per job a mapping with ``model``, ``loss`` and ``training``, as in a run.
        jobs: what each fit is told about its run and trial.

    Returns:
        One :class:`Fitted` per job, in their order.

    Raises:
        ConfigError: settings that cannot be meant.
        TrainingError: a loss that is not finite, or memory that ran out.
    """
    members: dict[str, list[Member]] = {}
    shapes: dict[str, tuple[Mapping[str, Any], dict[str, Any]]] = {}
    for number, (setting, job) in enumerate(zip(settings, jobs, strict=True)):
        training = complete(setting["training"])
        shape = digest_of([setting["model"], training])
        shapes[shape] = (setting["model"], training)
        members.setdefault(shape, []).extend(
            Member(number, job.run, job.trial, restart, setting["loss"])
            for restart in range(training["restarts"])
        )
    stacks = []
    for shape, group in members.items():
        size = shapes[shape][1]["stack"] or len(group)
        stacks += [(*shapes[shape], group[i : i + size]) for i in range(0, len(group), size)]
    trained: dict[int, list[Trained]] = {}
    for number, (model, training, stack) in enumerate(stacks):
        job = jobs[stack[0].job]
        progress = _part_of(job, number, len(stacks), training["max_epochs"])
        for result in _train_stack(data, model, training, stack, job, progress):
            trained.setdefault(result.member.job, []).append(result)
    return [
        _fitted(trained[number], settings[number], data.train.n_features, job)
        for number, job in enumerate(jobs)
    ]


def complete(training: Mapping[str, Any]) -> dict[str, Any]:
    """``training`` with the defaults of the run's schema for what it does not say."""
    properties = package_schema("run")["properties"]["training"]["properties"]
    for key in training:
        if key not in properties:
            raise ConfigError(f"training has no setting '{key}'", suggest(key, properties))
    defaults = {key: entry["default"] for key, entry in properties.items() if "default" in entry}
    if "optimizer" not in training:
        raise ConfigError("training needs an 'optimizer'", "for example {name: adam, lr: 0.001}")
    return {"schedule": None, **defaults, **training}


def score(model: nn.Module, lists: RankedLists, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Scores ``[M, N]`` of all documents of ``lists``, in evaluation mode, on the CPU."""
    model.eval()
    feeder = Feeder(lists, dtype, device)
    parts = []
    with torch.no_grad():
        for first, last in _whole_queries(lists.offsets, SCORING_CHUNK):
            begin, end = lists.offsets[first], lists.offsets[last]
            rows = feeder.features[begin:end].to(device, dtype)
            lengths = feeder.lengths[None, first:last]
            parts.append(model(rows[None], None, lengths).cpu())
    return torch.cat(parts, dim=1)


def _whole_queries(offsets: np.ndarray, documents: int) -> Iterator[tuple[int, int]]:
    """Ranges of queries that together have at most ``documents`` documents, or are one query."""
    first, queries = 0, len(offsets) - 1
    while first < queries:
        last = int(np.searchsorted(offsets, offsets[first] + documents, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _train_stack(
    data: Splits,
    model_settings: Mapping[str, Any],
    training: Mapping[str, Any],
    members: Sequence[Member],
    job: FitJob,
    progress: Callable[[int, str], None],
) -> list[Trained]:
    device = torch.device(job.device)
    dtype = getattr(torch, training["dtype"])
    streams = [torch_stream(*member.names("init")) for member in members]
    model = models.build(model_settings, data.train.n_features, streams).to(device, dtype)
    optimizer = _optimizer(model, training["optimizer"])
    schedule = training["schedule"]
    scheduler = schedule and torch.optim.lr_scheduler.StepLR(
        optimizer, schedule["every"], schedule["factor"]
    )
    objective = Objective(
        [member.loss for member in members],
        training["reduction"],
        [torch_stream(*member.names("loss"), device=device) for member in members],
    )
    feeder = Feeder(data.train, dtype, device, training["max_documents"])
    shuffles = [numpy_stream(*member.names("shuffle")) for member in members]
    cuts = [numpy_stream(*member.names("cut")) for member in members]
    results = [Trained(member, {}) for member in members]

    for epoch in range(1, training["max_epochs"] + 1):
        began = time.perf_counter()
        before = _flat(model) if training["tolerance"] else None
        order = np.stack([stream.permutation(data.train.n_queries) for stream in shuffles])
        losses_seen = _epoch(model, optimizer, objective, feeder, order, cuts, training, epoch)
        if scheduler:
            scheduler.step()
        vali = score(model, data.vali, dtype, device)
        values = next(iter(metrics_per_query(vali, data.vali, [job.selection]).values()))
        metric = np.nanmean(values, axis=1)
        moved = None if before is None else (_flat(model) - before).norm(dim=1).tolist()
        seconds = (time.perf_counter() - began) / len(members)
        for number, result in enumerate(results):
            if result.finished:
                continue
            stopped = moved is not None and moved[number] <= training["tolerance"]
            _note(result, epoch, losses_seen[number], float(metric[number]), seconds)
            patience = training["patience"]
            result.finished = stopped or (
                patience is not None and epoch - result.best_epoch >= patience
            )
            last = result.finished or epoch == training["max_epochs"]
            if result.best_epoch == epoch if training["keep"] == "best" else last:
                result.state = _state_of(model, number)
        active = [result for result in results if not result.finished]
        best = max(result.best_metric for result in results)
        progress(epoch, f"best validation metric {best:.4f}")
        if not active:
            break

    if training["restarts"] > 1:
        _final_objectives(results, model_settings, data, objective, dtype, device)
    return results


def _epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    objective: Objective,
    feeder: Feeder,
    order: np.ndarray,
    cuts: list[np.random.Generator],
    training: Mapping[str, Any],
    epoch: int,
) -> list[float]:
    """One pass over the queries in ``order`` ``[M, Q]``; the mean objective of each model."""
    model.train()
    size = training["batch_queries"]
    total = torch.zeros(len(order))
    steps = 0
    for begin in range(0, order.shape[1], size):
        batch = feeder.draw(order[:, begin : begin + size], cuts)
        try:
            lengths = batch.lengths.reshape(len(order), -1)
            scores = model(batch.features, batch.rows, lengths).flatten()[batch.positions]
            values = objective(scores, batch.labels, batch.lengths)
            optimizer.zero_grad(set_to_none=True)
            if values.requires_grad:
                values.sum().backward()
                optimizer.step()
        except torch.OutOfMemoryError as error:
            raise TrainingError(
                f"out of memory on {len(batch.labels)} documents of {len(batch.lengths)} queries",
                "lower training.batch_queries, training.max_documents or training.stack",
            ) from error
        total += values.detach().float().cpu()
        steps += 1
    if not bool(torch.isfinite(total).all()):
        raise TrainingError(
            f"the loss is not finite in epoch {epoch}",
            "lower the learning rate, or normalise features with very large values",
        )
    return (total / steps).tolist()


def _note(result: Trained, epoch: int, train_loss: float, metric: float, seconds: float) -> None:
    result.epochs = epoch
    if metric > result.best_metric:
        result.best_metric, result.best_epoch = metric, epoch
    result.history.append(
        {"epoch": epoch, "train_loss": train_loss, "vali_metric": metric, "seconds": seconds}
    )


def _final_objectives(
    results: Sequence[Trained],
    model_settings: Mapping[str, Any],
    data: Splits,
    objective: Objective,
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    """The objective of every kept model on the whole training part: what restarts are chosen by."""
    lengths = np.asarray(data.train.lengths)
    labels = torch.as_tensor(np.array(data.train.labels), dtype=dtype)
    for number, result in enumerate(results):
        model = _single(model_settings, data.train.n_features, result.state).to(device, dtype)
        alone = Objective([objective.settings[number]], "mean", [objective.generators[number]])
        scores = score(model, data.train, dtype, device)[0]
        with torch.no_grad():
            result.objective = float(alone(scores, labels, lengths))


def _fitted(
    restarts: Sequence[Trained], settings: Mapping[str, Any], n_features: int, job: FitJob
) -> Fitted:
    training = complete(settings["training"])
    chosen = restarts[0]
    if len(restarts) > 1:
        chosen = min(restarts, key=lambda result: (result.objective, result.member.restart))
    dtype, device = getattr(torch, training["dtype"]), torch.device(job.device)
    model = _single(settings["model"], n_features, chosen.state).to(device, dtype)

    def predict(lists: RankedLists) -> np.ndarray:
        return score(model, lists, dtype, device)[0].numpy()

    def save(path: Path) -> None:
        with atomic_path(path.with_name(path.name + ".safetensors")) as temporary:
            temporary.write_bytes(serialise(chosen.state))

    kept = chosen.best_epoch if training["keep"] == "best" else chosen.epochs
    return Fitted(
        predict=predict,
        history=chosen.history,
        info={
            "best_epoch": kept,
            "epochs": chosen.epochs,
            "stopped_early": chosen.finished,
            "restart": chosen.member.restart,
            "train_objective": chosen.objective,
            "n_parameters": sum(parameter.numel() for parameter in model.parameters()),
        },
        save=save,
    )


def _optimizer(model: nn.Module, settings: Mapping[str, Any]) -> torch.optim.Optimizer:
    options = dict(settings)
    name = options.pop("name")
    if name not in OPTIMIZERS:
        raise ConfigError(f"unknown optimizer '{name}'", suggest(name, OPTIMIZERS))
    if name == "adagrad":
        options.setdefault("initial_accumulator_value", 0.1)
    elif "initial_accumulator_value" in options:
        raise ConfigError(f"optimizer '{name}' has no setting 'initial_accumulator_value'")
    return OPTIMIZERS[name](model.parameters(), **options)


def _single(settings: Mapping[str, Any], n_features: int, state: Mapping[str, Tensor]) -> nn.Module:
    model = models.build(settings, n_features, [torch.Generator()])
    model.load_state_dict(dict(state))
    return model.eval()


def _state_of(model: nn.Module, number: int) -> dict[str, Tensor]:
    return {
        name: value[number : number + 1].detach().cpu().clone().contiguous()
        for name, value in model.state_dict().items()
    }


def _flat(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten(1) for p in model.parameters()], dim=1).clone()


def _part_of(job: FitJob, number: int, parts: int, epochs: int) -> Callable[[int, str], None]:
    def progress(epoch: int, text: str) -> None:
        done = number * epochs + epoch
        job.progress(done, parts * epochs, text)

    return progress
