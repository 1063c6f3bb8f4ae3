"""Whether the choice of a method matters more where the task is harder.

The same methods rank the same queries with all features, and without those that make it easy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from directrank.papers.one_protocol.controls import with_article
from directrank.papers.one_protocol.methods import CONTROLS, PRIMARY, SCORERS, TITLES, in_table
from directrank.papers.one_protocol.protocol import Protocol, methods_of
from directrank.papers.one_protocol.quality import place
from directrank.papers.one_protocol.training_size import pairs_that_differ, rows
from directrank.papers.shared.cells import measured
from directrank.papers.shared.evidence import Evidence, FinishedRun
from directrank.papers.shared.format import count, listed
from directrank.papers.shared.leads import lead, weights
from directrank.papers.shared.methods import by_method
from directrank.papers.shared.product import TableResult
from directrank.papers.shared.tables import Section, TableLayout
from directrank.stats.decisions import ranked_pairs

#: What only methods that are ranked have, besides their places.
_OF_PAIRS = ["pairs", "differ", "beyond", "equivalent", "distance_of_controls"]


def table_harder(evidence: Evidence, dataset: str) -> TableResult:
    """NDCG@10 and place of every method on either task, and how many pairs differ."""
    harder = evidence.runs(f"{dataset}_harder")
    spec = harder[0].result.spec
    size, left_out = int(spec["train_queries"]), list(spec["without_features"])
    # An asterisk would be markup.
    missing = listed([pattern.replace("*", "…") for pattern in left_out])
    full = [
        run
        for run in evidence.runs(f"{dataset}_training_size")
        if run.setting("train_queries") == size
    ]
    names = {run.setting("method") for run in full}
    trained = [run for run in harder if run.setting("method") in names]
    rest = [run for run in harder if run.setting("method") not in names]
    tasks = {
        "all": (_study(evidence, full), methods_of(evidence, dataset, CONTROLS)),
        f"without {', '.join(left_out)}": (
            _study(evidence, trained),
            list(by_method(rest, "exclude", variant=CONTROLS).values()),
        ),
    }
    data = pd.concat(
        [
            _of_task(task, study, Protocol(evidence, controls), size)
            for task, (study, controls) in tasks.items()
        ],
        ignore_index=True,
    )
    (easy, _), (hard, _) = tasks.values()
    caption = (
        f"NDCG@10 on the test sets with all features and without {missing}, with the "
        "place that follows from the pairs that differ on the same task: methods that are tied "
        f"share places. Both tasks have the same queries; {count(size)} random ones of each fold "
        "are trained on. Values are the mean of the fold means, averaged over trials, ± the half "
        "width of the 95% interval; the highest of a column is bold. "
        f"{hard.standard} {_of_controls(easy)}{_of_networks(easy)}{hard.scale()}"
    )
    columns = ["Method", "all features", "place", "without", "place"]
    is_control = data["scorer"] == SCORERS[CONTROLS]
    parts = (("", ~is_control), (TITLES[CONTROLS], is_control))
    sections = [Section(title, _lines(data, chosen, list(tasks))) for title, chosen in parts]
    start = lead(
        _spread_sentence("with all features", easy),
        _spread_sentence(f"without {missing}", hard),
        *_control_sentences(data, list(tasks)),
    )
    return TableResult(data, TableLayout(start, caption, columns, sections))


def _of_networks(easy: Protocol) -> str:
    """How large the networks are with all features, and a space; empty without any."""
    size = weights(easy.runs)
    return f"With all features the networks have {size} weights. " if size else ""


def _study(evidence: Evidence, runs: Sequence[FinishedRun]) -> Protocol:
    return Protocol(evidence, list(by_method(runs, "exclude", variant="tower").values()))


def _of_task(task: str, study: Protocol, controls: Protocol, size: int) -> pd.DataFrame:
    """A row per method of a task: those that are ranked, then those that are not."""
    ranked = rows(study, size).assign(
        scorer=study.names["scorer"],
        first_place=in_table(study.places[:, 0]),
        last_place=in_table(study.places[:, 1]),
    )
    others = rows(controls, size).assign(scorer=controls.names["scorer"]).drop(columns=_OF_PAIRS)
    counts = dict.fromkeys(("first_place", "last_place", *_OF_PAIRS[:-1]), "Int64")
    both = pd.concat([ranked, others], ignore_index=True).astype(counts)
    both.insert(both.columns.get_loc("method"), "features", task)
    return both


def _lines(data: pd.DataFrame, chosen: pd.Series, tasks: Sequence[str]) -> list[list[str]]:
    best = data.groupby("features")["mean"].max()
    shown = data[chosen].set_index(["features", "method"])
    lines = []
    for name in dict.fromkeys(data.loc[chosen, "method"]):
        line = [name]
        for task in tasks:
            row = shown.loc[(task, name)]
            line.append(measured(row["mean"], row["half_width"], best=row["mean"] == best[task]))
            ranked = not pd.isna(row["first_place"])
            line.append(place(row["first_place"], row["last_place"]) if ranked else "")
        lines.append(line)
    return lines


def _of_controls(easy: Protocol) -> str:
    """How far the controls are apart with all features, and a space; empty without any."""
    if not len(easy.controls):
        return ""
    return f"With all features the controls are {measured(easy.distance)} apart. "


def _spread_sentence(task: str, study: Protocol) -> str:
    """How far the methods of a task are apart, and how many pairs of them differ."""
    differ = ranked_pairs(study.verdicts)
    width = float(np.ptp(study.over_folds(PRIMARY)))
    return (
        f"{task}, {len(study.labels)} trained methods lie within {measured(width)}, and "
        f"{pairs_that_differ(differ, len(study.pairs))}"
    )


def _control_sentences(data: pd.DataFrame, tasks: Sequence[str]) -> list[str]:
    """What the methods that learn nothing reach on either task, with all features first."""
    means: Mapping[tuple[str, str], float] = data.set_index(["method", "features"])[
        "mean"
    ].to_dict()
    controls = data.loc[data["scorer"] == SCORERS[CONTROLS], "method"]
    said = []
    for name in dict.fromkeys(controls):
        full, less = (measured(means[name, task]) for task in tasks)
        said.append(
            f"{with_article(name)} reaches {full} with all features and {less} without these"
        )
    return said
