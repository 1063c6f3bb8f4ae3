"""Sentences computed from results: that on top of a table, and a caption's on training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from directrank.papers.shared.cells import MET, NOT_MET
from directrank.papers.shared.evidence import NOT_COMPARABLE, FinishedRun
from directrank.papers.shared.format import DIGITS, count, count_range, listed, share, spread
from directrank.system.schema import complete, package_schema

#: Standard errors within which a value is called near the printed one.
NEAR = 2


def extremes(means: Mapping[str, float], heading: str, digits: int = DIGITS) -> str:
    """Which methods have the highest and the lowest mean.

    Args:
        means: by method, at least one; NaN for one that was not run.
        heading: of what, e.g. ``NDCG@10``.
        digits: decimals.
    """
    run = {name: mean for name, mean in means.items() if mean == mean}
    high, low = max(run.values()), min(run.values())
    first = [name for name, mean in run.items() if mean == high]
    if high == low:
        which = "all methods have" if len(first) > 1 else f"{first[0]} has"
        return f"{which} {heading} {high:.{digits}f}"
    last = [name for name, mean in run.items() if mean == low]
    return (
        f"{listed(first)} {'has' if len(first) == 1 else 'have'} the highest {heading}, "
        f"{high:.{digits}f}, and {listed(last)} the lowest, {low:.{digits}f}"
    )


def near_print(data: pd.DataFrame) -> str:
    """How many values lie near the printed ones; empty where none can be compared.

    Args:
        data: with the columns ``data`` and ``difference_in_se``.
    """
    comparable = data[~data["data"].isin(NOT_COMPARABLE)]["difference_in_se"].dropna()
    if comparable.empty:
        return ""
    near = int((comparable.abs() <= NEAR).sum())
    return (
        f"{share(near, len(comparable))} values that can be compared lie within {NEAR} standard "
        "errors of the printed ones"
    )


def met(data: pd.DataFrame) -> str:
    """How many printed numbers have ours to their digits or tolerance; empty where none can.

    Args:
        data: with the column ``status``.
    """
    compared = data.loc[data["status"].isin([MET, NOT_MET]), "status"]
    if compared.empty:
        return ""
    return f"{share(int((compared == MET).sum()), len(compared))} printed numbers are met"


def lead(*parts: str) -> str:
    """Parts that say something, as sentences."""
    return " ".join(f"{_capitalised(part)}." for part in parts if part)


def significant_share(p_values: pd.Series, level: float, of: str) -> str:
    """How many differences are significant, as in ``2 of the 4 differences are significant``.

    Args:
        p_values: corrected; those that are NaN were not tested.
        level: a difference is significant below it.
        of: what stands between the number and the end of the sentence: what differs, and the verb.

    Returns:
        Empty if nothing was tested.
    """
    tested = p_values.dropna()
    sure = share(int((tested < level).sum()), len(tested)) if len(tested) else ""
    return f"{sure} {of}" if sure else ""


def _capitalised(sentence: str) -> str:
    """With a capital, unless it begins with a name such as nDCG."""
    is_name = any(letter.isupper() for letter in sentence.split(" ")[0][1:])
    return sentence if is_name else sentence[:1].upper() + sentence[1:]


def training_sentence(runs: Sequence[FinishedRun]) -> str:
    """Size, epochs and budget of the networks among ``runs``; empty if there are none.

    Epochs are those of the chosen models, counted to the end of their training.
    """
    networks = _networks(runs)
    if not networks:
        return ""
    chosen = _chosen(networks)
    budget = spread([run.result.fits["candidate"].nunique() for run in networks], "configuration")
    return (
        f"The networks have {weights(networks)} weights. Each is the best on the "
        f"validation set of {budget} and was trained for {_epochs(chosen['epochs'])}, "
        f"{training_rule(networks)}.{_at_the_end(chosen, _sections(networks))}"
    )


def _epochs(epochs: pd.Series) -> str:
    """How many epochs networks were trained for: their median and range if they differ."""
    median = f"{int(epochs.median())} epochs"
    if epochs.nunique() == 1:
        return median
    return f"a median of {median} ({count_range(epochs)})"


def training_rule(runs: Sequence[FinishedRun]) -> str:
    """How long the networks among ``runs`` were trained, and with how many queries per step.

    Empty if there are none.
    """
    sections = _sections(_networks(runs))
    if not sections:
        return ""
    queries = spread([section["batch_queries"] for section in sections], "query", "queries")
    return f"{_end(sections)}, with {queries} per step"


def weights(runs: Sequence[FinishedRun]) -> str:
    """How many weights the networks among ``runs`` have; empty if there are none."""
    networks = _networks(runs)
    return count_range(_chosen(networks)["n_parameters"]) if networks else ""


def _networks(runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    return [run for run in runs if "training" in run.result.spec]


def _chosen(networks: Sequence[FinishedRun]) -> pd.DataFrame:
    fits = pd.concat([run.result.fits for run in networks])
    return fits[fits["selected"]]


def _sections(networks: Sequence[FinishedRun]) -> list[dict]:
    """The settings of training, with their defaults."""
    schema = package_schema("run")["properties"]["training"]
    return [complete(run.result.spec["training"], schema, run.result.name) for run in networks]


def _end(sections: Sequence[dict]) -> str:
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
