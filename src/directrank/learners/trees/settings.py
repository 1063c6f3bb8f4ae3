"""The settings of learners of trees: names and defaults, what is refused, and what is passed on.

A schema has the settings that the study names or gives a default; ``x-name`` is the library's name
where it differs. Ranges are those in which a model is trained at all, where a library would take
more. Any other option goes to the library under its own name, and the library checks its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from directrank.system import schema
from directrank.system.errors import ConfigError

#: Why options cannot be set → the options of all libraries, as patterns.
REFUSED = {
    "random numbers are drawn from the run and the trial": "*seed* random_state",
    "threads and device are the job's, and a fit repeats to the byte": "*thread* n_jobs *device* "
    "*gpu* task_type *machine* local_listen_port time_out tree_learner deterministic force_*_wise "
    "*ram_limit",
    "data are prepared before, and a run writes its own files and log": "data valid config task "
    "header *_file *_filename *_column *_model *_dir convert_model_language output_result "
    "snapshot_* save_* two_round pre_partition precise_float_parser categorical_feature *_borders "
    "allow_writing_files logging_level verbos* silent validate_parameters",
    "the run's 'selection' chooses the number of trees": "*metric* eval_at eval_fraction "
    "custom_loss od_* early_stopping_* use_best_model best_model_min_trees",
    "a round adds one tree, with one output per leaf, to trees that stay as they are": "boosting "
    "booster process_type updater refresh_leaf num_parallel_tree linear_tree model_shrink_* "
    "langevin posterior_sampling",
    "scores are those of all trees that are kept": "pred* *_predict",
    "the gain of a label is 2^label - 1": "label_gain",
}

#: Other name → name, where a library would take one of the two and be silent.
OTHER_NAMES = {"eta": "learning_rate"}

INTEGER: dict[str, Any] = {"type": "integer"}
POSITIVE: dict[str, Any] = {"type": "integer", "minimum": 1}
NOT_NEGATIVE: dict[str, Any] = {"type": "integer", "minimum": 0}
NUMBER: dict[str, Any] = {"type": "number"}
RATE: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0}
SHARE: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
SWITCH: dict[str, Any] = {"type": "boolean"}


def _of(setting: str, key: str, *values: str) -> dict[str, Any]:
    """The schema of runs that have ``setting``, which only these values of ``key`` read."""
    text = f"{setting} is a setting of {', '.join(values)}"
    return {"properties": {key: {"enum": list(values), "description": text}}, "description": text}


#: Bruch2019's; settings that the paper does not state are LightGBM's defaults, except the sampling
#: of features, because ten trials without any randomness would have no spread.
LIGHTGBM: dict[str, Any] = {
    "title": "LightGBM",
    "type": "object",
    "properties": {
        "objective": {"enum": ["lambdarank", "rank_xendcg"], "default": "lambdarank"},
        "n_trees": {**POSITIVE, "default": 1000, "x-name": "num_iterations"},
        "early_stopping_rounds": {**NOT_NEGATIVE, "default": 200, "x-name": "early_stopping_round"},
        "learning_rate": {**RATE, "default": 0.1},
        "num_leaves": {**INTEGER, "default": 200},
        "max_depth": {**INTEGER, "default": -1},
        "min_data_in_leaf": {**INTEGER, "default": 50},
        "min_sum_hessian_in_leaf": {**NUMBER, "default": 100.0},
        "max_bin": {**INTEGER, "default": 255},
        "truncation_level": {**INTEGER, "default": 30, "x-name": "lambdarank_truncation_level"},
        "norm": {**SWITCH, "default": True, "x-name": "lambdarank_norm"},
        "feature_fraction": {**SHARE, "default": 0.9},
        "bagging_fraction": {**SHARE, "default": 1.0},
        "bagging_freq": {**POSITIVE, "default": 1},
        # Other splits whose selection metric is recorded, at intervals of so many trees.
        "watch": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "required": ["every", "splits"],
            "properties": {
                "every": {"type": "integer", "minimum": 1},
                "splits": {"type": "array", "minItems": 1, "items": {"enum": ["train", "test"]}},
            },
            "default": None,
        },
    },
    "dependentSchemas": {
        name: _of(name, "objective", "lambdarank") for name in ("truncation_level", "norm")
    },
}

#: All but the objective is left open by the paper (Pobrotyn2021); the defaults are XGBoost's, but
#: for the number of trees, early stopping and the learning rate.
XGBOOST: dict[str, Any] = {
    "title": "XGBoost",
    "type": "object",
    "properties": {
        "objective": {
            "enum": ["rank:pairwise", "rank:ndcg", "rank:map"],
            "default": "rank:pairwise",
        },
        "n_trees": {**POSITIVE, "default": 500},
        "early_stopping_rounds": {**NOT_NEGATIVE, "default": 50},
        "learning_rate": {**RATE, "default": 0.1},
        "max_depth": {**NOT_NEGATIVE, "default": 6},
        "min_child_weight": {**NUMBER, "default": 1.0},
        "max_bin": {**INTEGER, "default": 256},
        "subsample": {**SHARE, "default": 1.0},
        "feature_fraction": {**SHARE, "default": 1.0, "x-name": "colsample_bytree"},
        "pair_method": {"default": "topk", "x-name": "lambdarank_pair_method"},
        "n_pairs": {"default": None, "x-name": "lambdarank_num_pair_per_sample"},
        "norm": {**SWITCH, "default": True, "x-name": "lambdarank_normalization"},
        "score_norm": {**SWITCH, "default": True, "x-name": "lambdarank_score_normalization"},
        # The networks' device does not decide on it: trees of a GPU differ from those of cores.
        "device": {"enum": ["cpu", "cuda"], "default": "cpu"},
    },
}

#: CatBoost's objectives but for LambdaMart.
_WITH_PENALTY = (
    "YetiRank",
    "YetiRankPairwise",
    "StochasticRank",
    "QueryRMSE",
    "QuerySoftMax",
    "PairLogit",
)

#: CatBoost's, except early stopping, the learning rate and the type of boosting (which CatBoost
#: chooses for some objectives, or by the size of the data), and the gain of NDCG, which is the
#: study's. CatBoost would ignore a ``k`` or ``gain`` that the metric does not have.
CATBOOST: dict[str, Any] = {
    "title": "CatBoost",
    "type": "object",
    "properties": {
        "objective": {
            "enum": [*_WITH_PENALTY, "LambdaMart"],
            "default": "YetiRank",
            "x-name": "loss_function",
        },
        "metric": {"enum": ["Classic", "NDCG", "DCG", "MRR", "ERR", "MAP"], "default": None},
        "k": {"type": ["integer", "null"], "minimum": 1, "default": None},
        "gain": {"enum": ["exponential", "linear"], "default": "exponential"},
        "n_trees": {**POSITIVE, "default": 1000, "x-name": "iterations"},
        "early_stopping_rounds": {**NOT_NEGATIVE, "default": 50},
        "learning_rate": {**RATE, "default": 0.1},
        "max_depth": {**POSITIVE, "default": 6, "x-name": "depth"},
        # CatBoost chooses these two by the objective: YetiRank has no penalty, for example.
        "l2_leaf_reg": {"type": ["number", "null"], "default": None},
        "max_bin": {"type": "integer", "minimum": 2, "default": 254, "x-name": "border_count"},
        "feature_fraction": {**SHARE, "default": 1.0, "x-name": "rsm"},
        "random_strength": {"type": ["number", "null"], "minimum": 0, "default": None},
        "boosting_type": {"default": "Plain"},
        "grow_policy": {
            "const": "SymmetricTree",
            "description": "the first trees of a model can be kept only if they are symmetric",
        },
    },
    "dependentSchemas": {
        "metric": _of(
            "metric", "objective", "YetiRank", "YetiRankPairwise", "StochasticRank", "LambdaMart"
        ),
        # CatBoost 1.2 reverses the sign of both derivatives of LambdaMart, which only the ratio of
        # the two without a penalty puts right.
        **{
            name: _of(name, "objective", *_WITH_PENALTY)
            for name in ("l2_leaf_reg", "leaf_estimation_method")
        },
        "k": {**_of("k", "metric", "NDCG", "DCG", "MRR", "ERR", "MAP"), "required": ["metric"]},
        "gain": {**_of("gain", "metric", "NDCG", "DCG"), "required": ["metric"]},
    },
}

#: Leaves, shrinkage and leaf support are Bruch2019's; the paper states neither the number of trees
#: nor a stopping rule, which are those for LightGBM. Nothing else is passed on: RankLib accepts the
#: options of all its rankers, whether its LambdaMART reads them or not, and checks no value.
RANKLIB: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "n_trees": {**POSITIVE, "default": 1000, "x-name": "-tree"},
        "early_stopping_rounds": {**POSITIVE, "default": 200, "x-name": "-estop"},
        "n_leaves": {"type": "integer", "minimum": 2, "default": 10, "x-name": "-leaf"},
        "shrinkage": {**RATE, "default": 0.1, "x-name": "-shrinkage"},
        "min_leaf_support": {**POSITIVE, "default": 1, "x-name": "-mls"},
        # The number of candidate thresholds of a feature; -1 tries all values.
        "n_thresholds": {"type": "integer", "minimum": -1, "default": 256, "x-name": "-tc"},
        # Null looks for RankLib*.jar among the archives (DIRECTRANK_RAW or data/raw).
        "jar": {"type": ["string", "null"], "default": None},
        "java": {"type": "string", "default": "java"},
        # The largest heap, such as 8g; null leaves it to Java: a quarter of the machine's memory.
        "memory": {"type": ["string", "null"], "pattern": "^[0-9]+[mg]$", "default": None},
    },
}


def complete(
    settings: Mapping[str, Any],
    of: Mapping[str, Any],
    where: str,
    names: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """``settings`` with the defaults.

    Args:
        settings: the section ``model`` of a run.
        of: the learner's schema.
        where: the start of an error's message.
        names: every name that the library knows → its main name, if the library can list them.

    Raises:
        ConfigError: a value is not valid, or an option is refused, unknown or has another name.
    """
    whole = schema.complete(settings, of, where)
    ours = {entry.get("x-name", name): name for name, entry in of["properties"].items()}
    for name in settings.keys() - of["properties"].keys():
        if names is not None and name not in names:
            raise unknown(name, of, where, names)
        option = (names or OTHER_NAMES).get(name, name)
        for reason, patterns in REFUSED.items():
            if option not in ours and any(fnmatchcase(option, each) for each in patterns.split()):
                raise ConfigError(f"{where}: '{name}' cannot be set: {reason}", "remove it")
        if ours.get(option, option) != name:
            raise ConfigError(
                f"{where}: '{name}' is called '{ours.get(option, option)}' here", "use that name"
            )
    return whole


def passed_on(settings: Mapping[str, Any], of: Mapping[str, Any], *kept: str) -> dict[str, Any]:
    """The library's option → value of complete ``settings``, without those ``kept`` by the learner.

    Null leaves the value to the library.
    """
    return {
        of["properties"].get(name, {}).get("x-name", name): value
        for name, value in settings.items()
        if name not in kept and value is not None
    }


def most_leaves(settings: Mapping[str, Any]) -> int:
    """The largest number of leaves of a tree with complete ``settings``."""
    limits = (settings.get(name) for name in ("num_leaves", "n_leaves", "max_leaves"))
    # A depth of 0 is no limit.
    return next(filter(None, limits), None) or 2 ** (settings["max_depth"] or 32)


def unknown(
    name: str, of: Mapping[str, Any], where: str, options: Iterable[str] = ()
) -> ConfigError:
    """The error of an option that is neither of the study nor among the library's ``options``."""
    near = get_close_matches(name, [*of["properties"], *options], n=1)
    guess = f"did you mean '{near[0]}'? If not, " if near else ""
    return ConfigError(
        f"{where}: {of['title']} has no option '{name}'",
        f"{guess}see docs/trees.md, and the parameters in the documentation of {of['title']}",
    )
