"""What Pobrotyn2021 does not show of training: the transpose, and Sinkhorn scaling.

NDCG is in per cent; intervals are Student's t at 95 % over the trials.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from directrank.papers.pobrotyn2021.methods import CUTOFFS, methods_of, ndcg
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.evidence import Evidence, PlannedRun
from directrank.papers.shared.findings import welch_over_trials
from directrank.papers.shared.format import minus, number, share, spread
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import over_trials
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.stats.intervals import mean_interval
from directrank.system.errors import DataError

PLAIN = "neural_ndcg"
TRANSPOSED = "neural_ndcg_transposed"
FORMS = {PLAIN: "NeuralNDCG", TRANSPOSED: "NeuralNDCGᵀ"}

#: Rounds of Sinkhorn scaling in the paper (footnote 2).
PAPER_ROUNDS = 30


def candidates(run: PlannedRun) -> pd.DataFrame:
    """One row per trial, form and number of rounds of a run that tunes over both.

    Columns ``trial``, ``form``, ``rounds``, ``vali`` (NDCG in per cent on the validation set,
    queries without a relevant document left out), ``first_loss`` and ``last_loss`` (training loss
    of the first and the last epoch).
    """
    fits = run.result.fits.rename(
        columns={"loss.name": "form", "loss.iterations": "rounds", "vali_metric": "vali"}
    )
    if not {"form", "rounds"} <= set(fits):
        raise DataError(
            "this run does not try several losses and rounds of Sinkhorn scaling",
            "give its experiment 'tune' with loss.name and loss.iterations",
            file=run.result.folder,
        )
    epochs = run.result.history.sort_values("epoch").groupby(["trial", "candidate"])["train_loss"]
    losses = pd.DataFrame({"first_loss": epochs.first(), "last_loss": epochs.last()}).reset_index()
    merged = fits.merge(losses, on=["trial", "candidate"])
    merged["vali"] *= 100
    return merged[["trial", "form", "rounds", "vali", "first_loss", "last_loss"]]


def table_transpose(evidence: Evidence, pairs: str, rows: str | None) -> TableResult:
    """Whether NeuralNDCG and its transpose differ significantly.

    Args:
        evidence: of the product.
        pairs: the experiment whose candidates share random streams.
        rows: the experiment of Table 3 whose rows are set side by side; None for none.
    """
    run = evidence.only_run(pairs)
    wide = candidates(run).pivot(index=["rounds", "trial"], columns="form")
    entries = []
    for rounds, part in wide.groupby(level="rounds"):
        gaps = (part["vali", PLAIN] - part["vali", TRANSPOSED]).to_numpy()
        loss = {
            name: float((part[name, PLAIN] - part[name, TRANSPOSED]).abs().max())
            for name in ("first_loss", "last_loss")
        }
        estimate = mean_interval(gaps)
        entries.append(
            evidence.about(run.dataset)
            | {
                "comparison": _rounds(rounds),
                "how": "same weights, batches and dropout",
                "metric": "validation NDCG@5",
                "difference": estimate.mean,
                "half_width": estimate.half_width,
                "mean_absolute": float(np.abs(gaps).mean()),
                "seed_deviation": _deviation(part["vali", PLAIN].to_numpy()),
                "first_epoch_loss_gap": round(loss["first_loss"], 9),
                "last_epoch_loss_gap": round(loss["last_loss"], 9),
                "trials": estimate.n,
            }
        )
    if rows is not None:
        entries += _row_differences(evidence, rows)
    data = pd.DataFrame(entries)
    lines = [
        [
            f"{entry['comparison']}, {entry['metric']}",
            difference(entry["difference"], entry["half_width"], 2),
            number(entry["mean_absolute"], 2),
            number(entry["seed_deviation"], 2),
            _gap(entry.get("first_epoch_loss_gap")),
            _gap(entry.get("last_epoch_loss_gap")),
            str(entry["trials"]),
        ]
        for entry in entries
    ]
    columns = [
        "NeuralNDCG − NeuralNDCGᵀ",
        "difference",
        "mean |difference|",
        "SD over seeds",
        "loss, 1st epoch",
        "loss, last epoch",
        "trials",
    ]
    caption = (
        "The difference between NeuralNDCG and its transpose in NDCG points ± the half width of "
        "its 95% interval. In the rows with a number of rounds of Sinkhorn scaling, both are "
        "trained from the same random weights on the same batches with the same dropout, so they "
        "differ only in the loss (queries without a relevant document are left out). “loss” is the "
        "largest difference between the training losses of a trial in the first and the last "
        "epoch. “SD over seeds” is the standard deviation of NeuralNDCG over its trials. The "
        "losses are the same function without scaling and once it has "
        "converged. "
    )
    if rows is not None:
        caption += (
            "The rows of Table 3 compare results on the test set of runs with different random "
            "numbers (queries without a relevant document count as 1). "
        )
    caption += (
        "Intervals are not corrected for multiple comparisons. "
        f"{evidence.sources([run], 'validation set', 'vali')}"
    )
    layout = Layout(_told(data), caption, columns, [Section("", lines)])
    return TableResult(data, layout)


def _row_differences(evidence: Evidence, experiment: str) -> list[dict[str, Any]]:
    methods = methods_of(evidence, experiment)
    entries = []
    for at in ("5", "10", "max"):
        plain, transposed = f"NeuralNDCG@{at}", f"NeuralNDCG^T@{at}"
        if not {plain, transposed} <= set(methods):
            continue
        for cutoff in CUTOFFS:
            a, b = (ndcg(methods[name], cutoff) for name in (plain, transposed))
            gap = welch_over_trials(a, b).estimate.interval()
            entries.append(
                evidence.about(methods[plain].dataset)
                | {
                    "comparison": f"Table 3, losses @{at}",
                    "how": "rows of Table 3, own random streams",
                    "metric": f"test NDCG@{cutoff}",
                    "difference": gap.mean,
                    "half_width": gap.half_width,
                    "mean_absolute": math.nan,
                    "seed_deviation": _deviation(a),
                    "trials": gap.n,
                }
            )
    return entries


def _told(data: pd.DataFrame) -> str:
    """In how many comparisons the two losses differ significantly, and in which."""
    told = data[data["difference"].abs() > data["half_width"]]
    which = [f"{row.comparison}, {row.metric}" for row in told.itertuples()]
    return lead(
        f"NeuralNDCG and its transpose differ significantly in {share(len(told), len(data))} "
        "comparisons" + (f": {'; '.join(which)}" if which else "")
    )


def table_sinkhorn(evidence: Evidence, pairs: str) -> TableResult:
    """What training gains from Sinkhorn scaling, per number of rounds."""
    run = evidence.only_run(pairs)
    frame = candidates(run)
    entries, sections = [], []
    for form, title in FORMS.items():
        by_rounds = frame[frame["form"] == form].pivot(
            index="trial", columns="rounds", values="vali"
        )
        if PAPER_ROUNDS not in by_rounds:
            raise DataError(
                f"no candidate has the paper's {PAPER_ROUNDS} rounds",
                f"add {PAPER_ROUNDS} to loss.iterations",
                file=run.result.folder,
            )
        lines = []
        for rounds in by_rounds:
            entry = evidence.about(run.dataset) | {"loss": title, "rounds": int(rounds)}
            entry |= over_trials(by_rounds[rounds].to_numpy())
            if rounds != PAPER_ROUNDS:
                gain = mean_interval((by_rounds[rounds] - by_rounds[PAPER_ROUNDS]).to_numpy())
                entry |= {"gain": gain.mean, "gain_half_width": gain.half_width}
            entries.append(entry)
            name = "no scaling" if rounds == 0 else _rounds(rounds)
            lines.append(
                [
                    name + (" (the paper's)" if rounds == PAPER_ROUNDS else ""),
                    measured(entry["mean"], entry["half_width"], 2),
                    difference(
                        entry.get("gain", math.nan), entry.get("gain_half_width", math.nan), 2
                    ),
                ]
            )
        sections.append(Section(title, lines))
    data = pd.DataFrame(entries)
    caption = (
        "Effect of Sinkhorn scaling on training: NDCG@5 in per cent on the validation set after "
        f"the last epoch, the mean over {spread(data['trials'].tolist(), 'trial')} ± the half "
        f"width of its 95% interval, and the paired difference from {PAPER_ROUNDS} rounds (same "
        "random weights, batches and dropout). Queries without a relevant document are left out. "
        f"{evidence.sources([run], 'validation set', 'vali')}"
    )
    columns = ["Maximum rounds", "NDCG@5", f"gain over {PAPER_ROUNDS} rounds"]
    gains = data.dropna(subset="gain")
    told = gains[gains["gain"].abs() > gains["gain_half_width"]]
    parts = [
        f"{row.loss} with {_rounds(row.rounds)} {difference(row.gain, row.gain_half_width, 2)}"
        for row in told.itertuples()
    ]
    start = lead(
        f"{share(len(told), len(gains))} differences from the paper's {PAPER_ROUNDS} rounds have "
        "an interval that excludes zero" + (f": {'; '.join(parts)}" if parts else "")
    )
    return TableResult(data, Layout(start, caption, columns, sections))


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def _gap(value: float | None) -> str:
    return "" if value is None else minus(f"{value:.1e}")
