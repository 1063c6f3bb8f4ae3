"""Qin2010's numbers that need no training: Table 1 and section 4."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import torch

from directrank import losses, metrics
from directrank.papers.shared.cells import (
    LOST,
    MET,
    NOT_MET,
    UNPRINTED,
    add_differences,
    measured,
    rounding_error,
)
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import share, signed
from directrank.papers.shared.leads import lead, met
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Section, TableLayout, in_front
from directrank.relaxations.sigmoid import SigmoidRanking

#: Table 1's steepness and the smallest gap between its scores (eq. 21). The scores themselves are
#: lost: these are ours, with the second and third document that far apart and all others too far
#: for the sigmoid to be off by a visible amount, as the paper's ε = 0.00118 requires.
TABLE1_ALPHA = 100.0
TABLE1_GAP = 0.06744
TABLE1_SCORES = (0.9, 0.7, 0.7 - TABLE1_GAP, 0.4, 0.1)

#: Steepness of comparisons of ranks in the paper's example of Theorem 2.
TABLE1_BETA = 100.0

#: The status of an error that section 4 bounds.
BELOW, ABOVE = "below its bound", "above its bound"


def position_errors() -> tuple[list[float], np.ndarray]:
    """Table 1's approximate positions ``[5]`` (eq. 12) and their errors ``[5]``."""
    scores = torch.tensor([TABLE1_SCORES], dtype=torch.float64)
    everyone = torch.ones_like(scores, dtype=torch.bool)
    ranks = SigmoidRanking(scores, everyone, alpha=TABLE1_ALPHA).ranks(everyone)[0]
    true = torch.arange(1, len(TABLE1_SCORES) + 1, dtype=torch.float64)
    return ranks.tolist(), (ranks - true).abs().numpy()


def position_bound(n: int, alpha: float) -> float:
    """Corollary 1 (eq. 20): no position of ``n`` documents as close as Table 1's is off by more."""
    return (n - 1) / (math.exp(TABLE1_GAP * alpha) + 1)


def ap_bound(epsilon: float, beta: float, relevant: int) -> float:
    """Theorem 2 (eq. 22) for positions that are off by ``epsilon`` < 1/2 at most."""
    ranks = range(1, relevant + 1)
    truncation = sum(1 / (i - epsilon) for i in ranks)
    truncation /= 1 + math.exp(beta * (1 - 2 * epsilon))
    return truncation + sum(2 * epsilon / (i * (i - epsilon)) for i in ranks)


def ndcg_bound(epsilon: float) -> float:
    """Theorem 3 for positions that are off by ``epsilon`` at most."""
    return epsilon / (2 * math.log(2))


def measure_errors() -> tuple[float, float]:
    """Largest error of AP's and of NDCG's approximation, by which one is relevant."""
    n = len(TABLE1_SCORES)
    scores = torch.tensor([TABLE1_SCORES], dtype=torch.float64).expand(n, n)
    labels = torch.eye(n, dtype=torch.float64)
    ap = -losses.approx_ap(scores, labels, alpha=TABLE1_ALPHA, beta=TABLE1_BETA)
    smooth_ndcg = -losses.approx_ndcg(scores, labels, alpha=TABLE1_ALPHA)
    return (
        float((ap - metrics.average_precision(scores, labels)).abs().max()),
        float((smooth_ndcg - metrics.ndcg(scores, labels)).abs().max()),
    )


def table1(evidence: Evidence) -> TableResult:
    """Table 1 with scores of ours, and the numbers that section 4 derives from it."""
    printed = evidence.published("qin2010_table1")
    documents = list(printed["Document"])
    ranks, errors = position_errors()
    rows, lines = [], []
    for place, document in enumerate(documents):
        quantities = {"s_x": TABLE1_SCORES[place], "pi(x)": place + 1, "pi_hat(x)": ranks[place]}
        rows += [
            {"document": document, "quantity": name, "value": value, "status": LOST}
            for name, value in quantities.items()
        ]
        lines.append(
            [
                document,
                f"{TABLE1_SCORES[place]:.5f}",
                f"{place + 1}",
                f"{ranks[place]:.5f}",
                f"{errors[place]:.5f}",
            ]
        )
    derived = _derived(evidence, float(errors.max()))
    data = pd.DataFrame([*rows, *derived])
    data["half_width"] = 0.0  # computed exactly
    data = add_differences(data, value="value", published_error=rounding_error(data["tolerance"]))
    data = in_front(data, {"edition": evidence.edition, "data": "artificial"})
    columns = ["Document", "score", "π", f"approximate π (α = {TABLE1_ALPHA:g})", "error"]
    bounds = [
        [
            row["title"],
            UNPRINTED if math.isnan(row["published"]) else f"{row['published']:g}",
            measured(row["value"], digits=7),
            signed(row["value"] - row["published"], 7),
        ]
        for row in derived
    ]
    caption = (
        f"Approximate positions of five documents, α = {TABLE1_ALPHA:g}. The paper's scores are "
        "lost. These are ours; they have its smallest gap, 0.06744, between the second and third "
        "document, and all other gaps are wide. The lower part has the numbers that section 4 "
        "derives; one is met if it equals the printed one in all digits. The values are analytic. "
        f"Edition "
        f"{evidence.edition}."
    )
    sections = [
        Section("", lines),
        Section("Section 4", bounds, ["Number", "paper", "here", "difference"]),
    ]
    data = data.drop(columns="title")
    return TableResult(data, TableLayout(_lead(data), caption, columns, sections))


def _lead(data: pd.DataFrame) -> str:
    """How many printed numbers are met, and whether the bounds hold."""
    bounded = data.loc[data["status"].isin([BELOW, ABOVE]), "status"]
    held = int((bounded == BELOW).sum())
    return lead(met(data), f"{share(held, len(bounded))} measured errors lie below their bounds")


def _derived(evidence: Evidence, epsilon: float) -> list[dict[str, Any]]:
    """The printed numbers of section 4 with ours, then the errors that they bound."""
    text = evidence.published("qin2010_text_values").set_index("quantity")["value"]
    n = len(TABLE1_SCORES)
    # Title, name in the published file, value, printed decimals.
    printed = (
        ("largest error of a position, ε", "epsilon = max |pi_hat - pi| in Table 1", epsilon, 5),
        (
            "its bound, n = 5, α = 100",
            "bound (n-1)/(exp(delta*alpha)+1), n=5, alpha=100",
            position_bound(n, TABLE1_ALPHA),
            5,
        ),
        (
            "its bound, n = 1000, α = 200",
            "bound for n=1000, alpha=200",
            position_bound(1000, 200.0),
            6,
        ),
        (
            "bound of AP's error, β = 100, one relevant document",
            "|AP_hat-AP| bound, beta=100, |D+|=1",
            ap_bound(epsilon, TABLE1_BETA, 1),
            4,
        ),
        ("bound of NDCG's error", "|NDCG_hat-NDCG| bound eps/(2 ln 2)", ndcg_bound(epsilon), 5),
    )
    rows: list[dict[str, Any]] = []
    for title, name, value, decimals in printed:
        published = float(text[name])
        agrees = abs(value - published) <= 0.5 * 10.0**-decimals
        rows.append(
            {
                "title": title,
                "quantity": name,
                "value": value,
                "published": published,
                "tolerance": 0.5 * 10.0**-decimals,
                "status": MET if agrees else NOT_MET,
            }
        )
    bounds = {"AP": rows[3]["value"], "NDCG": rows[4]["value"]}
    for (measure, bound), error in zip(bounds.items(), measure_errors(), strict=True):
        rows.append(
            {
                "title": f"{measure}'s error here, at most",
                "quantity": f"largest |{measure}_hat-{measure}|, one relevant document",
                "value": error,
                "published": math.nan,
                "tolerance": math.nan,
                "status": BELOW if error < bound else ABOVE,
            }
        )
    return rows
