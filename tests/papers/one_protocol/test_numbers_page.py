"""The page with all numbers of one protocol."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from directrank.papers.one_protocol import numbers_page


def test_a_method_that_could_not_be_trained_has_dashes(tmp_path: Path) -> None:
    ranked = {"mean": 0.5, "half_width": 0.01, "first_place": 1, "last_place": 1}
    rows = [
        {"method": "RankNet", "metric": "NDCG@10", **ranked, "better_than": 0, "worse_than": 0},
        {"method": "LambdaMART", "failed": "no tree found a split"},
    ]
    folder = tmp_path / "mine/one_protocol"
    folder.mkdir(parents=True)
    data = pd.DataFrame(rows).assign(dataset="mine", scorer="linear")
    data.to_csv(folder / "table_mine.csv", index=False)
    (folder / "table_mine.md").write_text("# One protocol, mine\n", encoding="utf-8")
    numbers_page.write([folder / "table_mine.md"], folder / "README.md")
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in lines
        if line.startswith("| linear")
    ]
    assert cells == [
        ["linear", "RankNet", "0.500 ± 0.010", "1–1", "0", "0"],
        ["linear", "LambdaMART", "–", "–", "–", "–"],
    ]
