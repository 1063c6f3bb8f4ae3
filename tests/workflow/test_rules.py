"""The rule files: little Python, clean for Snakemake's linter, and drawn as they are."""

import importlib.util
import re

import pytest

from workflow_runs import ROOT, fork, output_of

pytestmark = pytest.mark.slow

RULES = [
    ROOT / "Snakefile",
    *sorted((ROOT / "workflow").rglob("*.smk")),
    ROOT / "workflow/Snakefile",
]
#: What opens a block of Snakemake's own language.
DIRECTIVE = re.compile(
    r"(rule|use rule|wildcard_constraints|localrules|include|configfile)\b.*:|configfile: "
)


def python_lines(text):
    """Lines of Python outside rules and other directives, without comments and docstrings."""
    count = inside = 0
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if not line.strip() or line.strip().startswith(("#", '"""')):
            continue
        if inside and indent >= inside:
            continue
        inside = 0
        if DIRECTIVE.match(line.strip()):
            inside = indent + 1
            continue
        count += 1
    return count


def test_rule_files_hold_little_python():
    total = sum(python_lines(path.read_text(encoding="utf-8")) for path in RULES)
    assert 10 < total < 100


def test_snakemake_finds_nothing_to_better():
    process = fork("--lint")
    assert process.returncode == 0, output_of(process)


@pytest.fixture
def graph():
    """The module docs/rule_graph.py."""
    spec = importlib.util.spec_from_file_location("rule_graph", ROOT / "docs/rule_graph.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_figure_of_the_rules_is_what_the_workflow_says(graph):
    pairs = graph.dependencies()
    assert ("prepare", "fit") in pairs
    assert ("fit", "all") in pairs
    assert ("fit", "products") in pairs
    drawn = graph.reduced(pairs)
    assert ("fit", "all") not in drawn
    text = graph.FIGURE.read_text(encoding="utf-8")
    assert text == graph.svg(drawn), "the rules have changed: run `python docs/rule_graph.py`"


def test_an_arrow_that_follows_from_others_is_left_out(graph):
    pairs = {("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")}
    assert graph.reduced(pairs) == pairs - {("a", "c")}
