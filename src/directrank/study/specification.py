"""A run's specification, which describes what is trained and determines the run's name."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from directrank import learners, losses, metrics
from directrank.data import normalise
from directrank.study import growth
from directrank.system import sources
from directrank.system.errors import ConfigError
from directrank.system.io import digest_of
from directrank.system.registry import target_of
from directrank.system.schema import check, package_schema, suggest

#: Sections that only neural learners read.
NEURAL_SECTIONS = ("loss", "training")

#: What decides which lists a run is trained and evaluated on.
OF_LISTS = ("data", "fold", "normalisation", "filter", "train_on", "sample", "train_queries",
            "vali_queries", "without_features")  # fmt: skip


def validate(spec: Mapping[str, Any], where: str = "run", by_library: bool = False) -> None:
    """Raise :class:`ConfigError` if ``spec`` is not a run that can be trained.

    Beyond the schema, it checks that learner, loss and metrics exist and accept their settings; see
    :meth:`.Learner.check` for ``by_library``.
    """
    check(spec, package_schema("run"), where)
    learner = learners.get(spec["learner"])
    for section in NEURAL_SECTIONS:
        if learner.neural and section not in spec:
            raise ConfigError(f"{where}: learner '{spec['learner']}' needs a section '{section}'")
        if not learner.neural and section in spec:
            raise ConfigError(
                f"{where}: learner '{spec['learner']}' accepts no section '{section}'",
                "put its settings under 'model'",
            )
    normalise.check(spec["normalisation"])
    if "sample" in spec and not normalise.is_local(spec["normalisation"]):
        raise ConfigError(
            f"{where}: normalisation '{spec['normalisation']['name']}' is fitted to splits that "
            "'sample' divides again",
            "use a normalisation per query, or none",
        )
    for key in ("train_queries", "vali_queries"):
        if "sample" in spec and key in spec:
            raise ConfigError(
                f"{where}: both 'sample' and '{key}' set the number of queries",
                "use only one of the two",
            )
    growth.check(spec, where)
    if "grow" in spec and not learner.neural:
        raise ConfigError(
            f"{where}: the grid of learner '{spec['learner']}' cannot grow",
            "list all values in 'tune'",
        )
    if spec.get("train_on") == "train_and_vali":
        _check_nothing_is_chosen(spec, where)
    for candidate in candidates(spec):
        if not learner.neural:
            learner.check(candidate["model"], f"{where}: model", by_library)
        else:
            _check_options(losses.REGISTRY, candidate["loss"], "loss", where)
    for metric in [spec["selection"], *spec["evaluation"]]:
        _check_options(metrics.REGISTRY, metric, "metric", where)


def candidates(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The run's specification once per point of its tuning grid, without the grid."""
    for settings in candidate_settings(spec):
        yield with_settings(without_grid(spec), settings)


def without_grid(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The run's specification without what is tuned."""
    return {key: value for key, value in spec.items() if key not in ("tune", "tune_in", "grow")}


def trials_that_tune(spec: Mapping[str, Any]) -> int:
    """How many trials of a run try all candidates; the others take the first one's choice."""
    return 1 if spec.get("tune_in") == "first_trial" else int(spec["trials"])


def n_fits(spec: Mapping[str, Any]) -> int:
    """How many fits a run has, if its grid does not grow."""
    tuning = trials_that_tune(spec)
    return tuning * len(candidate_settings(spec)) + int(spec["trials"]) - tuning


def most_fits_at_once(spec: Mapping[str, Any], n_candidates: int) -> int:
    """How many fits of so many candidates a run asks for at once, at most.

    They are those of the trials that tune, or afterwards those of the others.
    """
    tuning = trials_that_tune(spec)
    return max(tuning * n_candidates, int(spec["trials"]) - tuning)


def candidate_settings(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tuned settings of each candidate, in the order of :func:`candidates`."""
    grid = spec.get("tune", {})
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def with_settings(document: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of ``document`` with dotted paths such as ``loss.alpha`` set to their values."""
    result = plain_copy(dict(document))
    for path, value in settings.items():
        *parents, last = path.split(".")
        place = result
        for key in parents:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                raise ConfigError(f"cannot set '{path}': '{key}' is not a section")
        place[last] = plain_copy(value)
    return result


def plain_copy(document: Any) -> Any:
    """A deep copy of what JSON can represent, much faster than :func:`copy.deepcopy`."""
    if isinstance(document, dict):
        return {
            key: plain_copy(value) if isinstance(value, dict | list) else value
            for key, value in document.items()
        }
    if isinstance(document, list):
        return [plain_copy(value) for value in document]
    return document


def value_at(document: Mapping[str, Any], path: str, default: Any = None) -> Any:
    """The value at the dotted ``path``, or ``default``."""
    place: Any = document
    for key in path.split("."):
        if not isinstance(place, Mapping) or key not in place:
            return default
        place = place[key]
    return place


def run_name(spec: Mapping[str, Any]) -> str:
    """``<data set>[-f<fold>]-<loss or learner>-<8 hex digits of the specification's digest>``."""
    fold = "" if spec["fold"] is None else f"-f{spec['fold']}"
    what = spec["loss"]["name"] if "loss" in spec else spec["learner"]
    return f"{spec['data']['name']}{fold}-{what}-{digest_of(spec)[:8]}"


def streams_of(spec: Mapping[str, Any]) -> str:
    """The name of a run's random numbers: ``<data set>[-f<fold>][-repeat<number>]``.

    Runs on the same data share it, so that in each trial they see the queries in the same order and
    the same documents of long lists, and those with the same scorer start from the same weights:
    their differences are then those of what they differ in.
    """
    fold = "" if spec["fold"] is None else f"-f{spec['fold']}"
    repeat = f"-repeat{spec['repeat']}" if "repeat" in spec else ""
    return f"{spec['data']['name']}{fold}{repeat}"


def lists_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a run's specification that decides on its lists (:data:`OF_LISTS`)."""
    return {key: spec[key] for key in OF_LISTS if key in spec}


def in_passes(specs: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Names of runs in groups that a GPU can train in one pass, in the order of their first.

    These are networks on the same lists. Any other run is a group of its own.

    Args:
        specs: name → specification.
    """
    groups: dict[str, list[str]] = {}
    for name, spec in specs.items():
        key = digest_of(lists_of(spec)) if spec["learner"] == "neural" else name
        groups.setdefault(key, []).append(name)
    return list(groups.values())


def _check_nothing_is_chosen(spec: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError if a choice would use queries to which the model is fitted."""
    training = spec.get("training", {})
    if training.get("keep") != "last" or training.get("patience") or "tune" in spec:
        raise ConfigError(
            f"{where}: 'train_on: train_and_vali' leaves no validation set for choices",
            "train a fixed number of epochs (training.keep: last, patience: null) without 'tune'",
        )
    if "sample" in spec:
        raise ConfigError(
            f"{where}: 'sample' divides the splits again", "use 'train_on' or 'sample', not both"
        )


@cache
def _settings(module: str, function: str) -> tuple[str, ...]:
    """The parameters of a loss or metric beyond scores, labels and mask."""
    signature = sources.signature_of(module, function)
    if signature is None:  # not defined by a `def`
        signature = inspect.signature(getattr(import_module(module), function))
    return tuple(signature.parameters)[3:]


def _check_options(
    registry: Mapping[str, str], mapping: Mapping[str, Any], kind: str, where: str
) -> None:
    """Raise ConfigError if ``mapping`` names no loss or metric, or a setting that it lacks."""
    name = mapping["name"]
    known = _settings(*target_of(registry, name, kind))
    for option in mapping:
        if option != "name" and option not in known:
            raise ConfigError(
                f"{where}: {kind} '{name}' has no setting '{option}'", suggest(option, known)
            )
