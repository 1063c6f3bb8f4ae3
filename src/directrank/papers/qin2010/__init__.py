"""Qin, Liu, Li (Information Retrieval 13(4), 2010): a general approximation framework.

A query without a relevant document counts as zero and a published number is the mean of the five
fold means, as LETOR 3.0's evaluation tool and site have it. Two discounts are kept apart: the one
of that tool (``letor``: 1, 1, 1/log2 3, 1/log2 4, …), which the cited baselines were measured with,
and the one the paper prints, 1/log2(1 + rank).
"""

from __future__ import annotations

from directrank.papers.qin2010.claims import (
    claim_accuracy,
    claim_best,
    claim_beta,
    claim_direct_baselines,
    claim_faster,
    claim_gains,
    claim_map_order,
    claim_map_ratios,
    claim_ndcg_accuracy,
    claim_restarts,
    claim_training_accuracy,
)
from directrank.papers.qin2010.comparisons import beyond, statistics
from directrank.papers.qin2010.map import baselines, not_in_table4, table3
from directrank.papers.qin2010.table4 import table4
from directrank.papers.qin2010.theory import BOUNDS, TABLE2_DATASETS, table1, table2
from directrank.papers.qin2010.training import (
    figure1a,
    figure1a_ohsumed,
    figure1b,
    figure1b_ohsumed,
    figure2,
    initialisation,
    table5,
    table6,
)
from directrank.papers.shared import summary
from directrank.papers.shared.claims import Claim
from directrank.papers.shared.product import Product
from directrank.papers.shared.summary import Panel

CLAIMS: dict[str, Claim] = {
    "C06": Claim((), claim_accuracy, optional=("figure1a", "figure1a_ohsumed")),
    "C07": Claim(("table3",), claim_map_ratios),
    "C08": Claim(("table4",), claim_best),
    "C09": Claim(("table5",), claim_restarts),
    "C10": Claim(("table6",), claim_faster),
    "D03": Claim((), claim_beta, optional=("figure1b", "figure1b_ohsumed")),
    "D04": Claim(("figure2",), claim_ndcg_accuracy),
    "D05": Claim(("table3",), claim_map_order),
    "D06": Claim((), claim_direct_baselines, optional=("table3", "statistics")),
    "D07": Claim(("table4",), claim_gains),
    "D08": Claim(("table5",), claim_training_accuracy),
}

#: What the paper prints and the edition measures, frame by frame.
SUMMARY = (
    Panel(
        title="Section 4, bounds",
        axis="value",
        tables={"table1": table1},
        series=lambda rows: rows["quantity"].map(BOUNDS),
        cell=("quantity",),
        value="value",
    ),
    Panel(
        title="Table 2, data sets",
        axis="value",
        tables={"table2": table2},
        series="statistic",
        where=lambda rows: rows["data"] != "stand-in",  # which are smaller on purpose
        cell=("paper_dataset", "statistic"),
        value="value",
        log=True,
    ),
    Panel(
        title="Table 3, TD2003 and TD2004",
        axis="MAP",
        tables={"table3": table3},
        series="method",
        cell=("paper_dataset", "method", "metric"),
        bars="95% intervals over queries",
        ranked="paper_dataset",
    ),
    Panel(
        title="Table 4, OHSUMED",
        axis="NDCG",
        tables={"table4": table4},
        series="method",
        cell=("method", "metric"),
        bars="95% intervals over queries",
        where=lambda rows: rows["discount"] == "letor",
        ranked="metric",
    ),
    Panel(
        title="LETOR 3.0, OHSUMED",
        axis="MAP and NDCG",
        tables={"baselines": baselines},
        series="method",
        cell=("method", "metric"),
        bars="95% intervals over queries",
        where=not_in_table4,
        ranked="metric",
    ),
)

PRODUCTS: dict[str, Product] = {
    "summary": summary.product("Qin et al. (2010)", SUMMARY),
    "table1": Product(
        "table",
        "Table 1 of Qin et al. (2010): approximate positions, and the bounds of section 4",
        (),
        table1,
    ),
    "figure1a": Product(
        "figure",
        "Figure 1a of Qin et al. (2010): error of AP's approximation against α",
        ("ap_error_alpha",),
        figure1a,
    ),
    "figure1b": Product(
        "figure",
        "Figure 1b of Qin et al. (2010): error of AP's approximation against β",
        ("ap_error_beta",),
        figure1b,
    ),
    "figure1a_ohsumed": Product(
        "figure",
        "Figure 1a of Qin et al. (2010), on OHSUMED: error of AP's approximation against α",
        ("ap_error_alpha_ohsumed",),
        figure1a_ohsumed,
    ),
    "figure1b_ohsumed": Product(
        "figure",
        "Figure 1b of Qin et al. (2010), on OHSUMED: error of AP's approximation against β",
        ("ap_error_beta_ohsumed",),
        figure1b_ohsumed,
    ),
    "figure2": Product(
        "figure",
        "Figure 2 of Qin et al. (2010): error of NDCG's approximation against α",
        ("ndcg_error",),
        figure2,
    ),
    "table2": Product(
        "table",
        "Table 2 of Qin et al. (2010): the data sets",
        (),
        table2,
        data=tuple(TABLE2_DATASETS.values()),
    ),
    "table3": Product(
        "table",
        "Table 3 of Qin et al. (2010): ranking accuracy in MAP on TD2003 and TD2004",
        ("td2003_methods", "td2004_methods"),
        table3,
    ),
    "table4": Product(
        "table",
        "Table 4 of Qin et al. (2010): ranking accuracy on OHSUMED",
        ("ohsumed_methods",),
        table4,
    ),
    "table5": Product(
        "table",
        "Table 5 of Qin et al. (2010): training performance against α and random starts",
        ("random_starts",),
        table5,
    ),
    "table6": Product(
        "table",
        "Table 6 of Qin et al. (2010): running time per iteration",
        ("iteration_time",),
        table6,
        timed=True,
    ),
    "baselines": Product(
        "table",
        "The baselines of Qin et al. (2010), trained here, beside LETOR's values",
        ("ohsumed_methods", "ohsumed_map_methods", "ohsumed_weak_svm"),
        baselines,
    ),
    "statistics": Product(
        "table",
        "The methods of Qin et al. (2010) on OHSUMED, every pair tested",
        ("ohsumed_methods", "ohsumed_map_methods"),
        statistics,
    ),
    "beyond": Product(
        "table",
        "Beyond Qin et al. (2010): later methods on the folds of Table 4",
        ("ohsumed_methods", "beyond_methods"),
        beyond,
    ),
    "initialisation": Product(
        "figure",
        "ApproxNDCG's random start and cap on epochs, which Qin et al. (2010) leave open",
        ("initialisation",),
        initialisation,
    ),
}
