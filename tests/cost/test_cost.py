import dataclasses

import numpy as np
import pandas as pd
import pytest
import yaml

from directrank.cli import main
from directrank.cli.cost import own_machine
from directrank.cost.estimate import against, calibrated, estimate
from directrank.cost.machine import REFERENCE, Machine, measure, name_of
from directrank.cost.predict import recorded
from directrank.system import arithmetic
from directrank.system.errors import ConfigError, DataError
from studies import study_of
from workflow_runs import ROOT, TINY

pytestmark = pytest.mark.slow

SLOW = Machine("cpu", "made up", 1, 3.0, True, "made up")


@pytest.fixture
def machine_file(tmp_path):
    SLOW.write(tmp_path / "machine.json")
    return tmp_path / "machine.json"


# ------------------------------------------------------------------------------------------ studies


@pytest.fixture(scope="module")
def paper():
    return study_of("paper")


@pytest.fixture(scope="module")
def prediction(paper, tmp_path_factory):
    """The cost of the edition ``paper`` where no data is prepared."""
    return estimate(paper, prepared_folder=tmp_path_factory.mktemp("prepared"))


def test_the_papers_scale_is_planned_without_data(paper, prediction):
    assert set(prediction.runs["run"]) == set(paper.runs)
    assert (prediction.runs["seconds"] > 0).all()
    assert (prediction.runs["gpu_seconds"] > 0).all()


def test_a_machine_that_is_slower_takes_longer(prediction):
    demo = study_of("demo")
    usual, slow = (estimate(demo, cpu).runs for cpu in (REFERENCE["cpu"], SLOW))
    assert np.allclose(slow["seconds"], 3 * usual["seconds"])
    assert np.allclose(slow["start"], 3 * usual["start"])
    networks = usual["learner"] == "neural"
    assert np.allclose(slow["gpu_seconds"][networks], usual["gpu_seconds"][networks])
    assert np.allclose(slow["gpu_seconds"][~networks], 3 * usual["gpu_seconds"][~networks])


def test_networks_of_a_fold_are_trained_together_on_a_gpu_and_gain_by_it(paper, prediction):
    runs = prediction.runs.set_index("run")
    single = [
        run
        for run, spec in paper.runs.items()
        if spec["learner"] == "neural"
        and spec["data"]["name"] == "web30k"
        and spec["fold"] == 1
        and spec["training"]["batch_queries"] == 1
        and spec["model"].get("norm") == "query"
    ]
    assert len(single) > 60
    found = runs.loc[single]
    assert found["gpu_seconds"].sum() < found["seconds"].sum() / 10


def test_wide_networks_gain_by_a_gpu(paper, prediction):
    runs = prediction.runs.set_index("run")
    widths = {
        run: spec["model"].get("hidden")
        for run, spec in paper.runs.items()
        if spec["learner"] == "neural" and spec["data"]["name"] == "web30k"
    }
    wide = runs.loc[[run for run, hidden in widths.items() if hidden and hidden[0] == 1024]]
    assert (wide["gpu_seconds"] < wide["seconds"] / 5).all()
    trees = runs[runs["learner"] == "lightgbm"]
    assert (trees["gpu_seconds"] == trees["seconds"]).all()
    assert set(trees["gpu_like"]) == {"on the CPU"}
    assert set(wide["gpu_like"]) <= set(recorded("cuda")["run"])


def test_runs_that_products_share_count_once_in_sums(paper, prediction):
    products = prediction.products.set_index(["paper", "product"])
    table, summary = (products.loc[("bruch2019", name)] for name in ("table1", "summary"))
    assert table["cpu_hours"] == pytest.approx(summary["cpu_hours"])  # the same runs
    assert table["cpu_hours_own"] == 0
    whole = products.loc[("bruch2019", "all"), "cpu_hours"]
    plans = [plan for (name, _), plan in paper.products.items() if name == "bruch2019"]
    experiments = [cells for plan in plans for cells in plan["experiments"].values()]
    runs = {cell["run"] for cells in experiments for cell in cells}
    seconds = prediction.runs.set_index("run")["seconds"]
    assert whole == pytest.approx(seconds[sorted(runs)].sum() / 3600)
    assert whole < products.loc["bruch2019"].drop("all")["cpu_hours"].sum()
    totals = products.xs("all", level="product")["cpu_hours"]
    assert totals["all"] == pytest.approx(totals.drop("all").sum())


def test_a_learner_of_which_nothing_was_recorded_is_refused(monkeypatch):
    table = recorded()
    networks = table[table["learner"] == "neural"].reset_index(drop=True)
    monkeypatch.setattr("directrank.cost.estimate.recorded", lambda device="cpu": networks)
    with pytest.raises(ConfigError, match="no run of adarank, lightgbm"):
        estimate(study_of("demo"))


def record(root, run, seconds, epochs):
    """What Snakemake and a run leave behind, after a share of the planned ``epochs``."""
    folder, logs = root / "results/e/runs" / run["run"], root / "logs/e/fit"
    folder.mkdir(parents=True)
    logs.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text('{"spec": {"training": {}}}')
    pd.DataFrame({"epochs": [run["epochs"] * epochs]}).to_csv(folder / "fits.csv")
    measured = pd.DataFrame({"s": [seconds], "max_rss": [321.5]})
    measured.to_csv(logs / f"{run['run']}.benchmark.tsv", sep="\t", index=False)


@pytest.mark.parametrize("early", [False, True])
def test_measured_seconds_stand_beside_predicted_ones(prediction, tmp_path, early):
    runs = prediction.runs[prediction.runs["learner"] == "neural"]
    run = runs[runs["ended_early"].astype(bool) == early].iloc[0]
    trained = run["seconds"] - run["start"]
    record(tmp_path, run, run["start"] + trained / 4, 0.5)
    row = against(prediction, tmp_path / "results/e").iloc[0]
    assert row["ratio"] == pytest.approx((run["start"] + trained / 4) / run["seconds"])
    # One that is predicted from a run that ended early is not shortened twice.
    predicted = run["start"] + (trained if early else trained / 2)
    assert row["ratio_at_epochs"] == pytest.approx((run["start"] + trained / 4) / predicted)
    assert row["memory_mb"] == 321.5


def test_measured_runs_correct_the_speed(prediction, tmp_path):
    for number, (_, run) in enumerate(prediction.runs.head(5).iterrows()):
        record(tmp_path, run, run["seconds"] * (40 if number == 0 else 2), 1.0)
    corrected = calibrated(SLOW, against(prediction, tmp_path / "results/e"))
    assert corrected.slowness == pytest.approx(6.0)  # one that was disturbed does not count
    assert corrected.note == "made up; corrected by 5 recorded runs"


def test_results_of_another_edition_are_refused(prediction, tmp_path):
    with pytest.raises(DataError, match="no run of this edition has been measured"):
        against(prediction, tmp_path)


# ------------------------------------------------------------------------------------------ machine


def test_a_probe_of_twice_the_seconds_is_a_machine_that_is_twice_as_slow(monkeypatch):
    parts = {"product": 4 * 5.01e-3, "step": 2 * 3.90e-5, "loss": 2.88e-4}
    made = {name: lambda _, seconds=seconds: seconds for name, seconds in parts.items()}
    monkeypatch.setattr("directrank.cost.machine._PARTS", made)
    machine = measure(threads=2)
    assert machine.slowness == pytest.approx(2.0)
    assert (machine.threads, machine.measured) == (2, True)
    assert machine.name == name_of("cpu")


@pytest.mark.long
def test_this_machine_is_measured(tmp_path):
    path = tmp_path / "machine.json"
    assert main(["cost", "--measure", str(path)]) == 0
    measured = Machine.read(path)
    assert measured.measured
    assert 0.05 < measured.slowness < 50


def test_a_machine_survives_a_file(machine_file):
    assert Machine.read(machine_file) == SLOW
    for content in ("{}", "no JSON"):
        machine_file.write_text(content)
        with pytest.raises(ConfigError, match=r"machine\.json: (this version|not valid JSON)"):
            Machine.read(machine_file)


def test_a_machine_is_measured_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here, calls = dataclasses.replace(SLOW, name=name_of("cpu")), []
    monkeypatch.setattr("directrank.cli.cost._measured", lambda *of: calls.append(of) or here)
    assert own_machine(3, measuring=False) == REFERENCE["cpu"]
    assert [own_machine(3), own_machine(3), own_machine(3, measuring=False)] == 3 * [here]
    assert calls == [("cpu", 3)]
    for content in ("{}", (tmp_path / "directrank/machine-cpu-3.json").read_text()):
        # Written by an older version, or on another machine that shares this home.
        text = content.replace(here.name, "another")
        (tmp_path / "directrank/machine-cpu-3.json").write_text(text)
        assert own_machine(3) == here
    assert calls == 3 * [("cpu", 3)]


@pytest.mark.parametrize("home", ["/proc", "~"])
def test_a_home_that_cannot_be_written_stops_no_prediction(home, monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda _: home)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("directrank.cli.cost._measured", lambda *_: SLOW)
    assert own_machine(3) == SLOW
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------- command line


def test_the_command_prints_and_writes_tables(machine_file, tmp_path, capsys):
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump({"name": "ours", "nodes": 2, "cores_per_node": 8}))
    out = tmp_path / "out"
    options = ["--rates", str(machine_file), "--cluster", str(cluster), "--out", str(out)]
    assert main(["cost", str(TINY), *options]) == 0
    printed = capsys.readouterr().out
    assert "ASSUMED, not measured" in printed
    assert "ours" in printed
    products = pd.read_csv(out / "products.csv")
    assert products.iloc[-1][["paper", "product"]].tolist() == ["all", "all"]
    assert set(products["gpu_rates"]) == {"assumed"}
    assert pd.read_csv(out / "cluster.csv")["slots"].item() == 16
    assert len(pd.read_csv(out / "runs.csv")) == products.iloc[-1]["runs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cost"], "no edition was named"),
        (["cost", str(TINY), "--calibrate", "rates.json"], "needs recorded runs"),
        (["cost", str(TINY), "--rates", "absent.json"], "absent.json: no such file"),
        (["cost", str(TINY), "--cluster", "absent.yaml"], "absent.yaml: no such file"),
    ],
)
def test_mistakes_are_told_with_a_remedy(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "remedy" in error


def test_an_edition_is_predicted_from_any_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["cost", str(ROOT / "config/demo.yaml"), "--quick"]) == 0
    assert "Cost of edition 'demo'" in capsys.readouterr().out


def test_a_process_knows_its_arithmetic(monkeypatch):
    for name in arithmetic.PORTABLE:
        monkeypatch.delenv(name, raising=False)
    assert arithmetic.of_this_process() == "native"
    for name, value in arithmetic.PORTABLE.items():
        monkeypatch.setenv(name, value)
    assert arithmetic.of_this_process() == "portable"
    assert arithmetic.variables("native") == {}


def test_a_quick_prediction_measures_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["cost", str(TINY), "--quick", "--out", str(tmp_path)]) == 0
    assert not (tmp_path / "cache").exists()
    assert "measuring" not in capsys.readouterr().err
    assert (pd.read_csv(tmp_path / "runs.csv")["seconds"] > 0).all()
