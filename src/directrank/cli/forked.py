"""Commands that a command runs in forks of its process, once it has imported what they need."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module

from directrank.system.errors import DirectrankError
from directrank.system.processes import Command, Ended, Forks

#: How many lines of the log of a failed command are repeated.
LAST_LINES = 15

#: Variables that keep libraries from starting threads when they are loaded. What uses more threads
#: sets their number later.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@contextlib.contextmanager
def imported(*modules: str) -> Iterator[None]:
    """Import modules, and more in the block, for the forks of this process.

    Nothing of it is ever freed, so the garbage collector leaves it alone, here and in the forks,
    which would otherwise copy it.
    """
    os.environ |= dict.fromkeys(ONE_THREAD, "1")
    gc.disable()
    try:
        for module in modules:
            import_module(module)
        yield
    finally:
        gc.freeze()
        gc.enable()


def run_all(
    commands: Iterable[Command], number: int, at_once: int = 1, requeue: bool = False
) -> None:
    """Run commands in forks of this process, and go on if some fail.

    Args:
        commands: made one by one, each when it is begun.
        number: how many they are.
        at_once: how many run at a time.
        requeue: whether to put this process's Slurm job back into the queue if a signal asked for
            the end.

    Raises:
        DirectrankError: commands failed, or were not run because something asked for the end.
    """
    from directrank.cli import main
    from directrank.system import nodes

    forks, failed = Forks(main, at_once), list[str]()
    done = 0
    for done, ended in enumerate(forks.run(commands), start=1):
        if ended.status:
            failed.append(ended.command.name)
            _report(ended)
        else:
            said = f"{done} of {number}: {ended.command.name}, {ended.seconds:.1f} s"
            print(said, file=sys.stderr, flush=True)
    if forks.stopped is not None and (failed or done < number):
        if requeue:
            nodes.requeue()
        raise DirectrankError(f"stopped by {forks.stopped}; started again, it goes on from there")
    if failed:
        raise DirectrankError(
            f"{len(failed)} of {number} failed: {', '.join(failed)}",
            "see their logs; started again, only these are done again",
        )


def _report(ended: Ended) -> None:
    """Print how a command failed, and the end of its log."""
    log = ended.command.log
    lines = [f"{ended.command.name} {ended.how}; the end of {log}:"]
    with contextlib.suppress(OSError):
        text = log.read_text(encoding="utf-8", errors="replace")
        lines += [f"  {line}" for line in text.splitlines()[-LAST_LINES:]]
    print(*lines, sep="\n", file=sys.stderr, flush=True)
