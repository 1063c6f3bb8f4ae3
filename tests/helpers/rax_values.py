"""Values and gradients of Rax's losses on fixed lists; runs where jax and rax are, prints JSON.

python tests/helpers/rax_values.py > tests/rax_values.json        (jax 0.6.2, rax 0.4.0)
"""

from __future__ import annotations

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import rax


def losses() -> dict:
    """Functions of one list's scores, labels and mask; all to be minimised."""
    ndcg = rax.ndcg_metric
    return {
        "ranknet_mean": lambda s, y, m: rax.pairwise_logistic_loss(s, y, where=m),
        "approx_ndcg_alpha_1": lambda s, y, m: rax.approx_t12n(ndcg, temperature=1.0)(
            s, y, where=m
        ),
        "approx_ndcg_alpha_10": lambda s, y, m: rax.approx_t12n(ndcg, temperature=0.1)(
            s, y, where=m
        ),
        "softmax": lambda s, y, m: rax.softmax_loss(s, y, where=m),
        "softmax_normalised": lambda s, y, m: rax.softmax_loss(
            s, y, where=m, label_fn=rax.utils.normalize_probabilities
        ),
        "poly1": lambda s, y, m: rax.poly1_softmax_loss(s, y, where=m),
        "poly1_epsilon_3": lambda s, y, m: rax.poly1_softmax_loss(s, y, where=m, epsilon=3.0),
        "unique_softmax": lambda s, y, m: rax.unique_softmax_loss(s, y, where=m),
        "pairwise_hinge": lambda s, y, m: rax.pairwise_hinge_loss(s, y, where=m, reduce_fn=jnp.sum),
        "pointwise_sigmoid": lambda s, y, m: rax.pointwise_sigmoid_loss(s, y, where=m),
        "listnet": lambda s, y, m: rax.softmax_loss(
            s, jax.nn.softmax(jnp.where(m, y, -jnp.inf)), where=m
        ),
    }


def main(seed: int) -> None:
    """Print the lists drawn from ``seed`` and what Rax makes of them."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(4, 7)).round(2).astype(np.float32)
    labels = generator.integers(0, 4, size=(4, 7)).astype(np.float32)
    mask = np.arange(7) < np.array([[7], [5], [2], [6]])
    labels[:, 0] = 4
    found = {}
    for name, loss in losses().items():
        values, gradients = [], []
        for s, y, m in zip(scores, labels, mask, strict=True):
            value, gradient = jax.value_and_grad(loss)(jnp.asarray(s), y, m)
            values.append(float(value))
            gradients.append(np.asarray(gradient, dtype=float).tolist())
        found[name] = {"value": values, "gradient": gradients}
    lists = {"scores": scores.tolist(), "labels": labels.tolist(), "mask": mask.tolist()}
    print(json.dumps({**lists, "losses": found}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
