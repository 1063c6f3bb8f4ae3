"""Kernels for a GPU, tested without one: their numbers in Triton's interpreter, and their machine
code by compiling it.

Triton decides between its interpreter and its compiler when it is imported, so `make
test-gpu-kernels` runs the two parts one after the other. Nothing is collected without Triton.
"""

import os
from importlib.util import find_spec

INTERPRETED = ["test_captured.py", "test_draws.py", "test_values.py"]
COMPILED = ["test_machine_code.py"]

if find_spec("triton") is None:
    collect_ignore = INTERPRETED + COMPILED
else:
    collect_ignore = COMPILED if os.environ.get("TRITON_INTERPRET") == "1" else INTERPRETED
