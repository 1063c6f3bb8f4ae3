"""The figure of training sizes, from made-up results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.papers.shared.product import products
from papers_synthetic import build, make_plan, make_run
from studies import study_of

METRICS = ("ndcg@5", "ndcg@10", "ap", "nerr@10")


@pytest.mark.slow
def test_pairs_that_differ_are_counted_at_every_size(tmp_path: Path) -> None:
    needs = products("one_protocol")["figure_training_size"].needs
    experiments: dict[str, list] = {name: [] for name in needs}

    def run(method: str, experiment: str, level: float, fold: int, **setting: int) -> None:
        size = setting.get("train_queries", "all")
        name = f"{method}-{size}-{fold}"
        make_run(
            tmp_path / "runs", name, dict.fromkeys(METRICS, level), dataset="msrd", fold=fold,
            queries=300, first_query=1000 * fold,
        )  # fmt: skip
        settings = {"method": method, "fold": fold, **setting}
        experiments[experiment].append({"run": name, "settings": settings})

    for fold in (1, 2):
        for size in (300, 900):
            run("RankNet", "msrd_training_size", 0.5, fold, train_queries=size)
            run("ListNet", "msrd_training_size", 0.5, fold, train_queries=size)
            run("LambdaMART", "msrd_training_size", 0.5, fold, train_queries=size)
        run("RankNet", "msrd_tower", 0.6, fold)
        run("ListNet", "msrd_tower", 0.7, fold)
        run("other loss", "msrd_tower", 0.9, fold)  # not among the methods of the figure
        run("LambdaMART", "msrd_trees", 0.8, fold)
    plan = make_plan(tmp_path, "one_protocol", "figure_training_size", experiments)
    build(plan, tmp_path / "runs", tmp_path / "figure")
    data = pd.read_csv(tmp_path / "figure.csv")
    sizes = data["train_queries"].drop_duplicates().tolist()
    assert sizes == [300, 900, 1200]  # made-up runs on all queries have 1 200
    assert set(data["method"]) == {"RankNet", "ListNet", "LambdaMART"}
    per_size = data.drop_duplicates("train_queries")
    assert per_size["pairs"].tolist() == [3, 3, 3]
    assert per_size["differ"].tolist() == [0, 0, 3]
    assert per_size["beyond"].tolist() == [0, 0, 3]
    assert np.isfinite(data[["half_width", "half_width_of_difference"]]).all(axis=None)
    plan = make_plan(tmp_path, "one_protocol", "table_training_size", experiments)
    build(plan, tmp_path / "runs", tmp_path / "table")
    pairs = pd.read_csv(tmp_path / "table.csv")
    differ = (~pairs["tied"]).groupby(pairs["train_queries"]).sum()
    assert differ.tolist() == per_size["differ"].tolist()
    assert set(pairs.loc[pairs["method"] == "LambdaMART", "scorer"]) <= {"trees"}
    assert set(pairs.loc[pairs["other"] == "LambdaMART", "other_scorer"]) == {"trees"}
    page = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "of which chooses its configuration, and 300 validation queries of a fold" in page
    assert page.index("300 training queries") < page.index("LambdaMART") < page.index("ListNet (")


def test_every_family_is_trained_on_every_size_and_has_its_run_on_all_queries() -> None:
    study = study_of("real")
    cells = study.products["one_protocol", "figure_training_size"]["experiments"]
    sized = {(c["settings"]["method"], c["settings"]["train_queries"], c["settings"]["fold"])
             for c in cells["msrd_training_size"]}  # fmt: skip
    methods = {method for method, _, _ in sized}
    assert len(methods) >= 12
    assert sized == {(m, s, f) for m in methods for s in (300, 1200, 4800) for f in range(1, 6)}
    full = {c["settings"]["method"] for name in ("tower", "trees") for c in cells[f"msrd_{name}"]}
    assert methods <= full
    for cell in [*cells["msrd_tower"], *cells["msrd_trees"]]:
        spec = study.runs[cell["run"]]
        assert spec["trials"] == 5
        assert "train_queries" not in spec
