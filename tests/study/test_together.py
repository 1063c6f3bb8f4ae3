"""Runs that are trained together are the runs trained alone, resume and fail one by one."""

import ast
import inspect

import pytest
import torch

from directrank import models
from directrank.learners.neural import stacking
from directrank.learners.neural.checkpoints import StoppedError
from directrank.learners.neural.fit import fit_together
from directrank.learners.neural.stack import Stack
from directrank.study.run import execute, execute_together, load_splits
from directrank.study.specification import OF_LISTS, in_passes
from directrank.system.errors import ConfigError, TrainingError
from stopped_runs import LINEAR, result, stopping_at
from together_runs import BROKEN, RUNS, assert_same, folders, run, trained_alone
from training_data import TOWER, prepare


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("data") / "web30k_standin")


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """The results of each run alone."""
    return trained_alone(data, tmp_path_factory.mktemp("alone"))


@pytest.fixture
def stacks(monkeypatch):
    """Stacks across runs, as on a GPU; the number of runs, models and rows of each."""
    made = []

    class Watched(Stack):
        def __init__(self, data, training, members, *others):
            super().__init__(data, training, members, *others)
            made.append((len({m.request for m in members}), len(members), len(self.rows)))

    monkeypatch.setattr(stacking, "across_runs", lambda device: True)
    monkeypatch.setattr(stacking, "needs_padding", lambda *arguments: False)
    monkeypatch.setattr("directrank.learners.neural.fit.Stack", Watched)
    monkeypatch.setattr(fit_together.__wrapped__, "__defaults__", (Watched,))
    return made


def test_runs_trained_together_are_the_runs_trained_alone(data, alone, stacks, tmp_path):
    assert execute_together(folders(tmp_path), data) == [None] * len(RUNS)
    # Trials 0 and 1 are two rows, trial 2 a third, and the second restarts two more.
    assert stacks == [(4, 2 + 3 + 4 + 4, 5)]
    for number, expected in enumerate(alone):
        assert_same(tmp_path / f"{number}", expected)
        assert not (tmp_path / f"{number}.checkpoint").exists()


@pytest.mark.slow
def test_on_a_cpu_runs_together_have_the_bytes_of_runs_alone(data, alone, tmp_path):
    assert execute_together(folders(tmp_path), data) == [None] * len(RUNS)
    for number, expected in enumerate(alone):
        assert result(tmp_path / f"{number}") == result(expected)


@pytest.mark.parametrize("calls", [(5, 40, 3, 10**9), (1, 33, 10**9)])
def test_runs_that_are_stopped_resume_together(calls, data, alone, stacks, tmp_path):
    stops = 0
    for number in calls:
        try:
            execute_together(folders(tmp_path), data, stop=stopping_at(number))
        except StoppedError:
            stops += 1
            assert (tmp_path / "0.checkpoint").exists()
    assert stops == len(calls) - 1
    for number, expected in enumerate(alone):
        assert_same(tmp_path / f"{number}", expected)


@pytest.mark.slow
def test_a_run_that_was_stopped_with_others_resumes_with_fewer_or_alone(
    data, alone, stacks, tmp_path, capsys
):
    with pytest.raises(StoppedError):
        execute_together(folders(tmp_path), data, stop=stopping_at(12))
    planned = folders(tmp_path)
    execute_together(planned[2:], data)
    execute(*planned[0][:1], data, planned[0][1])
    assert capsys.readouterr().err.count("resuming from checkpoint") == 3
    with pytest.raises(StoppedError):
        execute_together(planned[1:], data, stop=stopping_at(3))
    execute_together(planned, data)
    for number, expected in enumerate(alone):
        assert_same(tmp_path / f"{number}", expected)


def test_runs_that_were_stopped_at_different_steps_go_on_from_them(data, alone, stacks, tmp_path):
    planned = folders(tmp_path)[:3]
    for some, calls in ((planned[:2], 4), (planned[2:], 9)):
        with pytest.raises(StoppedError):
            execute_together(some, data, stop=stopping_at(calls))
    stacks.clear()
    execute_together(planned, data)
    assert sorted(runs for runs, _, _ in stacks) == [1, 2]
    for number, expected in enumerate(alone[:3]):
        assert_same(tmp_path / f"{number}", expected)


def test_a_run_whose_loss_is_not_finite_fails_alone(data, alone, stacks, tmp_path):
    specs = [*RUNS[:2], BROKEN, *RUNS[2:]]
    errors = execute_together(folders(tmp_path, specs), data)
    assert [error is None for error in errors] == [True, True, False, True, True]
    assert isinstance(errors[2], TrainingError)
    with pytest.raises(TrainingError) as raised:
        execute(BROKEN, data, tmp_path / "broken")
    assert errors[2].what.split(";")[0] == raised.value.what.split(";")[0]
    assert (tmp_path / "2/not_finite.safetensors").is_file()
    assert not (tmp_path / "2/run.json").exists()
    for number, expected in zip((0, 1, 3, 4), alone, strict=True):
        assert_same(tmp_path / f"{number}", expected)


def test_a_run_that_cannot_be_trained_leaves_the_others_as_they_are(
    data, alone, stacks, tmp_path, capsys
):
    without_k = run({"name": "approx_precision"})
    errors = execute_together(folders(tmp_path, [*RUNS[:2], without_k]), data)
    assert errors[:2] == [None, None]
    assert isinstance(errors[2], TypeError)
    assert "Each run is now trained alone" in capsys.readouterr().err
    for number, expected in enumerate(alone[:2]):
        assert_same(tmp_path / f"{number}", expected)


def test_grids_that_grow_do_so_together(data, stacks, tmp_path):
    tune = {"training.optimizer.lr": [0.0003, 0.001]}
    grow = {"training.optimizer.lr": {"lowest": 0.0001, "highest": 0.03}}
    specs = [
        {**run({"name": name}, trials=1, tune=tune, max_epochs=2), "grow": grow}
        for name in ("listnet", "approx_ndcg")
    ]
    execute_together(folders(tmp_path / "together", specs), data)
    assert stacks[0][0] == 2
    assert len(stacks) > 1
    for number, spec in enumerate(specs):
        execute(spec, data, tmp_path / f"{number}")
        assert_same(tmp_path / f"together/{number}", tmp_path / f"{number}")


def test_linear_scorers_of_runs_with_other_numbers_of_trials_share_a_stack(data, stacks, tmp_path):
    linear = {"dtype": "float64", "patience": 1, "tolerance": 0}
    specs = [
        {**LINEAR, "trials": trials, "training": {**LINEAR["training"], **linear}}
        for trials in (1, 3)
    ]
    execute_together(folders(tmp_path / "together", specs), data)
    assert stacks == [(2, (1 + 3) * 2 * 3, 3 * 3)]
    for number, spec in enumerate(specs):
        execute(spec, data, tmp_path / f"{number}")
        assert_same(tmp_path / f"together/{number}", tmp_path / f"{number}")


@pytest.mark.slow
def test_scorers_that_differ_in_their_activations_share_a_stack(data, stacks, tmp_path):
    layers = {"name": "feed_forward", "hidden": [6, 6], "dropout": 0.1}
    kinds = [("relu", True), ("celu", True), ("relu", False), ("celu", False)]
    losses = ({"name": "listnet"}, {"name": "approx_ndcg"})
    specs = [
        run(loss, layers | {"activation": name, "output_activation": last}, trials=1, max_epochs=2)
        for loss in losses
        for name, last in kinds
    ]
    execute_together(folders(tmp_path / "together", specs), data)
    assert stacks == [(8, 8, 1)]
    for number, spec in enumerate(specs):
        execute(spec, data, tmp_path / f"{number}")
        assert_same(tmp_path / f"together/{number}", tmp_path / f"{number}")
    each = {
        number: (tmp_path / f"{number}/history.csv").read_text() for number in range(len(specs))
    }
    assert len(set(each.values())) == len(specs)


def test_a_stack_has_no_more_models_than_have_room(data, alone, stacks, monkeypatch, tmp_path):
    # Eight documents of eight queries with five features, and the columns of the tower's weights.
    scorer = models.build(TOWER, 5, [torch.Generator()])
    columns = sum(parameter.shape[-1] for parameter in scorer.parameters())
    monkeypatch.setattr(stacking, "ROOM", 3 * 8 * 8 * (5 + columns) * 8)
    execute_together(folders(tmp_path, RUNS[:2]), data)
    assert stacks == [(2, 3, 2), (1, 2, 2)]
    for number, expected in enumerate(alone[:2]):
        assert_same(tmp_path / f"{number}", expected)


def test_only_networks_on_the_same_lists_are_trained_together(data, tmp_path):
    other = {**RUNS[0], "filter": {"min_documents": 2}}
    with pytest.raises(ConfigError, match="same lists"):
        execute_together([(RUNS[0], tmp_path / "a"), (other, tmp_path / "b")], data)
    named = {"a": RUNS[0], "b": other, "c": RUNS[1], "d": {**RUNS[0], "learner": "linear_ascent"}}
    assert in_passes(named) == [["a", "c"], ["b"], ["d"]]


def test_nothing_else_of_a_run_decides_on_its_lists():
    tree = ast.parse(inspect.getsource(load_splits))
    read = {
        node.slice.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "spec"
    } | {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "spec.get"
        and isinstance(node.args[0], ast.Constant)
    }  # fmt: skip
    # "data" names the folder that the caller has opened.
    assert read | {"data", "train_queries", "vali_queries"} == set(OF_LISTS)
