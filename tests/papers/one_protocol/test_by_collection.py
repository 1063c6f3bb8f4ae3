"""The papers' claims on every collection, from made-up published values."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.papers.one_protocol import by_collection
from directrank.papers.one_protocol.methods import METRICS, SCORERS
from directrank.papers.one_protocol.published import read
from directrank.papers.shared.claims import COLUMNS, merge, published_claims
from directrank.papers.shared.judging import conclude, judge
from directrank.papers.shared.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    SUPPORTED,
    TREND,
    UNMEASURED,
)
from directrank.study.published import write_results
from directrank.system.errors import DataError
from directrank.system.io import write_csv
from workflow_runs import ROOT

LOSSES = sorted(
    {
        name
        for reading in by_collection.READINGS.values()
        for part in reading.parts
        for better in (*part.better, *part.worse)
        for name in ([better] if isinstance(better, str) else better)
    }
    - {"LambdaMART"}
)


def published(
    folder: Path,
    name: str,
    levels: dict[str, float],
    queries: int = 400,
    spread: float = 0.01,
    trials: int = 3,
    without: tuple[str, ...] = (),
) -> Path:
    """Values of every loss with every scorer, and of trees, at these levels or 0.5."""
    rng = np.random.default_rng(5)
    of_query = rng.normal(0.0, 0.1, queries)
    methods = [
        (loss, SCORERS[scorer]) for scorer in ("linear", "tower", "context") for loss in LOSSES
    ]
    methods = [key for key in [*methods, ("LambdaMART", "trees")] if key[0] not in without]
    frames = []
    for method, scorer in methods:
        base = levels.get(method, 0.5) + of_query + rng.normal(0.0, spread, queries)
        for trial in range(trials):
            values = base + rng.normal(0.0, spread / 10, queries)
            frames.append(
                pd.DataFrame({"fold": 1, "trial": trial, "query_id": np.arange(queries)}).assign(
                    method=method, scorer=scorer, **dict.fromkeys(METRICS.values(), values)
                )
            )
    about = {"edition": "mine", "collection": name, "title": name.upper(), "origin": "real"}
    about |= {"margin": 0.01}
    path = folder / f"per_query_{name}.parquet"
    write_results(path, pd.concat(frames), about | {"methods": methods})
    return path


def verdict(path: Path, claim: str) -> str:
    found = by_collection.outcome(read(path), claim)
    return conclude(found, judge(found.findings, 0.01, ())).verdict


def test_every_reading_is_of_a_published_claim_and_of_methods_under_the_protocol() -> None:
    assert set(by_collection.READINGS) <= set(published_claims()["claim"])


@pytest.mark.slow
def test_a_claim_holds_where_the_methods_stand_as_it_says(tmp_path: Path) -> None:
    path = published(tmp_path, "ohsumed", {"LambdaRank": 0.55, "LambdaMART": 0.6})
    assert verdict(path, "C23") == SUPPORTED
    assert verdict(path, "C02") == SUPPORTED
    assert verdict(path, "D22") == SUPPORTED  # the same level
    assert verdict(path, "D13") == CONTRADICTED  # LambdaRank is above NeuralNDCG


@pytest.mark.slow
def test_the_other_way_round_it_is_contradicted(tmp_path: Path) -> None:
    path = published(tmp_path, "ohsumed", {"RankNet": 0.55})
    assert verdict(path, "C23") == CONTRADICTED


def test_few_queries_cannot_tell(tmp_path: Path) -> None:
    path = published(tmp_path, "ohsumed", {}, queries=12, spread=0.2)
    assert verdict(path, "D22") == INCONCLUSIVE


def test_a_single_training_cannot_tell(tmp_path: Path) -> None:
    path = published(tmp_path, "ohsumed", {"LambdaRank": 0.55}, trials=1)
    assert verdict(path, "C23") == INCONCLUSIVE


@pytest.mark.slow
def test_the_best_variant_of_a_method_represents_it(tmp_path: Path) -> None:
    for variant in ("NeuralNDCG", "NeuralNDCGᵀ"):
        assert verdict(published(tmp_path, "ohsumed", {variant: 0.6}), "C20") == SUPPORTED
    path = published(tmp_path, "ohsumed", {"NeuralNDCG": 0.4})
    assert verdict(path, "C20") == INCONCLUSIVE  # the other variant is level with its rivals
    path = published(tmp_path, "ohsumed", {"NeuralNDCG": 0.4, "NeuralNDCGᵀ": 0.45})
    assert verdict(path, "C20") == CONTRADICTED
    path = published(tmp_path, "ohsumed", {}, without=("NeuralNDCGᵀ",))
    assert (
        "NeuralNDCG or NeuralNDCGᵀ against RankNet"
        in by_collection.outcome(read(path), "C20").missing
    )


@pytest.mark.slow
def test_the_committed_table_is_that_of_the_committed_files(tmp_path: Path) -> None:
    page = (ROOT / "docs/your_data.md").read_text("utf-8")
    order = re.search(r"per_query_\{(.*)\}\.parquet", page)
    assert order
    tables = ROOT / "paper_tables/real"
    files = [tables / f"one_protocol/per_query_{name}.parquet" for name in order[1].split(",")]
    out = tmp_path / "claims_by_collection.csv"
    try:
        written = by_collection.write(files, tables / "claims.csv", 0.01, out)
    except DataError as error:
        pytest.skip(f"THE COMMITTED CLAIMS ARE OF OTHER CODE, make the edition real anew: {error}")
    for path in written:
        text = (tables / path.name).read_text("utf-8")
        assert path.read_text("utf-8") == text, "run the command on the page docs/your_data.md"


@pytest.mark.slow
def test_what_the_comparison_lacks_is_said(tmp_path: Path) -> None:
    path = published(tmp_path, "ohsumed", {"ApproxNDCG": 0.6}, without=("SoftRank",))
    found = by_collection.outcome(read(path), "C08")
    assert found.missing == ["AdaRank.NDCG", "Ranking SVM", "ApproxNDCG against SoftRank"]
    assert verdict(path, "C08") == INCONCLUSIVE


@pytest.mark.slow
def test_the_papers_own_experiments_come_before_one_protocol(tmp_path: Path) -> None:
    files = [
        published(tmp_path, name, {"LambdaRank": 0.55, "LambdaMART": 0.6})
        for name in ("ohsumed", "mq2008")
    ]
    claims = tmp_path / "claims.csv"
    merged = merge([], "mine", claims).drop(columns="timed").astype({"dataset": object})
    own = merged[merged["claim"].isin(["C23", "C09"])].copy()
    own[["comparison", "verdict", "dataset"]] = ["a − b, NDCG@1", CONTRADICTED, "OHSUMED"]
    # Another part of the claim does not count here, nor does the verdict on the whole of it.
    elsewhere = own.assign(verdict=SUPPORTED, dataset="elsewhere")
    write_csv(claims, pd.concat([merged, own, elsewhere])[list(COLUMNS)])
    by_collection.write(files, claims, 0.01, tmp_path / "claims_by_collection.csv")
    data = pd.read_csv(tmp_path / "claims_by_collection.csv").set_index(["claim", "dataset"])
    assert data.loc[("C23", "OHSUMED"), ["verdict", "source"]].tolist() == [
        CONTRADICTED,
        by_collection.OWN,
    ]
    assert data.loc[("C23", "MQ2008"), ["verdict", "source"]].tolist() == [
        SUPPORTED,
        by_collection.ONE_PROTOCOL,
    ]
    # The comparison cannot be asked about this one.
    assert data.loc[("C09", "OHSUMED"), "verdict"] == CONTRADICTED
    assert data.loc[("C09", "MQ2008"), "verdict"] == UNMEASURED
    page = (tmp_path / "claims_by_collection.md").read_text("utf-8")
    assert r"contradicted\*" in page
    assert re.search(r"\| supported, \+0\.\d{3} ± 0\.\d{3} in NDCG@\d+ +\|", page)
    assert "**MQ2008**, 17 claims: " in page


def test_the_worst_of_the_comparisons_on_a_collection_decides() -> None:
    rows = pd.DataFrame(
        [
            ("overall", CONTRADICTED, "OHSUMED", "other real data", 0.01),
            ("first", SUPPORTED, "OHSUMED", "other real data", 0.02),
            ("second", TREND, "OHSUMED", "other real data", 0.3),
            ("third", TREND, "OHSUMED", "other real data", 0.2),
            ("fourth", CONTRADICTED, "MQ2008", "other real data", 0.001),
            ("fifth", CONTRADICTED, "MQ2008", "other real data", 0.0001),
            ("sixth", CONTRADICTED, "OHSUMED", "stand-in", 0.001),
        ],
        columns=["comparison", "verdict", "dataset", "group", "p_holm"],
    ).assign(p_range_holm=np.nan)
    found = {title: by_collection.of_own(rows, title) for title in ("OHSUMED", "MQ2008", "MSRD")}
    assert [found["OHSUMED"][key] for key in ("verdict", "comparison")] == [TREND, "second"]
    assert [found["MQ2008"][key] for key in ("verdict", "comparison")] == [CONTRADICTED, "fifth"]
    assert found["MSRD"] == {}


@pytest.mark.parametrize("claim", by_collection.READINGS)
def test_every_claim_is_answered(tmp_path: Path, claim: str) -> None:
    path = published(tmp_path, "ohsumed", {}, queries=30)
    found = by_collection.outcome(read(path), claim)
    assert found.findings
    assert not set(found.missing) - {"AdaRank.NDCG", "Ranking SVM"}
