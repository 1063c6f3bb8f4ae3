"""Pairs of documents in training: ties, and how the gradient moves them (Yu2020, section 5).

A step against the gradient changes the score difference of a pair. If the better document of a pair
loses by it, the gradient pulls against the labels, which the paper calls *optimisation
inconsistency*. If badly ordered pairs hardly move, the paper calls it *optimisation difficulty*.

A loss that depends on scores only through ranks moves a pair (i, j) by the rank of i and by that of
j: ``f_ij = w_i g_ij - w_j g_ji`` is what the pair itself contributes to ``-dL/ds_i`` and takes from
``-dL/ds_j``; w is the loss's gradient by rank and g the backward derivative of a comparison. Summed
over j, f is the whole gradient. That is the *pull* of a pair; its *net* gradient is the difference
of ``-dL/ds`` of its two documents, which depends on all other pairs too, and exists for any loss.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank import losses, metrics
from directrank.lists.buckets import buckets
from directrank.lists.packed import RankedLists, concatenated_ranges
from directrank.lists.padding import pad, padded_positions
from directrank.metrics.conventions import Judgements
from directrank.relaxations.twin import TwinRanking
from directrank.system.seeds import torch_stream

#: Elements of a block of pairs; a single query may have more.
BLOCK = 1 << 21

#: Scores that are sorted together to count ties.
TIES_AT_ONCE = 1 << 25

#: The metric behind each loss over twin-sigmoid ranks.
TWIN_METRICS = {
    "twin_precision": "precision",
    "twin_ap": "average_precision",
    "twin_ndcg": "ndcg",
    "twin_nerr": "nerr",
}

#: Columns of the history. All are means over the queries that have such pairs; a pair is two
#: documents of a query with different labels, badly ordered if the worse one is ranked higher.
NET = ("pairs_badly_ordered", "net_against_labels")
PULL = (
    "pull_against_labels",
    "pull_against_labels_relevant",
    "pull_on_badly_ordered",
    "pull_on_far_apart",
)


def pair_gradients(
    scores: Tensor, lists: RankedLists, loss_settings: Sequence[Mapping[str, Any]]
) -> dict[str, np.ndarray]:
    """Measure how each model's gradient moves the pairs of its training queries.

    Args:
        scores: packed scores ``[M, N]``.
        lists: the queries.
        loss_settings: the loss of each model, ``name`` and hyper-parameters.

    Returns:
        Column → float64 ``[M]``: ``pairs_badly_ordered``, share of pairs; ``net_against_labels``,
        share of pairs whose difference a step makes worse; and, for a loss that depends only on
        ranks (NaN otherwise), ``pull_against_labels``, share of pairs that pull against their
        labels, the same of pairs of two relevant documents, and the mean size of the pull on badly
        ordered pairs and on those that are badly ordered by more than the standard deviation of the
        query's scores, each divided by the mean size over all pairs.
    """
    scores = scores.cpu()
    result = {name: np.full(len(scores), np.nan) for name in (*NET, *PULL)}
    for model, settings in enumerate(loss_settings):
        parts: dict[str, list[Tensor]] = {}
        for block in _blocks(scores[model], lists):
            for name, values in _of_block(settings, *block).items():
                parts.setdefault(name, []).append(values)
        for name, of_blocks in parts.items():
            together = torch.cat(of_blocks)
            result[name][model] = float(together[~torch.isnan(together)].double().mean())
    return result


def tied_pairs(
    scores: Tensor, lists: RankedLists, loss_settings: Sequence[Mapping[str, Any]]
) -> dict[str, np.ndarray]:
    """The share of a query's pairs of documents with equal scores, averaged over queries.

    The arguments are those of :func:`pair_gradients`; the column is ``tied_pairs``.
    """
    lengths = np.asarray(lists.lengths)
    ends = torch.from_numpy(lengths.cumsum()).to(scores.device)
    places = torch.arange(scores.shape[1], device=scores.device)
    query = torch.searchsorted(ends, places, right=True, out_int32=True)
    pairs = []
    for some in scores.split(max(1, TIES_AT_ONCE // max(scores.shape[1], 1))):
        order = some.argsort(dim=1)
        order = order.gather(1, query[order].argsort(dim=1, stable=True))
        ordered = some.gather(1, order)  # by query, and within it by score
        first = torch.ones_like(ordered, dtype=torch.bool)  # of documents with one score
        first[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]) | (query[1:] != query[:-1])
        earlier = places - (first * places).cummax(1).values
        total = torch.nn.functional.pad(earlier.cumsum(1), (1, 0))[:, ends]
        pairs.append(total.diff(dim=1, prepend=total.new_zeros(len(total), 1)).cpu().numpy())
    shares = 2.0 * np.concatenate(pairs) / np.maximum(lengths * (lengths - 1), 1)
    return {"tied_pairs": shares.mean(1)}


def pulls(
    settings: Mapping[str, Any], scores: Tensor, labels: Tensor, mask: Tensor
) -> Tensor | None:
    """The pull of every pair; see the module.

    Args:
        settings: the loss.
        scores, labels, mask: padded, ``[B, L]``.

    Returns:
        ``f [B, L, L]`` with ``f_ij = -f_ji``, positive if it raises i above j, and ``f.sum(2) =
        -dL/ds``; None for a loss that does not depend on scores only through ranks.
    """
    name = settings["name"]
    if name not in TWIN_METRICS and name != "approx_ndcg":
        return None
    # The undecorated loss, because lengths and weights are not hyper-parameters.
    defaults = inspect.signature(inspect.unwrap(losses.get(name))).parameters
    options = {
        key: settings.get(key, parameter.default)
        for key, parameter in defaults.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    if name == "approx_ndcg":
        if options["k"] is not None:
            return None  # the cut-off is a second comparison
        by_rank, by_score = _approx_ndcg(options, scores, labels, mask)
    else:
        by_rank, by_score = _twin(name, options, scores, labels, mask)
    by_i = by_rank[:, :, None] * by_score * (mask[:, :, None] & mask[:, None, :])
    return by_i - by_i.transpose(1, 2)


def _twin(
    name: str, options: dict[str, Any], scores: Tensor, labels: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradient of the loss by rank ``[B, L]`` and derivative of each comparison ``[B, L, L]``."""
    kind, alpha = options.pop("gradient"), options.pop("alpha_b")
    ranking = TwinRanking(
        scores,
        labels,
        mask,
        gradient=kind,
        alpha_b=alpha,
        break_ties=options.pop("break_ties"),
        generator=torch_stream("pair gradients", device=scores.device),
    )
    options.pop("generator")
    ranking.ranks = ranking.ranks.detach().requires_grad_()
    formula = metrics.formula(TWIN_METRICS[name])
    value, defined = formula(ranking, Judgements(labels, mask), **options)
    (by_rank,) = torch.autograd.grad(-torch.where(defined, value, 0.0).sum(), ranking.ranks)
    sign = torch.sign(labels[:, :, None] - labels[:, None, :])
    z = alpha * (scores[:, :, None] - scores[:, None, :])
    if kind == "type3":
        return by_rank, 2 * alpha * sign * torch.sigmoid(-sign * z)
    bell = alpha * torch.sigmoid(z) * torch.sigmoid(-z)
    return by_rank, bell * sign if kind == "type2" else bell


def _approx_ndcg(
    options: dict[str, Any], scores: Tensor, labels: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    alpha = options["alpha"]
    z = alpha * (scores[:, :, None] - scores[:, None, :])
    better = torch.sigmoid(-z) * mask[:, None, :]
    ranks = (better.sum(2) + 0.5).requires_grad_()  # a document's own comparison counts a half

    # NDCG uses only this method of a ranking.
    given: Any = SimpleNamespace(weigh=lambda gains, weight, k: (gains * weight(ranks)).sum(1))
    formula, judgements = metrics.formula("ndcg"), Judgements(labels, mask)
    value, _ = formula(given, judgements, gain=options["gain"], discount=options["discount"])
    (by_rank,) = torch.autograd.grad(-value.sum(), ranks)
    return by_rank, alpha * torch.sigmoid(z) * torch.sigmoid(-z)


def _of_block(
    settings: Mapping[str, Any], scores: Tensor, labels: Tensor, mask: Tensor
) -> dict[str, Tensor]:
    """Every column per query ``[B]``, NaN where a query has no such pair."""
    difference = scores[:, :, None] - scores[:, None, :]
    ordered = (labels[:, :, None] > labels[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    bad = ordered & (difference < 0)
    net = _net(settings, scores, labels, mask)
    result = {
        "pairs_badly_ordered": _share(bad, ordered),
        "net_against_labels": _share(net[:, :, None] < net[:, None, :], ordered),
    }
    pull = pulls(settings, scores, labels, mask)
    if pull is None:
        return result
    both = ordered & (labels[:, None, :] > 0)
    far = bad & (difference < -_spread(scores, mask)[:, None, None])
    size = pull.abs()
    whole = _mean(size, ordered)
    # If no pair is moved at all, there is nothing to compare.
    whole = torch.where(whole > 0, whole, torch.nan)
    return result | {
        "pull_against_labels": _share(pull < 0, ordered),
        "pull_against_labels_relevant": _share(pull < 0, both),
        "pull_on_badly_ordered": _mean(size, bad) / whole,
        "pull_on_far_apart": _mean(size, far) / whole,
    }


def _spread(scores: Tensor, mask: Tensor) -> Tensor:
    """The standard deviation of each list's scores, ``[B]``."""
    count = mask.sum(1)
    mean = (scores * mask).sum(1) / count
    return (((scores - mean[:, None]) * mask).square().sum(1) / count).sqrt()


def _net(settings: Mapping[str, Any], scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """``-dL/ds``, ``[B, L]``."""
    options = dict(settings)
    loss = losses.get(options.pop("name"))
    if "generator" in inspect.signature(loss).parameters:
        options["generator"] = torch_stream("pair gradients", device=scores.device)
    leaf = scores.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf, labels, mask, **options).sum(), leaf)
    return -gradient


def _share(which: Tensor, of: Tensor) -> Tensor:
    return _mean(which.to(torch.get_default_dtype()), of)


def _mean(values: Tensor, where: Tensor) -> Tensor:
    """The mean of ``values`` ``[B, L, L]`` at marked positions, ``[B]``; NaN if there are none."""
    return (values * where).sum((1, 2)) / where.sum((1, 2))


def _blocks(scores: Tensor, lists: RankedLists) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Padded scores, labels and mask of queries of similar length."""
    labels = torch.as_tensor(np.array(lists.labels), dtype=scores.dtype)
    lengths = np.asarray(lists.lengths)
    for group in buckets(lengths):
        together = max(1, BLOCK // int(lengths[group[0]]) ** 2)
        for first in range(0, len(group), together):
            block = group[first : first + together]
            rows = torch.from_numpy(concatenated_ranges(lists.offsets[block], lengths[block]))
            mask, index = padded_positions(torch.from_numpy(lengths[block]))
            yield pad(scores[rows], mask, index), pad(labels[rows], mask, index), mask
