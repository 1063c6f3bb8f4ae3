"""A trained run as a run file: other tools find the study's values in it."""

from __future__ import annotations

import io
import shlex
import shutil

import ir_measures
import numpy as np
import pytest
import yaml

from directrank.cli import main
from directrank.data import prepared
from directrank.study.export import export
from directrank.study.results import load_run
from directrank.study.run import execute
from directrank.study.trec import read_qrels, read_run
from directrank.system.errors import ConfigError, DataError
from oracles import READS_MEASURES
from training_data import made
from workflow_runs import ROOT

#: The learner of trees makes ties, the other tunes what its model needs to be loaded.
SPEC = {
    "data": {"name": "web30k_standin", "settings": {}},
    "normalisation": {"name": "standardise"},
    "filter": {},
    "selection": {"name": "ndcg", "k": 10},
    "evaluation": [
        {"name": "ndcg", "k": 10},
        {"name": "average_precision"},
        {"name": "precision", "k": 10},
    ],
    "trials": 2,
}
NETWORK = {
    "learner": "neural",
    "model": {"name": "tower", "hidden": [4], "decay": 0.9},
    "loss": {"name": "listnet"},
    "training": {"optimizer": {"name": "adam", "lr": 0.01}, "max_epochs": 2},
    "tune": {"model.hidden": [[3], [4]]},
}
TREES = {
    "learner": "lightgbm",
    "model": {
        "n_trees": 2,
        "early_stopping_rounds": 2,
        "num_leaves": 3,
        "min_data_in_leaf": 5,
        "min_sum_hessian_in_leaf": 0.001,
    },
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data set of three folds with queries of their own."""
    folder = tmp_path_factory.mktemp("data") / "set"
    parts = {}
    for number in (1, 2, 3):
        part = made(20, number)
        ids = 100 * number + np.asarray(part.query_ids)
        parts[f"S{number}"] = type(part)(part.features, part.labels, part.offsets, ids)
    record = {"name": "web30k_standin", "title": "t", "origin": "standin", "label_levels": 3}
    prepared.write_prepared(folder, parts, record, folds=3)
    return folder


@pytest.fixture(scope="module")
def runs(data, tmp_path_factory):
    """The network on two folds and the trees on one, trained."""
    folder = tmp_path_factory.mktemp("runs")
    for name, spec in (
        ("network1", {**NETWORK, "fold": 1}),
        ("network2", {**NETWORK, "fold": 2}),
        ("trees1", {**TREES, "fold": 1}),
    ):
        execute({**SPEC, **spec}, data, folder / name, device="cpu")
    return folder


def page_measures():
    """What the page on exports has ir_measures compute."""
    lines = (ROOT / "docs/your_data.md").read_text(encoding="utf-8").splitlines()
    (command,) = (line for line in lines if line.startswith("ir_measures "))
    return [ir_measures.parse_measure(text) for text in shlex.split(command)[-3:]]


def measured(run, qrels, measures):
    """ir_measures' values of the files, without comments: measure and query → value."""
    lines = [line for line in run.read_text().splitlines() if not line.startswith("#")]
    ranked = list(ir_measures.read_trec_run(io.StringIO("\n".join(lines))))
    judged = list(ir_measures.read_trec_qrels(str(qrels)))
    return {
        (str(value.measure), int(value.query_id)): value.value
        for value in ir_measures.iter_calc(measures, judged, ranked)
    }


@READS_MEASURES
@pytest.mark.parametrize("names", [["network1"], ["network2", "network1"], ["trees1"]])
def test_ir_measures_gives_the_studys_values_of_every_query(names, data, runs, tmp_path):
    exported = export([runs / name for name in names], data, tmp_path)
    assert exported.differing == 0
    *files, qrels = exported.files
    measures = page_measures()
    assert len(files) == 2
    for trial, file in enumerate(files):
        found = measured(file, qrels, measures)
        n_values = 0
        for name in names:
            values = load_run(runs / name).per_query
            values = values[(values["trial"] == trial) & (values["split"] == "test")]
            for row in values.fillna(0.0).itertuples():
                own = (row[7], row[8], row[9])  # in the order of the page's measures
                for measure, value in zip(measures, own, strict=True):
                    assert found[str(measure), row.query_id] == pytest.approx(value, abs=1e-6)
                    n_values += 1
        assert n_values == len(found) == 60 * len(names)


@READS_MEASURES
@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
def test_exponential_gains_of_ir_measures_are_the_studys_to_five_digits(data, runs, tmp_path):
    file, _, qrels = export([runs / "trees1"], data, tmp_path).files
    measure = ir_measures.parse_measure("nDCG(dcg='exp-log2')@10")
    found = measured(file, qrels, [measure])
    values = load_run(runs / "trees1").per_query.query("trial == 0 and split == 'test'")
    for query, value in zip(values["query_id"], values["ndcg@10"].fillna(0.0), strict=True):
        assert found.get((str(measure), query), 0.0) == pytest.approx(value, abs=6e-6)


def test_the_header_is_ir_metadata_of_the_chosen_candidate(data, runs, tmp_path):
    file = export([runs / "network1"], data, tmp_path).files[1]
    lines = file.read_text().splitlines()
    end = lines.index("# ir_metadata.end")
    assert lines[0] == "# ir_metadata.start"
    assert not any(line.startswith("#") for line in lines[end + 1 :])
    content = yaml.safe_load("\n".join(line.removeprefix("#") for line in lines[1:end]))
    assert content["schema-version"] == 0.1
    parts = {"platform", "research goal", "implementation", "method", "actor", "data"}
    assert parts < set(content)
    assert content["tag"] == lines[-1].split()[-1] == file.name.removesuffix(".run")
    (stage,) = content["method"]["retrieval"]
    run = load_run(runs / "network1")
    fits = run.fits.query("trial == 1 and selected")
    assert stage["params"]["model"]["hidden"] == yaml.safe_load(fits["model.hidden"].item())
    assert stage["params"]["trial"] == 1
    assert content["data"]["test collection"]["qrels"] == f"{run.record['name']}.qrels"


def test_models_that_a_grown_grid_has_added_are_exported(data, tmp_path):
    rate = "training.optimizer.lr"
    spec = {**SPEC, **NETWORK, "fold": 1, "tune": {rate: [0.001, 0.003]}, "trials": 1,
            "grow": {rate: {"lowest": 0.001, "highest": 0.3}}}  # fmt: skip
    execute(spec, data, tmp_path / "run", device="cpu")
    fits = load_run(tmp_path / "run").fits
    assert fits.loc[fits["selected"], "candidate"].item() >= len(spec["tune"][rate])
    exported = export([tmp_path / "run"], data, tmp_path / "out")
    assert exported.differing == 0
    chosen = fits.loc[fits["selected"], rate].item()
    assert f"lr: {chosen}" in exported.files[0].read_text()


def test_judgements_of_all_folds_are_written_once_each(data, tmp_path, capsys):
    assert main(["qrels", str(data), "--out", str(tmp_path / "qrels")]) == 0
    assert "60 queries" in capsys.readouterr().out
    judged = read_qrels(tmp_path / "qrels")
    assert sorted(map(int, judged)) == [100 * k + q for k in (1, 2, 3) for q in range(20)]


def test_the_command_exports_and_says_that_values_are_the_runs_own(data, runs, tmp_path, capsys):
    command = ["export", str(runs / "trees1"), "--data", str(data), "--out", str(tmp_path)]
    assert main(command) == 0
    *files, said = capsys.readouterr().out.splitlines()
    assert not any(read_run(file).tied for file in files[:2])
    assert said == "all 120 values per query agree with the run's own"


def test_values_that_are_not_the_runs_own_are_counted_and_said(data, runs, tmp_path, capsys):
    folder = tmp_path / "changed"
    shutil.copytree(runs / "trees1", folder)
    values = load_run(folder).per_query
    values.loc[(values["trial"] == 1) & (values["split"] == "test"), "ap"] = 0.123
    values.to_parquet(folder / "per_query.parquet", index=False)
    command = ["export", str(folder), "--data", str(data), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert "20 of 120 values per query differ" in capsys.readouterr().out


def test_what_cannot_be_exported_is_one_error(data, runs, tmp_path):
    with pytest.raises(ConfigError, match="on another fold"):
        export([runs / "network1", runs / "trees1"], data, tmp_path)
    with pytest.raises(ConfigError, match="on another fold"):
        export([runs / "network1", runs / "network1"], data, tmp_path)
    other = tmp_path / "other"
    parts = {"train": made(20, 1), "vali": made(12, 2), "test": made(12, 3)}
    record = {"name": "web30k_standin", "title": "t", "origin": "standin", "label_levels": 3}
    prepared.write_prepared(other, parts, record)
    with pytest.raises(DataError, match="not the data that 'network1' was trained on"):
        export([runs / "network1"], other, tmp_path)
    folder = tmp_path / "without"
    shutil.copytree(runs / "trees1", folder)
    shutil.rmtree(folder / "models")
    with pytest.raises(DataError, match="model is missing"):
        export([folder], data, tmp_path)
    with pytest.raises(DataError, match="result file is missing"):
        export([tmp_path], data, tmp_path)
