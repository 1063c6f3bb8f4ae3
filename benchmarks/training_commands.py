"""Ten trials of a small network as a user meets them: commands, from their start to their end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from training_rows import Row, row

from directrank.io import write_json

TRIALS = 10
SMALL = {"name": "tower", "hidden": [64, 32, 16]}


def commands(threads: int) -> list[Row]:
    """The same from the command line, the start of the program and evaluation included."""
    spec = {
        "data": {"name": "mq2007_standin", "settings": {}},
        "fold": None,
        "normalisation": {"name": "none"},
        "filter": {},
        "learner": "neural",
        "model": SMALL,
        "loss": {"name": "approx_ndcg", "alpha": 10.0},
        "training": {
            "optimizer": {"name": "adam", "lr": 0.001},
            "batch_queries": 16,
            "max_epochs": 20,
            "stack": 0,
        },
        "selection": {"name": "ndcg", "k": 5},
        "evaluation": [{"name": "ndcg", "k": 5}],
    }
    with tempfile.TemporaryDirectory() as folder:
        settings, prepared = Path(folder, "settings.json"), Path(folder, "prepared")
        queries = {"train": 160, "vali": 80, "test": 160}
        write_json(settings, {"queries": queries, "seed": 1})
        _directrank("prepare", "mq2007_standin", "--settings", settings, "--out", prepared)

        def seconds(trials: int, number: int) -> float:
            run, out = Path(folder, f"{trials}.json"), Path(folder, f"{trials}-{number}")
            write_json(run, {**spec, "trials": trials})
            began = time.perf_counter()
            _directrank("fit", run, "--data", prepared, "--out", out, "--threads", threads)
            return time.perf_counter() - began

        seconds(1, -1)  # what is compiled or copied once is there from here on
        one = seconds(TRIALS, 0)
        ten = sum(seconds(1, number) for number in range(TRIALS))
        one = min(one, seconds(TRIALS, 1))
    name = "10 trials of [64, 32, 16]"
    return [
        row("seconds of one command `directrank fit`", name, one, "s"),
        row("seconds of ten commands, one by one", name, ten, "s"),
        row("one command over ten", name, ten / one, "×"),
    ]


def _directrank(*arguments: object) -> None:
    command = [sys.executable, "-m", "directrank", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)
