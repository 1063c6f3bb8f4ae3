"""The table in ambiguities.md of how much the open choices matter, from the committed results.

``python docs/effects.py`` rewrites it; a test compares it with the files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from directrank.papers.shared.pages import write_part

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/ambiguities.md"
BEGIN = "<!-- written by docs/effects.py -->\n"
END = "<!-- end -->\n"

#: The files from which an effect can be read; the first that exists is used.
Files = tuple[str, ...]
#: From a file's rows to a description of the comparison and the range in points (hundredths).
Effect = Callable[[pd.DataFrame], tuple[str, float, float]]


def empty_queries(rows: pd.DataFrame) -> tuple[str, float, float]:
    """Counting empty queries as 1 against counting them as 0: their share, exactly."""
    share = (rows["test_empty"] / rows["test_queries"]) * 100
    return (
        "NDCG of any method on Web30K: empty queries counted as 1 instead of 0",
        share.min(),
        share.max(),
    )


def empty_under_one_protocol(rows: pd.DataFrame) -> tuple[str, float, float]:
    """The same on the test queries of the comparison of all losses."""
    wide = rows.pivot_table(index=["scorer", "method"], columns="empty_queries", values="mean")
    gain = (wide["one"] - wide["zero"]) * 100
    return "NDCG@10 of every loss: empty queries counted as 1 instead of 0", gain.min(), gain.max()


def discount(rows: pd.DataFrame) -> tuple[str, float, float]:
    """The printed discount against LETOR's."""
    rows = rows[rows["metric"] == "NDCG@10"].pivot(
        index="method", columns="discount", values="mean"
    )
    gain = (rows["log2"] - rows["letor"]) * 100
    return "NDCG@10: the printed discount instead of that of LETOR's tool", gain.min(), gain.max()


def map_at_k(rows: pd.DataFrame) -> tuple[str, float, float]:
    """MAP@5 as the released code computes it against that of the text."""
    wide = rows.pivot_table(index="method", columns="metric", values="mean")
    gain = (wide["MAP@5"] - wide["AP@5"]) * 100
    return "MAP@5: as in the released code instead of the text", gain.min(), gain.max()


def ties(rows: pd.DataFrame) -> tuple[str, float, float]:
    """The order of the file against the mean over all orders of tied documents."""
    gain = rows["ndcg@5"].abs() * 100
    return (
        "nDCG@5: ties in the order of the file instead of the mean over all orders",
        gain.min(),
        gain.max(),
    )


def initial_weights(rows: pd.DataFrame) -> tuple[str, float, float]:
    """Small initial weights against large ones."""
    last = rows[rows["split"] == "test"].set_index("init_bound")["ndcg"] * 100
    others = last[last.index < 1] - last[1.0]
    return (
        "NDCG@n of ApproxNDCG: initial weights of at most 0.1 instead of 1",
        others.min(),
        others.max(),
    )


def restarts(rows: pd.DataFrame) -> tuple[str, float, float]:
    """The best of 100 random starts against one."""
    rows = rows[(rows["method"] == "ApproxNDCG") & (rows["discount"] == "letor")]
    ended = rows[rows["cap"] == rows["cap"].max()]
    wide = ended.pivot(index="alpha", columns="restarts", values="mean")
    gain = (wide[100] - wide[1]) * 100
    return (
        "training NDCG@5 of ApproxNDCG: the best of 100 random starts instead of one",
        gain.min(),
        gain.max(),
    )


def stopping(rows: pd.DataFrame) -> tuple[str, float, float]:
    """Algorithm 1 to its stopping rule against a cap of 100 epochs."""
    wide = rows.pivot(index="method", columns="cap", values="NDCG@n") * 100
    gain = wide[wide.columns.max()] - wide[100]
    return (
        "NDCG@n of ApproxNDCG: trained to the stopping rule instead of for 100 epochs",
        gain.min(),
        gain.max(),
    )


def chosen_by_test(rows: pd.DataFrame) -> tuple[str, float, float]:
    """An architecture chosen by test score against one chosen by validation."""
    gain = rows[rows["selection"] == "test"]["gain_over_validation"] * 100
    return (
        "nDCG@5: architecture chosen on the test set instead of the validation set",
        gain.min(),
        gain.max(),
    )


def released_code(rows: pd.DataFrame) -> tuple[str, float, float]:
    """The parts of the released code that the text does not mention."""
    rows = rows[(rows["metric"] == "nDCG@5") & (rows["setting"] != "as released")]
    gain = rows[rows["batch_queries"] == 1]["difference"] * 100
    return (
        "nDCG@5: without the output norm, dropout or schedule of the released code",
        gain.min(),
        gain.max(),
    )


def wassrank(rows: pd.DataFrame) -> tuple[str, float, float]:
    """The two configurations of WassRank in the released code."""
    return _two_rows(rows, "WassRank", "WassRank (20 rounds, gap 100)", "configuration")


def lightgbm(rows: pd.DataFrame) -> tuple[str, float, float]:
    """LightGBM's defaults against truncation at 20 without normalisation."""
    method = "LambdaMART(L)"
    return _two_rows(rows, method, f"{method}, cut 20, unnormalised", "LightGBM's defaults")


def _two_rows(rows: pd.DataFrame, one: str, other: str, what: str) -> tuple[str, float, float]:
    values = rows[rows["metric"] == "nDCG@5"].groupby("method")["mean"].max()
    gain = (values[other] - values[one]) * 100
    return f"nDCG@5, {what}: “{other}” instead of “{one}”", gain, gain


def smoothness(rows: pd.DataFrame) -> tuple[str, float, float]:
    """α and τ chosen on the test set against those chosen on the validation set."""
    wide = rows.pivot(index="loss", columns="row", values="test")
    gain = wide["chosen on test, per trial"] - wide["chosen on validation, per trial"]
    return (
        "NDCG@5: α or τ chosen on the test set instead of the validation set",
        gain.min(),
        gain.max(),
    )


def sinkhorn(rows: pd.DataFrame) -> tuple[str, float, float]:
    """Other numbers of rounds of Sinkhorn scaling against the paper's 30."""
    gain = rows.loc[rows["rounds"] != 30, "gain"]
    return (
        "NDCG@5 of NeuralNDCG: 0, 1 or 300 rounds of scaling instead of 30",
        gain.min(),
        gain.max(),
    )


def recipe(rows: pd.DataFrame) -> tuple[str, float, float]:
    """LambdaRank's gain over RankNet under all readings of the artificial data."""
    gain = rows[rows["level"] == 10]["difference"] * 100
    return (
        "gain of LambdaRank over RankNet in NDCG@10, over readings of the data",
        gain.min(),
        gain.max(),
    )


def _both(folder: str, product: str) -> Files:
    """The real edition's file, otherwise the demo's."""
    return tuple(f"{folder}/{edition}/{product}.csv" for edition in ("real", "demo"))


EFFECTS: tuple[tuple[Files, Effect], ...] = (
    (("paper_tables/published/web30k_empty_queries.csv",), empty_queries),
    (
        (
            "paper_tables/real/one_protocol/table_ohsumed_empty.csv",
            "paper_tables/demo/one_protocol/table_msrd_sample_empty.csv",
        ),
        empty_under_one_protocol,
    ),
    (_both("paper_tables", "qin2010/table4"), discount),
    (_both("paper_tables", "yu2020/table4"), map_at_k),
    (_both("figures", "yu2020/ties"), ties),
    (_both("figures", "qin2010/initialisation"), initial_weights),
    (_both("paper_tables", "qin2010/table5"), restarts),
    (("paper_tables/real/qin2010/stopping.csv",), stopping),
    (_both("paper_tables", "yu2020/table_selection"), chosen_by_test),
    (_both("paper_tables", "yu2020/table_ablation"), released_code),
    (_both("paper_tables", "yu2020/table4"), wassrank),
    (_both("paper_tables", "yu2020/table4"), lightgbm),
    (_both("paper_tables", "pobrotyn2021/table_selection"), smoothness),
    (
        (
            "paper_tables/real/pobrotyn2021/table_sinkhorn_ohsumed.csv",
            "paper_tables/demo/pobrotyn2021/table_sinkhorn.csv",
        ),
        sinkhorn,
    ),
    (_both("paper_tables", "burges2006/table_recipe"), recipe),
)


def table(root: Path = ROOT) -> str:
    """The Markdown table, the largest effect first.

    Args:
        root: the repository's folder.
    """
    found = []
    for files, effect in EFFECTS:
        path = next((root / file for file in files if (root / file).is_file()), None)
        if path is not None:
            rows = pd.read_csv(path)
            what, low, high = effect(rows)
            data = rows["dataset"].iloc[0] if "dataset" in rows else "counts of the real data"
            found.append(
                (max(abs(low), abs(high)), what, _points(low, high), data, _link(path, root))
            )
    lines = ["| what is compared | points | on | read it in |", "| --- | ---: | --- | --- |"]
    lines += [
        f"| {what} | {points} | {data} | {link} |"
        for _, what, points, data, link in sorted(found, key=lambda row: -row[0])
    ]
    return "\n".join(lines) + "\n"


def _points(low: float, high: float) -> str:
    ends = dict.fromkeys(f"{value:+.2f}".replace("-", "−") for value in (low, high))
    return " to ".join(ends)


def _link(path: Path, root: Path) -> str:
    page = path.with_suffix(".md") if path.with_suffix(".md").is_file() else path
    name = path.relative_to(root).with_suffix("").as_posix().partition("/")[2]
    return f"[{name}](../{page.relative_to(root).as_posix()})"


if __name__ == "__main__":
    write_part(PAGE, BEGIN, END, f"\n{table()}\n")
