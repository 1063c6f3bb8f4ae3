"""Runs on the same lists that are trained together, and how two trainings are compared."""

import numpy as np
import pandas as pd
from safetensors.torch import load_file

from directrank.study.run import execute
from stopped_runs import SPEC
from training_data import TOWER


def run(loss, model=TOWER, trials=2, tune=None, rate=0.02, **training):
    """A specification in float64, so that a stack differs from a single model by rounding."""
    return {
        **{key: value for key, value in SPEC.items() if key != "tune"},
        "model": model,
        "loss": loss,
        "trials": trials,
        "training": {
            "optimizer": {"name": "adam", "lr": rate},
            "batch_queries": 8,
            "max_documents": 8,
            "max_epochs": 5,
            "dtype": "float64",
            **training,
        },
        **({"tune": tune} if tune else {}),
    }


#: They differ in losses, rates, trials, candidates, restarts, and in when they stop.
RUNS = [
    run({"name": "listnet"}),
    run({"name": "ranknet"}, trials=3, rate=0.05, patience=1, max_epochs=7),
    run({"name": "approx_ndcg"}, tune={"loss.alpha": [1.0, 5.0]}, keep="last",
        schedule={"name": "step", "every": 2, "factor": 0.5}),
    run({"name": "listmle"}, restarts=2, max_epochs=3, tolerance=0.05,
        monitor={"quantities": [{"quantity": "objective"}]}),
]  # fmt: skip

#: One whose loss is not finite from its second step.
BROKEN = run({"name": "rmse"}, rate=1e300)


def folders(folder, specs=RUNS):
    """Each specification with its result folder."""
    return [(spec, folder / f"{number}") for number, spec in enumerate(specs)]


def trained_alone(data, folder, **how):
    """The result folder of each run, trained alone."""
    for spec, out in folders(folder):
        execute(spec, data, out, **how)
    return [out for _, out in folders(folder)]


def assert_same(ours, theirs):
    """The results in two folders, up to rounding."""
    values, expected = (pd.read_parquet(f / "per_query.parquet") for f in (ours, theirs))
    pd.testing.assert_frame_equal(values, expected, rtol=1e-9)
    for table in ("history.csv", "fits.csv"):
        found, wanted = (pd.read_csv(folder / table) for folder in (ours, theirs))
        apart = ["seconds", "wasted_pairs"]
        pd.testing.assert_frame_equal(
            found.drop(columns=apart, errors="ignore"),
            wanted.drop(columns=apart, errors="ignore"),
            rtol=1e-7,
        )
    models = sorted(path.name for path in (theirs / "models").iterdir())
    assert models == sorted(path.name for path in (ours / "models").iterdir())
    for name in models:
        found, wanted = (load_file(folder / "models" / name) for folder in (ours, theirs))
        for key, value in wanted.items():
            # Adam makes steps of rounding errors where a weight moves no document.
            assert np.allclose(found[key], value, rtol=1e-7, atol=1e-6), key
