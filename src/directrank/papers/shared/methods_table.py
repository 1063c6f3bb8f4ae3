"""Tables of methods in metrics, ours beside the printed values, from a declaration.

A table is made in two steps. :meth:`MethodsTable.rows` gives a frame with a row per method and
metric: what was measured, what is printed, how far the two lie apart, and what is set in bold or
gets an asterisk. :meth:`MethodsTable.result` takes the declared columns of it for the CSV file, and
sets the sections that :meth:`MethodsTable.section` makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from directrank.papers.shared.cells import add_differences, measured, printed, standard_error
from directrank.papers.shared.evidence import NOT_COMPARABLE, Evidence, heading_of
from directrank.papers.shared.format import DIGITS, headings, spread
from directrank.papers.shared.leads import extremes
from directrank.papers.shared.methods import Method, over_trials
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Section, TableLayout

Row = dict[str, Any]

Measure = Callable[[Mapping[str, Method], str], dict[str, Row]]
"""Methods by name, and a metric → the columns of each method's row: its ``mean``, its
``half_width``, and what else the table shows. It is given all methods, so that it can test each one
against another."""

#: Columns of whole numbers, which are empty where nothing was run or printed.
COUNTS = ("trials", "folds", "queries", "star", "published_star")


@dataclass(frozen=True)
class MethodsTable:
    """What a table of methods has.

    Attributes:
        first: the heading of the methods' names.
        metrics: heading → metric.
        csv: the columns of the CSV file. Those that nothing gives a value are empty.
        measure: what is measured; see :data:`Measure`. Its column ``best`` makes a mean bold, and
            ``star`` marks it with an asterisk.
        name: the column of the methods' names.
        title: a method's name → its name in print.
        suffix: what follows that name in its line, from the method's first row.
        front: heading → column that stands between a name and its values.
        end: heading → column that follows them.
        digits: decimals of our values.
        beside: heading → what stands beside each of our values, from its row; see
            :func:`in_print`.
        by_metric: whether the rows of a metric stand together, or else those of a method.
        contenders: which rows can have the best value of their column, which is bold.
        error_over: the column that counts the values behind a half width.
        print_over: how many values are behind a printed half width.
        unprinted: the status of a value that the paper does not have, or that is lost.
        other_data_first: whether the status of such a value on other data than the paper's says
            rather that these are other data.
    """

    first: str
    metrics: Mapping[str, str]
    csv: Sequence[str]
    measure: Measure
    name: str = "method"
    title: Callable[[str], str] = str
    suffix: Callable[[Row], str] | None = None
    front: Mapping[str, str] = field(default_factory=dict)
    end: Mapping[str, str] = field(default_factory=dict)
    digits: int = DIGITS
    beside: Mapping[str, Callable[[Row], str]] = field(default_factory=dict)
    by_metric: bool = False
    contenders: Callable[[pd.DataFrame], pd.Series] | None = None
    error_over: Literal["trials", "queries"] = "queries"
    print_over: int | None = None
    unprinted: str = ""
    other_data_first: bool = False

    def rows(
        self,
        evidence: Evidence,
        methods: Mapping[str, Method],
        published: pd.DataFrame | None = None,
        order: Sequence[str] = (),
        **about: Any,
    ) -> pd.DataFrame:
        """The rows of methods on one data set.

        Args:
            evidence: that of the product.
            methods: those that were run, by name.
            published: the printed values, from :meth:`printed`. Their methods have rows, whether or
                not they were run.
            order: names that come first; then follow those in print, then the others.
            about: further columns.
        """
        theirs = [] if published is None else list(published[self.name])
        named = dict.fromkeys([*order, *theirs, *methods])
        names = [name for name in named if name in methods or name in theirs]
        dataset = next(iter(methods.values())).dataset if methods else None
        values = {
            heading: self.measure(methods, metric) for heading, metric in self.metrics.items()
        }
        if self.by_metric:
            cells = [(name, heading) for heading in self.metrics for name in names]
        else:
            cells = [(name, heading) for name in names for heading in self.metrics]
        rows = [
            evidence.about(dataset, **about)
            | {self.name: name, "metric": heading}
            | values[heading].get(name, {})
            for name, heading in cells
        ]
        data = pd.DataFrame(rows)
        if published is not None:
            data = data.merge(published, how="left", on=[self.name, "metric"])
        data = data.reindex(columns=list(dict.fromkeys([*data, *self.csv])))
        if self.contenders is not None:
            data = _with_best(data, self.contenders(data))
        return data if published is None else self._beside_print(data)

    def _beside_print(self, data: pd.DataFrame) -> pd.DataFrame:
        """``data`` with its distances from print, and what each row can be used for."""
        printed_error: pd.Series | float = 0.0
        if self.print_over is not None:
            printed_error = standard_error(data["published_half_width"], self.print_over)
        error = standard_error(data["half_width"], data[self.error_over])
        data = add_differences(data, error=error, published_error=printed_error)
        lost = (data["published"].isna(), self.unprinted)
        rules = [
            (data["data"] == kind, f"{kind}: levels not comparable") for kind in NOT_COMPARABLE
        ]
        rules.insert(len(rules) if self.other_data_first else 0, lost)
        conditions, names = zip((data["mean"].isna(), "not run here"), *rules, strict=True)
        return data.assign(status=np.select(conditions, names, "compared"))

    def printed(self, table: pd.DataFrame, **columns: str) -> pd.DataFrame:
        """The printed values of a published table that has a row per method.

        Args:
            table: by method; a metric that it does not have is left out.
            columns: column of the result, such as ``published`` → column of the table, with ``{}``
                for the heading of the metric.
        """
        parts = [
            pd.DataFrame({column: table[of.format(heading)] for column, of in columns.items()})
            .assign(metric=heading)
            .rename_axis(self.name)
            .reset_index()
            for heading in self.metrics
            if columns["published"].format(heading) in table
        ]
        return pd.concat(parts, ignore_index=True)

    def lines(self, data: pd.DataFrame) -> list[list[str]]:
        """A line per method, with our value of each of its rows and what stands beside it."""
        lines = []
        for name, group in data.groupby(self.name, sort=False):
            rows = group.to_dict("records")
            suffix = "" if self.suffix is None else self.suffix(rows[0])
            line = [self.title(str(name)) + suffix, *_texts(rows[0], self.front)]
            for row in rows:
                line += [self._ours(row), *(text(row) for text in self.beside.values())]
            lines.append([*line, *_texts(rows[0], self.end)])
        return lines

    def _ours(self, row: Row) -> str:
        best, star = row.get("best") == 1, row.get("star") == 1
        mark = "*" if star and not best else ""
        return measured(row["mean"], row["half_width"], self.digits, best=best, mark=mark)

    @property
    def columns(self) -> list[str]:
        """The headings."""
        values = headings("", self.metrics, *self.beside)[1:]
        return [self.first, *self.front, *values, *self.end]

    def section(
        self, data: pd.DataFrame, title: str | None = None, *, headed: bool = False
    ) -> Section:
        """The lines of ``data`` under a title, by default the name of their data set in the paper,
        with headings of their own if ``headed``.
        """
        shown = data[data["metric"].isin(list(self.metrics))]
        title = _place(data) if title is None else title
        return Section(title, self.lines(shown), self.columns if headed else ())

    def extremes(self, data: pd.DataFrame, heading: str) -> str:
        """Which methods have the highest and the lowest mean in a metric; empty without any."""
        run = data[(data["metric"] == heading) & data["mean"].notna()]
        if run.empty:
            return ""
        means = dict(zip(run[self.name].map(self.title), run["mean"], strict=True))
        place = _place(data)
        return (f"on {place}, " if place else "") + extremes(means, heading, self.digits)

    def trials(self, data: pd.DataFrame) -> str:
        """How many trials the methods have, as in ``3 to 5 trials``."""
        return spread(data["trials"].dropna().astype(int).tolist(), "trial")

    def result(
        self,
        data: pd.DataFrame,
        start: str,
        caption: str,
        sections: Sequence[Section],
        notes: Sequence[str] = (),
    ) -> TableResult:
        """The table of rows ``data``; the rest is as for
        :class:`directrank.papers.shared.tables.TableLayout`.
        """
        counts = {column: "Int64" for column in COUNTS if column in self.csv}
        layout = TableLayout(start, caption, self.columns, sections, notes)
        return TableResult(data[list(self.csv)].astype(counts), layout)


def _texts(row: Row, columns: Mapping[str, str]) -> list[str]:
    return ["" if pd.isna(row[column]) else str(row[column]) for column in columns.values()]


def _with_best(data: pd.DataFrame, contenders: pd.Series) -> pd.DataFrame:
    """``data`` with the columns ``best`` and, beside printed values, ``published_best``."""
    best = data[contenders].groupby("metric").max(numeric_only=True)
    for value, mark in (("mean", "best"), ("published", "published_best")):
        if value in data:
            data[mark] = contenders & (data[value] == data["metric"].map(best[value]))
    return data


def in_print(digits: int) -> Callable[[Row], str]:
    """For ``beside``: the printed value with its number of decimals, and its distance from ours."""

    def cell(row: Row) -> str:
        best, star = row.get("published_best") == 1, row.get("published_star") == 1
        return printed(
            row["published"],
            digits,
            row.get("published_half_width", math.nan),
            best=best,
            mark="*" if star and not best else "",
            in_errors=row["difference_in_se"],
            kind=row["data"],
        )

    return cell


def over_trials_times(scale: float) -> Measure:
    """For ``measure``: the mean over trials with its t interval, times ``scale``.

    It counts the queries that the mean is of, which are not those that are left out.
    """

    def measure(methods: Mapping[str, Method], metric: str) -> dict[str, Row]:
        return {
            name: over_trials(scale * method.trial_means(metric))
            | {"folds": len(method.runs), "queries": _queries(method)}
            for name, method in methods.items()
        }

    return measure


#: For ``measure``: the mean in per cent with its t interval over trials.
percent_over_trials = over_trials_times(100)


def _queries(method: Method) -> int:
    scales = [run.scale("test") for run in method.runs]
    left_out = sum(scale.empty for scale in scales) if method.empty == "exclude" else 0
    return sum(scale.queries for scale in scales) - left_out


def _place(data: pd.DataFrame) -> str:
    """The paper's name of the data set of rows, and the data that replace it; empty for none."""
    if "paper_dataset" not in data:
        return ""
    first = data.iloc[0]
    return heading_of(first["paper_dataset"], first["data"], first["dataset"])
