"""Numbers on the page of findings and the first page are those of the committed files."""

import re

import pandas as pd
import pytest

from workflow_runs import ROOT

TABLES = ROOT / "paper_tables/real/one_protocol"

#: A row of the table of collections, from its link on.
ROW = re.compile(
    r"\| \[[^]]+\]\(\.\./paper_tables/real/one_protocol/table_(\w+)\.md\) \| ([\d ]+) "
    r"\| ([\d ]+) of ([\d ]+) \| ([\d.]+) \| (\d+) % \| (\d+) %"
)


def number(text):
    return int(text.replace(" ", ""))


def rows():
    return ROW.findall((ROOT / "docs/findings.md").read_text(encoding="utf-8"))


def test_every_published_collection_has_a_row():
    published = {path.stem.removeprefix("per_query_") for path in TABLES.glob("per_query_*")}
    assert {row[0] for row in rows()} == published


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_collection_has_the_numbers_of_its_pairs(row):
    name, queries, differ, pairs, half_width, settled, closely = row
    data = pd.read_csv(TABLES / f"table_{name}_pairs.csv")
    assert data["queries"].unique().tolist() == [number(queries)]
    sure = data["p_corrected"] < 0.05
    assert (sure.sum(), len(data)) == (number(differ), number(pairs))
    assert f"{data['half_width'].median():.{len(half_width) - 2}f}" == half_width
    assert round(100 * (sure | (data["verdict"] == "equivalent")).mean()) == int(settled)
    text = (TABLES / f"table_{name}_pairs.md").read_text(encoding="utf-8")
    assert f"{settled}% (within ±0.01) and {closely}% (within ±0.005)" in text


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_the_first_page_counts_the_same_pairs(row):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{row[2]}\b", readme), f"{row[2]} pairs on {row[0]} are not on it"


def test_the_first_page_has_the_verdicts_on_every_collection():
    claims = pd.read_csv(ROOT / "paper_tables/real/claims_by_collection.csv")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    titles = {"LETOR 3.0 OHSUMED": "OHSUMED", "LETOR 4.0 MQ2008": "MQ2008"}
    for title, own in claims.groupby("dataset"):
        of = own.groupby("verdict")["claim"].apply(list).to_dict()
        cells = [
            ", ".join(of.get(verdict, ["–"]))
            for verdict in ("holds", "contradicted", "same direction, could be chance")
        ]
        name = titles.get(title, title.split(" (")[0])
        row = f"| {name} | {' | '.join(cells)} | {len(of.get('cannot tell', []))} |"
        assert row in readme, row


def section(title):
    text = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    return text.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_leaders_among_pobrotyns_losses_are_those_of_the_table():
    data = pd.read_csv(ROOT / "paper_tables/real/pobrotyn2021/table_ohsumed.csv")
    best = data.loc[data.groupby("metric")["mean"].idxmax()].set_index("metric")["method"]
    names = best.str.replace("^T", "ᵀ", regex=False)
    assert (
        f"{names['NDCG@5']} has the highest mean NDCG@5 and NDCG, "
        f"{names['NDCG@10']} the highest NDCG@10"
    ) in section("Pobrotyn2021")
    assert names["NDCG"] == names["NDCG@5"]


def test_the_speed_ups_of_ranknet_are_those_of_the_table():
    data = pd.read_csv(ROOT / "paper_tables/real/burges2006/table_speed_cubic_times.csv")
    found = data[data["quantity"] == "speed-up V2 over V1"].set_index("net")["value"]
    factors = f"{found['linear']:.1f} and {found['two_layer']:.1f} times as fast"
    assert factors in section("Burges2006")
