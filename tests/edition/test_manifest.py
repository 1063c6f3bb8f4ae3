"""The manifest of an edition, and that the committed ones are of the committed products."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from directrank.edition.manifest import made_elsewhere, write
from directrank.study.published import SUFFIX
from directrank.system.errors import DataError
from directrank.system.io import read_json, sha256_of, write_json
from papers_synthetic import make_plan, make_run
from studies import study_of
from workflow_runs import ROOT

COMMITTED = ("demo", "real")


def made(folder: Path) -> tuple[Path, Path]:
    """A plan with one run, and its product."""
    run = make_run(folder / "results/runs", "one", {"ndcg@10": 0.5})
    record = read_json(run / "run.json")
    record["environment"] = {
        "revision": "abc", "processor": "P", "packages": {"torch": "2.13.0"},
        "arithmetic": "portable",
    }  # fmt: skip
    write_json(run / "run.json", record | {"started": "2026-11-27T10:00:00Z"})
    cells = [{"run": "one", "settings": {"method": "RankNet"}}]
    plan = make_plan(folder, "bruch2019", "table1", {"losses_web30k": cells})
    product = folder / "tables/bruch2019/table1.csv"
    product.parent.mkdir(parents=True)
    product.write_text("a\n1\n", encoding="utf-8")
    return plan, product


def entry(folder: Path, plan: Path, known: Path | None = None) -> dict:
    out = folder / "manifest.json"
    write([plan], folder / "results", folder / "figures", folder / "tables", out, known)
    return read_json(out)["products"]["bruch2019/table1"]


def test_processors_are_told_where_they_differ_from_the_committed_ones(tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    write_json(file, {"products": {"a": {"processors": ["P"]}, "b": {"runs": 0}}})
    assert made_elsewhere(file) == ([], [])  # nothing is committed
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    assert made_elsewhere(file) == ([], [])
    write_json(file, {"products": {"a": {"processors": ["Q"]}, "b": {"processors": ["P"]}}})
    assert made_elsewhere(file) == (["P"], ["P", "Q"])


def test_a_product_has_the_commits_processors_and_settings_of_its_runs(tmp_path: Path) -> None:
    plan, product = made(tmp_path)
    found = entry(tmp_path, plan)
    assert (found["runs"], found["commits"], found["processors"]) == (1, ["abc"], ["P"])
    assert found["arithmetic"] == ["portable"]
    assert found["trained"] == ["2026-11-27T10:00:00Z", "2026-11-27T10:00:00Z"]
    assert found["sha256"] == sha256_of(product)
    record = tmp_path / "results/runs/one/run.json"
    changed = read_json(record)
    changed["spec"]["trials"] = 7
    write_json(record, changed)
    assert entry(tmp_path, plan)["settings"] != found["settings"]


def test_a_product_that_is_drawn_again_elsewhere_keeps_what_is_known_of_its_runs(
    tmp_path: Path,
) -> None:
    plan, product = made(tmp_path)
    before = entry(tmp_path, plan)
    (tmp_path / "results/runs/one/run.json").unlink()
    with pytest.raises(DataError, match="run is missing"):
        entry(tmp_path, plan)
    product.write_text("b\n1\n", encoding="utf-8")
    after = entry(tmp_path, plan, tmp_path / "manifest.json")
    assert after["sha256"] == sha256_of(product) != before["sha256"]
    assert {**after, "sha256": ""} == {**before, "sha256": ""}


@pytest.mark.parametrize("edition", COMMITTED)
def test_a_committed_manifest_is_of_the_committed_products(edition: str) -> None:
    products = read_json(ROOT / "paper_tables" / edition / "manifest.json")["products"]
    for name, facts in products.items():
        paper = name.split("/")[0]
        files = [
            ROOT / top / edition / paper / facts["file"] for top in ("paper_tables", "figures")
        ]
        (file,) = [file for file in files if file.is_file()]
        assert sha256_of(file) == facts["sha256"], file
        assert facts.keys() & {"commits", "note"} or facts["runs"] == 0
    for top, suffixes in (("figures", (".csv",)), ("paper_tables", (".csv", SUFFIX))):
        for paper in study_of(edition).config["papers"]:
            for file in sorted((ROOT / top / edition / paper).iterdir()):
                is_times = file.name.endswith("_times.csv") or file.name.startswith("claims")
                if file.suffix in suffixes and not is_times:
                    assert f"{paper}/{file.stem}" in products, file
