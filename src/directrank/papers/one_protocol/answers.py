"""Answers to the questions about trees: a difference, its interval, and what can be said of it.

Interval, difference and equivalence come from one estimate, for other queries and other trainings,
so that they cannot disagree. Differences and equivalences are two families of tests: each is
corrected by itself, over the questions of a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from directrank.papers.one_protocol.methods import (
    METRICS,
    PRIMARY,
    Comparison,
)
from directrank.papers.one_protocol.questions import QUESTIONS, Question
from directrank.papers.shared import cells
from directrank.papers.shared.format import listed
from directrank.papers.shared.product import NothingToCompareError
from directrank.stats.decisions import SIGNIFICANT, TURNED, decide
from directrank.stats.decisions import in_words as in_print
from directrank.stats.estimates import Estimate, of_row

#: Heading of the primary metric.
HEADING = next(heading for heading, metric in METRICS.items() if metric == PRIMARY)


def verdicts_sentence(margin: float) -> str:
    """How verdicts are reached, for a caption."""
    return (
        f"“better” and “worse” mean that the first is significantly so (t test, p < {SIGNIFICANT} "
        "after Holm's correction over the pairs), “equivalent” that the difference is within "
        f"±{margin:g} by two one-sided tests, corrected likewise, “within {margin:g}” that both "
        f"hold, and “by more than {margin:g}” that a difference of {margin:g} is excluded, too"
    )


@dataclass(frozen=True)
class Answer:
    """What is known of the difference of a question's two methods.

    Attributes:
        question: what is asked.
        estimate: of the first method's primary metric minus the second's.
        p_holm: that they do not differ.
        p_equivalent_holm: that they differ by more than the margin.
        verdict: ``better``, ``worse`` (the first), ``equivalent`` or ``inconclusive``.
        verdict_in_print: the same, and what is known of the size of a difference.
    """

    question: Question
    estimate: Estimate
    p_holm: float
    p_equivalent_holm: float
    verdict: str
    verdict_in_print: str

    @property
    def differs(self) -> bool:
        """Whether the difference is significant."""
        return self.verdict in TURNED

    @property
    def equivalent(self) -> bool:
        """Whether the difference is significantly within the margin; it may be one all the same."""
        return self.p_equivalent_holm < SIGNIFICANT

    @property
    def difference(self) -> str:
        """The difference with the half width of its interval."""
        return cells.difference(self.estimate.mean, self.estimate.interval().half_width)

    @property
    def in_order(self) -> tuple[str, str]:
        """Both methods, the one with the higher mean first."""
        first, second = self.question.pair
        return (second, first) if self.estimate.mean < 0 else (first, second)

    @property
    def lead(self) -> str:
        """By how much the one with the higher mean is ahead."""
        return cells.measured(abs(self.estimate.mean), self.estimate.interval().half_width)

    @property
    def ahead(self) -> str:
        """Which of the two has the higher mean, and by how much."""
        return f"{' over '.join(self.in_order)} by {self.lead}"


def differences(study: Comparison, metric: str = PRIMARY) -> pd.DataFrame:
    """The difference of both methods of every question that can be asked of ``study``.

    Returns:
        A row per question, in the order of :data:`QUESTIONS`: ``question``, ``difference``,
        ``error`` and ``freedom``; see :meth:`directrank.stats.two_way.Crossed.differences`.
    """
    places = {study.names["method"][number]: number for number in study.of("trees")}
    asked = [question for question in QUESTIONS if places.keys() >= set(question.pair)]
    a, b = ([places[question.pair[side]] for question in asked] for side in (0, 1))
    trees = study.crossed(metric)
    return trees.differences(a, b).assign(question=pd.Series(asked, dtype=object))


def judged(pairs: pd.DataFrame, margin: float) -> dict[Question, Answer]:
    """The answers, each test corrected over the questions by Holm's method.

    Args:
        pairs: as :func:`differences` returns them.
        margin: the smallest difference of interest.
    """
    return {
        row.question: Answer(
            row.question,
            of_row(row),
            row.p_differs,
            row.p_within,
            row.verdict,
            in_print(row.verdict, row.size, margin),
        )
        for row in decide(pairs, margin).itertuples()
    }


def answer_row(answer: Answer, heading: str, estimate: Estimate) -> dict[str, Any]:
    """A row of a CSV file; the row of the primary metric has the verdict.

    Args:
        answer: to a question.
        heading: of the metric.
        estimate: the difference in it.
    """
    row = {
        "question": answer.question.text,
        "method": answer.question.first,
        "other": answer.question.second,
        "metric": heading,
        "difference": estimate.mean,
        "half_width": estimate.interval().half_width,
    }
    if heading == HEADING:
        row |= {
            "p_holm": answer.p_holm,
            "p_equivalent_holm": answer.p_equivalent_holm,
            "verdict": answer.verdict,
        }
    return row


def answer_rows(study: Comparison, answers: Mapping[Question, Answer]) -> Iterator[dict[str, Any]]:
    """A row of :func:`answer_row` per metric and question of a collection."""
    for heading, metric in METRICS.items():
        for row in differences(study, metric).itertuples():
            estimate = of_row(row)
            yield answer_row(answers[row.question], heading, estimate) | {
                "queries": study.n_queries
            }


def nothing_to_ask(where: str) -> NothingToCompareError:
    """The error of a table without a single question."""
    return NothingToCompareError(
        f"no two methods of trees that are compared were run {where}",
        "add variants to the experiment trees, or leave this product out",
    )


def in_words(answers: Sequence[Answer], queries: str, margin: float) -> str:
    """What to see on a collection, in a sentence.

    Args:
        answers: of its questions.
        queries: how many they rest on, in words.
        margin: the smallest difference of interest.
    """
    differ = [answer for answer in answers if answer.differs]
    differ.sort(key=lambda answer: -abs(answer.estimate.mean))
    small = sum(answer.equivalent for answer in differ)
    equal = [answer for answer in answers if answer.verdict == "equivalent"]
    unknown = len(answers) - len(differ) - len(equal)
    differing = f"{len(differ) or 'none'} differ{'s' * (len(differ) == 1)} significantly"
    if differ:
        differing += f" ({', '.join(answer.ahead for answer in differ)})"
    if small:
        differing += f", {small} of them by no more than {margin:g}"
    alike = (
        f"{len(equal) or 'none'} {'is' if len(equal) < 2 else 'are'} equivalent within {margin:g}"
    )
    if equal:
        alike += f" ({', '.join(listed(answer.question.pair) for answer in equal)})"
    said = [
        differing,
        alike,
        *([f"{unknown} {'is' if unknown == 1 else 'are'} inconclusive"] if unknown else []),
    ]
    pairs = f"{len(answers)} pair{'s' * (len(answers) > 1)}"
    return f"Of {pairs} on {queries}, {'; '.join(said)}."


def over_collections(
    by_collection: Sequence[Mapping[Question, Answer]],
    overall: Mapping[Question, Answer],
    margin: float,
) -> str:
    """What to see on several collections, in sentences.

    Args:
        by_collection: the answers of each.
        overall: those over collections.
        margin: the smallest difference of interest.
    """
    one_way, both_ways, equal = [], [], []
    for question in overall:
        verdicts = [some[question].verdict for some in by_collection if question in some]
        better, worse = verdicts.count("better"), verdicts.count("worse")
        first, second = question.pair if better else question.pair[::-1]
        if better and worse:
            both_ways.append(f"{first} and {second} ({better} to {worse})")
        elif better or worse:
            one_way.append(f"{first} over {second} ({better + worse} of {len(verdicts)})")
        elif verdicts and set(verdicts) == {"equivalent"}:
            equal.append(listed(question.pair))
    sure = [answer.ahead for answer in overall.values() if answer.differs]
    parts = [
        ("significantly ahead on some and behind on none", one_way),
        ("ahead on some and behind on others", both_ways),
        (f"equivalent within {margin:g} on every one", equal),
        ("different over the collections, by a test that generalises to others", sure),
    ]
    said = "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names)
    nothing = (
        "no question has a significant answer, also over all of them, and no pair is equivalent "
        f"within {margin:g} on every one"
    )
    return f"On {len(by_collection)} collections, {said or nothing}."
