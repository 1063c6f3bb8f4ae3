"""End the jobs of a workflow that has died, without losing their work."""

from __future__ import annotations

import os
import select
import signal
import threading

#: The variable that names the process that this one serves; the workflow sets it.
VARIABLE = "DIRECTRANK_PARENT"


def end_with_parent() -> None:
    """Send SIGTERM to this process once the process that :data:`VARIABLE` names has ended.

    A fit then saves its state and stops, so it does not compete with a workflow that is started
    again. If the variable is not set, or the system has no process descriptors (macOS, and Linux
    before 5.3), nothing happens, and the job runs to completion.
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
