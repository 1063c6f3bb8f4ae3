"""The authors' own code of losses for bench_losses.py, from checkouts in one folder.

``LibAUC`` (Optimization-AI/LibAUC, 2.0.1) has K-SONG as a torch module, and
``2022-SIGIR-plackett-luce`` (HarrieO) PL-Rank-3 and StochasticRank as NumPy functions of a list.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

#: The number of orders that are drawn per list, which is this library's default.
SAMPLES = {"pl_rank": 10, "stochastic_rank": 1}

#: The longest list that they are given, because LibAUC and StochasticRank make tensors of all
#: pairs.
LONGEST = {"k_song": 1250, "stochastic_rank": 1250}


def step_of(
    name: str, folder: Path, scores: Tensor, labels: Tensor, mask: Tensor
) -> Callable[[], object] | None:
    """One step of a loss; None if they have no such loss, or not for such lists."""
    if scores.shape[1] > LONGEST.get(name, scores.shape[1]):
        return None
    if name == "k_song":
        return _k_song(folder / "LibAUC", scores, labels) if bool(mask.all()) else None
    if name in SAMPLES:
        return _per_list(name, folder / "2022-SIGIR-plackett-luce", scores, labels, mask)
    return None


def _k_song(folder: Path, scores: Tensor, labels: Tensor) -> Callable[[], object] | None:
    """SONG of a batch, which requires relevant documents first."""
    if not folder.is_dir():
        return None
    _package("libauc", folder / "libauc")
    _package("libauc.losses", folder / "libauc/losses")
    _package("libauc.utils", is_distributed=lambda: False, concat_all_gather=None)
    B, L = scores.shape
    labels = labels.sort(dim=1, descending=True).values
    relevant = int((labels > 0).sum(1).max())
    ideal = (2**labels - 1) / torch.log2(torch.arange(2.0, L + 2))
    batch = {
        "rating": labels,
        "user_id": torch.arange(B),
        "num_pos_items": torch.full((B,), relevant),
        "ideal_dcg": ideal.sum(1),
        "user_item_id": torch.arange(B * L).view(B, L),
    }
    theirs = importlib.import_module("libauc.losses.ranking").NDCGLoss
    loss = theirs(B * L, B, L, relevant, gamma0=1.0, device="cpu")
    leaf = scores.clone().requires_grad_()

    def step() -> None:
        leaf.grad = None
        loss(leaf, batch).backward()

    return step


def _per_list(
    name: str, folder: Path, scores: Tensor, labels: Tensor, mask: Tensor
) -> Callable[[], object] | None:
    """The gradients of all lists in turn, without a cut-off."""
    if not folder.is_dir():
        return None
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    module, function = {
        "pl_rank": ("PLRank", "PL_rank_3"),
        "stochastic_rank": ("stochasticrank", "normal_stochasticrank"),
    }[name]
    theirs = getattr(importlib.import_module(f"algorithms.{module}"), function)
    lists = [
        (2 ** y[m].numpy() - 1, s[m].numpy()) for s, y, m in zip(scores, labels, mask, strict=True)
    ]
    weights = 1 / np.log2(np.arange(2, scores.shape[1] + 2))

    def step() -> list[np.ndarray]:
        return [theirs(weights[: len(s)], gains, s, SAMPLES[name]) for gains, s in lists]

    return step


def _package(name: str, folder: Path | None = None, **contents: object) -> None:
    """Create a package that imports nothing, with modules from ``folder``."""
    if name not in sys.modules:
        module = types.ModuleType(name)
        module.__path__ = [] if folder is None else [str(folder)]
        vars(module).update(contents)
        sys.modules[name] = module
