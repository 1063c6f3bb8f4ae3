"""The committed figures, tables and verdicts of each edition, as the pages show them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pandas as pd

from directrank.papers.one_protocol.by_collection import ONE_PROTOCOL
from directrank.papers.shared import gallery
from directrank.papers.shared.claim_rows import claims_of
from directrank.papers.shared.claims import OVERALL, published_claims
from directrank.papers.shared.evidence import PUBLISHED, read_published
from directrank.papers.shared.product import products
from directrank.papers.shared.verdicts import UNMEASURED

#: The folder of the comparison that is no paper's.
COMPARISON = "one_protocol"

#: What the second panel and the first are called in a figure that prints them side by side.
SIDES = {"left": "a", "right": "b"}


@dataclass(frozen=True)
class Output:
    """A figure or a table of an edition.

    Attributes:
        kind: which of the two.
        edition, paper, name: e.g. ``real``, ``qin2010``, ``table4``.
        title: its heading.
        text: the figure's caption, or the Markdown below the table's heading.
    """

    kind: Literal["figure", "table"]
    edition: str
    paper: str
    name: str
    title: str
    text: str

    @property
    def stem(self) -> str:
        """Where its files are in the repository, without their endings."""
        folder = "figures" if self.kind == "figure" else "paper_tables"
        return f"{folder}/{self.edition}/{self.paper}/{self.name}"

    @property
    def label(self) -> str:
        """Its name in print: ``Figure 2a``, ``table stopping``."""
        number = re.fullmatch(r"(figure|table)(\d.*)", self.name)
        if number:
            return f"{number[1].capitalize()} {number[2].replace('_', ', ')}"
        name = self.name.removeprefix(f"{self.kind}_").replace("_", " ")
        return f"{self.kind} {name}"


@dataclass(frozen=True)
class Verdict:
    """What an edition says of a claim.

    Attributes:
        edition, claim, paper, statement, where: as the file of claims has them.
        verdict: e.g. ``holds``.
        evidence: on whose data it rests, or that one protocol gave it.
        collections: the titles of the data sets.
        printed: whether the paper's own numbers support the claim.
    """

    edition: str
    claim: str
    paper: str
    statement: str
    where: str
    verdict: str
    evidence: str
    collections: Sequence[str]
    printed: str


def editions(root: Path) -> list[str]:
    """The editions with committed results; the demo comes last."""
    names = (file.parent.name for file in root.glob("paper_tables/*/claims.csv"))
    known = [name for name in names if (root / f"config/{name}.yaml").is_file()]
    return sorted(known, key=lambda name: (name == "demo", name))


def papers() -> list[str]:
    """The papers, in the order of their claims."""
    return list(dict.fromkeys(published_claims(PUBLISHED)["paper"]))


@cache
def figures(root: Path, edition: str, paper: str) -> list[Output]:
    """The figures of a paper in an edition, after the picture of all of them."""
    return [
        Output("figure", edition, paper, file.stem, *gallery.caption(file))
        for file in _files(root / "figures" / edition / paper, ".svg")
    ]


@cache
def tables(root: Path, edition: str, paper: str) -> list[Output]:
    """The tables of a paper in an edition."""
    found = []
    for file in _files(root / "paper_tables" / edition / paper, ".md"):
        heading, _, text = file.read_text(encoding="utf-8").partition("\n")
        found.append(
            Output("table", edition, paper, file.stem, heading.removeprefix("# "), text.strip())
        )
    return found


def _files(folder: Path, suffix: str) -> list[Path]:
    key = lambda file: (file.stem != "summary", gallery.natural(file.stem))  # noqa: E731
    return sorted(folder.glob(f"*{suffix}"), key=key)


def claims(root: Path, edition: str) -> pd.DataFrame:
    """The file of an edition's claims, every cell as text."""
    return _read(root / f"paper_tables/{edition}/claims.csv")


@cache
def verdicts(root: Path, edition: str) -> list[Verdict]:
    """The verdicts of an edition: of the papers' experiments, then of one protocol."""
    rows = claims(root, edition)
    overall = rows[rows["comparison"] == OVERALL].set_index("claim")
    parts = rows[rows["comparison"] != OVERALL].groupby("claim")["dataset"].unique()
    found = [
        Verdict(
            edition, row.Index, row.paper, row.statement, row.where, row.verdict, row.group,
            tuple(parts.get(row.Index, ())), row.printed_numbers,
        )
        for row in overall.itertuples()
    ]  # fmt: skip
    by_collection = root / f"paper_tables/{edition}/claims_by_collection.csv"
    if by_collection.is_file():
        found += _of_one_protocol(_read(by_collection), overall)
    return found


def _of_one_protocol(rows: pd.DataFrame, about: pd.DataFrame) -> Iterator[Verdict]:
    """Those that the papers' experiments did not give."""
    measured = rows[(rows["source"] == ONE_PROTOCOL) & (rows["verdict"] != UNMEASURED)]
    for row in measured.itertuples():
        claim = about.loc[row.claim]
        yield Verdict(
            row.edition, row.claim, row.paper, row.statement, claim["where"], row.verdict,
            ONE_PROTOCOL, (row.dataset,), claim["printed_numbers"],
        )  # fmt: skip


def measured_on(verdict: Verdict, outputs: Sequence[Output]) -> list[Output]:
    """The figures and tables, of the same edition, that a claim is measured from."""
    claim = claims_of(verdict.paper).get(verdict.claim)
    names = claim.products if claim else ()
    return [
        output
        for output in outputs
        if (output.edition, output.paper) == (verdict.edition, verdict.paper)
        and output.name in names
    ]


def bears_on(output: Output) -> Sequence[str]:
    """The claims that a figure or table quotes."""
    item = products(output.paper).get(output.name)
    return item.claims if item else ()


def in_the_paper(figure: Output) -> list[str]:
    """What the published picture shows: a sentence or more for each of its panels."""
    number = re.fullmatch(r"figure(\d+)([a-h]?)(_.*)?", figure.name)
    if not number:
        return []
    rows = read_published(PUBLISHED, "figures").astype(str)
    rows = rows[(rows["paper"] == figure.paper) & (rows["figure"] == number[1])]
    return [_described(row) for row in rows.to_dict("records") if _has_panel(row, number[2])]


def _has_panel(row: dict[str, str], letter: str) -> bool:
    panel = SIDES.get(row["panel"], row["panel"])
    if not letter or panel == "nan":
        return True
    first, _, last = panel.partition("-")
    return first <= letter <= (last or first)


def _described(row: dict[str, str]) -> str:
    parts = {key: text for key, text in row.items() if text != "nan"}
    text = f"{parts['y_axis']} against {parts['x_axis']}"
    for word, key in (("Curves", "curves"), ("Setting", "setting"), ("It shows", "claim")):
        if key in parts:
            text += f". {word}: {parts[key]}"
    return f"{text}."


def _read(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, dtype=str, keep_default_na=False)
