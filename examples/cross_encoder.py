"""A cross-encoder of sentence-transformers: ``python examples/cross_encoder.py``.

The model is tiny and random, and its language has forty words, so that nothing is downloaded. With
``CrossEncoder("…", num_labels=1)`` and your own queries, the rest stays the same.
"""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from datasets import Dataset
from sentence_transformers import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer, set_seed

from directrank import losses, metrics

WORDS = [f"word{number}" for number in range(40)]


class RankingLoss(nn.Module):
    """One of the library's losses for lists of documents of unequal length."""

    def __init__(self, model: CrossEncoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: list[list], labels: list[Tensor]) -> Tensor:
        queries, lists = inputs
        pairs = [
            (query, text) for query, texts in zip(queries, lists, strict=True) for text in texts
        ]
        tokens = batch_to_device(self.model.preprocess(pairs), self.model.device)
        scores = self.model(tokens)["scores"].view(-1)
        target = torch.cat(labels).to(scores)
        lengths = [len(texts) for texts in lists]
        return losses.lambda_loss(scores, target, lengths=lengths).mean()


def tiny_model(folder: str) -> CrossEncoder:
    """An untrained BERT with one layer."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = Path(folder) / "vocab.txt"
    vocabulary.write_text("\n".join(special + WORDS))
    config = BertConfig(
        vocab_size=len(special + WORDS), hidden_size=32, intermediate_size=64,
        num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=32, num_labels=1,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizer(str(vocabulary)).save_pretrained(folder)
    return CrossEncoder(folder)


def judged(n_queries: int, generator: random.Random) -> Dataset:
    """A document is relevant if it begins with one of the first twenty words."""
    rows = []
    for _ in range(n_queries):
        texts = [generator.sample(WORDS, 3) for _ in range(generator.randint(4, 8))]
        query = generator.choice(WORDS)
        labels = [int(int(text[0][4:]) < 20) for text in texts]
        rows.append({"query": query, "docs": [" ".join(text) for text in texts], "labels": labels})
    return Dataset.from_list(rows)


def ndcg(model: CrossEncoder, queries: Dataset) -> float:
    """The mean NDCG@5."""
    values = []
    for row in queries:
        scores = model.predict([(row["query"], text) for text in row["docs"]])
        scores, labels = torch.from_numpy(scores)[None], torch.tensor(row["labels"])[None].float()
        values.append(metrics.ndcg(scores, labels, k=5))
    return torch.cat(values).nanmean().item()


def main(n_queries: int = 160, epochs: int = 3) -> tuple[float, float]:
    """Train, and return the NDCG@5 of other queries before and after."""
    set_seed(0)
    generator = random.Random(0)
    train, test = judged(n_queries, generator), judged(50, generator)
    with TemporaryDirectory() as folder:
        model = tiny_model(folder)
        before = ndcg(model, test)
        options = CrossEncoderTrainingArguments(
            folder, num_train_epochs=epochs, learning_rate=0.003, per_device_train_batch_size=16,
            save_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True,
        )  # fmt: skip
        loss = RankingLoss(model)
        CrossEncoderTrainer(model, options, train_dataset=train, loss=loss).train()
    return before, ndcg(model, test)


if __name__ == "__main__":
    print("NDCG@5 before and after: {:.3f} {:.3f}".format(*main()))
