"""Test a claim that compares methods in metrics, as a row of a paper's ``claims.yaml`` says."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from directrank.papers.shared.claim_rows import ComparisonRow, titles_of
from directrank.papers.shared.evidence import Evidence, has_runs
from directrank.papers.shared.findings import (
    MORE,
    NOT_MORE,
    SAME,
    Claimed,
    Finding,
    Outcome,
    difference,
    value,
)
from directrank.papers.shared.methods import Method, by_method
from directrank.papers.shared.product import call

#: What a pair calls all methods that were run, except those with which they are compared.
EVERY_OTHER = "every other"

#: What a pair calls the one of several methods that is best on the validation set.
BEST_OF = "best of"

_KINDS = {"more": MORE, "same": SAME, "not more": NOT_MORE}


def compare(
    paper: str, comparison: ComparisonRow, evidence: Sequence[Evidence | None]
) -> Outcome | None:
    """Test a claim that compares methods.

    Args:
        paper: its paper.
        comparison: what it compares, with the keys that all claims of the paper share.
        evidence: that of its products; None for a product that the edition does not make.

    Returns:
        The outcome; None if nothing of it was run.
    """
    notes, missing = [], []
    methods = _methods(paper, comparison, evidence)
    spare = comparison.get("instead")
    if spare and not any(methods.values()):
        comparison = {**comparison, **spare}
        notes, missing = [spare["note"]], list(spare.get("missing", ()))
        methods = _methods(paper, comparison, evidence)
    if not any(methods.values()):
        return None
    findings = []
    for title, known in methods.items():
        if not known:
            missing.append(title)
            continue
        for pair in comparison["pairs"]:
            if title in pair.get("only", [title]):
                found, absent = _pair(comparison, pair, title, known)
                findings += found
                missing += absent
    if not findings and "" in methods:
        return None  # there is no other data set beside which to name what is missing
    leads = [finding.effect for finding in findings if finding.claimed == MORE]
    if leads and comparison.get("remark"):
        ahead = sum(lead > 0 for lead in leads)
        notes.append(comparison["remark"].format(ahead=ahead, count=len(leads)))
    return Outcome(findings, missing, " ".join(notes))


def _methods(
    paper: str, comparison: ComparisonRow, evidence: Sequence[Evidence | None]
) -> dict[str, Mapping[str, Method]]:
    """The methods that were run on each data set, by its title and by their names."""
    return {
        title: next(
            (
                _methods_in(paper, comparison, some, experiments)
                for some in evidence
                if some is not None and has_runs(some, *experiments)
            ),
            {},
        )
        for title, experiments in titles_of(comparison).items()
    }


def _methods_in(
    paper: str, comparison: ComparisonRow, evidence: Evidence, experiments: Sequence[str]
) -> Mapping[str, Method]:
    if comparison.get("methods"):
        return call(paper, comparison["methods"], evidence, *experiments)
    runs = [run for name in experiments for run in evidence.runs(name)]
    setting, name = comparison.get("by", "method"), comparison.get("name", "{}")
    return by_method(runs, comparison["empty"], setting=setting, name=name)


def _pair(
    comparison: ComparisonRow, pair: Mapping[str, Any], title: str, known: Mapping[str, Method]
) -> tuple[list[Finding], list[str]]:
    """The findings about each of the first methods of ``pair`` and each of the second, in each
    metric, and the pairs that were not run."""
    findings, missing = [], []
    metrics = comparison["metrics"]
    split = comparison.get("split", "test")
    firsts, seconds = (
        _candidates(pair[one], pair[other], known)
        for one, other in (("first", "second"), ("second", "first"))
    )
    for first, second in itertools.product(firsts, seconds):
        sides = [[known[name] for name in names if name in known] for names in (first, second)]
        if not all(sides):
            both = f"{_called(first)} against {_called(second)}"
            missing.append(f"{both} on {title}" if title else both)
            continue
        for heading in pair.get("metrics", metrics):
            a, b = (_best(side, metrics[heading]) for side in sides)
            name, unit = heading.format(title=title), comparison["unit"]
            findings.append(difference(a, b, metrics[heading], name, _claimed(pair), unit, split))
    return findings, missing


def _candidates(names: Any, others: Any, known: Mapping[str, Method]) -> list[list[str]]:
    """The methods of one side of a pair: for each comparison, those of which the best is taken."""
    if names == EVERY_OTHER:
        return [[name] for name in known if name not in _listed(others)]
    return [_listed(names)] if isinstance(names, Mapping) else [[name] for name in _listed(names)]


def _listed(names: Any) -> list[str]:
    """The names on one side of a pair."""
    if isinstance(names, str):
        return [names]
    return list(names[BEST_OF] if isinstance(names, Mapping) else names)


def _called(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"the best of {names[0]} to {names[-1]}"


def _best(methods: Sequence[Method], metric: str) -> Method:
    """The one that is best on the validation set."""
    if len(methods) == 1:
        return methods[0]
    return max(methods, key=lambda method: float(method.trial_means(metric, "vali").mean()))


def _claimed(pair: Mapping[str, Any]) -> Claimed:
    claimed = pair.get("claimed", "more")
    return _KINDS[claimed] if isinstance(claimed, str) else value(**claimed)
