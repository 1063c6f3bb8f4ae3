"""Rax's side of bench_losses.py; runs in an interpreter that has jax and rax, and prints JSON.

    python rax_losses.py FOLDER SECONDS LOSS...

``FOLDER`` holds one ``<shape>.npz`` per shape, with scores, labels and mask.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import rax

#: Longest list that Rax, which makes [B, L²] tensors, is given.
LONGEST = 1250


def losses() -> dict:
    """Our names → Rax's losses of the same kind, as functions of scores, labels and mask."""
    approx_ndcg = rax.approx_t12n(rax.ndcg_metric, temperature=0.1)
    return {
        "listnet": lambda s, y, m: rax.softmax_loss(s, y, where=m),
        "listmle": lambda s, y, m: rax.listmle_loss(s, y, where=m, key=jax.random.PRNGKey(0)),
        "ranknet": lambda s, y, m: rax.pairwise_logistic_loss(s, y, where=m),
        "lambdarank": lambda s, y, m: rax.pairwise_logistic_loss(
            s, y, where=m, lambdaweight_fn=rax.dcg_lambdaweight
        ),
        "approx_ndcg": lambda s, y, m: -approx_ndcg(s, y, where=m),
    }


def main() -> None:
    """Time every loss on every shape."""
    folder, seconds, names = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    known = losses()
    rows = []
    for file in sorted(folder.glob("*.npz")):
        data = np.load(file)
        arguments = [jnp.asarray(data[key]) for key in ("scores", "labels", "mask")]
        if arguments[0].shape[1] > LONGEST:
            continue
        for name in names:
            if name not in known:
                continue
            compiled = jax.jit(jax.value_and_grad(known[name])).lower(*arguments).compile()
            jax.block_until_ready(compiled(*arguments))
            found, begin = [], time.perf_counter()
            while len(found) < 3 or (time.perf_counter() - begin < seconds and len(found) < 50):
                start = time.perf_counter()
                jax.block_until_ready(compiled(*arguments))
                found.append(1e3 * (time.perf_counter() - start))
            memory = compiled.memory_analysis()
            rows.append(
                {
                    "loss": name,
                    "shape": file.stem,
                    "ms": statistics.median(found),
                    "mb": memory.temp_size_in_bytes / 2**20,
                }
            )
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
