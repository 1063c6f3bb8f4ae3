"""Yu2020 in one picture: what the paper prints and the edition measures, frame by frame."""

from __future__ import annotations

from functools import partial

import pandas as pd

from directrank.papers.shared import summary
from directrank.papers.shared.summary import Panel


def _rows_of(data: pd.DataFrame, prefix: str) -> pd.Series:
    """Which rows of a table of methods are of a metric, by the start of its heading."""
    return data["metric"].str.startswith(prefix)


#: Quantity of Table 1 in the published file → how the paper writes it.
QUANTITIES = {
    "z": "z",
    "pi(z)": "π(z)",
    "s_hat(pi(z))": "ŝ(π(z))",
    "s_hat_inv(pi(z))": "ŝ⁻¹(π(z))",
    "z[[s_hat_inv(pi(z))]]": "z[ŝ⁻¹(π(z))]",
}

PANELS = (
    Panel(
        title="Table 1, permutation",
        axis="value",
        tables=("table1",),
        row=lambda rows: rows["quantity"].map(QUANTITIES),
        cell=("quantity", "place"),
        value="value",
    ),
    Panel(
        title="Table 2, sigmoid ranks",
        axis="error",
        tables=("table2",),
        row=lambda rows: "α = " + rows["alpha"].astype(str),
        frame=lambda rows: rows["documents"].astype(str) + " documents",
        cell=("documents", "alpha"),
        bars="95% intervals over lists",
        relative=True,
    ),
    Panel(
        title="Table 3, twin-sigmoid ranks",
        axis="error",
        tables=("table3",),
        row="ranks",
        frame=lambda rows: rows["documents"].astype(str) + " documents",
        cell=("documents", "ranks"),
        bars="95% intervals over lists",
    ),
    *(
        Panel(
            title=f"Tables 4 to 7, {name}",
            axis=name,
            tables=("table4", "table5", "table6", "table7"),
            row="method",
            cell=("method", "metric"),
            frame="metric",
            bars="95% intervals over queries",
            where=partial(_rows_of, prefix=f"{name}@"),
        )
        for name in ("nDCG", "MAP")
    ),
)

figure = partial(summary.figure, panels=PANELS)
