"""LightGBM and XGBoost: ``python examples/boosted_trees.py data/prepared/msrd_sample``.

Both libraries ask for a gradient and a second derivative for every document. The gradient is that
of the loss; its absolute value replaces the second derivative. Apart from regularisation, a leaf's
value is then ``-Σ g / Σ |g|``: 1 where all of its documents should rise, -1 where all should fall,
and in between where they disagree. No step is therefore longer than the learning rate, whatever the
scale of the loss.
"""

import sys
from collections.abc import Callable

import lightgbm
import numpy as np
import torch
import xgboost
from torch import Tensor

from directrank import losses, metrics, open_dataset
from directrank.lists.packed import RankedLists

Loss = Callable[..., Tensor]


def derivatives(
    loss: Loss, scores: np.ndarray, labels: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The gradient by every score, and its absolute value as the second derivative.

    Scaled to a mean size of 1, so that limits on the sum of second derivatives in a leaf
    (LightGBM's ``min_sum_hessian_in_leaf``, XGBoost's ``min_child_weight``) count documents.
    """
    leaf = torch.tensor(scores, dtype=torch.float32, requires_grad=True)
    loss(leaf, torch.tensor(labels), lengths=lengths).sum().backward()
    gradient = leaf.grad.double().numpy()
    gradient /= max(np.abs(gradient).mean(), 1e-12)
    return gradient, np.abs(gradient).clip(1e-3)


def with_lightgbm(loss: Loss, train: RankedLists, rounds: int) -> Callable[[np.ndarray], Tensor]:
    """LightGBM's trees, trained with the loss, as a function of features."""

    def objective(scores: np.ndarray, data: lightgbm.Dataset) -> tuple[np.ndarray, np.ndarray]:
        return derivatives(loss, scores, data.get_label(), data.get_group())

    settings = {"objective": objective, "learning_rate": 0.1, "num_leaves": 15, "verbose": -1}
    data = lightgbm.Dataset(np.array(train.features), np.array(train.labels), group=train.lengths)
    booster = lightgbm.train(settings, data, rounds)
    return lambda features: torch.from_numpy(booster.predict(features))


def with_xgboost(loss: Loss, train: RankedLists, rounds: int) -> Callable[[np.ndarray], Tensor]:
    """XGBoost's trees, trained with the loss, as a function of features."""

    def objective(scores: np.ndarray, data: xgboost.DMatrix) -> tuple[np.ndarray, np.ndarray]:
        return derivatives(loss, scores, data.get_label(), train.lengths)

    settings = {"learning_rate": 0.1, "max_depth": 4, "base_score": 0.0}
    data = xgboost.DMatrix(np.array(train.features), np.array(train.labels))
    booster = xgboost.train(settings, data, rounds, obj=objective)
    return lambda features: torch.from_numpy(booster.predict(xgboost.DMatrix(features)))


def lgbm_ranker(loss: Loss, rounds: int) -> lightgbm.LGBMRanker:
    """LightGBM's ranker for scikit-learn with the loss: ``fit(X, y, group=…)`` as ever."""

    def objective(
        labels: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return derivatives(loss, scores, labels, lengths)

    return lightgbm.LGBMRanker(objective=objective, n_estimators=rounds, num_leaves=15, verbose=-1)


def xgb_ranker(loss: Loss, lengths: np.ndarray, rounds: int) -> xgboost.XGBRegressor:
    """The same of XGBoost, for ``fit(X, y)`` of the queries of these lengths.

    ``XGBRanker`` takes no objective of one's own; ``XGBRegressor`` does, but knows no queries.
    """

    def objective(labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return derivatives(loss, scores, labels, lengths)

    return xgboost.XGBRegressor(
        objective=objective, n_estimators=rounds, learning_rate=0.1, max_depth=4, base_score=0.0
    )


def ndcg(score: Callable[[np.ndarray], Tensor], lists: RankedLists) -> float:
    """The mean NDCG@10; queries without a relevant document are NaN and left out."""
    scores = score(np.array(lists.features)).float()
    values = metrics.ndcg(scores, torch.tensor(lists.labels), lengths=lists.lengths, k=10)
    return values.nanmean().item()


def main(folder: str, rounds: int = 50) -> dict[str, float]:
    """The test NDCG@10 of constant scores, and of both libraries' trees with LambdaRank."""
    train, test = (open_dataset(f"{folder}/{part}") for part in ("train", "test"))
    X, y = np.array(train.features), np.array(train.labels)
    light = lgbm_ranker(losses.lambdarank, rounds).fit(X, y, group=train.lengths)
    extreme = xgb_ranker(losses.lambdarank, train.lengths, rounds).fit(X, y)
    return {
        "before": ndcg(lambda features: torch.zeros(len(features)), test),
        "LightGBM": ndcg(with_lightgbm(losses.lambdarank, train, rounds), test),
        "LGBMRanker": ndcg(lambda features: torch.from_numpy(light.predict(features)), test),
        "XGBoost": ndcg(with_xgboost(losses.lambdarank, train, rounds), test),
        "XGBRegressor": ndcg(lambda features: torch.from_numpy(extreme.predict(features)), test),
    }


if __name__ == "__main__":
    for name, value in main(sys.argv[1]).items():
        print(f"{name}: NDCG@10 {value:.3f}")
