"""LambdaMART with RankLib, the Java program behind Bruch2019's "λMART RankLib".

The program is not part of this package; it is used if a Java runtime and its jar are found. Calls
follow its documented command line (ranker 6); the formats of its files and output were taken from
its source (codelibs/ranklib, ``eval/Evaluator.java``, ``tree/LambdaMART.java``).

RankLib draws nothing at random, so all trials of a run are the same.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from directrank import metrics
from directrank.learners.contract import FitJob, Fitted, Splits, history_row
from directrank.learners.inputs import check_splits, empty_queries, groups
from directrank.learners.trees.settings import RANKLIB, complete, passed_on
from directrank.lists.packed import RankedLists
from directrank.stats.means import convert_mean
from directrank.system.errors import ConfigError, DataError, DirectrankError, TrainingError
from directrank.system.io import sha256_of, write_text

#: A line of RankLib's progress table: number of trees | training metric | validation metric.
_PROGRESS = re.compile(r"(\d+)\s*\|\s*([0-9.Ee+-]+)\s*\|\s*([0-9.Ee+-]+)\s*\|\s*$")

#: The number of lines of RankLib's output that an error shows.
_TAIL = 15


class Availability(NamedTuple):
    """Whether RankLib can be run on this machine.

    Attributes:
        reason: the program that would be run, or what is missing.
        program: paths of the Java command and of the jar; None where one is missing.
    """

    reason: str
    program: tuple[Path, Path] | None

    @property
    def ok(self) -> bool:
        """Whether it can be run."""
        return self.program is not None


def available(settings: Mapping[str, Any] | None = None) -> Availability:
    """Look for Java and for RankLib's jar.

    Args:
        settings: those of :data:`.RANKLIB`; ``jar`` and ``java`` say where to look.

    Raises:
        ConfigError: an unknown setting or an impossible value.
    """
    settings = complete(settings or {}, RANKLIB, "learner 'ranklib'")
    java = shutil.which(settings["java"])
    if settings["jar"] is not None:
        pattern = settings["jar"]
        jars = [Path(pattern)] if Path(pattern).is_file() else []
    else:
        folder = Path(os.environ.get("DIRECTRANK_RAW", "data/raw"))
        pattern = f"{folder}/RankLib*.jar"
        jars = sorted(folder.glob("RankLib*.jar"))
    missing = []
    if java is None:
        missing.append(f"the Java command '{settings['java']}' was not found")
    if len(jars) > 1:
        missing.append(f"there is more than one {pattern}: name one by the setting 'jar'")
    elif not jars:
        missing.append(f"there is no {pattern}")
    if java is None or missing:
        return Availability(" and ".join(missing), None)
    return Availability(f"{java} -jar {jars[0]}", (Path(java), jars[0]))


def fit(data: Splits, settings: Mapping[str, Any], job: FitJob) -> Fitted:
    """Fit LambdaMART with RankLib; it keeps the trees that are best on the validation set.

    The lists are written as text into a scratch folder (of ``TMPDIR``, about 10 bytes for each
    feature of each document), which is removed afterwards.

    Args:
        data: the splits; features must be finite.
        settings: see :data:`.RANKLIB`.
        job: ``selection`` must be NDCG@k with its default options, which RankLib has as well.

    Returns:
        The model. In its history ``vali_metric`` is what RankLib prints, which has four decimals,
        as the mean over the queries that are not empty (it counts an empty query as 0);
        ``train_loss`` is NaN.

    Raises:
        ConfigError: an unknown setting, an impossible value, or a metric RankLib does not have.
        DataError: features or labels it cannot take.
        DirectrankError: Java or the jar is not here, or the scratch folder is full.
        TrainingError: RankLib failed.
    """
    settings = complete(settings, RANKLIB, "learner 'ranklib'")
    metric = _metric(job.selection)
    availability = available(settings)
    if availability.program is None:
        raise DirectrankError(
            f"RankLib cannot be run: {availability.reason}",
            "put RankLib's jar among the archives and install Java (11 or later; docs/trees.md has "
            "two commands for both), or use the learner 'lightgbm' with RankLib's settings",
        )
    check_splits(data)
    java, jar = availability.program
    heap = [] if settings["memory"] is None else [f"-Xmx{settings['memory']}"]
    program = [str(java), *heap, "-jar", str(jar)]
    with _scratch() as folder:
        train, vali, model = folder / "train.txt", folder / "vali.txt", folder / "model.txt"
        write_lists(train, data.train)
        # RankLib keeps one ideal DCG per query id for both files: no id may occur in both.
        write_lists(vali, data.vali, first_query=data.train.n_queries + 1)
        history = _train(program, _options(train, vali, model, metric, settings, job), data, job)
        if not model.is_file():
            raise TrainingError("RankLib left no model", "see whether the jar is RankLib's")
        text = model.read_text(encoding="ascii")
    n_trees, n_outputs = text.count("<tree "), text.count("<output>")
    return Fitted(
        predict=lambda lists: _score(program, text, lists),
        history=history,
        info={
            "best_epoch": n_trees,
            "epochs": len(history),
            "stopped_early": len(history) < settings["n_trees"],
            # A tree of l leaves has l outputs and l - 1 thresholds.
            "n_parameters": 2 * n_outputs - n_trees,
            "jar": jar.name,
            "jar_sha256": sha256_of(jar),
        },
        save=lambda path: write_text(path.with_name(path.name + ".txt"), text),
    )


def write_lists(path: Path, lists: RankedLists, first_query: int = 1) -> None:
    """Write lists as LETOR text, one query at a time; values read back as the same float32.

    Queries are numbered from ``first_query`` on in place of their own ids, which need not differ.

    Raises:
        DataError: a feature that is not finite, which RankLib cannot read.
        DirectrankError: the disk is full.
    """
    row = " ".join(f"{number}:%.9g" for number in range(1, lists.n_features + 1))
    try:
        with open(path, "w", encoding="ascii", newline="\n") as file:
            for query, (begin, end) in enumerate(
                zip(lists.offsets[:-1].tolist(), lists.offsets[1:].tolist(), strict=True)
            ):
                features = np.asarray(lists.features[begin:end])
                if not np.isfinite(features).all():
                    raise DataError(
                        f"query {lists.query_ids[query]} has a feature that is not finite, which "
                        "RankLib cannot read",
                        "normalise the features, or use the learner 'lightgbm'",
                    )
                labels = lists.labels[begin:end].tolist()
                file.writelines(
                    f"{label:.0f} qid:{first_query + query} {row % tuple(values)}\n"
                    for label, values in zip(labels, features.tolist(), strict=True)
                )
    except OSError as error:
        raise DirectrankError(
            f"cannot write RankLib's input: {error}", "set TMPDIR to a folder with more space"
        ) from None


def _metric(selection: Mapping[str, Any]) -> str:
    k = selection.get("k")
    if k is None or metrics.label(selection) != metrics.label({"name": "ndcg", "k": k}):
        raise ConfigError(
            f"RankLib cannot select by '{metrics.label(selection)}'",
            "select by ndcg with a k and no other option",
        )
    return f"NDCG@{k}"


def _options(
    train: Path,
    vali: Path,
    model: Path,
    metric: str,
    settings: Mapping[str, Any],
    job: FitJob,
) -> list[str]:
    options = {
        "-ranker": 6,
        **passed_on(settings, RANKLIB, "jar", "java", "memory"),
        "-metric2t": metric,
        "-thread": job.threads,
        "-train": train,
        "-validate": vali,
        "-save": model,
    }
    return [str(part) for option in options.items() for part in option]


def _train(
    program: Sequence[str], options: Sequence[str], data: Splits, job: FitJob
) -> list[dict[str, Any]]:
    """Run the training and follow its progress table."""
    n_queries, n_empty = len(groups(data.vali)), empty_queries(data.vali)
    n_trees = int(options[options.index("-tree") + 1])
    label = metrics.label(job.selection)
    history: list[dict[str, Any]] = []
    before = time.perf_counter()
    with contextlib.closing(_run([*program, *options])) as output:
        for line in output:
            match = _PROGRESS.search(line)
            if match is None or int(match[1]) != len(history) + 1:
                continue
            now = time.perf_counter()
            value = convert_mean(float(match[3]), n_queries, n_empty, "zero", "exclude")
            history.append(history_row(len(history) + 1, now - before, vali_metric=float(value)))
            before = now
            job.progress(len(history), n_trees, f"{label} {value:.4f}")
    if not history:
        raise TrainingError(
            "RankLib printed no progress that could be read",
            "see whether the jar is RankLib's",
        )
    return history


def _score(program: Sequence[str], model: str, lists: RankedLists) -> np.ndarray:
    """Scores of all documents, float64 ``[N]``."""
    with _scratch() as folder:
        model_file, input_file, scores_file = (
            folder / name for name in ("model.txt", "lists.txt", "scores.txt")
        )
        write_text(model_file, model)
        write_lists(input_file, lists)
        options = ["-load", model_file, "-rank", input_file, "-score", scores_file]
        for _ in _run([*program, *map(str, options)]):
            pass
        if not scores_file.is_file():
            raise TrainingError("RankLib left no scores", "see whether the jar is RankLib's")
        return _read_scores(scores_file, lists)


def _read_scores(path: Path, lists: RankedLists) -> np.ndarray:
    """Read lines of query number, position in the list (from 0) and score; check their order."""
    try:
        table = np.loadtxt(path, dtype=np.float64, delimiter="\t", ndmin=2)
    except ValueError as error:
        raise TrainingError(
            f"RankLib's scores cannot be read: {error}", "see whether the jar is RankLib's"
        ) from None
    lengths = np.asarray(lists.lengths)
    ends = np.cumsum(lengths)
    queries = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    positions = np.arange(lists.n_documents) - np.repeat(ends - lengths, lengths)
    if table.shape != (lists.n_documents, 3) or not (
        np.array_equal(table[:, 0], queries) and np.array_equal(table[:, 1], positions)
    ):
        raise TrainingError(
            "RankLib's scores do not match the lists it was given",
            "see whether the jar is RankLib's",
        )
    return table[:, 2].copy()


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="directrank-ranklib-") as folder:
        yield Path(folder)


def _run(command: Sequence[str]) -> Generator[str, None, None]:
    """Run a command and yield its output line by line; closing the generator ends the command."""
    tail: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # Older versions print to the one, newer ones log to the other.
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                tail = [*tail, line.rstrip()][-_TAIL:]
                yield line
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        output = "\n".join(f"  | {line}" for line in tail)
        raise TrainingError(
            f"RankLib failed with exit status {process.returncode}:\n{output}",
            "where it ran out of memory, set 'memory' to a larger heap such as 8g",
        )
