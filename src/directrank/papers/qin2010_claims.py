"""How Qin2010's claims are measured."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import stats

from directrank.papers.claims import Finding, Outcome, difference_over_trials
from directrank.papers.evidence import Evidence, PlannedRun
from directrank.papers.qin2010_map import AP, MAP_RATIOS, OWN_AP, map_methods
from directrank.papers.qin2010_methods import OWN, TABLE4_METRICS, compare, methods_by_fold
from directrank.papers.qin2010_training import (
    TABLE5_METRICS,
    best_of,
    candidates,
    epoch_seconds,
    error_curves,
)
from directrank.seeds import numpy_stream
from directrank.stats.intervals import mean_interval
from directrank.stats.tests import paired_randomisation

#: Accuracy that the text gives: for every α, and at α = 100 (section 5.2).
ACCURACY, ACCURACY_AT_100 = 0.95, 0.98

#: How many times as long SoftRank's iteration must take.
FASTER = 5.0


def claim_accuracy(evidence: Evidence) -> Outcome | None:
    """AP's approximation is off by less than 5 % for every α, by less than 2 % at 100 (C06)."""
    runs = evidence.runs("ap_error_alpha")
    if not runs:
        return None
    curves = {
        alpha: error_curves(history) for alpha, history in candidates(runs[0], "loss.alpha").items()
    }
    findings = [_accuracy(runs[0], errors, alpha, ACCURACY) for alpha, errors in curves.items()]
    if 100.0 in curves:
        findings.append(_accuracy(runs[0], curves[100.0], 100.0, ACCURACY_AT_100))
    missing = [] if 100.0 in curves else ["α = 100"]
    remark = "The paper's values of α other than 100 are lost; the smaller ones here are a choice."
    return Outcome(findings, missing, remark)


def _accuracy(run: PlannedRun, errors: pd.DataFrame, alpha: float, least: float) -> Finding:
    room = 1 - least - errors.max(axis=0).to_numpy()
    interval = mean_interval(room)
    p_value = math.nan
    if len(room) > 1 and np.ptp(room) > 0:
        p_value = float(stats.ttest_1samp(room, 0.0).pvalue)
    return Finding(
        comparison=f"lowest accuracy in training − {least:g}, α = {alpha:g}, β = 10",
        expected="more",
        dataset=run.dataset,
        sample=f"{len(room)} random starts",
        test="t test over random starts of each one's largest error",
        effect=interval.mean,
        low=interval.low,
        high=interval.high,
        unit="accuracy",
        p_value=p_value,
    )


def claim_map_ratios(evidence: Evidence) -> Outcome | None:
    """ApproxAP's MAP on TD2003 is 1.15 times SVMmap's and 1.2 times AdaRank.MAP's (C07)."""
    methods = map_methods(evidence, "td2003_methods")
    rivals = [name for name in MAP_RATIOS if name in methods]
    if OWN_AP not in methods or not rivals:
        return None
    own, findings, ratios = methods[OWN_AP].pooled(AP), [], []
    for rival in rivals:
        target = MAP_RATIOS[rival] * methods[rival].pooled(AP)
        generator = numpy_stream("qin2010", "table3", OWN_AP, rival)
        test = paired_randomisation(own, target, generator)
        interval = mean_interval(own.to_numpy() - target.to_numpy())
        ratio = methods[OWN_AP].trial_means(AP).mean() / methods[rival].trial_means(AP).mean()
        ratios.append(f"{ratio:.3f} times {rival}'s")
        findings.append(
            Finding(
                comparison=f"{OWN_AP} − {MAP_RATIOS[rival]:g} × {rival}, MAP",
                expected="more",
                dataset=methods[OWN_AP].runs[0].dataset,
                sample=f"{len(own)} queries of {len(methods[OWN_AP].runs)} folds",
                test="paired randomisation test over the pooled queries; 95% t interval",
                effect=interval.mean,
                low=interval.low,
                high=interval.high,
                unit="AP",
                p_value=test.p_value,
            )
        )
    missing = [name for name in MAP_RATIOS if name not in methods]
    return Outcome(findings, missing, f"{OWN_AP}'s MAP is {' and '.join(ratios)}.")


def claim_best(evidence: Evidence) -> Outcome | None:
    """ApproxNDCG best of the five of Table 4 at every rank, with LETOR's discount (C08)."""
    order = list(evidence.published("qin2010_table4")["Algorithm"])
    methods = methods_by_fold(evidence.runs("ohsumed_methods"), order)
    rivals = [name for name in order if name != OWN and name in methods]
    if OWN not in methods or not rivals:
        return None
    findings = []
    for rival in rivals:
        for heading, (metric, _) in TABLE4_METRICS.items():
            paired = compare(methods[OWN], methods[rival], metric)
            findings.append(
                Finding(
                    comparison=f"{OWN} − {rival}, {heading}",
                    expected="more",
                    dataset=methods[OWN].runs[0].dataset,
                    sample=f"{paired.queries} queries of {len(methods[OWN].runs)} folds",
                    test="paired randomisation test over the pooled queries; 95% t interval",
                    effect=paired.difference,
                    low=paired.difference - paired.half_width,
                    high=paired.difference + paired.half_width,
                    unit="NDCG",
                    p_value=paired.p_value,
                )
            )
    ahead = sum(finding.effect > 0 for finding in findings)
    remark = f"{OWN} has the higher mean in {ahead} of {len(findings)} comparisons."
    return Outcome(findings, [name for name in order if name not in methods], remark)


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
        effect, low, high, p_value = difference_over_trials(a, b)
        findings.append(
            Finding(
                comparison=f"α = {better:g} − α = {worse:g} with K = {k}, training NDCG@5",
                expected="first",
                dataset=runs[0].dataset,
                sample=f"{len(a)} against {len(b)} groups of {k} random starts",
                test="Welch's t test over the groups, none for single ones",
                effect=effect,
                low=low,
                high=high,
                unit="NDCG",
                p_value=p_value,
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
    share = float(slower.mean())
    interval = stats.binomtest(int(slower.sum()), len(slower)).proportion_ci()
    finding = Finding(
        comparison=f"share of SoftRank's epochs longer than {FASTER:g} of {OWN}'s, − ½",
        expected="more",
        dataset=runs[OWN].dataset,
        sample=f"{len(slower)} epochs",
        test="sign test over the epochs; exact 95% interval",
        effect=share - 0.5,
        low=float(interval.low) - 0.5,
        high=float(interval.high) - 0.5,
        unit="share",
        p_value=float(stats.binomtest(int(slower.sum()), len(slower)).pvalue),
    )
    return Outcome([finding], (), "SoftRank with its recursion over all documents, as published.")
