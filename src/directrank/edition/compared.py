"""What one protocol of an edition compares: its collections, losses and trees, by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from directrank.data import catalog
from directrank.edition.plan import Study
from directrank.learners.trees.settings import CATBOOST, LIGHTGBM, RANKLIB, XGBOOST, passed_on
from directrank.papers.one_protocol.controls import is_again
from directrank.papers.one_protocol.methods import NEURAL, SCORERS
from directrank.papers.shared.format import counted, listed

#: Learner of boosted trees → its library in print, and the schema of its settings.
LIBRARIES = {
    "lightgbm": ("LightGBM", LIGHTGBM),
    "xgboost": ("XGBoost", XGBOOST),
    "catboost": ("CatBoost", CATBOOST),
    "ranklib": ("RankLib", RANKLIB),
}

#: What decides which objective trees optimise (``docs/trees.md``), of all settings of a learner.
OPTIONS = (
    "objective", "metric", "k", "pair_method", "n_pairs", "truncation_level", "norm", "score_norm",
)  # fmt: skip

#: Folds that LETOR's rotation trains on, of five.
TRAINED_SHARE = 3 / 5


def compared(study: Study) -> dict[str, Any]:
    """What :func:`directrank.papers.one_protocol.choice.read` reads, as JSON has it."""
    collections, methods, trees = [], {}, {}
    for name in study.config["papers"]["one_protocol"]["collections"]:
        experiments = study.products["one_protocol", f"per_query_{name}"]["experiments"]
        neural = [experiments.get(f"{name}_{scorer}", []) for scorer in NEURAL]
        cells = max(neural, key=len)
        specs = [study.runs[cell["run"]] for cell in cells]
        models = [study.runs[of_scorer[0]["run"]]["model"] for of_scorer in neural if of_scorer]
        collections.append(_collection(catalog.get(name), specs[0], models))
        for cell, spec in zip(cells, specs, strict=True):
            if not is_again(cell["settings"]["method"]):
                methods[cell["settings"]["method"]] = spec["loss"]["name"]
        for cell in experiments.get(f"{name}_trees", ()):
            if not is_again(cell["settings"]["method"]):
                trees[cell["settings"]["method"]] = _ensemble(study.runs[cell["run"]])
    named = [{"name": name, "loss": loss} for name, loss in methods.items()]
    return {
        "edition": study.edition,
        "collections": collections,
        "methods": named,
        "trees": [{"name": name} | facts for name, facts in trees.items()],
    }


def _ensemble(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The library of boosted trees, and what is set of their objective, by the library's names."""
    library, settings = LIBRARIES[spec["learner"]]
    known = settings["properties"]
    options = {name: spec["model"][name] for name in OPTIONS if name in spec["model"]}
    if "objective" in known:
        options = {"objective": known["objective"]["default"]} | options
    if spec["learner"] == "catboost" and "metric" in options:
        places = f";top={options.pop('k')}" if "k" in options else ""
        options["objective"] += f":mode={options.pop('metric')}{places}"
    return {"library": library, "options": passed_on(options, settings)}


def _scorer(model: Mapping[str, Any]) -> tuple[str, str] | None:
    """The name of a scorer in print, and what it consists of; None where the name says it."""
    match model["name"]:
        case "tower":
            hidden = listed([str(units) for units in model["hidden"]])
            return SCORERS["tower"], f"network of {hidden} hidden units"
        case "context":
            blocks = counted(model["blocks"], "block")
            return SCORERS["context"], f"context-aware ({blocks} of width {model['width']})"
    return None


def _collection(
    entry: catalog.Entry, spec: Mapping[str, Any], models: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """What is known of a collection and of how the losses are trained on it."""
    total = entry.expect.get("total", {})
    queries, documents = total.get("queries"), total.get("documents")
    of_folds = [
        facts["queries"]
        for split, facts in entry.expect.items()
        if split.split("/")[-1] == "train" and "queries" in facts
    ]
    trained_on = median(of_folds) if of_folds else queries and queries * TRAINED_SHARE
    if trained_on and "train_queries" in spec:
        trained_on = min(trained_on, spec["train_queries"])
    return {
        "name": entry.name,
        "title": entry.title,
        "levels": entry.label_levels,
        "documents": documents / queries if queries and documents else None,
        "trained_on": round(trained_on) if trained_on else None,
        "cut": spec["training"].get("max_documents"),
        "scorers": dict(found for model in models if (found := _scorer(model))),
    }
