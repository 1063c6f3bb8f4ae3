"""What the losses of Pobrotyn2021's Table 3 cost in training."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from directrank.papers.pobrotyn2021.methods import PARTS, methods_of, printed_name
from directrank.papers.shared.evidence import Evidence, PlannedRun, data_sentence, here
from directrank.papers.shared.leads import lead
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.system.errors import DataError


def table_time(evidence: Evidence) -> TableResult:
    """What an epoch of each loss takes; measured times."""
    entries, times, sections, sentences, slowest = [], [], [], [], []
    for experiment, (title, _) in PARTS.items():
        methods = {
            name: method.runs[0]
            for name, method in methods_of(evidence, experiment).items()
            if "loss" in method.runs[0].result.spec
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
        place = here(title, first.dataset.kind, first.dataset.title)
        own = {row["method"]: row["seconds_per_epoch"] for row in times[-len(methods) :]}
        slow, fast = max(own, key=own.__getitem__), min(own, key=own.__getitem__)
        slowest.append(
            f"on {place}, an epoch of {printed_name(slow)} takes {own[slow] / own[fast]:.1f} times "
            f"as long as one of {printed_name(fast)}"
        )
        sections.append(Section(place, lines))
        sentences.append(data_sentence([first], "test", "test set"))
    if not entries:
        raise DataError("no loss of Table 3 was trained", f"add runs to {' or '.join(PARTS)}")
    caption = (
        "The training cost of the losses of Table 3: the median seconds per epoch of one model, "
        "including validation, and the time per step, as the runs measured them while the machine "
        "did other work. The last column is relative to the fastest loss. Times are measured and "
        "differ from run to run. Runs do not record the memory of a step; "
        "benchmarks/results/losses.md has that of each loss. "
        f"{' '.join(sentences)} Edition {evidence.edition}."
    )
    columns = ["Loss", "steps per epoch", "s per epoch", "ms per step", "relative"]
    layout = Layout(lead(*slowest), caption, columns, sections)
    return TableResult(pd.DataFrame(entries), layout, pd.DataFrame(times))


def _epochs(evidence: Evidence, method: str, run: PlannedRun) -> tuple[dict[str, Any], float]:
    """What a loss's epochs are, and the median of their seconds."""
    queries = run.result.record["data"]["splits"]["train"]["queries"]
    history = run.result.history
    entry = evidence.about(run.dataset) | {
        "method": method,
        "queries": queries,
        "steps_per_epoch": math.ceil(queries / run.result.spec["training"]["batch_queries"]),
        "epochs_measured": len(history),
        "n_parameters": int(run.result.fits["n_parameters"].iloc[0]),
    }
    return entry, float(history["seconds"].median())
