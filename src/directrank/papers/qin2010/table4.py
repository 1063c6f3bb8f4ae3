"""Qin2010's Table 4: methods on OHSUMED's five folds, and what the numbers say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from directrank.papers.qin2010.methods import (
    DISCOUNTS,
    ESTIMATE,
    OWN,
    SIGNIFICANT,
    SMALL_START,
    TABLE4_METRICS,
    against_own,
    folds_mean,
    letor_value,
    methods_of,
    table4_order,
    with_both_discounts,
)
from directrank.papers.qin2010.stopping import caps_note, how_trained
from directrank.papers.shared.cells import BRACKETS
from directrank.papers.shared.differences import COLUMNS as DIFFERENCES
from directrank.papers.shared.differences import of_other_data
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import listed, number, share, signed
from directrank.papers.shared.leads import lead, near_print
from directrank.papers.shared.methods import Method
from directrank.papers.shared.methods_table import MethodsTable, in_print
from directrank.papers.shared.product import TableResult
from directrank.system.errors import DataError

TABLE4 = MethodsTable(
    first="Method",
    metrics={heading: letor for heading, (letor, _) in TABLE4_METRICS.items()},
    csv=(
        *("edition", "dataset", "data", "method", "metric", "discount", *ESTIMATE),
        *("published", *DIFFERENCES, "gain_of_approxndcg", "gain_half_width"),
        *("p_value", "p_holm", "status"),
    ),
    measure=against_own("gain_of_approxndcg", own_first=True),
    beside={"paper": in_print(4)},
    by_metric=True,
)


def table4(evidence: Evidence) -> TableResult:
    """Table 4 with NDCG@n of section 5.4: methods on OHSUMED's five folds."""
    order = table4_order(evidence)
    methods = methods_of(evidence, "ohsumed_methods", order=order)
    if not methods:
        raise DataError("no method of Table 4 was run", "add runs to ohsumed_methods")
    data = with_both_discounts(
        TABLE4, evidence, methods, lambda discount: _published(evidence, methods, order, discount)
    )
    data["status"] = np.where(data["mean"].notna(), "run", "not run here")
    first = next(iter(methods.values()))
    caption = (
        f"Ranking accuracy: NDCG on the test sets, {folds_mean(first)} ± the half width of the "
        f"95% t interval over the {len(first.query_values('ndcg/letor'))} pooled test queries (so "
        "it holds for other queries, not for other random starts). Queries without a relevant "
        "document count as 0. “paper” is the value printed in the paper or on the LETOR 3.0 site; "
        "a dash means that it could not be recovered. "
        f"{'' if of_other_data(data) else f'{BRACKETS}. '}"
        f"* marks methods that differ from {OWN} (paired randomisation test over the queries, "
        f"p < {SIGNIFICANT} after Holm's correction within the column; intervals are not "
        "corrected). "
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    sections = [
        TABLE4.section(data[data["discount"] == discount], f"With {title}")
        for discount, title in DISCOUNTS.items()
    ]
    notes = [*_in_words(data, order), *_caps(methods), *_empty_query(methods, data)]
    return TABLE4.result(data, _lead(data), caption, sections, notes)


def _lead(data: pd.DataFrame) -> str:
    """Which method is ahead in NDCG@n, how many differ from the paper's own, and the distance."""
    letor = data[(data["discount"] == "letor") & (data["status"] == "run")]
    tested = letor["p_holm"].dropna()
    sure = int((tested < SIGNIFICANT).sum())
    return lead(
        TABLE4.ahead(letor, "NDCG@n"),
        f"{share(sure, len(tested))} differences from {OWN} are significant" if len(tested) else "",
        near_print(letor),
    )


def _caps(methods: Mapping[str, Method]) -> list[str]:
    """When the paper's method stopped, and what smaller caps on epochs would have given."""
    columns = {heading: f"test_{TABLE4_METRICS[heading][0]}" for heading in ("NDCG@n", "NDCG@1")}
    names = [name for name in (OWN, SMALL_START) if name in methods]
    return [note for name in names for note in caps_note(methods[name], columns)]


def _published(
    evidence: Evidence, methods: Mapping[str, Method], order: Sequence[str], discount: str
) -> pd.DataFrame:
    """The printed values, from the paper or else from LETOR's site; NaN where one is lost.

    NDCG@1 is the same under both discounts. Which discount NDCG@n was measured with the paper does
    not say (the tool stops at rank 10), so it stands beside both.
    """
    table = evidence.published("qin2010_table4").set_index("Algorithm")
    table = table.rename(columns={"NDCG@n (from the text)": "NDCG@n"})

    def value(method: str, heading: str) -> float:
        if discount == "log2" and heading not in ("NDCG@1", "NDCG@n"):
            return math.nan
        if method in table.index and not math.isnan(table.loc[method, heading]):
            return float(table.loc[method, heading])
        return letor_value(evidence, "OHSUMED", method, heading)

    names = dict.fromkeys([*order, *methods])
    cells = [(name, heading) for name in names for heading in TABLE4_METRICS]
    return pd.DataFrame(
        {"method": name, "metric": heading, "published": value(name, heading)}
        for name, heading in cells
    )


def _in_words(data: pd.DataFrame, order: Sequence[str]) -> list[str]:
    """What the numbers say beside the paper's claims, whose verdicts follow them."""
    letor = data[(data["discount"] == "letor") & (data["status"] == "run")]
    if OWN not in set(letor["method"]):
        return []
    paragraphs = []
    if not of_other_data(data):
        paragraphs.append(_level(data[data["status"] == "run"]))
    own, theirs = letor["method"] == OWN, letor["method"].isin(order)
    if (~theirs).any():
        places = _places(letor[own | ~theirs])
        paragraphs.append(f"**Methods that the paper does not have.** {places}")
    paragraphs += [_small_start(letor), _certainty(letor)]
    return [paragraph for paragraph in paragraphs if paragraph]


def _empty_query(methods: Mapping[str, Method], data: pd.DataFrame) -> list[str]:
    """What it does to NDCG@n whether queries without a relevant document count as 0 or not."""
    scales = [run.scale("test") for run in next(iter(methods.values())).runs]
    empty, queries = sum(s.empty for s in scales), sum(s.queries for s in scales)
    if not empty:
        return []
    metric = TABLE4_METRICS["NDCG@n"][0]
    at_n = data[(data["metric"] == "NDCG@n") & (data["discount"] == "letor")].set_index("method")
    texts, nearer, known = [], 0, 0
    for name, method in methods.items():
        counted = method.mean(metric)
        left_out = float(method.trial_means(metric, empty="exclude").mean())
        published = at_n.loc[name, "published"]
        text = f"{name} {left_out:.4f} ({counted:.4f}"
        if not math.isnan(published) and not of_other_data(data):
            text += f", paper {published:.4f}"
            known += 1
            nearer += abs(left_out - published) < abs(counted - published)
        texts.append(text + ")")
    closing = (
        f" Leaving them out comes nearer to the printed value for {nearer} of {known} methods."
        if known
        else ""
    )
    has, it, without = (
        ("has", "it", "without it") if empty == 1 else ("have", "them", "without them")
    )
    return [
        f"**Queries without a relevant document.** {empty} of the {queries} test queries {has} "
        f"none; LETOR's tool counts {it} as 0, and so does the table. NDCG@n with LETOR's "
        f"discount {without} is as follows (in brackets: counted as 0): "
        f"{'; '.join(texts)}.{closing}"
    ]


def _level(data: pd.DataFrame) -> str:
    """Whether ApproxNDCG's printed NDCG@n was met."""
    own = data[(data["method"] == OWN) & (data["metric"] == "NDCG@n")].set_index("discount")
    letor, log2 = own.loc["letor"], own.loc["log2"]
    trials = int(letor["trials"])
    starts = (
        f"over {trials} trials, the half width is {letor['half_width_over_trials']:.4f}"
        if trials > 1
        else "a single trial does not show how much these matter"
    )
    return (
        f"**Was the paper's number met?** {OWN} reaches NDCG@n {letor['mean']:.4f} with LETOR's "
        f"discount and {log2['mean']:.4f} with the printed one; the paper has "
        f"{letor['published']:.4f}, without saying with which ({signed(letor['difference'], 4)} "
        f"and {signed(log2['difference'], 4)}). The test queries are the paper's own, so what "
        f"differs is the training (random starts, stopping, choice of α; {starts}) or the "
        "discount. Its other values for this method are lost, or known only through the text."
    )


def _small_start(letor: pd.DataFrame) -> str:
    """What smaller random weights reach."""
    if SMALL_START not in set(letor["method"]):
        return ""
    at_n = letor[letor["metric"] == "NDCG@n"].set_index("method")["mean"]
    return (
        f"**What about smaller initial weights?** The paper does not give its initial weights. "
        f"From the smaller ones of {SMALL_START}, the same algorithm reaches NDCG@n "
        f"{number(at_n[SMALL_START])} ({signed(at_n[SMALL_START] - at_n[OWN])})."
    )


def _places(letor: pd.DataFrame) -> str:
    """ApproxNDCG's place per metric, and which differences are significant."""
    first, later, significant = [], [], []
    for heading, group in letor.groupby("metric", sort=False):
        ranked = group.sort_values("mean", ascending=False, kind="stable")
        place = list(ranked["method"]).index(OWN)
        if place == 0:
            first.append(heading)
        else:
            gap = ranked["mean"].iloc[0] - ranked["mean"].iloc[place]
            leader = ranked["method"].iloc[0]
            later.append(f"number {place + 1} at {heading} ({gap:.3f} behind {leader})")
        for row in group[group["p_holm"] < SIGNIFICANT].itertuples():
            side = "ahead of" if row.gain_of_approxndcg > 0 else "behind"
            significant.append(f"{side} {row.method} at {heading}")
    places = ([f"the best at {listed(first)}"] if first else []) + later
    others = [method for method in letor["method"].unique() if method != OWN]
    text = f"Against {listed(others)}, with LETOR's discount, {OWN} is {'; '.join(places)}. "
    if not significant:
        return text + "None of these differences is significant."
    return text + f"Significant: {'; '.join(significant)}."


def _certainty(letor: pd.DataFrame) -> str:
    """How sure one can be with so few queries."""
    own = letor[letor["method"] == OWN].set_index("metric")
    queries = int(own["queries"].iloc[0])
    text = (
        f"**How precise is this?** With {queries} test queries, the mean of {OWN} is known to "
        f"±{own.loc['NDCG@1', 'half_width']:.3f} at NDCG@1, "
        f"±{own.loc['NDCG@10', 'half_width']:.3f} at NDCG@10 and "
        f"±{own.loc['NDCG@n', 'half_width']:.3f} at NDCG@n"
    )
    whole = letor[letor["metric"] == "NDCG@n"]
    widths = whole["gain_half_width"].dropna()
    if widths.empty:
        return text + "."
    low, high = widths.min(), widths.max()
    known = f"±{low:.3f}" if math.isclose(low, high) else f"±{low:.3f} to ±{high:.3f}"
    return text + (
        ". The difference between two methods is known more precisely, because both are measured "
        f"on the same queries: {known} at NDCG@n."
    )
