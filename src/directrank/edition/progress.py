"""Report the progress of a workflow: the runs that are trained, and the time left for the rest."""

from __future__ import annotations

import heapq
import math
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

#: Seconds between two reports.
INTERVAL = 60.0

#: The time left is not estimated before this share of the work is done.
LEAST_SHARE = 0.01

#: How many times as long as is usual a run may count. The first run of a loss compiles its loops,
#: which says nothing about the others.
MOST = 2.0

#: The predicted seconds of a product, the mean of the demo's (benchmarks/results/jobs.csv), and
#: for how many products it counts beside those that are made, of which one may take long.
PRODUCT_SECONDS = 1.0
PRODUCTS = 10


@dataclass(frozen=True)
class Span:
    """When a run was trained, or a product made, in seconds of :func:`time.time`.

    Attributes:
        began: None if it has not begun.
        ended: None if it has not ended.
        failed: whether it has ended without results.
    """

    began: float | None = None
    ended: float | None = None
    failed: bool = False


@dataclass(frozen=True)
class Drawing:
    """Products that are made one after another.

    Attributes:
        products: the figures, tables and tests.
        runs: what they are made from.
    """

    products: Sequence[str]
    runs: Collection[str]


class TrainingProgress:
    """Reports how many runs are trained, from :meth:`start` to the end of the process.

    The time left follows from this workflow's own pace: from the seconds that runs took beside
    those that were predicted, and from how many were trained at a time. What is done of a run that
    is being trained counts, because long runs begin first, and the time before the first run does
    not. A product takes what those that are made took.

    Args:
        batches: the predicted seconds of the runs to train, in batches whose runs are trained one
            after another. Only their ratios matter.
        span_of: when a run was trained, or a product made.
        say: a function that is called with each report.
        drawings: what is made from the runs.
    """

    def __init__(
        self,
        batches: Sequence[Mapping[str, float]],
        span_of: Callable[[str], Span],
        say: Callable[[str], None],
        drawings: Sequence[Drawing] = (),
    ) -> None:
        self._batches = batches
        self._seconds = {run: seconds for batch in batches for run, seconds in batch.items()}
        self._span_of = span_of
        self._say = say
        self._drawings = drawings
        self._products = frozenset(name for drawing in drawings for name in drawing.products)
        self._began = 0.0
        self._first = math.inf
        #: The seconds that the trained runs took, and the products that are made.
        self._took: dict[str, float] = {}
        self._made: dict[str, float] = {}
        self._failed: set[str] = set()

    def start(self) -> None:
        """Report in a thread of its own, until everything is trained and made."""
        if self._seconds:
            # Some file systems keep times to the second.
            self._began = math.floor(time.time())
            threading.Thread(target=self._watch, daemon=True).start()

    def text(self, now: float) -> str:
        """The progress in one line, at a time of :func:`time.time`."""
        share, left = self.estimate(now)
        told = "too early to estimate the time left"
        if left is not None:
            told = f"{duration(left)} left"
        failed = f" and {len(self._failed)} failed" if self._failed else ""
        return (
            f"{len(self._took)} of {len(self._seconds)} runs are trained{failed}, "
            f"{100 * share:.0f} % of the work; {told}"
        )

    def estimate(self, now: float) -> tuple[float, float | None]:
        """The share of the work that is done, and the seconds left; None if it is too early."""
        running = self._look(now)
        if not self._work(self._took):
            return 0.0, None
        pace = self._pace(running)
        waiting = self._seconds.keys() - self._took.keys() - self._failed
        left = {run: max(pace * self._seconds[run] - running.get(run, 0.0), 0.0) for run in waiting}
        took, making = sum(self._took.values()), sum(self._made.values())
        product = (making + pace * PRODUCT_SECONDS * PRODUCTS) / (len(self._made) + PRODUCTS)
        left |= dict.fromkeys(self._products - self._made.keys(), product)
        rest = sum(left.values())
        every = pace * self._work(waiting | self._took.keys()) + product * len(self._products)
        share = 1 - rest / every
        if share < LEAST_SHARE:
            return share, None
        # The clock of a file server may be ahead.
        since = max(now - self._first, max(self._took.values()))
        at_once = max((took + making + sum(running.values())) / since, len(running))
        return share, max(rest / at_once, self._last_end(left, running, at_once))

    def _pace(self, running: Mapping[str, float]) -> float:
        """The seconds of a predicted second: the mean of runs, of which none counts too much."""
        runs = sorted(self._took, key=lambda run: self._took[run] / self._seconds[run])
        done = list(accumulate(self._seconds[run] for run in runs))
        work = done[-1]
        median = runs[bisect_left(done, work / 2)]  # weighted by their work
        most = MOST * self._took[median] / self._seconds[median]
        took = sum(min(self._took[run], most * self._seconds[run]) for run in runs)
        pace = took / work
        # A run that takes longer than it should is known to be slow before it has ended.
        late = [run for run, so_far in running.items() if so_far > pace * self._seconds[run]]
        return (took + sum(running[run] for run in late)) / (work + self._work(late))

    def _last_end(
        self, left: Mapping[str, float], running: Mapping[str, float], at_once: float
    ) -> float:
        """The seconds until the last job ends, if each begins when another one has ended."""
        seconds = [math.fsum(left.get(run, 0.0) for run in batch) for batch in self._batches]
        begun = [not running.keys().isdisjoint(batch) for batch in self._batches]
        cores = [rest for rest, is_running in zip(seconds, begun, strict=True) if is_running]
        # On a cluster jobs wait, so that at times less than one run is trained at once.
        cores += [0.0] * (max(round(at_once), 1) - len(cores))
        heapq.heapify(cores)
        trained: dict[str, float] = {}
        # What is running ends first, and of the rest the longest begin first.
        for number in sorted(range(len(seconds)), key=lambda i: (not begun[i], -seconds[i])):
            end = seconds[number]
            if not begun[number]:
                end += cores[0]
                heapq.heapreplace(cores, end)
            trained |= dict.fromkeys(self._batches[number], end)
        ready = [
            (max((trained.get(run, 0.0) for run in drawing.runs), default=0.0), drawing)
            for drawing in self._drawings
        ]
        for since, drawing in sorted(ready, key=lambda item: item[0]):
            took = math.fsum(left.get(product, 0.0) for product in drawing.products)
            heapq.heapreplace(cores, max(cores[0], since) + took)
        return max(cores)

    def _look(self, now: float) -> dict[str, float]:
        """The seconds so far of the runs that are being trained."""
        for product in self._products - self._made.keys():
            span = self._span_of(product)
            if span.began is not None and span.ended is not None and span.began >= self._began:
                self._made[product] = span.ended - span.began
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
            ended = len(self._took) + len(self._failed) == len(self._seconds)
            if ended and len(self._made) == len(self._products):
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
