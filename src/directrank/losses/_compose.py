"""Any metric under any relaxation as a loss: minus the relaxed metric."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from directrank import metrics, relaxations
from directrank.kernels.dispatch import find
from directrank.lists.calls import Numbers, called, ranking_loss, reduced
from directrank.lists.flat import Lists, repeated
from directrank.lists.inputs import checked, checked_lists
from directrank.lists.parameters import NUMBERS, check_options, kinds_of
from directrank.losses._needs import needs
from directrank.metrics.conventions import Judgements
from directrank.relaxations.gumbel import gumbel_noise
from directrank.relaxations.protocol import ByScores
from directrank.system.errors import ArgumentError
from directrank.system.registry import nearest

#: A metric's formula or a relaxation, with its options bound by :class:`functools.partial`; or, in
#: a configuration, its name, or a mapping with ``name`` and options.
Part: TypeAlias = Callable[..., Any] | str | Mapping[str, Any]

#: The scale of Gumbel noise.
NOISE = 1.0

#: The default of an option that has none.
REQUIRED = inspect.Parameter.empty

#: Parameters that are not options of a metric or a relaxation.
_GIVEN = ("ranking", "judgements", "scores", "labels", "mask", "generator")


def compose(
    metric: Part,
    relaxation: Part,
    *,
    samples: int = 0,
    noise: float = NOISE,
) -> Callable[..., Tensor]:
    """Make a loss of a metric and a relaxation that supplies its ranks.

    Args:
        metric: a metric's formula, as :func:`directrank.metrics.formula` gives it, with its options
            bound by :class:`functools.partial`; or a name of
            :data:`directrank.metrics.REGISTRY`, or a mapping with ``name`` and the metric's options
            (``k``, ``gain``, …).
        relaxation: likewise a relaxation, or a name of :data:`directrank.relaxations.REGISTRY`, or
            a mapping with ``name`` and its options (``alpha``, ``tau``, …).
        samples: 0 uses the scores as they are; otherwise the loss is the mean over that many draws
            of Gumbel noise added to them, which makes them log-weights of a Plackett-Luce model.
        noise: scale of the noise.

    A relaxation that gives each document a distribution over ranks of its own treats documents as
    independent. What depends on the first relevant document (``reciprocal_rank``, ``hit_rate``,
    ``err``, ``nerr``) may then exceed its range for scores that are near each other.

    Returns:
        ``loss(scores, labels, mask=None, generator=None) -> Tensor [B]``: minus the relaxed metric,
        0 for a query without a relevant document. The generator is on the scores' device. It takes
        ``lengths`` or ``query_ids`` of flat lists, ``weights`` and a ``reduction``, as every loss
        does.

    Raises:
        ConfigError: a name or option is unknown, or an option is outside of its range; or, when
            the loss is called, the metric does not depend on the scores because it lacks a cut-off.

    >>> import torch
    >>> from directrank import losses
    >>> loss = losses.compose({"name": "err", "k": 2}, {"name": "sigmoid", "alpha": 1.0})
    >>> scores, labels = torch.tensor([[1.0, 3.0, 2.0]]), torch.tensor([[0.0, 0.0, 1.0]])
    >>> loss(scores, labels)
    tensor([-0.2483])
    """
    return _Composition(metric, relaxation, samples, noise)


class _Composition:
    """The result of :func:`compose`, which can be pickled."""

    def __init__(self, metric: Part, relaxation: Part, samples: int, noise: float) -> None:
        self.given = metric, relaxation, samples, noise
        self.formula, options = _resolved("metric", metric)
        self.options = check_options(options, NUMBERS)
        self.relax, settings = _resolved("relaxation", relaxation)
        self.kinds = kinds_of(self.relax)
        self.settings = check_options(settings, self.kinds)
        check_options({"samples": samples, "noise": noise}, NUMBERS)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Composition, self.given

    def __call__(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
        *,
        lengths: Numbers | None = None,
        query_ids: Numbers | None = None,
        weights: Numbers | None = None,
        reduction: str = "none",
    ) -> Tensor:
        _, _, samples, noise = self.given
        lists: dict[str, Any] = {"lengths": lengths, "query_ids": query_ids, "weights": weights}
        if torch.compiler.is_compiling():
            metric = {"name": self.formula.__name__.removesuffix("_of"), **self.options}
            relaxation = {"name": self.relax.__name__, **self.settings}
            return composed(scores, labels, mask, metric=metric, relaxation=relaxation,
                            samples=samples, noise=noise, generator=generator,
                            reduction=reduction, **lists)  # fmt: skip
        values = self._drawn if samples else self._relaxed
        value = called(values, scores, labels, mask, generator=generator, kinds=self.kinds,
                       **lists, **self.settings)  # fmt: skip
        return reduced(value, weights, reduction)

    def _relaxed(
        self,
        scores: Tensor,
        labels: Tensor,
        lists: Lists | None,
        *,
        generator: torch.Generator | None,
        **settings: Any,
    ) -> Tensor:
        kernel = find((self.formula, self.relax), scores, settings.values())
        if kernel is not None:
            drawn = {"generator": generator} if hasattr(self.relax, "draws_by") else {}
            result = kernel(scores, labels, lists, **self.options, **settings, **drawn)
            if result is not NotImplemented:
                return result
        scores, labels, mask = checked(scores, labels, lists)
        ranking = self.relax(scores, labels, mask, generator, **settings)
        value, _ = self.formula(ranking, Judgements(labels, mask), **self.options)
        return ranking.by_scores(-value) if isinstance(ranking, ByScores) else -value

    def _drawn(
        self,
        scores: Tensor,
        labels: Tensor,
        lists: Lists | None,
        *,
        generator: torch.Generator | None,
        **settings: Any,
    ) -> Tensor:
        _, _, samples, noise = self.given
        scores, labels, lists = checked_lists(scores, labels, lists)
        draws = [scores + noise * gumbel_noise(scores, lists, generator) for _ in range(samples)]
        settings = {
            name: value.repeat(samples, 1)
            if isinstance(value, Tensor) and value.numel() > 1
            else value
            for name, value in settings.items()
        }
        together = torch.cat(draws), torch.cat([labels] * samples), repeated(lists, samples)
        values = self._relaxed(*together, generator=generator, **settings).chunk(samples)
        return sum(values[1:], values[0]) / samples


def _resolved(kind: str, chosen: Part) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A metric or relaxation, and all of its options.

    Raises:
        ConfigError: it lacks an option.
    """
    if isinstance(chosen, partial):
        function, options = chosen.func, dict(chosen.keywords)
    elif callable(chosen):
        function, options = chosen, {}
    else:
        options = {"name": chosen} if isinstance(chosen, str) else dict(chosen)
        name = options.pop("name", "")
        function = metrics.formula(name) if kind == "metric" else relaxations.get(name)
    defaults = _defaults(function)
    for option in options:
        if option not in defaults:
            remedy = nearest(option, defaults)
            if option in ("samples", "noise"):
                remedy = "give it to the composition, beside metric and relaxation"
            name = function.__name__.removesuffix("_of")
            raise ArgumentError(f"{kind} '{name}' has no option '{option}'", remedy)
    given = {**defaults, **options}
    return function, {name: value for name, value in given.items() if value is not REQUIRED}


@cache
def _defaults(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The options of a metric or relaxation with their defaults, which kernels do not have."""
    parameters = inspect.signature(function).parameters
    return {name: one.default for name, one in parameters.items() if name not in _GIVEN}


def _draws(settings: Mapping[str, Any]) -> bool:
    relaxation = settings["relaxation"]
    options = {"name": relaxation} if isinstance(relaxation, str) else relaxation
    return settings.get("samples", 0) > 0 or relaxations.random(options["name"], options)


@ranking_loss
@needs(draws=_draws)
def composed(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor | None = None,
    *,
    metric: str | Mapping[str, Any],
    relaxation: str | Mapping[str, Any],
    samples: int = 0,
    noise: float = NOISE,
    generator: torch.Generator | None = None,
) -> Tensor:
    """:func:`compose` in one call, so that a configuration can name any composition.

    >>> import torch
    >>> from directrank import losses
    >>> scores, labels = torch.tensor([[1.0, 3.0, 2.0]]), torch.tensor([[0.0, 0.0, 1.0]])
    >>> sigmoid = {"name": "sigmoid", "alpha": 1.0}
    >>> losses.composed(scores, labels, metric="reciprocal_rank", relaxation=sigmoid)
    tensor([-0.5000])
    """
    loss = compose(metric, relaxation, samples=samples, noise=noise)
    return loss(scores, labels, mask, generator)
