"""The package without the study: built, and installed with its own dependencies alone."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from losses_cases import LOSSES
from workflow_runs import ROOT

pytestmark = pytest.mark.slow

#: What `pip install .` brings.
NEEDED = {"numba", "numpy", "scipy", "threadpoolctl", "torch"}

#: What says how it is built.
BUILD = ("pyproject.toml", "MANIFEST.in")

#: Without a way to the source tree.
OUTSIDE = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

#: Packages of the study; none may be needed by losses and metrics.
STUDY = ("jsonschema", "lightgbm", "matplotlib", "pandas", "snakemake", "yaml")


def run(command: list[str | Path], **options) -> str:
    """The output of a command that must succeed."""
    process = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", *BUILD):
        shutil.copy(ROOT / name, copy)
    ignored = shutil.ignore_patterns("*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "src", copy / "src", ignore=ignored)
    out = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, copy])
    return out


@pytest.fixture(scope="module")
def clean_python(built, tmp_path_factory) -> Path:
    """The interpreter of an environment with the wheel, what it needs, and what that needs."""
    folder = tmp_path_factory.mktemp("clean")
    visible = folder / "visible"
    visible.mkdir()
    for place in installed_places(NEEDED):
        (visible / place.name).symlink_to(place)
    return environment(folder, built, visible)


@pytest.fixture(scope="module")
def study_python(built, tmp_path_factory) -> Path:
    """The interpreter of an environment with the wheel, and all that is installed here."""
    folder = tmp_path_factory.mktemp("study")
    return environment(folder, built, sysconfig.get_path("purelib"))


def environment(folder: Path, dist: Path, others: str | Path) -> Path:
    """The interpreter of a new environment with the wheel; other packages lie in ``others``."""
    venv.create(folder / "env", with_pip=False)
    python = folder / "env/bin/python"
    (wheel,) = dist.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run([*pip, "install", "--quiet", "--no-index", "--no-deps", wheel])
    (site_packages,) = (folder / "env/lib").glob("python*/site-packages")
    (site_packages / "visible.pth").write_text(f"{others}\n", encoding="utf-8")
    return python


def installed_places(names: set[str]) -> set[Path]:
    """The files and folders of site-packages that belong to distributions and all they need."""
    seen, places, waiting = set(), set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        distribution = importlib.metadata.distribution(name)
        root = Path(distribution.locate_file(""))
        tops = {file.parts[0] for file in distribution.files if ".." not in file.parts}
        places |= {root / top for top in tops - {"__pycache__"}}
        for requirement in distribution.requires or ():
            specifier, _, marker = requirement.partition(";")
            needed = re.match(r"[A-Za-z0-9_.-]+", specifier)[0]
            if "extra ==" not in marker and is_installed(needed):
                waiting.append(needed)
    return places


def is_installed(name: str) -> bool:
    """Whether a distribution is there; one for another platform is not."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def in_clean(python: Path, code: str, folder: Path) -> str:
    """What the code prints in the clean environment, away from the source tree."""
    return run([python, "-c", code], cwd=folder, env=OUTSIDE)


def test_the_wheel_carries_every_file_that_the_package_reads(built):
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "directrank").rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc")
    }
    assert len(expected) > 100
    assert expected <= names, expected - names
    metadata = next(name for name in names if name.endswith("METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        requires = re.findall(r"^Requires-Dist: (.*)$", archive.read(metadata).decode(), re.M)
    unconditional = {re.match(r"[\w-]+", line)[0] for line in requires if "extra" not in line}
    assert unconditional == NEEDED
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in expected} <= inside
    assert {"LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"} <= inside
    assert not [name for name in inside if name.startswith("tests")], "some tests, not all"


@pytest.mark.long
@pytest.mark.parametrize("installed", ["clean_python", "study_python"])
def test_what_is_installed_works_away_from_the_repository(installed, tmp_path, request):
    # What `make test-dist` runs with every supported Python.
    python = request.getfixturevalue(installed)
    said = run([python, ROOT / "tests/packaging/smoke.py"], cwd=tmp_path, env=OUTSIDE)
    assert ("study's commands" in said) == (installed == "study_python")


def test_every_part_of_the_library_is_imported_without_the_study(clean_python, tmp_path):
    # That each also works is tried below, and takes as long as compiling all kernels.
    code = """
import importlib, pkgutil
for part in ("lists", "kernels", "relaxations", "metrics", "losses", "models"):
    package = importlib.import_module(f"directrank.{part}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.startswith("directrank.kernels.gpu."):  # where Triton is
            importlib.import_module(module.name)
importlib.import_module("directrank.nn")
print("imported")
"""
    assert "imported" in in_clean(clean_python, code, tmp_path)


@pytest.mark.long
def test_every_loss_and_metric_works_without_the_study(clean_python, tmp_path):
    code = f"""
import importlib.util
import directrank, torch
from directrank import losses, metrics

assert "clean" in directrank.__file__, directrank.__file__
here = [name for name in {STUDY!r} if importlib.util.find_spec(name)]
assert not here, here
options = {LOSSES!r}
options["composed"] = {{"metric": "ndcg", "relaxation": {{"name": "sigmoid"}}}}
torch.manual_seed(0)
labels = torch.randint(0, 4, (3, 7)).float()
labels[:, 0] = 3
mask = torch.arange(7) < torch.tensor([[7], [5], [6]])
for name in losses.REGISTRY:
    scores = torch.randn(3, 7, requires_grad=True)
    value = losses.get(name)(scores, labels, mask, **options[name])
    assert value.shape == (3,) and value.isfinite().all(), name
    value.sum().backward()
    assert scores.grad.isfinite().all() and scores.grad.abs().sum() > 0, name
    assert (scores.grad[~mask] == 0).all(), name
for name in metrics.REGISTRY:
    cut = dict() if name in metrics.CORRELATIONS else dict(k=5)
    value = metrics.get(name)(scores, labels, mask, **cut)
    assert ((value.abs() <= 1) | (name == "dcg")).all(), name
print("all of them:", len(losses.REGISTRY), len(metrics.REGISTRY))
"""
    assert "all of them:" in in_clean(clean_python, code, tmp_path)


@pytest.mark.long
def test_scorers_train_without_the_study(clean_python, tmp_path):
    code = """
import numpy as np, torch
from directrank import models
generators = [torch.Generator().manual_seed(seed) for seed in range(2)]
specs = ({"name": "linear"}, {"name": "tower", "hidden": [8, 4]})
for spec in (*specs, {"name": "context", "width": 8, "dropout": 0}):
    scorer = models.build(spec, 5, generators)
    scores = scorer(torch.rand(2, 30, 5), None, np.full((2, 3), 10))
    scores.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in scorer.parameters()), spec
print("trained")
"""
    assert "trained" in in_clean(clean_python, code, tmp_path)


def test_what_needs_an_extra_says_how_to_get_it(clean_python, tmp_path):
    process = subprocess.run(
        [clean_python.parent / "directrank", "data", "list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 2
    assert "pip install '.[study]'" in process.stderr
    assert "Traceback" not in process.stderr


def test_the_readme_example_runs_in_the_clean_environment(clean_python, tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example, *_ = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert "tensor(0." in in_clean(clean_python, example, tmp_path)


@pytest.mark.parametrize("scorer", ["network", "context"])
def test_a_ranker_that_was_saved_scores_without_an_extra(scorer, clean_python, tmp_path):
    import numpy as np

    from directrank.sklearn import DirectRanker

    X = np.random.default_rng(0).normal(size=(30, 4))
    ranker = DirectRanker(scorer=scorer, max_epochs=1, random_state=0, device="cpu")
    ranker.fit(X, X[:, 0] > 0, group=[10, 20]).save(tmp_path / "ranker.npz")
    code = """
import numpy as np
from directrank.models.scorer import Scorer
X = np.random.default_rng(0).normal(size=(30, 4))
print(Scorer.load("ranker.npz")(X, np.array([10, 20])).tolist())
for extra in ("sklearn", "torchmetrics"):
    try:
        __import__(f"directrank.{extra}")
    except ImportError as error:
        print(error)
"""
    found, said, too = in_clean(clean_python, code, tmp_path).splitlines()
    np.testing.assert_allclose(json.loads(found), ranker.predict(X, group=[10, 20]), rtol=1e-5)
    assert "pip install '.[sklearn]'" in said
    assert "pip install '.[torchmetrics]'" in too


def test_a_ranker_is_trained_with_its_extra_alone(built, tmp_path):
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.match(r"[\w-]+", name)[0] for name in extra["optional-dependencies"]["sklearn"]}
    visible = tmp_path / "visible"
    visible.mkdir()
    for place in installed_places(NEEDED | names):
        (visible / place.name).symlink_to(place)
    python = environment(tmp_path, built, visible)
    code = """
import importlib.util
from directrank.sklearn import DirectRanker
assert not importlib.util.find_spec("pandas")
ranker = DirectRanker(scorer="linear", max_epochs=2).fit([[0.], [1.], [2.]], [0, 1, 2], group=[3])
print(len(ranker.predict([[0.], [1.]])), "scores")
"""
    assert in_clean(python, code, tmp_path) == "2 scores\n"


def test_importing_does_not_wait_for_the_compiler(clean_python, tmp_path):
    code = (
        "import sys; from directrank import losses, metrics; losses.approx_ndcg; metrics.ndcg;"
        "print(sorted({'torch', 'numba', 'scipy'} & sys.modules.keys()))"
    )
    assert in_clean(clean_python, code, tmp_path) == "['torch']\n"
