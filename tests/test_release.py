"""What surrounds the code: metadata, pages for contributors, hooks and workflows agree with it."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import yaml

import directrank
from workflow_runs import ROOT, load_script

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", read("Makefile"), flags=re.MULTILINE))


def steps(workflow: dict) -> list[dict]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_all_metadata_name_one_version_title_and_licence():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    citation = yaml.safe_load(read("CITATION.cff"))
    zenodo = json.loads(read(".zenodo.json"))
    assert zenodo["title"] == citation["title"]
    for key in ("version", "license", "keywords"):
        assert project[key] == citation[key] == zenodo[key], key
    assert project["version"] == directrank.__version__
    assert zenodo["description"] == project["description"]


def test_the_deposit_cites_the_papers_of_the_citation_file():
    titles = [entry["title"] for entry in yaml.safe_load(read("CITATION.cff"))["references"]]
    cited = json.loads(read(".zenodo.json"))["references"]
    assert len(cited) == len(titles) == 5
    assert all(title in entry for title, entry in zip(titles, cited, strict=True))


@pytest.mark.parametrize("page", PAGES)
def test_pages_for_contributors_link_to_what_is_there(page):
    links = re.findall(r"\]\((?!http)([^)#]+)", read(page))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
    named = re.findall(r"`make ([a-z-]+)(?=[` ])", read(page))
    assert [name for name in named if name not in make_targets() and "real-" not in name] == []


def test_hooks_are_checks_of_make_lint_with_the_tools_of_the_lock_file():
    (repository,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    assert repository["repo"] == "local"  # the lock file pins the tools, and nothing else does
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", read("Makefile"), re.MULTILINE)[1]
    packages = {"lint-imports": "import-linter"}
    for hook in repository["hooks"]:
        tool, *options = hook["entry"].removeprefix(".venv/bin/").split()
        command = " ".join([tool, *(word for word in options if word != "--force-exclude")])
        assert f"$(BIN)/{command}" in lint, hook["id"]
        assert f"\n{packages.get(tool, tool)}==" in read("requirements-dev.lock"), tool


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_what_the_repository_has(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    commands = "\n".join(step.get("run", "") for step in steps(workflow))
    assert commands.strip()
    assert set(re.findall(r"\bmake ([a-z-]+)", commands)) <= make_targets()
    for file in re.findall(r"(?:bash|python) ([\w./-]+/[\w.-]+)", commands):
        assert (ROOT / file).is_file(), file
    for folder in re.findall(r"\btests/\w+(?= |$)", commands):
        assert (ROOT / folder).is_dir(), folder
    for job in workflow["jobs"].values():
        versions = job.get("strategy", {}).get("matrix", {}).get("python")
        assert versions in (None, list(load_script("tests/packaging/install.py").supported()))


def test_continuous_integration_is_the_projects_own_script():
    commands = [step.get("run") for step in steps(yaml.safe_load(read(".github/workflows/ci.yml")))]
    assert {"bash .ci/run", "make docs", "make test-slow"} <= set(commands)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_are_well_formed(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    assert set(form) == {"name", "description", "labels", "body"}
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    for field in form["body"]:
        assert field["type"] in ("input", "textarea", "dropdown", "checkboxes")
        assert field["attributes"]["label"]
        assert ("options" in field["attributes"]) == (field["type"] in ("dropdown", "checkboxes"))


def test_no_page_speaks_of_images_that_rules_do_not_name():
    rules = "".join(path.read_text() for path in (ROOT / "workflow").rglob("*.smk"))
    assert "container:" not in rules
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "Containerfile"]
    for page in pages:
        if page.name != "CHANGELOG.md":
            assert not re.search("apptainer|singularity", page.read_text("utf-8"), re.I), page
