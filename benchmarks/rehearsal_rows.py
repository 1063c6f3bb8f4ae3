"""What the fits and data sets of an edition took where it was run, beside what was predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from record_jobs import megabytes

from directrank.cost.estimate import CostEstimate, compared, measured_runs
from directrank.cost.memory import requested_mb
from directrank.edition.batches import gpus
from directrank.edition.plan import Study, runs_of_papers
from directrank.system.usage import read_usage

#: The settings of a scorer or of trees that name it.
NAMED = ("name", "hidden", "width", "blocks", "objective", "mode")

#: Names of papers in one cell are separated by this.
BETWEEN = " "

#: The columns that an earlier report has in common with measurements, those with other names first.
RECORDED = {"measured_s": "recorded_s", "peak_mb": "memory_mb"}
KEPT = ("run", "epochs_taken", "processor_s", "disk_mb")

#: Where a workflow leaves its prepared data, below the folder in which it runs.
PREPARED = "data/prepared"


def finished(
    study: Study,
    prediction: CostEstimate,
    folder: Path,
    earlier: pd.DataFrame | None = None,
    elsewhere: bool = False,
) -> pd.DataFrame:
    """A row for each finished fit (the job of a run, with its trials and candidates).

    Predicted seconds are for the epochs or trees that the fit took, and ``ratio`` is measured ÷
    predicted seconds of a clock, both as ``directrank cost --against`` has them. ``mem_mb`` is what
    the workflow requests at the first attempt once the data are prepared.

    Args:
        study: the plan.
        prediction: of its cost.
        folder: where the workflow ran.
        earlier: what this function returned for another folder; its measurements of fits that have
            not finished in this one are used as well.
        elsewhere: whether ``earlier`` is of another machine. Its fits then keep what was predicted
            and requested there.

    Returns:
        A frame with a row per fit, in the order of the plan, and at least one row. ``earlier`` is
        whether the fit was measured in another folder.

    Raises:
        DataError: no fit has finished.
    """
    results = folder / f"results/{study.edition}"
    measured = measured_runs(prediction, results)
    disk = [megabytes(results / "runs" / run) for run in measured["run"]]
    measured = measured.assign(disk_mb=disk, earlier=False)
    if earlier is not None:
        kept = earlier[~earlier["run"].isin(measured["run"])].rename(columns=RECORDED)
        measured = pd.concat([measured, kept[[*RECORDED.values(), *KEPT]].assign(earlier=True)])
    measured = compared(prediction, measured)
    papers = papers_of(study)
    then = earlier.set_index("run") if earlier is not None and elsewhere else None
    rows = []
    for fit in measured.itertuples():
        spec, key = study.runs[fit.run], study.run_data[fit.run]
        if then is not None and fit.earlier:
            requested, predicted = then.loc[fit.run, ["mem_mb", "predicted_s"]]
        else:
            requested = requested_mb(study, fit.run, gpus(study, fit.run), folder / PREPARED)
            predicted = fit.predicted_at_epochs_s
        rows.append(
            {
                "run": fit.run,
                "papers": BETWEEN.join(papers[fit.run]),
                "data": study.data[key].name,
                "learner": spec["learner"],
                "model": model_of(spec),
                "mem_mb": int(requested),
                "peak_mb": fit.memory_mb,
                "memory_share": fit.memory_mb / requested,
                "epochs_planned": fit.epochs_planned,
                "epochs_taken": fit.epochs_taken,
                "predicted_s": predicted,
                "measured_s": fit.recorded_s,
                "processor_s": fit.processor_s,
                "ratio": fit.recorded_s / predicted,
                "disk_mb": fit.disk_mb,
                "earlier": fit.earlier,
            }
        )
    return pd.DataFrame(rows)


def papers_of(study: Study) -> dict[str, list[str]]:
    """The papers that need each run, in the order of the edition."""
    papers: dict[str, list[str]] = {run: [] for run in study.runs}
    for paper, runs in runs_of_papers(study).items():
        for run in runs:
            papers[run].append(paper)
    return papers


def model_of(spec: Mapping[str, Any]) -> str:
    """A run's scorer or trees in a few words; settings that the run tunes are not among them."""
    model = spec["model"]
    told = [str(model[name]) for name in NAMED if name in model]
    return " ".join(told)


def by_paper(fits: pd.DataFrame) -> pd.DataFrame:
    """Rows with ``papers``, once per paper, which is in the column ``paper``."""
    return fits.assign(paper=fits["papers"].str.split(BETWEEN)).explode("paper")


def missing(study: Study, prediction: CostEstimate, fits: pd.DataFrame) -> pd.DataFrame:
    """The fits that have not finished: ``run``, ``papers``, ``data``, ``predicted_s``.

    Their epochs are not known, so that the prediction is for all that they are allowed.
    """
    papers = papers_of(study)
    left = prediction.runs[~prediction.runs["run"].isin(fits["run"])]
    left = left.assign(papers=[BETWEEN.join(papers[run]) for run in left["run"]])
    return left.rename(columns={"seconds": "predicted_s"})[["run", "papers", "data", "predicted_s"]]


def begun(study: Study, left: pd.DataFrame, folder: Path) -> list[str]:
    """The fits among those ``left`` that were begun: under way, killed or failed."""
    logs = folder / f"logs/{study.edition}/fit"
    return [run for run in left["run"] if (logs / f"{run}.log").is_file()]


def prepared_data(study: Study, folder: Path) -> pd.DataFrame:
    """A row for each prepared data set: ``key``, ``disk_mb`` with scaled copies, what it took.

    Data sets that were not prepared by the workflow, but copied, lack the latter.
    """
    names = ["key", "disk_mb", "seconds", "processor_s", "peak_mb"]
    return pd.DataFrame(_prepared(study, folder), columns=names)


def _prepared(study: Study, folder: Path) -> Iterator[dict[str, Any]]:
    for key in sorted(study.data):
        files = folder / PREPARED / key
        if not files.is_dir():
            continue
        row = {"key": key, "disk_mb": megabytes(files)}
        used = read_usage(folder / f"logs/prepare/{key}.benchmark.tsv")
        if used is not None:
            row |= {"seconds": used["s"], "processor_s": used["cpu_time"]}
            row["peak_mb"] = used["max_rss"]
        yield row
