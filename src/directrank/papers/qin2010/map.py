"""Qin2010's Table 3, and every baseline trained here beside the value that the paper cites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from directrank.papers.qin2010.methods import (
    AP,
    ESTIMATE,
    estimates,
    letor_value,
    methods_of,
    scale_caption,
)
from directrank.papers.qin2010.stopping import ending_sentence, how_trained
from directrank.papers.shared.cells import BRACKETS
from directrank.papers.shared.differences import COLUMNS as DIFFERENCES
from directrank.papers.shared.evidence import Evidence, PlannedRun, data_sentence
from directrank.papers.shared.leads import lead, near_print
from directrank.papers.shared.methods import Method, by_method
from directrank.papers.shared.methods_table import MethodsTable, in_print
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Section
from directrank.system.errors import DataError

OWN_AP = "ApproxAP"

#: Experiment of Table 3 → its column.
TABLE3_PARTS = {"td2003_methods": "TD2003", "td2004_methods": "TD2004"}

#: By what factor ApproxAP is better on TD2003 (section 5.3): method → at least.
MAP_RATIOS = {"SVMmap": 1.15, "AdaRank.MAP": 1.20}

#: Column heading → metric, of the comparison with LETOR's site; all with its own discount.
LETOR_METRICS = {
    "NDCG@1": "ndcg@1/letor",
    "NDCG@3": "ndcg@3/letor",
    "NDCG@5": "ndcg@5/letor",
    "NDCG@10": "ndcg@10/letor",
    "MAP": AP,
}

#: Baselines in the order of the paper's tables.
BASELINES = ("AdaRank.MAP", "AdaRank.NDCG", "SVMmap", "SoftRank", "Ranking SVM", "ListNet")


#: The status of a value that did not survive in the paper's text.
_LOST = "published: lost"

TABLE3 = MethodsTable(
    first="Method",
    metrics={"MAP": AP},
    csv=(
        *("edition", "paper_dataset", "method", "metric", "published", "dataset", "data"),
        *(*ESTIMATE, *DIFFERENCES, "status"),
    ),
    measure=estimates,
    beside={"paper": in_print(3)},
    unprinted=_LOST,
)

BESIDE_LETOR = MethodsTable(
    first="Method",
    metrics=LETOR_METRICS,
    csv=(
        *("edition", "dataset", "data", "method", "metric", *ESTIMATE),
        *("published", *DIFFERENCES, "status"),
    ),
    measure=estimates,
    beside={"LETOR": in_print(4)},
    unprinted=_LOST,
)


def map_methods(evidence: Evidence, experiment: str) -> dict[str, Method]:
    """The methods of one column of Table 3, in the paper's order."""
    order = list(evidence.published("qin2010_table3")["Algorithm"])
    return methods_of(evidence, experiment, order=order)


def table3(evidence: Evidence) -> TableResult:
    """Table 3: MAP of five methods on TD2003 and TD2004."""
    table = evidence.published("qin2010_table3").set_index("Algorithm")
    parts = {title: map_methods(evidence, name) for name, title in TABLE3_PARTS.items()}
    if not any(parts.values()):
        raise DataError("no method of Table 3 was run", "add runs to td2003_methods")
    frames = []
    for title, methods in parts.items():
        theirs = TABLE3.printed(table, published=title)
        ours = {name: method for name, method in methods.items() if name in table.index}
        frames.append(TABLE3.rows(evidence, ours, theirs, paper_dataset=title))
    data = pd.concat(frames, ignore_index=True)
    caption = (
        "Ranking accuracy in MAP on the test sets: "
        + " ".join(
            f"{title}: {scale_caption(methods)} "
            f"{ending_sentence(methods[OWN_AP].runs) if OWN_AP in methods else ''}"
            f"{data_sentence(next(iter(methods.values())).runs, 'test', 'test set')}"
            for title, methods in parts.items()
            if methods
        )
        + " “paper” is the printed value; a dash means that it could not be recovered. "
        + (f"{BRACKETS}. " if (data["data"] == "real").any() else "")
        + f"Edition {evidence.edition}."
    )
    start = lead(*(TABLE3.ahead(frame, "MAP") for frame in frames))
    by_data = replace(TABLE3, metrics=dict.fromkeys(parts, AP))
    return by_data.result(data, start, caption, [Section("", by_data.lines(data))])


def baselines(evidence: Evidence) -> TableResult:
    """Every baseline of the paper's tables, trained here, beside LETOR's value on OHSUMED."""
    methods = methods_of(evidence, "ohsumed_methods", "ohsumed_map_methods")
    methods = {name: methods[name] for name in BASELINES if name in methods}
    if not methods:
        raise DataError("no baseline was run", "add runs to ohsumed_methods")
    weak = _by_c(evidence.runs("ohsumed_weak_svm"))
    shown = {**methods, **weak}
    theirs = pd.DataFrame(
        {
            "method": name,
            "metric": heading,
            "published": letor_value(
                evidence, "OHSUMED", "Ranking SVM" if name in weak else name, heading
            ),
        }
        for name in shown
        for heading in LETOR_METRICS
    )
    data = BESIDE_LETOR.rows(evidence, shown, theirs)
    first = next(iter(methods.values()))
    caption = (
        "The baselines of the paper's tables, all trained here, beside the values on the site of "
        "LETOR 3.0 that the paper cites (a dash means that they could not be recovered). NDCG with "
        f"LETOR's discount; {scale_caption(methods)} Hyper-parameters are chosen per fold on the "
        f"validation set. {f'{BRACKETS}. ' if first.dataset.of_the_paper else ''}"
        f"{how_trained(methods)}{evidence.sources(first.runs, 'test sets')}"
    )
    ours = data[data["method"].isin(list(methods))]
    start = lead(BESIDE_LETOR.ahead(ours, "NDCG@10"), near_print(ours))
    return BESIDE_LETOR.result(data, start, caption, [BESIDE_LETOR.section(data)])


def _by_c(runs: Sequence[PlannedRun]) -> dict[str, Method]:
    """Ranking SVMs whose c is fixed, by their names in print, the smallest c first."""
    methods = by_method(runs, "zero", setting="model.c")
    ordered = sorted(methods.values(), key=lambda method: float(method.name))
    names = [f"Ranking SVM, c = {float(method.name):g}" for method in ordered]
    return dict(zip(names, ordered, strict=True))
