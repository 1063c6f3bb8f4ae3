"""The neural learner: trains many models of one shape together.

The models of a call are the trials, tuning candidates and random restarts of one run. Each has its
own parameters, learning rate, random streams, early stopping and result, which are the same as if
it were trained alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as serialise

from directrank import models
from directrank.learners.contract import FitJob, Fitted, Splits
from directrank.learners.neural.checkpoints import Checkpoints
from directrank.learners.neural.failures import naming_memory
from directrank.learners.neural.members import Member, Trained
from directrank.learners.neural.precision import weight_type
from directrank.learners.neural.scoring import score
from directrank.learners.neural.stack import Stack
from directrank.lists.packed import RankedLists
from directrank.system import schema
from directrank.system.io import digest_of, write_bytes
from directrank.system.schema import package_schema


def fit_many(
    data: Splits,
    settings: Sequence[Mapping[str, Any]],
    jobs: Sequence[FitJob],
    checkpoints: Checkpoints | None = None,
    kind: type[Stack] = Stack,
) -> list[Fitted]:
    """Train one model per job, with as many restarts as its settings require.

    Args:
        data: the splits.
        settings: for each job a mapping with ``model``, ``loss`` and ``training``, as in a run.
        jobs: the run and trial of each fit.
        checkpoints: the store of unfinished work; None saves none.
        kind: the class that trains a stack.

    Returns:
        One :class:`Fitted` per job, in their order.

    Raises:
        ConfigError: the settings are not valid.
        TrainingError: the loss is not finite, memory ran out, or a signal asked for an end.
    """
    stacks = list(_stacks(settings, jobs))
    trained: dict[int, list[Trained]] = {}
    wasted: dict[int, float] = {}
    for number, (model, training, members) in enumerate(stacks):
        job = jobs[members[0].job]
        with naming_memory(f"setting up a stack of {len(members)}", "lower training.stack"):
            stack = kind(data, model, training, members, job.selection, torch.device(job.device))
        progress = _part_of(job, number, len(stacks), training["max_epochs"])
        for result in _trained(stack, f"stack-{number:03d}", checkpoints, progress):
            trained.setdefault(result.member.job, []).append(result)
            wasted[result.member.job] = stack.wasted_pairs
    return [
        _fitted(trained[number], settings[number], data.train.n_features, job, wasted[number])
        for number, job in enumerate(jobs)
    ]


def complete(training: Mapping[str, Any]) -> dict[str, Any]:
    """``training``, completed by the defaults of the run's schema."""
    return schema.complete(training, package_schema("run")["properties"]["training"], "training")


def _stacks(
    settings: Sequence[Mapping[str, Any]], jobs: Sequence[FitJob]
) -> list[tuple[Mapping[str, Any], dict[str, Any], list[Member]]]:
    """The model, training and members of each stack.

    A stack has models whose settings differ only in the loss and the learning rate; those with the
    same random streams are neighbours.
    """
    shapes: dict[str, tuple[Mapping[str, Any], dict[str, Any], list[Member]]] = {}
    for number, (setting, job) in enumerate(zip(settings, jobs, strict=True)):
        training = complete(setting["training"])
        rate = training["optimizer"]["lr"]
        same = {**training, "optimizer": {**training["optimizer"], "lr": None}}
        shape = digest_of([setting["model"], same])
        _, _, members = shapes.setdefault(shape, (setting["model"], training, []))
        members += [
            Member(number, job.streams, job.trial, restart, setting["loss"], rate)
            for restart in range(training["restarts"])
        ]
    stacks = []
    for model, training, members in shapes.values():
        members.sort(key=lambda member: member.drawing)
        size = training["stack"] or len(members)
        stacks += [(model, training, members[i : i + size]) for i in range(0, len(members), size)]
    return stacks


def _trained(
    stack: Stack,
    part: str,
    checkpoints: Checkpoints | None,
    progress: Callable[[int, str], None],
) -> list[Trained]:
    """Train a stack, resuming from its checkpoint, and save one now and then."""
    if checkpoints is None:
        return stack.train(lambda: None, progress)

    def save() -> None:
        state = stack.saved()
        checkpoints.save(part, state.tensors, state.record)

    def step_done() -> None:
        if checkpoints.due():
            save()
            checkpoints.end_if_asked(stack.where)

    saved = checkpoints.load(part)
    if saved is not None:
        stack.restore(saved)
    begun_at = stack.epoch
    trained = stack.train(step_done, progress)
    if stack.epoch > begun_at:
        save()
    return trained


def _fitted(
    restarts: Sequence[Trained],
    settings: Mapping[str, Any],
    n_features: int,
    job: FitJob,
    wasted_pairs: float,
) -> Fitted:
    training = complete(settings["training"])
    chosen = restarts[0]
    if len(restarts) > 1:
        chosen = min(restarts, key=lambda result: (result.objective, result.member.restart))
    dtype, device = weight_type(training["dtype"]), torch.device(job.device)
    model = models.build(settings["model"], n_features, [torch.Generator()]).to(device, dtype)
    model.load_state_dict(chosen.state)
    model.eval()

    def predict(lists: RankedLists) -> np.ndarray:
        return score(model, lists, dtype, device)[0].numpy()

    def save(path: Path) -> None:
        write_bytes(path.with_name(path.name + ".safetensors"), serialise(chosen.state))

    kept = chosen.best_epoch if training["keep"] == "best" else chosen.epochs
    return Fitted(
        predict=predict,
        history=chosen.history,
        info={
            "best_epoch": kept,
            "epochs": chosen.epochs,
            "stopped_early": chosen.finished,
            "restart": chosen.member.restart,
            "redrawn": chosen.pace.draws,
            "train_objective": chosen.objective,
            "n_parameters": sum(parameter.numel() for parameter in model.parameters()),
            "wasted_pairs": wasted_pairs,
        },
        save=save,
        weights=chosen.state,
    )


def _part_of(job: FitJob, number: int, parts: int, epochs: int) -> Callable[[int, str], None]:
    def progress(epoch: int, text: str) -> None:
        done = number * epochs + epoch
        job.progress(done, parts * epochs, text)

    return progress
