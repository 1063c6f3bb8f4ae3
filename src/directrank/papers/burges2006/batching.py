"""Section 6.1 of Burges2006: V1 converges alike with an update per query and one per pair."""

from __future__ import annotations

import numpy as np
import pandas as pd

from directrank.papers.burges2006.ndcg import LEVELS, chosen, compare, over, protocol
from directrank.papers.burges2006.speed import NETS, TITLES, V1, V1_EACH
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import Method, by_method
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.stats.estimates import of_difference
from directrank.system.errors import DataError

#: Epochs that the table shows, and the last.
EPOCHS = (1, 2, 3, 5, 10, 20)

LEVEL = LEVELS[-1]


def table(evidence: Evidence, experiment: str) -> TableResult:
    """The best validation NDCG so far by epoch with both updates, and NDCG on the test set."""
    rows, sections, curves, on_test = [], [], [], []
    for net, title in NETS.items():
        runs = [run for run in evidence.runs(experiment) if run.setting("net") == net]
        methods = by_method(runs, "exclude", variant=net, suffix=f", {title} nets")
        if not {V1, V1_EACH} <= methods.keys():
            continue
        batch, each = methods[V1], methods[V1_EACH]
        curves += [batch, each]
        by_query, by_pair = best_so_far(batch), best_so_far(each)
        lines = []
        last = by_query.shape[1]
        for epoch in [*(epoch for epoch in EPOCHS if epoch < last), last]:
            a, b = by_query[:, epoch - 1], by_pair[:, epoch - 1]
            gap = of_difference(b, a)
            half_width = gap.interval().half_width
            rows.append(
                evidence.about(batch.dataset)
                | {
                    "net": net,
                    "epoch": epoch,
                    "per_query": float(a.mean()),
                    "per_pair": float(b.mean()),
                    "difference": gap.mean,
                    "half_width": half_width,
                    "trials": gap.n,
                }
            )
            means = (measured(float(a.mean())), measured(float(b.mean())))
            lines.append([str(epoch), *means, difference(gap.mean, half_width)])
        sections.append(Section(f"{title} nets", lines))
        gap = compare(each, batch, LEVEL)
        size = difference(gap.mean, gap.interval().half_width)
        on_test.append(
            f"with {title} nets, an update per pair changes the test NDCG@{LEVEL} by {size}"
        )
    if not curves:
        raise DataError(
            f"'{V1}' and '{V1_EACH}' were not both trained", f"add them to '{experiment}'"
        )
    picked = "; ".join(f"{TITLES[c.name]}{c.suffix} {chosen(c)}" for c in curves)
    caption = (
        f"V1 with one update of the weights per query and with one per pair: the best NDCG@{LEVEL} "
        "on the validation set up to each epoch, as a mean over starts, and the difference, ± the "
        "half width of its 95% interval over starts (Welch) if there are several. The interval on "
        f"the test set is one {over(curves)}. The paper found that both converge similarly. "
        f"{protocol(curves, updates='')} Chosen learning rates and epochs: {picked}. "
        f"Edition {evidence.edition}."
    )
    columns = ["epoch", "per query", "per pair", "difference"]
    return TableResult(pd.DataFrame(rows), Layout(lead(*on_test), caption, columns, sections))


def best_so_far(method: Method) -> np.ndarray:
    """The best validation metric so far of each trial's chosen candidate, ``[trials, epochs]``."""
    (run,) = method.runs
    fits, history = run.result.fits, run.result.history
    kept = fits.loc[fits["selected"], ["trial", "candidate"]]
    table = history.merge(kept).pivot(index="trial", columns="epoch", values="vali_metric")
    return table.cummax(axis=1).to_numpy()
