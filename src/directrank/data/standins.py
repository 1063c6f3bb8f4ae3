"""Stand-ins: generated data sets in the shape of collections that cannot be obtained without a
form.

A stand-in has the columns, label shares, list lengths and empty queries of the real set and a
signal that separates classes of models in the same order. It is **not** the real set: no number
measured on it is a measurement on the real one, and every name ends in ``_standin`` so that this is
visible wherever the number is used. The signal was shaped without looking at losses (see
:func:`utility`).

Profiles, with the reason for every number, are in ``standins.yaml`` beside this module. Every query
has its own random stream and is computed separately, so it does not depend on the number of queries
or the size of the chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, cast

import numpy as np
import yaml

from directrank.data import standin_pages
from directrank.data.prepared import SPLITS
from directrank.data.standin_pages import Lengths, Pages, bm25, draw_pages
from directrank.lists.packed import RankedLists
from directrank.system.errors import ConfigError
from directrank.system.schema import refuse_unknown, suggest

BODY, ANCHOR, TITLE, URL, WHOLE = range(5)
#: The title idf of a query (the sum over its terms) that divides head from tail queries.
HEAD_IDF, HEAD_SCALE = 17.0, 2.0


def utility(pages: Pages, weights: Mapping[str, float], noise: float) -> np.ndarray:
    """Usefulness of each page for its query, float64 ``[N]``; labels are cut from it.

    Args:
        pages: the pages.
        weights: the section ``relevance`` of a profile, one weight for each of :func:`parts`.
        noise: factor on the noise of the profile.
    """
    values = parts(pages)
    terms = (
        (noise if name == "noise" else 1.0) * weight * values[name]
        for name, weight in weights.items()
    )
    return cast(np.ndarray, sum(terms))


def parts(pages: Pages) -> dict[str, np.ndarray]:
    """The parts of the utility, each float64 ``[N]`` of the order of 1."""
    q = pages.query
    facts = pages.facts
    # Head queries, of few and common words, look for a site; tail queries look for a text. A
    # model sees which in the query's idf columns.
    head = (1 / (1 + np.exp((pages.idf[:, TITLE].sum(axis=1) - HEAD_IDF) / HEAD_SCALE)))[q]
    kind = 1 - 2 * head
    covered = (pages.counts > 0).sum(axis=2) / pages.n_terms[q][:, None]
    scores = bm25(pages)
    whole = _soft(scores[:, WHOLE], 20, 12)
    title = _soft(scores[:, TITLE], 9, 9)
    url = _soft(scores[:, URL], 6, 9)
    page_rank = _soft(facts["page_rank"], 15_000, 12_000)
    site_rank = _soft(facts["site_rank"], 35_000, 15_000)
    return {
        "smooth": whole + 0.5 * title,
        "gated": (
            kind * (whole + 0.6 * title)
            + 0.8 * (1 - head) * title * whole
            + head * (1.2 * url * page_rank + 0.5 * site_rank * page_rank)
        ),
        "composed": 1.3 * kind * page_rank * site_rank,
        "text": (1 - head) * _text(pages, covered),
        "site": head * _site(pages, covered),
        "clicks": _clicks(facts),
        "quality": _quality(facts, covered),
        "topic": pages.topic,
        # What a tail query asks of a page's topic, a head query does not want.
        "turned": kind * pages.topic,
        "level": pages.level[q],
        "noise": pages.noise,
    }


def _soft(values: np.ndarray, centre: float, scale: float) -> np.ndarray:
    return np.tanh((values - centre) / scale)


def _between(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return (values > low) & (values < high)


def _text(pages: Pages, covered: np.ndarray) -> np.ndarray:
    """A text of readable length that holds every term some times, but is not stuffed with them."""
    asked = np.arange(pages.counts.shape[2]) < pages.n_terms[pages.query][:, None]
    rarest = np.where(asked, pages.counts[:, BODY], np.inf).min(axis=1)
    length = pages.lengths[:, BODY]
    density = pages.counts[:, BODY].sum(axis=1) / np.maximum(length, 1.0)
    return (
        0.8 * (_between(rarest, 2, 12) & _between(length, 250, 2500))
        - 0.4 * (rarest >= 12)
        + 0.9 * ((covered[:, TITLE] >= 0.5) & _between(length, 250, 1200))
        - 0.9 * ((density > 0.12) & (rarest >= 3))
    )


def _site(pages: Pages, covered: np.ndarray) -> np.ndarray:
    """A shallow page that the query names, linked to neither by nobody nor by everybody."""
    facts = pages.facts
    named = np.maximum(covered[:, URL], covered[:, ANCHOR]) >= 0.5
    shallow = facts["slashes"] <= 2
    return (
        0.9 * (named & shallow)
        + 0.7 * (_between(facts["in_links"], 3, 3000) & shallow)
        + 0.6 * ((facts["in_links"] > 3) ^ (facts["out_links"] > 0))
    )


def _clicks(facts: Mapping[str, np.ndarray]) -> np.ndarray:
    """Clicks of this query tell; those of other queries only where readers stayed."""
    clicked = facts["url_clicks"] > 6
    return (
        1.0 * (facts["query_clicks"] > 0)
        + 0.5 * (facts["query_clicks"] > 30)
        + 0.6 * (clicked & (facts["dwell_time"] > 25))
        - 0.3 * (clicked & (facts["dwell_time"] <= 12))
    )


def _quality(facts: Mapping[str, np.ndarray], covered: np.ndarray) -> np.ndarray:
    """Pages classed as bad are of no use, the more so where they match; middling classes help."""
    bad = facts["bad_quality"] > 20
    matching = covered[:, WHOLE] == 1.0
    return (
        -0.8 * (bad & matching)
        - 0.2 * bad
        + 0.5 * (_between(facts["quality"], 3, 12) & matching)
        + 0.4 * ((facts["site_rank"] > 30_000) ^ (facts["out_links"] > 0))
    )


#: The value to which the real sets' marker of missing values (1.797e308) is clipped when read.
HUGE = 1e6
_CALIBRATION_QUERIES = 400


@dataclass(frozen=True)
class StandinSettings:
    """Size and randomness of a stand-in; the first three default to the profile's demo values.

    Attributes:
        queries: queries per split; given as ``"full"``, the numbers of the real set.
        mean_length: mean documents per query; the whole distribution is scaled to it.
        max_length: longest list.
        noise: factor on the noise in the labels; 1 is the calibrated level, 0 none.
        seed: names the random streams.
    """

    queries: Mapping[str, int]
    mean_length: float
    max_length: int
    noise: float = 1.0
    seed: int = 0


@cache
def _document() -> Mapping[str, Any]:
    text = (files("directrank.data") / "standins.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def names() -> list[str]:
    """Names of all stand-ins."""
    return sorted(_document()["profiles"])


def profile(name: str) -> Mapping[str, Any]:
    """The profile of the stand-in ``name``; raises :class:`ConfigError` if it is unknown."""
    profiles = _document()["profiles"]
    if name not in profiles:
        raise ConfigError(f"unknown stand-in '{name}'", suggest(name, profiles))
    return profiles[name]


def resolve(name: str, settings: Mapping[str, Any] | None = None) -> StandinSettings:
    """``settings``, completed by the profile's demo values.

    Raises:
        ConfigError: the stand-in is unknown, or a setting is unknown or not valid.
    """
    shape = profile(name)
    refuse_unknown(settings or {}, [entry.name for entry in fields(StandinSettings)], name)
    values = dict(settings or {})
    for key, value in shape["demo"].items():
        if values.get(key) is None:
            values[key] = value
    if values["queries"] == "full":
        values["queries"] = shape["full"]
    result = StandinSettings(**values)
    if not isinstance(result.queries, Mapping) or not all(
        split in SPLITS and isinstance(count, int) and count >= 0
        for split, count in result.queries.items()
    ):
        raise ConfigError(
            f"{name}: queries: {result.queries}",
            f"use 'full', or a number for some of {', '.join(SPLITS)}",
        )
    if "train" in result.queries and not result.queries["train"]:
        raise ConfigError(f"{name}: no training query", "set a number above 0 for 'train'")
    if not any(result.queries.values()):
        raise ConfigError(f"{name}: no split has a query", "set a number under 'queries'")
    if not result.mean_length >= 1 or result.max_length < 1:
        raise ConfigError(f"{name}: mean_length and max_length must be at least 1")
    if result.noise < 0:
        raise ConfigError(f"{name}: noise must not be negative, but is {result.noise}")
    return result


def generate(name: str, settings: Mapping[str, Any] | None = None) -> dict[str, RankedLists]:
    """The stand-in ``name``, in memory.

    >>> lists = generate("web30k_standin", {"queries": {"train": 3, "test": 2}, "mean_length": 20})
    >>> {split: (part.n_queries, part.n_features) for split, part in lists.items()}
    {'train': (3, 136), 'test': (2, 136)}

    Args:
        name: one of :func:`names`, such as ``web30k_standin``.
        settings: a mapping of the fields of :class:`StandinSettings`.

    Returns:
        one :class:`RankedLists` per split that has queries; query ids count from 1 through train,
        vali and test.
    """
    splits = generate_splits(name, settings)
    return {split: _join(list(chunks)) for split, chunks in splits.items()}


def generate_splits(
    name: str, settings: Mapping[str, Any] | None = None
) -> dict[str, Iterator[RankedLists]]:
    """The splits of :func:`generate`, each as the iterator of :func:`generate_chunks`.

    Raises:
        ConfigError: as :func:`resolve`.
    """
    resolved = resolve(name, settings)
    return {
        split: generate_chunks(name, split, settings)
        for split in SPLITS
        if resolved.queries.get(split, 0)
    }


def generate_chunks(
    name: str, split: str, settings: Mapping[str, Any] | None = None, *, queries: int = 128
) -> Iterator[RankedLists]:
    """The queries of one split in order, at most ``queries`` at a time.

    Only one chunk is held in memory (up to 12 KB per document while it is made), so a set of
    millions of documents can be written. Chunks joined are equal to :func:`generate`.

    Raises:
        ConfigError: see :func:`resolve`; or the split is unknown.
    """
    if split not in SPLITS:
        raise ConfigError(f"{name}: no split '{split}'", suggest(split, SPLITS))
    resolved = resolve(name, settings)
    shape = profile(name)
    count = resolved.queries.get(split, 0)
    before = sum(resolved.queries.get(earlier, 0) for earlier in SPLITS[: SPLITS.index(split)])
    lengths = _lengths(name, resolved.mean_length, resolved.max_length)
    cuts, curves = _calibration(name, resolved.mean_length, resolved.max_length, resolved.noise)
    for begin in range(0, count, queries):
        numbers = range(begin, min(begin + queries, count))
        pages = draw_pages(
            (name, resolved.seed, split), numbers, lengths, shape["empty_share"], shape["pages"]
        )
        yield RankedLists(
            features=_features(pages, shape["columns"], curves),
            labels=_labels(utility(pages, shape["relevance"], resolved.noise), pages, cuts),
            offsets=pages.offsets,
            query_ids=np.arange(
                before + numbers.start + 1, before + numbers.stop + 1, dtype=np.int64
            ),
        )


def _lengths(name: str, mean_length: float, max_length: int) -> Lengths:
    lists = profile(name)["lists"]
    base = Lengths(**{key: value for key, value in lists.items() if key != "mean"})
    return base.scaled(mean_length / lists["mean"], min(max_length, lists["maximum"]))


@cache
def _calibration(
    name: str, mean_length: float, max_length: int, noise: float
) -> tuple[np.ndarray, np.ndarray | None]:
    """Label cuts, and the distribution functions of the columns if they are normalised.

    Both are quantiles of a sample that does not depend on the settings' seed or size, so that a
    stand-in can be made query by query.
    """
    shape = profile(name)
    lengths = _lengths(name, min(mean_length, 60.0), min(max_length, 400))
    pages = draw_pages(
        (name, "calibration"), range(_CALIBRATION_QUERIES), lengths, 0.0, shape["pages"]
    )
    values = utility(pages, shape["relevance"], noise)
    # Failed queries already have their share of zeros; the rest is cut so that the total is right.
    shares = np.array(shape["label_shares"])
    shares[0] = (shares[0] - shape["empty_share"]) / (1 - shape["empty_share"])
    shares[1:] /= 1 - shape["empty_share"]
    cuts = np.quantile(values, np.cumsum(shares)[:-1])
    curves = None
    if shape["columns"].get("unit"):
        raw = _raw_columns(pages, shape["columns"])
        curves = np.quantile(raw, np.linspace(0, 1, 65), axis=0)
    return cuts, curves


def _labels(values: np.ndarray, pages: Pages, cuts: np.ndarray) -> np.ndarray:
    """Labels by global cuts; failed queries get none, every other at least one relevant page."""
    labels = np.searchsorted(cuts, values, side="right")
    lengths = np.diff(pages.offsets)
    best = np.maximum.reduceat(labels, pages.offsets[:-1])
    order = np.lexsort((-values, pages.query))
    labels[order[pages.offsets[:-1]][best == 0]] = 1
    labels[np.repeat(pages.failed, lengths)] = 0
    return labels.astype(np.float32)


def _raw_columns(pages: Pages, columns: Mapping[str, Any]) -> np.ndarray:
    kind = columns["kind"]
    if kind == "wide":
        return standin_pages.wide(pages, columns)
    if kind == "mslr":
        return standin_pages.mslr(pages)
    raw = getattr(standin_pages, kind)(pages)
    return standin_pages.per_query_minmax(raw, pages.offsets)


def _features(pages: Pages, columns: Mapping[str, Any], curves: np.ndarray | None) -> np.ndarray:
    values = _raw_columns(pages, columns)
    if curves is not None:
        grid = np.linspace(0, 1, len(curves))
        for column in range(values.shape[1]):
            present = values[:, column] != 0
            values[present, column] = np.interp(values[present, column], curves[:, column], grid)
    if columns.get("huge_share"):
        marked = np.arange(values.shape[1]) >= values.shape[1] * (1 - columns["huge_share"])
        values[:, marked] = np.where(values[:, marked] == 0, HUGE, values[:, marked])
    return values.astype(np.float32)


def _join(parts: list[RankedLists]) -> RankedLists:
    lengths = np.concatenate([part.lengths for part in parts])
    return RankedLists(
        features=np.concatenate([part.features for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        query_ids=np.concatenate([part.query_ids for part in parts]),
    )
