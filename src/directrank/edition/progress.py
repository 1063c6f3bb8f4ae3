"""Report the progress of a workflow, measured by the predicted times of its jobs.

On a terminal this is a bar beside those of Snakemake's display; elsewhere, such as on a cluster's
head node, it is one line per minute.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import yaml

#: Seconds between two lines, and between two updates of a bar.
LINE_INTERVAL, BAR_INTERVAL = 60.0, 2.0

#: A shorter workflow is not worth a prediction, which takes some seconds of CPU time.
PREDICTED_AFTER = 30.0

#: Typical seconds of a job by its rule; those of fits until they are predicted.
SECONDS = {"fit": 10.0, "figure": 1.5, "report": 10.0, "data_pages": 10.0}
PREPARING, OTHERS = 20.0, 0.5

#: The time left is not estimated before this share of the work is done.
LEAST_SHARE = 0.01


class Progress:
    """Reports the progress of a workflow from :meth:`start` to :meth:`stop`.

    Args:
        predict: returns the predicted seconds of fits, by run; called once, in a thread of its own,
            when the workflow has run for a while. Only their ratios matter: the time left follows
            from the time that the finished jobs took.
        out: the stream to which lines are written.
    """

    def __init__(self, predict: Callable[[], Mapping[str, float]], out: TextIO = sys.stderr):
        self._predict = predict
        self._out = out
        self._runs: Mapping[str, float] = {}
        self._ended = threading.Event()

    def start(
        self,
        dag: Any,
        scheduler: Any,
        handlers: Iterable[Any] = (),
        foretold: Callable[[Mapping[str, float]], None] = lambda runs: None,
    ) -> None:
        """Watch the workflow in a daemon thread.

        Args:
            dag: a :class:`snakemake.dag.DAG` of version 9 whose jobs are about to start.
            scheduler: its :class:`snakemake.scheduling.job_scheduler.JobScheduler`.
            handlers: log handlers, of which one may have a display on a terminal.
            foretold: called with the prediction once it is made.
        """
        self._dag, self._scheduler, self._foretold = dag, scheduler, foretold
        self._jobs = list(dag.needrun_jobs())
        self._began = time.monotonic()
        self._since: dict[Any, float] = {}
        for target in (self._foretell, lambda: self._watch(_bar(handlers))):
            threading.Thread(target=target, daemon=True).start()

    def stop(self) -> None:
        """Stop reporting."""
        self._ended.set()

    def text(self, now: float) -> str:
        """The progress of the workflow, in one line."""
        done, share, left = self._state(now)
        running = sorted(map(_name, self._running()))
        more = f" and {len(running) - 3} more" if len(running) > 3 else ""
        return (
            f"{time.strftime('%H:%M:%S')}  {done} of {len(self._jobs)} jobs done, "
            f"{100 * share:.0f} % of the work; {left}; running: {', '.join(running[:3])}{more}"
        )

    def _state(self, now: float) -> tuple[int, float, str]:
        """Jobs done, the share of the work that is done, and the time left in words."""
        running = self._running()
        self._since = {job: self._since.get(job, now) for job in running}
        count, done, total = 0, 0.0, 0.0
        for job in self._jobs:
            seconds = self._seconds(job)
            total += seconds
            if self._dag.finished(job):
                count += 1
                done += seconds
            elif job in running:
                # A job that takes longer than predicted is still not done.
                done += min(now - self._since[job], 0.9 * seconds)
        share = done / total if total else 1.0
        if share < LEAST_SHARE:
            return count, share, "too early to estimate the time left"
        return count, share, f"{_duration((now - self._began) * (1 - share) / share)} left"

    def _running(self) -> set[Any]:
        return {job for entry in list(self._scheduler.running) for job in _of(entry)}

    def _seconds(self, job: Any) -> float:
        name = job.rule.name
        if name == "fit":
            return self._runs.get(job.wildcards.run, SECONDS["fit"])
        return SECONDS.get(name, PREPARING if name.startswith("prepare") else OTHERS)

    def _foretell(self) -> None:
        fits = any(job.rule.name == "fit" for job in self._jobs)
        if fits and not self._ended.wait(PREDICTED_AFTER):
            self._runs = self._predict()
            self._foretold(self._runs)

    def _watch(self, bar: Callable[[float, str], None] | None) -> None:
        while not self._ended.wait(LINE_INTERVAL if bar is None else BAR_INTERVAL):
            now = time.monotonic()
            if bar is None:
                print(self.text(now), file=self._out, flush=True)
            else:
                _, share, left = self._state(now)
                bar(share, left)


def predicted_by(
    command: Sequence[str], config: Mapping[str, Any], folder: str | Path
) -> dict[str, float]:
    """The seconds of an edition's runs as ``directrank cost --quick`` predicts them; empty if it
    fails.

    Args:
        command: the command that starts ``directrank``.
        config: the edition.
        folder: the folder in which the workflow runs.
    """
    with tempfile.TemporaryDirectory() as own:
        edition = Path(own, "edition.yaml")
        edition.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
        subprocess.run(
            [*command, "cost", str(edition), "--quick", "--out", own],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.nice(19),
            check=False,
        )
        try:
            with open(Path(own, "runs.csv"), encoding="utf-8", newline="") as file:
                return {row["run"]: float(row["seconds"]) for row in csv.DictReader(file)}
        except OSError:  # the display works without it
            return {}


def _bar(handlers: Iterable[Any]) -> Callable[[float, str], None] | None:
    """A bar in the display of Snakemake's logger ``rich``; None without a terminal."""
    for handler in handlers:
        display = getattr(handler, "progress", None)
        if display is not None and handler.console.is_terminal:
            task = display.add_task("Predicted work", total=1.0, active="")

            def show(share: float, left: str, display=display, task=task) -> None:
                text = f"Predicted work, {left}"
                display.update(task, completed=share, description=text)

            return show
    return None


def _of(entry: Any) -> Iterable[Any]:
    """The jobs of a job or of a group."""
    return entry.jobs if entry.is_group() else [entry]


def _name(job: Any) -> str:
    return " ".join([job.rule.name, "/".join(map(str, job.wildcards))]).strip()


def _duration(seconds: float) -> str:
    """A duration in words, rounded.

    >>> _duration(20), _duration(100), _duration(9000)
    ('less than a minute', 'about 2 minutes', 'about 2.5 hours')
    """
    if seconds < 45:
        return "less than a minute"
    if seconds < 5400:
        minutes = max(round(seconds / 60), 1)
        return f"about {minutes} minute{'s' if minutes > 1 else ''}"
    return f"about {seconds / 3600:.1f} hours"
