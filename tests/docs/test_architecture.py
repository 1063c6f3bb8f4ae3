"""The walk through the code names files that exist, and every package."""

import re
from itertools import groupby

from workflow_runs import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def test_every_file_that_the_walk_names_exists():
    named = re.findall(r"`((?:src|config|data|workflow)/[^`\s]+\.(?:py|yaml|smk))`", PAGE)
    assert len(named) > 20
    missing = [name for name in named if not (ROOT / name).is_file()]
    assert missing == []


def test_every_package_has_its_line():
    packages = {file.parent.name for file in (ROOT / "src/directrank").glob("*/__init__.py")}
    first_column = "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))
    assert packages == set(re.findall(r"`(\w+)/`", first_column))


def test_a_walk_enters_each_package_once():
    for title in ("## From `alpha`", "## From an archive"):
        walk = PAGE.split(title)[1].split("\n## ")[0]
        rooms = re.findall(r"src/directrank/(\w+)/", walk)
        entered = [room for room, _ in groupby(rooms)]
        assert len(entered) == len(set(entered)), entered
