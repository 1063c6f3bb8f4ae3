"""Other libraries that tests compare with, where they run."""

from __future__ import annotations

import sys

import pytest

#: For tests that have ir_measures read a measure's name.
READS_MEASURES = pytest.mark.skipif(
    sys.version_info >= (3, 14),
    reason="ir_measures 0.4.3 reads names of measures with ast.Num, which Python 3.14 lacks",
)
