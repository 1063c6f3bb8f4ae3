"""What makes an imaginary page relevant: effects that classes of models find more or less easily.

The signal is meant to separate *classes of models* in the order known from the real collections
(boosted trees, deep networks, one hidden layer, linear). It is a sum of parts: linear ones; gated
ones, whose sign depends on the kind of query or of page, which a linear model cannot represent and
a network can; and ones that set in at thresholds or within bands, often on heavy-tailed columns,
which trees find most easily. It knows nothing of losses, and no number was chosen by comparing
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from directrank.data.standin_columns import bm25
from directrank.data.standin_pages import Pages

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
