"""Imaginary queries and web pages: what a stand-in's features and labels are computed from.

Real feature vectors of learning-to-rank collections are statistics of term counts in the streams
of a page (body, anchor texts, title, URL) and facts about the page (links, PageRank, clicks). We
draw the counts and the facts and compute the statistics by their formulas: heavy tails, integers,
zeros, constants within a query and the correlations between blocks then follow by themselves.

The 136 columns of MSLR are 25 statistics of the query's terms in each of five streams, in the order
of the data set's own list (feature = 5 * statistic + stream + 1), and 11 facts. The columns of
LETOR (.gov) are 8 such statistics, link analysis and counts. Wide sets (Yahoo, Istella) do not
disclose their features: theirs are these and noisy, warped mixtures of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from directrank.system.seeds import numpy_stream

STREAMS = ("body", "anchor", "title", "url", "whole")
FACTS = (
    "slashes", "url_length", "in_links", "out_links", "page_rank", "site_rank",
    "quality", "bad_quality", "query_clicks", "url_clicks", "dwell_time",
)  # fmt: skip
MAX_TERMS = 7

# The standard normals and the uniforms of a page, and the standard normals of a query, by name.
_LATENTS = (
    "topic", "popularity", "spam", "body_length", "anchor_length", "title_length", "url_length",
    "body", "anchor", "title", "url", "slashes", "in_links", "out_links", "page_rank", "site_rank",
    "quality", "bad_quality", "url_clicks", "query_clicks", "dwell_time", "url_size", "utility",
)  # fmt: skip
_UNIFORMS = (
    "has_anchor", "has_in_links", "has_out_links", "has_clicks", "has_query_clicks",
    "odd", "strange",
)  # fmt: skip
_QUERY_NORMALS = ("ease", "level", "strange", "match")


@dataclass(frozen=True)
class Pages:
    """Pages of several queries, packed; ``S`` = 5 streams as in ``STREAMS``, ``T`` = 7 terms.

    Attributes:
        offsets: int64 ``[Q + 1]``.
        query: int64 ``[N]``, the position of each page's query.
        n_terms: int64 ``[Q]``, terms of the query.
        level: float64 ``[Q]``, how well the collection serves the query.
        failed: bool ``[Q]``, queries for which the collection has nothing.
        idf: float64 ``[Q, S, T]``, inverse document frequencies, 0 beyond ``n_terms``.
        known: bool ``[Q]``, whether the collection's language model knows the query's terms.
        counts: float64 ``[N, S, T]``, occurrences of each term.
        lengths: float64 ``[N, S]``, terms of each stream.
        facts: name → float64 ``[N]``, see ``FACTS``.
        topic, popularity, noise: float64 ``[N]``, standard normal latents that no feature shows.
        keys: uint64 ``[Q]``, seeds for anything more that is drawn per query.
    """

    offsets: np.ndarray
    query: np.ndarray
    n_terms: np.ndarray
    level: np.ndarray
    failed: np.ndarray
    idf: np.ndarray
    known: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray
    facts: Mapping[str, np.ndarray]
    topic: np.ndarray
    popularity: np.ndarray
    noise: np.ndarray
    keys: np.ndarray


@dataclass(frozen=True)
class Lengths:
    """The distribution of list lengths, at the scale of the settings.

    A share ``single`` of the lists has one document, a share ``short`` is uniform up to a third of
    the median, a share ``long`` is Pareto (index 1.5) from twice the median on, and the rest is
    log-normal with the given ``median`` and ``sigma``. All are cut at ``maximum``.
    """

    median: float
    sigma: float
    maximum: int
    single: float
    short: float
    long: float

    def draw(self, stream: np.random.Generator) -> int:
        """One length; always uses the same number of draws."""
        kind, place = stream.random(2)
        normal = stream.standard_normal()
        if kind < self.single:
            return 1
        if kind < self.single + self.short:
            value = 1 + place * self.median / 3
        elif kind < self.single + self.short + self.long:
            value = 2 * self.median * (1 - place) ** (-1 / 1.5)
        else:
            value = self.median * np.exp(self.sigma * normal)
        return int(np.clip(round(value), 1, self.maximum))

    def scaled(self, factor: float, maximum: int) -> Lengths:
        """The same distribution, ``factor`` times as long, cut at ``maximum``."""
        return Lengths(
            self.median * factor, self.sigma, maximum, self.single, self.short, self.long
        )


@dataclass(frozen=True)
class _Draws:
    """Everything random about some queries, before any computation."""

    offsets: np.ndarray
    query_uniforms: np.ndarray  # [Q, 3]
    query_normals: np.ndarray  # [Q, len(_QUERY_NORMALS) + MAX_TERMS]
    query_latents: np.ndarray  # [Q, len(_LATENTS)]
    normals: np.ndarray  # [N, len(_LATENTS)]
    uniforms: np.ndarray  # [N, len(_UNIFORMS)]
    terms: np.ndarray  # [N, 4, MAX_TERMS, 2]
    keys: np.ndarray  # [Q]


def _draw(names: Sequence[str | int], queries: Sequence[int], lengths: Lengths) -> _Draws:
    """One random stream per query, so that a query is the same whatever is drawn beside it."""
    parts: list[tuple[np.ndarray | np.uint64, ...]] = []
    counts = []
    for query in queries:
        stream = numpy_stream(*names, query)
        n = lengths.draw(stream)
        counts.append(n)
        parts.append(
            (
                stream.random(3),
                stream.standard_normal(len(_QUERY_NORMALS) + MAX_TERMS),
                stream.standard_normal(len(_LATENTS)),
                stream.integers(0, 2**63, dtype=np.uint64),
                stream.standard_normal((n, len(_LATENTS))),
                stream.random((n, len(_UNIFORMS))),
                stream.random((n, 4, MAX_TERMS, 2)),
            )
        )
    per_query = list(zip(*parts, strict=True))
    return _Draws(
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        query_uniforms=np.stack(per_query[0]),
        query_normals=np.stack(per_query[1]),
        query_latents=np.stack(per_query[2]),
        keys=np.array(per_query[3], dtype=np.uint64),
        normals=np.concatenate(per_query[4]),
        uniforms=np.concatenate(per_query[5]),
        terms=np.concatenate(per_query[6]),
    )


def draw_pages(
    names: Sequence[str | int],
    queries: Sequence[int],
    lengths: Lengths,
    failed_share: float,
    profile: Mapping[str, Any],
) -> Pages:
    """The pages of ``queries``.

    Args:
        names: what the random streams are derived from, before the query's number.
        queries: numbers of the queries within their split.
        lengths: distribution of list lengths.
        failed_share: share of queries for which the collection has nothing.
        profile: the section ``pages`` of a profile.
    """
    draws = _draw(names, queries, lengths)
    Q = len(draws.offsets) - 1
    query = np.repeat(np.arange(Q), np.diff(draws.offsets))
    zq = {name: draws.query_normals[:, i] for i, name in enumerate(_QUERY_NORMALS)}
    # Pages found for one query resemble each other: each latent has a level of its query.
    weight = np.array([profile["query_level"].get(name, 0.0) for name in _LATENTS])
    latents = np.sqrt(1 - weight) * draws.normals
    levels = draws.query_latents.copy()
    # A query whose words are in most titles has them in most bodies and addresses too.
    common = profile["query_common"]
    streams = [_LATENTS.index(name) for name in STREAMS[:4]]
    levels[:, streams] *= np.sqrt(1 - common)
    levels[:, streams] += np.sqrt(common) * zq["match"][:, None]
    latents += (np.sqrt(weight) * levels)[query]
    z = dict(zip(_LATENTS, latents.T, strict=True))
    u = {name: draws.uniforms[:, i] for i, name in enumerate(_UNIFORMS)}

    shares = np.cumsum(profile["term_shares"])
    n_terms = 1 + np.searchsorted(shares[:-1], draws.query_uniforms[:, 0], side="right")
    asked = np.arange(MAX_TERMS) < n_terms[:, None]  # [Q, T]
    rarity = draws.query_normals[:, len(_QUERY_NORMALS) :]
    idf, rarity = _idf(profile["idf"], rarity, zq["ease"], n_terms, asked)

    topic, popularity = z["topic"], z["popularity"]
    spam = np.maximum(z["spam"] - 1.0, 0.0)

    # Pages that were found by other words than the query's own, more for some queries than others.
    strange = profile["strange"] + profile["strange_query"] * zq["strange"]
    strange = u["strange"] < (1 / (1 + np.exp(-strange)))[query]

    drawn = {}
    for s, name in enumerate(STREAMS[:4]):
        drawn[name] = _stream(
            profile["streams"][name],
            z=z,
            odd=u["odd"],
            has=u["has_anchor"] if name == "anchor" else None,
            topic=topic,
            popularity=popularity,
            spam=spam,
            strange=strange,
            name=name,
            rarity=rarity[query],
            asked=asked[query],
            uniforms=draws.terms[:, s],
        )
    lengths_ = np.stack([drawn[name][0] for name in STREAMS[:4]], axis=1)
    counts = np.stack([drawn[name][1] for name in STREAMS[:4]], axis=1)
    facts = _facts(profile["facts"], z, u, popularity, spam, topic, lengths_)
    return Pages(
        offsets=draws.offsets,
        query=query,
        n_terms=n_terms,
        level=zq["level"],
        failed=draws.query_uniforms[:, 1] < failed_share,
        idf=idf,
        known=draws.query_uniforms[:, 2] >= profile["unknown_share"],
        counts=np.concatenate([counts, counts.sum(axis=1, keepdims=True)], axis=1),
        lengths=np.concatenate([lengths_, lengths_.sum(axis=1, keepdims=True)], axis=1),
        facts=facts,
        topic=topic,
        popularity=popularity,
        noise=z["utility"],
        keys=draws.keys,
    )


def _idf(
    profile: Mapping[str, Any],
    normals: np.ndarray,
    ease: np.ndarray,
    n_terms: np.ndarray,
    asked: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """``idf`` ``[Q, S, T]`` per stream and the terms' rarity ``[Q, T]`` it grows with.

    The streams' values are nearly one value: a term that is rare in bodies is rare in titles.
    """
    # Longer queries hold more common words.
    rarity = 0.8 * normals + 0.6 * ease[:, None] - 0.25 * (n_terms[:, None] - 2.0)
    idf = np.stack(
        [profile[name]["low"] + profile[name]["scale"] * np.exp(0.55 * rarity) for name in STREAMS],
        axis=1,
    )
    return np.minimum(idf, profile["highest"]) * asked[:, None, :], rarity


def _stream(
    profile: Mapping[str, Any],
    *,
    z: Mapping[str, np.ndarray],
    odd: np.ndarray,
    has: np.ndarray | None,
    topic: np.ndarray,
    popularity: np.ndarray,
    spam: np.ndarray,
    strange: np.ndarray,
    name: str,
    rarity: np.ndarray,
    asked: np.ndarray,
    uniforms: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Lengths ``[N]`` and term counts ``[N, T]`` of one stream."""
    log_length = (
        np.log(profile["length"])
        + profile["length_sigma"] * z[f"{name}_length"]
        + profile["length_popularity"] * popularity
    )
    length = np.clip(np.floor(np.exp(log_length)), profile["shortest"], profile["longest"])
    if has is not None:
        length[has > 1 / (1 + np.exp(-(profile["present"] + 1.3 * popularity)))] = 0.0
    # Broken pages: an empty stream, or one into which a whole page was parsed.
    length[odd < profile["empty"]] = 0.0
    huge = odd > 1 - profile["huge"]
    length[huge] = np.minimum(length[huge] * 60, profile["longest"] * 10)

    presence = (
        profile["match"]
        + profile["match_topic"] * topic
        + profile["match_shared"] * z[name]
        + profile["match_length"] * (np.log(np.maximum(length, 1.0)) - np.log(profile["length"]))
        - 6.0 * strange
    )[:, None] - profile["match_rarity"] * rarity
    occurs = (uniforms[..., 0] < 1 / (1 + np.exp(-presence))) & asked & (length > 0)[:, None]
    # Occurrences beyond the first: geometric, with a mean that varies a lot from page to page.
    extra = np.exp(
        profile["extra"]
        + profile["extra_topic"] * topic
        + profile["extra_spam"] * spam
        + profile["extra_length"] * (np.log(np.maximum(length, 1.0)) - np.log(profile["length"]))
        + profile["extra_shared"] * z[name]
    )[:, None] * np.exp(-0.35 * rarity)
    more = np.floor(np.log1p(-uniforms[..., 1]) / np.log(extra / (1 + extra)))
    counts = np.where(occurs, 1 + more, 0.0)
    # No stream holds more occurrences than terms.
    total = counts.sum(axis=1)
    shrink = np.where(total > length, length / np.maximum(total, 1.0), 1.0)
    return length, np.floor(counts * shrink[:, None])


def _facts(
    profile: Mapping[str, Any],
    z: Mapping[str, np.ndarray],
    u: Mapping[str, np.ndarray],
    popularity: np.ndarray,
    spam: np.ndarray,
    topic: np.ndarray,
    lengths: np.ndarray,
) -> dict[str, np.ndarray]:
    """The facts about pages, in the units and ranges of MSLR's features 126 to 136."""

    def log_normal(name: str, low: float, high: float, shift: np.ndarray | float = 0.0):
        mean, sigma, *tail = profile[name]
        value = mean + sigma * z[name] + shift
        if tail:  # heavier than log-normal above the median
            value = value + tail[0] * np.maximum(z[name], 0.0) ** 2
        return np.clip(np.floor(np.exp(value)), low, high)

    def logistic(name: str, shift: np.ndarray):
        mean, sigma = profile[name]
        return np.floor(65535 / (1 + np.exp(-(mean + sigma * z[name] + shift))))

    depth = np.log(np.maximum(lengths[:, 3], 1.0)) - 2.0
    own = profile["popularity"]
    url_clicks = log_normal("url_clicks", 1, 1e6, own * popularity)
    clicked = u["has_clicks"] < 1 / (
        1 + np.exp(-(profile["clicked"] + 1.2 * popularity - 0.8 * depth))
    )
    query_clicked = clicked & (
        u["has_query_clicks"]
        < 1 / (1 + np.exp(-(profile["query_clicked"] + 1.5 * topic + popularity)))
    )
    mean, sigma = profile["dwell_time"]
    return {
        "slashes": np.clip(np.floor(np.exp(1.05 + 0.85 * depth + 0.28 * z["slashes"])), 1, 14),
        "url_length": np.floor(np.clip(np.exp(3.72 + 1.0 * depth + 0.17 * z["url_size"]), 6, 220)),
        "in_links": np.where(
            u["has_in_links"] < profile["with_in_links"],
            log_normal("in_links", 1, 2.3e8, 1.6 * own * popularity),
            0.0,
        ),
        "out_links": np.where(
            u["has_out_links"] < profile["with_out_links"],
            log_normal("out_links", 1, 121, 0.4 * np.log1p(lengths[:, 1])),
            0.0,
        ),
        "page_rank": logistic("page_rank", own * popularity - 0.8 * depth),
        "site_rank": logistic("site_rank", 0.5 * own * popularity + 0.8 * depth - spam),
        "quality": log_normal("quality", 1, 254),
        "bad_quality": log_normal("bad_quality", 1, 254, 0.7 * z["quality"] + 1.2 * spam),
        "query_clicks": np.where(query_clicked, log_normal("query_clicks", 1, 5e4), 0.0),
        "url_clicks": np.where(clicked, url_clicks, 0.0),
        "dwell_time": np.where(clicked, np.exp(mean + sigma * z["dwell_time"]), 0.0),
    }


#: Robertson's BM25 with the parameters of the LETOR documentation.
BM25_K1, BM25_B = 2.5, 0.8
#: Language models: Dirichlet prior, Jelinek-Mercer weight, absolute discount (LETOR documentation).
LM_MU, LM_LAMBDA, LM_DELTA = 2000.0, 0.5, 0.7
#: A term's share of the collection is exp(-slope * idf - level); streams as in ``STREAMS``. Slope,
#: levels and the exponent of an empty stream's likelihood are fitted to the sample's medians.
LM_SHARE_SLOPE = 0.8
LM_SHARE_LEVEL = np.array([3.4, 1.2, 1.4, 1.8, 3.4])
LM_EMPTY = 0.78


def mslr(pages: Pages) -> np.ndarray:
    """The 136 columns of Web30K and Web10K, float64 ``[N, 136]``."""
    statistics = _term_statistics(pages)
    blocks = np.stack(statistics, axis=1).reshape(len(pages.query), -1)
    return np.concatenate([blocks, np.stack([pages.facts[name] for name in FACTS], axis=1)], axis=1)


def letor_gov(pages: Pages) -> np.ndarray:
    """64 columns in the order of LETOR 3.0's .gov collections, float64 ``[N, 64]``."""
    tf, idf, tf_idf, length, bm25, lm = _letor_statistics(pages)
    facts, log_links = pages.facts, np.log1p(pages.facts["in_links"])
    rank = pages.facts["page_rank"]
    # Scores and counts handed on along links and the site map (LETOR's features 41 to 48): the
    # page's own and what its neighbours, who resemble it, have.
    neighbour = 0.7 * pages.topic + 0.7 * pages.popularity
    propagated = [
        0.6 * tf[:, 4] + 2.0 * np.exp(0.5 * neighbour),
        0.6 * bm25[:, 4] + 3.0 * np.exp(0.5 * neighbour),
        bm25[:, 4] * np.log1p(log_links),
        bm25[:, 4] * np.log1p(facts["out_links"]),
        bm25[:, 4] * np.log1p(rank),
        tf[:, 4] * np.log1p(log_links),
        tf[:, 4] * np.log1p(facts["out_links"]),
        tf[:, 4] * np.log1p(rank),
    ]
    links = [
        facts["in_links"] * np.maximum(pages.topic, 0.0),
        facts["out_links"] * np.maximum(pages.topic, 0.0),
        rank,
        facts["site_rank"],
        rank * np.exp(0.5 * pages.topic),
        facts["in_links"] * np.exp(0.5 * pages.topic),
        facts["out_links"] * np.exp(0.5 * pages.topic),
        np.sqrt(rank),
    ]
    counts = [
        facts["in_links"],
        facts["out_links"],
        facts["slashes"],
        facts["url_length"],
        np.floor(np.exp(3.0 - facts["slashes"] + 0.8 * pages.popularity)),
    ]
    title = [bm25[:, 2] ** 0.9, lm[0][:, 2], lm[1][:, 2]]
    return np.concatenate(
        [tf, idf, tf_idf, length, bm25, *lm, np.stack(propagated + links + counts + title, axis=1)],
        axis=1,
    )


def letor_million(pages: Pages) -> np.ndarray:
    """46 columns in the order of LETOR 4.0 (MQ2007, MQ2008), float64 ``[N, 46]``."""
    tf, idf, tf_idf, length, bm25, lm = _letor_statistics(pages)
    facts = pages.facts
    rest = [
        facts["page_rank"],
        facts["in_links"],
        facts["out_links"],
        facts["slashes"],
        facts["url_length"],
        np.floor(np.exp(3.0 - facts["slashes"] + 0.8 * pages.popularity)),
    ]
    return np.concatenate([tf, idf, tf_idf, length, bm25, *lm, np.stack(rest, axis=1)], axis=1)


def wide(pages: Pages, profile: Mapping[str, Any]) -> np.ndarray:
    """The columns of MSLR and noisy, warped mixtures of them, float64 ``[N, profile["columns"]]``.

    Each further column is a mixture of two of MSLR's columns or a page's hidden topic, on a
    logarithmic scale, plus noise; a share of them is binary, rounded, or missing (0) for the pages
    of some queries or at random.
    """
    base = mslr(pages)
    recipe = numpy_stream("standin", "wide", profile["recipe"])
    more = profile["columns"] - base.shape[1]
    first, second = recipe.integers(0, base.shape[1], size=(2, more))
    weight = recipe.uniform(0.0, 1.0, size=more)
    hidden = np.where(recipe.random(more) < profile["hidden_share"], 1.0, 0.0)
    low, high = profile["mixture_noise"]
    noise = recipe.uniform(low, high, size=more)
    kind = recipe.random(more)
    a, b = profile["absent_beta"]
    absent = recipe.beta(a, b, size=more)
    by_query = recipe.random(more) < profile["absent_by_query"]
    sign = recipe.choice([-1.0, 1.0], size=more)

    logs = np.sign(base) * np.log1p(np.abs(base))
    extra = np.empty((len(base), more))
    for query, (begin, end) in enumerate(zip(pages.offsets[:-1], pages.offsets[1:], strict=True)):
        stream = np.random.Generator(np.random.PCG64(int(pages.keys[query])))
        own = logs[begin:end] / 3.0
        value = weight * own[:, first] + sign * (1 - weight) * own[:, second]
        value += hidden * pages.topic[begin:end, None]
        value += noise * stream.standard_normal(value.shape)
        missing = np.where(
            by_query, stream.random(more)[None, :] < absent, stream.random(value.shape) < absent
        )
        extra[begin:end] = np.where(missing, 0.0, value)
    binary = kind < profile["binary_share"]
    rounded = (kind >= profile["binary_share"]) & (kind < profile["binary_share"] + 0.2)
    extra[:, binary] = extra[:, binary] > 0.7
    extra[:, rounded] = np.round(extra[:, rounded] * 4)
    return np.concatenate([base, extra], axis=1)


def per_query_minmax(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """LETOR's QueryLevelNorm: each column of each query on [0, 1]; constant ones become 0."""
    filled = offsets[:-1][np.diff(offsets) > 0]
    lengths = np.diff(offsets)[np.diff(offsets) > 0]
    low = np.repeat(np.minimum.reduceat(values, filled, axis=0), lengths, axis=0)
    high = np.repeat(np.maximum.reduceat(values, filled, axis=0), lengths, axis=0)
    span = high - low
    return np.divide(values - low, span, out=np.zeros_like(values), where=span > 0)


def _safe_ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros(np.broadcast(above, below).shape), where=below > 0)


def _spread(values: np.ndarray, asked: np.ndarray, n_terms: np.ndarray) -> list[np.ndarray]:
    """Sum, minimum, maximum, mean and variance over the query's terms, each ``[N, S]``."""
    total = values.sum(axis=2)
    mean = total / n_terms
    return [
        total,
        np.where(asked, values, np.inf).min(axis=2),
        np.where(asked, values, -np.inf).max(axis=2),
        mean,
        (np.where(asked, values - mean[..., None], 0.0) ** 2).sum(axis=2) / n_terms,
    ]


def _term_statistics(pages: Pages) -> list[np.ndarray]:
    """MSLR's 25 statistics, each ``[N, S]``, in the data set's order."""
    q = pages.query
    n_terms = pages.n_terms[q][:, None].astype(float)
    asked = (np.arange(pages.counts.shape[2]) < n_terms)[:, None, :]
    tf, length, idf = pages.counts, pages.lengths, pages.idf[q]
    covered = (tf > 0).sum(axis=2).astype(float)
    # Vector space model: the cosine between query and page in the space of the query's terms.
    dot = (idf**2 * tf).sum(axis=2)
    norms = np.sqrt((idf**2).sum(axis=2)) * np.sqrt(((idf * tf) ** 2).sum(axis=2))
    lm = _language_models(pages, asked)
    return [
        covered,
        covered / n_terms,
        length,
        pages.idf.sum(axis=2)[q],
        *_spread(tf, asked, n_terms),
        *_spread(_safe_ratio(tf, length[..., None]), asked, n_terms),
        *_spread(tf * idf, asked, n_terms),
        (covered == n_terms).astype(float),
        _safe_ratio(dot, norms),
        bm25(pages),
        *lm,
    ]


def _letor_statistics(pages: Pages) -> tuple[Any, ...]:
    q = pages.query
    n_terms = pages.n_terms[q][:, None]
    asked = (np.arange(pages.counts.shape[2]) < n_terms)[:, None, :]
    idf = pages.idf[q]
    return (
        pages.counts.sum(axis=2),
        idf.sum(axis=2),
        (pages.counts * idf).sum(axis=2),
        pages.lengths,
        bm25(pages),
        _language_models(pages, asked),
    )


def bm25(pages: Pages) -> np.ndarray:
    """Okapi BM25 ``[N, S]``; the streams' typical lengths stand for the collection's means."""
    tf = pages.counts
    norm = BM25_K1 * (1 - BM25_B + BM25_B * pages.lengths / MEAN_LENGTH)[..., None]
    return (pages.idf[pages.query] * tf * (BM25_K1 + 1) / (tf + norm)).sum(axis=2)


#: Mean terms per stream of a page (body, anchor, title, url, whole) in MSLR's sample.
MEAN_LENGTH = np.array([640.0, 6.0, 8.0, 7.5, 660.0])


def _language_models(pages: Pages, asked: np.ndarray) -> list[np.ndarray]:
    """Query log-likelihoods under absolute discounting, Dirichlet and Jelinek-Mercer smoothing.

    Zhai and Lafferty (2001); a term's share of the collection falls with its idf. Queries that the
    collection does not know have 0.
    """
    known = pages.known[pages.query][:, None]
    share = np.exp(-LM_SHARE_SLOPE * pages.idf[pages.query] - LM_SHARE_LEVEL[:, None])
    length = pages.lengths[..., None]
    # Distinct terms of a stream by Heaps' law.
    distinct = np.minimum(length, 3.0 * np.sqrt(length))
    kept = _safe_ratio(np.maximum(pages.counts - LM_DELTA, 0.0), length)
    frequency = _safe_ratio(pages.counts, length)
    empty = share**LM_EMPTY
    smoothed = [
        np.where(length > 0, kept + LM_DELTA * _safe_ratio(distinct, length) * share, empty),
        (pages.counts + LM_MU * share) / (length + LM_MU),
        np.where(length > 0, (1 - LM_LAMBDA) * frequency + LM_LAMBDA * share, empty),
    ]
    return [
        np.where(known, np.where(asked, np.log(value), 0.0).sum(axis=2), 0.0) for value in smoothed
    ]
