"""What the authors' code gives for ranks and losses on fixed lists; prints JSON.

python tests/helpers/relaxation_values.py FOLDER > tests/helpers/relaxation_values.json

Runs where torch, numba, jax 0.6.2 and rax 0.4.0 are. FOLDER holds checkouts of ygcinar/SmoothI
(20190f9), google-research/fast-soft-sort (6a52ce7), gmum/LapSum (c277d1a),
martius-lab/blackbox-backprop (0152a6d) and ermongroup/neuralsort (b8bba51), each under its own
name.
"""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import rax
import torch
from torch import Tensor
from torch.utils.cpp_extension import load

K = 3


def module_at(path: Path, changes: tuple[tuple[str, str], ...] = ()) -> ModuleType:
    """The module in a file, with changes of its text."""
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        text = text.replace(old, new)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def record(function, scores: Tensor, weights: Tensor) -> dict:
    """Values of a function of scores, and the gradient of their weighted sum."""
    leaf = scores.clone().requires_grad_()
    value = function(leaf)
    (gradient,) = torch.autograd.grad((value * weights[: len(value)]).sum(), leaf)
    return {"value": value.tolist(), "gradient": gradient.tolist()}


def each(loss, scores: Tensor, labels: Tensor) -> Tensor:
    """A loss that sums over lists, list by list."""
    return torch.stack([loss(s[None], y[None]) for s, y in zip(scores, labels, strict=True)])


def smooth_i(folder: Path, scores: Tensor, labels: Tensor) -> dict:
    """P@K and NDCG of SmoothI, with its stopped gradient and without."""
    theirs = module_at(folder / "SmoothI/src/losses.py")
    found, ones = {}, torch.ones(len(scores))
    for stop in (True, False):
        shared = {"alpha": 2.0, "delta": 0.1, "K": K, "stop_grad": stop}
        for name, loss in (
            ("precision", theirs.ListwiseSmoothIPKLoss(**shared)),
            ("ndcg", theirs.ListwiseSmoothINDCGKLoss(**shared)),
        ):
            key = f"{name}_{'stopped' if stop else 'whole'}"
            found[key] = record(lambda s, loss=loss: each(loss, s, labels), scores, ones)
    return found


def fast_soft_rank(folder: Path, scores: Tensor, weights: Tensor) -> dict:
    """Soft ranks by falling score, and their gradient by products with the Jacobian."""
    sys.path.insert(0, str(folder / "fast-soft-sort"))
    from fast_soft_sort.numpy_ops import SoftRank

    found = {}
    for kind in ("l2", "kl"):
        for tau in (0.02, 0.3, 5.0):
            parts = []
            for s, w in zip(scores.double().numpy(), weights.double().numpy(), strict=True):
                ranking = SoftRank(
                    s, direction="DESCENDING", regularization_strength=tau, regularization=kind
                )
                parts.append((ranking.compute().tolist(), ranking.vjp(w).tolist()))
            values, gradients = zip(*parts, strict=True)
            found[f"{kind}_{tau}"] = {"value": values, "gradient": gradients}
    return found


def lapsum(folder: Path, scores: Tensor, weights: Tensor) -> dict:
    """Ranks (from 0) by falling score: their scale is negative."""
    theirs = load("soft_rank_cpu", [folder / "LapSum/lapsum/lapsum/rank/cpu/soft_rank.cpp"])
    found = {}
    for tau in (0.05, 0.3, 2.0):
        value = theirs.forward(scores.double(), -tau)
        gradient = theirs.vjp(scores.double(), weights.double(), -tau)[0]
        found[str(tau)] = {"value": value.tolist(), "gradient": gradient.tolist()}
    return found


def blackbox(folder: Path, scores: Tensor, labels: Tensor) -> dict:
    """DCG at their ranks, which are divided by the number of documents, as is λ."""
    theirs = module_at(folder / "blackbox-backprop/blackbox_backprop/ranking.py")
    gains, n = 2**labels - 1, scores.shape[1]
    ideal = gains.sort(1, descending=True).values / torch.log2(torch.arange(2, n + 2))

    def loss(s: Tensor, lam: float) -> Tensor:
        ranks = n * theirs.TrueRanker.apply(s, lam)
        return -(gains / torch.log2(1 + ranks)).sum(1) / ideal.sum(1)

    ones = torch.ones(len(scores))
    return {
        str(lam * n): record(lambda s, lam=lam: loss(s, lam), scores, ones)
        for lam in (0.3, 1.0, 10.0)
    }


def pirank(folder: Path, scores: Tensor, labels: Tensor) -> dict:
    """PiRank's loss, less 1, with their matrix and the straight-through estimator."""
    on_a_cpu = ("torch.cuda.", "torch."), (", device='cuda'", "")
    theirs = module_at(folder / "neuralsort/pytorch/neuralsort.py", on_a_cpu)
    gains = 2**labels - 1
    discounts = 1 / torch.log2(torch.arange(2, K + 2))
    best = gains.sort(1, descending=True).values[:, :K] @ discounts
    found = {}
    for tau in (0.5, 5.0):
        for hard in (True, False):

            def loss(s: Tensor, tau: float = tau, hard: bool = hard) -> Tensor:
                matrix = theirs.NeuralSort(tau, hard)(s)[:, :K]
                return -((matrix @ gains.unsqueeze(2)).squeeze(2) @ discounts) / best

            ones = torch.ones(len(scores))
            found[f"{tau}_{'hard' if hard else 'soft'}"] = record(loss, scores, ones)
    return found


def gumbel(scores: Tensor, labels: Tensor) -> dict:
    """ApproxNDCG of scores with noise, which is recorded."""
    samples, beta, key = 3, 0.5, jax.random.PRNGKey(7)
    approx = rax.approx_t12n(rax.ndcg_metric, temperature=0.1)
    loss = rax.gumbel_t12n(approx, samples=samples, beta=beta)
    values, gradients = [], []
    for s, y in zip(scores.numpy(), labels.numpy(), strict=True):
        value, gradient = jax.value_and_grad(lambda s, y=y: loss(s, y, key=key))(jnp.asarray(s))
        values.append(float(value))
        gradients.append(np.asarray(gradient, dtype=float).tolist())
    drawn_by, _ = jax.random.split(key)  # as Rax does for losses that take a key as well
    noise = np.asarray(jax.random.gumbel(drawn_by, (samples, scores.shape[1])), dtype=float)
    return {"noise": noise.tolist(), "value": values, "gradient": gradients}


def main(folder: Path) -> None:
    """Print the lists and what the authors' code makes of them."""
    generator = torch.Generator().manual_seed(11)
    scores = (torch.randn(4, 8, generator=generator) * 100).round() / 100
    labels = torch.randint(0, 4, (4, 8), generator=generator).float()
    labels[:, 2] = 3
    weights = (torch.randn(4, 8, generator=generator) * 100).round() / 100
    lists = {"scores": scores, "labels": labels, "weights": weights}
    found = {
        "smooth_i": smooth_i(folder, scores, labels),
        "fast_soft_rank": fast_soft_rank(folder, scores, weights),
        "lapsum": lapsum(folder, scores, weights),
        "blackbox": blackbox(folder, scores, labels),
        "pirank": pirank(folder, scores, labels),
        "gumbel": gumbel(scores, labels),
    }
    print(json.dumps({name: tensor.tolist() for name, tensor in lists.items()} | found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
