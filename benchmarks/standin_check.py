"""How closely a stand-in resembles real data: its columns and lists beside a public sample's.

The Web30K stand-in is compared with the sample of MSLR (183 queries, 136 columns): for each column
its zeros, kind and tails, the share of its variance between queries, and how well it ranks alone;
for pairs of columns their rank correlations; for lists their labels and lengths.

    python benchmarks/standin_check.py --raw data/raw --out figures/standin_check
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import rankdata
from sklearn.datasets import load_svmlight_file

from directrank.data import standins
from directrank.data.standin_pages import STREAMS
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.papers.shared import figures
from directrank.system.errors import DataError
from directrank.system.io import atomic_path, write_csv, write_text

SAMPLE = "MSLR-sample.zip"
STANDIN = "web30k_standin"
STATISTICS = (
    "covered terms", "covered share", "length", "idf",
    *(f"{how} {what}" for what in ("tf", "tf/length", "tf*idf")
      for how in ("sum", "min", "max", "mean", "variance")),
    "all covered", "vector space", "BM25", "LM abs. discount", "LM Dirichlet", "LM Jelinek-Mercer",
)  # fmt: skip
FACTS = (
    "slashes", "URL length", "in-links", "out-links", "PageRank", "SiteRank",
    "quality", "bad quality", "clicks of query", "clicks of URL", "dwell time",
)  # fmt: skip
# The 25 statistics come as sum, min, max, mean, variance per quantity; MSLR's order.
GROUPS = (*STREAMS, "page")


def load_sample(path: str | Path) -> RankedLists:
    """The sample of MSLR from its archive.

    Raises:
        DataError: where the archive holds no readable ``all.txt`` of 136 columns.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            member = next(name for name in archive.namelist() if name.endswith("all.txt"))
            with archive.open(member) as file:
                features, labels, ids = load_svmlight_file(
                    file, n_features=136, query_id=True, zero_based=False, dtype=np.float32
                )
    except (zipfile.BadZipFile, StopIteration, ValueError) as error:
        raise DataError(
            f"not the sample of MSLR ({error or 'no all.txt in it'})",
            "put the archive there again",
            file=path,
        ) from error
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    return RankedLists(
        features=features.toarray(),
        labels=labels.astype(np.float32),
        offsets=np.append(starts, len(ids)).astype(np.int64),
        query_ids=ids[starts].astype(np.int64),
    )


def standin_like(sample: RankedLists) -> RankedLists:
    """The Web30K stand-in with as many queries as ``sample``, and lists as long on average."""
    settings = {
        "queries": {"train": sample.n_queries},
        "mean_length": sample.n_documents / sample.n_queries,
        "max_length": 10_000,
    }
    return standins.generate(STANDIN, settings)["train"]


def compare(standin: RankedLists, sample: RankedLists) -> pd.DataFrame:
    """One row per column of the data: what it measures, and its statistics on both sides.

    Columns: ``feature`` (from 1), ``group`` (stream or ``page``), ``statistic``, ``ks`` (the
    Kolmogorov-Smirnov distance of the two distributions), and each of :func:`describe` twice, with
    the endings ``_sample`` and ``_standin``.
    """
    columns = pd.DataFrame(
        {
            "feature": np.arange(1, 137),
            "group": list(STREAMS) * 25 + ["page"] * 11,
            "statistic": [name for name in STATISTICS for _ in STREAMS] + list(FACTS),
            "ks": [
                _ks(standin.features[:, column], sample.features[:, column])
                for column in range(136)
            ],
        }
    )
    sides = {"sample": describe(sample), "standin": describe(standin)}
    for name in sides["sample"].columns:
        for side, frame in sides.items():
            columns[f"{name}_{side}"] = frame[name]
    return columns


def describe(data: RankedLists) -> pd.DataFrame:
    """Statistics of each column of ``data``, one row per column.

    ``zeros`` share of zeros; ``integers`` True where all values are whole; ``distinct`` values;
    ``median``, ``p99`` of the values; ``tail`` log10 of the 99th percentile over the 75th of the
    non-zero magnitudes; ``query_share`` share of the variance of ranks that lies between queries
    (1: constant within queries); ``correlation`` rank correlation with the label within queries;
    ``ndcg5`` NDCG@5 of ranking by the column alone, in its better direction.
    """
    lengths = data.lengths
    query = np.repeat(np.arange(data.n_queries), lengths)
    rows = []
    label_ranks = _within(rankdata(data.labels), query, lengths)
    for column in data.features.T.astype(np.float64):
        ranks = rankdata(column)
        inside = _within(ranks, query, lengths)
        spread = ranks.var()
        sizes = np.abs(column[column != 0])
        tail = np.percentile(sizes, [75, 99]) if len(sizes) else (1.0, 1.0)
        rows.append(
            {
                "zeros": np.mean(column == 0),
                "integers": bool((column == np.round(column)).all()),
                "distinct": len(np.unique(column)),
                "median": np.median(column),
                "p99": np.percentile(column, 99),
                "tail": np.log10(tail[1] / tail[0]),
                "query_share": 1 - inside.var() / spread if spread else 1.0,
                "correlation": _correlation(inside, label_ranks),
                "ndcg5": max(ndcg5(column, data), ndcg5(-column, data)),
            }
        )
    return pd.DataFrame(rows)


def ndcg5(scores: np.ndarray, data: RankedLists) -> float:
    """Mean NDCG@5 (gain 2^l - 1) of ``scores`` over the queries with a relevant document.

    Ties count with their expected value, which for a constant column is that of a random order.
    """
    ndcg = {"name": "ndcg", "k": 5, "ties": "expected"}
    (values,) = metrics_per_query(np.asarray(scores, np.float64), data, [ndcg]).values()
    return float(np.nanmean(values))


def rank_correlations(data: RankedLists) -> np.ndarray:
    """Spearman's correlations of all columns, float64 ``[F, F]``; 0 for constant ones."""
    ranks = np.stack([rankdata(column) for column in data.features.T], axis=1)
    ranks -= ranks.mean(axis=0)
    norm = np.linalg.norm(ranks, axis=0)
    ranks /= np.where(norm > 0, norm, 1.0)
    return ranks.T @ ranks


def block_correlations(correlations: np.ndarray) -> pd.DataFrame:
    """Mean absolute correlations between groups of columns, ``[6, 6]``, the diagonal left out."""
    group = np.array([i % 5 if i < 125 else 5 for i in range(136)])
    size = np.abs(correlations) - np.eye(len(group))
    table = np.zeros((6, 6))
    for a in range(6):
        for b in range(6):
            block = size[np.ix_(group == a, group == b)]
            table[a, b] = block.sum() / (block.size - (len(block) if a == b else 0))
    return pd.DataFrame(table, index=GROUPS, columns=GROUPS)


def summary(table: pd.DataFrame, standin: RankedLists, sample: RankedLists) -> pd.DataFrame:
    """The comparison in some twenty lines: ``measure``, ``sample``, ``standin``."""
    correlations = {"sample": rank_correlations(sample), "standin": rank_correlations(standin)}
    off = np.triu_indices(136, 1)
    rows: list[dict[str, Any]] = []

    def add(measure: str, of: Any) -> None:
        rows.append(
            {"measure": measure, "sample": of("sample", sample), "standin": of("standin", standin)}
        )

    add("queries", lambda _, data: data.n_queries)
    add("documents", lambda _, data: data.n_documents)
    add("queries without a relevant document (share)", lambda _, d: _empty(d))
    for label in range(5):
        add(f"documents of label {label} (share)", lambda _, d, k=label: np.mean(d.labels == k))
    for quantile in (0, 5, 25, 50, 75, 95, 100):
        add(
            f"list length, {quantile} % quantile",
            lambda _, d, p=quantile: np.percentile(d.lengths, p),
        )
    add("columns of whole numbers", lambda side, _: int(table[f"integers_{side}"].sum()))
    add("columns with over 50 % zeros", lambda side, _: int((table[f"zeros_{side}"] > 0.5).sum()))
    add(
        "columns constant within queries",
        lambda side, _: int((table[f"query_share_{side}"] > 1 - 1e-9).sum()),
    )
    add("mean tail (log10 of p99 / p75)", lambda side, _: table[f"tail_{side}"].mean())
    add(
        "mean share of rank variance between queries", lambda s, _: table[f"query_share_{s}"].mean()
    )
    add("mean |rank correlation| of two columns", lambda s, _: np.abs(correlations[s][off]).mean())
    blocks = {side: block_correlations(table) for side, table in correlations.items()}
    for group in GROUPS:
        add(
            f"mean |rank correlation| within: {group}",
            lambda side, _, g=group: blocks[side].loc[g, g],
        )
    add(
        "mean |rank correlation| of body, anchor, title and url with each other",
        lambda side, _: blocks[side].to_numpy()[:4, :4][np.triu_indices(4, 1)].mean(),
    )
    for count in (1, 5, 20):
        add(
            f"variance of ranks in the first {count} principal components",
            lambda side, _, k=count: spectrum(correlations[side])[:k].sum(),
        )
    add("best column alone, NDCG@5", lambda side, _: table[f"ndcg5_{side}"].max())
    add("median column alone, NDCG@5", lambda side, _: table[f"ndcg5_{side}"].median())
    return pd.DataFrame(rows)


def spectrum(correlations: np.ndarray) -> np.ndarray:
    """Eigenvalues of a correlation matrix as shares of their sum, largest first."""
    values = np.linalg.eigvalsh(correlations)[::-1]
    return values / values.sum()


def draw(table: pd.DataFrame, standin: RankedLists, sample: RankedLists) -> Figure:
    """The comparison as a figure of a page; call it within ``figures.style()``."""
    figure, axes = figures.new_figure(2 * figures.COLUMN, 10, nrows=4, ncols=2)
    panels = {
        "zeros": "share of zeros",
        "tail": "tail, log$_{10}$(p99 / p75)",
        "query_share": "between-query variance",
        "ndcg5": "NDCG@5 of one column",
    }
    for axis, (name, title) in zip(axes.flat[:4], panels.items(), strict=True):
        x, y = table[f"{name}_sample"], table[f"{name}_standin"]
        low, high = min(x.min(), y.min()), max(x.max(), y.max())
        margin = 0.04 * (high - low)
        limits = (low - margin, high + margin)
        axis.plot(limits, limits, color="#999999", linewidth=0.7, zorder=1)
        for group, look in zip(GROUPS, figures.SERIES, strict=False):
            chosen = table["group"] == group
            axis.plot(
                x[chosen], y[chosen], linestyle="none", marker=look["marker"], color=look["color"],
                markersize=2.8, markeredgecolor="white", markeredgewidth=0.25, label=group,
            )  # fmt: skip
        axis.set(title=title, xlim=limits, ylim=limits, aspect="equal")
        axis.set(xlabel="sample", ylabel="stand-in")
    _draw_spectrum(axes[2, 0], standin, sample)
    _draw_correlations(figure, axes[2, 1], standin, sample)
    _draw_labels(axes[3, 0], standin, sample)
    _draw_lengths(axes[3, 1], standin, sample)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside upper center", ncols=6, frameon=False,
        handletextpad=0.1, columnspacing=0.9, handlelength=1.2,
    )  # fmt: skip
    figures.small_print(figure, "Public sample of MSLR: real data; stand-in: generated data")
    seen = f"the distributions of the median column are {table['ks'].median():.2g} apart"
    figures.headline(figure, f"The Web30K stand-in beside real data: {seen} (Kolmogorov-Smirnov)")
    return figure


def _draw_spectrum(axis: Any, standin: RankedLists, sample: RankedLists) -> None:
    for data, name, series in ((sample, "sample", 0), (standin, "stand-in", 1)):
        values = np.maximum(spectrum(rank_correlations(data)), 1e-6)
        look = {key: figures.SERIES[series][key] for key in ("color", "linestyle")}
        axis.plot(np.arange(1, len(values) + 1), values, label=name, **look)
    axis.set(yscale="log", ylim=(1e-5, 0.6), xlabel="principal component")
    axis.set_title("share of rank variance")
    axis.legend(loc="upper right", handlelength=1.8)


def _draw_correlations(
    figure: Figure, axis: Any, standin: RankedLists, sample: RankedLists
) -> None:
    order = np.argsort([i % 5 if i < 125 else 5 for i in range(136)], kind="stable")
    grid = np.triu(np.abs(rank_correlations(sample))[np.ix_(order, order)])
    grid += np.tril(np.abs(rank_correlations(standin))[np.ix_(order, order)], -1)
    image = axis.imshow(grid, cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
    for edge in range(25, 126, 25):
        axis.axhline(edge - 0.5, color="white", linewidth=0.4)
        axis.axvline(edge - 0.5, color="white", linewidth=0.4)
    axis.set_xticks([12, 37, 62, 87, 112, 130], GROUPS, rotation=45)
    axis.set_yticks([12, 37, 62, 87, 112, 130], GROUPS)
    axis.grid(False)
    axis.set_title("|rank correlation|")
    axis.set_xlabel("above: sample\nbelow: stand-in")
    bar = figure.colorbar(image, ax=axis, fraction=0.046, ticks=[0, 0.5, 1])
    bar.outline.set_linewidth(0.4)


def _draw_labels(axis: Any, standin: RankedLists, sample: RankedLists) -> None:
    for shift, data, series in ((-0.2, sample, 0), (0.2, standin, 1)):
        shares = np.bincount(data.labels.astype(int), minlength=5) / data.n_documents
        axis.bar(
            np.arange(5) + shift, shares, 0.38,
            color=figures.SERIES[series]["color"], hatch="" if series == 0 else "////",
            edgecolor="white", linewidth=0.3,
        )  # fmt: skip
    axis.set(xlabel="label", yscale="log", ylim=(0.001, 1))
    axis.set_yticks([0.001, 0.01, 0.1, 1], ["0.1 %", "1 %", "10 %", "100 %"])
    axis.set_xticks(range(5))
    axis.set_title("share of documents")


def _draw_lengths(axis: Any, standin: RankedLists, sample: RankedLists) -> None:
    for data, series in ((sample, 0), (standin, 1)):
        lengths = np.sort(data.lengths)
        look = {key: figures.SERIES[series][key] for key in ("color", "linestyle")}
        axis.step(lengths, np.arange(1, len(lengths) + 1) / len(lengths), where="post", **look)
    axis.set(xscale="log", xlabel="documents per query")
    axis.set_title("share of queries up to")


def _ks(left: np.ndarray, right: np.ndarray) -> float:
    points = np.unique(np.concatenate([left, right]))
    below = [
        np.searchsorted(np.sort(side), points, side="right") / len(side) for side in (left, right)
    ]
    return float(np.abs(below[0] - below[1]).max())


def _within(values: np.ndarray, query: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return values - (np.bincount(query, values) / lengths)[query]


def _correlation(left: np.ndarray, right: np.ndarray) -> float:
    norm = np.sqrt((left**2).sum() * (right**2).sum())
    return float((left * right).sum() / norm) if norm > 1e-6 * len(left) else 0.0


def _empty(data: RankedLists) -> float:
    return float(np.mean(data.relevant_counts() == 0))


CAPTION = (
    "The Web30K stand-in beside a public sample of MSLR (183 queries, 19 780 documents, 136 "
    "columns; one point per column). The stand-in is generated with as many queries of the same "
    "mean length."
)


def write_check(raw: str | Path, out: str | Path) -> bool:
    """Compare and write ``README.md``, ``comparison.{png,csv}`` and ``comparison_summary.csv``.

    Returns:
        False, and writes nothing, where ``raw`` does not hold the sample.
    """
    path = Path(raw) / SAMPLE
    if not path.exists():
        return False
    out = Path(out)
    sample = load_sample(path)
    standin = standin_like(sample)
    table = compare(standin, sample)
    lines = summary(table, standin, sample)
    with figures.style(), atomic_path(out / "comparison.png") as temporary:
        # No version or date in the file: equal comparisons are equal bytes.
        metadata = {"Title": "Stand-in and sample compared", "Software": None}
        draw(table, standin, sample).savefig(temporary, format="png", metadata=metadata)
    write_csv(out / "comparison.csv", table, digits=4)
    write_csv(out / "comparison_summary.csv", lines, digits=4)
    write_text(out / "README.md", _markdown(table, lines))
    return True


def _markdown(table: pd.DataFrame, lines: pd.DataFrame) -> str:
    def number(value: float) -> str:
        return f"{value:.0f}" if float(value).is_integer() else f"{value:.3g}"

    bar = "\\|"  # a bar of its own would end the table's cell
    body = "\n".join(
        f"| {row.measure.replace('|', bar)} | {number(row.sample)} | {number(row.standin)} |"
        for row in lines.itertuples()
    )
    worst = table.sort_values(["ks", "feature"], ascending=[False, True]).head(8)
    largest = "\n".join(
        f"| {row.feature} | {row.statistic} | {row.group} | {number(row.ks)} "
        f"| {number(row.median_sample)} | {number(row.median_standin)} |"
        for row in worst.itertuples()
    )
    distance = number(table["ks"].median())
    return f"""# The Web30K stand-in beside real data

Generated by `python benchmarks/standin_check.py`; do not edit.

{CAPTION}
Columns are of body, anchor, title, URL, the whole document, and facts about the page.
`comparison.csv` has the numbers of both sides, column by column.

![comparison](comparison.png)

| measure | sample | stand-in |
| --- | ---: | ---: |
{body}

The median Kolmogorov-Smirnov distance of a column's two distributions is {distance}.
These are the columns with the largest distance:

| feature | statistic | of | distance | median, sample | median, stand-in |
| ---: | --- | --- | ---: | ---: | ---: |
{largest}

The stand-in imitates shapes, not documents: a model trained on it says nothing about real pages,
and a number measured on it says nothing about the real set. Its signal was designed so that boosted
trees, deep networks, one hidden layer and linear models separate in the order known from the real
set; losses were not compared for this purpose. On the few queries of the sample itself these
classes do not separate, so the stand-in's signal is stronger than the sample's at equal size.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--raw", type=Path, required=True, help=f"folder that holds {SAMPLE}")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the comparison to")
    options = parser.parse_args(arguments)
    if not write_check(options.raw, options.out):
        print(f"skipped: there is no {SAMPLE} in {options.raw}; nothing was compared or written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
