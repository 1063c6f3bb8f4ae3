"""Yu2020 in one picture: what the paper prints and the edition measures, frame by frame."""

from __future__ import annotations

from functools import partial

import pandas as pd

from directrank.papers.shared import summary
from directrank.papers.shared.summary import Panel

_METHODS = {"table4": "baselines", "table5": "type 1", "table6": "type 2", "table7": "type 3"}


def _rows_of(data: pd.DataFrame, prefix: str) -> pd.Series:
    """Which rows of a table of methods are of a metric, by the start of its heading."""
    return data["metric"].str.startswith(prefix)


PANELS = (
    Panel(
        title="Table 1, permutation",
        axis="value",
        tables=("table1",),
        series="quantity",
        cell=("quantity", "place"),
        value="value",
    ),
    Panel(
        title="Table 2, sigmoid ranks",
        axis="error",
        tables=("table2",),
        series=lambda rows: rows["documents"].astype(str) + " documents",
        cell=("documents", "alpha"),
        bars="95% intervals over lists",
        log=True,
    ),
    Panel(
        title="Table 3, twin-sigmoid ranks",
        axis="error",
        tables=("table3",),
        series="ranks",
        cell=("documents", "ranks"),
        bars="95% intervals over lists",
    ),
    *(
        Panel(
            title=f"Tables 4 to 7, {name}",
            axis=name,
            tables=tuple(_METHODS),
            series=lambda rows: rows["table"].map(_METHODS),
            cell=("method", "metric"),
            bars="95% intervals over queries",
            where=partial(_rows_of, prefix=f"{name}@"),
        )
        for name in ("nDCG", "MAP")
    ),
)

figure = partial(summary.figure, panels=PANELS)
