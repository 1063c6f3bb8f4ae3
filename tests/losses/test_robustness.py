"""What must not change a loss, and what must not break it, as it does in public libraries."""

from __future__ import annotations

import itertools

import pytest
import torch

from directrank import losses
from directrank.system.errors import DirectrankError
from losses_cases import (
    DRAWN,
    LOSSES,
    METRIC_LOSSES,
    PAIR_LOSSES,
    POINTWISE,
    random_lists,
    value_and_gradient,
)

#: ListMLE shuffles ties, so invariances are seen on labels without ties.
UNTIED = ["listmle"]

#: Losses that do not depend on where in a batch a document is.
PLACELESS = [name for name in LOSSES if name not in DRAWN]


def lists_for(name: str, B: int = 6, L: int = 14, **options):
    scores, labels, mask = random_lists(B, L, **options)
    if name in UNTIED:
        generator = torch.Generator().manual_seed(1)
        labels = torch.stack([torch.randperm(L, generator=generator) for _ in range(B)])
        labels = labels.to(scores.dtype) / 4
    return scores, labels, mask


@pytest.mark.parametrize("size", [1e7, 1e9, 1e15, 1e30])
@pytest.mark.parametrize("name", ["neural_ndcg", "neural_ndcg_transposed"])
def test_single_precision_does_not_make_neural_sort_overflow(name, size):
    scores, labels, mask = random_lists(6, 20)
    scores = (size * scores).float()
    value, gradient = value_and_gradient(losses.get(name), scores, labels.float(), mask)
    assert gradient.isfinite().all()
    wanted = losses.get(name)(scores.double(), labels, mask)
    torch.testing.assert_close(value.double(), wanted, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_is_finite_and_has_the_shape_of_the_batch(name):
    scores, labels, mask = random_lists(6, 14)
    value, gradient = value_and_gradient(losses.get(name), scores, labels, mask, **LOSSES[name])
    assert value.shape == (6,)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
    assert (gradient[3:] != 0).any(), "some score matters"


@pytest.mark.parametrize("name", PLACELESS)
def test_order_of_documents_does_not_matter(name):
    scores, labels, mask = lists_for(name)
    loss, options = losses.get(name), LOSSES[name]
    value, gradient = value_and_gradient(loss, scores, labels, mask, **options)
    order = torch.rand(scores.shape, generator=torch.Generator().manual_seed(2)).argsort(1)
    moved = [tensor.gather(1, order) for tensor in (scores, labels, mask)]
    moved_value, moved_gradient = value_and_gradient(loss, *moved, **options)
    torch.testing.assert_close(moved_value, value)
    torch.testing.assert_close(moved_gradient, gradient.gather(1, order))


@pytest.mark.parametrize("name", PLACELESS)
@pytest.mark.parametrize("width", [1, 5, 40])
def test_width_of_the_padding_does_not_matter(name, width):
    """Rax's lambda weights grow with it."""
    scores, labels, mask = lists_for(name)
    loss, options = losses.get(name), LOSSES[name]
    value, gradient = value_and_gradient(loss, scores, labels, mask, **options)
    B = len(scores)
    padded = (
        torch.cat([scores, torch.full((B, width), 50.0, dtype=scores.dtype)], 1),
        torch.cat([labels, torch.full((B, width), 4.0, dtype=scores.dtype)], 1),
        torch.cat([mask, torch.zeros(B, width, dtype=torch.bool)], 1),
    )
    padded_value, padded_gradient = value_and_gradient(loss, *padded, **options)
    torch.testing.assert_close(padded_value, value)
    torch.testing.assert_close(padded_gradient[:, :14], gradient)
    assert (padded_gradient[:, 14:] == 0).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("content", [float("nan"), float("inf"), -1e30])
def test_masked_positions_change_nothing_and_get_no_gradient(name, content):
    scores, labels, mask = lists_for(name)
    loss, options = losses.get(name), LOSSES[name]
    value, gradient = value_and_gradient(loss, scores, labels, mask, **options)
    spoiled = scores.masked_fill(~mask, content), labels.masked_fill(~mask, content)
    spoiled_value, spoiled_gradient = value_and_gradient(loss, *spoiled, mask, **options)
    torch.testing.assert_close(spoiled_value, value)
    torch.testing.assert_close(spoiled_gradient, gradient)
    assert (spoiled_gradient[~mask] == 0).all()


@pytest.mark.parametrize("name", PLACELESS)
def test_each_list_of_a_batch_gets_what_it_gets_alone(name):
    """PT-Ranking normalises each query by every query's ideal ([B] against [B, 1])."""
    scores, labels, mask = lists_for(name)
    loss, options = losses.get(name), LOSSES[name]
    value, gradient = value_and_gradient(loss, scores, labels, mask, **options)
    for b in range(len(scores)):
        alone, alone_gradient = value_and_gradient(
            loss, scores[b][mask[b]][None], labels[b][mask[b]][None], None, **options
        )
        torch.testing.assert_close(alone[0], value[b])
        torch.testing.assert_close(alone_gradient[0], gradient[b][mask[b]])


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in POINTWISE])
def test_a_shift_of_all_scores_does_not_matter(name):
    scores, labels, mask = lists_for(name)
    loss, options = losses.get(name), LOSSES[name]
    value, gradient = value_and_gradient(loss, scores, labels, mask, **options)
    shifted, shifted_gradient = value_and_gradient(loss, scores + 3.0, labels, mask, **options)
    torch.testing.assert_close(shifted, value)
    torch.testing.assert_close(shifted_gradient, gradient, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_a_list_of_padding_alone_costs_nothing(name):
    scores, labels, mask = random_lists(3, 5)
    value, gradient = value_and_gradient(
        losses.get(name), scores, labels, torch.zeros_like(mask), **LOSSES[name]
    )
    assert (value == 0).all()
    assert (gradient == 0).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("B", "L"), [(0, 4), (3, 0), (0, 0)])
def test_empty_batches_and_lists_of_no_width_are_allowed(name, B, L):
    scores = torch.zeros(B, L)
    value, gradient = value_and_gradient(
        losses.get(name), scores, scores, torch.zeros(B, L, dtype=torch.bool), **LOSSES[name]
    )
    assert value.shape == (B,)
    assert (value == 0).all()
    assert gradient.shape == (B, L)


def test_softrank_of_no_documents_keeps_its_graph_with_a_cutoff():
    for shape, options in (((2, 0), {}), ((0,), {"lengths": [0, 0]})):
        scores = torch.zeros(shape, requires_grad=True)
        value = losses.softrank(scores, torch.zeros(shape), k=2, **options)
        assert value.tolist() == [0, 0]
        value.sum().backward()
        assert scores.grad.shape == shape


@pytest.mark.parametrize("name", [*METRIC_LOSSES, *PAIR_LOSSES])
def test_a_query_without_relevant_documents_costs_nothing_but_keeps_its_graph(name):
    """allRank returns a constant without a graph when no query of a batch has a relevant one."""
    scores = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    value, gradient = value_and_gradient(
        losses.get(name), scores, torch.zeros(2, 5), None, **LOSSES[name]
    )
    assert (value == 0).all()
    assert (gradient == 0).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("label", [0.0, 3.0])
def test_one_document_is_finite(name, label):
    value, gradient = value_and_gradient(
        losses.get(name), torch.tensor([[0.7]]), torch.tensor([[label]]), None, **LOSSES[name]
    )
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("level", [0.0, 1e4])
def test_equal_scores_and_equal_labels_are_finite(name, level):
    scores, labels, mask = random_lists(5, 9, dtype=torch.float32)
    for s, y in itertools.product((scores, torch.full_like(scores, level)), (labels, mask * 2.0)):
        value, gradient = value_and_gradient(losses.get(name), s, y, mask, **LOSSES[name])
        assert torch.isfinite(value).all()
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", [1e2, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_scores_are_finite(name, size, dtype):
    """Score gaps of 25 to 120 make gradients vanish or turn NaN in public libraries."""
    generator = torch.Generator().manual_seed(4)
    scores = size * (2 * torch.rand(4, 30, generator=generator) - 1)
    scores[0] = torch.tensor([size, -size]).repeat(15)
    labels = torch.randint(0, 5, (4, 30), generator=generator).float()
    value, gradient = value_and_gradient(
        losses.get(name), scores.to(dtype), labels, None, **LOSSES[name]
    )
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
    assert gradient.dtype == dtype


@pytest.mark.parametrize("name", ["ranknet", "lambdarank"])
@pytest.mark.parametrize("gap", [25.0, 60.0, 100.0, 120.0, 1e4])
def test_a_wrongly_ordered_pair_keeps_its_full_force_at_any_gap(name, gap):
    """Elsewhere it is 0 from 25 (allRank) or 120 (PT-Ranking) on, or NaN (pytorchltr)."""
    scores, labels = torch.tensor([[0.0, gap]]), torch.tensor([[1.0, 0.0]])
    value, gradient = value_and_gradient(losses.get(name), scores, labels, None)
    weight = 1.0 if name == "ranknet" else 1 - 1 / torch.log2(torch.tensor(3.0)).item()
    assert value.item() == pytest.approx(weight * gap, rel=1e-6)
    torch.testing.assert_close(gradient, weight * torch.tensor([[-1.0, 1.0]]))


@pytest.mark.parametrize("gap", [25.0, 60.0, 1e4])
def test_listnet_keeps_its_force_at_any_gap(gap):
    """allRank's fades out: -0.089 at a gap of 25, 6e-17 at 60."""
    scores, labels = torch.tensor([[0.0, gap]]), torch.tensor([[1.0, 0.0]])
    _, gradient = value_and_gradient(losses.listnet, scores, labels, None)
    share = torch.softmax(labels, 1)[0, 0].item()
    torch.testing.assert_close(gradient, torch.tensor([[-share, share]]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["ranknet", "lambdarank", "listnet"])
def test_a_well_ordered_pair_fades_out_without_nan(name):
    scores, labels = torch.tensor([[200.0, 0.0]]), torch.tensor([[1.0, 0.0]])
    value, gradient = value_and_gradient(losses.get(name), scores, labels, None)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", ["ranknet", "lambdarank"])
def test_no_pair_is_no_nan(name):
    """allRank's mean over no pair is NaN."""
    options = {"pair_reduction": "mean"} if name == "ranknet" else {}
    value, gradient = value_and_gradient(
        losses.get(name), torch.randn(2, 4), torch.full((2, 4), 2.0), None, **options
    )
    assert (value == 0).all()
    assert (gradient == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_lists_of_5000_documents_take_little_memory_and_stay_finite(name):
    # Quadratic in memory and slow: these see the full length in the long tests.
    n = 600 if name.startswith(("neural", "sinkhorn")) else 5000
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, n, generator=generator)
    labels = (torch.rand(1, n, generator=generator) < 0.02).float() * 2
    value, gradient = value_and_gradient(losses.get(name), scores, labels, None, **LOSSES[name])
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.long
@pytest.mark.parametrize("name", ["neural_ndcg", "neural_ndcg_transposed"])
def test_the_expensive_losses_stay_finite_on_5000_documents(name):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, 5000, generator=generator)
    labels = (torch.rand(1, 5000, generator=generator) < 0.02).float() * 2
    value, gradient = value_and_gradient(losses.get(name), scores, labels, None)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(
    "name",
    [
        "ranknet", "lambdarank", "approx_ndcg", "approx_ap", "twin_ndcg", "wassrank", "softrank",
        "lambda_loss", "k_song", *DRAWN,
    ],
)  # fmt: skip
def test_no_tensor_of_all_pairs_is_kept_or_made(name):
    """The largest tensor alive is a block, not [B, L, L]."""
    B, L = 8, 1200
    scores, labels, mask = random_lists(B, L, dtype=torch.float32)
    scores.requires_grad_()
    with torch.profiler.profile(profile_memory=True) as profile:
        losses.get(name)(scores, labels, mask).sum().backward()
    largest = max(event.cpu_memory_usage for event in profile.events())
    assert largest < 4 * B * L * L / 4, "less than a quarter of one [B, L, L]"


@pytest.mark.parametrize("name", LOSSES)
def test_the_same_call_gives_the_same_bytes(name):
    scores, labels, mask = random_lists(6, 50, dtype=torch.float32)

    def call():
        torch.manual_seed(0)
        return value_and_gradient(losses.get(name), scores, labels, mask, **LOSSES[name])

    first, second = call(), call()
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])


@pytest.mark.parametrize("name", LOSSES)
def test_arguments_are_left_as_they_were(name):
    scores, labels, mask = random_lists(6, 9)
    copies = scores.clone(), labels.clone(), mask.clone()
    value_and_gradient(losses.get(name), scores, labels, mask, **LOSSES[name])
    for tensor, copy in zip((scores, labels, mask), copies, strict=True):
        assert torch.equal(tensor, copy)


@pytest.mark.parametrize("name", LOSSES)
def test_wrong_arguments_are_one_clear_error(name):
    loss, options = losses.get(name), LOSSES[name]
    good = torch.zeros(2, 3)
    with pytest.raises(DirectrankError, match=r"must both be \[B, L\]"):
        loss(good, torch.zeros(2, 4), None, **options)
    with pytest.raises(DirectrankError, match="must be bool"):
        loss(good, good, torch.ones(2, 3), **options)
    with pytest.raises(DirectrankError, match="not floating"):
        loss(good.long(), good, None, **options)
    with pytest.raises(DirectrankError, match="must both be"):
        loss(good[0], good[0], None, **options)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ranknet", {"pair_reduction": "maen"}),
        ("lambdarank", {"cutoff": "one"}),
        ("lambdarank", {"gain": "exp"}),
        ("wassrank", {"gradient": "duall"}),
        ("twin_ndcg", {"gradient": "type4"}),
        ("approx_ndcg", {"discount": "ln"}),
    ],
)
def test_an_unknown_option_lists_the_known_ones(name, options):
    with pytest.raises(DirectrankError, match="choose one of"):
        losses.get(name)(torch.zeros(2, 3), torch.ones(2, 3), None, **options)
