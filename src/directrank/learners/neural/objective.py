"""The training objective of a stack of models, from the losses of the lists of a batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank import losses
from directrank.learners.neural.batches import Layout, uniform_by_document
from directrank.learners.neural.captured import Inputs
from directrank.lists.buckets import buckets, small_call
from directrank.lists.devices import on_device
from directrank.lists.draws import Counters
from directrank.lists.flat import DeviceFlat, PaddingNeededError
from directrank.lists.inputs import examined_before
from directrank.lists.packed import concatenated_ranges
from directrank.system.errors import ConfigError

#: Captured steps have no more pairs of documents than this for a loss of padded lists, because all
#: are padded to the longest that there may be; other steps pad groups of similar lists.
PADDED_PAIRS = 1 << 22


@dataclass(frozen=True)
class Call:
    """One call of a loss for several models of a stack.

    Attributes:
        models: int ``[C]``, their positions.
        loss: the loss with the hyper-parameters that these models share.
        varied: hyper-parameters in which they differ, float64 ``[C]`` each.
        flat: whether the loss accepts flat lists.
        draws: whether the loss draws from the models' random streams.
    """

    models: np.ndarray
    loss: Callable[..., Tensor]
    varied: Mapping[str, Tensor] = field(default_factory=dict)
    flat: bool = False
    draws: bool = False


@dataclass(frozen=True)
class _OnDevice:
    """What a call of an objective needs in captured steps, on the device.

    Attributes:
        models, rows, seeds: int64 ``[C]``, the positions of its models, the rows of their
            documents, and the seeds of what they draw.
        varied: the hyper-parameters in which its models differ.
        padded: whether the loss has no kernel for flat lists there.
    """

    models: Tensor
    rows: Tensor
    seeds: Tensor
    varied: Mapping[str, Tensor]
    padded: bool


@dataclass
class Objective:
    """The losses of a stack of models, and the reduction over the queries of a batch.

    Attributes:
        settings: one loss mapping per model (``name`` and hyper-parameters).
        reduction: ``"mean"``, the sum over all queries divided by the number of those that have a
            relevant document, or ``"sum"``.
        pairs: the number of pairs of documents within lists in all calls so far, without and with
            padding; float64 ``[2]``.
        rows: the row of the layout that each model's documents are in, int ``[M]``; None if the
            models are spread evenly over the rows, in their order.
        seeds: of each model, for losses that draw.

    The first call examines settings and labels, as every loss does; the others are of the same data
    and do not.
    """

    settings: Sequence[Mapping[str, Any]]
    reduction: str
    pairs: np.ndarray = field(default_factory=lambda: np.zeros(2))
    rows: np.ndarray | None = None
    seeds: Sequence[int] = ()
    _examined: bool = field(default=False, init=False)
    _on_device: list[_OnDevice] = field(default_factory=list, init=False)

    def __call__(self, scores: Tensor, layout: Layout, step: int = 0) -> Tensor:
        """The objective of each model, ``[M]``, for its ``scores`` ``[M, N]`` in ``layout``.

        Losses that draw have other numbers in each ``step``.
        """
        with examined_before() if self._examined else nullcontext():
            parts = [self._values(call, scores, layout, step) for call in self._calls]
        if not self._examined and scores.requires_grad:
            self._refuse_without_gradient(parts)
        self._examined = True
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate([call.models for call in self._calls]))
        return torch.cat(parts)[on_device(order, scores.device)]

    def _values(self, call: Call, scores: Tensor, layout: Layout, step: int) -> Tensor:
        """The objective of the models of one call."""
        rows = self.rows
        if rows is None:
            rows = np.arange(len(scores)) // (len(scores) // len(layout.labels))
        lists = _ListsOfModels(call.models, rows[call.models], scores, layout)
        # A single list per model has the layout of padded lists.
        flat = call.flat and scores.device.type == "cpu" and len(lists.lengths) > lists.models
        groups = lists.all_together() if flat else lists.groups()
        counters = self._counters(call, lists, step) if call.draws else None
        values, order = [], []
        for group in groups:
            lengths = lists.lengths[group]
            varied: dict[str, Any] = {
                name: _of_lists(value, group, lists) for name, value in call.varied.items()
            }
            weights = lists.weights(group)
            if flat:
                values.append(call.loss(*lists.flat(), lengths=lengths, weights=weights, **varied))
            else:
                if counters is not None:
                    varied["generator"] = counters.of(on_device(group, scores.device))
                values.append(call.loss(*lists.padded(group), weights=weights, **varied))
            pairs = lengths @ lengths
            self.pairs += pairs, pairs if flat else len(group) * int(lengths.max()) ** 2
            order.append(group)
        total = lists.per_model(values, order)
        if self.reduction == "sum":
            return total
        return total / lists.relevant()

    def _refuse_without_gradient(self, values: Sequence[Tensor]) -> None:
        """Raise ConfigError if a loss does not depend differentiably on the scores."""
        for call, own in zip(self._calls, values, strict=True):
            if not own.requires_grad:
                raise ConfigError(
                    f"loss '{self.settings[call.models[0]]['name']}' has no gradient",
                    "compute it from the scores by differentiable operations: ranks of argsort, "
                    "comparisons and detached tensors have none",
                )

    def captured(self, scores: Tensor, labels: Tensor, inputs: Inputs) -> Tensor:
        """As a call, without an operation that a CUDA graph could not repeat.

        Args:
            scores: ``[M, N]``; they are 0 at padding.
            labels: ``[G, N]``.
            inputs: of a step.
        """
        if not self._on_device:
            self._on_device = [self._moved(call, scores, inputs.longest) for call in self._calls]
        known = self._on_device
        if len(known) == 1:
            return self._captured_values(self._calls[0], known[0], scores, labels, inputs)
        # All are brought into the order of the calls at once: the gradient of a selection is as
        # large as all scores.
        models = torch.cat([own.models for own in known])
        ordered = scores.index_select(0, models).split([len(own.models) for own in known])
        parts = [
            self._captured_values(call, own, some, labels, inputs)
            for call, own, some in zip(self._calls, known, ordered, strict=True)
        ]
        return torch.empty_like(scores[:, 0]).index_copy(0, models, torch.cat(parts))

    def _captured_values(
        self, call: Call, known: _OnDevice, scores: Tensor, labels: Tensor, inputs: Inputs
    ) -> Tensor:
        """The objective of the models of one call, of which the ``scores`` ``[C, N]`` are."""
        B = inputs.spans.shape[1]
        varied: dict[str, Any] = {
            name: value.to(scores.dtype).repeat_interleave(B)[:, None]
            for name, value in known.varied.items()
        }
        if call.draws:
            varied["generator"] = Counters.of_models(
                known.seeds, inputs.number, B, uniform_by_document
            )
        labels = labels.index_select(0, known.rows).flatten()
        lists = inputs.lists(known.rows)
        with examined_before():
            if known.padded:
                values = call.loss(*_padded(scores.flatten(), labels, lists), **varied)
            else:
                values = call.loss(scores.flatten(), labels, lists, **varied)
        total = values.view(-1, B).sum(1)
        if self.reduction == "sum":
            return total
        return total / inputs.relevant.index_select(0, known.rows).clamp_min(1)

    def _moved(self, call: Call, scores: Tensor, longest: int) -> _OnDevice:
        """What a call needs, on the device of the scores."""
        device = scores.device
        rows = np.arange(len(self.settings)) if self.rows is None else self.rows
        return _OnDevice(
            on_device(call.models, device),
            on_device(rows[call.models], device),
            self._seeds(call, device),
            {name: value.to(device) for name, value in call.varied.items()},
            needs_padding(self.settings[call.models[0]], longest, scores.dtype, device),
        )

    def _counters(self, call: Call, lists: _ListsOfModels, step: int) -> Counters:
        """The random numbers of the lists of a call."""
        device = lists.scores.device
        seeds = self._seeds(call, device)
        count = len(lists.lengths) // lists.models
        return Counters.of_models(
            seeds, torch.tensor([step], device=device), count, uniform_by_document
        )

    def _seeds(self, call: Call, device: torch.device) -> Tensor:
        """The seeds of the models of a call, int64 ``[C]``."""
        seeds = np.array([self.seeds[model] for model in call.models], np.int64)
        return on_device(seeds, device)

    @cached_property
    def _calls(self) -> list[Call]:
        """The smallest number of calls that the losses allow."""
        together: dict[tuple[str, ...], list[int]] = {}
        for model in range(len(self.settings)):
            key = (repr(self._shared(model)), *sorted(self.settings[model]))
            together.setdefault(key, []).append(model)
        calls = []
        for models in together.values():
            first = self.settings[models[0]]
            options = self._shared(models[0])
            loss = losses.get(options.pop("name"))
            needs = losses.needs_of(first["name"])
            varied = {
                name: torch.tensor([self.settings[m][name] for m in models], dtype=torch.float64)
                for name in sorted(first.keys() - options.keys() - {"name"})
            }
            called = partial(loss, **options)
            draws = needs.random(first)
            calls.append(Call(np.array(models), called, varied, needs.flat and not draws, draws))
        return calls

    def _shared(self, model: int) -> dict[str, Any]:
        """The settings that models of one call must share, in order: those without tensors."""
        settings = self.settings[model]
        needs = losses.needs_of(settings["name"])
        per_list = () if needs.random(settings) else needs.per_list
        return {name: settings[name] for name in sorted(settings) if name not in per_list}


def needs_padding(
    settings: Mapping[str, Any], longest: int, dtype: torch.dtype, device: torch.device
) -> bool:
    """Whether a loss has no kernel on a GPU for lists whose lengths only the device knows.

    Args:
        settings: its name and hyper-parameters.
        longest: no list has more documents.
        dtype: the type of scores.
        device: the GPU.
    """
    return _needs_padding(json.dumps(settings, sort_keys=True), longest, dtype, device)


@cache
def _needs_padding(text: str, longest: int, dtype: torch.dtype, device: torch.device) -> bool:
    settings = json.loads(text)
    options = {name: value for name, value in settings.items() if name != "name"}
    numbers, ends = torch.zeros(1, dtype=dtype, device=device), torch.arange(2, device=device)
    if losses.needs_of(settings["name"]).random(settings):
        options["generator"] = Counters.of_models(ends[:1], ends[:1], 1, uniform_by_document)
    try:
        with examined_before():
            lists = DeviceFlat(ends[None], longest, 1)
            losses.get(settings["name"])(numbers, numbers, lists, **options)
    except PaddingNeededError:
        return True
    return False


def can_be_captured(
    settings: Mapping[str, Any],
    queries: int,
    longest: int,
    dtype: torch.dtype,
    device: torch.device,
) -> bool:
    """Whether steps with a loss can be captured on a GPU: whether it waits for nothing there.

    Args:
        settings: its name and hyper-parameters.
        queries: in a step.
        longest: no list has more documents.
        dtype: the type of scores.
        device: the GPU.
    """
    text = json.dumps(settings, sort_keys=True)
    if _needs_padding(text, longest, dtype, device) and queries * longest**2 > PADDED_PAIRS:
        return False
    return _waits_for_nothing(text, longest, dtype, device)


@cache
def _waits_for_nothing(text: str, longest: int, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether a loss of two lists of ``longest`` documents and its gradient wait for nothing."""
    N = 2 * longest
    scores = torch.zeros(1, N, dtype=dtype, device=device, requires_grad=True)
    labels = (torch.arange(N, device=device) % 2).to(dtype)[None]
    spans = torch.tensor([[[0, longest], [longest, N]]], device=device)
    one = torch.ones(1, dtype=torch.int64, device=device)
    inputs = Inputs(torch.arange(N, device=device)[None], spans, one, one, longest)
    objective = Objective([json.loads(text)], "sum", seeds=[0])

    def step() -> None:
        values = objective.captured(scores, labels, inputs)
        if values.requires_grad:
            torch.autograd.grad(values.sum(), scores)

    step()  # what happens once may wait
    if device.type != "cuda":
        return True
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        return False
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    return True


def _padded(scores: Tensor, labels: Tensor, lists: DeviceFlat) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, labels and mask ``[B, L]`` of flat lists, for the longest that there may be."""
    places = torch.arange(lists.longest, device=scores.device)
    starts, ends = lists.spans[:, :1], lists.spans[:, 1:]
    index = (starts + places).clamp_max(len(scores) - 1)
    return _gathered(scores, index), _gathered(labels, index), places < ends - starts


class _ListsOfModels:
    """The lists of some models, model by model, with the positions of their scores and labels.

    Args:
        numbers: int ``[models]``, the positions of the models.
        rows: int ``[models]``, the row of the layout that each one's documents are in.
        scores: ``[M, N]``, of all models.
        layout: of ``[G, N]`` documents.
    """

    def __init__(
        self, numbers: np.ndarray, rows: np.ndarray, scores: Tensor, layout: Layout
    ) -> None:
        self.numbers = numbers
        self.models = len(numbers)
        self.scores = scores
        self.labels = layout.labels
        self.layout = layout
        self.rows = rows
        #: int ``[lists]``
        self.lengths = layout.lengths[self.rows].ravel()

    @cached_property
    def starts(self) -> np.ndarray:
        """The start of each list in the flattened scores, int ``[lists]``."""
        first = self.numbers[:, None] * self.scores.shape[1]
        return (self.layout.starts[self.rows] + first).ravel()

    @cached_property
    def label_starts(self) -> np.ndarray:
        """The start of each list in the flattened labels, int ``[lists]``."""
        first = self.rows[:, None] * self.scores.shape[1]
        return (self.layout.starts[self.rows] + first).ravel()

    def groups(self) -> list[np.ndarray]:
        """Positions of lists that are padded together; in their order if that is all of them."""
        small = small_call(self.scores.device)
        if len(self.lengths) * int(self.lengths.max()) ** 2 > 2 * small:
            groups = buckets(self.lengths, small=small)
            if len(groups) > 1:
                return groups
        return self.all_together()

    def all_together(self) -> list[np.ndarray]:
        """All lists in their order, as one group."""
        return [np.arange(len(self.lengths))]

    def flat(self) -> tuple[Tensor, Tensor]:
        """Scores and labels ``[N]`` of all lists, concatenated."""
        if self.models == len(self.scores) and self.lengths.sum() == self.scores.numel():
            # Nothing is padded or left out, so that each list follows the one before it.
            labels = self.labels
            if len(labels) < len(self.scores):
                labels = labels.index_select(0, torch.from_numpy(self.rows))
            return self.scores.flatten(), labels.flatten()
        index = torch.from_numpy(concatenated_ranges(self.starts, self.lengths))
        scores = self.scores.flatten().index_select(0, index)
        if len(self.labels) < len(self.scores):
            index = torch.from_numpy(concatenated_ranges(self.label_starts, self.lengths))
        return scores, self.labels.flatten().index_select(0, index)

    def padded(self, group: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Scores, labels and mask ``[B, L]`` of a group."""
        device, lengths = self.scores.device, self.lengths[group]
        longest = int(lengths.max())
        if int(lengths.min()) == longest:
            mask = torch.ones(len(lengths), longest, dtype=torch.bool, device=device)
        else:
            mask = torch.arange(longest, device=device) < on_device(lengths, device)[:, None]
        if len(group) == len(self.lengths) == len(self.scores) == self.models:
            # With one list per model, all in one group, the scores already have the right layout.
            scores, labels = self.scores, self.labels
            if scores.shape[1] > longest:
                scores, labels = scores[:, :longest], labels[:, :longest]
            if len(labels) < len(scores):
                labels = labels.index_select(0, on_device(self.rows, device))
            return scores, labels, mask
        places = torch.arange(longest, device=device)
        index = _places(self.starts[group], places, self.scores)
        scores = _gathered(self.scores, index)
        if len(self.labels) < len(self.scores):
            index = _places(self.label_starts[group], places, self.labels)
        return scores, _gathered(self.labels, index), mask

    def weights(self, group: np.ndarray) -> Tensor | None:
        """The factor of the loss of each list of a group; None if all are 1."""
        if self.layout.weights is None:
            return None
        own = self.layout.weights[self.rows].ravel()[group]
        return on_device(own, self.scores.device).to(self.scores.dtype)

    def relevant(self) -> Tensor:
        """The number of lists of each model with a relevant document, at least 1, ``[models]``."""
        return on_device(np.maximum(self.layout.relevant[self.rows], 1), self.labels.device)

    def per_model(self, values: Sequence[Tensor], order: Sequence[np.ndarray]) -> Tensor:
        """The sum ``[models]`` of each model's values, which are of groups in this ``order``."""
        together = values[0]
        if len(values) > 1:
            back = on_device(np.argsort(np.concatenate(order)), self.scores.device)
            together = torch.cat(list(values))[back]
        if len(together) == self.models:  # one list of each
            return together
        return together.view(self.models, -1).sum(1)


def _of_lists(values: Tensor, group: np.ndarray, lists: _ListsOfModels) -> Tensor:
    """The value ``[B, 1]`` of the model of each list of a group, from those of models."""
    own = values.to(lists.scores.dtype)
    if not len(group) == len(lists.lengths) == lists.models:  # one list of each, in their order
        own = own[torch.from_numpy(group // (len(lists.lengths) // lists.models))]
    return on_device(own[:, None].numpy(), lists.scores.device)


def _places(starts: np.ndarray, places: Tensor, values: Tensor) -> Tensor:
    """The positions of ``[B, L]`` in the flattened ``values``; arbitrary beyond a list's end."""
    first = on_device(starts, values.device)[:, None]
    return (first + places).clamp_max_(values.numel() - 1)


def _gathered(values: Tensor, index: Tensor) -> Tensor:
    """The flattened values at an index ``[B, L]``."""
    return values.flatten().index_select(0, index.view(-1)).view(index.shape)
