import shutil

import pytest

from directrank.study import provenance
from directrank.system import sources


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
    for cached in (sources._path, sources.text_of, sources.imports_of, provenance._code_digest):
        cached.cache_clear()


def edited_digest(path, modules):
    path.write_text(path.read_text() + "\n# edited\n")
    forget()
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
    for registry in provenance.REGISTRIES:
        assert registry not in provenance.closure(["directrank.learners.neural.fit"])


def test_the_environment_names_versions_machine_and_revision():
    facts = provenance.environment()
    assert {"directrank", "python", "packages", "processor", "cores", "revision"} <= set(facts)
    assert facts["packages"]["torch"]


def test_a_run_depends_on_its_own_loss_and_metrics_alone(copied_package):
    from directrank.study import run as runs

    spec = {
        "learner": "neural",
        "model": {"name": "tower"},
        "loss": {"name": "listnet"},
        "selection": {"name": "ndcg", "k": 5},
        "evaluation": [{"name": "ndcg", "k": 5}],
    }
    modules = runs.modules_of(spec)
    digest = provenance.code_digest(modules)
    for other in ("losses/_listmle.py", "metrics/_err.py", "models/linear.py"):
        assert edited_digest(copied_package / other, modules) == digest, other
    for own in (
        "losses/_listnet.py",
        "metrics/_ndcg.py",
        "models/tower.py",
        "kernels/layers.py",
        "metrics/packed.py",
    ):
        changed = edited_digest(copied_package / own, modules)
        assert changed != digest, own
        digest = changed


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
