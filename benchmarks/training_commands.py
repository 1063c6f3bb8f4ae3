"""Ten trials of a small network as a user meets them: commands, from their start to their end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from training_rows import Row, row

from directrank.system.io import write_json

TRIALS = 10
SMALL = {"name": "tower", "hidden": [64, 32, 16]}


def commands(threads: int) -> list[Row]:
    """The same from the command line, the start of the program and evaluation included."""
    with tempfile.TemporaryDirectory() as folder:
        prepared = prepare(Path(folder))

        def seconds(trials: int, number: int) -> float:
            run, out = Path(folder, f"{trials}.json"), Path(folder, f"{trials}-{number}")
            write_json(run, {**small_run(max_epochs=20), "trials": trials})
            began = time.perf_counter()
            options = ["--data", prepared, "--out", out, "--threads", threads, "--device", "cpu"]
            run_directrank("fit", run, *options)
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


def small_run(max_epochs: int) -> dict[str, Any]:
    """The specification of a run of the small network."""
    return {
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
            "max_epochs": max_epochs,
            "stack": 0,
        },
        "selection": {"name": "ndcg", "k": 5},
        "evaluation": [{"name": "ndcg", "k": 5}],
        "trials": 1,
    }


def prepare(folder: Path) -> Path:
    """The data of the small run, in a folder below ``folder``."""
    settings, prepared = folder / "settings.json", folder / "prepared"
    write_json(settings, {"queries": {"train": 160, "vali": 80, "test": 160}, "seed": 1})
    run_directrank("prepare", "mq2007_standin", "--settings", settings, "--out", prepared)
    return prepared


def run_directrank(*arguments: object) -> None:
    """A command ``directrank``, from its start to its end."""
    subprocess.run(command(*arguments), check=True, capture_output=True)


def command(*arguments: object) -> list[str]:
    """What a process is started with to be ``directrank``."""
    return [sys.executable, "-m", "directrank", *map(str, arguments)]
