"""The documentation: it builds without a warning, and names only what there is."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from directrank import learners, losses, metrics, models
from directrank.data import cubic, normalise
from directrank.system.registry import look_up
from directrank.system.schema import package_schema
from staged import effects
from workflow_runs import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
#: Pages that the workflow writes.
WRITTEN = sorted(
    path
    for pattern in (
        "README.md",
        "claims*.md",
        "which_loss.md",
        "losses.md",
        "one_protocol/README.md",
        "data/datasets.md",
    )
    for folder in ("figures", "paper_tables")
    for path in (ROOT / folder).glob(f"*/{pattern}")
)
AMBIGUITIES = ROOT / "docs/ambiguities.md"


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def set_by_cells() -> list[str]:
    """What the column *set by* of the page of ambiguities says, row by row."""
    rows = [line.split(" | ") for line in read(AMBIGUITIES).splitlines() if line.startswith("| ")]
    return [row[2] for row in rows if len(row) == 4 and row[0] != "| open" and "`" in row[2]]


@cache
def options(section: str) -> set[str]:
    """The keys that a section of a run can have, whatever it names."""
    functions = {
        "model": [look_up(models.REGISTRY, name, "model") for name in models.REGISTRY],
        "loss": [losses.get(name) for name in losses.REGISTRY],
        "evaluation": [metrics.get(name) for name in metrics.REGISTRY],
        "normalisation": list(normalise.NORMALISATIONS.values()),
        "data.settings": [cubic.CubicSettings],
    }
    functions["selection"] = functions["evaluation"]
    if section in functions:
        known = {key for each in functions[section] for key in inspect.signature(each).parameters}
        if section == "model":
            others = [each.settings for each in learners.REGISTRY.values() if not each.neural]
            known |= {key for settings in others for key in settings["properties"]}
        return known | {"name"}
    schema = package_schema("run")["properties"]
    for part in section.split("."):
        schema = schema[part]["properties"]
    return set(schema)


def is_known(name: str) -> bool:
    """Whether a name of the column *set by* is a key, an experiment or a thing in the code."""
    if name.startswith("directrank."):
        module, _, attribute = name.rpartition(".")
        return hasattr(import_module(module), attribute)
    if "/" in name:
        paper, _, experiment = name.partition("/")
        path = ROOT / f"config/papers/{paper}.yaml"
        content = yaml.safe_load(read(path)) if path.is_file() else {}
        made = [content.get("experiments", {}), content.get("for_each_collection", {})]
        return any(experiment in names for names in made)
    section, _, key = name.rpartition(".")
    return key in (options(section) if section else package_schema("run")["properties"])


@pytest.mark.slow
def test_every_key_that_an_ambiguity_names_exists():
    cells = set_by_cells()
    assert len(cells) > 60
    names = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert not [name for name in sorted(names) if not is_known(name)]


def test_a_key_that_does_not_exist_would_be_found():
    assert is_known("training.patience")
    assert is_known("loss.alpha")
    assert not is_known("training.patients")
    assert not is_known("loss.alpah")
    assert not is_known("bruch2019/alpha_swep")
    assert not is_known("directrank.losses.aprox_ndcg")


def test_the_effects_of_choices_are_those_of_the_committed_results():
    table = effects()
    assert len(table.splitlines()) > 8
    assert table in read(AMBIGUITIES), "results have changed: run `python docs/effects.py`"


def test_the_authors_are_spelt_alike_everywhere():
    """As in the paper and in CITATION.cff."""
    folders = ("config", "figures", "paper_tables", "src")
    kinds = ("*.md", "*.py", "*.svg", "*.yaml", "*.tex")
    files = [path for folder in folders for kind in kinds for path in (ROOT / folder).rglob(kind)]
    files += (ROOT / "docs").glob("*.md")  # not those in folders, which may be of an older build
    found = {name for path in files for name in re.findall(r"\bBia\w+ski\b", read(path))}
    assert found == {"Białobrzęski"}


@pytest.mark.parametrize("page", [*PAGES, *WRITTEN], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(page)):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_waits_for_a_build_to_fill_it(page):
    comments = set(re.findall(r"<!--.*?-->", read(page), flags=re.DOTALL))
    assert all(
        re.fullmatch(r"<!-- (written by [\w/.]+|end|claims: .*) -->", one) for one in comments
    )


def test_what_the_workflow_writes_is_there():
    names = {str(path.relative_to(ROOT)) for path in WRITTEN}
    assert {"paper_tables/real/which_loss.md", "paper_tables/real/losses.md"} <= names
    assert {
        f"paper_tables/{edition}/one_protocol/README.md" for edition in ("demo", "real")
    } <= names


@pytest.mark.parametrize("registry", [losses.REGISTRY, metrics.REGISTRY])
def test_every_loss_and_metric_has_its_formula(registry):
    page = read(ROOT / "docs/formulas.md")
    for name in registry:
        assert re.search(rf"^(`\w+`, )*`{name}`(, `\w+`)*$", page, flags=re.MULTILINE), name


def test_the_example_of_the_first_page_runs(capsys):
    page = read(ROOT / "docs/start.md")
    example, flat = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(example, "start.md", "exec"), {})
    gradient, ndcg = re.findall(r"tensor\(\[(.*?)\]", capsys.readouterr().out, flags=re.DOTALL)
    values = [float(number) for number in gradient.strip("[]").split(",")]
    assert values[2] < 0 < values[0]
    assert 0 < float(ndcg) < 1
    names: dict = {}
    exec(compile(flat, "start.md", "exec"), names)
    assert names["scores"].grad.shape == (5,)
    assert names["scores"].grad[2] < 0 < names["scores"].grad[0]
    expected = 0.25 * float(names["ndcg"][0]) + 0.75 * float(names["ndcg"][1])
    assert f"{expected:.4f}" in capsys.readouterr().out


@pytest.mark.long
def test_the_documentation_builds_without_a_warning(tmp_path):
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("Sphinx is not installed: pip install '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    command += ["-c", ROOT / "docs", "-d", tmp_path / "doctrees", ROOT, tmp_path / "html"]
    process = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    reference = read(tmp_path / "html/docs/reference/losses.html")
    assert all(f'id="directrank.losses.{name}"' in reference for name in losses.REGISTRY)
    sections = read(tmp_path / "html/paper_tables/real/losses.html")
    assert all(f">{name}<" in sections for name in losses.REGISTRY)
    assert "directrank prepare" in read(tmp_path / "html/docs/reference/cli.html")
    assert "<math" in read(tmp_path / "html/docs/formulas.html")
    for page in (tmp_path / "html").rglob("*.html"):
        sources = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', read(page)
        )
        assert not sources, (page, sources)


# OHSUMED's queries form no groups.
@pytest.mark.parametrize(
    "values", ["demo/one_protocol/per_query_msrd_sample", "real/one_protocol/per_query_ohsumed"]
)
def test_the_test_of_a_published_difference_runs(monkeypatch, capsys, values):
    monkeypatch.chdir(ROOT)
    page = read(ROOT / "docs/your_data.md")
    section = page.split("\n## Results per query\n")[1].split("\n## ")[0]
    (example,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(example.strip().splitlines()) <= 13
    assert "demo/one_protocol/per_query_msrd_sample" in example
    example = example.replace("demo/one_protocol/per_query_msrd_sample", values)
    exec(compile(example, "your_data.md", "exec"), {})
    difference, equivalent = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"[+-]0\.\d{4} ± 0\.\d{4}, p = [01]\.\d{3}", difference)
    assert equivalent.startswith("equivalent within 0.01: p = ")
