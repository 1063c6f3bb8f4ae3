"""What Pobrotyn2021 does not show of training: the transpose, Sinkhorn scaling, the choice of
smoothness, the share of the ranker in the gain, and what each loss costs.

NDCG is in per cent; intervals are Student's t at 95 % over the trials.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from directrank.errors import DataError
from directrank.papers.claims import difference_over_trials
from directrank.papers.evidence import Evidence, PlannedRun, data_sentence, spread
from directrank.papers.pobrotyn2021_table3 import (
    CUTOFFS,
    OWN,
    PARTS,
    by_method,
    ndcg,
    printed_name,
)
from directrank.papers.product import TableResult
from directrank.papers.tables import Layout, Section
from directrank.stats.intervals import mean_interval

#: What a reader of a table on stand-ins must know.
STANDIN = "The data are a generated stand-in: differences may be compared, levels may not."

PLAIN = "neural_ndcg"
TRANSPOSED = "neural_ndcg_transposed"
FORMS = {PLAIN: "NeuralNDCG", TRANSPOSED: "NeuralNDCGᵀ"}

#: Rounds of Sinkhorn scaling in the paper (footnote 2).
PAPER_ROUNDS = 30


def candidates(run: PlannedRun) -> pd.DataFrame:
    """One row per trial, form and number of rounds of a run that tunes over both.

    Columns ``trial``, ``form``, ``rounds``, ``vali`` (NDCG in per cent on the validation part,
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
    found = fits.merge(losses, on=["trial", "candidate"])
    found["vali"] *= 100
    return found[["trial", "form", "rounds", "vali", "first_loss", "last_loss"]]


def table_transpose(evidence: Evidence, pairs: str, rows: str | None) -> TableResult:
    """Whether NeuralNDCG and its transpose differ by more than chance.

    Args:
        evidence: of the product.
        pairs: the experiment whose candidates share random streams.
        rows: the experiment of Table 3 whose rows are set side by side; None for none.
    """
    run = _only(evidence, pairs)
    wide = candidates(run).pivot(index=["rounds", "trial"], columns="form")
    entries = []
    for rounds, part in wide.groupby(level="rounds"):
        difference = (part["vali", PLAIN] - part["vali", TRANSPOSED]).to_numpy()
        loss = {
            name: float((part[name, PLAIN] - part[name, TRANSPOSED]).abs().max())
            for name in ("first_loss", "last_loss")
        }
        interval = mean_interval(difference)
        entries.append(
            _about(evidence, run)
            | {
                "comparison": _rounds(rounds),
                "how": "same weights, batches and dropout",
                "metric": "validation NDCG@5",
                "difference": interval.mean,
                "half_width": interval.half_width,
                "mean_absolute": float(np.abs(difference).mean()),
                "seed_deviation": _deviation(part["vali", PLAIN].to_numpy()),
                "first_epoch_loss_gap": round(loss["first_loss"], 9),
                "last_epoch_loss_gap": round(loss["last_loss"], 9),
                "trials": interval.n,
            }
        )
    if rows is not None:
        entries += _row_differences(evidence, rows)
    data = pd.DataFrame(entries)
    lines = [
        [
            f"{entry['comparison']}, {entry['metric']}",
            _signed(entry["difference"], entry["half_width"]),
            _number(entry["mean_absolute"]),
            _number(entry["seed_deviation"]),
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
    sources = data_sentence([run], "vali", "validation part")
    caption = (
        "Difference of NeuralNDCG and its transpose in NDCG points, with its 95% interval. With so "
        "many rounds of Sinkhorn scaling: both trained from the same random weights on the same "
        "batches with the same dropout, so that they differ in the loss alone (queries without a "
        "relevant document left out). “loss” is the largest difference of the training loss in "
        "the first and the last epoch, of any trial. SD over seeds: standard deviation of "
        "NeuralNDCG over its trials. The losses are one function without scaling and once it has "
        "converged. "
    )
    if rows is not None:
        caption += (
            "The lines of Table 3 compare its rows on the test part, where every run has random "
            "streams of its own (queries without a relevant document count as 1). "
        )
    caption += (
        f"Intervals are not corrected for their number. {sources} Edition {evidence.edition}."
    )
    notes = [_transpose_verdict(data), *_standin(run)]
    return TableResult(data, Layout(caption, columns, [Section("", lines)], notes))


def _row_differences(evidence: Evidence, experiment: str) -> list[dict[str, Any]]:
    methods = by_method(evidence.runs(experiment))
    entries = []
    for at in ("5", "10", "max"):
        plain, transposed = f"NeuralNDCG@{at}", f"NeuralNDCG^T@{at}"
        if not {plain, transposed} <= set(methods):
            continue
        for cutoff in CUTOFFS:
            a, b = (ndcg(methods[name], "test", cutoff) for name in (plain, transposed))
            difference, low, high, _ = difference_over_trials(a, b)
            entries.append(
                _about(evidence, methods[plain][0])
                | {
                    "comparison": f"Table 3, losses @{at}",
                    "how": "rows of Table 3, own random streams",
                    "metric": f"test NDCG@{cutoff}",
                    "difference": difference,
                    "half_width": (high - low) / 2,
                    "mean_absolute": math.nan,
                    "seed_deviation": _deviation(a),
                    "trials": min(len(a), len(b)),
                }
            )
    return entries


def _transpose_verdict(data: pd.DataFrame) -> str:
    told = data[(data["difference"].abs() > data["half_width"])]
    text = f"**Do the two losses differ?** In {len(told)} of {len(data)} comparisons the interval "
    text += "leaves zero out"
    text += f" ({', '.join(_distinct(told))})" if len(told) else ""
    paired = data[data["how"].str.startswith("same")]
    ratio = paired["mean_absolute"] / paired["seed_deviation"]
    parts = [
        f"{name}: {value:.2f}" for name, value in zip(paired["comparison"], ratio, strict=True)
    ]
    return (
        f"{text}. With all else equal, the mean distance of the two in standard deviations over "
        f"seeds is, by rounds of scaling, {'; '.join(parts)}. What is left where the losses are "
        "one function is rounding that training magnifies."
    )


def _distinct(rows: pd.DataFrame) -> list[str]:
    return [f"{row.comparison}, {row.metric}" for row in rows.itertuples()]


def table_sinkhorn(evidence: Evidence, pairs: str) -> TableResult:
    """What training gains from Sinkhorn scaling, per number of rounds."""
    run = _only(evidence, pairs)
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
            level = mean_interval(by_rounds[rounds].to_numpy())
            entry = _about(evidence, run) | {
                "loss": title,
                "rounds": int(rounds),
                "mean": level.mean,
                "half_width": level.half_width,
                "trials": level.n,
            }
            if rounds != PAPER_ROUNDS:
                gain = mean_interval((by_rounds[rounds] - by_rounds[PAPER_ROUNDS]).to_numpy())
                entry |= {"gain": gain.mean, "gain_half_width": gain.half_width}
            entries.append(entry)
            name = "no scaling" if rounds == 0 else _rounds(rounds)
            lines.append(
                [
                    name + (" (the paper's)" if rounds == PAPER_ROUNDS else ""),
                    f"{level.mean:.2f} (±{level.half_width:.2f})",
                    _signed(entry.get("gain", math.nan), entry.get("gain_half_width", math.nan)),
                ]
            )
        sections.append(Section(title, lines))
    data = pd.DataFrame(entries)
    caption = (
        "Effect of Sinkhorn scaling on training: NDCG@5 in per cent on the validation part after "
        f"the last epoch, mean over {spread(data['trials'].tolist(), 'trial')} with its 95% "
        f"interval, and the paired difference from {PAPER_ROUNDS} rounds (same random weights, "
        "batches and dropout). Queries without a relevant document are left out. "
        f"{data_sentence([run], 'vali', 'validation part')} Edition {evidence.edition}."
    )
    columns = ["Rounds at most", "NDCG@5", f"gain over {PAPER_ROUNDS} rounds"]
    gains = data.dropna(subset="gain")
    told = gains[gains["gain"].abs() > gains["gain_half_width"]]
    parts = [
        f"{row.loss} with {_rounds(row.rounds)} {_signed(row.gain, row.gain_half_width)}"
        for row in told.itertuples()
    ]
    verdict = (
        f"**Does scaling matter to training?** {len(told)} of {len(gains)} differences from the "
        f"paper's {PAPER_ROUNDS} rounds have an interval that leaves zero out"
        + (f": {'; '.join(parts)}." if parts else ".")
    )
    return TableResult(data, Layout(caption, columns, sections, [verdict, *_standin(run)]))


#: Experiment → (loss, its setting, symbol).
SMOOTHNESS = {
    "alpha_web30k": ("ApproxNDCG", "loss.alpha", "α"),
    "tau_web30k": ("NeuralNDCG@max", "loss.tau", "τ"),
}

#: The paper's choice of either (section 5.4).
PAPER_VALUE = 1.0


def table_selection(evidence: Evidence) -> TableResult:
    """α and τ chosen on validation, beside the paper's choice on test."""
    entries, sections, notes, sentences = [], [], [], []
    for experiment, (loss, setting, symbol) in SMOOTHNESS.items():
        runs = sorted(evidence.runs(experiment), key=lambda run: run.setting(setting))
        if not runs:
            continue
        values = [float(run.setting(setting)) for run in runs]
        level = {
            split: np.stack([ndcg([run], split, 5) for run in runs]) for split in ("vali", "test")
        }
        chosen = {split: level[split].argmax(0) for split in level}
        trials = np.arange(level["test"].shape[1])
        lines = []
        common = _about(evidence, runs[0]) | {"loss": loss, "setting": symbol}
        for number, value in enumerate(values):
            shares = {split: float((chosen[split] == number).mean()) for split in chosen}
            entries.append(
                common
                | _levels(f"{symbol} = {value:g}", level["vali"][number], level["test"][number])
                | {"chosen_on_vali": shares["vali"], "chosen_on_test": shares["test"]}
            )
        for split, part in (("vali", "validation"), ("test", "test")):
            best = [level[name][chosen[split], trials] for name in ("vali", "test")]
            entries.append(common | _levels(f"chosen on {part}, per trial", *best))
        for entry in entries[-len(values) - 2 :]:
            paper = entry["row"] == f"{symbol} = {PAPER_VALUE:g}"
            lines.append(
                [
                    entry["row"] + (" (the paper's)" if paper else ""),
                    f"{entry['vali']:.2f} (±{entry['vali_half_width']:.2f})",
                    f"{entry['test']:.2f} (±{entry['test_half_width']:.2f})",
                    *(
                        "" if name not in entry else f"{entry[name]:.0%}"
                        for name in ("chosen_on_vali", "chosen_on_test")
                    ),
                ]
            )
        sections.append(Section(loss, lines))
        notes.append(_optimism(loss, symbol, values, level, chosen))
        sentences.append(data_sentence(runs, "test", "test part"))
    if not entries:
        raise DataError("nothing was run", f"add runs to {' or '.join(SMOOTHNESS)}")
    first = next(runs for name in SMOOTHNESS if (runs := evidence.runs(name)))
    caption = (
        "Smoothness chosen on the validation part, as it should be, and on the test part, as the "
        "paper says it did (section 5.4): NDCG@5 in per cent of the last epoch's model, mean over "
        f"{spread([run.n_trials for run in first], 'trial')} with its 95% interval; a query "
        "without a relevant document counts as 1. The last columns say in which share of the "
        f"trials a value was the best. {sentences[0]} Edition {evidence.edition}."
    )
    columns = ["", "validation", "test", "best on validation", "best on test"]
    layout = Layout(caption, columns, sections, [*notes, *_standin(first[0])])
    return TableResult(pd.DataFrame(entries), layout)


def _levels(row: str, vali: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    found: dict[str, Any] = {"row": row, "trials": len(test)}
    for name, values in (("vali", vali), ("test", test)):
        interval = mean_interval(values)
        found |= {name: interval.mean, f"{name}_half_width": interval.half_width}
    return found


def _optimism(
    loss: str,
    symbol: str,
    values: Sequence[float],
    level: Mapping[str, np.ndarray],
    chosen: Mapping[str, np.ndarray],
) -> str:
    trials = np.arange(level["test"].shape[1])
    on = {split: level["test"][chosen[split], trials] for split in chosen}
    text = (
        f"**{loss}.** Choosing {symbol} on the test part promises "
        f"{float((on['test'] - on['vali']).mean()):.2f} points more than choosing it on validation."
    )
    best = values[int(level["vali"].mean(1).argmax())]
    text += f" On validation {symbol} = {best:g} is the best in the mean"
    if PAPER_VALUE not in values:
        return text + "."
    paper = level["test"][values.index(PAPER_VALUE)]
    gain = mean_interval(on["vali"] - paper)
    return (
        f"{text}; the choice per trial is {_signed(gain.mean, gain.half_width)} points from the "
        f"paper's {symbol} = {PAPER_VALUE:g} on the test part."
    )


def table_network(evidence: Evidence) -> TableResult:
    """The same losses with two networks: what the ranker gains, and what the loss does."""
    ranker = by_method(evidence.runs("table3_web30k"))
    plain = by_method(evidence.runs("plain_web30k"))
    # Trees have no network: their runs are the same in both experiments.
    shared = [name for name in ranker if name in plain and "loss" in ranker[name][0].result.spec]
    if not shared:
        raise DataError("no loss was trained with both networks", "add runs to plain_web30k")
    entries, lines = [], []
    for method in shared:
        cells = [printed_name(method)]
        for cutoff in CUTOFFS:
            a, b = (ndcg(runs[method], "test", cutoff) for runs in (ranker, plain))
            gain, low, high, p_value = difference_over_trials(a, b)
            entries.append(
                _about(evidence, ranker[method][0])
                | {
                    "method": method,
                    "metric": f"NDCG@{cutoff}",
                    "plain": float(b.mean()),
                    "plain_half_width": mean_interval(b).half_width,
                    "ranker": float(a.mean()),
                    "ranker_half_width": mean_interval(a).half_width,
                    "gain": gain,
                    "gain_half_width": (high - low) / 2,
                    "p_value": p_value,
                    "trials": min(len(a), len(b)),
                }
            )
            cells += [
                f"{b.mean():.2f}",
                f"{a.mean():.2f}",
                _signed(gain, (high - low) / 2),
            ]
        lines.append(cells)
    data = pd.DataFrame(entries)
    columns = ["Loss"]
    for cutoff in CUTOFFS:
        columns += [f"NDCG@{cutoff}, plain", "ranker", "gain"]
    runs = ranker[shared[0]]
    caption = (
        "The same losses with the plain network of Bruch2019 and with the context-aware ranker: "
        f"test NDCG in per cent, mean over {spread(data['trials'].tolist(), 'trial')}, and what "
        "the ranker gains with its 95% Welch interval; a query without a relevant document counts "
        f"as 1. {data_sentence(runs, 'test', 'test part')} Edition {evidence.edition}."
    )
    notes = [_decomposition(f"NDCG@{cutoff}", shared, ranker, plain, cutoff) for cutoff in CUTOFFS]
    layout = Layout(caption, columns, [Section("", lines)], [*notes, *_standin(runs[0])])
    return TableResult(data, layout)


def _decomposition(
    metric: str,
    methods: Sequence[str],
    ranker: Mapping[str, Sequence[PlannedRun]],
    plain: Mapping[str, Sequence[PlannedRun]],
    cutoff: int,
) -> str:
    """A two-way analysis of variance in words: network, loss, their interaction, chance."""
    cells = [[ndcg(runs[method], "test", cutoff) for method in methods] for runs in (plain, ranker)]
    level = np.array([[cell.mean() for cell in row] for row in cells])
    by_network = level.mean(1) - level.mean()
    by_loss = level.mean(0) - level.mean()
    rest = level - level.mean() - by_network[:, None] - by_loss[None]
    parts = {
        "the network": len(methods) * float((by_network**2).sum()),
        "the loss": 2 * float((by_loss**2).sum()),
        "what only their combination explains": float((rest**2).sum()),
    }
    total = sum(parts.values())
    shares = ", ".join(f"{name} {value / total:.0%}" for name, value in parts.items())
    chance = math.sqrt(float(np.mean([cell.var(ddof=1) for row in cells for cell in row])))
    own = [number for number, method in enumerate(methods) if method in OWN]
    text = (
        f"**{metric}.** In the mean over the losses the ranker gains "
        f"{_points(level[1].mean() - level[0].mean())} points; over both networks the losses range "
        f"over {by_loss.max() - by_loss.min():.2f}. Of the variance of the {level.size} means "
        f"{shares}; one trial scatters by {chance:.2f}."
    )
    if own and len(own) < len(methods):
        rest_of = [number for number in range(len(methods)) if number not in own]
        lead = level[:, own].mean(1) - level[:, rest_of].mean(1)
        text += (
            f" The NeuralNDCG losses are {_points(lead[0])} points from the mean of the others "
            f"with the plain network and {_points(lead[1])} with the ranker."
        )
    return text


def table_time(evidence: Evidence) -> TableResult:
    """What an epoch of each loss takes; measured times."""
    entries, times, sections, sentences = [], [], [], []
    for experiment, (title, _) in PARTS.items():
        methods = {
            name: run
            for name, (run, *_) in by_method(evidence.runs(experiment)).items()
            if "loss" in run.result.spec
        }
        if not methods:
            continue
        fastest = min(float(run.result.history["seconds"].median()) for run in methods.values())
        lines = []
        for method, run in methods.items():
            entry, seconds = _epochs(evidence, method, run)
            per_step = seconds / entry["steps_per_epoch"]
            entries.append(entry | {"paper_dataset": title})
            times.append(
                {
                    "dataset": run.dataset.title,
                    "method": method,
                    "seconds_per_epoch": seconds,
                    "seconds_per_step": per_step,
                }
            )
            lines.append(
                [
                    printed_name(method),
                    str(entry["steps_per_epoch"]),
                    f"{seconds:.3f}",
                    f"{1e3 * per_step:.1f}",
                    f"{seconds / fastest:.2f}",
                ]
            )
        first = next(iter(methods.values()))
        kind = "" if first.dataset.origin == "real" else f" (here: {first.dataset.kind})"
        sections.append(Section(title + kind, lines))
        sentences.append(data_sentence([first], "test", "test part"))
    if not entries:
        raise DataError("no loss of Table 3 was trained", f"add runs to {' or '.join(PARTS)}")
    caption = (
        "What the losses of Table 3 cost in training: median seconds per epoch of one model, "
        "validation included, and per step, as the runs measured them beside other work of the "
        "machine; the last column is relative to the fastest loss. Times are measured and differ "
        f"from run to run. {' '.join(sentences)} Edition {evidence.edition}."
    )
    columns = ["Loss", "steps per epoch", "s per epoch", "ms per step", "relative"]
    layout = Layout(caption, columns, sections)
    return TableResult(pd.DataFrame(entries), layout, pd.DataFrame(times))


def _epochs(evidence: Evidence, method: str, run: PlannedRun) -> tuple[dict[str, Any], float]:
    """What a loss's epochs are, and the median of their seconds."""
    queries = run.result.record["data"]["splits"]["train"]["queries"]
    history = run.result.history
    entry = _about(evidence, run) | {
        "method": method,
        "queries": queries,
        "steps_per_epoch": math.ceil(queries / run.result.spec["training"]["batch_queries"]),
        "epochs_measured": len(history),
        "n_parameters": int(run.result.fits["n_parameters"].iloc[0]),
    }
    return entry, float(history["seconds"].median())


def _only(evidence: Evidence, experiment: str) -> PlannedRun:
    runs = evidence.runs(experiment)
    if len(runs) != 1:
        raise DataError(f"'{experiment}' has {len(runs)} runs", "it must be one run that tunes")
    return runs[0]


def _about(evidence: Evidence, run: PlannedRun) -> dict[str, Any]:
    return {
        "edition": evidence.edition,
        "dataset": run.dataset.title,
        "data": run.dataset.kind,
    }


def _standin(run: PlannedRun) -> list[str]:
    return [STANDIN] if run.dataset.standin else []


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def _points(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _signed(value: float, half_width: float) -> str:
    if math.isnan(value):
        return ""
    return _points(value) + ("" if math.isnan(half_width) else f" (±{half_width:.2f})")


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _gap(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}".replace("-", "−")
