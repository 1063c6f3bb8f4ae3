"""Flat lists and weights: every loss says of them what it says of padded lists, one by one."""

from __future__ import annotations

import inspect
import pydoc
from functools import partial

import numpy as np
import pytest
import torch

from directrank import kernels, losses
from directrank.lists import calls
from directrank.lists.padding import padded_positions
from directrank.system.errors import DirectrankError
from losses_cases import LOSSES, POINTWISE, WEIGHTED

#: Uneven, with a list of one document and one without any; the longest is not among the first.
LENGTHS = torch.tensor([5, 1, 0, 30, 12, 3, 18, 11])

#: Every loss, and settings that take another way through it.
CASES = [
    *LOSSES.items(),
    ("composed", {"metric": {"name": "err", "k": 5}, "relaxation": "neural_sort"}),
    ("composed", {"metric": "ndcg", "relaxation": "lapsum"}),
    ("ranknet", {"k": 4}),
    ("ranknet", {"pair_reduction": "mean"}),
    ("lambda_loss", {"k": 4}),
    ("lambda_loss", {"k": 4, "scheme": "ndcg_loss2_at_k"}),
    ("lambdarank", {"k": 4, "cutoff": "either"}),
    ("k_song", {"k": 4}),
    ("softrank", {"k": 4}),  # without a kernel
    ("smooth_ndcg", {"stop_gradient": False}),  # without a kernel
    ("blackbox_ndcg", {"margin": 0.1}),
    ("rmse", {"levels": None}),
    ("stochastic_rank", {"k": 4, "samples": 2}),
    ("newton", {"of": "ranknet", "lam": 0.5, "curvature": "hessian"}),
]

#: Losses that draw a number per document, which flat lists get in another order than padded ones.
DRAWS = [
    ("listmle", {}),
    ("xe_ndcg", {}),
    ("pl_rank", {"samples": 1}),
    ("yeti_loss", {"samples": 1}),
    ("gumbel_approx_ndcg", {"samples": 1, "noise": 1.0}),
]

#: Losses without a kernel, whose flat lists are padded.
PADDED = [
    "wassrank", "lambda_family", "approx_ap", "approx_precision", "poly1", "unique_softmax",
    "softmax_cross_entropy",
    "adr_mse", "sl_at_k", "psl", "sinkhorn_ndcg",
    "diff_sort_ndcg",
    *(name for name in LOSSES if name.startswith("twin")),
]  # fmt: skip

#: Losses whose flat lists are never padded on a CPU.
NATIVE = [name for name in LOSSES if name not in PADDED]


def flat_lists(seed: int = 0, lengths: torch.Tensor = LENGTHS, ties: bool = False):
    """Scores and labels ``[N]``; with ties the fourth list has no relevant document."""
    generator = torch.Generator().manual_seed(seed)
    n = int(lengths.sum())
    scores = torch.randn(n, generator=generator, dtype=torch.float64)
    if not ties:  # nothing to shuffle
        return scores, torch.rand(n, generator=generator, dtype=torch.float64) * 4
    labels = torch.randint(0, 5, (n,), generator=generator).double()
    labels[6:36] = 0
    return scores, labels


def result(loss, scores, labels, *arguments, **options):
    """The value and the gradient of a sum in which every list has a weight of its own."""
    torch.manual_seed(0)
    leaf = scores.clone().requires_grad_()
    value = loss(leaf, labels, *arguments, **options)
    weights = torch.linspace(0.5, 2.0, len(value), dtype=value.dtype)
    (gradient,) = torch.autograd.grad((weights * value).sum(), leaf)
    return value.detach(), gradient


def one_by_one(loss, scores, labels, lengths, **options):
    """As :func:`result`, of lists that are each given alone."""
    torch.manual_seed(0)
    leaf = scores.clone().requires_grad_()
    sizes = lengths.tolist()
    parts = zip(leaf.split(sizes), labels.split(sizes), strict=True)
    value = torch.cat([loss(s[None], y[None], **options) for s, y in parts])
    weights = torch.linspace(0.5, 2.0, len(value), dtype=value.dtype)
    (gradient,) = torch.autograd.grad((weights * value).sum(), leaf)
    return value.detach(), gradient


def quiet(name: str, options: dict) -> dict:
    """Settings with which a loss does not depend on what it draws."""
    silent = {
        "gumbel_approx_ndcg": {"noise": 0.0},
        "yeti_loss": {"noise": 0.0},
    }
    return options | silent.get(name, {})


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_every_loss_has_a_case():
    assert {name for name, _ in CASES} == set(losses.REGISTRY)


@pytest.mark.parametrize(
    ("name", "options"), [case for case in CASES if case[0] not in ("xe_ndcg", "pl_rank")]
)
def test_flat_lists_have_the_values_and_gradients_of_padded_ones(name, options, monkeypatch):
    drawn = "directrank.losses._stochastic_rank.normal"
    monkeypatch.setattr(drawn, lambda values, *_: torch.sin(99 * values))
    loss, options = losses.get(name), quiet(name, options)
    scores, labels = flat_lists(ties=name not in ("listmle", "yeti_loss"))
    mask, index = padded_positions(LENGTHS)
    places = torch.zeros(mask.shape, dtype=torch.float64).flatten()
    padded = places.index_copy(0, index, scores).view(mask.shape)
    padded_labels = places.index_copy(0, index, labels).view(mask.shape)
    value, gradient = result(loss, padded, padded_labels, mask, **options)
    expected = value, gradient[mask]
    assert_same(result(loss, scores, labels, lengths=LENGTHS, **options), expected)
    ids = torch.repeat_interleave(torch.arange(8) * 7, LENGTHS)
    there = LENGTHS > 0  # a query without documents has no number
    value, gradient = result(loss, scores, labels, query_ids=ids, **options)
    torch.testing.assert_close(value, expected[0][there], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "options"), DRAWS)
def test_flat_lists_draw_as_lists_one_after_the_other(name, options):
    loss = losses.get(name)
    scores, labels = flat_lists(ties=True)
    expected = one_by_one(loss, scores, labels, LENGTHS, **options)
    assert_same(result(loss, scores, labels, lengths=LENGTHS, **options), expected)


@pytest.mark.parametrize("name", LOSSES)
def test_lists_of_one_length_draw_the_same_numbers_flat_and_padded(name):
    lengths = torch.full((4,), 16)
    scores, labels = flat_lists(lengths=lengths, ties=True)
    scores[3:7] = scores[3]  # ties of scores, too
    loss, options = losses.get(name), LOSSES[name]
    value, gradient = result(loss, scores.view(4, 16), labels.view(4, 16), **options)
    assert_same(
        result(loss, scores, labels, lengths=lengths, **options), (value, gradient.flatten())
    )


@pytest.mark.parametrize("name", NATIVE)
def test_flat_lists_are_not_padded_where_there_is_a_kernel(name, monkeypatch):
    def padded(*_):
        raise AssertionError("padded")

    monkeypatch.setattr(calls, "_in_groups", padded)
    scores, labels = flat_lists()
    result(losses.get(name), scores, labels, lengths=LENGTHS, **LOSSES[name])


def test_every_loss_with_a_kernel_of_its_own_is_among_those_that_are_never_padded():
    functions = {key.split(":")[1] for key in kernels.KERNELS["cpu"] if isinstance(key, str)}
    assert functions & set(LOSSES) <= set(NATIVE)


@pytest.mark.parametrize("name", LOSSES)
def test_without_kernels_groups_of_lists_give_the_same(name, monkeypatch):
    loss, options = losses.get(name), quiet(name, LOSSES[name])
    if losses.needs_of(name).random(options) and name not in ("listmle", "yeti_loss"):
        pytest.skip("another order of the draws")
    scores, labels = flat_lists()
    expected = result(loss, scores, labels, lengths=LENGTHS, **options)
    monkeypatch.setattr("directrank.kernels.dispatch.KERNELS", {})
    thirds = lambda lengths, small: np.array_split(np.argsort(-lengths), 3)  # noqa: E731
    monkeypatch.setattr(calls, "buckets", thirds)
    assert_same(result(loss, scores, labels, lengths=LENGTHS, **options), expected)


@pytest.mark.parametrize("name", [n for n in LOSSES if losses.needs_of(n).per_list])
@pytest.mark.parametrize("with_kernel", [True, False])
def test_a_hyperparameter_per_list_goes_with_flat_lists(name, with_kernel, monkeypatch):
    key = losses.needs_of(name).per_list[0]
    loss = partial(losses.get(name), **LOSSES[name])
    scores, labels = flat_lists()
    values = torch.linspace(0.5, 4.0, len(LENGTHS), dtype=torch.float64)
    alone = [
        loss(s[None], y[None], **{key: float(v)})
        for s, y, v in zip(
            scores.split(LENGTHS.tolist()), labels.split(LENGTHS.tolist()), values, strict=True
        )
    ]
    if not with_kernel:
        monkeypatch.setattr("directrank.kernels.dispatch.KERNELS", {})
    found = loss(scores, labels, lengths=LENGTHS, **{key: values[:, None]})
    torch.testing.assert_close(found, torch.cat(alone), rtol=1e-6, atol=1e-6)


def test_a_composition_takes_flat_lists_and_weights():
    scores, labels = flat_lists(ties=True)
    weights = torch.arange(8.0)
    for metric in ("ndcg", "average_precision"):
        loss = losses.compose(metric, {"name": "sigmoid", "alpha": 2.0})
        alone = one_by_one(loss, scores, labels, LENGTHS)[0]
        found = loss(scores, labels, lengths=LENGTHS, weights=weights)
        torch.testing.assert_close(found, alone * weights)


@pytest.mark.parametrize("name", LOSSES)
def test_whole_weights_equal_repeated_queries(name):
    loss, options = losses.get(name), quiet(name, LOSSES[name])
    options |= {"levels": 6} if name == "ordinal" else {}
    lengths, times = torch.tensor([7, 16, 3]), torch.tensor([2, 0, 3])
    scores, labels = flat_lists(lengths=lengths)
    labels = labels + torch.linspace(0, 1, len(labels))
    if losses.needs_of(name).random(options) and name not in ("listmle", "yeti_loss"):
        torch.manual_seed(0)
        plain = loss(scores, labels, lengths=lengths, **options)
        torch.manual_seed(0)
        found = loss(scores, labels, lengths=lengths, weights=times, **options)
        torch.testing.assert_close(found, plain * times)
        return
    leaf, again = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    loss(leaf, labels, lengths=lengths, weights=times, **options).sum().backward()
    rows = [row for row, n in enumerate(times.tolist()) for _ in range(n)]
    parts, their_labels = again.split(lengths.tolist()), labels.split(lengths.tolist())
    repeated = torch.cat([parts[r] for r in rows]), torch.cat([their_labels[r] for r in rows])
    loss(*repeated, lengths=lengths[rows], **options).sum().backward()
    torch.testing.assert_close(leaf.grad, again.grad)


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("with_kernel", [True, False])
def test_weights_of_documents_multiply_their_terms(name, with_kernel, monkeypatch):
    if not with_kernel:
        monkeypatch.setattr("directrank.kernels.dispatch.KERNELS", {})
    scores, labels = flat_lists(ties=True)
    weights = torch.rand(len(scores), generator=torch.Generator().manual_seed(3)).double()
    loss = losses.get(name)
    expected = one_by_one_weighted(loss, scores, labels, weights)
    if name != "xe_ndcg" or with_kernel:  # groups draw in another order
        found = result(loss, scores, labels, lengths=LENGTHS, document_weights=weights)[0]
        torch.testing.assert_close(found, expected)
    torch.manual_seed(0)
    plain = loss(scores, labels, lengths=LENGTHS)
    torch.manual_seed(0)
    equal = loss(scores, labels, lengths=LENGTHS, document_weights=torch.full_like(scores, 2.0))
    torch.testing.assert_close(equal, plain if name in POINTWISE else 2 * plain)


def one_by_one_weighted(loss, scores, labels, weights):
    torch.manual_seed(0)
    values, sizes = [], LENGTHS.tolist()
    for s, y, w in zip(scores.split(sizes), labels.split(sizes), weights.split(sizes), strict=True):
        name, chance = loss.__name__, torch.log_softmax(s, 0)
        if not len(s):
            values.append(s.sum())
        elif name == "rmse":
            error = (y - 5 * torch.sigmoid(s)) ** 2
            values.append(((w * error).sum() / w.sum()).sqrt())
        elif name in POINTWISE:  # the cost of each document is that of a list of it alone
            costs = loss(s[:, None], y[:, None])
            values.append((w * costs).sum() / w.sum())
        elif name == "listnet":
            values.append(-(w * torch.softmax(y, 0) * chance).sum())
        elif name == "softmax_cross_entropy":
            values.append(-(w * y * chance).sum())
        elif name == "unique_softmax":
            rivals = [torch.cat([s[i : i + 1], s[y < y[i]]]) for i in range(len(s))]
            own = torch.stack([one.log_softmax(0)[0] for one in rivals])
            values.append(-(w * (2**y - 1) * own).sum())
        else:
            phi = 2**y - torch.rand(len(y), dtype=y.dtype)
            values.append(-(w * phi * chance).sum() / phi.sum())
    return torch.stack(values)


def test_a_repeated_document_is_one_of_weight_two_for_the_mean_square():
    scores, labels = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([2.0, 0.0, 3.0])
    weights = torch.tensor([1.0, 2.0, 0.0])
    found = losses.rmse(scores, labels, lengths=[3], document_weights=weights)
    expected = losses.rmse(scores[[0, 1, 1]][None], labels[[0, 1, 1]][None])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", [n for n in LOSSES if n not in WEIGHTED])
def test_other_losses_say_why_they_take_no_weights_of_documents(name):
    scores, labels = flat_lists()
    with pytest.raises(DirectrankError, match="value of the whole ranking"):
        losses.get(name)(scores, labels, lengths=LENGTHS, document_weights=scores, **LOSSES[name])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "lengths or query_ids"),
        ({"lengths": [2, 2]}, "add up to 4 documents, but there are 5"),
        ({"lengths": [7, -2]}, "contains -2"),
        ({"lengths": [2.5, 2.5]}, "whole numbers"),
        ({"lengths": [5], "query_ids": [0] * 5}, "lengths and query_ids are given"),
        ({"query_ids": [0, 0, 1]}, r"must be \[5\]"),
        ({"query_ids": [0, 0, 1, 0, 0]}, "are not contiguous"),
        ({"lengths": [5], "mask": torch.ones(5, dtype=torch.bool)}, "have no mask"),
        ({"lengths": [3, 2], "weights": [1.0]}, r"must be \[2\]"),
        ({"lengths": [3, 2], "weights": [1.0, -1.0]}, "negative"),
    ],
)
def test_what_cannot_be_meant_is_said(arguments, message):
    scores = torch.arange(5.0)
    with pytest.raises(DirectrankError, match=message) as error:
        losses.listnet(scores, scores, **arguments)
    assert error.value.remedy


def test_padded_lists_take_no_lengths():
    scores = torch.zeros(2, 3)
    with pytest.raises(DirectrankError, match=r"must both be \[N\]"):
        losses.listnet(scores, scores, lengths=[3, 3])


def test_help_shows_what_a_loss_takes():
    text = pydoc.render_doc(losses.approx_ndcg)
    for name in ("lengths", "query_ids", "weights"):
        assert f"{name}: Numbers | None = None" in text.replace("'", "")
        assert f"        {name}: " in text
    assert "reduction: str = none" in text.replace("'", "")
    assert "        reduction: " in text
    assert list(inspect.signature(losses.rmse).parameters)[:7] == [
        "scores", "labels", "mask", "lengths", "query_ids", "weights", "reduction",
    ]  # fmt: skip


def test_flat_lists_may_be_half_precision_and_need_no_gradient():
    scores, labels = flat_lists()
    value = losses.listnet(scores.bfloat16(), labels, lengths=LENGTHS.numpy())
    assert value.dtype == torch.float32
    assert not value.requires_grad


def test_no_documents_are_no_error():
    empty = torch.zeros(0)
    for name, options in LOSSES.items():
        assert losses.get(name)(empty, empty, lengths=[0, 0], **options).tolist() == [0, 0], name
