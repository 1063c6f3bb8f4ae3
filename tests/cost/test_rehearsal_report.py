"""The report on what a rehearsal took, for a folder that looks as if an edition had been run."""

from __future__ import annotations

import dataclasses
import json

import pandas as pd
import pytest

from directrank.cost.estimate import estimate
from directrank.cost.machine import REFERENCE
from directrank.cost.memory import LEAST_ON_A_GPU, requested_mb
from directrank.data import standins
from directrank.data.prepared import write_prepared
from directrank.edition.plan import load
from directrank.system.errors import DataError
from directrank.system.schema import read_yaml
from workflow_runs import ROOT, TINY, load_script

# A script imports those before it.
load_script("benchmarks/record_jobs.py")
rows = load_script("benchmarks/rehearsal_rows.py")
targets = load_script("benchmarks/rehearsal_targets.py")
report = load_script("benchmarks/rehearsal_report.py")


@pytest.fixture(scope="module")
def study():
    return load(read_yaml(TINY), ROOT)


@pytest.fixture(scope="module")
def prediction(study, tmp_path_factory):
    return estimate(study, prepared_folder=tmp_path_factory.mktemp("prepared"))


def usage(path, seconds, megabytes, processor):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"s\tmax_rss\tcpu_time\n{seconds}\t{megabytes}\t{processor}\n", encoding="utf-8"
    )


def finish(folder, run, ratio=1.0, share=1.0, megabytes=321.5):
    """What a fit leaves that took a ``share`` of its epochs, and ``ratio`` times as long as these
    should take."""
    place = folder / f"results/tiny/runs/{run.run}"
    place.mkdir(parents=True)
    record = {"spec": {"training": {}}, "environment": {"processor": "P", "cores": 2}}
    (place / "run.json").write_text(json.dumps(record), encoding="utf-8")
    pd.DataFrame({"epochs": [run.epochs * share]}).to_csv(place / "fits.csv")
    seconds = ratio * (run.start + share * (run.seconds - run.start))
    logs = folder / "logs/tiny/fit"
    usage(logs / f"{run.run}.benchmark.tsv", seconds, megabytes, seconds / 2)
    (logs / f"{run.run}.log").write_text("", encoding="utf-8")


def told(study, prediction, folder):
    """The lines of the page."""
    return report.page(report.collected(study, prediction, folder)).splitlines()


def cells(lines, *start):
    """The other cells of the row of a table that begins with these."""
    (line,) = (line for line in lines if line.startswith(f"| {' | '.join(start)} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][len(start) :]


def made(**columns):
    """Fits of which only some columns matter."""
    usual = {"papers": "p", "learner": "neural", "mem_mb": 1000, "memory_share": 0.7, "ratio": 1.0}
    usual |= {"predicted_s": 7200.0, "measured_s": 3600.0, "processor_s": 1800.0}
    usual |= {"peak_mb": 700.0, "disk_mb": 2000.0, "earlier": False}
    count = len(next(iter(columns.values())))
    names = [f"r{number}" for number in range(count)]
    return pd.DataFrame({"run": names, **usual, **columns})


# ------------------------------------------------------------------------------------------- rows


def test_a_fit_stands_beside_the_prediction_for_its_epochs(study, prediction, tmp_path):
    runs = prediction.runs
    run = next(runs[runs["learner"] == "neural"].itertuples())
    finish(tmp_path, run, ratio=3, share=0.5)
    (fit,) = rows.finished(study, prediction, tmp_path).to_dict("records")
    expected = run.start + (run.seconds - run.start) / 2
    assert fit["predicted_s"] == pytest.approx(expected)
    assert fit["measured_s"] == pytest.approx(3 * expected)
    assert fit["processor_s"] == pytest.approx(1.5 * expected)
    assert fit["ratio"] == pytest.approx(3)
    assert (fit["papers"], fit["data"]) == ("bruch2019", run.data)
    assert fit["model"] == "tower [4]"
    left = sum(path.stat().st_size for path in tmp_path.glob("results/tiny/runs/*/*"))
    assert fit["disk_mb"] == pytest.approx(left / 1e6)


def test_memory_is_compared_with_what_the_workflow_requests(study, prediction, tmp_path):
    run = next(prediction.runs[prediction.runs["learner"] == "neural"].itertuples())
    finish(tmp_path, run, megabytes=5000)
    (fit,) = rows.finished(study, prediction, tmp_path).to_dict("records")
    assert fit["mem_mb"] == requested_mb(study, run.run, 0, tmp_path)
    assert fit["memory_share"] == pytest.approx(5000 / fit["mem_mb"])
    on_gpus = dataclasses.replace(study, config={**study.config, "device": "cuda"})
    (fit,) = rows.finished(on_gpus, prediction, tmp_path).to_dict("records")
    assert fit["mem_mb"] == LEAST_ON_A_GPU


@pytest.mark.slow
def test_the_request_follows_from_the_data_in_the_folder_of_the_run(study, prediction, tmp_path):
    run = next(prediction.runs[prediction.runs["data"] == "web30k_standin"].itertuples())
    finish(tmp_path, run)
    before = rows.finished(study, prediction, tmp_path)["mem_mb"].item()
    size = {"queries": {"train": 2000, "vali": 9, "test": 9}, "mean_length": 50}
    lists = standins.generate("web30k_standin", size)
    record = {"name": "web30k_standin", "title": "t", "origin": "standin", "label_levels": 5}
    write_prepared(tmp_path / "data/prepared" / study.run_data[run.run], lists, record)
    assert rows.finished(study, prediction, tmp_path)["mem_mb"].item() > before + 50


def test_a_fit_without_its_measurement_or_its_results_has_not_finished(study, prediction, tmp_path):
    done, ending, failed, *_ = prediction.runs.itertuples()
    for run in (done, ending, failed):
        finish(tmp_path, run)
    # Its results are there, but its process has not ended.
    (tmp_path / f"logs/tiny/fit/{ending.run}.benchmark.tsv").write_text("", encoding="utf-8")
    (tmp_path / f"results/tiny/runs/{failed.run}/run.json").unlink()
    fits = rows.finished(study, prediction, tmp_path)
    assert fits["run"].tolist() == [done.run]
    left = rows.missing(study, prediction, fits)
    assert set(left["run"]) == set(study.runs) - {done.run}
    assert set(rows.begun(study, left, tmp_path)) == {ending.run, failed.run}
    assert any("Of these, 2 were begun" in line for line in told(study, prediction, tmp_path))


def test_fits_that_were_not_run_again_are_taken_from_an_earlier_report(study, prediction, tmp_path):
    first, second, *_ = prediction.runs.itertuples()
    finish(tmp_path / "before", first, ratio=3, megabytes=500)
    finish(tmp_path / "before", second, ratio=2, share=0.5, megabytes=700)
    earlier = rows.finished(study, prediction, tmp_path / "before")
    # What was predicted and requested then does not count.
    earlier = earlier.assign(predicted_s=1e9, ratio=1e-9, mem_mb=1, memory_share=1e9)
    finish(tmp_path / "again", first, megabytes=600)
    fits = rows.finished(study, prediction, tmp_path / "again", earlier)
    assert fits["run"].tolist() == [first.run, second.run]
    assert fits["earlier"].tolist() == [False, True]
    assert fits["ratio"].tolist() == pytest.approx([1, 2])
    assert fits["peak_mb"].tolist() == [600, 700]
    requested = [requested_mb(study, run.run, 0, tmp_path) for run in (first, second)]
    assert fits["mem_mb"].tolist() == requested
    made = report.collected(study, prediction, tmp_path / "again", earlier)
    assert "1 of these fits were run for this report" in report.page(made)


def test_fits_of_another_machine_keep_what_was_predicted_and_requested_there(
    study, prediction, tmp_path
):
    first, second, *_ = prediction.runs.itertuples()
    finish(tmp_path / "before", first, ratio=3)
    finish(tmp_path / "before", second, ratio=2)
    earlier = rows.finished(study, prediction, tmp_path / "before")
    # That machine is ten times as slow, and was predicted to be twelve times.
    earlier["predicted_s"] *= 12
    earlier["measured_s"] *= 10
    earlier["mem_mb"] = 1000
    finish(tmp_path / "again", first, ratio=1.25)
    made = report.collected(study, prediction, tmp_path / "again", earlier, "an old machine")
    fits = made.fits.set_index("run")
    assert fits["ratio"].tolist() == pytest.approx([1.25, 2 * 10 / 12])
    assert fits.loc[first.run, "predicted_s"] == pytest.approx(first.seconds)
    assert fits.loc[second.run, "predicted_s"] == pytest.approx(12 * second.seconds)
    assert fits.loc[first.run, "mem_mb"] == requested_mb(study, first.run, 0, tmp_path)
    assert fits.loc[second.run, ["mem_mb", "memory_share"]].tolist() == [1000, 0.3215]
    told = "on another machine (an old machine), and are compared with what was predicted and req"
    assert told in report.page(made)


def test_a_folder_without_a_finished_fit_is_refused(study, prediction, tmp_path):
    with pytest.raises(DataError, match="no run of this edition has been measured"):
        rows.finished(study, prediction, tmp_path)


def test_prepared_data_are_sized_whether_or_not_the_workflow_prepared_them(study, tmp_path):
    first, second = sorted(study.data)
    for key, size in ((first, 3_000_000), (second, 500_000)):
        inner = tmp_path / "data/prepared" / key / "train"
        inner.mkdir(parents=True)
        (inner / "features").write_bytes(bytes(size))
    usage(tmp_path / f"logs/prepare/{first}.benchmark.tsv", 12.5, 900, 11)
    data = rows.prepared_data(study, tmp_path).set_index("key")
    assert data["disk_mb"].to_dict() == {first: 3.0, second: 0.5}
    assert data.loc[first, ["seconds", "processor_s", "peak_mb"]].tolist() == [12.5, 11, 900]
    assert data.loc[second, ["seconds", "processor_s", "peak_mb"]].isna().all()
    lines = report._of_data(data.reset_index())
    assert cells(lines, f"`{second}`") == ["0.0005", "–", "–"]
    assert cells(lines, "all")[:2] == ["0.0035", "12.5"]


# ---------------------------------------------------------------------------------------- targets


def test_times_may_differ_by_the_factor_in_both_directions():
    ratios = pd.Series([0.6, 0.7, 1.4, 1.6])
    assert targets.within(ratios).tolist() == [False, True, True, False]


def test_memory_may_be_between_half_and_all_of_the_request():
    fits = made(memory_share=[0.49, 0.51, 0.99, 1.01])
    assert targets.above(fits).tolist() == [False, False, False, True]
    assert targets.below(fits).tolist() == [True, False, False, False]


def test_offenders_are_those_that_miss_a_target_and_the_farthest_is_first():
    fits = made(ratio=[1.6, 1.0, 0.1, 1.0], memory_share=[0.7, 0.7, 0.7, 3.0])
    found = dict(targets.offenders(fits))
    assert list(found) == ["r2", "r3", "r0"]
    assert found["r2"] == "took 0.1 times the predicted 7.2e+03 s (0.25 times in processor seconds)"
    assert found["r3"] == "took 300% of its 1000 MB"


def test_a_fit_that_misses_two_targets_is_named_once_with_both():
    ((_, words),) = targets.offenders(made(ratio=[2.0], memory_share=[0.25]))
    assert "took 2 times" in words
    assert "took 25% of its 1000 MB" in words


def test_processor_seconds_are_not_told_where_they_were_not_measured():
    ((_, words),) = targets.offenders(made(ratio=[2.0], processor_s=[float("nan")]))
    assert words == "took 2 times the predicted 7.2e+03 s"
    assert "processor" not in report._spread(made(ratio=[2.0], processor_s=[float("nan")]))


def test_at_most_fifteen_offenders_are_named():
    lines = report._offenders(made(ratio=[2.0] * 40))
    assert sum(line.startswith("- ") for line in lines) == 15
    assert lines[-1] == "These are 15 of 40 fits that miss a target."
    assert report._offenders(made(ratio=[1.0])) == ["No fit misses a target."]


# ------------------------------------------------------------------------------------------- page


def test_a_fit_of_two_papers_counts_for_both_and_once_in_all():
    lines = report._by_learner(made(papers=["p q", "q"], ratio=[1.0, 2.0]))
    assert cells(lines, "p", "neural")[:5] == ["1", "2", "1", "0.5", "100%"]
    assert cells(lines, "q", "neural")[:5] == ["2", "4", "2", "1", "50%"]
    assert cells(lines, "all", "all") == [
        *["2", "4", "2", "1", "50%", "0%", "0%", "1.50", "700", "4"]
    ]


@pytest.mark.parametrize(("far", "reached"), [(1, "yes"), (2, "no")])
def test_nine_of_ten_times_must_be_near(far, reached):
    lines = report._targets(made(ratio=[1.0] * (10 - far) + [9.0] * far))
    assert cells(lines, "measured time within a factor of 1.5 of the predicted one") == [
        *[f"{10 - far}0% of fits", "≥ 90%", reached]
    ]


@pytest.mark.parametrize(
    ("share", "row"),
    [(1.2, "peak memory above `mem_mb`"), (0.4, "peak memory below 50% of `mem_mb`")],
)
def test_a_single_fit_beyond_its_memory_misses_the_target(share, row):
    assert cells(report._targets(made(memory_share=[0.7, 0.8])), row)[-1] == "yes"
    assert cells(report._targets(made(memory_share=[0.7, share])), row) == ["1 fits", "none", "no"]


def test_hours_of_what_was_not_run_are_extrapolated_by_the_median_ratio(
    study, prediction, tmp_path
):
    runs = prediction.runs
    done = runs[runs["data"] == "web30k_standin"]
    for ratio, run in zip((1.0, 2.0, 9.0), done.itertuples(), strict=True):
        finish(tmp_path, run, ratio=ratio)
    made_up = report.collected(study, prediction, tmp_path)
    (other,) = runs.drop(done.index).itertuples()
    assert made_up.left["predicted_s"].item() == other.seconds
    slow = made_up.left.assign(predicted_s=1000 * 3600.0)
    lines = report.page(dataclasses.replace(made_up, left=slow)).splitlines()
    assert "3 of 4 fits of the edition have finished: a part of it." in lines[2]
    assert any("are an extrapolation" in line and "finished, 2.00." in line for line in lines)
    assert any("would take 2,000 hours" in line for line in lines)
    assert cells(lines, "bruch2019", "yahoo1_standin") == ["1", "1", "1,000", "2,000"]
    assert "| all | all | 1 | 4 | 1,000 | 2,000 |" in lines


def test_a_whole_edition_leaves_nothing_to_extrapolate(study, prediction, tmp_path):
    for run in prediction.runs.itertuples():
        finish(tmp_path, run)
    lines = told(study, prediction, tmp_path)
    assert any(line.endswith("of one run, with its trials and candidates.") for line in lines)
    assert "have finished: the whole edition." in lines[2]
    assert "## Not finished" not in lines
    assert any(line.startswith("Run on P with 2 cores. Predicted for ") for line in lines)


def test_the_command_writes_the_rows_and_the_page(study, prediction, tmp_path, monkeypatch, capsys):
    REFERENCE["cpu"].write(tmp_path / "rates.json")
    finish(tmp_path, next(prediction.runs.itertuples()))
    options = ["--folder", tmp_path, "--rates", tmp_path / "rates.json", "--out", tmp_path / "out"]
    monkeypatch.setattr("sys.argv", ["rehearsal_report.py", str(TINY), *map(str, options)])
    report.main()
    assert len(pd.read_csv(tmp_path / "out/rehearsal.csv")) == 1
    assert (tmp_path / "out/rehearsal.md").read_text(encoding="utf-8").startswith("# What the fits")
    assert capsys.readouterr().out == f"{tmp_path / 'out/rehearsal.md'}\n"


def test_a_mistake_is_told_in_a_line_with_its_remedy(tmp_path, monkeypatch):
    REFERENCE["cpu"].write(tmp_path / "rates.json")
    options = ["--folder", tmp_path, "--rates", tmp_path / "rates.json", "--out", tmp_path / "out"]
    monkeypatch.setattr("sys.argv", ["rehearsal_report.py", str(TINY), *map(str, options)])
    with pytest.raises(SystemExit, match=r"error: .*\n.*remedy"):
        report.main()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--earlier", "none.csv"], "there is no file none.csv"),
        (["--elsewhere", "an old machine"], "give an earlier rehearsal.csv"),
    ],
)
def test_a_mistake_in_what_is_said_of_earlier_fits_is_one_of_the_command(
    tmp_path, monkeypatch, capsys, options, message
):
    options = [*options, "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", ["rehearsal_report.py", str(TINY), *options])
    with pytest.raises(SystemExit, match="2"):
        report.main()
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
