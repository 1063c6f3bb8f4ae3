"""Which of the papers' claims hold: each with its test, effect, interval, p value and verdict.

The claims are published material: ``claims.csv``, and ``more_claims.csv`` with what the papers say
beside it. A paper's package says how a claim is measured, in a dictionary ``CLAIMS``; what no
package measures, or no run of the edition covers, is listed as *not measured here*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from directrank.papers.shared.evidence import PUBLISHED, Dataset, Evidence, gather, read_published
from directrank.papers.shared.format import minus, p_value
from directrank.papers.shared.methods import Method, paired_values
from directrank.papers.shared.product import (
    TIMES,
    call,
    code_behind,
    computed_by,
    paper_module,
    product,
)
from directrank.papers.shared.tables import markdown_rows
from directrank.stats.intervals import Interval
from directrank.stats.tests import holm, paired_randomisation, welch
from directrank.system.errors import ConfigError
from directrank.system.io import read_json, write_csv, write_text
from directrank.system.registry import imported_modules

HOLDS = "holds"
FAILS = "does not hold"
UNCLEAR = "cannot tell"
UNMEASURED = "not measured here"

LEVEL = 0.05

#: By so much means that are equal may differ in floating point.
ROUNDING = 1e-12

#: The published lists of claims, in the order of the page.
LISTS = ("claims", "more_claims")

Expected = Literal["more", "same", "first"]
"""What a claim says of a difference: above zero, not significant, or at least not below zero."""

COLUMNS = (
    "edition",
    "claim",
    "paper",
    "statement",
    "where",
    "comparison",
    "dataset",
    "data",
    "sample",
    "test",
    "effect",
    "low",
    "high",
    "unit",
    "p_value",
    "p_holm",
    "verdict",
    "remark",
    "printed_numbers",
)

#: What a finding about measured times says in a file of its own: no two runs measure the same.
MEASURED = ["sample", "effect", "low", "high", "p_value", "p_holm", "remark"]
#: The columns that identify such a finding.
_KEY = ["claim", "comparison", "dataset"]


@dataclass(frozen=True)
class Finding:
    """One comparison that a claim makes.

    Attributes:
        comparison: what is compared, e.g. ``ApproxNDCG − RankNet, NDCG@5``; the effect is the
            first minus the second.
        expected: what the claim says of the effect.
        dataset: where it was measured.
        sample: what the test counts, e.g. ``10 against 10 trials, 6117 queries``.
        test: the test or tests; where there are two the larger p value counts.
        effect: the difference, in ``unit``.
        low: lower end of its 95 % interval.
        high: upper end.
        unit: e.g. ``NDCG (%)``.
        p_value: two-sided, before correction; NaN where the sample allows no test.
        timed: whether it is about measured times.
    """

    comparison: str
    expected: Expected
    dataset: Dataset
    sample: str
    test: str
    effect: float
    low: float
    high: float
    unit: str
    p_value: float
    timed: bool = False

    @classmethod
    def of(cls, estimate: Interval, p_value: float, **facts: Any) -> Finding:
        """A finding whose effect is an interval's mean, from its other attributes."""
        return cls(
            effect=estimate.mean, low=estimate.low, high=estimate.high, p_value=p_value, **facts
        )


@dataclass(frozen=True)
class Outcome:
    """The outcome of measuring one claim.

    Attributes:
        findings: at least one.
        missing: parts of the claim that were not run, in words; then it can fail but not hold.
        remark: anything else that a reader must know.
    """

    findings: Sequence[Finding]
    missing: Sequence[str] = ()
    remark: str = ""


@dataclass(frozen=True)
class Claim:
    """How a claim is measured.

    Attributes:
        needs: the products of the paper from whose evidence it is measured.
        function: ``module:function`` below the paper's package; imported when it is evaluated. It
            takes the evidence of each product and returns an :class:`Outcome`, or None where
            nothing of it was run.
        optional: further products, whose evidence follows; None where an edition does not draw one.
            With no ``needs``, any of them will do.
        options: further arguments of the function.
    """

    needs: tuple[str, ...]
    function: str
    optional: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def has_runs(evidence: Evidence | None, *experiments: str) -> bool:
    """Whether something was run of one of the experiments."""
    return evidence is not None and any(evidence.experiments.get(name) for name in experiments)


def difference_over_trials(a: np.ndarray, b: np.ndarray) -> tuple[Interval, float]:
    """Mean of a minus mean of b with its Welch 95 % interval, and the p value, over trials.

    Half width and p value are NaN where either side is a single trial.
    """
    difference, n = float(np.mean(a) - np.mean(b)), min(len(a), len(b))
    if n < 2:
        return Interval(difference, math.nan, n, 1 - LEVEL), math.nan
    half_width = 0.0
    if np.ptp(a) or np.ptp(b):
        welch_interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(1 - LEVEL)
        half_width = float(welch_interval.high - welch_interval.low) / 2
    return Interval(difference, half_width, n, 1 - LEVEL), welch(a, b).p_value


def over_trials_and_queries(
    a: Method,
    b: Method,
    metric: str,
    stream: np.random.Generator,
    split: str = "test",
    *,
    heading: str,
    expected: Expected,
) -> Finding:
    """One method minus another, in per cent: the larger p value of two tests.

    Welch's test over trials gives effect and interval, beside a paired one over the queries.

    Args:
        a, b: the methods.
        metric: column of the results.
        stream: of the randomisation test.
        split: where they are compared.
        heading: the metric in print.
        expected: what is claimed.

    Raises:
        DataError: the methods were not evaluated on the same queries.
    """
    of_a, of_b = paired_values([a, b], metric, split)
    trials = [100 * method.trial_means(metric, split) for method in (a, b)]
    estimate, p_trials = difference_over_trials(trials[0], trials[1])
    p_queries = paired_randomisation(of_a, of_b, stream).p_value
    return Finding.of(
        estimate,
        float(np.maximum(p_trials, p_queries)),
        comparison=f"{a.label} − {b.label}, {heading}",
        expected=expected,
        dataset=a.dataset,
        sample=f"{len(trials[0])} against {len(trials[1])} trials, {len(of_a)} queries"
        + (f" of {len(a.runs)} folds" if len(a.runs) > 1 else ""),
        test="Welch's t test over trials and paired randomisation test over queries, the larger p",
        unit="NDCG (%)",
    )


def without_sampling(comparison: str, effect: float, **facts: Any) -> Finding:
    """A finding about something computed exactly, so that no chance is in it.

    Its interval is the effect itself; its p value is 1 where the effect is 0, else 0.

    Args:
        comparison, effect: of the finding.
        facts: its other attributes.
    """
    return Finding.of(
        Interval(effect, 0.0, 1, 1 - LEVEL),
        float(effect == 0),
        comparison=comparison,
        test="computed, nothing is left to chance",
        **facts,
    )


def evaluate(
    plans: Mapping[str, Mapping[str, Any]],
    runs_folder: str | Path,
    published_folder: str | Path = PUBLISHED,
) -> pd.DataFrame:
    """Every published claim with its outcome.

    Args:
        plans: the plans of an edition's products, by any name; each says its paper and product.
        runs_folder: where each run has its folder.
        published_folder: the folder of published values.

    Returns:
        The columns :data:`COLUMNS`, and ``timed``. The first row of a claim has the comparison
        ``overall``; it repeats the numbers of the comparison that decided the verdict. The others
        follow.

    Raises:
        DirectrankError: plans of several editions or none, or results that are missing.
    """
    editions = {plan["edition"] for plan in plans.values()}
    if len(editions) != 1:
        raise ConfigError(f"plans of one edition are needed, not {sorted(editions)}", "plan again")
    edition = editions.pop()
    by_product = {(plan["paper"], plan["product"]): plan for plan in plans.values()}
    rows: list[dict[str, Any]] = []
    lists = [read_published(Path(published_folder), name) for name in LISTS]
    for claim in pd.concat(lists, ignore_index=True).itertuples():
        common = {
            "edition": edition,
            "claim": claim.id,
            "paper": claim.paper,
            "statement": claim.claim,
            "where": claim.where,
            "printed_numbers": claim.status_in_printed_numbers,
        }
        outcome = None
        measured = claims_of(claim.paper).get(claim.id)
        if measured is not None:
            plans_of = [by_product.get((claim.paper, name)) for name in measured.needs]
            if all(plan is not None for plan in plans_of):
                plans_of += [by_product.get((claim.paper, name)) for name in measured.optional]
                evidence: list[Evidence | None] = [
                    None if plan is None else gather(plan, runs_folder, published_folder)
                    for plan in plans_of
                ]
                outcome = call(claim.paper, measured.function, *evidence, **measured.options)
        rows += [common | row for row in _rows(outcome, _why_not(measured))]
    frame = pd.DataFrame(rows).reindex(columns=[*COLUMNS, "timed"])
    return frame.assign(timed=frame["timed"].eq(True))


def write_claims(
    plan_files: Sequence[str | Path],
    runs_folder: str | Path,
    out_stem: str | Path,
    published_folder: str | Path = PUBLISHED,
) -> list[Path]:
    """Evaluate the claims of an edition and write them as ``<out_stem>.csv`` and ``.md``.

    The numbers of findings about measured times go to ``<out_stem>_times.csv``.

    Args:
        plan_files: the plans of the edition's products (JSON).
        runs_folder: where each run has its folder.
        out_stem: the files' path without ending, e.g. ``paper_tables/demo/claims``.
        published_folder: the folder of published values.

    Returns:
        The three files.
    """
    plans = {str(file): read_json(file) for file in plan_files}
    claims = evaluate(plans, runs_folder, published_folder)
    text = markdown(claims)
    stem = Path(out_stem)
    paths = [stem.with_name(stem.name + suffix) for suffix in (".csv", ".md", TIMES)]
    timed = claims.pop("timed")
    times = claims.loc[timed, [*_KEY, *MEASURED]]
    claims.loc[timed, MEASURED] = None
    write_csv(paths[0], claims)
    write_text(paths[1], text)
    write_csv(paths[2], times)
    return paths


def read_claims(path: str | Path) -> pd.DataFrame:
    """What :func:`write_claims` wrote: the columns :data:`COLUMNS`, measured times filled in.

    Args:
        path: the file ``….csv``; ``…_times.csv`` lies beside it.
    """
    path = Path(path)
    claims, times = pd.read_csv(path), pd.read_csv(path.with_name(path.stem + TIMES))
    measured = claims[_KEY].merge(times, on=_KEY, how="left", validate="many_to_one")
    claims[MEASURED] = claims[MEASURED].combine_first(measured[MEASURED])
    return claims


def markdown(claims: pd.DataFrame) -> str:
    """The claims as a page: what came out in short, all verdicts, then each measured claim."""
    overall = claims[claims["comparison"] == "overall"]
    papers = list(dict.fromkeys(overall["paper"]))
    lines = ["# The papers' claims", "", *_in_short(overall, papers), *HOW_TO_READ]
    columns = ["claim", "statement", "verdict here", "data", "the printed numbers"]
    for paper in papers:
        rows = [
            [
                row.claim,
                row.statement,
                f"**{row.verdict}**" if row.verdict != UNMEASURED else row.verdict,
                "" if row.verdict == UNMEASURED else _where(row.data, row.dataset),
                row.printed_numbers,
            ]
            for row in overall[overall["paper"] == paper].itertuples()
        ]
        lines += [f"## {paper}", "", *markdown_rows(columns, rows, left=len(columns)), ""]
    lines += ["## Behind the verdicts", ""]
    for row in overall[overall["verdict"] != UNMEASURED].itertuples():
        part = claims[(claims["claim"] == row.claim) & (claims["comparison"] != "overall")]
        lines += [f"### {row.claim}: {row.statement}", ""]
        lines += [f"**{row.verdict}** ({row.paper}, {row.where}). {row.remark}".rstrip(), ""]
        lines += [*_details(part), ""]
    absent = overall[overall["verdict"] == UNMEASURED]
    if len(absent):
        lines += ["## Not measured here", ""]
        for row in absent.itertuples():
            text = f"- {row.claim} ({row.paper}, {row.where}): {row.statement}. {row.remark}"
            lines.append(text.rstrip())
    return "\n".join(lines).rstrip() + "\n"


#: What the page says of its verdicts.
HOW_TO_READ = (
    f"*{HOLDS.capitalize()}*: every comparison came out as the claim has it, a claimed difference "
    f"by more than chance. *{FAILS.capitalize()}*: at least one came out the other way, by more "
    f"than chance. *{UNCLEAR.capitalize()}*: none did, but at least one could be chance, or was "
    "not run. A difference counts where p < 0.05 after Holm's correction within the claim. That "
    "something is the best (*claimed: not below zero*) is a claim about the order of means, and "
    "holds where they come out in that order; p says whether that could be chance. A "
    "verdict speaks of the data named beside it; a stand-in is generated in the shape of the "
    "paper's data, and its verdict is no evidence about the paper. C01 to C23 are the claims that "
    "the study set out with, D01 and on are others that the papers make.",
    "",
)


def _in_short(overall: pd.DataFrame, papers: Sequence[str]) -> list[str]:
    """Counts of the verdicts in words, and a table of them per paper."""
    edition = overall["edition"].iloc[0]
    counts = overall["verdict"].value_counts()
    hold, fail, unclear, absent = (
        int(counts.get(verdict, 0)) for verdict in (HOLDS, FAILS, UNCLEAR, UNMEASURED)
    )
    measured = overall[overall["verdict"] != UNMEASURED]
    standins = int(measured["data"].astype(str).str.contains("stand-in").sum())
    in_doubt = overall.loc[overall["printed_numbers"].str.contains("FALSE"), "claim"]
    text = (
        f"**Edition {edition}: of {len(overall)} claims {_verb(hold, 'holds', 'hold')}, "
        f"{_verb(fail, 'does not', 'do not')}, {unclear} cannot be told, "
        f"{_verb(absent, 'was', 'were')} not measured.**"
    )
    if len(measured):
        text += (
            f" Of the {len(measured)} that were measured, {_verb(standins, 'rests', 'rest')} on "
            f"generated stand-ins in whole or in part, {len(measured) - standins} on real data or "
            "on what the paper itself computes."
        )
    if len(in_doubt):
        text += f" The papers' own tables contradict {', '.join(in_doubt)} at least in part."
    columns = ["paper", "holds", "does not hold", "cannot tell", "not measured here"]
    rows = []
    for paper in papers:
        cells = [paper]
        for verdict in (HOLDS, FAILS, UNCLEAR, UNMEASURED):
            ids = overall["claim"][(overall["paper"] == paper) & (overall["verdict"] == verdict)]
            cells.append(f"{len(ids)}: {', '.join(ids)}" if len(ids) else "–")
        rows.append(cells)
    return [text, "", *markdown_rows(columns, rows, left=len(columns)), ""]


def _verb(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _where(kind: str, dataset: str) -> str:
    """The kind of data; of real ones which."""
    return f"real: {dataset}" if kind == "real" else kind


def modules_of(papers: Iterable[str]) -> list[str]:
    """The modules of directrank that the verdicts on the claims of ``papers`` depend on, sorted."""
    modules = set(imported_modules(__name__))
    for paper in papers:
        measured = claims_of(paper).values()
        modules |= code_behind(paper, (claim.function for claim in measured))
        for name in {name for claim in measured for name in (*claim.needs, *claim.optional)}:
            modules |= computed_by(product(paper, name))
    return sorted(modules)


def claims_of(paper: str) -> Mapping[str, Claim]:
    """How the claims of ``paper`` are measured, by their ids; none for an unknown paper."""
    if find_spec(f"directrank.papers.{paper}") is None:
        return {}
    return getattr(paper_module(paper), "CLAIMS", {})


def _why_not(measured: Claim | None) -> str:
    """What a claim that was not measured lacks."""
    if measured is None:
        return ""
    products = [*measured.needs] or [*measured.optional]
    joint = " and " if measured.needs else " or "
    return f"It takes the runs behind {joint.join(products)}, which this edition lacks."


def _rows(outcome: Outcome | None, why_not: str = "") -> list[dict[str, Any]]:
    """The row ``overall`` and one row per finding; of a claim not measured what it lacks."""
    if outcome is None:
        return [{"comparison": "overall", "verdict": UNMEASURED, "remark": why_not}]
    p_values = np.array([finding.p_value for finding in outcome.findings])
    corrected = np.full(len(p_values), math.nan)
    tested = ~np.isnan(p_values)
    if tested.any():
        corrected[tested] = holm(p_values[tested])
    rows = []
    for finding, p_holm in zip(outcome.findings, corrected, strict=True):
        rows.append(
            vars(finding)
            | {
                "dataset": finding.dataset.title,
                "data": finding.dataset.kind,
                "p_holm": p_holm,
                "verdict": _verdict(finding, p_holm),
                "remark": f"claimed: {_CLAIMED[finding.expected]}",
            }
        )
    return [_overall(outcome, rows), *rows]


_CLAIMED = {"more": "above zero", "same": "no significant difference", "first": "not below zero"}


def _verdict(finding: Finding, p_holm: float) -> str:
    if finding.expected == "first" and finding.effect > -ROUNDING:
        return HOLDS
    if math.isnan(p_holm):
        return UNCLEAR
    significant = p_holm < LEVEL
    if finding.expected == "same":
        # Correction makes it easier to see no difference, so that verdict is given without it.
        return FAILS if significant else HOLDS if finding.p_value >= LEVEL else UNCLEAR
    if not significant:
        return UNCLEAR
    return HOLDS if finding.effect > 0 else FAILS


def _overall(outcome: Outcome, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The verdict of the whole claim, with the numbers of the comparison that decided it."""
    verdicts = [row["verdict"] for row in rows]
    verdict = FAILS if FAILS in verdicts else UNCLEAR if UNCLEAR in verdicts else HOLDS
    decisive, _ = max(
        (
            pair
            for pair in zip(rows, outcome.findings, strict=True)
            if pair[0]["verdict"] == verdict
        ),
        key=lambda pair: _weight(pair[0], pair[1], verdict),
    )
    remarks = [f"Decided by: {decisive['comparison']}, on {decisive['dataset']}.", outcome.remark]
    if outcome.missing:
        if verdict == HOLDS:
            verdict = UNCLEAR
            remarks[0] = "What was run supports the claim, but a part of it was not run."
        remarks.append(f"Not run here: {', '.join(outcome.missing)}.")
    return dict(decisive) | {
        "comparison": "overall",
        "dataset": ", ".join(dict.fromkeys(row["dataset"] for row in rows)),
        "data": ", ".join(dict.fromkeys(row["data"] for row in rows)),
        "verdict": verdict,
        "remark": " ".join(remark for remark in remarks if remark),
    }


def _weight(row: Mapping[str, Any], finding: Finding, verdict: str) -> float:
    """How much a comparison decides: a refuted claim rests on its clearest contradiction, any
    other on its weakest support."""
    p_value = 1.0 if math.isnan(row["p_holm"]) else row["p_holm"]
    support_is_small_p = finding.expected != "same"
    return p_value if support_is_small_p and verdict != FAILS else 1 - p_value


def _details(part: pd.DataFrame) -> list[str]:
    columns = ["comparison", "data", "effect", "95% interval", "p", "p (Holm)", "verdict"]
    rows = []
    for row in part.itertuples():
        rows.append(
            [
                row.comparison,
                row.dataset,
                minus(f"{row.effect:+.4g} {row.unit}".strip()),
                "" if math.isnan(row.low) else minus(f"{row.low:.4g} to {row.high:.4g}"),
                p_value(row.p_value),
                p_value(row.p_holm),
                f"{row.verdict} ({row.remark})",
            ]
        )
    how = dict.fromkeys(zip(part["sample"], part["test"], strict=True))
    note = " ".join(f"{sample}: {test}." for sample, test in how)
    return [*markdown_rows(columns, rows, left=2), "", note]
