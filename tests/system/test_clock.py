"""Files of the future are dated back in their order; all others are left alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

from directrank.system.clock import date_back


def made(path: Path, seconds: float) -> Path:
    """A file that is dated so many seconds from now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    os.utime(path, (time.time() + seconds,) * 2)
    return path


def test_files_of_tomorrow_keep_their_order_and_end_now(tmp_path: Path) -> None:
    files = [made(tmp_path / "a" / f"deep/{n}", 86400 + 100 * n) for n in (2, 0, 1)]
    old = made(tmp_path / "a" / "old", -50.0)
    before = old.stat().st_mtime
    assert date_back([tmp_path / "a", tmp_path / "not there"]) == 3
    last, first, middle = (path.stat().st_mtime for path in files)
    assert abs(last - time.time()) < 5
    assert (round(last - middle), round(middle - first)) == (100, 100)
    assert old.stat().st_mtime == before
    assert date_back([tmp_path / "a"]) == 0


def test_a_clock_that_is_a_little_ahead_is_no_matter(tmp_path: Path) -> None:
    path = made(tmp_path / "a", 20.0)
    before = path.stat().st_mtime
    assert date_back([tmp_path]) == 0
    assert path.stat().st_mtime == before


def test_links_are_not_followed_to_what_a_user_brought(tmp_path: Path) -> None:
    outside = made(tmp_path / "outside", 86400.0)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    assert date_back([folder]) == 0
    assert outside.stat().st_mtime > time.time() + 80000
