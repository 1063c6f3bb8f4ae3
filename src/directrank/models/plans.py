"""Parameters and documents in the form that kernels of layers take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from directrank.kernels.batch import array
from directrank.lists.documents import Documents, copied


def table_and_rows(x: Tensor | Documents, models: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, and which rows of them a stack of M ``models`` reads.

    They are ``[1, T, F]`` and int64 ``[M, N]`` if ``x`` are documents of a table of their own type.
    Others are copied here, so that kernels need not be compiled for two types; features are then
    ``[M, N, F]``, or ``[1, N, F]`` for all models, and rows ``[M, 0]``.
    """
    if isinstance(x, Documents) and x.table.dtype == x.dtype:
        return array(x.table)[None], x.rows
    return array(copied(x)), np.empty((models, 0), np.int64)


def lengths_of_models(lengths: np.ndarray, models: int) -> np.ndarray:
    """The lengths of each model's lists, int64 ``[M, B]``, from ``[M, B]`` or ``[1, B]``.

    They are in one layout, so that kernels need not be compiled for several.
    """
    if len(lengths) == models and lengths.flags.carray and lengths.dtype == np.int64:
        return lengths
    return np.broadcast_to(lengths, (models, lengths.shape[1])).copy()


def flattened(values: Sequence[Tensor]) -> np.ndarray:
    """The numbers of parameters in one array, without a copy if they adjoin in memory."""
    first, place = values[0], values[0].storage_offset()
    memory = first.untyped_storage().data_ptr()
    for value in values:
        if value.untyped_storage().data_ptr() != memory or value.storage_offset() != place:
            return np.concatenate([array(value).reshape(-1) for value in values])
        place += value.numel()
    return first.detach().as_strided((place - first.storage_offset(),), (1,)).numpy()
