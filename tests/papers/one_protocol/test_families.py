"""Groups of losses by what they are built on, compared on made-up values with known means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from directrank.papers.one_protocol.answers import judged
from directrank.papers.one_protocol.by_loss import Together, read_losses
from directrank.papers.one_protocol.families import (
    GROUPS,
    QUESTIONS,
    Groups,
    differences,
    table,
)
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.product import NothingToCompareError
from published_losses import write_published
from studies import study_of

#: NDCG@10: the mean of NDCG's losses is 0.50, of those on no metric 0.46.
LEVELS = {
    "ApproxNDCG": 0.52, "SoftRank": 0.50, "LambdaRank": 0.48, "RankNet": 0.47, "ListNet": 0.47,
    "RMSE": 0.44, "WassRank": 0.1,
}  # fmt: skip


def groups(folder: Path, name: str, levels: Mapping[str, float] = LEVELS) -> Groups:
    return Groups(read_losses(write_published(folder, name, levels, spread=0.003)))


def asked(*studies: Groups) -> dict[str, float]:
    """Question → the first group's mean less the second's."""
    rows = differences(Together(studies))
    return {row.question.text: row.difference for row in rows.itertuples()}


def test_a_group_is_the_mean_of_its_losses_and_no_loss_of_another_group_counts(tmp_path):
    study = groups(tmp_path, "ohsumed")
    assert study.members["NDCG"] == ["LambdaRank", "ApproxNDCG", "SoftRank"]
    assert "sampled orders" not in study.members
    found = asked(study)
    assert found[QUESTIONS[0].text] == pytest.approx(0.50 - 0.46, abs=0.002)
    assert found["Without a metric: lists, or single documents?"] == pytest.approx(0.03, abs=0.002)
    assert "NDCG of approximate ranks, or of sampled orders?" not in found


def test_over_collections_a_difference_is_the_mean_of_theirs(tmp_path):
    one = groups(tmp_path, "ohsumed")
    other = groups(tmp_path, "mq2008", LEVELS | {"ApproxNDCG": 0.43, "SoftRank": 0.41})
    single = asked(one)[QUESTIONS[0].text], asked(other)[QUESTIONS[0].text]
    assert single[1] == pytest.approx(0.44 - 0.46, abs=0.002)
    assert asked(one, other)[QUESTIONS[0].text] == pytest.approx(sum(single) / 2)


def test_answers_are_corrected_over_the_questions(tmp_path):
    found = judged(differences(Together([groups(tmp_path, "ohsumed")])), 0.01)
    assert found[QUESTIONS[0]].verdict_in_print == "better by more than 0.01"
    pairs = next(one for one in found if one.pair == ("pairs", "lists"))
    assert found[pairs].verdict == "equivalent"
    assert found[pairs].p_holm > found[QUESTIONS[0]].p_holm


def evidence(files: list[Path]) -> Evidence:
    name = "table_collections_families"
    return Evidence("real", "one_protocol", name, {}, values_files=files)


def test_the_table_says_which_group_is_ahead(tmp_path):
    files = [write_published(tmp_path, name, LEVELS, spread=0.003) for name in ("a", "b")]
    made = table(evidence(files))
    assert made.layout.lead.startswith(
        "Over 2 collections, losses built on NDCG are ahead of those on no metric by 0.0"
    )
    over = made.data[made.data["dataset"] == "all collections"].set_index("question")
    assert over.loc[QUESTIONS[0].text, "verdict"] == "better"
    assert "*pairs*: RankNet;" in made.layout.notes[0]
    assert "WassRank" not in made.layout.notes[0]


def test_without_both_groups_of_a_question_there_is_no_table(tmp_path):
    few = {"ApproxNDCG": 0.5, "NeuralNDCG": 0.5}
    files = [write_published(tmp_path, name, few) for name in ("a", "b")]
    with pytest.raises(NothingToCompareError, match="both groups of no question"):
        table(evidence(files))


def test_every_loss_of_a_group_is_one_of_the_comparison():
    study = study_of("real")
    known = {
        cell["settings"]["method"]
        for cells in study.products["one_protocol", "per_query_ohsumed"]["experiments"].values()
        for cell in cells
    }
    assert {name for some in GROUPS.values() for name in some} <= known
    nothing, ndcg = (set(GROUPS[name]) for name in ("no metric", "NDCG"))
    assert not nothing & ndcg
    assert not (nothing | ndcg) & set(GROUPS["another metric"])
