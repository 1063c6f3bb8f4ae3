"""Prediction from recorded runs, and how good it is for those that were recorded themselves."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from directrank.cost.facts import Facts, facts
from directrank.cost.features import NAMES, SIZES, UNITS, Features, features_of, layers
from directrank.cost.machine import SLOWER
from directrank.cost.predict import NEAREST, planned_seconds, predicted, recorded
from directrank.models import build
from studies import ROOT, study_of

SPEC = {
    "data": {"name": "web30k", "settings": {}},
    "fold": 1,
    "normalisation": {"name": "none"},
    "filter": {},
    "learner": "neural",
    "model": {"name": "tower", "hidden": [64, 32]},
    "loss": {"name": "approx_ndcg"},
    "training": {"optimizer": {"name": "sgd", "lr": 0.01}, "max_epochs": 10},
    "selection": {"name": "ndcg", "k": 5},
    "evaluation": [{"name": "ndcg", "k": 5}],
    "trials": 2,
}
SIZE = Facts(
    {"train": np.full(1000, 100), "vali": np.full(300, 100), "test": np.full(300, 100)}, 136, "made"
)
TREES = {key: value for key, value in SPEC.items() if key not in ("loss", "training")} | {
    "learner": "lightgbm",
    "model": {"n_trees": 100, "num_leaves": 32},
}


def changed(**changes):
    """``SPEC`` with some sections laid over it; a dictionary changes a section's keys."""
    return {
        **SPEC,
        **{
            key: {**SPEC[key], **value} if isinstance(value, dict) and key in SPEC else value
            for key, value in changes.items()
        },
    }


def trained(spec, size=SIZE, device="cpu"):
    """The work of a run that grows with its epochs."""
    features = features_of(spec, size, device)
    return features.work - features.fixed


# --------------------------------------------------------------------------------------------- work


@pytest.mark.parametrize(
    ("spec", "times"),
    [
        (changed(trials=4), 2),
        (changed(training={"max_epochs": 20}), 2),
        (changed(training={"restarts": 3}), 3),
        (changed(tune={"loss.alpha": [1, 10, 100]}), 3),
        (changed(tune={"training.max_epochs": [10, 30]}), 4),
    ],
)
def test_work_grows_with_fits_and_epochs(spec, times):
    assert trained(spec) == pytest.approx(times * trained(SPEC))


def test_an_epoch_is_three_passes_its_pairs_its_steps_and_validation():
    units = UNITS["cpu"]
    size = 136 * 64 + 64 * 32 + 32 + units.output * (64 + 32 + 1)
    spec = changed(trials=1, training={"max_epochs": 1, "batch_queries": 100})
    expected = 3 * 100_000 * size + units.pair * 1000 * 100**2 + units.step * 10
    expected += 30_000 * (size + units.evaluated)
    assert trained(spec) == pytest.approx(expected)
    features = features_of(spec, SIZE)
    assert (features.documents, features.length, features.step) == (100_000, 100, 10_000)
    assert features.size == pytest.approx(size)


def test_models_that_are_trained_together_share_the_start_of_their_steps():
    alone, together = (
        trained(changed(trials=10, training={"batch_queries": 1, "stack": stack}))
        for stack in (1, 0)
    )
    steps = 10 * 10 * 1000 * UNITS["cpu"].step
    assert alone - together == pytest.approx(0.9 * steps)


def test_a_gpu_trains_as_many_models_together_as_runs_on_the_same_lists_have():
    spec = changed(trials=10, training={"batch_queries": 1, "stack": 1})
    alone, own, all_runs = (
        features_of(spec, SIZE, "cuda", together) for together in (1, None, 100)
    )
    assert [own.together, all_runs.together] == [10, 100]
    steps = 10 * 10 * 1000 * UNITS["cuda"].step
    assert alone.work - own.work == pytest.approx(0.9 * steps)
    assert alone.work - all_runs.work == pytest.approx(0.99 * steps)


def test_lists_count_as_they_are_cut_and_filtered():
    cut = features_of(changed(training={"max_documents": 50}), SIZE)
    assert (cut.documents, cut.length) == (50_000, 50)
    short = Facts({**SIZE.lengths, "train": np.array([5] * 1000 + [100] * 1000)}, 136, "made")
    filtered = features_of(changed(filter={"min_documents": 10}), short)
    assert (filtered.documents, filtered.length) == (100_000, 100)


def test_both_splits_and_a_sample_are_what_is_trained_on():
    both = features_of({**SPEC, "train_on": "train_and_vali"}, SIZE)
    assert both.documents == 130_000
    sample = {"queries": {"train": 500, "vali": 300, "test": 300}, "max_documents": 50}
    assert features_of({**SPEC, "sample": sample}, SIZE).documents == 25_000


def test_training_pair_by_pair_passes_pairs():
    queries, pairs = (trained(changed(learner=name)) for name in ("ranknet_v2", "ranknet_v1"))
    assert pairs > 50 * queries


def test_trees_grow_with_their_number_and_put_values_into_bins_once():
    few, many = (
        features_of(TREES | {"model": {"n_trees": number, "num_leaves": 32}}, SIZE)
        for number in (100, 200)
    )
    assert many.work - many.fixed == pytest.approx(2 * (few.work - few.fixed))
    assert few.fixed == many.fixed
    assert few.fixed > features_of(SPEC, SIZE).fixed
    wide = dataclasses.replace(SIZE, features=272)
    assert 1.5 < trained(TREES, wide) / trained(TREES) < 2


@pytest.mark.parametrize(
    ("training", "ends"),
    [({}, False), ({"patience": 3}, True), ({"patience": 3, "max_epochs": 2}, False)],
)
def test_what_may_end_early_is_told(training, ends):
    assert features_of(changed(training=training), SIZE).ends_early == ends
    early = {"n_trees": 100, "num_leaves": 32, "early_stopping_rounds": 20}
    assert features_of(TREES | {"model": early}, SIZE).ends_early


@pytest.mark.parametrize(
    "model",
    [
        {"name": "context", "width": 96, "blocks": 2, "heads": 1, "inner": 384},
        {"name": "tower", "hidden": [1024, 512, 256, 128, 64, 32, 16]},
        {"name": "linear"},
        {"name": "two_layer", "hidden": 10},
    ],
)
def test_layers_are_those_of_the_scorer_that_is_built(model):
    import torch

    scorer = build(model, 136, [torch.Generator().manual_seed(0)])
    weights = [parameter.shape[-2:] for parameter in scorer.parameters()]
    built = sum(inputs * outputs for inputs, outputs in weights if inputs > 1)
    counted = sum(inputs * outputs for inputs, outputs in layers(model, 136))
    assert counted == pytest.approx(built, rel=0.01)


# ------------------------------------------------------------------------------------------ look-up


def table_of(**runs):
    """A table of recorded runs: name → (specification, seconds)."""
    rows = []
    for run, (spec, seconds) in runs.items():
        features = dataclasses.asdict(features_of(spec, SIZE))
        rows.append({"run": run, **features, "seconds": seconds})
    return pd.DataFrame(rows)


def one(spec, table, name="asked", **options):
    return predicted({name: features_of(spec, SIZE)}, table, **options).loc[name]


def test_a_recorded_run_takes_what_it_took():
    table = table_of(a=(SPEC, 7.0), b=(changed(trials=3), 1.0))
    row = one(SPEC, table, "a")
    assert row["seconds"] == pytest.approx(7.0)
    assert row["like"] == "a"
    assert one(SPEC, table, "a", leave_out=True)["like"] == "b"


def test_another_run_takes_the_time_of_the_nearest_times_the_ratio_of_work():
    table = table_of(near=(changed(training={"max_epochs": 20}), 8.0))
    row = one(SPEC, table)
    ratio = features_of(SPEC, SIZE).work / table["work"].item()
    assert row["seconds"] == pytest.approx(8.0 * ratio)
    features = features_of(SPEC, SIZE)
    assert row["start"] == pytest.approx(row["seconds"] * features.fixed / features.work)


@pytest.mark.parametrize(
    "farther",
    [
        changed(loss={"name": "softrank"}),
        changed(training={"dtype": "float64"}),
        changed(training={"patience": 3}),
        changed(training={"max_epochs": 50}),
        changed(training={"batch_queries": 1}),
        changed(model={"hidden": [1024, 512]}),
    ],
)
def test_what_differs_is_farther(farther):
    near = changed(training={"max_epochs": 11})
    assert one(SPEC, table_of(far=(farther, 1.0), near=(near, 1.0)))["like"] == "near"


def test_a_run_that_was_disturbed_does_not_decide_alone():
    assert NEAREST == 3
    again = {f"r{number}": (SPEC, seconds) for number, seconds in enumerate((90.0, 2.0, 2.1))}
    assert one(SPEC, table_of(**again))["seconds"] == pytest.approx(2.1)


def test_other_learners_tell_nothing():
    row = one(TREES, table_of(a=(SPEC, 1.0)))
    assert np.isnan(row["seconds"])


@pytest.mark.slow
def test_a_plan_has_the_same_seconds_wherever_it_is_made():
    study = study_of("demo")
    seconds = planned_seconds(study)
    known = recorded().set_index("run")["seconds"]
    assert list(seconds) == list(study.runs)
    assert all(seconds[run] == known[run] for run in study.runs if run in known.index)
    code = "import sys, directrank.cost.predict; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------------------------------- accuracy


def features_in(table):
    """The features of recorded runs as they are in the table."""
    names = ["learner", *NAMES, *SIZES]
    rest = {"fits": 1, "epochs": 1, "fixed": 0.0}
    rows = table[names].to_dict("records")
    return {run: Features(**row, **rest) for run, row in zip(table["run"], rows, strict=True)}


def measured_seconds(edition):
    """Run → what it took, as its edition's measurements have it."""
    if edition == "rehearsal":
        return pd.read_csv(ROOT / "benchmarks/results/rehearsal.csv").set_index("run")["measured_s"]
    jobs = pd.read_csv(ROOT / "benchmarks/results/jobs.csv")
    fits = jobs[(jobs["edition"] == edition) & jobs["job"].str.startswith("fit/")]
    seconds = fits["seconds"] / fits["processor"].map(SLOWER).fillna(1.0)
    return seconds.set_axis(fits["job"].str.removeprefix("fit/"))


@pytest.mark.slow
@pytest.mark.parametrize(("edition", "fits"), [("demo", 298), ("real", 2870), ("rehearsal", 1684)])
def test_nine_of_ten_recorded_fits_are_predicted_within_a_factor_of_two(edition, fits):
    """Also without their own records, from the nearest others; 54 fits of the rehearsal, which ran
    on a slower machine, are not among the records."""
    table, took = recorded(), measured_seconds(edition)
    assert len(took) == fits
    study = study_of(edition)
    runs = features_in(table)
    features = {
        run: runs[run] if run in runs else features_of(study.runs[run], size_in(study, run))
        for run in took.index
    }
    for leave_out in (False, True):
        times = predicted(features, table, leave_out)["seconds"]
        share = (took / times).between(0.5, 2).mean()
        print(f"{edition}, {'without' if leave_out else 'with'} its own record: {share:.1%}")
        assert share > 0.9


def size_in(study, run):
    """The size of a run's data, as the table has it: nothing is prepared."""
    return facts(study.data[study.run_data[run]], study.runs[run]["fold"], "/dev/null")


def test_the_table_has_every_recorded_run_with_its_present_features():
    table = recorded().set_index("run")
    study = study_of("demo")
    assert set(study.runs) <= set(table.index)
    for run, spec in list(study.runs.items())[::10]:
        features = dataclasses.asdict(features_of(spec, size_in(study, run)))
        row, again = table.loc[run], "run `python benchmarks/record_costs.py` again"
        assert [row[name] for name in NAMES] == [features[name] for name in NAMES], again
        sizes = [features[name] for name in SIZES]
        assert row[list(SIZES)].astype(float).tolist() == pytest.approx(sizes, rel=0.01), again
