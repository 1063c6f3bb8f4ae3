"""The neural learner: trains many models of one shape together.

The models of a call are the trials, tuning candidates and random restarts of one run or, on a GPU,
of several. Each has its own parameters, learning rate, random streams, early stopping and result,
which are the same as if it were trained alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as serialise

from directrank import models
from directrank.learners.contract import FitJob, Fitted, Request, Splits
from directrank.learners.neural import stacking
from directrank.learners.neural.captured import power_of_two
from directrank.learners.neural.checkpoints import Checkpoints, Saved
from directrank.learners.neural.failures import NotFiniteError, naming_memory
from directrank.learners.neural.members import Member, Trained
from directrank.learners.neural.objective import can_be_captured
from directrank.learners.neural.precision import weight_type
from directrank.learners.neural.scoring import score
from directrank.learners.neural.stack import OWN, Stack, longest_lengths, position
from directrank.lists.packed import RankedLists
from directrank.system import schema
from directrank.system.io import digest_of, write_bytes
from directrank.system.schema import package_schema
from directrank.system.torch_modes import pytorchs_own


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
    (fitted,) = fit_together(data, [Request(settings, jobs, checkpoints)], kind)
    if isinstance(fitted, NotFiniteError):
        raise fitted
    return fitted


@pytorchs_own()
def fit_together(
    data: Splits, requests: Sequence[Request], kind: type[Stack] = Stack
) -> list[list[Fitted] | NotFiniteError]:
    """Train what several runs on the same data ask for, on a GPU in as few passes as possible.

    What a caller has set of PyTorch, such as ``torch.no_grad()`` or a default type, has no effect.

    Args:
        data: the splits.
        requests: of each run.
        kind: the class that trains a stack.

    Returns:
        For each request what :func:`fit_many` returns, or why the loss of its run is not finite,
        which changes nothing for the others.

    Raises:
        ConfigError: the settings are not valid.
        TrainingError: memory ran out, or a signal asked for an end.
    """
    stacks = _stacks(data, requests)
    trained: dict[tuple[int, int], list[Trained]] = {}
    facts: dict[tuple[int, int], dict[str, float]] = {}
    failed: dict[int, NotFiniteError] = {}
    for number, planned in enumerate(stacks):
        job, first = planned.job, planned.members[0]
        progress = _part_of(job, number, len(stacks), first.training["max_epochs"])
        for members, saved in _resumed(planned, requests, failed):
            with naming_memory(f"setting up a stack of {len(members)}", "lower training.stack"):
                device = torch.device(job.device)
                stack = kind(data, first.training, members, job.selection, device)
            parts = {
                request: _Part(stack.members_of(request), store, planned.parts[request])
                for request in saved
                if (store := requests[request].checkpoints) is not None
            }
            try:
                results = _trained(stack, parts, saved, progress)
            except NotFiniteError:
                results = []
            failed |= stack.failed
            for result in results:
                place = result.member.request, result.member.job
                trained.setdefault(place, []).append(result)
                facts[place] = {
                    "n_parameters": stack.n_parameters,
                    "wasted_pairs": stack.wasted_pairs,
                }
    return [
        failed[place]
        if place in failed
        else [
            _fitted(trained[place, n], own, data.train.n_features, job, facts[place, n])
            for n, (own, job) in enumerate(zip(request.settings, request.jobs, strict=True))
        ]
        for place, request in enumerate(requests)
    ]


def complete(training: Mapping[str, Any]) -> dict[str, Any]:
    """``training``, completed by the defaults of the run's schema."""
    return schema.complete(training, package_schema("run")["properties"]["training"], "training")


@dataclass(frozen=True)
class _Planned:
    """A stack that is to be trained.

    Attributes:
        job: of the first of its members.
        members: its models; those with the same random streams are neighbours.
        parts: request → the name of its part of the run's checkpoint.
    """

    job: FitJob
    members: list[Member]
    parts: Mapping[int, str]


@dataclass(frozen=True)
class _Part:
    """What a run has in a stack.

    Attributes:
        numbers: the positions of its results.
        store: its checkpoints.
        name: that of the part.
    """

    numbers: Sequence[int]
    store: Checkpoints
    name: str


def _stacks(data: Splits, requests: Sequence[Request]) -> list[_Planned]:
    """What is trained in one pass each.

    The models of a stack have one shape. On a CPU they belong to one run and differ only in the
    loss and the learning rate; on a GPU they may also differ in the settings in :data:`OWN` and
    belong to different runs, because small steps leave most of it idle.
    """
    shapes: dict[str, list[tuple[FitJob, Member]]] = {}
    for place, request in enumerate(requests):
        for number, (setting, job) in enumerate(zip(request.settings, request.jobs, strict=True)):
            training = complete(setting["training"])
            model, loss = setting["model"], setting["loss"]
            members = [
                Member(place, number, job.streams, job.trial, restart, model, loss, training)
                for restart in range(training["restarts"])
            ]
            shape = _shape(data, place, setting, training, job)
            shapes.setdefault(shape, []).extend((job, member) for member in members)
    stacks = []
    parts_of = dict.fromkeys(range(len(requests)), 0)
    for group in shapes.values():
        group.sort(key=lambda entry: entry[1].drawing)
        job, first = group[0]
        size = stacking.models_at_once(
            longest_lengths(data.train.lengths, first.training),
            data.train.n_features,
            first.model,
            [member.loss for _, member in group],
            first.training,
            job.device,
        )
        for begin in range(0, len(group), size):
            members = [member for _, member in group[begin : begin + size]]
            parts = {}
            for place in sorted({member.request for member in members}):
                parts[place] = f"stack-{parts_of[place]:03d}"
                parts_of[place] += 1
            stacks.append(_Planned(group[begin][0], members, parts))
    return stacks


def _shape(
    data: Splits,
    place: int,
    setting: Mapping[str, Any],
    training: Mapping[str, Any],
    job: FitJob,
) -> str:
    """A name that is the same for models that can be in one stack."""
    same = {**training, "optimizer": {**training["optimizer"], "lr": None}}
    if not stacking.across_runs(job.device):
        return digest_of([place, setting["model"], same])
    device, dtype = torch.device(job.device), weight_type(training["dtype"])
    lengths = longest_lengths(data.train.lengths, training)
    # A loss that cannot be captured would keep those of its stack from it.
    captured = can_be_captured(
        setting["loss"], len(lengths), power_of_two(int(lengths.max())), dtype, device
    )
    same = {name: value for name, value in same.items() if name not in (*OWN, "stack")}
    return digest_of([models.shape_of(setting["model"]), same, job.selection, captured])


def _resumed(
    planned: _Planned, requests: Sequence[Request], failed: Mapping[int, NotFiniteError]
) -> Iterator[tuple[list[Member], dict[int, Saved | None]]]:
    """Members of a stack that can be trained together, and what was saved of each request.

    Usually these are all members. After runs of it were interrupted at different steps, or when
    some are new, they are as many groups.
    """
    groups: dict[Any, dict[int, Saved | None]] = {}
    for request, name in planned.parts.items():
        store = requests[request].checkpoints
        saved = None if store is None or request in failed else store.load(name)
        own = sum(member.request == request for member in planned.members)
        if saved is not None and len(saved.record["results"]) != own:
            saved = None  # the runs were divided into other stacks
        groups.setdefault(saved and position(saved), {})[request] = saved
    for group in groups.values():
        members = [member for member in planned.members if member.request in group.keys() - failed]
        if members:
            yield members, {request: group[request] for request in {m.request for m in members}}


def _trained(
    stack: Stack,
    parts: Mapping[int, _Part],
    saved: Mapping[int, Saved | None],
    progress: Callable[[int, str], None],
) -> list[Trained]:
    """Train a stack, resuming from its checkpoints, and save some now and then."""

    def save() -> None:
        for request, part in parts.items():
            if request not in stack.failed:
                state = stack.saved(part.numbers)
                part.store.save(part.name, state.tensors, state.record)

    def step_done() -> None:
        if any(part.store.due() for part in parts.values()):
            save()
            for part in parts.values():
                part.store.end_if_asked(stack.where)

    found = [(part.numbers, state) for r, part in parts.items() if (state := saved[r]) is not None]
    if found:
        stack.restore(found)
    begun_at = stack.epoch
    trained = stack.train(step_done, progress)
    if stack.epoch > begun_at:
        save()
    return [result for result in trained if result.member.request not in stack.failed]


def _fitted(
    restarts: Sequence[Trained],
    settings: Mapping[str, Any],
    n_features: int,
    job: FitJob,
    facts: Mapping[str, float],
) -> Fitted:
    training = complete(settings["training"])
    chosen = restarts[0]
    if len(restarts) > 1:
        chosen = min(restarts, key=lambda result: (result.objective, result.member.restart))
    dtype, device = weight_type(training["dtype"]), torch.device(job.device)

    @cache
    def scorer() -> torch.nn.Module:  # few of many candidates are asked for scores
        model = models.build(settings["model"], n_features, [torch.Generator()])
        model.to(device, dtype).load_state_dict(chosen.state)
        return model

    def predict(lists: RankedLists) -> np.ndarray:
        return score(scorer(), lists, dtype, device)[0].numpy()

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
            **facts,
        },
        save=save,
        weights=chosen.state,
        # To score a thousand models of a GPU's stacks one by one would take long. On a CPU their
        # metrics are those of a single model, to the last digit.
        device=job.device,
        vali_metric=None if device.type == "cpu" else chosen.history[kept - 1]["vali_metric"],
    )


def _part_of(job: FitJob, number: int, parts: int, epochs: int) -> Callable[[int, str], None]:
    def progress(epoch: int, text: str) -> None:
        done = number * epochs + epoch
        job.progress(done, parts * epochs, text)

    return progress
