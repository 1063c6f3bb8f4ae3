"""How Qin2010's claims are measured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import stats

from directrank.papers.qin2010.map import MAP_RATIOS, OWN_AP, TABLE3_PARTS, map_methods
from directrank.papers.qin2010.methods import (
    AP,
    NDCG1_GAINS,
    OWN,
    ROUNDING,
    TABLE4_METRICS,
    compare,
    methods_of,
    table4_order,
)
from directrank.papers.qin2010.training import (
    SOFTRANK_TRAINING,
    SYMBOLS,
    TABLE5_METRICS,
    best_of,
    candidates,
    epoch_seconds,
    error_curves,
)
from directrank.papers.shared.claims import (
    Expected,
    Finding,
    Outcome,
    difference_over_trials,
    has_runs,
)
from directrank.papers.shared.evidence import Evidence, PlannedRun
from directrank.papers.shared.format import signed
from directrank.papers.shared.methods import Method, Paired, paired_test, paired_values
from directrank.stats.intervals import mean_interval

#: Accuracy that the text gives: for every α, and at α = 100 (section 5.2).
ACCURACY, ACCURACY_AT_100 = 0.95, 0.98

#: How many times as long SoftRank's iteration must take.
FASTER = 5.0


#: Where a claim about another data set is measured when that one is not run.
ELSEWHERE = "Measured on OHSUMED, grades above 0 relevant, in the place of {}."


def claim_accuracy(evidence: Evidence | None, ohsumed: Evidence | None = None) -> Outcome | None:
    """AP's approximation is off by less than 5 % for every α, by less than 2 % at 100 (C06).

    Args:
        evidence: of Figure 1a; None where the edition does not draw it.
        ohsumed: of the same on OHSUMED, which counts where nothing was run of the other.
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
    lost = "The paper's values of α other than 100 are lost; the smaller ones here are a choice."
    return Outcome(findings, missing, f"{remark} {lost}".lstrip())


def claim_beta(evidence: Evidence | None, ohsumed: Evidence | None) -> Outcome | None:
    """AP's approximation gets more accurate as β grows (D03); arguments as of C06."""
    run, remark = _error_run(evidence, ohsumed, "ap_error_beta")
    return None if run is None else Outcome(_falling_errors(run, "loss.beta"), (), remark)


def claim_ndcg_accuracy(evidence: Evidence) -> Outcome | None:
    """NDCG's approximation gets more accurate as α grows (D04)."""
    runs = evidence.runs("ndcg_error")
    return Outcome(_falling_errors(runs[0], "loss.alpha")) if runs else None


def _error_run(
    evidence: Evidence | None, ohsumed: Evidence | None, experiment: str
) -> tuple[PlannedRun | None, str]:
    """The run of an experiment on TD2004, or else on OHSUMED, and what must be said of it."""
    if evidence is not None and has_runs(evidence, experiment):
        return evidence.runs(experiment)[0], ""
    if ohsumed is not None and has_runs(ohsumed, f"{experiment}_ohsumed"):
        return ohsumed.runs(f"{experiment}_ohsumed")[0], ELSEWHERE.format("TD2004")
    return None, ""


def _falling_errors(run: PlannedRun, setting: str) -> list[Finding]:
    """Whether each value of a steepness has a smaller error than the one below it.

    The error is the largest while training; values are paired by their random start.
    """
    largest = {
        value: error_curves(history).max(axis=0).to_numpy()
        for value, history in candidates(run, setting).items()
    }
    symbol = SYMBOLS[setting]
    findings = []
    for low, high in itertools.pairwise(largest):
        name = f"largest error at {symbol} = {low:g} − at {symbol} = {high:g}"
        test = "paired t test over random starts of each one's largest error"
        findings.append(_over_starts(name, run, largest[low] - largest[high], test, unit="error"))
    return findings


def _over_starts(
    comparison: str,
    run: PlannedRun,
    values: np.ndarray,
    test: str,
    *,
    unit: str,
    starts: str = "random starts",
) -> Finding:
    """Whether the mean of ``values``, one per start of ``run``, is above zero, by a t test."""
    varies = len(values) > 1 and np.ptp(values) > 0
    return Finding.of(
        mean_interval(values),
        float(stats.ttest_1samp(values, 0.0).pvalue) if varies else math.nan,
        comparison=comparison,
        expected="more",
        dataset=run.dataset,
        sample=f"{len(values)} {starts}",
        test=test,
        unit=unit,
    )


def _accuracy(run: PlannedRun, errors: pd.DataFrame, alpha: float, least: float) -> Finding:
    room = 1 - least - errors.max(axis=0).to_numpy()
    name = f"lowest accuracy in training − {least:g}, α = {alpha:g}, β = 10"
    test = "t test over random starts of each one's largest error"
    return _over_starts(name, run, room, test, unit="accuracy")


def claim_map_ratios(evidence: Evidence) -> Outcome | None:
    """ApproxAP's MAP on TD2003 is 1.15 times SVMmap's and 1.2 times AdaRank.MAP's (C07)."""
    methods = map_methods(evidence, "td2003_methods")
    rivals = [name for name in MAP_RATIOS if name in methods]
    if OWN_AP not in methods or not rivals:
        return None
    findings, ratios = [], []
    for rival in rivals:
        own, theirs = paired_values([methods[OWN_AP], methods[rival]], AP)
        stream = ("qin2010", "table3", OWN_AP, rival)
        paired = paired_test(own, MAP_RATIOS[rival] * theirs, stream)
        name = f"{OWN_AP} − {MAP_RATIOS[rival]:g} × {rival}, MAP"
        findings.append(_over_queries(name, methods[OWN_AP], paired, "AP"))
        ratio = methods[OWN_AP].mean(AP) / methods[rival].mean(AP)
        ratios.append(f"{ratio:.3f} times {rival}'s")
    missing = [name for name in MAP_RATIOS if name not in methods]
    return Outcome(findings, missing, f"{OWN_AP}'s MAP is {' and '.join(ratios)}.")


def claim_best(evidence: Evidence) -> Outcome | None:
    """ApproxNDCG best of the five of Table 4 at every rank, with LETOR's discount (C08)."""
    order = table4_order(evidence)
    methods = methods_of(evidence, "ohsumed_methods")
    rivals = [name for name in order if name != OWN and name in methods]
    if OWN not in methods or not rivals:
        return None
    findings = [
        _paired(methods, OWN, rival, metric, heading, "NDCG")
        for rival in rivals
        for heading, (metric, _) in TABLE4_METRICS.items()
    ]
    ahead = sum(finding.effect > 0 for finding in findings)
    remark = f"{OWN} has the higher mean in {ahead} of {len(findings)} comparisons."
    return Outcome(findings, [name for name in order if name not in methods], remark)


def claim_map_order(evidence: Evidence) -> Outcome | None:
    """ApproxAP above Ranking SVM and ListNet on TD2003, about as good on TD2004 (D05)."""
    parts: dict[str, Expected] = {"td2003_methods": "more", "td2004_methods": "same"}
    return _pairs(evidence, parts, (OWN_AP,), ("Ranking SVM", "ListNet"), TABLE3_PARTS)


def claim_direct_baselines(evidence: Evidence | None, ohsumed: Evidence | None) -> Outcome | None:
    """AdaRank.MAP and SVMmap are not as good as Ranking SVM and ListNet (D06).

    Args:
        evidence: of Table 3; None where the edition does not make it.
        ohsumed: of the pairs on OHSUMED, which count where nothing was run of the other.
    """
    better, worse = ("Ranking SVM", "ListNet"), ("AdaRank.MAP", "SVMmap")
    if evidence is not None and has_runs(evidence, *TABLE3_PARTS):
        parts: dict[str, Expected] = dict.fromkeys(TABLE3_PARTS, "more")
        return _pairs(evidence, parts, better, worse, TABLE3_PARTS)
    if ohsumed is None:
        return None
    methods = methods_of(ohsumed, "ohsumed_methods", "ohsumed_map_methods")
    pairs = [(a, b) for a in better for b in worse if {a, b} <= methods.keys()]
    findings = [_paired(methods, a, b, AP, "MAP", "AP") for a, b in pairs]
    remark = ELSEWHERE.format("TD2003 and TD2004")
    return Outcome(findings, (), remark) if findings else None


def _pairs(
    evidence: Evidence,
    parts: Mapping[str, Expected],
    first: tuple[str, ...],
    second: tuple[str, ...],
    titles: Mapping[str, str],
) -> Outcome | None:
    """Each of ``first`` against each of ``second`` in MAP, per experiment with what is claimed."""
    findings, missing = [], []
    for experiment, expected in parts.items():
        methods = map_methods(evidence, experiment)
        for a, b in itertools.product(first, second):
            if {a, b} <= methods.keys():
                heading = f"MAP on {titles[experiment]}"
                findings.append(_paired(methods, a, b, AP, heading, "AP", expected))
            else:
                missing.append(f"{a} against {b} on {titles[experiment]}")
    return Outcome(findings, missing) if findings else None


def claim_gains(evidence: Evidence) -> Outcome | None:
    """ApproxNDCG's gains in NDCG@1 over three methods of Table 4 (D07).

    A gain of 0.08 is printed to two decimals, so 0.075 would do.
    """
    methods = methods_of(evidence, "ohsumed_methods")
    metric = TABLE4_METRICS["NDCG@1"][0]
    rivals = [name for name in NDCG1_GAINS if name in methods]
    if OWN not in methods or not rivals:
        return None
    findings = []
    for rival in rivals:
        least = NDCG1_GAINS[rival] - ROUNDING
        own, theirs = paired_values([methods[OWN], methods[rival]], metric)
        paired = paired_test(own, theirs + least, ("qin2010", "claims", "gain", rival))
        name = f"{OWN} − {rival} − {least:g}, NDCG@1"
        findings.append(_over_queries(name, methods[OWN], paired, "NDCG"))
    missing = [name for name in NDCG1_GAINS if name not in methods]
    gains = "; ".join(
        f"{rival} {signed(methods[OWN].mean(metric) - method.mean(metric), 3)}"
        for rival, method in methods.items()
        if rival in rivals
    )
    return Outcome(findings, missing, f"The gains here: {gains}.")


def claim_training_accuracy(evidence: Evidence) -> Outcome | None:
    """The best training NDCG@5 of ApproxNDCG is above what SoftRank's is printed as (D08)."""
    runs = evidence.runs("random_starts")
    if not runs:
        return None
    printed = evidence.published("qin2010_text_values").set_index("quantity")["value"]
    softrank = float(printed[SOFTRANK_TRAINING])
    starts = min(10, runs[0].n_trials)
    levels = {
        alpha: best_of(history, starts, TABLE5_METRICS["letor"])
        for alpha, history in candidates(runs[0], "loss.alpha").items()
    }
    alpha = max(levels, key=lambda value: levels[value].mean())
    lead = levels[alpha] - softrank
    finding = _over_starts(
        f"training NDCG@5 at α = {alpha:g} − {softrank:g}",
        runs[0],
        lead,
        "t test over the groups against the printed value",
        unit="NDCG",
        starts=f"groups of {starts} random starts",
    )
    return Outcome([finding], (), "LETOR's discount; SoftRank's value is the printed one.")


def _paired(
    methods: Mapping[str, Method],
    first: str,
    second: str,
    metric: str,
    heading: str,
    unit: str,
    expected: Expected = "more",
) -> Finding:
    """One method against another in ``metric``, paired by query."""
    paired = compare(methods[first], methods[second], metric)
    return _over_queries(f"{first} − {second}, {heading}", methods[first], paired, unit, expected)


def _over_queries(
    comparison: str, method: Method, paired: Paired, unit: str, expected: Expected = "more"
) -> Finding:
    """A finding from values of the same queries, as many as ``method`` was tested on."""
    return Finding.of(
        paired.difference,
        paired.p_value,
        comparison=comparison,
        expected=expected,
        dataset=method.dataset,
        sample=f"{paired.difference.n} queries of {len(method.runs)} folds",
        test="paired randomisation test over the pooled queries; 95% t interval",
        unit=unit,
    )


def claim_restarts(evidence: Evidence) -> Outcome | None:
    """One start: α = 300 no better than 50 and 100; a hundred: 300 > 100 > 50 (C09)."""
    runs = evidence.runs("random_starts")
    if not runs:
        return None
    histories = candidates(runs[0], "loss.alpha")
    if not {50.0, 100.0, 300.0} <= set(histories):
        return None
    most = runs[0].n_trials
    pairs = [(50.0, 300.0, 1), (100.0, 300.0, 1), (300.0, 100.0, most), (100.0, 50.0, most)]
    findings = []
    for better, worse, k in pairs:
        a = best_of(histories[better], k, TABLE5_METRICS["letor"])
        b = best_of(histories[worse], k, TABLE5_METRICS["letor"])
        findings.append(
            Finding.of(
                *difference_over_trials(a, b),
                comparison=f"α = {better:g} − α = {worse:g} with K = {k}, training NDCG@5",
                expected="first",
                dataset=runs[0].dataset,
                sample=f"{len(a)} against {len(b)} groups of {k} random starts",
                test="Welch's t test over the groups, none for single ones",
                unit="NDCG",
            )
        )
    missing = [] if most >= 100 else [f"more than {most} random starts"]
    return Outcome(findings, missing)


def claim_faster(evidence: Evidence) -> Outcome | None:
    """SoftRank's iteration takes more than five times as long as ApproxNDCG's (C10).

    The finding is a share of epochs, not a time: it is the same wherever the claim is clear.
    """
    runs = {run.setting("method"): run for run in evidence.runs("iteration_time")}
    if not {OWN, "SoftRank"} <= set(runs):
        return None
    limit = FASTER * float(np.median(epoch_seconds(runs[OWN])))
    slower = epoch_seconds(runs["SoftRank"]) > limit
    sign_test = stats.binomtest(int(slower.sum()), len(slower))
    share = sign_test.proportion_ci()
    finding = Finding(
        comparison=f"share of SoftRank's epochs longer than {FASTER:g} of {OWN}'s, − ½",
        expected="more",
        dataset=runs[OWN].dataset,
        sample=f"{len(slower)} epochs",
        test="sign test over the epochs; exact 95% interval",
        effect=float(slower.mean()) - 0.5,
        low=float(share.low) - 0.5,
        high=float(share.high) - 0.5,
        unit="share",
        p_value=float(sign_test.pvalue),
        timed=True,
    )
    return Outcome([finding], (), "SoftRank with its recursion over all documents, as published.")
