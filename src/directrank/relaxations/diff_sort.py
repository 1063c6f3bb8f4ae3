"""Differentiable sorting networks (Petersen et al., 2021 and 2022)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from directrank.lists.conventions import ranks_of
from directrank.lists.inputs import one_of
from directrank.lists.sorting import descending_order, inverse
from directrank.lists.sorting_networks import DISTRIBUTIONS, NETWORKS, Layer, sorting_network
from directrank.relaxations.distribution import RankDistribution
from directrank.relaxations.protocol import checks_options, no_cutoff

#: The steepness of a comparison, the network, and its distribution function.
ALPHA, NETWORK, DISTRIBUTION = 10.0, "bitonic", "cauchy"

#: How much of the first of two values stays in front, by their difference times the steepness.
STAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "cauchy": lambda lead: torch.atan(lead) / torch.pi + 0.5,
    "logistic": torch.sigmoid,
}


@checks_options
def diff_sort(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    generator: torch.Generator | None = None,
    *,
    alpha: float = ALPHA,
    network: str = NETWORK,
    distribution: str = DISTRIBUTION,
) -> NetworkRanking:
    """The ranks that a sorting network of soft comparisons gives.

    A comparison of values a and b puts ``α a + (1 - α) b`` in front and ``(1 - α) a + α b`` behind,
    where α is a distribution function of ``alpha (a - b)``; so does it mix the documents. All
    comparisons together are a doubly stochastic matrix. The Cauchy distribution keeps the relaxed
    sort monotonic (2022); the logistic one is that of 2021.

    What a network gives depends on the order of its inputs. Documents enter in the order of their
    scores here, so that their order in the data does not matter.

    Args:
        scores: ``[B, L]``, 0 at masked positions.
        labels: not used; every relaxation is given them.
        mask: bool ``[B, L]``.
        generator: not used.
        alpha: steepness of a comparison.
        network: ``bitonic``, of about log²(n)/2 layers, or ``odd_even``, of n.
        distribution: ``cauchy`` or ``logistic``.

    Raises:
        ArgumentError: a name is unknown.
    """
    one_of(network, NETWORKS, "sorting network")
    one_of(distribution, DISTRIBUTIONS, "distribution")
    return NetworkRanking(scores, mask, alpha, network, STAYS[distribution])


class NetworkRanking(RankDistribution):
    """The distribution over ranks of documents that pass through a sorting network.

    The weights of ranks go back through the network to the documents, whose expectations they
    become; so do the indicators of single ranks, where a metric needs the probabilities.

    Args:
        scores: ``[B, L]``.
        mask: bool ``[B, L]``.
        alpha: steepness of a comparison.
        network: one of :data:`NETWORKS`.
        stays: the distribution function of a comparison.
    """

    def __init__(
        self,
        scores: Tensor,
        mask: Tensor,
        alpha: float,
        network: str,
        stays: Callable[[Tensor], Tensor],
    ) -> None:
        super().__init__(self._probabilities)
        order = descending_order(scores, mask)
        falling, lengths = scores.gather(1, order), mask.sum(1)
        self._place = inverse(order)
        self._nothing = (0 * falling).unsqueeze(1)  # a list without a comparison has a graph, too
        # A network is for lists of one length.
        self._groups: list[tuple[Tensor, int, list[tuple[Layer, Tensor]]]] = []
        for n in lengths.unique().tolist():
            rows = (lengths == n).nonzero().squeeze(1)
            layers = sorting_network(network, n)
            passed = compare(falling[rows, :n], layers, lambda lead: stays(alpha * lead))
            self._groups.append((rows, n, passed))

    def weigh(self, gains: Tensor, weight: Callable[[Tensor], Tensor], k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        ranks = ranks_of(gains)
        weights = weight(ranks) if k is None else weight(ranks) * (ranks <= k)
        return (gains * self._expected(weights.unsqueeze(0)).squeeze(1)).sum(1)

    def count(self, chosen: Tensor, k: int | None) -> Tensor:
        """See :class:`directrank.relaxations.Ranking`."""
        if k is None:
            raise no_cutoff()
        return self.weigh(chosen, torch.ones_like, k)

    def _probabilities(self, k: int | None) -> Tensor:
        """Of documents i at the ranks r, ``[B, i, r]``."""
        L = self._place.shape[1]
        indicators = torch.eye(L, dtype=self._nothing.dtype, device=self._place.device)
        return self._expected(indicators[:k]).mT

    def _expected(self, weights: Tensor) -> Tensor:
        """The expectations of weights of ranks, ``[R, L]``, for each document, ``[B, R, L]``."""
        L = weights.shape[1]
        expected = self._nothing.expand(-1, len(weights), -1)
        for rows, n, passed in self._groups:
            values = weights[:, :n].expand(len(rows), -1, -1)
            for (first, second), stays in reversed(passed):
                values = mixed(values, first, second, stays.unsqueeze(1))
            expected = expected.index_copy(0, rows, pad(values, (0, L - n)))
        return expected.gather(2, self._place.unsqueeze(1).expand_as(expected))


def compare(
    values: Tensor, layers: Sequence[Layer], stays: Callable[[Tensor], Tensor]
) -> list[tuple[Layer, Tensor]]:
    """Each layer of a network with how much of its first values stays, ``[B, pairs]``, as the
    ``values [B, n]`` pass through it."""
    passed = []
    for first, second in layers:
        kept = stays(values[:, first] - values[:, second])
        values = mixed(values, first, second, kept)
        passed.append(((first, second), kept))
    return passed


def mixed(values: Tensor, first: list[int], second: list[int], stays: Tensor) -> Tensor:
    """Values ``[…, n]`` of which those at pairs of places are mixed: ``stays`` says how much of
    each remains where it is."""
    one, other = values[..., first], values[..., second]
    places = torch.tensor([*first, *second], dtype=torch.long, device=values.device)
    both = torch.cat([stays * one + (1 - stays) * other, (1 - stays) * one + stays * other], -1)
    return values.index_copy(-1, places, both)
