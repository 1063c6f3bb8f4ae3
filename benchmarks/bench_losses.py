"""Time and memory of the losses, beside allRank, Rax and authors' code on the same tensors.

    python benchmarks/bench_losses.py                    everything, on 2 threads: three minutes
    python benchmarks/bench_losses.py --losses ranknet approx_ndcg --shapes 128x240

The other libraries are measured if they are installed:

    pip install --no-deps --target DIR allrank==1.4.3        then DIRECTRANK_ALLRANK=DIR
    python -m venv DIR && DIR/bin/pip install jax==0.6.2 jaxlib==0.6.2 rax==0.4.0
                                                              then DIRECTRANK_RAX=DIR/bin/python
    checkouts of the code of papers' authors in a folder DIR, see authors_losses.py and
    authors_ranks.py                                          then DIRECTRANK_AUTHORS=DIR

A time is that of the forward and backward pass of the mean loss on a leaf of scores: the shortest
of several repetitions, in which the libraries take turns, so that a busy moment of the machine has
no effect. Compilation is excluded for all libraries. Peak memory is the need of a separate process
beyond its state before the call; for Rax it is XLA's figure for temporaries. The loss ``nothing``
adds up the scores: its time and memory are those of PyTorch for two passes and a gradient, which
every other loss needs as well.
Writes ``results/losses.csv`` and ``results/losses.md``.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path

import authors_losses
import authors_ranks
import numpy as np
import torch
from torch import Tensor

HERE = Path(__file__).resolve().parent

#: Shapes: queries × documents, all real; or 128 lists as long as Web30K's.
SHAPES = ["128x120", "128x240", "web30k"]
#: Where peak memory is measured.
MEMORY = "128x240"
GROWTH = [f"1x{length}" for length in (1250, 2500, 5000)]
LABEL_SHARES = [0.55, 0.23, 0.13, 0.08, 0.01]

#: The loss that computes nothing.
NOTHING = "nothing"

LOSSES = [
    NOTHING, "rmse", "listnet", "listmle", "ranknet", "lambdarank", "wassrank", "softrank",
    "approx_ndcg", "approx_ap", "approx_precision",
    "twin_precision", "twin_ap", "twin_ndcg", "twin_nerr",
    "neural_ndcg", "neural_ndcg_transposed", "neural_ap", "neural_err", "neural_precision",
    "smooth_ndcg", "fast_soft_ndcg", "lapsum_ndcg", "blackbox_ndcg", "pirank",
    "gumbel_approx_ndcg",
    "lambda_loss", "k_song", "xe_ndcg", "pl_rank", "yeti_loss", "stochastic_rank",
    "softmax_cross_entropy", "poly1", "unique_softmax", "pairwise_hinge", "sigmoid_cross_entropy",
    "ordinal", "adr_mse", "sl_at_k", "psl", "soft_sort_ndcg", "sinkhorn_ndcg", "diff_sort_ndcg",
    "newton",
]  # fmt: skip
#: allRank's Sinkhorn takes 50 rounds and cannot be told otherwise.
OPTIONS = {
    "approx_precision": {"k": 10},
    "neural_ndcg": {"iterations": 50},
    "neural_ndcg_transposed": {"iterations": 50},
    "newton": {"of": "ranknet", "lam": 0.1},
    "sl_at_k": {"k": 10},
}
SORTING = {"name": "neural_sort", "iterations": 50}
#: Metrics under NeuralSort that have no name among the losses.
COMPOSED = {
    "neural_ap": "average_precision",
    "neural_err": "err",
    "neural_precision": {"name": "precision", "k": 10},
}

#: With which of another library's losses a loss is compared: its own, or the nearest kin.
KIN = (
    {"approx_ap": "approx_ndcg", "approx_precision": "approx_ndcg"}
    | {f"twin_{metric}": "approx_ndcg" for metric in ("precision", "ap", "ndcg", "nerr")}
    | dict.fromkeys(COMPOSED, "neural_ndcg")
    | {"yeti_loss": "lambdarank"}
)

#: Many times quadratic: not given a list of thousands of documents.
COSTLY = {"neural_ndcg", "neural_ndcg_transposed", "sinkhorn_ndcg", "diff_sort_ndcg", *COMPOSED}

#: The longest lists that other libraries are given, whose tensors are [B, L, L]; and those of which
#: they keep a hundred.
LONGEST = {"": 1250, "neural_ndcg": 240, "neural_ndcg_transposed": 240}

#: Longest time of a turn of a library, most turns, and the milliseconds of a step that gets one.
SECONDS, TURNS, SLOW = 0.08, 3, 500


def tensors(shape: str, device: str = "cpu") -> tuple[Tensor, Tensor, Tensor]:
    """Scores, labels and mask of a shape; every list has a relevant document."""
    generator = torch.Generator().manual_seed(30)
    if shape == "web30k":
        # Log-normal lengths with Web30K's mean of 120, cut where a training would cut them.
        spread = torch.randn(128, generator=generator)
        lengths = torch.exp(4.6 + 0.6 * spread).round().clamp(2, 400).long()
    else:
        B, L = map(int, shape.split("x"))
        lengths = torch.full((B,), L)
    B, L = len(lengths), int(lengths.max())
    mask = torch.arange(L) < lengths[:, None]
    scores = torch.randn(B, L, generator=generator)
    shares = torch.tensor(LABEL_SHARES)
    labels = torch.multinomial(shares, B * L, replacement=True, generator=generator).view(B, L)
    labels[:, 0] = 2
    made = scores, labels.float().masked_fill(~mask, 0.0), mask
    return tuple(tensor.to(device) for tensor in made)


# --------------------------------------------------------------------------------- the contestants


def step_of(loss: Callable[..., Tensor], scores: Tensor, *arguments: Tensor, **options):
    """One forward and backward pass as a function without arguments."""
    leaf = scores.clone().requires_grad_()

    def step() -> None:
        leaf.grad = None
        loss(leaf, *arguments, **options).mean().backward()

    return step


def ours(name: str, shape: str, device: str = "cpu") -> Callable[[], None] | None:
    """A step of this library."""
    from directrank import losses

    given = tensors(shape, device)
    if name == NOTHING:
        return step_of(lambda scores, labels, mask: scores.sum(1), *given)
    if name in COMPOSED:
        return step_of(losses.compose(COMPOSED[name], SORTING), *given)
    return step_of(losses.get(name), *given, **OPTIONS.get(name, {}))


def allrank(name: str, shape: str, device: str = "cpu") -> Callable[[], None] | None:
    """A step of allRank's loss of the same kind."""
    losses = _allrank_losses()
    name = KIN.get(name, name)
    scores, labels, mask = tensors(shape, device)
    longest = LONGEST.get(name, LONGEST[""]) if device == "cpu" else LONGEST[""]
    if losses is None or name not in losses or scores.shape[1] > longest:
        return None
    padded = labels.masked_fill(~mask, -1.0)
    return step_of(losses[name], scores, padded)


def authors(name: str, shape: str) -> Callable[[], object] | None:
    """A step of the code that a loss' authors published."""
    folder = os.environ.get("DIRECTRANK_AUTHORS")
    if not folder:
        return None
    scores, labels, mask = tensors(shape)
    at_ranks = authors_ranks.losses().get(name)
    if at_ranks is None:
        return authors_losses.step_of(KIN.get(name, name), Path(folder), scores, labels, mask)
    if not mask.all() or scores.shape[1] > LONGEST[""]:
        return None
    return step_of(at_ranks, scores, labels)


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
        # Its softmax of these logarithms is the drawn target of XE-NDCG.
        "xe_ndcg": lambda s, y: listNet(
            s, torch.where(y < 0, y, torch.log(torch.exp2(y) - torch.rand_like(y)))
        ),
        "listmle": listMLE,
        # The faster of its two RankNets.
        "ranknet": lambda s, y: lambdaLoss(s, y, weighing_scheme="rankNet_scheme"),
        "lambdarank": lambda s, y: lambdaLoss(s, y, weighing_scheme="lambdaRank_scheme"),
        "lambda_loss": lambda s, y: lambdaLoss(s, y, weighing_scheme="ndcgLoss2PP_scheme"),
        "approx_ndcg": lambda s, y: approxNDCGLoss(s, y, alpha=10.0),
        "neural_ndcg": neuralNDCG,
        "neural_ndcg_transposed": neuralNDCG_transposed,
    }


CONTESTANTS: dict[str, Callable[[str, str], Callable[[], object] | None]] = {
    "directrank": ours,
    "allRank": allrank,
    "authors": authors,
}


class Rax:
    """Rax in its own interpreter, which is asked for one time after the other.

    Args:
        shapes: what it may be asked for.
        threads: how many it works on.
    """

    def __init__(self, shapes: list[str], threads: int) -> None:
        self.process, self.folder = None, tempfile.TemporaryDirectory()
        interpreter = os.environ.get("DIRECTRANK_RAX")
        if not interpreter:
            print("Rax is not measured: DIRECTRANK_RAX does not name a Python with it", flush=True)
            return
        for shape in shapes:
            scores, labels, mask = (tensor.numpy() for tensor in tensors(shape))
            file = Path(self.folder.name) / f"{shape}.npz"
            np.savez(file, scores=scores, labels=labels, mask=mask)
        command = [interpreter, str(HERE / "rax_losses.py"), self.folder.name]
        flags = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"XLA_FLAGS": flags, "OMP_NUM_THREADS": str(threads)},
        )

    def measure(self, name: str, shape: str) -> dict[str, float]:
        """``ms`` and ``mb`` of its loss of that kind; empty where it has none."""
        if self.process is None:
            return {}
        name = KIN.get(name, name)
        print(json.dumps([name, shape, SECONDS]), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """End the interpreter."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
        self.folder.cleanup()


# -------------------------------------------------------------------------------------- measuring


def least_time(step: Callable[[], object]) -> float:
    """The least milliseconds of repetitions in one turn; a single one where it takes long."""
    least, begin = float("inf"), time.perf_counter()
    while True:
        start = time.perf_counter()
        step()
        end = time.perf_counter()
        least = min(least, 1e3 * (end - start))
        if end - begin > SECONDS:
            return least


@cache
def peak_memory(who: str, shape: str, names: tuple[str, ...]) -> dict[str, float]:
    """MB that one step of each loss needs at its peak; nothing but on Linux."""
    command = [sys.executable, __file__, "--peak", who, shape, "--losses", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def print_peaks(who: str, shape: str, names: list[str]) -> None:
    """The work of :func:`peak_memory`'s process: it imports, and every loss has a fork of it."""
    torch.set_num_threads(1)
    peaks = {}
    for name in names:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, json.dumps(peak_of(who, name, shape)).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            text = answer.read()
        os.waitpid(child, 0)
        if text and (peak := json.loads(text)) is not None:
            peaks[name] = peak
    print(json.dumps(peaks))


def peak_of(who: str, name: str, shape: str) -> float | None:
    """MB that one step needs in this process; None where the library lacks the loss."""
    warm, step = CONTESTANTS[who](name, "2x4"), CONTESTANTS[who](name, shape)
    if warm is None or step is None:
        return None
    warm()
    # Small needs would be met, unseen, from what was freed before.
    ctypes.CDLL(None).malloc_trim(0)
    # A process inherits the peak of its parent, unless the peak is set back to what is in use.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = status("VmHWM")
    step()
    return (status("VmHWM") - before) / 1024


def status(field: str) -> int:
    """A number of Linux' status of this process, in kB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise KeyError(field)


def measure(names: list[str], shapes: list[str], threads: int, memory: bool) -> list[dict]:
    """One row per loss and shape."""
    torch.set_num_threads(threads)
    rax = Rax(shapes, threads)
    rows = []
    for shape in shapes:
        for name in names:
            rows.append(measured(name, shape, rax, names if memory and shape == MEMORY else []))
            shown = {key: value for key, value in rows[-1].items() if value != ""}
            print("  ".join(f"{key} {value}" for key, value in shown.items()), flush=True)
    rax.close()
    return rows


def measured(name: str, shape: str, rax: Rax, remembered: list[str]) -> dict:
    """The row of a loss and shape; libraries that lack the loss leave their cells empty.

    Memory is measured if there are losses whose memory is ``remembered``, for all of them at once.
    """
    steps = {who: make(name, shape) for who, make in CONTESTANTS.items()}
    least = {who: float("inf") for who, step in steps.items() if step is not None}
    steps = {who: steps[who] for who in least}
    for step in steps.values():
        step()  # compiles, fills caches
    peaks = {}
    for turn in range(TURNS):
        for who, step in steps.items():
            if turn == 0 or least[who] < SLOW:
                least[who] = min(least[who], least_time(step))
        if answer := rax.measure(name, shape):
            least["Rax"] = min(least.get("Rax", float("inf")), answer["ms"])
            peaks["Rax"] = answer["mb"]
    if remembered:
        theirs = tuple(dict.fromkeys(KIN.get(other, other) for other in remembered))
        peaks["directrank"] = peak_memory("directrank", shape, tuple(remembered)).get(name)
        for who in ("allRank", "authors"):
            peaks[who] = peak_memory(who, shape, theirs).get(KIN.get(name, name))
    else:
        peaks = {}
    others = [value for who, value in least.items() if who != "directrank"]
    row = {"loss": name, "shape": shape, "compared_with": KIN.get(name, name) if others else ""}
    row |= {f"{who}_ms": number(least.get(who)) for who in LIBRARIES}
    row["ratio"] = number(min(others) / least["directrank"]) if others else ""
    row |= {f"{who}_peak_mb": number(peaks.get(who)) for who in LIBRARIES}
    return row


LIBRARIES = (*CONTESTANTS, "Rax")


def number(value: float | None) -> str:
    """Three digits, or nothing."""
    return "" if value is None else f"{value:.3g}"


def write(rows: list[dict], threads: int, folder: Path) -> None:
    """``losses.csv`` and ``losses.md`` in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "losses.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    lines = [
        "# Losses: forward and backward",
        "",
        f"Shortest times in milliseconds on {threads} threads of {processor()} with torch"
        f" {torch.__version__}; the ratio is the time of the fastest other library divided by ours."
        " No other library has AP, precision and the twin losses, which are compared with its"
        " ApproxNDCG; AP, ERR and precision under NeuralSort are compared with NeuralNDCG, and"
        " YetiLoss with LambdaRank. XE-NDCG of allRank and Rax is their cross entropy with a drawn"
        " target, which takes their draws, too. PL-Rank and YetiLoss draw ten orders,"
        " StochasticRank draws one. Code of papers' authors that does not support padding is given"
        " lists without padding; where it ends at ranks, NDCG is added. Peak memory is in MB. The"
        " loss `nothing` adds up the scores: it shows the minimum time of PyTorch's passes and the"
        " gradient.",
        "",
        "| " + " | ".join(key.replace("_", " ") for key in rows[0]) + " |",
        "| --- | --- | --- |" + " ---: |" * (len(rows[0]) - 3),
    ]
    lines += ["| " + " | ".join(row[key] or "–" for key in row) + " |" for row in rows]
    lines += notes(rows)
    (folder / "losses.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def notes(rows: list[dict]) -> list[str]:
    """Sentences on the cubic loss, on faster libraries, and on the growth with length."""
    ours = {(row["loss"], row["shape"]): float(row["directrank_ms"]) for row in rows}
    lines = []
    pair = ("softrank", "128x120"), ("approx_ndcg", "128x120")
    if all(key in ours for key in pair):
        times = ours[pair[0]] / ours[pair[1]]
        lines += ["", f"SoftRank takes {times:.1f} times as long as ApproxNDCG at L = 120."]
    grown = [
        f"{name} {math.log(ours[name, GROWTH[-1]] / ours[name, GROWTH[0]]) / math.log(4):.1f}"
        for name in LOSSES
        if (name, GROWTH[0]) in ours and (name, GROWTH[-1]) in ours
    ]
    lines += below_one(rows)
    if grown:
        lines += ["", f"Exponents of the growth from L = 1250 to 5000: {', '.join(grown)}."]
    return lines


def below_one(rows: list[dict]) -> list[str]:
    """Where another library is faster, and how much of our time is PyTorch's own."""
    least = {row["shape"]: row["directrank_ms"] for row in rows if row["loss"] == NOTHING}
    lines = []
    for row in rows:
        if row["ratio"] and float(row["ratio"]) < 1:
            who = min(
                (who for who in LIBRARIES[1:] if row[f"{who}_ms"]),
                key=lambda who: float(row[f"{who}_ms"]),
            )
            own = (
                f", of which `nothing` takes {least[row['shape']]}" if row["shape"] in least else ""
            )
            lines.append(
                f"- {row['loss']} at {row['shape']}: {row['directrank_ms']} ms{own};"
                f" {who} takes {row[f'{who}_ms']} ms."
            )
    return ["", "Another library is faster at:", "", *lines] if lines else []


def processor() -> str:
    """The processor's name."""
    from directrank.study.provenance import environment

    return environment()["processor"]


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
    options.add_argument("--out", type=Path, default=HERE / "results")
    options.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.peak:
        print_peaks(*chosen.peak, chosen.losses)
        return
    if chosen.threads == 1 and hasattr(os, "sched_setaffinity"):
        # JAX cannot be told so; it and all others share one core.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows = measure(chosen.losses, chosen.shapes, chosen.threads, not chosen.no_memory)
    if not chosen.no_growth:
        names = [name for name in chosen.losses if name not in COSTLY]
        rows += measure(names, GROWTH, chosen.threads, False)
    write(rows, chosen.threads, chosen.out)


if __name__ == "__main__":
    main()
