"""What other libraries say of the rows of docs/coming_from.md.

    python tests/helpers/peer_values.py Rax      (writes its part of peer_values.json)
    python tests/helpers/peer_values.py Rax 1    (prints the same of other lists)

Runs where the library is (tensorflow_ranking 0.5.5 with tensorflow 2.15.1, rax 0.4.0 with jax
0.10.2, keras-rs 0.4.0 with keras 3.15.1, torchmetrics 1.9.0, sentence-transformers 6.2.0); of
``allRank`` (1.4.3), ``pytorchltr`` (0.2.1) and ``ptranking`` (f1d366c) a checkout in the folder
that DIRECTRANK_PEERS names will do. It needs nothing of directrank.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

RECORDS = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).resolve().parents[2] / "docs/coming_from.md"


@dataclass(frozen=True)
class Section:
    """A library's part of the page: the code before its table, and the rows that are compared."""

    name: str
    code: str
    rows: list[tuple[str, str]]


def sections() -> dict[str, Section]:
    """The parts of the page by the libraries' names; what comes before them is ``""``."""
    found = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## "):
        name = "" if part.startswith("# ") else part.partition("\n")[0]
        (code,) = re.findall(r"```python\n(.*?)```", part, flags=re.DOTALL)
        rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", part, flags=re.MULTILINE)
        found[name] = Section(name, code, rows)
    return found


def lists(seed: int) -> dict[str, np.ndarray]:
    """Four lists of up to seven documents, the third without a relevant one."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(4, 7)).round(2).astype(np.float32)
    labels = generator.integers(0, 4, size=(4, 7)).astype(np.float32)
    mask = np.arange(7) < np.array([[7], [5], [2], [6]])
    labels[:, 0] = 3
    labels[2] = 0
    distinct = np.stack([generator.permutation(7) for _ in range(4)]).astype(np.float32)
    return {"scores": scores, "labels": labels, "distinct": distinct, "mask": mask}


def values(name: str, seed: int) -> dict[str, list[float]]:
    """What the library makes of the lists drawn from ``seed``, by the code in its cells."""
    batch = dict(lists(seed))
    if name in CHECKOUTS:
        import torch

        CHECKOUTS[name]()
        batch = {key: torch.from_numpy(value) for key, value in batch.items()}
        batch |= {"torch": torch}
    section = sections()[name]
    exec(section.code, batch)
    batch["minimised"] = lambda ranker, **settings: _minimised(batch, ranker, **settings)
    return {
        theirs: np.asarray(eval(theirs, batch), dtype=float).ravel().tolist()
        for theirs, _ in section.rows
    }


def _checkout(package: str) -> None:
    """Have the modules of a checkout without its ``__init__`` files, which need all the rest."""
    folder = Path(os.environ["DIRECTRANK_PEERS"])
    for path in sorted((folder / package).rglob("__init__.py")):
        name = ".".join(path.parent.relative_to(folder).parts)
        module = types.ModuleType(name)
        module.__path__ = [str(path.parent)]
        sys.modules[name] = module


def _allrank() -> None:
    _checkout("allrank")
    sys.modules["allrank.models.losses"].DEFAULT_EPS = 1e-10
    stub("allrank.data.dataset_loading", PADDED_Y_VALUE=-1)
    stub("allrank.models.model_utils", get_torch_device=lambda: "cpu")


def _pytorchltr() -> None:
    sys.path.insert(0, os.environ["DIRECTRANK_PEERS"])
    sys.modules["pytorchltr.datasets"] = mock.MagicMock()  # has a compiled reader


def _ptranking() -> None:
    _checkout("ptranking")
    stub("ptranking.base.adhoc_ranker", AdhocNeuralRanker=object)
    stub("ptranking.ltr_adhoc.eval.parameter", ModelParameter=object)


def stub(name: str, **contents: object) -> None:
    """Have a module with these contents."""
    module = types.ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module


#: What makes the modules of a checkout ready for import.
CHECKOUTS = {"allRank": _allrank, "pytorchltr": _pytorchltr, "PT-Ranking": _ptranking}


def _minimised(batch: dict, ranker: type, labels: object = None, **settings: object) -> object:
    """The loss of a ranker of PT-Ranking on the first list, sorted by label."""
    label_type = importlib.import_module("ptranking.data.data_utils").LABEL_TYPE.MultiLabel
    target, order = (batch["labels"] if labels is None else labels)[:1].sort(descending=True)
    scores = batch["scores"][:1].gather(1, order).requires_grad_()
    itself = types.SimpleNamespace(optimizer=mock.Mock(), device="cpu", gpu=False, **settings)
    options = {"label_type": label_type, "presort": True}
    return ranker.custom_loss_function(itself, scores, target, **options).detach()


if __name__ == "__main__":
    library, *seeds = sys.argv[1:]
    seed = int(seeds[0]) if seeds else 0
    record = {key: value.tolist() for key, value in lists(seed).items()}
    record["values"] = values(library, seed)
    if seeds:
        print(json.dumps(record))
    else:
        known = json.loads(RECORDS.read_text(encoding="utf-8")) | {library: record}
        parts = (f"{json.dumps(name)}: {json.dumps(part)}" for name, part in known.items())
        RECORDS.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
