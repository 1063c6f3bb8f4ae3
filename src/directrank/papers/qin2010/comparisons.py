"""All methods against each other on OHSUMED, and methods that the paper does not have."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from directrank.papers.qin2010.methods import (
    AP,
    DISCOUNTS,
    OWN,
    SIGNIFICANT,
    SMALL_START,
    TABLE4_METRICS,
    compare,
    estimate,
    methods_of,
    scale_caption,
    table4_order,
)
from directrank.papers.qin2010.stopping import how_trained
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import interval, listed, signed
from directrank.papers.shared.methods import Method, paired_values
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section, in_front
from directrank.stats.tests import holm, paired_randomisation, wilcoxon
from directrank.system.errors import DataError
from directrank.system.seeds import numpy_stream

#: What all pairs are compared by: heading → metric.
COMPARED = {"NDCG@10": "ndcg@10/letor", "NDCG@n": "ndcg/letor", "MAP": AP}

#: Sign patterns per pair; there are some hundred pairs.
RESAMPLES = 20_000


def statistics(evidence: Evidence) -> TableResult:
    """Every pair of methods on OHSUMED: randomisation test and Wilcoxon's, Holm-corrected."""
    order = table4_order(evidence)
    methods = methods_of(evidence, "ohsumed_methods", "ohsumed_map_methods", order=order)
    if len(methods) < 2:
        raise DataError("there are no two methods to compare", "add runs to ohsumed_methods")
    first = next(iter(methods.values()))
    means = _means(methods)
    frames, sections = [means], [_means_section(means)]
    for heading, metric in COMPARED.items():
        frame = _pairs(methods, metric)
        frame.insert(0, "metric", heading)
        frames.append(frame)
        sections.append(_matrix(methods, heading, frame))
    data = pd.concat(frames, ignore_index=True)
    data = in_front(data, evidence.about(first.dataset))
    data = data.astype({"folds": "Int64", "queries": "Int64"})
    caption = (
        f"All methods against each other: NDCG with LETOR's discount, {scale_caption(methods)} "
        "Below, a cell is the mean of the line's method minus the column's over the pooled "
        f"queries; R marks p < {SIGNIFICANT} in the paired randomisation test, W in Wilcoxon's "
        "signed-rank test, both after Holm's correction over all pairs of the metric. "
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    notes = [_summary(data)]
    columns = ["", *methods]
    return TableResult(data, Layout(caption, columns, sections, notes))


def _means(methods: Mapping[str, Method]) -> pd.DataFrame:
    rows = [
        {"metric": heading, "method": name, **estimate(method, metric)}
        for heading, metric in COMPARED.items()
        for name, method in methods.items()
    ]
    return pd.DataFrame(rows).drop(columns=["half_width_over_trials", "trials"])


def _pairs(methods: Mapping[str, Method], metric: str) -> pd.DataFrame:
    """One row per pair of methods, tested over the pooled queries."""
    values = dict(zip(methods, paired_values(methods.values(), metric), strict=True))
    rows = []
    for a, b in itertools.combinations(methods, 2):
        generator = numpy_stream("qin2010", "statistics", a, b, metric)
        flips = paired_randomisation(values[a], values[b], generator, RESAMPLES)
        ranks = wilcoxon(values[a], values[b])
        rows.append(
            {
                "method": a,
                "other": b,
                "difference": flips.difference,
                "effect_size": flips.effect,
                "queries": flips.n_a,
                "p_randomisation": flips.p_value,
                "p_wilcoxon": ranks.p_value,
            }
        )
    frame = pd.DataFrame(rows)
    for test in ("randomisation", "wilcoxon"):
        frame[f"holm_{test}"] = holm(frame[f"p_{test}"])
    return frame


def _means_section(means: pd.DataFrame) -> Section:
    rows = [
        [heading, *(interval(f"{row.mean:.4f}", row.half_width) for row in group.itertuples())]
        for heading, group in means.groupby("metric", sort=False)
    ]
    return Section("Means", rows)


def _matrix(methods: Mapping[str, Method], heading: str, frame: pd.DataFrame) -> Section:
    by_pair = {(row.method, row.other): row for row in frame.itertuples()}
    rows = []
    for a in methods:
        cells = [a]
        for b in methods:
            row = by_pair.get((a, b)) or by_pair.get((b, a))
            if row is None:
                cells.append("")
                continue
            sign = 1 if (a, b) in by_pair else -1
            marks = "R" * (row.holm_randomisation < SIGNIFICANT)
            marks += "W" * (row.holm_wilcoxon < SIGNIFICANT)
            cells.append(signed(sign * row.difference) + (f"<sub>{marks}</sub>" if marks else ""))
        rows.append(cells)
    return Section(f"Differences in {heading}", rows)


def _summary(data: pd.DataFrame) -> str:
    pairs = data[data["other"].notna()]
    sure = pairs[
        (pairs["holm_randomisation"] < SIGNIFICANT) & (pairs["holm_wilcoxon"] < SIGNIFICANT)
    ]
    texts = []
    for row in sure.itertuples():
        better, worse = (row.method, row.other) if row.difference > 0 else (row.other, row.method)
        texts.append(f"{better} over {worse} in {row.metric} ({abs(row.difference):.4f})")
    start = f"**{len(sure)} of {len(pairs)} differences are significant in both tests.**"
    return f"{start} They are: {'; '.join(texts)}." if texts else start


def beyond(evidence: Evidence) -> TableResult:
    """Networks and later losses on the same folds, beside methods of Table 4."""
    older = methods_of(evidence, "ohsumed_methods")
    newer = methods_of(evidence, "beyond_methods")
    if OWN not in older or not newer:
        raise DataError(f"{OWN} or the later methods were not run", "add runs to beyond_methods")
    methods = {
        **{name: older[name] for name in (OWN, SMALL_START, "LambdaMART") if name in older},
        **newer,
    }
    rows = []
    for heading, metrics in TABLE4_METRICS.items():
        for discount, metric in zip(DISCOUNTS, metrics, strict=True):
            column = []
            for name, method in methods.items():
                row = evidence.about(method.dataset) | {
                    "method": name,
                    "metric": heading,
                    "discount": discount,
                    **estimate(method, metric),
                }
                if name != OWN:
                    paired = compare(method, methods[OWN], metric)
                    row |= {
                        "gain_over_approxndcg": paired.difference.mean,
                        "gain_half_width": paired.difference.half_width,
                        "p_value": paired.p_value,
                    }
                column.append(row)
            p_values = [row["p_value"] for row in column if "p_value" in row]
            for row, p_holm in zip(column[1:], holm(p_values), strict=True):
                row["p_holm"] = p_holm
            rows += column
    data = pd.DataFrame(rows)
    letor = data[data["discount"] == "letor"]
    lines = []
    for name, group in letor.groupby("method", sort=False):
        cells = [name]
        for row in group.itertuples():
            star = "*" if row.p_holm < SIGNIFICANT else ""
            cells.append(interval(f"{row.mean:.4f}{star}", row.half_width))
        lines.append(cells)
    first = methods[OWN]
    caption = (
        f"Later methods on the folds of Table 4: NDCG with LETOR's discount, "
        f"{scale_caption(methods)} {_trials(methods)} * marks methods that differ from the "
        f"linear {OWN} of the paper (paired randomisation test over the queries, p < "
        f"{SIGNIFICANT} after Holm's correction within the column). "
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    columns = ["Method", *TABLE4_METRICS]
    notes = [_what_it_brought(letor)]
    return TableResult(data, Layout(caption, columns, [Section("", lines)], notes))


def _trials(methods: Mapping[str, Method]) -> str:
    trials = {name: method.runs[0].n_trials for name, method in methods.items()}
    several = [name for name, number in trials.items() if number > 1]
    if not several:
        return "One trial each."
    numbers = sorted({trials[name] for name in several})
    return (
        f"Means over {listed([str(number) for number in numbers])} trials for "
        f"{listed(several)}, a single trial for the others."
    )


def _what_it_brought(letor: pd.DataFrame) -> str:
    texts = []
    for heading, group in letor.groupby("metric", sort=False):
        best = group.loc[group["mean"].idxmax()]
        if best["method"] == OWN:
            texts.append(f"at {heading} nothing, {OWN} is ahead")
            continue
        sure = "significant" if best["p_holm"] < SIGNIFICANT else "not significant"
        texts.append(
            f"at {heading} {signed(best['gain_over_approxndcg'])} over the queries by "
            f"{best['method']} (±{best['gain_half_width']:.3f}, {sure})"
        )
    clear = int(np.sum(letor["p_holm"] < SIGNIFICANT))
    return (
        f"**What the later methods bring over {OWN}:** {'; '.join(texts)}. Of all "
        f"{int(letor['p_holm'].notna().sum())} differences from it {clear} are significant."
    )
