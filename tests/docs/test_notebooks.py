"""The notebooks run from top to bottom, and end with the verdict that they show."""

from __future__ import annotations

import json
import re

import matplotlib
import pytest

from workflow_runs import ROOT

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


def cells(path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_somewhere_and_outputs_are_small(path):
    text = "".join(
        "".join(each["source"]) for each in cells(path) if each["cell_type"] == "markdown"
    )
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []
    assert path.stat().st_size < 100_000


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_last_words_are_those_it_shows(path, monkeypatch, capsys):
    monkeypatch.chdir(path.parent)
    matplotlib.use("Agg")
    namespace: dict = {}
    for cell in cells(path):
        if cell["cell_type"] == "code":
            capsys.readouterr()
            exec(compile("".join(cell["source"]), cell["id"], "exec"), namespace)
            shown = [each["text"] for each in cell["outputs"] if each.get("name") == "stdout"]
            said = capsys.readouterr().out
    assert shown, "outputs: jupyter execute --inplace, with the extra `recipes`"
    # Digits may differ from platform to platform.
    words = str.maketrans("", "", "0123456789")
    assert said.translate(words) == "".join(shown[0]).translate(words)
