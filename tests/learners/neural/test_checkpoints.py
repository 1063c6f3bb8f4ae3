"""A run that is killed goes on where it was, and ends as if nothing had happened."""

import json
import os
import signal
import time

import numpy as np
import pytest
import torch

from directrank.learners.neural.checkpoints import Checkpoints, StoppedError
from directrank.study.run import execute
from stopped_runs import LINEAR, SPEC, result, started, stopping_at
from training_data import prepare

TREES = {
    "learner": "lightgbm",
    "model": {
        "num_leaves": 4,
        "learning_rate": 0.1,
        "n_trees": 5,
        "min_data_in_leaf": 2,
        "min_sum_hessian_in_leaf": 0.001,
    },
    "tune": {"model.num_leaves": [3, 4]},
    "trials": 3,
    **{key: SPEC[key] for key in ("data", "fold", "normalisation", "filter")},
    **{key: SPEC[key] for key in ("selection", "evaluation")},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("data") / "web30k_standin")


@pytest.mark.slow
@pytest.mark.parametrize("spec", [SPEC, LINEAR], ids=["networks", "linear"])
def test_a_run_that_is_stopped_again_and_again_ends_as_one_that_was_not(data, tmp_path, spec):
    execute(spec, data, tmp_path / "whole")
    stops = []
    for calls in (1, 3, 9, 2, 14, 5, 7, 30, 10**9):
        try:
            # A stack asks twice at the step that it stops at, and once at every other.
            execute(spec, data, tmp_path / "cut", stop=stopping_at(calls))
            break
        except StoppedError as error:
            stops.append(str(error))
    assert len(stops) >= 4
    assert all(text.startswith("stopped by SIGTERM") and "\n" not in text for text in stops)
    assert result(tmp_path / "cut") == result(tmp_path / "whole")
    assert not (tmp_path / "cut.checkpoint").exists()


def test_finished_trials_of_trees_are_not_repeated(data, tmp_path, monkeypatch):
    from directrank.learners.trees import lightgbm

    execute(TREES, data, tmp_path / "whole")
    fits, plain = [], lightgbm.fit
    monkeypatch.setattr(lightgbm, "fit", lambda *args: fits.append(args[2].trial) or plain(*args))
    with pytest.raises(StoppedError, match=r"in fit 4 of 6"):
        execute(TREES, data, tmp_path / "cut", stop=stopping_at(19))
    execute(TREES, data, tmp_path / "cut")
    assert fits == [0, 0, 1, 1, 1, 1, 2, 2]
    assert result(tmp_path / "cut") == result(tmp_path / "whole")


def stop_early(spec, data, out, calls=9):
    with pytest.raises(StoppedError):
        execute(spec, data, out, stop=stopping_at(calls))
    (file,) = out.with_name(out.name + ".checkpoint").glob("*.safetensors")
    return file


@pytest.mark.parametrize("harm", ["cut short", "flipped bit", "emptied"])
def test_a_damaged_checkpoint_is_said_and_set_aside(data, tmp_path, capsys, harm):
    file = stop_early(LINEAR, data, tmp_path / "cut")
    content = bytearray(file.read_bytes())
    if harm == "cut short":
        content = content[:-7]
    elif harm == "flipped bit":
        content[-30] ^= 4
    else:
        content = b""
    file.write_bytes(content)
    execute(LINEAR, data, tmp_path / "cut")
    assert "cannot be used" in capsys.readouterr().err
    execute(LINEAR, data, tmp_path / "whole")
    assert result(tmp_path / "cut") == result(tmp_path / "whole")


def test_a_checkpoint_of_another_specification_is_said_and_set_aside(data, tmp_path, capsys):
    stop_early(LINEAR, data, tmp_path / "cut")
    other = {**LINEAR, "trials": 1}
    execute(other, data, tmp_path / "cut")
    assert "belongs to another specification" in capsys.readouterr().err
    execute(other, data, tmp_path / "whole")
    assert result(tmp_path / "cut") == result(tmp_path / "whole")


def test_a_checkpoint_of_other_code_is_set_aside(data, tmp_path, capsys, monkeypatch):
    stop_early(LINEAR, data, tmp_path / "cut")
    monkeypatch.setattr("directrank.study.run.run_digest", lambda spec: "other")
    execute(LINEAR, data, tmp_path / "cut")
    assert "cannot be used" in capsys.readouterr().err


def test_work_is_saved_when_its_minutes_are_over(tmp_path):
    often = Checkpoints(tmp_path / "a", "key", minutes=0)
    seldom = Checkpoints(tmp_path / "b", "key", minutes=60)
    assert often.due()
    assert not seldom.due()
    assert Checkpoints(tmp_path / "c", "key", 60, stop=lambda: "SIGUSR1").due()


def test_a_part_comes_back_as_it_was(tmp_path):
    kept = Checkpoints(tmp_path / "run", "key", 1, say=lambda text: None)
    tensors = {"a": torch.arange(6.0).view(2, 3), "b": torch.zeros(0, dtype=torch.uint8)}
    record = {"loss": [0.1, float("nan"), float("-inf")], "n": np.int64(3), "w": np.ones(2)}
    kept.save("part", tensors, record)
    found = kept.load("part")
    assert all(torch.equal(found.tensors[name], value) for name, value in tensors.items())
    assert json.dumps(found.record) == '{"loss": [0.1, NaN, -Infinity], "n": 3, "w": [1.0, 1.0]}'
    assert kept.load("other") is None


def start(spec_file, data, out):
    """A fit that saves after every step, and where its errors go."""
    arguments = ["fit", spec_file, "--data", data, "--out", out, "--checkpoint-minutes", 0]
    log = out.with_suffix(".log")
    return started(list(map(str, arguments)), log), log


def kill(process, folder, how, delay):
    """Kill the fit ``delay`` seconds after it saved something anew; how it ended."""
    began = time.time()
    while process.is_alive():
        saved = [path.stat().st_mtime for path in folder.glob("*.safetensors") if path.is_file()]
        if saved and max(saved) > began:
            break
        time.sleep(0.005)
    time.sleep(delay)
    os.kill(process.pid, how)
    process.join()
    return process.exitcode


def killed_again_and_again(data, tmp_path, kills, epochs, seed):
    spec = {**SPEC, "training": {**SPEC["training"], "max_epochs": epochs, "patience": None}}
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec))
    execute(spec, data, tmp_path / "whole")
    stream = np.random.default_rng(seed)
    done = 0
    for how in [signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL] * kills:
        if done == kills:
            break
        process, log = start(file, data, tmp_path / "cut")
        code = kill(process, tmp_path / "cut.checkpoint", how, float(stream.uniform(0, 0.25)))
        said = log.read_text()
        if code == 0:
            break
        done += 1
        assert code == (-signal.SIGKILL if how == signal.SIGKILL else 2), said
        assert "Traceback" not in said
        if how != signal.SIGKILL:
            assert f"stopped by {how.name}" in said.splitlines()[-1]
        assert not (tmp_path / "cut" / "run.json").exists()
    process, log = start(file, data, tmp_path / "cut")
    process.join()
    assert process.exitcode == 0, log.read_text()
    assert result(tmp_path / "cut") == result(tmp_path / "whole")
    assert not (tmp_path / "cut.checkpoint").exists()
    return done


@pytest.mark.slow
def test_real_kills_leave_no_trace_in_the_result(data, tmp_path):
    assert killed_again_and_again(data, tmp_path, kills=2, epochs=20, seed=1) == 2


@pytest.mark.long
def test_twenty_real_kills_leave_no_trace_in_the_result(data, tmp_path):
    assert killed_again_and_again(data, tmp_path, kills=20, epochs=300, seed=2) == 20
