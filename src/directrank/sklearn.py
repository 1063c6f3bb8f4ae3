"""Any loss and scorer as a ranker with scikit-learn's interface."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from directrank import losses, metrics
from directrank.lists.arrays import array_of
from directrank.lists.flat import is_missing
from directrank.lists.packed import RankedLists
from directrank.lists.parameters import check_options
from directrank.models.scorer import Scorer
from directrank.nn import OF_A_CALL
from directrank.system.errors import ConfigError, DataError
from directrank.system.registry import nearest

try:
    import jsonschema  # noqa: F401 - what training reads its settings with
    import safetensors  # noqa: F401
    from sklearn.base import BaseEstimator
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import Tags, check_random_state
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"directrank.sklearn needs the package '{error.name}', which is not installed: run "
        "`pip install '.[sklearn]'` in a clone of the repository",
        name=error.name,
    ) from None

from directrank.learners.contract import FitJob, Splits, no_progress
from directrank.learners.devices import chosen_device
from directrank.learners.neural.fit import fit_many
from directrank.system.schema import refuse_unknown

#: The metric that chooses the epoch, and that :meth:`DirectRanker.score` returns.
METRIC = {"name": "ndcg", "k": 10}

#: Scorers by name: documents are standardised, so the network does not normalise them again.
SCORERS: Mapping[str, Mapping[str, Any]] = {
    "network": {"name": "tower", "hidden": [64, 32], "input_norm": False, "decay": 0.9},
    "linear": {"name": "linear", "bias": True, "init_bound": 0.1},
    "context": {"name": "context"},
}

#: The column of a data frame that holds the query of each document.
ID_COLUMN = "qid"


class InputError(DataError, ValueError):
    """Input that does not fit together; a ``ValueError``, as scikit-learn's users expect."""


@dataclass(frozen=True)
class _Queries:
    """The queries of documents.

    Attributes:
        lengths: int64 ``[B]``, documents per query.
        order: int64 ``[N]``, the positions of the documents, query by query; None if this is their
            order already.
    """

    lengths: np.ndarray
    order: np.ndarray | None

    def sorted(self, values: np.ndarray) -> np.ndarray:
        """``values`` ``[N, …]`` of documents, query by query."""
        return values if self.order is None else values[self.order]

    def unsorted(self, values: np.ndarray) -> np.ndarray:
        """``values`` ``[N]`` of documents that are given query by query, in the original order."""
        if self.order is None:
            return values
        result = np.empty_like(values)
        result[self.order] = values
        return result


class DirectRanker(BaseEstimator):
    """A ranker that is trained with any loss of this library.

    It takes the place of LightGBM's ``LGBMRanker`` and XGBoost's ``XGBRanker``: queries are given
    to ``fit`` as ``group``, the number of documents of each query in their order, or as ``qid``,
    the query of each document, in any order. The two have names of their own because they cannot
    always be told apart: ``[1, 1]`` means two queries as ``group``, and one as ``qid``. A data
    frame may hold the ids in a column ``qid``, which is not a feature; scikit-learn's
    cross-validation then divides it like any other.

    Features are standardised by the mean and standard deviation of the training data, which
    :meth:`predict` applies as well. They must be dense and without missing values.

    Args:
        loss: the name of a loss (:data:`directrank.losses.REGISTRY`), or a mapping with ``name``
            and its options: ``{"name": "approx_ndcg", "alpha": 5}``.
        scorer: ``network`` (two hidden layers of 64 and 32 units with batch norm and ReLU),
            ``linear``, ``context`` (self-attention over the documents of a query), or a mapping as
            :func:`directrank.models.build` takes it: ``{"name": "tower", "hidden": [256, 128]}``.
        learning_rate: of Adam.
        batch_queries: queries per step.
        max_epochs: the most passes over the training data. Without a validation set all of them are
            made, after which a network may have begun to overfit; with one, choose more.
        patience: with a validation set, stop after this many epochs without a better NDCG@10; None
            means never.
        device: ``cpu``, ``cuda`` or ``auto``, which uses a GPU if there is one.
        random_state: an int gives the same ranker in each call; None another one each time.

    Attributes:
        scorer_: the trained :class:`directrank.models.scorer.Scorer`.
        history_: a row per epoch: ``epoch``, ``train_loss``, ``vali_metric`` (NaN without a
            validation set) and ``seconds``.
        best_epoch_: the epoch whose weights are kept: the best on the validation set, or the last.
        n_features_in_, feature_names_in_: as for every estimator of scikit-learn.

    >>> features = np.array([[0.0], [1.0], [2.0], [5.0], [4.0], [3.0]])
    >>> labels = np.array([0, 1, 2, 2, 1, 0])
    >>> ranker = DirectRanker(scorer="linear", max_epochs=50, random_state=0)
    >>> ranker.fit(features, labels, group=[3, 3]).score(features, labels, group=[3, 3])
    1.0
    """

    def __init__(
        self,
        loss: str | Mapping[str, Any] = "lambdarank",
        scorer: str | Mapping[str, Any] = "network",
        *,
        learning_rate: float = 0.01,
        batch_queries: int = 16,
        max_epochs: int = 30,
        patience: int | None = 10,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.loss = loss
        self.scorer = scorer
        self.learning_rate = learning_rate
        self.batch_queries = batch_queries
        self.max_epochs = max_epochs
        self.patience = patience
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        group: Any = None,
        qid: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_group: Any = None,
        eval_qid: Any = None,
    ) -> DirectRanker:
        """Train on documents.

        Args:
            X: features ``[N, F]``; an array, or a data frame, which may have a column ``qid``.
            y: labels ``[N]``, 0 or more: higher is more relevant.
            group: int ``[B]``, the number of documents of each query, in their order.
            qid: ``[N]``, instead of ``group``: the query of each document, numbers or text.
            sample_weight: the weight of each query ``[B]`` (with ``qid``, in the order in which the
                queries first appear), or of each document ``[N]``, alike within a query. A weight
                of 2 has the effect of having the query twice, up to how batches are drawn and, with
                a network, to batch norm, whose means of documents have no weights.
            eval_set: a validation set ``(X, y)``, or a list of one, by whose NDCG@10 the epoch is
                chosen and training ends. Without one all epochs are run, and the last is kept.
            eval_group, eval_qid: its queries; a list of one if ``eval_set`` is.

        Raises:
            InputError: documents, labels, queries or weights do not fit together.
            ConfigError: a setting is not valid.
            TrainingError: the loss is not finite, or memory ran out.
        """
        X, qid = _without_ids(X, group, qid)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        queries = _queries_of(len(X), group, qid)
        weights = _weights_of(sample_weight, queries)
        X, y = queries.sorted(X), _checked_labels(queries.sorted(y))
        per_document = None if weights is None else np.repeat(weights, queries.lengths)
        scorer = Scorer(_scorer_settings(self.scorer), {}, *_moments(X, per_document))
        scorer.features = getattr(self, "feature_names_in_", np.array([])).tolist() or None
        train = _lists(scorer.scaled(X), y, queries.lengths, weights)
        vali = self._validation(scorer, eval_set, eval_group, eval_qid)
        nothing = train.select(np.arange(0))
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        device = chosen_device(self.device)
        self._check_settings()
        job = FitJob(f"sklearn {seed}", 0, METRIC, torch.get_num_threads(), device, no_progress)
        training = {
            "optimizer": {"name": "adam", "lr": self.learning_rate},
            "batch_queries": self.batch_queries,
            "max_epochs": self.max_epochs,
            "patience": None if vali is None else self.patience,
            "keep": "last" if vali is None else "best",
        }
        settings = {
            "model": scorer.settings,
            "loss": _loss_settings(self.loss),
            "training": _plain(training),
        }
        splits = Splits(train, nothing if vali is None else vali, nothing, int(y.max()) + 1)
        (fitted,) = fit_many(splits, [settings], [job])
        scorer.weights = fitted.weights
        self.scorer_ = scorer
        self.history_ = fitted.history
        self.best_epoch_ = fitted.info["best_epoch"]
        return self

    def _check_settings(self) -> None:
        """Raise ConfigError if a setting of training is no number in its range."""
        rate, whole = self.learning_rate, "give a whole number, 1 or more"
        if not (isinstance(rate, Real) and 0 < float(rate) < math.inf):
            raise ConfigError(f"learning_rate is {rate!r}", "give a number above 0, such as 0.01")
        for name in ("batch_queries", "max_epochs", "patience"):
            value = getattr(self, name)
            if name == "patience" and value is None:
                continue
            if not (isinstance(value, Integral) and int(value) >= 1):
                remedy = f"{whole}, or None" if name == "patience" else whole
                raise ConfigError(f"{name} is {value!r}", remedy)

    def predict(self, X: Any, *, group: Any = None, qid: Any = None) -> np.ndarray:
        """Scores of documents, float32 ``[N]``; within a query, higher is better.

        Args:
            X: features ``[N, F]``, as in :meth:`fit`.
            group, qid: the queries, as in :meth:`fit`. Only scorers for which a document's score
                depends on the others of its query, such as ``context``, need them.

        Raises:
            InputError: documents and queries do not fit together, or queries are missing.
        """
        check_is_fitted(self)
        X, qid = _without_ids(X, group, qid)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        device = chosen_device(self.device)
        if not self.scorer_.sees_lists:
            return self.scorer_(X, device=device)
        queries = _queries_of(len(X), group, qid)
        return queries.unsorted(self.scorer_(queries.sorted(X), queries.lengths, device))

    def score(
        self,
        X: Any,
        y: Any,
        *,
        group: Any = None,
        qid: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """The mean NDCG@10 of the queries that have a relevant document; see :meth:`fit`.

        Gains are 2^y - 1. It is NaN if no query has a relevant document.
        """
        scores = self.predict(X, group=group, qid=qid)
        _, qid = _without_ids(X, group, qid)
        queries = _queries_of(len(scores), group, qid)
        labels = _checked_labels(queries.sorted(column_or_1d(y)))
        ordered = torch.from_numpy(queries.sorted(scores)), torch.from_numpy(labels)
        values = metrics.ndcg(*ordered, lengths=queries.lengths, k=10)
        return float(metrics.mean(values, _weights_of(sample_weight, queries)))

    def save(self, path: str | Path) -> None:
        """Write the ranker to one file in NumPy's format, which :meth:`load` reads.

        ``directrank.models.scorer.Scorer.load`` reads it too, without scikit-learn. A random state
        that is not an int is not kept.
        """
        check_is_fitted(self)
        parameters = _plain(self.get_params())
        if not isinstance(parameters["random_state"], int):
            parameters["random_state"] = None
        about = {"parameters": parameters, "history": self.history_, "best_epoch": self.best_epoch_}
        scorer = self.scorer_
        Scorer(
            scorer.settings, scorer.weights, scorer.mean, scorer.scale, scorer.features, about
        ).save(path)

    @classmethod
    def load(cls, path: str | Path) -> DirectRanker:
        """Read what :meth:`save` wrote; nothing in the file is executed.

        Raises:
            DataError: there is no such file, or it is of something else.
        """
        scorer = Scorer.load(path)
        if "parameters" not in scorer.about:
            raise DataError(
                "this is a scorer without the parameters of a ranker",
                "load it with directrank.models.scorer.Scorer.load",
                file=path,
            )
        ranker = cls(**scorer.about["parameters"])
        ranker.scorer_ = scorer
        ranker.history_ = scorer.about["history"]
        ranker.best_epoch_ = scorer.about["best_epoch"]
        ranker.n_features_in_ = len(scorer.mean)
        if scorer.features is not None:
            ranker.feature_names_in_ = np.array(scorer.features, dtype=object)
        return ranker

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags

    def _validation(
        self, scorer: Scorer, eval_set: Any, group: Any, qid: Any
    ) -> RankedLists | None:
        """The validation set with scaled features, or None if there is none."""
        if eval_set is None:
            for name, given in (("eval_group", group), ("eval_qid", qid)):
                if given is not None:
                    raise InputError(
                        f"{name} is given without eval_set",
                        "give the validation set as eval_set=(X, y)",
                    )
            return None
        if isinstance(eval_set, list):
            eval_set = _only(
                eval_set, "eval_set", "give one validation set, which chooses the epoch"
            )
            remedy = "give a list of one, as eval_set is"
            group, qid = _only(group, "eval_group", remedy), _only(qid, "eval_qid", remedy)
        if not isinstance(eval_set, Sequence) or isinstance(eval_set, str) or len(eval_set) != 2:
            raise InputError(
                "eval_set is not a pair of features and labels", "give eval_set=(X, y)"
            )
        X, y = eval_set
        X, qid = _without_ids(X, group, qid)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], reset=False)
        queries = _queries_of(len(X), group, qid, "eval_")
        y = _checked_labels(queries.sorted(y))
        if not (y > 0).any():
            raise InputError(
                "no query of the validation set has a relevant document",
                "give a validation set by whose NDCG an epoch can be chosen",
            )
        return _lists(scorer.scaled(queries.sorted(X)), y, queries.lengths)


def _without_ids(X: Any, group: Any, qid: Any) -> tuple[Any, Any]:
    """Features, and the ids that are in their column ``qid`` if they are a data frame with one."""
    if ID_COLUMN not in list(getattr(X, "columns", ())):
        return X, qid
    if not (group is None and qid is None):
        raise InputError(
            f"the data frame has a column '{ID_COLUMN}', and queries are given as well",
            "give the queries once",
        )
    return X[[name for name in X.columns if name != ID_COLUMN]], X[ID_COLUMN]


def _queries_of(documents: int, group: Any, qid: Any, prefix: str = "") -> _Queries:
    """The queries of so many documents; empty ones are kept."""
    if (group is None) == (qid is None):
        given = "neither" if group is None else "both"
        raise InputError(
            f"{given} of {prefix}group and {prefix}qid are given",
            f"give {prefix}group, the number of documents of each query, or {prefix}qid, the query "
            "of each document",
        )
    if group is None:
        return _by_id(array_of(qid, f"{prefix}qid"), documents, f"{prefix}qid")
    name, remedy = f"{prefix}group", "give the number of documents of each query"
    sizes = array_of(group, name)
    whole = sizes.dtype.kind in "iu" or (sizes.dtype.kind == "f" and (sizes % 1 == 0).all())
    if sizes.ndim != 1:
        within = "; within another list only where eval_set is in one, too" if prefix else ""
        raise InputError(f"{name} is not a list of numbers", f"{remedy}, as a list{within}")
    if whole and (sizes < 0).any():
        raise InputError(f"a number of {name} is {sizes.min()}", f"{remedy}, 0 or more")
    if not whole or sizes.sum() != documents:
        found = f"adds up to {sizes.sum()}" if whole else "is not a list of whole numbers"
        ids = f"; ids of queries are given as {prefix}qid" if len(sizes) == documents else ""
        raise InputError(f"{name} {found}, but there are {documents} documents", f"{remedy}{ids}")
    return _Queries(sizes.astype(np.int64), None)


def _by_id(ids: np.ndarray, documents: int, name: str) -> _Queries:
    """Queries in the order in which their ids first appear."""
    if ids.shape != (documents,):
        raise InputError(
            f"{name} {ids.shape} must be [{documents}], an id for each document",
            "give every document the id of its query",
        )
    if ids.dtype.kind == "f":
        missing = bool(np.isnan(ids).any())
    else:
        missing = ids.dtype == object and any(map(is_missing, ids))
    if missing:
        raise InputError(f"{name} has missing values", "give every document the id of its query")
    numbers: dict[Any, int] = {}
    of_document = np.array([numbers.setdefault(id, len(numbers)) for id in ids.tolist()], np.int64)
    contiguous = bool((np.diff(of_document) >= 0).all())
    order = None if contiguous else np.argsort(of_document, kind="stable")
    return _Queries(np.bincount(of_document, minlength=len(numbers)), order)


def _weights_of(weights: Any, queries: _Queries) -> np.ndarray | None:
    """The weight of each query, float64 ``[B]``."""
    if weights is None:
        return None
    given = column_or_1d(array_of(weights, "sample_weight")).astype(np.float64)
    if not ((given >= 0) & np.isfinite(given)).all():
        raise InputError(
            "sample_weight is negative, NaN or infinite somewhere", "use 0 to leave a query out"
        )
    if not given.any():
        raise InputError("every sample_weight is zero", "give a query a weight above 0")
    lengths = queries.lengths
    if len(given) == len(lengths):
        return given
    if len(given) != lengths.sum():
        raise InputError(
            f"sample_weight [{len(given)}] must be [{len(lengths)}], one for each query, or "
            f"[{lengths.sum()}], one for each document",
            "give the weight of each query",
        )
    given = queries.sorted(given)
    starts = (np.cumsum(lengths) - lengths)[lengths > 0]
    first = np.zeros(len(lengths))
    first[lengths > 0] = given[starts]
    if (np.repeat(first, lengths) != given).any():
        raise InputError(
            "sample_weight differs between documents of a query",
            "give one weight for each query, because a loss is a value of a whole ranking",
        )
    return first


def _checked_labels(labels: np.ndarray) -> np.ndarray:
    """Labels as float32; raises :class:`InputError` if they are not numbers from 0."""
    if labels.dtype.kind not in "biuf":
        try:
            labels = labels.astype(object).astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "labels are not numbers",
                "give each grade a number from 0, which means not relevant",
            ) from None
    if not np.isfinite(labels).all():
        raise InputError("a label is NaN or infinite", "give every document a label from 0")
    if (labels < 0).any():
        raise InputError(
            f"a label is {labels.min()}", "give labels from 0, which means not relevant"
        )
    return labels.astype(np.float32)


def _moments(X: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard deviation of each column, float64 ``[F]``."""
    scaler = StandardScaler().fit(X, sample_weight=weights)
    # A rounded mean would leave noise of a constant column, as large as its last digit.
    constant = X.min(axis=0) == X.max(axis=0)
    mean = np.where(constant, X[0], scaler.mean_)
    return mean, np.where(constant, 1.0, scaler.scale_)


def _lists(
    features: np.ndarray, labels: np.ndarray, lengths: np.ndarray, weights: np.ndarray | None = None
) -> RankedLists:
    """The queries that have documents and a weight; weights have a mean of 1.

    The mean is that of queries with a relevant document, by whose number a step divides.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    lists = RankedLists(features, labels, offsets, np.arange(len(lengths)), weights=weights)
    kept = lengths > 0
    if weights is not None:
        kept &= weights > 0
        judged = kept & (lists.relevant_counts() > 0)
        mean = weights[judged].mean() if judged.any() else 1.0
        lists = RankedLists(features, labels, offsets, lists.query_ids, weights=weights / mean)
    return lists if kept.all() else lists.select(np.flatnonzero(kept))


def _loss_settings(loss: str | Mapping[str, Any]) -> dict[str, Any]:
    """The loss as a mapping; raises ``ConfigError`` if it or an option is unknown or not valid."""
    settings = _named(loss, "loss")
    name = settings["name"]
    options = [
        option
        for option in list(signature(losses.get(name)).parameters.values())[3:]
        if option.name not in OF_A_CALL
    ]
    refuse_unknown(settings, ["name", *(option.name for option in options)], f"loss '{name}'")
    for option in options:
        if option.default is Parameter.empty and option.name not in settings:
            raise ConfigError(
                f"loss '{name}' needs the setting '{option.name}'",
                f"give a mapping with it: loss={{'name': '{name}', '{option.name}': …}}",
            )
    check_options(settings)
    return settings


def _scorer_settings(scorer: str | Mapping[str, Any]) -> dict[str, Any]:
    """The scorer as a mapping; raises ``ConfigError`` if its name is unknown."""
    if not isinstance(scorer, str):
        return _named(scorer, "scorer")
    if scorer not in SCORERS:
        raise ConfigError(f"unknown scorer '{scorer}'", nearest(scorer, SCORERS))
    return dict(SCORERS[scorer])


def _named(value: Any, what: str) -> dict[str, Any]:
    """A name, or a mapping with one, as a mapping; raises ``ConfigError`` if it is neither."""
    settings = {"name": value} if isinstance(value, str) else _plain(value)
    if not isinstance(settings, Mapping) or not isinstance(settings.get("name"), str):
        raise ConfigError(
            f"{what} is {value!r}, which has no name",
            f"give the name of a {what}, or a mapping with 'name' and its settings",
        )
    return dict(settings)


def _plain(value: Any) -> Any:
    """``value`` with Python's own numbers in place of NumPy's and PyTorch's, as JSON has them."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray | Tensor) else value


def _only(values: Any, name: str, remedy: str) -> Any:
    """The single element of a list, or None if there is no list."""
    if values is None or not isinstance(values, Sequence):
        return values
    if len(values) != 1:
        raise InputError(f"{name} has {len(values)} elements", remedy)
    return values[0]
