"""Qin2010's Table 4: methods on OHSUMED's five folds, and what the numbers say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from directrank.papers.qin2010.methods import (
    DISCOUNTS,
    ESTIMATE,
    OWN,
    SIGNIFICANT,
    TABLE4_METRICS,
    against_own,
    folds_mean,
    letor_value,
    methods_of,
    table4_order,
    with_both_discounts,
)
from directrank.papers.qin2010.stopping import how_trained
from directrank.papers.shared.cells import BRACKETS
from directrank.papers.shared.differences import COLUMNS as DIFFERENCES
from directrank.papers.shared.differences import of_other_data
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import share
from directrank.papers.shared.leads import lead, near_print
from directrank.papers.shared.methods import Method
from directrank.papers.shared.methods_table import MethodsTable, in_print
from directrank.papers.shared.product import TableResult
from directrank.system.errors import DataError

TABLE4 = MethodsTable(
    first="Method",
    metrics={heading: letor for heading, (letor, _) in TABLE4_METRICS.items()},
    csv=(
        *("edition", "dataset", "data", "method", "metric", "discount", *ESTIMATE),
        *("published", *DIFFERENCES, "gain_of_approxndcg", "gain_half_width"),
        *("p_value", "p_holm", "status"),
    ),
    measure=against_own("gain_of_approxndcg", own_first=True),
    beside={"paper": in_print(4)},
    by_metric=True,
)


def table4(evidence: Evidence) -> TableResult:
    """Table 4 with NDCG@n of section 5.4: methods on OHSUMED's five folds."""
    order = table4_order(evidence)
    methods = methods_of(evidence, "ohsumed_methods", order=order)
    if not methods:
        raise DataError("no method of Table 4 was run", "add runs to ohsumed_methods")
    data = with_both_discounts(
        TABLE4, evidence, methods, lambda discount: _published(evidence, methods, order, discount)
    )
    data["status"] = np.where(data["mean"].notna(), "run", "not run here")
    first = next(iter(methods.values()))
    caption = (
        f"Ranking accuracy: NDCG on the test sets, {folds_mean(first)} ± the half width of the "
        f"95% t interval over the {len(first.query_values('ndcg/letor'))} pooled test queries (so "
        "it holds for other queries, not for other random starts). Queries without a relevant "
        "document count as 0. “paper” is the value printed in the paper or on the LETOR 3.0 site; "
        "a dash means that it could not be recovered. "
        f"{'' if of_other_data(data) else f'{BRACKETS}. '}"
        f"* marks methods that differ from {OWN} (paired randomisation test over the queries, "
        f"p < {SIGNIFICANT} after Holm's correction within the column; intervals are not "
        "corrected). "
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    sections = [
        TABLE4.section(data[data["discount"] == discount], f"With {title}")
        for discount, title in DISCOUNTS.items()
    ]
    return TABLE4.result(data, _lead(data), caption, sections)


def _lead(data: pd.DataFrame) -> str:
    """Which method is ahead in NDCG@n, how many differ from the paper's own, and the distance."""
    letor = data[(data["discount"] == "letor") & (data["status"] == "run")]
    tested = letor["p_holm"].dropna()
    sure = int((tested < SIGNIFICANT).sum())
    return lead(
        TABLE4.ahead(letor, "NDCG@n"),
        f"{share(sure, len(tested))} differences from {OWN} are significant" if len(tested) else "",
        near_print(letor),
    )


def _published(
    evidence: Evidence, methods: Mapping[str, Method], order: Sequence[str], discount: str
) -> pd.DataFrame:
    """The printed values, from the paper or else from LETOR's site; NaN where one is lost.

    NDCG@1 is the same under both discounts. Which discount NDCG@n was measured with the paper does
    not say (the tool stops at rank 10), so it stands beside both.
    """
    table = evidence.published("qin2010_table4").set_index("Algorithm")
    table = table.rename(columns={"NDCG@n (from the text)": "NDCG@n"})

    def value(method: str, heading: str) -> float:
        if discount == "log2" and heading not in ("NDCG@1", "NDCG@n"):
            return math.nan
        if method in table.index and not math.isnan(table.loc[method, heading]):
            return float(table.loc[method, heading])
        return letor_value(evidence, "OHSUMED", method, heading)

    names = dict.fromkeys([*order, *methods])
    cells = [(name, heading) for name in names for heading in TABLE4_METRICS]
    return pd.DataFrame(
        {"method": name, "metric": heading, "published": value(name, heading)}
        for name, heading in cells
    )
