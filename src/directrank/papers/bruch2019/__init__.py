"""Bruch, Zoghi, Bendersky, Najork (SIGIR 2019): revisiting approximate metric optimisation.

Queries without a relevant document are left out of every mean, as in the paper (section 3.1);
NDCG is in per cent; intervals are Student's t at 95 % over the trials.
"""

from __future__ import annotations

from directrank.papers.shared.product import Product

#: The heading of its part of a report.
TITLE = "Bruch et al. (2019): revisiting approximate metric optimisation"

PRODUCTS: dict[str, Product] = {
    "figure1": Product(
        "figure",
        "Figure 1 of Bruch et al. (2019): sigmoid approximation of the indicator function",
        (),
        "figures:figure1",
    ),
    "figure2": Product(
        "figure",
        "Figure 2 of Bruch et al. (2019): NDCG against the sigmoid exponent",
        ("alpha_sweep",),
        "figures:figure2",
    ),
    "figure3": Product(
        "figure",
        "Figure 3 of Bruch et al. (2019): NDCG against the depth of the network",
        ("depth_sweep",),
        "figures:figure3",
    ),
    "figure2_yahoo": Product(
        "figure",
        "Figure 2 of Bruch et al. (2019) on a second collection, in the paper Yahoo! Set 1",
        ("alpha_sweep_yahoo1",),
        "figures:figure2",
        {"experiment": "alpha_sweep_yahoo1"},
    ),
    "figure2_width": Product(
        "figure",
        "Beyond Bruch et al. (2019): Figure 2 with other widths",
        ("alpha_width_sweep",),
        "figures:figure2_width",
    ),
    "figure3_yahoo": Product(
        "figure",
        "Figure 3 of Bruch et al. (2019) on a second collection, in the paper Yahoo! Set 1",
        ("depth_sweep_yahoo1",),
        "figures:figure3",
        {"experiment": "depth_sweep_yahoo1"},
    ),
    "table_choices": Product(
        "table",
        "Beyond Bruch et al. (2019): the effect of the choices behind Table 1",
        ("choices_web30k",),
        "accuracy:table_choices",
    ),
    "summary": Product(
        "figure",
        "Bruch et al. (2019) in one picture: published against reproduced",
        (),
        "accuracy:summary",
        repeats=("table1",),
    ),
    "table1": Product(
        "table",
        "Table 1 of Bruch et al. (2019): ranking models on the test sets",
        ("table1_web30k", "table1_yahoo1"),
        "accuracy:table1",
    ),
}
