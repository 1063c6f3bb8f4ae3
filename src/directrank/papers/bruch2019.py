"""Bruch, Zoghi, Bendersky, Najork (SIGIR 2019): revisiting approximate metric optimisation.

Queries without a relevant document are left out of every mean, as in the paper (section 3.1);
NDCG is in per cent; intervals are Student's t at 95 % over the trials.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy import stats
from scipy.special import expit

from directrank.errors import DataError
from directrank.papers import figures
from directrank.papers.claims import Claim, Expected, Finding, Outcome, difference_over_trials
from directrank.papers.evidence import (
    Evidence,
    PlannedRun,
    data_sentence,
    spread,
    standin_line,
)
from directrank.papers.product import FigureResult, Product, TableResult
from directrank.papers.tables import Layout, Section
from directrank.seeds import numpy_stream
from directrank.spec import value_at
from directrank.stats.intervals import Interval, mean_interval
from directrank.stats.tests import paired_randomisation

CUTOFFS = (1, 5, 10)

#: Experiment of Table 1 → what the paper calls the data set.
TABLE1_PARTS = {"table1_web30k": "Web30K", "table1_yahoo1": "Yahoo! Set 1"}

OWN = "ApproxNDCG"
RANKLIB = "λMART_RankLib"
RANKLIB_LIKE = "λMART_RankLib-like"

#: Rows of Table 1 in the paper's order; the stand-in for RankLib, which is not the paper's, follows
#: it. Method → (how it is set, its name in the published table or None).
TABLE1_METHODS = {
    "ListMLE": ("ListMLE", "ListMLE"),
    "RankNet": ("RankNet", "RankNet"),
    RANKLIB: ("λMART<sub>RankLib</sub>", "λMARTRankLib"),
    RANKLIB_LIKE: ("λMART<sub>RankLib-like</sub>", None),
    "λMART_GBM": ("λMART<sub>GBM</sub>", "λMARTGBM"),
    OWN: (OWN, OWN),
}

TABLE1_COLUMNS = (
    "edition",
    "paper_dataset",
    "dataset",
    "data",
    "method",
    "metric",
    "mean",
    "half_width",
    "trials",
    "queries",
    "published",
    "published_half_width",
    "difference",
    "difference_se",
    "difference_in_se",
    "status",
)

#: Trials behind each published mean (section 3.2).
PUBLISHED_TRIALS = 10


def ndcg(run: PlannedRun, split: str, cutoff: int) -> np.ndarray:
    """Mean NDCG@cutoff in per cent over the queries with a relevant document, ``[trials]``."""
    return 100 * run.trial_means(split, f"ndcg@{cutoff}", "exclude")


def alpha(run: PlannedRun) -> float:
    """The sigmoid exponent that a run was trained with."""
    return float(_setting(run, "loss.alpha"))


def depth(run: PlannedRun) -> str:
    """The paper's name of a run's network: B and the width of the first hidden layer."""
    return f"B{_setting(run, 'model.hidden')[0]}"


def figure1(evidence: Evidence) -> FigureResult:
    """Figure 1: the indicator and its sigmoid approximations (equation 6); analytic."""
    delta = np.linspace(-5, 5, 201)
    curves = [("Indicator", np.array([-5, 0, 0, 5.0]), np.array([0, 0, 1, 1.0]))]
    curves += [(f"α = {a}", delta, expit(a * delta)) for a in (1, 5, 10)]
    figure, axes = figures.new_figure(height=2.0)
    colors = (figures.BLACK, figures.BLUE, figures.VERMILLION, figures.GREEN)
    for (label, x, y), color, line in zip(curves, colors, ("-", "--", "-.", ":"), strict=True):
        axes.plot(x, y, color=color, linestyle=line, label=label)
    axes.set(xlabel="Δ", xticks=range(-4, 5, 2), yticks=np.linspace(0, 1, 5))
    axes.legend(loc="lower right")
    data = pd.concat(
        [pd.DataFrame({"curve": label, "delta": x, "value": y}) for label, x, y in curves]
    )
    caption = (
        "Sigmoid approximation 1 / (1 + exp(−αΔ)) of the indicator function Δ > 0 for several "
        f"values of α. Analytic: no data, no training. Edition {evidence.edition}."
    )
    return FigureResult(figure, data, caption)


def figure2(evidence: Evidence) -> FigureResult:
    """Figure 2: NDCG on the validation part against the sigmoid exponent α."""
    runs = sorted(evidence.runs("alpha_sweep"), key=alpha)
    return _sweep(
        evidence,
        runs,
        column="alpha",
        labels=[f"{alpha(run):g}" for run in runs],
        axis="α",
        what="Effect of the sigmoid exponent α of ApproxNDCG, one hidden layer",
    )


def figure3(evidence: Evidence) -> FigureResult:
    """Figure 3: NDCG on the validation part against the depth of the network."""
    runs = sorted(evidence.runs("depth_sweep"), key=lambda run: int(depth(run)[1:]))
    what = "Effect of the network's depth"
    alphas = sorted({alpha(run) for run in runs})
    if len(alphas) == 1:
        what += f", ApproxNDCG with α = {alphas[0]:g}"
    return _sweep(
        evidence,
        runs,
        column="model",
        labels=[depth(run) for run in runs],
        axis="Model",
        what=what + "; B64 has the hidden layers 64, 32, 16, and each next model one more in front",
    )


def summary(evidence: Evidence) -> FigureResult:
    """Table 1's NDCG@5 as a picture: the published values beside those measured here."""
    frames = _table1_parts(evidence)
    parts = [frame[frame["metric"] == "NDCG@5"] for frame in frames]
    rows = [len(part) for part in parts]
    figure, panels = figures.new_figure(
        height=0.75 + 0.19 * sum(rows) + 0.35 * len(rows),
        nrows=len(parts),
        squeeze=False,
        height_ratios=rows,
    )
    for axes, part in zip(panels[:, 0], parts, strict=True):
        y = np.arange(len(part))[::-1]
        figures.row_points(
            axes,
            y + 0.14,
            part["published"],
            part["published_half_width"],
            label="published",
            look=figures.PUBLISHED,
        )
        figures.row_points(
            axes,
            y - 0.14,
            part["mean"],
            part["half_width"],
            label="here",
            look=figures.REPRODUCED,
        )
        axes.set_yticks(y, [_picture_label(method) for method in part["method"]])
        axes.set_ylim(-0.6, len(part) - 0.4)
        axes.set_title(_part_title(part), loc="left")
    panels[-1, 0].set_xlabel("NDCG@5 (%)")
    entries = panels[0, 0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside upper center", ncols=2, frameon=False)
    runs = [run for experiment in TABLE1_PARTS for run in evidence.runs(experiment)]
    datasets = [run.dataset for run in runs]
    figures.small_print(figure, standin_line(datasets, evidence.edition))
    data = pd.concat(parts, ignore_index=True)
    caption = (
        "Test NDCG@5 in per cent of the methods of Table 1: published (10 trials) and here (mean "
        f"over {spread(_trials(data), 'trial')}), bars: 95% intervals over trials; queries without "
        f"a relevant document are left out. {_table1_data(evidence)} Edition {evidence.edition}."
    )
    return FigureResult(figure, data, caption)


def table1(evidence: Evidence) -> TableResult:
    """Table 1: ApproxNDCG beside the other methods on the test parts."""
    frames = _table1_parts(evidence)
    data = pd.concat(frames, ignore_index=True)
    compared = bool(_comparable(data).any())
    columns = ["Model"]
    for cutoff in CUTOFFS:
        columns += [f"NDCG@{cutoff}", "paper", *["diff. (SE)"] * compared]
    caption = (
        "Comparison of ranking models on the test parts: NDCG in per cent, mean over "
        f"{spread(_trials(data), 'trial')} with the half width of its 95% t interval; queries "
        "without a relevant document are left out. “paper” is the value printed there, of "
        f"{PUBLISHED_TRIALS} trials. "
    )
    if compared:
        caption += "“diff. (SE)” is ours minus the paper's in joint standard errors. "
    caption += f"{_table1_data(evidence)} Edition {evidence.edition}."
    sections = [_table1_section(frame, compared) for frame in frames]
    layout = Layout(caption, [*columns, "status"], sections, _table1_notes(data))
    return TableResult(data, layout)


def _setting(run: PlannedRun, path: str) -> Any:
    value = value_at(run.result.spec, path)
    if value is None:
        raise DataError(
            f"this run's specification has no '{path}'",
            "the experiment must set it",
            file=run.result.folder,
        )
    return value


def _sweep(
    evidence: Evidence,
    runs: Sequence[PlannedRun],
    column: str,
    labels: Sequence[str],
    axis: str,
    what: str,
) -> FigureResult:
    """NDCG@1, 5, 10 on the validation part with intervals, over equally spaced categories."""
    if not runs:
        raise DataError(f"nothing was run for {evidence.product}", "add runs to its experiment")
    dataset = runs[0].dataset
    rows = []
    for label, run in zip(labels, runs, strict=True):
        for cutoff in CUTOFFS:
            interval = mean_interval(ndcg(run, "vali", cutoff))
            rows.append(
                {
                    "edition": evidence.edition,
                    "dataset": dataset.title,
                    "data": dataset.kind,
                    "split": "validation",
                    column: label,
                    "metric": f"NDCG@{cutoff}",
                    "mean": interval.mean,
                    "half_width": interval.half_width,
                    "low": interval.low,
                    "high": interval.high,
                    "trials": interval.n,
                }
            )
    data = pd.DataFrame(rows)
    figure, axes = figures.new_figure(height=2.5)
    _draw_sweep(axes, data, labels)
    axes.set(xlabel=axis, ylabel="NDCG (%)")
    figures.small_print(figure, standin_line([dataset], evidence.edition))
    return FigureResult(figure, data, _sweep_caption(evidence, runs, what))


def _draw_sweep(axes: Axes, data: pd.DataFrame, labels: Sequence[str]) -> None:
    x = np.arange(len(labels))
    for number, (metric, curve) in enumerate(data.groupby("metric", sort=False)):
        # Side by side by a little, so that the bars of close curves can be told apart.
        shift = 0.08 * (number - 1)
        figures.interval_line(
            axes, x + shift, curve["mean"], curve["half_width"], label=metric, series=number
        )
    axes.set_xticks(x, labels)
    axes.grid(False, axis="x")
    figures.regular_ticks(axes, preferred=0.5)
    figures.legend_above(axes)


def _sweep_caption(evidence: Evidence, runs: Sequence[PlannedRun], what: str) -> str:
    trials = [run.n_trials for run in runs]
    text = (
        f"{what}: NDCG at ranks 1, 5, 10 on the validation part, mean over "
        f"{spread(trials, 'trial')}"
    )
    text += ", bars: 95% t interval" if min(trials) > 1 else ", without interval"
    text += (
        "; queries without a relevant document are left out. "
        f"{data_sentence(runs, 'vali', 'validation part')} "
    )
    if runs[0].dataset.standin:
        text += "Only the curves' shape can be compared with the paper, not their level. "
    return text + (
        "The paper gives this figure's values only as a picture, so none are drawn beside ours. "
        f"Edition {evidence.edition}."
    )


def _table1_parts(evidence: Evidence) -> list[pd.DataFrame]:
    """The tidy rows of each data set of Table 1 that something was run on."""
    frames = []
    for experiment, printed_name in TABLE1_PARTS.items():
        runs = {run.setting("method"): run for run in evidence.runs(experiment)}
        if runs:
            frames.append(_table1_rows(evidence, runs, printed_name))
    if not frames:
        raise DataError("no method of Table 1 was run", f"add runs to {' or '.join(TABLE1_PARTS)}")
    return frames


def _table1_data(evidence: Evidence) -> str:
    parts = [evidence.runs(experiment) for experiment in TABLE1_PARTS]
    return " ".join(data_sentence(runs, "test", "test part") for runs in parts if runs)


def _trials(data: pd.DataFrame) -> list[int]:
    return data["trials"].dropna().astype(int).tolist()


def _part_title(part: pd.DataFrame) -> str:
    """The paper's name of a data set, and whether something else is in its place here."""
    first = part.iloc[0]
    title = first["paper_dataset"]
    return title if first["data"] == "real" else f"{title} (here: {first['data']})"


def _picture_label(method: str) -> str:
    """A method's name with its index as mathematical text."""
    stem, _, index = method.partition("_")
    return stem + (rf"$_\mathrm{{{index}}}$".replace("-", r"\text{-}") if index else "")


def _table1_rows(
    evidence: Evidence, runs: dict[str, PlannedRun], printed_name: str
) -> pd.DataFrame:
    published = evidence.published("bruch2019_table1")
    published = published[published["Dataset"] == printed_name].set_index("Model")
    dataset = next(iter(runs.values())).dataset
    scale = next(iter(runs.values())).scale("test")
    queries = scale.queries - scale.empty
    methods = [*TABLE1_METHODS, *(method for method in runs if method not in TABLE1_METHODS)]
    rows = []
    for method in methods:
        name = TABLE1_METHODS.get(method, (method, None))[1]
        in_print = name in published.index
        if method not in runs and not in_print:
            continue
        for cutoff in CUTOFFS:
            column = f"NDCG@{cutoff}"
            row: dict[str, Any] = {
                "edition": evidence.edition,
                "paper_dataset": printed_name,
                "dataset": dataset.title,
                "data": dataset.kind,
                "method": method,
                "metric": column,
            }
            if in_print:
                row["published"] = published.loc[name, column]
                row["published_half_width"] = published.loc[name, f"{column}_ci95"]
            if method in runs:
                interval = mean_interval(ndcg(runs[method], "test", cutoff))
                row |= {
                    "mean": interval.mean,
                    "half_width": interval.half_width,
                    "trials": interval.n,
                    "queries": queries,
                }
                if in_print:
                    row |= _difference(interval, row["published"], row["published_half_width"])
            row["status"] = _status(method, method in runs, in_print, dataset.standin)
            rows.append(row)
    frame = pd.DataFrame(rows).reindex(columns=TABLE1_COLUMNS)
    return frame.astype({"trials": "Int64", "queries": "Int64"})


def _difference(ours: Interval, published: float, published_half_width: float) -> dict[str, float]:
    """Ours minus the published mean, its joint standard error, and the one in units of the other.

    Both standard errors come from 95 % t intervals of their numbers of trials.
    """
    ours_se = ours.half_width / _t_quantile(ours.n)
    published_se = published_half_width / _t_quantile(PUBLISHED_TRIALS)
    difference = ours.mean - published
    joint = math.hypot(ours_se, published_se)
    return {
        "difference": difference,
        "difference_se": joint,
        "difference_in_se": difference / joint,
    }


def _t_quantile(n: int) -> float:
    return float(stats.t.ppf(0.975, n - 1)) if n > 1 else math.nan


def _status(method: str, was_run: bool, in_print: bool, standin: bool) -> str:
    if not was_run:
        return "not run here (RankLib absent)" if method == RANKLIB else "not run here"
    if standin:
        return "stand-in: levels not comparable"
    return "compared" if in_print else "not in the paper's table"


def _comparable(frame: pd.DataFrame) -> pd.Series:
    """Which rows have a difference from the published value that means something."""
    return (frame["data"] == "real") & frame["difference_in_se"].notna()


def _table1_section(frame: pd.DataFrame, compared: bool) -> Section:
    rows = []
    for method, group in frame.groupby("method", sort=False):
        cells = [TABLE1_METHODS.get(method, (method, None))[0]]
        for row, comparable in zip(group.itertuples(), _comparable(group), strict=True):
            cells.append(_with_half_width(row.mean, row.half_width))
            cells.append(_with_half_width(row.published, row.published_half_width))
            if compared:
                difference = f"{row.difference_in_se:+.1f}".replace("-", "−")
                cells.append(difference if comparable else "")
        rows.append([*cells, group["status"].iloc[0]])
    return Section(_part_title(frame), rows)


def _with_half_width(mean: float, half_width: float) -> str:
    if math.isnan(mean):
        return ""
    return f"{mean:.2f}" + ("" if math.isnan(half_width) else f" (±{half_width:.2f})")


def _table1_notes(data: pd.DataFrame) -> list[str]:
    notes = []
    if (data["data"] == "stand-in").any():
        notes.append(
            "A stand-in has the shape of the paper's data, not its content: the order of the "
            "methods may be compared with the paper's, the levels may not."
        )
    if RANKLIB_LIKE in set(data["method"]):
        notes.append(
            "λMART<sub>RankLib-like</sub> is LightGBM with RankLib's settings (10 leaves, learning "
            "rate 0.1, one document per leaf); it is not RankLib and has no published value."
        )
    if (data["published"].isna() & data["mean"].notna()).any():
        notes.append("Where “paper” is empty, the paper prints no value.")
    return notes


def claim_rankers(
    evidence: Evidence,
    others: Sequence[str],
    above: bool,
    parts: Mapping[str, str] = TABLE1_PARTS,
) -> Outcome | None:
    """ApproxNDCG against ``others`` in Table 1 (C01 to C03).

    Args:
        evidence: of Table 1.
        others: methods of Table 1.
        above: whether ApproxNDCG is claimed to be the better one.
        parts: the data sets that the claim is about, as :data:`TABLE1_PARTS`.
    """
    findings, missing, remark = [], [], ""
    for experiment, printed_name in parts.items():
        runs = {run.setting("method"): run for run in evidence.runs(experiment)}
        for other in others:
            if other == RANKLIB and other not in runs and RANKLIB_LIKE in runs:
                other = RANKLIB_LIKE
                remark = "RankLib itself was not run: LightGBM with its settings is in its place."
            if not {OWN, other} <= set(runs):
                missing.append(f"{OWN} against {other} on {printed_name}")
                continue
            pair = (OWN, other) if above else (other, OWN)
            findings += [
                _finding(runs[pair[0]], runs[pair[1]], *pair, "test", cutoff) for cutoff in CUTOFFS
            ]
    return Outcome(findings, missing, remark) if findings else None


def claim_alpha(evidence: Evidence) -> Outcome | None:
    """Figure 2's inverted U, with 5 to 40 alike and 10 best in NDCG@5 (C04)."""
    runs = {f"{alpha(run):g}": run for run in evidence.runs("alpha_sweep")}
    if not runs:
        return None
    wanted = ("1", "5", "10", "20", "40", "100", "200")
    missing = [f"α = {value}" for value in wanted if value not in runs]

    def against(first: str, second: str, expected: Expected) -> Finding:
        names = (f"α = {first}", f"α = {second}")
        return _finding(runs[first], runs[second], *names, "vali", 5, expected)

    best = max(runs, key=lambda value: ndcg(runs[value], "vali", 5).mean())
    findings = [against(best, end, "more") for end in ("1", "200") if end in runs and end != best]
    findings += [
        against(first, second, "same")
        for first, second in itertools.combinations(wanted[1:5], 2)
        if first in runs and second in runs
    ]
    if "10" in runs and len(runs) > 1:
        rest = {value: run for value, run in runs.items() if value != "10"}
        rival = max(rest, key=lambda value: ndcg(rest[value], "vali", 5).mean())
        findings.append(against("10", rival, "first"))
    remark = f"The best α in NDCG@5 is {best}."
    return Outcome(findings, missing, remark) if findings else None


def claim_depth(evidence: Evidence) -> Outcome | None:
    """Figure 3: B1024 above B64 in NDCG@5 and @10, not significantly in NDCG@1 (C05)."""
    runs = {depth(run): run for run in evidence.runs("depth_sweep")}
    if not {"B64", "B1024"} <= set(runs):
        return None
    expected: dict[int, Expected] = {1: "same", 5: "more", 10: "more"}
    return Outcome(
        [
            _finding(runs["B1024"], runs["B64"], "B1024", "B64", "vali", cutoff, expected[cutoff])
            for cutoff in CUTOFFS
        ]
    )


def _finding(
    a: PlannedRun,
    b: PlannedRun,
    a_name: str,
    b_name: str,
    split: str,
    cutoff: int,
    expected: Expected = "more",
) -> Finding:
    """One run against another: Welch over trials and a paired test over queries, the larger p."""
    difference, low, high, p_trials = difference_over_trials(
        ndcg(a, split, cutoff), ndcg(b, split, cutoff)
    )
    metric = f"ndcg@{cutoff}"
    values = [run.query_values(split, metric, "exclude") for run in (a, b)]
    if not values[0].index.equals(values[1].index):
        raise DataError(
            f"{a_name} and {b_name} were not evaluated on the same queries",
            "train both on the same prepared data",
            file=a.result.folder,
        )
    generator = numpy_stream("bruch2019", "claims", a.result.name, b.result.name, metric)
    p_queries = paired_randomisation(*values, generator).p_value
    return Finding(
        comparison=f"{a_name} − {b_name}, NDCG@{cutoff}",
        expected=expected,
        dataset=a.dataset,
        sample=f"{a.n_trials} against {b.n_trials} trials, {len(values[0])} queries",
        test="Welch's t test over trials and paired randomisation test over queries, the larger p",
        effect=difference,
        low=low,
        high=high,
        unit="NDCG (%)",
        p_value=float(np.maximum(p_trials, p_queries)),
    )


CLAIMS: dict[str, Claim] = {
    "C01": Claim(("table1",), partial(claim_rankers, others=(RANKLIB,), above=True)),
    "C02": Claim(("table1",), partial(claim_rankers, others=("λMART_GBM",), above=False)),
    "C03": Claim(
        ("table1",),
        partial(
            claim_rankers,
            others=("ListMLE", "RankNet"),
            above=True,
            parts={"table1_web30k": "Web30K"},  # for Yahoo the paper prints no values
        ),
    ),
    "C04": Claim(("figure2",), claim_alpha),
    "C05": Claim(("figure3",), claim_depth),
}

PRODUCTS: dict[str, Product] = {
    "figure1": Product(
        "figure",
        "Figure 1 of Bruch et al. (2019): sigmoid approximation of the indicator function",
        (),
        figure1,
    ),
    "figure2": Product(
        "figure",
        "Figure 2 of Bruch et al. (2019): NDCG against the sigmoid exponent",
        ("alpha_sweep",),
        figure2,
    ),
    "figure3": Product(
        "figure",
        "Figure 3 of Bruch et al. (2019): NDCG against the depth of the network",
        ("depth_sweep",),
        figure3,
    ),
    "summary": Product(
        "figure",
        "Table 1 of Bruch et al. (2019) as a picture: published and reproduced NDCG@5",
        tuple(TABLE1_PARTS),
        summary,
    ),
    "table1": Product(
        "table",
        "Table 1 of Bruch et al. (2019): ranking models on the test sets",
        tuple(TABLE1_PARTS),
        table1,
    ),
}
