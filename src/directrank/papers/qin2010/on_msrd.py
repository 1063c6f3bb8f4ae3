"""The methods of Qin2010's Table 4 on MSRD, which the paper does not use."""

from __future__ import annotations

from collections.abc import Mapping

from directrank.papers.qin2010.comparisons import (
    AP,
    OWN,
    SIGNIFICANT,
    TABLE4_METRICS,
    folds_mean,
    methods_of,
    table4_order,
)
from directrank.papers.qin2010.stopping import how_trained
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import share, spread
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import Method, compared, groups_of, paired_trainings
from directrank.papers.shared.methods_table import MethodsTable, Row
from directrank.papers.shared.product import TableResult
from directrank.stats.tests import holm_of_known
from directrank.stats.two_way import over_queries_and_starts


def _against_own(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
    """Means with their intervals, and the differences from :data:`OWN`; all for other queries, or
    groups of related ones, and other trainings."""
    rows = {}
    for name, method in methods.items():
        (values,), queries = paired_trainings([method], metric)
        folds = queries.get_level_values("fold").to_numpy()
        estimate = over_queries_and_starts(values, groups_of(method, queries), folds)
        rows[name] = {
            "mean": method.mean(metric),
            "half_width": estimate.interval().half_width,
            "trials": method.n_trials,
            "folds": len(method.runs),
            "queries": len(queries),
        }
    others = [name for name in methods if name != OWN and OWN in methods]
    gaps = {name: compared(method, methods[OWN], metric) for name, method in methods.items()}
    # A method that was trained once has an unknown error and is not tested.
    p_values = [gaps[name].p_differs() for name in others]
    corrected = holm_of_known(p_values)
    for name, p_value, p_holm in zip(others, p_values, corrected, strict=True):
        rows[name] |= {
            "difference": gaps[name].mean,
            "difference_half_width": gaps[name].interval().half_width,
            "p_value": p_value,
            "p_holm": p_holm,
            "star": p_holm < SIGNIFICANT,
        }
    return rows


ON_MSRD = MethodsTable(
    first="Method",
    metrics={heading: printed for heading, (_, printed) in TABLE4_METRICS.items()} | {"MAP": AP},
    csv=(
        *("edition", "dataset", "data", "method", "metric", "mean", "half_width", "trials"),
        *("folds", "queries", "difference", "difference_half_width", "p_value", "p_holm", "star"),
    ),
    measure=_against_own,
    by_metric=True,
    contenders=lambda data: data["mean"].notna(),
)


def table_msrd(evidence: Evidence) -> TableResult:
    """The methods of Table 4 on the folds of MSRD."""
    methods = methods_of(evidence, "msrd_methods", order=table4_order(evidence))
    data = ON_MSRD.rows(evidence, methods)
    first = next(iter(methods.values()))
    every = [run for method in methods.values() for run in method.runs]
    queries = "queries" if first.query_groups().is_unique else "groups of related queries"
    caption = (
        "The methods of Table 4 on data that the paper does not use: NDCG with the paper's "
        f"discount, and MAP, on the test sets; {folds_mean(first)} over "
        f"{spread([method.n_trials for method in methods.values()], 'trial')}, ± the half width "
        f"of the 95% interval for other {queries} and other trainings. The highest value of a "
        f"column is bold; * marks methods that differ from {OWN} (t test for other {queries} and "
        f"other trainings, p < {SIGNIFICANT} after Holm's correction within the column; intervals "
        f"are not corrected). {how_trained(methods)}{evidence.sources(every, 'test sets')}"
    )
    tested = data.loc[data["metric"] == "NDCG@10", "p_holm"].dropna()
    start = lead(
        ON_MSRD.extremes(data, "NDCG@10"),
        f"{share(int((tested < SIGNIFICANT).sum()), len(tested))} differences from {OWN} in "
        "NDCG@10 are significant"
        if len(tested)
        else "",
    )
    return ON_MSRD.result(data, start, caption, [ON_MSRD.section(data)])
