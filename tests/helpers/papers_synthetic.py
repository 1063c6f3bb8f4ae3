"""Small made-up results in the layout that runs leave, for the tests of figures and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from directrank.papers.shared import claims, figures, product
from directrank.papers.shared.evidence import PREPARED
from directrank.study.results import write_run
from directrank.system.io import read_json, write_json
from directrank.system.seeds import numpy_stream

#: The data sets that made-up results may name.
TITLES = {
    "web30k": "Web30K",
    "web30k_standin": "stand-in for Web30K",
    "yahoo1": "Yahoo set 1",
    "yahoo1_standin": "stand-in for Yahoo set 1",
    "istella_standin": "stand-in for Istella",
    "cubic": "artificial data",
    "mq2007_standin": "stand-in for MQ2007",
    "ohsumed": "OHSUMED",
    "mq2008": "MQ2008",
    "msrd": "MSRD",
    "ohsumed_standin": "stand-in for OHSUMED",
    "td2003": "TD2003",
    "td2004": "TD2004",
    "istella": "Istella",
    "td2003_standin": "stand-in for TD2003",
    "td2004_standin": "stand-in for TD2004",
}

PUBLISHED = Path(__file__).parents[2] / "paper_tables" / "published"


def make_run(
    runs_folder: Path,
    name: str,
    means: Mapping[str, float],
    *,
    dataset: str = "web30k_standin",
    fold: int | None = 1,
    trials: int = 3,
    queries: int = 40,
    empty: int = 2,
    first_query: int = 0,
    groups_of: int = 1,
    spread_of_trials: float = 0.004,
    spec: Mapping[str, Any] | None = None,
) -> Path:
    """Write a run whose metrics lie around ``means`` (label → value in [0, 1]).

    Difficulty of a query is shared by all runs with the same query ids, so paired tests have
    something to pair; the first ``empty`` queries of each split have no relevant document. So many
    queries as ``groups_of`` says form a group, and share what a run gains or loses on them.
    """
    rows = []
    for trial in range(trials):
        own = numpy_stream(name, trial)
        of_groups = numpy_stream(name, "groups").normal(0, 0.1 * (groups_of > 1), queries)
        number = np.arange(queries) // groups_of
        for split in ("vali", "test"):
            difficulty = numpy_stream("difficulty", split, first_query).normal(0, 0.15, queries)
            values = {
                label: np.clip(
                    mean
                    + difficulty
                    + own.normal(0, 0.03, queries)
                    + own.normal(0, spread_of_trials)
                    + of_groups[number],
                    0,
                    1,
                )
                for label, mean in means.items()
            }
            for column in values.values():
                column[:empty] = np.nan
            rows.append(
                pd.DataFrame(
                    {
                        "trial": np.int32(trial),
                        "split": split,
                        "query_id": first_query + np.arange(queries),
                        "group": first_query + number,
                        "n_documents": np.int32(20),
                        "n_relevant": np.where(np.arange(queries) < empty, 0, 5).astype(np.int32),
                        **values,
                    }
                )
            )
    record = {
        "name": name,
        "device": "cpu",
        "environment": {"processor": "a processor"},
        "spec": {
            "data": {"name": dataset, "settings": {}},
            "fold": fold,
            "trials": trials,
            "learner": "neural",
            "model": {},
        }
        | dict(spec or {}),
        "data": {
            "name": dataset,
            "title": TITLES[dataset],
            "origin": _origin(dataset),
            "splits": {"train": {"queries": 1200, "documents": 96000}},
        },
    }
    history = pd.DataFrame({"trial": [0], "candidate": [0], "epoch": [1], "train_loss": [1.0]})
    fits = pd.DataFrame(
        {
            "trial": [0],
            "candidate": [0],
            "selected": [True],
            "epochs": [20],
            "stopped_early": [True],
            "n_parameters": [1000],
        }
    )
    write_run(runs_folder / name, pd.concat(rows, ignore_index=True), history, fits, record)
    return runs_folder / name


def _origin(dataset: str) -> str:
    if dataset.endswith("_standin"):
        return "standin"
    return "generated" if dataset.startswith("cubic") else "real"


def make_plan(
    folder: Path,
    paper: str,
    product: str,
    experiments: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    edition: str = "demo",
    repeats: Sequence[str] = (),
) -> Path:
    """Write the plan of one product and return its file."""
    path = folder / f"{paper}-{product}.json"
    write_json(
        path,
        {
            "edition": edition,
            "paper": paper,
            "product": product,
            "experiments": experiments,
            "repeats": list(repeats),
            "margin": 0.01,
        },
    )
    return path


def ndcg_means(at_five: float) -> dict[str, float]:
    """NDCG@1, 5, 10 around ``at_five``, as far apart as in the paper."""
    return {"ndcg@1": at_five + 0.01, "ndcg@5": at_five, "ndcg@10": at_five + 0.02}


def alpha_sweep(
    folder: Path, trials: int = 3, dataset: str = "web30k_standin"
) -> list[dict[str, Any]]:
    """Runs of an inverted U over the seven values of Figure 2."""
    entries = []
    levels = {1: 0.425, 5: 0.438, 10: 0.44, 20: 0.439, 40: 0.438, 100: 0.431, 200: 0.42}
    for value, level in levels.items():
        name = f"alpha-{value}"
        spec = {"loss": {"alpha": value}}
        make_run(folder, name, ndcg_means(level), dataset=dataset, trials=trials, spec=spec)
        entries.append({"run": name, "settings": {"loss.alpha": value}})
    return entries


def depth_sweep(folder: Path, dataset: str = "web30k_standin") -> list[dict[str, Any]]:
    """Runs of B64 … B2048."""
    entries = []
    for number, width in enumerate((64, 128, 256, 512, 1024, 2048)):
        name = f"depth-{width}"
        hidden = [width >> i for i in range(number + 3)]
        make_run(
            folder,
            name,
            ndcg_means(0.43 + 0.005 * number - 0.01 * (number == 5)),
            dataset=dataset,
            spec={"loss": {"alpha": 10}, "model": {"hidden": hidden}},
        )
        entries.append({"run": name, "settings": {"model": f"B{width}"}})
    return entries


METHOD_LEVELS = {
    "ListMLE": 0.42,
    "RankNet": 0.432,
    "λMART_RankLib-like": 0.445,
    "λMART_GBM": 0.49,
    "ApproxNDCG": 0.455,
}


def table1_runs(
    folder: Path, dataset: str = "web30k_standin", methods: Mapping[str, float] = METHOD_LEVELS
) -> list[dict[str, Any]]:
    """One run per method of Bruch2019's Table 1 but the real RankLib."""
    entries = []
    for number, (method, level) in enumerate(methods.items()):
        name = f"{dataset}-{number}"
        make_run(folder, name, ndcg_means(level), dataset=dataset, trials=5)
        entries.append({"run": name, "settings": {"method": method}})
    return entries


def ohsumed_runs(
    folder: Path,
    methods: Mapping[str, float],
    dataset: str = "ohsumed",
    queries: int = 21,
    trials: int = 1,
) -> list[dict[str, Any]]:
    """One run per method and fold, with Table 4's metrics in both discounts."""
    labels = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg"]
    above_n = [-0.15, -0.2, -0.21, -0.22, 0.0]
    entries = []
    for number, (method, level) in enumerate(methods.items()):
        for fold in range(1, 6):
            name = f"{dataset}-{number}-f{fold}"
            means = {label: level + shift for label, shift in zip(labels, above_n, strict=True)}
            means |= {f"{label}/letor": value for label, value in means.items()}
            make_run(
                folder,
                name,
                means,
                dataset=dataset,
                fold=fold,
                trials=trials,
                queries=queries + (fold == 1),
                empty=0,
                first_query=100 * fold,
            )
            entries.append({"run": name, "settings": {"method": method, "fold": fold}})
    return entries


def measured(
    *plan_files: Path,
    margin: float = 0.01,
    runs: Path | None = None,
    only: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The claims of the paper of these plans, whose runs lie beside them in ``runs``.

    ``only`` names the claims to measure, where a test asks of no others.
    """
    plans = [read_json(file) for file in plan_files]
    published = claims.published_claims()
    if only is not None:
        published = published[published["claim"].isin(only)]
        assert len(published) == len(only)
    with mock.patch.object(claims, "published_claims", return_value=published):
        return claims.evaluate(plans, runs or plan_files[0].parent / "runs", margin)


def overall(*plan_files: Path, **options: Any) -> pd.DataFrame:
    """The rows with the verdict on a whole claim, by claim; options as of :func:`measured`."""
    frame = measured(*plan_files, **options)
    return frame[frame["comparison"] == claims.OVERALL].set_index("claim")


def verdicts_file(plan_file: Path) -> Path:
    """The claims of a plan's paper as the workflow writes them, for what quotes some."""
    out = plan_file.parent / f"{read_json(plan_file)['paper']}-claims.csv"
    claims.write_claims([plan_file], plan_file.parent / "runs", out, 0.01)
    return out


def build(
    plan_file: Path,
    runs_folder: Path,
    out: Path,
    prepared: Path = PREPARED,
    every_format: bool = False,
    **files: Any,
) -> list[Path]:
    """Build a product; the claims that it quotes were not measured, unless ``files`` say so.

    Unless ``every_format`` is wanted, a figure is drawn as SVG alone.
    """
    options = {"claims_file": _nothing_measured(read_json(plan_file)["edition"])} | files
    render = figures.render if every_format else _svg
    with mock.patch.object(figures, "render", render):
        return product.build(plan_file, runs_folder, out, prepared, **options)


def _svg(figure: Figure, title: str, caption: str) -> dict[str, bytes]:
    """As :func:`directrank.papers.shared.figures.render`, with empty files beside the SVG."""
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Title": title, "Description": caption})
    return {"png": b"", "pdf": b"", "svg": buffer.getvalue()}


@cache
def _nothing_measured(edition: str) -> Path:
    out = Path(mkdtemp()) / "claims.csv"
    claims.merge([], edition, out)
    return out
