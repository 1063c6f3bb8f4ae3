"""What Burges2006 compared and did not print, and what hangs on the reading of its recipe."""

from __future__ import annotations

import pandas as pd

from directrank.papers.burges2006.ndcg import (
    METHODS,
    NETS,
    chosen,
    compare,
    curves_of,
    over_queries,
    pairs,
    protocol,
)
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import p_value, signed
from directrank.papers.shared.methods import Method, by_method
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.stats.tests import holm
from directrank.study.specification import value_at

LEVEL = 10

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


def _lambda_functions(evidence: Evidence) -> dict[str, Method]:
    """The lambda functions that were tried, by name, with two layer nets."""
    return by_method(
        evidence.runs("lambdas"),
        "exclude",
        setting="function",
        variant="two_layer",
        suffix=f" {NETS['two_layer']}",
    )


def table_lambdas(evidence: Evidence) -> TableResult:
    """The family of lambda functions, best on validation first, as the paper chose."""
    functions = _lambda_functions(evidence)
    own = functions[METHODS[0]]
    others = [curve for curve in functions.values() if curve is not own]
    compared = {curve.name: compare(curve, own, LEVEL) for curve in others}
    corrected = dict(
        zip(compared, holm([paired.p_value for paired in compared.values()]), strict=True)
    )
    order = sorted(functions.values(), key=lambda curve: -_vali(curve))
    rows, lines = [], []
    for curve in order:
        run, name = curve.runs[0], curve.name
        interval = over_queries(curve, LEVEL)
        paired = compared.get(name)
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
            "difference": None if paired is None else paired.difference.mean,
            "p_value": None if paired is None else paired.p_value,
            "p_holm": corrected.get(name),
        }
        rows.append(row)
        lines.append(
            [
                name,
                f"{row['validation_ndcg10']:.4f}",
                f"{interval.mean:.4f}",
                f"± {interval.half_width:.4f}",
                "" if paired is None else signed(paired.difference.mean),
                "" if paired is None else p_value(corrected[name], 3),
                chosen(curve),
            ]
        )
    place = [curve.name for curve in order].index(own.name) + 1
    notes = [
        f"{own.name}, the function that did best on the paper's Web validation data, is "
        f"number {place} of {len(order)} on the validation set of these artificial data."
    ]
    caption = (
        f"Lambda functions with two layer nets: NDCG@{LEVEL} on validation, by which they are "
        "ordered, and on the test set with its 95% interval over queries; difference to "
        f"{own.name} on the test set, with p of a paired randomisation test, corrected over "
        "all (Holm). All but RankNet weigh a pair by the NDCG that swapping it would change. "
        f"{protocol(order)} The paper tried ten functions and prints none of the "
        f"results. Edition {evidence.edition}."
    )
    columns = ["", "validation", "test", "95% interval", "difference", "p (Holm)", "learning rate"]
    return TableResult(pd.DataFrame(rows), Layout(caption, columns, [Section("", lines)], notes))


def table_recipe(evidence: Evidence) -> TableResult:
    """RankNet and LambdaRank under several readings of the artificial data's recipe."""
    rows, sections = [], []
    every: list[Method] = []
    for experiment, title in RECIPES.items():
        curves = curves_of(evidence.runs(experiment))
        every += curves
        lines = []
        for ours, theirs in pairs(curves):
            line = [NETS[ours.variant]]
            for level in RECIPE_LEVELS:
                paired = compare(ours, theirs, level)
                means = {c.name: over_queries(c, level) for c in (ours, theirs)}
                rows.append(
                    evidence.about(ours.dataset)
                    | {
                        "recipe": experiment,
                        "normalisation": value_at(ours.runs[0].result.spec, "normalisation.name"),
                        "net": ours.variant,
                        "level": level,
                        "lambdarank": means[METHODS[0]].mean,
                        "ranknet": means[METHODS[1]].mean,
                        "difference": paired.difference.mean,
                        "half_width": paired.difference.half_width,
                        "queries": paired.difference.n,
                        "p_value": paired.p_value,
                    }
                )
                line += [
                    f"{means[METHODS[1]].mean:.4f}",
                    f"{means[METHODS[0]].mean:.4f}",
                    f"{signed(paired.difference.mean)} ± {paired.difference.half_width:.4f}",
                ]
            lines.append(line)
        sections.append(Section(title, lines))
    data = pd.DataFrame(rows)
    notes = [
        f"Over all readings NDCG@1 lies between {_low(data, 1):.3f} and {_high(data, 1):.3f} and "
        f"NDCG@10 between {_low(data, 10):.3f} and {_high(data, 10):.3f}."
    ]
    columns = ["net"]
    for level in RECIPE_LEVELS:
        columns += [f"RankNet @{level}", f"LambdaRank @{level}", "difference"]
    caption = (
        "What hangs on the reading of the artificial data: NDCG on the test set, and LambdaRank "
        "less RankNet with its 95% interval over queries. The paper names a random cubic "
        f"polynomial, 50 dimensions and five labels. {protocol(every[:1])} Edition "
        f"{evidence.edition}."
    )
    return TableResult(data, Layout(caption, columns, sections, notes))


def _vali(curve: Method) -> float:
    return over_queries(curve, LEVEL, "vali").mean


def _low(data: pd.DataFrame, level: int) -> float:
    return float(data.loc[data["level"] == level, ["lambdarank", "ranknet"]].min().min())


def _high(data: pd.DataFrame, level: int) -> float:
    return float(data.loc[data["level"] == level, ["lambdarank", "ranknet"]].max().max())
