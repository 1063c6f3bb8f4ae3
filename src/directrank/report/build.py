"""Writing the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from directrank import __version__
from directrank.papers.shared.format import minus, p_value
from directrank.papers.shared.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    MEANING,
    RAN,
    STANDIN,
    SUPPORTED,
    TREND,
    UNMEASURED,
    tally,
)
from directrank.report.content import gather
from directrank.report.products import anchor
from directrank.report.runs import MEANS, duration
from directrank.system.io import write_text

#: How a verdict is shown beside its words: not by colour alone.
SIGNS = {
    SUPPORTED: "✓",
    CONTRADICTED: "✗",
    TREND: "~",
    INCONCLUSIVE: "?",
    UNMEASURED: "–",
    RAN: "·",
}


def write(
    plan_files: Sequence[str | Path],
    results: str | Path,
    claims_csv: str | Path,
    figures_folder: str | Path,
    tables_folder: str | Path,
    out: str | Path,
) -> None:
    """Write the report of an edition as one HTML file that loads nothing else.

    Args:
        plan_files: the plans of the edition's products (JSON).
        results: the edition's results, such as ``results/demo``.
        claims_csv: the verdicts, such as ``paper_tables/demo/claims.csv``.
        figures_folder: such as ``figures/demo``.
        tables_folder: such as ``paper_tables/demo``.
        out: the file, such as ``report/demo/report.html``.

    Raises:
        DirectrankError: plans of several editions, or files that are missing.
    """
    report = gather(plan_files, results, claims_csv, figures_folder, tables_folder, out)
    environment = environment_of_pages()
    environment.filters |= {"duration": duration, "number": number, "p": probability}
    environment.globals |= {
        "anchor": anchor,
        "signs": SIGNS,
        "meaning": MEANING,
        "standin": STANDIN,
        "headings": list(MEANS),
        "tally": tally,
        "version": __version__,
    }
    write_text(out, environment.get_template("report.html.j2").render(report=report))


def environment_of_pages() -> Environment:
    """Where the templates of pages are found, and how they are filled in."""
    return Environment(
        loader=PackageLoader("directrank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def script_data(content: Any) -> str:
    """What a page's script is given, as JSON; ``</`` in it would end the script."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return text.replace("</", "<\\/")


def number(value: float | None) -> str:
    """Four digits that count; empty for None."""
    return "" if value is None else minus(f"{value:.4g}")


def probability(value: float | None) -> str:
    """A p value; empty for None."""
    return "" if value is None else p_value(value)
