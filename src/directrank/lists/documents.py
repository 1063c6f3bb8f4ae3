"""Documents of a batch as rows of the split from which they come."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Documents:
    """Features ``[M, N, F]`` that are copied from a table only when they are used.

    Attributes:
        table: ``[T, F]``, on the CPU.
        rows: int64 numpy ``[M, N]``, the row of the table of each document.
        dtype: the type of the copies.
    """

    table: Tensor
    rows: np.ndarray
    dtype: torch.dtype

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N and F."""
        return *self.rows.shape, self.table.shape[1]

    def of_models(self, models: np.ndarray) -> Documents:
        """The documents of these models, by position; a position may occur more than once."""
        return replace(self, rows=self.rows[models])

    def tensor(self) -> Tensor:
        """The features as a tensor."""
        index = torch.from_numpy(self.rows.ravel())
        return self.table.index_select(0, index).to(self.dtype).view(self.shape)


def copied(documents: Tensor | Documents) -> Tensor:
    """The features of documents, copied from their table if they are in one."""
    return documents.tensor() if isinstance(documents, Documents) else documents
