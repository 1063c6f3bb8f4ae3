"""Qin, Liu, Li (Information Retrieval 13(4), 2010): a general approximation framework.

A query without a relevant document counts as zero and a published number is the mean of the five
fold means, as in LETOR 3.0's evaluation tool and site. Two discounts are distinguished: that of the
tool (``letor``: 1, 1, 1/log2 3, 1/log2 4, …), with which the cited baselines were measured, and
that of the paper, 1/log2(1 + rank).
"""

from __future__ import annotations

from directrank.papers.shared.product import Product

#: The heading of its part of a report.
TITLE = "Qin et al. (2010): a general framework for approximating ranking measures"


def _error_figure(figure: str, metric: str, parameter: str, experiment: str) -> Product:
    """A figure of the error of a metric's approximation during training."""
    symbol = {"alpha": "α", "beta": "β"}[parameter]
    return Product(
        "figure",
        f"Figure {figure}: error of {metric}'s approximation against {symbol}",
        (experiment,),
        "training:error_figure",
        {"experiment": experiment, "setting": f"loss.{parameter}"},
    )


PRODUCTS: dict[str, Product] = {
    "summary": Product(
        "figure",
        "Qin et al. (2010) in one picture: published against reproduced",
        (),
        "accuracy:summary",
        repeats=("table1", "table2", "table3", "table4", "baselines"),
    ),
    "table1": Product(
        "table",
        "Table 1 of Qin et al. (2010): approximate positions, and the bounds of section 4",
        (),
        "theory:table1",
        computes=(
            "losses.approx_ap",
            "losses.approx_ndcg",
            "metrics.average_precision",
            "metrics.ndcg",
        ),
    ),
    "figure1a": _error_figure("1a of Qin et al. (2010)", "AP", "alpha", "ap_error_alpha"),
    "figure1b": _error_figure("1b of Qin et al. (2010)", "AP", "beta", "ap_error_beta"),
    "figure1a_ohsumed": _error_figure(
        "1a of Qin et al. (2010), on OHSUMED", "AP", "alpha", "ap_error_alpha_ohsumed"
    ),
    "figure1b_ohsumed": _error_figure(
        "1b of Qin et al. (2010), on OHSUMED", "AP", "beta", "ap_error_beta_ohsumed"
    ),
    "figure2": _error_figure("2 of Qin et al. (2010)", "NDCG", "alpha", "ndcg_error"),
    "table2": Product(
        "table",
        "Table 2 of Qin et al. (2010): the data sets",
        (),
        "accuracy:table2",
        data=("td2003", "td2004", "ohsumed"),
    ),
    "table3": Product(
        "table",
        "Table 3 of Qin et al. (2010): ranking accuracy in MAP on TD2003 and TD2004",
        ("td2003_methods", "td2004_methods"),
        "accuracy:table3",
    ),
    "table4": Product(
        "table",
        "Table 4 of Qin et al. (2010): ranking accuracy on OHSUMED",
        ("ohsumed_methods",),
        "accuracy:table4",
    ),
    "table_msrd": Product(
        "table",
        "The methods of Qin et al. (2010) on MSRD",
        ("msrd_methods",),
        "accuracy:table_msrd",
    ),
    "stopping": Product(
        "table",
        "ApproxNDCG of Table 4 of Qin et al. (2010) under other caps on epochs",
        ("ohsumed_methods",),
        "stopping:stopping",
    ),
    "table5": Product(
        "table",
        "Table 5 of Qin et al. (2010): training performance against α and random starts",
        ("random_starts", "softrank_training"),
        "training:table5",
        {"experiment": "random_starts"},
    ),
    "table5_ap": Product(
        "table",
        "Table 5 of Qin et al. (2010), for ApproxAP on OHSUMED",
        ("random_starts_ap",),
        "training:table5",
        {"experiment": "random_starts_ap"},
    ),
    "table6": Product(
        "table",
        "Table 6 of Qin et al. (2010): running time per iteration",
        ("iteration_time",),
        "training:table6",
        timed=True,
    ),
    "baselines": Product(
        "table",
        "The baselines of Qin et al. (2010), trained here, beside LETOR's values",
        ("ohsumed_methods", "ohsumed_map_methods", "ohsumed_weak_svm"),
        "accuracy:baselines",
    ),
    "statistics": Product(
        "table",
        "The methods of Qin et al. (2010) on OHSUMED, every pair tested",
        ("ohsumed_methods", "ohsumed_map_methods"),
        "accuracy:statistics",
    ),
    "beyond": Product(
        "table",
        "Beyond Qin et al. (2010): later methods on the folds of Table 4",
        ("ohsumed_methods", "beyond_methods"),
        "accuracy:beyond",
    ),
    "initialisation": Product(
        "figure",
        "ApproxNDCG's random start and cap on epochs, which Qin et al. (2010) leave open",
        ("initialisation",),
        "training:initialisation",
    ),
}
