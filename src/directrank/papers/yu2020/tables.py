"""Yu (2020): Tables 4 to 7, the nERR results, and how the architecture is chosen.

An asterisk is the paper's: Wilcoxon's signed-rank test over the pooled test queries of all folds,
p < 0.01 against the best method of the column.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import pandas as pd
from scipy import stats

from directrank.papers.shared.cells import BRACKETS, NOT_RUN, UNPRINTED, measured, printed
from directrank.papers.shared.differences import add_differences, add_status, standard_error
from directrank.papers.shared.evidence import Evidence, PlannedRun
from directrank.papers.shared.format import headings, number, share, signed
from directrank.papers.shared.leads import extremes, lead, near_print
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
        f"{_grid_caption(everything, cells)} Values are means of the fold means ± the half width "
        "of the 95% t interval over the test queries. “paper” is the printed value; a dash means "
        "that the paper has no such row. The best value of a column among the table's methods is "
        "bold; an asterisk marks p < 0.01 against it in Wilcoxon's signed-rank test over the "
        "pooled test queries. "
        f"{f'{BRACKETS}. ' if (data['data'] == 'real').any() else ''}"
        "MAP@k is what the released code computes, which divides by the sum of the k largest "
        "graded labels and is not a mean of average precisions; AP@k is that of the text "
        f"(equation 7), for which no values are printed. "
        f"{groups_sentence(cells)}{evidence.sources(runs_of(cells))}"
    )
    in_bold = _printed_best(evidence, number)
    columns = _headings_beside(NDCG)
    sections = [
        Section("nDCG", _lines_beside(data, list(NDCG), in_bold)),
        Section(
            "MAP as the released code computes it",
            _lines_beside(data, list(MAP_CODE), in_bold),
            _headings_beside(MAP_CODE),
        ),
        Section(
            "Average precision as the text defines it, here",
            method_lines(data[data["mean"].notna()], list(MAP_TEXT)),
            ["Method", "net", *MAP_TEXT],
        ),
    ]
    start = lead(_ahead(data, number), near_print(data))
    return TableResult(data, Layout(start, caption, columns, sections, _table_notes(data, number)))


def _headings_beside(metrics: Mapping[str, str]) -> list[str]:
    """The headings of a section in which printed values stand beside ours."""
    return headings("Method", ["net", *metrics], "paper")


def _ahead(data: pd.DataFrame, number: int) -> str:
    """The best method of the table in nDCG@10, and from how many it differs significantly."""
    rows = data[(data["metric"] == "nDCG@10") & data["method"].isin(TABLES[number])]
    rows = rows[rows["mean"].notna()]
    means = dict(zip(rows["method"], rows["mean"], strict=True))
    told = f"{share(int(rows['star'].sum()), len(rows) - 1)} others differ from it with p < 0.01"
    return extremes(means, "nDCG@10") + (f"; {told}" if len(rows) > 1 else "")


def table_nerr(evidence: Evidence) -> TableResult:
    """The nERR results that the paper leaves out as consistent with nDCG."""
    everything = grid(evidence)
    cells = list(reported(everything).values())
    data = with_origin(evidence, cells, compared(cells, NERR | {"nDCG@10": "ndcg@10"}))
    caption = (
        "nERR@k with the largest label of each query as the top of the scale, beside nDCG@10. The "
        "paper says that both agree, but prints no nERR. "
        f"{_grid_caption(everything, cells)} Values are means of the fold means ± the half width "
        "of the 95% t interval over the test queries. The best value of a column is bold; an "
        "asterisk marks p < 0.01 against it in Wilcoxon's signed-rank test over the pooled test "
        "queries. "
        f"{groups_sentence(cells)}{evidence.sources(runs_of(cells))}"
    )
    columns = [*NERR, "nDCG@10"]
    sections = [
        Section(title, method_lines(data[data["method"].isin(names)], columns))
        for title, names in method_groups(data).items()
    ]
    start = lead(_orders(data))
    return TableResult(data, Layout(start, caption, ["Method", "net", *columns], sections))


def _orders(data: pd.DataFrame) -> str:
    """How alike nERR@10 and nDCG@10 order the methods, and which is the best by either."""
    theirs = data[~data["method"].isin(READINGS)]
    means = theirs.pivot(index="method", columns="metric", values="mean")
    nerr, ndcg = means["nERR@10"], means["nDCG@10"]
    if len(means) < 2:
        return f"only {means.index[0]} was run"
    tau = float(stats.kendalltau(nerr, ndcg).statistic)
    best = (
        f"the best by both is {nerr.idxmax()}"
        if nerr.idxmax() == ndcg.idxmax()
        else f"the best are {nerr.idxmax()} and {ndcg.idxmax()}"
    )
    return (
        f"Kendall's τ between the orders of the paper's {len(means)} methods by nERR@10 and by "
        f"nDCG@10 is {number(tau, 2)}; {best}"
    )


def table_selection(evidence: Evidence) -> TableResult:
    """What choosing the architecture by the test set, as the released code does, is worth."""
    names = printed_architectures(evidence)
    everything = grid(evidence)
    rows = []
    for method, cells in everything.items():
        if "" in cells:
            continue  # trees have no architecture
        for by in SELECTIONS:
            cell = select(cells, by, names.get(method, ""))
            rows.append(
                {
                    "method": method,
                    "selection": by,
                    "architecture": cell.variant if cell else names.get(method, ""),
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
            line += [row.architecture or UNPRINTED, measured(row.test) if row.architecture else ""]
        by_test = part.loc[part["selection"] == "test", "gain_over_validation"].iloc[0]
        lines.append([*line, signed(by_test)])
    caption = (
        "Test nDCG@5 of each method in the architecture that is chosen by validation nDCG@5 (as in "
        "the text), by test nDCG@5 (as in the released code), and in the one that the paper's "
        "table names. “gain” is the second value minus the first. "
        f"{evidence.sources(runs_of(every))}"
    )
    columns = ["Method", "by validation", "nDCG@5", "by test", "nDCG@5", "as printed", "nDCG@5"]
    columns.append("gain")
    layout = Layout(_worth(data, test), caption, columns, [Section("", lines)])
    return TableResult(data, layout)


def _worth(data: pd.DataFrame, test: pd.DataFrame) -> str:
    """What choosing by the test set is worth."""
    gains = (test["test"] - test["validation"]).dropna()
    several = data.loc[data["architectures"] > 1, "method"].nunique()
    others = int((gains > 0).sum())
    if not others:
        return "The test set chooses no better architecture than the validation set for any method."
    return lead(
        "the test set chooses another architecture than the validation set for "
        f"{share(others, several)} methods; this raises their test nDCG@5 by "
        f"{gains[gains > 0].mean():.3f} on average and by at most {gains.max():.3f}, which is an "
        "effect of the selection and not of the methods"
    )


def _beside_published(evidence: Evidence, data: pd.DataFrame, number: int) -> pd.DataFrame:
    """``data`` with the printed values, and rows for printed methods that were not run."""
    theirs = evidence.published(f"yu2020_table{number}").set_index("method")
    for method in theirs.index.difference(data["method"].unique(), sort=False):
        empty = {"method": method, "architecture": "", "metric": [*NDCG, *MAP_CODE]}
        data = pd.concat([data, pd.DataFrame(empty)], ignore_index=True)
    values, stars, architectures = [], [], []
    for row in data.itertuples():
        in_print = row.method in theirs.index and row.metric in theirs.columns
        values.append(float(theirs.loc[row.method, row.metric]) if in_print else math.nan)
        stars.append(theirs.loc[row.method, f"{row.metric}_star"] if in_print else math.nan)
        architectures.append(theirs.loc[row.method, "architecture"] if in_print else "")
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


def method_lines(data: pd.DataFrame, metrics: Sequence[str]) -> list[list[str]]:
    """One line per method: its architecture, where there is one, and its means."""
    lines = []
    for method, part in data.groupby("method", sort=False):
        rows = part.set_index("metric")
        net = [rows["architecture"].iloc[0]] if "architecture" in rows else []
        lines.append([str(method), *net, *(_ours(rows.loc[metric]) for metric in metrics)])
    return lines


def _ours(row: pd.Series) -> str:
    """A mean of ours, marked as the paper marks its own."""
    if pd.isna(row["mean"]):
        return NOT_RUN
    star = "" if row["best"] or not row["star"] else "*"
    return measured(row["mean"], row["half_width"], best=bool(row["best"]), mark=star)


def _lines_beside(
    data: pd.DataFrame, metrics: Sequence[str], in_bold: Mapping[str, Collection[str]]
) -> list[list[str]]:
    """One line per method: architecture and means, each with the printed one beside it.

    Args:
        data: with the printed values.
        metrics: their headings.
        in_bold: method → headings of its printed values that are the best of their columns.
    """
    lines = []
    for method, part in data.groupby("method", sort=False):
        rows = part.set_index("metric")
        nets = rows[["architecture", "published_architecture"]].iloc[0].fillna("")
        line = [str(method), *nets]
        for metric in metrics:
            row = rows.loc[metric]
            is_best = metric in in_bold.get(str(method), ())
            starred = pd.notna(row["published_star"]) and bool(row["published_star"])
            theirs = printed(
                row["published"],
                4,
                best=is_best,
                mark="*" if starred and not is_best else "",
                in_errors=row["difference_in_se"],
                kind=row["data"],
            )
            line += [_ours(row), theirs]
        lines.append(line)
    return lines


def _printed_best(evidence: Evidence, number: int) -> dict[str, list[str]]:
    """The headings in which each method's printed value is the best of the table."""
    table = evidence.published(f"yu2020_table{number}").set_index("method")
    return {
        str(method): str(best).split(";")
        for method, best in table["column_best_inferred_bold"].items()
    }


def _table_notes(data: pd.DataFrame, number: int) -> list[str]:
    notes = []
    if number == 4 and set(READINGS) & set(data["method"]):
        notes.append(
            "The paper uses WassRank's “suggested” configuration without giving it; the released "
            "code has two, that of its grid search (WassRank) and its defaults (20 rounds, gap "
            "100). In 2020, LightGBM cut pairs at 20 documents and did not rescale lambdas."
        )
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
        f"The net is the architecture with the best validation nDCG@5 of {number} that were run "
        "for a method."
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
