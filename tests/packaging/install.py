"""Install what ``make dist`` built, as a user would, and try it: ``make test-dist``.

``python tests/packaging/install.py dist`` gives each supported Python that is here an environment
of its own, with every dependency from the index that pip uses: the wheel alone first, then with its
extra ``study``. With the first Python the sdist is installed as well. Some gigabytes go into a
temporary folder, an environment at a time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SMOKE = Path(__file__).with_name("smoke.py").resolve()
#: The installed package alone may be found, and no sources.
OUTSIDE = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def version_of(python: str) -> str | None:
    """The version of an interpreter, such as ``3.11``; None where there is none."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def supported() -> tuple[str, ...]:
    """The versions that the package's metadata allow."""
    project = (SMOKE.parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    low, high = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', project).groups()
    return tuple(f"3.{minor}" for minor in range(int(low), int(high)))


class Environment:
    """A new environment below ``folder``."""

    def __init__(self, python: str, folder: Path, torch: list[str]) -> None:
        subprocess.run([python, "-m", "venv", folder / "env"], check=True)
        self.folder, self.python = folder, folder / "env/bin/python"
        self.pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*self.pip, *torch], check=True)

    def try_out(self, what: str, *options: str) -> None:
        """Install ``what``, and run the smoke test in an empty folder."""
        subprocess.run([*self.pip, *options, what], check=True)
        empty = self.folder / "empty"
        shutil.rmtree(empty, ignore_errors=True)
        empty.mkdir()
        subprocess.run([self.python, SMOKE], cwd=empty, env=OUTSIDE, check=True)


def main() -> int:
    """0 where every Python that is here passed, 2 where none is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dist", type=Path, help="folder of the wheel and the sdist")
    parser.add_argument(
        "--pythons", nargs="+", default=[f"python{version}" for version in supported()]
    )
    parser.add_argument("--torch", default="torch", help="the PyTorch to install, torch==2.13.0")
    parser.add_argument("--torch-index", help="the index of builds of PyTorch (default: pip's)")
    options = parser.parse_args()
    torch = [*(["--index-url", options.torch_index] if options.torch_index else []), options.torch]
    (wheel,) = options.dist.resolve().glob("*.whl")
    (sdist,) = options.dist.resolve().glob("*.tar.gz")
    tried = 0
    for python in options.pythons:
        if version_of(python) not in supported():
            print(f"{python}: NOT TRIED, it is not here")
            continue
        with tempfile.TemporaryDirectory() as folder:
            environment = Environment(python, Path(folder), torch)
            environment.try_out(str(wheel))
            environment.try_out(f"{wheel}[study]")
            if not tried:
                environment.try_out(str(sdist), "--force-reinstall", "--no-deps")
        tried += 1
    return 0 if tried else 2


if __name__ == "__main__":
    sys.exit(main())
