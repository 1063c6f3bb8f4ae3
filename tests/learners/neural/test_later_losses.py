"""A linear model learns by each of the losses of later papers, through the learners."""

from __future__ import annotations

import numpy as np
import pytest

from training_data import fit, mean_ndcg, splits

LOSSES = [
    {"name": "lambda_loss", "scheme": "ndcg_loss1"},
    {"name": "lambda_loss", "scheme": "ndcg_loss2", "k": 5},
    {"name": "lambda_loss", "scheme": "ndcg_loss2pp", "mu": 5.0},
    {"name": "xe_ndcg"},
    {"name": "pl_rank", "k": 5},
    {"name": "k_song"},
    {"name": "k_song", "k": 5},
    {"name": "yeti_loss", "neighbours": 2},
    {"name": "stochastic_rank", "k": 5, "samples": 4},
    {"name": "softmax_cross_entropy"},
    {"name": "softmax_cross_entropy", "normalize": True},
    {"name": "poly1"},
    {"name": "unique_softmax"},
    {"name": "pairwise_hinge"},
    {"name": "sigmoid_cross_entropy"},
    {"name": "ordinal"},
    {"name": "lambda_loss", "scheme": "ndcg_loss2_at_k", "k": 5},
    {"name": "adr_mse"},
    {"name": "sl_at_k", "k": 5},
    {"name": "psl"},
    {"name": "soft_sort_ndcg", "k": 10},
    {"name": "sinkhorn_ndcg", "tau": 0.1},
    {"name": "diff_sort_ndcg"},
    {"name": "newton", "of": "neural_ndcg", "lam": 0.1},
]
NAMES = ["-".join(map(str, loss.values())) for loss in LOSSES]
LINEAR = {"name": "linear"}


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_a_linear_model_learns(loss):
    data = splits()
    fitted = fit(data, model=LINEAR, loss=loss, max_epochs=40)[0]
    assert mean_ndcg(fitted, data.test) > 0.93
    assert fitted.history[-1]["vali_metric"] > fitted.history[0]["vali_metric"] - 0.02


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_models_trained_together_are_the_models_trained_alone(loss):
    data = splits()
    alone = fit(data, 3, LINEAR, loss, dtype="float64", stack=1, max_epochs=3)
    together = fit(data, 3, LINEAR, loss, dtype="float64", stack=0, max_epochs=3)
    for one, other in zip(alone, together, strict=True):
        assert np.allclose(one.predict(data.test), other.predict(data.test), atol=1e-8)
