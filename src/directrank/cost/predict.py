"""Predict the seconds of a run from its specification, its data's size and a machine's rates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from directrank import learners, models
from directrank.cost.facts import Facts
from directrank.cost.rates import Rates, at
from directrank.learners.neural.fit import complete
from directrank.learners.trees.settings import most_leaves
from directrank.models.blocks import LEAST
from directrank.study.specification import candidates
from directrank.system import schema
from directrank.system.io import json_text

#: A backward pass takes two products for each one of the forward pass.
BACKWARD = 3

#: Mean number of epochs after which Qin2010's Algorithm 1 meets its tolerance on OHSUMED.
EPOCHS_TO_TOLERANCE = 3000

#: Elements that a layer writes per output: its product, its bias or norm, its activation.
ELEMENTS_OF_AN_OUTPUT = 3

#: What dropout adds per output (a random number), what normalisation by query adds, and what the
#: norms, dropout and sums of an attention block add per document and unit of its width.
ELEMENTS_OF_DROPOUT, ELEMENTS_OF_QUERY_NORM, ELEMENTS_OF_A_BLOCK = 20, 10, 60

#: What dropout and normalisation by query add in :mod:`directrank.kernels.query_layers`.
ELEMENTS_OF_DROPOUT_IN_LOOPS, ELEMENTS_OF_QUERY_NORM_IN_LOOPS = 3, 1

#: Elements per output of a layer in :mod:`directrank.kernels.encoder`, and per pair of documents
#: and head. They are fitted on networks with 16 to 128 values per document, with portable and with
#: native arithmetic.
ELEMENTS_IN_ENCODER, PAIR_ELEMENTS_IN_ENCODER = 3.7, 5

#: The work of a step outside its network and its loss (drawing lists, the history) takes as long as
#: this many tensors of parameters; a model that is trained together with others takes a small share
#: of it.
STEP_IN_TENSORS, MODEL_IN_TENSORS = 6, 0.3

#: How long a step of other networks takes per tensor of parameters, compared to a tower.
TENSORS_OF_CONTEXT, TENSORS_IN_LOOPS = 1.5, 0.3

#: The same on a GPU, where a step takes as long as the CPU needs to start its operations: outside
#: network and loss; of a model that is trained together with others, without and with dropout, of
#: which each model draws its own; of other networks per tensor, compared to a tower.
STEP_IN_TENSORS_ON_GPU, MODEL_IN_TENSORS_ON_GPU, MODEL_WITH_DROPOUT_ON_GPU = 14, 1.8, 8.7
TENSORS_OF_CONTEXT_ON_GPU, TENSORS_OF_QUERY_NORM_ON_GPU = 3.3, 2.2

#: Elements that an optimiser reads and writes per weight.
ELEMENTS_OF_A_WEIGHT = 6

#: Relaxation → the loss whose time stands for that of losses composed with it.
COMPOSED = {
    "sigmoid": "approx_ndcg",
    "twin": "twin_ndcg",
    "neural_sort": "neural_ndcg",
    "rank_binomial": "softrank",
}

#: Rounds of Sinkhorn scaling at which NeuralNDCG is measured, and the cost of the rest in rounds.
ROUNDS, BESIDE_ROUNDS = 30, 10

#: SoftRank is measured without a cut-off. To a cut-off it is a recursion, which takes this many
#: times as long for each rank (fitted on OHSUMED).
SOFTRANK_PER_RANK = 2

#: The least documents per leaf, since trees on few documents do not grow all leaves.
ROWS_OF_A_LEAF = 20

#: The fixed cost of a leaf, in documents and levels: the histograms of LightGBM, XGBoost and
#: CatBoost, and the threshold candidates of RankLib.
LEAF_IN_ROWS, RANKLIBS_LEAF_IN_ROWS = 1500, 500

#: The cost of the objective's gradient per document and tree, in features and levels: that of a
#: library or, for CatBoost, of an objective.
OBJECTIVE_IN_FEATURES = {
    "lightgbm": 180,
    "xgboost": 700,
    "catboost": 3100,  # YetiRank and QuerySoftMax
    "QueryRMSE": 160,
    "StochasticRank": 4900,
    "YetiRankPairwise": 35_000,
}

#: The cost of putting a value into its bin before the first tree, in levels. LightGBM finds its
#: bins from a sample of documents, whose values cost more.
BINNING_IN_LEVELS = {"lightgbm": 60, "xgboost": 370, "catboost": 200}
SAMPLING_IN_LEVELS, SAMPLED_DOCUMENTS = 200, 200_000

#: The time of a pair of documents in training pair by pair, in weights, beyond those of the net.
PAIR_IN_WEIGHTS = 800

#: The fixed cost of a round of AdaRank or of the solver of a support vector machine, in cells
#: (documents × features), and the rounds of a solver: they depend on the data, and these are about
#: those on OHSUMED's folds and on generated stand-ins of TD2003 and TD2004.
ROUND_IN_CELLS, SOLVER_ROUNDS = 1_000_000, {"ranking_svm": 55, "svmmap": 130}

#: Seconds that importing the library of a learner takes, beyond those of every job.
IMPORT = {"catboost": 0.15}

#: Seconds that opening a collection takes per feature of a document, before any sample is drawn.
OPENING = 2.6e-9


@dataclass(frozen=True)
class Cost:
    """Seconds of a run by purpose.

    Attributes:
        network: passes over the documents.
        loss: the loss and its gradient.
        steps: the fixed cost of each step and tensor.
        evaluation: validation after each epoch, and the metrics at the end.
        other: learners that do not train networks in batches.
        start: what does not grow with the epochs or trees: the job's process with its libraries,
            opening the data, and the bins of features that trees split.
        epochs: epochs, trees or rounds (not seconds) of all fits together.
    """

    network: float = 0.0
    loss: float = 0.0
    steps: float = 0.0
    evaluation: float = 0.0
    other: float = 0.0
    start: float = 0.0
    epochs: float = 0.0

    @property
    def seconds(self) -> float:
        """The total seconds."""
        return sum(astuple(self)[:-1])


#: The parts of a run's seconds.
PARTS = [field.name for field in fields(Cost) if field.name != "epochs"]


@dataclass(frozen=True)
class Size:
    """The size of a scorer, for a pass over one list of L documents.

    Attributes:
        weights: weights of all layers; a product takes two operations per weight and document.
        outputs: outputs of all layers, per document.
        elements: elements that all layers write, per document.
        tensors: tensors of parameters, each counted with the share that its overhead has of that in
            a tower.
        pair_flops, pair_elements: those of attention, times L².
        in_loops: whether compiled loops take all layers together, in training and in scoring; they
            do so on a CPU.
        elements_in_loops, pair_elements_in_loops, tensors_in_loops: those with compiled loops.
        tensors_on_gpu: those on a GPU.
        model_on_gpu: what each model adds to a step on a GPU, in tensors.
        in_blocks: whether compiled loops take the layers of a training step; they do so on a CPU,
            if the models are several or have at least :data:`directrank.models.blocks.LEAST`
            documents.
    """

    weights: int
    outputs: int
    elements: int
    tensors: float
    pair_flops: int
    pair_elements: int
    in_loops: bool
    elements_in_loops: int
    pair_elements_in_loops: int
    tensors_in_loops: float
    tensors_on_gpu: float
    model_on_gpu: float
    in_blocks: bool

    def of_step(self, together: int, precision: str, rates: Rates) -> float:
        """The fixed cost of a step of one of the models that are trained ``together``, in tensors
        of parameters."""
        if rates.device == "cuda":
            return (STEP_IN_TENSORS_ON_GPU + self.tensors_on_gpu) / together + self.model_on_gpu
        in_loops = self.in_loops and on_cpu(precision, rates)
        tensors = self.tensors_in_loops if in_loops else self.tensors
        return (STEP_IN_TENSORS + tensors) / together + MODEL_IN_TENSORS

    def seconds(
        self, lengths: np.ndarray, precision: str, rates: Rates, in_blocks: bool = False
    ) -> float:
        """Seconds of a forward pass over lists of ``lengths``, without the fixed cost of steps."""
        documents, pairs = float(lengths.sum()), float((lengths.astype(float) ** 2).sum())
        in_loops = self.in_loops and on_cpu(precision, rates)
        per_document = self.elements_in_loops if in_loops else self.elements
        flops = 2 * self.weights * documents + self.pair_flops * pairs
        per_pair = self.pair_elements_in_loops if in_loops else self.pair_elements
        elements = per_document * documents + per_pair * pairs
        rate = rates.of("flops_in_loops" if in_loops or in_blocks else "flops", precision)
        # A backward pass takes about twice as long as a forward pass, for elements as for products.
        return float(flops / rate + elements * rates.element_seconds / BACKWARD)


def on_cpu(precision: str, rates: Rates) -> bool:
    """Whether layers of this precision can be computed in compiled loops."""
    return rates.device == "cpu" and precision != "bfloat16"


def size_of(model: Mapping[str, Any], n_features: int) -> Size:
    """The size of the scorer that ``model`` describes; raises ConfigError if it is unknown."""
    return _size_of(json_text(dict(model)), n_features)


@lru_cache(maxsize=256)
def _size_of(text: str, n_features: int) -> Size:
    model = json.loads(text)
    scorer = models.build(model, n_features, [torch.Generator().manual_seed(0)])
    shapes = [parameter.shape for parameter in scorer.parameters()]
    layers = [shape[-2:] for shape in shapes if shape[-2] > 1]
    outputs = sum(size for _, size in layers)
    blocks, width = model.get("blocks", 0), model.get("width", 0)
    least = n_features + ELEMENTS_OF_AN_OUTPUT * outputs + ELEMENTS_OF_A_BLOCK * blocks * width
    dropout, by_query = bool(model.get("dropout")) and not blocks, model.get("norm") == "query"

    def elements(of_dropout: int, of_query_norm: int) -> int:
        return least + outputs * (of_dropout * dropout + of_query_norm * by_query)

    usual = elements(ELEMENTS_OF_DROPOUT, ELEMENTS_OF_QUERY_NORM)
    fewer = elements(ELEMENTS_OF_DROPOUT_IN_LOOPS, ELEMENTS_OF_QUERY_NORM_IN_LOOPS)
    tensors = len(shapes) * (TENSORS_OF_CONTEXT if blocks else 1.0)
    of_tensor_on_gpu = TENSORS_OF_QUERY_NORM_ON_GPU if by_query else 1.0
    if blocks:
        of_tensor_on_gpu = TENSORS_OF_CONTEXT_ON_GPU
        fewer = n_features + round(ELEMENTS_IN_ENCODER * outputs)
    steps_in_loops: Callable[[float], bool] | None = getattr(scorer, "in_loops", None)
    in_blocks = steps_in_loops is not None and steps_in_loops(LEAST)
    in_loops = in_blocks and (by_query or bool(blocks))
    return Size(
        weights=sum(inputs * size for inputs, size in layers),
        outputs=outputs,
        elements=usual,
        tensors=tensors,
        # The scores of all pairs and their mixture, and the scores themselves.
        pair_flops=4 * blocks * width,
        pair_elements=blocks,
        in_loops=in_loops,
        elements_in_loops=fewer,
        pair_elements_in_loops=PAIR_ELEMENTS_IN_ENCODER * blocks * model.get("heads", 1),
        tensors_in_loops=len(shapes) * TENSORS_IN_LOOPS,
        tensors_on_gpu=len(shapes) * of_tensor_on_gpu,
        model_on_gpu=MODEL_WITH_DROPOUT_ON_GPU if model.get("dropout") else MODEL_IN_TENSORS_ON_GPU,
        in_blocks=in_blocks,
    )


def cost_of(spec: Mapping[str, Any], facts: Facts, rates: Rates) -> Cost:
    """An upper bound of a run's cost: it uses every epoch or tree that it is allowed.

    Networks: trials × candidates × restarts × epochs × (operations ÷ rate, elements written, the
    loss of every list, tensors of each step, validation). Others: trials × candidates × rounds ×
    units of work.

    Args:
        spec: a validated run.
        facts: the size of its data (of its fold), before its filter and sample.
        rates: those of the machine that will train it.

    Raises:
        ConfigError: the rates lack an entry that the run needs.
    """
    documents = sum(float(lengths.sum()) for lengths in facts.lengths.values())
    opening = OPENING * documents * facts.features
    facts = facts.as_trained_on(spec)
    plan = list(candidates(spec))
    evaluated = np.concatenate([facts.lengths["vali"], facts.lengths["test"]])
    metrics = (1 + len(spec["evaluation"])) / 2  # they share the sorting
    final = metrics * evaluated.sum() * rates.evaluation_seconds
    if learners.get(spec["learner"]).neural:
        precision = _precision(complete(plan[0]["training"]))
        final += size_of(plan[0]["model"], facts.features).seconds(evaluated, precision, rates)
        fits = spec["trials"] * sum(complete(c["training"])["restarts"] for c in plan)
        costs = [_network(candidate, facts, rates, fits) for candidate in plan]
    else:
        costs = [_other(candidate, facts, rates) for candidate in plan]
    parts = {name: sum(cost.get(name, 0.0) for cost in costs) for name in [*PARTS, "epochs"]}
    parts["evaluation"] += final
    sums = {name: float(spec["trials"] * value) for name, value in parts.items()}
    start = rates.start_seconds + IMPORT.get(spec["learner"], 0.0) + opening
    return Cost(**{**sums, "start": sums["start"] + start})


def _precision(training: Mapping[str, Any]) -> str:
    precision = training.get("precision", "float32")
    return precision if precision != "float32" else training["dtype"]


def _network(
    spec: Mapping[str, Any], facts: Facts, rates: Rates, fits_of_run: int
) -> dict[str, float]:
    """The cost of one trial of one candidate of a neural learner, with all restarts."""
    training = complete(spec["training"])
    lengths = facts.lengths["train"]
    if training["max_documents"] is not None:
        lengths = np.minimum(lengths, training["max_documents"])
    size, precision = size_of(spec["model"], facts.features), _precision(training)
    watched = np.concatenate(
        [facts.lengths[split] for split in sorted({"vali", training["select_on"]})]
    )
    epochs = training["max_epochs"]
    if training["tolerance"]:
        epochs = min(epochs, EPOCHS_TO_TOLERANCE)
    epochs *= training["restarts"]
    evaluation = size.seconds(watched, precision, rates)
    evaluation += watched.sum() * rates.evaluation_seconds
    rows = epochs if spec["learner"] != "linear_ascent" else training["restarts"]
    monitored = training["restarts"] * _monitored(training, size, precision, facts, rates)
    result = {"evaluation": rows * evaluation + monitored, "epochs": epochs}
    if spec["learner"] != "neural":  # query by query, or pair by pair
        work = units(spec["learner"], {}, lengths, facts.features, size.weights)
        return {**result, "other": epochs * work * rates.of("learners", spec["learner"])}
    together = min(training["stack"] or fits_of_run, fits_of_run)
    steps = -(-len(lengths) // training["batch_queries"])
    of_model = training["batch_queries"] * float(lengths.mean())
    in_blocks = on_cpu(precision, rates) and size.in_blocks and (together > 1 or of_model >= LEAST)
    of_step = size.of_step(together, precision, rates) * rates.tensor_seconds
    of_step += size.weights * ELEMENTS_OF_A_WEIGHT * rates.element_seconds
    of_step += rates.of("calls", measured_as(spec["loss"])) / together
    loss = loss_seconds(spec["loss"], lengths, rates)
    if training["restarts"] > 1:  # the objective of each restart's best model
        final = size.seconds(lengths, precision, rates) + loss / 2
        result["evaluation"] += training["restarts"] * final
    return {
        **result,
        "network": epochs * BACKWARD * size.seconds(lengths, precision, rates, in_blocks),
        "loss": epochs * loss,
        "steps": epochs * steps * of_step,
    }


def _monitored(
    training: Mapping[str, Any], size: Size, precision: str, facts: Facts, rates: Rates
) -> float:
    """Seconds of the quantities that a fit records, each taken as a metric on its split."""
    monitor, epochs = training["monitor"], training["max_epochs"]
    if monitor is None:
        return 0.0
    splits = [quantity.get("split", "train") for quantity in monitor["quantities"]]
    scored = sum(size.seconds(facts.lengths[split], precision, rates) for split in set(splits))
    measured = sum(facts.lengths[split].sum() for split in splits) * rates.evaluation_seconds
    due = epochs / monitor.get("every", 1)
    if "at" in monitor:
        due = sum(epoch <= epochs for epoch in monitor["at"])
    return float(due * (scored + measured))


def measured_as(loss: Mapping[str, Any]) -> str:
    """The loss whose rates stand for those of ``loss``."""
    if loss["name"] != "composed":
        return str(loss["name"])
    relaxation = loss["relaxation"]
    relaxation = relaxation if isinstance(relaxation, str) else relaxation["name"]
    return COMPOSED.get(relaxation, "approx_ndcg")  # a new one: pairs, as there


def loss_seconds(loss: Mapping[str, Any], lengths: np.ndarray, rates: Rates) -> float:
    """Seconds of a loss and its gradient on lists of ``lengths``, without the cost of its calls."""
    name = measured_as(loss)
    values, counts = np.unique(lengths, return_counts=True)
    per_list = at(rates.of("lists", name), values)
    if name == "softrank" and loss.get("k"):
        per_list *= SOFTRANK_PER_RANK * np.minimum(values, loss["k"])
    seconds = float((per_list * counts).sum())
    if name.startswith("neural_ndcg"):
        iterations = loss.get("iterations", ROUNDS)
        seconds *= (iterations + BESIDE_ROUNDS) / (ROUNDS + BESIDE_ROUNDS)
    return seconds


def _other(spec: Mapping[str, Any], facts: Facts, rates: Rates) -> dict[str, float]:
    """The cost of one trial of one candidate of a learner other than a network."""
    name = spec["learner"]
    settings = schema.complete(spec["model"], learners.get(name).settings, f"learner '{name}'")
    rounds = settings.get("n_trees") or settings.get("rounds") or SOLVER_ROUNDS.get(name, 1)
    train, vali = facts.lengths["train"], facts.lengths["vali"]
    watched = settings.get("n_trees", 0) * vali.sum()
    rate = rates.of("learners", name)
    return {
        "other": rounds * units(name, settings, train, facts.features) * rate,
        "start": binning_units(name, train.sum(), vali.sum(), facts.features) * rate,
        "evaluation": watched * rates.evaluation_seconds,
        "epochs": rounds,
    }


def binning_units(learner: str, train: float, vali: float, n_features: int) -> float:
    """The work before the first tree on documents to train and validate on, as in :func:`units`."""
    levels = BINNING_IN_LEVELS.get(learner, 0) * (train + vali)
    if learner == "lightgbm":
        levels += SAMPLING_IN_LEVELS * min(train, SAMPLED_DOCUMENTS)
    return n_features * levels


def units(
    learner: str,
    settings: Mapping[str, Any],
    lengths: np.ndarray,
    n_features: int,
    n_weights: int = 0,
) -> float:
    """The work of a tree, round or epoch of a learner that does not train networks in batches.

    Trees: features × (documents × levels, leaves), and the objective. Query by query: documents ×
    weights, and pairs. Pair by pair: pairs × weights, and what a pair takes besides. Others:
    documents × features; a round of AdaRank or a solver also has a fixed cost.
    """
    documents, pairs = float(lengths.sum()), float((lengths.astype(float) ** 2).sum())
    if "n_trees" in settings:
        leaves = min(most_leaves(settings), max(documents / ROWS_OF_A_LEAF, 2))
        leaf = RANKLIBS_LEAF_IN_ROWS if learner == "ranklib" else LEAF_IN_ROWS
        work = n_features * (documents * np.log2(max(leaves, 2)) + leaf * leaves)
        objective = settings.get("objective", "")
        of_objective = OBJECTIVE_IN_FEATURES.get(objective, OBJECTIVE_IN_FEATURES.get(learner, 0))
        return work + documents * of_objective
    if learner.startswith("ranknet_v1"):
        return pairs * (n_weights + PAIR_IN_WEIGHTS)
    if learner == "per_query" or learner.startswith("ranknet_v2"):
        return documents * n_weights + pairs / 3
    cells = documents * n_features
    return cells if learner == "linear_ascent" else cells + ROUND_IN_CELLS
