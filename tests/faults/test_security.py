"""Nothing that comes from outside is run: no pickles, no shells; and dependencies are pinned."""

import ast
import re

import pytest
import yaml

from directrank.cli import main
from directrank.edition.plan import load
from workflow_runs import ROOT, edition, output_of, snakemake

pytestmark = pytest.mark.slow

#: Everything but tests, which run the examples of the documentation.
PYTHON = sorted(
    path for top in ("src", "workflow", "benchmarks") for path in (ROOT / top).rglob("*.py")
)
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
HOSTILE = [
    "x; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "x' || touch pwned '",
    "../pwned",
]


def unsafe(source: str) -> list[str]:
    """What in ``source`` could run code that comes with data or a configuration."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            found += [name for name in names if name.split(".")[0] in PICKLES]
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        values = {word.arg: ast.unparse(word.value) for word in node.keywords}
        if name in (
            "eval",
            "exec",
            "os.system",
            "os.popen",
            "pd.read_pickle",
            "pandas.read_pickle",
        ):
            found.append(name)
        if name.endswith("torch.load") and values.get("weights_only") != "True":
            found.append("torch.load without weights_only=True")
        if values.get("allow_pickle", "False") != "False":
            found.append("allow_pickle")
        if values.get("shell", "False") != "False":
            found.append("shell=True")
        if name in ("yaml.load", "yaml.load_all"):
            loader = values.get("Loader") or ast.unparse(node.args[1]) if len(node.args) > 1 else ""
            if loader not in ("yaml.SafeLoader", "_Loader", "_FastLoader"):
                found.append("yaml.load without a safe loader")
        if name in ("yaml.unsafe_load", "yaml.full_load"):
            found.append(name)
    return found


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from joblib import load",
        "torch.load(path)",
        "np.load(path, allow_pickle=True)",
        "yaml.load(text)",
        "yaml.load(text, yaml.Loader)",
        "subprocess.run(line, shell=True)",
        "eval(text)",
        "pd.read_pickle(path)",
    ],
)
def test_what_could_run_code_is_recognised(line):
    assert unsafe(line)


@pytest.mark.parametrize(
    "line",
    [
        "torch.load(path, weights_only=True)",
        "np.load(path)",
        "yaml.safe_load(text)",
        "yaml.load(text, _Loader)",
        "model.eval()",
        "subprocess.run([program])",
    ],
)
def test_what_could_not_is_let_pass(line):
    assert unsafe(line) == []


def test_no_code_loads_pickles_or_runs_what_it_reads():
    assert len(PYTHON) > 100
    found = {str(path.relative_to(ROOT)): unsafe(path.read_text("utf-8")) for path in PYTHON}
    assert {path: what for path, what in found.items() if what} == {}


def test_the_loader_of_configurations_makes_plain_values_alone(tmp_path):
    from directrank.system.errors import ConfigError
    from directrank.system.schema import read_yaml

    path = tmp_path / "edition.yaml"
    path.write_text("edition: !!python/object/apply:os.system [touch pwned]\n")
    with pytest.raises(ConfigError, match="not valid YAML"):
        read_yaml(path)


def test_every_word_of_a_rule_that_comes_from_outside_is_quoted():
    """In shell commands only numbers, choices of a schema and an option of ours stand unquoted."""
    # The page of tables has options without a value. Of values, records and sizes there is an
    # option with paths that are quoted already.
    plain = {
        "threads",
        "params.threads",
        "params.at_once",
        "params.by_collection",
        "params.claims",
        "params.device",
        "params.figures",
        "params.margin",
    }
    plain |= {"params.values", "params.record", "params.sizes", "params.times"}
    seen = 0
    for path in sorted((ROOT / "workflow").rglob("*.smk")):
        for command in re.findall(r"shell:\n((?:\s+[\"'].*[\"']\n)+)", path.read_text("utf-8")):
            for field in re.findall(r"(?<!\{)\{([^{}]+)\}", command):
                seen += 1
                assert field.endswith(":q") or field in plain, f"{path.name}: {{{field}}}"
    assert seen > 20


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused_before_anything_starts(name, tmp_path):
    standin = {"source": "standin"}
    changes = [
        {"edition": name},
        {"datasets": {"web30k": standin, "yahoo1": standin, name: standin}},
        {"papers": {name: {"products": ["table1"]}}},
        {"papers": {"bruch2019": {"products": [name]}}},
        {"device": name},
    ]
    for change in changes:
        content = yaml.safe_load(edition(tmp_path, **change).read_text("utf-8"))
        with pytest.raises(Exception, match=r"remedy|does not match") as error:
            load(content, ROOT)
        assert type(error.value).__name__ == "ConfigError"
    for command in (
        ["prepare", name, "--raw", str(tmp_path), "--out", str(tmp_path / "out")],
        ["data", "page", str(tmp_path / name), "--out", str(tmp_path / "pages")],
    ):
        assert main(command) == 2
    assert not list(tmp_path.rglob("*pwned*"))
    assert not list(tmp_path.parent.glob("*pwned*"))


def test_a_hostile_raw_folder_and_a_hostile_override_run_nothing(tmp_path):
    """What reaches a shell, or a file's name, is quoted or refused."""
    folder = tmp_path / "work"
    hostile = tmp_path / "x'; touch pwned; '$(touch pwned)"
    target = "results/tiny/plan/bruch2019/figure1.json"
    process = snakemake(folder, target, "--config", f"raw_dir={hostile}", "--forceall")
    assert process.returncode == 0, output_of(process)
    changed = edition(tmp_path / "config", overrides=[{"set": {"loss.name": "$(touch pwned)"}}])
    process = snakemake(folder, config=changed)
    assert process.returncode != 0
    assert "remedy" in output_of(process)
    assert not list(tmp_path.rglob("pwned"))
    assert not (ROOT / "pwned").exists()


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_dependency_is_pinned_with_digests(lock):
    text = (ROOT / lock).read_text("utf-8").replace("\\\n", " ")
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    assert len(lines) > 50
    for line in lines:
        assert re.match(r"[A-Za-z0-9_.\[\]-]+==\S+\s", line), line
        assert "--hash=sha256:" in line, line
    assert "--require-hashes" in (ROOT / "Makefile").read_text("utf-8")
