"""How the claims of a paper are tested: the rows of its ``claims.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from directrank.system.errors import ConfigError
from directrank.system.schema import check, package_schema, read_yaml, suggest

#: The folder of the papers' packages.
PAPERS = Path(__file__).parents[1]

ComparisonRow = Mapping[str, Any]
"""The keys of ``comparison`` in ``schemas/claims.schema.yaml``, which explains them."""


def titles_of(comparison: ComparisonRow) -> dict[str, list[str]]:
    """The experiments of each data set, by the title that the paper gives it.

    The title is empty if the claim is about a single data set.
    """
    runs = comparison["runs"]
    by_title = runs if isinstance(runs, Mapping) else {"": runs}
    return {title: [some] if isinstance(some, str) else some for title, some in by_title.items()}


def functions_of(comparison: ComparisonRow) -> list[str]:
    """The functions of the paper's package that a comparison names."""
    spare = comparison.get("instead") or {}
    named = [comparison.get("methods"), spare.get("methods")]
    return [function for function in named if function]


@dataclass(frozen=True)
class Claim:
    """How a claim is tested: its row of the paper's ``claims.yaml``.

    The keys are explained in ``schemas/claims.schema.yaml``.

    Attributes:
        name: the claim in a few words.
        statement: what the paper claims, for a claim that the published lists lack.
        where: the place in the paper, likewise.
        printed_numbers: whether the paper's own numbers support it, likewise.
        needs: the paper's products whose evidence the test uses.
        optional: further products, whose evidence follows; it is None for a product that an edition
            does not make. Without ``needs``, one of them is enough.
        own: catalogue names of the data sets that the paper's statement is about; empty if the
            paper's data are artificial or cannot be obtained.
        compares: what it compares, if it compares methods.
        function: otherwise ``module:function`` below the paper's package; imported when it is
            evaluated. It takes the evidence of each product and returns an :class:`Outcome`, or
            None if nothing of it was run.
    """

    name: str = ""
    statement: str = ""
    where: str = ""
    printed_numbers: str = ""
    needs: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    compares: ComparisonRow | None = None
    function: str = ""

    @property
    def products(self) -> tuple[str, ...]:
        """All products on whose runs it is tested."""
        return (*self.needs, *self.optional)

    @property
    def functions(self) -> list[str]:
        """The functions of the paper's package that test it."""
        return [self.function] if self.compares is None else functions_of(self.compares)


@cache
def claims_of(paper: str) -> Mapping[str, Claim]:
    """How the claims of ``paper`` are tested, by their ids; empty for an unknown paper.

    Raises:
        ConfigError: its ``claims.yaml`` is not valid.
    """
    path = PAPERS / paper / "claims.yaml"
    return read_rows(path) if path.is_file() else {}


def name_of(row: Any) -> str:
    """A claim in a few words, or else its statement; ``row`` has these and its paper."""
    known = claims_of(row.paper).get(row.claim)
    return known.name if known and known.name else str(row.statement)


def read_rows(path: str | Path) -> dict[str, Claim]:
    """How the claims of a file are tested, by their ids.

    Raises:
        ConfigError: the file does not exist or does not match its schema.
    """
    document = read_yaml(path)
    check(document, package_schema("claims"), str(path))
    shared = document.get("comparing", {})
    claims = {}
    for name, entry in document["claims"].items():
        row: dict[str, Any] = {**entry}
        for key in {"needs", "optional", "own"} & set(row):
            row[key] = tuple(row[key])
        if "compares" in row:
            row["compares"] = _whole({**shared, **row["compares"]}, f"{path}, {name}")
        claims[name] = Claim(**row)
    return claims


def _whole(comparison: ComparisonRow, where: str) -> ComparisonRow:
    """A comparison; raises ConfigError if a key is missing, or its pairs name what it lacks."""
    required = {
        "required": ["runs", "empty", "metrics", "unit", "pairs"],
        "description": "add the key to the claim's, or to those that all claims share (comparing)",
    }
    check(comparison, required, where)
    titles = [*titles_of(comparison), *titles_of(comparison.get("instead") or comparison)]
    for pair in comparison["pairs"]:
        for key, known in (("metrics", comparison["metrics"]), ("only", titles)):
            for name in pair.get(key, ()):
                if name not in known:
                    problem = f"'{name}' in the '{key}' of a pair is none of the claim's"
                    remedy = suggest(name, known) if any(known) else "leave it out"
                    raise ConfigError(f"{where}: {problem}", remedy)
    return comparison
