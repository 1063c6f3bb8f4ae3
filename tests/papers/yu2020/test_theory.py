"""Yu2020's Table 3 from the ranks of training, and what section 4 says of ties."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from directrank.relaxations.twin import TwinRanking


def uniform(n: int) -> torch.Tensor:
    """100 vectors of float32 uniforms; the paper's ties are those of this type."""
    return torch.rand(100, n, generator=torch.Generator().manual_seed(2020))


def l1(ranks: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """The sum of the errors of each vector."""
    exact = scores.argsort(dim=1, descending=True, stable=True).argsort(1) + 1
    return (ranks.double() - exact).abs().sum(1)


@pytest.mark.parametrize("n", [123, 1000])
def test_table_3_error_of_twin_sigmoid_ranks(root, n):
    printed = pd.read_csv(root / "paper_tables/published/yu2020_table3.csv").set_index("pi+")
    printed = printed[f"(v1 = 100, v2 = {n})"]
    scores = uniform(n)
    zeros, everyone = torch.zeros_like(scores), torch.ones_like(scores, dtype=torch.bool)
    plain = TwinRanking(scores, zeros, everyone, break_ties=False)
    # The expected number of tied pairs of n float32 uniforms is n(n-1)/2 / 2^24 per vector; each
    # adds 1.
    assert l1(plain.ranks, scores).mean().item() == pytest.approx(printed["Eq-12"], abs=0.06)
    broken = TwinRanking(scores, zeros, everyone)
    expected = torch.arange(1.0, n + 1).expand(100, n)
    assert torch.equal(broken.ranks.sort(1).values, expected)
    by_rank = scores.gather(1, broken.ranks.long().argsort(1))
    assert (by_rank[:, 1:] <= by_rank[:, :-1]).all(), "an order of the scores: the error is 0"
    assert printed["Eq-12 plus tie breaking"] == 0


def test_ties_are_broken_at_random_and_count_half_otherwise():
    scores = torch.tensor([[1.0, 0.0, 1.0, 1.0]])
    zeros, everyone = torch.zeros(1, 4), torch.ones(1, 4, dtype=torch.bool)
    half = TwinRanking(scores, zeros, everyone, break_ties=False)
    assert half.ranks[0].tolist() == [2.0, 4.0, 2.0, 2.0]
    generator = torch.Generator().manual_seed(0)
    seen = {
        tuple(TwinRanking(scores, zeros, everyone, generator=generator).ranks[0].tolist())
        for _ in range(200)
    }
    assert len(seen) == 6
    assert all(ranks[1] == 4.0 for ranks in seen)


def test_precision_over_the_whole_list_is_a_constant_with_a_gradient():
    from directrank import losses

    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([[1.0, 0, 1, 0, 0]])
    for _ in range(5):
        scores = torch.randn(1, 5, generator=generator, requires_grad=True)
        value = losses.twin_precision(scores, labels)
        assert value.item() == pytest.approx(-2 / 5)
        value.sum().backward()
        assert (scores.grad != 0).any()
