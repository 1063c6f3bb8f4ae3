"""Yu (2020): what its released code has beyond the text, and its methods on OHSUMED."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import p_value, share, signed, spread
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import (
    Method,
    by_method,
    groups_sentence,
    paired_groups,
    paired_values,
    signed_rank_p,
)
from directrank.papers.shared.methods_table import Row
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section, in_front
from directrank.papers.shared.training import training_sentence
from directrank.papers.yu2020.grid import ohsumed_cells
from directrank.papers.yu2020.tables import (
    MEASURED,
    NDCG,
    WITH_NERR,
    against_best,
    method_groups,
    runs_of,
)
from directrank.system.errors import DataError

#: p below which a setting makes a difference.
SIGNIFICANT = 0.05


def table_ablation(evidence: Evidence) -> TableResult:
    """AP-type3 with what the released code adds to the text taken away, and other steps."""
    cells = by_method(evidence.runs("web30k_ablation"), "exclude", setting="setting")
    if not cells:
        raise DataError("no setting was run", "let the edition run 'web30k_ablation'")
    base = next(iter(cells.values()))
    metrics = {heading: NDCG[heading] for heading in ("nDCG@1", "nDCG@5", "nDCG@10", "nDCG@20")}
    rows, times = [], []
    for name, cell in cells.items():
        for heading, metric in metrics.items():
            values, reference = paired_values([cell, base], metric)
            groups = paired_groups([cell], values)
            p = signed_rank_p(values, reference, groups) if cell is not base else 1.0
            rows.append(
                {
                    "setting": name,
                    "metric": heading,
                    "mean": cell.mean(metric),
                    "difference": cell.mean(metric) - base.mean(metric),
                    "p_value": p,
                    "queries": len(values),
                    "folds": len(cell.runs),
                    "batch_queries": cell.runs[0].result.spec["training"]["batch_queries"],
                }
            )
        seconds = pd.concat([run.result.history["seconds"] for run in cell.runs])
        times.append({"setting": name, "seconds_per_epoch": float(seconds.mean())})
    data = in_front(pd.DataFrame(rows), evidence.about(base.dataset))
    duration = {row["setting"]: row["seconds_per_epoch"] for row in times}
    lines = []
    for name, part in data.groupby("setting", sort=False):
        at_five = part[part["metric"] == "nDCG@5"].iloc[0]
        is_base = name == base.name
        lines.append(
            [
                str(name),
                *(measured(mean) for mean in part["mean"]),
                "" if is_base else signed(at_five["difference"]),
                "" if is_base else p_value(at_five["p_value"], 3),
                f"{duration[name]:.2f}",
            ]
        )
    caption = (
        "AP-type3 in R4.L without what only the released code has (normalisation of the output, a "
        "decreasing learning rate, dropout), and with several queries per step, which have their "
        "own statistics or share them. The difference in nDCG@5 is that from the first row, with "
        "Wilcoxon's p, not corrected for the number of settings. Seconds per epoch are those of "
        "the machine that ran it, without monitoring. "
        f"{groups_sentence(list(cells.values()))}{evidence.sources(runs_of(list(cells.values())))}"
    )
    columns = ["Setting", *metrics, "difference", "p", "s / epoch"]
    layout = Layout(_lead(data, base.name), caption, columns, [Section("", lines)])
    return TableResult(data, layout, pd.DataFrame(times))


def _lead(data: pd.DataFrame, base: str) -> str:
    """How many settings make a difference in nDCG@5, and the largest difference."""
    others = data[(data["metric"] == "nDCG@5") & (data["setting"] != base)]
    if others.empty:
        return f"Only “{base}” was run."
    sure = int((others["p_value"] < SIGNIFICANT).sum())
    most = others.loc[others["difference"].abs().idxmax()]
    return lead(
        f"{share(sure, len(others))} settings differ from “{base}” in nDCG@5 with p < "
        f"{SIGNIFICANT} (uncorrected); the largest difference is {signed(most['difference'])} "
        f"({most['setting']})"
    )


def _against_best(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
    """As in Tables 4 to 7, with the architectures that were chosen within the runs."""
    rows = against_best(methods, metric)
    return {
        name: row | {"architectures": _tuned_architectures(methods[name])}
        for name, row in rows.items()
    }


ON_OHSUMED = replace(
    WITH_NERR,
    metrics={
        **{heading: NDCG[heading] for heading in ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10")},
        "AP": "ap",
        "nERR@10": "nerr@10",
    },
    csv=("edition", "dataset", "data", "method", *MEASURED, "architectures"),
    measure=_against_best,
    front={},
    end={"architectures chosen": "architectures"},
)


def table_ohsumed(evidence: Evidence) -> TableResult:
    """The methods on the real OHSUMED folds, which the paper does not use."""
    methods = ohsumed_cells(evidence)
    if not methods:
        raise DataError("no method was run on OHSUMED", "let the edition run 'ohsumed_methods'")
    cells = [*methods.values()]
    data = ON_OHSUMED.rows(evidence, methods)
    sections = [
        ON_OHSUMED.section(data[data["method"].isin(names)], title)
        for title, names in method_groups(data).items()
    ]
    caption = (
        "The paper's methods on OHSUMED, which it does not use, in each fold with the "
        "architecture, width and learning rate that have the best validation nDCG@5. Values are "
        "means of the fold means ± the half width of the 95% t interval over the test queries. "
        "The best value of a column is bold; an asterisk marks p < 0.01 against it in Wilcoxon's "
        f"signed-rank test over the pooled test queries. "
        f"{_trials_sentence(cells)}{groups_sentence(cells)}{training_sentence(runs_of(cells))} "
        f"{evidence.sources(runs_of(cells), 'test sets')}"
    )
    at_ten = data[data["metric"] == "nDCG@10"]
    starred = share(int(at_ten["star"].sum()), len(at_ten) - 1)
    best = ON_OHSUMED.ahead(data, "nDCG@10")
    start = lead(f"{best}; {starred} others differ from it with p < 0.01")
    return ON_OHSUMED.result(data, start, caption, sections)


def _trials_sentence(cells: Sequence[Method]) -> str:
    """How many trials the methods have, with a space after it."""
    trials = [cell.n_trials for cell in cells]
    mean = ", whose mean is the value of a query" if max(trials) > 1 else ""
    return f"Every method has {spread(trials, 'trial')} in each fold{mean}. "


def _tuned_architectures(cell: Method) -> str:
    """How often each architecture was chosen within the runs, e.g. ``R4.L ×3, CE5 ×2``."""
    names: list[str] = []
    for run in cell.runs:
        fits = run.result.fits
        for row in fits[fits["selected"]].to_dict("records"):
            if "model.activation" not in row:
                return ""
            activation = {"relu": "R", "celu": "CE"}[row["model.activation"]]
            names.append(activation + ("5" if row["model.output_activation"] else "4.L"))
    counted = pd.Series(names).value_counts(sort=False).sort_index()
    counted = counted.sort_values(ascending=False, kind="stable")
    return ", ".join(f"{name} ×{number}" for name, number in counted.items())
