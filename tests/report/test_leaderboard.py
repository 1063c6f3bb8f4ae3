"""The leaderboard's data are those of the tables."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from directrank import losses
from directrank.report.leaderboard import FAMILIES, write
from directrank.system.errors import DataError
from workflow_runs import ROOT

TABLES = ROOT / "paper_tables/real/one_protocol"


@pytest.fixture(scope="module")
def msrd(tmp_path_factory: pytest.TempPathFactory) -> dict:
    out = tmp_path_factory.mktemp("page") / "leaderboard.html"
    write(TABLES / "compared.json", out)
    text = out.read_text(encoding="utf-8")
    found = re.search(r"const COLLECTIONS = (\[.*\]);\n", text)
    assert found
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", text)  # it loads nothing else
    return {each["name"]: each for each in json.loads(found[1].replace("<\\/", "</"))}["msrd"]


def test_every_loss_has_one_family() -> None:
    named = [loss for members in FAMILIES.values() for loss in members]
    assert sorted(named) == sorted(set(losses.REGISTRY) - {"composed", "lambda_family"})


def test_every_method_has_the_means_of_its_table(msrd: dict) -> None:
    table = pd.read_csv(TABLES / "table_msrd.csv").set_index(["method", "scorer", "metric"])
    trained = table[table.index.get_level_values("scorer") != "untrained"]
    assert len(msrd["methods"]) * 4 == len(trained)
    for method in msrd["methods"]:
        for metric, (mean, half_width) in method["values"].items():
            row = table.loc[(method["name"], method["scorer"], metric)]
            assert (mean, half_width) == pytest.approx((row["mean"], row["half_width"]), rel=1e-3)


def test_every_pair_has_the_verdict_of_its_table(msrd: dict) -> None:
    pairs = pd.read_csv(TABLES / "table_msrd_pairs.csv")
    assert len(msrd["pairs"]) == len(pairs)
    for number in (0, 777, len(pairs) - 1):
        a, b, difference, half_width, p, _, verdict, tied = msrd["pairs"][number]
        row = pairs.iloc[number]
        names = [(msrd["methods"][one]["name"], msrd["methods"][one]["scorer"]) for one in (a, b)]
        assert names == [(row["method"], row["scorer"]), (row["other"], row["other_scorer"])]
        assert difference == pytest.approx(row["difference"], rel=1e-3)
        assert half_width == pytest.approx(row["half_width"], rel=1e-3)
        assert p == pytest.approx(row["p_corrected"], rel=1e-3)
        assert (msrd["verdicts"][verdict], tied) == (row["verdict"], row["tied"])
    beyond = pairs[~pairs["tied"]]["difference"].abs()
    assert beyond.min() > msrd["distance"] > 0


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    shutil.copy(TABLES / "compared.json", tmp_path)
    with pytest.raises(DataError, match="table is missing"):
        write(tmp_path / "compared.json", tmp_path / "out.html")
