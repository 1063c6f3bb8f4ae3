"""The notebooks run from top to bottom, show what they showed, and have a page that is current."""

from __future__ import annotations

import json
import re
from typing import Any

import matplotlib
import pytest

from workflow_runs import ROOT, load_script

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))

pages = load_script("docs/notebook_pages.py")


def read(path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_somewhere_and_outputs_are_small(path):
    text = "".join(
        pages.source(each) for each in read(path)["cells"] if each["cell_type"] == "markdown"
    )
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []
    assert path.stat().st_size < 100_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_page_is_the_notebook_with_the_outputs_of_its_code(path):
    notebook = read(path)
    assert notebook["metadata"][pages.KEY] == pages.digest(notebook["cells"]), "make notebooks"
    text, pictures = pages.page(path.stem, notebook["cells"])
    assert path.with_suffix(".md").read_text(encoding="utf-8") == text, "make notebooks"
    assert pictures
    for name, content in pictures.items():
        assert (path.parent / name).read_bytes() == content
    committed = {f"{path.stem}/{file.name}" for file in (path.parent / path.stem).iterdir()}
    assert committed == set(pictures)


def test_cells_show_what_they_print_their_last_value_and_their_pictures(monkeypatch):
    matplotlib.use("Agg")
    sources = [
        "import matplotlib.pyplot as plt\nprint('said')",
        "figure, axes = plt.subplots()\n_ = axes.set(xlabel='epoch', ylabel='NDCG')",
        "1 + 1",
    ]
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"cell-{number}", "source": [text]}
        for number, text in enumerate(sources)
    ]
    pages.run(cells)
    assert [cell["execution_count"] for cell in cells] == [1, 2, 3]
    assert cells[0]["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["said\n"]}]
    text, pictures = pages.page("name", [*cells, {"cell_type": "markdown", "source": ["# End"]}])
    assert "```text\nsaid\n```" in text
    assert "![NDCG against epoch](name/1.png)" in text
    assert "```python\n1 + 1\n```\n\n```text\n2\n```\n\n# End\n" in text
    assert pictures["name/1.png"].startswith(b"\x89PNG")
    changed = [cells[0] | {"source": ["print('other')"]}, *cells[1:]]
    assert pages.digest(changed) != pages.digest(cells)


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_it_shows(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    matplotlib.use("Agg")
    shown, again = read(path)["cells"], read(path)["cells"]
    pages.run(again)
    # Digits and exponents may differ from platform to platform.
    words = str.maketrans("", "", "0123456789+-−e")
    for one, other in zip(shown, again, strict=True):
        texts = [
            ["".join(each.get("text", ())).translate(words) for each in cell.get("outputs", ())]
            for cell in (one, other)
        ]
        assert texts[0] == texts[1], one["id"]
