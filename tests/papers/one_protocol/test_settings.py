"""What settings are worth on validation, from made-up fits."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.papers.one_protocol.settings import movements
from directrank.papers.shared.product import products
from directrank.system.io import write_csv
from papers_synthetic import build, make_plan, make_run

METRICS = ("ndcg@5", "ndcg@10", "ap", "nerr@10")
TWO = {"training.optimizer.lr": [0.003, 0.03], "loss.tau": [0.1, None]}
RATES = {"training.optimizer.lr": [0.001, 0.01]}
TREES = {"model.num_leaves": [7, 15], "model.learning_rate": [0.05, 0.1]}

#: Scorer and method → what is tuned, and the validation metric of each candidate in its order.
MADE = {
    ("linear", "NeuralNDCG"): (TWO, [0.40, 0.42, 0.41, 0.38]),
    ("tower", "NeuralNDCG"): (TWO, [0.50, 0.50, 0.50, 0.50]),
    ("linear", "RankNet"): (RATES, [0.43, 0.46]),
    ("trees", "LambdaMART"): (TREES, [0.50, 0.51, 0.53, 0.52]),
}


@pytest.fixture
def made(tmp_path: Path) -> tuple[pd.DataFrame, str]:
    """The table's rows, and its page."""
    experiments: dict[str, list] = {
        name: [] for name in products("one_protocol")["table_ohsumed_settings"].needs
    }
    for number, ((scorer, method), (tune, means)) in enumerate(MADE.items()):
        for fold in (1, 2):
            name = f"{number}-{fold}"
            make_run(
                tmp_path / "runs", name, dict.fromkeys(METRICS, 0.5), dataset="ohsumed", fold=fold,
                spec={"tune": tune},
            )  # fmt: skip
            rows = [
                {
                    "trial": trial,
                    "candidate": candidate,
                    "vali_metric": mean + (0.01 if fold == 1 else -0.01),
                    "selected": candidate == int(np.argmax(means)),
                    **dict(zip(tune, tried, strict=True)),
                }
                for trial in range(3)
                for candidate, (mean, tried) in enumerate(
                    zip(means, itertools.product(*tune.values()), strict=True)
                )
            ]
            write_csv(tmp_path / "runs" / name / "fits.csv", pd.DataFrame(rows))
            settings = {"method": method, "fold": fold}
            experiments[f"ohsumed_{scorer}"].append({"run": name, "settings": settings})
    plan = make_plan(tmp_path, "one_protocol", "table_ohsumed_settings", experiments)
    build(plan, tmp_path / "runs", tmp_path / "table")
    return pd.read_csv(tmp_path / "table.csv"), (tmp_path / "table.md").read_text("utf-8")


def test_every_configuration_has_its_mean_over_folds_and_trials(
    made: tuple[pd.DataFrame, str],
) -> None:
    data, _ = made
    assert len(data) == 4 + 4 + 2 + 4
    own = data[(data["method"] == "NeuralNDCG") & (data["scorer"] == "linear")]
    assert own["mean"].tolist() == pytest.approx([0.40, 0.42, 0.41, 0.38])
    assert own["learning_rate"].tolist() == [0.003, 0.003, 0.03, 0.03]
    assert own["setting"].unique().tolist() == ["tau"]
    assert own["value"].astype(str).tolist() == ["0.1", "none", "0.1", "none"]
    assert own["chosen"].tolist() == [0, 6, 0, 0]
    assert (data["fits"] == 6).all()
    assert data["dataset"].unique().tolist() == ["OHSUMED"]


def test_a_setting_moves_the_metric_by_its_values_at_their_best_rates(
    made: tuple[pd.DataFrame, str],
) -> None:
    data, page = made
    moved = movements(data).set_index(["method", "scorer"])
    neural = moved.loc[("NeuralNDCG", "linear")]
    assert neural["setting"] == "tau"
    assert neural["moves_with_setting"] == pytest.approx(0.42 - 0.41)
    assert neural["moves_with_rate"] == pytest.approx(0.42 - 0.41)
    assert moved.loc[("NeuralNDCG", "network"), "moves_with_setting"] == 0
    trees = moved.loc[("LambdaMART", "trees")]
    assert trees["setting"] == "num_leaves"
    assert trees["moves_with_setting"] == pytest.approx(0.53 - 0.51)
    assert "0.1: 0.410, none: 0.420" in page


def test_a_method_without_a_setting_moves_with_its_rate_alone(
    made: tuple[pd.DataFrame, str],
) -> None:
    moved = movements(made[0]).set_index(["method", "scorer"]).loc[("RankNet", "linear")]
    assert moved["setting"] == ""
    assert np.isnan(moved["moves_with_setting"])
    assert moved["moves_with_rate"] == pytest.approx(0.03)


def test_a_grid_that_grew_on_one_fold_is_compared_where_every_fold_tried_it(
    tmp_path: Path,
) -> None:
    experiments: dict[str, list] = {
        name: [] for name in products("one_protocol")["table_ohsumed_settings"].needs
    }
    # Fold 1 went on to 0.1, and fold 2, whose best rate was the lowest, to 0.0003.
    for fold, rates, chosen in ((1, [0.001, 0.01, 0.1], 1), (2, [0.001, 0.01, 0.0003], 2)):
        name = f"grown-{fold}"
        make_run(
            tmp_path / "runs", name, dict.fromkeys(METRICS, 0.5), dataset="ohsumed", fold=fold,
            spec={"tune": RATES},
        )  # fmt: skip
        rows = [
            {
                "trial": trial,
                "candidate": candidate,
                "vali_metric": 0.4 + 0.01 * candidate,
                "selected": candidate == chosen,
                "training.optimizer.lr": rate,
                "inside": min(rates) < rate < max(rates),
                "stopped_early": trial > 0,
            }
            for trial in range(2)
            for candidate, rate in enumerate(rates)
        ]
        write_csv(tmp_path / "runs" / name / "fits.csv", pd.DataFrame(rows))
        settings = {"method": "RankNet", "fold": fold}
        experiments["ohsumed_linear"].append({"run": name, "settings": settings})
    plan = make_plan(tmp_path, "one_protocol", "table_ohsumed_settings", experiments)
    build(plan, tmp_path / "runs", tmp_path / "table")
    data = pd.read_csv(tmp_path / "table.csv").set_index("learning_rate")
    assert data["fits"].to_dict() == {0.001: 4, 0.01: 4, 0.1: 2, 0.0003: 2}
    assert data["chosen"].to_dict() == {0.001: 0, 0.01: 2, 0.1: 0, 0.0003: 2}
    moved = movements(pd.read_csv(tmp_path / "table.csv")).iloc[0]
    assert moved["moves_with_rate"] == pytest.approx(0.01)
    page = (tmp_path / "table.md").read_text("utf-8")
    assert re.search(r"0\.0003 to 0\.1 \| +50% \| +50%", page)


def test_where_the_first_trial_chooses_for_all_it_alone_compares_configurations(
    tmp_path: Path,
) -> None:
    experiments: dict[str, list] = {
        name: [] for name in products("one_protocol")["table_ohsumed_settings"].needs
    }
    # On fold 2, which is easier, the other configuration is chosen, and trained twice more.
    for fold, level, chosen in ((1, 0.4, 0), (2, 0.6, 1)):
        name = f"once-{fold}"
        make_run(
            tmp_path / "runs", name, dict.fromkeys(METRICS, 0.5), dataset="ohsumed", fold=fold,
            spec={"tune": RATES, "trials": 3, "tune_in": "first_trial"},
        )  # fmt: skip
        rows = [
            {
                "trial": trial,
                "candidate": candidate,
                "vali_metric": level + 0.02 * (candidate == chosen),
                "selected": candidate == chosen,
                "training.optimizer.lr": rate,
            }
            for trial in range(3)
            for candidate, rate in enumerate(RATES["training.optimizer.lr"])
            if trial == 0 or candidate == chosen
        ]
        write_csv(tmp_path / "runs" / name / "fits.csv", pd.DataFrame(rows))
        settings = {"method": "RankNet", "fold": fold}
        experiments["ohsumed_linear"].append({"run": name, "settings": settings})
    plan = make_plan(tmp_path, "one_protocol", "table_ohsumed_settings", experiments)
    build(plan, tmp_path / "runs", tmp_path / "table")
    data = pd.read_csv(tmp_path / "table.csv")
    assert data["mean"].tolist() == pytest.approx([0.51, 0.51])
    assert data["fits"].tolist() == [2, 2]
    assert data["chosen"].tolist() == [3, 3]
    assert movements(data).iloc[0]["moves_with_rate"] == pytest.approx(0)
