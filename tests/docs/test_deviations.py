"""The page of what editions change of the papers' protocols."""

from __future__ import annotations

from workflow_runs import load_script

load_script("docs/artefact.py")  # which the next one imports
deviations = load_script("docs/deviations.py")


def test_the_page_is_of_the_editions_as_they_are():
    page = deviations.PAGE.read_text(encoding="utf-8")
    written = f"{deviations.BEGIN}\n{deviations.content()}\n{deviations.END}"
    assert written in page, "run `python docs/deviations.py`"


def test_changes_are_those_of_the_methods_that_both_editions_have():
    def spec(**settings):
        return {"trials": 5, "fold": 1, "data": {"name": "web30k", "settings": {}}, **settings}

    paper = {"RankNet": [spec(), spec(fold=2)], "ListNet": [spec(loss={"k": 1})]}
    edition = {"RankNet": [spec(trials=3, train_queries=10, data={"name": "msrd", "settings": {}})]}
    assert deviations.changes(paper, edition) == {
        ("methods", "2", "1"),
        ("folds", "2", "1"),
        ("trials", "5", "3"),
        ("train_queries", "–", "10"),
        ("data.name", "web30k", "msrd"),
    }
    assert deviations.changes(paper, paper) == set()
