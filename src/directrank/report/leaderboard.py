"""A page on which the methods of one protocol are looked up, filtered and compared two by two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from directrank import __version__
from directrank.papers.one_protocol.controls import control_pairs
from directrank.papers.one_protocol.methods import ALONE, CONTROLS, METRICS, SCORERS
from directrank.report.build import environment_of_pages, script_data
from directrank.system.errors import DataError
from directrank.system.io import read_json, write_text

#: What kind of loss each is: it compares scores with labels one by one, in pairs or as lists, or
#: it is a metric over relaxed ranks.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "pointwise": ("rmse", "sigmoid_cross_entropy", "ordinal"),
    "pairwise": (
        "ranknet", "lambdarank", "lambda_loss", "k_song", "yeti_loss", "pairwise_hinge",
        "stochastic_rank",
    ),
    "listwise": (
        "listnet", "listmle", "wassrank", "xe_ndcg", "pl_rank", "softmax_cross_entropy", "poly1",
        "unique_softmax", "adr_mse", "sl_at_k", "psl",
    ),
    "relaxed metric": (
        "softrank", "approx_ndcg", "approx_ap", "approx_precision", "gumbel_approx_ndcg",
        "neural_ndcg", "neural_ndcg_transposed", "twin_precision", "twin_ap", "twin_ndcg",
        "twin_nerr", "smooth_ndcg", "fast_soft_ndcg", "lapsum_ndcg", "blackbox_ndcg", "pirank",
        "soft_sort_ndcg", "sinkhorn_ndcg", "diff_sort_ndcg", "newton",
    ),
}  # fmt: skip

#: What takes no loss, and is a kind of its own among the families.
_ALONE = tuple(SCORERS[scorer] for scorer in ALONE)


def write(compared: Path, out: Path) -> None:
    """Write the leaderboard of an edition as one HTML file that loads nothing else.

    Args:
        compared: ``…/one_protocol/compared.json``, beside the tables of each collection.
        out: the file, such as ``report/real/leaderboard.html``.

    Raises:
        DataError: a table of a collection is missing.
    """
    facts = read_json(compared)
    families = dict(_families(facts["methods"]))
    collections = [
        _collection(compared.parent, each["name"], each["title"], families)
        for each in facts["collections"]
    ]
    page = environment_of_pages().get_template("leaderboard.html.j2")
    write_text(
        out,
        page.render(
            edition=facts["edition"],
            collections=collections,
            metrics=list(METRICS),
            scorers=list(SCORERS.values()),
            families=[*FAMILIES, *_ALONE],
            data=script_data(collections),
            version=__version__,
        ),
    )


def _families(methods: list[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """The name of each loss in print, and its family."""
    of_loss = {loss: family for family, losses in FAMILIES.items() for loss in losses}
    for method in methods:
        yield method["name"], of_loss[method["loss"]]


def _collection(folder: Path, name: str, title: str, families: Mapping[str, str]) -> dict[str, Any]:
    """The methods of a collection, and their pairs in the order of the methods."""
    table, pairs = (_read(folder / f"table_{name}{end}.csv") for end in ("", "_pairs"))
    table = table[table["mean"].notna() & _is_ranked(table["scorer"])]
    pairs = pairs[_is_ranked(pairs["scorer"]) & _is_ranked(pairs["other_scorer"])]
    names = table[["method", "scorer"]].drop_duplicates().reset_index(drop=True)
    of_metric = {
        metric: rows.set_index(["method", "scorer"]) for metric, rows in table.groupby("metric")
    }
    primary = of_metric["NDCG@10"]
    controls = set(control_pairs(names))
    place = {key: number for number, key in enumerate(names.itertuples(False, None))}
    verdicts = sorted(pairs["verdict"].unique())
    rows, distance = [], 0.0
    for row in pairs.itertuples(index=False):
        a, b = place[row.method, row.scorer], place[row.other, row.other_scorer]
        if (min(a, b), max(a, b)) in controls:
            distance = max(distance, abs(row.difference))
        numbers = (row.difference, row.half_width, row.p_corrected, row.p_equivalent_corrected)
        rows.append([a, b, *map(_short, numbers), verdicts.index(row.verdict), bool(row.tied)])
    return {
        "name": name,
        "title": title,
        "origin": str(table["data"].iloc[0]),
        "queries": int(table["queries"].iloc[0]),
        "distance": _short(distance),
        "verdicts": verdicts,
        "methods": [
            {
                "name": method,
                "scorer": scorer,
                "family": scorer if scorer in _ALONE else families[method.removesuffix(" again")],
                "places": [int(first), int(last)],
                "best": bool(best),
                "values": {
                    metric: [*map(_short, rows.loc[(method, scorer), ["mean", "half_width"]])]
                    for metric, rows in of_metric.items()
                },
            }
            for (method, scorer), first, last, best in primary[
                ["first_place", "last_place", "may_be_best"]
            ].itertuples(name=None)
        ],
        "pairs": rows,
    }


def _is_ranked(scorer: pd.Series) -> pd.Series:
    """Which methods learn something; the others are controls."""
    return scorer != SCORERS[CONTROLS]


def _short(value: float) -> float:
    """To the digits that the page may show."""
    return float(f"{value:.4g}")


def _read(file: Path) -> pd.DataFrame:
    if not file.is_file():
        raise DataError("this table is missing", "make the edition first", file=file)
    return pd.read_csv(file)
