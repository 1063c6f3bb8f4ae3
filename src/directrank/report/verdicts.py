"""The claims of a report: their verdicts, and the figures and tables that they are measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from directrank.papers.shared.claim_rows import claims_of
from directrank.papers.shared.claims import OVERALL, read_claims
from directrank.papers.shared.product import product
from directrank.papers.shared.verdicts import UNMEASURED


@dataclass(frozen=True)
class Verdict:
    """A claim's verdict, with the comparisons behind it.

    Attributes:
        claim: the row of the file of claims with the verdict on all of it.
        comparisons: the rows of its comparisons.
        measured_on: the products of its paper from whose runs it is measured, by name.
        quoted_in: further products that quote the verdict.
    """

    claim: Mapping[str, Any]
    comparisons: Sequence[Mapping[str, Any]]
    measured_on: Sequence[str]
    quoted_in: Sequence[str]

    @property
    def products(self) -> list[str]:
        """Every product that measures or quotes the claim."""
        return [*self.measured_on, *self.quoted_in]


def read_verdicts(claims_csv: str | Path, made: Mapping[str, Sequence[str]]) -> list[Verdict]:
    """The verdict on every claim.

    Args:
        claims_csv: an edition's ``claims.csv``.
        made: paper → the names of the products that the edition has of it, in their order.
    """
    claims = read_claims(claims_csv)
    claims = claims.astype(object).where(claims.notna(), None)
    verdicts = []
    for _, rows in claims.groupby("claim", sort=False):
        claim = rows[rows["comparison"] == OVERALL].iloc[0].to_dict()
        measured = _measured_on(claim) if claim["verdict"] != UNMEASURED else set()
        names = made.get(claim["paper"], ())
        verdicts.append(
            Verdict(
                claim=claim,
                comparisons=rows[rows["comparison"] != OVERALL].to_dict("records"),
                measured_on=[name for name in names if name in measured],
                quoted_in=[
                    name
                    for name in names
                    if name not in measured
                    and claim["claim"] in product(claim["paper"], name).claims
                ],
            )
        )
    return verdicts


def _measured_on(claim: Mapping[str, Any]) -> set[str]:
    return set(claims_of(claim["paper"])[claim["claim"]].products)
