import dataclasses
import subprocess
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from directrank import learners
from directrank.cli import main
from directrank.cli.cost import own_rates
from directrank.cost.cluster import Cluster, queue
from directrank.cost.estimate import against, calibrated, estimate
from directrank.cost.facts import Facts, facts
from directrank.cost.measure import covers_everything, machine, of_another_machine, scaled_reference
from directrank.cost.predict import (
    ELEMENTS_OF_A_WEIGHT,
    PARTS,
    ROUND_IN_CELLS,
    SOLVER_ROUNDS,
    cost_of,
    size_of,
)
from directrank.cost.rates import Rates, assumed_gpu, at
from directrank.edition.plan import DataSource
from directrank.losses import REGISTRY
from directrank.system import arithmetic
from directrank.system.errors import ConfigError, DataError
from studies import study_of
from workflow_runs import ROOT, TINY

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
FACTS = Facts(
    {"train": np.full(1000, 100), "vali": np.full(300, 100), "test": np.full(300, 100)}, 136, "made"
)


@pytest.fixture(scope="module")
def rates():
    """A machine of round numbers."""
    return Rates(
        device="cpu",
        machine="made up",
        threads=1,
        measured=True,
        note="made up",
        flops={"float32": 1e10, "float64": 5e9, "bfloat16": 1e10},
        flops_in_loops={"float32": 2e10, "float64": 1e10},
        element_seconds=1e-9,
        tensor_seconds=1e-4,
        lists={name: [[10, 1e-6], [100, 1e-4]] for name in REGISTRY},
        calls=dict.fromkeys(REGISTRY, 2e-4),
        evaluation_seconds=1e-7,
        learners=dict.fromkeys(learners.REGISTRY, 1e-9)
        | {"adarank": 1e-7, "ranking_svm": 1e-7, "svmmap": 1e-6},
        start_seconds=2.0,
    )


@pytest.fixture
def rates_file(rates, tmp_path):
    rates.write(tmp_path / "rates.json")
    return tmp_path / "rates.json"


def changed(**changes):
    """``SPEC`` with some sections laid over it; a dictionary changes a section's keys."""
    return {
        **SPEC,
        **{
            key: {**SPEC[key], **value} if isinstance(value, dict) and key in SPEC else value
            for key, value in changes.items()
        },
    }


def seconds(rates, size=FACTS, **changes):
    """Of all but the start of the process."""
    cost = cost_of(changed(**changes), size, rates)
    return cost.seconds - cost.start


def with_lists(**lengths):
    return Facts({**FACTS.lengths, **lengths}, FACTS.features, "made")


# ------------------------------------------------------------------------------------------ scaling


def test_twice_the_trials_take_twice_as_long(rates):
    assert seconds(rates, trials=4) == pytest.approx(2 * seconds(rates))


def test_twice_the_epochs_take_twice_the_training(rates):
    once, twice = (
        cost_of(changed(training={"max_epochs": epochs}), FACTS, rates) for epochs in (10, 20)
    )
    assert twice.network == pytest.approx(2 * once.network)
    assert twice.loss == pytest.approx(2 * once.loss)
    assert twice.steps == pytest.approx(2 * once.steps)
    cells = FACTS.features * sum(lengths.sum() for lengths in FACTS.lengths.values())
    assert twice.start == once.start == pytest.approx(2.0 + 2.6e-9 * cells)
    assert twice.epochs == 2 * once.epochs == 40


def test_an_epoch_chosen_on_the_test_set_costs_its_evaluation(rates):
    costs = [
        cost_of({**SPEC, "training": {**SPEC["training"], "select_on": split}}, FACTS, rates)
        for split in ("vali", "test")
    ]
    assert costs[1].evaluation > costs[0].evaluation
    assert costs[1].network == costs[0].network


def test_a_run_costs_what_its_sample_holds(rates):
    sample = {"queries": {"train": 500, "vali": 300, "test": 300}, "max_documents": 50}
    whole, drawn = (cost_of(spec, FACTS, rates) for spec in (SPEC, {**SPEC, "sample": sample}))
    assert drawn.network == pytest.approx(whole.network / 4)
    facts = FACTS.as_trained_on({**SPEC, "sample": sample})
    assert {split: len(value) for split, value in facts.lengths.items()} == sample["queries"]


def test_training_on_both_splits_costs_both(rates):
    both = cost_of({**SPEC, "train_on": "train_and_vali"}, FACTS, rates)
    assert both.network == pytest.approx(1.3 * cost_of(SPEC, FACTS, rates).network)


def test_candidates_and_restarts_multiply(rates):
    once = cost_of(SPEC, FACTS, rates)
    tuned = cost_of(changed(tune={"loss.alpha": [1, 10, 100]}), FACTS, rates)
    restarted = cost_of(changed(training={"restarts": 3}), FACTS, rates)
    assert tuned.network == pytest.approx(3 * once.network)
    assert restarted.loss == pytest.approx(3 * once.loss)


def test_half_the_queries_per_step_are_twice_the_steps(rates):
    wide, narrow = (
        cost_of(changed(training={"batch_queries": size}), FACTS, rates) for size in (100, 50)
    )
    assert narrow.steps == pytest.approx(2 * wide.steps)
    assert narrow.network == wide.network


def test_models_trained_together_share_the_time_of_a_step(rates):
    alone, together = (
        cost_of(changed(trials=10, training={"stack": stack}), FACTS, rates) for stack in (1, 0)
    )
    assert together.steps < alone.steps / 4
    assert together.network == alone.network


def test_each_step_calls_the_loss_and_updates_every_weight(rates):
    slow = dataclasses.replace(rates, calls={**rates.calls, "approx_ndcg": 5e-4})
    assert SPEC["loss"]["name"] == "approx_ndcg"
    batches = changed(trials=1, training={"batch_queries": 100})
    usual, later = (cost_of(batches, FACTS, each).steps for each in (rates, slow))
    assert later - usual == pytest.approx(10 * 10 * 3e-4)  # ten epochs of ten steps
    wide = {**batches, "model": {"name": "two_layer", "hidden": 1000}}
    narrow = {**batches, "model": {"name": "two_layer", "hidden": 10}}
    more = cost_of(wide, FACTS, rates).steps - cost_of(narrow, FACTS, rates).steps
    assert more == pytest.approx(10 * 10 * 990 * (136 + 1) * ELEMENTS_OF_A_WEIGHT * 1e-9)


@pytest.mark.parametrize(("when", "passes"), [({}, 10), ({"every": 5}, 2), ({"at": [3, 7, 40]}, 2)])
def test_quantities_that_are_recorded_cost_their_split(when, passes, rates):
    metric = {"name": "ndcg", "k": 5}
    quantities = [
        {"quantity": "metric", "metric": metric, "split": split} for split in 2 * ["test"]
    ]
    monitor = {"quantities": quantities, **when}
    plain, recorded = (
        cost_of(changed(trials=1, training={"monitor": each}), FACTS, rates)
        for each in (None, monitor)
    )
    documents = FACTS.lengths["test"]
    once = size_of(SPEC["model"], 136).seconds(documents, "float32", rates)
    once += 2 * documents.sum() * 1e-7
    assert recorded.evaluation - plain.evaluation == pytest.approx(passes * once)
    assert recorded.network == plain.network


def test_networks_cost_their_documents_and_losses_the_square_of_the_list(rates):
    short = cost_of(SPEC, FACTS, rates)
    long = cost_of(SPEC, with_lists(train=np.full(500, 200)), rates)
    assert long.network == pytest.approx(short.network)  # as many documents
    assert long.loss == pytest.approx(2 * short.loss)  # half the lists, four times the pairs


def test_every_round_of_a_solver_counts_with_its_fixed_cost(rates):
    spec = {key: value for key, value in SPEC.items() if key not in ("loss", "training")}
    spec |= {"learner": "svmmap", "model": {}}
    cost = cost_of(spec, FACTS, rates)
    cells = FACTS.features * FACTS.lengths["train"].sum()
    rounds = spec["trials"] * SOLVER_ROUNDS["svmmap"]
    assert cost.epochs == rounds
    assert cost.other == pytest.approx(rounds * (cells + ROUND_IN_CELLS) * 1e-6)


def test_a_pair_of_documents_costs_more_with_more_weights(rates):
    linear, network = (
        cost_of(changed(learner="ranknet_v1") | {"model": model}, FACTS, rates).other
        for model in ({"name": "linear"}, {"name": "two_layer", "hidden": 10})
    )
    weights = FACTS.features * 10 + 10
    assert network / linear == pytest.approx((weights + 800) / (FACTS.features + 800))


@pytest.mark.parametrize(
    ("learner", "model"),
    [("neural", {}), ("per_query", {"name": "linear"}), ("ranknet_v1", {"name": "linear"})],
)
def test_lists_are_cut_before_they_are_counted(rates, learner, model):
    whole = changed(learner=learner) | {"model": model or SPEC["model"]}
    cut = cost_of(whole | {"training": {**SPEC["training"], "max_documents": 50}}, FACTS, rates)
    short = cost_of(whole, with_lists(train=np.full(1000, 50)), rates)
    assert (cut.network, cut.loss, cut.other) == (short.network, short.loss, short.other)
    longer = cost_of(whole, FACTS, rates)
    assert cut.loss + cut.other < longer.loss + longer.other


def test_the_filter_leaves_short_lists_out(rates):
    size = with_lists(train=np.array([5] * 1000 + [100] * 1000))
    filtered = cost_of(changed(filter={"min_documents": 10}), size, rates)
    assert filtered.network == pytest.approx(cost_of(SPEC, FACTS, rates).network)


def test_precision_chooses_the_rate_of_products(rates):
    assert seconds(rates, training={"dtype": "float64"}) > seconds(rates)
    without = dataclasses.replace(rates, flops={"float32": 1e10})
    with pytest.raises(ConfigError, match="lack the precision 'float64'"):
        seconds(without, training={"dtype": "float64"})


def test_softrank_to_a_cutoff_takes_longer_the_more_ranks_it_has(rates):
    whole, short, long, longer = (
        cost_of(changed(loss={"name": "softrank", **cutoff}), FACTS, rates).loss
        for cutoff in ({}, {"k": 10}, {"k": 20}, {"k": 100_000})
    )
    assert long == pytest.approx(2 * short)
    assert whole < short < long < longer


def test_rounds_of_sinkhorn_scaling_are_counted(rates):
    few, many = (
        cost_of(changed(loss={"name": "neural_ndcg", "iterations": n}), FACTS, rates).loss
        for n in (30, 70)
    )
    assert many == pytest.approx(2 * few)


def test_trees_cost_rows_features_and_trees(rates):
    spec = {key: value for key, value in SPEC.items() if key not in ("loss", "training")}
    spec |= {"learner": "lightgbm", "model": {"n_trees": 100, "num_leaves": 32}}
    once = cost_of(spec, FACTS, rates).other
    twice = cost_of(spec | {"model": {"n_trees": 200, "num_leaves": 32}}, FACTS, rates).other
    wide = cost_of(spec, dataclasses.replace(FACTS, features=272), rates).other
    # 2 trials × 100 trees × (136 features × (100 000 rows × 5 levels, 32 leaves as 1500 rows each),
    # and the objective of 100 000 rows as 180 features each).
    trees, objective = 136 * (100_000 * 5 + 32 * 1500), 100_000 * 180
    assert once == pytest.approx(2 * 100 * (trees + objective) * 1e-9)
    assert twice == pytest.approx(2 * once)
    assert wide == pytest.approx(2 * 100 * (2 * trees + objective) * 1e-9)


def test_trees_put_their_data_into_bins_once_however_many_trees_there_are(rates):
    spec = {key: value for key, value in SPEC.items() if key not in ("loss", "training")}
    spec |= {"learner": "lightgbm", "model": {"n_trees": 100, "num_leaves": 32}}
    few = cost_of(spec, FACTS, rates).start
    many = cost_of(spec | {"model": {"n_trees": 200, "num_leaves": 32}}, FACTS, rates).start
    process = cost_of(SPEC, FACTS, rates).start
    # 2 trials of 136 features: 60 levels of 130 000 documents to train and to validate on, and 200
    # more of those to train on, of which there are too few for a sample.
    assert few == many
    assert few - process == pytest.approx(2 * 136 * (60 * 130_000 + 200 * 100_000) * 1e-9)


def test_a_curve_is_a_power_law_between_its_points_and_beyond():
    curve = [[10, 1.0], [100, 100.0], [1000, 1000.0]]
    assert at(curve, [10, 31.6227766, 100, 10_000]) == pytest.approx([1, 10, 100, 10_000])


# ----------------------------------------------------------------------------------- work and facts


def test_a_towers_weights_and_outputs_are_counted_exactly():
    size = size_of({"name": "tower", "hidden": [64, 32]}, 136)
    assert size.weights == 136 * 64 + 64 * 32 + 32
    assert size.elements == 136 + 3 * (64 + 32 + 1)
    assert size.pair_flops == 0


def test_dropout_query_norms_and_attention_write_more_elements():
    plain = {"name": "feed_forward", "hidden": [100, 100], "dropout": 0.0, "norm": "batch"}
    plain |= {"activation": "relu", "output_activation": False}
    outputs, least = size_of(plain, 136).outputs, size_of(plain, 136).elements
    assert size_of(plain | {"dropout": 0.1}, 136).elements == least + 20 * outputs
    assert size_of(plain | {"norm": "query"}, 136).elements >= least + 10 * outputs
    for hidden, in_loops in (([100, 100], True), ([100, 600], False)):
        size = size_of(plain | {"norm": "query", "hidden": hidden}, 136)
        assert size.in_loops == in_loops
        assert size.elements_in_loops < size.elements
        assert size.tensors_in_loops < size.tensors
    context = {"name": "context", "width": 32, "heads": 1, "inner": 64, "dropout": 0.1}
    one, two = (size_of(context | {"blocks": blocks}, 136) for blocks in (1, 2))
    more = 3 * (two.outputs - one.outputs) + 60 * 32
    assert two.elements - one.elements == more


def test_compiled_loops_have_their_own_rate_of_products_on_a_cpu(rates):
    few, many = {"batch_queries": 9}, {"batch_queries": 10}  # of 100 documents
    at_once = dataclasses.replace(rates, element_seconds=0.0)
    products = 3 * 2 * size_of(SPEC["model"], 136).weights * 100_000 * 10  # of all epochs

    def rate(machine, **training):
        seconds = cost_of(changed(training=training), FACTS, machine).network
        return SPEC["trials"] * products / seconds

    assert rate(at_once, **few, stack=1) == pytest.approx(1e10)
    assert rate(at_once, **many, stack=1) == pytest.approx(2e10)
    assert rate(at_once, **few, stack=2) == pytest.approx(2e10)
    assert rate(at_once, **many, precision="bfloat16") == pytest.approx(1e10)
    assert rate(dataclasses.replace(at_once, device="cuda"), **many) == pytest.approx(1e10)


def test_the_context_aware_ranker_is_in_loops_whole_unless_it_is_wide(rates):
    context = {"name": "context", "width": 32, "heads": 1, "blocks": 1}
    usual, wide = (size_of(context | {"inner": inner}, 136) for inner in (64, 2000))
    assert usual.in_loops
    assert not wide.in_loops
    lengths = np.array([70, 30])
    slower = dataclasses.replace(rates, flops_in_loops={"float32": 1e9})
    for size, ratio in ((usual, 5), (wide, 1)):
        times = [size.seconds(lengths, "float32", machine) for machine in (rates, slower)]
        assert (times[1] > times[0]) == (ratio > 1)


def test_a_pass_takes_its_products_and_elements(rates):
    size = size_of({"name": "linear", "bias": False}, 136)
    expected = 100 * (2 * 136 / 1e10 + (136 + 3) * 1e-9 / 3)
    assert size.seconds(np.array([70, 30]), "float32", rates) == pytest.approx(expected)


def test_attention_costs_the_square_of_the_list():
    model = {"name": "context", "width": 16, "blocks": 1, "heads": 1, "inner": 32}
    # Scores and their mixture: two products of [L, 16] with [16, L] and [L, L] with [L, 16].
    assert size_of(model, 20).pair_flops == 2 * 2 * 16


def source(name, kind, **settings):
    return DataSource("absent", name, settings, kind)


def test_published_counts_stand_for_data_that_is_not_there(tmp_path):
    size = facts(source("web30k", "archive"), 1, tmp_path)
    assert len(size.lengths["train"]) == 18_919
    total = sum(value.sum() for value in size.lengths.values())
    assert total == pytest.approx(3_771_125, rel=0.01)
    assert size.features == 136


def test_settings_stand_for_data_that_will_be_generated(tmp_path):
    settings = {"queries": {"train": 300, "vali": 20, "test": 20}, "mean_length": 30}
    size = facts(source("web30k_standin", "standin", **settings), None, tmp_path)
    assert len(size.lengths["train"]) == 300
    assert size.lengths["train"].mean() == pytest.approx(30, rel=0.2)
    cubic = facts(source("cubic", "generated", documents_per_query=7), None, tmp_path)
    assert set(cubic.lengths["test"]) == {7}


SMALL = {"queries": {"train": 9, "vali": 3, "test": 3}}


def prepared_lists(folder):
    from directrank.data import standins
    from directrank.data.prepared import write_prepared

    lists = standins.generate("web30k_standin", SMALL)
    record = {"name": "web30k_standin", "title": "t", "origin": "standin", "label_levels": 5}
    write_prepared(folder / "absent", lists, record)
    return lists


def test_prepared_data_is_measured(tmp_path):
    lists = prepared_lists(tmp_path)
    size = facts(source("web30k_standin", "standin"), None, tmp_path)
    assert np.array_equal(size.lengths["train"], lists["train"].lengths)
    assert size.origin == "prepared data"


@pytest.mark.parametrize(
    "name", ["store/labels.npy", "store/offsets.npy", "prepared.json", "train/split.json"]
)
@pytest.mark.parametrize("left", [0, 0.5])
def test_damaged_data_counts_as_not_prepared_so_that_the_fit_says_what_is_wrong(
    tmp_path, name, left
):
    prepared_lists(tmp_path)
    path = tmp_path / "absent" / name
    content = path.read_bytes()
    path.write_bytes(content[: int(left * len(content))])
    size = facts(source("web30k_standin", "standin", **SMALL), None, tmp_path)
    assert len(size.lengths["train"]) == 9
    assert size.origin != "prepared data"


# ------------------------------------------------------------------------------------------ studies


@pytest.fixture(scope="module")
def paper():
    return study_of("paper")


@pytest.fixture(scope="module")
def prediction(paper, rates, tmp_path_factory):
    """The cost of the edition ``paper`` where no data is prepared."""
    return estimate(paper, rates, tmp_path_factory.mktemp("prepared"))


def test_the_papers_scale_is_planned_without_data(paper, prediction):
    assert set(prediction.runs["run"]) == set(paper.runs)
    assert (prediction.runs["seconds"] > 0).all()


def test_runs_that_products_share_count_once_in_sums(paper, prediction):
    products = prediction.products.set_index(["paper", "product"])
    table, summary = (products.loc[("bruch2019", name)] for name in ("table1", "summary"))
    assert table["hours"] == pytest.approx(summary["hours"])  # the same runs
    assert table["hours_own"] == 0
    whole = products.loc[("bruch2019", "all"), "hours"]
    plans = [plan for (name, _), plan in paper.products.items() if name == "bruch2019"]
    experiments = [cells for plan in plans for cells in plan["experiments"].values()]
    runs = {cell["run"] for cells in experiments for cell in cells}
    seconds = prediction.runs.set_index("run")["seconds"]
    assert whole == pytest.approx(seconds[sorted(runs)].sum() / 3600)
    assert whole < products.loc["bruch2019"].drop("all")["hours"].sum()
    totals = products.xs("all", level="product")["hours"]
    assert totals["all"] == pytest.approx(totals.drop("all").sum())


def test_seconds_of_a_run_are_the_sum_of_their_parts(prediction):
    runs = prediction.runs
    assert PARTS == ["network", "loss", "steps", "evaluation", "other", "start"]
    assert np.allclose(runs[PARTS].sum(axis=1), runs["seconds"])


def test_an_assumed_gpu_says_so(rates):
    gpu = assumed_gpu(rates)
    assert not gpu.measured
    assert "H200" in gpu.machine
    assert "of another" in gpu.note
    assert seconds(gpu, model={"hidden": [1024, 512]}) < seconds(
        rates, model={"hidden": [1024, 512]}
    )


def record(root, run, seconds, epochs):
    """What Snakemake and a run leave behind, after a share of the planned ``epochs``."""
    folder, logs = root / "results/e/runs" / run["run"], root / "logs/e/fit"
    folder.mkdir(parents=True)
    logs.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text('{"spec": {"training": {}}}')
    pd.DataFrame({"epochs": [run["epochs"] * epochs]}).to_csv(folder / "fits.csv")
    measured = pd.DataFrame({"s": [seconds], "max_rss": [321.5]})
    measured.to_csv(logs / f"{run['run']}.benchmark.tsv", sep="\t", index=False)


def test_recorded_seconds_stand_beside_predicted_ones(prediction, tmp_path):
    run = prediction.runs[prediction.runs["learner"] == "neural"].iloc[0]
    trained = run["seconds"] - run["start"]
    record(tmp_path, run, run["start"] + trained / 4, 0.5)
    row = against(prediction, tmp_path / "results/e").iloc[0]
    assert row["ratio"] == pytest.approx((run["start"] + trained / 4) / run["seconds"])
    assert row["ratio_at_epochs"] == pytest.approx(
        (run["start"] + trained / 4) / (run["start"] + trained / 2)
    )
    assert row["memory_mb"] == 321.5


def test_recorded_runs_correct_the_rates(paper, prediction, rates, tmp_path):
    chosen = prediction.runs.groupby("learner").head(60)
    for _, run in chosen.iterrows():
        slower = sum(run[part] * (5 if part in ("steps", "other") else 2) for part in PARTS[:-1])
        record(tmp_path, run, run["start"] * 1.5 + slower / 2, 0.5)
    measured = against(prediction, tmp_path / "results/e")
    corrected = calibrated(prediction, measured)
    assert corrected.start_seconds == pytest.approx(1.5 * rates.start_seconds, rel=0.1)
    assert corrected.flops["float32"] == pytest.approx(rates.flops["float32"] / 2, rel=0.1)
    assert corrected.learners["lightgbm"] == pytest.approx(5 * rates.learners["lightgbm"], rel=0.05)
    recorded = {name: paper.runs[name] for name in chosen["run"]}
    some = dataclasses.replace(paper, runs=recorded, products={})
    again = against(estimate(some, corrected, tmp_path), tmp_path / "results/e")
    assert len(again) == len(chosen)
    assert again["ratio_at_epochs"].between(0.8, 1.25).all()


def test_results_of_another_edition_are_refused(prediction, tmp_path):
    with pytest.raises(DataError, match="no run of this edition has been measured"):
        against(prediction, tmp_path)


# ----------------------------------------------------------------------------------------- clusters


def test_wall_time_is_that_of_the_longest_slot():
    cluster = Cluster("c", nodes=2, cores_per_node=2, cores_per_job=2)
    course = queue([3600, 3600, 7200], cluster)
    assert (course.slots, course.jobs, course.cut) == (2, 3, 0)
    assert course.wall_hours == pytest.approx(2)
    assert course.busy == pytest.approx(1)


def test_a_job_longer_than_the_limit_is_cut():
    cluster = Cluster("c", nodes=1, time_limit_hours=2, wait_minutes=30)
    course = queue([5 * 3600], cluster)
    assert (course.jobs, course.cut) == (3, 1)
    assert course.wall_hours == pytest.approx(5 + 3 * 0.5)


def test_short_jobs_are_grouped():
    cluster = Cluster("c", nodes=4, group_minutes=10)
    course = queue([60] * 40, cluster)
    assert course.jobs == 4
    assert queue([60] * 40, dataclasses.replace(cluster, group_minutes=0)).jobs == 40


def test_gpus_and_the_queue_limit_the_slots():
    gpus = Cluster("c", nodes=3, device="cuda", cores_per_node=64, gpus_per_node=4, jobs_per_gpu=2)
    assert gpus.slots == 24
    assert dataclasses.replace(gpus, parallel_jobs=5).slots == 5


# ------------------------------------------------------------------------------------- command line


def test_the_command_prints_and_writes_tables(rates_file, tmp_path, capsys):
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump({"name": "ours", "nodes": 2, "cores_per_node": 8}))
    out = tmp_path / "out"
    options = ["--rates", str(rates_file), "--cluster", str(cluster), "--out", str(out)]
    assert main(["cost", str(TINY), *options]) == 0
    printed = capsys.readouterr().out
    assert "ASSUMED, not measured" in printed
    assert "ours" in printed
    products = pd.read_csv(out / "products.csv")
    assert products.iloc[-1][["paper", "product"]].tolist() == ["all", "all"]
    assert set(products["gpu_rates"]) == {"assumed"}
    assert pd.read_csv(out / "cluster.csv")["slots"].item() == 16
    assert len(pd.read_csv(out / "runs.csv")) == products.iloc[-1]["runs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cost"], "no edition was named"),
        (["cost", str(TINY), "--calibrate", "rates.json"], "needs recorded runs"),
        (["cost", str(TINY), "--rates", "absent.json"], "absent.json: no such file"),
        (["cost", str(TINY), "--cluster", "absent.yaml"], "absent.yaml: no such file"),
    ],
)
def test_mistakes_are_told_with_a_remedy(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "remedy" in error


def test_a_cluster_on_which_no_job_fits_is_refused(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text("{name: c, nodes: 1, cores_per_node: 2, cores_per_job: 4}")
    with pytest.raises(ConfigError, match="no job fits"):
        Cluster.read(path)
    path.write_text("{name: c, nodes: 1, cores_per_node: 2, core_per_job: 4}")
    with pytest.raises(ConfigError, match="core_per_job"):
        Cluster.read(path)


def test_rates_that_lack_a_loss_say_how_to_measure_it(rates):
    without = dataclasses.replace(rates, lists={})
    with pytest.raises(ConfigError, match="lack the loss 'approx_ndcg'"):
        cost_of(SPEC, FACTS, without)


def test_rates_survive_a_file(rates, rates_file):
    read = Rates.read(rates_file)
    assert seconds(read) == seconds(rates)
    rates_file.write_text("{}")
    with pytest.raises(ConfigError, match="cannot read these rates"):
        Rates.read(rates_file)


@pytest.mark.long
def test_this_machine_is_measured(tmp_path):
    path = tmp_path / "rates.json"
    assert main(["cost", "--measure", str(path)]) == 0
    measured = Rates.read(path)
    assert measured.measured
    assert set(measured.lists) == set(REGISTRY) - {"composed"}
    # Pairs: a list four times as long takes more than four times as long.
    (_, short), (_, middle), (_, long) = measured.lists["approx_ndcg"]
    assert short < middle < long


def test_a_machine_with_half_the_rate_of_products_takes_twice_as_long_for_what_is_not_measured():
    fast, slow = scaled_reference(4e10), scaled_reference(2e10)
    assert slow["start_seconds"] == pytest.approx(2 * fast["start_seconds"])
    assert slow["evaluation_seconds"] == pytest.approx(2 * fast["evaluation_seconds"])
    for name, value in slow["learners"].items():
        assert value == pytest.approx(2 * fast["learners"][name])


def test_rates_from_before_a_loss_or_learner_was_added_are_measured_again(rates):
    assert covers_everything(rates)
    without = {name: curve for name, curve in rates.lists.items() if name != "xe_ndcg"}
    assert not covers_everything(dataclasses.replace(rates, lists=without))
    fewer = {name: rate for name, rate in rates.learners.items() if name != "catboost"}
    assert not covers_everything(dataclasses.replace(rates, learners=fewer))


def test_rates_for_other_units_of_work_are_refused(rates, tmp_path):
    path = tmp_path / "rates.json"
    dataclasses.replace(rates, units=1).write(path)
    with pytest.raises(ConfigError, match="cannot read these rates"):
        Rates.read(path)
    rates.write(path)
    assert Rates.read(path) == rates


def test_without_measuring_every_loss_has_a_rate():
    known = of_another_machine()
    assert covers_everything(known)
    assert known.lists["approx_ndcg"] != known.lists["neural_ndcg"]


def test_an_edition_is_predicted_with_rates_of_its_own_arithmetic(rates, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    measured = []

    def measure(command: list[str], env: dict[str, str], **options: object) -> None:
        rates_of_here = dataclasses.replace(rates, machine=machine("cpu"))
        rates_of_here.write(command[command.index("--measure") + 1])
        measured.append((env.get("ATEN_CPU_CAPABILITY"), command[-1]))

    for name in arithmetic.variables("portable"):
        monkeypatch.delenv(name, raising=False)
    processes = SimpleNamespace(run=measure, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr("directrank.cli.cost.subprocess", processes)
    for _ in range(2):
        assert own_rates(3, "portable").note == rates.note
    assert measured == [("avx2", "3")]
    for name, value in arithmetic.variables("portable").items():
        monkeypatch.setenv(name, value)
    own_rates(3, "native")
    assert measured == [("avx2", "3"), (None, "3")]
    assert len(list((tmp_path / "directrank").iterdir())) == 2


@pytest.mark.parametrize("home", ["/proc", "~"])
def test_a_home_that_cannot_be_written_stops_no_prediction(rates, home, monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda _: home)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("directrank.cli.cost._measured", lambda path, *_: rates.write(path))
    monkeypatch.setattr("directrank.system.arithmetic.of_this_process", lambda: "portable")
    assert own_rates(3, "portable").note == rates.note
    assert not list(tmp_path.iterdir())


def test_an_edition_is_predicted_from_any_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["cost", str(ROOT / "config/demo.yaml"), "--quick"]) == 0
    assert "Cost of edition 'demo'" in capsys.readouterr().out


def test_a_process_knows_its_arithmetic(monkeypatch):
    for name in arithmetic.variables("portable"):
        monkeypatch.delenv(name, raising=False)
    assert arithmetic.of_this_process() == "native"
    for name, value in arithmetic.variables("portable").items():
        monkeypatch.setenv(name, value)
    assert arithmetic.of_this_process() == "portable"
    assert arithmetic.variables("native") == {}


def test_a_quick_prediction_measures_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["cost", str(TINY), "--quick", "--out", str(tmp_path)]) == 0
    assert not (tmp_path / "cache").exists()
    assert "measuring" not in capsys.readouterr().err
    assert (pd.read_csv(tmp_path / "runs.csv")["seconds"] > 0).all()
