"""Qin2010's claims that are no comparisons of methods."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pandas as pd

from directrank.papers.qin2010.accuracy import MAP_RATIOS, OWN_AP, map_methods
from directrank.papers.qin2010.comparisons import AP, OWN
from directrank.papers.qin2010.training import (
    SYMBOLS,
    TABLE5_METRICS,
    best_in_training,
    best_of,
    candidates,
    epoch_seconds,
    error_curves,
    softrank_printed,
    softrank_training,
)
from directrank.papers.shared.evidence import Evidence, FinishedRun, has_runs
from directrank.papers.shared.findings import (
    MORE,
    NOT_MORE,
    Finding,
    Measurement,
    Outcome,
    computed,
    mean_of,
    value,
    welch_over_trials,
)
from directrank.papers.shared.format import counted
from directrank.papers.shared.methods import paired_values
from directrank.stats.estimates import of_paired_ratio, of_ratio

#: The accuracies that the text gives: for every α, and at α = 100 (section 5.2).
ACCURACY, ACCURACY_AT_100 = 0.95, 0.98

#: The factor by which SoftRank's iteration must be slower.
FASTER = 5.0

#: The remark on a claim that is tested on OHSUMED because its own data set was not run.
ELSEWHERE = "Measured on OHSUMED (grades above 0 are relevant) instead of {}."


def claim_accuracy(evidence: Evidence | None, ohsumed: Evidence | None = None) -> Outcome | None:
    """AP's approximation is more than 95 % accurate for every α, more than 98 % at 100 (C06).

    Args:
        evidence: that of Figure 1a; None if the edition does not draw it.
        ohsumed: that of the same figure on OHSUMED, which is used if nothing of the other was run.
    """
    run, remark = _error_run(evidence, ohsumed, "ap_error_alpha")
    if run is None:
        return None
    curves = {
        alpha: error_curves(history) for alpha, history in candidates(run, "loss.alpha").items()
    }
    findings = [_accuracy(run, errors, alpha, ACCURACY) for alpha, errors in curves.items()]
    if 100.0 in curves:
        findings.append(_accuracy(run, curves[100.0], 100.0, ACCURACY_AT_100))
    missing = [] if 100.0 in curves else ["α = 100"]
    lost = "The paper's values of α other than 100 are lost; the smaller ones here are our choice."
    return Outcome(findings, missing, f"{remark} {lost}".lstrip())


def claim_beta(evidence: Evidence | None, ohsumed: Evidence | None) -> Outcome | None:
    """AP's approximation gets more accurate as β grows (D03); arguments as for C06."""
    run, remark = _error_run(evidence, ohsumed, "ap_error_beta")
    return None if run is None else Outcome(_falling_errors(run, "loss.beta"), (), remark)


def claim_ndcg_accuracy(evidence: Evidence) -> Outcome | None:
    """NDCG's approximation gets more accurate as α grows (D04)."""
    runs = evidence.runs("ndcg_error")
    return Outcome(_falling_errors(runs[0], "loss.alpha")) if runs else None


def _error_run(
    evidence: Evidence | None, ohsumed: Evidence | None, experiment: str
) -> tuple[FinishedRun | None, str]:
    """The run of an experiment on TD2004, or else on OHSUMED, and a remark on it."""
    if evidence is not None and has_runs(evidence, experiment):
        return evidence.runs(experiment)[0], ""
    if ohsumed is not None and has_runs(ohsumed, f"{experiment}_ohsumed"):
        return ohsumed.runs(f"{experiment}_ohsumed")[0], ELSEWHERE.format("TD2004")
    return None, ""


def _falling_errors(run: FinishedRun, setting: str) -> list[Finding]:
    """Findings on whether each value of a steepness has a smaller error than the next smaller
    value.

    The error is the largest one during training; values are paired by random start.
    """
    largest = {
        value: error_curves(history).max(axis=0).to_numpy()
        for value, history in candidates(run, setting).items()
    }
    symbol = SYMBOLS[setting]
    return [
        Finding(
            comparison=f"largest error at {symbol} = {low:g} − at {symbol} = {high:g}",
            claimed=MORE,
            dataset=run.dataset,
            unit="error",
            measurement=mean_of(
                largest[low] - largest[high],
                f"{len(largest[low])} random starts",
                "paired t test over random starts of each one's largest error",
            ),
        )
        for low, high in itertools.pairwise(largest)
    ]


def _accuracy(run: FinishedRun, errors: pd.DataFrame, alpha: float, least: float) -> Finding:
    lowest = 1 - errors.max(axis=0).to_numpy()
    return Finding(
        comparison=f"lowest accuracy in training, α = {alpha:g}, β = 10, against {least:g}",
        claimed=value(low=least),
        dataset=run.dataset,
        unit="accuracy",
        measurement=mean_of(lowest, f"{len(lowest)} random starts", "t test over random starts"),
    )


def claim_map_ratios(evidence: Evidence) -> Outcome | None:
    """ApproxAP's MAP on TD2003 is 1.15 times SVMmap's and 1.2 times AdaRank.MAP's (C07)."""
    methods = map_methods(evidence, "td2003_methods")
    rivals = [name for name in MAP_RATIOS if name in methods]
    if OWN_AP not in methods or not rivals:
        return None
    findings = []
    for rival in rivals:
        own, theirs = paired_values([methods[OWN_AP], methods[rival]], AP)
        ratio = of_paired_ratio(own, theirs)
        measurement = Measurement(
            "t test of the ratio of means, paired by query",
            f"{len(own)} queries of {counted(len(methods[OWN_AP].runs), 'fold')}",
            ratio,
            ratio.p_differs(1.0),
        )
        claimed = value(low=MAP_RATIOS[rival])
        name = f"MAP, {OWN_AP} ÷ {rival}"
        findings.append(Finding(name, claimed, methods[OWN_AP].dataset, "times", measurement))
    return Outcome(findings, [name for name in MAP_RATIOS if name not in methods])


def claim_training_accuracy(evidence: Evidence) -> Outcome | None:
    """The best training NDCG@5 of ApproxNDCG is above the best of SoftRank (D08).

    The statement is about the best value of Table 5, which some α reaches with all starts. One
    value above suffices, and it was found without chance. It is compared with SoftRank's printed
    value, and with SoftRank trained here.
    """
    runs = evidence.runs("random_starts")
    if not runs:
        return None
    starts = runs[0].n_trials
    levels = {
        alpha: float(best_of(history, starts, TABLE5_METRICS["letor"])[0])
        for alpha, history in candidates(runs[0], "loss.alpha").items()
    }
    alpha = max(levels, key=lambda name: levels[name])
    rivals = {"SoftRank's as printed": softrank_printed(evidence)}
    trained = softrank_training(evidence)
    if trained is not None:
        rivals["SoftRank's here"] = best_in_training(trained, TABLE5_METRICS["letor"])[0]
    findings = [
        Finding(
            comparison=f"best training NDCG@5 of {starts} starts, α = {alpha:g} − {rival}",
            claimed=MORE,
            dataset=runs[0].dataset,
            unit="NDCG",
            measurement=computed(levels[alpha] - level, f"{len(levels)} α of {starts} starts"),
        )
        for rival, level in rivals.items()
    ]
    missing = [] if trained is not None else ["SoftRank trained here"]
    return Outcome(findings, missing, "LETOR's discount.")


def claim_restarts(evidence: Evidence) -> Outcome | None:
    """With one start α = 300 is no better than 50 and 100; with a hundred, 300 > 100 > 50 (C09)."""
    runs = evidence.runs("random_starts")
    if not runs:
        return None
    histories = candidates(runs[0], "loss.alpha")
    if not {50.0, 100.0, 300.0} <= set(histories):
        return None
    most = runs[0].n_trials
    pairs = [
        (300.0, 50.0, 1, NOT_MORE),
        (300.0, 100.0, 1, NOT_MORE),
        (300.0, 100.0, most, MORE),
        (100.0, 50.0, most, MORE),
    ]
    findings = []
    for first, second, k, claimed in pairs:
        a, b = (best_of(histories[alpha], k, TABLE5_METRICS["letor"]) for alpha in (first, second))
        test = replace(
            welch_over_trials(a, b),
            test="Welch's t test over groups of random starts, none for single groups",
            sample=f"{len(a)} against {len(b)} groups of {k} random starts",
        )
        findings.append(
            Finding(
                comparison=f"α = {first:g} − α = {second:g} with K = {k}, training NDCG@5",
                claimed=claimed,
                dataset=runs[0].dataset,
                unit="NDCG",
                measurement=test,
            )
        )
    missing = [] if most >= 100 else [f"more than {most} random starts"]
    return Outcome(findings, missing)


def claim_faster(evidence: Evidence) -> Outcome | None:
    """SoftRank's iteration takes more than five times as long as ApproxNDCG's (C10)."""
    runs = {run.setting("method"): run for run in evidence.runs("iteration_time")}
    if not {OWN, "SoftRank"} <= set(runs):
        return None
    slow, fast = epoch_seconds(runs["SoftRank"]), epoch_seconds(runs[OWN])
    ratio = of_ratio(slow, fast)
    finding = Finding(
        comparison=f"seconds per epoch, SoftRank ÷ {OWN}, against {FASTER:g}",
        claimed=value(low=FASTER),
        dataset=runs[OWN].dataset,
        unit="times",
        measurement=Measurement(
            "Welch's t test over the epochs' logarithms",
            f"{len(slow)} against {len(fast)} epochs",
            ratio,
            ratio.p_differs(1.0),
        ),
        timed=True,
    )
    return Outcome([finding], (), "SoftRank runs its recursion over all documents, as published.")
