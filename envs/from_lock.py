"""Write envs/study.yaml from requirements.lock: the same versions for ``--sdm conda``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = """\
# Written by envs/from_lock.py from requirements.lock and the Makefile; do not edit.
# The package itself is found through PYTHONPATH, which the workflow sets.
name: directrank
channels:
  - conda-forge
dependencies:
  - python =3.11
  - pip
  - pip:
"""


def pins() -> dict[str, str]:
    """Every pinned package with its version, torch included."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", lock, flags=re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found["torch"] = re.search(r"^TORCH\s*\?=\s*torch==(\S+)", makefile, flags=re.MULTILINE)[1]
    return found


def needed() -> list[str]:
    """What the package and the study need directly on Linux, for which the environment is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = project["dependencies"] + project["optional-dependencies"]["study"]
    names = [name for name in names if "sys_platform != 'linux'" not in name]
    return sorted({re.match(r"[A-Za-z0-9_.-]+", name)[0].lower() for name in names})


def text() -> str:
    """The environment file."""
    versions = pins()
    return HEADER + "".join(f"      - {name}=={versions[name]}\n" for name in needed())


if __name__ == "__main__":
    (ROOT / "envs/study.yaml").write_text(text(), encoding="utf-8")
