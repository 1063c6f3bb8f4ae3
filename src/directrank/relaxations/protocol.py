"""What a metric asks of whatever supplies ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor


class Ranking(Protocol):
    """Ranks of the documents of B lists: exact, real-valued, or a distribution over ranks.

    A metric is written once against these four expectations; sorting gives the metric itself, a
    relaxation gives a loss. Document arguments are ``[B, L]`` in the order of the scores and 0 at
    masked positions; ``k`` is a cut-off or None; results are ``[B]``. Ranks count from 1.
    """

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """``Σ_i gains_i · weight(r_i) · 1{r_i ≤ k}``; ``weight`` falls with the rank."""
        ...

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """``Σ_i chosen_i · 1{r_i ≤ k}``, the number of chosen documents at the top."""
        ...

    def precisions(self, chosen: Tensor, k: int | None) -> Tensor:
        """``Σ_i chosen_i · 1{r_i ≤ k} · (1/r_i) · Σ_j chosen_j · 1{r_j ≤ r_i}``."""
        ...

    def cascade(self, stops: Tensor, k: int | None) -> Tensor:
        """``Σ_i stops_i · 1{r_i ≤ k} · (1/r_i) · Π_{j: r_j < r_i} (1 - stops_j)``."""
        ...
