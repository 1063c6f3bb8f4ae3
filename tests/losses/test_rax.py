"""Agreement with Rax where both define the same function.

Rax needs a JAX of its own, so its values are on file (``rax_values.json``); where DIRECTRANK_RAX
names an interpreter that has Rax they are computed afresh on other lists.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch

from directrank import losses
from losses_cases import value_and_gradient

HERE = Path(__file__).parents[1] / "helpers"
OURS = {
    "ranknet_mean": (losses.ranknet, {"pair_reduction": "mean"}),
    "approx_ndcg_alpha_1": (losses.approx_ndcg, {"alpha": 1.0}),
    "approx_ndcg_alpha_10": (losses.approx_ndcg, {"alpha": 10.0}),
    "listnet": (losses.listnet, {}),
    "softmax": (losses.softmax_cross_entropy, {}),
    "softmax_normalised": (losses.softmax_cross_entropy, {"normalize": True}),
    "poly1": (losses.poly1, {}),
    "poly1_epsilon_3": (losses.poly1, {"epsilon": 3.0}),
    "unique_softmax": (losses.unique_softmax, {}),
    "pairwise_hinge": (losses.pairwise_hinge, {}),
    "pointwise_sigmoid": (losses.sigmoid_cross_entropy, {}),
}


def compare(record: dict, name: str) -> None:
    """Our value and gradient against those of ``record``."""
    loss, options = OURS[name]
    scores, labels, mask = (torch.tensor(record[key]) for key in ("scores", "labels", "mask"))
    value, gradient = value_and_gradient(loss, scores, labels, mask, **options)
    expected = record["losses"][name]
    torch.testing.assert_close(value, torch.tensor(expected["value"]), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(gradient, torch.tensor(expected["gradient"]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OURS)
def test_losses_agree_with_raxs_recorded_values(name):
    compare(json.loads((HERE / "rax_values.json").read_text(encoding="utf-8")), name)


@pytest.mark.parametrize("seed", [1, 2])
def test_losses_agree_with_rax_itself(seed):
    interpreter = os.environ.get("DIRECTRANK_RAX")
    if not interpreter:
        pytest.skip("DIRECTRANK_RAX names no Python with jax 0.6.2 and rax 0.4.0")
    done = subprocess.run(
        [interpreter, str(HERE / "rax_values.py"), str(seed)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in OURS:
        compare(json.loads(done.stdout), name)
