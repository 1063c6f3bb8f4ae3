"""Steps as a GPU takes them, here one operation after the other, train as steps on a CPU do."""

import gc
import math
import weakref
from functools import cache

import numpy as np
import pytest

from directrank.kernels import dispatch
from directrank.learners.contract import Request, Splits
from directrank.learners.neural import captured, objective, stacking
from directrank.learners.neural.failures import NotFiniteError
from directrank.learners.neural.fit import fit_many, fit_together
from directrank.learners.neural.stack import Stack
from training_data import TOWER, TRAINING, fit, job, made

SCORERS = {
    "linear": {"name": "linear"},
    "tower": TOWER,
    "by query": {"name": "feed_forward", "activation": "relu", "output_activation": False,
                 "hidden": [6, 6], "dropout": 0.0},
    "by batch": {"name": "feed_forward", "activation": "celu", "output_activation": True,
                 "hidden": [6, 6], "dropout": 0.0, "norm": "batch"},
    "context": {"name": "context", "width": 4, "blocks": 1, "heads": 2, "inner": 8,
                "dropout": 0.0},
    "two layers": {"name": "two_layer", "hidden": 4},
}  # fmt: skip


#: Few short lists, because the interpreter is slow.
DATA = Splits(made(7, 0), made(4, 1), made(4, 2), label_levels=3)


@pytest.fixture
def as_on_gpu(monkeypatch):
    """A function that trains with the steps that a GPU takes, and fails if it does not."""

    def call(*arguments, train=fit, **options):
        taken = []
        with monkeypatch.context() as patch:
            run = captured.CapturedSteps.run

            def counted(self, queries, first, draw):
                objectives = run(self, queries, first, draw)
                taken.extend(queries)
                return objectives

            patch.setattr(captured.CapturedSteps, "run", counted)
            patch.setattr(dispatch, "device_of", lambda values: "cuda")
            patch.setattr("directrank.learners.neural.stack.device_of", lambda values: "cuda")
            # What is known of losses is that of a CPU.
            for name in ("_needs_padding", "_waits_for_nothing"):
                patch.setattr(objective, name, cache(getattr(objective, name).__wrapped__))
            fitted = train(*arguments, **options)
        assert taken, "no step was captured"
        return fitted

    return call


def same_course(ours, theirs):
    for epoch, plain in zip(ours.history, theirs.history, strict=True):
        assert math.isclose(epoch["train_loss"], plain["train_loss"], rel_tol=1e-9)
        assert math.isclose(epoch["vali_metric"], plain["vali_metric"], rel_tol=1e-9)


@pytest.mark.parametrize("batch_queries", [1, 3])
@pytest.mark.parametrize("scorer", SCORERS)
def test_the_course_of_training_is_that_of_a_cpu(scorer, batch_queries, as_on_gpu):
    # In float32 Adam would make steps of rounding errors, those of a bias, which moves no document.
    options = {"model": SCORERS[scorer], "batch_queries": batch_queries, "max_epochs": 2,
               "dtype": "float64"}  # fmt: skip
    expected = fit(DATA, 2, **options)
    for ours, theirs in zip(as_on_gpu(DATA, 2, **options), expected, strict=True):
        same_course(ours, theirs)


def test_models_of_one_stack_may_have_several_losses(as_on_gpu):
    training = {**TRAINING, "dtype": "float64", "max_epochs": 2, "stack": 0, "batch_queries": 3}
    settings = [
        {"model": SCORERS["two layers"], "loss": {"name": name}, "training": training}
        for name in ("listnet", "ranknet", "listnet", "ranknet")
    ]
    jobs = [job(trial) for trial in (0, 0, 1, 1)]
    expected = fit_many(DATA, settings, jobs)
    for ours, theirs in zip(as_on_gpu(DATA, settings, jobs, train=fit_many), expected, strict=True):
        same_course(ours, theirs)


@pytest.mark.parametrize("scorer", ["linear", "by query"])
def test_models_that_see_the_same_queries_share_their_documents(scorer, as_on_gpu):
    training = {**TRAINING, "dtype": "float64", "max_epochs": 2, "stack": 0}
    settings = [
        {
            "model": SCORERS[scorer],
            "loss": {"name": "approx_ndcg", "alpha": alpha},
            "training": {**training, "optimizer": {"name": "adam", "lr": rate}},
        }
        for alpha in (1.0, 5.0)
        for rate in (0.01, 0.02)
    ]
    jobs = [job()] * len(settings)
    expected = fit_many(DATA, settings, jobs)
    for ours, theirs in zip(as_on_gpu(DATA, settings, jobs, train=fit_many), expected, strict=True):
        same_course(ours, theirs)


@pytest.mark.parametrize(
    "loss",
    [
        {"name": "gumbel_approx_ndcg", "samples": 2},
        {"name": "stochastic_rank", "samples": 2},
        {"name": "pl_rank", "samples": 2},
        {"name": "yeti_loss", "samples": 2},
        {"name": "twin_ndcg"},
    ],
    ids=str,
)
def test_losses_draw_the_numbers_of_a_cpu(loss, as_on_gpu):
    options = {"model": {"name": "linear"}, "loss": loss, "batch_queries": 4, "max_epochs": 2,
               "dtype": "float64", "stack": 0}  # fmt: skip
    expected = fit(DATA, 2, **options)
    for ours, theirs in zip(as_on_gpu(DATA, 2, **options), expected, strict=True):
        same_course(ours, theirs)
    assert expected[0].history[0]["train_loss"] != expected[1].history[0]["train_loss"]


@pytest.mark.parametrize("scorer", ["context", "by query", "by batch"])
def test_dropout_drops_what_it_drops_on_a_cpu(scorer, as_on_gpu):
    options = {"batch_queries": 4, "dtype": "float64", "max_epochs": 2, "stack": 0}
    model = SCORERS[scorer] | {"dropout": 0.3}
    expected = fit(DATA, 2, model=model, **options)
    for ours, theirs in zip(as_on_gpu(DATA, 2, model=model, **options), expected, strict=True):
        same_course(ours, theirs)
    without = fit(DATA, 1, model=SCORERS[scorer], **options)
    assert without[0].history[0]["train_loss"] != expected[0].history[0]["train_loss"]


def test_a_loss_that_is_not_finite_is_found_in_the_step_where_it_is_on_a_cpu(as_on_gpu):
    lists = made(7, 0)
    lists.features[lists.offsets[4] :] = np.inf
    data = Splits(lists, DATA.vali, DATA.test, label_levels=3)
    said = []
    for train in (fit, as_on_gpu):
        with pytest.raises(NotFiniteError) as raised:
            train(data, 2, batch_queries=1)
        said.append((raised.value.what, raised.value.settings["step"]))
    assert said[0] == said[1]
    assert said[0][1] > 1


def requests_of(names, **training):
    """A run of two trials for each loss."""
    settings = [
        {
            "model": SCORERS["two layers"],
            "loss": {"name": name},
            "training": {**TRAINING, "dtype": "float64", "max_epochs": 3, **training},
        }
        for name in names
    ]
    return [Request([one] * 2, [job(0), job(1)]) for one in settings]


@pytest.fixture
def across_runs(monkeypatch):
    """Stacks of several runs; the number of models and whether steps are captured, of each."""
    made = []
    plain = Stack.train

    def train(self, *arguments):
        made.append((len(self.results), self.captured is not None))
        return plain(self, *arguments)

    monkeypatch.setattr(Stack, "train", train)
    monkeypatch.setattr(stacking, "across_runs", lambda device: True)
    return made


@pytest.mark.parametrize(
    ("most", "stacks"), [(objective.PADDED_PAIRS, [(8, True)]), (0, [(2, False), (6, True)])]
)
def test_runs_with_several_losses_are_one_stack(most, stacks, as_on_gpu, across_runs, monkeypatch):
    # The last loss needs padded lists; if these are too long, it must not keep the others from
    # captured steps.
    monkeypatch.setattr(objective, "PADDED_PAIRS", most)
    requests = requests_of(["listnet", "ranknet", "approx_ndcg", "pairwise_hinge"])
    expected = [fit_many(DATA, one.settings, one.jobs) for one in requests]
    across_runs.clear()
    found = as_on_gpu(DATA, requests, train=fit_together)
    assert sorted(across_runs) == stacks
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            same_course(one, other)


def test_scorers_with_several_activations_are_one_stack(as_on_gpu, across_runs):
    settings = {**TRAINING, "dtype": "float64", "max_epochs": 2, "batch_queries": 3}
    kinds = [("relu", True), ("celu", True), ("relu", False), ("celu", False)]
    requests = [
        Request(
            [
                {
                    "model": SCORERS["by query"] | {"activation": name, "output_activation": last},
                    "loss": {"name": "listnet"},
                    "training": settings,
                }
            ],
            [job()],
        )
        for name, last in kinds
    ]
    expected = [fit_many(DATA, one.settings, one.jobs) for one in requests]
    across_runs.clear()
    found = as_on_gpu(DATA, requests, train=fit_together)
    assert across_runs == [(4, True)]
    for (one,), (other,) in zip(found, expected, strict=True):
        same_course(one, other)


def test_a_run_that_fails_does_not_keep_others_from_captured_steps(as_on_gpu, across_runs):
    broken, other = (
        requests_of(
            [name], batch_queries=1, optimizer={"name": "sgd", "lr": rate, "weight_decay": 1.0}
        )[0]
        for name, rate in (("rmse", 1e200), ("ranknet", 0.1))
    )
    expected = fit_many(DATA, other.settings, other.jobs)
    across_runs.clear()
    alone, plain = [], Stack._step

    def step(self, queries, number):
        alone.append(number)
        return plain(self, queries, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stack, "_step", step)
        patch.setattr("directrank.learners.neural.stack.BLOCK", 2)
        failed, found = as_on_gpu(DATA, [broken, other], train=fit_together)
    assert isinstance(failed, NotFiniteError)
    assert across_runs == [(4, True)]
    assert alone == [3, 4]  # of seven; to find out where it was, and in the others it had failed
    for one, another in zip(found, expected, strict=True):
        same_course(one, another)


def test_a_stack_that_is_trained_leaves_its_memory_to_the_next(as_on_gpu, monkeypatch):
    stacks, plain = [], Stack.train

    def train(self, *arguments):
        stacks.append(weakref.ref(self))
        assert [stack() for stack in stacks[:-1]] == [None] * (len(stacks) - 1)
        return plain(self, *arguments)

    monkeypatch.setattr(Stack, "train", train)
    gc.disable()  # which knows nothing of a GPU's memory
    try:
        as_on_gpu(DATA, 3, model=SCORERS["linear"], max_epochs=1)
    finally:
        gc.enable()
    assert len(stacks) == 3


def test_models_that_have_finished_stay_until_it_pays_to_capture_again(as_on_gpu, across_runs):
    early, late = requests_of(["listnet", "ranknet"], batch_queries=3, max_epochs=2)
    longer = {**late.settings[0]["training"], "max_epochs": 4}
    late = Request([{**late.settings[0], "training": longer}] * 3, [job(n) for n in range(3)])
    sizes = []
    plain = captured.CapturedSteps.run

    def watched(self, queries, first, draw):
        sizes.append(self.models)
        return plain(self, queries, first, draw)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captured.CapturedSteps, "run", watched)
        found = as_on_gpu(DATA, [early, late], train=fit_together)
    assert sizes == [5] * 4
    assert [one.info["epochs"] for fits in found for one in fits] == [2, 2, 4, 4, 4]
