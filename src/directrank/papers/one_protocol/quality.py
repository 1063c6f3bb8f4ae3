"""How good every loss is with every scorer, beside trees; and what an empty query counts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from directrank.papers.one_protocol import LEAST_RANKED
from directrank.papers.one_protocol.methods import (
    METRICS,
    NEURAL,
    PRIMARY,
    SCORERS,
    SIGNIFICANT,
    TITLES,
    Protocol,
    p_text,
    protocol,
)
from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import CONVENTIONS, Empty, Evidence
from directrank.papers.shared.format import listed, share, signed
from directrank.papers.shared.methods import Method
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Layout, Section
from directrank.stats.intervals import mean_interval
from directrank.stats.ranks import all_pairs, friedman


def table_quality(evidence: Evidence, dataset: str) -> TableResult:
    """The mean of every metric for every method, and which methods differ significantly."""
    study = protocol(evidence, dataset)
    rows = [
        study.about | {"scorer": SCORERS[method.variant], "method": method.name} | numbers
        for number, method in enumerate(study.methods)
        for numbers in _metrics(
            study, method, float(study.mean_ranks[number]), study.verdicts[number]
        )
    ]
    rows += [
        study.about | {"scorer": SCORERS[scorer], "method": name, "failed": reason}
        for scorer in SCORERS
        for name, reason in study.failed(scorer).items()
    ]
    data = pd.DataFrame(rows)
    best = data.groupby("metric")["mean"].max()
    sections = []
    for scorer in SCORERS:
        lines = [
            _line(data, study.methods[number], best, study.verdicts[number])
            for number in study.of(scorer)
        ]
        lines += [[name, "failed", *[""] * (len(METRICS) + 2)] for name in study.failed(scorer)]
        if lines:
            sections.append(Section(TITLES[scorer], lines))
    fold_means = "mean of the fold means" if study.folds > 1 else "mean over the queries"
    by_group = "" if study.groups is None else ", with errors by group of queries"
    caption = (
        f"Every loss with every scorer, and boosted trees, under one protocol: the {fold_means} of "
        "the test set, averaged over trials, ± the half width of the 95% t interval over the test "
        f"queries{by_group} (intervals over trials are in the CSV file). Queries without a "
        "relevant document are left out. “rank” is the mean of a method's rank among all "
        f"{len(study.methods)} in NDCG@10 over {study.ranked}. “better” and “worse” count the "
        f"methods than which it is significantly better or worse ({study.test}, p < {SIGNIFICANT} "
        f"after {study.correction} over all pairs; the intervals are not corrected). The tests are "
        "over queries, not over trainings. The highest mean is bold. "
        f"{study.trained_on()}{study.scale()}"
    )
    columns = ["Method", *METRICS, "rank", "better", "worse"]
    means = data[data["metric"] == "NDCG@10"]["mean"].to_numpy()
    start = _winner(study, means, range(len(study.methods)), "all methods")
    notes = _sentences(study, data, means)
    return TableResult(data, Layout(start, caption, columns, sections, notes))


def _metrics(
    study: Protocol, method: Method, mean_rank: float, verdicts: np.ndarray
) -> Iterator[dict[str, Any]]:
    for heading, metric in METRICS.items():
        over_trials = mean_interval(method.trial_means(metric))
        over_queries = study.over_queries(method, metric)
        row = {
            "metric": heading,
            "mean": over_trials.mean,
            "half_width": over_queries.half_width,
            "half_width_over_trials": over_trials.half_width,
            "trials": over_trials.n,
            "folds": study.folds,
            "queries": over_queries.n,
        }
        if metric == PRIMARY:
            row |= {
                "mean_rank": mean_rank,
                "better_than": int((verdicts > 0).sum()),
                "worse_than": int((verdicts < 0).sum()),
            }
        yield row


def _line(data: pd.DataFrame, method: Method, best: pd.Series, verdicts: np.ndarray) -> list[str]:
    own = data[(data["method"] == method.name) & (data["scorer"] == SCORERS[method.variant])]
    own = own.set_index("metric")
    cells = [method.name]
    for heading in METRICS:
        mean, half_width = own.loc[heading, ["mean", "half_width"]]
        cells.append(measured(mean, half_width, best=mean == best[heading]))
    rank = own["mean_rank"].dropna().iloc[0]
    return [*cells, f"{rank:.1f}", str((verdicts > 0).sum()), str((verdicts < 0).sum())]


def _sentences(study: Protocol, data: pd.DataFrame, means: np.ndarray) -> list[str]:
    failed = "; ".join(f"{name}: {why}" for name, why in study.failed(*SCORERS).items())
    return [
        *([f"**Training failed.** {failed}."] if failed else []),
        *(
            _winner(study, means, study.of(scorer), f"the losses with the {TITLES[scorer].lower()}")
            for scorer in NEURAL
            if len(study.of(scorer)) > 1
        ),
        _significance(study, data),
        _losses(study),
        _scorers(study),
    ]


def _winner(study: Protocol, means: np.ndarray, among: Sequence[int], what: str) -> str:
    """Which has the highest mean, and whether that can be said of other queries as well."""
    if len(among) == 1:
        only = study.methods[among[0]].label
        return f"{only} is the only method, with NDCG@10 {measured(means[0])}."
    order = sorted(among, key=lambda number: -means[number])
    first, second = (study.methods[number] for number in order[:2])
    lead = means[order[0]] - means[order[1]]
    same = len({study.methods[number].variant for number in among}) == 1
    names = (first.name, second.name) if same else (first.label, second.label)
    gap = "less than 0.001" if lead < 0.001 else measured(lead)
    text = (
        f"Of {what}, {names[0]} has the highest NDCG@10, {measured(means[order[0]])}, {gap} above "
        f"{names[1]}. "
    )
    others = len(order) - 1
    against = study.verdicts[order[0], order[1:]].tolist()
    if others == 1:
        return f"{text}The difference is {'' if any(against) else 'not '}significant."
    text += "It is significantly better than "
    behind, ahead = against.count(1), against.count(-1)
    if behind == others:
        return f"{text}{share(behind, others)} others."
    text += f"{share(behind, others)} others"
    if ahead:
        text += f" and worse than {ahead} (by the ranks of their differences)"
    return f"{text}; the other differences are not significant."


def _significance(study: Protocol, data: pd.DataFrame) -> str:
    primary = data[data["metric"] == "NDCG@10"]
    widths = primary[["half_width", "half_width_over_trials"]].median()
    text = "**How much can be told.** "
    if len(study.methods) > 1:
        pairs = study.pairs
        sure = int((pairs["p_corrected"] < SIGNIFICANT).sum())
        text += f"{sure} of {len(pairs)} pairs of methods differ significantly"
        text += f"; {_alike(study)}. " if len(study.methods) >= LEAST_RANKED else ". "
    if len(study.methods) < LEAST_RANKED:
        text += f"Ranks, with their figures and tests, need at least {LEAST_RANKED} methods. "
    text += (
        f"Intervals of means have half widths of {widths['half_width']:.3f} over the {study.size}"
    )
    if not np.isnan(widths["half_width_over_trials"]):
        text += f" and of {widths['half_width_over_trials']:.3f} over trials"
    return text + " (medians over the methods)."


def _alike(study: Protocol) -> str:
    test = friedman(study.blocks.to_numpy())
    if test.p_value < SIGNIFICANT:
        return (
            "Friedman's test rejects that all methods perform equally "
            f"(χ² = {test.statistic:.1f}, p {p_text(test.p_value)})"
        )
    return (
        "Friedman's test does not even reject that all methods perform equally "
        f"(p {p_text(test.p_value)})"
    )


def _losses(study: Protocol) -> str:
    """The losses over all scorers that each of them was run with."""
    names = list(dict.fromkeys(study.methods[number].name for number in study.of(*NEURAL)))
    scorers = [scorer for scorer in NEURAL if study.of(scorer)]
    columns = {}
    for name in names:
        own = [n for n in study.of(*NEURAL) if study.methods[n].name == name]
        if len(own) == len(scorers):
            columns[name] = study.values[own].mean(axis=1)
    if len(columns) < LEAST_RANKED:
        return "**Which loss, whatever the scorer?** Too few losses were run with every scorer."
    values = pd.DataFrame(columns)
    test, pairs = friedman(study.blocked(values).to_numpy()), all_pairs(values, study.groups)
    order = np.argsort(test.mean_ranks, kind="stable")
    best = order[0]
    sure = pairs[pairs["p_corrected"] < SIGNIFICANT]
    ahead = study.ahead(sure)
    beaten = ((sure["a"] == best) & (ahead > 0)) | ((sure["b"] == best) & (ahead < 0))
    named = listed([f"{values.columns[n]} ({test.mean_ranks[n]:.1f})" for n in order[:3]])
    over = f"Averaged over {len(scorers)} scorers" if len(scorers) > 1 else "With one scorer"
    return (
        f"**Which loss, whatever the scorer?** {over}, the best mean "
        f"ranks of {len(columns)} losses have {named}; the last is {values.columns[order[-1]]} "
        f"({test.mean_ranks[order[-1]]:.1f}). {len(sure)} of {len(pairs)} pairs of losses differ "
        f"significantly; the first is significantly ahead of {int(beaten.sum())} of the others."
    )


def _scorers(study: Protocol) -> str:
    """The same loss with two scorers, and the best of the trees among the losses."""
    texts = []
    for a, b in itertools.combinations(NEURAL, 2):
        of_a = {study.methods[number].name: number for number in study.of(a)}
        of_b = {study.methods[number].name: number for number in study.of(b)}
        both = [name for name in of_a if name in of_b]
        if not both:
            continue
        verdicts = [study.verdicts[of_b[name], of_a[name]] for name in both]
        gain = np.mean(
            [study.values[of_b[name]].mean() - study.values[of_a[name]].mean() for name in both]
        )
        texts.append(
            f"{SCORERS[b]} against {SCORERS[a]}: {signed(float(gain))} on average, and better for "
            f"{verdicts.count(1)} of {len(both)} losses, worse for {verdicts.count(-1)}"
        )
    others = study.of(*NEURAL)
    for number in study.trees_beside_losses if len(others) > 1 else ():
        verdicts = study.verdicts[number, others].tolist()
        texts.append(
            f"{study.methods[number].name} against the {len(others)} losses with a scorer: better "
            f"than {verdicts.count(1)}, worse than {verdicts.count(-1)}"
        )
    if not texts:
        return "**The effect of the scorer.** No loss was run with two scorers."
    said = "; ".join(texts)
    return f"**The effect of the scorer** (significant differences in NDCG@10). {said}."


def table_empty(evidence: Evidence, dataset: str) -> TableResult:
    """NDCG@10 under each convention for queries without a relevant document."""
    study = protocol(evidence, dataset)
    queries = len(study.methods[0].query_values(PRIMARY, empty="zero"))
    empty = queries - len(study.values)
    means = {
        convention: np.array(
            [method.trial_means(PRIMARY, empty=convention).mean() for method in study.methods]
        )
        for convention in CONVENTIONS
    }
    places = {name: stats.rankdata(-values, method="min") for name, values in means.items()}
    rows = []
    lines: dict[str, list[list[str]]] = {scorer: [] for scorer in SCORERS}
    for number, method in enumerate(study.methods):
        cells = [method.name]
        for convention in CONVENTIONS:
            rows.append(
                study.about
                | {
                    "scorer": SCORERS[method.variant],
                    "method": method.name,
                    "metric": "NDCG@10",
                    "empty_queries": convention,
                    "mean": means[convention][number],
                    "place": int(places[convention][number]),
                    "queries": queries,
                    "of_them_empty": empty,
                }
            )
            place = str(int(places[convention][number]))
            cells += [measured(means[convention][number]), place]
        lines[method.variant].append(cells)
    columns = ["Method", "left out", "place", "as 0", "place", "as 1", "place"]
    if not empty:  # one convention says it all
        columns = ["Method", "NDCG@10", "place"]
        lines = {scorer: [line[:3] for line in part] for scorer, part in lines.items()}
    sections = [Section(TITLES[scorer], part) for scorer, part in lines.items() if part]
    caption = (
        "NDCG@10 of the same runs if test queries without a relevant document are left out "
        "(Bruch2019), count as 0 (Qin2010, LETOR's tool) or count as 1 (Pobrotyn2021, LightGBM, "
        f"XGBoost); here these are {empty} of {queries} queries. “place” is that among all "
        f"methods. {study.scale()}"
    )
    layout = Layout(_order(study, means, empty), caption, columns, sections)
    return TableResult(pd.DataFrame(rows), layout)


def _order(study: Protocol, means: Mapping[Empty, np.ndarray], empty: int) -> str:
    """Whether the convention changes the order of the methods, and how much it moves the levels."""
    if len(study.methods) < 2:
        return ""
    if not empty:
        return "No test query is empty, so the conventions agree."
    texts = []
    for convention in CONVENTIONS[1:]:
        tau = float(stats.kendalltau(means["exclude"], means[convention]).statistic)
        moved = int((stats.rankdata(-means["exclude"]) != stats.rankdata(-means[convention])).sum())
        shift = float(np.mean(means[convention] - means["exclude"]))
        texts.append(
            f"counted as {'0' if convention == 'zero' else '1'}, they change the mean by "
            f"{signed(shift)} on average and the place of {moved} methods (Kendall's τ with "
            f"the order without them is {tau:.3f})"
        )
    width = np.ptp(means["exclude"])
    best, second = np.sort(means["exclude"])[::-1][:2]
    fixed = (
        "On one set of queries, a convention maps every mean by the same linear function, so the "
        "order cannot change; the order of means of fold means can change if folds differ in "
        "their share of empty queries."
        if study.folds > 1
        else "On one set of queries, a convention maps every mean by the same linear function, so "
        "the order cannot change; values of papers with different conventions cannot be compared."
    )
    return (
        f"Without empty queries, the methods range over {measured(width)}, and the best two are "
        f"{measured(best - second)} apart; {'; '.join(texts)}. {fixed}"
    )
