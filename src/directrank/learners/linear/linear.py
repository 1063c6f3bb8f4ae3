"""Shared parts of linear baselines: their features, and the fitted scorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as serialise

from directrank.learners.contract import Fitted
from directrank.learners.inputs import check_features
from directrank.lists.packed import RankedLists
from directrank.system.errors import DataError
from directrank.system.io import write_bytes


def features_of(lists: RankedLists) -> np.ndarray:
    """The features of ``lists``, float64 ``[N, F]``.

    Raises:
        DataError: a feature is not a finite number.
    """
    rows = slice(int(lists.offsets[0]), int(lists.offsets[-1]))
    features = np.asarray(lists.features[rows], dtype=np.float64)
    if not np.isfinite(features).all():
        raise DataError(
            "a feature is missing or infinite", "choose a normalisation that leaves finite numbers"
        )
    return features


def fitted(
    weights: np.ndarray, history: Sequence[Mapping[str, Any]], info: Mapping[str, Any]
) -> Fitted:
    """The linear scorer ``s = w·x``.

    Args:
        weights: float64 ``[F]``.
        history: one row per step, as in :class:`directrank.learners.contract.Fitted`.
        info: facts about the fit; the number of parameters is added.
    """

    def predict(lists: RankedLists) -> np.ndarray:
        check_features(lists, len(weights))
        return features_of(lists) @ weights

    def save(path: Path) -> None:
        write_bytes(path.with_name(path.name + ".safetensors"), serialise({"weights": weights}))

    info = {**info, "n_parameters": int(np.count_nonzero(weights))}
    return Fitted(predict, [dict(row) for row in history], info, save)
