"""The editions of the repository, each planned once for the tests of a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from directrank.cost.predict import planned_seconds
from directrank.edition.plan import Study, load
from directrank.edition.workflow import Workflow
from directrank.system.schema import read_yaml

ROOT = Path(__file__).resolve().parents[2]


@cache
def study_of(edition: str) -> Study:
    """What ``config/{edition}.yaml`` makes; tests leave it as it is."""
    return load(read_yaml(ROOT / f"config/{edition}.yaml"), ROOT)


def workflow_of(study: Study, root: Path = ROOT, files_are_shared: bool = True) -> Workflow:
    """What the rules ask of a study."""
    return Workflow(study, root, planned_seconds(study), files_are_shared)
