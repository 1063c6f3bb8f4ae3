"""The losses as modules of PyTorch, with their hyper-parameters: ``ApproxNDCG(alpha=10)``.

Each is made of the function of :mod:`directrank.losses` that it names, and has the same values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from directrank import losses
from directrank.lists.calls import REDUCTIONS, Numbers
from directrank.lists.inputs import one_of
from directrank.lists.parameters import check_options

#: Arguments of a loss that belong to its call.
OF_A_CALL = {"lengths", "query_ids", "weights", "document_weights", "generator", "reduction"}

_INTRODUCTION = """The module of :func:`directrank.losses.{name}`.

The hyper-parameters below are arguments of the module and its attributes; a tensor among them moves
with it. So is ``reduction``, which is ``mean`` here. Scores, labels and the other arguments are
those of its calls: see :meth:`RankingLoss.forward`.

{description}"""


class RankingLoss(torch.nn.Module):
    """A loss with its hyper-parameters; a subclass names its function.

    Args:
        reduction: what a call returns of the losses of the queries: their ``mean``, which is
            weighted if there are weights, their ``sum``, or ``none`` for each of them.
        options: the hyper-parameters of the loss; those that are left out have its defaults.

    Raises:
        TypeError: the loss has no such hyper-parameter, or needs one that is missing.
        ArgumentError: the loss takes no such hyper-parameter value, or the reduction is unknown.

    >>> import torch
    >>> from directrank import nn
    >>> loss = nn.ApproxNDCG(alpha=5.0, k=10)
    >>> loss
    ApproxNDCG(alpha=5.0, k=10, beta=10.0, gain='exp2', discount='log2', reduction='mean')
    >>> scores = torch.tensor([[0.5, 0.1, 0.2], [1.0, 2.0, 3.0]])
    >>> labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> loss(scores, labels)
    tensor(-0.9233)
    """

    #: The function of :mod:`directrank.losses`.
    function: ClassVar[Callable[..., Tensor]]
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, of: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        if not of:  # a user's subclass of one of these
            return
        cls.function = staticmethod(losses.get(of))
        parameters = inspect.signature(cls.function).parameters.values()
        own = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in OF_A_CALL]
        reduction = inspect.Parameter(
            "reduction", inspect.Parameter.KEYWORD_ONLY, default="mean", annotation="str"
        )
        cls.__signature__ = inspect.Signature([*own, reduction])
        cls.__doc__ = _INTRODUCTION.format(name=of, description=cls.function.__doc__)

    def __init__(self, *, reduction: str = "mean", **options: Any) -> None:
        super().__init__()
        one_of(reduction, REDUCTIONS, "reduction")
        bound = inspect.signature(type(self)).bind(reduction=reduction, **options)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if isinstance(value, Tensor) and not isinstance(value, torch.nn.Parameter):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)
        self._options = tuple(name for name in bound.arguments if name != "reduction")
        self._examine()

    def _examine(self) -> None:
        """Raise what the loss of two documents raises, so that errors name the module's line."""
        options = {name: getattr(self, name) for name in self._options}
        if any(isinstance(value, Tensor) for value in options.values()):  # maybe one per query
            check_options(options)
            return
        if "generator" in inspect.signature(self.function).parameters:  # draw no one else's numbers
            options["generator"] = torch.Generator()
        scores, labels = torch.zeros(1, 2, device="cpu"), torch.tensor([[1.0, 0.0]], device="cpu")
        self.function(scores, labels, **options)

    def forward(
        self,
        scores: Numbers,
        labels: Numbers,
        mask: Numbers | None = None,
        *,
        lengths: Numbers | None = None,
        query_ids: Numbers | None = None,
        weights: Numbers | None = None,
        **given: Any,
    ) -> Tensor:
        """The loss, reduced over its queries.

        Args:
            scores: ``[B, L]``, or flat ``[N]``.
            labels: in the same shape.
            mask: bool ``[B, L]``, True for a real document; None if all are real.
            lengths: int ``[B]``, documents per query of flat lists.
            query_ids: ``[N]``, instead of lengths: the query of each document.
            weights: ``[B]``, the factor of each query's loss.
            given: ``document_weights`` and ``generator``, where the loss takes them.

        Returns:
            A number, or ``[B]`` without a reduction.
        """
        options = {name: getattr(self, name) for name in self._options}
        return self.function(scores, labels, mask, lengths=lengths, query_ids=query_ids,
                             weights=weights, reduction=self.reduction, **options,
                             **given)  # fmt: skip

    def extra_repr(self) -> str:
        """The hyper-parameters, as they are given to the module."""
        names = (*self._options, "reduction")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


class ADRMSE(RankingLoss, of="adr_mse"): ...


class ApproxAP(RankingLoss, of="approx_ap"): ...


class ApproxNDCG(RankingLoss, of="approx_ndcg"): ...


class ApproxPrecision(RankingLoss, of="approx_precision"): ...


class BlackboxNDCG(RankingLoss, of="blackbox_ndcg"): ...


class Composed(RankingLoss, of="composed"): ...


class DiffSortNDCG(RankingLoss, of="diff_sort_ndcg"): ...


class FastSoftNDCG(RankingLoss, of="fast_soft_ndcg"): ...


class GumbelApproxNDCG(RankingLoss, of="gumbel_approx_ndcg"): ...


class KSONG(RankingLoss, of="k_song"): ...


class LambdaFamily(RankingLoss, of="lambda_family"): ...


class LambdaLoss(RankingLoss, of="lambda_loss"): ...


class LambdaRank(RankingLoss, of="lambdarank"): ...


class LapSumNDCG(RankingLoss, of="lapsum_ndcg"): ...


class ListMLE(RankingLoss, of="listmle"): ...


class ListNet(RankingLoss, of="listnet"): ...


class NeuralNDCG(RankingLoss, of="neural_ndcg"): ...


class NeuralNDCGTransposed(RankingLoss, of="neural_ndcg_transposed"): ...


class Newton(RankingLoss, of="newton"): ...


class Ordinal(RankingLoss, of="ordinal"): ...


class PairwiseHinge(RankingLoss, of="pairwise_hinge"): ...


class PiRank(RankingLoss, of="pirank"): ...


class PLRank(RankingLoss, of="pl_rank"): ...


class Poly1(RankingLoss, of="poly1"): ...


class PSL(RankingLoss, of="psl"): ...


class RankNet(RankingLoss, of="ranknet"): ...


class RMSE(RankingLoss, of="rmse"): ...


class SigmoidCrossEntropy(RankingLoss, of="sigmoid_cross_entropy"): ...


class SinkhornNDCG(RankingLoss, of="sinkhorn_ndcg"): ...


class SLAtK(RankingLoss, of="sl_at_k"): ...


class SmoothNDCG(RankingLoss, of="smooth_ndcg"): ...


class SoftmaxCrossEntropy(RankingLoss, of="softmax_cross_entropy"): ...


class SoftRank(RankingLoss, of="softrank"): ...


class SoftSortNDCG(RankingLoss, of="soft_sort_ndcg"): ...


class StochasticRank(RankingLoss, of="stochastic_rank"): ...


class TwinAP(RankingLoss, of="twin_ap"): ...


class TwinNDCG(RankingLoss, of="twin_ndcg"): ...


class TwinNERR(RankingLoss, of="twin_nerr"): ...


class TwinPrecision(RankingLoss, of="twin_precision"): ...


class UniqueSoftmax(RankingLoss, of="unique_softmax"): ...


class WassRank(RankingLoss, of="wassrank"): ...


class XENDCG(RankingLoss, of="xe_ndcg"): ...


class YetiLoss(RankingLoss, of="yeti_loss"): ...


def __dir__() -> list[str]:
    """The classes of this module, for TAB."""
    return sorted(
        name
        for name, value in globals().items()
        if isinstance(value, type) and issubclass(value, RankingLoss)
    )
