"""Write the pages of a committed edition again after one part of it was made.

The workflow writes them with the whole edition. ``make real-ohsumed`` makes one part, in a clone in
which the others are committed files without runs; then ``python docs/renew_pages.py real`` writes
what follows from all parts: the comparison across collections, verdicts, pages, and the manifest.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/helpers"))

from awaited import committed  # noqa: E402
from directrank import cli  # noqa: E402
from directrank.edition.compared import compared  # noqa: E402
from directrank.edition.workflow import Workflow  # noqa: E402
from directrank.papers.one_protocol import numbers_page  # noqa: E402
from directrank.papers.shared import pages  # noqa: E402
from directrank.system.io import json_text, read_json, write_json  # noqa: E402
from studies import study_of, workflow_of  # noqa: E402


def run(*words: str | Path) -> None:
    """Run one of our commands."""
    print("directrank", *words[:2], flush=True)
    if cli.main([str(word) for word in words]):
        raise SystemExit(f"`directrank {' '.join(map(str, words))}` failed")


def plans(workflow: Workflow, folder: Path, names: Iterable[tuple[str, str]]) -> list[Path]:
    """Write the plans of products into a folder."""
    files = []
    for paper, name in names:
        files.append(folder / paper / f"{name}.json")
        files[-1].parent.mkdir(exist_ok=True)
        files[-1].write_text(json_text(workflow.study.products[paper, name]), encoding="utf-8")
    return files


def across_collections(workflow: Workflow, folder: Path) -> None:
    """Draw what compares the collections, from their committed values per query."""
    part = workflow.parts["one_protocol_collections"]
    files = plans(workflow, folder, [(part.paper, name) for name in part.products])
    places = ("--results", folder, "--prepared", folder, "--logs", folder / "logs")
    made = ("--figures", Path(f"figures/{workflow.edition}"),
            "--tables", Path(f"paper_tables/{workflow.edition}"))  # fmt: skip
    run("draw", *files, *places, *made, "--values", *workflow.part_values(part))


def verdicts(workflow: Workflow) -> None:
    """Merge the papers' verdicts, draw them, and compare those of the collections."""
    tables, figures = f"paper_tables/{workflow.edition}", f"figures/{workflow.edition}"
    claims = f"{tables}/claims.csv"
    run("claims", "merge", *workflow.claims_of_papers(), "--edition", workflow.edition,
        "--out", claims, "--by-collection")  # fmt: skip
    run("claims", "picture", claims, "--out", f"{figures}/overview")
    run("claims", "collections", *workflow.product_files("values"), "--claims", claims,
        "--margin", str(workflow.config["margin"]),
        "--out", f"{tables}/claims_by_collection.csv")  # fmt: skip
    run("claims", "count", claims, "--page", "docs/findings.md")


def pages_of_one_protocol(workflow: Workflow) -> None:
    """Write all numbers, what was compared, and which loss to take."""
    tables = f"paper_tables/{workflow.edition}"
    numbers = committed(workflow.tables_of_one_protocol(".md"), tables, ".md")
    numbers_page.write(list(map(Path, numbers)), Path(f"{tables}/one_protocol/README.md"))
    names = Path(f"{tables}/one_protocol/compared.json")
    write_json(names, compared(workflow.study))
    sizes = [word for file in workflow.training_sizes() for word in ("--training-sizes", file)]
    known = [file for file in workflow.training_times() if Path(file).is_file()]
    times = ["--times", *known] if known else []
    run("page", "losses", names, "--out", f"{tables}/which_loss.md", *sizes, *times)


def pages_of_products(workflow: Workflow) -> None:
    """Name every figure and table."""
    for kind, suffix, write in (
        ("figure", ".svg", pages.write_figures),
        ("table", ".md", partial(pages.write_tables, claims=True, figures=True)),
    ):
        folder = f"{'figures' if kind == 'figure' else 'paper_tables'}/{workflow.edition}"
        files = committed(workflow.product_files(kind, suffix), folder, suffix)
        write(list(map(Path, files)), Path(f"{folder}/README.md"))


def manifest(workflow: Workflow, folder: Path, results: Path) -> None:
    """Say what made each product; those whose runs are not at hand keep what was said of them."""
    tables, figures = Path(f"paper_tables/{workflow.edition}"), Path(f"figures/{workflow.edition}")
    planned = workflow.study.products
    made = [
        (paper, name)
        for paper, name in planned
        if any(Path().glob(f"*/{workflow.edition}/{paper}/{name}.*"))
    ]
    out = tables / "manifest.json"
    before = read_json(out)["products"]
    run("page", "manifest", *plans(workflow, folder, made), "--results", results,
        "--figures", figures, "--tables", tables, "--known", out, "--out", out)  # fmt: skip
    now = read_json(out)["products"]
    former = {name: entry for name, entry in before.items() if name not in now}
    write_json(out, {"products": dict(sorted((now | former).items()))})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("edition", help="such as real")
    parser.add_argument("--results", type=Path, help="runs at hand (default: results/<edition>)")
    arguments = parser.parse_args()
    results = (arguments.results or ROOT / f"results/{arguments.edition}").resolve()
    os.chdir(ROOT)
    workflow = workflow_of(study_of(arguments.edition))
    with TemporaryDirectory() as folder:
        across_collections(workflow, Path(folder))
        verdicts(workflow)
        pages_of_one_protocol(workflow)
        pages_of_products(workflow)
        manifest(workflow, Path(folder), results)


if __name__ == "__main__":
    main()
