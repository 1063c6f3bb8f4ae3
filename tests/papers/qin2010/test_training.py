"""Qin2010: figures of training, Tables 5 and 6, and the claims that rest on them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from directrank.papers.qin2010.claims import (
    claim_accuracy,
    claim_beta,
    claim_faster,
    claim_ndcg_accuracy,
    claim_restarts,
    claim_training_accuracy,
)
from directrank.papers.qin2010.training import best_of
from directrank.papers.shared.evidence import gather
from directrank.papers.shared.findings import MORE, NOT_MORE
from directrank.papers.shared.judging import judge
from directrank.papers.shared.verdicts import CONTRADICTED, SUPPORTED
from directrank.system.errors import DataError
from papers_synthetic import build, make_plan, make_run

ALPHAS = (50, 100, 300)


def write(
    folder: Path,
    name: str,
    history: pd.DataFrame,
    values: Mapping[str, Sequence[float]],
    **spec: Any,
) -> dict[str, Any]:
    """A run with this history; ``values`` are the tuned settings of its candidates."""
    trials = sorted(history["trial"].unique())
    run = make_run(folder, name, {"ndcg": 0.6}, dataset="ohsumed", trials=len(trials), spec=spec)
    history.to_csv(run / "history.csv", index=False)
    fits = [
        {"trial": trial, "candidate": number, **dict(zip(values, point, strict=True))}
        for trial in trials
        for number, point in enumerate(zip(*values.values(), strict=True))
    ]
    pd.DataFrame(fits).to_csv(run / "fits.csv", index=False)
    return {"run": name, "settings": {"fold": 1}}


def error_history(levels: Mapping[int, float], trials: int = 4, epochs: int = 5) -> pd.DataFrame:
    """Errors that fall from their level; the last trial stops two epochs early."""
    rows = []
    for candidate, level in levels.items():
        for trial in range(trials):
            for epoch in range(1, epochs + 1 - 2 * (trial == trials - 1)):
                error = level * (1 + 0.05 * trial) * (1.2 - 0.1 * epoch)
                rows.append(
                    {
                        "trial": trial,
                        "candidate": candidate,
                        "epoch": epoch,
                        "approximation_error_ap": error,
                    }
                )
    return pd.DataFrame(rows)


def evidence_of(folder: Path, product: str, experiment: str, entries: Sequence[Any]) -> Any:
    plan = {
        "edition": "real",
        "paper": "qin2010",
        "product": product,
        "experiments": {"softrank_training": [], experiment: entries},
    }
    return gather(plan, folder)


@pytest.mark.slow
def test_error_figure_plots_the_median_and_the_quartiles_of_the_starts(tmp_path: Path) -> None:
    history = error_history({0: 0.04, 1: 0.02, 2: 0.01})
    entry = write(
        tmp_path / "runs",
        "errors",
        history,
        {"loss.alpha": (10, 50, 100)},
        loss={"name": "approx_ap", "alpha": 100, "beta": 10},
    )
    plan = make_plan(tmp_path, "qin2010", "figure1a", {"ap_error_alpha": [entry]}, edition="real")
    build(plan, tmp_path / "runs", tmp_path / "figure1a")
    data = pd.read_csv(tmp_path / "figure1a.csv")
    assert data.groupby("value").size().to_dict() == {10: 5, 50: 5, 100: 5}
    assert set(data["starts"]) == {4}
    row = data.set_index(["value", "epoch"]).loc[(50, 5)]
    # The last start stopped after epoch 3 and keeps its value.
    errors = np.array([0.7, 1.05 * 0.7, 1.1 * 0.7, 1.15 * 0.9]) * 0.02
    assert row["median"] == pytest.approx(errors[1:3].mean())
    assert row["lower_quartile"] == pytest.approx(np.quantile(errors, 0.25))
    assert row["upper_quartile"] == pytest.approx(np.quantile(errors, 0.75))
    caption = (tmp_path / "figure1a.svg").read_text(encoding="utf-8")
    assert "β = 10" in caption
    assert "Grades above 0 count as relevant." in caption


def test_run_that_did_not_watch_the_error_is_named(tmp_path: Path) -> None:
    history = error_history({0: 0.04}).drop(columns="approximation_error_ap")
    entry = write(tmp_path / "runs", "errors", history, {"loss.alpha": (10,)})
    plan = make_plan(tmp_path, "qin2010", "figure1a", {"ap_error_alpha": [entry]})
    with pytest.raises(DataError, match="no approximation error"):
        build(plan, tmp_path / "runs", tmp_path / "figure1a")


def test_claim_of_accuracy_looks_at_the_worst_epoch_of_every_start(tmp_path: Path) -> None:
    history = error_history({0: 0.06, 1: 0.03, 2: 0.01})
    entry = write(tmp_path, "errors", history, {"loss.alpha": (10, 50, 100)})
    outcome = claim_accuracy(evidence_of(tmp_path, "figure1a", "ap_error_alpha", [entry]))
    assert outcome is not None
    effects = [finding.effect for finding in outcome.findings]
    worst = 1.1 * np.mean([1, 1.05, 1.1, 1.15])
    assert effects == pytest.approx(
        [1 - 0.06 * worst, 1 - 0.03 * worst, 1 - 0.01 * worst, 1 - 0.01 * worst]
    )
    least = [finding.claimed.low for finding in outcome.findings]
    assert least == [0.95, 0.95, 0.95, 0.98]


#: Algorithm 1 with a stopping rule; the history has rows after 100, 500 and 2000 epochs.
RULE = {
    "learner": "linear_ascent",
    "loss": {"name": "approx_ndcg", "alpha": 100},
    "training": {
        "max_epochs": 5000,
        "tolerance": 0.001,
        "dtype": "float64",
        "monitor": {"at": [100, 500, 2000]},
    },
}


def starts_history(levels: Mapping[int, float], starts: int = 20) -> pd.DataFrame:
    """Three rows per start; a better objective is a better NDCG@5.

    After 100 epochs luck is turned round, after 500 it is what it will be at the end. The first
    start does not meet the rule within 5000 epochs, the others do after 1200.
    """
    rows = []
    for candidate, level in levels.items():
        luck = np.random.default_rng(7).permutation(starts) / starts  # the same for every α
        for trial in range(starts):
            ends = 5000 if trial == 0 else 1200
            for epoch, lucky in ((100, 1 - luck[trial]), (500, luck[trial]), (ends, luck[trial])):
                value = level + 0.1 * lucky - 0.02 * (epoch == 100)
                rows.append(
                    {
                        "trial": trial,
                        "candidate": candidate,
                        "restart": 0,
                        "epoch": epoch,
                        "met": epoch == 1200,
                        "train_objective": -value,
                        "train_ndcg@5/letor": value,
                        "train_ndcg@5": value + 0.01,
                    }
                )
    return pd.DataFrame(rows)


def test_the_best_start_of_each_group_is_the_one_with_the_lowest_objective() -> None:
    history = pd.DataFrame(
        {
            "trial": [0, 1, 2, 3, 4],
            "train_objective": [-0.5, -0.9, -0.2, -0.1, -0.99],
            "m": [0.7, 0.3, 0.8, 0.9, 0.0],
        }
    )
    assert list(best_of(history, 1, "m")) == [0.7, 0.3, 0.8, 0.9, 0.0]
    assert list(best_of(history, 2, "m")) == [0.3, 0.8]  # the fifth start has no partner


def test_table_5_and_its_claim(tmp_path: Path) -> None:
    history = starts_history({0: 0.40, 1: 0.42, 2: 0.44})
    entry = write(tmp_path / "runs", "starts", history, {"loss.alpha": ALPHAS}, **RULE)
    parts = {"random_starts": [entry], "softrank_training": []}
    plan = make_plan(tmp_path, "qin2010", "table5", parts, edition="real")
    build(plan, tmp_path / "runs", tmp_path / "table5")
    data = pd.read_csv(tmp_path / "table5.csv")
    capped = data[data["cap"] == 100].set_index(["discount", "alpha", "restarts"])
    assert capped.loc[("letor", 100, 1), "mean"] == pytest.approx(0.40 + 0.1 * (1 - 9.5 / 20))
    assert set(data["cap"]) == {100, 500, 2000, 5000}
    data = data[data["cap"] == 5000].set_index(["discount", "alpha", "restarts"])
    assert set(data.index.get_level_values("restarts")) == {1, 10}  # of 20 starts
    assert data.loc[("letor", 100, 1), "mean"] == pytest.approx(0.42 + 0.1 * 9.5 / 20)
    assert data.loc[("letor", 100, 10), "groups"] == 2
    assert data.loc[("letor", 100, 10), "mean"] > data.loc[("letor", 100, 1), "mean"]
    text = (tmp_path / "table5.md").read_text(encoding="utf-8")
    assert "ApproxNDCG is Algorithm 1 in float64: 57 of 60 random starts met δ = 0.001" in text
    assert "half of all ended within 1\u00a0200" in text
    assert "Stopped after 500 epochs, with LETOR's discount" in text
    claim = claim_restarts(evidence_of(tmp_path / "runs", "table5", "random_starts", [entry]))
    assert claim is not None
    effects = [finding.effect for finding in claim.findings]
    assert effects == pytest.approx([0.04, 0.02, 0.02, 0.02])
    assert [finding.claimed for finding in claim.findings] == [NOT_MORE, NOT_MORE, MORE, MORE]
    assert claim.missing == ["more than 20 random starts"]


def test_table_5_of_approx_ap(tmp_path: Path) -> None:
    history = starts_history({0: 0.40, 1: 0.44, 2: 0.42}, starts=10)
    history = history.rename(columns={"train_ndcg@5/letor": "train_ap"})
    rule = RULE | {"loss": {"name": "approx_ap", "alpha": 100, "beta": 10}}
    entry = write(tmp_path / "runs", "starts", history, {"loss.alpha": ALPHAS}, **rule)
    plan = make_plan(tmp_path, "qin2010", "table5_ap", {"random_starts_ap": [entry]})
    build(plan, tmp_path / "runs", tmp_path / "table5_ap")
    text = (tmp_path / "table5_ap.md").read_text(encoding="utf-8")
    assert "AP of ApproxAP on the training set" in text
    assert "ApproxAP is Algorithm 1 in float64" in text
    assert "SoftRank" not in text


def timed(folder: Path, seconds: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    entries = []
    for number, (method, times) in enumerate(seconds.items()):
        history = pd.DataFrame(
            {"trial": 0, "candidate": 0, "epoch": np.arange(len(times)) + 1, "seconds": times}
        )
        entry = write(folder, f"timed-{number}", history, {"x": (1,)})
        entries.append({"run": entry["run"], "settings": {"method": method, "fold": 1}})
    return entries


def test_times_are_kept_apart_and_leave_the_first_epoch_out(tmp_path: Path) -> None:
    entries = timed(
        tmp_path / "runs", {"ApproxNDCG": [9, 0.1, 0.2, 0.3], "SoftRank": [9, 1.0, 2.0, 2.4]}
    )
    plan = make_plan(tmp_path, "qin2010", "table6", {"iteration_time": entries}, edition="real")
    build(plan, tmp_path / "runs", tmp_path / "table6")
    times = pd.read_csv(tmp_path / "table6_times.csv").set_index("method")
    assert list(times["seconds"]) == [0.2, 2.0]
    assert not {"seconds", "fastest"} & set(pd.read_csv(tmp_path / "table6.csv"))


def test_claim_of_speed_is_about_the_factor_five(tmp_path: Path) -> None:
    own = [9, 0.1, 0.1, 0.1]
    slow = claim_faster(
        evidence_of(
            tmp_path / "a",
            "table6",
            "iteration_time",
            timed(tmp_path / "a", {"ApproxNDCG": own, "SoftRank": [9, *np.linspace(1, 2, 8)]}),
        )
    )
    near = claim_faster(
        evidence_of(
            tmp_path / "b",
            "table6",
            "iteration_time",
            timed(tmp_path / "b", {"ApproxNDCG": own, "SoftRank": [9, *np.linspace(0.2, 0.4, 8)]}),
        )
    )
    assert slow is not None
    assert near is not None
    seconds = np.exp(np.log(np.linspace(1, 2, 8)).mean())
    assert slow.findings[0].effect == pytest.approx(10 * seconds)
    verdicts = [judge(outcome.findings, 0.01, ())[0].verdict for outcome in (slow, near)]
    assert verdicts == [SUPPORTED, CONTRADICTED]


def test_initialisation_shows_validation_by_epoch_and_test_at_the_end(tmp_path: Path) -> None:
    entries = []
    for number, bound in enumerate((1.0, 0.1)):
        history = pd.DataFrame(
            [
                {"trial": t, "candidate": 0, "epoch": e, "vali_metric": 0.6 + 0.01 * (e + t)}
                for t in range(2)
                for e in range(1, 4)
            ]
        )
        name = f"start-{number}"
        write(
            tmp_path / "runs",
            name,
            history,
            {"x": (1,)},
            loss={"name": "approx_ndcg", "alpha": 100},
        )
        entries.append({"run": name, "settings": {"model.init_bound": bound, "fold": 1}})
    plan = make_plan(tmp_path, "qin2010", "initialisation", {"initialisation": entries})
    build(plan, tmp_path / "runs", tmp_path / "initialisation")
    data = pd.read_csv(tmp_path / "initialisation.csv")
    vali = data[(data["split"] == "vali") & (data["init_bound"] == 0.1)]
    assert list(vali["ndcg"]) == pytest.approx([0.615, 0.625, 0.635])
    assert (data["split"] == "test").sum() == 2
    caption = (tmp_path / "initialisation.svg").read_text(encoding="utf-8")
    assert "α = 100" in caption


def test_claim_of_accuracy_takes_ohsumed_where_td2004_was_not_run(tmp_path: Path) -> None:
    history = error_history({0: 0.03, 1: 0.01})
    entry = write(tmp_path, "errors", history, {"loss.alpha": (50, 100)})
    ohsumed = evidence_of(tmp_path, "figure1a_ohsumed", "ap_error_alpha_ohsumed", [entry])
    outcome = claim_accuracy(None, ohsumed)
    assert outcome is not None
    assert outcome.remark.startswith("Measured on OHSUMED (grades above 0 are relevant)")
    own = claim_accuracy(evidence_of(tmp_path, "figure1a", "ap_error_alpha", [entry]), ohsumed)
    assert own is not None
    assert "OHSUMED" not in own.remark
    assert claim_accuracy(None, None) is None


def test_claims_of_falling_errors_compare_neighbours_start_by_start(tmp_path: Path) -> None:
    entry = write(tmp_path, "errors", error_history({0: 0.03, 1: 0.01}), {"loss.beta": (1, 10)})
    outcome = claim_beta(evidence_of(tmp_path, "figure1b", "ap_error_beta", [entry]), None)
    assert outcome is not None
    (finding,) = outcome.findings
    assert finding.effect == pytest.approx(0.02 * 1.1 * np.mean([1, 1.05, 1.1, 1.15]))
    assert finding.p_value < 0.001
    worse = write(tmp_path, "worse", error_history({0: 0.01, 1: 0.03}), {"loss.alpha": (50, 100)})
    outcome = claim_ndcg_accuracy(evidence_of(tmp_path, "figure2", "ndcg_error", [worse]))
    assert outcome is not None
    assert outcome.findings[0].effect < 0


def test_claim_of_training_accuracy_is_set_against_softrank_as_printed_and_as_trained(
    tmp_path: Path,
) -> None:
    history = starts_history({0: 0.45, 1: 0.46, 2: 0.47})
    entry = write(tmp_path, "starts", history, {"loss.alpha": ALPHAS}, **RULE)
    outcome = claim_training_accuracy(evidence_of(tmp_path, "table5", "random_starts", [entry]))
    assert outcome is not None
    (finding,) = outcome.findings
    assert finding.comparison.endswith("20 starts, α = 300 − SoftRank's as printed")
    own = 0.47 + 0.1 * max(best_luck())
    assert finding.effect == pytest.approx(own - 0.494)
    assert finding.p_value == 0
    assert outcome.missing == ["SoftRank trained here"]
    softrank = write(tmp_path, "softrank", softrank_history(), {"loss.sigma": (0.1, 1.0)}, **RULE)
    parts = {"random_starts": [entry], "softrank_training": [softrank]}
    plan = make_plan(tmp_path, "qin2010", "table5", parts, edition="real")
    outcome = claim_training_accuracy(gather(json.loads(plan.read_text()), tmp_path))
    assert outcome is not None
    assert outcome.findings[1].effect == pytest.approx(own - 0.52)
    assert outcome.missing == []
    build(plan, tmp_path, tmp_path / "table5")
    data = pd.read_csv(tmp_path / "table5.csv")
    rows = data[data["method"] == "SoftRank"].set_index("discount")
    assert rows.loc["letor", ["sigma", "mean", "published"]].tolist() == [1.0, 0.52, 0.494]
    assert rows.loc["letor", "difference"] == pytest.approx(0.026)
    assert "0.5200 (σ = 1)" in (tmp_path / "table5.md").read_text(encoding="utf-8")


def softrank_history() -> pd.DataFrame:
    """Two values of σ, two starts, three epochs; the highest level is not the last."""
    levels = {0: [0.3, 0.4, 0.41], 1: [0.4, 0.5, 0.45]}
    return pd.DataFrame(
        {
            "candidate": candidate,
            "trial": trial,
            "epoch": epoch,
            "train_ndcg@5/letor": level + 0.02 * trial,
            "train_ndcg@5": level,
        }
        for candidate, curve in levels.items()
        for trial in range(2)
        for epoch, level in enumerate(curve, 1)
    )


def best_luck() -> list[float]:
    """The best of each ten of the starts that :func:`starts_history` makes."""
    luck = np.random.default_rng(7).permutation(20) / 20
    return [float(luck[:10].max()), float(luck[10:].max())]
