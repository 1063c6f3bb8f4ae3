"""Learning rates of their own, that change, and weights that are drawn anew."""

import numpy as np
import pytest
import torch

from directrank.learners.neural import optimisers
from directrank.learners.neural.fit import fit_many
from directrank.learners.neural.schedules import Pace
from directrank.learners.neural.stack import Stack
from directrank.system.errors import ConfigError
from directrank.system.schema import check, package_schema
from training_data import LOSS, TOWER, TRAINING, fit, job, splits

STEP = {"name": "step", "every": 2, "factor": 0.5}
WORSE = {"name": "on_worse_cost", "factor": 0.8}


@pytest.fixture(scope="module")
def data():
    return splits()


def test_a_step_schedule_multiplies_every_so_many_epochs():
    pace, factors = Pace(), []
    for _ in range(5):
        pace.after_epoch(1.0, STEP)
        factors.append(pace.factor)
    assert factors == [1.0, 0.5, 0.5, 0.25, 0.25]


def test_a_cost_schedule_multiplies_after_each_epoch_worse_than_the_one_before():
    pace, factors = Pace(), []
    for loss in (3.0, 2.0, 2.5, 2.4, 2.4, 2.6):
        pace.after_epoch(loss, WORSE)
        factors.append(pace.factor)
    assert factors == pytest.approx([1, 1, 0.8, 0.8, 0.8, 0.64])


def test_a_loss_without_a_new_lowest_goes_stale_and_fresh_weights_begin_anew():
    pace = Pace()
    for loss in (3.0, 2.0, 2.5, 2.4):
        pace.after_epoch(loss, WORSE)
    assert pace.gone_stale(2)
    assert not pace.gone_stale(3)
    assert not pace.gone_stale(None)
    fresh = pace.drawn_anew()
    assert (fresh.factor, fresh.idle, fresh.draws) == (1.0, 0, 1)
    fresh.after_epoch(9.0, WORSE)
    assert fresh.factor == 1.0


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_each_model_is_updated_as_torch_would_update_it_alone(name, decay):
    classes = {
        "sgd": torch.optim.SGD,
        "adagrad": torch.optim.Adagrad,
        "adam": torch.optim.Adam,
    }
    more = {"initial_accumulator_value": 0.1} if name == "adagrad" else {}
    stream = torch.Generator().manual_seed(3)
    start = torch.randn(3, 4, 2, generator=stream, dtype=torch.float64)
    ours = start.clone()
    rates = torch.tensor([0.1, 0.01, 0.3], dtype=torch.float64)
    optimiser = optimisers.build({"name": name, "lr": 9.0, "weight_decay": decay}, [ours])
    theirs = [start[m].clone().requires_grad_() for m in range(3)]
    alone = [
        classes[name]([p], lr=float(rate), weight_decay=decay, **more)
        for p, rate in zip(theirs, rates, strict=True)
    ]
    optimiser.set_rates(rates.tolist())
    for _ in range(5):
        gradient = torch.randn(3, 4, 2, generator=stream, dtype=torch.float64)
        optimiser.step([gradient])
        for model in range(3):
            theirs[model].grad = gradient[model]
            alone[model].step()
    assert torch.allclose(ours, torch.stack([p.detach() for p in theirs]), rtol=1e-10)


@pytest.mark.parametrize("name", ["adagrad", "adam"])
def test_a_model_that_is_forgotten_goes_on_like_a_new_one(name):
    stream = torch.Generator().manual_seed(5)
    gradients = torch.randn(6, 2, 3, generator=stream)
    weights, fresh = torch.zeros(2, 3), torch.zeros(2, 3)
    old = optimisers.build({"name": name, "lr": 1.0}, [weights])
    old.set_rates([0.1, 0.1])
    for gradient in gradients[:3]:
        old.step([gradient])
    old.forget(1)
    weights[1] = 0
    new = optimisers.build({"name": name, "lr": 1.0}, [fresh])
    new.set_rates([0.1, 0.1])
    for gradient in gradients[3:]:
        old.step([gradient])
        new.step([gradient])
    assert torch.equal(weights[1], fresh[1])
    assert not torch.equal(weights[0], fresh[0])


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam"])
def test_new_learning_rates_are_where_captured_steps_read_the_old_ones(name):
    # A CUDA graph repeats operations on the memory that was there when it was captured.
    weights = torch.zeros(2, 3)
    optimiser = optimisers.build({"name": name, "lr": 1.0}, [weights])
    optimiser.set_rates([0.1, 0.2])
    place = optimiser.rates.data_ptr()
    optimiser.step([torch.ones(2, 3)])
    optimiser.set_rates([0.3, 0.0])
    assert optimiser.rates.data_ptr() == place
    before = weights.clone()
    optimiser.step([torch.ones(2, 3)])
    assert (weights[0] != before[0]).all()
    assert torch.equal(weights[1], before[1])


def test_an_optimiser_names_the_settings_it_has():
    with pytest.raises(ConfigError, match="does not take"):
        optimisers.build({"name": "sgd", "lr": 1, "initial_accumulator_value": 1}, [])


@pytest.mark.slow
@pytest.mark.parametrize("model", [TOWER, {"name": "linear"}])
@pytest.mark.parametrize(
    ("optimizer", "extra"),
    [
        ("adagrad", {"schedule": STEP}),
        ("adam", {"schedule": WORSE, "restart_after": 2, "max_epochs": 12}),
        ("sgd", {"restart_after": 1, "patience": 3, "max_epochs": 9, "batch_queries": 1}),
    ],
)
def test_models_with_rates_of_their_own_train_together_as_alone(data, model, optimizer, extra):
    rates = [0.5, 0.02, 0.001]
    settings = [
        {
            "model": model,
            "loss": {"name": "approx_ndcg", "alpha": alpha},
            "training": {
                **TRAINING,
                "dtype": "float64",
                "optimizer": {"name": optimizer, "lr": rate},
                **extra,
            },
        }
        for rate, alpha in zip(rates, [1.0, 5.0, 10.0], strict=True)
    ]
    both = [setting for _ in range(2) for setting in settings]
    jobs = [job(trial) for trial in range(2) for _ in settings]
    together = fit_many(
        data, [{**s, "training": {**s["training"], "stack": 0}} for s in both], jobs
    )
    for setting, one_job, other in zip(both, jobs, together, strict=True):
        (alone,) = fit_many(data, [setting], [one_job])
        for key in ("best_epoch", "epochs", "stopped_early", "redrawn"):
            assert alone.info[key] == other.info[key], key
        assert np.allclose(alone.predict(data.test), other.predict(data.test), atol=1e-7)
        for a, b in zip(alone.history, other.history, strict=True):
            assert np.isclose(a["train_loss"], b["train_loss"])
            assert np.isclose(a["vali_metric"], b["vali_metric"])


def test_a_whole_grid_of_rates_is_one_stack(data):
    made_of = []

    class Watched(Stack):
        def __init__(self, data, training, members, *rest):
            made_of.append(len(members))
            super().__init__(data, training, members, *rest)

    settings = [
        {
            "model": {"name": "linear"},
            "loss": LOSS,
            "training": {**TRAINING, "stack": 0, "optimizer": {"name": "sgd", "lr": rate}},
        }
        for rate in (0.1, 0.01, 0.001)
    ]
    fitted = fit_many(data, settings, [job()] * 3, kind=Watched)
    assert made_of == [3]
    assert len({f.predict(data.test).tobytes() for f in fitted}) == 3


def test_fresh_weights_bring_a_stuck_model_back(data):
    stuck = fit(data, model={"name": "linear"}, max_epochs=8, restart_after=2, schedule=None)
    assert stuck[0].info["redrawn"] == 0
    # Without a learning rate worth its name no epoch is better than the one before for long.
    still = fit(
        data,
        model={"name": "linear"},
        max_epochs=8,
        restart_after=2,
        keep="last",
        optimizer={"name": "sgd", "lr": 1e-300},
    )[0]
    first = {row["vali_metric"] for row in still.history[:3]}
    later = {row["vali_metric"] for row in still.history[3:]}
    assert still.info["redrawn"] >= 1
    assert len(first) == 1
    assert later - first


def test_the_schema_knows_both_schedules_and_no_third():
    schema = package_schema("run")["properties"]["training"]["properties"]["schedule"]
    for good in (None, STEP, WORSE):
        check(good, schema, "schedule")
    for bad in ({"every": 2, "factor": 0.5}, {"name": "cosine"}, {**WORSE, "every": 2}):
        with pytest.raises(ConfigError):
            check(bad, schema, "schedule")
