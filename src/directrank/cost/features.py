"""What a run has to do, counted from its specification and the size of its data.

Work is counted in multiply-adds of a matrix product, so that the work of two runs has a ratio. It
orders recorded runs by how near they are, and takes the time of one to another; how many seconds a
multiply-add takes is nowhere needed. PyTorch is not imported, because every Snakemake process
predicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from directrank import learners
from directrank.cost.facts import Facts
from directrank.learners.trees.settings import most_leaves
from directrank.study.specification import (
    candidate_settings,
    candidates,
    most_fits_at_once,
    n_fits,
)
from directrank.system import schema
from directrank.system.schema import package_schema

#: Learners of trees.
TREES = ("lightgbm", "xgboost", "catboost", "ranklib")

#: A backward pass takes two products for each one of the forward pass.
PASSES = 3

#: Work of trees: of a value on a level; of a leaf, and of a document in the objective, in such
#: values; and of putting a value into its bin before the first tree.
LEVEL, LEAF, OBJECTIVE, BINNING = 40, 1500, 200, 4000

#: The least documents per leaf, since trees on few documents do not grow all leaves.
ROWS_OF_A_LEAF = 20

#: Passes over the data of a solver, whose settings do not count them, and the work of a value.
SOLVER_PASSES, SOLVED = 100, 80

#: Settings of a loss, scorer or training that change how long the same work takes, and their usual
#: value, which is not told.
OPTIONS = ("k", "iterations", "samples", "norm", "mode", "dtype", "precision")
USUAL = (None, "float32")


@dataclass(frozen=True)
class Units:
    """The multiply-adds that other work takes the time of, on one kind of device.

    They are orders of magnitude: a recorded run differs from a predicted one by few of them.

    Attributes:
        start: a job's process, before it has data.
        opened: opening the data, per value.
        output: writing an output of a layer, with its activation and norm.
        evaluated: a metric, per document.
        step: starting the operations of a step of training.
        pair: a pair of documents in a loss.
    """

    start: float
    opened: float
    output: float
    evaluated: float
    step: float
    pair: float


UNITS = {
    "cpu": Units(start=4e9, opened=100, output=30, evaluated=6e3, step=1e7, pair=20),
    # A hundred times as many multiply-adds as a CPU at a time, but no less time to start them.
    "cuda": Units(start=7e13, opened=5e4, output=200, evaluated=1e6, step=4e10, pair=1e3),
}


@dataclass(frozen=True)
class Features:
    """A run as it is compared with recorded ones.

    Attributes:
        learner, model, loss: their names; of trees, ``loss`` is the objective.
        options: other settings that matter, in words.
        ends_early: whether it may end before its last epoch or tree, and has more than two.
        documents: to train on, in an epoch.
        length: documents of the list in which a document is, on average.
        size: work of a pass of the scorer over a document, or of a tree's levels.
        step: documents in a step of training.
        together: models that are trained together.
        fits: trials times candidates times restarts.
        epochs: epochs, trees or rounds of all fits together.
        fixed: the work that does not grow with epochs or trees.
        work: all work, if every epoch is used.
    """

    learner: str
    model: str
    loss: str
    options: str
    ends_early: bool
    documents: float
    length: float
    size: float
    step: float
    together: float
    fits: int
    epochs: int
    fixed: float
    work: float


#: The features that are names, and those that are sizes.
NAMES = ("model", "loss", "options", "ends_early")
SIZES = ("documents", "length", "size", "step", "together", "work")


@dataclass(frozen=True)
class _Fit:
    """What one fit has to do: ``epochs`` times ``epoch``, and ``fixed`` besides."""

    size: float
    step: float
    together: int
    epochs: int
    epoch: float
    fixed: float = 0.0


def features_of(
    spec: Mapping[str, Any], size: Facts, device: str = "cpu", together: int | None = None
) -> Features:
    """The features of a run, with all its trials, candidates and restarts.

    Args:
        spec: a validated run.
        size: that of its data (of its fold), before its filter and sample.
        device: ``cpu`` or ``cuda``, on which its work is counted.
        together: how many models are trained in one pass; if None, on a CPU as many as
            ``training.stack`` says, and on a GPU all of the run.
    """
    units, used = UNITS[device], size.as_trained_on(spec)
    values = size.features * sum(int(lengths.sum()) for lengths in size.lengths.values())
    section, settings = ("training" if "training" in spec else "model"), settings_of(spec)
    tuned = list(candidates({**spec, section: settings}))
    n = settings.get("restarts", 1) * n_fits(spec)
    count = n / len(tuned)  # of each candidate, on average
    lengths = used.lengths["train"]
    if settings.get("max_documents"):
        lengths = np.minimum(lengths, settings["max_documents"])
    if "training" in spec:
        models = models_of(spec)
        if together is None:
            stack = settings["stack"] if device == "cpu" else 0
            together = min(stack or models, models)
        fits = [_of_a_network(each, used, lengths, together, units) for each in tuned]
    else:
        fits = [_of_another(each, used, units) for each in tuned]
    fixed = units.start + units.opened * values + count * sum(fit.fixed for fit in fits)
    documents = float(lengths.sum())
    loss = spec["loss"]["name"] if "loss" in spec else settings.get("objective")
    told = {**spec["model"], **spec.get("loss", {}), **settings}
    ends = settings.get("patience") or settings.get("early_stopping_rounds")
    return Features(
        learner=spec["learner"],
        model=spec["model"].get("name", "") if "training" in spec else "",
        loss=loss or "",
        options=" ".join(f"{name}={told[name]}" for name in OPTIONS if told.get(name) not in USUAL),
        ends_early=bool(ends or settings.get("tolerance")) and fits[0].epochs > 2,
        documents=documents,
        length=float((lengths.astype(float) ** 2).sum()) / max(documents, 1.0),
        size=float(np.mean([fit.size for fit in fits])),
        step=float(np.mean([fit.step for fit in fits])),
        together=float(np.mean([fit.together for fit in fits])),
        fits=n,
        epochs=round(count * sum(fit.epochs for fit in fits)),
        fixed=fixed,
        work=fixed + count * sum(fit.epochs * fit.epoch for fit in fits),
    )


def models_of(spec: Mapping[str, Any]) -> int:
    """The most networks that a run trains at a time: trials, candidates and restarts."""
    restarts = settings_of(spec).get("restarts", 1)
    return restarts * most_fits_at_once(spec, len(candidate_settings(spec)))


def settings_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The complete section ``training`` of a run, or ``model`` if it has none."""
    if "training" in spec:
        return schema.complete(
            spec["training"], package_schema("run")["properties"]["training"], "training"
        )
    name = spec["learner"]
    return schema.complete(spec["model"], learners.get(name).settings, f"learner '{name}'")


def layers(model: Mapping[str, Any], n_features: int) -> list[tuple[int, int]]:
    """Inputs and outputs of each layer of a scorer that ``model`` describes."""
    if model["name"] == "context":
        width, inner = model["width"], model["inner"]
        # Attention has four layers per block: queries, keys and values in one, and the mixture.
        block = [(width, 3 * width), (width, width), (width, inner), (inner, width)]
        return [(n_features, width), *block * model["blocks"], (width, 1)]
    hidden = model.get("hidden", [])
    sizes = [n_features, *(hidden if isinstance(hidden, list) else [hidden]), 1]
    return list(pairwise(sizes))


def _of_a_network(
    spec: Mapping[str, Any], used: Facts, lengths: np.ndarray, together: int, units: Units
) -> _Fit:
    """A fit of a candidate, whose lists have ``lengths``, with so many models ``together``."""
    training, shapes = spec["training"], layers(spec["model"], used.features)
    size = sum(inputs * outputs + units.output * outputs for inputs, outputs in shapes)
    documents, pairs = float(lengths.sum()), float((lengths.astype(float) ** 2).sum())
    watched, tested = (float(used.lengths[split].sum()) for split in ("vali", "test"))
    scored = size + units.evaluated
    steps = 0
    if spec["learner"] == "neural":
        steps = -(-len(lengths) // training["batch_queries"])
    else:
        together = 1
    passed = pairs if spec["learner"].startswith("ranknet_v1") else documents  # pair by pair
    return _Fit(
        size=size,
        step=documents / max(steps, 1),
        together=together,
        epochs=training["max_epochs"],
        epoch=PASSES * passed * size
        + units.pair * pairs
        + units.step * steps / together
        + watched * scored,
        fixed=(watched + tested) * scored,
    )


def _of_another(spec: Mapping[str, Any], used: Facts, units: Units) -> _Fit:
    """A fit of trees or of a linear learner without epochs, both of which are on a CPU."""
    settings = spec["model"]
    train, watched, tested = (float(used.lengths[split].sum()) for split in used.lengths)
    evaluated = (watched + tested) * units.evaluated
    if spec["learner"] not in TREES:
        rounds = settings.get("rounds", SOLVER_PASSES)
        return _Fit(used.features, train, 1, rounds, SOLVED * train * used.features, evaluated)
    leaves = min(most_leaves(settings), max(train / ROWS_OF_A_LEAF, 2))
    values = used.features * (train * np.log2(leaves) + LEAF * leaves) + OBJECTIVE * train
    binned = BINNING * used.features * (train + watched)
    trees = settings["n_trees"]
    return _Fit(used.features * leaves, train, 1, trees, LEVEL * float(values), binned + evaluated)
