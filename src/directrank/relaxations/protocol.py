"""The interface through which metrics use ranks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import torch
from torch import Tensor

from directrank.lists.inputs import are_examined
from directrank.lists.parameters import check_options, kinds_of
from directrank.system.errors import ArgumentError

Relaxation = TypeVar("Relaxation", bound=Callable[..., Any])


class Ranking(Protocol):
    """Ranks of the documents of B lists: exact, real-valued, or a distribution over ranks.

    A metric is written once in terms of these four expectations; with the sort it is the metric
    itself, and with a relaxation it is a loss. Document arguments are ``[B, L]`` in the order of
    the scores and 0 at masked positions; ``k`` is a cut-off or None; results are ``[B]``. Ranks
    count from 1.
    """

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """``Σ_i gains_i · weight(r_i) · 1{r_i ≤ k}``; ``weight`` decreases with the rank."""
        ...

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """``Σ_i chosen_i · 1{r_i ≤ k}``, the number of chosen documents at the top.

        Without a cut-off it does not depend on the scores, so relaxations raise :func:`no_cutoff`,
        unless they have a gradient nonetheless.
        """
        ...

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """``Σ_i chosen_i · 1{r_i ≤ k} · (1/r_i) · Σ_j chosen_j · 1{r_j ≤ r_i}``."""
        ...

    def cascade(self, stops: Tensor, k: int | None) -> Tensor:
        """``Σ_i stops_i · 1{r_i ≤ k} · (1/r_i) · Π_{j: r_j < r_i} (1 - stops_j)``."""
        ...


@runtime_checkable
class ByScores(Protocol):
    """A ranking whose ranks are not a differentiable function of the scores."""

    def by_scores(self, loss: Tensor) -> Tensor:
        """A ``loss [B]`` of its ranks, with a gradient with respect to the scores."""
        ...


def no_cutoff() -> ArgumentError:
    """The error for counting the chosen documents at all ranks."""
    return ArgumentError(
        "a count of documents without a cut-off does not depend on the scores",
        "give the metric a 'k'",
    )


def checks_options(relaxation: Relaxation) -> Relaxation:
    """Make calls of a relaxation raise ArgumentError if an option is outside of its range."""
    kinds = kinds_of(relaxation)

    @wraps(relaxation)
    def call(
        scores: Tensor,
        labels: Tensor,
        mask: Tensor,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> Any:
        if not are_examined():
            options = check_options(options, kinds, len(scores))
        return relaxation(scores, labels, mask, generator, **options)

    return cast(Relaxation, call)


def draws_by(option: str) -> Callable[[Relaxation], Relaxation]:
    """Declare that a relaxation draws random numbers if its ``option`` is true."""

    def declare(relaxation: Relaxation) -> Relaxation:
        relaxation.draws_by = option  # type: ignore[attr-defined]
        return relaxation

    return declare
