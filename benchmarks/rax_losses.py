"""Rax's side of bench_losses.py; runs in an interpreter that has jax and rax.

    python rax_losses.py FOLDER

``FOLDER`` holds one ``<shape>.npz`` per shape, with scores, labels and mask. Each line of the
input, a JSON list of loss, shape and seconds, is answered by one line of JSON: the shortest
milliseconds of the loss with its gradient within these seconds, and the MB of its temporaries; or
nothing.
"""

from __future__ import annotations

import json
import sys
import time
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import rax

#: Longest list that Rax, which makes [B, L²] tensors, is given.
LONGEST = 1250


def losses() -> dict:
    """Our names → Rax's losses of the same kind, as functions of scores, labels, mask and key."""
    approx_ndcg = rax.approx_t12n(rax.ndcg_metric, temperature=0.1)
    gumbel = rax.gumbel_t12n(approx_ndcg, samples=8)

    def xe_ndcg(s, y, m, key):
        return rax.softmax_loss(s, 2**y - jax.random.uniform(key, y.shape), where=m)

    return {
        "xe_ndcg": xe_ndcg,
        "listnet": lambda s, y, m, key: rax.softmax_loss(s, y, where=m),
        "listmle": lambda s, y, m, key: rax.listmle_loss(s, y, where=m, key=key),
        "ranknet": lambda s, y, m, key: rax.pairwise_logistic_loss(s, y, where=m),
        "lambdarank": lambda s, y, m, key: rax.pairwise_logistic_loss(
            s, y, where=m, lambdaweight_fn=rax.dcg_lambdaweight
        ),
        "approx_ndcg": lambda s, y, m, key: -approx_ndcg(s, y, where=m),
        "gumbel_approx_ndcg": lambda s, y, m, key: gumbel(s, y, where=m, key=key),
    }


@cache
def compiled(name: str, file: Path):
    """The loss with its gradient, compiled for a shape, and its arguments; None where too long."""
    data = np.load(file)
    arguments = [jnp.asarray(data[key]) for key in ("scores", "labels", "mask")]
    arguments.append(jax.random.PRNGKey(0))
    if arguments[0].shape[1] > LONGEST:
        return None
    function = jax.jit(jax.value_and_grad(losses()[name])).lower(*arguments).compile()
    jax.block_until_ready(function(*arguments))
    return function, arguments


def measure(name: str, file: Path, seconds: float) -> dict[str, float]:
    """The least time and the memory; empty where there is nothing to measure."""
    if name not in losses() or (found := compiled(name, file)) is None:
        return {}
    function, arguments = found
    least, begin = float("inf"), time.perf_counter()
    while True:
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        end = time.perf_counter()
        least = min(least, 1e3 * (end - start))
        if end - begin > seconds:
            memory = function.memory_analysis().temp_size_in_bytes
            return {"ms": least, "mb": memory / 2**20}


def main() -> None:
    """Answer until the input ends."""
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        name, shape, seconds = json.loads(line)
        print(json.dumps(measure(name, folder / f"{shape}.npz", seconds)), flush=True)


if __name__ == "__main__":
    main()
