import re
import shutil
from types import SimpleNamespace

import pytest

from directrank.edition.workflow import Workflow
from directrank.study import provenance
from directrank.system import registry, sources
from studies import study_of
from workflow_runs import ROOT

SPEC = {
    "learner": "neural",
    "model": {"name": "tower"},
    "loss": {"name": "listnet"},
    "selection": {"name": "ndcg", "k": 5},
    "evaluation": [{"name": "ndcg", "k": 5}],
}


@pytest.fixture
def copied_package(tmp_path, monkeypatch):
    """A copy of the package's source, to be edited."""
    package = tmp_path / "directrank"
    shutil.copytree(sources.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sources, "PACKAGE", package)
    forget()
    yield package
    forget()


def forget():
    for module in (sources, provenance, registry):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def edit(path):
    path.write_text(path.read_text() + "\n# edited\n")
    forget()


def edited_digest(path, modules):
    edit(path)
    return provenance.code_digest(modules)


def test_the_digest_follows_imports_in_turn(copied_package):
    modules = ["directrank.learners.neural.fit"]
    before = provenance.code_digest(modules)
    assert edited_digest(copied_package / "lists/packed.py", modules) != before


def test_the_digest_does_not_see_code_that_is_not_imported(copied_package):
    modules = ["directrank.learners.neural.fit"]
    before = provenance.code_digest(modules)
    assert edited_digest(copied_package / "learners/trees/lightgbm.py", modules) == before


def test_registries_do_not_tie_their_entries_together():
    reached = sources.dependencies(["directrank.learners.neural.fit", "directrank.study.run"])
    for name in ("learners", "losses", "metrics", "models", "kernels", "relaxations"):
        assert f"directrank.{name}" not in reached


def test_the_environment_names_versions_machine_and_revision():
    facts = provenance.environment()
    assert {"directrank", "python", "packages", "processor", "cores", "revision"} <= set(facts)
    assert facts["packages"]["torch"]


def test_a_run_depends_on_its_own_loss_and_metrics_alone(copied_package):
    digest = provenance.run_digest(SPEC)
    for other in ("losses/_listmle.py", "metrics/_err.py", "models/linear.py"):
        edit(copied_package / other)
        assert provenance.run_digest(SPEC) == digest, other
    for own in (
        "losses/_listnet.py",
        "metrics/_ndcg.py",
        "models/tower.py",
        "kernels/layers.py",
        "metrics/packed.py",
    ):
        edit(copied_package / own)
        changed = provenance.run_digest(SPEC)
        assert changed != digest, own
        digest = changed


def test_what_is_monitored_is_part_of_a_run(copied_package):
    monitored = {**SPEC, "training": {"monitor": {"quantities": [{"quantity": "tied_pairs"}]}}}
    before = provenance.run_digest(SPEC), provenance.run_digest(monitored)
    edit(copied_package / "learners/neural/monitor_pairs.py")
    after = provenance.run_digest(SPEC), provenance.run_digest(monitored)
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)


@pytest.fixture(scope="module")
def workflow():
    return Workflow(study_of("demo"), ROOT)


def digests(workflow):
    """The digests of code of everything that the demo edition makes, by what it is."""
    study = workflow.study
    runs = {name: workflow.run_code(SimpleNamespace(run=name)) for name in study.runs}
    data = {key: workflow.data_code(SimpleNamespace(key=key)) for key in study.data}
    products = {
        (paper, product): workflow.product_code(SimpleNamespace(paper=paper, product=product))
        for paper, product in study.products
    }
    return {**runs, **data, **products}


def test_something_new_changes_no_digest_of_what_exists(copied_package, workflow):
    before = digests(workflow)
    assert len(before) > 300
    for package in (
        "losses",
        "metrics",
        "models",
        "relaxations",
        "kernels",
        "learners",
        "learners/neural",
        "papers",
    ):
        registry = copied_package / package / "__init__.py"
        line = '    "new": "directrank.new:new",\n'
        text = re.sub(r"(?m)^(\w+\b.*= \{\n)", rf"\1{line}", registry.read_text())
        registry.write_text(text + "\n# one more\n")
        (copied_package / package / "new.py").write_text("import directrank.lists.packed\n")
    forget()
    after = digests(workflow)
    assert [name for name in before if after.get(name) != before[name]] == []
    assert len(after) == len(before)


def test_an_edit_changes_the_digests_of_what_uses_it_alone(copied_package, workflow):
    before = digests(workflow)
    edit(copied_package / "learners/trees/lightgbm.py")
    changed = {name for name, digest in digests(workflow).items() if digest != before[name]}
    runs = workflow.study.runs.items()
    assert changed == {name for name, spec in runs if spec["learner"] == "lightgbm"} != set()


def test_imports_are_told_apart_by_where_they_are(copied_package):
    (copied_package / "made_up.py").write_text(
        "import directrank.system.io\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from directrank.lists import packed\n"
        "try:\n    from directrank.system.errors import ConfigError\n"
        "except ImportError:\n    pass\n"
        "class Holder:\n    from directrank.system import seeds\n"
        "    def work(self):\n        from directrank.stats import means\n"
        "from directrank import nothing_there\n"
    )
    module = "directrank.made_up"
    top = (
        "directrank.system.io",
        "directrank.system.errors",
        "directrank.system",
        "directrank.system.seeds",
    )
    assert sources.imports_of(module) == top
    everywhere = set(sources.imports_of(module, everywhere=True))
    assert everywhere - set(top) == {
        "directrank.lists",
        "directrank.lists.packed",
        "directrank.stats",
        "directrank.stats.means",
    }


def test_a_processor_is_named_with_its_family_and_model():
    first = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n"
    second = first.replace("0", "1").replace("25", "26")
    assert provenance.processor_in(f"{first}\n{second}") == "AMD EPYC, family 25, model 1"
    assert provenance.processor_in("model name\t: A: B\n") == "A: B"
    assert provenance.processor_in("processor\t: 0\nBogoMIPS\t: 50.00\n") == ""
