"""The command line. Each rule of the workflow calls one of these commands, so any job can be rerun
by hand from its log."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from importlib import import_module

from directrank import __version__
from directrank.system.arithmetic import PORTABLE
from directrank.system.errors import DirectrankError
from directrank.system.processes import end_with_parents
from directrank.system.usage import own_usage, write_usage

#: Modules of this package with an ``add_parsers(subparsers)`` each, in the order of --help.
COMMANDS = ("data", "fit", "train", "compare", "export", "products", "draw", "cost")

#: The dynamic loader's message when memory is short.
_NO_ROOM = "failed to map segment"

EPILOG = """\
examples:
  directrank prepare ohsumed --raw data/raw --out data/prepared/ohsumed
  directrank fit run.json --data data/prepared/ohsumed --out results/mine
  directrank evaluate results/mine
  directrank compare --run mine.run --qrels msrd.qrels --collection msrd

Run `directrank COMMAND --help` for the options of a command.
"""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    result = argparse.ArgumentParser(
        prog="directrank",
        description=(
            "Optimise ranking metrics directly: prepare data, train models, and make figures and "
            "tables."
        ),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    result.add_argument(
        "--usage", metavar="FILE", help="write the time, memory and CPU time of COMMAND to FILE"
    )
    subparsers = result.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"directrank.cli.{name}").add_parsers(subparsers)
    return result


def _command(arguments: Sequence[str]) -> str:
    """The shell command that reproduces the same bytes; resource usage is not measured again."""
    if arguments[:1] == ["--usage"]:
        arguments = arguments[2:]
    kept = [f"{name}={os.environ[name]}" for name in PORTABLE if name in os.environ]
    return shlex.join([*(["env", *kept] if kept else []), "directrank", *arguments])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    It is 0 on success and 2 on an error that the user can correct, which is printed without a
    traceback.
    """
    began = time.perf_counter()
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(arguments)
    if not sys.stderr.isatty():
        # Each log begins with the command that reproduces it.
        print(f"$ {_command(arguments)}", file=sys.stderr, flush=True)
    if not hasattr(options, "forks"):  # a thread would not survive a fork
        end_with_parents()
    try:
        return _run(options)
    finally:
        if options.usage:
            # A full disk has already been reported.
            with contextlib.suppress(OSError):
                write_usage(options.usage, time.perf_counter() - began, *own_usage())


def _run(options: argparse.Namespace) -> int:
    """Run a command, print its errors and return its exit status."""
    try:
        options.run(options)
        sys.stdout.flush()
    except DirectrankError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # What reads the output, such as `head`, has closed it: not an error. Python flushes the
        # stream once more when it exits, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        # A full disk, a read-only folder or a missing file; the system's message says which.
        print(f"error: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        return _out_of_memory(error)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("directrank"):
            raise
        print(
            f"error: {error}\n  remedy: run `pip install '.[study]'` in a clone of the repository, "
            "which installs what the commands need beyond the losses and metrics",
            file=sys.stderr,
        )
        return 2
    except ImportError as error:
        if _NO_ROOM not in str(error):
            raise
        return _out_of_memory(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


def _out_of_memory(error: Exception) -> int:
    detail = f" ({error})" if str(error) else ""
    print(
        f"error: out of memory{detail}\n"
        "  remedy: give this job more memory, or run fewer jobs at once",
        file=sys.stderr,
    )
    return 2
