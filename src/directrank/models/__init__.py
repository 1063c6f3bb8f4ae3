"""Scorers, which compute a document's score from its features.

A scorer is made by a function ``name(n_features, generators, **settings)`` and contains one model
per generator, which draws the initial weights; ``forward(features [M, N, F], rows bool [M, N] |
None, lengths int [M, B] | None, counters | None)`` returns scores ``[M, N]``. ``rows`` marks real
documents, and ``lengths`` (numpy) has the number of documents of each query of a model's batch, in
order; a scorer that treats documents one by one ignores it. Dropout draws from the ``counters``
(:class:`directrank.lists.draws.Counters`) of a training step. Documents of whole queries are
passed, in training and in scoring.

A scorer may have an attribute ``compiled``, which says whether compiled loops compute its training
steps; it then accepts :class:`directrank.lists.documents.Documents` as features.
``shares_documents`` is true for one that computes models of the same documents in one product, and
``sees_lists`` for one in which a document's score depends on the other documents of its query.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from directrank.system.errors import ConfigError
from directrank.system.registry import look_up, nearest

if TYPE_CHECKING:
    import torch
    from torch import nn

#: name → module:function
REGISTRY: dict[str, str] = {
    "feed_forward": "directrank.models.feed_forward:feed_forward",
    "linear": "directrank.models.linear:linear",
    "tower": "directrank.models.tower:tower",
    "two_layer": "directrank.models.two_layer:two_layer",
    "context": "directrank.models.context:context",
}


#: Settings of scorers that are numbers of units, blocks or heads.
SIZES = {"hidden", "width", "inner", "blocks", "heads"}

#: Scorer → settings that change no parameter, in which the models of a stack may differ.
OWN: dict[str, tuple[str, ...]] = {"feed_forward": ("activation", "output_activation")}


def shape_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a scorer that all models of a stack share."""
    own = OWN.get(settings["name"], ())
    return {name: value for name, value in settings.items() if name not in own}


def of_stack(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Settings for :func:`build` of models that share a shape; where they differ, of each model.

    >>> relu = {"name": "feed_forward", "activation": "relu", "output_activation": True}
    >>> of_stack([relu, relu]) == relu
    True
    >>> of_stack([relu, relu | {"activation": "celu"}])["activation"]
    ['relu', 'celu']
    """
    together = dict(settings[0])
    for name in OWN.get(together["name"], ()):
        values = [own.get(name) for own in settings]
        if any(value != values[0] for value in values):
            together[name] = values
    return together


def build(
    settings: Mapping[str, Any], n_features: int, generators: Sequence[torch.Generator]
) -> nn.Module:
    """The scorer that ``settings`` (``name`` and its own settings) describe.

    Raises:
        ConfigError: the scorer is unknown, or a setting is unknown or missing.

    >>> import torch
    >>> generators = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
    >>> scorer = build({"name": "tower", "hidden": [16, 8]}, n_features=5, generators=generators)
    >>> features = torch.zeros(2, 7, 5)  # two models, seven documents each
    >>> scorer(features).shape
    torch.Size([2, 7])
    """
    options = dict(settings)
    name = str(options.pop("name", None))
    function = look_up(REGISTRY, name, "model")
    known = [
        key
        for key, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for option in options:
        if option not in known:
            raise ConfigError(f"model '{name}' has no setting '{option}'", nearest(option, known))
    for option in SIZES & options.keys():
        given = options[option]
        sizes = given if isinstance(given, Sequence) else [given]
        if not all(isinstance(size, Integral) and int(size) >= 1 for size in sizes):
            raise ConfigError(
                f"model '{name}': {option} is {given}", "choose whole numbers, 1 or more"
            )
    try:
        return function(n_features, generators, **options)
    except TypeError as error:
        raise ConfigError(f"model '{name}': {error}", f"check its settings: {known}") from error
