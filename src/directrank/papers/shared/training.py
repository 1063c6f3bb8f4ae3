"""A sentence for captions about the size of networks and the length of their training."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from directrank.papers.shared.evidence import PlannedRun
from directrank.papers.shared.format import count, spread
from directrank.system.schema import complete, package_schema


def training_sentence(runs: Sequence[PlannedRun]) -> str:
    """Size, epochs and budget of the networks among ``runs``; empty if there are none.

    Epochs are those of the chosen models, counted to the end of their training.
    """
    networks = [run for run in runs if "training" in run.result.spec]
    if not networks:
        return ""
    fits = pd.concat([run.result.fits for run in networks])
    chosen = fits[fits["selected"]]
    schema = package_schema("run")["properties"]["training"]
    sections = [complete(run.result.spec["training"], schema, run.result.name) for run in networks]
    budget = spread([run.result.fits["candidate"].nunique() for run in networks], "configuration")
    return (
        f"The networks have {_range(chosen['n_parameters'])} weights. Each is the best on the "
        f"validation set of {budget} and was trained for a median of "
        f"{int(chosen['epochs'].median())} epochs ({_range(chosen['epochs'])}), {_rule(sections)}, "
        f"with {spread([section['batch_queries'] for section in sections], 'query', 'queries')} "
        f"per step.{_at_the_end(chosen, sections)}"
    )


def _rule(sections: Sequence[dict]) -> str:
    """The rule that ends training, in words."""
    most = spread([section["max_epochs"] for section in sections], "epoch")
    patience = [section["patience"] for section in sections if section["patience"]]
    if not patience:
        return "a number that was fixed in advance"
    waits = spread(patience, "epoch")
    return f"until {waits} brought no better validation metric, or for at most {most}"


def _at_the_end(chosen: pd.DataFrame, sections: Sequence[dict]) -> str:
    """How many trainings reached the largest number of epochs, if there is another rule."""
    if not any(section["patience"] for section in sections):
        return ""
    ended = int((~chosen["stopped_early"].astype(bool)).sum())
    if not ended:
        return ""
    return f" {ended} of {count(len(chosen))} were trained for the largest number of epochs."


def _range(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return count(low) if low == high else f"{count(low)} to {count(high)}"
