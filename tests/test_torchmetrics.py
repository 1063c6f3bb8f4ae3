"""Metrics of torchmetrics' form: they equal torchmetrics' own, and add up over processes."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from directrank import metrics
from directrank.system.errors import ConfigError, DirectrankError
from workflow_runs import ROOT

pytest.importorskip(
    "torchmetrics", reason="torchmetrics is not installed: `make test-recipes` has it"
)
import torchmetrics
from torchmetrics import retrieval

import directrank.torchmetrics as module
from directrank.torchmetrics import (
    DCG,
    ERR,
    MAP,
    MRR,
    NDCG,
    HitRate,
    Precision,
    RankingMetric,
    Recall,
)

CLASSES = {
    "ndcg": NDCG,
    "dcg": DCG,
    "average_precision": MAP,
    "reciprocal_rank": MRR,
    "err": ERR,
    "precision": Precision,
    "recall": Recall,
    "hit_rate": HitRate,
}


def batches(count: int = 3, *, levels: int = 4, ties: bool = False):
    """Batches of scores, labels and masks, with queries that have no relevant document."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(count):
        scores = torch.randn(20, 12, generator=generator)
        labels = torch.randint(0, levels, (20, 12), generator=generator)
        labels[:3] = 0
        mask = torch.rand(20, 12, generator=generator) > 0.2
        mask[:, 0] = True
        found.append((scores.round() if ties else scores, labels, mask))
    return found


#: Of torchmetrics, the same here, and whether labels must be 0 or 1.
SAME = {
    "ndcg": (
        lambda: retrieval.RetrievalNormalizedDCG(),
        lambda: NDCG(gain="linear", ties="expected", empty="zero"),
        4,
    ),
    "ndcg@5": (
        lambda: retrieval.RetrievalNormalizedDCG(top_k=5),
        lambda: NDCG(5, gain="linear", ties="expected", empty="zero"),
        4,
    ),
    "ndcg, empty queries left out": (
        lambda: retrieval.RetrievalNormalizedDCG(top_k=3, empty_target_action="skip"),
        lambda: NDCG(3, gain="linear", ties="expected"),
        4,
    ),
    "map": (lambda: retrieval.RetrievalMAP(), lambda: MAP(empty="zero"), 2),
    "mrr@5": (lambda: retrieval.RetrievalMRR(top_k=5), lambda: MRR(5, empty="zero"), 2),
    "mrr, empty queries count as 1": (
        lambda: retrieval.RetrievalMRR(empty_target_action="pos"),
        lambda: MRR(empty="one"),
        2,
    ),
    "precision@3": (
        lambda: retrieval.RetrievalPrecision(top_k=3),
        lambda: Precision(3, empty="zero"),
        2,
    ),
    "recall@3": (lambda: retrieval.RetrievalRecall(top_k=3), lambda: Recall(3, empty="zero"), 2),
    "hit rate@1": (
        lambda: retrieval.RetrievalHitRate(top_k=1),
        lambda: HitRate(1, empty="zero"),
        2,
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_values_are_torchmetrics_own(name):
    theirs, ours, levels = (part() if callable(part) else part for part in SAME[name])
    first = 0
    for scores, labels, mask in batches(levels=levels, ties=name.startswith("ndcg")):
        ids = torch.arange(20)[:, None].expand(20, 12) + first
        scores = scores.exp()  # its average precision counts no document with a score of 0 or less
        theirs.update(scores[mask], labels[mask], indexes=ids[mask])
        ours.update(scores[mask], labels[mask], query_ids=ids[mask])
        first += 20
    assert 0.05 < theirs.compute() < 0.95
    torch.testing.assert_close(ours.compute().float(), theirs.compute(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("empty", ["exclude", "zero", "one"])
def test_batches_add_up_to_the_mean_over_all_queries(name, empty):
    options = {"k": 4, "ties": "expected"}
    parts = batches(ties=True)
    mean, each = (
        CLASSES[name](empty=empty, per_query=per_query, **options) for per_query in (False, True)
    )
    for part in parts:
        mean.update(*part)
        each.update(*part)
    whole = (torch.cat(column) for column in zip(*parts, strict=True))
    expected = metrics.get(name)(*whole, empty=empty, **options)
    torch.testing.assert_close(each.compute(), expected, equal_nan=True)
    torch.testing.assert_close(mean.compute(), expected.nanmean())
    mean.reset()
    each.reset()
    assert mean.compute().isnan()
    assert len(each.compute()) == 0
    mean.update(*parts[0])
    torch.testing.assert_close(mean.compute(), CLASSES[name](empty=empty, **options)(*parts[0]))


def test_queries_have_weights_and_any_metric_has_this_form():
    scores, labels, mask = batches(1)[0]
    weights = torch.arange(20.0)
    metric = RankingMetric("kendall")
    metric.update(scores, labels, mask, weights=weights)
    values = metrics.kendall(scores, labels, mask)
    torch.testing.assert_close(metric.compute(), metrics.mean(values, weights))
    with pytest.raises(DirectrankError, match="weights are of the mean"):
        NDCG(per_query=True).update(scores, labels, mask, weights=weights)


def test_a_collection_keeps_metrics_apart_that_begin_with_equal_values():
    """torchmetrics lets metrics of equal first states share them."""
    collection = torchmetrics.MetricCollection(
        {"mrr": MRR(), "map": MAP(), "first": NDCG(1), "ten": NDCG(10), "again": NDCG(10)}
    )
    perfect = torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
    assert collection(*perfect) == dict.fromkeys(collection, 1.0)
    others = batches(1)[0]
    collection.update(*others)
    found = collection.compute()
    for name, metric in (("mrr", MRR()), ("map", MAP()), ("first", NDCG(1)), ("ten", NDCG(10))):
        metric.update(*perfect)
        metric.update(*others)
        assert found[name] == metric.compute()
    assert found["again"] == found["ten"]
    assert len(collection.compute_groups) == 4


def test_a_metric_is_pickled_with_its_state():
    metric = NDCG(5)
    metric.update(*batches(1)[0])
    again = pickle.loads(pickle.dumps(metric))
    assert again.compute() == metric.compute()
    again.update(*batches(2)[1])
    assert again.compute() != metric.compute()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kk": 5}, "no option 'kk'"),
        ({"k": 0}, "k must be"),
        ({"empty": "two"}, "unknown convention"),
        ({"min_label": 2}, "metric 'ndcg' has no option 'min_label'"),
        ({"gain": "x"}, "unknown gain 'x'"),
        ({"gain": [1, 2]}, "do not begin with 0"),
        ({"discount": "x"}, "unknown discount 'x'"),
        ({"ties": "x"}, "unknown rule for ties 'x'"),
    ],
)
def test_a_wrong_option_is_one_error_at_once(options, message):
    with pytest.raises(DirectrankError, match=message):
        NDCG(**options)
    with pytest.raises(ConfigError, match="did you mean 'ndcg'"):
        RankingMetric("ndgc")
    with pytest.raises(DirectrankError, match="unknown denominator"):
        MAP(denominator="x")


@pytest.mark.parametrize("made", [np.array, torch.tensor])
def test_gains_may_be_an_array(made):
    metric, listed = NDCG(3, gain=made([0.0, 1, 3, 7, 15])), NDCG(3, gain=[0.0, 1, 3, 7, 15])
    for one in (metric, listed):
        one.update(*batches(1)[0])
    assert metric.compute() == listed.compute()


def test_a_metric_is_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    metric = NDCG(3)
    metric.update(*batches(1)[0])
    figure, axes = metric.plot()
    assert axes.figure is figure
    (drawn,) = axes.lines[0].get_ydata()
    assert drawn == pytest.approx(float(metric.compute()))


def test_a_metric_shows_what_was_set():
    assert repr(NDCG()) == "NDCG()"
    assert repr(NDCG(k=5, gain=[0, 1])) == "NDCG(k=5, gain=[0, 1])"
    shown = "MRR(min_label=0, per_query=True, empty='zero')"
    assert repr(MRR(min_label=0, per_query=True, empty="zero")) == shown
    assert repr(RankingMetric("kendall")) == "RankingMetric('kendall')"


PROCESS = """
import sys
import torch
sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/helpers"]
from test_torchmetrics import CLASSES, batches
rank, store = int(sys.argv[2]), sys.argv[3]
torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
found = []
for name, metric in CLASSES.items():
    for per_query in (False, True):
        own = metric(3, per_query=per_query)
        # The first has three batches and the second one; or the second has none at all.
        for some in ([batches(3), batches(1)], [batches(2), []]):
            for part in some[rank]:
                own.update(*part)
            found.append(own.compute())
            own.reset()
if rank == int(sys.argv[4]):
    torch.save(found, sys.argv[5])
torch.distributed.destroy_process_group()
"""


@pytest.mark.parametrize("saving", [0, 1])
def test_two_processes_have_the_value_of_one(saving, tmp_path):
    here = str(Path(__file__).parent)
    arguments = [f"file://{tmp_path / 'store'}", str(saving), str(tmp_path / "found")]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, here, str(rank), *arguments], env=environment
        )
        for rank in (0, 1)
    ]
    assert [process.wait(timeout=120) for process in started] == [0, 0]
    found = iter(torch.load(tmp_path / "found"))
    for metric in CLASSES.values():
        for per_query in (False, True):
            for parts in ([*batches(3), *batches(1)], batches(2)):
                alone = metric(3, per_query=per_query)
                for part in parts:
                    alone.update(*part)
                torch.testing.assert_close(next(found), alone.compute(), equal_nan=True)


def test_every_class_has_a_metric_of_its_name():
    of_metric = {name for name, kind in vars(module).items() if isinstance(kind, type)}
    assert {kind.__name__ for kind in CLASSES.values()} < of_metric
    for name, kind in CLASSES.items():
        assert kind().function is metrics.get(name)


def test_the_page_runs_and_has_every_row_that_is_compared(capsys):
    page = (ROOT / "docs/torchmetrics.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(example, {})
    assert "dtype=torch.float64" in capsys.readouterr().out
    rows = re.findall(r"^\| `(Retrieval\w+\([^`]*)` \| `([^`]+)` \|", page, flags=re.MULTILINE)
    assert len(rows) == 6
    for theirs, ours in rows:
        one, other = eval(theirs, vars(retrieval)), eval(ours, vars(module))
        for scores, labels, mask in batches(levels=2):
            ids = torch.arange(20)[:, None].expand(20, 12)
            scores = scores.exp()
            one.update(scores[mask], labels[mask], indexes=ids[mask])
            other.update(scores[mask], labels[mask], query_ids=ids[mask])
            torch.testing.assert_close(other.compute().float(), one.compute())
            one.reset()
            other.reset()
