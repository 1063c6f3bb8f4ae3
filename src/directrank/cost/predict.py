"""Seconds of a run from its specification, the size of its data and a machine's rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from directrank import learners
from directrank.cost.facts import Facts
from directrank.cost.rates import Rates, at
from directrank.cost.work import Work, work_of
from directrank.learners.neural.fit import complete
from directrank.study.specification import candidates
from directrank.system import schema
from directrank.system.errors import ConfigError

#: A backward pass is two products for each one of the forward pass.
BACKWARD = 3

#: What a composed loss takes as long as, by its relaxation.
COMPOSED = {
    "sigmoid": "approx_ndcg",
    "twin": "twin_ndcg",
    "neural_sort": "neural_ndcg",
    "rank_binomial": "softrank",
}

#: Trees of few documents do not grow all the leaves that they may.
ROWS_OF_A_LEAF = 20

#: Rounds of Sinkhorn scaling at which NeuralNDCG is measured, and what the rest takes in rounds.
ROUNDS, BESIDE_ROUNDS = 30, 10


@dataclass(frozen=True)
class Cost:
    """Seconds of a run by what they are spent on.

    Attributes:
        network: passes over the documents.
        loss: the loss and its gradient.
        steps: what each step and operation takes whatever its size.
        evaluation: validation after each epoch, and the metrics at the end.
        other: trees and learners that are not networks.
        start: the job's process, until it begins.
        epochs: epochs, trees or rounds of all fits together; not seconds.
    """

    network: float = 0.0
    loss: float = 0.0
    steps: float = 0.0
    evaluation: float = 0.0
    other: float = 0.0
    start: float = 0.0
    epochs: float = 0.0

    @property
    def seconds(self) -> float:
        """All seconds together."""
        return sum(astuple(self)[:-1])

    def plus(self, other: Cost) -> Cost:
        """The sum of two costs."""
        return Cost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def times(self, factor: float) -> Cost:
        """This cost several times."""
        return Cost(*(factor * value for value in astuple(self)))


def cost_of(spec: Mapping[str, Any], facts: Facts, rates: Rates) -> Cost:
    """What a run takes at most: every epoch or tree that it is allowed, no fit stopped early.

    Networks: trials × candidates × restarts × epochs × (flops ÷ rate, elements written, the loss of
    every list, operations of each step, validation). Trees: trees × features × (rows × levels,
    leaves). Others: documents × features × rounds.

    Args:
        spec: a validated run.
        facts: the size of its data (of its fold), before its filter and sample.
        rates: of the machine that will train it.

    Raises:
        ConfigError: the rates lack what the run needs.
    """
    facts = facts.as_trained_on(spec)
    learner = learners.get(spec["learner"])
    total = Cost(start=rates.start_seconds)
    plan = list(candidates(spec))
    if not learner.neural:
        for candidate in plan:
            total = total.plus(_other(spec["learner"], candidate["model"], facts, rates))
        total = total.plus(_evaluated(len(spec["evaluation"]), None, "float32", facts, rates))
        return _of_trials(total, spec["trials"], rates)
    fits = spec["trials"] * sum(complete(c["training"])["restarts"] for c in plan)
    for candidate in plan:
        if spec["learner"] in rates.passes:
            total = total.plus(_passes(spec["learner"], candidate, facts, rates))
        else:
            total = total.plus(_network(candidate, fits, facts, rates))
    work = work_of(plan[0]["model"], facts.features)
    precision = _precision(complete(plan[0]["training"]))
    total = total.plus(_evaluated(len(spec["evaluation"]), work, precision, facts, rates))
    return _of_trials(total, spec["trials"], rates)


def _of_trials(total: Cost, trials: int, rates: Rates) -> Cost:
    """``total`` of one trial for all of them; the process starts once."""
    start = Cost(start=rates.start_seconds * (1 - trials))
    return total.times(trials).plus(start)


def _precision(training: Mapping[str, Any]) -> str:
    wanted = training.get("precision", "float32")
    return wanted if wanted != "float32" else training["dtype"]


def _network(spec: Mapping[str, Any], fits_of_run: int, facts: Facts, rates: Rates) -> Cost:
    """One trial of one candidate, all its restarts."""
    training = complete(spec["training"])
    lengths = _drawn(training, facts)
    precision = _precision(training)
    work = work_of(spec["model"], facts.features)
    passed = lengths
    steps = -(-len(lengths) // training["batch_queries"])
    together = min(training["stack"] or fits_of_run, fits_of_run)
    common, own = rates.step_seconds
    per_step = (common + work.operations * rates.operation_seconds) / together + own
    watched = _watched(training, facts)
    epoch = Cost(
        network=BACKWARD * pass_seconds(work, passed, precision, rates),
        loss=loss_seconds(spec["loss"], lengths, rates),
        steps=steps * per_step,
        evaluation=pass_seconds(work, watched, precision, rates)
        + watched.sum() * rates.evaluation_seconds,
        epochs=1,
    )
    fit = epoch.times(training["max_epochs"])
    if training["restarts"] > 1:
        final = pass_seconds(work, lengths, precision, rates)
        fit = fit.plus(Cost(evaluation=final + loss_seconds(spec["loss"], lengths, rates) / 2))
    return fit.times(training["restarts"])


def _drawn(training: Mapping[str, Any], facts: Facts) -> np.ndarray:
    """How long the training lists of an epoch are."""
    limit = training["max_documents"]
    lengths = facts.lengths["train"]
    return lengths if limit is None else np.minimum(lengths, limit)


def _watched(training: Mapping[str, Any], facts: Facts) -> np.ndarray:
    """The lists that are evaluated after each epoch."""
    parts = sorted({"vali", training["select_on"]})
    return np.concatenate([facts.lengths[part] for part in parts])


def _passes(learner: str, spec: Mapping[str, Any], facts: Facts, rates: Rates) -> Cost:
    """One trial of one candidate of a learner that goes query by query."""
    training = complete(spec["training"])
    lengths = _drawn(training, facts).astype(float)
    watched = _watched(training, facts)
    work = work_of(spec["model"], facts.features)
    per_weight, per_pair = rates.passes[learner]
    epoch = Cost(
        network=work.flops([1]) / 2 * lengths.sum() * per_weight,
        loss=(lengths**2).sum() * per_pair,
        evaluation=pass_seconds(work, watched, training["dtype"], rates)
        + watched.sum() * rates.evaluation_seconds,
        epochs=1,
    )
    return epoch.times(training["max_epochs"] * training["restarts"])


def pass_seconds(work: Work, lengths: np.ndarray, precision: str, rates: Rates) -> float:
    """Seconds of a forward pass over lists of ``lengths``, but for its operations' own time."""
    if precision not in rates.products:
        raise ConfigError(f"the rates of '{rates.machine}' lack the precision '{precision}'")
    sums = np.array([lengths.sum(), (lengths.astype(float) ** 2).sum()])
    products = sum(
        float(np.dot(law, sums)) / float(at(rates.products[precision], width))
        for width, law in work.products.items()
    )
    # Backward is about twice forward for elements as for products.
    elements = float(np.dot(work.elements, sums)) * rates.element_seconds / BACKWARD
    return products + elements


def loss_seconds(loss: Mapping[str, Any], lengths: np.ndarray, rates: Rates) -> float:
    """Seconds of a loss and its gradient on lists of ``lengths``."""
    name = loss["name"]
    if name == "composed":
        relaxation = loss["relaxation"]
        name = COMPOSED[relaxation if isinstance(relaxation, str) else relaxation["name"]]
    if name not in rates.lists:
        raise ConfigError(
            f"the rates of '{rates.machine}' lack the loss '{name}'",
            "measure them again: directrank cost --measure FILE",
        )
    seconds = _list_seconds(_points(rates.lists[name]), lengths.tobytes())
    if name.startswith("neural_ndcg"):
        iterations = loss.get("iterations", ROUNDS)
        seconds *= (iterations + BESIDE_ROUNDS) / (ROUNDS + BESIDE_ROUNDS)
    return seconds


@lru_cache(maxsize=512)
def _list_seconds(curve: tuple[tuple[float, float], ...], lengths: bytes) -> float:
    values, counts = np.unique(np.frombuffer(lengths, dtype=np.int64), return_counts=True)
    return float((at(curve, values) * counts).sum())


def _points(curve: Any) -> tuple[tuple[float, float], ...]:
    return tuple((float(x), float(y)) for x, y in curve)


def _other(name: str, model: Mapping[str, Any], facts: Facts, rates: Rates) -> Cost:
    """One trial of one candidate of a learner that is no network."""
    documents = float(facts.lengths["train"].sum())
    settings = schema.complete(model, learners.get(name).settings, f"learner '{name}'")
    if "n_trees" in settings:
        # RankLib's trees are not measured: they are taken for LightGBM's.
        per_row, per_leaf, per_tree = rates.trees.get(name, rates.trees["lightgbm"])
        leaves = settings.get("num_leaves") or settings.get("n_leaves")
        leaves = min(leaves or 2 ** settings["max_depth"], max(documents / ROWS_OF_A_LEAF, 2))
        each = documents * np.log2(max(leaves, 2)) * per_row + leaves * per_leaf
        each = facts.features * each + per_tree
        rounds = settings["n_trees"]
        watched = rounds * facts.lengths["vali"].sum() * rates.evaluation_seconds
        return Cost(other=rounds * each, evaluation=watched, epochs=rounds)
    if name not in rates.learners:
        raise ConfigError(
            f"the rates of '{rates.machine}' lack the learner '{name}'",
            "measure them again: directrank cost --measure FILE",
        )
    # A solver's rounds depend on the data: they are in its rate, and none are planned.
    rounds = settings.get("rounds", 0)
    each = documents * facts.features * rates.learners[name]
    return Cost(other=max(rounds, 1) * each, epochs=rounds)


def _evaluated(
    n_metrics: int, work: Work | None, precision: str, facts: Facts, rates: Rates
) -> Cost:
    """The metrics of one trial's model on validation and test part."""
    lengths = np.concatenate([facts.lengths["vali"], facts.lengths["test"]])
    seconds = n_metrics * lengths.sum() * rates.evaluation_seconds
    if work is not None:
        seconds += pass_seconds(work, lengths, precision, rates)
    return Cost(evaluation=float(seconds))
