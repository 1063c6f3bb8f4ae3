"""Hugging Face's Trainer: ``python examples/huggingface_trainer.py data/prepared/msrd_sample``."""

import sys
from tempfile import TemporaryDirectory

from torch import Tensor, nn
from transformers import EvalPrediction, Trainer, TrainingArguments, set_seed

from directrank import losses, metrics
from queries import Queries, padded, scorer


class Ranker(nn.Module):
    """The Trainer takes the loss from the model's output; a query's metric is its prediction."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.scorer = scorer(n_features)

    def forward(self, features: Tensor, labels: Tensor, mask: Tensor) -> dict[str, Tensor]:
        scores = self.scorer(features)
        return {
            "loss": losses.listnet(scores, labels, mask).mean(),
            "ndcg": metrics.ndcg(scores, labels, mask, k=10, empty="zero"),
        }


def mean_ndcg(found: EvalPrediction) -> dict[str, float]:
    """The mean over all queries; an empty one counts as 0."""
    return {"ndcg": float(found.predictions.mean())}


def main(folder: str, epochs: int = 3) -> tuple[float, float]:
    """Train, and return the test NDCG@10 before and after."""
    set_seed(0)
    train = Queries(folder, "train")
    with TemporaryDirectory() as output:
        options = TrainingArguments(
            output,
            num_train_epochs=epochs,
            learning_rate=0.003,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=256,
            remove_unused_columns=False,  # the mask is not a column of the data set
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(
            Ranker(train.lists.n_features),
            options,
            data_collator=padded,
            train_dataset=train,
            eval_dataset=Queries(folder, "test"),
            compute_metrics=mean_ndcg,
        )
        before = trainer.evaluate()
        trainer.train()
        after = trainer.evaluate()
    return before["eval_ndcg"], after["eval_ndcg"]


if __name__ == "__main__":
    print("NDCG@10 before and after: {:.3f} {:.3f}".format(*main(sys.argv[1])))
