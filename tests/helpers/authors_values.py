"""Values and gradients of public code on fixed lists; prints JSON.

    python tests/helpers/authors_values.py FOLDER > tests/helpers/authors_values.json

``FOLDER`` holds checkouts of the repositories: ``allRank`` (1.4.3), ``LibAUC`` (2.0.1) and
``2022-SIGIR-plackett-luce`` (b2f3e7b). Only the modules of the losses are imported; what they
import of packages that are not needed is left empty.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch import Tensor

#: Queries, documents, and orders drawn for each query.
B, L, SAMPLES = 3, 7, 3


def package(name: str, folder: Path | None = None, **contents: object) -> None:
    """Have a package that imports nothing, with modules from ``folder``."""
    module = types.ModuleType(name)
    module.__path__ = [] if folder is None else [str(folder)]
    vars(module).update(contents)
    sys.modules[name] = module


def lists(seed: int) -> tuple[Tensor, Tensor]:
    """Scores and labels, those with a relevant document first in each list."""
    generator = np.random.default_rng(seed)
    scores = torch.tensor(generator.normal(size=(B, L)).round(3))
    labels = generator.integers(0, 4, size=(B, L)).astype(float)
    labels[:, 0] = 3
    return scores, torch.tensor(-np.sort(-labels, axis=1))


def lambda_loss(folder: Path, scores: Tensor, labels: Tensor) -> dict:
    """allRank's values and gradients, list by list."""
    package("allrank", folder / "allrank")
    package("allrank.data")
    package("allrank.data.dataset_loading", PADDED_Y_VALUE=-1)
    package("allrank.models", folder / "allrank/models")
    package("allrank.models.losses", folder / "allrank/models/losses", DEFAULT_EPS=1e-10)
    theirs = importlib.import_module("allrank.models.losses.lambdaLoss").lambdaLoss
    found = {}
    for scheme in ("ndcgLoss1", "ndcgLoss2", "ndcgLoss2PP"):
        for k in (None, 4):
            values, gradients = [], []
            for s, y in zip(scores, labels, strict=True):
                leaf = s[None].clone().requires_grad_()
                options = {"weighing_scheme": f"{scheme}_scheme", "mu": 3.0, "sigma": 1.5, "k": k}
                value = theirs(leaf, y[None], **options)
                (gradient,) = torch.autograd.grad(value, leaf)
                values.append(value.item())
                gradients.append(gradient[0].tolist())
            found[f"{scheme}@{k}"] = {"value": values, "gradient": gradients}
    return found


def k_song(folder: Path, scores: Tensor, labels: Tensor) -> dict:
    """LibAUC's gradients, in float32, with a factor of 1 and the exact threshold, list by list."""
    package("libauc", folder / "libauc")
    package("libauc.losses", folder / "libauc/losses")
    package("libauc.utils", is_distributed=lambda: False, concat_all_gather=None)
    theirs = importlib.import_module("libauc.losses.ranking").NDCGLoss
    found = {}
    for k in (-1, 3):
        gradients = []
        for s, y in zip(scores.float(), labels.float(), strict=True):
            relevant = int((y > 0).sum())
            loss = theirs(L, 1, L, relevant, gamma0=1.0, topk=k, topk_version="prac", device="cpu")
            if k > 0:
                loss.lambda_q[0] = s.sort(descending=True).values[k - 1 : k + 1].mean()
            ideal = (2**y - 1) / torch.log2(torch.arange(2.0, L + 2))
            batch = {
                "rating": y[None],
                "user_id": torch.tensor([0]),
                "num_pos_items": torch.tensor([relevant]),
                "ideal_dcg": ideal[: k if k > 0 else L].sum()[None],
                "user_item_id": torch.arange(L)[None],
            }
            leaf = s[None].clone().requires_grad_()
            (gradient,) = torch.autograd.grad(loss(leaf, batch), leaf)
            gradients.append(gradient[0].tolist())
        found[f"@{k if k > 0 else None}"] = {"gradient": gradients}
    return found


def drawn(folder: Path, scores: Tensor, labels: Tensor, seed: int) -> dict:
    """Oosterhuis' PL-Rank-3 and StochasticRank, for draws that are printed as well.

    The second with one comparison turned.
    """
    sys.path.insert(0, str(folder))
    pl_rank = importlib.import_module("algorithms.PLRank").PL_rank_3
    stochastic_rank = importlib.import_module("algorithms.stochasticrank").normal_stochasticrank
    generator = np.random.default_rng(seed)
    gumbel = generator.gumbel(size=(SAMPLES, B, L)).round(3)
    normal = generator.normal(size=(SAMPLES, B, L)).round(3)
    found: dict = {"gumbel": gumbel.tolist(), "normal": normal.tolist()}
    for k in (None, 3):
        weights = 1 / np.log2(np.arange(2, (k or L) + 2))
        parts: dict = {"pl_rank": [], "stochastic_rank": []}
        for b in range(B):
            s, gains = scores[b].numpy(), 2 ** labels[b].numpy() - 1
            gains /= (weights * gains[: len(weights)]).sum()
            orders = np.argsort(-(s + gumbel[:, b]), axis=1)
            parts["pl_rank"].append(pl_rank(weights, gains, s, sampled_rankings=orders).tolist())
            values = s + normal[:, b]
            orders = np.argsort(-values, axis=1)[:, : min(len(weights), L - 1) + 1]
            # Of a document that falls it takes those ahead in the place of those behind.
            with mock.patch("numpy.less_equal", np.greater_equal):
                gradient = stochastic_rank(
                    weights, gains, s, sampled_rankings=orders, sampled_values=values
                )
            parts["stochastic_rank"].append(gradient.tolist())
        found[f"@{k}"] = parts
    return found


def main(folder: Path, seed: int) -> None:
    """Print the lists drawn from ``seed`` and what the code makes of them."""
    scores, labels = lists(seed)
    record = {
        "scores": scores.tolist(),
        "labels": labels.tolist(),
        "lambda_loss": lambda_loss(folder / "allRank", scores, labels),
        "k_song": k_song(folder / "LibAUC", scores, labels),
        "drawn": drawn(folder / "2022-SIGIR-plackett-luce", scores, labels, seed),
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
