"""The page on comparing one's own run: what it says to do is done, and gives what it says."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

import msrd_archive
from directrank.cli import main
from directrank.study.trec import read_qrels, read_run
from workflow_runs import ROOT

PAGE = (ROOT / "docs/your_data.md").read_text(encoding="utf-8")


def blocks(section: str) -> list[tuple[str, str]]:
    """Language and text of the blocks of code below a heading of the page."""
    text = re.split(r"\n##+ ", PAGE.split(f"\n### {section}\n")[1])[0]
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_a_run_of_prepared_data_is_placed_as_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for language, text in blocks("Prepared data, scored by your model"):
        if language == "console":
            for line in text.splitlines():
                assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
        elif language == "python":
            exec(compile(text, "your_data.md", "exec"), {})
        else:
            printed = capsys.readouterr().out
            assert text.strip() in printed
    # The random order is the one that it is better than.
    assert re.search(
        r" Of \d\d published methods it is significantly better than 1 and not distinguishable "
        r"from \d\d\.",
        printed,
    )
    assert re.search(r"^\| LambdaMART +\| +0\.9\d+ \| +−0\.0\d+ ± 0\.\d+ \|", printed, re.M)


def test_letor_text_becomes_judgements_and_a_run(tmp_path):
    ((_, commands), *_) = blocks("A collection's own files")
    for fold in range(1, 6):
        folder = tmp_path / f"MQ2008/Fold{fold}"
        folder.mkdir(parents=True)
        (folder / "test.txt").write_text(
            f"0 qid:{fold} 1:0.5 2:0.25 #docid = GX1-{fold} inc = 1 prob = 0.1\n"
            f"2 qid:{fold} 1:0.1 2:0.75 # docid = GX2-{fold}\n"
        )
    (tmp_path / "scores.txt").write_text("0.5\n0.75\n" * 5)
    subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=tmp_path, check=True)
    assert read_qrels(tmp_path / "mq2008.qrels") == {
        str(fold): {f"GX1-{fold}": 0, f"GX2-{fold}": 2} for fold in range(1, 6)
    }
    assert read_run(tmp_path / "mine.run").rankings["3"] == ["GX2-3", "GX1-3"]


def test_msrds_judgements_name_its_movies_without_those_that_it_lacks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/raw").mkdir(parents=True)
    lines = [*msrd_archive.lines(), "qid:2\tamelie\t404\t1"]
    msrd_archive.write(tmp_path / "data/raw/MSRD.zip", judgements=lines)
    (example,) = (text for kind, text in blocks("A collection's own files") if kind == "python")
    exec(compile(example, "your_data.md", "exec"), {})
    qrels = read_qrels(tmp_path / "msrd.qrels")
    assert qrels["2"] == {"3": 1, "6": 0}
    assert len(qrels) == 5
