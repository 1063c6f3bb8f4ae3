"""A trained scorer with the scaling of its features, in one file that needs no pickle."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from directrank import models
from directrank.lists.packed import whole_queries
from directrank.system.errors import DataError
from directrank.system.io import atomic_path, json_text
from directrank.system.torch_modes import pytorchs_own

#: Documents scored at a time; bounds the memory of a pass.
BLOCK = 1 << 16

#: The version of the files that :meth:`Scorer.save` writes.
VERSION = 1


@dataclass
class Scorer:
    """A function of the features of documents, which scales them and passes them to a network.

    Attributes:
        settings: the network's ``name`` and settings, see :func:`directrank.models.build`.
        weights: its tensors by their names, each ``[1, …]``.
        mean, scale: float64 ``[F]``; a feature x is passed on as ``(x - mean) / scale``.
        features: the names of the features, or None if they have none.
        about: what else is kept in the file: anything that JSON can represent.

    >>> import tempfile
    >>> network = models.build({"name": "linear"}, 2, [torch.Generator().manual_seed(0)])
    >>> scorer = Scorer({"name": "linear"}, network.state_dict(), np.zeros(2), np.ones(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scorer.save(f"{folder}/scorer.npz")
    ...     again = Scorer.load(f"{folder}/scorer.npz")
    >>> features = np.array([[0.5, 1.0], [2.0, -1.0]])
    >>> bool((again(features) == scorer(features)).all())
    True
    """

    settings: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    mean: np.ndarray
    scale: np.ndarray
    features: Sequence[str] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    @pytorchs_own()
    def network(self) -> nn.Module:
        """The network with its weights, in evaluation mode.

        Raises:
            DataError: the weights are not those of such a network.
        """
        network = models.build(self.settings, len(self.mean), [torch.Generator()])
        try:
            network.load_state_dict(dict(self.weights))
        except RuntimeError:
            raise DataError(
                f"these are not the weights of a model '{self.settings['name']}' of "
                f"{len(self.mean)} features",
                "save the scorer again",
            ) from None
        return network.eval()

    @property
    def sees_lists(self) -> bool:
        """Whether a document's score depends on the other documents of its query."""
        return getattr(self.network, "sees_lists", False)

    def scaled(self, features: np.ndarray) -> np.ndarray:
        """The features as they are passed to the network, float32 ``[N, F]``."""
        return ((features.astype(np.float64) - self.mean) / self.scale).astype(np.float32)

    @pytorchs_own()
    @torch.no_grad()
    def __call__(
        self, features: np.ndarray, lengths: np.ndarray | None = None, device: str = "cpu"
    ) -> np.ndarray:
        """The scores of documents, float32 ``[N]``.

        Args:
            features: ``[N, F]``, not scaled.
            lengths: int ``[B]``, documents per query, in their order; only scorers for which
                :attr:`sees_lists` is true need it.
            device: where to compute them.

        Raises:
            DataError: the shapes are wrong, or lengths are missing that the scorer needs.
        """
        features = np.asarray(features)
        if features.ndim != 2 or features.shape[1] != len(self.mean):
            raise DataError(
                f"features {features.shape} must be [documents, {len(self.mean)}]",
                "give the features on which the scorer was trained, in the same order",
            )
        network = self.network.to(device)
        if lengths is None:
            if self.sees_lists:
                raise DataError(
                    f"a model '{self.settings['name']}' scores the documents of a query together, "
                    "and is not told which they are",
                    "give the number of documents of each query",
                )
            lengths = np.ones(len(features), np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        if offsets[-1] != len(features):
            raise DataError(
                f"the queries have {offsets[-1]} documents, but there are {len(features)}",
                "give the number of documents of each query, in their order",
            )
        scores = np.empty(len(features), np.float32)
        for first, last in whole_queries(offsets, BLOCK):
            span = slice(int(offsets[first]), int(offsets[last]))
            block = torch.from_numpy(self.scaled(features[span])).to(device)[None]
            own = np.asarray(lengths[first:last])[None] if self.sees_lists else None
            scores[span] = network(block, None, own)[0].cpu().numpy()
        return scores

    def save(self, path: str | Path) -> None:
        """Write the scorer to one file in NumPy's format ``.npz``, atomically."""
        about = {
            "version": VERSION,
            "model": dict(self.settings),
            "features": None if self.features is None else list(self.features),
            "about": dict(self.about),
        }
        arrays: dict[str, Any] = {"mean": self.mean, "scale": self.scale}
        arrays |= {f"weights/{name}": value.numpy() for name, value in self.weights.items()}
        with atomic_path(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, about=np.array(json_text(about)), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Scorer:
        """Read what :meth:`save` wrote; nothing in the file is executed.

        Raises:
            DataError: there is no such file, or it is of something else.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                arrays = {name: file[name] for name in file.files if name != "about"}
            version = about["version"]
        except FileNotFoundError:
            raise DataError("there is no such file", "check its name", file=path) from None
        except (KeyError, TypeError, ValueError, OSError, EOFError, zipfile.BadZipFile):
            raise DataError(
                "this is not a saved scorer", "write it with the method save", file=path
            ) from None
        if version != VERSION:
            raise DataError(
                f"the scorer was saved in version {version} of the format, not {VERSION}",
                "load it with the version of directrank that saved it",
                file=path,
            )
        weights = {
            name.removeprefix("weights/"): torch.from_numpy(value)
            for name, value in arrays.items()
            if name.startswith("weights/")
        }
        return cls(
            about["model"],
            weights,
            arrays["mean"],
            arrays["scale"],
            about["features"],
            about["about"],
        )

    def __getstate__(self) -> dict[str, Any]:
        # The network's random streams cannot be pickled; it is built again from its weights.
        return {key: value for key, value in self.__dict__.items() if key != "network"}
