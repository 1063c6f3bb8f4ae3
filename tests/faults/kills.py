"""Kills that cannot be caught, at random moments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import psutil
from world import Row, Start, World, said_once

TRIES = 4
#: A command that was killed: by itself, or below a shell.
KILLED = ("SIGKILL", "exit status 137")
#: What the user sees and does after Snakemake was killed.
RESUMES = "There is no message. The next start resumes without `--unlock`."


def snakemake(world: World) -> Row:
    """Only Snakemake is killed; its jobs live a little longer, and the next start is immediate."""
    row = Row("kill -9 of Snakemake", RESUMES)
    return _again_and_again(world, row, Start.kill)


def process_group(world: World) -> Row:
    """Everything is killed at once, as when a machine goes down."""
    row = Row("kill -9 of Snakemake and all its jobs", RESUMES)
    return _again_and_again(world, row, Start.kill_group)


def job(world: World) -> Row:
    """Jobs are killed; Snakemake reports them and runs every job that does not depend on them."""
    return _killed(world, "kill -9 of a job", Start.jobs)


def fork(world: World) -> Row:
    """A run of a batch is killed, or a product of a paper, and the others are made."""
    return _killed(world, "kill -9 of a run or a product", Start.forks)


def _killed(world: World, fault: str, running: Callable[[Start], list[psutil.Process]]) -> Row:
    row = Row(
        fault,
        "Snakemake names the job and says that it was killed. The next start repeats it.",
    )
    folder, struck, problems = world.new(running.__name__), 0, []
    while struck < len(world.variants(range(TRIES))):
        start = Start(folder)
        start.until(lambda start=start: running(start))
        start.sleep(world.random.uniform(0, 0.4) * world.seconds)
        found = start.until(lambda start=start: running(start))
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in found or []:
                process.kill()
        if start.wait() == 0:
            # There was no job left to strike: begin anew.
            problems += world.differences(folder)
            folder = world.new(running.__name__)
        else:
            struck += 1
            problems += said_once(start, "Error in rule")
            if not any(word in start.said for word in KILLED):
                problems.append(f"does not tell of the kill: {start.said[-1500:]}")
    row.count(struck, problems + world.finishes(folder))
    return row


def _again_and_again(world: World, row: Row, kill: Callable[[Start], None]) -> Row:
    folder, struck, problems = world.new(kill.__name__), 0, []
    while struck < len(world.variants(range(TRIES))):
        start = Start(folder)
        if start.sleep(world.moment()):
            kill(start)
            struck += 1
        else:
            if start.wait() != 0:
                problems.append(f"a start between two kills failed: {start.said[-1500:]}")
            problems += world.differences(folder)
            folder = world.new(kill.__name__)
    row.count(struck, problems + world.finishes(folder))
    return row


FAULTS = (snakemake, job, fork, process_group)
