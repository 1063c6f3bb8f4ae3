"""Yu (2020): direct metric optimisation through twin-sigmoid ranks; its products and claims.

Products that need no training are in :mod:`directrank.papers.yu2020.ranks`. The grid of trained
methods is in :mod:`directrank.papers.yu2020.grid`, its tables in
:mod:`directrank.papers.yu2020.accuracy`, and its figures in
:mod:`directrank.papers.yu2020.figures`.
"""

from __future__ import annotations

from typing import Any, Literal

from directrank.papers.shared.product import Product

#: The heading of its part of a report.
TITLE = "Yu (2020): direct metric optimisation through twin-sigmoid ranks"


#: The experiments of the grid.
_GRID = ("web30k_r5", "web30k_ce5", "web30k_r4l", "web30k_ce4l", "web30k_trees")

#: Tables and panels of Figure 2 → the claims on which they bear.
_ABOUT = {
    "table4": ("C11", "C12", "C13", "D09"),
    "table5": ("C14", "D10", "D21", "D22"),
    "table6": ("C15", "D21"),
    "table7": ("C15", "C16", "D21"),
    "a": ("D11",),
    "b": ("D11", "D20"),
    "c": ("D11", "D20"),
    "d": ("D19",),
}

#: Panels of Figure 2: letter → method.
_FIGURE2 = {
    "a": "WassRank",
    "b": "ListNet",
    "c": "ListMLE",
    "d": "LambdaMART(L)",
    "e": "ApproxNDCG",
    "f": "nERR@10-type3",
    "g": "AP-type3",
    "h": "nDCG-type3",
}

_OBJECTIVES = "precision, average precision, nERR@10 and nDCG"


def _computed(
    kind: Literal["figure", "table"], title: str, function: str, **options: Any
) -> Product:
    """A product that needs no training."""
    return Product(kind, title, (), function, options)


def _trained(
    kind: Literal["figure", "table"],
    title: str,
    function: str,
    claims: tuple[str, ...] = (),
    **options: Any,
) -> Product:
    """A product of the whole grid."""
    return Product(kind, title, _GRID, function, options, claims=claims)


PRODUCTS: dict[str, Product] = {
    "summary": Product(
        "figure",
        "Yu (2020) in one picture: published against reproduced",
        (),
        "accuracy:summary",
        repeats=tuple(f"table{number}" for number in range(1, 8)),
    ),
    "figure1a": _computed(
        "figure",
        "Figure 1 (a) of Yu (2020): the sigmoid function",
        "ranks:sigmoid_figure",
        derivative=False,
    ),
    "figure1b": _computed(
        "figure",
        "Figure 1 (b) of Yu (2020): the derivative of the sigmoid",
        "ranks:sigmoid_figure",
        derivative=True,
    ),
    "figure1c": _computed(
        "figure", "Figure 1 (c) of Yu (2020): the twin-sigmoid function", "ranks:twin_figure"
    ),
    "figure2": _trained(
        "figure",
        "Figure 2 of Yu (2020): nDCG@5 as methods are optimised",
        "figures:figure2_sheet",
        ("D11", "D12", "D19", "D20"),
        panels=_FIGURE2,
    ),
    **{
        f"figure2{panel}": _trained(
            "figure",
            f"Figure 2 ({panel}) of Yu (2020): nDCG@5 as {method} is optimised",
            "figures:figure2",
            _ABOUT.get(panel, ("D11", "D12")),
            method=method,
        )
        for panel, method in _FIGURE2.items()
    },
    "inconsistency": Product(
        "figure",
        "Section 5 of Yu (2020), measured: gradients that pull against the labels",
        ("web30k_r4l",),
        "figures:inconsistency",
    ),
    "difficulty": Product(
        "figure",
        "Section 5 of Yu (2020), measured: gradients of badly ordered pairs",
        ("web30k_r4l",),
        "figures:difficulty",
    ),
    "ties": _trained(
        "figure",
        "Section 7.1 of Yu (2020), measured: tied scores per output activation",
        "figures:ties",
    ),
    "table1": _computed("table", "Table 1 of Yu (2020): permutation and sorting", "ranks:table1"),
    "table2": _computed("table", "Table 2 of Yu (2020): error of sigmoid ranks", "ranks:table2"),
    "table3": _computed(
        "table", "Table 3 of Yu (2020): error of twin-sigmoid ranks", "ranks:table3"
    ),
    "table4": _trained(
        "table",
        "Table 4 of Yu (2020): baselines",
        "accuracy:methods_table",
        _ABOUT["table4"],
        number=4,
    ),
    **{
        f"table{4 + kind}": _trained(
            "table",
            f"Table {4 + kind} of Yu (2020): {_OBJECTIVES} with gradients of type {kind}",
            "accuracy:methods_table",
            _ABOUT[f"table{4 + kind}"],
            number=4 + kind,
        )
        for kind in (1, 2, 3)
    },
    "table_nerr": _trained(
        "table", "Section 6.1 of Yu (2020), measured: nERR", "accuracy:table_nerr"
    ),
    "table_selection": _trained(
        "table",
        "Section 6.1 of Yu (2020), measured: the architecture chosen by validation or by test",
        "accuracy:table_selection",
    ),
    "table_ablation": Product(
        "table",
        "Section 6.2 of Yu (2020), measured: the text against the released code",
        ("web30k_ablation",),
        "accuracy:table_ablation",
        timed=True,
    ),
    "table_ohsumed": Product(
        "table",
        "The methods of Yu (2020) on OHSUMED",
        ("ohsumed_methods", "ohsumed_trees"),
        "accuracy:table_ohsumed",
        claims=(*_ABOUT["table4"], *_ABOUT["table5"], "C15", "C16", "D23"),
    ),
}
