import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from directrank import metrics
from directrank.cli import main
from directrank.data import standins
from directrank.data.prepared import write_prepared
from directrank.system.arithmetic import PORTABLE

SPEC = {
    "data": {"name": "web30k_standin", "settings": {}},
    "fold": None,
    "normalisation": {"name": "none"},
    "filter": {},
    "learner": "neural",
    "model": {"name": "linear"},
    "loss": {"name": "approx_ndcg", "alpha": 10},
    "training": {"optimizer": {"name": "sgd", "lr": 0.01}, "max_epochs": 2},
    "selection": {"name": "ndcg", "k": 5},
    "evaluation": [{"name": "ndcg", "k": 5}, {"name": "average_precision"}],
    "trials": 2,
    "tune": {"loss.alpha": [1, 10]},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A prepared stand-in of a few queries."""
    folder = tmp_path_factory.mktemp("data") / "web30k_standin"
    settings = {"queries": {"train": 20, "vali": 10, "test": 10}, "mean_length": 10}
    splits = standins.generate("web30k_standin", settings)
    write_prepared(
        folder,
        splits,
        {"name": "web30k_standin", "title": "t", "origin": "standin", "label_levels": 5},
    )
    return folder


def run_file(tmp_path, **changes):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**SPEC, **changes}))
    return str(path)


@pytest.mark.slow
def test_threads_are_those_of_the_option_whatever_the_environment_says(tmp_path):
    folder = tmp_path / "data"
    settings = {"queries": {"train": 60, "vali": 2, "test": 2}, "mean_length": 40}
    splits = standins.generate("web30k_standin", settings)
    record = {"name": "web30k_standin", "title": "t", "origin": "standin", "label_levels": 5}
    write_prepared(folder, splits, record)
    spec = {key: value for key, value in SPEC.items() if key not in ("loss", "training", "tune")}
    spec |= {"learner": "ranking_svm", "model": {"c": 1.0}, "trials": 1}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(spec))
    models = []
    for threads in ("1", "2"):
        out = tmp_path / threads
        command = [sys.executable, "-m", "directrank", "fit", str(path)]
        subprocess.run(
            [*command, "--data", str(folder), "--out", str(out), "--threads", "1"],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
            check=True,
        )
        models.append((out / "models/0.safetensors").read_bytes())
    assert models[0] == models[1]


def test_a_fit_leaves_tidy_results_and_models(data, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["fit", run_file(tmp_path), "--data", str(data), "--out", str(out)]) == 0
    assert sorted(os.listdir(out)) == [
        "fits.csv",
        "history.csv",
        "models",
        "per_query.parquet",
        "run.json",
    ]
    assert sorted(os.listdir(out / "models")) == ["0.safetensors", "1.safetensors"]
    from directrank.study.results import load_run

    run = load_run(out)
    assert len(run.per_query) == 2 * (10 + 10)
    about = ["trial", "split", "query_id", "group", "n_documents", "n_relevant"]
    assert list(run.per_query.columns) == [*about, "ndcg@5", "ap"]
    assert (run.per_query["group"] == run.per_query["query_id"]).all()  # none are known
    assert len(run.fits) == 4
    assert run.fits.groupby("trial")["selected"].sum().tolist() == [1, 1]
    for _, fits in run.fits.groupby("trial"):
        assert fits.loc[fits["selected"], "vali_metric"].item() == fits["vali_metric"].max()
    empty = run.per_query["n_relevant"] == 0
    assert (run.per_query["ndcg@5"].isna() == empty).all()
    assert run.record["data"]["splits"]["train"]["queries"] == 20

    capsys.readouterr()
    assert main(["evaluate", str(out)]) == 0
    assert "ndcg@5" in capsys.readouterr().out


def test_every_metric_and_gains_of_ones_own_are_evaluated(data, tmp_path, capsys):
    path = Path(run_file(tmp_path))
    spec = json.loads(path.read_text())
    spec["evaluation"] = [{"name": name} for name in metrics.REGISTRY]
    spec["evaluation"] += [{"name": "ndcg", "k": 5, "gain": [0, 1, 2, 3, 9]}]
    path.write_text(json.dumps(spec))
    out = tmp_path / "out"
    assert main(["fit", str(path), "--data", str(data), "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(out)]) == 0
    said = capsys.readouterr().out
    for label in (*map(metrics.label, spec["evaluation"]), "ndcg@5/gain=0,1,2,3,9"):
        assert f"  {label} " in said, label
    spec["evaluation"] = [{"name": "kendall", "k": 5}]
    path.write_text(json.dumps(spec))
    assert main(["fit", str(path), "--data", str(data), "--out", str(out)]) == 2
    assert "metric 'kendall' has no setting 'k'" in capsys.readouterr().err


def test_a_fit_twice_gives_the_same_bytes(data, tmp_path):
    for name in ("a", "b"):
        arguments = ["fit", run_file(tmp_path), "--data", str(data), "--out", str(tmp_path / name)]
        assert main(arguments) == 0
    for file in ("per_query.parquet", "fits.csv", "models/0.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": {"name": "listnett"}}, "did you mean 'listnet'"),
        ({"loss": {"name": "approx_ndcg", "alfa": 1}, "tune": {}}, "did you mean 'alpha'"),
        ({"model": {"name": "tower"}}, "hidden"),
        ({"fold": 3}, "no split"),
        ({"evaluation": [{"name": "ndgc"}]}, "did you mean 'ndcg'"),
        ({"learner": "lightgmb"}, "did you mean 'lightgbm'"),
        ({"normalisation": {"name": "zscore"}}, "normalisation"),
        ({"trial": 3}, "unknown key 'trial'"),
        ({"filter": {"min_documents": 100000}}, "no query"),
    ],
)
def test_a_run_that_cannot_be_meant_is_one_error_with_a_remedy(
    changes, message, data, tmp_path, capsys
):
    out = tmp_path / "out"
    assert main(["fit", run_file(tmp_path, **changes), "--data", str(data), "--out", str(out)]) == 2
    printed = capsys.readouterr().err
    assert printed.count("error:") == 1
    assert message in printed
    assert "remedy" in printed
    assert not (out / "run.json").exists()


def test_missing_and_broken_files_are_named(data, tmp_path, capsys):
    assert main(["fit", "nowhere.json", "--data", str(data), "--out", str(tmp_path)]) == 2
    assert "nowhere.json" in capsys.readouterr().err
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [1\nb: 2\n")
    assert main(["fit", str(broken), "--data", str(data), "--out", str(tmp_path)]) == 2
    assert "broken.yaml:2" in capsys.readouterr().err
    arguments = ["fit", run_file(tmp_path), "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    assert "not a prepared data set" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "train the run again" in capsys.readouterr().err


@pytest.mark.slow
def test_a_disk_that_is_full_is_one_error_and_leaves_nothing_half_written(data, tmp_path):
    """A limit on file sizes stands in for the full disk: writing fails in the same place."""
    out = tmp_path / "out"
    arguments = ["fit", run_file(tmp_path), "--data", str(data), "--out", str(out)]
    process = subprocess.run(
        [sys.executable, "-m", "directrank", *arguments],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300)),
    )
    assert process.returncode == 2, process.stderr
    assert process.stderr.count("error:") == 1
    assert "Traceback" not in process.stderr
    assert not (out / "run.json").exists()
    assert not list(out.glob(".*"))


def test_a_reader_that_has_had_enough_is_no_error():
    # The command that is printed names these variables where the environment sets them.
    environment = {key: value for key, value in os.environ.items() if key not in PORTABLE}
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "directrank", "data", "list"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    os.close(write)
    assert process.returncode == 128 + signal.SIGPIPE
    assert process.stderr.splitlines() == ["$ directrank data list"]


def test_every_command_explains_itself(capsys):
    for command in (["--help"], ["fit", "--help"], ["prepare", "--help"], ["product", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(command)
        assert stop.value.code == 0
        assert len(capsys.readouterr().out) > 300


def test_claims_are_measured_merged_and_counted_from_the_command_line(tmp_path, capsys):
    plan = {"edition": "demo", "paper": "bruch2019", "product": "figure1", "experiments": {}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    own, merged = tmp_path / "bruch2019/claims.csv", tmp_path / "claims.csv"
    options = ["--results", str(tmp_path), "--margin", "0.01", "--out", str(own)]
    assert main(["claims", "measure", str(tmp_path / "plan.json"), *options]) == 0
    assert main(["claims", "merge", str(own), "--edition", "demo", "--out", str(merged)]) == 0
    assert merged.with_suffix(".md").read_text().startswith("# The papers' claims")
    page = tmp_path / "README.md"
    page.write_text("<!-- claims: demo -->\n<!-- claims: end -->\n")
    assert main(["claims", "count", str(merged), "--page", str(page)]) == 0
    assert "is supported. 47 claims were not measured." in page.read_text()
    page.write_text("no marks\n")
    assert main(["claims", "count", str(merged), "--page", str(page)]) != 0
    assert "lacks the marks between which to write" in capsys.readouterr().err


def test_a_product_that_quotes_claims_asks_for_their_file(tmp_path, capsys):
    plan = {"edition": "demo", "paper": "bruch2019", "product": "figure1", "experiments": {}}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    arguments = ["product", str(path), "--results", str(tmp_path), "--out", str(tmp_path / "f")]
    assert main(arguments) != 0
    assert "--claims paper_tables/<edition>/<paper>/claims.csv" in capsys.readouterr().err


def test_a_failure_is_recorded_only_on_request(data, tmp_path, capsys):
    spec = {key: value for key, value in SPEC.items() if key not in ("loss", "training", "tune")}
    spec |= {"learner": "lightgbm", "model": {"min_data_in_leaf": 1000}, "trials": 1}
    path, out = tmp_path / "run.json", tmp_path / "out"
    path.write_text(json.dumps(spec))
    command = ["fit", str(path), "--data", str(data), "--out", str(out)]
    assert main(command) == 2
    assert not (out / "run.json").exists()
    assert main([*command, "--record-failure"]) == 0
    assert "no tree found a split" in capsys.readouterr().err
    record = json.loads((out / "run.json").read_text())
    assert record["failed"].startswith("no tree found a split")
    assert not (tmp_path / "out.checkpoint").exists()
    assert main(["evaluate", str(out)]) == 2
    assert "failed: no tree found a split" in capsys.readouterr().err
    assert main(["export", str(out), "--data", str(data), "--out", str(tmp_path / "trec")]) == 2
    assert "failed: no tree found a split" in capsys.readouterr().err


def test_data_that_are_damaged_are_no_failure_of_the_method(data, tmp_path):
    damaged = tmp_path / "data"
    shutil.copytree(data, damaged)
    (damaged / "store/features.npy").write_bytes(b"")
    out = tmp_path / "out"
    command = ["fit", run_file(tmp_path), "--data", str(damaged), "--out", str(out)]
    assert main([*command, "--record-failure"]) == 2
    assert not (out / "run.json").exists()
