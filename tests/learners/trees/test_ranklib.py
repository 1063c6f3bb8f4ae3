"""The RankLib learner, run against a small Java program that takes RankLib's options.

The stand-in is no LambdaMART: it keeps the feature with the best NDCG, which can be checked by
hand. What it shares with RankLib is the command line, the files, the table of progress and the
rules that a caller must keep (unknown options end it; one query id means one ideal DCG).
"""

import os
import shutil
import subprocess
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from directrank import metrics
from directrank.learners.contract import FitJob, Splits, no_progress
from directrank.learners.trees import ranklib as learner
from directrank.lists.packed import RankedLists
from directrank.metrics.packed import metrics_per_query
from directrank.system.errors import ConfigError, DataError, DirectrankError, TrainingError
from directrank.system.io import sha256_of

NDCG5 = {"name": "ndcg", "k": 5}

STAND_IN = r"""
import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.logging.Logger;

public class StandIn {
    record Query(String id, List<float[]> rows) {}  // a row: label, then features from 1

    static final Map<String, Double> ideals = new HashMap<>();

    public static void main(String[] args) throws Exception {
        Map<String, String> options = new HashMap<>();
        Set<String> known = Set.of("-ranker", "-tree", "-leaf", "-shrinkage", "-tc", "-mls",
            "-estop", "-metric2t", "-thread", "-train", "-validate", "-save", "-load", "-rank",
            "-score");
        for (int i = 0; i < args.length; i += 2) {
            if (!known.contains(args[i])) {
                System.out.println("Unknown command-line parameter: " + args[i]);
                System.exit(1);
            }
            options.put(args[i], args[i + 1]);
        }
        String trouble = System.getenv().getOrDefault("STAND_IN", "");
        if (trouble.equals("fails")) throw new OutOfMemoryError("Java heap space");
        if (options.containsKey("-train")) train(options, trouble);
        else score(options, trouble);
    }

    static void train(Map<String, String> options, String trouble) throws Exception {
        if (!options.get("-ranker").equals("6")) throw new IllegalArgumentException("ranker");
        int k = Integer.parseInt(options.get("-metric2t").substring("NDCG@".length()));
        List<Query> train = read(options.get("-train")), vali = read(options.get("-validate"));
        say("#iter   | NDCG@" + k + "-T  | NDCG@" + k + "-V  | ", trouble);
        int best = -1, patience = 0;
        double bestScore = 0;
        int features = train.get(0).rows().get(0).length - 1;
        int trees = Integer.parseInt(options.get("-tree"));
        for (int f = 1; f <= Math.min(features, trees); f++) {
            double onTrain = ndcg(train, f, k), onVali = ndcg(vali, f, k);
            say(pad("" + f, 7) + pad("" + round(onTrain), 9) + pad("" + round(onVali), 9), trouble);
            if (onVali > bestScore) { bestScore = onVali; best = f; patience = 0; }
            else if (++patience > Integer.parseInt(options.get("-estop"))) break;
        }
        if (trouble.equals("no model")) return;
        StringBuilder model = new StringBuilder("## LambdaMART\n\n<ensemble>\n");
        for (int t = 1; t <= best; t++) {
            model.append("\t<tree id=\"" + t + "\" weight=\"0.1\">\n<split>\n<feature> " + best
                + " </feature>\n<split pos=\"left\">\n<output> 0 </output>\n</split>\n"
                + "<split pos=\"right\">\n<output> 1 </output>\n</split>\n</split>\n\t</tree>\n");
        }
        Files.writeString(Path.of(options.get("-save")), model + "</ensemble>\n");
    }

    static void score(Map<String, String> options, String trouble) throws Exception {
        String model = Files.readString(Path.of(options.get("-load")));
        int begin = model.lastIndexOf("<feature>") + 9;
        int f = Integer.parseInt(model.substring(begin, model.indexOf("</feature>", begin)).trim());
        try (PrintWriter out = new PrintWriter(options.get("-score"))) {
            for (Query query : read(options.get("-rank"))) {
                for (int j = 0; j < query.rows().size(); j++) {
                    if (trouble.equals("short") && j == 1) continue;
                    out.println(query.id() + "\t" + j + "\t" + (double) query.rows().get(j)[f]);
                }
            }
        }
    }

    static List<Query> read(String file) throws IOException {
        List<Query> queries = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(file))) {
            String[] parts = line.trim().split("\\s+");
            String id = parts[1].substring("qid:".length());
            float[] row = new float[parts.length - 1];
            row[0] = Float.parseFloat(parts[0]);
            for (int i = 2; i < parts.length; i++) {
                int colon = parts[i].indexOf(':');
                row[Integer.parseInt(parts[i].substring(0, colon))]
                    = Float.parseFloat(parts[i].substring(colon + 1));
            }
            if (queries.isEmpty() || !queries.get(queries.size() - 1).id().equals(id)) {
                queries.add(new Query(id, new ArrayList<>()));
            }
            queries.get(queries.size() - 1).rows().add(row);
        }
        return queries;
    }

    static double ndcg(List<Query> queries, int f, int k) {
        double total = 0;
        for (Query query : queries) {
            List<float[]> rows = new ArrayList<>(query.rows());
            // As in RankLib: the ideal is computed once per query id, whatever file it is in.
            double ideal = ideals.computeIfAbsent(query.id(), id -> {
                List<float[]> best = new ArrayList<>(rows);
                best.sort((a, b) -> Float.compare(b[0], a[0]));
                return dcg(best, k);
            });
            rows.sort((a, b) -> Float.compare(b[f], a[f]));
            if (ideal > 0) total += dcg(rows, k) / ideal;
        }
        return total / queries.size();
    }

    static double dcg(List<float[]> rows, int k) {
        double sum = 0;
        for (int i = 0; i < Math.min(k, rows.size()); i++) {
            sum += ((1 << (int) rows.get(i)[0]) - 1) / (Math.log(i + 2) / Math.log(2));
        }
        return sum;
    }

    static double round(double value) { return Math.round(value * 10000) / 10000.0; }

    static String pad(String text, int width) {
        return String.format("%-" + width + "s", text).substring(0, width) + " | ";
    }

    static void say(String line, String trouble) {
        if (trouble.equals("logs")) Logger.getLogger("StandIn").info(line);
        else if (!trouble.equals("silent")) System.out.println(line);
    }
}
"""


@pytest.fixture(scope="module")
def jar(tmp_path_factory) -> Path:
    if shutil.which("javac") is None or shutil.which("java") is None:
        pytest.skip("NOT TESTED: the RankLib learner needs java and javac for its stand-in jar")
    folder = tmp_path_factory.mktemp("standin")
    (folder / "StandIn.java").write_text(STAND_IN)
    subprocess.run(
        ["javac", "-J-Xshare:auto", "-d", folder / "classes", folder / "StandIn.java"], check=True
    )
    path = folder / "RankLib-0.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nMain-Class: StandIn\n")
        for file in sorted((folder / "classes").iterdir()):
            archive.write(file, file.name)
    return path


def lists(n_queries: int, seed: int) -> RankedLists:
    """Lists whose third feature of five is the best; every fifth query is empty."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 15, n_queries)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    features = generator.normal(size=(offsets[-1], 5)).astype(np.float32)
    signal = features[:, 2] + 0.3 * features[:, 0] + 0.5 * generator.normal(size=offsets[-1])
    labels = np.digitize(signal, [0.5, 1.5]).astype(np.float32)
    labels[np.repeat(np.arange(n_queries) % 5 == 0, lengths)] = 0
    return RankedLists(features, labels, offsets, np.arange(n_queries))


@pytest.fixture(scope="module")
def data() -> Splits:
    return Splits(lists(40, 0), lists(30, 1), lists(20, 2), label_levels=3)


@pytest.fixture
def scratch(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(learner.tempfile, "tempdir", str(folder))
    return folder


def job(**changes) -> FitJob:
    return replace(FitJob("a-run", 0, NDCG5, 1, "cpu", no_progress), **changes)


@pytest.mark.parametrize("output", ["prints", "logs"])
def test_a_fit_follows_the_table_keeps_the_best_and_scores_as_the_model(
    data, jar, scratch, tmp_path, monkeypatch, output
):
    monkeypatch.setenv("STAND_IN", output)
    seen = []
    fitted = learner.fit(
        data, {"jar": str(jar)}, job(progress=lambda *arguments: seen.append(arguments))
    )
    values = [
        float(np.nanmean(metrics_per_query(column, data.vali, [NDCG5])["ndcg@5"]))
        for column in data.vali.features.T
    ]
    # Printed with four decimals, empty queries counting 0: a fifth of them here.
    assert [row["vali_metric"] for row in fitted.history] == pytest.approx(values, abs=1e-4)
    assert [row["epoch"] for row in fitted.history] == [1, 2, 3, 4, 5]
    assert np.argmax(values) == 2
    assert fitted.info == {
        "best_epoch": 3,
        "epochs": 5,
        "stopped_early": True,
        "n_parameters": 9,
        "jar": "RankLib-0.jar",
        "jar_sha256": sha256_of(jar),
    }
    assert [(done, total) for done, total, _ in seen] == [(done, 1000) for done in range(1, 6)]
    for part in (data.test, data.vali):
        np.testing.assert_array_equal(fitted.predict(part), part.features[:, 2])
    fitted.save(tmp_path / "model-0")
    assert (tmp_path / "model-0.txt").read_text().startswith("## LambdaMART")
    assert list(scratch.iterdir()) == []


def test_the_command_line_is_ranklibs(data, tmp_path, monkeypatch, scratch):
    """A script in Java's place writes down what it was called with."""
    log = tmp_path / "called"
    fake = tmp_path / "fake-java"
    fake.write_text(f'#!/bin/sh\necho "$@" > {log}\nexit 3\n')
    fake.chmod(0o755)
    jar = tmp_path / "RankLib.jar"
    jar.touch()
    settings = {"jar": str(jar), "java": str(fake), "memory": "3g"}
    with pytest.raises(TrainingError, match="exit status 3"):
        learner.fit(data, settings, job(threads=2))
    words = log.read_text().split()
    assert words[:3] == ["-Xmx3g", "-jar", str(jar)]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    files = {option: Path(options.pop(option)) for option in ("-train", "-validate", "-save")}
    assert {file.parent.parent for file in files.values()} == {scratch}
    assert options == {
        "-ranker": "6",
        "-tree": "1000",
        "-leaf": "10",
        "-shrinkage": "0.1",
        "-tc": "256",
        "-mls": "1",
        "-estop": "200",
        "-metric2t": "NDCG@5",
        "-thread": "2",
    }


def test_settings_reach_the_program(data, jar, scratch):
    fitted = learner.fit(data, {"jar": str(jar), "n_trees": 2}, job())
    assert len(fitted.history) == 2
    assert not fitted.info["stopped_early"]


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("fails", r"exit status 1(.|\n)*OutOfMemoryError: Java heap space(.|\n)*larger heap"),
        ("no model", "left no model"),
        ("silent", "printed no progress"),
    ],
)
def test_a_program_that_fails_is_reported(data, jar, scratch, monkeypatch, trouble, message):
    monkeypatch.setenv("STAND_IN", trouble)
    with pytest.raises(TrainingError, match=message):
        learner.fit(data, {"jar": str(jar)}, job())
    assert list(scratch.iterdir()) == []


def test_scores_that_do_not_match_the_lists_are_refused(data, jar, scratch, monkeypatch):
    fitted = learner.fit(data, {"jar": str(jar)}, job())
    monkeypatch.setenv("STAND_IN", "short")
    with pytest.raises(TrainingError, match="do not match"):
        fitted.predict(data.test)
    assert list(scratch.iterdir()) == []


def test_the_program_ends_and_the_files_go_when_the_fit_is_interrupted(data, tmp_path, scratch):
    fake = tmp_path / "fake-java"
    fake.write_text(
        f'#!/bin/sh\necho $$ > {tmp_path / "pid"}\necho "1 | 0.1 | 0.1 | "\nexec sleep 60\n'
    )
    fake.chmod(0o755)
    jar = tmp_path / "RankLib.jar"
    jar.touch()

    def interrupt(*_):
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        learner.fit(data, {"jar": str(jar), "java": str(fake)}, job(progress=interrupt))
    assert time.monotonic() - began < 50  # killed, not waited for
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert list(scratch.iterdir()) == []


def test_written_lists_read_back_as_the_same_numbers(tmp_path):
    part = lists(10, 5)
    part.features[0] = [1e-30, -3.4e38, 1 / 3, 16777217, 0]
    learner.write_lists(tmp_path / "lists.txt", part, first_query=41)
    rows = [line.split() for line in (tmp_path / "lists.txt").read_text().splitlines()]
    assert [row[1] for row in rows] == [
        f"qid:{41 + query}" for query in np.repeat(np.arange(10), part.lengths)
    ]
    assert [int(row[0]) for row in rows] == part.labels.tolist()
    assert {tuple(field.split(":")[0] for field in row[2:]) for row in rows} == {tuple("12345")}
    values = [[np.float32(field.split(":")[1]) for field in row[2:]] for row in rows]
    np.testing.assert_array_equal(np.array(values, np.float32), part.features)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_ranklib_cannot_read_are_refused(tmp_path, value):
    part = lists(10, 5)
    part.features[part.offsets[7], 1] = value
    with pytest.raises(DataError, match="query 7 has a feature that is not finite"):
        learner.write_lists(tmp_path / "lists.txt", part)


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path):
    with pytest.raises(DirectrankError, match=r"cannot write RankLib's input(.|\n)*TMPDIR"):
        learner.write_lists(tmp_path / "absent" / "lists.txt", lists(2, 0))


def test_the_jar_is_found_among_the_archives(tmp_path, monkeypatch):
    monkeypatch.setenv("DIRECTRANK_RAW", str(tmp_path))
    settings = {"java": "sh"}
    nothing = learner.available(settings)
    assert not nothing.ok
    assert nothing.reason == f"there is no {tmp_path}/RankLib*.jar"
    (tmp_path / "RankLib-2.18.jar").touch()
    availability = learner.available(settings)
    assert availability.ok
    assert availability.program[1] == tmp_path / "RankLib-2.18.jar"
    (tmp_path / "RankLib-2.1.jar").touch()
    assert "more than one" in learner.available(settings).reason
    assert learner.available(settings | {"jar": str(tmp_path / "RankLib-2.1.jar")}).ok


def test_without_a_raw_folder_in_the_environment_data_raw_is_searched(tmp_path, monkeypatch):
    monkeypatch.delenv("DIRECTRANK_RAW", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "raw").mkdir(parents=True)
    (tmp_path / "data" / "raw" / "RankLib.jar").touch()
    assert learner.available({"java": "sh"}).program[1] == Path("data/raw/RankLib.jar")


def test_where_it_cannot_be_run_a_fit_says_what_is_missing(data, tmp_path, monkeypatch):
    monkeypatch.setenv("DIRECTRANK_RAW", str(tmp_path))
    settings = {"java": "no-such-java"}
    assert not learner.available(settings).ok
    with pytest.raises(
        DirectrankError, match=r"'no-such-java' was not found and there is no (.|\n)*lightgbm"
    ):
        learner.fit(data, settings, job())


def test_a_metric_that_ranklib_lacks_is_refused(data):
    for selection in ({"name": "ndcg"}, {"name": "precision", "k": 5}):
        with pytest.raises(ConfigError, match=f"cannot select by '{metrics.label(selection)}'"):
            learner.fit(data, {}, job(selection=selection))


def test_an_unknown_setting_names_the_nearest_one(data):
    with pytest.raises(ConfigError, match=r"'leaves'(.|\n)*did you mean 'n_leaves'"):
        learner.fit(data, {"leaves": 10}, job())
    with pytest.raises(ConfigError, match="memory"):
        learner.available({"memory": "lots"})
