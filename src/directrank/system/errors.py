"""Errors that a user can correct: each says what is wrong and what to do about it."""

from __future__ import annotations

from pathlib import Path


class DirectrankError(Exception):
    """Something the user can correct. The command line prints it without a traceback and exits 2.

    ``what`` says what is wrong, ``remedy`` what to do about it.
    """

    def __init__(self, what: str, remedy: str = "") -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(f"{what}\n  remedy: {remedy}" if remedy else what)


class ConfigError(DirectrankError, ValueError):
    """A configuration, a run's specification or an option that is not valid."""


class ArgumentError(ConfigError):
    """An argument of a loss or metric that is not valid."""


class DataError(DirectrankError):
    """Input data that are missing, malformed or not what they are declared to be.

    The message begins with ``file`` and ``line`` (counted from 1), where they are known.
    """

    def __init__(
        self,
        what: str,
        remedy: str = "",
        *,
        file: str | Path | None = None,
        line: int | None = None,
    ) -> None:
        self.file = None if file is None else str(file)
        self.line = line
        place = "" if file is None else f"{file}:{line}: " if line is not None else f"{file}: "
        super().__init__(place + what, remedy)


class TrainingError(DirectrankError):
    """A fit that cannot continue: its loss is not finite, or memory ran out."""
