"""What Burges2006 compared and did not print, and what hangs on the reading of its recipe."""

from __future__ import annotations

import pandas as pd

from directrank.papers.burges2006.ndcg import (
    METHODS,
    NETS,
    Curve,
    chosen,
    compare,
    curves,
    pairs,
    protocol,
)
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.stats.intervals import normal_interval
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


def lambda_functions(evidence: Evidence) -> dict[str, Curve]:
    """The lambda functions that were tried, by name, with two layer nets."""
    return {
        run.setting("function"): Curve(run.setting("function"), "two_layer", [run])
        for run in evidence.runs("lambdas")
    }


def table_lambdas(evidence: Evidence) -> TableResult:
    """The family of lambda functions, best on validation first, as the paper chose."""
    found = lambda_functions(evidence)
    own = found[METHODS[0]]
    others = [curve for curve in found.values() if curve is not own]
    compared = {curve.method: compare(curve, own, LEVEL) for curve in others}
    corrected = dict(
        zip(compared, holm([difference.p_value for difference in compared.values()]), strict=True)
    )
    order = sorted(found.values(), key=lambda curve: -_vali(curve))
    rows, lines = [], []
    for curve in order:
        run, name = curve.runs[0], curve.method
        interval = curve.interval(LEVEL)
        difference = compared.get(name)
        loss = run.result.spec["loss"]
        row = {
            "edition": evidence.edition,
            "dataset": run.dataset.title,
            "data": run.dataset.kind,
            "function": name,
            "loss": loss["name"],
            "force": loss.get("force"),
            "pairs": loss.get("pairs", "all"),
            "margin": loss.get("margin"),
            "validation_ndcg10": _vali(curve),
            "test_ndcg10": interval.mean,
            "half_width": interval.half_width,
            "queries": interval.n,
            "difference": None if difference is None else difference.interval.mean,
            "p_value": None if difference is None else difference.p_value,
            "p_holm": corrected.get(name),
        }
        rows.append(row)
        lines.append(
            [
                name,
                f"{row['validation_ndcg10']:.4f}",
                f"{interval.mean:.4f}",
                f"± {interval.half_width:.4f}",
                "" if difference is None else _signed(difference.interval.mean),
                "" if difference is None else _p(corrected[name]),
                chosen(curve),
            ]
        )
    place = [curve.method for curve in order].index(own.method) + 1
    better = [
        name
        for name, difference in compared.items()
        if difference.interval.mean > 0 and corrected[name] < 0.05
    ]
    notes = [
        f"{own.method}, the function that did best on the paper's Web validation data, is "
        f"number {place} of {len(order)} on validation here. On the test part "
        + (f"{', '.join(better)} are" if len(better) > 1 else f"{(better or ['none'])[0]} is")
        + " significantly above it."
    ]
    caption = (
        f"Lambda functions with two layer nets: NDCG@{LEVEL} on validation, by which they are "
        "ordered, and on the test part with its 95% interval over queries; difference to "
        f"{own.method} on the test part, with p of a paired randomisation test, corrected over "
        "all (Holm). All but RankNet weigh a pair by the NDCG that swapping it would change. "
        f"{protocol(order)} The paper tried ten functions and prints none of the "
        f"results. Edition {evidence.edition}."
    )
    columns = ["", "validation", "test", "95% interval", "difference", "p (Holm)", "learning rate"]
    return TableResult(pd.DataFrame(rows), Layout(caption, columns, [Section("", lines)], notes))


def table_recipe(evidence: Evidence) -> TableResult:
    """RankNet and LambdaRank under several readings of the artificial data's recipe."""
    rows, sections, gaps = [], [], {}
    every: list[Curve] = []
    for experiment, title in RECIPES.items():
        found = curves(evidence.runs(experiment))
        every += found
        lines = []
        for ours, theirs in pairs(found):
            line = [NETS[ours.net]]
            for level in RECIPE_LEVELS:
                difference = compare(ours, theirs, level)
                means = {c.method: c.interval(level) for c in (ours, theirs)}
                rows.append(
                    {
                        "edition": evidence.edition,
                        "dataset": ours.runs[0].dataset.title,
                        "data": ours.runs[0].dataset.kind,
                        "recipe": experiment,
                        "normalisation": value_at(ours.runs[0].result.spec, "normalisation.name"),
                        "net": ours.net,
                        "level": level,
                        "lambdarank": means[METHODS[0]].mean,
                        "ranknet": means[METHODS[1]].mean,
                        "difference": difference.interval.mean,
                        "half_width": difference.interval.half_width,
                        "queries": difference.interval.n,
                        "p_value": difference.p_value,
                    }
                )
                gaps[experiment, ours.net, level] = (difference.interval.mean, difference.p_value)
                line += [
                    f"{means[METHODS[1]].mean:.4f}",
                    f"{means[METHODS[0]].mean:.4f}",
                    f"{_signed(difference.interval.mean)} ± {difference.interval.half_width:.4f}",
                ]
            lines.append(line)
        sections.append(Section(title, lines))
    data = pd.DataFrame(rows)
    ahead = sum(gap > 0 and p < 0.05 for gap, p in gaps.values())
    behind = sum(gap < 0 and p < 0.05 for gap, p in gaps.values())
    notes = [
        f"Over all readings NDCG@1 lies between {_low(data, 1):.3f} and {_high(data, 1):.3f} and "
        f"NDCG@10 between {_low(data, 10):.3f} and {_high(data, 10):.3f}. LambdaRank is ahead in "
        f"{ahead} of {len(gaps)} comparisons and behind in {behind} (p < 0.05 each, uncorrected)."
    ]
    columns = ["net"]
    for level in RECIPE_LEVELS:
        columns += [f"RankNet @{level}", f"LambdaRank @{level}", "difference"]
    caption = (
        "What hangs on the reading of the artificial data: NDCG on the test part, and LambdaRank "
        "less RankNet with its 95% interval over queries. The paper names a random cubic "
        f"polynomial, 50 dimensions and five labels. {protocol(every[:1])} Edition "
        f"{evidence.edition}."
    )
    return TableResult(data, Layout(caption, columns, sections, notes))


def _vali(curve: Curve) -> float:
    return normal_interval(curve.values(LEVEL, "vali").to_numpy()).mean


def _low(data: pd.DataFrame, level: int) -> float:
    return float(data.loc[data["level"] == level, ["lambdarank", "ranknet"]].min().min())


def _high(data: pd.DataFrame, level: int) -> float:
    return float(data.loc[data["level"] == level, ["lambdarank", "ranknet"]].max().max())


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
