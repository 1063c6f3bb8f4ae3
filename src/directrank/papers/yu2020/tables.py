"""Yu (2020): Tables 4 to 7, the nERR results, and how the architecture is chosen.

An asterisk is the paper's: Wilcoxon's signed-rank test over the pooled test queries of all folds,
p < 0.01 against the best method of the column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from directrank.papers.shared.differences import add_differences, add_status, standard_error
from directrank.papers.shared.evidence import Evidence, PlannedRun
from directrank.papers.shared.format import number, signed
from directrank.papers.shared.methods import (
    Method,
    groups_sentence,
    mean_over_queries,
    paired_groups,
    paired_values,
    signed_rank_p,
)
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section, in_front
from directrank.papers.yu2020.grid import (
    CUTOFFS,
    GRID,
    READINGS,
    SELECTED_BY,
    SELECTIONS,
    TABLES,
    Grid,
    grid,
    printed_architectures,
    reported,
    select,
)
from directrank.system.errors import DataError

#: Below this p value a method gets the paper's asterisk.
SIGNIFICANT = 0.01

NDCG = {f"nDCG@{k}": f"ndcg@{k}" for k in CUTOFFS}
#: MAP@k as the released code computes it, which the printed values agree with.
MAP_CODE = {f"MAP@{k}": f"ap@{k}/graded_ideal" for k in CUTOFFS}
#: MAP as the text defines it (equation 7), cut at k and of the whole list.
MAP_TEXT = {**{f"AP@{k}": f"ap@{k}" for k in CUTOFFS}, "AP": "ap"}
NERR = {f"nERR@{k}": f"nerr@{k}" for k in CUTOFFS}

#: Heading of the differences from print.
UNITS = "here − paper (in brackets: in standard errors of ours over the queries)"


def compared(cells: Sequence[Method], metrics: Mapping[str, str]) -> pd.DataFrame:
    """Every cell in every metric against the best of the column.

    Args:
        cells: what is compared; other readings of a configuration cannot be the best.
        metrics: heading → column of the results.

    Returns:
        One row per cell and heading: ``method``, ``architecture``, ``metric``, ``mean`` (of the
        folds' means), ``half_width`` (95 % t interval over the pooled queries), ``queries``,
        ``folds``, ``best`` (whether it is), ``p_value`` of Wilcoxon's test against the best and
        ``star``.
    """
    rows = []
    for heading, metric in metrics.items():
        means = {cell.name: cell.mean(metric) for cell in cells}
        values = dict(zip(means, paired_values(cells, metric), strict=True))
        groups = paired_groups(cells, next(iter(values.values())))
        best = max((name for name in means if name not in READINGS), key=lambda name: means[name])
        for cell in cells:
            own = values[cell.name]
            is_best = cell.name == best
            p_value = math.nan if is_best else signed_rank_p(own, values[best], groups)
            rows.append(
                {
                    "method": cell.name,
                    "architecture": cell.variant,
                    "metric": heading,
                    "mean": means[cell.name],
                    "half_width": mean_over_queries(own, groups).half_width,
                    "queries": len(own),
                    "folds": len(cell.runs),
                    "best": is_best,
                    "p_value": p_value,
                    "star": int(p_value < SIGNIFICANT),
                }
            )
    return pd.DataFrame(rows)


def methods_table(evidence: Evidence, number: int) -> TableResult:
    """Table 4, 5, 6 or 7: nDCG@k and both readings of MAP@k beside the paper's numbers.

    Raises:
        DataError: no method of the table was run.
    """
    methods = (*TABLES[number], *(READINGS if number == 4 else ()))
    everything = grid(evidence)
    chosen = reported(everything, methods)
    cells = [chosen[method] for method in methods if method in chosen]
    if not any(cell.name in TABLES[number] for cell in cells):
        raise DataError(
            f"no method of Table {number} was run",
            f"let the edition run some of {', '.join(TABLES[number])} in {', '.join(GRID)}",
        )
    data = _beside_published(evidence, compared(cells, NDCG | MAP_CODE | MAP_TEXT), number)
    data = with_origin(evidence, cells, data)
    caption = (
        f"{_grid_caption(everything, cells)} Means of the folds' means; bold: the best of the "
        "column among the table's methods; asterisk: Wilcoxon's signed-rank test against it over "
        "the pooled test queries, p < 0.01. MAP@k is what the released code computes, which "
        "divides by the sum of the k largest graded labels and is no mean of average precisions; "
        f"AP@k is the text's (equation 7). {groups_sentence(cells)}"
        f"{evidence.sources(runs_of(cells))}"
    )
    columns = ["", *NDCG, *MAP_CODE]
    ours = data[data["mean"].notna()]
    sections = [
        Section("here", method_lines(ours, columns[1:])),
        Section("paper", _published_lines(evidence, number)),
    ]
    if (data["data"] == "real").any():
        sections.append(Section(UNITS, _difference_lines(ours, columns[1:])))
    blank = [""] * (len(columns) - 1 - len(MAP_TEXT))
    sections.append(
        Section(
            "here, average precision as the text defines it",
            [[*line, *blank] for line in method_lines(ours, list(MAP_TEXT))],
            ["", *MAP_TEXT, *blank],
        )
    )
    return TableResult(data, Layout(caption, columns, sections, _table_notes(data, number)))


def table_nerr(evidence: Evidence) -> TableResult:
    """The nERR results that the paper leaves out as consistent with nDCG."""
    everything = grid(evidence)
    cells = list(reported(everything).values())
    data = with_origin(evidence, cells, compared(cells, NERR | {"nDCG@10": "ndcg@10"}))
    caption = (
        "nERR@k with each query's own largest label as the top of the scale, of which the paper "
        "says that it agrees with nDCG and prints nothing; nDCG@10 beside it. "
        f"{_grid_caption(everything, cells)} Bold: the best of the column; asterisk: Wilcoxon's "
        "signed-rank test against it over the pooled test queries, p < 0.01. "
        f"{groups_sentence(cells)}{evidence.sources(runs_of(cells))}"
    )
    columns = ["", *NERR, "nDCG@10"]
    sections = [
        Section(title, method_lines(data[data["method"].isin(names)], columns[1:]))
        for title, names in method_groups(data).items()
    ]
    return TableResult(data, Layout(caption, columns, sections))


def table_selection(evidence: Evidence) -> TableResult:
    """What choosing the architecture by the test set, as the released code does, is worth."""
    printed = printed_architectures(evidence)
    everything = grid(evidence)
    rows = []
    for method, cells in everything.items():
        if "" in cells:
            continue  # trees have no architecture
        for by in SELECTIONS:
            cell = select(cells, by, printed.get(method, ""))
            rows.append(
                {
                    "method": method,
                    "selection": by,
                    "architecture": cell.variant if cell else printed.get(method, ""),
                    "validation": cell.mean(SELECTED_BY, "vali") if cell else math.nan,
                    "test": cell.mean(SELECTED_BY) if cell else math.nan,
                    "architectures": len(cells),
                }
            )
    if not rows:
        raise DataError("no network was run", f"let the edition run {', '.join(GRID)}")
    every = [cell for some in everything.values() for cell in some.values()]
    data = with_origin(evidence, every, pd.DataFrame(rows))
    test = data.pivot(index="method", columns="selection", values="test")
    data["gain_over_validation"] = data["test"] - data["method"].map(test["validation"])
    lines = []
    for method, part in data.groupby("method", sort=False):
        line = [str(method)]
        for row in part.itertuples():
            line += [row.architecture, number(row.test)]
        by_test = part.loc[part["selection"] == "test", "gain_over_validation"].iloc[0]
        lines.append([*line, signed(by_test)])
    gains = test["test"] - test["validation"]
    several = data.loc[data["architectures"] > 1, "method"].nunique()
    notes = [
        f"**What is the test set worth?** Of {several} methods with several architectures, "
        f"{int((gains > 0).sum())} get another architecture from the test set than from the "
        f"validation set. The mean of their test nDCG@5 rises by {gains[gains > 0].mean():.4f}, "
        f"by {gains.max():.4f} at the most: that much of a number chosen so is no property of the "
        "method."
        if (gains > 0).any()
        else "**What is the test set worth?** Nothing here: both sets choose the same "
        "architectures."
    ]
    caption = (
        "Test nDCG@5 of each method in the architecture that is chosen by validation nDCG@5 (the "
        "text), by test nDCG@5 (the released code), and in the one that the paper's table names; "
        "empty where that one was not run. "
        f"{evidence.sources(runs_of(every))}"
    )
    columns = ["", "by validation", "nDCG@5", "by test", "nDCG@5", "as printed", "nDCG@5", "gain"]
    return TableResult(data, Layout(caption, columns, [Section("", lines)], notes))


def _beside_published(evidence: Evidence, data: pd.DataFrame, number: int) -> pd.DataFrame:
    """``data`` with the printed values, and rows for printed methods that were not run."""
    printed = evidence.published(f"yu2020_table{number}").set_index("method")
    for method in printed.index.difference(data["method"].unique(), sort=False):
        empty = {"method": method, "architecture": "", "metric": [*NDCG, *MAP_CODE]}
        data = pd.concat([data, pd.DataFrame(empty)], ignore_index=True)
    values, stars, architectures = [], [], []
    for row in data.itertuples():
        in_print = row.method in printed.index and row.metric in printed.columns
        values.append(float(printed.loc[row.method, row.metric]) if in_print else math.nan)
        stars.append(printed.loc[row.method, f"{row.metric}_star"] if in_print else math.nan)
        architectures.append(printed.loc[row.method, "architecture"] if in_print else "")
    data["published"] = values
    data["published_star"] = pd.array(stars, dtype="Int64")
    data["published_architecture"] = architectures
    return data


def with_origin(evidence: Evidence, cells: Sequence[Method], data: pd.DataFrame) -> pd.DataFrame:
    """``data`` with the edition and the data set in front, and what each row can be used for."""
    data = in_front(data, evidence.about(cells[0].dataset))
    if "published" in data:
        data = add_differences(data, error=standard_error(data["half_width"], data["queries"]))
        data = add_status(data, "not in the paper's table")
        for column in ("queries", "folds", "star"):
            data[column] = data[column].astype("Int64")
    return data


def method_lines(data: pd.DataFrame, headings: Sequence[str]) -> list[list[str]]:
    """One line per method: its name with the architecture, and its means marked as in the paper."""
    lines = []
    for method, part in data.groupby("method", sort=False):
        rows = part.set_index("metric")
        architecture = rows["architecture"].iloc[0] if "architecture" in rows else ""
        name = f"{method} ({architecture})" if architecture else str(method)
        lines.append([name, *(_marked(rows.loc[heading]) for heading in headings)])
    return lines


def _marked(row: pd.Series) -> str:
    text = number(row["mean"])
    if row["best"]:
        return f"**{text}**"
    return text + ("*" if row["star"] else "")


def _published_lines(evidence: Evidence, number: int) -> list[list[str]]:
    lines = []
    for row in evidence.published(f"yu2020_table{number}").to_dict("records"):
        cells = [row["Method"]]
        best = str(row["column_best_inferred_bold"]).split(";")
        for heading in (*NDCG, *MAP_CODE):
            text = f"{row[heading]:.4f}"
            star = "*" if row[f"{heading}_star"] else ""
            cells.append(f"**{text}**" if heading in best else text + star)
        lines.append(cells)
    return lines


def _difference_lines(data: pd.DataFrame, headings: Sequence[str]) -> list[list[str]]:
    lines = []
    for method, part in data.groupby("method", sort=False):
        rows = part.set_index("metric")
        if rows["difference"].notna().any():
            lines.append([str(method), *(_distance(rows.loc[heading]) for heading in headings)])
    return lines


def _distance(row: pd.Series) -> str:
    text = signed(row["difference"])
    return f"{text} ({signed(row['difference_in_se'], 1)})" if text else ""


def _table_notes(data: pd.DataFrame, number: int) -> list[str]:
    notes = []
    if number == 4 and set(READINGS) & set(data["method"]):
        notes.append(
            "The paper takes WassRank's “suggested” configuration without naming it; the released "
            "code holds two, the file of its grid search (WassRank) and its defaults (20 rounds, "
            "gap 100). LightGBM of 2020 cut pairs at 20 documents and did not rescale lambdas."
        )
    absent = data.loc[data["status"] == "not run here", "method"].unique()
    if len(absent):
        notes.append(f"Not run here: {', '.join(absent)}.")
    return notes


def _grid_caption(everything: Grid, cells: Sequence[Method]) -> str:
    """How the architecture of each method came about."""
    tried = {
        method: sorted(some)
        for method, some in everything.items()
        if "" not in some and method in {cell.name for cell in cells}
    }
    counts = {len(some) for some in tried.values()}
    if not counts:
        return "Trees."
    number = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(max(counts))
    return (
        "In brackets the architecture with the best validation nDCG@5, "
        f"of {number} that were run for a method."
    )


def method_groups(data: pd.DataFrame) -> dict[str, list[str]]:
    """Methods in sections: baselines, then the three types."""
    present = set(data["method"])
    groups = {"baselines": (*TABLES[4], *READINGS)}
    groups |= {f"type {kind}": TABLES[4 + kind] for kind in (1, 2, 3)}
    run = {title: [name for name in names if name in present] for title, names in groups.items()}
    return {title: names for title, names in run.items() if names}


def runs_of(cells: Sequence[Method]) -> list[PlannedRun]:
    return [run for cell in cells for run in cell.runs]
