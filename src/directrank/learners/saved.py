"""Score lists with a model that a fit has saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from directrank.learners import get
from directrank.learners.inputs import check_features, documents
from directrank.lists.packed import RankedLists
from directrank.system.errors import ConfigError, DataError


def score_saved(
    path: Path, learner: str, model: Mapping[str, Any], lists: RankedLists, threads: int = 1
) -> np.ndarray:
    """Score lists by a saved model on a CPU, as the fit's own ``predict`` did.

    Args:
        path: as :class:`directrank.learners.contract.Fitted` takes it to ``save`` the model:
            without the suffix.
        learner: the learner's name.
        model: the fit's section ``model``, with the values that were tuned.
        lists: the queries, scaled like those to which the model was fitted.
        threads: the number of threads for scoring.

    Returns:
        Float32 or float64 ``[N]``.

    Raises:
        ConfigError: the learner's models can be scored only by its own program.
        DataError: the model's file is missing, or it has another number of features.
    """
    kind = "network" if get(learner).neural else learner
    if kind not in _READERS:
        raise ConfigError(
            f"models of '{learner}' cannot be scored by directrank",
            "score them with its own program",
        )
    suffix, read = _READERS[kind]
    file = path.with_name(path.name + suffix)
    if not file.is_file():
        raise DataError("the model is missing", "train the run again", file=file)
    return read(file, model, lists, threads)


def _network(file: Path, model: Mapping[str, Any], lists: RankedLists, threads: int) -> np.ndarray:
    import torch
    from safetensors.torch import load_file

    from directrank import models
    from directrank.learners.neural.scoring import score

    state = load_file(file)
    dtype = next(iter(state.values())).dtype
    network = models.build(model, lists.n_features, [torch.Generator()]).to(dtype)
    try:
        network.load_state_dict(state)
    except RuntimeError:
        raise DataError(
            f"this is not a model '{model['name']}' of {lists.n_features} features",
            "score the data set that the model was trained on",
            file=file,
        ) from None
    torch.set_num_threads(threads)
    return score(network, lists, dtype, torch.device("cpu"))[0].numpy()


def _linear(file: Path, model: Mapping[str, Any], lists: RankedLists, threads: int) -> np.ndarray:
    from safetensors.numpy import load_file

    from directrank.learners.linear.linear import features_of

    weights = load_file(file)["weights"]
    check_features(lists, len(weights))
    return features_of(lists) @ weights


def _random(file: Path, model: Mapping[str, Any], lists: RankedLists, threads: int) -> np.ndarray:
    from safetensors.numpy import load_file

    from directrank.learners.untrained.random_order import random_scores

    return random_scores(lists, int(load_file(file)["seed"]))


def _lightgbm(file: Path, model: Mapping[str, Any], lists: RankedLists, threads: int) -> np.ndarray:
    import lightgbm

    booster = lightgbm.Booster(model_file=str(file))
    check_features(lists, booster.num_feature())
    return np.asarray(booster.predict(documents(lists)[0], num_threads=threads))


def _xgboost(file: Path, model: Mapping[str, Any], lists: RankedLists, threads: int) -> np.ndarray:
    from directrank.learners.trees.boosting import library

    xgboost = library("xgboost", "xgboost-cpu (or xgboost)")
    booster = xgboost.Booster({"nthread": threads}, model_file=str(file))
    check_features(lists, booster.num_features())
    return np.asarray(booster.inplace_predict(documents(lists)[0]))


def _catboost(file: Path, model: Mapping[str, Any], lists: RankedLists, threads: int) -> np.ndarray:
    from directrank.learners.trees.boosting import library
    from directrank.learners.trees.catboost import _predict

    trees = library("catboost", "catboost").CatBoost().load_model(str(file))
    return _predict(trees, lists, len(trees.feature_names_), threads)


#: Learner → the suffix of its models, and the function that reads and applies one.
_READERS: Mapping[str, tuple[str, Callable[..., np.ndarray]]] = {
    "network": (".safetensors", _network),
    "ranking_svm": (".safetensors", _linear),
    "adarank": (".safetensors", _linear),
    "svmmap": (".safetensors", _linear),
    "random_order": (".safetensors", _random),
    "lightgbm": (".txt", _lightgbm),
    "xgboost": (".json", _xgboost),
    "catboost": (".cbm", _catboost),
}
