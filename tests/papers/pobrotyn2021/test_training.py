"""Pobrotyn2021: Table 3, what goes beyond it, and the claims C19 and C20, from made-up results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from directrank.papers.shared.product import products
from directrank.papers.shared.verdicts import CONTRADICTED, INCONCLUSIVE, OTHER, OWN, SUPPORTED
from directrank.study.specification import validate, with_settings
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import read_json, write_csv
from papers_synthetic import PUBLISHED, build, make_plan, make_run, measured, overall
from studies import study_of

pytestmark = pytest.mark.slow

TRAINING = {"batch_queries": 64, "optimizer": {"name": "adam", "lr": 0.001}}
LOSSES = list(pd.read_csv(PUBLISHED / "pobrotyn2021_table3.csv")["Loss"])
NEURAL = [name for name in LOSSES if name.startswith("NeuralNDCG")]


def loss_runs(
    folder: Path,
    levels: Mapping[str, float],
    dataset: str = "web30k",
    folds: Sequence[int | None] = (1,),
    tag: str = "",
) -> list[dict[str, Any]]:
    """One run per method and fold."""
    entries = []
    for number, (method, level) in enumerate(levels.items()):
        for fold in folds:
            name = f"{dataset}-{tag}{number}-f{fold}"
            tree = method in ("XGBoost", "LambdaMART")
            spec = {} if tree else {"loss": {"name": "x"}, "training": TRAINING}
            means = {"ndcg@5": level, "ndcg@10": level + 0.02, "ndcg": level + 0.1}
            make_run(
                folder, name, means, dataset=dataset, fold=fold, trials=4, queries=60,
                first_query=1000 * (fold or 0), spread_of_trials=0.002, spec=spec,
            )  # fmt: skip
            settings = {"method": method} | ({} if fold is None else {"fold": fold})
            entries.append({"run": name, "settings": settings})
    return entries


def levels(best: str = "NeuralNDCG@max", approx: float = 0.4) -> dict[str, float]:
    return {
        name: 0.55 if name == best else approx if name == "ApproxNDCG" else 0.48
        for name in [*LOSSES, "LambdaMART"]
    }


def table3_plan(folder: Path, istella_best: str = "NeuralNDCG^T@10", **which: Any) -> Path:
    runs = folder / "runs"
    experiments = {
        "table3_web30k": loss_runs(runs, levels(**which)),
        "table3_istella": loss_runs(
            runs, levels(best=istella_best), dataset="istella", folds=(None,)
        ),
    }
    return make_plan(folder, "pobrotyn2021", "table3", experiments)


@pytest.fixture(scope="module")
def table3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan of Table 3 with :func:`levels`; tests leave its runs as they are."""
    return table3_plan(tmp_path_factory.mktemp("table3"))


def built(folder: Path, plan: Path) -> tuple[pd.DataFrame, str]:
    """CSV and Markdown of a product."""
    stem = folder / read_json(plan)["product"]
    build(plan, folder / "runs", stem)
    return pd.read_csv(stem.with_suffix(".csv")), stem.with_suffix(".md").read_text("utf-8")


def test_table_3_has_all_rows_of_the_paper_and_ours_marked_as_ours(table3: Path) -> None:
    data, text = built(table3.parent, table3)
    for _, part in data.groupby("paper_dataset"):
        assert list(part["method"].unique()) == [*LOSSES, "LambdaMART"]
        assert part["published"].notna().sum() == 2 * len(LOSSES)
        assert (part["queries"] == 60).all()
    assert (data["trials"] == 4).all()
    assert data["half_width"].gt(0).all()
    assert set(data["status"]) == {"compared", "ours, not in the paper"}
    assert "LambdaMART (ours)" in text
    assert "NeuralNDCGᵀ@10" in text


def test_an_empty_query_counts_as_one(table3: Path) -> None:
    data, _ = built(table3.parent, table3)
    row = data[(data["method"] == "RMSE") & (data["metric"] == "NDCG@5")].iloc[0]
    values = pd.read_parquet(table3.parent / "runs" / "web30k-15-f1" / "per_query.parquet")
    test = values[values["split"] == "test"]
    assert test["ndcg@5"].isna().sum() == 2 * 4
    assert row["mean"] == pytest.approx(100 * test["ndcg@5"].fillna(1.0).mean())


def claim(plan: Path, name: str) -> pd.Series:
    return overall(plan, only=[name]).loc[name]


def test_claim_c19_holds_where_every_variant_is_ahead_and_fails_where_none_is(
    table3, tmp_path
) -> None:
    ahead = claim(table3, "C19")
    assert (ahead["verdict"], ahead["group"]) == (SUPPORTED, OWN)
    assert claim(table3_plan(tmp_path, approx=0.6), "C19")["verdict"] == CONTRADICTED


def test_claim_c20_asks_for_lambdarank_in_one_column_of_istella(table3, tmp_path) -> None:
    frame = measured(table3, only=["C20"])
    rows = frame[frame["claim"] == "C20"].set_index("comparison")
    # NeuralNDCGᵀ@10 is the best in both columns of Istella: so LambdaRank@max is not in NDCG@10.
    assert rows.loc["overall", "verdict"] == CONTRADICTED
    assert "LambdaRank@max − NeuralNDCG^T@10, NDCG@10" in rows.index
    # The champion must be above every other loss, not only above the next.
    web = rows[rows["dataset"] == "Web30K"]
    assert len(web) == 2 * (len(LOSSES) - len(NEURAL))
    other = claim(table3_plan(tmp_path, istella_best="LambdaRank@max"), "C20")
    assert other["verdict"] == CONTRADICTED


def test_the_variant_that_stands_for_all_is_chosen_on_validation(tmp_path) -> None:
    entries = loss_runs(tmp_path / "runs", levels())
    chosen = next(e for e in entries if e["settings"]["method"] == "NeuralNDCG^T@5")
    path = tmp_path / "runs" / chosen["run"] / "per_query.parquet"
    values = pd.read_parquet(path)
    better = values["split"] == "vali"
    for metric in ("ndcg@5", "ndcg@10"):
        values.loc[better, metric] = 0.9
    values.to_parquet(path)
    experiments = {"table3_web30k": entries, "table3_istella": []}
    plan = make_plan(tmp_path, "pobrotyn2021", "table3", experiments)
    frame = measured(plan, only=["C20", "D13"])
    for name in ("C20", "D13"):
        rows = frame[(frame["claim"] == name) & (frame["comparison"] != "overall")]
        assert rows["comparison"].str.startswith("NeuralNDCG^T@5 − ").all()


def test_claims_on_half_of_the_data_sets_say_what_is_missing(table3, tmp_path) -> None:
    experiments = read_json(table3)["experiments"] | {"table3_istella": []}
    plan = make_plan(tmp_path, "pobrotyn2021", "table3", experiments)
    row = overall(plan, only=["C19"], runs=table3.parent / "runs").loc["C19"]
    assert row["verdict"] == INCONCLUSIVE
    assert "Not run: " in row["remark"]


def test_the_ohsumed_table_pairs_losses_by_fold_and_query(tmp_path: Path) -> None:
    some = {"NeuralNDCG@max": 0.5, "ListNet": 0.45}
    entries = loss_runs(tmp_path / "runs", some, "ohsumed", folds=(1, 2, 3))
    outcomes = []
    for number, listed in enumerate([entries, [*entries[:3], entries[5], *entries[3:5]]]):
        folder = tmp_path / str(number)
        plan = make_plan(folder, "pobrotyn2021", "table_ohsumed", {"ohsumed_losses": listed})
        build(plan, tmp_path / "runs", folder / "table_ohsumed")
        outcomes.append((folder / "table_ohsumed.csv").read_bytes())
    assert outcomes[0] == outcomes[1]  # the order in which folds are planned decides nothing


def test_the_ohsumed_table_refuses_losses_with_other_queries_or_folds(tmp_path: Path) -> None:
    some = {"NeuralNDCG@max": 0.5, "ListNet": 0.45}
    entries = loss_runs(tmp_path / "runs", some, "ohsumed", folds=(1, 2))
    experiments = {"ohsumed_losses": entries[:3]}
    plan = make_plan(tmp_path, "pobrotyn2021", "table_ohsumed", experiments)
    with pytest.raises(DataError, match=r"'ListNet' was run on the folds \[1\]"):
        build(plan, tmp_path / "runs", tmp_path / "table_ohsumed")
    # As many queries in fold 2, but others.
    make_run(
        tmp_path / "runs", entries[3]["run"], {"ndcg@5": 0.4, "ndcg@10": 0.4, "ndcg": 0.4},
        dataset="ohsumed", fold=2, trials=4, queries=60, first_query=2001,
        spec={"loss": {"name": "x"}},
    )  # fmt: skip
    plan = make_plan(tmp_path, "pobrotyn2021", "table_ohsumed", {"ohsumed_losses": entries})
    with pytest.raises(DataError, match="were not evaluated on the same queries"):
        build(plan, tmp_path / "runs", tmp_path / "table_ohsumed")


def test_the_ohsumed_table_takes_the_mean_of_the_folds(tmp_path: Path) -> None:
    some = {name: levels()[name] for name in ("NeuralNDCG@max", "ApproxNDCG", "RMSE")}
    entries = loss_runs(tmp_path / "runs", some, "ohsumed", folds=(1, 2, 3))
    plan = make_plan(
        tmp_path, "pobrotyn2021", "table_ohsumed", {"ohsumed_losses": entries}, edition="real"
    )
    data, text = built(tmp_path, plan)
    assert set(data["folds"]) == {3}
    assert set(data["queries"]) == {180}
    best = data[(data["method"] == "NeuralNDCG@max")]
    assert best["p_value"].isna().all()
    worse = data[data["method"] == "ApproxNDCG"]
    assert (worse["p_value"] < 0.01).all()
    assert (worse["gain"] < -10).all()
    assert "All 6 comparisons with NeuralNDCG@max have p < 0.05" in text
    assert "stand-in" not in text


def tuned_run(folder: Path, gap: Mapping[int, float], trials: int = 5) -> dict[str, list[Any]]:
    """A run over two forms and the rounds of ``gap``, the form's difference in NDCG."""
    name = "sinkhorn"
    make_run(folder, name, {"ndcg@5": 0.5}, trials=trials)
    rows, history = [], []
    stream = np.random.default_rng(3)
    for trial in range(trials):
        level = 0.5 + stream.normal(0, 0.02)
        number = 0
        for form in ("neural_ndcg", "neural_ndcg_transposed"):
            for rounds, size in gap.items():
                own = level + (size + stream.normal(0, size / 20)) * (form == "neural_ndcg")
                row = {"trial": trial, "candidate": number, "vali_metric": own}
                rows.append(row | {"loss.name": form, "loss.iterations": rounds})
                history += [
                    {"trial": trial, "candidate": number, "epoch": epoch, "train_loss": loss}
                    for epoch, loss in ((1, -0.5 - size / 10), (2, -0.6))
                ]
                number += 1
    write_csv(folder / name / "fits.csv", pd.DataFrame(rows))
    write_csv(folder / name / "history.csv", pd.DataFrame(history))
    return {"sinkhorn_web30k": [{"run": name, "settings": {}}]}


def test_the_transpose_is_compared_trial_by_trial(tmp_path: Path) -> None:
    experiments = tuned_run(tmp_path / "runs", {0: 0.0, 30: 0.01})
    experiments["table3_web30k"] = loss_runs(tmp_path / "runs", levels())
    plan = make_plan(tmp_path, "pobrotyn2021", "table_transpose", experiments)
    data, text = built(tmp_path, plan)
    pairs = data[data["how"].str.startswith("same")].set_index("comparison")
    assert pairs.loc["0 rounds", "difference"] == 0
    assert pairs.loc["30 rounds", "difference"] == pytest.approx(1.0, abs=0.05)
    # The scatter over seeds is larger than the interval of the paired difference.
    assert pairs.loc["30 rounds", "half_width"] < 0.1 < pairs.loc["30 rounds", "seed_deviation"]
    assert (data["how"].str.startswith("rows")).sum() == 6
    assert "differ significantly in 3 of the 8 comparisons: 30 rounds, validation NDCG@5;" in text


def test_the_gain_of_scaling_is_paired_with_the_papers_rounds(tmp_path: Path) -> None:
    experiments = tuned_run(tmp_path / "runs", {0: 0.0, 30: 0.01})
    plan = make_plan(tmp_path, "pobrotyn2021", "table_sinkhorn", experiments)
    data, text = built(tmp_path, plan)
    gains = data.dropna(subset="gain").set_index("loss")["gain"]
    assert gains["NeuralNDCG"] == pytest.approx(-1.0, abs=0.05)
    assert gains["NeuralNDCGᵀ"] == pytest.approx(0.0, abs=1e-9)
    assert "1 of the 2 differences" in text
    assert "30 rounds (the paper's)" in text


def test_rounds_that_were_not_tried_are_an_error(tmp_path: Path) -> None:
    plan = make_plan(
        tmp_path, "pobrotyn2021", "table_sinkhorn", tuned_run(tmp_path / "runs", {0: 0.0, 5: 0.0})
    )
    with pytest.raises(DataError, match="paper's 30 rounds"):
        built(tmp_path, plan)


def test_smoothness_is_chosen_on_validation_beside_the_choice_on_test(tmp_path: Path) -> None:
    experiments = {}
    for experiment, setting in (("alpha_web30k", "loss.alpha"), ("tau_web30k", "loss.tau")):
        entries = []
        for value, level in ((0.1, 0.4), (1.0, 0.45), (10.0, 0.5)):
            name = f"{experiment}-{value}"
            make_run(tmp_path / "runs", name, {"ndcg@5": level}, trials=4)
            entries.append({"run": name, "settings": {setting: value}})
        experiments[experiment] = entries
    plan = make_plan(tmp_path, "pobrotyn2021", "table_selection", experiments)
    data, text = built(tmp_path, plan)
    alpha = data[data["setting"] == "α"].set_index("row")
    assert alpha.loc["α = 10", "chosen_on_vali"] == 1
    chosen = alpha.loc["chosen on validation, per trial", "test"]
    assert chosen == pytest.approx(alpha.loc["α = 10", "test"])
    assert alpha.loc["chosen on test, per trial", "test"] >= chosen
    assert "α = 1 (the paper's)" in text


def test_the_two_way_table_tells_the_ranker_from_the_loss(tmp_path: Path) -> None:
    ranker = {"NeuralNDCG@max": 0.55, "ApproxNDCG": 0.5, "RMSE": 0.52, "XGBoost": 0.6}
    plain = {name: level - 0.05 for name, level in ranker.items()}
    experiments = {
        "table3_web30k": loss_runs(tmp_path / "runs", ranker),
        "plain_web30k": loss_runs(tmp_path / "runs", plain, tag="plain"),
    }
    plan = make_plan(tmp_path, "pobrotyn2021", "table_network", experiments)
    data, text = built(tmp_path, plan)
    assert set(data["method"]) == {"NeuralNDCG@max", "ApproxNDCG", "RMSE"}
    assert data["gain"].mean() == pytest.approx(4.8, abs=0.5)
    assert (data["gain"] - (data["ranker"] - data["plain"])).abs().max() < 1e-3  # 6 digits
    assert "## Variance of the means" in text
    part = data[data["metric"] == "NDCG@5"].set_index("method")
    level = np.stack([part["plain"], part["ranker"]])
    shares = [3 * level.mean(1).var() * 2, 2 * level.mean(0).var() * 3]
    shares = [share / (6 * level.var()) for share in shares]
    cells = re.search(r"^\| NDCG@5 +\| +(\d+)% \| +(\d+)% \| +(\d+)% \|", text, re.MULTILINE)
    assert cells is not None
    assert [int(cell) for cell in cells.groups()[:2]] == [round(100 * share) for share in shares]


def test_times_have_a_file_of_their_own(tmp_path: Path) -> None:
    some = {name: levels()[name] for name in ("NeuralNDCG@max", "RMSE", "XGBoost")}
    experiments = {
        "table3_web30k": loss_runs(tmp_path / "runs", some),
        "table3_istella": [],
    }
    for number, seconds in ((0, 0.9), (1, 0.3)):
        folder = tmp_path / "runs" / f"web30k-{number}-f1"
        history = pd.DataFrame({"trial": 0, "candidate": 0, "epoch": [1, 2, 3]})
        write_csv(folder / "history.csv", history.assign(seconds=seconds))
        write_csv(folder / "fits.csv", pd.DataFrame({"trial": [0], "n_parameters": [7]}))
    plan = make_plan(tmp_path, "pobrotyn2021", "table_time", experiments)
    data, text = built(tmp_path, plan)
    assert list(data["steps_per_epoch"]) == [19, 19]
    assert not any("second" in column for column in data)
    assert "3.00" in text
    times = pd.read_csv(tmp_path / "table_time_times.csv").set_index("method")
    assert list(times["seconds_per_epoch"]) == [0.9, 0.3]
    assert "XGBoost" not in times.index


@pytest.mark.parametrize("edition", ["demo", "real", "paper"])
def test_every_edition_plans_what_its_products_need(edition: str) -> None:
    planned = study_of(edition)
    mine = {name for paper, name in planned.products if paper == "pobrotyn2021"}
    assert mine <= set(products("pobrotyn2021"))
    for name in mine:
        for experiment, cells in planned.products["pobrotyn2021", name]["experiments"].items():
            # `real` has no second collection of this size.
            assert cells or (edition, experiment) == ("real", "table3_istella")
    neural = [
        planned.runs[cell["run"]]
        for name in mine
        for cells in planned.products["pobrotyn2021", name]["experiments"].values()
        for cell in cells
        if planned.runs[cell["run"]]["learner"] == "neural"
    ]
    for run in neural:
        squashed = run["model"].get("output", "linear") == "tanh"
        assert squashed == run["loss"]["name"].startswith("neural_ndcg")
        assert run["training"]["cut"] == "random_relevant"
        assert run["trials"] >= 3


def test_the_paper_edition_trains_as_the_paper_does() -> None:
    planned = study_of("paper")
    experiments = planned.products["pobrotyn2021", "table3"]["experiments"]
    runs = {
        cell["settings"]["method"]: planned.runs[cell["run"]]
        for cell in experiments["table3_web30k"]
    }
    stochastic = ["NeuralNDCG@max, stochastic", "NeuralNDCG^T@max, stochastic"]
    assert sorted(runs) == sorted([*LOSSES, "LambdaMART", *stochastic])
    run = runs["NeuralNDCG^T@10"]
    assert run["model"] | {"name": "context", "width": 96, "inner": 384} == run["model"]
    training = run["training"]
    assert training["optimizer"] == {"name": "adam", "lr": 0.001}
    assert training["schedule"] == {"name": "step", "every": 50, "factor": 0.1}
    assert (training["batch_queries"], training["max_epochs"]) == (64, 100)
    assert (training["max_documents"], training["keep"]) == (240, "last")
    istella = planned.runs[experiments["table3_istella"][0]["run"]]
    assert (istella["model"]["width"], istella["training"]["batch_queries"]) == (128, 110)
    for cell in experiments["table3_istella"]:
        run = planned.runs[cell["run"]]
        assert run.get("train_on") == ("train_and_vali" if run["learner"] == "neural" else None)
    assert not any("train_on" in run for run in runs.values())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"training.keep": "best"}, "leaves no validation set for choices"),
        ({"training.patience": 3}, "leaves no validation set for choices"),
        ({"tune": {"loss.tau": [0.5, 1.0]}}, "leaves no validation set for choices"),
        ({"sample": {"queries": {"train": 2, "vali": 2, "test": 2}}}, "divides the splits again"),
    ],
    ids=str,
)
def test_nothing_is_chosen_by_queries_that_are_trained_on(changed, message) -> None:
    planned = study_of("paper")
    experiments = planned.products["pobrotyn2021", "table3"]["experiments"]
    spec = planned.runs[experiments["table3_istella"][0]["run"]]
    spec = spec | {"normalisation": {"name": "query_zscore"}}
    validate(spec)
    with pytest.raises(ConfigError, match=message):
        validate(with_settings(spec, changed))


def test_figures_of_the_relaxation_say_what_they_show(tmp_path: Path, monkeypatch) -> None:
    from directrank.papers.pobrotyn2021 import sorting

    monkeypatch.setattr(sorting, "TAU_LENGTHS", (30,))
    monkeypatch.setattr(sorting, "TAU_LISTS", 20)
    monkeypatch.setattr(sorting, "SINKHORN_LENGTHS", (5, 40))
    monkeypatch.setattr(sorting, "SINKHORN_LISTS", 4)
    for product in ("figure_tau", "figure_sinkhorn"):
        plan = make_plan(tmp_path, "pobrotyn2021", product, {})
        build(plan, tmp_path / "runs", tmp_path / product)
    tau = pd.read_csv(tmp_path / "figure_tau.csv")
    assert tau["error"].is_monotonic_increasing
    assert tau["variance"].is_monotonic_decreasing
    sinkhorn = pd.read_csv(tmp_path / "figure_sinkhorn.csv").set_index(["documents", "rounds"])
    short, long = sinkhorn.loc[5], sinkhorn.loc[40]
    assert short["off_max"].is_monotonic_decreasing
    assert long.loc[30, "off_max"] > 1e-6 > long.loc[500, "off_max"]
    assert long.loc[500, "gap_max"] < 1e-9 < long.loc[30, "gap_max"]


def test_claims_are_measured_on_ohsumed_where_table_3_was_not_run(tmp_path: Path) -> None:
    entries = loss_runs(tmp_path / "runs", levels(), "ohsumed", folds=(1, 2))
    plan = make_plan(tmp_path, "pobrotyn2021", "table_ohsumed", {"ohsumed_losses": entries})
    found = overall(plan)
    for name in ("C19", "C20", "D13"):
        row = found.loc[name]
        assert row["group"] == OTHER
        assert "Measured on OHSUMED" in row["remark"]
        assert row["sample"].startswith("120 queries of 2 folds, ")
    assert found.loc["C19", "verdict"] == SUPPORTED
    best = found.loc["C20"]
    assert best["verdict"] == INCONCLUSIVE
    assert "LambdaRank@max as the best in NDCG@10 on Istella" in best["remark"]
    assert found.loc["D13", "verdict"] == CONTRADICTED  # LambdaRank is far behind


def test_claim_that_one_is_the_best_smoothness_fails_where_ten_is(tmp_path: Path) -> None:
    def found(best: float) -> pd.Series:
        folder = tmp_path / f"{best:g}"
        entries = []
        for value in (0.1, 1.0, 10.0):
            means = dict.fromkeys(("ndcg@5", "ndcg@10"), 0.5 if value == best else 0.4)
            make_run(folder / "runs", f"a{value}", means, dataset="web30k", trials=4)
            entries.append({"run": f"a{value}", "settings": {"loss.alpha": value}})
        experiments = {"alpha_web30k": entries, "tau_web30k": []}
        plan = make_plan(folder, "pobrotyn2021", "table_selection", experiments)
        return claim(plan, "D14")

    assert found(10.0)["verdict"] == CONTRADICTED
    level = found(1.0)
    assert level["verdict"] == INCONCLUSIVE  # τ was not run
    assert "NeuralNDCG@max at several τ" in level["remark"]
