"""Bruch2019: the numbers in its figures and its table."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from directrank.papers.bruch2019.figures import draw_sweep, seen_in_sweep
from directrank.papers.shared.figures import style
from directrank.papers.shared.format import signed
from directrank.papers.shared.verdicts import OTHER_DATA, STANDIN
from papers_synthetic import (
    METHOD_LEVELS,
    alpha_sweep,
    build,
    depth_sweep,
    make_plan,
    make_run,
    ndcg_means,
    table1_runs,
)


def csv(tmp_path: Path, product: str, experiments: dict, **plan: object) -> pd.DataFrame:
    """Build a product of Bruch2019 and read its CSV file."""
    file = make_plan(tmp_path, "bruch2019", product, experiments, **plan)
    build(file, tmp_path / "runs", tmp_path / product)
    return pd.read_csv(tmp_path / f"{product}.csv")


def test_figure1_holds_the_sigmoids_and_the_indicator(tmp_path: Path) -> None:
    data = csv(tmp_path, "figure1", {})
    assert list(data["curve"].unique()) == ["Indicator", "α = 1", "α = 5", "α = 10"]
    five = data[data["curve"] == "α = 5"].set_index("delta")["value"]
    assert five[0.2] == pytest.approx(1 / (1 + math.exp(-1)), abs=1e-6)
    assert five[0] == 0.5
    indicator = data[data["curve"] == "Indicator"]
    assert set(indicator.loc[indicator["delta"] < 0, "value"]) == {0}
    assert set(indicator.loc[indicator["delta"] > 0, "value"]) == {1}


def test_figure2_plots_trial_means_without_empty_queries(tmp_path: Path) -> None:
    entries = alpha_sweep(tmp_path / "runs", trials=4)
    data = csv(tmp_path, "figure2", {"alpha_sweep": entries[::-1]})
    assert list(data["alpha"].unique()) == [1, 5, 10, 20, 40, 100, 200]
    row = data[(data["alpha"] == 10) & (data["metric"] == "NDCG@5")].iloc[0]
    raw = pd.read_parquet(tmp_path / "runs" / "alpha-10" / "per_query.parquet")
    raw = raw[(raw["split"] == "vali") & (raw["n_relevant"] > 0)]
    means = 100 * raw.groupby("trial")["ndcg@5"].mean()
    assert row["mean"] == pytest.approx(means.mean(), rel=1e-5)
    half = stats.t.ppf(0.975, 3) * means.std(ddof=1) / math.sqrt(4)
    assert row["half_width"] == pytest.approx(half, rel=1e-4)
    assert row["high"] - row["low"] == pytest.approx(2 * half, rel=1e-4)
    assert row["trials"] == 4


def test_figure2_of_a_single_trial_has_no_interval(tmp_path: Path) -> None:
    data = csv(tmp_path, "figure2", {"alpha_sweep": alpha_sweep(tmp_path / "runs", trials=1)})
    assert data["half_width"].isna().all()
    assert data["mean"].notna().all()


def test_figure3_orders_models_by_depth(tmp_path: Path) -> None:
    entries = depth_sweep(tmp_path / "runs")
    data = csv(tmp_path, "figure3", {"depth_sweep": entries[::-1]})
    models = ["B64", "B128", "B256", "B512", "B1024", "B2048"]
    assert list(data["model"].unique()) == models


def both_parts(tmp_path: Path) -> dict:
    """Runs of Table 1 on two stand-ins."""
    return {
        "table1_web30k": table1_runs(tmp_path / "runs"),
        "table1_yahoo1": table1_runs(tmp_path / "runs", "yahoo1_standin"),
    }


def test_table1_has_a_row_per_dataset_method_and_metric(tmp_path: Path) -> None:
    data = csv(tmp_path, "table1", both_parts(tmp_path))
    assert len(data) == 2 * 6 * 3
    assert not data.duplicated(["dataset", "method", "metric"]).any()
    assert list(data["method"].unique()) == [
        "ListMLE",
        "RankNet",
        "λMART_RankLib",
        "λMART_RankLib-like",
        "λMART_GBM",
        "ApproxNDCG",
    ]


def test_table1_shows_published_values_beside_ours(tmp_path: Path) -> None:
    data = csv(tmp_path, "table1", both_parts(tmp_path))
    data = data.set_index(["paper_dataset", "method", "metric"])
    cell = data.loc[("Web30K", "λMART_GBM", "NDCG@5")]
    assert (cell["published"], cell["published_half_width"]) == (49.20, 0.07)
    # The paper omits ListMLE and RankNet on Yahoo.
    assert data.loc[("Yahoo! Set 1", ["ListMLE", "RankNet"], slice(None)), "published"].isna().all()
    assert (
        data.drop("λMART_RankLib", level=1)["status"] == "stand-in: levels not comparable"
    ).all()


def test_absent_ranklib_is_a_row_that_says_so(tmp_path: Path) -> None:
    data = csv(tmp_path, "table1", both_parts(tmp_path))
    row = data[data["method"] == "λMART_RankLib"]
    assert row["mean"].isna().all()
    assert set(row["status"]) == {"not run here (RankLib absent)"}
    for suffix in (".md", ".tex"):
        text = (tmp_path / f"table1{suffix}").read_text(encoding="utf-8")
        assert text.count("not run ") == 2 * 3 + 1  # its cells, and the note
        assert "RankLib itself is not run here" in text
        assert "stand-in for Web30K" in text


def test_real_data_are_compared_in_joint_standard_errors(tmp_path: Path) -> None:
    entries = table1_runs(tmp_path / "runs", "web30k", {**METHOD_LEVELS, "λMART_RankLib": 0.44})
    experiments = {"table1_web30k": entries, "table1_yahoo1": []}
    data = csv(tmp_path, "table1", experiments, edition="paper")
    row = data[(data["method"] == "ApproxNDCG") & (data["metric"] == "NDCG@5")].iloc[0]
    ours = row["half_width"] / stats.t.ppf(0.975, 4)
    theirs = 0.11 / stats.t.ppf(0.975, 9)
    expected = (row["mean"] - 45.38) / math.hypot(ours, theirs)
    assert row["difference_in_se"] == pytest.approx(expected, rel=1e-3)
    assert row["status"] == "compared"
    text = (tmp_path / "table1.md").read_text(encoding="utf-8")
    assert f"45.38 ± 0.11 ({signed(row['difference_in_se'], 1)} SE)" in text
    assert "joint standard errors" in text


@pytest.mark.slow
def test_summary_plots_the_table(tmp_path: Path) -> None:
    data = csv(tmp_path, "summary", both_parts(tmp_path), repeats=["table1"])
    table = csv(tmp_path, "table1", both_parts(tmp_path))
    table = table[table["published"].notna() & table["mean"].notna()]
    assert len(data) == len(table) == 3 * (4 + 2)
    assert np.array_equal(data["reproduced"], table["mean"])
    assert np.array_equal(data["difference_in_se"], table["difference_in_se"])


def test_method_of_ones_own_follows_those_of_the_paper(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "own", ndcg_means(0.5))
    entries = [
        {"run": "own", "settings": {"method": "NeuralNDCG"}},
        *table1_runs(tmp_path / "runs"),
    ]
    data = csv(tmp_path, "table1", {"table1_web30k": entries, "table1_yahoo1": []})
    assert data["method"].iloc[-1] == "NeuralNDCG"


@pytest.mark.slow
def test_figure2_of_another_collection_is_drawn_from_its_own_experiment(tmp_path: Path) -> None:
    entries = alpha_sweep(tmp_path / "runs", trials=3)
    own = csv(tmp_path, "figure2", {"alpha_sweep": entries})
    other = csv(tmp_path, "figure2_yahoo", {"alpha_sweep_yahoo1": entries})
    pd.testing.assert_frame_equal(own, other)


def test_figure2_of_several_widths_has_a_line_for_each(tmp_path: Path) -> None:
    entries = []
    for width, level in ((1024, 0.5), (64, 0.4)):
        for alpha in (10, 1):
            name = f"width-{width}-{alpha}"
            spec = {"loss": {"alpha": alpha}, "model": {"hidden": [width]}}
            make_run(tmp_path / "runs", name, ndcg_means(level + 0.01 * alpha), spec=spec)
            entries.append({"run": name, "settings": {"width": width, "loss.alpha": alpha}})
    data = csv(tmp_path, "figure2_width", {"alpha_width_sweep": entries})
    assert data["width"].tolist() == ["64 units"] * 2 + ["1024 units"] * 2
    assert data["alpha"].tolist() == [1, 10, 1, 10]
    assert set(data["metric"]) == {"NDCG@5"}
    assert data["mean"].is_monotonic_increasing


def test_choices_are_compared_with_what_table1_is_made_with(tmp_path: Path) -> None:
    levels = {
        "ApproxNDCG": 0.40,
        "ApproxNDCG, batch norm over padding too": 0.45,
        "λMART_GBM": 0.50,
        "λMART_GBM, nothing sampled": 0.50,
    }
    entries = []
    for number, (setting, level) in enumerate(levels.items()):
        trials = 1 if "nothing" in setting else 3
        make_run(tmp_path / "runs", f"c{number}", ndcg_means(level), trials=trials)
        entries.append({"run": f"c{number}", "settings": {"setting": setting}})
    data = csv(tmp_path, "table_choices", {"choices_web30k": entries})
    at_five = data[data["metric"] == "NDCG@5"].set_index("setting")
    assert at_five.loc[["ApproxNDCG", "λMART_GBM"], "difference"].isna().all()
    padded = at_five.loc["ApproxNDCG, batch norm over padding too"]
    own = at_five.loc["ApproxNDCG"]
    assert padded["difference"] == pytest.approx(padded["mean"] - own["mean"], abs=1e-4)
    assert padded["p_value"] < 0.05
    assert math.isnan(at_five.loc["λMART_GBM, nothing sampled", "half_width"])


def instead(entries: list[dict]) -> list[dict]:
    """Runs on real data in the place of the paper's."""
    return [entry | {"in_place_of": "MSLR-WEB30K"} for entry in entries]


def test_other_real_data_than_the_papers_are_named_and_not_compared(tmp_path: Path) -> None:
    entries = instead(table1_runs(tmp_path / "runs", "ohsumed"))
    experiments = {"table1_web30k": entries, "table1_yahoo1": []}
    data = csv(tmp_path, "table1", experiments)
    assert set(data["data"]) == {"other real"}
    assert set(data["dataset"]) == {"OHSUMED"}
    trained = data[data["method"] != "λMART_RankLib"]
    assert set(trained["status"]) == {"other real: levels not comparable"}
    text = (tmp_path / "table1.md").read_text(encoding="utf-8")
    assert "Web30K (here: OHSUMED)" in text
    assert "real data, used in place of MSLR-WEB30K" in text
    assert OTHER_DATA in text
    assert STANDIN not in text
    assert " SE)" not in text


def test_a_picture_of_other_real_data_says_so(tmp_path: Path) -> None:
    entries = instead(alpha_sweep(tmp_path / "runs", dataset="ohsumed"))
    csv(tmp_path, "figure2", {"alpha_sweep": entries})
    picture = (tmp_path / "figure2.svg").read_text(encoding="utf-8")
    assert "OHSUMED: real, not the paper's data (edition demo)" in picture


def test_the_frames_of_figure_2_have_one_range_and_the_title_says_how_much_ndcg_changes() -> None:
    cells = [("1", 80.0, 90.0), ("10", 81.5, 90.25), ("200", 79.5, 89.75)]
    data = pd.DataFrame(
        [
            {"alpha": alpha, "metric": metric, "mean": mean, "half_width": 0.1}
            for alpha, *means in cells
            for metric, mean in zip(("NDCG@1", "NDCG@5"), means, strict=True)
        ]
    )
    with style():
        frames = draw_sweep(data, "metric", "α").axes
    assert len(frames) == 2
    spans = [np.subtract(*axes.get_ylim()) for axes in frames]
    assert spans[0] == pytest.approx(spans[1])
    seen = seen_in_sweep(data, "metric").replace("\u00a0", " ")
    assert seen == "NDCG@5 is highest at α = 10 and 0.50 points lower at α = 200 (intervals ± 0.10)"
    seen = seen_in_sweep(data.assign(half_width=np.nan), "metric")
    assert seen.endswith("200")
    wide = data.query("metric == 'NDCG@1'").assign(width="64 units")
    narrow = wide.assign(width="128 units", mean=80.0)
    both = pd.concat([wide, narrow])
    assert seen_in_sweep(both, "width") == "NDCG@1 varies most with 64 units, by 2.00 points"
