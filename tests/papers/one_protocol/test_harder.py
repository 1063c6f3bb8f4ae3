"""The table of the harder task, from made-up results; and what the edition trains for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.papers.shared.product import products
from directrank.study.specification import run_name
from directrank.system.io import read_json, write_json
from papers_synthetic import build, make_plan, make_run
from studies import study_of

METRICS = ("ndcg@5", "ndcg@10", "ap", "nerr@10")

#: Method → NDCG@10 with all features, and without some.
LEVELS = {
    "RankNet": (0.685, 0.5),  # with all features the controls are further apart than any other pair
    "RankNet again": (0.72, 0.5),
    "ListNet": (0.7, 0.6),
    "LambdaMART": (0.7, 0.4),
}
CONTROLS = {"best single feature": (0.6, 0.35), "random order": (0.25, 0.25)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a built table."""
    folder = tmp_path_factory.mktemp("harder")
    needs = products("one_protocol")["table_msrd_harder"].needs
    experiments: dict[str, list] = {name: [] for name in needs}

    def run(method: str, experiment: str, level: float, fold: int, **setting: int) -> None:
        name = f"{experiment}-{method}-{fold}-{setting.get('train_queries', 'all')}"
        make_run(
            folder / "runs", name, dict.fromkeys(METRICS, level), dataset="msrd", fold=fold,
            queries=300, first_query=1000 * fold,
        )  # fmt: skip
        file = folder / "runs" / name / "run.json"
        record = read_json(file)
        record["spec"] |= {"train_queries": 1200, "without_features": ["title.*", "all.*"]}
        write_json(file, record)
        settings = {"method": method, "fold": fold, **setting}
        experiments[experiment].append({"run": name, "settings": settings})

    for fold in (1, 2):
        for method, (easy, hard) in (LEVELS | CONTROLS).items():
            run(method, "msrd_harder", hard, fold)
            if method in CONTROLS:
                run(method, "msrd_untrained", easy, fold)
            else:
                run(method, "msrd_training_size", easy, fold, train_queries=1200)
                run(method, "msrd_training_size", 0.1, fold, train_queries=300)  # another size
    plan = make_plan(folder, "one_protocol", "table_msrd_harder", experiments)
    build(plan, folder / "runs", folder / "table")
    return folder


def test_both_tasks_count_their_own_pairs(built: Path) -> None:
    data = pd.read_csv(built / "table.csv").set_index(["features", "method"])
    easy, hard = data.index.get_level_values("features").drop_duplicates()
    assert (easy, hard) == ("all", "without title.*, all.*")
    for task, differ, column in ((easy, 0, 0), (hard, 5, 1)):
        for method, levels in LEVELS.items():
            row = data.loc[(task, method)]
            assert row["mean"] == pytest.approx(levels[column], abs=0.03)
            assert (row["pairs"], row["differ"]) == (6, differ)
    assert data.loc[hard, "beyond"].dropna().unique().tolist() == [5]
    assert data.loc[(hard, "ListNet"), ["first_place", "last_place"]].tolist() == [1, 1]
    assert data.loc[(hard, "LambdaMART"), ["first_place", "last_place"]].tolist() == [4, 4]
    assert data.loc[(easy, "ListNet"), ["first_place", "last_place"]].tolist() == [1, 4]


def test_controls_have_values_and_no_places(built: Path) -> None:
    data = pd.read_csv(built / "table.csv").set_index(["features", "method"])
    for method, levels in CONTROLS.items():
        own = data.xs(method, level="method")
        assert own["mean"].to_numpy() == pytest.approx(levels, abs=0.03)
        assert own[["first_place", "last_place", "pairs"]].isna().all(axis=None)
        assert np.isfinite(own["half_width"]).all()


def test_the_text_says_what_the_numbers_say(built: Path) -> None:
    data = pd.read_csv(built / "table.csv").set_index(["features", "method"])["mean"]
    text = (built / "table.md").read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
    task = "without title.*, all.*"
    widths = {name: np.ptp([data[name, method] for method in LEVELS]) for name in ("all", task)}
    assert (
        f"With all features, 4 trained methods lie within {widths['all']:.3f}, and none of the "
        "6 pairs differ. Without title.… and all.…, 4 trained methods lie within "
        f"{widths[task]:.3f}, and 5 of the 6 pairs differ."
    ) in text.replace("\\*", "*")
    single = [f"{data[name, 'best single feature']:.3f}" for name in ("all", task)]
    reached = "{} with all features and {} without these".format(*single)
    assert f"The best single feature reaches {reached}." in text
    assert "1 200 random ones of each fold" in text
    again = abs(data["all", "RankNet"] - data["all", "RankNet again"])
    assert f"With all features the controls are {again:.3f} apart." in text


@pytest.mark.slow
def test_the_same_methods_are_trained_on_the_same_queries_with_fewer_features() -> None:
    study = study_of("real")
    cells = study.products["one_protocol", "table_msrd_harder"]["experiments"]
    full = {
        (cell["settings"]["method"], cell["settings"]["fold"]): cell["run"]
        for cell in cells["msrd_training_size"]
        if cell["settings"]["train_queries"] == 1200
    }
    controls = set()
    for cell in cells["msrd_harder"]:
        spec = dict(study.runs[cell["run"]])
        assert spec.pop("without_features") == ["title.*", "query.in_title", "all.*"]
        key = cell["settings"]["method"], cell["settings"]["fold"]
        if key in full:
            assert run_name(spec) == full.pop(key)
        else:
            controls.add(key[0])
    assert not full
    assert controls == {"best single feature", "random order"}
