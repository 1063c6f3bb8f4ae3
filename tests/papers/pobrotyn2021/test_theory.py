"""Pobrotyn2021's Table 1 and the curves of its Figures 1 and 2."""

from __future__ import annotations

import csv

import pytest
import torch

from directrank import losses, metrics
from directrank.relaxations.neural_sort import sorting_matrix


def rows(root, name: str) -> list[dict[str, str]]:
    path = root / f"paper_tables/published/pobrotyn2021_{name}.csv"
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("tau", [0.01, 0.1, 1.0])
def test_table_1_approximate_sorting(root, tau):
    labels = torch.tensor([4.0, 2, 1, 0, 4, 3], dtype=torch.float64)
    scores = torch.tensor([[0.5, 0.2, 0.1, 0.01, 0.65, 0.3]], dtype=torch.float64)
    sorted_labels = sorting_matrix(scores, torch.ones(1, 6, dtype=torch.bool), tau)[0] @ labels
    printed = next(row for row in rows(root, "table1") if row["tau"] == f"{tau:g}")
    expected = [float(printed[f"q{i}"]) for i in range(1, 7)]
    assert sorted_labels.tolist() == pytest.approx(expected, abs=6e-5)
    total = sorted_labels.sum().item()
    if tau == 1.0:
        # The sum printed, 10.388, leaves the first of the six numbers out.
        assert total == pytest.approx(13.7781, abs=1e-4)
        assert total - sorted_labels[0].item() == pytest.approx(10.388, abs=1e-3)
    else:
        assert total == pytest.approx(float(printed["Sum after sorting"]), abs=3e-4)


def test_table_1_in_the_limit_is_sorting():
    labels = torch.tensor([4.0, 2, 1, 0, 4, 3], dtype=torch.float64)
    scores = torch.tensor([[0.5, 0.2, 0.1, 0.01, 0.65, 0.3]], dtype=torch.float64)
    matrix = sorting_matrix(scores, torch.ones(1, 6, dtype=torch.bool), 1e-5)[0]
    assert (matrix @ labels).tolist() == pytest.approx([4, 4, 3, 2, 1, 0])


@pytest.mark.parametrize(
    ("figure", "labels", "scores"),
    [
        ("fig1_recomputed", [2.0, 1, 0, 0, 0], [4.0, 1, 0, 0]),
        ("fig2_recomputed", [1.0, 2, 3, 4, 5], [1.0, 2, 3, 4]),
    ],
)
def test_figures_1_and_2_are_reproduced_point_by_point(root, figure, labels, scores):
    table = rows(root, figure)
    x = torch.tensor([float(row["x"]) for row in table], dtype=torch.float64)
    s = torch.cat([torch.tensor(scores, dtype=torch.float64).expand(len(x), 4), x[:, None]], 1)
    y = torch.tensor(labels, dtype=torch.float64).expand(len(x), 5)
    for column in table[0]:
        if column == "x":
            continue
        expected = [float(row[column]) for row in table]
        if column == "NDCG":
            found = metrics.ndcg(s, y)
        else:
            tau = float(column.split("tau=")[1].split()[0])
            iterations = 30 if "Sinkhorn(30)" in column else 0
            found = -losses.neural_ndcg(s, y, None, tau=tau, iterations=iterations)
        assert found.tolist() == pytest.approx(expected, abs=2e-6), column


def test_figure_1s_ndcg_steps():
    def ndcg(x):
        return metrics.ndcg(
            torch.tensor([[4.0, 1, 0, 0, x]]), torch.tensor([[2.0, 1, 0, 0, 0]])
        ).item()

    assert ndcg(0.9) == pytest.approx(1.0)
    assert ndcg(1.1) == pytest.approx(0.9639, abs=5e-5)
    assert ndcg(4.1) == pytest.approx(0.6590, abs=5e-5)
