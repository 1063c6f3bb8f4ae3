import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from directrank import losses
from directrank.study import provenance
from directrank.system import arithmetic, sources
from studies import study_of
from workflow_runs import ROOT

pytestmark = pytest.mark.slow

SPEC = {
    "learner": "neural",
    "model": {"name": "tower"},
    "loss": {"name": "listnet"},
    "selection": {"name": "ndcg", "k": 5},
    "evaluation": [{"name": "ndcg", "k": 5}],
}


#: Prints the result of an expression about the package that is found first on the path.
PRINTED = """
import json, sys
from pathlib import Path
from directrank.study import provenance
from directrank.system import sources
assert str(sources.PACKAGE.parent) == sys.argv[1]
root, spec = Path(sys.argv[2]), json.loads(sys.argv[3])
sys.path.append(str(root / "tests/helpers"))
print(json.dumps(eval(sys.argv[4])))
"""

#: The digests of code of everything that the demo edition makes.
OF_THE_DEMO = """(lambda workflow, study, of: {
    **{name: workflow.run_code(name) for name in study.runs},
    **{key: workflow.data_code(of(key=key)) for key in study.data},
    **{name: workflow.part_code(part) for name, part in workflow.parts.items()},
})(
    __import__("directrank.edition.workflow").edition.workflow.Workflow(
        __import__("studies").study_of("demo"), root,
        dict.fromkeys(__import__("studies").study_of("demo").runs, 1.0)),
    __import__("studies").study_of("demo"), __import__("types").SimpleNamespace)
"""


@pytest.fixture
def copied_package(tmp_path):
    """A copy of the package's source, to be edited."""
    package = tmp_path / "directrank"
    shutil.copytree(sources.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def printed(package, expression, spec=None):
    """What an expression is with a copy of the package, in a new process."""
    arguments = [str(package.parent), str(ROOT), json.dumps(spec), expression]
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PRINTED, *arguments],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    return json.loads(done.stdout)


def edit(path):
    path.write_text(path.read_text() + "\n# edited\n")


def test_registries_do_not_tie_their_entries_together():
    reached = provenance.dependencies(["directrank.learners.neural.fit", "directrank.study.run"])
    for name in ("learners", "losses", "metrics", "models", "kernels", "relaxations"):
        assert f"directrank.{name}" not in reached


@pytest.mark.parametrize("name", losses.REGISTRY)
def test_a_loss_depends_on_no_registry_and_on_no_other_loss(name):
    own = provenance.code_of(*losses.REGISTRY[name].split(":"))
    modules = provenance.dependencies([own])
    assert not modules & {
        f"directrank.{p}" for p in ("losses", "metrics", "relaxations", "kernels")
    }
    machinery = {f"directrank.losses.{m}" for m in ("_compose", "_needs")}
    assert {m for m in modules if m.startswith("directrank.losses.")} <= {own, *machinery}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("approx_ndcg", ["kernels.sigmoid", "metrics._ndcg", "relaxations.sigmoid"]),
        ("approx_ap", ["kernels.sigmoid", "metrics._average_precision"]),
        ("twin_ndcg", ["kernels.twin", "kernels.pairs", "relaxations.twin"]),
        ("lambdarank", ["kernels.lambdarank", "kernels.numbers"]),
        ("neural_ndcg", ["kernels.neural_sort", "relaxations.neural_sort", "relaxations.gumbel"]),
        ("listmle", ["kernels.listmle"]),
        ("softrank", ["kernels.softrank", "relaxations.rank_binomial", "lists.conventions"]),
        ("pl_rank", ["kernels.pl_rank", "kernels.draws", "relaxations.gumbel"]),
        ("smooth_ndcg", ["kernels.smooth_i", "relaxations.soft_sorting"]),
        ("lapsum_ndcg", ["kernels.soft_ndcg", "kernels.soft_ranks", "kernels.sigmoid"]),
        ("blackbox_ndcg", ["kernels.blackbox", "relaxations.placed"]),
    ],
)
def test_a_loss_depends_on_its_kernels_and_on_its_metric_and_relaxation(name, expected):
    found = provenance.dependencies([provenance.code_of(*losses.REGISTRY[name].split(":"))])
    assert {f"directrank.{module}" for module in expected} <= found
    assert "directrank.kernels.encoder" not in found


def test_a_composition_in_a_configuration_depends_on_what_it_names():
    loss = {"name": "composed", "metric": {"name": "err"}, "relaxation": "neural_sort"}
    found = provenance.dependencies(provenance.modules_of({**SPEC, "loss": loss}))
    assert {"directrank.metrics._err", "directrank.kernels.neural_sort"} <= found
    assert "directrank.relaxations.sigmoid" not in found


def test_a_loss_that_wraps_another_depends_on_that_one_and_its_parts():
    composed = {"name": "composed", "metric": {"name": "err"}, "relaxation": "neural_sort"}
    for of, expected in (
        ("lambdarank", "kernels.lambdarank"),
        ({"name": "neural_ndcg", "tau": 2.0}, "kernels.neural_sort"),
        (composed, "metrics._err"),
    ):
        loss = {"name": "newton", "of": of, "lam": 1.0}
        found = provenance.dependencies(provenance.modules_of({**SPEC, "loss": loss}))
        assert {"directrank.losses._newton", f"directrank.{expected}"} <= found


def test_the_environment_names_versions_machine_and_revision(monkeypatch):
    monkeypatch.delenv("MKL_CBWR", raising=False)
    facts = provenance.environment()
    assert {"directrank", "python", "packages", "processor", "cores", "revision"} <= set(facts)
    assert facts["packages"]["torch"]
    assert facts["arithmetic"] == "native"
    for name, value in arithmetic.PORTABLE.items():
        monkeypatch.setenv(name, value)
    assert provenance.environment()["arithmetic"] == "portable"


def test_a_run_depends_on_its_own_loss_and_metrics_alone(copied_package):
    digest = printed(copied_package, "provenance.run_digest(spec)", SPEC)
    assert digest == provenance.run_digest(SPEC)
    for other in ("losses/_listmle.py", "metrics/_err.py", "models/linear.py"):
        edit(copied_package / other)
    assert printed(copied_package, "provenance.run_digest(spec)", SPEC) == digest
    for own in ("losses/_listnet.py", "metrics/packed.py", "kernels/philox.py"):
        edit(copied_package / own)
        changed = printed(copied_package, "provenance.run_digest(spec)", SPEC)
        assert changed != digest, own
        digest = changed


def test_a_composition_depends_on_its_own_declaration_alone(copied_package):
    specs = {name: {**SPEC, "loss": {"name": name}} for name in ("approx_ndcg", "neural_ndcg")}
    both = "[provenance.run_digest(each) for each in spec.values()]"
    file = copied_package / "losses/_compositions.py"
    approx, neural = printed(copied_package, both, specs)
    assert approx != neural
    for text, replacement, changes in (
        ("alpha: float | Tensor = sigmoid.ALPHA", "alpha: float | Tensor = 9.0", (True, False)),
        ("tau: float = neural_sort.TAU", "tau: float = 2.0", (False, True)),
        ('@needs(per_list=("alpha",), flat=True)', "@needs()", (True, False)),
    ):
        file.write_text(file.read_text().replace(text, replacement, 1))
        found = printed(copied_package, both, specs)
        assert (found[0] != approx, found[1] != neural) == changes, text
        approx, neural = found
    file.write_text(file.read_text() + "\n\ndef another() -> None: ...\n")
    assert printed(copied_package, both, specs) == [approx, neural]
    for part, changes in (
        ("relaxations/sigmoid.py", (True, False)),
        ("relaxations/neural_sort.py", (False, True)),
        ("kernels/neural_sort.py", (False, True)),
        ("losses/_compose.py", (True, True)),
    ):
        edit(copied_package / part)
        found = printed(copied_package, both, specs)
        assert (found[0] != approx, found[1] != neural) == changes, part
        approx, neural = found


def test_what_is_monitored_is_part_of_a_run():
    monitored = {**SPEC, "training": {"monitor": {"quantities": [{"quantity": "tied_pairs"}]}}}
    added = provenance.dependencies(provenance.modules_of(monitored))
    added -= provenance.dependencies(provenance.modules_of(SPEC))
    assert "directrank.learners.neural.monitor_pairs" in added


def test_something_new_changes_no_digest_of_what_exists(copied_package):
    before = printed(copied_package, OF_THE_DEMO)
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
        imported = f"    from directrank.{package}.new import new as new\n"
        text = text.replace("if TYPE_CHECKING:\n", f"if TYPE_CHECKING:\n{imported}")
        registry.write_text(text + "\n# one more\n")
        (copied_package / package / "new.py").write_text("import directrank.lists.packed\n")
    assert printed(copied_package, OF_THE_DEMO) == before


def test_an_edit_changes_the_digests_of_what_uses_it_alone(copied_package):
    before = printed(copied_package, OF_THE_DEMO)
    edit(copied_package / "learners/trees/lightgbm.py")
    after = printed(copied_package, OF_THE_DEMO)
    runs = study_of("demo").runs.items()
    changed = {name for name, digest in after.items() if digest != before[name]}
    assert changed == {name for name, spec in runs if spec["learner"] == "lightgbm"} != set()


def test_imports_for_type_checkers_do_not_count_and_those_inside_functions_do(copied_package):
    (copied_package / "made_up.py").write_text(
        "import directrank.system.io\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from directrank.lists import packed\n"
        "class Holder:\n    def work(self):\n        from directrank.stats import means\n"
    )
    found = printed(copied_package, "sorted(sources.imports_of('directrank.made_up'))")
    assert found == ["directrank.stats.means", "directrank.system.io"]


def test_a_processor_is_named_with_its_family_and_model():
    first = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n"
    second = first.replace("0", "1").replace("25", "26")
    assert provenance.processor_in(f"{first}\n{second}") == "AMD EPYC, family 25, model 1"
    assert provenance.processor_in("model name\t: A: B\n") == "A: B"
    assert provenance.processor_in("processor\t: 0\nBogoMIPS\t: 50.00\n") == ""
