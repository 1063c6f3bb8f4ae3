"""Write a page that summarises each prepared data set, and a table of all of them."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from directrank.data.prepared import SPLITS, open_dataset, read_record, split_name
from directrank.system import io

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from directrank.lists.packed import RankedLists

_LENGTH_BINS = 40

#: Kind of data → what a page and its picture say of it.
_KINDS = {
    "real": "Real data, from its archive",
    "standin": "A stand-in: generated data in the shape of the real set, not the real set",
    "generated": "Artificial data, generated",
}

#: Training queries at most by which single features are measured.
_QUERIES = 1000

#: What measures them.
_NDCG = {"name": "ndcg", "k": 10}


def write_pages(folders: Sequence[str | Path], out: str | Path) -> list[Path]:
    """Write the page of every data set, and ``datasets.csv`` and ``.md`` with one row for each.

    Args:
        folders: prepared data sets.
        out: the folder of the files: ``NAME.md``, ``NAME.csv`` (counts of every split),
            ``NAME.png`` and ``.svg`` (label shares, list lengths, what each feature tells alone),
            and the table.

    Returns:
        The files written.
    """
    out = Path(out)
    rows, written = [], []
    for folder in folders:
        record = read_record(folder)
        rows.append(overview(record))
        written += _write_page(Path(folder), record, out)
    table = pd.DataFrame(rows)
    io.write_csv(out / "datasets.csv", table)
    linked = table.assign(**{"data set": [f"[{name}]({name}.md)" for name in table["data set"]]})
    io.write_text(out / "datasets.md", f"# Data of the edition\n\n{_markdown(linked)}")
    return [*written, out / "datasets.csv", out / "datasets.md"]


def overview(record: dict[str, Any]) -> dict[str, Any]:
    """The row of a data set in a table such as Qin2010's and Pobrotyn2021's Table 2."""
    total = record["total"]
    first = None if record["folds"] is None else record["folds"][0]
    return {
        "data set": record["name"],
        "origin": record["origin"],
        "features": record["n_features"],
        "relevance levels": record["label_levels"],
        "queries": total["queries"],
        "queries in training": record["splits"][split_name(first, "train")]["queries"],
        "queries in test": record["splits"][split_name(first, "test")]["queries"],
        "empty queries": total["empty_queries"],
        "documents": total["documents"],
        "documents per query": total["documents"] / total["queries"],
    }


def splits_table(record: dict[str, Any]) -> pd.DataFrame:
    """Counts of every split, one row each, in the order of folds and splits."""
    folds = [None] if record["folds"] is None else record["folds"]
    rows = []
    for name in (split_name(fold, split) for fold in folds for split in SPLITS):
        split = record["splits"].get(name)
        if split is None:
            continue
        row = {
            "split": name,
            "queries": split["queries"],
            "documents": split["documents"],
            "empty queries": split["empty_queries"],
        }
        for level, count in enumerate(split["labels"]):
            row[f"label {level}"] = count / split["documents"]
        for key in ("shortest", "median", "mean", "longest"):
            row[f"{key} list"] = split["list_length"][key]
        rows.append(row)
    return pd.DataFrame(rows)


def _write_page(folder: Path, record: dict[str, Any], out: Path) -> list[Path]:
    name = record["name"]
    table = splits_table(record)
    io.write_csv(out / f"{name}.csv", table)
    with open(folder / "features.csv", newline="") as file:
        features = list(csv.DictReader(file))
    _draw(folder, record, out / name)
    io.write_text(out / f"{name}.md", _page(record, table, features))
    return [out / f"{name}.{suffix}" for suffix in ("md", "csv", "png", "svg")]


def _page(record: dict[str, Any], table: pd.DataFrame, features: list[dict[str, str]]) -> str:
    constant = sum(row["minimum"] == row["maximum"] for row in features)
    negative = sum(float(row["minimum"]) < 0 for row in features)
    largest = max(features, key=lambda row: abs(float(row["maximum"])))
    lines = [
        f"# {record['title']}",
        "",
        f"{_KINDS[record['origin']]}. Digest of the prepared content: `{record['digest'][:16]}`.",
        "",
        _markdown(table),
        f"{len(features)} features; {constant} are constant, {negative} take negative values; the "
        f"largest value is {float(largest['maximum']):g}, in feature {largest['feature']}.",
        "",
        f"![labels, list lengths, single features]({record['name']}.svg)",
        "",
        f"Right: each feature alone as the score, ascending or descending, whichever is better, on "
        f"up to {_QUERIES} training queries{_of_fold(record)}; dashed: the mean of a random order.",
        "",
    ]
    return "\n".join(lines)


def _draw(folder: Path, record: dict[str, Any], target: Path) -> None:
    # Imported here because they take longer to import than everything else in this module.
    from matplotlib.figure import Figure

    from directrank.system import look

    first = None if record["folds"] is None else record["folds"][0]
    lists = open_dataset(folder / split_name(first, "train"))
    single, by_chance = _information(lists)
    with look.style():
        figure = Figure(figsize=(6.7, 2.3))
        left, middle, right = figure.subplots(ncols=3)
        _draw_labels(left, record["total"])
        _draw_lengths(middle, np.asarray(lists.lengths))
        _draw_information(right, single, by_chance)
        seen = (
            f"{record['title']}: the best single feature has NDCG@10 of {single.max():.3f}, a "
            f"random order {by_chance:.3f}"
        )
        look.heading(figure, seen)
        look.small_print(figure, _KINDS[record["origin"]])
        for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            with io.atomic_path(target.with_name(f"{target.name}.{suffix}")) as path:
                path.write_bytes(look.saved(figure, suffix, metadata, dpi=200))


def _of_fold(record: dict[str, Any]) -> str:
    return "" if record["folds"] is None else f" of fold {record['folds'][0]}"


def _information(lists: RankedLists) -> tuple[np.ndarray, float]:
    """NDCG@10 of each feature as the score, ``[F]``, and the mean of a random order."""
    import torch

    from directrank.metrics.packed import metrics_per_query

    some = lists.select(np.arange(min(lists.n_queries, _QUERIES)))
    features = np.nan_to_num(np.asarray(some.features))
    single = []
    for column in features.T:
        both = torch.from_numpy(np.stack([column, -column]))
        (values,) = metrics_per_query(both, some, [_NDCG]).values()
        single.append(np.nanmean(values, axis=1).max())
    equal = np.zeros(some.n_documents, np.float32)
    (values,) = metrics_per_query(equal, some, [_NDCG | {"ties": "expected"}]).values()
    return np.array(single), float(np.nanmean(values))


def _draw_labels(axes: Axes, total: dict[str, Any]) -> None:
    """The share of each label, in figures too: a bar of a rare one cannot be seen."""
    from directrank.system import look

    shares = np.array(total["labels"]) / total["documents"]
    levels = np.arange(len(shares))
    axes.barh(levels, shares, color=look.BLUE)
    for level, share in enumerate(shares.tolist()):
        axes.text(share, level, f" {100 * share:.2g} %", va="center", fontsize=6.5)
    axes.set(xlabel="share of documents", ylabel="label", xticks=[], yticks=levels)
    axes.set_xlim(0, 1.3 * shares.max())  # room for the figures
    axes.grid(visible=False)


def _draw_lengths(axes: Axes, lengths: np.ndarray) -> None:
    """A histogram of whole numbers, each bin of equally many of them."""
    from matplotlib.ticker import MaxNLocator

    from directrank.system import look

    low, high = int(lengths.min()), int(lengths.max())
    if low == high:
        axes.set_axis_off()
        said = f"Every training query\nhas {high:,} documents".replace(",", "\u00a0")
        axes.text(0.5, 0.5, said, ha="center", va="center")
        return
    step = max(1, math.ceil((high - low + 1) / _LENGTH_BINS))
    edges = [edge - 0.5 for edge in range(low, high + step + 1, step)]
    axes.hist(lengths, bins=edges, color=look.BLUE)
    axes.set(xlabel="documents per query (training)", ylabel="queries")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def _draw_information(axes: Axes, single: np.ndarray, by_chance: float) -> None:
    """A histogram of what features tell, from the random order's value to the best."""
    from matplotlib.ticker import MaxNLocator

    from directrank.system import look

    axes.hist(single, bins=20, color=look.SKY, edgecolor=look.BLUE, linewidth=0.4)
    axes.axvline(by_chance, color=look.BLACK, linestyle="--", linewidth=0.8)
    axes.set(xlabel="NDCG@10 of one feature (training)", ylabel="features")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def _markdown(table: pd.DataFrame) -> str:
    def text(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    lines = [" | ".join(table.columns), " | ".join("---" for _ in table.columns)]
    lines += [" | ".join(text(value) for value in row) for row in table.itertuples(index=False)]
    return "".join(f"| {line} |\n" for line in lines)
