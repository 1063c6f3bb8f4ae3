"""What the choice of a method's setting and learning rate is worth, on validation.

Every method was tuned over as many configurations, and over more if its best learning rate was at
an end of its grid. Those that were not chosen have no test values; their validation metric says how
much the choice matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.methods import CONTROLS, SCORERS, TITLES
from directrank.papers.one_protocol.protocol import Protocol, protocol
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.format import listed, number
from directrank.papers.shared.leads import lead
from directrank.papers.shared.methods import Method
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Section, TableLayout, in_front

#: What the learners call a learning rate.
RATES = ("lr", "learning_rate")

#: Columns that are text where a method may have nothing to say.
_TEXTS = ("learning_rate", "setting", "value")


def table_settings(evidence: Evidence, dataset: str) -> TableResult:
    """Validation NDCG@10 of every configuration of every method."""
    study = protocol(evidence, dataset)
    tuned = [method for method in study.methods if method.variant != CONTROLS]
    data = pd.DataFrame([row for method in tuned for row in _candidates(method)])
    moved = movements(data).set_index(["scorer", "method"])
    sections = [
        Section(TITLES[scorer], [_line(data, moved, study, n) for n in study.of(scorer)])
        for scorer in SCORERS
        if study.of(scorer) and scorer != CONTROLS
    ]
    caption = (
        "Validation NDCG@10 by the value of each method's hyper-parameter, at the best learning "
        "rate for this value, as the mean over folds and over the trials that choose, of the "
        "configurations that every fold tried. “range” is the difference between the best and the "
        "worst value, and “range, rate” is the same for the learning rate at the best value of the "
        "hyper-parameter. Grids "
        "grow while their best rate is at an end: “rates” are the lowest and the highest tried, "
        "“inside” is the share of trainings whose chosen rate is neither of them, and “at limit” "
        "the share that reached the largest number of epochs. Every configuration is in the CSV "
        "file with the number of times it was chosen; only chosen configurations have test values. "
        f"{study.scale()}"
    )
    columns = [
        "Method", "setting", "NDCG@10 by value", "range", "range, rate", "rates", "inside",
        "at limit",
    ]  # fmt: skip
    layout = TableLayout(_lead(moved), caption, columns, sections)
    return TableResult(in_front(data, study.about), layout)


def _lead(moved: pd.DataFrame) -> str:
    """How far the median method moves with its setting and with its learning rate."""
    with_rate = moved["moves_with_rate"].dropna()
    with_setting = moved["moves_with_setting"].dropna()
    most = [f"{method}, {scorer}" for scorer, method in with_setting.nlargest(3).index]
    return (
        lead(
            f"the learning rate changes NDCG@10 by {number(with_rate.median())} for the median "
            "method"
            if len(with_rate)
            else "",
            f"a method's hyper-parameter changes it by {number(with_setting.median())} for the "
            f"median of the methods that have one, and most for {listed(most)}"
            if len(with_setting)
            else "",
        )
        or "No method had more than one configuration."
    )


def movements(data: pd.DataFrame) -> pd.DataFrame:
    """How far a method's validation metric moves between the values of what was tuned.

    Each value counts with the best of the other: a setting with the best learning rate for it.

    Args:
        data: rows of :func:`table_settings`, of one collection.

    Returns:
        A row per method and scorer: ``method``, ``scorer``, ``setting`` (its name, empty for none),
        ``moves_with_setting`` and ``moves_with_rate``, missing where there was no choice.
    """
    data, rows = _tried_on_all_folds(_as_texts(data)), []
    for (method, scorer), own in data.groupby(["method", "scorer"], sort=False):
        rows.append(
            {
                "method": method,
                "scorer": scorer,
                "setting": own["setting"].iloc[0],
                "moves_with_setting": _range(own, "value"),
                "moves_with_rate": _range(own, "learning_rate"),
            }
        )
    return pd.DataFrame(rows)


def most_chosen(data: pd.DataFrame, scorer: str) -> pd.DataFrame:
    """The configuration that the validation set chose most often for each method with a scorer.

    Args:
        data: rows of :func:`table_settings`, of one collection.
        scorer: as the table calls it.

    Returns:
        By method: ``learning_rate``, ``setting`` (its name, empty for none), ``value``, ``chosen``
        (how many trainings chose it) and ``of`` (all trainings).
    """
    own = data[data["scorer"] == scorer]
    first = own.loc[own.groupby("method", sort=False)["chosen"].idxmax()].set_index("method")
    columns = [*_TEXTS, "chosen", "of"]
    return _as_texts(first).assign(of=own.groupby("method")["chosen"].sum())[columns]


def _as_texts(data: pd.DataFrame) -> pd.DataFrame:
    """The table with empty texts where a configuration lacks a rate or a setting."""
    texts = {name: data[name].astype(object).where(data[name].notna(), "") for name in _TEXTS}
    return data.assign(**texts)


def _tried_on_all_folds(data: pd.DataFrame) -> pd.DataFrame:
    """The configurations of each method but those that a grid got by growing on some folds."""
    return data[data["fits"] == data.groupby(["method", "scorer"])["fits"].transform("max")]


def _range(candidates: pd.DataFrame, by: str) -> float:
    best = _best(candidates, by)
    return float(best.max() - best.min()) if len(best) > 1 else float("nan")


def _best(candidates: pd.DataFrame, by: str) -> pd.Series:
    """The best mean for each value of ``by``, in the order tried."""
    return candidates.groupby(by, sort=False)["mean"].max()


def _candidates(method: Method) -> Iterator[dict[str, Any]]:
    """A row per configuration of a method, over its folds and the trials that tried them all."""
    fits = pd.concat([run.result.fits for run in method.runs])
    # In the others a configuration was trained only on the folds that chose it, which may be easy.
    fits["tried"] = not method.one_choice or fits["trial"] == fits["trial"].min()
    tuned = {path: path.split(".")[-1] for path in method.runs[0].result.spec.get("tune", {})}
    rates = [path for path, name in tuned.items() if name in RATES]
    own = [path for path in tuned if path not in rates]
    # A growing grid gives the same number to different candidates of different folds.
    grouped = fits.groupby(list(tuned) or ["candidate"], sort=False, dropna=False)
    for candidate, (_, found) in enumerate(grouped):
        first = found.iloc[0]
        yield {
            "scorer": SCORERS[method.variant],
            "method": method.name,
            "candidate": candidate,
            "learning_rate": ", ".join(_in_words(first[path]) for path in rates),
            "setting": ", ".join(tuned[path] for path in own),
            "value": ", ".join(_in_words(first[path]) for path in own),
            "split": "vali",
            "metric": "NDCG@10",
            "mean": found["vali_metric"][found["tried"]].mean(),
            "chosen": int(found["selected"].sum()),
            "chosen_inside": _of_chosen(found, "inside"),
            "chosen_stopped": _of_chosen(found, "stopped_early"),
            "fits": int(found["tried"].sum()),
        }


def _of_chosen(fits: pd.DataFrame, column: str) -> float:
    """How many chosen fits ``column`` is true of; NaN where runs have no such column."""
    if column not in fits:
        return float("nan")
    return int((fits["selected"] & fits[column].astype(bool)).sum())


def _in_words(value: Any) -> str:
    """A value as it was tried, as a file of fits has it."""
    if isinstance(value, float | int):
        return "none" if pd.isna(value) else f"{value:g}"
    return str(value)


def _line(data: pd.DataFrame, moved: pd.DataFrame, study: Protocol, place: int) -> list[str]:
    key = tuple(study.names.loc[place, ["scorer", "method"]])
    own = data[(data["scorer"] == key[0]) & (data["method"] == key[1])]
    setting = moved.loc[key, "setting"]
    by_value = _best(_tried_on_all_folds(own), "value").items() if setting else ()
    return [
        key[1],
        setting,
        ", ".join(f"{value}: {number(mean)}" for value, mean in by_value),
        number(moved.loc[key, "moves_with_setting"]),
        number(moved.loc[key, "moves_with_rate"]),
        *_ends(own),
    ]


def _ends(candidates: pd.DataFrame) -> list[str]:
    """The range of learning rates, and the shares of chosen fits at an end of it, or of epochs."""
    rates = pd.to_numeric(candidates["learning_rate"], errors="coerce").dropna()
    chosen = candidates["chosen"].sum()
    inside, stopped = (
        candidates[column].sum(min_count=1) / chosen
        for column in ("chosen_inside", "chosen_stopped")
    )
    return [
        f"{rates.min():g} to {rates.max():g}" if rates.nunique() > 1 else "",
        "" if np.isnan(inside) else f"{inside:.0%}",
        "" if np.isnan(stopped) else f"{1 - stopped:.0%}",
    ]
