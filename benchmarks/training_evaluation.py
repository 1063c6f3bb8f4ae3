"""What evaluating scores costs beside making them."""

from __future__ import annotations

import time

import torch
from training_lists import lists_of, web30k_lengths
from training_rows import Row, row

from directrank import models
from directrank.learners.neural.batches import Feeder
from directrank.learners.neural.scoring import score_parts
from directrank.metrics.packed import Evaluator

QUERIES, FEATURES = 1000, 136
SCORERS = {
    "linear": {"name": "linear"},
    "B64": {"name": "tower", "hidden": [64, 32, 16]},
}


def evaluation(threads: int) -> list[Row]:
    """NDCG@5 of full lists as long as Web30K's, over the forward pass that scores them."""
    torch.set_num_threads(threads)
    lists = lists_of(web30k_lengths(QUERIES), FEATURES)
    feeder = Feeder(lists, torch.float32, torch.device("cpu"))
    evaluator, rows = Evaluator(lists, [{"name": "ndcg", "k": 5}]), []
    for name, settings in SCORERS.items():
        model = models.build(settings, FEATURES, [torch.Generator()]).float().eval()
        forward = metric = float("inf")
        for _ in range(5):
            began = time.perf_counter()
            scores = score_parts(model, feeder)
            scored = time.perf_counter()
            evaluator(scores)
            forward = min(forward, scored - began)
            metric = min(metric, time.perf_counter() - scored)
        rows.append(row("seconds of a metric over those of scoring", name, metric / forward, "×"))
    return rows
