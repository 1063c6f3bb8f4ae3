"""Test the papers' claims on every real collection, also on those that no paper used.

If a paper's own experiments were run on a collection, they give the verdict. Otherwise it comes
from the comparison under one protocol, which has the same methods with other budgets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from directrank.papers.one_protocol.methods import METRICS, SCORERS
from directrank.papers.one_protocol.published import Published, read
from directrank.papers.shared.claim_rows import name_of
from directrank.papers.shared.claims import OVERALL, published_claims, read_claims
from directrank.papers.shared.findings import (
    MORE,
    SAME,
    Claimed,
    Finding,
    Outcome,
    generalised,
    value,
)
from directrank.papers.shared.format import interval, listed, signed
from directrank.papers.shared.judging import conclude, judge, row, weight, worst
from directrank.papers.shared.tables import markdown_rows
from directrank.papers.shared.verdicts import (
    MEANING,
    STANDIN_GROUP,
    UNMEASURED,
    VERDICTS,
)
from directrank.stats.estimates import Estimate
from directrank.system.io import write_csv, write_text

#: The experiments on which a verdict rests.
OWN, ONE_PROTOCOL = "the paper's experiments", "one protocol"

#: “Comparable” means the same as for Yu2020's own table.
COMPARABLE = 0.02

NDCG = ("NDCG@5", "NDCG@10")

COLUMNS = (
    "edition", "claim", "paper", "statement", "dataset", "verdict", "source", "comparison",
    "claimed", "outcome", "effect", "low", "high", "p_holm", "p_range_holm", "detectable", "remark",
)  # fmt: skip


@dataclass(frozen=True)
class Versus:
    """The pairs of methods that a claim compares: each of ``better`` with each of ``worse``.

    Attributes:
        better, worse: losses, or trees. A tuple in ``better`` holds variants of one method, which
            the one with the highest mean represents. This choice favours the claim, so that a
            contradiction holds for every variant.
        scorers: those with which the losses were trained, by their names in experiments.
        claimed: what is claimed about the first minus the second.
        metrics: headings of :data:`directrank.papers.one_protocol.methods.METRICS`.
    """

    better: Sequence[str | tuple[str, ...]]
    worse: Sequence[str]
    scorers: Sequence[str]
    claimed: Claimed = MORE
    metrics: Sequence[str] = NDCG


@dataclass(frozen=True)
class Reading:
    """A claim in terms of the comparison under one protocol.

    Attributes:
        parts: what it compares.
        missing: the parts of the statement that the comparison lacks.
        note: what distinguishes it from the paper's own experiments, for the page.
    """

    parts: Sequence[Versus]
    missing: Sequence[str] = ()
    note: str = ""


_BASELINES = ("ListMLE", "ListNet", "ApproxNDCG", "WassRank")
_TYPE1 = ("twin Precision type 1", "twin AP type 1", "twin nERR@10 type 1")

#: Claim → its reading.
READINGS: Mapping[str, Reading] = {
    "C02": Reading([Versus(["LambdaMART"], ["ApproxNDCG"], ["tower"])]),
    "C03": Reading([Versus(["ApproxNDCG"], ["ListMLE", "RankNet"], ["tower"])]),
    "C08": Reading(
        [Versus(["ApproxNDCG"], ["SoftRank", "ListNet"], ["linear"])],
        ["AdaRank.NDCG", "Ranking SVM"],
    ),
    "C11": Reading([Versus(["LambdaMART"], _BASELINES, ["tower"])]),
    "C12": Reading([Versus(["LambdaMART", *_BASELINES[1:]], ["ListMLE"], ["tower"])]),
    "C13": Reading([Versus(["ApproxNDCG"], ["ListMLE", "ListNet", "WassRank"], ["tower"])]),
    "C14": Reading([Versus(["twin NDCG type 1"], ["ListMLE", "ListNet", "WassRank"], ["tower"])]),
    "C15": Reading(
        [
            *(
                Versus([f"twin {name} type 2"], [f"twin {name} type 1"], ["tower"])
                for name in ("Precision", "AP", "nERR@10")
            ),
            *(
                Versus([f"twin {name} type 3"], [f"twin {name} type 1"], ["tower"])
                for name in ("Precision", "AP", "NDCG", "nERR@10")
            ),
        ]
    ),
    "C16": Reading(
        [
            Versus(["twin AP type 3", "twin NDCG type 3"], ["ApproxNDCG"], ["tower"]),
            Versus(
                ["LambdaMART"],
                ["twin AP type 3", "twin NDCG type 3"],
                ["tower"],
                value(0.0, COMPARABLE),
            ),
        ]
    ),
    "C19": Reading([Versus(["NeuralNDCG", "NeuralNDCGᵀ"], ["ApproxNDCG"], ["context"])]),
    "C20": Reading(
        [
            Versus(
                [("NeuralNDCG", "NeuralNDCGᵀ")],
                ["LambdaRank", "ListNet", "ListMLE", "RankNet", "RMSE", "ApproxNDCG"],
                ["context"],
            )
        ]
    ),
    "C23": Reading(
        [Versus(["LambdaRank"], ["RankNet"], ["linear", "tower"])],
        note="One protocol is asked for a lead on every collection; in the paper's experiments "
        "MQ2008 stands for its small set, on which none is claimed.",
    ),
    "D09": Reading(
        [Versus(["ListMLE"], ["ListNet", "ApproxNDCG", "WassRank"], ["tower"], MORE, ["MAP"])]
    ),
    "D10": Reading([Versus(["ListNet", "ApproxNDCG", "WassRank"], _TYPE1, ["tower"])]),
    "D13": Reading([Versus(["NeuralNDCG"], ["LambdaRank"], ["context"], SAME)]),
    "D21": Reading(
        [
            Versus(["twin NDCG type 1"], ["twin Precision type 1", "twin AP type 1"], ["tower"]),
            *(
                Versus(
                    [f"twin Precision type {kind}", f"twin AP type {kind}"],
                    [f"twin NDCG type {kind}"],
                    ["tower"],
                )
                for kind in (2, 3)
            ),
        ]
    ),
    "D22": Reading([Versus(["twin NDCG type 1"], ["ApproxNDCG"], ["tower"], SAME)]),
}


def outcome(collection: Published, claim: str) -> Outcome:
    """Test a claim of :data:`READINGS` with the published values of a collection."""
    reading = READINGS[claim]
    places = {name: place for place, name in enumerate(map(tuple, collection.names.to_numpy()))}
    findings, missing = [], list(reading.missing)
    for part in reading.parts:
        for scorer, better, worse in product(part.scorers, part.better, part.worse):
            variants = (better,) if isinstance(better, str) else better
            keys = [_key(name, scorer) for name in (*variants, worse)]
            if not all(key in places for key in keys):
                missing.append(f"{' or '.join(variants)} against {worse}")
                continue
            *firsts, second = (places[key] for key in keys)
            for heading in part.metrics:
                means = collection.over_queries(METRICS[heading])
                first = max(firsts, key=lambda number: means[number].mean)
                findings.append(_finding(collection, first, second, heading, part.claimed))
    return Outcome(findings, list(dict.fromkeys(missing)))


def _key(name: str, scorer: str) -> tuple[str, str]:
    """The key of a method in the file of values: a loss with a scorer, or trees."""
    return name, SCORERS["trees" if name == "LambdaMART" else scorer]


def _finding(
    collection: Published, first: int, second: int, heading: str, claimed: Claimed
) -> Finding:
    metric = METRICS[heading]
    (row,) = collection.crossed(metric).differences([first], [second]).itertuples()
    trainings = [len(collection.trainings(metric)[number]) for number in (first, second)]
    known = min(trainings) > 1
    estimate = Estimate(
        row.difference, row.error if known else math.nan, row.freedom, collection.n_queries
    )
    measurement = generalised(estimate, collection.size, trainings)
    names = f"{collection.labels[first]} − {collection.labels[second]}"
    return Finding(f"{names}, {heading}", claimed, collection.dataset, "", measurement)


def table(files: Sequence[str | Path], claims_file: str | Path, margin: float) -> pd.DataFrame:
    """The verdicts on every collection, on the claims of :data:`READINGS` and of the papers' own
    runs.

    Args:
        files: published values per query, one per collection.
        claims_file: the verdicts of the papers' own experiments in the same edition.
        margin: differences of a metric up to it are equivalent.

    Returns:
        The columns :data:`COLUMNS`, a row per claim and collection.
    """
    own = read_claims(claims_file)
    collections = [read(file) for file in files]
    titles = [collection.dataset.title for collection in collections]
    published = published_claims()
    chosen = [
        claim
        for claim in published.to_dict("records")
        if claim["claim"] in READINGS
        or own.loc[own["claim"] == claim["claim"], "dataset"].isin(titles).any()
    ]
    rows = []
    for claim in chosen:
        for collection in collections:
            about: dict[str, Any] = {
                "edition": collection.edition,
                **{key: claim[key] for key in ("claim", "paper", "statement")},
                "dataset": collection.dataset.title,
            }
            of_claim = own[own["claim"] == claim["claim"]]
            found = of_own(of_claim, collection.dataset.title)
            found = found or _of_protocol(collection, claim["claim"], margin)
            rows.append({**about, **found})
    return pd.DataFrame(rows).reindex(columns=COLUMNS)


def of_own(own: pd.DataFrame, title: str) -> Mapping[str, Any]:
    """The verdict by the paper's own experiments on a collection; empty where none was run.

    It is that on the part of the claim that was run there, whatever other collections say.

    Args:
        own: the rows of a claim in the file of claims.
        title: of the collection.
    """
    parts = own[
        (own["dataset"] == title) & (own["group"] != STANDIN_GROUP) & (own["comparison"] != OVERALL)
    ]
    if parts.empty:
        return {}
    verdict = worst(set(parts["verdict"]))
    same = parts[parts["verdict"] == verdict]
    decisive = max(same.itertuples(), key=lambda row: weight(row, verdict))
    return {**same.loc[decisive.Index].to_dict(), "source": OWN}


def _of_protocol(collection: Published, claim: str, margin: float) -> Mapping[str, Any]:
    """The verdict by the comparison under one protocol."""
    if claim not in READINGS:
        return {"verdict": UNMEASURED}
    found = outcome(collection, claim)
    judged = judge(found.findings, margin, ())
    verdict = conclude(found, judged)
    if verdict.decisive is None:
        return {"verdict": UNMEASURED, "remark": verdict.remark}
    return {
        **row(verdict.decisive, margin),
        "verdict": verdict.verdict,
        "source": ONE_PROTOCOL,
        "outcome": verdict.outcome,
        "remark": verdict.remark,
    }


def markdown(data: pd.DataFrame) -> str:
    """The page: a row per claim and a column per collection."""
    titles = list(dict.fromkeys(data["dataset"]))
    rows = []
    for claim, part in data.groupby("claim", sort=False):
        by_title = part.set_index("dataset")
        cells = [_cell(by_title.loc[title]) for title in titles]
        rows.append([claim, name_of(part.iloc[0]), *cells])
    meanings = "; ".join(f"*{word}*: {meaning}" for word, meaning in MEANING.items())
    notes = [f"*{claim}.* {reading.note}" for claim, reading in READINGS.items() if reading.note]
    lines = [
        "# The papers' claims on every real collection",
        "",
        *(f"- {sentence}" for sentence in in_words(data)),
        "",
        f"An asterisk marks a verdict that rests on {OWN}, as far as they were run on this "
        "collection, so that the verdict on the whole claim may be another. All others rest on "
        f"{ONE_PROTOCOL}: the "
        "same methods, with the same budgets, on the same folds. They have the effect of the "
        "comparison that decided them, ± the half width of its 95 % interval, which is not "
        "corrected, and its metric. Tests are "
        "corrected over the comparisons of a claim on a collection (Holm); a difference must "
        "generalise to other queries (groups of queries, where they form groups) and to other "
        "trainings. The [CSV file](claims_by_collection.csv) has the "
        "comparison that decided each verdict, its corrected p, and the smallest difference that "
        "the collection could have shown. [The papers' claims](claims.md) has the papers' own "
        "experiments.",
        "",
        *markdown_rows(["claim", "in words", *titles], rows, left=len(titles) + 2),
        "",
        *(line for note in notes for line in (note, "")),
        f"{meanings}.",
        "",
    ]
    return "\n".join(lines)


def in_words(data: pd.DataFrame) -> list[str]:
    """For each collection, a sentence that counts the verdicts on the claims measured on it."""
    said = []
    for title, part in data.groupby("dataset", sort=False):
        measured = part[part["verdict"] != UNMEASURED]
        counts = measured["verdict"].value_counts()
        texts = [f"{counts[word]} {word}" for word in VERDICTS if word in counts]
        said.append(f"**{title}**, {len(measured)} claims: {listed(texts)}.")
    return said


def _cell(cell: pd.Series) -> str:
    if cell["source"] == OWN:
        return cell["verdict"] + r"\*"
    if math.isnan(cell["effect"]):
        return cell["verdict"]
    effect = interval(signed(cell["effect"]), (cell["high"] - cell["low"]) / 2)
    # The name of a comparison ends with its metric, as _finding writes it.
    return f"{cell['verdict']}, {effect} in {cell['comparison'].rpartition(', ')[2]}"


def write(
    files: Sequence[str | Path], claims_file: str | Path, margin: float, out: str | Path
) -> list[Path]:
    """Write the table to ``out`` and the page beside it; arguments as for :func:`table`."""
    data = table(files, claims_file, margin)
    paths = [Path(out), Path(out).with_suffix(".md")]
    write_csv(paths[0], data)
    write_text(paths[1], markdown(data))
    return paths
