"""The methods of Qin2010's Table 4 on MSRD, which the paper does not use."""

from __future__ import annotations

from directrank.papers.qin2010.comparisons import (
    AP,
    OWN,
    SIGNIFICANT,
    TABLE4_METRICS,
    against_own,
    folds_mean,
    methods_of,
    significant,
    table4_order,
)
from directrank.papers.qin2010.stopping import how_trained
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import spread
from directrank.papers.shared.leads import lead, significant_share
from directrank.papers.shared.methods import interval_of_means
from directrank.papers.shared.methods_table import MethodsTable
from directrank.papers.shared.product import TableResult

ON_MSRD = MethodsTable(
    first="Method",
    metrics={heading: printed for heading, (_, printed) in TABLE4_METRICS.items()} | {"MAP": AP},
    csv=(
        *("edition", "dataset", "data", "method", "metric", "mean", "half_width", "trials"),
        *("folds", "queries", "difference", "difference_half_width", "p_value", "p_holm", "star"),
    ),
    measure=against_own("difference", "difference_half_width", own_first=False),
    by_metric=True,
    contenders=lambda data: data["mean"].notna(),
)


def table_msrd(evidence: Evidence) -> TableResult:
    """The methods of Table 4 on the folds of MSRD."""
    methods = methods_of(evidence, "msrd_methods", order=table4_order(evidence))
    data = ON_MSRD.rows(evidence, methods)
    first = next(iter(methods.values()))
    every = [run for method in methods.values() for run in method.runs]
    caption = (
        "The methods of Table 4 on data that the paper does not use: NDCG with the paper's "
        f"discount, and MAP, on the test sets; {folds_mean(first)} over "
        f"{spread([method.n_trials for method in methods.values()], 'trial')}, "
        f"± {interval_of_means([*methods.values()])}. The highest value of a column is bold; * "
        f"marks methods that differ from {OWN} ({significant(methods)}). "
        f"{how_trained(methods)}{evidence.sources(every, 'test sets')}"
    )
    at_ten = data.loc[data["metric"] == "NDCG@10", "p_holm"]
    what = f"differences from {OWN} in NDCG@10 are significant"
    start = lead(ON_MSRD.extremes(data, "NDCG@10"), significant_share(at_ten, SIGNIFICANT, what))
    return ON_MSRD.result(data, start, caption, [ON_MSRD.section(data)])
