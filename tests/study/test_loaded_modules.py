"""Everything that a run loads is in the digest of its code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from directrank import losses
from directrank.learners.neural import precision
from directrank.study import provenance
from directrank.system import sources
from directrank.system.errors import ConfigError
from losses_cases import LOSSES as OF_LOSSES
from stopped_runs import SPEC
from studies import study_of
from training_data import prepare

pytestmark = pytest.mark.slow

#: Executes each run in a fork of a process that has imported no module of the package, and prints
#: the modules that were loaded.
EXECUTED = """
import json, os, sys, traceback
import lightgbm, numba, pandas, scipy.optimize, torch, xgboost
torch.set_num_threads(1)
for name, spec in json.load(sys.stdin).items():
    reading, writing = os.pipe()
    if not os.fork():
        try:
            assert not [module for module in sys.modules if module.startswith("directrank")]
            from directrank.study.run import execute
            execute(spec, sys.argv[1], f"{sys.argv[2]}/{name}")
            loaded = [module for module in sys.modules if module.startswith("directrank.")]
        except BaseException:
            loaded = [traceback.format_exc()]
        os.write(writing, json.dumps(loaded).encode())
        os._exit(0)
    os.close(writing)
    print(json.dumps([name, json.loads(os.fdopen(reading).read())]), flush=True)
    os.wait()
"""

KEPT = {key: SPEC[key] for key in ("data", "fold", "normalisation", "filter")}

#: Losses of every kind: a formula, a kernel of pairs, a metric under a relaxation, draws, and what
#: a configuration composes.
LOSSES: dict[str, dict[str, Any]] = {
    "rmse": {},
    "lambdarank": {},
    "approx_ndcg": {"alpha": 5.0},
    "neural_ndcg": {"iterations": 3},
    "twin_ap": {},
    "pl_rank": {"samples": 2},
    "composed": {"metric": "err", "relaxation": {"name": "lapsum"}},
    "newton": {"of": {"name": "lambdarank"}, "lam": 0.1},
}


def shortened(spec: dict[str, Any]) -> dict[str, Any]:
    """A run of an edition on the data of this test, with as little training as possible."""
    spec = {key: value for key, value in spec.items() if key not in ("tune", "grow", "sample")}
    spec |= {**KEPT, "trials": 1}
    spec["selection"] = {"name": "ndcg", "k": 5}
    if "training" in spec:
        spec["training"] = {**spec["training"], "max_epochs": 1}
    if "n_trees" in spec["model"]:
        spec["model"] = {**spec["model"], "n_trees": 2, "min_data_in_leaf": 2}
        spec["model"] = {k: v for k, v in spec["model"].items() if k != "early_stopping_rounds"}
    if spec["learner"] != "lightgbm":
        spec["model"] = {k: v for k, v in spec["model"].items() if k != "min_data_in_leaf"}
    return spec


def runs() -> dict[str, dict[str, Any]]:
    """One run for each learner and scorer of the demo, each kind of loss, and each precision."""
    found: dict[str, dict[str, Any]] = {}
    for spec in study_of("demo").runs.values():
        name = spec["learner"]
        if name == "neural":
            name += "-" + spec["model"]["name"]
        found.setdefault(name, shortened(spec))
    base = found["neural-tower"]
    found["catboost"] = {
        **{key: value for key, value in base.items() if key not in ("loss", "training")},
        "learner": "catboost",
        "model": {"metric": "NDCG", "max_depth": 2, "n_trees": 2},
    }
    for loss, settings in LOSSES.items():
        found[f"loss-{loss}"] = base | {"loss": {"name": loss, **settings}}
    for optimiser in ("sgd", "adagrad"):
        training = {**base["training"], "optimizer": {"name": optimiser, "lr": 0.01}}
        found[optimiser] = base | {"training": training}
    found["float64"] = base | {"training": {**base["training"], "dtype": "float64"}}
    try:
        precision.check("bfloat16", "float32", torch_device())
    except ConfigError:
        return found
    found["bfloat16"] = base | {"training": {**base["training"], "precision": "bfloat16"}}
    return found


def torch_device() -> Any:
    import torch

    return torch.device("cpu")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The modules that each run loaded."""
    data = prepare(tmp_path_factory.mktemp("data") / "web30k_standin")
    out = tmp_path_factory.mktemp("runs")
    done = subprocess.run(
        [sys.executable, "-c", EXECUTED, str(data), str(out)],
        input=json.dumps(runs()),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(sources.PACKAGE.parent)},
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())


def is_package(module: str) -> bool:
    return Path(sources.PACKAGE.parent, *module.split("."), "__init__.py").is_file()


def test_every_learner_and_scorer_is_among_the_runs() -> None:
    from directrank import learners, models

    assert {spec["learner"] for spec in runs().values()} == {*learners.REGISTRY} - {"ranklib"}
    neural = {spec["model"]["name"] for spec in runs().values() if "loss" in spec}
    assert neural == {*models.REGISTRY}


@pytest.mark.parametrize("name", runs())
def test_every_module_that_a_run_loads_is_in_its_digest(
    name: str, loaded: dict[str, list[str]]
) -> None:
    covered = provenance.dependencies(provenance.modules_of(runs()[name]))
    # With one composition, the parts of the others are loaded, too; they are not used, see below.
    if losses.COMPOSITIONS in loaded[name]:
        covered |= sources.dependencies([losses.COMPOSITIONS])
    modules = {module for module in loaded[name] if not is_package(module)}
    assert "directrank.study.run" in modules, loaded[name]
    assert modules <= covered, sorted(modules - covered)


def executed_by(call: Callable[[], object]) -> set[str]:
    """The modules of the package with code that a call executes."""
    found = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        found.add(str(frame.f_globals.get("__name__")))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {name for name in found if name.startswith("directrank.")}


@pytest.mark.parametrize("by", ["kernel", "formula"])
@pytest.mark.parametrize(
    "name", [name for name, target in losses.REGISTRY.items() if losses.COMPOSITIONS in target]
)
def test_every_module_that_a_composition_executes_is_in_its_digest(
    name: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    covered = provenance.dependencies([provenance.code_of(*losses.REGISTRY[name].split(":"))])
    covered |= {"directrank.losses", "directrank.metrics", "directrank.relaxations"}
    scores = torch.tensor([[0.5, 0.1, 0.2]], requires_grad=True)
    labels = torch.tensor([[2.0, 0.0, 1.0]])

    def call() -> None:
        losses.get(name)(scores, labels, **OF_LOSSES[name]).sum().backward()

    call()  # imports what it needs
    if by == "formula":
        monkeypatch.setattr("directrank.losses._compose.find", lambda *_: None)
    executed = executed_by(call)
    assert len(executed) > 5
    assert executed - {losses.COMPOSITIONS} <= covered, sorted(executed - covered)
