"""Pobrotyn, Białobrzęski (2021): NeuralNDCG. Its figures, tables and claims by name."""

from __future__ import annotations

from directrank.papers.shared.product import Product

#: The heading of its part of a report.
TITLE = "Pobrotyn and Białobrzęski (2021): NeuralNDCG"


_OF = "of Pobrotyn and Białobrzęski (2021)"
_TO = "Beyond Pobrotyn and Białobrzęski (2021)"

_TABLE3 = ("table3_web30k", "table3_istella")

#: What the figures that need no training evaluate.
_LOSS = ("losses.neural_ndcg", "metrics.ndcg")

PRODUCTS: dict[str, Product] = {
    "summary": Product(
        "figure",
        "Pobrotyn and Białobrzęski (2021) in one picture: published against reproduced",
        (),
        "accuracy:summary",
        repeats=("table1", "table2", "table3"),
    ),
    "figure1": Product(
        "figure",
        f"Figure 1 {_OF}: NeuralNDCG and Sinkhorn scaling",
        (),
        "analytic:figure1",
        computes=_LOSS,
    ),
    "figure2": Product(
        "figure",
        f"Figure 2 {_OF}: NeuralNDCG and the temperature",
        (),
        "analytic:figure2",
        computes=_LOSS,
    ),
    "figure_tau": Product(
        "figure",
        f"{_TO}: error and variance of the gradient by temperature",
        (),
        "sorting:figure_tau",
        computes=_LOSS,
    ),
    "figure_sinkhorn": Product(
        "figure",
        f"{_TO}: convergence of Sinkhorn scaling",
        (),
        "sorting:figure_sinkhorn",
    ),
    "table1": Product(
        "table", f"Table 1 {_OF}: approximate sorting with NeuralSort", (), "analytic:table1"
    ),
    "table2": Product(
        "table",
        f"Table 2 {_OF}: statistics of the data sets",
        (),
        "accuracy:table2",
        data=("web30k", "istella"),
    ),
    "table3": Product(
        "table",
        f"Table 3 {_OF}: test NDCG by loss",
        _TABLE3,
        "accuracy:table3",
    ),
    "table_ohsumed": Product(
        "table",
        f"{_TO}: the losses of Table 3 on OHSUMED",
        ("ohsumed_losses",),
        "accuracy:table_ohsumed",
    ),
    "table_transpose": Product(
        "table",
        f"{_TO}: NeuralNDCG and its transpose in training",
        ("sinkhorn_web30k", "table3_web30k"),
        "training:table_transpose",
        {"pairs": "sinkhorn_web30k", "rows": "table3_web30k"},
    ),
    "table_transpose_ohsumed": Product(
        "table",
        f"{_TO}: NeuralNDCG and its transpose in training on OHSUMED",
        ("sinkhorn_ohsumed",),
        "training:table_transpose",
        {"pairs": "sinkhorn_ohsumed", "rows": None},
    ),
    "table_sinkhorn": Product(
        "table",
        f"{_TO}: the effect of Sinkhorn scaling on training",
        ("sinkhorn_web30k",),
        "training:table_sinkhorn",
        {"pairs": "sinkhorn_web30k"},
    ),
    "table_sinkhorn_ohsumed": Product(
        "table",
        f"{_TO}: the effect of Sinkhorn scaling on training on OHSUMED",
        ("sinkhorn_ohsumed",),
        "training:table_sinkhorn",
        {"pairs": "sinkhorn_ohsumed"},
    ),
    "table_selection": Product(
        "table",
        f"{_TO}: smoothness chosen on validation and on test",
        ("alpha_web30k", "tau_web30k"),
        "training:table_selection",
    ),
    "table_network": Product(
        "table",
        f"{_TO}: the gain of the ranker and the gain of the loss",
        ("table3_web30k", "plain_web30k"),
        "training:table_network",
    ),
    "table_time": Product(
        "table",
        f"{_TO}: the training cost of each loss",
        _TABLE3,
        "accuracy:table_time",
        timed=True,
    ),
}
