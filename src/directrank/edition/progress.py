"""Report the progress of a workflow: the runs that are trained, and the time left for the rest."""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

#: Seconds between two reports.
INTERVAL = 60.0

#: The time left is not estimated before this share of the work is done.
LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Span:
    """When a run was trained, in seconds of :func:`time.time`.

    Attributes:
        began: None if it has not begun.
        ended: None if it has not ended.
        failed: whether it has ended without results.
    """

    began: float | None = None
    ended: float | None = None
    failed: bool = False


class TrainingProgress:
    """Reports how many runs are trained, from :meth:`start` to the end of the process.

    The time left follows from this workflow's own pace: from the seconds that runs took beside
    those that were predicted, and from how many were trained at a time. What is done of a run that
    is being trained counts, because long runs begin first, and the time before the first run does
    not.

    Args:
        batches: the predicted seconds of the runs to train, in batches whose runs are trained one
            after another. Only their ratios matter.
        span_of: when a run was trained.
        say: a function that is called with each report.
    """

    def __init__(
        self,
        batches: Sequence[Mapping[str, float]],
        span_of: Callable[[str], Span],
        say: Callable[[str], None],
    ) -> None:
        self._batches = batches
        self._seconds = {run: seconds for batch in batches for run, seconds in batch.items()}
        self._span_of = span_of
        self._say = say
        self._began = 0.0
        self._first = math.inf
        #: The seconds that the trained runs took.
        self._took: dict[str, float] = {}
        self._failed: set[str] = set()

    def start(self) -> None:
        """Report in a thread of its own, until every run has ended."""
        if self._seconds:
            # Some file systems keep times to the second.
            self._began = math.floor(time.time())
            threading.Thread(target=self._watch, daemon=True).start()

    def text(self, now: float) -> str:
        """The progress in one line, at a time of :func:`time.time`."""
        share, left = self.estimate(now)
        told = "too early to estimate the time left"
        if left is not None:
            told = f"{duration(left)} of training left"
        failed = f" and {len(self._failed)} failed" if self._failed else ""
        return (
            f"{len(self._took)} of {len(self._seconds)} runs are trained{failed}, "
            f"{100 * share:.0f} % of the work; {told}"
        )

    def estimate(self, now: float) -> tuple[float, float | None]:
        """The share of the work that is done, and the seconds left; None if it is too early."""
        running = self._look(now)
        took, work = sum(self._took.values()), self._work(self._took)
        if not took or not work:
            return 0.0, None
        pace = took / work
        # A run that takes longer than it should is known to be slow before it has ended.
        late = [run for run, so_far in running.items() if so_far > pace * self._seconds[run]]
        pace = (took + sum(running[run] for run in late)) / (work + self._work(late))
        waiting = self._seconds.keys() - self._took.keys() - self._failed
        left = {run: max(pace * self._seconds[run] - running.get(run, 0.0), 0.0) for run in waiting}
        share = 1 - sum(left.values()) / (pace * self._work(waiting | self._took.keys()))
        if share < LEAST_SHARE:
            return share, None
        # The clock of a file server may be ahead.
        since = max(now - self._first, max(self._took.values()))
        at_once = max((took + sum(running.values())) / since, len(running))
        return share, max(sum(left.values()) / at_once, self._last_end(left, running, at_once))

    def _last_end(
        self, left: Mapping[str, float], running: Mapping[str, float], at_once: float
    ) -> float:
        """The seconds until the last batch ends, if each begins when another one has ended."""
        ends: list[float] = []
        waiting: list[float] = []
        for batch in self._batches:
            seconds = sum(left.get(run, 0.0) for run in batch)
            (waiting if running.keys().isdisjoint(batch) else ends).append(seconds)
        # On a cluster jobs wait, so that at times less than one run is trained at once.
        ends += [0.0] * (max(round(at_once), 1) - len(ends))
        heapq.heapify(ends)
        for seconds in waiting:
            heapq.heapreplace(ends, ends[0] + seconds)
        return max(ends)

    def _look(self, now: float) -> dict[str, float]:
        """The seconds so far of the runs that are being trained."""
        running = {}
        for run in self._seconds.keys() - self._took.keys():
            span = self._span_of(run)
            # What an earlier workflow has begun is begun again.
            if span.began is None or span.began < self._began:
                continue
            self._failed.discard(run)
            self._first = min(self._first, span.began)
            if span.ended is None:
                running[run] = max(now - span.began, 0.0)
            elif span.failed:
                self._failed.add(run)
            else:
                self._took[run] = span.ended - span.began
        return running

    def _work(self, runs: Iterable[str]) -> float:
        return sum(self._seconds[run] for run in runs)

    def _watch(self) -> None:
        while True:
            time.sleep(INTERVAL)
            text = self.text(time.time())
            if len(self._took) + len(self._failed) == len(self._seconds):
                return
            self._say(f"{time.strftime('%H:%M:%S')}  {text}")


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
