"""The benchmark of the losses leaves none of them out."""

from __future__ import annotations

import re

from directrank import losses


def test_the_benchmark_measures_every_loss(root):
    """``lambda_family`` is LambdaRank with other forces."""
    text = (root / "benchmarks/bench_losses.py").read_text(encoding="utf-8")
    measured = re.search(r"^LOSSES = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    names = set(re.findall(r'"(\w+)"', measured[1]))
    assert set(losses.REGISTRY) - names == {"composed", "lambda_family"}
