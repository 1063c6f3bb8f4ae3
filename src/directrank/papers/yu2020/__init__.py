"""Yu (2020): direct metric optimisation through twin-sigmoid ranks; its products and claims.

What needs no training is in :mod:`directrank.papers.yu2020.ranks`; the grid of trained methods in
:mod:`directrank.papers.yu2020.grid`, and what is made of it in the modules beside that.
"""

from __future__ import annotations

from functools import partial

from directrank.papers.shared import summary
from directrank.papers.shared.claims import Claim
from directrank.papers.shared.product import Product
from directrank.papers.shared.summary import Panel
from directrank.papers.yu2020 import claims, ranks, tables
from directrank.papers.yu2020 import figures as trained
from directrank.papers.yu2020 import more_tables as more
from directrank.papers.yu2020.grid import ARCHITECTURES, GRID

CLAIMS: dict[str, Claim] = {
    "C11": Claim((), claims.claim_trees, optional=("table4", "table_ohsumed")),
    "C12": Claim((), claims.claim_listmle, optional=("table4", "table_ohsumed")),
    "C13": Claim((), claims.claim_approx_ndcg, optional=("table4", "table_ohsumed")),
    "C14": Claim((), claims.claim_type1, optional=("table5", "table_ohsumed")),
    "C15": Claim((), claims.claim_types, optional=("table5", "table_ohsumed")),
    "C16": Claim((), claims.claim_direct, optional=("table7", "table_ohsumed")),
    "C17": Claim(("ties",), claims.claim_output),
    "C18": Claim(("table2", "table3"), ranks.claim_ranks),
    "D09": Claim((), claims.claim_map, optional=("table4", "table_ohsumed")),
    "D10": Claim((), claims.claim_poor, optional=("table5", "table_ohsumed")),
    "D11": Claim(("figure2a",), claims.claim_consistency),
    "D12": Claim(("figure2e",), claims.claim_smoothness),
}

_METHODS = {
    f"table{number}": partial(tables.methods_table, number=number) for number in (4, 5, 6, 7)
}
_KINDS = {"table4": "baselines", "table5": "type 1", "table6": "type 2", "table7": "type 3"}

#: What the paper prints and the edition measures, frame by frame.
SUMMARY = (
    Panel(
        title="Table 1, permutation",
        axis="value",
        tables={"table1": ranks.table1},
        series="quantity",
        cell=("quantity", "place"),
        value="value",
    ),
    Panel(
        title="Table 2, sigmoid ranks",
        axis="error",
        tables={"table2": ranks.table2},
        series=lambda rows: rows["documents"].astype(str) + " documents",
        cell=("documents", "alpha"),
        bars="95% intervals over lists",
        log=True,
    ),
    Panel(
        title="Table 3, twin-sigmoid ranks",
        axis="error",
        tables={"table3": ranks.table3},
        series="ranks",
        cell=("documents", "ranks"),
        bars="95% intervals over lists",
    ),
    *(
        Panel(
            title=f"Tables 4 to 7, {name}",
            axis=name,
            tables=_METHODS,
            series=lambda rows: rows["table"].map(_KINDS),
            cell=("method", "metric"),
            bars="95% intervals over queries",
            where=partial(tables.rows_of, prefix=f"{name}@"),
            ranked="metric",
        )
        for name in ("nDCG", "MAP")
    ),
)

_OBJECTIVES = "precision, average precision, nERR@10 and nDCG"

PRODUCTS: dict[str, Product] = {
    "summary": summary.product("Yu (2020)", SUMMARY),
    "figure1a": Product(
        "figure", "Figure 1 (a) of Yu (2020): the sigmoid function", (), ranks.figure1a
    ),
    "figure1b": Product(
        "figure", "Figure 1 (b) of Yu (2020): the derivative of the sigmoid", (), ranks.figure1b
    ),
    "figure1c": Product(
        "figure", "Figure 1 (c) of Yu (2020): the twin-sigmoid function", (), ranks.figure1c
    ),
    **{
        f"figure2{panel}": Product(
            "figure",
            f"Figure 2 ({panel}) of Yu (2020): nDCG@5 as {method} is optimised",
            GRID,
            partial(trained.figure2, panel=panel),
        )
        for panel, method in trained.FIGURE2.items()
    },
    "inconsistency": Product(
        "figure",
        "Section 5 of Yu (2020), measured: gradients that pull against the labels",
        (ARCHITECTURES["R4.L"],),
        trained.inconsistency,
    ),
    "difficulty": Product(
        "figure",
        "Section 5 of Yu (2020), measured: gradients of badly ordered pairs",
        (ARCHITECTURES["R4.L"],),
        trained.difficulty,
    ),
    "ties": Product(
        "figure",
        "Section 7.1 of Yu (2020), measured: tied scores per output activation",
        GRID,
        trained.ties,
    ),
    "table1": Product("table", "Table 1 of Yu (2020): permutation and sorting", (), ranks.table1),
    "table2": Product("table", "Table 2 of Yu (2020): error of sigmoid ranks", (), ranks.table2),
    "table3": Product(
        "table", "Table 3 of Yu (2020): error of twin-sigmoid ranks", (), ranks.table3
    ),
    "table4": Product(
        "table",
        "Table 4 of Yu (2020): baselines",
        GRID,
        partial(tables.methods_table, number=4),
    ),
    **{
        f"table{4 + kind}": Product(
            "table",
            f"Table {4 + kind} of Yu (2020): {_OBJECTIVES} with gradients of type {kind}",
            GRID,
            partial(tables.methods_table, number=4 + kind),
        )
        for kind in (1, 2, 3)
    },
    "table_nerr": Product(
        "table", "Section 6.1 of Yu (2020), measured: nERR", GRID, tables.table_nerr
    ),
    "table_selection": Product(
        "table",
        "Section 6.1 of Yu (2020), measured: the architecture chosen by validation or by test",
        GRID,
        tables.table_selection,
    ),
    "table_ablation": Product(
        "table",
        "Section 6.2 of Yu (2020), measured: the text against the released code",
        ("web30k_ablation",),
        more.table_ablation,
        timed=True,
    ),
    "table_ohsumed": Product(
        "table",
        "The methods of Yu (2020) on OHSUMED",
        ("ohsumed_methods", "ohsumed_trees"),
        more.table_ohsumed,
    ),
}
