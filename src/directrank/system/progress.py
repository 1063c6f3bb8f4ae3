"""Progress of long tasks: a bar on a terminal, and an occasional line in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from tqdm import tqdm

#: Seconds between two lines in a log.
LOG_INTERVAL = 15.0


class Progress:
    """A progress display, called as ``progress(done, total, text)``; a context manager.

    Args:
        title: what is being done.
        unit: what is counted, if it should be shown; ``B`` for bytes.
    """

    def __init__(self, title: str, unit: str = "") -> None:
        self.title = title
        self.unit = unit
        self._bar = None
        if sys.stderr.isatty():
            self._bar = tqdm(desc=title, file=sys.stderr, unit=unit or "it", unit_scale=bool(unit))
        self._began = self._logged = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, done: int, total: int | None, text: str) -> None:
        """Show that ``done`` of ``total`` steps are done; ``total`` is None if it is unknown."""
        if self._bar is not None:
            self._bar.total = total
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(done - self._bar.n)
            return
        now = time.monotonic()
        if now - self._logged >= LOG_INTERVAL or done == total:
            self._logged = now
            of = "" if total is None else f"/{self._sized(total)} ({100 * done / total:.0f} %)"
            print(
                f"{self.title}: {self._sized(done)}{of}, {now - self._began:.0f} s, {text}",
                file=sys.stderr,
                flush=True,
            )

    def _sized(self, number: int) -> str:
        return tqdm.format_sizeof(number, self.unit, 1000) if self.unit else str(number)
