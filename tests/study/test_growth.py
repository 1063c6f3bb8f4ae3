"""Grids that grow while their best value is at an end."""

import contextlib
import json

import pytest

from directrank.learners.neural.checkpoints import StoppedError
from directrank.study.growth import Grid, half_decade, number_of
from directrank.study.results import load_run
from directrank.study.run import execute
from directrank.study.specification import validate
from directrank.system.errors import ConfigError
from stopped_runs import SPEC
from training_data import prepare

RATE = "training.optimizer.lr"
LIMITS = {RATE: {"lowest": 0.001, "highest": 1.0}}


def tried(*rates, alphas=(1, 10)):
    return [{RATE: rate, "loss.alpha": alpha} for rate in rates for alpha in alphas]


def grown(metric, start, limits=LIMITS):
    """The grid at the end of a search in which ``metric`` gives a candidate's value."""
    grid = Grid(limits, tried(*start))
    while further := grid.further([metric(settings) for settings in grid.tried]):
        assert not any(settings in grid.tried for settings in further)
        grid.tried += further
    return grid


def test_half_decades_are_written_as_people_write_them():
    assert [half_decade(number) for number in range(-5, 3)] == [
        0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0,
    ]  # fmt: skip
    assert all(number_of(half_decade(number)) == number for number in range(-9, 9))
    with pytest.raises(ConfigError, match="is not 1 or 3 times"):
        number_of(0.02)


@pytest.mark.parametrize("best", [0.003, 0.03, 0.1, 0.3])
def test_a_grid_grows_until_its_best_lies_inside(best):
    grid = grown(lambda s: -abs(number_of(s[RATE]) - number_of(best)), (0.01, 0.03))
    values = grid.values(RATE)
    assert values[0] < best < values[-1]
    assert len(grid.tried) == 2 * len(values)  # with every value of the other setting
    record = grid.record([-abs(number_of(s[RATE]) - number_of(best)) for s in grid.tried])[RATE]
    assert record == {"values": values, "best": best, "inside": True, "limits": LIMITS[RATE],
                      "closed": []}  # fmt: skip


def test_a_grid_whose_best_lies_inside_stays_as_it_is():
    assert len(grown(lambda s: -abs(s[RATE] - 0.01), (0.003, 0.01, 0.03)).tried) == 6


@pytest.mark.parametrize(("sign", "end"), [(1, 1.0), (-1, 0.001)])
def test_a_grid_ends_at_its_limits_and_says_so(sign, end):
    grid = grown(lambda s: sign * s[RATE], (0.01, 0.03))
    metrics = [sign * s[RATE] for s in grid.tried]
    record = grid.record(metrics)[RATE]
    assert record["best"] == end
    assert not record["inside"]
    assert not grid.inside({RATE: end, "loss.alpha": 1})
    assert grid.inside({RATE: 0.01, "loss.alpha": 1}) == (grid.values(RATE)[0] < 0.01)


def test_an_end_beyond_which_training_failed_is_not_tried_again():
    grid = Grid(LIMITS, tried(0.01, 0.03))
    metrics = [settings[RATE] for settings in grid.tried]
    grid.close(metrics, grid.further(metrics), "the loss is not finite in epoch 1")
    assert grid.further(metrics) == []
    assert grid.record(metrics)[RATE]["closed"] == ["the loss is not finite in epoch 1"]


def test_a_metric_that_is_missing_is_the_worst():
    grid = Grid(LIMITS, tried(0.01, 0.03, 0.1, alphas=(1,)))
    assert grid.further([0.1, 0.2, float("nan")]) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grow": {"loss.beta": LIMITS[RATE]}}, "of which tune has no two values"),
        ({"tune": {RATE: [0.01, 0.02]}}, "is not 1 or 3"),
        ({"tune": {RATE: [0.0001, 0.01]}}, "not within the limits"),
        ({"tune": {RATE: ["a", "b"]}}, "'a' is no number"),
        ({"grow": {RATE: {"lowest": 0.001}}}, "highest"),
    ],
)
def test_grids_that_cannot_grow_are_refused(change, message):
    spec = {**SPEC, "tune": {RATE: [0.01, 0.03]}, "grow": LIMITS}
    validate(spec)
    with pytest.raises(ConfigError, match=message):
        validate({**spec, **change})


def test_only_grids_of_networks_grow():
    spec = {key: value for key, value in SPEC.items() if key not in ("loss", "training")}
    spec |= {"learner": "lightgbm", "model": {}, "tune": {"model.learning_rate": [0.1, 0.3]},
             "grow": {"model.learning_rate": LIMITS[RATE]}}  # fmt: skip
    with pytest.raises(ConfigError, match="cannot grow"):
        validate(spec)


def test_a_run_grows_its_grid_and_records_where_the_best_lies(tmp_path):
    data = prepare(tmp_path / "data")
    training = {**SPEC["training"], "max_epochs": 3, "patience": 2}
    spec = {**SPEC, "training": training, "tune": {RATE: [0.0003, 0.001]}, "trials": 2,
            "grow": {RATE: {"lowest": 0.0003, "highest": 0.3}}}  # fmt: skip
    execute(spec, data, tmp_path / "run", device="cpu")
    result = load_run(tmp_path / "run")
    (grid,) = result.record["grids"].values()
    assert grid["values"][:3] == [0.0003, 0.001, 0.003]
    assert grid["inside"] == (grid["best"] < grid["values"][-1])
    fits = result.fits
    assert list(fits.groupby("trial").size()) == [len(grid["values"])] * 2
    assert fits["selected"].sum() == 2
    means = fits.groupby(RATE)["vali_metric"].mean()
    assert means.idxmax() == grid["best"]
    inner = fits[RATE].between(grid["values"][0], grid["values"][-1], inclusive="neither")
    assert (fits["inside"] == inner).all()
    chosen = fits[fits["selected"]]
    assert result.record["at_max_epochs"] == (~chosen["stopped_early"]).sum()
    assert not (tmp_path / "run.checkpoint").exists()


def test_a_run_that_was_stopped_while_its_grid_grew_ends_with_the_same_bytes(tmp_path, capsys):
    data = prepare(tmp_path / "data")
    spec = {**SPEC, "tune": {RATE: [0.0003, 0.001]}, "trials": 1,
            "grow": {RATE: {"lowest": 0.0003, "highest": 0.03}}}  # fmt: skip
    execute(spec, data, tmp_path / "whole", device="cpu")
    calls = 0

    def stop():
        nonlocal calls
        calls += 1
        return "SIGTERM" if calls > 30 else None

    stopped = 0
    while not (tmp_path / "parts/run.json").exists():
        with contextlib.suppress(StoppedError):
            execute(spec, data, tmp_path / "parts", device="cpu", checkpoint_minutes=60, stop=stop)
            continue
        stopped, calls = stopped + 1, 0
    assert stopped > 0
    assert "growth-01-stack-000" in capsys.readouterr().err
    for name in ("per_query.parquet", "models/0.safetensors"):
        one, other = ((tmp_path / run / name).read_bytes() for run in ("whole", "parts"))
        assert one == other
    grids = [json.loads((tmp_path / run / "run.json").read_text())["grids"]
             for run in ("whole", "parts")]  # fmt: skip
    assert grids[0] == grids[1]
    assert len(grids[0][RATE]["values"]) > 2
