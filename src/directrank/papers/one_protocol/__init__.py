"""One protocol: every loss with every scorer, and trees, on the same folds at the same budget.

No paper has this comparison, so nothing published stands beside it and no claim is measured by it.
"""

from __future__ import annotations

from functools import partial

from directrank.papers.one_protocol.methods import needs
from directrank.papers.one_protocol.quality import table_empty, table_quality
from directrank.papers.one_protocol.ranks import figure_difference, figure_ranks, table_pairs
from directrank.papers.one_protocol.time import figure_time
from directrank.papers.shared.product import Product

#: Data sets with experiments of their own, as they are called in print.
DATASETS = {
    "ohsumed": "OHSUMED",
    "web30k": "Web30K",
    "yahoo1": "Yahoo set 1",
    "istella": "Istella",
}


#: What is made of each data set: ending of the name → what it is, and what builds it.
FIGURES = {
    "": ("critical differences of the losses", figure_difference),
    "_ranks": ("mean ranks of all methods", figure_ranks),
    "_time": ("quality against training time", figure_time),
}
TABLES = {
    "": ("every loss with every scorer, and trees", table_quality),
    "_empty": ("what a query without a relevant document counts", table_empty),
    "_pairs": ("every pair of methods", table_pairs),
}


PRODUCTS: dict[str, Product] = {
    f"{kind}_{dataset}{ending}": Product(
        kind,
        f"One protocol, {title}: {what}",
        needs(dataset),
        partial(build, dataset=dataset),
        timed=build is figure_time,
    )
    for dataset, title in DATASETS.items()
    for kind, parts in (("figure", FIGURES), ("table", TABLES))
    for ending, (what, build) in parts.items()
}
