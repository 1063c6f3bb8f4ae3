"""Models of one shape in training together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from directrank import models
from directrank.kernels.dispatch import device_of, has_triton
from directrank.kernels.threads import steps_in_loops
from directrank.learners.contract import Splits
from directrank.learners.neural import monitors, optimisers, precision
from directrank.learners.neural.batches import Batch, Feeder, Layout
from directrank.learners.neural.captured import BLOCK, CapturedSteps, Inputs, power_of_two
from directrank.learners.neural.checkpoints import Saved
from directrank.learners.neural.failures import NotFiniteError, naming_memory
from directrank.learners.neural.forward import Forward, forward
from directrank.learners.neural.members import PLAIN, Member, Trained, rows_of
from directrank.learners.neural.objective import Objective, can_be_captured
from directrank.learners.neural.schedules import Pace
from directrank.learners.neural.scoring import score, score_parts
from directrank.lists.devices import on_device, reading
from directrank.lists.documents import Documents
from directrank.lists.draws import Counters
from directrank.lists.packed import RankedLists, concatenated_ranges
from directrank.metrics.packed import Evaluator
from directrank.system.seeds import torch_stream

#: Splits that may choose the epoch, in words.
SPLITS = {"vali": "validation", "test": "test"}

#: Training settings in which the models of a stack may differ, beside the learning rate.
OWN = ("schedule", "restart_after", "max_epochs", "patience", "keep", "tolerance", "restarts",
       "monitor")  # fmt: skip

#: As long as more of its models than this are in training, a stack keeps those that have finished
#: if its steps are captured: what they still cost is less than to capture all steps again.
WORTH_KEEPING = 0.5

#: How to need less memory on a CPU and on a GPU.
MEMORY_REMEDY = "lower training.batch_queries, training.max_documents or training.stack"
MEMORY_REMEDY_ON_GPU = (
    "lower training.batch_queries or training.max_documents, or use the device cpu"
)


@dataclass
class UnderWay:
    """An epoch that has begun.

    Attributes:
        order: int ``[G, Q]``, the queries of each row of the batches; it follows from the number of
            the epoch.
        step: steps done.
        total: float64 ``[M]``, sum of the objectives of those steps.
        before: the weights at its beginning, ``[M, P]``; None where no tolerance is set.
        seconds: time spent.
    """

    order: np.ndarray
    step: int
    total: np.ndarray
    before: Tensor | None
    seconds: float = 0.0


class Stack:
    """Trains several models in one pass, each as it would be trained alone.

    Models that draw the same queries are neighbours and share their documents; G such rows make up
    the stack. A model leaves it when it has finished, or, if its scorer computes the models of a
    row in one product, when the whole row has, or, if steps are captured, when many have.

    A run of which a model's loss is not finite has failed, and the models of other runs go on.

    Args:
        data: the splits.
        training: complete training settings, of which those in :data:`OWN` and the learning rate
            are each member's own.
        members: the models, whose scorers have one shape (:func:`directrank.models.shape_of`);
            those with the same streams are neighbours.
        selection: the metric that chooses the epoch, on the split ``training["select_on"]``.
        device: where to train.
    """

    def __init__(
        self,
        data: Splits,
        training: Mapping[str, Any],
        members: Sequence[Member],
        selection: Mapping[str, Any],
        device: torch.device,
    ) -> None:
        self.data = data
        self.training = training
        self.device = device
        self.dtype = precision.weight_type(training["dtype"])
        precision.check(training["precision"], training["dtype"], device)
        self.memory_remedy = MEMORY_REMEDY if device.type == "cpu" else MEMORY_REMEDY_ON_GPU
        self.results = [Trained(member) for member in members]
        self.rows = rows_of(members)
        #: Request → why its run has failed.
        self.failed: dict[int, NotFiniteError] = {}
        self.epoch = 0
        self.under_way: UnderWay | None = None
        self.feeder = Feeder(
            data.train,
            self.dtype,
            device,
            training["max_documents"],
            training["cut"],
            padded=training["batch_norm"] == "padded",
        )
        #: Column of the history → the lists whose metric it holds, and what evaluates them.
        self.watched = {
            f"{split}_metric": (getattr(data, split), Evaluator(getattr(data, split), [selection]))
            for split in sorted({"vali", training["select_on"]}, reverse=True)
        }
        self._feeders: dict[int, Feeder] = {}
        self.captured: CapturedSteps | None = None
        self.pairs = np.zeros(2)
        streams = [torch_stream(*member.names("init")) for member in members]
        self._set_up(self._built(members, streams))
        #: Those of a single model.
        self.n_parameters = sum(values.numel() for values in self.parameters) // len(members)

    @property
    def active(self) -> list[int]:
        """Positions of the results that the models in training belong to, in their order."""
        return [number for row in self.rows for number in row]

    def train(
        self, step_done: Callable[[], None], progress: Callable[[int, str], None]
    ) -> list[Trained]:
        """Train to the end, from wherever the stack is.

        Args:
            step_done: called after each step, when the stack can be saved.
            progress: called after each epoch with its number and a line of text.
        """
        while self.rows:
            losses = self._epoch(step_done)
            self._close_epoch(losses)
            best = max(result.best_metric for result in self.results)
            progress(self.epoch, f"best {SPLITS[self.training['select_on']]} metric {best:.4f}")
        self.captured = None  # it refers to this stack, and would keep the GPU's memory
        self._final_objectives()
        return self.results

    def members_of(self, request: int) -> list[int]:
        """The positions of the results that belong to a request."""
        return [n for n, result in enumerate(self.results) if result.member.request == request]

    def saved(self, numbers: Sequence[int]) -> Saved:
        """All that decides how the results at these positions go on, for :meth:`restore`.

        Tensors of the whole stack are not copied.
        """
        place_of = {number: place for place, number in enumerate(numbers)}
        models = [model for model, number in enumerate(self.active) if number in place_of]
        whole = len(models) == len(self.active)

        def own(value: Any) -> Any:
            return value if whole else value[models]

        tensors: dict[str, Tensor] = {}
        if models:
            state, memory = self.model.state_dict(), self.optimiser.memory()
            tensors |= {f"model.{name}": own(value) for name, value in state.items()}
            tensors |= {f"memory.{name}": own(value) for name, value in memory.items()}
        results = []
        for number, place in place_of.items():
            result = self.results[number]
            tensors |= {f"kept.{place}.{name}": value for name, value in result.state.items()}
            plain = {key: getattr(result, key) for key in PLAIN}
            results.append({**plain, "pace": asdict(result.pace), "state": list(result.state)})
        record: dict[str, Any] = {
            "epoch": self.epoch,
            "active": [place_of[number] for number in self.active if number in place_of],
            "results": results,
            "pairs": self.pairs,
            "under_way": None,
        }
        now = self.under_way
        if now is not None:
            if now.before is not None:
                tensors["before"] = own(now.before)
            record["under_way"] = {
                "step": now.step,
                "total": own(now.total),
                "seconds": now.seconds,
            }
        return Saved(tensors, record)

    def restore(self, parts: Sequence[tuple[Sequence[int], Saved]]) -> None:
        """Become a stack that goes on from what was saved of others.

        Args:
            parts: positions of the results, and what :meth:`saved` gave for them, all of which are
                equally far (:func:`position`).
        """
        active: list[int] = []
        for numbers, saved in parts:
            tensors, record = saved.tensors, saved.record
            for place, (number, entry) in enumerate(zip(numbers, record["results"], strict=True)):
                result = self.results[number]
                for key in PLAIN:
                    setattr(result, key, entry[key])
                result.pace = Pace(**entry["pace"])
                result.state = {name: tensors[f"kept.{place}.{name}"] for name in entry["state"]}
            active += [numbers[place] for place in record["active"]]
        # Parts of one stack have them all; of several, those of one give the share of padding.
        self.pairs[:] = np.max([saved.record["pairs"] for _, saved in parts], axis=0)
        self.epoch = parts[0][1].record["epoch"]
        in_training = set(active)
        self.rows = [own for row in self.rows if (own := [n for n in row if n in in_training])]
        if not self.rows:
            return
        order = np.argsort(active)
        with_models = [saved for _, saved in parts if saved.record["active"]]

        def joined(prefix: str) -> dict[str, Tensor]:
            each = [_below(prefix, saved.tensors) for saved in with_models]
            return {name: torch.cat([own[name] for own in each])[order] for name in each[0]}

        self._rebuild(joined("model."), joined("memory."))
        now = [saved.record["under_way"] for saved in with_models]
        if now[0] is not None:
            total = np.concatenate([each["total"] for each in now])[order]
            before = joined("before").get("")
            self.under_way = UnderWay(
                self._order(),
                now[0]["step"],
                total,
                None if before is None else before.to(self.device),
                now[0]["seconds"],
            )

    @property
    def where(self) -> str:
        """How far training has come, in words."""
        if self.under_way is None:
            return f"after epoch {self.epoch}"
        return f"in epoch {self.epoch + 1}, after {self.under_way.step} steps"

    @property
    def wasted_pairs(self) -> float:
        """Share of padding among the pairs of documents that the losses were given."""
        real, padded = self.pairs
        return float(1 - real / padded) if padded else 0.0

    def _set_up(self, model: nn.Module) -> None:
        """Everything that has a leading dimension M or depends on it, for the active models."""
        members = self._members
        self.model = model.to(self.device, self.dtype)
        self.parameters = list(self.model.parameters())
        self.optimiser = optimisers.build(self.training["optimizer"], self.parameters)
        #: The row of each model, int ``[M]``.
        self.row_of = np.repeat(np.arange(len(self.rows)), [len(row) for row in self.rows])
        self._rows_on_device = on_device(self.row_of, self.device)
        #: Of each row, for cutting long lists.
        self.cut_seeds = [self.results[row[0]].member.seed("cut") for row in self.rows]
        seeds = [member.seed("dropout") for member in members]
        self._dropout_seeds = torch.tensor(seeds, device=self.device)
        self.objective = Objective(
            [member.loss for member in members],
            self.training["reduction"],
            self.pairs,
            self.row_of,
            [member.seed("loss") for member in members],
        )
        self.captured = self._steps_to_capture()
        self._set_rates()

    def _built(self, members: Sequence[Member], streams: Sequence[torch.Generator]) -> nn.Module:
        """The scorers of members, whose weights are drawn from ``streams``."""
        settings = models.of_stack([member.model for member in members])
        return models.build(settings, self.data.train.n_features, streams)

    def _set_rates(self) -> None:
        rates = [r.member.rate * r.pace.factor for r in (self.results[n] for n in self.active)]
        self.optimiser.set_rates(rates)

    def _epoch(self, step_done: Callable[[], None]) -> np.ndarray:
        """One pass over the training queries; the mean objective of each active model."""
        size = self.training["batch_queries"]
        n_queries = self.data.train.n_queries
        if self.under_way is None:
            tolerant = any(member.training["tolerance"] for member in self._members)
            before = _flat(self.parameters) if tolerant else None
            self.under_way = UnderWay(self._order(), 0, np.zeros(len(self.active)), before)
        now = self.under_way
        steps = -(-n_queries // size)
        self.model.train()
        began = time.perf_counter() - now.seconds
        with self._threads():
            while now.step < steps:
                ahead = min(steps - now.step, 1 if self.captured is None else BLOCK)
                queries = [
                    now.order[:, step * size : (step + 1) * size]
                    for step in range(now.step, now.step + ahead)
                ]
                for objectives in self._steps(queries, now.step + 1):
                    now.step += 1
                    now.total += objectives
                now.seconds = time.perf_counter() - began
                step_done()
        return now.total / steps

    def _order(self) -> np.ndarray:
        """The queries of each row in the order of the epoch that begins or is under way."""
        members = [self.results[row[0]].member for row in self.rows]
        queries = self.data.train.n_queries
        return np.stack([member.order(self.epoch, queries) for member in members])

    def _number(self, step: int) -> int:
        """The number of a step of this epoch among those of all, from 1."""
        return self.epoch * -(-self.data.train.n_queries // self.training["batch_queries"]) + step

    @property
    def _members(self) -> list[Member]:
        """The members whose models are in training, in their order."""
        return [self.results[number].member for number in self.active]

    @property
    def _shared(self) -> bool:
        """Whether the models of a row are computed in one product, so that they leave together."""
        equal = len({len(row) for row in self.rows}) == 1
        return equal and getattr(self.model, "shares_documents", False)

    def _threads(self) -> AbstractContextManager[None]:
        """Within it PyTorch keeps to one thread where compiled loops do most of a step."""
        if self._compiled and self.training["precision"] == "float32":
            return steps_in_loops()
        return nullcontext()

    @property
    def _compiled(self) -> bool:
        """Whether compiled loops compute the layers of the scorer."""
        return getattr(self.model, "compiled", False)

    def _steps(self, queries: Sequence[np.ndarray], first: int) -> Iterable[np.ndarray]:
        """Steps with ``queries`` ``[G, B]`` each, and the models' objectives in each of them.

        Captured steps whose objectives are not finite are taken again, one by one, from the state
        before the first.
        """
        if self.captured is not None:
            before = self._copied_state()
            doing = f"training on batches of {queries[0].size} queries"
            with naming_memory(doing, self.memory_remedy):
                objectives = self.captured.run(queries, self._number(first), self._drawn)
            if np.isfinite(objectives[:, self._unfinished]).all():
                return objectives
            self._return_to(before)
        return (self._step(own, number) for number, own in enumerate(queries, first))

    def _drawn(self, queries: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
        """The documents of queries, see :meth:`Feeder.drawn`."""
        documents, lengths = self.feeder.drawn(queries, self.cut_seeds, step)
        self.pairs += np.square(lengths).sum(1)[self.row_of].sum()
        return documents, lengths

    @property
    def _state(self) -> list[Tensor]:
        """The tensors that a step changes."""
        return [*self.model.state_dict().values(), *self.optimiser.memory().values()]

    def _copied_state(self) -> tuple[list[Tensor], np.ndarray]:
        """Copies of all that a step changes."""
        return [value.clone() for value in self._state], self.pairs.copy()

    def _return_to(self, copied: tuple[list[Tensor], np.ndarray]) -> None:
        """Go back to the state that was copied."""
        for value, before in zip(self._state, copied[0], strict=True):
            value.copy_(before)
        self.pairs[:] = copied[1]

    def _steps_to_capture(self) -> CapturedSteps | None:
        """The steps as CUDA graphs; None where they cannot be captured."""
        feeder = self.feeder
        if (
            device_of(self.parameters[0]) != "cuda"
            or not (has_triton() and feeder.resident)
            or feeder.padded
            or feeder.weights is not None
            or not getattr(self.model, "capturable", False)
        ):
            return None
        lengths = longest_lengths(feeder.lengths, self.training)
        largest = int(lengths.sum()), int(lengths.max())
        longest = power_of_two(largest[1])
        if not all(
            can_be_captured(member.loss, len(lengths), longest, self.dtype, self.device)
            for member in self._members
        ):
            return None
        return CapturedSteps(feeder, self._captured_step, len(self.active), largest,
                             use_graphs=self.device.type == "cuda")  # fmt: skip

    def _captured_step(self, inputs: Inputs) -> Tensor:
        """The operations of a step on the device; the models' objectives, float64 ``[M]``."""
        G, N = inputs.index.shape
        index = inputs.index.flatten()
        documents = self.feeder.features.index_select(0, index).to(self.dtype).view(G, N, -1)
        labels = self.feeder.labels.index_select(0, index).view(G, N)
        real, own = inputs.real, self._rows_on_device
        if len(self.row_of) > G:
            real = real.index_select(0, own)
            if not self._shared:
                documents = documents.index_select(0, own)
        with precision.products(self.training["precision"], self.device):
            counters = Counters.of_models(self._dropout_seeds, inputs.number, inputs.spans.shape[1])
            passed = forward(
                self.model,
                self.parameters,
                documents,
                real,
                inputs.lists(own),
                counters,
                self.dtype,
            )
        scores = passed.scores.masked_fill(~real, 0.0)
        values = self.objective.captured(scores, labels, inputs)
        with precision.products(self.training["precision"], self.device, backward=True):
            gradients = passed.gradients(values)
        self.optimiser.step(gradients)
        return _objectives(values, scores)

    def _step(self, queries: np.ndarray, number: int) -> np.ndarray:
        """Draw the batch of ``queries`` ``[G, B]``, update the models, return their objectives."""
        among_all = self._number(number)
        batch = self.feeder.draw(queries, self.cut_seeds, among_all)
        doing = f"training on {int(batch.lengths.sum())} documents of {queries.size} queries"
        with naming_memory(doing, self.memory_remedy):
            passed = self._forward(batch, among_all)
            values = self.objective(passed.scores, batch, among_all)
            read = reading(_objectives(values, passed.scores))
            with precision.products(self.training["precision"], self.device, backward=True):
                gradients = passed.gradients(values)  # a GPU still computes the values meanwhile
            objectives = read()
            self._check_finite(objectives, passed.scores, batch, number)
            self.optimiser.step(gradients)
        return objectives

    def _forward(self, batch: Batch, step: int) -> Forward:
        """The scores ``[M, N]`` of a batch, for differentiation."""
        rows, spans = batch.rows, batch.spans
        # Compiled loops read documents from their table; a copy would pass memory twice.
        documents = batch.documents if self._compiled else batch.features
        if len(self.row_of) > len(self.rows) and not self._shared:
            own = on_device(self.row_of, self.device)
            if isinstance(documents, Documents):
                documents = documents.of_models(self.row_of)
            else:
                documents = documents.index_select(0, own)
            rows = None if rows is None else rows.index_select(0, own)
            spans = spans[self.row_of]
        counters = None
        if getattr(self.model, "dropout", 0):
            number = torch.tensor([step], device=self.device)
            counters = Counters.of_models(self._dropout_seeds, number, spans.shape[1])
        with precision.products(self.training["precision"], self.device):
            return forward(
                self.model, self.parameters, documents, rows, spans, counters, self.dtype
            )

    def _close_epoch(self, losses: np.ndarray) -> None:
        """Validate, record, keep weights, change learning rates, draw weights anew, stop."""
        began = time.perf_counter()
        self.epoch += 1
        ended, self.under_way = self.under_way, None
        assert ended is not None
        self.model.eval()
        metrics = {}
        for column, (lists, evaluator) in self.watched.items():
            values = evaluator(self._scores(lists))
            metrics[column] = _mean(next(iter(values.values())))
        moved = None
        if ended.before is not None:
            moved = (_flat(self.parameters) - ended.before).norm(dim=1).tolist()
        active = self.active
        seconds = (ended.seconds + time.perf_counter() - began) / len(active)
        trained, better = [], []
        for model, number in enumerate(active):
            result = self.results[number]
            if result.over:
                continue
            training = result.member.training
            converged = moved is not None and moved[model] <= training["tolerance"]
            own = {column: float(values[model]) for column, values in metrics.items()}
            self._note(result, float(losses[model]), own, seconds, converged)
            trained.append((model, result))
            best = training["keep"] == "best"
            if result.best_epoch == self.epoch if best else result.over:
                better.append((model, result))
        self._keep(better)
        self._monitor(trained)
        self._restart(trained)
        self.rows = self._left()
        if len(self.active) < len(active):
            self._leave(active)
        elif any(m.training["schedule"] or m.training["restart_after"] for m in self._members):
            self._set_rates()

    def _keep(self, better: Sequence[tuple[int, Trained]]) -> None:
        """Keep the weights of models; a GPU's are all copied at once."""
        if not better:
            return
        state = {name: value.detach().cpu() for name, value in self.model.state_dict().items()}
        for model, result in better:
            result.state = {
                name: value[model : model + 1].clone().contiguous() for name, value in state.items()
            }

    def _left(self) -> list[list[int]]:
        """The models of each row that stay in the stack."""
        left = [[number for number in row if not self.results[number].over] for row in self.rows]
        if self.captured is not None and sum(map(len, left)) > WORTH_KEEPING * len(self.active):
            return self.rows
        pairs = zip(self.rows, left, strict=True)
        return [row if self._shared else own for row, own in pairs if own]

    @property
    def _unfinished(self) -> list[int]:
        """The models in training that have not finished."""
        return [model for model, n in enumerate(self.active) if not self.results[n].over]

    def _note(
        self,
        result: Trained,
        loss: float,
        metrics: Mapping[str, float],
        seconds: float,
        converged: bool,
    ) -> None:
        """Add an epoch to the history of a model, and decide whether it was the last."""
        result.epochs = self.epoch
        training = result.member.training
        value = metrics[f"{training['select_on']}_metric"]
        if value > result.best_metric:
            result.best_metric, result.best_epoch = value, self.epoch
        result.history.append(
            {"epoch": self.epoch, "train_loss": loss, **metrics, "seconds": seconds}
        )
        result.pace.after_epoch(loss, training["schedule"])
        patience = training["patience"]
        stale = patience is not None and self.epoch - result.best_epoch >= patience
        result.finished = converged or stale

    def _monitor(self, trained: Sequence[tuple[int, Trained]]) -> None:
        """Add the quantities that are due to the history of models that trained in this epoch."""
        due: dict[str, list[tuple[int, Trained]]] = {}
        for model, result in trained:
            settings = result.member.training["monitor"]
            if monitors.due(settings, self.epoch, result.over):
                due.setdefault(repr(settings["quantities"]), []).append((model, result))
        for group in due.values():
            quantities = group[0][1].member.training["monitor"]["quantities"]
            values = self._watched([model for model, _ in group], quantities)
            for place, (_, result) in enumerate(group):
                result.history[-1] |= {name: float(value[place]) for name, value in values.items()}

    def _watched(
        self, models: list[int], quantities: Sequence[Mapping[str, Any]]
    ) -> dict[str, np.ndarray]:
        """Quantities of these models; see :func:`.monitors.watch`."""

        members = self._members
        loss_settings = [members[model].loss for model in models]
        return monitors.watch(
            quantities, self.data, lambda lists: self._scores(lists)[models], loss_settings
        )

    def _scores(self, lists: RankedLists) -> Tensor:
        """The scores ``[M, N]`` of a split, which stays on the device for the next time."""
        if id(lists) not in self._feeders:
            self._feeders[id(lists)] = Feeder(lists, self.dtype, self.device)
        return score_parts(self.model, self._feeders[id(lists)])

    def _restart(self, trained: Sequence[tuple[int, Trained]]) -> None:
        """Draw the weights of models anew whose training loss no longer falls."""
        for model, result in trained:
            restart_after = result.member.training["restart_after"]
            if result.over or not result.pace.gone_stale(restart_after):
                continue
            result.pace = result.pace.drawn_anew()
            stream = torch_stream(*result.member.names("init"), result.pace.draws)
            fresh = self._built([result.member], [stream])
            state = self.model.state_dict()
            for name, value in fresh.state_dict().items():
                state[name][model] = value[0].to(state[name])
            self.optimiser.forget(model)

    def _leave(self, before: Sequence[int]) -> None:
        """Take models out that are no longer active; ``before`` names those of the epoch before."""
        kept = [model for model, number in enumerate(before) if number in set(self.active)]
        if not kept:
            return
        state = {name: value[kept] for name, value in self.model.state_dict().items()}
        memory = {name: value[kept] for name, value in self.optimiser.memory().items()}
        self._rebuild(state, memory)

    def _rebuild(self, state: Mapping[str, Tensor], memory: Mapping[str, Tensor]) -> None:
        """A model of the active members alone, with these weights and past gradients."""
        model = self._built(self._members, [torch.Generator() for _ in self.active])
        model.to(self.dtype).load_state_dict(dict(state))
        self._set_up(model)
        for name, value in self.optimiser.memory().items():
            value.copy_(memory[name])

    def _final_objectives(self) -> None:
        """The objective of every kept model on the whole training set, to compare restarts by."""
        results = [
            result
            for result in self.results
            if result.member.training["restarts"] > 1 and result.member.request not in self.failed
        ]
        if not results:
            return
        layout = Layout.of(self.data.train, self.dtype, torch.device("cpu"))
        streams = [torch.Generator() for _ in results]
        model = self._built([result.member for result in results], streams)
        states = [result.state for result in results]
        model.to(self.device, self.dtype).load_state_dict(
            {name: torch.cat([s[name] for s in states]) for name in states[0]}
        )
        scores = score(model, self.data.train, self.dtype, self.device)
        with torch.no_grad():
            for number, result in enumerate(results):
                seeds = [result.member.seed("objective")]
                alone = Objective([result.member.loss], "mean", seeds=seeds)
                result.objective = float(alone(scores[number : number + 1], layout))

    def _check_finite(
        self, objectives: np.ndarray, scores: Tensor, batch: Batch, step: int
    ) -> None:
        """Let the runs of models fail whose loss is not finite.

        Raises:
            NotFiniteError: no other run has a model in training.
        """
        if np.isfinite(objectives).all():
            return
        for model, number in enumerate(self.active):
            result = self.results[number]
            if result.over or np.isfinite(objectives[model]):
                continue
            error = self._not_finite(model, float(objectives[model]), scores[model], batch, step)
            self.failed[result.member.request] = error
            for other in self.members_of(result.member.request):
                self.results[other].finished = True
            if not self._unfinished:
                raise error

    def _not_finite(
        self, model: int, objective: float, scores: Tensor, batch: Batch, step: int
    ) -> NotFiniteError:
        """The error of a model whose ``objective`` is not finite, with its ``scores`` ``[N]``."""
        member, row = self._members[model], self.row_of[model]
        starts, lengths = batch.starts[row], batch.lengths[row]
        places = torch.from_numpy(concatenated_ranges(starts, lengths))
        ids = np.asarray(self.data.train.query_ids)[batch.queries[row]]
        return NotFiniteError(
            f"the loss is not finite in epoch {self.epoch + 1}",
            {
                "query_ids": torch.from_numpy(np.array(ids, dtype=np.int64)),
                "lengths": torch.from_numpy(np.array(lengths)),
                "scores": scores.detach().cpu()[places],
                "labels": batch.labels[row].cpu()[places],
                "features": batch.features[row].cpu()[places],
            },
            {
                **asdict(member),
                "rate": member.rate,
                "epoch": self.epoch + 1,
                "step": step,
                "objective": repr(objective),
            },
        )


def longest_lengths(lengths: np.ndarray, training: Mapping[str, Any]) -> np.ndarray:
    """The documents of the queries of the largest step that there may be, ascending."""
    limit = training["max_documents"] or np.iinfo(np.int64).max
    return np.sort(np.minimum(lengths, limit))[-training["batch_queries"] :]


def position(saved: Saved) -> tuple[Any, ...]:
    """How far training had come; what is saved at the same position can go on in one stack."""
    under_way = saved.record["under_way"]
    step = under_way and under_way["step"]
    return saved.record["epoch"], step, "before" in saved.tensors


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean ``[M]`` of values ``[M, Q]`` without empty queries; NaN if there are no queries."""
    with np.errstate(invalid="ignore"):  # a model of a run that has failed has no values
        return np.nansum(values, axis=1) / (~np.isnan(values)).sum(axis=1)


def _objectives(values: Tensor, scores: Tensor) -> Tensor:
    """The objectives ``[M]`` in float64, NaN for models with ``scores`` ``[M, N]`` that are not
    finite, of which some losses make a finite value."""
    sums = scores.detach().sum(1, dtype=torch.float64)
    return torch.add(values.detach().double(), sums, alpha=0)


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _flat(parameters: Sequence[Tensor]) -> Tensor:
    return torch.cat([parameter.detach().flatten(1) for parameter in parameters], dim=1)
