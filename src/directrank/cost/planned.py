"""Rough seconds of the runs of a plan, the same on every machine: how work is divided into batches.

Every Snakemake process divides the work and must come to the same batches, whatever is prepared and
however fast its machine is; so nothing is measured here, and PyTorch is not imported.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from directrank.cost.facts import Facts, facts
from directrank.cost.memory import layers
from directrank.edition.plan import Study
from directrank.study.specification import candidate_settings

#: Seconds of a run besides training; those of a weight and document of a pass over the training
#: set; and what a document takes beside the weights, in weights: the loss and its gradient. Nine of
#: ten runs of the edition ``demo`` are within a factor of three, and more than half of ``real``.
START, WEIGHT, BESIDE = 0.5, 2.5e-10, 300

#: The passes of a learner whose settings name none, and the most that a tolerance leaves.
ROUNDS, TO_TOLERANCE = 50, 500


def planned_seconds(study: Study) -> dict[str, float]:
    """The rough seconds of each run, if it uses every epoch or tree that it is allowed."""
    nowhere = "/dev/null"  # prepared data would be measured
    return {
        run: _seconds(spec, facts(study.data[study.run_data[run]], spec["fold"], nowhere))
        for run, spec in study.runs.items()
    }


def _seconds(spec: Mapping[str, Any], size: Facts) -> float:
    training, model = spec.get("training", {}), spec["model"]
    fits = spec["trials"] * len(candidate_settings(spec)) * training.get("restarts", 1)
    documents = int(size.as_trained_on(spec).lengths["train"].sum())
    if training:
        sizes = [size.features, *layers(model)]
        weights = sum(a * b for a, b in itertools.pairwise(sizes))
        rounds = training["max_epochs"]
        if training.get("tolerance"):
            rounds = min(rounds, TO_TOLERANCE)
    else:
        weights = size.features
        rounds = model.get("n_trees") or model.get("rounds") or ROUNDS
    return START + fits * rounds * documents * (weights + BESIDE) * WEIGHT
