import json
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml

from directrank.edition.configuration import edition_with_defaults
from directrank.edition.plan import load
from directrank.study.specification import candidate_settings
from directrank.system.errors import ConfigError
from directrank.system.schema import read_yaml
from studies import study_of, workflow_of
from workflow_runs import ROOT, TINY, edition, output_of, snakemake, tables

pytestmark = pytest.mark.slow

RUNS, BATCHES = 4, 2  # of the tiny edition


def planned(process) -> dict[str, int]:
    """Jobs per rule of a dry run."""
    lines = [line.split() for line in (process.stdout + process.stderr).splitlines()]
    counts = {}
    for words in lines:
        if len(words) == 2 and words[1].isdigit():
            counts[words[0]] = int(words[1])
    return counts


def test_an_edition_leaves_its_figures_tables_claims_and_results(finished):
    for form in ("png", "pdf", "svg", "csv"):
        assert (finished / f"figures/tiny/bruch2019/figure1.{form}").stat().st_size > 100
    for form in ("csv", "md", "tex"):
        assert (finished / f"paper_tables/tiny/bruch2019/table1.{form}").stat().st_size > 100
    assert (finished / "paper_tables/tiny/claims.md").stat().st_size > 100
    assert (finished / "report/tiny/report.html").stat().st_size > 10_000
    records = list((finished / "results/tiny/runs").glob("*/run.json"))
    assert len(records) == RUNS
    for path in records:
        record = json.loads(path.read_text(encoding="utf-8"))
        assert record["name"] == path.parent.name
        assert record["data"]["origin"] == "standin"
        assert record["environment"]["packages"]["torch"]


def test_a_log_begins_with_the_command_that_makes_the_same_bytes_again(finished, tmp_path):
    logs = list((finished / "logs/tiny/fit").glob("*.log"))
    assert len(logs) == RUNS
    for log in logs:
        line = log.read_text(encoding="utf-8").splitlines()[0]
        assert line.startswith("$ env ")
        assert " directrank fit " in line
    log = next(log for log in logs if "approx_ndcg" in log.stem)
    begun, *arguments = shlex.split(log.read_text(encoding="utf-8").splitlines()[0])
    assert begun == "$"
    program, out = arguments.index("directrank"), arguments.index("--out") + 1
    made, arguments[out] = finished / arguments[out], str(tmp_path / "again")
    arguments[program : program + 1] = [sys.executable, "-m", "directrank"]
    subprocess.run(arguments, cwd=finished, check=True, capture_output=True)
    for name in ("per_query.parquet", "models/0.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (made / name).read_bytes()


def test_a_second_run_does_nothing(finished):
    process = snakemake(finished)
    assert process.returncode == 0
    assert "Nothing to be done" in output_of(process)


def test_a_finished_folder_that_is_moved_with_its_clone_has_to_do_what_changes_there(
    finished, tmp_path
):
    clone, folder = tmp_path / "clone", tmp_path / "elsewhere"
    unneeded = shutil.ignore_patterns("__pycache__", "raw", "prepared")
    for part in ("src", "workflow", "config", "data", "paper_tables/published"):
        shutil.copytree(ROOT / part, clone / part, ignore=unneeded)
    shutil.copy(ROOT / "Snakefile", clone)
    shutil.copytree(finished, folder)
    process = snakemake(folder, "-n", forked=False, root=clone)
    assert process.returncode == 0, output_of(process)
    assert "Nothing to be done" in output_of(process)
    published = clone / "paper_tables/published/bruch2019_table1.csv"
    published.write_text(published.read_text().replace("0.", "0.9", 1))
    jobs = planned(snakemake(folder, "-n", forked=False, root=clone))
    assert jobs["products_bruch2019"] == 1
    assert "fit" not in jobs
    kernel = clone / "src/directrank/kernels/listmle.py"
    kernel.write_text(f"{kernel.read_text()}# changed\n")
    jobs = planned(snakemake(folder, "-n", forked=False, root=clone))
    assert jobs["batch"] == jobs["fit"] == 1  # at once, and not the batch without ListMLE


def test_another_number_of_cores_and_another_folder_give_a_run_the_same_bytes(finished, made_again):
    folder, runs = made_again
    assert sorted(path.name for path in folder.glob("results/tiny/runs/*")) == runs
    assert len(runs) == 3
    same = [f"{run}/per_query.parquet" for run in runs]
    same += [f"{run}/models/{trial}.safetensors" for run in runs[:1] for trial in (0, 1)]
    assert runs[0].startswith("web30k_standin-approx_ndcg-")
    for name in same:
        made, again = (top / "results/tiny/runs" / name for top in (finished, folder))
        assert made.read_bytes() == again.read_bytes()


@pytest.mark.long
def test_another_number_of_cores_and_another_folder_give_the_same_bytes(finished, tmp_path):
    process = snakemake(tmp_path, *tables(finished), "--cores", "1")
    assert process.returncode == 0, output_of(process)
    first, second = tables(finished), tables(tmp_path)
    assert len(first) >= 3
    assert first == second
    for path in finished.glob("results/tiny/runs/*/per_query.parquet"):
        assert path.read_bytes() == (tmp_path / path.relative_to(finished)).read_bytes()


def test_a_changed_setting_reruns_what_depends_on_it_alone(finished, tmp_path):
    content = yaml.safe_load(TINY.read_text(encoding="utf-8"))
    change = {"where": {"loss.name": "approx_ndcg"}, "set": {"loss.alpha": 12}}
    changed = edition(tmp_path, overrides=[*content["overrides"], change])
    process = snakemake(finished, "-n", config=changed)
    assert process.returncode == 0, output_of(process)
    jobs = planned(process)
    assert jobs["fit"] == 1  # the batch of three runs, of which two are current
    assert jobs["products_bruch2019"] == 1
    assert "prepare" not in jobs
    assert "Nothing to be done" in output_of(snakemake(finished, "-n"))  # it has changed nothing


def test_a_run_that_is_removed_is_trained_again_alone_and_products_follow(finished, tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(finished, folder, symlinks=True)
    runs = sorted((folder / "results/tiny/runs").iterdir())
    (removed,) = (run for run in runs if "listmle" in run.name)
    before = {run: (run / "run.json").stat().st_mtime_ns for run in runs}
    values, table = (removed / "per_query.parquet").read_bytes(), tables(folder)
    shutil.rmtree(removed)
    (folder / "figures/tiny/bruch2019/figure1.csv").write_text("to be drawn again")
    jobs = planned(snakemake(folder, "-n"))
    assert jobs["fit"] == jobs["products_bruch2019"] == jobs["report_page"] == 1
    assert snakemake(folder).returncode == 0
    after = {run: (run / "run.json").stat().st_mtime_ns for run in runs}
    assert [run for run in runs if before[run] != after[run]] == [removed]
    assert (removed / "per_query.parquet").read_bytes() == values
    assert tables(folder) == table
    assert "Nothing to be done" in output_of(snakemake(folder, "-n"))


def test_a_dry_run_prints_jobs_and_commands(tmp_path):
    process = snakemake(tmp_path, "-n", "-p")
    assert process.returncode == 0, output_of(process)
    printed = output_of(process)
    assert printed.count("Training bruch2019-") == BATCHES
    assert printed.count("-m directrank train results/tiny/batches/plan/") == BATCHES


def test_results_that_were_committed_do_not_count_as_done(finished, tmp_path):
    for folder in ("figures", "paper_tables"):
        shutil.copytree(finished / folder, tmp_path / folder)
    jobs = planned(snakemake(tmp_path, "-n"))
    assert jobs["fit"] == BATCHES
    assert jobs["products_bruch2019"] == 1
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("name", ["demo", "real", "paper", "rehearsal"])
def test_every_edition_plans_without_any_data(name):
    plan = study_of(name)
    assert len(plan.runs) > 10
    assert set(plan.run_data.values()) <= set(plan.data)


def test_the_rehearsal_makes_what_the_papers_scale_makes_with_as_little_training_as_possible():
    rehearsal, paper = (
        edition_with_defaults(read_yaml(ROOT / f"config/{name}.yaml"), ROOT)
        for name in ("rehearsal", "paper")
    )
    assert rehearsal["papers"]["bruch2019"].pop("without") == ["λMART_RankLib"]
    assert rehearsal["papers"] == paper["papers"]
    assert rehearsal["overrides"][: len(paper["overrides"])] == paper["overrides"]
    for name in ("cubic", "cubic_long", "cubic_recipe", "cubic_symmetric", "cubic_even"):
        assert rehearsal["datasets"][name] == paper["datasets"][name]
    # Stand-ins take the places of all collections but one.
    archives = {name for name, item in rehearsal["datasets"].items() if item["source"] == "archive"}
    assert archives == {"ohsumed"}
    assert set(study_of("rehearsal").products) == set(study_of("paper").products)
    compared = 0
    for spec in study_of("rehearsal").runs.values():
        tuned = candidate_settings(spec)
        if {"loss.name", "loss.iterations"} <= set(tuned[0]):  # tables compare these
            assert len(tuned) == 4
            compared += 1
        else:
            assert len(tuned) == 1
        assert spec["trials"] == 1
        assert spec.get("training", {}).get("max_epochs", 1) <= 2
        assert spec["model"].get("n_trees", 2) == spec["model"].get("rounds", 2) == 2
    assert compared == 2


@pytest.mark.long
def test_the_papers_scale_is_planned_and_nothing_written(tmp_path):
    process = snakemake(tmp_path, "-n", config=ROOT / "config/paper.yaml")
    assert process.returncode == 0, output_of(process)
    jobs = planned(process)
    workflow = workflow_of(study_of("paper"))
    long = sum(batch.is_long for batch in workflow.batches.values())
    assert jobs["fit_long"] == long > 100
    assert jobs["fit"] == len(workflow.batches) - long > 100
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edtion": "x"}, "unknown key 'edtion' at the top level"),
        ({"datasets": {"web30k": {"source": "standin"}}}, "where data set 'yahoo1' comes from"),
        ({"papers": {"bruch2019": {"products": ["figure9"]}}}, "has no product 'figure9'"),
        ({"papers": {"bruch2091": {"products": ["figure1"]}}}, "did you mean 'bruch2019'"),
        ({"overrides": [{"set": {"loss": {"name": "aprox_ndcg"}}}]}, "did you mean 'approx_ndcg'"),
        ({"overrides": [{"set": {"trials": 0}}]}, "trials"),
        (
            {"overrides": [{"where": {"learner": "neural"}, "set": {"training.epochs": 3}}]},
            "unknown key 'epochs' at training",
        ),
        (
            {"overrides": [{"where": {"learner": "lightgbm"}, "set": {"model.leaves": 3}}]},
            "no option 'leaves'",
        ),
        ({"overrides": [{"where": {"learner": "neurla"}, "set": {"trials": 1}}]}, "matches no run"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused_with_a_remedy(changes, message):
    content = yaml.safe_load(TINY.read_text(encoding="utf-8"))
    with pytest.raises(ConfigError) as caught:
        load({**content, **changes}, ROOT)
    assert message in str(caught.value)
    assert caught.value.remedy


def test_what_is_wrong_with_a_configuration_is_printed_before_anything_starts(tmp_path):
    process = snakemake(tmp_path, config=edition(tmp_path / "config", edtion="x"))
    assert process.returncode != 0
    assert "unknown key 'edtion' at the top level" in output_of(process)
    assert "remedy" in output_of(process)
    assert "Traceback" not in output_of(process)
    assert not (tmp_path / "results").exists()


def test_a_file_without_an_edition_is_refused_and_not_merged_into_the_demo(tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text("datasets: {}\npapers: {bruch2019: {products: [figure2]}}\n")
    process = snakemake(tmp_path / "clone", "-n", config=config)
    assert process.returncode == 1
    assert "'edition' is a required property" in output_of(process)


def test_missing_archives_are_named_together_before_anything_starts(tmp_path):
    (tmp_path / "raw").mkdir()
    config = edition(
        tmp_path / "config",
        datasets={name: {"source": "archive"} for name in ("web30k", "yahoo1", "ohsumed")},
        papers={
            "bruch2019": {
                "products": ["table1"],
                "variants": {"table1_web30k": ["ListMLE"], "table1_yahoo1": ["RankNet"]},
            },
            "qin2010": {"products": ["table4"]},
        },
        overrides=[],
    )
    process = snakemake(tmp_path, config=config, DIRECTRANK_RAW=str(tmp_path / "raw"))
    assert process.returncode != 0
    printed = output_of(process)
    for archive in ("MSLR-WEB30K.zip", "OHSUMED", "ltrc_yahoo"):
        assert archive in printed
    assert "remedy" in printed
    assert "web30k: {source: none}, yahoo1: {source: none}" in printed
    assert not (tmp_path / "results").exists()
