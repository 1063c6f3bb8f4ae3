"""Features in a file as large as a data set's, and the memory of a process beyond such files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from directrank.system.io import atomic_path
from directrank.system.seeds import numpy_stream

SCRATCH = Path(__file__).resolve().parent / "scratch"


def features_file(name: str, documents: int, features: int) -> Path:
    """A file of random float32 ``[documents, features]``, written once, block by block."""
    path = SCRATCH / name
    if path.is_file() and np.load(path, mmap_mode="r").shape == (documents, features):
        return path
    SCRATCH.mkdir(parents=True, exist_ok=True)
    block = numpy_stream("benchmark", "block").standard_normal(
        (1 << 15, features), dtype=np.float32
    )
    with atomic_path(path) as temporary:
        array = np.lib.format.open_memmap(temporary, "w+", np.float32, (documents, features))
        for first in range(0, documents, len(block)):
            array[first : first + len(block)] = block[: documents - first]
        array.flush()
    return path


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """The most anonymous memory while a block runs, in bytes, as the list's only number."""
    peak, done = [anonymous_memory()], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], anonymous_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def anonymous_memory() -> float:
    """Bytes of this process that are not of a mapped file."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if " kB" in line}
    return 1024.0 * (int(found["RssAnon"]) + int(found["RssShmem"]))
