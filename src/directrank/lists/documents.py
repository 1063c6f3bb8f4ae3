"""Documents of a batch as rows of the split that they come from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Documents:
    """Features ``[M, N, F]`` that are copied out of a table where they are used.

    Attributes:
        table: ``[T, F]``, on the CPU.
        rows: int64 numpy ``[M, N]``, which row of the table each document is.
        dtype: what they are copied as.
    """

    table: Tensor
    rows: np.ndarray
    dtype: torch.dtype

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N and F."""
        return *self.rows.shape, self.table.shape[1]

    def repeated(self, times: int) -> Documents:
        """Each model's documents ``times`` times, one after the other."""
        return replace(self, rows=self.rows.repeat(times, 0))

    def tensor(self) -> Tensor:
        """The features themselves."""
        index = torch.from_numpy(self.rows.ravel())
        return self.table.index_select(0, index).to(self.dtype).view(self.shape)


def copied(documents: Tensor | Documents) -> Tensor:
    """The features of documents, taken out of their table if they are in one."""
    return documents.tensor() if isinstance(documents, Documents) else documents
