"""Yu (2020): Tables 4 to 7, nERR, the choice of the architecture, the released code, and OHSUMED.

An asterisk is the paper's: Wilcoxon's signed-rank test over the pooled test queries of all folds,
p < 0.01 against the best method of the column. It says nothing of other trainings, so that what the
study concludes rests on ``p_holm`` beside it, which does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
from scipy import stats

from directrank.papers.shared.cells import BRACKETS, DIFFERENCES, UNPRINTED, measured
from directrank.papers.shared.evidence import Evidence, FinishedRun
from directrank.papers.shared.format import number, p_value, share, signed, spread
from directrank.papers.shared.leads import lead, near_print, significant_share, training_sentence
from directrank.papers.shared.methods import (
    Method,
    by_method,
    compared,
    groups_of,
    groups_sentence,
    how_tested,
    interval_of_means,
    mean_estimate,
    paired_values,
    signed_rank_p,
)
from directrank.papers.shared.methods_table import MethodsTable, Row, in_print
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.summary import Panel, in_one_picture
from directrank.papers.shared.tables import Section, TableLayout, in_front
from directrank.papers.yu2020.grid import (
    CUTOFFS,
    GRID,
    READINGS,
    SELECTED_BY,
    SELECTIONS,
    TABLES,
    Grid,
    grid,
    ohsumed_cells,
    printed_architectures,
    reported,
    select,
)
from directrank.stats.tests import holm_of_known
from directrank.system.errors import DataError

#: Below this p value a method gets the paper's asterisk.
SIGNIFICANT = 0.01

#: Below this p value, corrected, two methods or settings differ.
DIFFERS = 0.05

NDCG = {f"nDCG@{k}": f"ndcg@{k}" for k in CUTOFFS}
#: MAP@k as the released code computes it, which the printed values agree with.
MAP_CODE = {f"MAP@{k}": f"ap@{k}/graded_ideal" for k in CUTOFFS}
#: MAP as the text defines it (equation 7), cut at k and of the whole list.
MAP_TEXT = {**{f"AP@{k}": f"ap@{k}" for k in CUTOFFS}, "AP": "ap"}
NERR = {f"nERR@{k}": f"nerr@{k}" for k in CUTOFFS}


def against_best(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
    """The mean of the folds' means with its 95 % interval, and two tests against the best method:
    Wilcoxon's, and the study's after Holm's correction. Other readings of a configuration cannot be
    the best.
    """
    means = {name: method.mean(metric) for name, method in methods.items()}
    values = dict(zip(methods, paired_values(methods.values(), metric), strict=True))
    best = max((name for name in means if name not in READINGS), key=lambda name: means[name])
    groups = groups_of(methods[best], values[best].index)
    gaps = {name: compared(methods[best], methods[name], metric) for name in means}
    tests = [math.nan if name == best else gap.p_differs() for name, gap in gaps.items()]
    p_holm = dict(zip(gaps, holm_of_known(tests), strict=True))
    rows = {}
    for name, own in values.items():
        p_value = math.nan if name == best else signed_rank_p(own, values[best], groups)
        rows[name] = {
            "mean": means[name],
            "half_width": mean_estimate(methods[name], metric).interval().half_width,
            "queries": len(own),
            "folds": len(methods[name].runs),
            "architecture": methods[name].variant,
            "best": name == best,
            "p_value": p_value,
            "star": int(p_value < SIGNIFICANT),
            "p_holm": p_holm[name],
        }
    return rows


#: What is measured, in the order of the CSV files.
MEASURED = (
    *("metric", "mean", "half_width", "queries", "folds", "best", "p_value", "star", "p_holm"),
)

WITH_NERR = MethodsTable(
    first="Method",
    metrics={**NERR, "nDCG@10": "ndcg@10"},
    csv=("edition", "dataset", "data", "method", "architecture", *MEASURED),
    measure=against_best,
    front={"net": "architecture"},
    by_metric=True,
)

#: Tables 4 to 7, whose sections have the metrics of one kind each.
EVERY_METRIC = replace(
    WITH_NERR,
    metrics={**NDCG, **MAP_CODE, **MAP_TEXT},
    csv=(
        *(*WITH_NERR.csv, "published", "published_star", "published_architecture"),
        *(*DIFFERENCES, "status"),
    ),
    front={"net": "architecture", "paper": "published_architecture"},
    beside={"paper": in_print(4)},
    unprinted="not in the paper's table",
)
IN_NDCG = replace(EVERY_METRIC, metrics=NDCG)
IN_MAP = replace(EVERY_METRIC, metrics=MAP_CODE)
AS_IN_TEXT = replace(EVERY_METRIC, metrics=MAP_TEXT, front=WITH_NERR.front, beside={})


def methods_table(evidence: Evidence, number: int) -> TableResult:
    """Table 4, 5, 6 or 7: nDCG@k and both readings of MAP@k beside the paper's numbers.

    Raises:
        DataError: no method of the table was run.
    """
    methods = (*TABLES[number], *(READINGS if number == 4 else ()))
    everything = grid(evidence)
    chosen = reported(everything, methods)
    ours = {method: chosen[method] for method in methods if method in chosen}
    cells = [*ours.values()]
    if not any(cell.name in TABLES[number] for cell in cells):
        raise DataError(
            f"no method of Table {number} was run",
            f"let the edition run some of {', '.join(TABLES[number])} in {', '.join(GRID)}",
        )
    data = EVERY_METRIC.rows(evidence, ours, _published(evidence, number), order=methods)
    data = data[data["mean"].notna() | ~data["metric"].isin([*MAP_TEXT])]
    caption = (
        f"{_grid_caption(everything, cells)} Values are means of the fold means "
        f"± {interval_of_means(cells)}. “paper” is the printed value; a dash means that the paper "
        "has no such row. The best value of a column among the table's methods is bold. "
        f"{_tests_sentence(cells)}"
        f"{f'{BRACKETS}. ' if (data['data'] == 'real').any() else ''}"
        "MAP@k is what the released code computes, which divides by the sum of the k largest "
        "graded labels and is not a mean of average precisions; AP@k is that of the text "
        f"(equation 7), for which no values are printed. "
        f"{groups_sentence(cells)}{evidence.sources(runs_of(cells))}"
    )
    sections = [
        IN_NDCG.section(data, "nDCG"),
        IN_MAP.section(data, "MAP as the released code computes it", headed=True),
        AS_IN_TEXT.section(data, "Average precision as the text defines it, here", headed=True),
    ]
    start = lead(_best_method(data, number), near_print(data))
    return IN_NDCG.result(data, start, caption, sections, _table_notes(data, number))


def _best_method(data: pd.DataFrame, number: int) -> str:
    """The best method of the table in nDCG@10, and from how many it differs significantly."""
    return _ahead(IN_NDCG, data[data["method"].isin(TABLES[number])])


def _ahead(table: MethodsTable, data: pd.DataFrame) -> str:
    """The best method in nDCG@10, and how many others it is significantly ahead of."""
    rows = data[(data["metric"] == "nDCG@10") & data["mean"].notna()]
    told = significant_share(rows["p_holm"], DIFFERS, "others differ from it significantly")
    return "; ".join(filter(None, (table.extremes(rows, "nDCG@10"), told)))


def _tests_sentence(cells: Sequence[Method]) -> str:
    """What the asterisk and the sentence above a table rest on, with a space after it."""
    return (
        "An asterisk is the paper's: p < 0.01 against the best in Wilcoxon's signed-rank test over "
        "the pooled test queries, which says nothing of other trainings. A significant difference "
        f"is one in a {how_tested(cells)} (p < {DIFFERS} after Holm's correction within the "
        "column; p_holm in the CSV file). "
    )


def table_nerr(evidence: Evidence) -> TableResult:
    """The nERR results that the paper leaves out as consistent with nDCG."""
    everything = grid(evidence)
    methods = reported(everything)
    cells = [*methods.values()]
    data = WITH_NERR.rows(evidence, methods)
    caption = (
        "nERR@k with the largest label of each query as the top of the scale, beside nDCG@10. The "
        "paper says that both agree, but prints no nERR. "
        f"{_grid_caption(everything, cells)} Values are means of the fold means "
        f"± {interval_of_means(cells)}. The best value of a column is bold. "
        f"{_tests_sentence(cells)}"
        f"{groups_sentence(cells)}{evidence.sources(runs_of(cells))}"
    )
    sections = [
        WITH_NERR.section(data[data["method"].isin(names)], title)
        for title, names in method_groups(data).items()
    ]
    return WITH_NERR.result(data, lead(_nerr_lead(data)), caption, sections)


def _nerr_lead(data: pd.DataFrame) -> str:
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
    data = in_front(pd.DataFrame(rows), evidence.about(every[0].dataset))
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
    layout = TableLayout(_selection_lead(data, test), caption, columns, [Section("", lines)])
    return TableResult(data, layout)


def _selection_lead(data: pd.DataFrame, test: pd.DataFrame) -> str:
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


def _published(evidence: Evidence, number: int) -> pd.DataFrame:
    """The printed values of a table, with their asterisks and which is the best of its column."""
    table = evidence.published(f"yu2020_table{number}").set_index("method")
    values = EVERY_METRIC.printed(
        table,
        published="{}",
        published_star="{}_star",
        published_architecture="architecture",
    )
    best = table["column_best_inferred_bold"].fillna("").str.split(";")
    cells = zip(values["method"], values["metric"], strict=True)
    return values.assign(published_best=[metric in best[method] for method, metric in cells])


def _table_notes(data: pd.DataFrame, number: int) -> list[str]:
    notes = []
    if number == 4 and set(READINGS) & set(data["method"]):
        notes.append(
            "The paper uses WassRank's “suggested” configuration without giving it; the released "
            "code has two, that of its grid search (WassRank) and its defaults (20 rounds, gap "
            "100). How LightGBM truncates and normalises changed in 2019 and 2020, and the paper "
            "names no version; a second row has other options than today's defaults."
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


def runs_of(cells: Sequence[Method]) -> list[FinishedRun]:
    return [run for cell in cells for run in cell.runs]


def table_ablation(evidence: Evidence) -> TableResult:
    """AP-type3 with what the released code adds to the text taken away, and other steps."""
    cells = by_method(evidence.runs("web30k_ablation"), "exclude", setting="setting")
    base = next(iter(cells.values()))
    metrics = {heading: NDCG[heading] for heading in ("nDCG@1", "nDCG@5", "nDCG@10", "nDCG@20")}
    rows, times = [], []
    for name, cell in cells.items():
        for heading, metric in metrics.items():
            gap = compared(cell, base, metric)
            rows.append(
                {
                    "setting": name,
                    "metric": heading,
                    "mean": cell.mean(metric),
                    "difference": cell.mean(metric) - base.mean(metric),
                    "p_value": gap.p_differs() if cell is not base else math.nan,
                    "queries": gap.n,
                    "folds": len(cell.runs),
                    "batch_queries": cell.runs[0].result.spec["training"]["batch_queries"],
                }
            )
        seconds = pd.concat([run.result.history["seconds"] for run in cell.runs])
        times.append({"setting": name, "seconds_per_epoch": float(seconds.mean())})
    data = in_front(pd.DataFrame(rows), evidence.about(base.dataset))
    data.insert(
        data.columns.get_loc("p_value") + 1,
        "p_holm",
        data.groupby("metric")["p_value"].transform(holm_of_known),
    )
    duration = {row["setting"]: row["seconds_per_epoch"] for row in times}
    lines = []
    for name, part in data.groupby("setting", sort=False):
        at_five = part[part["metric"] == "nDCG@5"].iloc[0]
        is_base = name == base.name
        lines.append(
            [
                str(name),
                *(measured(mean) for mean in part["mean"]),
                "" if is_base else signed(at_five["difference"]),
                "" if is_base else p_value(at_five["p_holm"], 3),
                f"{duration[name]:.2f}",
            ]
        )
    caption = (
        "AP-type3 in R4.L without what only the released code has (normalisation of the output, a "
        "decreasing learning rate, dropout), and with several queries per step, which have their "
        "own statistics or share them. The difference in nDCG@5 is that from the first row, with p "
        f"of a {how_tested([*cells.values()])}, after Holm's correction for the number of "
        "settings. Seconds per epoch are those of the machine that ran it, without monitoring. "
        f"{groups_sentence(list(cells.values()))}{evidence.sources(runs_of(list(cells.values())))}"
    )
    columns = ["Setting", *metrics, "difference", "p, Holm", "s / epoch"]
    layout = TableLayout(_ablation_lead(data, base.name), caption, columns, [Section("", lines)])
    return TableResult(data, layout, pd.DataFrame(times))


def _ablation_lead(data: pd.DataFrame, base: str) -> str:
    """How many settings make a difference in nDCG@5, and the largest difference."""
    others = data[(data["metric"] == "nDCG@5") & (data["setting"] != base)]
    if others.empty:
        return f"Only “{base}” was run."
    what = f"settings differ significantly from “{base}” in nDCG@5"
    most = others.loc[others["difference"].abs().idxmax()]
    return lead(
        significant_share(others["p_holm"], DIFFERS, what),
        f"the largest difference is {signed(most['difference'])} ({most['setting']})",
    )


def _with_architectures(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
    """As in Tables 4 to 7, with the architectures that were chosen within the runs."""
    rows = against_best(methods, metric)
    return {
        name: row | {"architectures": _tuned_architectures(methods[name])}
        for name, row in rows.items()
    }


ON_OHSUMED = replace(
    WITH_NERR,
    metrics={
        **{heading: NDCG[heading] for heading in ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10")},
        "AP": "ap",
        "nERR@10": "nerr@10",
    },
    csv=("edition", "dataset", "data", "method", *MEASURED, "architectures"),
    measure=_with_architectures,
    front={},
    end={"architectures chosen": "architectures"},
)


def table_ohsumed(evidence: Evidence) -> TableResult:
    """The methods on the real OHSUMED folds, which the paper does not use."""
    methods = ohsumed_cells(evidence)
    cells = [*methods.values()]
    data = ON_OHSUMED.rows(evidence, methods)
    sections = [
        ON_OHSUMED.section(data[data["method"].isin(names)], title)
        for title, names in method_groups(data).items()
    ]
    caption = (
        "The paper's methods on OHSUMED, which it does not use, in each fold with the "
        "architecture, width and learning rate that have the best validation nDCG@5. Values are "
        f"means of the fold means ± {interval_of_means(cells)}. The best value of a column is "
        f"bold. {_tests_sentence(cells)}"
        f"{_trials_sentence(cells)}{groups_sentence(cells)}{training_sentence(runs_of(cells))} "
        f"{evidence.sources(runs_of(cells), 'test sets')}"
    )
    return ON_OHSUMED.result(data, lead(_ahead(ON_OHSUMED, data)), caption, sections)


def _trials_sentence(cells: Sequence[Method]) -> str:
    """How many trials the methods have, with a space after it."""
    trials = [cell.n_trials for cell in cells]
    mean = ", whose mean is the value of a query" if max(trials) > 1 else ""
    return f"Every method has {spread(trials, 'trial')} in each fold{mean}. "


def _tuned_architectures(cell: Method) -> str:
    """How often each architecture was chosen within the runs, e.g. ``R4.L ×3, CE5 ×2``."""
    names: list[str] = []
    for run in cell.runs:
        fits = run.result.fits
        for row in fits[fits["selected"]].to_dict("records"):
            if "model.activation" not in row:
                return ""
            activation = {"relu": "R", "celu": "CE"}[row["model.activation"]]
            names.append(activation + ("5" if row["model.output_activation"] else "4.L"))
    counted = pd.Series(names).value_counts(sort=False).sort_index()
    counted = counted.sort_values(ascending=False, kind="stable")
    return ", ".join(f"{name} ×{number}" for name, number in counted.items())


def _rows_of(data: pd.DataFrame, prefix: str) -> pd.Series:
    """Which rows of a table of methods are of a metric, by the start of its heading."""
    return data["metric"].str.startswith(prefix)


#: Row of Table 1 in the published file → how it is set.
TABLE1_ROWS = {
    "z": "z",
    "pi(z)": "π(z)",
    "s_hat(pi(z))": "ŝ(π(z))",
    "s_hat_inv(pi(z))": "ŝ⁻¹(π(z))",
    "z[[s_hat_inv(pi(z))]]": "z[ŝ⁻¹(π(z))]",
}

#: The frames of the product ``summary``.
PANELS = (
    Panel(
        title="Table 1, permutation",
        axis="value",
        tables=("table1",),
        row=lambda rows: rows["quantity"].map(TABLE1_ROWS),
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
            bars="95% intervals",
            where=partial(_rows_of, prefix=f"{name}@"),
        )
        for name in ("nDCG", "MAP")
    ),
)

summary = partial(in_one_picture, panels=PANELS)
