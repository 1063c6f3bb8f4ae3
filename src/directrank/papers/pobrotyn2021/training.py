"""What Pobrotyn2021 does not show of training, such as smoothness and networks, and a claim on it.

NDCG is in per cent; intervals over the trials are Student's t at 95 %, and those of differences
between runs Welch's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from directrank.papers.pobrotyn2021.accuracy import (
    CUTOFFS,
    OWN,
    methods_of,
    metric,
    ndcg,
    printed_name,
)
from directrank.papers.shared import findings
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.evidence import Evidence, FinishedRun, data_sentence
from directrank.papers.shared.findings import (
    NOT_MORE,
    Finding,
    Outcome,
    welch_over_trials,
)
from directrank.papers.shared.format import headings, minus, number, share, signed, spread
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import Method, by_method, over_trials
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Cells, Section, TableLayout, sections_of
from directrank.stats.estimates import mean_interval
from directrank.system.errors import DataError

#: Experiment → (loss, its setting, symbol).
SMOOTHNESS = {
    "alpha_web30k": ("ApproxNDCG", "loss.alpha", "α"),
    "tau_web30k": ("NeuralNDCG@max", "loss.tau", "τ"),
}

#: The paper's choice of either (section 5.4).
PAPER_VALUE = 1.0


def _share(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.0%}"


def _value_tried(row: Mapping[str, Any]) -> str:
    paper = row["row"] == f"{row['setting']} = {PAPER_VALUE:g}"
    return row["row"] + (" (the paper's)" if paper else "")


SELECTION: Cells = {
    "Smoothness": _value_tried,
    "validation": lambda row: measured(row["vali"], row["vali_half_width"], 2),
    "test": lambda row: measured(row["test"], row["test_half_width"], 2),
    "best on validation": lambda row: _share(row["chosen_on_vali"]),
    "best on test": lambda row: _share(row["chosen_on_test"]),
}


def table_selection(evidence: Evidence) -> TableResult:
    """α and τ chosen on validation, beside the paper's choice on test."""
    entries, promises, sentences = [], [], []
    for experiment, (loss, setting, symbol) in SMOOTHNESS.items():
        runs = sorted(evidence.runs(experiment), key=lambda run: run.setting(setting))
        if not runs:
            continue
        values = [float(run.setting(setting)) for run in runs]
        tried = [Method(loss, [run], "one") for run in runs]
        level = {
            split: np.stack([ndcg(method, 5, split) for method in tried])
            for split in ("vali", "test")
        }
        chosen = {split: level[split].argmax(0) for split in level}
        trials = np.arange(level["test"].shape[1])
        common = evidence.about(runs[0].dataset) | {"loss": loss, "setting": symbol}
        for place, value in enumerate(values):
            shares = {split: float((chosen[split] == place).mean()) for split in chosen}
            entries.append(
                common
                | _levels(f"{symbol} = {value:g}", level["vali"][place], level["test"][place])
                | {"chosen_on_vali": shares["vali"], "chosen_on_test": shares["test"]}
            )
        for split, part in (("vali", "validation"), ("test", "test")):
            best = [level[name][chosen[split], trials] for name in ("vali", "test")]
            entries.append(common | _levels(f"chosen on {part}, per trial", *best))
        promises.append(_optimism(loss, symbol, level, chosen))
        sentences.append(data_sentence(runs, "test", "test set"))
    first = next(some for name in SMOOTHNESS if (some := evidence.runs(name)))
    caption = (
        "Smoothness chosen on the validation set, as it should be, and on the test set, as in the "
        "paper (section 5.4): NDCG@5 in per cent of the last epoch's model, the mean over "
        f"{spread([run.n_trials for run in first], 'trial')} ± the half width of its 95% interval. "
        "A query without a relevant document counts as 1. The last columns give the share of the "
        f"trials in which a value was the best. {sentences[0]} Edition {evidence.edition}."
    )
    data = pd.DataFrame(entries)
    sections = sections_of(data, SELECTION, "loss")
    return TableResult(data, TableLayout(lead(*promises), caption, [*SELECTION], sections))


def _levels(row: str, vali: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    entry: dict[str, Any] = {"row": row, "trials": len(test)}
    for name, values in (("vali", vali), ("test", test)):
        over_trials = mean_interval(values)
        entry |= {name: over_trials.mean, f"{name}_half_width": over_trials.half_width}
    return entry


def _optimism(
    loss: str, symbol: str, level: Mapping[str, np.ndarray], chosen: Mapping[str, np.ndarray]
) -> str:
    """By how much the choice on the test set is better there than the choice on validation."""
    trials = np.arange(level["test"].shape[1])
    on = {split: level["test"][chosen[split], trials] for split in chosen}
    gain = signed(float((on["test"] - on["vali"]).mean()), 2)
    return (
        f"choosing {symbol} on the test set instead of validation changes the test NDCG@5 of "
        f"{loss} by {gain} points"
    )


PLAIN = "neural_ndcg"
TRANSPOSED = "neural_ndcg_transposed"
FORMS = {PLAIN: "NeuralNDCG", TRANSPOSED: "NeuralNDCGᵀ"}

#: Rounds of Sinkhorn scaling in the paper (footnote 2).
PAPER_ROUNDS = 30


def candidates(run: FinishedRun) -> pd.DataFrame:
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


def _gap(value: float) -> str:
    return "" if math.isnan(value) else minus(f"{value:.1e}")


TRANSPOSE: Cells = {
    "NeuralNDCG − NeuralNDCGᵀ": lambda row: f"{row['comparison']}, {row['metric']}",
    "difference": lambda row: difference(row["difference"], row["half_width"], 2),
    "mean |difference|": lambda row: number(row["mean_absolute"], 2),
    "SD over seeds": lambda row: number(row["seed_deviation"], 2),
    "loss, 1st epoch": lambda row: _gap(row["first_epoch_loss_gap"]),
    "loss, last epoch": lambda row: _gap(row["last_epoch_loss_gap"]),
    "trials": lambda row: str(row["trials"]),
}


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
    sections = sections_of(data, TRANSPOSE)
    return TableResult(data, TableLayout(_transpose_lead(data), caption, [*TRANSPOSE], sections))


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


def _transpose_lead(data: pd.DataFrame) -> str:
    """In how many comparisons the two losses differ significantly, and in which."""
    told = data[data["difference"].abs() > data["half_width"]]
    which = [f"{row.comparison}, {row.metric}" for row in told.itertuples()]
    return lead(
        f"NeuralNDCG and its transpose differ significantly in {share(len(told), len(data))} "
        "comparisons" + (f": {'; '.join(which)}" if which else "")
    )


def _rounds_tried(row: Mapping[str, Any]) -> str:
    name = _rounds(row["rounds"]) if row["rounds"] else "no scaling"
    return name + (" (the paper's)" if row["rounds"] == PAPER_ROUNDS else "")


SINKHORN: Cells = {
    "Maximum rounds": _rounds_tried,
    "NDCG@5": lambda row: measured(row["mean"], row["half_width"], 2),
    f"gain over {PAPER_ROUNDS} rounds": lambda row: difference(
        row["gain"], row["gain_half_width"], 2
    ),
}


def table_sinkhorn(evidence: Evidence, pairs: str) -> TableResult:
    """What training gains from Sinkhorn scaling, per number of rounds."""
    run = evidence.only_run(pairs)
    frame = candidates(run)
    entries = []
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
        for rounds in by_rounds:
            entry = evidence.about(run.dataset) | {"loss": title, "rounds": int(rounds)}
            entry |= over_trials(by_rounds[rounds].to_numpy())
            if rounds != PAPER_ROUNDS:
                gain = mean_interval((by_rounds[rounds] - by_rounds[PAPER_ROUNDS]).to_numpy())
                entry |= {"gain": gain.mean, "gain_half_width": gain.half_width}
            entries.append(entry)
    data = pd.DataFrame(entries)
    caption = (
        "Effect of Sinkhorn scaling on training: NDCG@5 in per cent on the validation set after "
        f"the last epoch, the mean over {spread(data['trials'].tolist(), 'trial')} ± the half "
        f"width of its 95% interval, and the paired difference from {PAPER_ROUNDS} rounds (same "
        "random weights, batches and dropout). Queries without a relevant document are left out. "
        f"{evidence.sources([run], 'validation set', 'vali')}"
    )
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
    sections = sections_of(data, SINKHORN, "loss")
    return TableResult(data, TableLayout(start, caption, [*SINKHORN], sections))


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


#: What explains the variance of the means of losses and networks, the standard deviation over
#: trials, and what the NeuralNDCG losses gain over the others with either network.
VARIANCE_COLUMNS = (
    *("Metric", "network", "loss", "interaction", "SD over trials"),
    *("NeuralNDCG − others, plain", "the same, ranker"),
)


def table_network(evidence: Evidence) -> TableResult:
    """The same losses with two networks: what the ranker gains, and what the loss does."""
    ranker = methods_of(evidence, "table3_web30k")
    plain = methods_of(evidence, "plain_web30k")
    # Trees have no network: their runs are the same in both experiments.
    shared = [
        name for name in ranker if name in plain and "loss" in ranker[name].runs[0].result.spec
    ]
    if not shared:
        raise DataError("no loss was trained with both networks", "add runs to plain_web30k")
    entries, lines = [], []
    for method in shared:
        cells = [printed_name(method)]
        for cutoff in CUTOFFS:
            a, b = (ndcg(methods[method], cutoff) for methods in (ranker, plain))
            test = welch_over_trials(a, b)
            gain = test.estimate.interval()
            entries.append(
                evidence.about(ranker[method].dataset)
                | {
                    "method": method,
                    "metric": f"NDCG@{cutoff}",
                    "plain": float(b.mean()),
                    "plain_half_width": mean_interval(b).half_width,
                    "ranker": float(a.mean()),
                    "ranker_half_width": mean_interval(a).half_width,
                    "gain": gain.mean,
                    "gain_half_width": gain.half_width,
                    "p_value": test.p_value,
                    "trials": gain.n,
                }
            )
            cells += [
                measured(entries[-1]["plain"], entries[-1]["plain_half_width"], 2),
                measured(entries[-1]["ranker"], entries[-1]["ranker_half_width"], 2),
                difference(gain.mean, gain.half_width, 2),
            ]
        lines.append(cells)
    data = pd.DataFrame(entries)
    plains = (f"NDCG@{cutoff}, plain" for cutoff in CUTOFFS)
    columns = headings("Loss", plains, "ranker", "gain")
    runs = ranker[shared[0]].runs
    caption = (
        "The same losses with the plain network of Bruch2019 and with the context-aware ranker: "
        f"test NDCG in per cent, the mean over {spread(data['trials'].tolist(), 'trial')} ± the "
        "half width of its 95% t interval, and the gain of the ranker ± the half width of its 95% "
        "Welch interval. A query without a relevant document counts as 1. The lower part has the "
        "shares of the network, the loss and their interaction in the variance of the means, and "
        "by how many points the mean of the NeuralNDCG losses is above that of the others. "
        f"{evidence.sources(runs)}"
    )
    parts = [_variance(f"NDCG@{cutoff}", shared, ranker, plain, cutoff) for cutoff in CUTOFFS]
    sections = [
        Section("", lines),
        Section("Variance of the means", parts, VARIANCE_COLUMNS),
    ]
    return TableResult(data, TableLayout(_network_lead(data), caption, columns, sections))


def _network_lead(data: pd.DataFrame) -> str:
    """What the ranker gains in the mean over the losses, and for how many significantly."""
    parts = []
    for name, part in data.groupby("metric", sort=False):
        sure = int((part["gain"].abs() > part["gain_half_width"]).sum())
        parts.append(
            f"the ranker changes {name} by {signed(part['gain'].mean(), 2)} points on average "
            f"over the losses; {share(sure, len(part))} intervals exclude zero"
        )
    return lead(*parts)


def _variance(
    metric: str,
    methods: Sequence[str],
    ranker: Mapping[str, Method],
    plain: Mapping[str, Method],
    cutoff: int,
) -> list[str]:
    """A two-way analysis of variance: the cells of :data:`VARIANCE_COLUMNS`."""
    cells = [[ndcg(runs[method], cutoff) for method in methods] for runs in (plain, ranker)]
    level = np.array([[cell.mean() for cell in row] for row in cells])
    by_network = level.mean(1) - level.mean()
    by_loss = level.mean(0) - level.mean()
    rest = level - level.mean() - by_network[:, None] - by_loss[None]
    parts = (len(methods) * (by_network**2).sum(), 2 * (by_loss**2).sum(), (rest**2).sum())
    chance = math.sqrt(float(np.mean([cell.var(ddof=1) for row in cells for cell in row])))
    own = np.isin(methods, OWN)
    leads = ["", ""]
    if 0 < own.sum() < len(methods):
        leads = [signed(row[own].mean() - row[~own].mean(), 2) for row in level]
    return [metric, *(f"{part / sum(parts):.0%}" for part in parts), f"{chance:.2f}", *leads]


def claim_smoothness(evidence: Evidence) -> Outcome | None:
    """No α of ApproxNDCG and no τ of NeuralNDCG other than 1 does better on the test set (D14)."""
    of_all, missing = [], []
    for experiment, (loss, setting, symbol) in SMOOTHNESS.items():
        tried = by_method(
            evidence.runs(experiment), "one", setting=setting, name=f"{symbol} = {{:g}}"
        )
        paper = tried.pop(f"{symbol} = {PAPER_VALUE:g}", None)
        if paper is None or not tried:
            missing.append(f"{loss} at several {symbol}")
            continue
        for other in tried.values():
            of_all += [_smoothness(loss, other, paper, cutoff) for cutoff in CUTOFFS]
    return Outcome(of_all, missing)


def _smoothness(loss: str, other: Method, paper: Method, cutoff: int) -> Finding:
    names = metric(cutoff), f"NDCG@{cutoff}"
    found = findings.difference(other, paper, *names, NOT_MORE, "NDCG (%)")
    return replace(found, comparison=f"{loss}, {found.comparison}")
