"""Code that recipes share: the queries of prepared data as a PyTorch data set, a small scorer."""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from directrank import open_dataset


class Queries(Dataset):
    """One query at a time: standardised features ``[n, F]`` and labels ``[n]``."""

    def __init__(self, folder: str | Path, part: str) -> None:
        self.lists = open_dataset(Path(folder) / part)
        train = open_dataset(Path(folder) / "train").features
        self.mean, self.spread = train.mean(0), train.std(0) + 1e-6

    def __len__(self) -> int:
        return self.lists.n_queries

    def __getitem__(self, query: int) -> dict[str, Tensor]:
        rows = slice(*self.lists.offsets[query : query + 2])
        features = (self.lists.features[rows] - self.mean) / self.spread
        return {
            "features": torch.from_numpy(features),
            "labels": torch.from_numpy(self.lists.labels[rows].copy()),
        }


def padded(queries: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Pad queries to a batch: features ``[B, L, F]``, labels and mask ``[B, L]``."""
    batch = {key: pad_sequence([q[key] for q in queries], batch_first=True) for key in queries[0]}
    lengths = torch.tensor([len(q["labels"]) for q in queries])
    batch["mask"] = torch.arange(batch["labels"].shape[1]) < lengths[:, None]
    return batch


def scorer(n_features: int) -> nn.Module:
    """A network with one hidden layer, from features ``[B, L, F]`` to scores ``[B, L]``."""
    return nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(1))
