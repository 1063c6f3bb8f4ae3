"""What supplies ranks: sorting for evaluation, and the papers' differentiable replacements."""

from directrank.relaxations._protocol import Ranking

__all__ = ["Ranking"]
