import numpy as np
import pytest
import yaml

from directrank.cost import memory
from directrank.cost.facts import Facts
from directrank.cost.memory import predicted_mb, requested_mb
from directrank.cost.predict import recorded
from directrank.edition.plan import load
from directrank.learners.neural import stacking
from directrank.learners.neural.fit import complete
from directrank.learners.neural.scoring import SCORING_CHUNK
from directrank.learners.neural.stack import longest_lengths
from studies import study_of
from workflow_runs import ROOT, TINY

BASE = {
    "learner": "neural",
    "fold": None,
    "filter": {},
    "trials": 1,
}
CONTEXT = {
    **BASE,
    "model": {"name": "context", "width": 96, "blocks": 2, "heads": 1, "inner": 384},
    "loss": {"name": "approx_ndcg"},
    "training": {
        "optimizer": {"name": "adam", "lr": 0.001},
        "batch_queries": 64,
        "max_documents": 240,
        "stack": 0,
    },
}
TOWER = {
    **BASE,
    "model": {"name": "tower", "hidden": [1024, 512, 256, 128, 64, 32, 16]},
    "loss": {"name": "approx_ndcg"},
    "training": {
        "optimizer": {"name": "adagrad", "lr": 0.005},
        "batch_queries": 128,
        "max_documents": 200,
    },
}
LINEAR = {
    **BASE,
    "model": {"name": "linear"},
    "loss": {"name": "approx_ndcg"},
    "training": {"optimizer": {"name": "adam", "lr": 0.001}, "batch_queries": 16},
}
#: As one protocol trains on the largest collections.
DRAWN = {"train_queries": 4000, "vali_queries": 2000}
TREES = {
    **BASE,
    "learner": "lightgbm",
    "model": {"num_leaves": 200, "n_trees": 2, "early_stopping_rounds": 200},
}


def sized(train: int, vali: int, test: int) -> Facts:
    """Lists like Web30K's, of which most are shorter than their mean and few much longer."""
    lengths = np.round(np.random.default_rng(0).lognormal(4.67, 0.5, train + vali + test))
    parts = np.split(lengths.clip(1, 1251).astype(np.int64), [train, train + vali])
    return Facts(dict(zip(("train", "vali", "test"), parts, strict=True)), 136, "made")


SMALL, WEB30K = sized(640, 50, 600), sized(18919, 6306, 6306)


# Peaks of such processes on a stand-in of Web30K, on a CPU.
@pytest.mark.parametrize(
    ("spec", "size", "measured"),
    [
        (TOWER, SMALL, 1649),
        (CONTEXT, SMALL, 952),
        ({**CONTEXT, "trials": 3}, SMALL, 1237),
        (TREES, WEB30K, 3679),
        ({**LINEAR, **DRAWN}, WEB30K, 1689),
        ({**TREES, **DRAWN}, WEB30K, 1719),
    ],
)
def test_a_measured_peak_is_below_the_request_and_above_half_of_it(spec, size, measured):
    request = memory.MARGIN * predicted_mb(spec, size)
    assert request / 2 < measured < request


def test_models_of_a_stack_need_memory_together_and_others_one_after_another():
    one = predicted_mb(CONTEXT, SMALL)
    tuned = {**CONTEXT, "tune": {"training.optimizer.lr": [0.001, 0.003], "loss.alpha": [1, 10]}}
    assert predicted_mb(tuned, SMALL) > one + 200
    alone = {**tuned, "training": {**CONTEXT["training"], "stack": 1}}
    assert predicted_mb(alone, SMALL) == pytest.approx(one)
    widths = {**CONTEXT, "tune": {"model.width": [32, 96]}}
    assert predicted_mb(widths, SMALL) == pytest.approx(one)


def test_softrank_to_a_cutoff_needs_memory_for_its_recursion():
    softrank = {**LINEAR, "loss": {"name": "softrank"}}
    at_a_time = {**LINEAR["training"], "batch_queries": 1}
    whole = predicted_mb({**softrank, "training": at_a_time}, SMALL)
    for k, ranks in ((10, 10), (10_000, int(SMALL.lengths["train"].max()))):
        spec = {**softrank, "loss": {"name": "softrank", "k": k}, "training": at_a_time}
        copy = int(SMALL.lengths["train"].max()) ** 2 * ranks * 4 / 2**20
        assert copy < predicted_mb(spec, SMALL) - whole < 3 * copy


def test_mapped_data_are_counted():
    assert predicted_mb(TOWER, WEB30K) - predicted_mb(TOWER, SMALL) > 1500


def test_drawn_queries_are_counted_twice_and_the_rest_of_their_split_not_at_all():
    drawn = predicted_mb({**LINEAR, "train_queries": 4000}, WEB30K)
    alone = Facts({**WEB30K.lengths, "train": WEB30K.lengths["train"][:4000]}, 136, "made")
    copied = int(alone.lengths["train"].sum()) * 136 * 4 / 2**20
    assert drawn == pytest.approx(predicted_mb(LINEAR, alone) + copied)
    assert drawn < predicted_mb(LINEAR, WEB30K) - 500
    for everything in (18919, 20_000):
        whole = predicted_mb({**LINEAR, "train_queries": everything}, WEB30K)
        assert whole == pytest.approx(predicted_mb(LINEAR, WEB30K))


def test_a_sample_of_all_splits_is_counted_as_the_whole_data():
    sample = {"queries": {"train": 1000, "vali": 50, "test": 50}, "max_documents": 26}
    whole = int(sum(lengths.sum() for lengths in WEB30K.lengths.values())) * 136 * 4 / 2**20
    assert predicted_mb({**LINEAR, "sample": sample}, WEB30K) > whole


def test_a_constant_that_is_repeated_to_leave_pytorch_out_is_the_same():
    assert memory.SCORED == SCORING_CHUNK


def test_a_run_on_a_gpu_requests_at_least_what_its_libraries_take():
    study = load(yaml.safe_load(TINY.read_text(encoding="utf-8")), ROOT)
    run = next(run for run, spec in study.runs.items() if spec["learner"] == "neural")
    assert 500 < requested_mb(study, run) < 1500
    assert requested_mb(study, run, gpus=1) == memory.LEAST_ON_A_GPU


@pytest.mark.slow
@pytest.mark.parametrize("edition", ["demo", "real", "rehearsal"])
def test_no_recorded_run_took_more_than_it_requests_and_few_less_than_half(edition):
    study, peaks = study_of(edition), recorded().set_index("run")["peak_mb"]
    shares = np.array(
        [
            peaks[run] / requested_mb(study, run, prepared_folder="/dev/null")
            for run in study.runs
            if run in peaks.index
        ]
    )
    assert len(shares) > 250
    assert shares.max() < 1
    assert (shares < 0.5).mean() < 0.01


def test_the_model_of_memory_alone_covers_all_but_few_recorded_runs(monkeypatch):
    """So that a run that was not recorded gets what it needs, too."""
    monkeypatch.setattr(memory, "_peaks", dict)
    study, peaks = study_of("demo"), recorded().set_index("run")["peak_mb"]
    above = [
        peaks[run] > requested_mb(study, run, prepared_folder="/dev/null") for run in study.runs
    ]
    assert np.mean(above) < 0.01


@pytest.mark.parametrize(
    "model",
    [
        {"name": "linear", "bias": True},
        {"name": "tower", "hidden": [64, 32]},
        {
            "name": "feed_forward",
            "hidden": [100, 100],
            "activation": "relu",
            "output_activation": True,
        },
    ],
    ids=lambda model: model["name"],
)
def test_as_many_models_are_predicted_to_have_room_on_a_gpu_as_a_stack_has(model, monkeypatch):
    monkeypatch.setattr(stacking, "needs_padding", lambda *arguments: False)
    size = Facts({split: np.full(3000, 150) for split in ("train", "vali", "test")}, 136, "made")
    spec = {**CONTEXT, "model": model}
    training = complete(spec["training"])
    lengths = longest_lengths(size.lengths["train"], training)
    losses = [spec["loss"]] * 100_000
    models = stacking.models_at_once(lengths, size.features, model, losses, training, "cuda")
    assert memory.ROOM_ON_A_GPU == stacking.ROOM
    assert 0.7 < memory.room_of(spec, size) / models < 1.4
