"""What the rules ask of an edition, without Snakemake."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from directrank.edition import plan, workflow
from directrank.edition.workflow import Workflow, claims_option
from directrank.system.errors import ConfigError, DataError
from directrank.system.locks import Claim
from directrank.system.schema import read_yaml
from studies import study_of
from workflow_runs import ROOT, TINY


@pytest.fixture(scope="module")
def study():
    return plan.load(read_yaml(TINY), ROOT)


@pytest.fixture(scope="module")
def tiny(study):
    return Workflow(study, ROOT)


def changed(study, **config):
    """The workflow of the same study with another configuration."""
    return Workflow(plan.Study({**study.config, **config}, study.data, study.runs), ROOT)


def test_planning_the_demo_imports_no_pytorch():
    code = (
        "import sys\n"
        "from types import SimpleNamespace\n"
        "from directrank.edition import plan\n"
        "from directrank.edition.workflow import Workflow\n"
        "from directrank.system.schema import read_yaml\n"
        "study = plan.load(read_yaml('config/demo.yaml'))\n"
        "workflow = Workflow(study, '.')\n"
        "for run in study.runs: workflow.run_code(SimpleNamespace(run=run))\n"
        "for paper, product in study.products:\n"
        "    workflow.product_code(SimpleNamespace(paper=paper, product=product))\n"
        "for paper in workflow.papers_with_claims():\n"
        "    workflow.claims_code(SimpleNamespace(paper=paper))\n"
        "print('torch' in sys.modules, 'lightgbm' in sys.modules, len(study.runs))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    torch, lightgbm, runs = done.stdout.split()
    assert (torch, lightgbm) == ("False", "False")
    assert int(runs) > 200


def test_a_papers_claims_take_its_own_runs_alone():
    study = study_of("demo")
    workflow = Workflow(study, ROOT)
    papers = workflow.papers_with_claims()
    assert papers == ["bruch2019", "burges2006", "pobrotyn2021", "qin2010", "yu2020"]
    wildcards = SimpleNamespace(paper="bruch2019")
    assert all("/bruch2019/" in name for name in workflow.paper_plans("bruch2019"))
    runs = {Path(name).parent.name for name in workflow.paper_runs(wildcards)}
    drawn = {
        cell["run"]
        for (paper, _), item in study.products.items()
        if paper == "bruch2019"
        for cells in item["experiments"].values()
        for cell in cells
    }
    assert runs == drawn
    assert len(runs) < len(study.runs)


def test_the_first_figure_shows_real_data_and_waits_for_no_verdict():
    study = study_of("demo")
    workflow = Workflow(study, ROOT)
    protocol = {
        cell["run"]
        for cells in study.products["one_protocol", "figure_msrd_sample"]["experiments"].values()
        for cell in cells
    }
    quick = workflow.runs_of_first_figure({})
    assert 0 < len(quick) < len(protocol)
    assert {study.run_data[run] for run in quick} == {"msrd_sample"}
    # If the others take longer, it is the figure of one protocol.
    seconds = {run: 0.1 if run in protocol else 1000.0 for run in study.runs}
    assert workflow.runs_of_first_figure(seconds) == protocol


def test_a_product_takes_the_verdicts_that_it_quotes():
    study = study_of("demo")
    workflow = Workflow(study, ROOT)
    quoting = SimpleNamespace(paper="bruch2019", product="table1")
    (file,) = workflow.product_claims(quoting)
    assert file == "paper_tables/demo/bruch2019/claims.csv"
    assert claims_option(quoting, SimpleNamespace(claims=[file])) == f"--claims {file}"
    silent = SimpleNamespace(paper="bruch2019", product="summary")
    assert workflow.product_claims(silent) == []
    assert claims_option(silent, SimpleNamespace(claims=[])) == ""


def test_without_shared_files_jobs_declare_all_that_they_read(study, tiny):
    alone = Workflow(study, ROOT, files_are_shared=False)
    run = next(iter(study.runs))
    wildcards = SimpleNamespace(run=run)
    assert tiny.run_files([run]) == [f"results/tiny/runs/{run}/run.json"]
    assert len(alone.run_files([run])) == 4
    record, *rest = alone.run_data(wildcards)
    assert [record] == tiny.run_data(wildcards)
    assert record.endswith("/prepared.json")
    assert {name.rsplit("/", 2)[1] for name in rest} >= {"train", "vali", "test", "store"}


def test_a_run_that_is_not_planned_is_refused(tiny):
    for function in (tiny.specification_text, tiny.run_data, tiny.run_code):
        with pytest.raises(ConfigError, match="edition 'tiny' has no run 'mine'"):
            function(SimpleNamespace(run="mine"))


def test_products_are_found_by_kind_and_ending(tiny):
    figure = "figures/tiny/bruch2019/figure1"
    assert tiny.product_files("figure") == [
        f"{figure}{form}" for form in (".png", ".pdf", ".svg", ".csv")
    ]
    assert tiny.product_files("figure", ".svg") == [f"{figure}.svg"]
    assert tiny.product_files("table", ".md") == ["paper_tables/tiny/bruch2019/table1.md"]
    assert tiny.gallery_files() == ["figures/tiny/README.md"]
    assert "results/tiny/plan/bruch2019/table1.json" in tiny.plan_files()


def test_a_product_reads_the_runs_of_its_cells(study, tiny):
    of_table = tiny.product_runs(SimpleNamespace(paper="bruch2019", product="table1"))
    assert set(of_table) <= set(tiny.all_run_files())
    cells = study.products["bruch2019", "table1"]["experiments"].values()
    assert len(of_table) == len({cell["run"] for each in cells for cell in each})


def test_wildcards_match_what_is_planned_alone(study, tiny):
    constraints = tiny.wildcard_constraints()
    assert all(re.fullmatch(constraints["run"], run) for run in study.runs)
    assert all(re.fullmatch(constraints["key"], key) for key in study.data)
    assert not re.fullmatch(constraints["paper"], "bruch2091")
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
            str(python), "/no/server"
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


def test_gpus_are_for_networks_on_cuda(study):
    neural = next(run for run, spec in study.runs.items() if spec["learner"] == "neural")
    wildcards = SimpleNamespace(run=neural)
    assert changed(study, device="cuda").run_gpus(wildcards) == 1
    assert changed(study, device="auto").run_gpus(wildcards) == 0


def test_data_that_are_only_read_may_be_shared(study, tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, *_ = study.data
    with_other = Claim(".snakemake/claims", ["edition-other"], [f"data-{first}"])
    tiny.claim([]).release()
    with pytest.raises(ConfigError, match=f"'data-{first}' is being worked on"):
        tiny.claim([first])
    with_other.release()
    tiny.claim([first]).release()


def test_archives_are_required_of_what_is_prepared_from_them(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = plan.DataSource("ohsumed", "ohsumed", {}, "archive")
    archived = Workflow(
        plan.Study({**study.config, "raw_dir": str(tmp_path)}, {**study.data, "ohsumed": source}),
        ROOT,
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
    data = ["s3/data/prepared/a-1/prepared.json", "s3/data/prepared/a-1/Fold1/train/split.json"]
    assert workflow.data_folders(None, data) == ["s3/data/prepared/a-1"]
    assert workflow.prepared_folder(None, files(data=data)) == "s3/data/prepared"
    assert workflow.prepared_folder(None, files(data=[])) == "data/prepared"
    figures = ["s3/figures/tiny/bruch2019/figure1.svg"]
    assert tiny.figures_folder(None, files(figures=figures)) == "s3/figures/tiny"
    assert tiny.figures_folder(None, files(figures=[])) == "figures/tiny"


def test_published_values_and_templates_count_by_their_content(study, tiny, tmp_path):
    for folder in ("paper_tables/published", "src/directrank/report/templates"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    table1 = SimpleNamespace(paper="bruch2019", product="table1")

    def digests(root):
        of = Workflow(study, root)
        return of.product_code(table1), of.claims_code(table1), of.report_code()

    before = digests(ROOT)
    template = next((tmp_path / "src/directrank/report/templates").iterdir())
    template.write_text(f"{template.read_text()}more")
    assert [a == b for a, b in zip(before, digests(tmp_path), strict=True)] == [True, True, False]
    published = tmp_path / "paper_tables/published/letor3_baselines.csv"
    published.write_text(f"{published.read_text()}more\n")
    workflow._digest.cache_clear()
    assert not {*before} & {*digests(tmp_path)}


def test_a_collections_part_is_its_own():
    real = Workflow(study_of("real"), ROOT, True)
    assert real.collections() == ["ohsumed", "mq2008", "clueweb09", "msrd"]
    files = real.collection_files("msrd")
    assert "paper_tables/real/one_protocol/per_query_msrd.parquet" in files
    assert "paper_tables/real/one_protocol/table_msrd.csv" in files
    assert not [name for name in files if "ohsumed" in name or "collections" in name]
    runs = {name.split("/")[3] for name in files if name.startswith("results/")}
    specs = [real.study.runs[run] for run in runs]
    assert {(spec["data"]["name"], spec["fold"]) for spec in specs} == {
        ("msrd", fold) for fold in range(1, 6)
    }
    assert len({spec["train_queries"] for spec in specs}) == 1


def test_what_is_drawn_from_published_values_reads_those_of_every_collection():
    real = Workflow(study_of("real"), ROOT, True)
    read = real.product_values(SimpleNamespace(paper="one_protocol", product="table_collections"))
    assert [name.split("per_query_")[1] for name in read] == [
        f"{collection}.parquet" for collection in real.collections()
    ]
    assert real.product_values(SimpleNamespace(paper="qin2010", product="table4")) == []


def test_a_product_that_is_not_made_is_named_beside_those_that_are():
    workflow = Workflow(study_of("demo"), ROOT)
    pattern = workflow.wildcard_constraints()["product"]
    for product in ("figure1", "figure11", "table9b"):
        assert re.fullmatch(pattern, product)
        with pytest.raises(ConfigError, match=rf"no '{product}' of 'yu2020'\n.*figure1a, figure1b"):
            workflow.product_runs(SimpleNamespace(paper="yu2020", product=product))


def test_an_edition_without_claims_has_no_file_of_them(study, tiny):
    assert len(tiny.claims_files()) == 3
    products = {
        key: plan
        for key, plan in study_of("demo").products.items()
        if key[0] == "one_protocol" and "trees" not in key[1]
    }
    alone = Workflow(plan.Study(study.config, products=products), ROOT)
    assert alone.claims_files() == []
    assert "claims" not in alone.closing_words()


def test_failures_are_recorded_if_the_edition_says_so(study, tiny):
    assert tiny.job_environment()["DIRECTRANK_RECORD_FAILURE"] == ""
    recording = changed(study, record_failures=True)
    assert recording.job_environment()["DIRECTRANK_RECORD_FAILURE"] == "1"
