"""Test the papers' claims paper by paper, and merge the verdicts into one list.

The claims are published material: ``claims.csv``, and ``more_claims.csv`` with further claims of
the papers. The file ``claims.yaml`` of a paper's package says how each is tested, and states what
neither list has. A paper's claims are tested with that paper's runs only and written beside its
tables; an edition's list is merged from those files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from directrank.papers.shared.claim_rows import PAPERS, Claim, claims_of
from directrank.papers.shared.compare import compare
from directrank.papers.shared.evidence import Evidence, gather, read_plan, read_published
from directrank.papers.shared.findings import Outcome
from directrank.papers.shared.judging import conclude, judge, row
from directrank.papers.shared.product import (
    TIMES,
    call,
    code_behind,
    computed_by,
    product,
)
from directrank.papers.shared.verdicts import UNMEASURED
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import write_csv

#: The published lists of claims, in the order of the page.
LISTS = ("claims", "more_claims")

#: What is known of a claim before it is tested.
STATED = ("claim", "paper", "statement", "where", "printed_numbers")

#: The row that has the verdict on a claim as a whole.
OVERALL = "overall"

COLUMNS = (
    "edition",
    "claim",
    "paper",
    "statement",
    "where",
    "comparison",
    "verdict",
    "group",
    "dataset",
    "claimed",
    "outcome",
    "effect",
    "low",
    "high",
    "unit",
    "p_value",
    "p_holm",
    "p_range",
    "p_range_holm",
    "detectable",
    "sample",
    "test",
    "remark",
    "printed_numbers",
)

#: The columns of measured times, which have a file of their own because they differ between runs.
MEASURED = [
    "effect",
    "low",
    "high",
    "p_value",
    "p_holm",
    "p_range",
    "p_range_holm",
    "detectable",
    "sample",
    "remark",
]
#: The columns that identify such a finding.
_KEY = ["claim", "comparison", "dataset"]


def published_claims() -> pd.DataFrame:
    """All claims, those of the published lists first: the first columns of every row.

    Raises:
        ConfigError: a claim of a paper's ``claims.yaml`` is stated nowhere, or twice.
    """
    lists = [read_published(name) for name in LISTS]
    names = {"id": "claim", "claim": "statement", "status_in_printed_numbers": "printed_numbers"}
    claims = pd.concat(lists, ignore_index=True).rename(columns=names)[list(STATED)]
    listed, further = set(claims["claim"]), []
    for file in sorted(PAPERS.glob("*/claims.yaml")):
        paper = file.parent.name
        for name, claim in claims_of(paper).items():
            if bool(claim.statement) == (name in listed):
                raise ConfigError(
                    f"{file}: {name} is stated {'twice' if claim.statement else 'nowhere'}",
                    f"give it a `statement` and `where` unless {' or '.join(LISTS)}.csv has it",
                )
            if claim.statement:
                further.append([name, paper, claim.statement, claim.where, claim.printed_numbers])
    return pd.concat([claims, pd.DataFrame(further, columns=list(STATED))], ignore_index=True)


def evaluate(
    plans: Iterable[Mapping[str, Any]],
    runs_folder: str | Path,
    margin: float,
) -> pd.DataFrame:
    """Test every published claim of one paper.

    Args:
        plans: the plans of the paper's products in an edition.
        runs_folder: where each run has its folder.
        margin: differences of a metric up to it are equivalent.

    Returns:
        The columns :data:`COLUMNS`, and ``timed``. The first row of a claim has the comparison
        :data:`OVERALL` and repeats the numbers of the comparison that decided the verdict. The
        other comparisons follow.

    Raises:
        DirectrankError: there are no plans, they are of several papers or editions, or results are
            missing.
    """
    plans = list(plans)
    found = {(plan["edition"], plan["paper"]) for plan in plans}
    if len(found) != 1:
        raise ConfigError(
            f"expected plans of one edition and paper, not {sorted(found)}", "write the plans again"
        )
    ((edition, paper),) = found
    by_product = {plan["product"]: plan for plan in plans}
    published = published_claims()
    rows: list[dict[str, Any]] = []
    for claim in published[published["paper"] == paper].to_dict("records"):
        measured = claims_of(paper).get(claim["claim"])
        outcome = None
        if measured is not None and set(measured.needs) <= set(by_product):
            evidence: list[Evidence | None] = [
                gather(by_product[name], runs_folder) if name in by_product else None
                for name in measured.products
            ]
            if measured.compares is not None:
                outcome = compare(paper, measured.compares, evidence)
            else:
                outcome = call(paper, measured.function, *evidence)
        common = {"edition": edition, **claim}
        rows += [common | part for part in _rows(outcome, measured, margin)]
    frame = pd.DataFrame(rows).reindex(columns=[*COLUMNS, "timed"])
    return frame.assign(timed=frame["timed"].eq(True))


def _rows(outcome: Outcome | None, measured: Claim | None, margin: float) -> list[dict[str, Any]]:
    """The row :data:`OVERALL` and one row per finding, or what an untested claim lacks."""
    if outcome is None or measured is None:
        return [_unmeasured(_why_not(measured))]
    judged = judge(outcome.findings, margin, measured.own)
    verdict = conclude(outcome, judged)
    if verdict.decisive is None:
        return [_unmeasured(verdict.remark)]
    parts = [dict(row(item, margin)) for item in judged]
    overall = dict(row(verdict.decisive, margin)) | {
        "comparison": OVERALL,
        "verdict": verdict.verdict,
        "group": verdict.group,
        "dataset": verdict.datasets,
        "outcome": verdict.outcome,
        "remark": verdict.remark,
    }
    return [overall, *parts]


def _unmeasured(remark: str) -> dict[str, Any]:
    return {"comparison": OVERALL, "verdict": UNMEASURED, "remark": remark}


def _why_not(measured: Claim | None) -> str:
    """A sentence that says what a claim that was not tested lacks."""
    if measured is None:
        return "The study has no experiment that tests it."
    names = [*measured.needs] or [*measured.optional]
    joint = " and " if measured.needs else " or "
    return f"Testing it needs the runs behind {joint.join(names)}, which this edition lacks."


def write_claims(
    plan_files: Sequence[str | Path],
    runs_folder: str | Path,
    out: str | Path,
    margin: float,
) -> list[Path]:
    """Test the claims of a paper in an edition and write the verdicts.

    Args:
        plan_files: the plans of the paper's products (JSON).
        runs_folder: where each run has its folder.
        out: the file, e.g. ``paper_tables/demo/bruch2019/claims.csv``. The numbers of findings
            about measured times go to ``claims_times.csv`` beside it.
        margin: differences of a metric up to it are equivalent.

    Returns:
        The two files.
    """
    plans = [read_plan(file) for file in plan_files]
    return _write(evaluate(plans, runs_folder, margin), Path(out))


def merge(
    files: Sequence[str | Path],
    edition: str,
    out: str | Path,
) -> pd.DataFrame:
    """Merge the claims of single papers into the list of an edition, and write it.

    Args:
        files: the files that :func:`write_claims` wrote, one per paper.
        edition: its name.
        out: the file, e.g. ``paper_tables/demo/claims.csv``.

    Returns:
        Every published claim, in the published order; those of papers without a file count as not
        measured.

    Raises:
        DataError: a file belongs to another edition, or other code wrote it.
    """
    published = published_claims()
    frames = [read_claims(file) for file in files]
    for file, frame in zip(files, frames, strict=True):
        if set(frame["edition"]) - {edition}:
            raise DataError(f"its claims are not of the edition '{edition}'", file=file)
    known = {claim for frame in frames for claim in frame["claim"]}
    absent = published[~published["claim"].isin(known)]
    reasons = [
        _why_not(claims_of(paper).get(claim))
        for claim, paper in zip(absent["claim"], absent["paper"], strict=True)
    ]
    rest = absent.assign(
        edition=edition, comparison=OVERALL, verdict=UNMEASURED, remark=reasons, timed=False
    )
    merged = pd.concat([*frames, rest], ignore_index=True)
    place = {claim: number for number, claim in enumerate(published["claim"])}
    merged = merged[merged["claim"].isin(place)]
    merged = merged.sort_values("claim", key=lambda ids: ids.map(place), kind="stable")
    merged = merged.reindex(columns=[*COLUMNS, "timed"]).reset_index(drop=True)
    _write(merged.copy(), Path(out))
    return merged


def _write(claims: pd.DataFrame, out: Path) -> list[Path]:
    """Write ``claims`` to ``out`` and measured times to the file beside it."""
    timed = claims.pop("timed").eq(True)
    times = claims.loc[timed, [*_KEY, *MEASURED]]
    claims.loc[timed, MEASURED] = None
    paths = [out, out.with_name(out.stem + TIMES)]
    for path, frame in zip(paths, (claims, times), strict=True):
        write_csv(path, frame)
    return paths


def read_claims(path: str | Path) -> pd.DataFrame:
    """Read what :func:`write_claims` or :func:`merge` wrote: :data:`COLUMNS` and ``timed``.

    Measured times are filled in.

    Args:
        path: the file ``claims.csv``; ``claims_times.csv`` lies beside it.

    Raises:
        DataError: a file is missing, or its columns are not those that this code writes.
    """
    path = Path(path)
    beside = path.with_name(path.stem + TIMES)
    for file in (path, beside):
        if not file.is_file():
            raise DataError(
                "the file of claims is missing", "write it with `directrank claims`", file=file
            )
    claims = pd.read_csv(path, dtype={"outcome": "str"})  # also where no claim has one
    times = pd.read_csv(beside)
    if list(claims.columns) != list(COLUMNS):
        raise DataError(
            "other code wrote these claims, and their columns differ",
            "write them again with `directrank claims`",
            file=path,
        )
    measured = claims[_KEY].merge(times, on=_KEY, how="left", indicator=True)
    claims[MEASURED] = claims[MEASURED].combine_first(measured[MEASURED])[MEASURED]
    return claims.assign(timed=measured["_merge"].eq("both"))


def modules_of(paper: str) -> set[str]:
    """The modules of directrank that make the verdicts on the claims of ``paper``."""
    measured = claims_of(paper).values()
    functions = [function for claim in measured for function in claim.functions]
    modules = {__name__} | code_behind(paper, functions)
    for name in {name for claim in measured for name in claim.products}:
        modules |= computed_by(product(paper, name))
    return modules
