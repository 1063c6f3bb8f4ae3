"""What a process loads before it works: a study starts hundreds of them."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def loaded(code: str, *packages: str) -> list[str]:
    """Which of the packages a new interpreter holds after ``code``."""
    told = f"{code}\nimport sys\nprint(*(p for p in {packages!r} if p in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", told],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent / "helpers",
    )
    return done.stdout.splitlines()[-1].split()


def test_data_plans_and_figures_of_results_do_without_pytorch():
    code = (
        "import directrank.edition.plan, directrank.data.prepare\n"
        "import directrank.papers.shared.product\n"
        "import directrank.papers.bruch2019, directrank.papers.one_protocol\n"
        "import directrank.report.build\n"
        "from directrank import metrics, losses, models\n"
        "assert metrics.label({'name': 'ndcg', 'k': 5}) == 'ndcg@5'\n"
        "from directrank.study import provenance\n"
        "provenance.code_digest([provenance.code_of(*losses.REGISTRY['approx_ndcg'].split(':'))])"
    )
    assert loaded(code, "torch", "pandas") == ["pandas"]


def test_a_plan_with_trees_does_without_their_libraries_unless_it_has_an_option_of_theirs():
    code = (
        "from studies import study_of\n"
        "from directrank.study.specification import validate\n"
        "runs = study_of('demo').runs.values()\n"
        "(spec, *_) = [spec for spec in runs if spec['learner'] == 'lightgbm']\n"
        "assert 'xgboost' in {spec['learner'] for spec in runs}\n"
        "validate({**spec, 'model': {**spec['model'], **OTHERS}})"
    )
    libraries = ("lightgbm", "xgboost", "catboost")
    assert loaded(code.replace("OTHERS", "{}"), *libraries) == []
    assert loaded(code.replace("OTHERS", "{'lambda_l2': 1}"), *libraries) == ["lightgbm"]


def test_training_does_without_sympy():
    code = (
        "from training_data import fit, splits\n"
        "for one in fit(splits(), max_epochs=1, trials=2): one.predict(splits().test)"
    )
    assert loaded(code, "torch", "sympy") == ["torch"]
