"""The registry of learners, which runs can train."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from directrank.system import schema
from directrank.system.errors import ConfigError


@dataclass(frozen=True)
class Learner:
    """The location of a learner, and what it reads.

    ``target`` is ``module:function``; a neural learner reads the sections ``model``, ``loss`` and
    ``training`` of a run and trains many models in one call; other learners read ``model`` and
    train one. ``external`` means that it runs a program that may not be installed, and that its
    module has ``available(settings)``. With the settings ``fixed`` it draws nothing at random, so
    that another training gives the same scorer; None if it always does.
    """

    target: str
    neural: bool = False
    external: bool = False
    fixed: Mapping[str, Any] | None = None

    @property
    def module(self) -> str:
        """The name of the learner's module."""
        return self.target.split(":")[0]

    @property
    def settings(self) -> Mapping[str, Any]:
        """The JSON schema of the ``model`` of a learner that is not neural.

        Its module is in upper case in the module ``settings`` of its package, which imports neither
        PyTorch nor a library of trees.
        """
        package, _, name = self.module.rpartition(".")
        return getattr(import_module(f"{package}.settings"), name.upper())

    def check(self, settings: Mapping[str, Any], where: str, by_library: bool = False) -> None:
        """Raise :class:`ConfigError` if ``settings`` is not a ``model`` of the learner.

        Args:
            settings: the section ``model`` of a run.
            where: the start of the message.
            by_library: the library to which settings are passed on checks all of them. Otherwise it
                is asked, and then imported, only if there is one that :attr:`settings` does not
                have.
        """
        schema.check(settings, self.settings, where)
        open_to_others = self.settings.get("additionalProperties", True)
        if open_to_others and (by_library or settings.keys() - self.settings["properties"].keys()):
            import_module(self.module).check(settings, where)

    def is_deterministic(self, settings: Mapping[str, Any]) -> bool:
        """Whether it draws nothing at random with the section ``model`` of a run."""
        whole = schema.complete(settings, self.settings, "model")
        return self.fixed is not None and self.fixed.items() <= whole.items()

    def load(self) -> Callable[..., Any]:
        """The learner's function."""
        return getattr(import_module(self.module), self.target.split(":")[1])

    def missing(self, settings: Mapping[str, Any]) -> str | None:
        """The reason why the learner cannot run on this machine; None if it can."""
        if not self.external:
            return None
        program = import_module(self.module).available(settings)
        return None if program.ok else program.reason


REGISTRY: dict[str, Learner] = {
    "neural": Learner("directrank.learners.neural.fit:fit_many", neural=True),
    "per_query": Learner("directrank.learners.neural.per_query:fit_by_lambdas", neural=True),
    "ranknet_v1": Learner("directrank.learners.neural.per_query:fit_v1", neural=True),
    "ranknet_v1_each_pair": Learner(
        "directrank.learners.neural.per_query:fit_v1_each_pair", neural=True
    ),
    "ranknet_v2": Learner("directrank.learners.neural.per_query:fit_v2", neural=True),
    "ranknet_v2_stored": Learner("directrank.learners.neural.per_query:fit_v2_stored", neural=True),
    "linear_ascent": Learner("directrank.learners.neural.linear_ascent:fit_many", neural=True),
    "catboost": Learner("directrank.learners.trees.catboost:fit"),
    "lightgbm": Learner(
        "directrank.learners.trees.lightgbm:fit",
        fixed={"objective": "lambdarank", "feature_fraction": 1.0, "bagging_fraction": 1.0},
    ),
    "ranklib": Learner("directrank.learners.trees.ranklib:fit", external=True),
    "xgboost": Learner("directrank.learners.trees.xgboost:fit"),
    "ranking_svm": Learner("directrank.learners.linear.ranking_svm:fit", fixed={}),
    "adarank": Learner("directrank.learners.linear.adarank:fit", fixed={}),
    "svmmap": Learner("directrank.learners.linear.svm_map:fit", fixed={}),
    "random_order": Learner("directrank.learners.untrained.random_order:fit"),
}


def get(name: str) -> Learner:
    """The learner ``name``; raises :class:`ConfigError` if it is unknown."""
    if name not in REGISTRY:
        raise ConfigError(f"unknown learner '{name}'", schema.suggest(name, REGISTRY))
    return REGISTRY[name]
