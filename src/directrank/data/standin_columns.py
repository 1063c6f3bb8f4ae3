"""Feature columns of a stand-in, computed from imaginary pages by the published formulas.

The 136 columns of MSLR are 25 statistics of the query's terms in each of five streams, in the order
of the data set's own list (feature = 5 * statistic + stream + 1), and 11 facts. The columns of
LETOR (.gov) are 8 such statistics, link analysis and counts. Wide sets (Yahoo, Istella) do not
disclose their features: theirs are these and noisy, warped mixtures of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from directrank.data.standin_pages import FACTS, Pages
from directrank.system.seeds import numpy_stream

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
