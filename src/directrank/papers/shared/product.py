"""Build a product of a paper, from its plan to the files that a reader opens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from directrank.data import catalog
from directrank.papers.shared import tables
from directrank.papers.shared.claim_rows import claims_of
from directrank.papers.shared.evidence import (
    OTHER_REAL,
    PREPARED,
    Evidence,
    gather,
    has_runs,
    read_plan,
)
from directrank.papers.shared.verdicts import OTHER_DATA, STANDIN, quoted
from directrank.study import published
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import write_bytes, write_csv, write_text
from directrank.system.registry import target_of
from directrank.system.schema import suggest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The module that renders figures. It is imported when one is drawn, so that planning does not wait
#: for matplotlib.
RENDERING = "directrank.papers.shared.figures"

#: Kind of data → what a caption says about data that are not the paper's.
ORIGINS = {"stand-in": STANDIN, OTHER_REAL: OTHER_DATA}

#: The placeholder for the collection in the entry of a product that is made for each one.
PLACEHOLDER = "{collection}"

#: The part of a paper that covers all collections.
ACROSS = "collections"

#: Suffix of the file of measured times beside a timed product's files.
TIMES = "_times.csv"


@dataclass(frozen=True)
class FigureResult:
    """A figure, the numbers that it plots, and its caption.

    Attributes:
        figure: the figure, drawn within :func:`directrank.papers.shared.figures.style`.
        data: the plotted numbers, including intervals.
        caption: sentences that state the data set (real or stand-in), scale, trials, interval and
            edition.
        times: the measured times that a ``timed`` product plots. They have a file of their own
            because they differ between runs.
        headline: what is to be seen, in a few words; empty for the product's title.
        finding: the same for a figure of a paper: it takes the place of what the title says after
            the figure's number.
    """

    figure: Figure
    data: pd.DataFrame
    caption: str
    times: pd.DataFrame | None = None
    headline: str = ""
    finding: str = ""

    def heading(self, title: str) -> str:
        """What stands above the figure, if the product has this title."""
        number = title.partition(":")[0]
        return f"{number}: {self.finding}" if self.finding else self.headline or title


class NothingToCompareError(DataError):
    """None of the methods that a product compares with each other were run."""


Kind = Literal["figure", "table", "values"]

#: The suffixes of the files of each kind of product.
SUFFIXES: Mapping[Kind, tuple[str, ...]] = {
    "figure": (".png", ".pdf", ".svg", ".csv"),
    "table": (".csv", ".md", ".tex"),
    "values": (published.SUFFIX,),
}


@dataclass(frozen=True)
class TableResult:
    """A table: its numbers, one per row, and the layout for readers.

    Attributes:
        data: tidy; one row per number, with its interval, its origin and its status.
        layout: the layout for Markdown and LaTeX; its caption states the same as a figure's.
        times: see :class:`FigureResult`.
    """

    data: pd.DataFrame
    layout: tables.TableLayout
    times: pd.DataFrame | None = None


@dataclass(frozen=True)
class ValuesResult:
    """Published values per query, for use by others; see :mod:`directrank.study.published`.

    Attributes:
        data: the values.
        about: a description of them.
    """

    data: pd.DataFrame
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Product:
    """One figure (or panel), table or file of values of a paper.

    Attributes:
        kind: ``figure``, ``table`` or ``values``.
        title: its title, e.g. ``Figure 2 of Bruch et al. (2019): …``.
        needs: the names of the experiments from which it is made.
        function: ``module:function`` below the paper's package. It takes :class:`Evidence` and
            returns a :class:`FigureResult` or a :class:`TableResult`; it is imported when needed.
        options: further arguments of the function.
        data: the names of data sets that it describes, if the edition prepares them.
        timed: whether it has measured times, which go to a file of their own (:data:`TIMES`).
        repeats: products of the paper whose cells it shows again. It needs the runs of those that
            the edition makes, and none of its own.
        computes: functions of the library that it evaluates by name, such as ``losses.approx_ap``.
        claims: the claims on which it bears, besides those that are tested on its runs. Its text
            quotes the verdicts on all of them, which are decided before it is made.
        collection: the collection of a product that is made for each collection.
        part: the part of its paper in which it is made, if that is not its collection's or all.
        across: whether it covers all collections that an edition lists, if there are several. It is
            made from each one's product :attr:`reads`, not from runs.
        reads: the product of kind ``values`` from which it is made, with ``{collection}`` for each
            one's name.
        least: the least number of methods that it compares. If an edition does not name its
            products, it is made only if as many are run.
        compares: ``module:function`` that returns the pairs of variants that a product of
            collections compares. If an edition does not name its products, it is made if both
            variants of a pair are run, on at least two collections if it is ``across``.
    """

    kind: Kind
    title: str
    needs: tuple[str, ...]
    function: str
    options: Mapping[str, Any] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    timed: bool = False
    repeats: tuple[str, ...] = ()
    computes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    collection: str | None = None
    part: str | None = None
    across: bool = False
    reads: str | None = None
    least: int = 1
    compares: str | None = None

    @property
    def made_in(self) -> str | None:
        """The part of its paper with which it is made, such as a collection; None for all of it."""
        return ACROSS if self.across else self.part or self.collection

    def reads_of(self, collections: Sequence[str]) -> list[str]:
        """The products from which it is made if an edition lists these collections."""
        if self.reads is None:
            return []
        return [self.reads.replace(PLACEHOLDER, name) for name in collections]

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of its files; measured times have a file of their own, see :data:`TIMES`."""
        return (*SUFFIXES[self.kind], TIMES) if self.timed else SUFFIXES[self.kind]


def paper_title(paper: str) -> str:
    """The heading of a paper in reports: its ``TITLE``, or its name if it has none."""
    return getattr(paper_module(paper), "TITLE", paper)


def paper_module(paper: str) -> ModuleType:
    """The package of ``paper``, found by its name; raises :class:`ConfigError` if there is none."""
    name = f"directrank.papers.{paper}"
    if not paper.isidentifier() or find_spec(name) is None:
        raise ConfigError(f"no paper '{paper}'", f"write the package {name}, or correct the name")
    return import_module(name)


def products(paper: str) -> Mapping[str, Product]:
    """The products of ``paper`` by name.

    A name that contains ``{collection}`` stands for one product for each collection of the
    catalogue. The placeholder is replaced by the collection's title in the product's title, and by
    its name in its needs and options. To the claims of each are added those that are tested on it.
    """
    return _products(paper, catalog.default_path())


@cache
def _products(paper: str, catalogue: Path) -> Mapping[str, Product]:
    table: Mapping[str, Product] | None = getattr(paper_module(paper), "PRODUCTS", None)
    if table is None:
        raise ConfigError(
            f"the package of '{paper}' has no PRODUCTS", "see directrank.papers.shared.product"
        )
    tested: dict[str, list[str]] = {}
    for claim, row in sorted(claims_of(paper).items()):
        for name in row.products:
            tested.setdefault(name, []).append(claim)
    return {
        full: replace(item, claims=tuple(dict.fromkeys((*item.claims, *tested.get(full, ())))))
        for name, pattern in table.items()
        for full, item in (
            _for_each_collection(name, pattern, catalogue)
            if PLACEHOLDER in name
            else [(name, pattern)]
        )
    }


def _for_each_collection(
    name: str, pattern: Product, catalogue: Path
) -> Iterator[tuple[str, Product]]:
    for collection, entry in catalog.load(catalogue).items():
        item = replace(
            pattern,
            title=pattern.title.replace(PLACEHOLDER, entry.title),
            needs=tuple(need.replace(PLACEHOLDER, collection) for need in pattern.needs),
            options={
                option: value.replace(PLACEHOLDER, collection) if isinstance(value, str) else value
                for option, value in pattern.options.items()
            },
            collection=collection,
        )
        yield name.replace(PLACEHOLDER, collection), item


def product(paper: str, name: str) -> Product:
    """One product; raises :class:`ConfigError`, which lists the known names, if it is unknown."""
    known = products(paper)
    if name not in known:
        raise ConfigError(f"'{paper}' has no product '{name}'", suggest(name, known))
    return known[name]


def target(paper: str, function: str) -> tuple[str, str]:
    """The module and name of a function that a paper's package gives as ``module:function``."""
    module, name = function.split(":")
    return f"directrank.papers.{paper}.{module}", name


def call(paper: str, function: str, *arguments: Any, **options: Any) -> Any:
    """Import a function of a paper, given as for :func:`target`, and call it.

    Raises:
        ConfigError: there is no such function.
    """
    module, name = target(paper, function)
    found = getattr(import_module(module), name, None) if find_spec(module) else None
    if found is None:
        raise ConfigError(
            f"'{paper}' has no function '{function}'",
            f"write {name} in the module {module}, or correct the name",
        )
    return found(*arguments, **options)


def modules_of(paper: str, name: str) -> set[str]:
    """The modules of directrank that make the files of a product.

    The paper's lists of products and claims are not among them, because an entry affects only its
    own product.
    """
    item = product(paper, name)
    shown = [item, *(product(paper, other) for other in item.repeats)]
    modules = {__name__, RENDERING} | code_behind(paper, (part.function for part in shown))
    return modules.union(*(computed_by(part) for part in shown))


def code_behind(paper: str, functions: Iterable[str]) -> set[str]:
    """The modules of a paper's functions."""
    return {target(paper, function)[0] for function in functions}


def computed_by(item: Product) -> set[str]:
    """The modules of the losses and metrics that a product evaluates by name."""
    pairs = [name.split(".") for name in item.computes]
    return {
        target_of(import_module(f"directrank.{kind}").REGISTRY, name, kind)[0]
        for kind, name in pairs
    }


def draw(evidence: Evidence, name: str | None = None) -> FigureResult | TableResult:
    """Make the product of ``evidence``, or another one of its paper, from the same evidence.

    If methods failed and the others are too few, what is made says so. Call it within the figures'
    style.

    Raises:
        DirectrankError: what the product needs is missing.
    """
    name = name or evidence.product
    item = product(evidence.paper, name)
    from_runs = item.needs and not evidence.values_files and not evidence.failed
    if from_runs and not has_runs(evidence, *item.needs):
        raise DataError(
            f"nothing was run for {name}", f"let the edition run {' or '.join(item.needs)}"
        )
    if evidence.failed and 0 < evidence.n_methods < item.least:
        return _placeholder(item, f"fewer than {item.least} methods could be trained")
    try:
        return call(evidence.paper, item.function, evidence, **item.options)
    except NothingToCompareError as error:
        if not evidence.failed:
            raise
        return _placeholder(item, error.what)


def _placeholder(item: Product, why: str) -> FigureResult | TableResult:
    """What stands in the place of a product that cannot be made because methods failed."""
    said = f"Left out, because {why}; the table of all methods says which failed."
    data = pd.DataFrame({"left_out": [said]})
    if item.kind == "table":
        rows = [tables.Section("", [["left out", why]])]
        return TableResult(data, tables.TableLayout(said, "", ["Table", "Reason"], rows), data)
    figure, axes = import_module(RENDERING).new_figure(height=0.6)
    axes.axis("off")
    axes.text(0.5, 0.5, said, ha="center", va="center", wrap=True)
    return FigureResult(figure, data, said, data)


def build(
    plan_file: str | Path,
    runs_folder: str | Path,
    out_stem: str | Path,
    prepared_folder: str | Path = PREPARED,
    claims_file: str | Path | None = None,
    values_files: Sequence[str | Path] = (),
) -> list[Path]:
    """Make the product of a plan and write its files.

    Everything is drawn before anything is written, and each file is written atomically.

    Args:
        plan_file: JSON; see :func:`directrank.papers.shared.evidence.gather`.
        runs_folder: where each run has its folder.
        out_stem: the files' path without suffix, e.g. ``figures/demo/bruch2019/figure2``.
        prepared_folder: where each prepared data set has its folder.
        claims_file: the verdicts on the paper's claims, for a product that quotes any.
        values_files: published values per query, for a product that is made from them, or that can
            be made from those of its collection without runs.

    Returns:
        The files: ``.png``, ``.pdf``, ``.svg`` and ``.csv`` of a figure, ``.csv``, ``.md`` and
        ``.tex`` of a table, ``.parquet`` of values, and that of measured times of a ``timed`` one.

    Raises:
        DirectrankError: the product is unknown, or results, verdicts, published values or measured
            times are missing.
    """
    evidence = gather(read_plan(plan_file), runs_folder, prepared_folder, values_files)
    item = product(evidence.paper, evidence.product)
    for experiment in item.needs if not values_files else ():
        evidence.runs(experiment)
    stem = Path(out_stem)
    if item.kind == "values":
        result: ValuesResult = call(evidence.paper, item.function, evidence, **item.options)
        path = stem.with_name(stem.name + published.SUFFIX)
        published.write_results(path, result.data, result.about)
        return [path]
    figures = import_module(RENDERING)
    said = _verdicts(item, claims_file)
    with figures.style():
        drawn = draw(evidence)
        kinds = set(drawn.data.get("data", ()))
        said = [*(text for kind, text in ORIGINS.items() if kind in kinds), *said]
        files: dict[str, bytes | str | pd.DataFrame]
        if isinstance(drawn, FigureResult):
            # A picture's caption is plain text.
            caption = " ".join([drawn.caption, *said]).replace("**", "")
            figures.headline(drawn.figure, drawn.heading(item.title))
            rendered = figures.render(drawn.figure, item.title, caption)
            files = {f".{kind}": content for kind, content in rendered.items()}
        else:
            label = f"{evidence.paper}-{evidence.product}"
            layout = replace(drawn.layout, notes=[*drawn.layout.notes, *said])
            files = {
                ".md": tables.markdown(layout, item.title),
                ".tex": tables.latex(layout, label),
            }
    files[".csv"] = drawn.data
    if item.timed:
        if drawn.times is None:
            raise ConfigError(f"{evidence.product} of '{evidence.paper}' has no measured times")
        files[TIMES] = drawn.times
    paths = []
    for suffix in item.suffixes:
        paths.append(stem.with_name(stem.name + suffix))
        _write(paths[-1], files[suffix])
    return paths


def _verdicts(item: Product, claims_file: str | Path | None) -> list[str]:
    """Quotations from the file of claims for those on which a product bears."""
    if not item.claims:
        return []
    if claims_file is None:
        raise ConfigError(
            f"“{item.title}” quotes the verdicts on {', '.join(item.claims)}",
            "name the paper's file of claims, --claims paper_tables/<edition>/<paper>/claims.csv",
        )
    return quoted(claims_file, item.claims)


def _write(path: Path, content: bytes | str | pd.DataFrame) -> None:
    if isinstance(content, pd.DataFrame):
        write_csv(path, content)
    elif isinstance(content, str):
        write_text(path, content)
    else:
        write_bytes(path, content)
