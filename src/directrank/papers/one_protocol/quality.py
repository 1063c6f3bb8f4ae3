"""How good every loss is with every scorer, beside trees; and what an empty query counts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from directrank.papers.one_protocol.by_loss import Losses
from directrank.papers.one_protocol.controls import with_article
from directrank.papers.one_protocol.methods import (
    CONTROLS,
    METRICS,
    NEURAL,
    PRIMARY,
    SCORERS,
    TITLES,
    Comparison,
)
from directrank.papers.one_protocol.protocol import Protocol, comparison, protocol
from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import CONVENTIONS, Empty, Evidence
from directrank.papers.shared.format import listed, share, signed
from directrank.papers.shared.leads import lead
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Section, TableLayout
from directrank.stats.decisions import BETTER, between, ranked_pairs

#: Of a group of losses, so many are named.
NAMED = 6


def table_quality(evidence: Evidence, dataset: str) -> TableResult:
    """The mean of every metric for every method, and between which places it is."""
    study = comparison(evidence, dataset)
    rows = _rows(study)
    rows += [
        study.about | {"scorer": SCORERS[scorer], "method": name, "failed": reason}
        for scorer in SCORERS
        for name, reason in study.failed(scorer).items()
    ]
    data = pd.DataFrame(rows)
    best = data.groupby("metric")["mean"].max()
    sections = []
    for scorer in SCORERS:
        lines = [_line(study, data, number, best) for number in study.of(scorer)]
        lines += [[name, "failed", *[""] * (len(METRICS) + 2)] for name in study.failed(scorer)]
        if lines:
            sections.append(Section(TITLES[scorer], lines))
    fold_means = "mean of the fold means" if study.n_folds > 1 else "mean over the queries"
    caption = (
        f"Every loss with each scorer of the table, and boosted trees: the {fold_means} of "
        "the test set, averaged over trials, ± the half width of the 95% interval. The highest "
        "mean is bold. Queries without a relevant document are left out. “better” and “worse” "
        f"count the methods of {len(study.ranked)} than which it is significantly better or worse "
        "in NDCG@10 (the intervals are not corrected), and “place” is what follows from them: "
        f"tied methods share places. {study.standard} {study.trained_on}{study.scale()}"
    )
    columns = ["Method", *METRICS, "place", "better", "worse"]
    means = study.over_folds(PRIMARY)
    start = _winner(study, means, study.ranked.tolist(), "all methods")
    notes = _sentences(study, data, means)
    return TableResult(data, TableLayout(start, caption, columns, sections, notes))


def _rows(study: Comparison) -> list[dict[str, Any]]:
    """A row per method and metric."""
    columns = {
        metric: (study.over_folds(metric), study.over_queries(metric), study.trainings(metric))
        for metric in METRICS.values()
    }
    rows = []
    for number, (name, scorer) in enumerate(study.names.itertuples(index=False)):
        for heading, metric in METRICS.items():
            means, estimates, trainings = columns[metric]
            row = study.about | {
                "scorer": scorer,
                "method": name,
                "metric": heading,
                "mean": means[number],
                "half_width": estimates[number].interval().half_width,
                "trials": len(trainings[number]),
                "folds": study.n_folds,
                "queries": study.n_queries,
            }
            rows.append(row | (_standing(study, number) if metric == PRIMARY else {}))
    return rows


def _standing(study: Comparison, number: int) -> dict[str, Any]:
    """Where a method stands among the others; nowhere if it is not ranked."""
    first, last = study.places[number]
    if not first:
        return {}
    verdicts = study.verdicts[number]
    return {
        "first_place": first,
        "last_place": last,
        "may_be_best": bool(study.may_be_best[number]),
        "better_than": int((verdicts > 0).sum()),
        "worse_than": int((verdicts < 0).sum()),
    }


def _line(study: Comparison, data: pd.DataFrame, number: int, best: pd.Series) -> list[str]:
    own = data.iloc[number * len(METRICS) : (number + 1) * len(METRICS)].set_index("metric")
    cells = [study.names["method"].iloc[number]]
    for heading in METRICS:
        mean, half_width = own.loc[heading, ["mean", "half_width"]]
        cells.append(measured(mean, half_width, best=mean == best[heading]))
    if number not in study.ranked:
        return [*cells, "", "", ""]
    verdicts = study.verdicts[number]
    counts = [str((verdicts > 0).sum()), str((verdicts < 0).sum())]
    return [*cells, place(*study.places[number]), *counts]


def place(first: int, last: int) -> str:
    """The places that a method may have, in print."""
    return str(first) if first == last else f"{first}–{last}"


def _sentences(study: Comparison, data: pd.DataFrame, means: np.ndarray) -> list[str]:
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
        *_untrained(study, means),
    ]


def _winner(study: Comparison, means: np.ndarray, among: Sequence[int], what: str) -> str:
    """Which has the highest mean, and whether that can be said of other queries and trainings."""
    if len(among) == 1:
        only = study.labels[among[0]]
        return f"{only} is the only method, with NDCG@10 {measured(means[0])}."
    order = sorted(among, key=lambda number: -means[number])
    lead = means[order[0]] - means[order[1]]
    same = len(set(study.names["scorer"].iloc[list(among)])) == 1
    names = study.names["method"].tolist() if same else study.labels
    gap = "less than 0.001" if lead < 0.001 else measured(lead)
    against = study.verdicts[order[0], order[1:]].tolist()
    return (
        f"Of {what}, {names[order[0]]} has the highest NDCG@10, {measured(means[order[0]])}, {gap} "
        f"above {names[order[1]]}. It is significantly better than "
        f"{share(against.count(1), len(against))} others."
    )


def _significance(study: Comparison, data: pd.DataFrame) -> str:
    text = "**How much can be told.** "
    if len(study.ranked) > 1:
        pairs, verdicts = study.pairs, study.verdicts
        ranked = ranked_pairs(verdicts)
        beyond = int((pairs["size"] == "more than the margin").sum())
        equal = int((pairs["verdict"] == "equivalent").sum())
        text += (
            f"{ranked} of {len(pairs)} pairs of methods differ significantly and by more than the "
            f"controls, {beyond} of which are shown to differ by more than {study.margin:g}; "
            f"{equal} are equivalent within {study.margin:g}. {int(study.may_be_best.sum())} of "
            f"{len(study.ranked)} methods may be the best: the best is among them with 95% "
            "confidence. "
        )
    width = data.loc[data["metric"] == "NDCG@10", "half_width"].median()
    return f"{text}The median half width of a mean is {width:.3f} on {study.size}."


def _losses(study: Comparison) -> str:
    """The losses over all scorers that each of them was run with."""
    losses = Losses(study)
    if len(losses.labels) < 2:
        return "**Which loss, whatever the scorer?** Too few losses were run with the same scorers."
    over = f"Averaged over {len(losses.scorers)} scorers"
    if len(losses.scorers) < len([scorer for scorer in NEURAL if study.of(scorer)]):
        over += f", which most losses were run with ({listed(losses.scorers)})"
    if len(losses.scorers) == 1:
        over = "With one scorer"
    verdicts, best = losses.verdicts, losses.may_be_best
    order = np.argsort(-losses.means.to_numpy(), kind="stable")
    ranked = ranked_pairs(verdicts)
    behind = [losses.labels[number] for number in order if not best[number]]
    text = (
        f"**Which loss, whatever the scorer?** {over}, {ranked} of {len(losses.pairs)} pairs of "
        f"{len(verdicts)} losses differ significantly and by more than the controls "
        f"({measured(losses.distance)}), and {int(best.sum())} losses may be the best"
    )
    if not behind:
        return f"{text}."
    named = listed(behind) if len(behind) <= NAMED else f"{', '.join(behind[-NAMED:])}, …"
    return f"{text}; not {named}."


def _scorers(study: Comparison) -> str:
    """The same loss with two scorers, and the best of the trees among the losses."""
    texts = []
    means = study.over_folds(PRIMARY)
    names = study.names["method"]
    for a, b in itertools.combinations(NEURAL, 2):
        of_a, of_b = ({names[number]: number for number in study.of(one)} for one in (a, b))
        both = [name for name in of_a if name in of_b]
        if not both:
            continue
        verdicts = [study.verdicts[of_b[name], of_a[name]] for name in both]
        gain = np.mean([means[of_b[name]] - means[of_a[name]] for name in both])
        texts.append(
            f"{SCORERS[b]} against {SCORERS[a]}: {signed(float(gain))} on average, and better for "
            f"{verdicts.count(1)} of {len(both)} losses, worse for {verdicts.count(-1)}"
        )
    others = study.of(*NEURAL)
    for number in study.trees_beside_losses if len(others) > 1 else ():
        against = study.verdicts[number, others].tolist()
        texts.append(
            f"{names[number]} against the {len(others)} losses with a scorer: better than "
            f"{against.count(1)}, worse than {against.count(-1)}"
        )
    if not texts:
        return "**The effect of the scorer.** No loss was run with two scorers."
    said = "; ".join(texts)
    return f"**The effect of the scorer** (significant differences in NDCG@10). {said}."


def _untrained(study: Comparison, means: np.ndarray) -> list[str]:
    """What can be had without training a ranker."""
    names = study.names["method"]
    trained = study.of(*NEURAL, "trees")
    words = between(study.beside_controls, len(study.labels))
    said = []
    for number in study.of(CONTROLS) if trained else ():
        ahead = int((words[study.ranked, number] == BETTER).sum())
        said.append(
            f"{with_article(names[number])} reaches {measured(means[number])}, "
            f"{measured(means[trained].max() - means[number])} less than the highest mean; "
            f"{share(ahead, len(trained))} trained methods "
            f"{'is' if ahead == 1 else 'are'} significantly better"
        )
    return [f"**Without training.** {lead(*said)}"] if said else []


def table_empty(evidence: Evidence, dataset: str) -> TableResult:
    """NDCG@10 under each convention for queries without a relevant document."""
    study = protocol(evidence, dataset)
    queries = len(study.methods[0].query_values(PRIMARY, empty="zero"))
    empty = queries - study.n_queries
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
    layout = TableLayout(_order(study, means, empty), caption, columns, sections)
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
        if study.n_folds > 1
        else "On one set of queries, a convention maps every mean by the same linear function, so "
        "the order cannot change; values of papers with different conventions cannot be compared."
    )
    return (
        f"Without empty queries, the methods range over {measured(width)}, and the best two are "
        f"{measured(best - second)} apart; {'; '.join(texts)}. {fixed}"
    )
