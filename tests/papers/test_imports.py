"""What a paper's modules import: no other paper, PyTorch only to compute, its own parts only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from directrank.papers.shared import claims
from directrank.papers.shared.claim_rows import claims_of
from directrank.papers.shared.product import modules_of, product, products, target
from directrank.study.provenance import dependencies
from directrank.system import sources

FOLDER = sources.PACKAGE / "papers"
PAPERS = sorted(
    path.parent.name for path in FOLDER.glob("*/__init__.py") if path.parent.name != "shared"
)
PRODUCTS = [(paper, name) for paper in PAPERS for name in products(paper)]

#: Products that evaluate the library's functions on made-up lists, and what of it.
COMPUTED = {
    ("qin2010", "table1"): "sigmoid ranks, ApproxAP and ApproxNDCG",
    ("yu2020", "figure1a"): "sigmoid ranks",
    ("yu2020", "figure1b"): "the derivative of sigmoid ranks",
    ("yu2020", "figure1c"): "twin-sigmoid ranks and their gradients",
    ("yu2020", "table1"): "twin-sigmoid ranks",
    ("yu2020", "table2"): "sigmoid ranks",
    ("yu2020", "table3"): "twin-sigmoid ranks",
    ("pobrotyn2021", "table1"): "NeuralSort",
    ("pobrotyn2021", "figure1"): "NeuralNDCG",
    ("pobrotyn2021", "figure2"): "NeuralNDCG",
    ("pobrotyn2021", "figure_tau"): "NeuralNDCG and its gradient",
    ("pobrotyn2021", "figure_sinkhorn"): "Sinkhorn scaling",
}


def modules_in(folder: Path) -> list[str]:
    """The modules of a paper's folder."""
    package = f"directrank.papers.{folder.name}"
    return [package, *(f"{package}.{path.stem}" for path in folder.glob("[!_]*.py"))]


@pytest.mark.parametrize("paper", [*PAPERS, "shared"])
def test_no_paper_imports_another_paper(paper: str) -> None:
    others = [f"directrank.papers.{other}" for other in PAPERS if other != paper]
    for module in modules_in(FOLDER / paper):
        for name in sources.imports_of(module):
            assert not any(f"{name}.".startswith(f"{other}.") for other in others), module


@pytest.mark.parametrize("paper", PAPERS)
def test_a_papers_tables_import_none_of_its_modules(paper: str) -> None:
    imported = sources.imports_of(f"directrank.papers.{paper}")
    assert all(name.startswith("directrank.papers.shared") for name in imported)


#: For each module of a product: whether PyTorch is loaded after its import; one process for all,
#: those without PyTorch first.
LOADED = """
import importlib, json, sys
import directrank.edition.plan, directrank.papers.shared.claims
found = {"": "torch" in sys.modules}
for module in json.loads(sys.argv[1]):
    importlib.import_module(module)
    found[module] = "torch" in sys.modules
print(json.dumps(found))
"""


@pytest.mark.slow
def test_planning_and_drawing_import_pytorch_only_for_what_is_computed_with_it() -> None:
    modules = {key: target(key[0], product(*key).function)[0] for key in PRODUCTS}
    assert set(COMPUTED) <= set(modules)
    computing = {modules[key] for key in COMPUTED}
    first = sorted(set(modules.values()) - computing)
    done = subprocess.run(
        [sys.executable, "-c", LOADED, json.dumps(first)],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = json.loads(done.stdout)
    assert [module for module, torch in loaded.items() if torch] == []
    assert {key for key, module in modules.items() if module in computing} == set(COMPUTED)


@pytest.mark.parametrize("paper", PAPERS)
def test_functions_of_products_and_claims_exist(paper: str) -> None:
    functions = [item.function for item in products(paper).values()]
    functions += [name for claim in claims_of(paper).values() for name in claim.functions]
    for function in functions:
        module, name = target(paper, function)
        assert f"\ndef {name}(" in sources.text_of(module).decode() or name == "summary", module


def test_a_products_files_depend_on_its_own_module_and_on_what_that_imports() -> None:
    found = dependencies(modules_of("qin2010", "table4"))
    package = "directrank.papers.qin2010"
    assert {f"{package}.accuracy", f"{package}.comparisons", "directrank.stats.tests"} <= set(found)
    assert {"directrank.papers.shared.tables", "directrank.papers.shared.product"} <= set(found)
    others = {f"{package}.{name}" for name in ("training", "theory", "claims")}
    assert not {package, *others} & set(found)
    assert "directrank.papers.shared.claims" not in found


def test_a_picture_of_tables_depends_on_their_modules() -> None:
    found = set(modules_of("qin2010", "summary"))
    for table in ("table1", "table4", "baselines"):
        assert set(modules_of("qin2010", table)) <= found


@pytest.mark.parametrize("key", COMPUTED)
def test_what_is_computed_depends_on_the_losses_it_names(key: tuple[str, str]) -> None:
    item, found = product(*key), set(modules_of(*key))
    for use in item.computes:
        registry, name = use.split(".")
        module = sys.modules[f"directrank.{registry}"].REGISTRY[name].split(":")[0]
        assert module in found
    text = sources.text_of(target(key[0], item.function)[0]).decode()
    for registry in ("losses", "metrics"):
        uses = {f"{registry}.{name}" for name in sys.modules[f"directrank.{registry}"].REGISTRY}
        named = {use for use in uses if f" {use}(" in text or f"-{use}(" in text}
        assert named <= {use for part in products(key[0]).values() for use in part.computes}


def test_verdicts_on_a_papers_claims_depend_on_that_paper_alone() -> None:
    of_bruch = dependencies(claims.modules_of("bruch2019"))
    assert {"directrank.papers.shared.claims", "directrank.papers.bruch2019.figures"} <= of_bruch
    assert not [name for name in of_bruch if name.startswith("directrank.papers.qin2010")]
    of_pobrotyn = set(claims.modules_of("pobrotyn2021"))
    loss = set(modules_of("pobrotyn2021", "figure1")) - set(modules_of("pobrotyn2021", "table3"))
    assert loss < of_pobrotyn
    assert claims_of("nobody1999") == {}


@pytest.mark.parametrize("paper", PAPERS)
def test_products_quote_claims_that_are_published_and_every_claim_is_quoted(paper: str) -> None:
    published = claims.published_claims()
    own = set(published.loc[published["paper"] == paper, "claim"])
    known = claims_of(paper)
    assert set(known) == own
    for name, item in products(paper).items():
        assert set(item.claims) <= own
        assert {claim for claim, row in known.items() if name in row.products} <= set(item.claims)
    assert all(row.products for row in known.values())
