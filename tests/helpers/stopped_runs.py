"""Small runs that draw, how one is started and stopped, and compared with a whole one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import count
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import pandas as pd

SPEC = {
    "data": {"name": "web30k_standin", "settings": {}},
    "fold": None,
    "normalisation": {"name": "none"},
    "filter": {},
    "learner": "neural",
    # Dropout, a loss that draws and lists that are cut: every random stream there is.
    "model": {
        "name": "feed_forward",
        "activation": "relu",
        "output_activation": False,
        "hidden": [6, 6, 6],
        "norm": "batch",
        "dropout": 0.2,
    },
    "loss": {"name": "listmle"},
    "training": {
        "optimizer": {"name": "adam", "lr": 0.01},
        "schedule": {"name": "on_worse_cost", "factor": 0.8},
        "restart_after": 2,
        "batch_queries": 8,
        "max_documents": 8,
        "max_epochs": 6,
        "patience": 3,
        "tolerance": 0.0001,
        "stack": 4,
    },
    "selection": {"name": "ndcg", "k": 5},
    "evaluation": [{"name": "ndcg", "k": 5}],
    "trials": 3,
    "tune": {"training.optimizer.lr": [0.03, 0.003]},
}

LINEAR = {
    **SPEC,
    "model": {"name": "linear"},
    "loss": {"name": "approx_ndcg"},
    "training": {
        "optimizer": {"name": "sgd", "lr": 0.05},
        "batch_queries": 3,
        "max_epochs": 4,
        "tolerance": 0.05,
        "keep": "last",
        "restarts": 3,
        "stack": 0,
    },
    "trials": 2,
    "tune": {"loss.alpha": [1.0, 10.0]},
}


CONTEXT = get_context("forkserver")


def started(arguments: Sequence[str], log: Path) -> BaseProcess:
    """A command of directrank in a process of its own, whose errors go to ``log``.

    It is a fork of one that has imported what fits need, which takes longer than such a fit.
    """
    CONTEXT.set_forkserver_preload(["directrank.cli.fit", "directrank.learners.neural.fit"])
    process = CONTEXT.Process(target=_command, args=(arguments, log))
    process.start()
    return process


def _command(arguments: Sequence[str], log: Path) -> None:
    from directrank.__main__ import main

    os.dup2(os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 2)
    sys.argv = ["directrank", *arguments]
    main()


def result(folder):
    """The bytes of a run's results, its history without the times."""
    history = pd.read_csv(folder / "history.csv").drop(columns="seconds")
    models = sorted((folder / "models").iterdir())
    files = [folder / "per_query.parquet", folder / "fits.csv", *models]
    return [history.to_csv(), *(path.read_bytes() for path in files)]


def stopping_at(calls):
    """A ``stop`` that asks for an end at this call and from then on."""
    seen = count(1)
    return lambda: "SIGTERM" if next(seen) >= calls else None
