"""How far long work has come: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from tqdm import tqdm

#: Seconds between two lines in a log.
LOG_INTERVAL = 15.0


class Progress:
    """A progress display, called as ``progress(done, total, text)``; a context manager."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._bar = tqdm(desc=title, file=sys.stderr) if sys.stderr.isatty() else None
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

    def __call__(self, done: int, total: int, text: str) -> None:
        """Show that ``done`` of ``total`` steps are done."""
        if self._bar is not None:
            self._bar.total = total
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(done - self._bar.n)
            return
        now = time.monotonic()
        if now - self._logged >= LOG_INTERVAL or done == total:
            self._logged = now
            share, elapsed = 100 * done / total, now - self._began
            print(
                f"{self.title}: {done}/{total} ({share:.0f} %), {elapsed:.0f} s, {text}",
                file=sys.stderr,
                flush=True,
            )
