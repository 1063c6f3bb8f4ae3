"""Padding of packed lists, which is done only here."""

from __future__ import annotations

import torch
from torch import Tensor


def padded_positions(lengths: Tensor, width: int | None = None) -> tuple[Tensor, Tensor]:
    """The position of each packed document in a padded ``[B, L]`` tensor.

    Args:
        lengths: int ``[B]``, documents per query.
        width: L; the length of the longest list if it is ``None``.

    Returns:
        ``mask``, bool ``[B, L]``, True at documents, and ``index``, int64 ``[N]``, the position of
        each packed document in the flattened ``[B * L]`` tensor.

    >>> mask, index = padded_positions(torch.tensor([1, 3]))
    >>> mask.tolist()
    [[True, False, False], [True, True, True]]
    >>> index.tolist()
    [0, 3, 4, 5]
    """
    if width is None:
        width = int(lengths.max()) if lengths.numel() else 0
    mask = torch.arange(width, device=lengths.device) < lengths[:, None]
    return mask, mask.flatten().nonzero().squeeze(1)


def pad(values: Tensor, mask: Tensor, index: Tensor, fill: float = 0.0) -> Tensor:
    """Packed ``values`` ``[N]`` as a padded ``[B, L]`` tensor; differentiable in ``values``.

    ``mask`` and ``index`` come from :func:`padded_positions`.

    >>> mask, index = padded_positions(torch.tensor([1, 3]))
    >>> pad(torch.tensor([5.0, 1.0, 2.0, 3.0]), mask, index).tolist()
    [[5.0, 0.0, 0.0], [1.0, 2.0, 3.0]]
    """
    padded = values.new_full((mask.numel(),), fill)
    return padded.index_copy(0, index, values).view(mask.shape)
