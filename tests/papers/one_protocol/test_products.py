"""The comparison under one protocol, from made-up results; and that its budget is equal."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import directrank
from directrank import losses
from directrank.data import catalog
from directrank.papers.one_protocol.by_loss import read_losses
from directrank.papers.one_protocol.dots import draw, rows_of
from directrank.papers.one_protocol.methods import ALONE, NEURAL, SCORERS
from directrank.papers.one_protocol.protocol import protocol
from directrank.papers.one_protocol.published import read
from directrank.papers.one_protocol.time import extent_of_words, number_points, pareto_front
from directrank.papers.shared import pages
from directrank.papers.shared.claim_rows import claims_of
from directrank.papers.shared.evidence import gather
from directrank.papers.shared.figures import headline, new_figure, style
from directrank.papers.shared.product import products
from directrank.stats.two_way import over_queries_and_starts
from directrank.system.errors import DataError
from directrank.system.io import read_json, write_csv, write_json
from papers_synthetic import TITLES, build, make_plan, make_run
from studies import study_of

ROOT = Path(__file__).parents[3]
METRICS = ("ndcg@5", "ndcg@10", "ap", "nerr@10")

#: (scorer, method) → NDCG@10 of made-up results.
LEVELS = {
    **{(scorer, "RankNet"): 0.45 for scorer in ("linear", "tower", "context")},
    **{(scorer, "ListNet"): 0.45 for scorer in ("linear", "tower", "context")},
    **{(scorer, "RMSE"): 0.30 for scorer in ("linear", "tower", "context")},
    ("trees", "LambdaMART"): 0.60,
}


def make_experiments(
    runs: Path,
    levels: Mapping[tuple[str, str], float],
    dataset: str = "ohsumed",
    folds: Sequence[int | None] = (1, 2),
    empty: Mapping[int | None, int] | None = None,
    groups_of: int = 1,
    tag: str = "",
    spec: Mapping[str, Any] | None = None,
) -> dict[str, list[dict[str, Any]]]:
    experiments: dict[str, list[dict[str, Any]]] = {
        name: [] for name in products("one_protocol")["table_ohsumed"].needs
    }
    for number, ((scorer, method), level) in enumerate(levels.items()):
        for fold in folds:
            name = f"{tag}{number}-{fold}"
            make_run(
                runs, name, dict.fromkeys(METRICS, level), dataset=dataset, fold=fold, trials=3,
                first_query=1000 * (fold or 0), empty=(empty or {}).get(fold, 2),
                groups_of=groups_of, spec=spec,
            )  # fmt: skip
            epochs = itertools.product(range(3), range(2), (1, 2))
            history = pd.DataFrame(epochs, columns=["trial", "candidate", "epoch"])
            write_csv(runs / name / "history.csv", history.assign(seconds=0.5 + number))
            settings = {"method": method} | ({} if fold is None else {"fold": fold})
            experiments[f"ohsumed_{scorer}"].append({"run": name, "settings": settings})
    return experiments


def plan_of(folder: Path, product: str, **how: Any) -> Path:
    levels = how.pop("levels", LEVELS)
    experiments = make_experiments(folder / "runs", levels, **how)
    return make_plan(folder, "one_protocol", product, experiments, edition="demo")


def built(folder: Path, plan: Path) -> tuple[pd.DataFrame, Path]:
    """CSV of a product, and its path without ending."""
    stem = folder / read_json(plan)["product"]
    build(plan, folder / "runs", stem)
    return pd.read_csv(stem.with_suffix(".csv")), stem


def test_every_loss_meets_every_scorer_with_as_many_configurations():
    edition = study_of("paper")
    for dataset in edition.config["papers"]["one_protocol"]["collections"]:
        experiments = edition.products["one_protocol", f"table_{dataset}"]["experiments"]
        neural = {}
        for name, cells in experiments.items():
            specs = [edition.runs[cell["run"]] for cell in cells]
            sizes = {
                int(np.prod([len(values) for values in spec.get("tune", {}).values()]))
                for spec in specs
            }
            if name.endswith("_untrained"):
                continue  # the feature is chosen on the training queries
            assert sizes == {6}, name
            assert len({(str(spec["trials"]), str(spec["filter"])) for spec in specs}) == 1
            neural[name] = {spec["loss"]["name"] for spec in specs if "loss" in spec}
            normalisations = {str(spec["normalisation"]) for spec in specs}
            assert len(normalisations) == 1
        trees = neural.pop(f"{dataset}_trees")
        assert not trees
        # All of the study's losses; these two are families that others are members of.
        every = set(losses.REGISTRY) - {"composed", "lambda_family"}
        assert len(every) >= 16
        if dataset == "ohsumed":  # too long with every loss
            assert len(every) > len(neural.pop(f"{dataset}_context")) > 8
        assert set(map(frozenset, neural.values())) == {frozenset(every)}


def test_the_controls_are_planned_with_other_seeds_and_alike_in_all_else():
    study = study_of("real")
    cells = study.products["one_protocol", "table_msrd"]["experiments"]
    for scorer, name in (("tower", "RankNet"), ("trees", "LambdaMART")):
        of_name = {
            method: [
                study.runs[cell["run"]]
                for cell in cells[f"msrd_{scorer}"]
                if cell["settings"]["method"] == method
            ]
            for method in (name, f"{name} again")
        }
        assert len(of_name[name]) == 5
        for one, again in zip(*of_name.values(), strict=True):
            assert again == {**one, "repeat": 2}
    untrained = {
        cell["settings"]["method"]: study.runs[cell["run"]] for cell in cells["msrd_untrained"]
    }
    feature, order = untrained["best single feature"], untrained["random order"]
    assert (feature["learner"], feature["model"]["rounds"]) == ("adarank", 1)
    assert (order["learner"], order["trials"]) == ("random_order", 5)


def test_a_random_order_is_a_control_on_every_collection_of_every_edition():
    for edition in ("demo", "real", "paper"):
        study = study_of(edition)
        for collection in study.config["papers"]["one_protocol"]["collections"]:
            cells = study.products["one_protocol", f"table_{collection}"]["experiments"]
            methods = [cell["settings"]["method"] for cell in cells[f"{collection}_untrained"]]
            assert set(methods) == {"best single feature", "random order"}


#: With methods that learn nothing.
WITH_CONTROLS = LEVELS | {
    ("untrained", "best single feature"): 0.35,
    ("untrained", "random order"): 0.2,
}


@pytest.mark.slow
def test_controls_that_learn_nothing_change_no_other_methods_standing(tmp_path: Path) -> None:
    keys = ["scorer", "method", "metric"]
    for product in ("table_ohsumed", "figure_ohsumed"):
        without, _ = built(tmp_path, plan_of(tmp_path, product))
        data, _ = built(tmp_path, plan_of(tmp_path, product, levels=WITH_CONTROLS))
        controls = data["scorer"] == "untrained"
        assert data.loc[controls, ["first_place", "last_place"]].isna().all(axis=None)
        assert not data.loc[controls, "may_be_best"].fillna(False).astype(bool).any()
        others = data[~controls].set_index(keys)
        pd.testing.assert_frame_equal(
            others.loc[without.set_index(keys).index], without.set_index(keys), check_dtype=False
        )
    of_table, _ = built(tmp_path, plan_of(tmp_path, "table_ohsumed", levels=WITH_CONTROLS))
    assert set(of_table.loc[of_table["scorer"] == "untrained", "method"]) == {
        "best single feature",
        "random order",
    }
    pairs, _ = built(tmp_path, plan_of(tmp_path, "table_ohsumed_pairs", levels=WITH_CONTROLS))
    pd.testing.assert_frame_equal(
        pairs, built(tmp_path, plan_of(tmp_path, "table_ohsumed_pairs"))[0]
    )
    times, _ = built(tmp_path, plan_of(tmp_path, "figure_ohsumed_time", levels=WITH_CONTROLS))
    assert "untrained" not in set(times["scorer"])


@pytest.mark.slow
def test_controls_have_no_places_over_collections_either(tmp_path: Path) -> None:
    without, _ = across(tmp_path / "without", "table_collections")
    both = dict.fromkeys(COLLECTIONS, WITH_CONTROLS)
    data, stem = across(tmp_path / "with", "table_collections", **both)
    controls = data["method"].isin(["best single feature", "random order"])
    assert controls.sum() == 2 * len(COLLECTIONS)
    assert data.loc[controls, ["first_place", "last_place"]].isna().all(axis=None)
    assert not data.loc[controls, "may_be_best"].any()
    pd.testing.assert_frame_equal(
        data[~controls].reset_index(drop=True), without, check_dtype=False
    )
    text = stem.with_suffix(".md").read_text("utf-8")
    assert "of 10 methods may be the best" in text
    figure, _ = across(tmp_path / "with", "figure_collections", **both)
    assert not figure.loc[figure["scorer"] == "untrained", "may_be_best"].any()


@pytest.mark.slow
def test_what_is_not_trained_stands_beside_what_is(tmp_path: Path):
    levels = WITH_CONTROLS
    _, stem = built(tmp_path, plan_of(tmp_path, "table_ohsumed", levels=levels))
    text = stem.with_suffix(".md").read_text("utf-8")
    assert "## Without training" in text
    assert "**Without training.** The best single feature reaches 0.3" in text
    assert "7 of the 10 trained methods are significantly better. A random order reaches 0." in text
    assert "all 10 trained methods are significantly better." in text
    data, _ = built(tmp_path, plan_of(tmp_path, "figure_ohsumed", levels=levels))
    assert "untrained" in set(data["scorer"])
    again = LEVELS | {("tower", "RankNet again"): 0.45, ("trees", "LambdaMART again"): 0.62}
    _, stem = built(tmp_path, plan_of(tmp_path, "table_ohsumed", levels=again))
    assert "(LambdaMART and LambdaMART again)" in stem.with_suffix(".md").read_text("utf-8")


def test_the_table_of_quality_counts_who_is_better_and_says_who_wins(tmp_path: Path):
    data, stem = built(tmp_path, plan_of(tmp_path, "table_ohsumed"))
    primary = data[data["metric"] == "NDCG@10"].set_index(["scorer", "method"])
    assert primary.loc[("trees", "LambdaMART"), ["better_than", "worse_than"]].tolist() == [9, 0]
    assert primary.loc[("linear", "RMSE"), ["better_than", "worse_than"]].tolist() == [0, 7]
    assert primary.loc[("trees", "LambdaMART"), ["first_place", "last_place"]].tolist() == [1, 1]
    assert primary.loc[("network", "ListNet"), ["first_place", "last_place"]].tolist() == [2, 7]
    assert primary.loc[("linear", "RMSE"), ["first_place", "last_place"]].tolist() == [8, 10]
    assert primary.index[primary["may_be_best"].astype(bool)].tolist() == [("trees", "LambdaMART")]
    assert (primary["queries"] == 2 * 38).all()
    assert (primary["folds"] == 2).all()
    caption = stem.with_suffix(".md").read_text("utf-8")
    assert "Tests and intervals are for other queries and other trainings" in caption
    assert "The methods are trained on 1 200 queries of each fold. Every" in caption
    run = pd.read_parquet(tmp_path / "runs" / "0-1" / "per_query.parquet")
    other = pd.read_parquet(tmp_path / "runs" / "0-2" / "per_query.parquet")
    means = [
        np.mean(
            [
                fold[(fold["split"] == "test") & (fold["trial"] == trial)]["ndcg@10"].mean()
                for fold in (run, other)
            ]
        )
        for trial in range(3)
    ]
    assert primary.loc[("linear", "RankNet"), "mean"] == pytest.approx(np.mean(means), abs=1e-5)
    text = stem.with_suffix(".md").read_text("utf-8")
    assert text.splitlines()[2].startswith("Of all methods, LambdaMART has the highest NDCG@10")
    assert "It is significantly better than all 9 others." in text
    assert "Of the losses with the network" in text
    assert "It is significantly better than 1 of the 2 others." in text
    assert "worse than 0" in text  # the trees against the losses


@pytest.mark.slow
def test_where_nothing_differs_the_sentences_say_so(tmp_path: Path):
    levels = dict.fromkeys(LEVELS, 0.45)
    data, stem = built(tmp_path, plan_of(tmp_path, "table_ohsumed", levels=levels))
    assert data["better_than"].max() == 0
    text = stem.with_suffix(".md").read_text("utf-8")
    assert "0 of 45 pairs of methods differ significantly" in text
    assert "better than none of the 9 others." in text
    assert "10 of 10 methods may be the best" in text


def test_all_pairs_are_in_the_csv_and_those_that_differ_are_listed(tmp_path: Path):
    data, stem = built(tmp_path, plan_of(tmp_path, "table_ohsumed_pairs"))
    assert len(data) == 45
    row = data[(data["method"] == "RMSE") & (data["other"] == "LambdaMART")].iloc[0]
    assert row["difference"] < -0.2
    assert row["p_corrected"] < 0.001
    assert (row["verdict"], row["size"], row["tied"]) == ("worse", "more than the margin", False)
    alike = data[(data["method"] == "RankNet") & (data["other"] == "ListNet")]
    assert (alike["p_corrected"] >= 0.05).all()
    text = stem.with_suffix(".md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    listed = {(cells[0], cells[1]): cells[2:] for cells in rows if len(cells) == 5}
    size = f"{-row['difference']:+.3f} ± {row['half_width']:.3f}"
    assert listed["LambdaMART", "RMSE (linear)"] == [size, "< 0.001", "better by more than 0.01"]
    assert not {
        ("RankNet (linear)", "ListNet (linear)"),
        ("ListNet (linear)", "RankNet (linear)"),
    } & (listed.keys())
    sure = int((data["p_corrected"] < 0.05).sum())
    assert len(listed) - 2 == sure  # less the heading and the rule
    assert f"{sure} of the 45 pairs of methods differ significantly" in text


@pytest.mark.slow
def test_the_picture_has_every_method_with_its_distance_from_the_best(tmp_path: Path):
    every, stem = built(tmp_path, plan_of(tmp_path, "figure_ohsumed"))
    assert every["method"].iloc[0] == "LambdaMART"
    assert every["difference"].iloc[0] == 0
    assert every["difference"].is_monotonic_decreasing
    assert (every["mean"] - every["mean"].iloc[0]).to_numpy() == pytest.approx(
        every["difference"].to_numpy(), abs=1e-3
    )
    assert every["may_be_best"].tolist() == [True] + [False] * 9
    pairs, _ = built(tmp_path, plan_of(tmp_path, "table_ohsumed_pairs"))
    last = every.iloc[-1]
    row = pairs[(pairs["other"] == "LambdaMART") & (pairs["method"] == last["method"])]
    row = row[row["scorer"] == last["scorer"]].iloc[0]
    assert last[["difference", "half_width"]].tolist() == row[["difference", "half_width"]].tolist()
    _, caption = pages.caption(stem.with_suffix(".svg"))
    assert "minus that of LambdaMART, the highest" in caption
    assert "Filled: the methods that may be the best, 1;" in caption
    assert "real data" in caption


def test_losses_are_ordered_by_their_mean_over_the_scorers():
    data = pd.DataFrame(
        {
            "method": ["a", "a", "b", "b", "c", "trees"],
            "scorer": ["linear", "network", "linear", "network", "linear", "trees"],
            "difference": [-0.1, -0.3, 0.0, -0.3, -0.4, -0.05],
        }
    )
    assert rows_of(data, NEURAL) == ["b", "a", "c"]
    assert rows_of(data, ALONE) == ["trees"]


def drawn(*values: tuple[str, str, float], distance: float = 0.01) -> Figure:
    """The picture of methods: name, scorer, difference."""
    data = pd.DataFrame(values, columns=["method", "scorer", "difference"])
    data = data.assign(half_width=0.01, may_be_best=data["difference"] > -0.02)
    with style():
        return draw(data.assign(distance_of_controls=distance), values[0][0])


def test_with_one_scorer_the_signs_are_explained_below_all_panels():
    picture = drawn(("a", "network", 0.0), ("b", "network", -0.01), ("trees", "trees", -0.005))
    headline(picture, "what is to be seen")
    picture.draw_without_rendering()
    *panels, below = picture.axes
    assert len(panels) == 2
    (legend,) = (axes.get_legend() for axes in picture.axes if axes.get_legend())
    assert legend is below.get_legend()
    lowest = min(panel.get_tightbbox().y0 for panel in panels)
    assert 0 <= legend.get_window_extent().y0 < legend.get_window_extent().y1 <= lowest


def test_a_loss_has_a_row_and_a_scorer_a_column():
    picture = drawn(
        ("a", "linear", 0.0), ("a", "network", -0.01), ("b", "linear", -0.02),
        ("b", "network", -0.03), ("t", "trees", -0.04),
    )  # fmt: skip
    left, right, below, _ = picture.axes
    assert [axes.get_title(loc="left") for axes in (left, right, below)] == [
        "Linear scorer",
        "Network",
        "Boosted trees",
    ]
    assert [text.get_text() for text in left.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in below.get_yticklabels()] == ["t"]
    (linear, network) = (
        [bar[0].get_xydata()[0] for bar in axes.containers] for axes in (left, right)
    )
    assert np.array(linear).tolist() == [[0.0, 0], [-0.02, 1]]
    assert np.array(network).tolist() == [[-0.01, 0], [-0.03, 1]]
    hollow = [bar[0].get_markerfacecolor() == "white" for bar in left.containers]
    assert hollow == [False, True]
    (shade,) = left.patches
    assert shade.get_extents().transformed(left.transData.inverted()).x0 == pytest.approx(-0.01)


def test_what_is_far_below_is_an_arrow_with_its_number():
    near = [(f"m{number}", "linear", -0.001 * number) for number in range(20)]
    picture = drawn(*near, ("far", "linear", -0.5))
    axes = picture.axes[0]
    assert axes.get_xlim()[0] > -0.1
    assert len(axes.containers) == 20
    assert [text.get_text().strip() for text in axes.texts] == ["−0.500"]


@pytest.mark.slow
def test_times_are_apart_from_the_figure_that_shows_them(tmp_path: Path):
    plan = plan_of(tmp_path, "figure_ohsumed_time")
    quality, _ = built(tmp_path, plan)
    assert "seconds" not in quality
    assert "on_front" not in quality
    times = pd.read_csv(tmp_path / "figure_ohsumed_time_times.csv")
    # Two epochs of 0.5 s and the method's number; the first method is the fastest.
    assert sorted(times["seconds"]) == [2 * (0.5 + number) for number in range(10)]
    assert times["seconds"].iloc[[0, -1]].tolist() == [1, 19]
    front = times[times["on_front"]]["method"].tolist()
    assert front[0] == "RankNet"
    assert front[-1] == "LambdaMART"
    assert "RMSE" not in front


@pytest.mark.slow
def test_methods_that_a_gpu_trained_have_no_time_of_their_own(tmp_path: Path):
    plan = plan_of(tmp_path, "figure_ohsumed_time")
    for number in range(6):
        file = tmp_path / f"runs/{number}-1/run.json"
        write_json(file, {**read_json(file), "device": "cuda"})
    data, stem = built(tmp_path, plan)
    assert len(data) == len(LEVELS) - 6
    text = stem.with_suffix(".svg").read_text(encoding="utf-8")
    assert "6 methods were trained on a GPU" in text


def test_the_front_holds_what_nothing_equals_in_both():
    assert pareto_front([3, 1, 2, 1, 3], [0.9, 0.5, 0.4, 0.6, 0.9]) == [3, 0]


@pytest.mark.slow
def test_conventions_shift_levels_and_can_change_the_order_over_folds_only(tmp_path: Path):
    (tmp_path / "one").mkdir()
    one, _ = built(
        tmp_path / "one",
        plan_of(tmp_path / "one", "table_ohsumed_empty", dataset="ohsumed_standin", folds=(None,)),
    )
    places = one.pivot(index=["scorer", "method"], columns="empty_queries", values="place")
    assert (places.nunique(axis=1) == 1).all()
    means = one.pivot(index=["scorer", "method"], columns="empty_queries", values="mean")
    known = means["exclude"].to_numpy() * 38
    assert means["zero"].to_numpy() == pytest.approx(known / 40, abs=1e-5)
    assert means["one"].to_numpy() == pytest.approx((known + 2) / 40, abs=1e-5)
    text = (tmp_path / "one" / "table_ohsumed_empty.md").read_text("utf-8")
    assert "the place of 0 methods (Kendall's τ with the order without them is 1.000)" in text
    assert text.count("says nothing about the paper") == 1
    (tmp_path / "none").mkdir()
    built(
        tmp_path / "none",
        plan_of(tmp_path / "none", "table_ohsumed_empty", empty={1: 0, 2: 0}),
    )
    text = (tmp_path / "none" / "table_ohsumed_empty.md").read_text("utf-8")
    assert "No test query is empty" in text


def test_a_method_that_lacks_a_fold_is_refused(tmp_path: Path):
    experiments = make_experiments(tmp_path / "runs", LEVELS)
    experiments["ohsumed_linear"].pop()
    plan = make_plan(tmp_path, "one_protocol", "table_ohsumed", experiments)
    with pytest.raises(DataError, match=r"RMSE, linear.*folds"):
        build(plan, tmp_path / "runs", tmp_path / "table")
    assert not list(tmp_path.glob("table.*"))


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_few_methods_have_a_table(tmp_path: Path, number: int):
    levels = dict(itertools.islice(LEVELS.items(), number))
    for product in ("table_ohsumed", "table_ohsumed_empty"):
        data, _ = built(tmp_path, plan_of(tmp_path, product, levels=levels))
        assert data["method"].nunique() * data["scorer"].nunique() == number
    built(tmp_path, plan_of(tmp_path, "figure_ohsumed_time", levels=levels))
    text = (tmp_path / "table_ohsumed.md").read_text("utf-8")
    assert ("is the only method, with NDCG@10" in text, "0 of 1 others" in text) == (
        number == 1,
        number == 2,
    )


def test_two_methods_are_a_pair(tmp_path: Path):
    levels = dict(itertools.islice(LEVELS.items(), 2))
    data, _ = built(tmp_path, plan_of(tmp_path, "table_ohsumed_pairs", levels=levels))
    assert data["verdict"].isin(["equivalent", "inconclusive"]).tolist() == [True]


def test_trees_alone_have_a_picture(tmp_path: Path):
    trees = {("trees", name): 0.5 for name in ("LambdaMART", "XGBoost", "YetiRank", "QueryRMSE")}
    with warnings.catch_warnings(action="error"):  # the layout finds room for all
        data, _ = built(tmp_path, plan_of(tmp_path, "figure_ohsumed", levels=trees))
    assert data["scorer"].tolist() == ["trees"] * 4


def failing(folder: Path, plan: Path, *methods: str) -> Path:
    """Let the first run of methods of a plan fail."""
    for cells in read_json(plan)["experiments"].values():
        for method in methods:
            of_method = [cell["run"] for cell in cells if cell["settings"]["method"] == method]
            for run in of_method[:1]:
                record = read_json(folder / "runs" / run / "run.json")
                write_json(folder / "runs" / run / "run.json", {**record, "failed": "no split"})
    return plan


@pytest.mark.slow
def test_a_method_that_failed_is_a_row_that_says_so(tmp_path: Path):
    plan = failing(tmp_path, plan_of(tmp_path, "table_ohsumed"), "LambdaMART")
    data, stem = built(tmp_path, plan)
    (failed,) = data[data["failed"].notna()].to_dict("records")
    assert (failed["method"], failed["failed"]) == ("LambdaMART", "no split (1 of 2 folds)")
    assert data["mean"].notna().sum() == 9 * 4
    text = stem.with_suffix(".md").read_text("utf-8")
    assert "## Boosted trees" in text
    assert "| LambdaMART" in text
    assert "**Training failed.** LambdaMART: no split (1 of 2 folds)." in text
    pairs, _ = built(
        tmp_path, failing(tmp_path, plan_of(tmp_path, "table_ohsumed_pairs"), "LambdaMART")
    )
    assert len(pairs) == 9 * 8 / 2


def test_what_failures_leave_too_few_methods_for_says_so(tmp_path: Path):
    levels = {key: level for key, level in LEVELS.items() if key[0] == "linear"}
    for product in ("figure_ohsumed",):
        plan = failing(tmp_path, plan_of(tmp_path, product, levels=levels), "RankNet")
        data, stem = built(tmp_path, plan)
        assert "fewer than 3 methods could be trained" in data["left_out"].item()
        assert stem.with_suffix(".png").is_file()
    trees = {("trees", name): 0.5 for name in ("LambdaMART", "XGBoost", "QueryRMSE")}
    plan = failing(tmp_path, plan_of(tmp_path, "table_ohsumed_trees", levels=trees), "LambdaMART")
    data, _ = built(tmp_path, plan)
    assert "no two methods of trees" in data["left_out"].item()
    assert (tmp_path / "table_ohsumed_trees_times.csv").is_file()


def test_without_a_single_method_nothing_is_made(tmp_path: Path):
    levels = {("linear", "RankNet"): 0.5}
    plan = failing(tmp_path, plan_of(tmp_path, "table_ohsumed", levels=levels), "RankNet")
    with pytest.raises(DataError, match="no method was trained"):
        built(tmp_path, plan)


def test_a_comparison_has_no_claims_to_measure():
    assert claims_of("one_protocol") == {}


def test_a_pair_is_better_worse_equivalent_or_cannot_be_told(tmp_path: Path) -> None:
    data, stem = built(tmp_path, plan_of(tmp_path, "table_ohsumed_pairs"))
    sure = data["p_corrected"] < 0.05
    assert (
        data.loc[sure, "verdict"] == np.where(data.loc[sure, "difference"] > 0, "better", "worse")
    ).all()
    equal = data["p_equivalent_corrected"] < 0.05
    assert set(data.loc[~sure & equal, "verdict"]) <= {"equivalent"}
    assert set(data.loc[~sure & ~equal, "verdict"]) <= {"inconclusive"}
    beyond = data["p_beyond_corrected"] < 0.05
    assert (data["size"] == "more than the margin").tolist() == beyond.tolist()
    assert (data["size"] == "within the margin").tolist() == equal.tolist()
    text = stem.with_suffix(".md").read_text("utf-8")
    assert f"{sure.sum()} of 45 differ significantly, 0 of them by no more than" in text


def test_nothing_nearer_than_the_controls_is_ranked(tmp_path: Path) -> None:
    levels = {("linear", "NeuralNDCG"): 0.30, ("linear", "NeuralNDCGᵀ"): 0.45}
    levels |= {("linear", "RankNet"): 0.40, ("linear", "ListNet"): 0.60}
    data, stem = built(tmp_path, plan_of(tmp_path, "table_ohsumed", levels=levels))
    primary = data[data["metric"] == "NDCG@10"].set_index("method")
    # 0.05 to 0.15 apart, significantly, but no further than two that are nearly one function.
    assert primary.loc["NeuralNDCGᵀ", ["first_place", "last_place"]].tolist() == [1, 4]
    assert primary.loc["ListNet", ["better_than", "worse_than"]].tolist() == [2, 0]
    text = stem.with_suffix(".md").read_text("utf-8")
    assert "Controls: the largest difference of two methods that hardly differ is 0.1" in text
    pairs, _ = built(tmp_path, plan_of(tmp_path, "table_ohsumed_pairs", levels=levels))
    (control,) = pairs[
        (pairs["method"] == "NeuralNDCG") & (pairs["other"] == "NeuralNDCGᵀ")
    ].to_dict("records")
    assert (control["verdict"], control["tied"]) == ("worse", True)


@pytest.mark.slow
def test_related_queries_are_tested_by_group(tmp_path: Path) -> None:
    data, stem = built(tmp_path, plan_of(tmp_path, "table_ohsumed_pairs", groups_of=8))
    assert "other groups of related queries and other" in stem.with_suffix(".md").read_text("utf-8")
    assert "76 test queries in 10 groups" in stem.with_suffix(".md").read_text("utf-8")
    rows = data[(data["method"] == "RankNet") & (data["other"] == "ListNet")]
    assert (rows["p_corrected"] > 0.05).all()  # equal but for what groups have in common
    quality, stem = built(tmp_path, plan_of(tmp_path, "table_ohsumed", groups_of=8))
    caption = stem.with_suffix(".md").read_text("utf-8")
    assert "for other groups of related queries and other trainings" in caption
    frames = [pd.read_parquet(tmp_path / f"runs/0-{fold}/per_query.parquet") for fold in (1, 2)]
    both = pd.concat([frame[frame["split"] == "test"] for frame in frames]).dropna()
    values = both.pivot(index="trial", columns="query_id", values="ndcg@10")
    groups = both.drop_duplicates("query_id").set_index("query_id")["group"]
    groups = groups.reindex(values.columns)
    folds = values.columns.to_numpy() // 1000
    expected = over_queries_and_starts(values.to_numpy(), groups.to_numpy(), folds).interval()
    row = quality[(quality["method"] == "RankNet") & (quality["scorer"] == "linear")]
    width = row.loc[row["metric"] == "NDCG@10", "half_width"].item()
    assert width == pytest.approx(expected.half_width, rel=1e-4)


COLLECTIONS = ("ohsumed", "mq2008")


def published(folder: Path, name: str, levels: Any = LEVELS, **how: Any) -> Path:
    """The published values of a collection."""
    made = make_experiments(folder / "runs", levels, dataset=name, tag=name, **how)
    experiments = {key.replace("ohsumed", name, 1): cells for key, cells in made.items()}
    plan = make_plan(folder, "one_protocol", f"per_query_{name}", experiments, edition="demo")
    (path,) = build(plan, folder / "runs", folder / f"per_query_{name}")
    return path


def across(
    folder: Path, product: str, **levels: Mapping[tuple[str, str], float]
) -> tuple[pd.DataFrame, Path]:
    """CSV of a product over all collections, and its path without ending; levels by collection."""
    files = [published(folder, name, levels.get(name, LEVELS)) for name in COLLECTIONS]
    plan = make_plan(folder, "one_protocol", product, {}, edition="demo")
    build(plan, folder / "runs", folder / product, values_files=files)
    return pd.read_csv(folder / f"{product}.csv"), folder / product


@pytest.mark.slow
def test_published_values_say_what_the_runs_say(tmp_path: Path) -> None:
    path = published(tmp_path, "ohsumed")
    values = directrank.open_results(path)
    assert values.attrs["title"] == TITLES["ohsumed"]
    assert values.attrs["methods"][-1] == ["LambdaMART", "trees"]
    keys = ["trial", "query_id"]
    chosen = (values["method"] == "ListNet") & (values["scorer"] == "network")
    ours = values[chosen & (values["fold"] == 2)].set_index(keys)[list(METRICS)].sort_index()
    number = list(LEVELS).index(("tower", "ListNet"))
    run = pd.read_parquet(tmp_path / f"runs/ohsumed{number}-2/per_query.parquet")
    theirs = run[run["split"] == "test"].set_index(keys)[list(METRICS)].sort_index()
    pd.testing.assert_frame_equal(ours, theirs, rtol=1e-6, check_index_type=False)
    assert "group" not in values
    assert path.read_bytes() == published(tmp_path, "ohsumed").read_bytes()


@pytest.mark.slow
def test_pairs_of_published_values_are_those_of_the_runs(tmp_path: Path) -> None:
    of_file = read(published(tmp_path, "ohsumed", groups_of=8))
    plan = plan_of(tmp_path, "table_ohsumed_pairs", groups_of=8, tag="ohsumed")
    of_runs = protocol(gather(read_json(plan), tmp_path / "runs"), "ohsumed")
    pd.testing.assert_frame_equal(of_file.pairs, of_runs.pairs, atol=1e-6)
    assert of_file.labels == of_runs.labels
    assert of_file.size == of_runs.size
    assert (of_file.places == of_runs.places).all()


@pytest.mark.slow
def test_a_choice_that_trainings_share_is_known_to_the_tests_of_runs_and_of_published_values(
    tmp_path: Path,
) -> None:
    each = read(published(tmp_path / "each", "ohsumed"))
    assert "one_choice" not in each.frame.attrs
    assert not any(each.one_choice)
    first = {"tune": {"training.optimizer.lr": [0.01, 0.1]}, "tune_in": "first_trial"}
    of_file = read(published(tmp_path / "first", "ohsumed", spec=first))
    plan = plan_of(tmp_path, "table_ohsumed", tag="ohsumed", spec=first)
    of_runs = protocol(gather(read_json(plan), tmp_path / "runs"), "ohsumed")
    assert all(of_runs.one_choice)
    pd.testing.assert_frame_equal(of_file.pairs, of_runs.pairs, atol=1e-6)
    assert "15% of a training's variance is taken to come from this choice" in of_file.scale()
    wider = of_file.pairs["error"] / each.pairs["error"]
    assert (wider >= 1 - 1e-6).all()
    assert wider.median() > 1.05
    assert all(read_losses(tmp_path / "first/per_query_ohsumed.parquet").one_choice)


@pytest.mark.slow
def test_products_of_a_collection_can_be_drawn_from_its_published_values(tmp_path: Path) -> None:
    file = published(tmp_path, "ohsumed", groups_of=8)
    for product in (
        "table_ohsumed",
        "table_ohsumed_pairs",
        "figure_ohsumed",
    ):
        plan = plan_of(tmp_path, product, groups_of=8, tag="ohsumed")
        of_runs, stem = built(tmp_path, plan)
        captions = [path.read_text("utf-8") for path in tmp_path.glob(f"{product}.md")]
        plan = make_plan(tmp_path, "one_protocol", product, {}, edition="demo")
        build(plan, tmp_path / "nothing", stem, values_files=[file])
        pd.testing.assert_frame_equal(pd.read_csv(stem.with_suffix(".csv")), of_runs, atol=1e-5)
        for caption in captions:
            assert stem.with_suffix(".md").read_text("utf-8") == caption


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist"),
        (b"nonsense", "not a Parquet file"),
        ("frame", "no values per query"),
    ],
)
def test_a_file_that_holds_no_published_values_is_refused(
    tmp_path: Path, content: Any, message: str
) -> None:
    path = tmp_path / "x.parquet"
    if content == "frame":
        pd.DataFrame({"a": [1]}).to_parquet(path)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        directrank.open_results(path)


@pytest.mark.slow
def test_collections_weigh_the_same_in_the_comparison_across_them(tmp_path: Path) -> None:
    turned = LEVELS | {("trees", "LambdaMART"): 0.20}
    data, stem = across(tmp_path, "table_collections", mq2008=turned)
    assert set(data["dataset"]) == {TITLES[name] for name in COLLECTIONS}
    trees = data[data["method"] == "LambdaMART"]
    assert len(data) == 2 * len(LEVELS)
    # First of ten on one collection, last on the other.
    assert trees[["first_place", "last_place"]].to_numpy().tolist() == [[1, 1], [10, 10]]
    assert trees[["better", "worse"]].iloc[0].tolist() == [9, 9]
    assert trees["difference"].iloc[0] == pytest.approx(-0.05, abs=0.03)
    total = data[["better", "worse", "equivalent", "inconclusive"]].sum(axis=1)
    assert (total == 2 * (len(LEVELS) - 1)).all()
    best = data.groupby("method")["may_be_best"].first()
    assert not best.filter(like="RMSE").any()
    text = stem.with_suffix(".md").read_text("utf-8")
    assert f"{int(best.sum())} of 10 methods may be the best" in text


@pytest.mark.slow
def test_a_method_that_a_collection_lacks_is_left_out_of_all(tmp_path: Path) -> None:
    fewer = {key: level for key, level in LEVELS.items() if key != ("tower", "RMSE")}
    data, _ = across(tmp_path, "figure_collections", ohsumed=fewer)
    assert len(data) == len(LEVELS) - 1
    assert data["difference"].is_monotonic_decreasing
    both = data[["difference_on_ohsumed", "difference_on_mq2008"]].mean(axis=1)
    assert both.to_numpy() == pytest.approx(data["difference"].to_numpy(), abs=1e-4)


@pytest.mark.slow
def test_wins_are_counted_out_of_all_collections_and_scorers(tmp_path: Path) -> None:
    data, stem = across(tmp_path, "figure_collections_wins")
    assert (data["comparisons"] == 6).all()
    ahead = data.pivot(index="loss", columns="other", values="ahead")
    assert set(ahead.index) == {"RankNet", "ListNet", "RMSE"}
    assert ahead.loc["RankNet", "RMSE"] == 6
    assert ahead.loc["RMSE", "RankNet"] == 0
    assert ahead.loc["RankNet", "ListNet"] + ahead.loc["ListNet", "RankNet"] == 6  # no controls
    assert ahead.to_numpy().diagonal().tolist() == pytest.approx([np.nan] * 3, nan_ok=True)
    _, caption = pages.caption(stem.with_suffix(".svg"))
    assert "Each cell says in how many of 6 comparisons (2 collections, 3 scorers)" in caption


def test_a_win_by_less_than_the_controls_is_none(tmp_path: Path) -> None:
    levels = {
        ("linear", "NeuralNDCG"): 0.30, ("linear", "NeuralNDCGᵀ"): 0.45,
        ("linear", "RankNet"): 0.40, ("linear", "ListNet"): 0.60,
    }  # fmt: skip
    data, _ = across(tmp_path, "figure_collections_wins", ohsumed=levels, mq2008=levels)
    ahead = data.pivot(index="loss", columns="other", values="ahead")
    assert ahead.loc["RankNet", "NeuralNDCG"] == 0  # 0.10 apart, the controls 0.15
    assert ahead.loc["ListNet", "RankNet"] == 2


def test_a_scorer_of_few_losses_leaves_no_others_out_of_the_wins(tmp_path: Path) -> None:
    few = {key: level for key, level in LEVELS.items() if key[0] != "context" or key[1] == "RMSE"}
    data, _ = across(tmp_path, "figure_collections_wins", ohsumed=few, mq2008=few)
    assert (data["comparisons"] == 4).all()
    assert {"RankNet", "ListNet", "RMSE"} <= set(data["loss"])


def test_a_single_collection_is_not_enough(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, "one_protocol", "table_collections", {}, edition="demo")
    files = [published(tmp_path, "ohsumed")]
    with pytest.raises(DataError, match="fewer than two collections"):
        build(plan, tmp_path / "runs", tmp_path / "x", values_files=files)


def test_every_product_names_its_data_set():
    for name, product in products("one_protocol").items():
        if product.across:
            continue
        parts = ("trees",) if name.endswith("_trees") else tuple(SCORERS)
        if name.endswith("_training_size"):
            parts = ("training_size", "tower", "trees")
        if name == "table_msrd_harder":
            parts = ("harder", "training_size", "untrained")
        assert product.needs == tuple(f"{product.collection}_{part}" for part in parts)
        assert f"_{product.collection}" in name or name.endswith("_training_size")
        assert catalog.get(product.collection).title in product.title
        assert name.startswith("per_query" if product.kind == "values" else product.kind)


def test_numbers_of_points_that_lie_together_do_not_overlap():
    with style():
        figure, axes = new_figure()
        axes.set(xlim=(0, 1), ylim=(0, 1))
        number_points(axes, [(word, 0.5, 0.5 + number / 100) for number, word in enumerate("abc")])
        boxes = [extent_of_words(text) for text in axes.texts]
        key = axes.get_legend().get_window_extent()
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3"]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert [text.xy for text in axes.texts] == [(0.5, 0.5), (0.5, 0.51), (0.5, 0.52)]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["1  a", "2  b", "3  c"]
    assert axes.bbox.x1 <= key.x0
    assert key.x1 <= figure.bbox.x1
