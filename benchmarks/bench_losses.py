"""Time and memory of the losses, beside plain autograd, allRank and Rax on the same tensors.

    python benchmarks/bench_losses.py                    everything, on 2 threads
    python benchmarks/bench_losses.py --losses ranknet approx_ndcg --shapes 128x240

The other libraries are measured where they are found:

    pip install --no-deps --target DIR allrank==1.4.3        then DIRECTRANK_ALLRANK=DIR
    python -m venv DIR && DIR/bin/pip install jax==0.6.2 jaxlib==0.6.2 rax==0.4.0
                                                              then DIRECTRANK_RAX=DIR/bin/python

A time is forward and backward of the mean loss on a leaf of scores, the median of repetitions that
take turns, so that a busy moment of the machine meets all of them. Peak memory is what a process of
its own needs beyond its state before the call. Rax is jitted, compilation excluded; its memory is
XLA's own figure of temporaries. Writes ``results/losses.csv`` and ``results/losses.md``.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

#: Shapes: queries × documents, all real; or lists as long as Web30K's.
SHAPES = ["128x120", "128x240", "web30k"]
GROWTH = [f"1x{length}" for length in (625, 1250, 2500, 5000)]
LABEL_SHARES = [0.55, 0.23, 0.13, 0.08, 0.01]

LOSSES = [
    "rmse", "listnet", "listmle", "ranknet", "lambdarank", "wassrank", "softrank",
    "approx_ndcg", "approx_ap", "approx_precision",
    "twin_precision", "twin_ap", "twin_ndcg", "twin_nerr",
    "neural_ndcg", "neural_ndcg_transposed",
]  # fmt: skip
#: allRank's Sinkhorn takes 50 rounds and cannot be told otherwise.
OPTIONS = {
    "approx_precision": {"k": 10},
    "neural_ndcg": {"iterations": 50},
    "neural_ndcg_transposed": {"iterations": 50},
}

#: With which of another library's losses a loss is compared: its own, or the nearest kin.
KIN = {"approx_ap": "approx_ndcg", "approx_precision": "approx_ndcg"} | {
    f"twin_{metric}": "approx_ndcg" for metric in ("precision", "ap", "ndcg", "nerr")
}

#: Plain autograd versions go list by list for these; they are left out where that takes minutes.
SLOW_PLAIN = {"softrank", "wassrank", "neural_ndcg", "neural_ndcg_transposed"}


def tensors(shape: str) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, labels and mask of a shape; every list has a relevant document."""
    generator = torch.Generator().manual_seed(30)
    if shape == "web30k":
        # Log-normal lengths with Web30K's mean of 120 and a maximum that training would cut to.
        spread = torch.randn(128, generator=generator)
        lengths = torch.exp(4.6 + 0.6 * spread).round().clamp(2, 800).long()
    else:
        B, L = map(int, shape.split("x"))
        lengths = torch.full((B,), L)
    B, L = len(lengths), int(lengths.max())
    mask = torch.arange(L) < lengths[:, None]
    scores = torch.randn(B, L, generator=generator)
    shares = torch.tensor(LABEL_SHARES)
    labels = torch.multinomial(shares, B * L, replacement=True, generator=generator).view(B, L)
    labels[:, 0] = 2
    return scores, labels.float().masked_fill(~mask, 0.0), mask


# --------------------------------------------------------------------------------- the contestants


def step_of(loss: Callable[..., Tensor], scores: Tensor, *arguments: Tensor, **options):
    """One forward and backward pass as a function without arguments."""
    leaf = scores.clone().requires_grad_()

    def step() -> None:
        leaf.grad = None
        loss(leaf, *arguments, **options).mean().backward()

    return step


def ours(name: str, shape: str) -> Callable[[], None] | None:
    """A step of this library."""
    from directrank import losses

    return step_of(losses.get(name), *tensors(shape), **OPTIONS.get(name, {}))


def plain(name: str, shape: str) -> Callable[[], None] | None:
    """A step of the formula as it reads, with autograd."""
    import losses_plain

    scores, labels, mask = tensors(shape)
    if name in SLOW_PLAIN and (name == "softrank" or scores.shape[1] > 240):
        return None
    if name == "listmle":
        from directrank.losses._listmle import shuffled_order

        return step_of(
            lambda s, y, m: losses_plain.listmle(s, y, m, shuffled_order(y, m, None)),
            scores, labels, mask,
        )  # fmt: skip
    if not hasattr(losses_plain, name) or scores.shape[1] > 2500:
        return None
    return step_of(getattr(losses_plain, name), scores, labels, mask, **OPTIONS.get(name, {}))


def allrank(name: str, shape: str) -> Callable[[], None] | None:
    """A step of allRank's loss of the same kind."""
    losses = _allrank_losses()
    name = KIN.get(name, name)
    scores, labels, mask = tensors(shape)
    if losses is None or name not in losses or scores.shape[1] > 1250:
        return None
    padded = labels.masked_fill(~mask, -1.0)
    return step_of(losses[name], scores, padded)


def _allrank_losses() -> dict[str, Callable[..., Tensor]] | None:
    folder = os.environ.get("DIRECTRANK_ALLRANK")
    if folder and folder not in sys.path:
        sys.path.append(folder)
    # allRank's losses need a constant of its data module, which imports what is not needed here.
    for missing, names in {
        "torchvision": ("transforms",),
        "torchvision.transforms": ("Compose",),
        "gcsfs": (),
        "pkg_resources": ("Requirement", "resource_filename"),
        "flatten_dict": ("flatten",),
    }.items():
        try:
            importlib.import_module(missing)
        except ImportError:
            stub = types.ModuleType(missing)
            for attribute in names:
                setattr(stub, attribute, object)
            sys.modules[missing] = stub
    try:
        from allrank.models.losses.approxNDCG import approxNDCGLoss
        from allrank.models.losses.lambdaLoss import lambdaLoss
        from allrank.models.losses.listMLE import listMLE
        from allrank.models.losses.listNet import listNet
        from allrank.models.losses.neuralNDCG import neuralNDCG, neuralNDCG_transposed
        from allrank.models.losses.pointwise import pointwise_rmse
    except ImportError:
        return None
    return {
        "rmse": lambda s, y: pointwise_rmse(s, y, 5),
        "listnet": listNet,
        "listmle": listMLE,
        # The faster of its two RankNets.
        "ranknet": lambda s, y: lambdaLoss(s, y, weighing_scheme="rankNet_scheme"),
        "lambdarank": lambda s, y: lambdaLoss(s, y, weighing_scheme="lambdaRank_scheme"),
        "approx_ndcg": lambda s, y: approxNDCGLoss(s, y, alpha=10.0),
        "neural_ndcg": neuralNDCG,
        "neural_ndcg_transposed": neuralNDCG_transposed,
    }


CONTESTANTS: dict[str, Callable[[str, str], Callable[[], None] | None]] = {
    "directrank": ours,
    "plain autograd": plain,
    "allRank": allrank,
}


# -------------------------------------------------------------------------------------- measuring


def times(steps: dict[str, Callable[[], None]], seconds: float) -> dict[str, list[float]]:
    """Milliseconds of each contestant's repetitions, taken in turns after a warm-up."""
    for step in steps.values():
        step()
    found: dict[str, list[float]] = {who: [] for who in steps}
    spent = dict.fromkeys(steps, 0.0)
    while any(
        (spent[who] < seconds and len(found[who]) < 50) or len(found[who]) < 3 for who in steps
    ):
        for who, step in steps.items():
            if (spent[who] >= seconds or len(found[who]) >= 50) and len(found[who]) >= 3:
                continue
            begin = time.perf_counter()
            step()
            found[who].append(1e3 * (time.perf_counter() - begin))
            spent[who] += found[who][-1] / 1e3
    return found


def peak_memory(who: str, name: str, shape: str) -> float | None:
    """MB that one step needs at its peak, from a process of its own."""
    command = [sys.executable, __file__, "--peak", who, name, shape]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 and done.stdout.strip() else None


def print_peak(who: str, name: str, shape: str) -> None:
    """The work of :func:`peak_memory`'s process."""
    torch.set_num_threads(1)
    warm = CONTESTANTS[who](name, "2x4")
    step = CONTESTANTS[who](name, shape)
    if warm is None or step is None:
        return
    warm()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step()
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def rax_times(
    names: list[str], shapes: list[str], threads: int, seconds: float
) -> dict[tuple[str, str], dict[str, float]]:
    """Rax's times and memory, from its own interpreter."""
    interpreter = os.environ.get("DIRECTRANK_RAX")
    if not interpreter:
        print("Rax is not measured: DIRECTRANK_RAX does not name a Python that has it", flush=True)
        return {}
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes:
            scores, labels, mask = (tensor.numpy() for tensor in tensors(shape))
            np.savez(Path(folder) / f"{shape}.npz", scores=scores, labels=labels, mask=mask)
        wanted = sorted({KIN.get(name, name) for name in names})
        command = [interpreter, str(HERE / "rax_losses.py"), folder, str(seconds), *wanted]
        flags = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
        environment = os.environ | {"XLA_FLAGS": flags, "OMP_NUM_THREADS": str(threads)}
        if threads == 1 and hasattr(os, "sched_setaffinity"):
            command = ["taskset", "-c", "0", *command]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return {(row.pop("loss"), row.pop("shape")): row for row in json.loads(done.stdout)}


def measure(
    names: list[str], shapes: list[str], threads: int, seconds: float, memory: bool
) -> list[dict]:
    """One row per loss, shape and contestant."""
    torch.set_num_threads(threads)
    rax = rax_times(names, shapes, threads, seconds)
    rows = []
    for shape in shapes:
        for name in names:
            steps = {who: make(name, shape) for who, make in CONTESTANTS.items()}
            steps = {who: step for who, step in steps.items() if step is not None}
            found = times(steps, seconds)
            medians = {who: statistics.median(values) for who, values in found.items()}
            peaks = {who: peak_memory(who, name, shape) if memory else None for who in steps}
            kin = rax.get((KIN.get(name, name), shape))
            if kin:
                medians["Rax"], peaks["Rax"] = kin["ms"], kin["mb"]
            for who, median in medians.items():
                rows.append(
                    {
                        "loss": name,
                        "shape": shape,
                        "library": who,
                        "compared_with": KIN.get(name, "") if who in ("allRank", "Rax") else "",
                        "threads": threads,
                        "ms": f"{median:.4g}",
                        "times_ours": f"{median / medians['directrank']:.3g}",
                        "peak_mb": "" if peaks[who] is None else f"{peaks[who]:.4g}",
                    }
                )
            line = "  ".join(f"{who} {median:.3g} ms" for who, median in medians.items())
            print(f"{shape:>9} {name:<24} {line}", flush=True)
    return rows


def write(rows: list[dict], folder: Path) -> None:
    """``losses.csv`` and ``losses.md`` in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "losses.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    libraries = list(dict.fromkeys(row["library"] for row in rows))
    lines = [
        "# Losses: forward and backward",
        "",
        f"Milliseconds (peak MB) on {rows[0]['threads']} threads, torch {torch.__version__};"
        " × is the factor to directrank. AP, precision and the twin losses, which no other library"
        " has, stand beside its ApproxNDCG.",
        "",
        "| loss | shape | " + " | ".join(libraries) + " |",
        "| --- | --- |" + " ---: |" * len(libraries),
    ]
    for name, shape in dict.fromkeys((row["loss"], row["shape"]) for row in rows):
        cells = []
        for who in libraries:
            row = next(
                (r for r in rows if (r["loss"], r["shape"], r["library"]) == (name, shape, who)),
                None,
            )
            if row is None:
                cells.append("–")
                continue
            peak = f" ({row['peak_mb']})" if row["peak_mb"] else ""
            factor = "" if who == "directrank" else f", ×{row['times_ours']}"
            cells.append(f"{row['ms']}{factor}{peak}")
        lines.append(f"| {name} | {shape} | " + " | ".join(cells) + " |")
    (folder / "losses.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Measure what the command line asks for."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--losses", nargs="+", default=LOSSES, choices=LOSSES)
    options.add_argument("--shapes", nargs="+", default=SHAPES)
    options.add_argument("--no-growth", action="store_true", help="leave out single long lists")
    options.add_argument("--no-memory", action="store_true", help="leave out peak memory")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--seconds", type=float, default=1.0, help="per loss and library")
    options.add_argument("--out", type=Path, default=HERE / "results")
    options.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.peak:
        print_peak(*chosen.peak)
        return
    memory = not chosen.no_memory
    rows = measure(chosen.losses, chosen.shapes, chosen.threads, chosen.seconds, memory)
    if not chosen.no_growth:
        quadratic = [name for name in chosen.losses if name not in SLOW_PLAIN]
        rows += measure(quadratic, GROWTH, chosen.threads, chosen.seconds / 2, False)
    write(rows, chosen.out)


if __name__ == "__main__":
    main()
