"""Does it matter what a loss is built on? Few questions about groups of losses.

The value of a group for a query in a training is the mean over its losses and over the scorers, so
that what a single loss or training happens to give averages out. Groups follow from the formulas of
losses, not from results. Over several collections a difference is the mean of the collections'
differences: it speaks of other queries of these collections and of other trainings, not of other
collections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from directrank.papers.one_protocol.answers import HEADING, Answer, judged, verdicts_sentence
from directrank.papers.one_protocol.by_loss import Losses, Together, read_losses
from directrank.papers.one_protocol.derived import Averaged
from directrank.papers.one_protocol.methods import PRIMARY
from directrank.papers.one_protocol.questions import Question
from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import counted, listed, p_value
from directrank.papers.shared.product import NothingToCompareError, TableResult
from directrank.papers.shared.tables import Section, TableLayout

_DOCUMENTS = ("RMSE", "ordinal regression", "sigmoid cross-entropy")
_PAIRS = ("RankNet", "pairwise hinge")
_LISTS = (
    "ListNet", "ListMLE", "XE-NDCG", "softmax cross-entropy", "Poly-1 softmax", "unique softmax",
)  # fmt: skip
_WEIGHTED = ("LambdaRank", "LambdaLoss", "LambdaLoss@10")
_APPROXIMATE = (
    "ApproxNDCG", "Gumbel-ApproxNDCG", "SoftRank", "SmoothI", "PiRank", "K-SONG", "fast soft NDCG",
    "LapSum NDCG", "SoftSort", "Sinkhorn sort", "DiffSort", "NeuralNDCG", "NeuralNDCGᵀ",
    "Newton NeuralNDCG",
)  # fmt: skip
_EXACT = ("blackbox NDCG", *(f"twin NDCG type {kind}" for kind in (1, 2, 3)))
_SAMPLED = ("PL-Rank", "StochasticRank", "YetiLoss")

#: Group → its losses.
GROUPS: Mapping[str, Sequence[str]] = {
    "NDCG": (*_WEIGHTED, *_APPROXIMATE, *_EXACT, *_SAMPLED),
    "no metric": (*_DOCUMENTS, *_PAIRS, *_LISTS),
    "ranks that are approximate": _APPROXIMATE,
    "ranks that are exact": _EXACT,
    "weighted pairs": _WEIGHTED,
    "sampled orders": _SAMPLED,
    "another metric": (
        "ApproxAP", "ApproxPrecision@10",
        *(f"twin {name} type {kind}" for name in ("AP", "Precision", "nERR@10")
          for kind in (1, 2, 3)),
    ),
    "pairs": _PAIRS,
    "lists": _LISTS,
    "single documents": _DOCUMENTS,
}  # fmt: skip

QUESTIONS = (
    Question("Built on NDCG, or on no metric?", "NDCG", "no metric"),
    Question("Built on NDCG, or on another metric?", "NDCG", "another metric"),
    Question(
        "NDCG of approximate ranks, or pairs weighted by it?",
        "ranks that are approximate",
        "weighted pairs",
    ),
    Question(
        "NDCG of approximate ranks, or of sampled orders?",
        "ranks that are approximate",
        "sampled orders",
    ),
    Question("Without a metric: pairs, or lists?", "pairs", "lists"),
    Question("Without a metric: lists, or single documents?", "lists", "single documents"),
)


@dataclass(frozen=True)
class Groups(Averaged):
    """The groups of losses on one collection, each with those of its losses that were run there.

    A group without any is left out.
    """

    every: Losses

    @cached_property
    def members(self) -> dict[str, list[str]]:
        """Group → its losses on this collection."""
        run = self.every.labels
        found = {group: [name for name in of if name in run] for group, of in GROUPS.items()}
        return {group: some for group, some in found.items() if some}

    @cached_property
    def parts(self) -> dict[str, list[int]]:
        """Group → the positions of its losses."""
        place = {name: number for number, name in enumerate(self.every.labels)}
        return {group: [place[name] for name in some] for group, some in self.members.items()}

    @property
    def scorer(self) -> str:
        """The names of all scorers."""
        return self.every.scorer


def table(evidence: Evidence) -> TableResult:
    """The answers on every collection and over them, and the mean of every group.

    Raises:
        DataError: the collections have both groups of no question.
    """
    studies = [Groups(read_losses(file)) for file in evidence.values_files]
    margin = studies[0].margin
    answers = [judged(differences(Together([study])), margin) for study in studies]
    overall = judged(differences(Together(studies)), margin)
    if not overall:
        raise NothingToCompareError(
            "the collections have both groups of no question",
            "add losses to the experiments, or leave this product out",
        )
    titles = [study.dataset.title for study in studies]
    columns = ["Question", *titles, "over collections", "p", "verdict"]
    sections = [
        Section("First less second", _lines(answers, overall)),
        Section("Groups", _group_lines(studies), ["Group", *titles, "losses on each"]),
    ]
    caption = (
        "Groups of losses under one protocol, by what their formulas are built on. The upper part "
        f"shows the first group's test {HEADING} minus the second's, ± the half width of its 95% t "
        "interval for other queries (or groups of related queries) and other trainings, which is "
        f"not corrected. {verdicts_sentence(margin)}. A group's value is the mean over its losses "
        "and over the scorers that most losses of the collection were run with. “over collections” "
        "is the mean of the differences, with p corrected over the questions and an interval for "
        "other queries of these collections and other trainings, not for other collections. The "
        "lower part shows means over the test queries with their intervals, and the number of "
        "losses on each collection. Queries without a relevant document are left out. Edition "
        f"{evidence.edition}."
    )
    notes = [_who(studies)]
    layout = TableLayout(_lead(overall, len(studies)), caption, columns, sections, notes)
    return TableResult(_data(evidence, studies, answers, overall), layout)


def differences(together: Together) -> pd.DataFrame:
    """The difference of both groups of every question that all collections have.

    Returns:
        A row per question: ``question``, ``difference``, ``error`` and ``freedom``.
    """
    found = [
        (question, gap.mean, gap.error, gap.freedom)
        for question in QUESTIONS
        if {*question.pair} <= {*together.labels}
        for gap in [together.difference(*question.pair)]
    ]
    return pd.DataFrame(found, columns=["question", "difference", "error", "freedom"])


def _lead(overall: Mapping[Question, Answer], collections: int) -> str:
    """What is known over all collections, in a sentence."""
    sure = [
        f"losses built on {first} are ahead of those on {second} by {answer.lead}"
        for answer in overall.values()
        if answer.differs
        for first, second in [answer.in_order]
    ]
    over = f"Over {counted(collections, 'collection')}"
    unknown = len(overall) - len(sure)
    if not sure:
        return f"{over}, none of {len(overall)} questions has a significant answer."
    rest = f"; {unknown} of {len(overall)} questions have no significant answer" if unknown else ""
    return f"{over}, {listed(sure)} in {HEADING}{rest}."


def _lines(
    answers: Sequence[Mapping[Question, Answer]], overall: Mapping[Question, Answer]
) -> list[list[str]]:
    return [
        [
            question.text,
            *(
                f"{some[question].difference}, {some[question].verdict_in_print}"
                for some in answers
            ),
            answer.difference,
            p_value(answer.p_holm, 3),
            answer.verdict_in_print,
        ]
        for question, answer in overall.items()
    ]


def _group_lines(studies: Sequence[Groups]) -> list[list[str]]:
    lines = []
    for group in GROUPS:
        cells, counts = [], []
        for study in studies:
            if group not in study.labels:
                cells.append("–")
                counts.append("0")
                continue
            mean = study.over_queries(PRIMARY)[study.labels.index(group)]
            cells.append(measured(mean.mean, mean.interval().half_width))
            counts.append(str(len(study.members[group])))
        lines.append([group, *cells, ", ".join(counts)])
    return lines


def _who(studies: Sequence[Groups]) -> str:
    """The losses of each group that any collection has."""
    known = {name for study in studies for some in study.members.values() for name in some}
    said = [
        f"*{group}*: {', '.join(name for name in of if name in known)}"
        for group, of in GROUPS.items()
        if known & {*of}
    ]
    return f"**The groups.** {'; '.join(said)}. Other losses of the comparison are in no group."


def _data(
    evidence: Evidence,
    studies: Sequence[Groups],
    answers: Sequence[Mapping[Question, Answer]],
    overall: Mapping[Question, Answer],
) -> pd.DataFrame:
    """A row per question and collection, and over them, and a row per group and collection."""
    rows: list[dict[str, Any]] = []
    for study, some in zip(studies, answers, strict=True):
        about = evidence.about(study.dataset)
        rows += [about | _answered(answer) for answer in some.values()]
        for group, mean in zip(study.labels, study.over_queries(PRIMARY), strict=True):
            rows.append(
                about
                | {
                    "group": group,
                    "losses": len(study.members[group]),
                    "metric": HEADING,
                    "mean": mean.mean,
                    "half_width": mean.interval().half_width,
                }
            )
    about = evidence.about(None) | {"dataset": "all collections"}
    return pd.DataFrame([*rows, *(about | _answered(answer) for answer in overall.values())])


def _answered(answer: Answer) -> dict[str, Any]:
    return {
        "question": answer.question.text,
        "group": answer.question.first,
        "other": answer.question.second,
        "metric": HEADING,
        "difference": answer.estimate.mean,
        "half_width": answer.estimate.interval().half_width,
        "p_holm": answer.p_holm,
        "p_equivalent_holm": answer.p_equivalent_holm,
        "verdict": answer.verdict,
    }
