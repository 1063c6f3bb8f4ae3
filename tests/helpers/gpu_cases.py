"""Calls of losses that reach every kernel for a GPU."""

import re
from collections.abc import Callable
from typing import Any

import torch

from directrank import losses

#: Stands for a hyper-parameter with a value for each list.
PER_LIST = "one per list"


def weights_of_documents(scores: torch.Tensor) -> torch.Tensor:
    """Weights of documents in the shape of the scores, some of them 0."""
    places = torch.arange(scores.numel(), dtype=scores.dtype, device=scores.device)
    return (places.view(scores.shape) % 5) / 2


#: A loss and its options, or a metric and a relaxation that are composed.
CASES = [
    ("approx_ndcg", {}),
    ("approx_ndcg", {"k": 5, "gain": "linear", "discount": "letor", "alpha": 0.7, "beta": 2.3}),
    ("approx_ndcg", {"alpha": PER_LIST}),
    ("neural_ndcg", {"k": 5, "gain": "linear", "tau": 0.3, "iterations": 3, "tolerance": 0.1}),
    (
        (
            {"name": "ndcg", "discount": "letor"},
            {"name": "neural_sort", "rows_first": True, "iterations": 3, "tolerance": 0.1},
        ),
        {},
    ),
    (({"name": "average_precision", "k": 9}, {"name": "neural_sort", "iterations": 2}), {}),
    (("nerr", {"name": "neural_sort", "iterations": 1, "rows_first": True}), {}),
    (({"name": "precision", "k": 5}, {"name": "neural_sort", "iterations": 0}), {}),
    ("ranknet", {}),
    ("ranknet", {"k": 5, "sigma": 0.7, "pair_reduction": "mean"}),
    ("pairwise_hinge", {}),
    ("pairwise_hinge", {"margin": 0.3}),
    ("lambdarank", {}),
    ("lambdarank", {"k": 5, "sigma": 2.3, "gain": "burges2006"}),
    ("lambdarank", {"k": 5, "cutoff": "either", "gain": "linear"}),
    ("lambda_loss", {}),
    ("lambda_loss", {"k": 5, "scheme": "ndcg_loss1", "sigma": 0.7}),
    ("lambda_loss", {"k": 5, "scheme": "ndcg_loss2", "gain": "linear"}),
    ("lambda_loss", {"k": 40, "mu": 0.3}),
    ("lambda_loss", {"k": 5, "scheme": "ndcg_loss2_at_k"}),
    ("lambda_loss", {"k": 1, "scheme": "ndcg_loss2_at_k", "gain": "linear"}),
    ("lambda_loss", {"scheme": "ndcg_loss2_at_k"}),
    ("approx_ap", {}),
    ("approx_ap", {"k": 5, "alpha": 0.7, "beta": 2.3, "min_label": 2.0}),
    ("approx_precision", {"k": 5, "alpha": 0.7, "beta": 2.3, "min_label": 2.0}),
    (({"name": "err", "k": 5}, {"name": "sigmoid", "alpha": 0.7, "beta": 2.3}), {}),
    ("twin_ndcg", {}),
    ("twin_ndcg", {"k": 5, "gradient": "type1", "alpha_b": 0.7, "break_ties": False}),
    ("twin_precision", {"gradient": "type2", "alpha_b": 2.3}),
    ("twin_precision", {"k": 5, "min_label": 2.0, "break_ties": False}),
    ("twin_ap", {}),
    ("twin_ap", {"min_label": 2.0, "gradient": "type2", "break_ties": False}),
    ("twin_nerr", {"k": 5}),
    ("twin_nerr", {"k": None, "max_label": 6.0, "gradient": "type1", "break_ties": False}),
    (({"name": "reciprocal_rank", "k": 20}, {"name": "twin", "alpha_b": 0.7}), {}),  # twin_ranks
    ("k_song", {}),
    ("k_song", {"k": 7, "margin": 0.7, "beta": 2.3, "gain": "linear"}),
    ("pirank", {}),
    ("pirank", {"k": 5, "tau": 0.7, "straight_through": False, "gain": "linear"}),
    ("gumbel_approx_ndcg", {"samples": 2, "noise": 0.7, "alpha": 0.7, "k": 5}),
    ("stochastic_rank", {}),
    ("stochastic_rank", {"k": 5, "sigma": 0.7, "mu": 0.3, "samples": 2, "gain": "linear"}),
    ("smooth_ndcg", {"k": 5, "gain": "linear", "alpha": 3.0, "delta": 0.2}),
    (({"name": "ndcg", "discount": "letor"}, "smooth_i"), {}),
    ("softrank", {"sigma": 0.4}),
    ("listnet", {}),
    ("listnet", {"document_weights": weights_of_documents}),
    ("listmle", {}),
    ("xe_ndcg", {}),
    ("rmse", {}),
    ("rmse", {"levels": None, "document_weights": weights_of_documents}),
    ("wassrank", {"iterations": 3}),
    ("wassrank", {"iterations": 1, "lam": 0.9, "gap": 2.0, "base": 1.5, "penalty": 0.5}),
    ("xe_ndcg", {"document_weights": weights_of_documents}),
    ("pl_rank", {"samples": 2}),
    ("pl_rank", {"samples": 3, "k": 4, "gain": "linear"}),
    ("yeti_loss", {"samples": 2}),
    ("yeti_loss", {"samples": 3, "k": 4, "neighbours": 3, "noise": 0.3, "gain": "linear"}),
    ("blackbox_ndcg", {}),
    ("blackbox_ndcg", {"k": 5, "gain": "linear", "lam": 3.0, "margin": 0.2}),
    ("soft_sort_ndcg", {}),
    ("soft_sort_ndcg", {"tau": PER_LIST}),
    ("soft_sort_ndcg", {"k": 5, "gain": "linear", "tau": 0.3}),
    (({"name": "ndcg", "discount": "letor"}, "soft_sort"), {}),
    ("lapsum_ndcg", {}),
    ("lapsum_ndcg", {"k": 5, "gain": "linear", "tau": 0.7, "beta": 2.3}),
    ("fast_soft_ndcg", {}),
    ("fast_soft_ndcg", {"k": 5, "gain": "linear", "tau": 0.7, "beta": 2.3}),
    ("fast_soft_ndcg", {"tau": 0.4, "regularisation": "entropic"}),
    (({"name": "err", "k": 5}, {"name": "lapsum", "tau": 0.4}), {}),
    (({"name": "err", "k": 5}, {"name": "fast_soft_rank", "tau": 0.4}), {}),
]

#: Those whose kernels compute nothing but a gradient.
ONLY_GRADIENT = [
    (({"name": "reciprocal_rank", "k": 20}, {"name": "twin", "alpha_b": 0.7}), {}),
]


def given(options: dict[str, Any], lists: int, like: torch.Tensor) -> dict[str, Any]:
    """The options of a call of so many lists with scores like these.

    Tensors ``[B, 1]`` take the place of PER_LIST, and what functions make of the scores theirs.
    """
    values = torch.linspace(0.5, 4.0, lists, dtype=like.dtype, device=like.device)[:, None]
    made = {name: of(like) if callable(of) else of for name, of in options.items()}
    return {name: values if value is PER_LIST else value for name, value in made.items()}


def shown(part: Any) -> str:
    """A loss or its options in the name of a test, which is the same in every process."""
    return re.sub(r"<function (\w+) at \w+>", r"\1", str(part))


def loss_of(name: Any) -> Callable[..., torch.Tensor]:
    """The loss of a case."""
    return losses.compose(*name) if isinstance(name, tuple) else losses.get(name)


def draws(name: Any) -> bool:
    """Whether values depend on the numbers drawn, which other shapes and types change."""
    if not isinstance(name, str):
        return False
    return losses.needs_of(name).draws is True or name == "gumbel_approx_ndcg"
