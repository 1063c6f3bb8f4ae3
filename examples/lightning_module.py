"""Lightning: ``python examples/lightning_module.py data/prepared/msrd_sample``."""

import sys

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from directrank import losses, metrics
from queries import Queries, padded, scorer


class Ranker(lightning.LightningModule):
    """A scorer that is trained with one of the library's losses."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.scorer = scorer(n_features)

    def training_step(self, batch: dict[str, Tensor]) -> Tensor:
        scores = self.scorer(batch["features"])
        return losses.lambdarank(scores, batch["labels"], batch["mask"]).mean()

    def validation_step(self, batch: dict[str, Tensor]) -> None:
        scores = self.scorer(batch["features"])
        values = metrics.ndcg(scores, batch["labels"], batch["mask"], k=10)
        counted = ~values.isnan()  # queries without a relevant document are left out of the mean
        self.log("ndcg@10", values[counted].float().mean(), batch_size=int(counted.sum()))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.003)


def main(folder: str, epochs: int = 3) -> tuple[float, float]:
    """Train, and return the test NDCG@10 before and after."""
    lightning.seed_everything(0, verbose=False)
    train, test = Queries(folder, "train"), Queries(folder, "test")
    batches = DataLoader(train, batch_size=32, shuffle=True, collate_fn=padded)
    test_batches = DataLoader(test, batch_size=256, collate_fn=padded)
    model = Ranker(train.lists.n_features)
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False
    )
    (before,) = trainer.validate(model, test_batches, verbose=False)
    trainer.fit(model, batches)
    (after,) = trainer.validate(model, test_batches, verbose=False)
    return before["ndcg@10"], after["ndcg@10"]


if __name__ == "__main__":
    print("NDCG@10 before and after: {:.3f} {:.3f}".format(*main(sys.argv[1])))
