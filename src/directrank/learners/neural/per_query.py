"""RankNet and LambdaRank with one update per query, as Burges2006 trains them, in compiled passes.

These learners share the specification, random streams, validation, schedules and results of
``neural``, and its code; only the computation of an epoch differs. A network of 500 weights takes
50 microseconds of arithmetic for 50 documents, and the twenty or so tensor operations of a step of
the general engine cost several times that. More than one network of a run is trained in one pass.

``per_query`` trains all losses of the paper as fast as possible. The others are the algorithms that
section 6.1 of the paper times, for RankNet's cost only:

- ``ranknet_v1``, RankNet as it was trained before: both documents of every pair pass through the
  network forwards and backwards, and the weights are updated once per query;
- ``ranknet_v1_each_pair``, the same with an update after every pair;
- ``ranknet_v2``, the paper's speed-up: one force per document, summed over its pairs (section 5),
  n forward passes before it, and n forward and n backward passes after it;
- ``ranknet_v2_stored``, the same without the second forward passes (footnote 3), as activations
  are kept.

The network's passes and a pair's arithmetic are the same code in these four, so that their times
compare the algorithms. ``per_query`` is V2 with both speed-ups of that footnote, activations kept
and exponentials of scores, not of pairs; and its passes are a matrix product per query.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from directrank.kernels import per_query as kernels
from directrank.learners.contract import FitJob, Fitted, Splits
from directrank.learners.neural import fit
from directrank.learners.neural.checkpoints import Checkpoints
from directrank.learners.neural.members import Member
from directrank.learners.neural.restrictions import REMEDY, require_plain_sgd
from directrank.learners.neural.stack import Stack, UnderWay
from directrank.lists.conventions import discount_sums, gains
from directrank.system.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from directrank.models.linear import Linear
    from directrank.models.two_layer import TwoLayer

#: Training settings for which a compiled pass supports only one value.
FIXED: dict[str, Any] = {
    "batch_queries": 1,
    "reduction": "sum",
    "precision": "float32",
    "tolerance": 0,
    "restarts": 1,
}

#: Truncation of the NDCG that is LambdaRank's training cost (paper, section 6.3).
COST_CUTOFF = 10


class PerQueryStack(Stack):
    """A stack whose epochs are compiled passes by forces on documents (V2)."""

    learner = "per_query"
    losses: Mapping[str, Sequence[str]] = {
        "ranknet": (),
        "lambdarank": ("gain",),
        "lambda_family": ("force", "pairs", "margin"),
    }

    def __init__(
        self,
        data: Splits,
        training: Mapping[str, Any],
        members: Sequence[Member],
        selection: Mapping[str, Any],
        device: torch.device,
    ) -> None:
        self.scorer = members[0].model["name"]
        self._check(training, members)
        super().__init__(data, training, members, selection, device)
        self.loss = dict(members[0].loss)
        self.pass_seconds = 0.0
        longest = int(np.max(data.train.lengths))
        self.sums = discount_sums("log2", longest, None)
        self.cut_sums = discount_sums("log2", longest, COST_CUTOFF)
        self._load()

    def _load(self) -> None:
        """Run a pass without a pair, so that it is compiled or loaded before any is timed."""
        one = np.zeros(1, self._numpy)
        document = np.zeros((1, self.data.train.n_features), self._numpy)
        net = (False, document.T.copy(), one.copy(), one.copy(), one, np.zeros(1))
        self._train(document, one, np.array([0, 1]), net)

    def _check(self, training: Mapping[str, Any], members: Sequence[Member]) -> None:
        """Raise :class:`ConfigError` for settings that these passes do not support."""
        if self.scorer not in ("linear", "two_layer") or members[0].model.get("bias"):
            raise ConfigError(
                f"learner '{self.learner}' trains the models linear, without bias, and two_layer",
                REMEDY,
            )
        require_plain_sgd(self.learner, training, FIXED)
        first, *others = [dict(member.loss) for member in members]
        if any(loss != first for loss in others):
            raise ConfigError(f"learner '{self.learner}' trains one loss at a time", REMEDY)
        if first["name"] not in self.losses or not (
            set(first) <= {"name", *self.losses[first["name"]]}
        ):
            raise ConfigError(
                f"learner '{self.learner}' trains {' and '.join(self.losses)}, ranknet and "
                f"lambdarank as the paper has them, not {first}",
                REMEDY,
            )

    @property
    def _numpy(self) -> type[np.floating]:
        types: dict[torch.dtype, type[np.floating]] = {
            torch.float32: np.float32,
            torch.float64: np.float64,
        }
        return types[self.dtype]

    def _epoch(self, step_done: Callable[[], None]) -> np.ndarray:
        """One pass over the training queries; the mean training cost of each active model.

        That of RankNet is its loss (eq. 8), that of all others 1 - NDCG@10 (section 6.3), each
        before the update of its query.
        """
        began = time.perf_counter()
        step_done()  # between epochs the stack can be saved
        queries = self.data.train.n_queries
        order = self._order()
        costs = np.zeros(len(self.active))
        self.pass_seconds = 0.0
        for row in range(len(self.rows)):  # each is drawn alone, because its documents are copied
            models = slice(*np.searchsorted(self.row_of, (row, row + 1)))
            seeds = self.cut_seeds[row : row + 1]
            batch = self.feeder.draw(order[row : row + 1], seeds, self.epoch + 1)
            offsets = np.concatenate([[0], np.cumsum(batch.lengths[0])]).astype(np.int64)
            features, labels = batch.features[0].numpy(), batch.labels[0].numpy()
            self._pass(models, features, labels, offsets, costs[models])
        self.under_way = UnderWay(order, queries, costs, None, time.perf_counter() - began)
        if not np.isfinite(costs).all():
            raise TrainingError(
                f"the loss is not finite in epoch {self.epoch + 1}", "lower the learning rate"
            )
        return costs / queries

    def _pass(
        self,
        models: slice,
        features: np.ndarray,
        labels: np.ndarray,
        offsets: np.ndarray,
        costs: np.ndarray,
    ) -> None:
        """Train neighbouring models on documents ``[N, F]`` in their order, adding to ``costs``."""
        weight, bias, output = (_side_by_side(p[models]) for p in self._layers())
        rates = self.optimiser.rates[models].numpy()
        squash = self.scorer == "two_layer"
        names = {self.results[number].member.loss["name"] for number in self.active[models]}
        if len(names) > 1:
            raise ConfigError(
                f"learner '{self.learner}' trains one loss at a time", "do not tune it"
            )
        net = (squash, weight, bias.reshape(-1), output.reshape(-1), rates, costs)
        began = time.thread_time()
        self._train(features, labels, offsets, net)
        self.pass_seconds += time.thread_time() - began
        for layer, values in zip(self._layers(), (weight, bias, output), strict=True):
            if layer.requires_grad:
                with torch.no_grad():
                    layer[models] = _apart(values, layer[models].shape)

    def _train(
        self,
        features: np.ndarray,
        labels: np.ndarray,
        offsets: np.ndarray,
        net: tuple[Any, ...],
    ) -> None:
        loss = self.loss
        law = {"ranknet": kernels.RANKNET, "lambdarank": kernels.LAMBDARANK}.get(loss["name"])
        if law is None:
            law = kernels.LAWS.index(loss.get("force", "logistic"))
        neighbours, margin = loss.get("pairs") == "neighbours", self._numpy(loss.get("margin", 0.0))
        gained = gains(torch.from_numpy(labels), loss.get("gain", "exp2")).numpy()
        sums = (self.sums, self.cut_sums, COST_CUTOFF)
        kernels.epoch_by_lambdas(
            features, labels, gained, offsets, *sums, law, neighbours, margin, *net
        )

    def _layers(self) -> tuple[Tensor, Tensor, Tensor]:
        """Weights ``[M, F, H]``, biases ``[M, 1, H]`` and output weights ``[M, H, 1]``.

        A linear net has one unit and constants instead of the other two.
        """
        if self.scorer == "two_layer":
            net = cast("TwoLayer", self.model)
            return net.hidden.weight, cast(Tensor, net.hidden.bias), net.output.weight
        weight = cast("Linear", self.model).layer.weight
        nothing = weight.new_zeros(len(weight), 1, 1)
        return weight, nothing, nothing

    def _note(self, result: Any, *measured: Any) -> None:
        super()._note(result, *measured)
        result.history[-1]["pass_seconds"] = self.pass_seconds / len(self.active)


class DocumentsStack(PerQueryStack):
    """A stack whose epochs are V2's passes as in the paper, which recompute activations."""

    learner = "ranknet_v2"
    losses: Mapping[str, Sequence[str]] = {"ranknet": ()}
    stored = False

    def _train(
        self, features: np.ndarray, labels: np.ndarray, offsets: np.ndarray, net: tuple[Any, ...]
    ) -> None:
        kernels.epoch_by_documents(features, labels, offsets, self.stored, *net)


class StoredStack(DocumentsStack):
    """A stack whose epochs are V2's passes with stored activations."""

    learner = "ranknet_v2_stored"
    stored = True


class PairsStack(PerQueryStack):
    """A stack whose epochs are V1's passes, with an update per query."""

    learner = "ranknet_v1"
    losses: Mapping[str, Sequence[str]] = {"ranknet": ()}
    batch = True

    def _train(
        self, features: np.ndarray, labels: np.ndarray, offsets: np.ndarray, net: tuple[Any, ...]
    ) -> None:
        kernels.epoch_by_pairs(features, labels, offsets, self.batch, *net)


class EachPairStack(PairsStack):
    """A stack whose epochs are V1's passes, with an update per pair."""

    learner = "ranknet_v1_each_pair"
    batch = False


def fit_by_lambdas(
    data: Splits,
    settings: Sequence[Mapping[str, Any]],
    jobs: Sequence[FitJob],
    checkpoints: Checkpoints | None = None,
) -> list[Fitted]:
    """The learner ``per_query``; arguments and results are those of :func:`.fit.fit_many`.

    The history has a column ``pass_seconds``: the CPU time of ``seconds`` that the pass itself
    took, without validation and without waiting for other programs.
    """
    return fit.fit_many(data, settings, _on_the_cpu(jobs), checkpoints, PerQueryStack)


def fit_v1(
    data: Splits,
    settings: Sequence[Mapping[str, Any]],
    jobs: Sequence[FitJob],
    checkpoints: Checkpoints | None = None,
) -> list[Fitted]:
    """The learner ``ranknet_v1``; see :func:`fit_by_lambdas`."""
    return fit.fit_many(data, settings, _on_the_cpu(jobs), checkpoints, PairsStack)


def fit_v1_each_pair(
    data: Splits,
    settings: Sequence[Mapping[str, Any]],
    jobs: Sequence[FitJob],
    checkpoints: Checkpoints | None = None,
) -> list[Fitted]:
    """The learner ``ranknet_v1_each_pair``; as :func:`fit_by_lambdas`."""
    return fit.fit_many(data, settings, _on_the_cpu(jobs), checkpoints, EachPairStack)


def fit_v2(
    data: Splits,
    settings: Sequence[Mapping[str, Any]],
    jobs: Sequence[FitJob],
    checkpoints: Checkpoints | None = None,
) -> list[Fitted]:
    """The learner ``ranknet_v2``; as :func:`fit_by_lambdas`."""
    return fit.fit_many(data, settings, _on_the_cpu(jobs), checkpoints, DocumentsStack)


def fit_v2_stored(
    data: Splits,
    settings: Sequence[Mapping[str, Any]],
    jobs: Sequence[FitJob],
    checkpoints: Checkpoints | None = None,
) -> list[Fitted]:
    """The learner ``ranknet_v2_stored``; as :func:`fit_by_lambdas`."""
    return fit.fit_many(data, settings, _on_the_cpu(jobs), checkpoints, StoredStack)


def _on_the_cpu(jobs: Sequence[FitJob]) -> list[FitJob]:
    """The jobs on the CPU, wherever they were to run: there is no such pass for a GPU."""
    return [replace(job, device="cpu") for job in jobs]


def _side_by_side(weights: Tensor) -> np.ndarray:
    """``[M, a, b]`` as a new ``[a, b · M]``: the models' weights next to each other."""
    return weights.detach().permute(1, 2, 0).reshape(weights.shape[1], -1).numpy().copy()


def _apart(values: np.ndarray, shape: torch.Size) -> Tensor:
    """The inverse of :func:`_side_by_side` to ``shape`` ``[M, a, b]``."""
    models, a, b = shape
    return torch.from_numpy(values).view(a, b, models).permute(2, 0, 1)
