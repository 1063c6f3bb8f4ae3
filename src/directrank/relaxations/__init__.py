"""Rankings that supply ranks to metrics: the sort, and the papers' differentiable replacements.

Each relaxation is one file and a function ``name(scores, labels, mask, generator=None, …)`` that
returns a :class:`Ranking`, over which any metric can be computed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from directrank.system.registry import look_up

if TYPE_CHECKING:
    from directrank.relaxations.protocol import Ranking

#: name → module:function
REGISTRY: dict[str, str] = {
    "sigmoid": "directrank.relaxations.sigmoid:sigmoid",
    "twin": "directrank.relaxations.twin:twin",
    "neural_sort": "directrank.relaxations.neural_sort:neural_sort",
    "rank_binomial": "directrank.relaxations.rank_binomial:rank_binomial",
    "smooth_i": "directrank.relaxations.smooth_i:smooth_i",
    "fast_soft_rank": "directrank.relaxations.fast_soft_rank:fast_soft_rank",
    "lapsum": "directrank.relaxations.lapsum:lapsum",
    "blackbox": "directrank.relaxations.blackbox:blackbox",
    "pirank": "directrank.relaxations.pirank:pirank",
    "soft_sort": "directrank.relaxations.soft_sort:soft_sort",
    "sinkhorn_sort": "directrank.relaxations.sinkhorn_sort:sinkhorn_sort",
    "diff_sort": "directrank.relaxations.diff_sort:diff_sort",
}

__all__ = ["REGISTRY", "Ranking", "get", "random"]


def get(name: str) -> Callable[..., Ranking]:
    """The relaxation ``name``; raises ``ConfigError`` with the known ones if it is unknown."""
    return look_up(REGISTRY, name, "relaxation")


def random(name: str, options: Mapping[str, Any]) -> bool:
    """Whether the relaxation ``name`` draws random numbers with these options."""
    relaxation = get(name)
    option = getattr(relaxation, "draws_by", None)
    return option is not None and bool(
        options.get(option, inspect.signature(relaxation).parameters[option].default)
    )


def __getattr__(name: str) -> Any:
    if name == "Ranking":
        return import_module("directrank.relaxations.protocol").Ranking
    raise AttributeError(f"module 'directrank.relaxations' has no attribute {name!r}")
