"""How much of the gain is the context-aware ranker's of Pobrotyn2021, and how much the loss's.

NDCG is in per cent; intervals are Welch's at 95 % over the trials.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from directrank.papers.pobrotyn2021.methods import (
    CUTOFFS,
    OWN,
    methods_of,
    ndcg,
    printed_name,
)
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.findings import welch_over_trials
from directrank.papers.shared.format import headings, share, signed, spread
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import Method
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.stats.intervals import mean_interval
from directrank.system.errors import DataError

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
    return TableResult(data, Layout(_lead(data), caption, columns, sections))


def _lead(data: pd.DataFrame) -> str:
    """What the ranker gains in the mean over the losses, and for how many significantly."""
    parts = []
    for metric, part in data.groupby("metric", sort=False):
        sure = int((part["gain"].abs() > part["gain_half_width"]).sum())
        parts.append(
            f"the ranker changes {metric} by {signed(part['gain'].mean(), 2)} points on average "
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
