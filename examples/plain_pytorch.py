"""A loop in plain PyTorch: ``python examples/plain_pytorch.py data/prepared/msrd_sample``."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

from directrank import losses, metrics
from queries import Queries, padded, scorer


def ndcg(model: nn.Module, batches: DataLoader) -> float:
    """The mean NDCG@10; queries without a relevant document are NaN and left out."""
    with torch.no_grad():
        values = [
            metrics.ndcg(model(batch["features"]), batch["labels"], batch["mask"], k=10)
            for batch in batches
        ]
    return torch.cat(values).nanmean().item()


def main(folder: str, epochs: int = 3) -> tuple[float, float]:
    """Train, and return the test NDCG@10 before and after."""
    torch.manual_seed(0)
    train, test = Queries(folder, "train"), Queries(folder, "test")
    batches = DataLoader(train, batch_size=32, shuffle=True, collate_fn=padded)
    test_batches = DataLoader(test, batch_size=256, collate_fn=padded)
    model = scorer(train.lists.n_features)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    before = ndcg(model, test_batches)
    for _ in range(epochs):
        for batch in batches:
            scores = model(batch["features"])
            loss = losses.approx_ndcg(scores, batch["labels"], batch["mask"], alpha=10).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return before, ndcg(model, test_batches)


if __name__ == "__main__":
    print("NDCG@10 before and after: {:.3f} {:.3f}".format(*main(sys.argv[1])))
