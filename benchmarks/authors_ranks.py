"""The authors' own code of losses that are NDCG at ranks, as contestants of bench_losses.py.

    DIRECTRANK_AUTHORS=DIR python benchmarks/bench_losses.py --losses smooth_ndcg lapsum_ndcg

``DIR`` holds checkouts of ygcinar/SmoothI, teddykoker/torchsort (``setup.py build_ext --inplace``),
gmum/LapSum, martius-lab/blackbox-backprop and ermongroup/neuralsort, each under its own name; those
that are missing are not measured. None supports padding. Where they give ranks, or a matrix, NDCG
is added in PyTorch.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

Loss = Callable[[Tensor, Tensor], Tensor]


@cache
def losses() -> dict[str, Loss]:
    """Our names → the authors' losses of scores and labels, as far as they are found."""
    folder = os.environ.get("DIRECTRANK_AUTHORS")
    found = {}
    for name, make in MAKERS.items() if folder else ():
        try:
            found[name] = make(Path(folder))
        except (ImportError, OSError) as error:
            print(f"the authors' {name} is not measured: {error}", file=sys.stderr)
    return found


def _smooth(folder: Path) -> Loss:
    theirs = _module(folder / "SmoothI/src/losses.py")
    options = {"alpha": 1.0, "delta": 0.1, "K": 0}  # no cut-off

    def loss(scores: Tensor, labels: Tensor) -> Tensor:
        made = theirs.ListwiseSmoothINDCGKLoss(rank_list_length=scores.shape[1], **options)
        return made(scores, labels)[None]

    return loss


def _fast_soft(folder: Path) -> Loss:
    sys.path.append(str(folder / "torchsort"))
    import torchsort

    return lambda s, y: _at_ranks(torchsort.soft_rank(-s, regularization_strength=0.1), y)


def _lapsum(folder: Path) -> Loss:
    from torch.utils.cpp_extension import load

    source = folder / "LapSum/lapsum/lapsum/rank/cpu/soft_rank.cpp"
    theirs = load("soft_rank_cpu", [str(source)], extra_cflags=["-O3"])

    class Rank(torch.autograd.Function):
        @staticmethod
        def forward(ctx, scores: Tensor) -> Tensor:
            ctx.save_for_backward(scores)
            return 1 + theirs.forward(scores, -0.1)

        @staticmethod
        def backward(ctx, outer: Tensor) -> Tensor:
            return theirs.vjp(*ctx.saved_tensors, outer.contiguous(), -0.1)[0]

    return lambda s, y: _at_ranks(Rank.apply(s), y)


def _blackbox(folder: Path) -> Loss:
    theirs = _module(folder / "blackbox-backprop/blackbox_backprop/ranking.py")
    return lambda s, y: _at_ranks(s.shape[1] * theirs.TrueRanker.apply(s, 100.0 / s.shape[1]), y)


def _pirank(folder: Path) -> Loss:
    on_a_cpu = ("torch.cuda.", "torch."), (", device='cuda'", "")
    theirs = _module(folder / "neuralsort/pytorch/neuralsort.py", on_a_cpu)

    def loss(scores: Tensor, labels: Tensor) -> Tensor:
        sort = theirs.NeuralSort(tau=5.0, hard=True)
        sorted_gains = (sort(scores) @ (2**labels - 1).unsqueeze(2)).squeeze(2)
        discounts = 1 / torch.log2(torch.arange(2, scores.shape[1] + 2))
        return -(sorted_gains @ discounts) / _best(labels)

    return loss


MAKERS: dict[str, Callable[[Path], Loss]] = {
    "smooth_ndcg": _smooth,
    "fast_soft_ndcg": _fast_soft,
    "lapsum_ndcg": _lapsum,
    "blackbox_ndcg": _blackbox,
    "pirank": _pirank,
}


def _at_ranks(ranks: Tensor, labels: Tensor) -> Tensor:
    """Minus NDCG."""
    return -((2**labels - 1) / torch.log2(1 + ranks)).sum(1) / _best(labels)


def _best(labels: Tensor) -> Tensor:
    """The ideal DCG."""
    gains = 2 ** labels.sort(1, descending=True).values - 1
    return (gains / torch.log2(torch.arange(2, labels.shape[1] + 2))).sum(1)


def _module(path: Path, changes: tuple[tuple[str, str], ...] = ()) -> types.ModuleType:
    """The module in a file, with changes of its text."""
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        text = text.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / path.name
        changed.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, changed)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module
