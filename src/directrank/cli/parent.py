"""The jobs of a workflow that has died end too, and keep what they have done."""

from __future__ import annotations

import os
import select
import signal
import threading

#: Names the process without which this one has no purpose; the workflow sets it.
VARIABLE = "DIRECTRANK_PARENT"


def end_with_parent() -> None:
    """Have this process asked to end (SIGTERM) when the one that :data:`VARIABLE` names is gone.

    A fit then saves and stops, and whoever starts the workflow again does not compete with it.
    Without the variable, and on systems without process descriptors (before Linux 5.3, macOS),
    nothing happens: the job goes on to its end.
    """
    parent = os.environ.get(VARIABLE, "")
    if not (parent.isdecimal() and hasattr(os, "pidfd_open")):
        return
    try:
        descriptor = os.pidfd_open(int(parent))
    except OSError:
        return
    threading.Thread(target=_end_after, args=(descriptor,), daemon=True).start()


def _end_after(descriptor: int) -> None:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    waiting.poll()
    os.kill(os.getpid(), signal.SIGTERM)
