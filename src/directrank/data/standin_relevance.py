"""What makes an imaginary page relevant: thresholds and their interactions, which models must find.

The signal is meant to separate *classes of models* as the real collections do (boosted trees, deep
networks, one hidden layer, linear), by what is known to separate them: effects that set in at a
threshold, that depend on each other and on the kind of query, and that sit on heavy-tailed columns.
It knows nothing of losses, and no parameter was chosen by comparing them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from directrank.data.standin_pages import Pages

BODY, ANCHOR, TITLE, URL, WHOLE = range(5)


def utility(pages: Pages, weights: Mapping[str, float], noise: float) -> np.ndarray:
    """Usefulness of each page for its query, float64 ``[N]``; labels are cut from it.

    Args:
        pages: the pages.
        weights: the section ``relevance`` of a profile.
        noise: factor on the noise of the profile.
    """
    q = pages.query
    site_wanted = pages.intent[q] > 0.5
    value = np.where(
        site_wanted,
        weights["site"] * _as_site(pages),
        weights["text"] * _as_text(pages),
    )
    value += weights["clicks"] * _clicks(pages)
    value += weights["quality"] * _quality(pages)
    value += weights["topic"] * pages.topic
    value += weights["level"] * pages.level[q]
    return value + noise * weights["noise"] * pages.noise


def _covered(pages: Pages) -> np.ndarray:
    """Share of the query's terms found, ``[N, S]``."""
    return (pages.counts > 0).sum(axis=2) / pages.n_terms[pages.query][:, None]


def _as_text(pages: Pages) -> np.ndarray:
    """Informational queries: all terms, more than once, in a text of some length, not stuffed."""
    covered = _covered(pages)
    asked = np.arange(pages.counts.shape[2]) < pages.n_terms[pages.query][:, None]
    rarest = np.where(asked, pages.counts[:, BODY], np.inf).min(axis=1)
    length = pages.lengths[:, BODY]
    density = pages.counts[:, BODY].sum(axis=1) / np.maximum(length, 1.0)
    in_body = covered[:, BODY] == 1.0
    in_title = covered[:, TITLE] >= 0.5
    readable = (length > 250) & (length < 2500)
    stuffed = density > 0.12
    return (
        0.5 * in_body
        + 0.9 * (in_body & in_title)
        + 0.7 * ((rarest >= 3) & readable)
        + 0.5 * ((rarest >= 8) & in_title & readable)
        - 0.9 * (stuffed & (rarest >= 3))
    )


def _as_site(pages: Pages) -> np.ndarray:
    """Navigational queries: a known, shallow page whose address or anchors name the query."""
    covered = _covered(pages)
    facts = pages.facts
    named = (covered[:, URL] >= 0.5) | (covered[:, ANCHOR] >= 0.5)
    shallow = facts["slashes"] <= 2
    linked = facts["in_links"] > 40
    ranked = facts["page_rank"] > 15000
    return (
        0.6 * named
        + 0.9 * (named & shallow)
        + 0.7 * (named & ranked)
        + 0.5 * (shallow & linked & ranked)
        + 0.4 * (covered[:, TITLE] == 1.0)
        - 0.5 * (~shallow & ~named)
    )


def _clicks(pages: Pages) -> np.ndarray:
    """Clicks of this query tell; those of other queries only where readers stayed."""
    facts = pages.facts
    return (
        1.0 * (facts["query_clicks"] > 0)
        + 0.5 * (facts["query_clicks"] > 30)
        + 0.5 * ((facts["url_clicks"] > 6) & (facts["dwell_time"] > 25))
        - 0.3 * ((facts["url_clicks"] > 6) & (facts["dwell_time"] <= 12))
    )


def _quality(pages: Pages) -> np.ndarray:
    """Pages classed as bad are of no use, the more so where they match; middling depth helps."""
    facts = pages.facts
    bad = facts["bad_quality"] > 20
    matching = _covered(pages)[:, WHOLE] == 1.0
    return (
        -0.8 * (bad & matching)
        - 0.2 * bad
        + 0.5 * ((facts["quality"] > 3) & (facts["quality"] < 12) & matching)
        + 0.4 * ((facts["site_rank"] > 30000) ^ (facts["out_links"] > 0))
    )
