"""The command line. Each rule of the workflow calls one of these commands, so any job of the
workflow can be run again by hand from its log."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import time
from collections.abc import Sequence
from importlib import import_module

from directrank import __version__
from directrank.cli.parent import end_with_parent
from directrank.system.arithmetic import PORTABLE, PORTABLE_X86
from directrank.system.errors import DirectrankError
from directrank.system.usage import write_usage

#: Modules of this package with an ``add_parsers(subparsers)`` each, in the order of --help.
COMMANDS = ("data", "fit", "compare", "export", "products", "report", "cost")

#: What the loader of shared libraries says when memory is short.
_NO_ROOM = "failed to map segment"

EPILOG = """\
examples:
  directrank prepare ohsumed --raw data/raw --out data/prepared/ohsumed
  directrank fit run.json --data data/prepared/ohsumed --out results/mine
  directrank evaluate results/mine
  directrank compare --run mine.run --qrels msrd.qrels --collection msrd

Every command explains itself with --help.
"""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    result = argparse.ArgumentParser(
        prog="directrank",
        description="Direct optimisation of ranking metrics: data, training, figures and tables.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    result.add_argument(
        "--usage", metavar="FILE", help="write time, memory and processor time of COMMAND to FILE"
    )
    subparsers = result.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"directrank.cli.{name}").add_parsers(subparsers)
    return result


def _command(arguments: Sequence[str]) -> str:
    """What a shell is given to have the same bytes again; what they took is measured but once."""
    if arguments[:1] == ["--usage"]:
        arguments = arguments[2:]
    names = [*PORTABLE, *PORTABLE_X86]
    kept = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    return shlex.join([*(["env", *kept] if kept else []), "directrank", *arguments])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: 0 on success, 2 on an error for the user, printed without a traceback."""
    began = time.perf_counter()
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(arguments)
    if not sys.stderr.isatty():
        # A log begins with what makes it again.
        print(f"$ {_command(arguments)}", file=sys.stderr, flush=True)
    end_with_parent()
    try:
        return _run(options)
    finally:
        if options.usage:
            # A full disk has been reported, and would say it again.
            with contextlib.suppress(OSError):
                write_usage(options.usage, began)


def _run(options: argparse.Namespace) -> int:
    """The exit status of a command, whose errors are printed."""
    try:
        options.run(options)
    except DirectrankError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        # A full disk, a read-only folder, a missing file: the system's message says which.
        print(f"error: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        return _out_of_memory(error)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("directrank"):
            raise
        print(
            f"error: {error}\n  remedy: pip install 'directrank[study]', which brings what the "
            "commands need beyond the losses and metrics",
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
