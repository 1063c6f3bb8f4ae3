"""The page of queries shows what the models and the archive have."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from directrank import metrics
from directrank.cli import main
from directrank.data.prepare import prepare
from directrank.report.queries import write
from directrank.study import export
from directrank.study.results import load_run
from directrank.study.run import execute
from directrank.system.errors import ConfigError, DataError
from msrd_archive import JUDGEMENTS, MOVIES, write_world

SPEC = {
    "data": {"name": "msrd", "settings": {}},
    "normalisation": {"name": "none"},
    "filter": {},
    "fold": 1,
    "learner": "neural",
    "model": {"name": "linear"},
    "training": {"optimizer": {"name": "adam", "lr": 0.1}, "max_epochs": 3},
    "selection": {"name": "ndcg", "k": 10},
    "evaluation": [{"name": "ndcg", "k": 10}],
    "trials": 1,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """An archive, its prepared data, and three runs."""
    folder = tmp_path_factory.mktemp("world")
    write_world(folder)
    prepare("msrd", folder / "raw", folder / "data", catalogue=folder / "datasets.yaml")
    for name, change in (
        ("RankNet", {"loss": {"name": "ranknet"}}),
        ("RMSE", {"loss": {"name": "rmse"}}),
        ("elsewhere", {"loss": {"name": "rmse"}, "fold": 2}),
    ):
        execute({**SPEC, **change}, folder / "data", folder / name, device="cpu")
    return folder


@pytest.fixture(scope="module")
def page(world):
    folders = {name: world / name for name in ("RankNet", "RMSE")}
    write(folders, world / "data", world / "raw", world / "page.html")
    text = (world / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"src=[\"'](?!data:)|<link[^>]*href=[\"'](?!data:)", text)  # loads nothing
    assert "CC BY-SA 4.0" in text
    return json.loads(re.search(r"const DATA = (\{.*\});\n", text)[1])


def test_movies_are_in_the_order_of_each_models_scores(world, page):
    assert page["models"] == ["RankNet", "RMSE"]
    lists = export.test_set(load_run(world / "RankNet"), world / "data")
    labels = {(text, movie): grade for _, text, movie, grade in JUDGEMENTS}
    titles = {title: number for number, title, *_ in MOVIES}
    assert len(page["queries"]) == len(page["values"][0]) == lists.n_queries
    for number, name in enumerate(page["models"]):
        scores = export.scores_of(load_run(world / name), 0, lists)
        for place, query in enumerate(page["queries"]):
            own = slice(*lists.offsets[place : place + 2])
            order = query["orders"][number]
            assert (np.diff(scores[own][order]) <= 0).all()
            assert sorted(order) == list(range(len(query["movies"])))
            found = [labels[query["text"], titles[title]] for title, _ in query["movies"]]
            assert found == lists.labels[own].tolist()
            assert query["relevant"] == np.flatnonzero(found).tolist()
            value = float(metrics.ndcg(scores[own][None], lists.labels[own][None], k=10))
            assert query["values"][number] == pytest.approx(value, abs=1e-4)
            assert page["values"][number][place] == query["values"][number]


def test_it_begins_with_the_query_on_which_the_models_differ_most(page):
    gaps = [abs(a - b) for a, b in (query["values"] for query in page["queries"])]
    assert gaps[page["first"]] == max(gaps)


@pytest.mark.parametrize(
    ("names", "message"),
    [(["RankNet"], "nothing to be compared with"), (["RankNet", "elsewhere"], "different folds")],
)
def test_runs_that_cannot_be_compared_are_one_error(world, names, message, tmp_path):
    folders = {name: world / name for name in names}
    with pytest.raises(ConfigError, match=message):
        write(folders, world / "data", world / "raw", tmp_path / "page.html")


def test_without_the_archive_the_error_says_how_to_get_it(world, tmp_path):
    folders = {name: world / name for name in ("RankNet", "RMSE")}
    with pytest.raises(DataError, match="MSRD"):
        write(folders, world / "data", tmp_path, tmp_path / "page.html")


def test_the_command_writes_the_page(world, tmp_path, capsys):
    options = ["--data", str(world / "data"), "--raw", str(world / "raw")]
    out = tmp_path / "queries.html"
    runs = [f"{name}={world / name}" for name in ("RankNet", "RMSE")]
    assert main(["page", "queries", *runs, *options, "--out", str(out)]) == 0
    assert "RMSE" in out.read_text(encoding="utf-8")
    assert main(["page", "queries", "RankNet", *options, "--out", str(out)]) == 2
    assert "'RankNet' is not NAME=RESULTS" in capsys.readouterr().err
