"""Burges2006: figures, tables and claims follow from the results they are given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from directrank.papers.burges2006.choices import RECIPES
from directrank.papers.burges2006.ndcg import DIFFERENCE, seen_of_levels
from directrank.papers.burges2006.speed import V1, V1_EACH, V2, V2_STORED
from directrank.papers.shared.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    OTHER,
    RAN,
    RECOMPUTED,
    SUPPORTED,
    TREND,
    UNMEASURED,
)
from directrank.stats.estimates import mean_interval
from directrank.system.errors import DataError
from directrank.system.io import read_json, write_json
from papers_synthetic import build, make_plan, make_run, measured

RATES = [1e-4, 1e-3, 1e-2]
FOUR = {
    ("two_layer", "LambdaRank"): 0.60,
    ("two_layer", "RankNet"): 0.57,
    ("linear", "LambdaRank"): 0.54,
    ("linear", "RankNet"): 0.51,
}


def ndcg_run(
    folder: Path,
    name: str,
    level: float,
    dataset: str = "cubic",
    rate: float = 1e-3,
    trials: int = 3,
) -> None:
    """A run with NDCG@1 … 10 around ``level`` that chose the learning rate ``rate``."""
    means = {f"ndcg@{k}": level + 0.01 * k for k in range(1, 11)}
    spec = {
        "training": {"max_epochs": 300},
        "tune": {"training.optimizer.lr": RATES},
        "loss": {"name": "lambdarank"},
        "normalisation": {"name": "none"},
    }
    size = {"trials": trials, "queries": 300, "spread_of_trials": 0.0}
    make_run(folder, name, means, dataset=dataset, fold=None, spec=spec, **size)
    record = read_json(folder / name / "run.json")
    if dataset == "cubic":
        record["data"]["origin"] = "generated"
    write_json(folder / name / "run.json", record)
    fits = {"trial": 0, "candidate": 0, "training.optimizer.lr": rate, "best_epoch": 77}
    pd.DataFrame([fits | {"selected": True}]).to_csv(folder / name / "fits.csv", index=False)


def four(folder: Path, means: Mapping = FOUR, **options: Any) -> list[dict[str, Any]]:
    """The four curves of Figure 2, left."""
    entries = []
    for (net, method), level in means.items():
        name = f"{options.get('dataset', 'cubic')}-{net}-{method}"
        ndcg_run(folder, name, level, **options)
        entries.append({"run": name, "settings": {"net": net, "method": method}})
    return entries


def timed_run(
    folder: Path, name: str, seconds: Mapping[int, list[float]], extra: Mapping | None = None
) -> None:
    """A run of 1000 queries whose passes took ``seconds``, by the length to which it cuts lists."""
    ndcg_run(folder, name, 0.5)
    record = read_json(folder / name / "run.json")
    record["data"]["splits"]["train"] = {"queries": 1000, "documents": 512000}
    record["spec"] |= {"tune": {"training.max_documents": list(seconds)}, **(extra or {})}
    write_json(folder / name / "run.json", record)
    history = pd.concat(
        pd.DataFrame(
            {
                "trial": 0,
                "candidate": candidate,
                "epoch": np.arange(1, len(passes) + 1),
                "vali_metric": [0.4, 0.39, 0.42][: len(passes)],
                "pass_seconds": passes,
            }
        )
        for candidate, passes in enumerate(seconds.values())
    )
    history.to_csv(folder / name / "history.csv", index=False)
    fits = pd.DataFrame(
        {"trial": 0, "candidate": range(len(seconds)), "training.max_documents": list(seconds)}
    )
    fits.assign(selected=False).to_csv(folder / name / "fits.csv", index=False)


def lengths(
    folder: Path, slopes: Mapping[str, float], nets: tuple[str, ...] = ("linear", "two_layer")
) -> list[dict[str, Any]]:
    """Three processes of each algorithm, whose times grow as the given powers of four lengths.

    The second process is a tenth slower than the first, the third twice as slow with V1.
    """
    entries = []
    for net in nets:
        for method, power in slopes.items():
            for repeat, slower in ((1, 1.0), (2, 1.1), (3, 2.0 if method == V1 else 1.0)):
                name = f"{net}-{method}-{repeat}".replace(" ", "_").replace(",", "")
                seconds = {}
                for length in (4, 16, 64, 256):
                    fastest = 0.01 * slower * (2.0 if method == V1 else 1.0) * length**power
                    seconds[length] = [9 * fastest, fastest, 2 * fastest]
                timed_run(folder, name, seconds)
                settings = {"net": net, "method": method, "repeat": repeat}
                entries.append({"run": name, "settings": settings})
    return entries


def built(folder: Path, product: str, experiments: Mapping[str, Any]) -> pd.DataFrame:
    """The CSV of a product, which is built."""
    plan = make_plan(folder, "burges2006", product, experiments)
    build(plan, folder / "runs", folder / product)
    return pd.read_csv(folder / f"{product}.csv")


@pytest.mark.slow
def test_figure_2_has_mean_and_interval_over_queries(tmp_path: Path) -> None:
    data = built(tmp_path, "figure2a", {"artificial": four(tmp_path / "runs", trials=1)})
    assert data["quantity"].value_counts().to_dict() == {"NDCG": 40, "LambdaRank − RankNet": 20}
    assert set(data["data"]) == {"artificial"}
    row = data[(data["net"] == "linear") & (data["method"] == "RankNet") & (data["level"] == 3)]
    frame = pd.read_parquet(tmp_path / "runs/cubic-linear-RankNet/per_query.parquet")
    values = frame.loc[frame["split"] == "test", "ndcg@3"].dropna()
    assert row["ndcg"].item() == pytest.approx(values.mean(), rel=1e-5)
    expected = mean_interval(values)  # there is one start
    assert row["half_width"].item() == pytest.approx(expected.half_width, rel=1e-4)
    caption = (tmp_path / "figure2a.svg").read_text(encoding="utf-8")
    assert "LambdaRank 2-Layer 0.001, epoch 77" in caption
    assert "300 epochs" in caption
    assert "There is a single start" in caption


@pytest.mark.slow
def test_figure_2_has_the_paired_difference_of_the_methods(tmp_path: Path) -> None:
    data = built(tmp_path, "figure2a", {"artificial": four(tmp_path / "runs", trials=1)})
    row = data[(data["quantity"] == "LambdaRank − RankNet") & (data["net"] == "linear")]
    row = row[row["level"] == 3]
    ours, theirs = (
        pd.read_parquet(tmp_path / f"runs/cubic-linear-{method}/per_query.parquet")
        .query("split == 'test'")
        .set_index("query_id")["ndcg@3"]
        .dropna()
        for method in ("LambdaRank", "RankNet")
    )
    expected = mean_interval(ours - theirs)  # there is one start
    assert row["ndcg"].item() == pytest.approx(expected.mean, rel=1e-4)
    assert np.isnan(row["half_width"].item())


def test_differences_of_a_single_start_have_neither_interval_nor_test(tmp_path: Path) -> None:
    entries = four(tmp_path / "runs", trials=1)
    data = built(tmp_path, "table_figure2a", {"artificial": entries})
    gaps = data[data["quantity"] == "LambdaRank − RankNet"]
    assert gaps[["half_width", "p_value", "p_holm"]].isna().all(axis=None)
    text = (tmp_path / "table_figure2a.md").read_text(encoding="utf-8")
    assert "LambdaRank has the higher mean in all 20 comparisons with RankNet." in text
    assert "differences have neither an interval nor a test" in text
    found = claims(tmp_path, {"figure2a": {"artificial": entries}})
    assert found.loc[("C23", "overall"), "verdict"] != SUPPORTED
    assert found.loc["C23"].drop(index="overall")["p_value"].isna().all()


@pytest.mark.slow
def test_rate_at_the_edge_of_the_grid_is_told(tmp_path: Path) -> None:
    built(tmp_path, "figure2a", {"artificial": four(tmp_path / "runs", rate=1e-2)})
    text = (tmp_path / "figure2a.svg").read_text(encoding="utf-8")
    assert "0.01 (edge of the grid)" in text


@pytest.mark.slow
@pytest.mark.parametrize(("product", "net"), [("figure3a", "linear"), ("figure3b", "two_layer")])
def test_panels_of_figure_3_show_one_kind_of_net_and_warn_of_stand_ins(
    tmp_path: Path, product: str, net: str
) -> None:
    entries = four(tmp_path / "runs", dataset="web30k_standin")
    data = built(tmp_path, product, {"web": entries})
    assert set(data["net"]) == {net}
    assert set(data["data"]) == {"stand-in"}
    text = (tmp_path / f"{product}.svg").read_text(encoding="utf-8")
    assert "another data set replaces them" in text


def test_table_tests_every_level(tmp_path: Path) -> None:
    data = built(tmp_path, "table_figure2a", {"artificial": four(tmp_path / "runs")})
    gaps = data[data["quantity"] == "LambdaRank − RankNet"]
    assert len(gaps) == 20
    assert (gaps["p_holm"] < 0.05).all()
    assert (gaps["p_holm"] >= gaps["p_value"]).all()
    assert gaps["ndcg"].to_numpy() == pytest.approx(0.03, abs=0.015)


def test_equal_methods_are_not_called_different(tmp_path: Path) -> None:
    means = dict.fromkeys(FOUR, 0.5)
    data = built(tmp_path, "table_figure2a", {"artificial": four(tmp_path / "runs", means)})
    gaps = data[data["quantity"] == "LambdaRank − RankNet"]
    assert (gaps["p_holm"] > 0.05).mean() > 0.9


def one_length(folder: Path, slopes: Mapping[str, float]) -> list[dict[str, Any]]:
    """Runs as of :func:`lengths`, on lists of 16 documents alone."""
    entries = lengths(folder, slopes)
    for entry in entries:
        run = folder / entry["run"]
        for name in ("history.csv", "fits.csv"):
            pd.read_csv(run / name).query("candidate == 1").to_csv(run / name)
    return entries


def times_of(folder: Path, product: str) -> pd.DataFrame:
    """The measured times of a product that was built."""
    return pd.read_csv(folder / f"{product}_times.csv").set_index(["net", "quantity"])


def test_slopes_stand_beside_the_papers_with_the_range_of_the_processes(tmp_path: Path) -> None:
    entries = lengths(tmp_path / "runs", {V1: 1.9, V2: 1.1})
    data = built(tmp_path, "table_figure1", {"lengths": entries})
    assert not {"value", "lowest", "highest"} & set(data.columns)  # measured times stay apart
    published = data.set_index(["net", "quantity"])["published"].dropna()
    assert published.to_dict() == {
        ("two_layer", f"slope, {V1}"): 1.943,
        ("two_layer", f"slope, {V2}"): 1.185,
    }
    times = times_of(tmp_path, "table_figure1")
    assert times.loc[("two_layer", f"slope, {V1}"), "value"] == pytest.approx(1.9)
    assert times.loc[("linear", f"slope, {V2}"), "value"] == pytest.approx(1.1)
    ratios = times.loc[("linear", "speed-up V2 over V1")]
    expected = np.array([2 * length**0.8 for length in (4, 16, 64, 256)])
    assert ratios["value"].to_numpy() == pytest.approx(expected, rel=1e-5)
    assert ratios["lowest"].to_numpy() == pytest.approx(expected, rel=1e-5)
    assert ratios["highest"].to_numpy() == pytest.approx(2 * expected, rel=1e-5)
    assert times["difference_in_se"].isna().all()  # a range is no standard error
    text = (tmp_path / "table_figure1.md").read_text(encoding="utf-8")
    assert "over 3 processes" in text


@pytest.mark.slow
def test_every_algorithm_stands_beside_v1_and_v2s_factor_beside_the_papers(tmp_path: Path) -> None:
    entries = one_length(tmp_path / "runs", {V1: 1.9, V1_EACH: 1.91, V2: 1.1, V2_STORED: 1.0})
    data = built(tmp_path, "table_speed_cubic", {"factors_cubic": entries})
    assert len(data) == 2 * 3
    published = data.set_index(["net", "quantity"])["published"].dropna()
    assert published.to_dict() == {
        ("linear", "speed-up V2 over V1"): 5.1,
        ("two_layer", "speed-up V2 over V1"): 8.0,
    }
    times = times_of(tmp_path, "table_speed_cubic")["value"]
    assert times["linear", f"speed-up {V1_EACH} over V1"] == pytest.approx(2 * 16**-0.01, rel=1e-4)
    assert times["linear", f"speed-up {V2_STORED} over V1"] > times["linear", "speed-up V2 over V1"]
    text = (tmp_path / "table_speed_cubic.md").read_text(encoding="utf-8")
    assert "| V2 with stored activations, linear " in text


def test_algorithms_in_unequal_numbers_of_processes_are_refused(tmp_path: Path) -> None:
    entries = lengths(tmp_path / "runs", {V1: 1.9, V2: 1.1})[:-1]
    with pytest.raises(DataError, match="same number of processes"):
        built(tmp_path, "table_figure1", {"lengths": entries})


@pytest.mark.slow
def test_figure_1_right_tells_what_the_times_say(tmp_path: Path) -> None:
    entries = lengths(tmp_path / "runs", {V1: 1.4, V2: 1.5})
    data = built(tmp_path, "figure1b", {"lengths": entries})
    assert set(data["net"]) == {"two_layer"}
    assert list(data.columns)[-1] == "documents"
    text = (tmp_path / "figure1b.svg").read_text(encoding="utf-8")
    assert "V1, RankNet Training 1.400, 1.400 to 1.400 (paper 1.943)" in text


@pytest.mark.slow
def test_figure_1_left_plots_the_best_so_far(tmp_path: Path) -> None:
    entries = []
    for method in (V1, V2):
        timed_run(tmp_path / "runs", method, {26: [60.0, 60.0, 60.0]})
        entries.append({"run": method, "settings": {"net": "linear", "method": method}})
    data = built(tmp_path, "figure1a", {"speedup": entries})
    assert list(data.loc[data["method"] == V1, "max_validation_ndcg10"]) == [0.4, 0.4, 0.42]
    times = pd.read_csv(tmp_path / "figure1a_times.csv")
    assert list(times["seconds"]) == [60, 120, 180] * 2


def test_run_without_times_of_its_passes_is_refused(tmp_path: Path) -> None:
    ndcg_run(tmp_path / "runs", "untimed", 0.5)
    settings = {"net": "two_layer", "method": V1, "repeat": 1}
    entries = [{"run": "untimed", "settings": settings}]
    with pytest.raises(DataError, match="no seconds of its passes"):
        built(tmp_path, "figure1b", {"lengths": entries})


def test_updates_per_query_and_per_pair_are_compared_epoch_by_epoch(tmp_path: Path) -> None:
    runs, entries = tmp_path / "runs", []
    for method, lag in ((V1, 0.0), (V1_EACH, 0.02)):
        name = method.replace(", ", "_").replace(" ", "_")
        ndcg_run(runs, name, 0.5, trials=2)
        rows = [
            {"trial": t, "candidate": c, "epoch": e, "vali_metric": 0.01 * t + value - lag - c}
            for t in range(2)
            for c in range(2)
            for e, value in enumerate((0.3, 0.4, 0.35), start=1)
        ]
        pd.DataFrame(rows).to_csv(runs / name / "history.csv", index=False)
        fits = [
            {"trial": t, "candidate": c, "training.optimizer.lr": 1e-3, "best_epoch": 2,
             "selected": c == 0}
            for t in range(2) for c in range(2)
        ]  # fmt: skip
        pd.DataFrame(fits).to_csv(runs / name / "fits.csv", index=False)
        entries.append({"run": name, "settings": {"net": "linear", "method": method}})
    data = built(tmp_path, "table_batching_cubic", {"batching_cubic": entries})
    assert list(data["epoch"]) == [1, 2, 3]
    assert data["per_query"].to_numpy() == pytest.approx([0.305, 0.405, 0.405])
    assert data["difference"].to_numpy() == pytest.approx([-0.02] * 3)
    text = (tmp_path / "table_batching_cubic.md").read_text(encoding="utf-8")
    assert "over queries and starts" in text


def test_lambda_functions_are_ordered_by_validation(tmp_path: Path) -> None:
    entries = []
    for function, level in {"LambdaRank": 0.5, "RankNet": 0.45, "spring": 0.56}.items():
        ndcg_run(tmp_path / "runs", function, level)
        entries.append({"run": function, "settings": {"function": function}})
    data = built(tmp_path, "table_lambdas", {"lambdas": entries})
    assert list(data["function"]) == ["spring", "LambdaRank", "RankNet"]
    assert data.loc[1, ["difference", "p_holm"]].isna().all()
    assert data.loc[2, "difference"] < 0
    text = (tmp_path / "table_lambdas.md").read_text(encoding="utf-8")
    assert "is number 2 of 3 on the validation set of these data" in text


def test_table_of_readings_has_every_reading_net_and_level(tmp_path: Path) -> None:
    entries = four(tmp_path / "runs")
    data = built(tmp_path, "table_recipe", dict.fromkeys(RECIPES, entries))
    assert len(data) == len(RECIPES) * 2 * 2
    assert (data["difference"] > 0).all()


def claims(folder: Path, products: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """The claims of plans of these products, by claim and comparison."""
    plans = [
        make_plan(folder, "burges2006", name, experiments) for name, experiments in products.items()
    ]
    return measured(*plans).set_index(["claim", "comparison"])


def test_claim_of_the_speed_up_is_about_its_numbers(tmp_path: Path) -> None:
    entries = lengths(tmp_path / "runs", {V1: 1.95, V2: 1.1})
    found = claims(tmp_path, {"figure1b": {"lengths": entries}}).loc["C22"]
    for method, level, claimed in ((V1, 1.95, "1.7 to 2.3"), (V2, 1.1, "0.7 to 1.3")):
        slope = found.loc[f"slope of log seconds over log documents, {method}, two layer nets"]
        assert slope["effect"] == pytest.approx(level)
        assert (slope["claimed"], slope["verdict"]) == (claimed, SUPPORTED)
    assert found.loc["overall", "group"] == RECOMPUTED


def test_claim_of_the_speed_up_is_tested_over_processes(tmp_path: Path) -> None:
    entries = one_length(tmp_path / "runs", {V1: 1.95, V2: 1.1})
    experiments = {"lengths": lengths(tmp_path / "runs", {V1: 1.95, V2: 1.1})}
    plans = {"figure1b": experiments, "table_speed_cubic": {"factors_cubic": entries}}
    found = claims(tmp_path, plans).loc["C22"]
    factor = found.loc["V1's seconds ÷ V2's, two layer nets, 16 documents per query"]
    assert factor["claimed"] == "7.2 to 8.8"
    assert "3 processes" in factor["sample"]
    assert found.loc["overall", "verdict"] not in (SUPPORTED, TREND)


@pytest.mark.parametrize(("slope", "verdict"), [(1.95, SUPPORTED), (1.2, CONTRADICTED)])
def test_a_slopes_p_value_is_of_the_slope_itself(
    tmp_path: Path, slope: float, verdict: str
) -> None:
    entries = lengths(tmp_path / "runs", {V1: slope, V2: 1.1})
    found = claims(tmp_path, {"figure1b": {"lengths": entries}}).loc["C22"]
    row = found.loc[f"slope of log seconds over log documents, {V1}, two layer nets"]
    assert row["verdict"] == verdict


@pytest.mark.slow
def test_claim_of_lambdarank_needs_all_three_data_sets_to_hold(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    products = {"figure2a": {"artificial": four(runs)}}
    overall = claims(tmp_path, products).loc[("C23", "overall")]
    assert overall["verdict"] == INCONCLUSIVE
    assert "Not run: Web data, the small set." in overall["remark"]
    web = four(runs, dataset="web30k_standin")
    small = four(runs, dict.fromkeys(FOUR, 0.5), dataset="mq2007_standin")[2:]
    products |= {"figure3a": {"web": web}, "figure2b": {"intranet": small}}
    found = claims(tmp_path, products)
    rows = found.loc["C23"].drop(index="overall")
    assert len(rows) == 50
    assert (rows[rows["group"] == RECOMPUTED]["verdict"] == SUPPORTED).all()
    assert (rows[rows["group"] == "stand-in"]["verdict"] == RAN).all()
    assert found.loc[("C23", "overall"), "verdict"] == INCONCLUSIVE
    assert found.loc[("C23", "overall"), "dataset"] == "artificial data"


def test_claim_is_contradicted_where_ranknet_is_ahead(tmp_path: Path) -> None:
    means = {key: 1.1 - level for key, level in FOUR.items()}
    found = claims(tmp_path, {"figure2a": {"artificial": four(tmp_path / "runs", means)}})
    assert found.loc[("C23", "overall")]["verdict"] == CONTRADICTED


@pytest.mark.slow
def test_intervals_of_several_trials_hold_for_other_starts(tmp_path: Path) -> None:
    entries = four(tmp_path / "runs", trials=3)
    data = built(tmp_path, "table_figure2a", {"artificial": entries})
    assert set(data.loc[data["quantity"] == "NDCG", "queries"]) == {298}
    text = (tmp_path / "table_figure2a.md").read_text(encoding="utf-8")
    assert "over queries and starts" in text
    assert "There are 3 trials." in text


@pytest.mark.slow
def test_measured_slopes_are_kept_out_of_the_summarys_numbers(tmp_path: Path) -> None:
    entries = lengths(tmp_path / "runs", {V1: 1.95, V2: 1.1})
    plan = make_plan(
        tmp_path, "burges2006", "summary", {"lengths": entries}, repeats=["table_figure1"]
    )
    build(plan, tmp_path / "runs", tmp_path / "summary")
    data = pd.read_csv(tmp_path / "summary.csv")
    assert not {"reproduced", "half_width", "difference_in_se"} & set(data)
    times = pd.read_csv(tmp_path / "summary_times.csv")
    slopes = times[times["panel"] == "Figure 1, slopes"].set_index("cell")
    assert slopes.loc[f"two_layer, slope, {V1}", "reproduced"] == pytest.approx(1.95, abs=0.01)
    assert slopes.loc[f"two_layer, slope, {V1}", "published"] == 1.943


@pytest.mark.slow
def test_claims_about_the_top_and_about_the_nets(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    linear = {key: level for key, level in FOUR.items() if key[0] == "linear"}
    same = {("linear", "LambdaRank"): 0.57, ("two_layer", "RankNet"): 0.57}
    products = {
        "figure2a": {"artificial": four(runs)},
        "table_lambdas": {"lambdas": []},
        "figure2b": {"intranet": four(runs, linear, dataset="web30k")},
        "figure3a": {"web": four(runs, same, dataset="ohsumed")},
    }
    found = claims(tmp_path, products)
    gap = found.loc["D15"].drop(index="overall")
    assert gap["effect"].abs().max() < 0.02  # made with the same lead at every level
    assert found.loc[("D16", "overall"), "verdict"] == UNMEASURED
    assert "table_lambdas_web" in found.loc[("D16", "overall"), "remark"]
    small = found.loc[("D17", "overall")]
    assert (small["verdict"], small["group"]) == (SUPPORTED, OTHER)  # real, and not the paper's
    level = found.loc["D18"].drop(index="overall")
    assert len(level) == 5
    assert level.index[0] == "LambdaRank Linear − RankNet 2-Layer, NDCG@6"
    assert set(level["outcome"]) == {"equivalent"}
    worse = {key: 1.1 - level for key, level in FOUR.items()}
    entries = four(tmp_path / "w" / "runs", worse, dataset="web30k")
    found = claims(tmp_path / "w", {"figure2b": {"intranet": entries}})
    assert found.loc[("D17", "overall")]["verdict"] == CONTRADICTED


def test_the_title_of_figure_2_says_at_how_many_levels_lambdarank_is_ahead() -> None:
    gaps = pd.DataFrame(
        {"quantity": DIFFERENCE, "net": "linear", "level": [1, 2, 3], "ndcg": [0.02, 0.01, -0.01]}
    )
    said = "LambdaRank is above RankNet at 2 of 3 levels"
    assert seen_of_levels(gaps.assign(half_width=0.015)) == f"{said}; 1 interval is above 0"
    assert seen_of_levels(gaps.assign(half_width=0.03)) == f"{said}; no interval is above 0"
    assert seen_of_levels(gaps.assign(half_width=np.nan)) == said
