"""The predicted seconds by which work is divided."""

import subprocess
import sys

import pytest

from directrank.cost import facts as sizes
from directrank.cost.predict import planned_seconds
from studies import ROOT, study_of


def test_they_are_the_same_whatever_is_prepared(tmp_path, monkeypatch):
    before = planned_seconds(study_of("demo"))
    monkeypatch.setattr(sizes, "_prepared", lambda folder, fold: pytest.fail("was measured"))
    monkeypatch.chdir(tmp_path)
    for key in study_of("demo").data:
        folder = tmp_path / "data/prepared" / key
        folder.mkdir(parents=True)
        (folder / "prepared.json").write_text("{}", encoding="utf-8")
    assert planned_seconds(study_of("demo")) == before


@pytest.mark.slow
def test_pytorch_is_not_imported():
    code = (
        "import sys\n"
        "from studies import study_of, workflow_of\n"
        "workflow_of(study_of('demo'))\n"
        "print('torch' in sys.modules)"
    )
    folder = ROOT / "tests/helpers"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    assert done.stdout == "False\n"
