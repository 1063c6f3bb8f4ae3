"""What a rehearsal took: time, memory and disk of its fits, compared with their predictions.

    python benchmarks/rehearsal_report.py config/rehearsal.yaml [--folder CLONE]

reads what finished fits took from ``CLONE/logs`` and ``CLONE/results``, and writes
``rehearsal.csv``, a row per fit, and ``rehearsal.md`` into benchmarks/results. It works with every
edition, finished or not: hours of fits that were not run are extrapolated. Times are predicted for
the epochs and trees that fits took, as by ``directrank cost --against``. A fit that was killed
counts from the moment at which it resumed.

    python benchmarks/rehearsal_report.py config/rehearsal.yaml --earlier REHEARSAL.CSV

also takes fits that were not run in that folder from an earlier report, compared with what is
predicted and requested for them now, so that a part of an edition can be run again. If another
machine took them, name it (``--elsewhere "an AMD EPYC with AVX-512"``): their predicted times and
requested memory are then those of the earlier report.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from record_jobs import machine
from rehearsal_rows import PREPARED, begun, by_paper, finished, missing, prepared_data
from rehearsal_targets import FACTOR, LEAST, SHARE, above, below, offenders, within

from directrank.cli.cost import own_machine
from directrank.cost.estimate import CostEstimate, estimate
from directrank.cost.machine import Machine
from directrank.edition.plan import Study, load
from directrank.system.errors import DirectrankError
from directrank.system.io import write_csv, write_text
from directrank.system.schema import read_yaml

ROOT = Path(__file__).resolve().parents[1]

#: The most fits that a list names.
NAMED = 15


@dataclass(frozen=True)
class Report:
    """What is told of an edition.

    Attributes:
        study: the plan.
        predicted_for: the machine of the predictions.
        fits: as :func:`rehearsal_rows.finished`.
        left: as :func:`rehearsal_rows.missing`.
        begun: the fits among these that were begun.
        data: as :func:`rehearsal_rows.prepared_data`.
        machine: processor and cores of the machine on which the edition was run.
        elsewhere: the machine of the fits of an earlier report, if it was another one.
    """

    study: Study
    predicted_for: Machine
    fits: pd.DataFrame
    left: pd.DataFrame
    begun: list[str]
    data: pd.DataFrame
    machine: dict[str, object]
    elsewhere: str | None


def collected(
    study: Study,
    prediction: CostEstimate,
    folder: Path,
    earlier: pd.DataFrame | None = None,
    elsewhere: str | None = None,
) -> Report:
    """What is told of an edition that was run in ``folder``; DataError if no fit has finished.

    ``earlier`` is as in :func:`rehearsal_rows.finished`, and ``elsewhere`` the machine of its fits
    if it was another one.
    """
    fits = finished(study, prediction, folder, earlier, bool(elsewhere))
    left = missing(study, prediction, fits)
    return Report(
        study,
        prediction.cpu,
        fits,
        left,
        begun(study, left, folder),
        prepared_data(study, folder),
        machine(folder / f"results/{study.edition}/runs"),
        elsewhere,
    )


def page(report: Report) -> str:
    """The report as Markdown."""
    lines = [
        f"# What the fits of `{report.study.edition}` took",
        "",
        *_opening(report),
        "",
        *_targets(report.fits),
        "",
        *_by_learner(report.fits),
    ]
    if len(report.left):
        lines += ["", "## Not finished", "", *_not_finished(report)]
    lines += ["", "## Prepared data", "", *_of_data(report.data)]
    if report.fits["earlier"].any():
        lines += ["", "What only fits of the earlier report needed is not among them."]
    lines += ["", "## Farthest from the targets", "", *_offenders(report.fits)]
    return "\n".join(lines) + "\n"


def _opening(report: Report) -> list[str]:
    planned, done = len(report.study.runs), len(report.fits)
    extent = "the whole edition" if done == planned else "a part of it"
    where, cpu, earlier = report.machine, report.predicted_for, int(report.fits["earlier"].sum())
    repeated = (
        f" {done - earlier:,} of these fits were run for this report; the others were measured for "
        f"an earlier one, {_earlier(report.elsewhere)}."
    )
    return [
        f"{done:,} of {planned:,} fits of the edition have finished: {extent}. A fit is the job of "
        f"one run, with its trials and candidates.{repeated if earlier else ''}",
        "",
        f"Run on {where['processor']} with {where['cores']} cores. Predicted for {cpu.name}, "
        f"{cpu.threads} thread(s) per fit; {cpu.note}.",
        "",
        "Times are predicted for the epochs or trees that each fit took, as `directrank cost "
        "--against` does it, and compared with those of a clock; a fit that was killed counts from "
        "the moment at which it resumed. `mem_mb` is what the workflow requests at the first "
        "attempt, once the data are prepared. A fit that several papers need counts for each of "
        "them, and once in `all`.",
    ]


def _earlier(elsewhere: str | None) -> str:
    """With what the fits of an earlier report are compared."""
    if elsewhere:
        return (
            f"on another machine ({elsewhere}), and are compared with what was predicted and "
            "requested for them there"
        )
    return "and are compared with what is predicted and requested for them now"


def _targets(fits: pd.DataFrame) -> list[str]:
    """Whether each target is reached by all fits together."""
    near, many, few = within(fits["ratio"]).mean(), above(fits).sum(), below(fits).sum()
    rows = [
        (f"measured time within a factor of {FACTOR:g} of the predicted one",
         f"{near:.0%} of fits", f"≥ {SHARE:.0%}", near >= SHARE),
        ("peak memory above `mem_mb`", f"{many} fits", "none", many == 0),
        (f"peak memory below {LEAST:.0%} of `mem_mb`", f"{few} fits", "none", few == 0),
    ]  # fmt: skip
    cells = [[what, value, goal, "yes" if ok else "no"] for what, value, goal, ok in rows]
    return [
        *table(["target", "measured", "goal", "reached"], cells, text=1),
        "",
        _spread(fits),
    ]


def _spread(fits: pd.DataFrame) -> str:
    """Measured ÷ predicted times of all fits, by the clock and in processor seconds."""
    ratio, processor = fits["ratio"], fits["processor_s"] / fits["predicted_s"]
    told = (
        f"Measured ÷ predicted time has the median {ratio.median():.2f}; the middle 80% of fits "
        f"are between {ratio.quantile(0.1):.2f} and {ratio.quantile(0.9):.2f}."
    )
    if processor.isna().all():
        return told
    return (
        f"{told} Processor seconds, which other load on the machine affects less, have the median "
        f"{processor.median():.2f}, and {within(processor).mean():.0%} of fits are within the "
        "factor."
    )


def _by_learner(fits: pd.DataFrame) -> list[str]:
    names = ["paper", "learner", "fits", "predicted h", "measured h", "processor h"]
    names += [f"within {FACTOR:g} ×", "above mem_mb", f"below {LEAST:.0%}"]
    names += ["median ratio", "largest peak MB", "disk GB"]
    rows = [
        [paper, learner, *_summary(own)]
        for (paper, learner), own in by_paper(fits).groupby(["paper", "learner"], sort=False)
    ]
    return table(names, [*rows, ["all", "all", *_summary(fits)]], text=2)


def _summary(fits: pd.DataFrame) -> list[str]:
    hours = [fits[name].sum() / 3600 for name in ("predicted_s", "measured_s", "processor_s")]
    conditions = (within(fits["ratio"]), above(fits), below(fits))
    shares = [f"{condition.mean():.0%}" for condition in conditions]
    median, peak, disk = fits["ratio"].median(), fits["peak_mb"].max(), fits["disk_mb"].sum() / 1000
    sizes = [f"{median:.2f}", f"{peak:,.0f}", _number(disk)]
    return [f"{len(fits):,}", *map(_number, hours), *shares, *sizes]


def _not_finished(report: Report) -> list[str]:
    """The fits that have not finished by paper and data, and their extrapolated hours."""
    median = report.fits["ratio"].median()
    planned = by_paper(pd.concat([report.fits, report.left])).groupby(["paper", "data"]).size()
    grouped = by_paper(report.left).groupby(["paper", "data"], sort=False)["predicted_s"]
    rows = [[*key, *_extrapolated(own, planned[key], median)] for key, own in grouped]
    everything = report.left["predicted_s"]
    rows.append(["all", "all", *_extrapolated(everything, len(report.study.runs), median)])
    whole = (report.fits["measured_s"].sum() + everything.sum() * median) / 3600
    lines = [
        "The hours of these fits are an extrapolation: the predicted ones times the median "
        f"measured ÷ predicted time of the fits that have finished, {median:.2f}. They are upper "
        "bounds where fits may stop early, because all epochs that are allowed are counted. With "
        "the measured hours of the others, the edition would take "
        f"{_number(whole)} hours of one process.",
        "",
        *table(["paper", "data", "fits", "of", "predicted h", "extrapolated h"], rows, text=2),
    ]
    if report.begun:
        lines += [
            "",
            f"Of these, {len(report.begun):,} were begun, and are under way, were killed or have "
            f"failed: {_names(report.begun)}.",
        ]
    return lines


def _extrapolated(predicted: pd.Series, planned: int, ratio: float) -> list[str]:
    hours = predicted.sum() / 3600
    return [f"{len(predicted):,}", f"{planned:,}", _number(hours), _number(hours * ratio)]


def _of_data(data: pd.DataFrame) -> list[str]:
    rows = [
        [f"`{row.key}`", _number(row.disk_mb / 1000), *map(_number, (row.seconds, row.peak_mb))]
        for row in data.itertuples()
    ]
    rows.append(["all", _number(data["disk_mb"].sum() / 1000), _number(data["seconds"].sum()), ""])
    return [
        f"Sizes of `{PREPARED}`, with scaled copies. Time and memory are those of the job that "
        "prepared the data, without the scaled copies, which fits make.",
        "",
        *table(["data", "disk GB", "seconds", "largest peak MB"], rows, text=1),
    ]


def _offenders(fits: pd.DataFrame) -> list[str]:
    found = offenders(fits)
    lines = [f"- `{run}` {words}." for run, words in found[:NAMED]]
    if len(found) > NAMED:
        lines += ["", f"These are {NAMED} of {len(found):,} fits that miss a target."]
    return lines or ["No fit misses a target."]


def _names(runs: list[str]) -> str:
    named = ", ".join(f"`{run}`" for run in runs[:NAMED])
    return named + (f" and {len(runs) - NAMED:,} more" if len(runs) > NAMED else "")


def table(names: list[str], rows: Iterable[list[str]], text: int) -> list[str]:
    """The lines of a Markdown table, whose first ``text`` columns are words."""
    kinds = ["---"] * text + ["---:"] * (len(names) - text)
    return [f"| {' | '.join(cells)} |" for cells in (names, kinds, *rows)]


def _number(value: float) -> str:
    """Three digits, or a dash where there is no number."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Report on one edition."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path, help="the edition's file")
    parser.add_argument("--folder", type=Path, default=ROOT, help="where it ran (default: here)")
    parser.add_argument("--rates", type=Path, help="the speed of the machine where it ran")
    parser.add_argument("--earlier", type=Path, help="an earlier rehearsal.csv")
    parser.add_argument("--elsewhere", metavar="MACHINE", help="that of the earlier fits")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results")
    options = parser.parse_args()
    if options.earlier and not options.earlier.is_file():
        parser.error(f"--earlier: there is no file {options.earlier}")
    if options.elsewhere and not options.earlier:
        parser.error("--elsewhere: give an earlier rehearsal.csv with --earlier")
    try:
        study = load(read_yaml(options.config), ROOT)
        threads = study.config["fit_threads"]
        cpu = Machine.read(options.rates) if options.rates else own_machine(threads)
        prediction = estimate(study, cpu, prepared_folder=options.folder / PREPARED)
        earlier = pd.read_csv(options.earlier) if options.earlier else None
        report = collected(study, prediction, options.folder, earlier, options.elsewhere)
    except DirectrankError as error:
        raise SystemExit(f"error: {error}") from None
    write_csv(options.out / "rehearsal.csv", report.fits)
    write_text(options.out / "rehearsal.md", page(report))
    print(options.out / "rehearsal.md")


if __name__ == "__main__":
    main()
