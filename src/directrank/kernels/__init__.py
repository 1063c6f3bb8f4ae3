"""Compiled loops that compute the package's formulas fast on a CPU.

Losses, relaxations, layers and updates of optimisers are written as plain PyTorch in their own
packages. This is the table of what replaces them; :mod:`directrank.kernels.dispatch` says when, and
nothing else decides whether a kernel is used.
"""

from __future__ import annotations

#: What is replaced → its kernel, both as ``module:name`` within the package; a pair is a metric
#: under a relaxation. A kernel takes the arguments of the formula, a ``generator`` only if the
#: relaxation draws, and returns ``NotImplemented`` for options that it does not support; the
#: formula is then used. Networks and optimisers import their kernels themselves.
KERNELS: dict[str | tuple[str, str], str] = {
    "learners.neural.optimisers:Loops": "kernels.optimisers:move",
    "losses._k_song:hinged_dcg": "kernels.k_song:hinged_dcg",
    "losses._lambda_loss:lambda_loss": "kernels.lambda_loss:lambda_loss",
    "losses._lambdarank:lambdarank": "kernels.lambdarank:lambdarank",
    "losses._listmle:likelihood": "kernels.listmle:likelihood",
    "losses._listnet:listnet": "kernels.listnet:listnet",
    "losses._pl_rank:drawn_dcg": "kernels.pl_rank:drawn_dcg",
    "losses._ranknet:ranknet": "kernels.ranknet:ranknet",
    "losses._stochastic_rank:noisy_dcg": "kernels.stochastic_rank:noisy_dcg",
    "losses._xe_ndcg:cross_entropy": "kernels.xe_ndcg:cross_entropy",
    "losses._yeti_loss:costs_of_neighbours": "kernels.yeti_loss:costs_of_neighbours",
    "models.blocks:relu_layers": "kernels.layers:forward",
    "models.encoder:Encoder": "kernels.encoder:forward",
    "models.query_layers:QueryLayers": "kernels.query_layers:forward",
    "relaxations.fast_soft_rank:projected_ranks": "kernels.soft_ranks:projected_ranks",
    "relaxations.lapsum:laplace_ranks": "kernels.soft_ranks:laplace_ranks",
    "relaxations.neural_sort:sorted_expectation": "kernels.neural_sort:sorted_expectation",
    "relaxations.real_valued:soft_counts": "kernels.sigmoid:soft_counts",
    "relaxations.twin:order_with_noise": "kernels.twin:order_with_noise",
    "relaxations.twin:twin_ranks": "kernels.twin:twin_ranks",
    **{
        (f"metrics.{metric}", f"relaxations.{relaxation}"): f"kernels.{kernel}"
        for metric, relaxation, kernel in (
            ("_average_precision:average_precision_of", "twin:twin", "twin:average_precision"),
            ("_err:nerr_of", "twin:twin", "twin:nerr"),
            ("_ndcg:ndcg_of", "blackbox:blackbox", "blackbox:ndcg"),
            ("_ndcg:ndcg_of", "fast_soft_rank:fast_soft_rank", "soft_ndcg:fast_soft_ndcg"),
            ("_ndcg:ndcg_of", "lapsum:lapsum", "soft_ndcg:lapsum_ndcg"),
            ("_ndcg:ndcg_of", "neural_sort:neural_sort", "neural_sort:ndcg"),
            ("_ndcg:ndcg_of", "pirank:pirank", "pirank:ndcg"),
            ("_ndcg:ndcg_of", "rank_binomial:rank_binomial", "softrank:ndcg"),
            ("_ndcg:ndcg_of", "sigmoid:sigmoid", "sigmoid:ndcg"),
            ("_ndcg:ndcg_of", "smooth_i:smooth_i", "smooth_i:ndcg"),
            ("_ndcg:ndcg_of", "twin:twin", "twin:ndcg"),
            ("_precision:precision_of", "twin:twin", "twin:precision"),
        )
    },
}
