"""Yu2020's Tables 1 to 3 from the library's own ranks."""

from __future__ import annotations

import csv

import pytest
import torch

from directrank.lists.sorting import descending_order, inverse
from directrank.relaxations.sigmoid import SigmoidRanking
from directrank.relaxations.twin import TwinRanking


def table(root, number: int) -> list[dict[str, str]]:
    path = root / f"paper_tables/published/yu2020_table{number}.csv"
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_table_1_permutation_and_sorting(root):
    rows = {row["quantity"]: [int(row[f"v{i}"]) for i in range(1, 5)] for row in table(root, 1)}
    z = torch.tensor([rows["z"]], dtype=torch.float32)
    everyone = torch.ones_like(z, dtype=torch.bool)
    order = descending_order(z, everyone)
    assert (inverse(order) + 1)[0].tolist() == rows["pi(z)"]
    assert order[0].tolist() == rows["s_hat_inv(pi(z))"], "argsort of the ranks, from 0"
    assert z[0, order[0]].tolist() == rows["z[[s_hat_inv(pi(z))]]"]
    twin = TwinRanking(z, torch.zeros_like(z), everyone)
    assert twin.ranks[0].tolist() == rows["pi(z)"]


def uniform(n: int) -> torch.Tensor:
    """100 vectors of float32 uniforms; the paper's ties are those of this type."""
    return torch.rand(100, n, generator=torch.Generator().manual_seed(2020))


def l1(ranks: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """The sum of the errors of each vector."""
    exact = scores.argsort(dim=1, descending=True, stable=True).argsort(1) + 1
    return (ranks.double() - exact).abs().sum(1)


@pytest.mark.parametrize(("row", "n"), [(0, 123), (1, 1000)])
def test_table_2_error_of_sigmoid_ranks(root, row, n):
    printed = table(root, 2)[row]
    scores = uniform(n)
    everyone = torch.ones_like(scores, dtype=torch.bool)
    for alpha in (1, 10, 100, 1000, 10_000, 100_000):
        expected = float(printed[f"{alpha:,}"].replace(",", ""))
        ranking = SigmoidRanking(scores.double(), everyone, alpha=float(alpha))
        found = l1(ranking.ranks(everyone), scores)
        # Both means are of 100 random vectors: four standard errors of their difference.
        tolerance = 4 * 2**0.5 * found.std().item() / 10
        assert found.mean().item() == pytest.approx(expected, abs=tolerance)
        assert tolerance < 0.1 * expected or expected < 20


@pytest.mark.parametrize("n", [123, 1000])
def test_table_3_error_of_twin_sigmoid_ranks(root, n):
    column = f"(v1 = 100, v2 = {n})"
    printed = {row["pi+"]: float(row[column]) for row in table(root, 3)}
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
