"""Qin2010's Algorithm 1 for a linear scorer: ApproxNDCG and ApproxAP with a stopping rule.

This learner has the same specification, random streams and results as ``neural``, and in float64
the same weights up to rounding. The computation differs: each start passes over the queries in a
separate compiled loop until a pass moves its weights by no more than ``training.tolerance`` (line
17 of the algorithm) or ``training.max_epochs`` are done. So a start costs nothing after it has
stopped, and ten thousand epochs of OHSUMED take seconds.

The history has a row for every start (column ``restart``) after each epoch that
``training.monitor`` names and at the end of its training; ``met`` says whether it met the tolerance
there. So a start's last row up to an epoch ``c`` is its result with a cap of ``c`` epochs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as serialise
from torch import Tensor

from directrank import models
from directrank.kernels import linear_ascent as kernels
from directrank.learners.contract import FitJob, Fitted, Splits
from directrank.learners.neural import monitors
from directrank.learners.neural.checkpoints import Checkpoints, Saved
from directrank.learners.neural.fit import complete
from directrank.learners.neural.members import Member
from directrank.learners.neural.restrictions import REMEDY, require_plain_sgd
from directrank.learners.neural.scoring import score
from directrank.lists.conventions import discount_sums, gains
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.errors import ConfigError, TrainingError
from directrank.system.io import write_bytes
from directrank.system.seeds import torch_stream

#: Training settings that Algorithm 1 determines.
FIXED: dict[str, Any] = {
    "batch_queries": 1,
    "reduction": "sum",
    "keep": "last",
    "patience": None,
    "schedule": None,
    "restart_after": None,
    "max_documents": None,
    "dtype": "float64",
    "precision": "float32",
}

#: Loss → its hyper-parameters with their defaults.
LOSSES: dict[str, dict[str, float]] = {
    "approx_ndcg": {"alpha": 10.0},
    "approx_ap": {"alpha": 10.0, "beta": 10.0},
}

#: Epochs of one compiled call, at most.
CALL = 100

#: Rows of the history that are scored together, at most.
ROWS = 128


@dataclass
class Start:
    """A random start and its result.

    Attributes:
        restart: its number.
        met: whether it met the tolerance.
        rows: its rows of the history.
        weights: the weights at each row, float64 ``[F]``.
    """

    restart: int
    met: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    weights: list[np.ndarray] = field(default_factory=list)


class Queries:
    """The training queries in the form that the compiled passes take.

    Args:
        lists: the queries.
        loss: name of the loss; ``approx_ap`` treats all labels above 0 alike.
    """

    def __init__(self, lists: RankedLists, loss: str) -> None:
        labels = torch.as_tensor(np.array(lists.labels), dtype=torch.float64)
        worth = gains(labels, "exp2") if loss == "approx_ndcg" else (labels >= 1).double()
        self.lengths = np.asarray(lists.lengths, dtype=np.int64)
        self.starts = np.asarray(lists.offsets[:-1], dtype=np.int64) - int(lists.offsets[0])
        query = np.repeat(np.arange(lists.n_queries), self.lengths)
        order = np.lexsort((np.arange(len(query)), -worth.numpy(), query))
        self.gains = worth.numpy()[order]
        self.features = np.asarray(lists.features)[order].astype(np.float64)
        ends = self.starts + self.lengths
        self.fronts = np.array(
            [np.count_nonzero(self.gains[a:b]) for a, b in zip(self.starts, ends, strict=True)]
        )
        discounts = np.diff(discount_sums("log2", int(self.lengths.max()), None))
        self.best = np.array(
            [self.gains[a:b] @ discounts[: b - a] for a, b in zip(self.starts, ends, strict=True)]
        )

    def passes(
        self, orders: np.ndarray, loss: Mapping[str, Any], rate: float, tolerance: float, w: Any
    ) -> tuple[int, bool, float]:
        """Move the weights ``w`` by passes in these ``orders``; see :func:`.kernels.passes`."""
        return kernels.passes(
            orders,
            self.starts,
            self.lengths,
            self.fronts,
            self.features,
            self.gains,
            self.best,
            float(loss["alpha"]),
            float(loss.get("beta", -1)),
            float(rate),
            float(tolerance),
            w,
        )


def fit_many(
    data: Splits,
    settings: Sequence[Mapping[str, Any]],
    jobs: Sequence[FitJob],
    checkpoints: Checkpoints | None = None,
) -> list[Fitted]:
    """The learner ``linear_ascent``; arguments and results are those of :func:`.fit.fit_many`.

    Raises:
        ConfigError: the settings are not those of Algorithm 1.
        TrainingError: weights are not finite, or a signal asked for an end.
    """
    plans = [_checked(setting) for setting in settings]
    parts = [f"fit-{number:04d}" for number in range(len(jobs))]
    unsaved: dict[str, list[Start]] = {}
    result = []
    queries: dict[str, Queries] = {}
    for number, (plan, job) in enumerate(zip(plans, jobs, strict=True)):
        name = plan["loss"]["name"]
        if name not in queries:
            queries[name] = Queries(data.train, name)
        starts = _loaded(checkpoints, parts[number])
        if starts is None:
            starts = []
            for start in _trained(queries[name], plan, job):
                starts.append(start)
                _report(job, number, len(jobs), start)
                _save_if_due(checkpoints, unsaved, f"in fit {number + 1} of {len(jobs)}")
            _measure(data, plan, job, starts)
            unsaved[parts[number]] = starts
        result.append(_fitted(data, plan, starts))
    return result


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Model, loss and training with every default; a :class:`ConfigError` for what is not known."""
    model, training = settings["model"], complete(settings["training"])
    loss = dict(settings["loss"])
    if model["name"] != "linear" or model.get("bias"):
        raise ConfigError(
            "learner 'linear_ascent' trains only the model linear, without bias", REMEDY
        )
    require_plain_sgd("linear_ascent", training, FIXED)
    known = LOSSES.get(loss["name"])
    if known is None or not loss.keys() <= {"name", *known}:
        raise ConfigError(
            "learner 'linear_ascent' trains approx_ndcg (alpha) and approx_ap (alpha, beta), "
            f"not {loss}",
            REMEDY,
        )
    return {"model": model, "loss": known | loss, "training": training}


def _trained(queries: Queries, plan: Mapping[str, Any], job: FitJob) -> Iterator[Start]:
    """The random starts of a fit, one after the other, whose rows are measured later."""
    training, loss = plan["training"], plan["loss"]
    rate = training["optimizer"]["lr"]
    for restart in range(training["restarts"]):
        member = Member(0, 0, job.streams, job.trial, restart, plan["model"], loss, training)
        scorer = _scorer(plan, queries.features.shape[1], torch_stream(*member.names("init")))
        weights = next(scorer.parameters()).detach().numpy().ravel().copy()
        start, epoch = Start(restart), 0
        began, since = time.perf_counter(), 0
        while not start.met and epoch < training["max_epochs"]:
            wanted = min(_next_row(training, epoch), training["max_epochs"])
            count = min(CALL, wanted - epoch)
            orders = np.stack(
                [member.order(epoch + next_, len(queries.starts)) for next_ in range(count)]
            )
            done, start.met, objective = queries.passes(
                orders, loss, rate, training["tolerance"], weights
            )
            epoch += done
            if not np.isfinite(weights).all():
                raise TrainingError(
                    f"weights are not finite after epoch {epoch}", "lower the learning rate"
                )
            if start.met or epoch == wanted:
                seconds = (time.perf_counter() - began) / (epoch - since)
                row = {"restart": restart, "epoch": epoch, "train_loss": -objective}
                start.rows.append({**row, "met": start.met, "seconds": seconds})
                start.weights.append(weights.copy())
                began, since = time.perf_counter(), epoch
        yield start


def _next_row(training: Mapping[str, Any], epoch: int) -> int:
    """The first epoch after ``epoch`` for which the history has a row."""
    settings = training["monitor"] or {"at": []}
    later = [mark for mark in settings.get("at", ()) if mark > epoch]
    if "at" not in settings or "every" in settings:
        every = settings.get("every", 1)
        later.append((epoch // every + 1) * every)
    return min(later, default=training["max_epochs"])


def _measure(data: Splits, plan: Mapping[str, Any], job: FitJob, starts: Sequence[Start]) -> None:
    """Add to every row the objective, the validation metric and the monitored quantities."""
    rows = [row for start in starts for row in start.rows]
    weights = np.stack([w for start in starts for w in start.weights])
    asked = (plan["training"]["monitor"] or {}).get("quantities", [])
    quantities = [{"quantity": "objective"}, *(q for q in asked if q["quantity"] != "objective")]
    for first in range(0, len(rows), ROWS):
        some = torch.from_numpy(weights[first : first + ROWS])

        def scored(lists: RankedLists, some: Tensor = some) -> Tensor:
            return some @ torch.from_numpy(np.asarray(lists.features).astype(np.float64)).T

        values = monitors.watch(quantities, data, scored, [plan["loss"]] * len(some))
        on_vali = metrics_per_query(scored(data.vali), data.vali, [job.selection])
        values["vali_metric"] = np.nanmean(next(iter(on_vali.values())), axis=1)
        for place in range(len(some)):
            measured = {name: float(value[place]) for name, value in values.items()}
            rows[first + place].update(measured)


def _fitted(data: Splits, plan: Mapping[str, Any], starts: Sequence[Start]) -> Fitted:
    """The start with the best training objective, and the history of all."""
    chosen = min(starts, key=lambda start: (start.rows[-1]["train_objective"], start.restart))
    last = chosen.rows[-1]
    model = _scorer(plan, data.train.n_features, torch.Generator())
    (name,) = model.state_dict()
    state = {name: torch.from_numpy(chosen.weights[-1]).reshape(1, -1, 1).clone()}
    model.load_state_dict(state)

    def predict(lists: RankedLists) -> np.ndarray:
        return score(model, lists, torch.float64, torch.device("cpu"))[0].numpy()

    def save(path: Path) -> None:
        write_bytes(path.with_name(path.name + ".safetensors"), serialise(state))

    return Fitted(
        predict=predict,
        history=[row for start in starts for row in start.rows],
        info={
            "best_epoch": last["epoch"],
            "epochs": last["epoch"],
            "stopped_early": chosen.met,
            "restart": chosen.restart,
            "starts_met": sum(start.met for start in starts),
            "train_objective": last["train_objective"],
            "n_parameters": data.train.n_features,
        },
        save=save,
    )


def _scorer(plan: Mapping[str, Any], n_features: int, stream: torch.Generator) -> torch.nn.Module:
    return models.build(plan["model"], n_features, [stream]).double()


def _report(job: FitJob, number: int, jobs: int, start: Start) -> None:
    last = start.rows[-1]
    how = "met the tolerance" if start.met else "ended"
    job.progress(number, jobs, f"start {start.restart} {how} after epoch {last['epoch']}")


def _save_if_due(
    checkpoints: Checkpoints | None, unsaved: dict[str, list[Start]], where: str
) -> None:
    """Save the complete fits, each as a separate part."""
    if checkpoints is None or not checkpoints.due():
        return
    for part, starts in unsaved.items():
        weights = {f"weights.{s.restart}": torch.from_numpy(np.stack(s.weights)) for s in starts}
        record = [{"restart": s.restart, "met": s.met, "rows": s.rows} for s in starts]
        checkpoints.save(part, weights, {"starts": record})
    unsaved.clear()
    checkpoints.end_if_asked(where)


def _loaded(checkpoints: Checkpoints | None, part: str) -> list[Start] | None:
    """A saved fit; None if it was not saved."""
    saved: Saved | None = checkpoints.load(part) if checkpoints is not None else None
    if saved is None:
        return None
    return [
        Start(**entry, weights=list(saved.tensors[f"weights.{entry['restart']}"].numpy()))
        for entry in saved.record["starts"]
    ]
