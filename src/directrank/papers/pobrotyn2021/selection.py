"""The choice of smoothness, which Pobrotyn2021 made on the test set (section 5.4).

NDCG is in per cent; intervals are Student's t at 95 % over the trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from directrank.papers.pobrotyn2021.methods import ndcg
from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import Evidence, data_sentence
from directrank.papers.shared.format import signed, spread
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import Method
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.stats.intervals import mean_interval
from directrank.system.errors import DataError

#: Experiment → (loss, its setting, symbol).
SMOOTHNESS = {
    "alpha_web30k": ("ApproxNDCG", "loss.alpha", "α"),
    "tau_web30k": ("NeuralNDCG@max", "loss.tau", "τ"),
}

#: The paper's choice of either (section 5.4).
PAPER_VALUE = 1.0


def table_selection(evidence: Evidence) -> TableResult:
    """α and τ chosen on validation, beside the paper's choice on test."""
    entries, sections, promises, sentences = [], [], [], []
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
        lines = []
        common = evidence.about(runs[0].dataset) | {"loss": loss, "setting": symbol}
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
                    measured(entry["vali"], entry["vali_half_width"], 2),
                    measured(entry["test"], entry["test_half_width"], 2),
                    *(
                        "" if name not in entry else f"{entry[name]:.0%}"
                        for name in ("chosen_on_vali", "chosen_on_test")
                    ),
                ]
            )
        sections.append(Section(loss, lines))
        promises.append(_optimism(loss, symbol, level, chosen))
        sentences.append(data_sentence(runs, "test", "test set"))
    if not entries:
        raise DataError("nothing was run", f"add runs to {' or '.join(SMOOTHNESS)}")
    first = next(some for name in SMOOTHNESS if (some := evidence.runs(name)))
    caption = (
        "Smoothness chosen on the validation set, as it should be, and on the test set, as in the "
        "paper (section 5.4): NDCG@5 in per cent of the last epoch's model, the mean over "
        f"{spread([run.n_trials for run in first], 'trial')} ± the half width of its 95% interval. "
        "A query without a relevant document counts as 1. The last columns give the share of the "
        f"trials in which a value was the best. {sentences[0]} Edition {evidence.edition}."
    )
    columns = ["Smoothness", "validation", "test", "best on validation", "best on test"]
    layout = Layout(lead(*promises), caption, columns, sections)
    return TableResult(pd.DataFrame(entries), layout)


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
