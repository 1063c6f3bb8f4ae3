"""Predict the peak memory of a fit from its specification and its data's size.

Memory is that of a process while nothing else needs it: pages of memory-mapped data count, although
the system may take them back. PyTorch is not imported, because every Snakemake process predicts.

The constants minimise the relative error over 1 335 runs of networks of the editions ``demo`` and
``real``, with lists of at most 400 queries, and seven of ``paper`` on lists of the length and width
of Web30K's: the ratio of measured to predicted memory was between 0.81 and 1.40. Those of the
trees come from LightGBM on a whole stand-in of Web30K, XGBoost on a 25th of it, and CatBoost on
OHSUMED, MQ2008 and ClueWeb09; those of other learners from ``demo`` and ``real``. Runs at full size
have been compared with them in ``rehearsal`` (benchmarks/results/rehearsal.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from directrank.cost.facts import Facts, facts
from directrank.cost.features import ROWS_OF_A_LEAF, layers, settings_of
from directrank.cost.predict import recorded
from directrank.edition.plan import Study
from directrank.learners.trees.settings import most_leaves
from directrank.study.specification import candidates, most_fits_at_once
from directrank.system.io import digest_of

#: Bytes of a float32, and of a megabyte as :mod:`directrank.system.usage` counts it.
FLOAT, MEGABYTE = 4, 2**20

#: Learners of trees; RankLib is another program, whose memory is set where it is started.
TREES = ("lightgbm", "xgboost", "catboost")

#: The libraries of a job, and those of a learner beyond them, in MB.
START, LIBRARIES = 390.0, {"catboost": 120.0}

#: Documents scored at a time, times models, as
#: :data:`directrank.learners.neural.scoring.SCORING_CHUNK`.
SCORED = 1 << 16

#: Copies of the widest layer's output while documents are scored, of the outputs of all layers in a
#: step (some of which share the memory of the scoring), of the pairs of its longest lists, and of
#: pairs times ranks in SoftRank to a cut-off, whose recursion keeps every step.
SCORED_COPIES, STEP_COPIES, PAIR_COPIES, RANK_COPIES = 2.9, 0.4, 6.5, 1.8

#: Elements that a layer writes per output: its product, its bias or norm, its activation.
ELEMENTS_OF_AN_OUTPUT = 3

#: Bytes of a GPU for the steps of a stack, as :data:`directrank.learners.neural.stacking.ROOM`, and
#: the parameters of an output with their own column there: a weight, a bias and a norm's two.
ROOM_ON_A_GPU, COLUMNS_OF_AN_OUTPUT = 16 << 30, 4

#: Bytes of trees per document and feature of the training and validation set (bins in two orders,
#: and what is needed to make them), and per bin of a leaf's histogram.
BINNED, HISTOGRAM = 3.3, 16

#: MB of other learners (query by query, linear) beyond their data, and bytes per document and trial
#: in their evaluation; the first trial needs half of them.
OTHERS, EVALUATED = 120.0, 390

#: How much more a job requests than is predicted, so that none of the 1 684 fits of ``rehearsal``
#: needed more.
MARGIN = 1.45

#: How much more the job of a run that was recorded requests, at least, than it took then.
MARGIN_OF_RECORDED = 1.1

#: MB of a run on a GPU, whose libraries take more than a small run; this was not measured.
LEAST_ON_A_GPU = 4000


def requested_mb(
    study: Study, run: str, gpus: int = 0, prepared_folder: str | Path = "data/prepared"
) -> int:
    """The megabytes that the job of a run requests at its first attempt.

    Args:
        study: the plan.
        run: the name of the run.
        gpus: how many GPUs it uses; on one, it requests at least :data:`LEAST_ON_A_GPU`.
        prepared_folder: data sets that are prepared in it are measured; see
            :func:`directrank.cost.facts.facts`.
    """
    spec = study.runs[run]
    size = facts(study.data[study.run_data[run]], spec["fold"], prepared_folder)
    megabytes = MARGIN * predicted_mb(spec, size)
    megabytes = round(max(megabytes, MARGIN_OF_RECORDED * _peaks().get(run, 0.0)))
    return max(megabytes, LEAST_ON_A_GPU) if gpus else megabytes


@cache
def _peaks() -> Mapping[str, float]:
    """Recorded run → its peak memory in megabytes."""
    table = recorded()
    return dict(zip(table["run"], table["peak_mb"], strict=True))


def predicted_mb(spec: Mapping[str, Any], size: Facts) -> float:
    """The peak memory of a run on a CPU in megabytes.

    Args:
        spec: a validated run.
        size: that of its data (of its fold), before its filter and sample.
    """
    held = _documents_held(spec, size) * size.features * FLOAT / MEGABYTE
    name, used = spec["learner"], size.as_trained_on(spec)
    if name == "neural":
        working = _of_networks(spec, used)
    elif name in TREES:
        working = max(_of_trees(candidate, used) for candidate in candidates(spec))
    else:
        evaluated = sum(int(used.lengths[split].sum()) for split in ("vali", "test"))
        working = OTHERS + EVALUATED * evaluated * (spec["trials"] - 0.5) / MEGABYTE
    return START + LIBRARIES.get(name, 0.0) + held + working


def _documents_held(spec: Mapping[str, Any], size: Facts) -> int:
    """Documents whose features are in memory, counted twice if they are both mapped and copied.

    A split of which a run draws some queries is read where they are, and they are copied. Those of
    a ``sample`` come from all splits and are so many that all pages are counted, once.
    """
    documents = 0
    for split, lengths in size.lengths.items():
        drawn = spec.get(f"{split}_queries")
        if "sample" not in spec and drawn is not None and drawn < len(lengths):
            documents += 2 * int(lengths[:drawn].sum())
        else:
            documents += int(lengths.sum())
    return documents


def _of_networks(spec: Mapping[str, Any], size: Facts) -> float:
    """The largest memory of a stack: models that differ only in the loss and the learning rate."""
    shapes: dict[str, list[Mapping[str, Any]]] = {}
    for candidate in candidates(spec):
        training = candidate["training"]
        same = {**training, "optimizer": {**training["optimizer"], "lr": None}}
        shapes.setdefault(digest_of([candidate["model"], same]), []).append(candidate)
    return max(
        _of_a_stack(most_fits_at_once(spec, len(same)), same[0], size) for same in shapes.values()
    )


def _of_a_stack(fits: int, spec: Mapping[str, Any], size: Facts) -> float:
    training = settings_of(spec)
    fits *= training["restarts"]
    models = min(training["stack"] or fits, fits)
    lengths = size.lengths["train"]
    if training["max_documents"] is not None:
        lengths = np.minimum(lengths, training["max_documents"])
    queries = min(training["batch_queries"], len(lengths))
    outputs = [outputs for _, outputs in layers(spec["model"], size.features)]
    elements = size.features + ELEMENTS_OF_AN_OUTPUT * sum(outputs)
    step = models * queries * float(lengths.mean()) * elements
    pairs = models * queries * float(lengths.max()) ** 2
    cutoff = spec["loss"].get("k") if spec["loss"]["name"] == "softrank" else None
    ranks = pairs * min(cutoff, float(lengths.max())) if cutoff else 0.0
    longest = max(int(size.lengths[split].sum()) for split in ("vali", "test"))
    scored = min(SCORED, models * longest) * max(size.features, *outputs)
    numbers = SCORED_COPIES * scored + STEP_COPIES * step
    numbers += PAIR_COPIES * pairs + RANK_COPIES * ranks
    return numbers * FLOAT / MEGABYTE


def room_of(spec: Mapping[str, Any], size: Facts) -> int:
    """How many models of a run a GPU trains in one pass, of all that have its shape; at least 1.

    :func:`directrank.learners.neural.stacking.models_at_once` decides it by the parameters of the
    scorer.
    """
    training, used = settings_of(spec), size.as_trained_on(spec)
    lengths = np.sort(used.lengths["train"])[-training["batch_queries"] :]
    if training["max_documents"] is not None:
        lengths = np.minimum(lengths, training["max_documents"])
    outputs = sum(outputs for _, outputs in layers(spec["model"], size.features))
    numbers = float(lengths.sum()) * (size.features + COLUMNS_OF_AN_OUTPUT * outputs)
    return max(1, int(ROOM_ON_A_GPU / (numbers * FLOAT)))


def _of_trees(spec: Mapping[str, Any], size: Facts) -> float:
    settings = settings_of(spec)
    documents = {split: int(lengths.sum()) for split, lengths in size.lengths.items()}
    cells = (documents["train"] + documents["vali"]) * size.features
    leaves = min(most_leaves(settings), max(documents["train"] / ROWS_OF_A_LEAF, 2))
    histograms = leaves * size.features * settings.get("max_bin", 256) * HISTOGRAM
    return (BINNED * cells + histograms) / MEGABYTE
