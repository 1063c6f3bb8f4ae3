"""What the rules ask of an edition, without Snakemake."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from directrank.edition import plan, workflow
from directrank.study import results
from directrank.system.errors import ConfigError, DataError
from directrank.system.io import json_text, write_json, write_text
from directrank.system.locks import HeldLocks
from directrank.system.schema import read_yaml
from studies import study_of, workflow_of
from workflow_runs import ROOT, TINY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def study():
    return plan.load(read_yaml(TINY), ROOT)


@pytest.fixture(scope="module")
def tiny(study):
    return workflow_of(study)


def changed(study, **config):
    """The workflow of the same study with another configuration."""
    return workflow_of(
        plan.Study({**study.config, **config}, study.data, study.runs, study.run_data)
    )


def test_planning_the_demo_imports_no_pytorch():
    code = (
        "import sys\n"
        "from studies import study_of, workflow_of\n"
        "study = study_of('demo')\n"
        "workflow = workflow_of(study)\n"
        "from types import SimpleNamespace\n"
        "for batch in workflow.batches: workflow.batch_texts(SimpleNamespace(batch=batch))\n"
        "for part in workflow.parts.values(): workflow.part_code(part)\n"
        "print('torch' in sys.modules, 'lightgbm' in sys.modules, len(study.runs))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT / "tests/helpers",
    )
    torch, lightgbm, runs = done.stdout.split()
    assert (torch, lightgbm) == ("False", "False")
    assert int(runs) > 200


def test_a_paper_is_a_part_that_takes_its_own_runs_alone():
    workflow = workflow_of(study_of("demo"))
    papers = workflow.papers_with_claims()
    assert papers == ["bruch2019", "burges2006", "pobrotyn2021", "qin2010", "yu2020"]
    assert set(workflow.parts) == {*papers, "one_protocol_msrd_sample"}
    part = workflow.parts["bruch2019"]
    assert part.has_claims
    assert set(workflow.part_plans(part)) == set(workflow.paper_plans("bruch2019"))
    plans = [workflow.study.products["bruch2019", name] for name in part.products]
    runs = {
        run
        for record in workflow.part_runs(part)
        for run in workflow.batches[Path(record).stem].runs
    }
    assert runs == plan.runs_behind(plans)
    assert len(runs) < len(workflow.study.runs)


def test_a_part_makes_every_file_of_its_products_and_its_verdicts(tiny):
    (part,) = tiny.parts.values()
    figures = [f"figures/tiny/bruch2019/figure1.{form}" for form in ("png", "pdf", "svg", "csv")]
    assert tiny.part_figures(part) == figures
    folder = "paper_tables/tiny/bruch2019/"
    assert {name.removeprefix(folder) for name in tiny.part_tables(part)} == {
        *("table1.csv", "table1.md", "table1.tex", "claims.csv", "claims_times.csv")
    }
    every = [file for kind in ("figure", "table", "values") for file in tiny.product_files(kind)]
    made = {*tiny.part_figures(part), *tiny.part_tables(part)}
    assert made == {*every, *tiny.claims_of_papers(), *tiny.claims_of_papers("_times.csv")}


def test_without_shared_files_a_batch_is_a_run_that_declares_all_its_files(study, tiny):
    alone = workflow_of(study, files_are_shared=False)
    assert {name: batch.runs for name, batch in alone.batches.items()} == {
        run: (run,) for run in study.runs
    }
    run = next(iter(study.runs))
    name, _ = next(item for item in tiny.batches.items() if run in item[1].runs)
    assert tiny.run_files([run]) == [f"results/tiny/batches/{name}.json"]
    assert len(alone.run_files([run])) == 4
    outputs = alone.batch_outputs("the folder {}".format)
    assert len(outputs["files"]) == 5
    assert outputs["models"] == "the folder results/tiny/runs/{batch}/models"
    record, *rest = alone.batch_data(SimpleNamespace(batch=run))
    assert [record] == tiny.batch_data(SimpleNamespace(batch=name))
    assert record.endswith("/prepared.json")
    assert {name.rsplit("/", 2)[1] for name in rest} >= {"train", "vali", "test", "store"}


def test_a_batch_that_is_not_planned_is_refused(tiny):
    for function in (tiny.batch_data, tiny.batch_runs, tiny.batch_threads):
        with pytest.raises(ConfigError, match="edition 'tiny' has no batch 'mine'"):
            function(SimpleNamespace(batch="mine"))


def test_the_parameters_of_a_batch_change_with_the_code_of_its_runs_alone(study, monkeypatch):
    tiny = workflow_of(study)
    first, second = (SimpleNamespace(batch=name) for name in tiny.batches)
    before = [tiny.batch_runs(first), tiny.batch_runs(second)]
    run = tiny.batch(first).runs[0]
    code = tiny.run_code
    monkeypatch.setattr(tiny, "run_code", lambda name: "new" if name == run else code(name))
    after = tiny.batch_runs(first)
    assert after[0] == f"{run} new"
    assert [after[1:], tiny.batch_runs(second)] == [before[0][1:], before[1]]


def test_products_are_found_by_kind_and_ending(tiny):
    figure = "figures/tiny/bruch2019/figure1"
    assert tiny.product_files("figure") == [
        f"{figure}{form}" for form in (".png", ".pdf", ".svg", ".csv")
    ]
    assert tiny.product_files("figure", ".svg") == [f"{figure}.svg"]
    assert tiny.product_files("table", ".md") == ["paper_tables/tiny/bruch2019/table1.md"]
    assert tiny.gallery_files() == ["figures/tiny/README.md"]
    assert tiny.page_files() == ["paper_tables/tiny/README.md"]
    assert "results/tiny/plan/bruch2019/table1.json" in tiny.plan_files()


def test_a_record_of_a_batch_that_lacks_a_run_is_forgotten(study, tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, batch in tiny.batches.items():
        for run in batch.runs:
            write_text(f"results/tiny/runs/{run}/run.json", "{}")
        write_json(f"results/tiny/batches/{name}.json", dict.fromkeys(batch.runs, "digest"))
    tiny.forget_incomplete()
    assert len(list(Path("results/tiny/batches").iterdir())) == len(tiny.batches) == 2
    first, second = tiny.batches
    shutil.rmtree(f"results/tiny/runs/{tiny.batches[first].runs[0]}")
    tiny.forget_incomplete()
    assert [path.stem for path in Path("results/tiny/batches").iterdir()] == [second]


def test_a_record_of_other_runs_than_those_planned_is_left_to_whoever_made_it(
    tiny, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    name = next(iter(tiny.batches))
    write_text("results/tiny/runs/before/run.json", "{}")
    write_json(f"results/tiny/batches/{name}.json", {"before": "digest"})
    tiny.forget_incomplete()
    assert Path(f"results/tiny/batches/{name}.json").is_file()


def test_progress_counts_the_runs_that_are_to_be_trained(study, tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, _ = tiny.batches

    def record(run, **changes):
        facts = {"spec": study.runs[run], "code": tiny.run_code(run), "data": {"digest": "d"}}
        for name in (results.SPECIFICATION, *results.FILES):
            write_text(f"results/tiny/runs/{run}/{name}", json_text({**facts, **changes}))

    done, stale, *_ = tiny.batches[first].runs
    record(done)
    record(stale, code="old")
    progress = tiny.progress([first], [], print)
    assert "0 of 2 runs" in progress.text(1)
    record(stale)
    assert "0 of 2 runs" in progress.text(1)  # it is being trained until its usage is known
    write_text(f"logs/tiny/fit/{stale}.benchmark.tsv", "")
    assert "1 of 2 runs" in progress.text(1)
    alone = workflow_of(study, files_are_shared=False)
    alone.progress(alone.batches, [], print).start()  # of which nothing is known


def test_rules_of_fits_match_what_is_planned_alone(study, tiny):
    short, long = (re.compile(pattern) for pattern, _ in tiny.fit_rules().values())
    assert all(short.fullmatch(name) and not long.fullmatch(name) for name in tiny.batches)
    demo = workflow_of(study_of("demo"))
    (short, low), (long, high) = demo.fit_rules().values()
    assert low < high
    for name, batch in demo.batches.items():
        assert bool(re.fullmatch(long, name)) == batch.is_long
        assert bool(re.fullmatch(short, name)) != batch.is_long
    ((pattern, _),) = workflow_of(study, files_are_shared=False).fit_rules().values()
    assert all(re.fullmatch(pattern, run) for run in study.runs)
    on_gpu = workflow_of(replace(study_of("demo"), config=demo.config | {"device": "cuda"}))
    rules = on_gpu.fit_rules()
    assert max(rules, key=lambda rule: rules[rule][1]) == "fit_gpu"  # a GPU waits for no core
    trained = {
        on_gpu.study.runs[run]["learner"]
        for name, batch in on_gpu.batches.items()
        if re.fullmatch(rules["fit_gpu"][0], name)
        for run in batch.runs
    }
    assert trained == {"neural"}
    assert workflow.choice([]) == "none"
    assert re.fullmatch(workflow.choice(["a.b", "c"]), "a.b")
    assert not re.fullmatch(workflow.choice(["a.b", "c"]), "axb")


def test_the_shell_of_jobs_is_strict_and_has_the_arithmetic_of_the_edition(study, tmp_path):
    python = tmp_path / "with space" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    printed = 'printf "%s|" "$-" "$DIRECTRANK_PARENT" "$DIRECTRANK_STAGE" "$MKL_CBWR"; "$PYTHON" -V'
    for arithmetic, expected in (("portable", "AVX2"), ("native", "")):
        prefix = changed(study, arithmetic=arithmetic, stage_dir="${TMPDIR}/it's").shell_prefix(
            str(python)
        )
        environment = {key: value for key, value in os.environ.items() if key != "MKL_CBWR"}
        command = prefix.format() + printed.replace("$MKL_CBWR", "${MKL_CBWR-}")
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, env=environment, check=True
        )
        flags, parent, stage, mkl, version = done.stdout.split("|")
        assert {"e", "u"} <= set(flags)
        assert (parent, stage, mkl) == (str(os.getpid()), "${TMPDIR}/it's", expected)
        assert version.startswith("Python 3")


def test_as_many_processes_train_at_once_as_share_a_gpu(study):
    config = {"device": "cuda", "fits_per_gpu": 3, "fit_threads": 2, "batch_minutes": 10}
    # On lists of their own, networks cannot be trained in one pass.
    runs = {
        run: {**spec, "filter": {"min_documents": number}}
        for number, (run, spec) in enumerate(study.runs.items(), start=1)
    }
    on_gpu = changed(replace(study, runs=runs), **config)
    for name, batch in on_gpu.batches.items():
        wildcards = SimpleNamespace(batch=name)
        assert on_gpu.batch_gpus(wildcards) == int("-gpu-" in name)
        at_once = min(3, len(batch.runs)) if "-gpu-" in name else 1
        assert on_gpu.batch_at_once(wildcards) == at_once
        assert on_gpu.batch_threads(wildcards) == 2 * at_once
    assert {on_gpu.batch_at_once(SimpleNamespace(batch=name)) for name in on_gpu.batches} == {1, 2}
    for others in (changed(study, **config), changed(study, **config | {"device": "auto"})):
        for name in others.batches:
            assert others.batch_at_once(SimpleNamespace(batch=name)) == 1


def test_data_that_are_only_read_may_be_shared(study, tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, *_ = study.data
    with_other = HeldLocks(".snakemake/claims", ["edition-other"], [f"data-{first}"])
    tiny.claim([]).release()
    with pytest.raises(ConfigError, match=f"'data-{first}' is being worked on"):
        tiny.claim([first])
    with_other.release()
    tiny.claim([first]).release()


def test_archives_are_required_of_what_is_prepared_from_them(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = plan.DataSource("ohsumed", "ohsumed", {}, "archive")
    archived = workflow_of(
        plan.Study({**study.config, "raw_dir": str(tmp_path)}, {**study.data, "ohsumed": source})
    )
    archived.require_archives(study.data)
    with pytest.raises(DataError, match="OHSUMED") as error:
        archived.require_archives(["ohsumed"])
    assert "--touch" not in str(error.value)
    (tmp_path / "data/prepared/ohsumed").mkdir(parents=True)
    with pytest.raises(DataError, match=r"ohsumed: prepared data exist[\s\S]*--touch"):
        archived.require_archives(["ohsumed"])


def test_folders_are_those_of_the_files_wherever_storage_puts_them(tiny):
    def files(**names):
        return SimpleNamespace(**names)

    plans = ["s3/results/tiny/plan/bruch2019/table1.json"]
    assert workflow.results_folder(None, files(plans=plans)) == "s3/results/tiny"
    batch = files(plans="s3/results/tiny/batches/plan/bruch2019-web30k-1.json")
    assert workflow.results_folder(None, batch) == "s3/results/tiny"
    assert workflow.logs_folder(None, batch) == "s3/logs/tiny"
    assert workflow.logs_folder(None, files(plans=["results/tiny/plan/a/b.json"])) == "logs/tiny"
    data = ["s3/data/prepared/a-1/prepared.json", "s3/data/prepared/a-1/Fold1/train/split.json"]
    assert workflow.data_folders(None, data) == ["s3/data/prepared/a-1"]
    assert workflow.prepared_folder(None, files(data=data)) == "s3/data/prepared"
    assert workflow.prepared_folder(None, files(data=[])) == "data/prepared"
    figures = ["s3/figures/tiny/bruch2019/figure1.svg"]
    assert tiny.figures_folder(files(figures=figures)) == "s3/figures/tiny"
    assert tiny.figures_folder(files(figures=[])) == "figures/tiny"


def test_published_values_and_templates_count_by_their_content(study, tiny, tmp_path):
    for folder in ("paper_tables/published", "src/directrank/report/templates"):
        shutil.copytree(ROOT / folder, tmp_path / folder)

    def digests(root):
        of = workflow_of(study, root)
        return of.part_code(of.parts["bruch2019"]), of.report_code()

    before = digests(ROOT)
    template = next((tmp_path / "src/directrank/report/templates").iterdir())
    template.write_text(f"{template.read_text()}more")
    assert [a == b for a, b in zip(before, digests(tmp_path), strict=True)] == [True, False]
    published = tmp_path / "paper_tables/published/letor3_baselines.csv"
    published.write_text(f"{published.read_text()}more\n")
    workflow._digest.cache_clear()
    assert not {*before} & {*digests(tmp_path)}


#: Those of the edition ``real``.
COLLECTIONS = ("ohsumed", "mq2008", "clueweb09", "msrd")


def test_a_collections_part_is_its_own():
    real = workflow_of(study_of("real"))
    targets = real.targets()
    assert list(targets) == [*real.papers(), *COLLECTIONS, "training_size"]
    files = targets["msrd"]
    assert "paper_tables/real/one_protocol/per_query_msrd.parquet" in files
    assert "paper_tables/real/one_protocol/table_msrd.csv" in files
    assert not [name for name in files if "ohsumed" in name or "collections" in name]
    batches = [real.batches[Path(name).stem] for name in files if name.startswith("results/")]
    specs = [real.study.runs[run] for batch in batches for run in batch.runs]
    assert {(spec["data"]["name"], spec["fold"]) for spec in specs} == {
        ("msrd", fold) for fold in range(1, 6)
    }
    assert {spec.get("train_queries") for spec in specs} == {None}
    assert "figures/real/one_protocol/figure_training_size.csv" in targets["training_size"]


def test_what_is_drawn_from_published_values_reads_those_of_every_collection():
    real = workflow_of(study_of("real"))
    read = real.part_values(real.parts["one_protocol_collections"])
    assert [name.split("per_query_")[1] for name in read] == [
        f"{collection}.parquet" for collection in COLLECTIONS
    ]
    assert real.part_values(real.parts["qin2010"]) == []


def test_an_edition_without_claims_has_no_file_of_them(study, tiny):
    assert len(tiny.claims_files()) == 3
    products = {
        key: plan
        for key, plan in study_of("demo").products.items()
        if key[0] == "one_protocol" and "trees" not in key[1]
    }
    runs = plan.runs_behind(products.values())
    alone = workflow_of(
        plan.Study(
            study.config,
            study_of("demo").data,
            {run: study_of("demo").runs[run] for run in runs},
            study_of("demo").run_data,
            products,
        )
    )
    assert alone.claims_files() == []
    assert "claims" not in alone.closing_words()


def test_failures_are_recorded_if_the_edition_says_so(study, tiny):
    assert tiny.job_environment()["DIRECTRANK_RECORD_FAILURE"] == ""
    recording = changed(study, record_failures=True)
    assert recording.job_environment()["DIRECTRANK_RECORD_FAILURE"] == "1"


def test_prepared_data_depend_on_the_code_of_their_extractor():
    def digest(name):
        return workflow.Workflow.data_code(SimpleNamespace(data_name=lambda _: name), None)

    assert digest("msrd") == workflow.code(
        "directrank.data.prepare", "directrank.data.msrd.features"
    )
    assert len({digest("msrd"), digest("wands"), digest("ohsumed")}) == 3
    assert digest("mq2008") == digest("ohsumed")
