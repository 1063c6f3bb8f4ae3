"""What runs on a GPU gives what it gives on the CPU, the same each time, and survives the same."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

import training_data
from directrank import losses, metrics
from directrank.learners.contract import Splits
from directrank.learners.neural import stacking
from directrank.learners.neural.batches import Feeder
from directrank.learners.neural.checkpoints import StoppedError
from directrank.study.run import execute
from directrank.system.errors import TrainingError
from directrank.system.io import write_json
from losses_cases import DRAWN, LOSSES, random_lists, value_and_gradient
from stopped_runs import LINEAR, SPEC, result, stopping_at
from training_data import TOWER, mean_ndcg, prepare, splits

if not torch.cuda.is_available():
    pytest.skip("PyTorch sees no GPU here", allow_module_level=True)

#: Losses that draw random numbers, which no two devices do alike; see below for the labels.
DRAWING = {"listmle"}

SCORERS = {
    "linear": {"name": "linear"},
    "tower": TOWER,
    "query norm": {
        "name": "feed_forward",
        "activation": "relu",
        "output_activation": False,
        "hidden": [6, 6],
        "dropout": 0.0,
    },
    "context": {"name": "context", "width": 8, "blocks": 1, "inner": 16, "dropout": 0.0},
}


@pytest.fixture(scope="module")
def data() -> Splits:
    return splits()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("data") / "web30k_standin")


#: A fit on the GPU.
fit = partial(training_data.fit, device="cuda")


@pytest.mark.parametrize("length", [9, 300])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", [name for name in LOSSES if name not in DRAWN])
def test_a_loss_and_its_gradient_are_those_of_the_cpu(name, dtype, length):
    scores, labels, mask = random_lists(7, length, dtype=dtype)
    if name == "softrank" and length > 100:
        scores, labels, mask = scores[:, :100], labels[:, :100], mask[:, :100]
    if name in DRAWING:  # without ties there is nothing to draw
        labels = torch.argsort(scores.flip(1), dim=1).to(dtype)
    wanted = value_and_gradient(losses.get(name), scores, labels, mask, **LOSSES[name])
    on_gpu = [tensor.cuda() for tensor in (scores, labels, mask)]
    found = value_and_gradient(losses.get(name), *on_gpu, **LOSSES[name])
    tolerance = 1e-9 if dtype == torch.float64 else 2e-3
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.is_cuda
        scale = theirs.abs().max().clamp_min(1)
        assert torch.allclose(ours.cpu() / scale, theirs / scale, atol=tolerance)


@pytest.mark.parametrize("name", ["ndcg", "average_precision", "precision", "reciprocal_rank"])
def test_a_metric_is_that_of_the_cpu(name):
    scores, labels, mask = random_lists(50, 40)
    options = {"k": 5} if name == "precision" else {}
    wanted = metrics.get(name)(scores, labels, mask, **options)
    found = metrics.get(name)(scores.cuda(), labels.cuda(), mask.cuda(), **options)
    assert torch.allclose(found.cpu(), wanted, equal_nan=True)


@pytest.mark.parametrize("loss", ["approx_ndcg", "lambdarank", "neural_ndcg", "listnet"])
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_fit_is_that_of_the_cpu(data, scorer, loss):
    found, wanted = (
        fit(data, 2, SCORERS[scorer], {"name": loss}, device=device, dtype="float64", stack=0)
        for device in ("cuda", "cpu")
    )
    for ours, theirs in zip(found, wanted, strict=True):
        assert np.allclose(ours.predict(data.test), theirs.predict(data.test), atol=1e-7)
        for a, b in zip(ours.history, theirs.history, strict=True):
            assert np.isclose(a["train_loss"], b["train_loss"])
            assert np.isclose(a["vali_metric"], b["vali_metric"])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scorer", SCORERS)
def test_the_same_job_gives_the_same_bytes(data, scorer, loss):
    options = {"name": loss, **LOSSES[loss]}
    first, second = (fit(data, 2, SCORERS[scorer], options, max_epochs=3) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert one.predict(data.test).tobytes() == other.predict(data.test).tobytes()


@pytest.mark.parametrize("scorer", SCORERS)
def test_models_trained_together_are_the_models_trained_alone(data, scorer, monkeypatch):
    together = fit(data, 3, SCORERS[scorer], dtype="float64")
    monkeypatch.setattr(stacking, "ROOM", 0)
    alone = fit(data, 3, SCORERS[scorer], dtype="float64")
    for one, other in zip(alone, together, strict=True):
        assert np.allclose(one.predict(data.test), other.predict(data.test), atol=1e-8)


@pytest.mark.parametrize("extra", [{}, {"max_documents": 5}, {"batch_norm": "padded"}])
def test_features_that_a_gpu_cannot_hold_give_the_same(data, monkeypatch, extra):
    resident = fit(data, 2, dtype="float64", **extra)
    monkeypatch.setattr(Feeder, "RESIDENT", 0.0)
    copied = fit(data, 2, dtype="float64", **extra)
    for one, other in zip(resident, copied, strict=True):
        # Only steps whose features are on the GPU are captured, for which batches are padded.
        assert np.allclose(one.predict(data.test), other.predict(data.test), rtol=0, atol=1e-8)


def test_bfloat16_leaves_the_metric_within_the_interval_over_trials(data):
    exact, rough = (
        [mean_ndcg(each, data.test) for each in fit(data, 8, max_epochs=15, precision=precision)]
        for precision in ("float32", "bfloat16")
    )
    half = 2.4 * np.std(exact, ddof=1) / np.sqrt(len(exact))
    assert abs(np.mean(rough) - np.mean(exact)) <= max(half, 0.01)


@pytest.mark.parametrize("spec", [SPEC, LINEAR], ids=["networks", "linear"])
def test_a_run_that_is_stopped_again_and_again_ends_as_one_that_was_not(prepared, tmp_path, spec):
    execute(spec, prepared, tmp_path / "whole", device="cuda")
    stops = 0
    # All trials and candidates are one stack, which may be stopped after each block of steps.
    for calls in (1, 2, 1, 10**9):
        try:
            execute(spec, prepared, tmp_path / "cut", device="cuda", stop=stopping_at(calls))
            break
        except StoppedError:
            stops += 1
    assert stops == 3
    assert result(tmp_path / "cut") == result(tmp_path / "whole")


def test_memory_that_runs_out_names_the_settings_to_change(data):
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, (1 << 30) / total))
    try:
        with pytest.raises(TrainingError, match="memory") as caught:
            fit(data, model={**TOWER, "hidden": [4_000_000]})
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    assert "lower training.batch_queries" in caught.value.remedy
    assert np.isfinite(fit(data)[0].predict(data.test)).all()


# Kernels of the second make a finite loss and gradient of scores that are not finite.
@pytest.mark.parametrize("name", ["rmse", "twin_ndcg"])
def test_a_loss_that_is_not_finite_stops_with_the_batch_that_caused_it(prepared, tmp_path, name):
    broken = {**LINEAR, "loss": {"name": name}, "tune": {}}
    broken["training"] = {**LINEAR["training"], "tolerance": 0}
    broken["training"]["optimizer"] = {"name": "sgd", "lr": 1e40}
    with pytest.raises(TrainingError, match="not finite"):
        execute(broken, prepared, tmp_path / "broken", device="cuda")
    assert (tmp_path / "broken" / "not_finite.safetensors").is_file()


def test_processes_that_share_a_gpu_give_what_one_alone_gives(prepared, tmp_path):
    spec = {**SPEC, "trials": 1, "tune": {}}
    write_json(tmp_path / "run.json", spec)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}

    def started(name):
        command = [sys.executable, "-m", "directrank", "fit", str(tmp_path / "run.json")]
        options = ["--data", str(prepared), "--out", str(tmp_path / name), "--device", "cuda"]
        return subprocess.Popen([*command, *options, "--fits-per-gpu", "2"], env=environment)

    execute(spec, prepared, tmp_path / "alone", device="cuda")
    processes = [started(f"shared-{number}") for number in range(4)]
    assert [process.wait(300) for process in processes] == [0] * 4
    for number in range(4):
        assert result(tmp_path / f"shared-{number}") == result(tmp_path / "alone")
        assert not pd.read_csv(tmp_path / f"shared-{number}" / "fits.csv").empty
