"""Losses that draw, with the same draws for the same documents: what must not change them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from directrank import losses
from directrank.kernels.dispatch import accelerated
from directrank.lists import draws
from directrank.lists.draws import Counters
from directrank.system.errors import DirectrankError
from losses_cases import DRAWN, LOSSES, random_lists, value_and_gradient

B, L = 6, 14

EACH = pytest.mark.parametrize(
    ("name", "options"), [(name, options) for name in DRAWN for options in ({}, {"k": 3})
                          if not (name == "xe_ndcg" and options)],
)  # fmt: skip


@pytest.fixture
def found(monkeypatch):
    """A function of a loss and lists that gives value and gradient, with draws by document.

    ``where`` makes of a number per document of the original lists one per document of these.
    """
    stream = torch.Generator().manual_seed(7)
    uniform = torch.rand(10, B, L, generator=stream, dtype=torch.float64)
    normal = torch.randn(10, B, L, generator=stream, dtype=torch.float64)

    def call(name: str, lists, where: Callable[[Tensor], Tensor] = torch.clone, **options):
        calls = itertools.count()
        with monkeypatch.context() as patch:
            patch.setattr(
                torch, "rand", lambda shape, dtype=None, **_: where(uniform[next(calls)]).to(dtype)
            )
            patch.setattr(
                torch,
                "randn",
                lambda shape, dtype=None, **_: where(normal[next(calls)]).to(dtype),
            )
            return value_and_gradient(losses.get(name), *lists, **LOSSES[name], **options)

    return call


@EACH
def test_order_of_documents_does_not_matter(name, options, found):
    lists = random_lists(B, L)
    value, gradient = found(name, lists, **options)
    order = torch.rand(B, L, generator=torch.Generator().manual_seed(2)).argsort(1)
    moved = [tensor.gather(1, order) for tensor in lists]
    moved_value, moved_gradient = found(name, moved, lambda draw: draw.gather(1, order), **options)
    torch.testing.assert_close(moved_value, value)
    torch.testing.assert_close(moved_gradient, gradient.gather(1, order))
    assert gradient[3:].abs().max() > 1e-4


@EACH
@pytest.mark.parametrize("width", [1, 5, 40])
def test_width_of_the_padding_does_not_matter(name, options, width, found):
    scores, labels, mask = random_lists(B, L)
    value, gradient = found(name, (scores, labels, mask), **options)
    more = torch.full((B, width), 50.0, dtype=scores.dtype)
    padded = (
        torch.cat([scores, more], 1),
        torch.cat([labels, more], 1),
        torch.cat([mask, torch.zeros(B, width, dtype=torch.bool)], 1),
    )
    wide = found(name, padded, lambda draw: torch.cat([draw, more / 60], 1), **options)
    torch.testing.assert_close(wide[0], value)
    torch.testing.assert_close(wide[1][:, :L], gradient)
    assert (wide[1][:, L:] == 0).all()


@EACH
def test_each_list_of_a_batch_gets_what_it_gets_alone(name, options, found):
    scores, labels, mask = random_lists(B, L)
    value, gradient = found(name, (scores, labels, mask), **options)
    for b in range(B):
        alone = scores[b][mask[b]][None], labels[b][mask[b]][None], None
        here = found(name, alone, lambda draw, b=b: draw[b][mask[b]][None], **options)
        torch.testing.assert_close(here[0][0], value[b])
        torch.testing.assert_close(here[1][0], gradient[b][mask[b]])


@EACH
def test_float32_agrees_with_float64(name, options, found):
    scores, labels, mask = random_lists(B, L, seed=8)
    exact = found(name, (scores, labels, mask), **options)
    single = found(name, (scores.float(), labels.float(), mask), **options)
    torch.testing.assert_close(single[0].double(), exact[0], rtol=2e-5, atol=2e-5)
    torch.testing.assert_close(single[1].double(), exact[1], rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("name", DRAWN)
def test_draws_are_the_generators(name):
    scores, labels, mask = random_lists(B, L)
    loss = losses.get(name)

    def drawn(seed: int) -> Tensor:
        return loss(scores, labels, mask, generator=torch.Generator().manual_seed(seed))

    assert torch.equal(drawn(5), drawn(5))
    assert not torch.equal(drawn(5), drawn(6))
    stream = torch.Generator().manual_seed(5)
    first = loss(scores, labels, mask, generator=stream)
    assert not torch.equal(loss(scores, labels, mask, generator=stream), first)


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize(("lists", "width"), [(0, 4), (3, 0), (0, 0)])
def test_formulas_allow_empty_batches_and_lists_of_no_width(name, lists, width, monkeypatch):
    monkeypatch.setattr("directrank.kernels.dispatch.KERNELS", {})
    scores = torch.zeros(lists, width)
    value, gradient = value_and_gradient(losses.get(name), scores, scores, scores > 0)
    assert value.tolist() == [0] * lists
    assert gradient.shape == (lists, width)


@pytest.mark.parametrize("name", [name for name in DRAWN if name != "xe_ndcg"])
def test_no_sample_is_refused(name):
    with pytest.raises(DirectrankError, match="1 or more"):
        losses.get(name)(torch.zeros(2, 3), torch.ones(2, 3), samples=0)


@pytest.mark.parametrize("name", [name for name in DRAWN if name != "pl_rank"])
def test_forces_of_a_query_sum_to_zero(name):
    """Those of PL-Rank do so on average."""
    scores, labels, mask = random_lists(20, 15, seed=1)
    _, gradient = value_and_gradient(losses.get(name), scores, labels, mask)
    assert gradient.abs().max() > 1e-3
    assert gradient.sum(1).abs().max() < 1e-12


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU here")
@EACH
def test_a_gpu_gives_what_the_cpu_gives(name, options, found):
    lists = random_lists(B, L)
    value, gradient = found(name, lists, **options)
    there = found(name, [tensor.cuda() for tensor in lists], lambda draw: draw.cuda(), **options)
    torch.testing.assert_close(there[0].cpu(), value)
    torch.testing.assert_close(there[1].cpu(), gradient)


@pytest.mark.parametrize("name", [*DRAWN, "listmle", "twin_ndcg", "gumbel_approx_ndcg"])
def test_lists_of_several_models_draw_what_each_would_draw_alone(name):
    scores, labels, mask = random_lists(B, L)
    mask[2:4, 9:] = False  # the lists of the second model are shorter than the others
    scores[0, :4] = 0.5  # ties, which twin_ndcg breaks at random
    loss, options = losses.get(name), LOSSES.get(name, {})
    seeds, draw = torch.tensor([3, 4, 5]), accelerated(draws.uniform_by_document)

    def counters(some: Tensor, step: int = 1) -> Counters:
        return Counters.of_models(some, torch.tensor([step]), B // 3, draw)

    alone = []
    for model in range(3):
        own = slice(2 * model, 2 * model + 2)
        end = int(mask[own].any(0).nonzero()[-1]) + 1
        lists = scores[own, :end], labels[own, :end], mask[own, :end]
        alone.append(loss(*lists, generator=counters(seeds[model : model + 1]), **options))
    together = loss(scores, labels, mask, generator=counters(seeds), **options)
    torch.testing.assert_close(together, torch.cat(alone))
    other = loss(scores, labels, mask, generator=counters(seeds, step=2), **options)
    assert name not in DRAWN or not torch.equal(together, other)


@pytest.mark.parametrize("name", [*DRAWN, "twin_ndcg"])
def test_numbers_of_the_kernel_are_those_of_the_formula(name):
    lists, options = random_lists(B, L), LOSSES.get(name, {})
    results = [
        losses.get(name)(
            *lists,
            generator=Counters.of_models(torch.tensor([3, 4]), torch.tensor([9]), B // 2, draw),
            **options,
        )
        for draw in (draws.uniform_by_document, accelerated(draws.uniform_by_document))
    ]
    assert torch.equal(*results)
