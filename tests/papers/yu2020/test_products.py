"""Yu2020: Tables 1 to 3, Figure 1 and claim C18, beside what the paper prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from directrank.papers.shared.verdicts import CONTRADICTED, RECOMPUTED, SUPPORTED
from directrank.papers.yu2020 import ranks as yu2020_ranks
from directrank.papers.yu2020.ranks import FIGURE1_ALPHAS
from directrank.relaxations.twin import TwinRanking
from papers_synthetic import PUBLISHED, build, make_plan, overall


def built(folder: Path, product: str) -> pd.DataFrame:
    """The CSV of a product."""
    plan = make_plan(folder, "yu2020", product, {})
    build(plan, folder / "runs", folder / product)
    return pd.read_csv(folder / f"{product}.csv", keep_default_na=False, na_values=[""])


def test_table_1_is_the_papers_cell_by_cell(tmp_path: Path) -> None:
    data = built(tmp_path, "table1")
    printed = pd.read_csv(PUBLISHED / "yu2020_table1.csv").set_index("quantity")
    found = data.pivot(index="quantity", columns="place", values="value")
    assert (found.loc[printed.index].to_numpy() == printed.to_numpy()).all()
    assert list(found.columns) == list(printed.columns)
    assert set(data["status"]) == {"met"}
    assert "| ŝ(π(z))" in (tmp_path / "table1.md").read_text(encoding="utf-8")
    assert (tmp_path / "table1.tex").read_text(encoding="utf-8").isascii()


def test_table_2_is_met_within_its_tolerance_or_its_sampling_error(tmp_path: Path) -> None:
    data = built(tmp_path, "table2").set_index(["documents", "alpha"])
    assert len(data) == 12
    relative = (data["difference"] / data["published"]).abs()
    # 100 lists leave this cell a standard error above 5 %.
    noisy = (123, 10_000)
    absolute = (123, 100_000)
    assert data.loc[noisy, "half_width"] / 1.984 > 0.05 * data.loc[noisy, "mean"]
    assert (relative.drop([noisy, absolute]) <= 0.05).all()
    assert abs(data.loc[absolute, "difference"]) <= 0.1
    assert (data["difference_in_se"].abs() < 3).all()
    met = (relative <= 0.05) | (data.index == absolute)
    assert list(data["status"]) == ["met" if cell else "not met" for cell in met]


def test_table_3_is_the_number_of_float32_ties_and_nothing_with_tie_breaking(
    tmp_path: Path,
) -> None:
    data = built(tmp_path, "table3").set_index(["ranks", "documents"])
    assert set(data["status"]) == {"met"}
    assert (data.loc["Eq-12 plus tie breaking", "mean"] == 0).all()
    assert data.loc[("Eq-12", 1000), "expected"] == pytest.approx(0.0298, abs=5e-5)
    for n in (123, 1000):
        scores = yu2020_ranks.uniform_scores(n)
        ties = sum(n - len(row.unique()) for row in scores)
        assert data.loc[("Eq-12", n), "mean"] == pytest.approx(ties / 100)


def test_rank_errors_take_the_nearest_true_ranking_of_ties() -> None:
    scores = torch.tensor([[0.5, 0.9, 0.5, 0.1]])

    def error(*ranks: float) -> float:
        return yu2020_ranks.rank_errors(torch.tensor([ranks]), scores)[0]

    assert error(2, 1, 3, 4) == error(3, 1, 2, 4) == 0
    assert error(2.5, 1, 2.5, 4) == 1
    assert error(1, 2, 3, 4) == 2


def test_figure_1_is_the_sigmoid_its_derivative_and_the_twin_sigmoid(tmp_path: Path) -> None:
    a, b, c = (built(tmp_path, f"figure1{panel}") for panel in "abc")
    for alpha in FIGURE1_ALPHAS:
        part = a[a["curve"] == f"α = {alpha}"]
        sigmoid = 1 / (1 + np.exp(-alpha * part["z"]))
        np.testing.assert_allclose(part["value"], sigmoid, rtol=2e-5, atol=1e-12)
        assert b.loc[b["curve"] == f"α = {alpha}", "value"].max() == pytest.approx(alpha / 4)
    curves = {name: part.set_index("z")["value"] for name, part in c.groupby("curve")}
    output = curves["output"]
    assert set(output[output.index < 0]) == {0.0}
    assert set(output[output.index > 0]) == {1.0}
    assert output.loc[0.0] == 0.5
    assert curves["gradient, type 1"].max() == pytest.approx(0.25)
    assert curves["gradient, type 3"].loc[-5.0] == pytest.approx(2 / (1 + np.exp(-5)), rel=1e-5)


def test_claim_holds_and_would_fail_for_ranks_that_are_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [make_plan(tmp_path, "yu2020", name, {}) for name in ("table2", "table3")]

    def verdict() -> pd.Series:
        return overall(*plans, only=["C18"]).loc["C18"]

    found = verdict()
    assert found["verdict"] == SUPPORTED
    assert found["group"] == RECOMPUTED
    monkeypatch.setattr(yu2020_ranks, "twin_errors", lambda n, break_ties: np.array([0.0, 1.0]))
    assert verdict()["verdict"] == CONTRADICTED


def test_equation_12_without_a_sort_agrees_with_the_ranks_of_training() -> None:
    scores = torch.tensor([[0.3, 0.1, 0.3, 0.9], [0.5, 0.5, 0.5, 0.2]])
    stream = torch.Generator().manual_seed(1)
    everyone = torch.ones_like(scores, dtype=torch.bool)
    plain = TwinRanking(scores, torch.zeros_like(scores), everyone, break_ties=False).ranks
    assert yu2020_ranks.equation_12(scores, False, stream).tolist() == plain.tolist()
    for _ in range(20):
        broken = yu2020_ranks.equation_12(scores, True, stream)
        assert broken.sort(dim=1).values.tolist() == [[1.0, 2.0, 3.0, 4.0]] * 2
        assert broken[0, 3] == 1
        assert broken[1, 3] == 4
