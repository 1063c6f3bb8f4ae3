"""Kernels that compute the package's formulas fast: compiled loops on a CPU, Triton on a GPU.

Losses, relaxations, layers and updates of optimisers are written as plain PyTorch in their own
packages. This is the table of what replaces them; :mod:`directrank.kernels.dispatch` says when, and
nothing else decides whether a kernel is used.
"""

from __future__ import annotations

from typing import TypeAlias

#: A replaced function or class as ``module:name``, or a metric and a relaxation.
Key: TypeAlias = str | tuple[str, str]


def _under(relaxations: dict[tuple[str, str], str]) -> dict[Key, str]:
    """A table of metrics under relaxations, with the names of their folders added."""
    return {
        (f"metrics.{metric}", f"relaxations.{relaxation}"): kernel
        for (metric, relaxation), kernel in relaxations.items()
    }


_CPU: dict[Key, str] = {
    "lists.draws:factors_of_pairs": "kernels.philox:factors_of_pairs",
    "lists.draws:factors_of_rows": "kernels.philox:factors_of_rows",
    "lists.draws:uniform_by_document": "kernels.philox:uniform_by_document",
    "losses._k_song:hinged_dcg": "kernels.k_song:hinged_dcg",
    "losses._lambda_loss:lambda_loss": "kernels.lambda_loss:lambda_loss",
    "losses._lambdarank:lambdarank": "kernels.lambdarank:lambdarank",
    "losses._listmle:likelihood": "kernels.listmle:likelihood",
    "losses._listnet:listnet": "kernels.listnet:listnet",
    "losses._pairwise_hinge:pairwise_hinge": "kernels.pairwise_hinge:pairwise_hinge",
    "losses._pl_rank:drawn_dcg": "kernels.pl_rank:drawn_dcg",
    "losses._ranknet:ranknet": "kernels.ranknet:ranknet",
    "losses._stochastic_rank:noisy_dcg": "kernels.stochastic_rank:noisy_dcg",
    "losses._xe_ndcg:cross_entropy": "kernels.xe_ndcg:cross_entropy",
    "losses._yeti_loss:costs_of_neighbours": "kernels.yeti_loss:costs_of_neighbours",
    "models.encoder:Encoder": "kernels.encoder:forward",
    "models.query_layers:QueryLayers": "kernels.query_layers:forward",
    "relaxations.fast_soft_rank:projected_ranks": "kernels.soft_ranks:projected_ranks",
    "relaxations.lapsum:laplace_ranks": "kernels.soft_ranks:laplace_ranks",
    "relaxations.neural_sort:sorted_expectation": "kernels.neural_sort:sorted_expectation",
    "relaxations.real_valued:soft_counts": "kernels.sigmoid:soft_counts",
    "relaxations.twin:order_with_noise": "kernels.twin:order_with_noise",
    "relaxations.twin:twin_ranks": "kernels.twin:twin_ranks",
    **_under(
        {
            (
                "_average_precision:average_precision_of",
                "twin:twin",
            ): "kernels.twin:average_precision",
            ("_err:nerr_of", "twin:twin"): "kernels.twin:nerr",
            ("_ndcg:ndcg_of", "blackbox:blackbox"): "kernels.blackbox:ndcg",
            ("_ndcg:ndcg_of", "diff_sort:diff_sort"): "kernels.diff_sort:ndcg",
            ("_ndcg:ndcg_of", "fast_soft_rank:fast_soft_rank"): "kernels.soft_ndcg:fast_soft_ndcg",
            ("_ndcg:ndcg_of", "lapsum:lapsum"): "kernels.soft_ndcg:lapsum_ndcg",
            ("_ndcg:ndcg_of", "neural_sort:neural_sort"): "kernels.neural_sort:ndcg",
            ("_ndcg:ndcg_of", "pirank:pirank"): "kernels.pirank:ndcg",
            ("_ndcg:ndcg_of", "rank_binomial:rank_binomial"): "kernels.softrank:ndcg",
            ("_ndcg:ndcg_of", "sigmoid:sigmoid"): "kernels.sigmoid:ndcg",
            ("_ndcg:ndcg_of", "smooth_i:smooth_i"): "kernels.smooth_i:ndcg",
            ("_ndcg:ndcg_of", "soft_sort:soft_sort"): "kernels.soft_sort:ndcg",
            ("_ndcg:ndcg_of", "twin:twin"): "kernels.twin:ndcg",
            ("_precision:precision_of", "twin:twin"): "kernels.twin:precision",
        }
    ),
}

_CUDA: dict[Key, str] = {
    "learners.neural.optimisers:Adagrad": "kernels.gpu.optimisers:adagrad",
    "learners.neural.optimisers:Adam": "kernels.gpu.optimisers:adam",
    "lists.draws:factors_of_pairs": "kernels.gpu.draws:factors_of_pairs",
    "lists.draws:factors_of_rows": "kernels.gpu.draws:factors_of_rows",
    "lists.draws:uniform_by_document": "kernels.gpu.draws:uniform_by_document",
    "losses._compositions:gumbel_approx_ndcg": "kernels.gpu.gumbel:gumbel_approx_ndcg",
    "losses._k_song:k_song": "kernels.gpu.k_song:k_song",
    "losses._lambda_loss:lambda_loss": "kernels.gpu.logistic:lambda_loss",
    "losses._lambdarank:lambdarank": "kernels.gpu.logistic:lambdarank",
    "losses._listmle:listmle": "kernels.gpu.listmle:listmle",
    "losses._listnet:listnet": "kernels.gpu.cross_entropy:listnet",
    "losses._pairwise_hinge:pairwise_hinge": "kernels.gpu.hinge:pairwise_hinge",
    "losses._pl_rank:mean_dcg": "kernels.gpu.pl_rank:mean_dcg",
    "losses._ranknet:ranknet": "kernels.gpu.logistic:ranknet",
    "losses._rmse:rmse": "kernels.gpu.rmse:rmse",
    "losses._stochastic_rank:smoothed_ndcg": "kernels.gpu.stochastic_rank:smoothed_ndcg",
    "losses._wassrank:cost_of_transport": "kernels.gpu.wassrank:cost_of_transport",
    "losses._xe_ndcg:xe_ndcg": "kernels.gpu.cross_entropy:xe_ndcg",
    "losses._yeti_loss:mean_cost": "kernels.gpu.yeti_loss:mean_cost",
    "models.query_norm:QueryNorm": "kernels.gpu.norms:query_norm",
    "models.stacked:StackedBatchNorm": "kernels.gpu.norms:batch_norm",
    "relaxations.fast_soft_rank:projected_ranks": "kernels.gpu.soft_ranks:projected_ranks",
    "relaxations.lapsum:laplace_ranks": "kernels.gpu.soft_ranks:laplace_ranks",
    "relaxations.neural_sort:sorted_expectation": "kernels.gpu.neural_sort:sorted_expectation",
    "relaxations.real_valued:soft_counts": "kernels.gpu.sigmoid:soft_counts",
    "relaxations.twin:twin_ranks": "kernels.gpu.twin:twin_ranks",
    **_under(
        {
            (
                "_average_precision:average_precision_of",
                "sigmoid:sigmoid",
            ): "kernels.gpu.sigmoid:average_precision",
            (
                "_average_precision:average_precision_of",
                "twin:twin",
            ): "kernels.gpu.twin:average_precision",
            ("_err:nerr_of", "twin:twin"): "kernels.gpu.twin:nerr",
            ("_ndcg:ndcg_of", "blackbox:blackbox"): "kernels.gpu.blackbox:ndcg",
            (
                "_ndcg:ndcg_of",
                "fast_soft_rank:fast_soft_rank",
            ): "kernels.gpu.soft_ndcg:fast_soft_ndcg",
            ("_ndcg:ndcg_of", "lapsum:lapsum"): "kernels.gpu.soft_ndcg:lapsum_ndcg",
            ("_ndcg:ndcg_of", "neural_sort:neural_sort"): "kernels.gpu.neural_sort:ndcg",
            ("_ndcg:ndcg_of", "pirank:pirank"): "kernels.gpu.pirank:ndcg",
            ("_ndcg:ndcg_of", "rank_binomial:rank_binomial"): "kernels.gpu.softrank:ndcg",
            ("_ndcg:ndcg_of", "smooth_i:smooth_i"): "kernels.gpu.smooth_i:ndcg",
            ("_ndcg:ndcg_of", "sigmoid:sigmoid"): "kernels.gpu.sigmoid:ndcg",
            ("_ndcg:ndcg_of", "soft_sort:soft_sort"): "kernels.gpu.soft_sort:ndcg",
            ("_ndcg:ndcg_of", "twin:twin"): "kernels.gpu.twin:ndcg",
            ("_precision:precision_of", "sigmoid:sigmoid"): "kernels.gpu.sigmoid:precision",
            ("_precision:precision_of", "twin:twin"): "kernels.gpu.twin:precision",
        }
    ),
}

#: The kind of a device → what is replaced there → its kernel, both as ``module:name`` within the
#: package; a pair is a metric under a relaxation. A kernel takes all arguments of the formula and
#: has no defaults of its own, a ``generator`` only if the relaxation draws, and returns
#: ``NotImplemented`` for options that it does not support; the formula is then used. Networks and
#: optimisers import their kernels themselves.
KERNELS: dict[str, dict[Key, str]] = {"cpu": _CPU, "cuda": _CUDA}
