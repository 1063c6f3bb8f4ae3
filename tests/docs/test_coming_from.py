"""The page for those who come from another library: both cells of a row have one value."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from peer_values import CHECKOUTS, sections

HERE = Path(__file__).parents[1] / "helpers"
SECTIONS = sections()
PEERS = [name for name in SECTIONS if name]
PACKAGES = {
    "TF-Ranking": "tensorflow_ranking",
    "Rax": "rax",
    "keras-rs": "keras_rs",
    "torchmetrics": "torchmetrics",
    "sentence-transformers": "sentence_transformers",
}


def compare(name: str, record: dict) -> None:
    """The library's values in ``record`` against ours on the same lists."""
    batch = {key: torch.tensor(record[key]) for key in ("scores", "labels", "distinct", "mask")}
    exec(SECTIONS[""].code, batch)
    for theirs, ours in SECTIONS[name].rows:
        value = np.asarray(eval(ours, batch), dtype=float).ravel()
        np.testing.assert_allclose(
            value, record["values"][theirs], rtol=2e-5, atol=1e-6, err_msg=f"{theirs}\n{ours}"
        )


@pytest.mark.parametrize("name", PEERS)
def test_cells_agree_with_the_librarys_recorded_values(name):
    assert len(SECTIONS[name].rows) >= 4
    compare(name, json.loads((HERE / "peer_values.json").read_text(encoding="utf-8"))[name])


@pytest.mark.parametrize("name", PEERS)
def test_cells_agree_with_the_library_itself_on_other_lists(name):
    if name in CHECKOUTS and "DIRECTRANK_PEERS" not in os.environ:
        pytest.skip(f"DIRECTRANK_PEERS names no folder with a checkout of {name}")
    if name in PACKAGES and find_spec(PACKAGES[name]) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed: see tests/helpers/peer_values.py")
    command = [sys.executable, str(HERE / "peer_values.py"), name, "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    compare(name, json.loads(done.stdout))


def test_a_row_that_is_wrong_would_be_found():
    record = json.loads((HERE / "peer_values.json").read_text(encoding="utf-8"))["pytorchltr"]
    record["values"] = {key: [2 * v for v in value] for key, value in record["values"].items()}
    with pytest.raises(AssertionError, match="ranknet"):
        compare("pytorchltr", record)
