"""Training steps that a GPU repeats without the host's help: CUDA graphs of whole steps.

A step launches hundreds of small operations, which takes the host longer than the GPU needs for
them. Here the host writes what differs from step to step, the queries and their documents, into one
array, and the GPU replays all operations of a step from it: documents, forward pass, losses,
backward pass, update. Graphs have fixed shapes, so documents are padded to one of few numbers.
Objectives are looked at once in a while; if one is not finite, the steps since the last look are
repeated one by one from the weights of that time, to find out where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from directrank.learners.neural.batches import Feeder
from directrank.lists.flat import DeviceFlat

#: Steps between two looks at the objectives.
BLOCK = 64

#: The numbers of documents to which steps are padded are multiples of their largest over this one,
#: but of no fewer than the second.
SIZES, LEAST = 32, 32


@dataclass(frozen=True)
class Inputs:
    """What differs from step to step, on the device; G rows of documents serve M models.

    Attributes:
        index: int64 ``[G, N]``, the document in each place; padding is last.
        spans: int64 ``[G, B, 2]``, where each query begins and ends in its row.
        relevant: int64 ``[G]``, queries with a relevant document.
        number: int64 ``[1]``, of the step.
        longest: no query has more documents.
    """

    index: Tensor
    spans: Tensor
    relevant: Tensor
    number: Tensor
    longest: int

    @property
    def real(self) -> Tensor:
        """Whether a place has a document, bool ``[G, N]``."""
        places = torch.arange(self.index.shape[1], device=self.index.device)
        return places < self.spans[:, -1, 1:]

    def lists(self, rows: Tensor) -> DeviceFlat:
        """The lists of models that are in these ``rows`` ``[M]``, in their scores ``[M × N]``."""
        N = self.index.shape[1]
        first = N * torch.arange(len(rows), device=rows.device)
        spans = self.spans.index_select(0, rows) + first[:, None, None]
        return DeviceFlat(spans.flatten(0, 1), self.longest, len(rows) * N)


#: Gives the documents of queries ``[G, B]`` in a step, as :meth:`Feeder.drawn` does.
Draw = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]


class Step(Protocol):
    """The operations of a step."""

    def __call__(self, inputs: Inputs) -> Tensor:
        """Update the models and return their objectives, float64 ``[M]``."""


@dataclass
class _Graph:
    """The step of one shape.

    Attributes:
        given: its inputs, int64, in one array.
        graph: its operations, once they have been captured.
    """

    given: Tensor
    graph: torch.cuda.CUDAGraph | None = None


@dataclass
class CapturedSteps:
    """The steps of a stack of models, one graph for each shape that occurs.

    Args:
        feeder: of the training data, whose features are on the device.
        step: a step's operations; it is first run without a graph, and captured when its shape
            occurs again.
        models: M.
        largest: the largest numbers of documents of a step and of a query.
        use_graphs: False runs the same operations one by one.
    """

    feeder: Feeder
    step: Step
    models: int
    largest: tuple[int, int]
    use_graphs: bool = True
    _graphs: dict[tuple[int, ...], _Graph] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        device = self.feeder.device
        self._objectives = torch.zeros(BLOCK, self.models, dtype=torch.float64, device=device)
        self._place = torch.zeros(1, dtype=torch.int64, device=device)
        self._pool = torch.cuda.graph_pool_handle() if self.use_graphs else None

    def run(self, queries: Sequence[np.ndarray], first: int, draw: Draw) -> np.ndarray:
        """Take a block of steps; float64 ``[steps, M]``, the objectives.

        Args:
            queries: int ``[G, B]`` of each step, :data:`BLOCK` at most.
            first: the number of the first step.
            draw: gives the documents of queries.
        """
        self._place.zero_()
        for number, own in enumerate(queries, first):
            self._take(number, own, *draw(own, number))
        return self._objectives[: len(queries)].cpu().numpy()

    def _take(
        self, number: int, queries: np.ndarray, documents: np.ndarray, lengths: np.ndarray
    ) -> None:
        """One step."""
        G, B = queries.shape
        totals = lengths.sum(1)
        N = _rounded_up(int(totals.max()), self.largest[0])
        longest = min(power_of_two(int(lengths.max())), power_of_two(self.largest[1]))
        key = G, B, N, longest
        known = key in self._graphs
        if not known:
            size, device = G * (N + 2 * B + 1) + 1, self.feeder.device
            self._graphs[key] = _Graph(torch.zeros(size, dtype=torch.int64, device=device))
        graph = self._graphs[key]
        numbers = self._packed(number, queries, documents, lengths, N)
        if graph.given.is_cuda:
            numbers = numbers.pin_memory()
        graph.given.copy_(numbers, non_blocking=True)
        if not (known and self.use_graphs):
            self._operations(graph.given, key)
            return
        if graph.graph is None:
            graph.graph = torch.cuda.CUDAGraph()
            # Libraries may load code at this point, which is harmless.
            with torch.cuda.graph(graph.graph, pool=self._pool, capture_error_mode="relaxed"):
                self._operations(graph.given, key)
        graph.graph.replay()

    def _packed(
        self, number: int, queries: np.ndarray, documents: np.ndarray, lengths: np.ndarray, N: int
    ) -> Tensor:
        """The inputs of a step in one array."""
        G = len(queries)
        ends = lengths.cumsum(1)
        index = np.zeros((G, N), np.int64)
        index[np.arange(N) < ends[:, -1:]] = documents
        spans = np.stack([ends - lengths, ends], axis=2)
        relevant = self.feeder.relevant_of(queries, documents, lengths)
        return torch.from_numpy(np.concatenate([index.ravel(), spans.ravel(), relevant, [number]]))

    def _operations(self, given: Tensor, key: tuple[int, ...]) -> None:
        """All operations of a step, and a note of its objectives."""
        G, B, N, longest = key
        index, spans, relevant, number = given.split([G * N, G * B * 2, G, 1])
        inputs = Inputs(index.view(G, N), spans.view(G, B, 2), relevant, number, longest)
        objectives = self.step(inputs)
        self._objectives.index_copy_(0, self._place, objectives[None])
        self._place += 1


def _rounded_up(number: int, largest: int) -> int:
    """A number of documents rounded up to one of about :data:`SIZES`."""
    unit = max(power_of_two(largest) // SIZES, LEAST)
    return -(-number // unit) * unit


def power_of_two(number: int) -> int:
    """The least power of two that is as large."""
    return 1 << max(number - 1, 0).bit_length()
