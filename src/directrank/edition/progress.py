"""Report the progress of a workflow: the runs that are trained, by their predicted seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

#: Seconds between two reports.
INTERVAL = 60.0

#: The time left is not estimated before this share of the work is done.
LEAST_SHARE = 0.01


class TrainingProgress:
    """Reports how many runs are trained, from :meth:`start` to the end of the process.

    Args:
        seconds: the predicted seconds of the runs to train. Only their ratios matter: the time left
            follows from the time that the trained ones took.
        is_trained: whether a run is trained.
        say: a function that is called with each report.
    """

    def __init__(
        self,
        seconds: Mapping[str, float],
        is_trained: Callable[[str], bool],
        say: Callable[[str], None],
    ) -> None:
        self._seconds = seconds
        self._is_trained = is_trained
        self._say = say

    def start(self) -> None:
        """Report in a thread of its own, until every run is trained."""
        if self._seconds:
            threading.Thread(target=self._watch, args=(time.monotonic(),), daemon=True).start()

    def text(self, elapsed: float) -> str:
        """The progress after so many seconds, in one line."""
        done = {run: seconds for run, seconds in self._seconds.items() if self._is_trained(run)}
        share = sum(done.values()) / sum(self._seconds.values())
        left = "too early to estimate the time left"
        if share >= LEAST_SHARE:
            left = f"{duration(elapsed * (1 - share) / share)} of training left"
        return (
            f"{len(done)} of {len(self._seconds)} runs are trained, {100 * share:.0f} % of the "
            f"work; {left}"
        )

    def _watch(self, began: float) -> None:
        while True:
            time.sleep(INTERVAL)
            if all(map(self._is_trained, self._seconds)):
                return
            self._say(f"{time.strftime('%H:%M:%S')}  {self.text(time.monotonic() - began)}")


def duration(seconds: float) -> str:
    """A duration in words, rounded.

    >>> duration(20), duration(100), duration(9000)
    ('less than a minute', 'about 2 minutes', 'about 2.5 hours')
    """
    if seconds < 45:
        return "less than a minute"
    if seconds < 5400:
        minutes = max(round(seconds / 60), 1)
        return f"about {minutes} minute{'s' if minutes > 1 else ''}"
    return f"about {seconds / 3600:.1f} hours"
