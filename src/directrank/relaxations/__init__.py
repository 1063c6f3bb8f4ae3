"""What supplies ranks: sorting for evaluation, and the papers' differentiable replacements."""

from directrank.relaxations.protocol import Ranking

__all__ = ["Ranking"]
