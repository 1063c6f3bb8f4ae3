"""What Burges2006 compared and did not print, and how much its recipe's reading matters."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from directrank.papers.burges2006.ndcg import (
    LEVELS,
    METHODS,
    NETS,
    chosen,
    compare,
    curves_of,
    has_single_start,
    how_tested,
    mean_of,
    pairs,
    protocol,
    sample_of,
)
from directrank.papers.burges2006.speed import NETS as SPEED_NETS
from directrank.papers.burges2006.speed import TITLES, V1, V1_EACH
from directrank.papers.shared.cells import difference, measured
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import p_value
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import Method, by_method
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Cells, Section, TableLayout, sections_of
from directrank.stats.estimates import of_difference
from directrank.stats.tests import holm_of_known
from directrank.study.specification import value_at
from directrank.system.errors import DataError

#: The level of the tables that show one.
LEVEL = LEVELS[-1]

#: Experiment → how it reads the recipe.
RECIPES = {
    "recipe_base": "as in Figure 2 (a coefficient per monomial, Web30K's shares of labels)",
    "recipe_symmetric": "coefficients of symmetric tensors, so that mixed monomials weigh more",
    "recipe_even": "all five labels equally frequent",
    "recipe_gains": "as in Figure 2, gains 0, 3, 7, 15, 31 in training and in measuring",
    "recipe_zscore": "as in Figure 2, features scaled to z-scores per query",
}

#: Levels of the recipe's table.
RECIPE_LEVELS = (1, 10)


def lambda_functions(evidence: Evidence, experiment: str = "lambdas") -> dict[str, Method]:
    """The lambda functions that an experiment tried, by name, with two layer nets."""
    return by_method(
        evidence.runs(experiment),
        "exclude",
        setting="function",
        variant="two_layer",
        suffix=f" {NETS['two_layer']}",
    )


LAMBDAS: Cells = {
    "Function": lambda row: row["function"],
    "validation": lambda row: measured(row["validation_ndcg10"]),
    "test": lambda row: measured(row["test_ndcg10"], row["half_width"]),
    "difference": lambda row: difference(row["difference"], row["difference_half_width"]),
    "p": lambda row: p_value(row["p_holm"], 3),
    "learning rate": lambda row: row["chosen"],
}


def table_lambdas(evidence: Evidence, experiment: str) -> TableResult:
    """The family of lambda functions, best on validation first, as the paper chose."""
    functions = lambda_functions(evidence, experiment)
    own = functions[METHODS[0]]
    others = [curve for curve in functions.values() if curve is not own]
    compared = {curve.name: compare(curve, own, LEVEL) for curve in others}
    p_values = {name: difference.p_differs() for name, difference in compared.items()}
    corrected = dict(zip(p_values, holm_of_known([*p_values.values()]), strict=True))
    order = sorted(functions.values(), key=lambda curve: -_vali(curve))
    rows = []
    for curve in order:
        run, name = curve.runs[0], curve.name
        interval = mean_of(curve, LEVEL).interval()
        gap = compared.get(name)
        loss = run.result.spec["loss"]
        row = {
            **evidence.about(run.dataset),
            "function": name,
            "loss": loss["name"],
            "force": loss.get("force"),
            "pairs": loss.get("pairs", "all"),
            "margin": loss.get("margin"),
            "validation_ndcg10": _vali(curve),
            "test_ndcg10": interval.mean,
            "half_width": interval.half_width,
            "queries": interval.n,
            "trials": run.n_trials,
            "difference": math.nan if gap is None else gap.mean,
            "p_value": p_values.get(name, math.nan),
            "p_holm": corrected.get(name, math.nan),
            "difference_half_width": math.nan if gap is None else gap.interval().half_width,
            "chosen": chosen(curve),
        }
        rows.append(row)
    place = [curve.name for curve in order].index(own.name) + 1
    start = lead(
        f"{own.name}, which was the best function on the paper's Web validation data, is "
        f"number {place} of {len(order)} on the validation set of these data, where the best is "
        f"“{order[0].name}”"
    )
    cells, tested = {**LAMBDAS}, how_tested("all functions")
    if has_single_start(order):
        del cells["p"]
        tested = ""
    caption = (
        f"Lambda functions with two-layer nets: NDCG@{LEVEL} on the validation set, by which they "
        "are ordered, and on the test set ± the half width of its 95% interval "
        f"{sample_of(order)}. The difference is that from {own.name} on the test set{tested}. "
        "All functions except RankNet weight a pair by the change in NDCG from swapping its "
        f"documents. {protocol(order)} The paper tried ten functions, chose one on its Web "
        "validation data, which are not public, and prints none of the results. "
        f"Edition {evidence.edition}."
    )
    data = pd.DataFrame(rows)
    layout = TableLayout(start, caption, [*cells], sections_of(data, cells))
    return TableResult(data.drop(columns=["difference_half_width", "chosen"]), layout)


def table_recipe(evidence: Evidence) -> TableResult:
    """RankNet and LambdaRank under several readings of the artificial data's recipe."""
    rows, lines = [], []
    every: list[Method] = []
    for experiment, title in RECIPES.items():
        curves = curves_of(evidence.runs(experiment))
        every += curves
        for ours, theirs in pairs(curves):
            line = [title, NETS[ours.variant]]
            for level in RECIPE_LEVELS:
                gap = compare(ours, theirs, level)
                half_width = gap.interval().half_width
                means = {c.name: mean_of(c, level) for c in (ours, theirs)}
                rows.append(
                    evidence.about(ours.dataset)
                    | {
                        "recipe": experiment,
                        "normalisation": value_at(ours.runs[0].result.spec, "normalisation.name"),
                        "net": ours.variant,
                        "level": level,
                        "lambdarank": means[METHODS[0]].mean,
                        "ranknet": means[METHODS[1]].mean,
                        "difference": gap.mean,
                        "half_width": half_width,
                        "queries": gap.n,
                        "trials": ours.runs[0].n_trials,
                        "p_value": gap.p_differs(),
                    }
                )
                line += [
                    measured(means[METHODS[1]].mean),
                    measured(means[METHODS[0]].mean),
                    difference(gap.mean, half_width),
                ]
            lines.append(line)
    data = pd.DataFrame(rows)
    start = lead(
        "over all readings, "
        + " and ".join(
            f"NDCG@{level} lies between {_range(data, level)}" for level in RECIPE_LEVELS
        )
    )
    columns = ["Reading", "net"]
    for level in RECIPE_LEVELS:
        columns += [f"RankNet @{level}", f"LambdaRank @{level}", "difference"]
    intervals = ""
    if not has_single_start(every):
        intervals = (
            f", ± the half width of its 95% interval {sample_of(every)}. The intervals are not "
            "corrected for multiple comparisons"
        )
    caption = (
        "Results for different readings of the recipe for the artificial data: NDCG on the test "
        f"set, and the difference, LambdaRank minus RankNet{intervals}. The paper gives only a "
        "random cubic polynomial, 50 dimensions and five labels. "
        f"{protocol(every[:1])} Edition {evidence.edition}."
    )
    return TableResult(data, TableLayout(start, caption, columns, [Section("", lines)]))


def _vali(curve: Method) -> float:
    return mean_of(curve, LEVEL, "vali").mean


def _range(data: pd.DataFrame, level: int) -> str:
    """The bounds between which the means of both methods lie at a level."""
    means = data.loc[data["level"] == level, ["lambdarank", "ranknet"]].stack()
    return f"{means.min():.3f} and {means.max():.3f}"


#: Epochs that the table of updates shows, and the last.
EPOCHS = (1, 2, 3, 5, 10, 20)


BATCHING: Cells = {
    "epoch": lambda row: str(row["epoch"]),
    "per query": lambda row: measured(row["per_query"]),
    "per pair": lambda row: measured(row["per_pair"]),
    "difference": lambda row: difference(row["difference"], row["half_width"]),
}


def table_batching(evidence: Evidence, experiment: str) -> TableResult:
    """The best validation NDCG so far by epoch with both updates, and NDCG on the test set."""
    rows, curves, on_test = [], [], []
    for net, title in SPEED_NETS.items():
        runs = [run for run in evidence.runs(experiment) if run.setting("net") == net]
        methods = by_method(runs, "exclude", variant=net, suffix=f", {title} nets")
        if not {V1, V1_EACH} <= methods.keys():
            continue
        batch, each = methods[V1], methods[V1_EACH]
        curves += [batch, each]
        by_query, by_pair = best_so_far(batch), best_so_far(each)
        last = by_query.shape[1]
        for epoch in [*(epoch for epoch in EPOCHS if epoch < last), last]:
            a, b = by_query[:, epoch - 1], by_pair[:, epoch - 1]
            gap = of_difference(b, a)
            rows.append(
                evidence.about(batch.dataset)
                | {
                    "net": net,
                    "epoch": epoch,
                    "per_query": float(a.mean()),
                    "per_pair": float(b.mean()),
                    "difference": gap.mean,
                    "half_width": gap.interval().half_width,
                    "trials": gap.n,
                }
            )
        gap = compare(each, batch, LEVEL)
        size = difference(gap.mean, gap.interval().half_width)
        on_test.append(
            f"with {title} nets, an update per pair changes the test NDCG@{LEVEL} by {size}"
        )
    if not curves:
        raise DataError(
            f"'{V1}' and '{V1_EACH}' were not both trained", f"add them to '{experiment}'"
        )
    picked = "; ".join(f"{TITLES[c.name]}{c.suffix} {chosen(c)}" for c in curves)
    on_queries = ""
    if not has_single_start(curves):
        on_queries = f"The interval on the test set is one {sample_of(curves)}. "
    caption = (
        f"V1 with one update of the weights per query and with one per pair: the best NDCG@{LEVEL} "
        "on the validation set up to each epoch, as a mean over starts, and the difference, ± the "
        f"half width of its 95% interval over starts (Welch) if there are several. {on_queries}"
        "The paper found that both converge similarly. "
        f"{protocol(curves, updates='')} Chosen learning rates and epochs: {picked}. "
        f"Edition {evidence.edition}."
    )
    data = pd.DataFrame(rows)
    parts = sections_of(data, BATCHING, "net")
    sections = [replace(part, title=f"{SPEED_NETS[part.title]} nets") for part in parts]
    return TableResult(data, TableLayout(lead(*on_test), caption, [*BATCHING], sections))


def best_so_far(method: Method) -> np.ndarray:
    """The best validation metric so far of each trial's chosen candidate, ``[trials, epochs]``."""
    (run,) = method.runs
    table = run.kept_history.pivot(index="trial", columns="epoch", values="vali_metric")
    return table.cummax(axis=1).to_numpy()
