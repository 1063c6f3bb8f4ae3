"""A user's run among made-up published methods."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from directrank.cli import main
from directrank.papers.one_protocol.methods import METRICS
from directrank.papers.one_protocol.own_values import MAPPINGS, PublishedQueries
from directrank.papers.one_protocol.placing import Placing, published_file
from directrank.papers.one_protocol.placing_page import FORMULAS, compare
from directrank.papers.one_protocol.published import read
from directrank.stats.tests import holm
from directrank.stats.two_way import difference_over_queries_and_starts
from directrank.study.published import write_results
from directrank.system.errors import ConfigError, DataError

QUERIES = 200
#: Method → its level above a base that all share, with a loss of noise.
LEVELS = {"high": 0.1, "same": 0.0, "low": -0.1}


def truth(folder: Path) -> tuple[Path, dict[int, list[int]]]:
    """Judgements of ten documents of each query, two of them empty; query → labels."""
    rng = np.random.default_rng(1)
    labels = {q: rng.choice(3, 10, p=[0.6, 0.3, 0.1]).tolist() for q in range(QUERIES)}
    labels[0] = labels[5] = [0] * 10
    for q in labels:
        labels[q][3] = 0 if q in (0, 5) else 1
    path = folder / "qrels"
    lines = [f"{q} 0 d{i} {label}\n" for q, own in labels.items() for i, label in enumerate(own)]
    path.write_text("".join(lines))
    return path, labels


def published(folder: Path, groups_of: int | None = None, trials: int = 2) -> Path:
    """Values of the methods :data:`LEVELS` in two folds; queries 0 and 5 are empty."""
    rng = np.random.default_rng(2)
    base = base_values()
    frames = []
    for method, level in LEVELS.items():
        for trial in range(trials):
            values = np.clip(base + level + rng.normal(0, 0.01, QUERIES), 0, 1)
            values[[0, 5]] = np.nan
            frame = pd.DataFrame({"fold": 1 + np.arange(QUERIES) % 2, "trial": trial})
            frame["query_id"] = np.arange(QUERIES)
            if groups_of:
                frame["group"] = np.arange(QUERIES) // groups_of
            frames.append(
                frame.assign(
                    method=method, scorer="linear", **dict.fromkeys(METRICS.values(), values)
                )
            )
    about = {
        "edition": "mine",
        "collection": "made",
        "title": "Made",
        "origin": "real",
        "methods": [[method, "linear"] for method in LEVELS],
        "margin": 0.01,
    }
    path = folder / "per_query_made.parquet"
    write_results(path, pd.concat(frames), about)
    return path


def base_values() -> np.ndarray:
    return 0.5 + np.random.default_rng(3).normal(0, 0.1, QUERIES).clip(-0.35, 0.35)


def csv(path: Path, values: np.ndarray, queries=range(QUERIES), column: str = "ndcg@10") -> Path:
    lines = [f"{q},{value:.8f}\n" for q, value in zip(queries, values, strict=True)]
    path.write_text(f"query,{column}\n" + "".join(lines))
    return path


def verdicts(page: str) -> dict[str, str]:
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    return {row[1].strip(): row[5].strip() for row in rows[2:]}


def test_a_run_is_worse_equivalent_and_better_as_it_was_made(tmp_path):
    noise = np.random.default_rng(4).normal(0, 0.01, QUERIES)
    run = csv(tmp_path / "mine.csv", base_values() + noise)
    page = compare(published(tmp_path), [[run]], None, ["ndcg@10"], 0.01, tmp_path / "out")
    first, *between, last = verdicts(page)
    assert (first, last) == ("high, linear", "low, linear")
    assert sorted(between) == ["**mine**", "same, linear"]
    assert "significantly better than 1, significantly worse than 1 and equivalent" in page
    assert " of 4 by the mean over 198 test queries of Made." in page
    assert "left out: 2 of 200" in page
    data = pd.read_csv(tmp_path / "out/compare_made.csv").set_index("method")
    assert data["verdict"].to_dict() == {"high": "worse", "same": "equivalent", "low": "better"}
    assert (tmp_path / "out/compare_made.md").read_text() == page
    kept = np.delete(base_values() + noise, [0, 5])
    assert data.loc["low", "mean"] == pytest.approx(kept.mean(), abs=1e-6)


def test_what_few_noisy_queries_leave_open_is_said(tmp_path):
    noise = np.random.default_rng(4).normal(0, 0.3, QUERIES)
    run = csv(tmp_path / "mine.csv", (base_values() + noise).clip(0, 1))
    page = compare(published(tmp_path), [[run]], None, ["ndcg@10"], 0.01)
    assert verdicts(page)["same, linear"] == "inconclusive"
    assert "and not distinguishable from 1." in page


def test_the_margin_decides_what_is_equivalent(tmp_path):
    noise = np.random.default_rng(4).normal(0, 0.05, QUERIES)
    run, values = csv(tmp_path / "mine.csv", base_values() + noise), published(tmp_path)
    wide = compare(values, [[run]], None, ["ndcg@10"], 0.05)
    narrow = compare(values, [[run]], None, ["ndcg@10"], 0.0005)
    assert verdicts(wide)["same, linear"] == "equivalent within 0.05"
    assert verdicts(narrow)["same, linear"] == "inconclusive"
    with pytest.raises(ConfigError, match="margin"):
        compare(values, [[run]], None, ["ndcg@10"], 0.0)


def test_tests_are_those_of_the_published_comparison_corrected_over_the_table(tmp_path):
    study = read(published(tmp_path, groups_of=4))
    collection = PublishedQueries(study)
    noise = np.random.default_rng(4).normal(0, 0.05, (2, QUERIES))
    own = []
    for number, one in enumerate(noise):
        file = csv(tmp_path / f"run{number}.csv", base_values() + one, column="ap")
        own.append(collection.own(f"run{number}", [file], None, ["ap"]))
    placing = Placing(study, own, "ap", 0.01)
    pairs = placing.pairs.set_index(["a", "b"])
    assert list(pairs.index) == [(a, b) for a in (3, 4) for b in (0, 1, 2)]
    for (a, b), pair in pairs.iterrows():
        expected = difference_over_queries_and_starts(
            own[a - 3].trials[0]["ap"].to_numpy()[None],
            study.trainings("ap")[b],
            study.groups,
            study.folds,
        )
        assert pair["difference"] == pytest.approx(expected.mean)
        assert pair["p_value"] == pytest.approx(expected.p_differs())
    np.testing.assert_array_equal(pairs["p_differs"], holm(pairs["p_value"]))
    page = compare(
        tmp_path / "per_query_made.parquet", [[tmp_path / "run0.csv"]], None, ["ap"], 0.01
    )
    assert "interval for other groups of related queries. p is" in page
    assert "One trial says nothing of other trainings of a run" in page


def test_a_published_method_as_a_run_differs_by_nothing_from_itself(tmp_path):
    path = published(tmp_path)
    values = read(path).frame.query("method == 'same'")
    files = []
    for trial, part in values.groupby("trial"):
        files.append(tmp_path / f"same{trial}.csv")
        part.rename(columns={"query_id": "query"}).to_csv(files[-1], index=False)
    page = compare(path, [files], None, ["ndcg@10"], 0.01, tmp_path)
    row = pd.read_csv(tmp_path / "compare_made.csv").set_index("method").loc["same"]
    assert row[["difference", "p_value"]].tolist() == [0, 1]
    # Other trainings of it would differ a little.
    assert 0 < row["p_equivalent_holm"] < 0.001
    assert row["verdict"] == "equivalent"
    assert "is the mean over 2 trials; here over 2 trials" in page


def ranked(folder: Path, labels: dict[int, list[int]], name: str = "mine.run", **changes) -> Path:
    """A run that ranks every query's documents by their labels; ``changes`` of its lines."""
    lines = [
        f"{changes.get('prefix', '')}{q} Q0 d{i} 0 {own[i] + 1 - i / 100} t\n"
        for q, own in labels.items()
        for i in range(10)
        if q not in changes.get("without", ()) and i < changes.get("documents", 10)
    ]
    path = folder / name
    path.write_text("".join([*lines, *changes.get("more", ())]))
    return path


def means(page: str) -> list[str]:
    return [line.split(",")[0].split()[2] for line in page.splitlines() if ", place " in line]


def test_a_run_with_judgements_is_measured_by_the_studys_metrics(tmp_path):
    qrels, labels = truth(tmp_path)
    values = published(tmp_path)
    run = ranked(tmp_path, labels, prefix="qid:")
    page = compare(values, [[run]], qrels, list(MAPPINGS), 0.01)
    assert means(page) == ["1.000"] * 4
    assert "not" not in page.split("here over a single trial")[1]  # nothing was left out


def test_what_a_run_lacks_counts_nothing_and_is_said(tmp_path):
    qrels, labels = truth(tmp_path)
    values = published(tmp_path)
    strange = ["999 Q0 d0 0 1 t\n", "7 Q0 nobody 0 -1 t\n", "7 Q0 none 0 -1 t\n"]
    run = ranked(tmp_path, labels, without=[1, 2, 0], more=strange)
    page = compare(values, [[run]], qrels, ["ndcg@10"], 0.01)
    assert means(page) == [f"{196 / 198:.3f}"]
    for text in (
        "mine: left out: 1 query that no test set has.",
        "mine: missing, counted as 0: 2 queries of 198, such as 1.",
        "mine: without a judgement, counted as not relevant: 2 documents.",
        "mine: equal scores in 1 query: ordered by document, the last",
    ):
        assert text in page
    cut = ranked(tmp_path, labels, "cut.run", documents=4)
    page = compare(values, [[cut]], qrels, ["ap"], 0.01)
    assert "cut: judged but not ranked, gaining nothing: 1 188 documents." in page.replace(
        "\u00a0", " "
    )
    expected = np.mean(
        [
            sum(label > 0 for label in own[:4]) / sum(label > 0 for label in own)
            for own in labels.values()
            if any(own)
        ]
    )
    assert float(means(page)[0]) == pytest.approx(expected, abs=6e-4)


def test_several_files_are_the_trials_of_one_method(tmp_path):
    one, two = (csv(tmp_path / f"{n}.csv", np.full(QUERIES, n / 10)) for n in (2, 6))
    page = compare(published(tmp_path), [[one, two], [two]], None, ["ndcg@10"], 0.01)
    assert means(page) == ["0.400", "0.600"]
    assert "here over 1 to 2 trials" in page


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("query,ap\n1,0.5\n", ":1: has no column 'ndcg@10'"),
        ("id,ndcg@10\n1,0.5\n", ":1: has no column 'query'"),
        (
            "query,ndcg@10\n1,0.5\n2,1.5\n",
            ":3: the ndcg@10 is '1.5', which is not a number",
        ),
        ("query,ndcg@10\n1,good\n", ":2: the ndcg@10 is 'good', which is not a number"),
        ("query,ndcg@10\n1,0.5\n\n1,0.5\n", ":4: has query 1 twice"),
        ("query,ndcg@10\nq1,0.5\n", ": has none of the test queries of Made"),
        ("query,ndcg@10\n", ": has none of the test queries of Made"),
        ("", ":1: has no column 'query'"),
    ],
)
def test_values_that_cannot_be_meant_are_one_error(tmp_path, lines, message):
    path = tmp_path / "mine.csv"
    path.write_text(lines)
    with pytest.raises(DataError) as error:
        compare(published(tmp_path), [[path]], None, ["ndcg@10"], 0.01)
    assert f"{path}{message}" in str(error.value)
    assert error.value.remedy


def test_judgements_that_are_not_the_collections_are_refused(tmp_path):
    qrels, labels = truth(tmp_path)
    values, run = published(tmp_path), ranked(tmp_path, labels)
    text = qrels.read_text()
    for wrong, message in (
        (text + "0 0 d11 2\n", "query 0, one of 1, has a relevant document only in this file"),
        (text.replace("\n9 0 ", "\n9999 0 "), "query 9, one of 1, has no relevant document"),
    ):
        qrels.write_text(wrong)
        with pytest.raises(DataError, match=message) as error:
            compare(values, [[run]], qrels, ["ndcg@10"], 0.01)
        assert "directrank qrels" in error.value.remedy
    qrels.write_text(text)
    run.write_text(run.read_text().replace(" d", " doc"))
    with pytest.raises(
        DataError, match=r"for query 2 it has documents such as doc\d, the judgements d0"
    ):
        compare(values, [[run]], qrels, ["ndcg@10"], 0.01)


def test_a_run_without_judgements_and_two_methods_of_one_name_are_refused(tmp_path):
    _, labels = truth(tmp_path)
    run = ranked(tmp_path, labels)
    with pytest.raises(ConfigError, match="only with judgements"):
        compare(published(tmp_path), [[run]], None, ["ndcg@10"], 0.01)
    with pytest.raises(ConfigError, match="two methods are called 'mine'"):
        compare(published(tmp_path), [[run], [run]], None, ["ndcg@10"], 0.01)


def test_a_collection_without_published_values_is_an_error_that_says_which_have_some(tmp_path):
    folder = tmp_path / "demo/one_protocol"
    folder.mkdir(parents=True)
    (folder / "per_query_made.parquet").touch()
    assert published_file("made", "demo", tmp_path).is_file()
    with pytest.raises(ConfigError, match="--collection made --edition demo"):
        published_file("made", "real", tmp_path)


def test_one_group_of_queries_tells_nothing_of_others(tmp_path):
    run = csv(tmp_path / "mine.csv", base_values())
    with pytest.raises(DataError, match="a single test query or group"):
        compare(published(tmp_path, groups_of=QUERIES), [[run]], None, ["ndcg@10"], 0.01)


def test_every_published_metric_can_be_asked_for():
    assert set(MAPPINGS) == set(FORMULAS) == set(METRICS.values())


def test_the_command_prints_the_page_and_an_error_without_a_traceback(tmp_path, capsys):
    values = published(tmp_path)
    run = csv(tmp_path / "mine.csv", base_values())
    command = ["compare", "--run", str(run), "--results", str(values), "--metric", "ndcg@10"]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("# mine on Made\n")
    assert main([*command, "--margin", "2"]) == 2
    printed = capsys.readouterr().err
    assert printed.count("error:") == 1
    assert "remedy" in printed
