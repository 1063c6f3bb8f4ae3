import importlib.util
import re
import shutil
import subprocess
import sys

import pytest
import yaml


def environment_writer(root):
    spec = importlib.util.spec_from_file_location("from_lock", root / "envs/from_lock.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_conda_environment_states_the_lock_files_versions(root):
    writer = environment_writer(root)
    assert (root / "envs/study.yaml").read_text(encoding="utf-8") == writer.text()
    listed = yaml.safe_load(writer.text())["dependencies"][-1]["pip"]
    assert "torch==2.13.0" in listed
    assert all(re.fullmatch(r"[a-z0-9_.-]+==\S+", entry) for entry in listed)


def test_everything_the_package_asks_for_is_pinned_with_digests(root):
    writer = environment_writer(root)
    lock = (root / "requirements.lock").read_text(encoding="utf-8")
    pins = writer.pins()
    for name in writer.needed():
        assert name in pins, name
    for block in re.split(r"\n(?=\S)", lock):
        if re.match(r"[A-Za-z0-9]", block):
            assert "--hash=sha256:" in block, block[:60]


def test_those_who_reproduce_install_no_tools_of_developers(root):
    study, everything = (
        dict(re.findall(r"^([a-z0-9_.-]+)==([^ ;]+)", (root / lock).read_text("utf-8"), re.M))
        for lock in ("requirements.lock", "requirements-dev.lock")
    )
    assert study.items() <= everything.items()
    assert not study.keys() & {"pytest", "mypy", "ruff", "sphinx", "hypothesis", "uv"}
    assert not [name for name in everything if name.startswith(("nvidia", "cuda", "triton"))]
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    for target in ("setup", "reproduce", "real", "paper"):
        assert re.search(rf"^{target}: \$\(READY\)", makefile, flags=re.MULTILINE), target


def test_the_environment_is_made_by_any_python_that_is_supported(root, tmp_path):
    """Where only python3 is there, or a newer version, it is taken; an older one is refused."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "bash", "env", "git", "expr", "wc", "nproc", "nvidia-smi"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    make = [shutil.which("make"), "-n", "-B", "setup", f"VENV={tmp_path / 'venv'}"]

    def command() -> str:
        done = subprocess.run(
            make, cwd=root, env={"PATH": str(tools)}, capture_output=True, text=True, check=True
        )
        return next(line for line in done.stdout.splitlines() if " -m venv " in line)

    (tools / "python3").symlink_to(sys.executable)
    assert " python3 -m venv" in command()
    (tools / "python3.13").symlink_to(sys.executable)
    assert f"{tools}/python3.13 -m venv" in command()
    (tools / "old").write_text("#!/bin/sh\nexit 1\n")
    (tools / "old").chmod(0o755)
    refused = subprocess.run(
        [shutil.which("make"), "setup", f"VENV={tmp_path / 'venv'}", f"PYTHON={tools / 'old'}"],
        cwd=root, env={"PATH": str(tools)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode != 0
    assert "is not one of Python 3.11 to 3.14" in refused.stderr


def test_the_readme_shows_the_two_commands_and_the_makefile_has_them(root):
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert "\nmake reproduce " in readme
    assert "\nmake test " in readme
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    for target in ("setup", "reproduce", "test", "bench", "real", "lint"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_no_real_data_is_tracked(root):
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    assert not [name for name in tracked if name.startswith(("data/raw/", "data/prepared/"))]


def test_the_citation_file_names_the_five_papers(root):
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    assert sorted(entry["year"] for entry in citation["references"]) == [
        2006,
        2010,
        2019,
        2020,
        2021,
    ]


def test_the_papers_scale_uses_gpus_and_cores_together(root):
    def command(gpus):
        make = ["make", "-n", "-o", ".venv/.ready", "paper-yu2020", f"GPUS={gpus}", "CORES=16"]
        return subprocess.run(make, cwd=root, capture_output=True, text=True, check=True).stdout

    assert "device=cuda" not in command(0)
    shared = command(2)
    assert "--cores 16" in shared
    assert "--config device=cuda fits_per_gpu=4 --resources gpu=8" in shared


@pytest.mark.parametrize("gpu", [False, True])
def test_setting_up_says_how_much_it_downloads_and_takes_the_build_for_this_machine(
    root, tmp_path, gpu
):
    """With a Python that only writes down what it is asked for."""
    venv, tools = tmp_path / "venv", tmp_path / "bin"
    (venv / "bin").mkdir(parents=True)
    tools.mkdir()
    asked = tmp_path / "asked"
    stub = venv / "bin/python"
    stub.write_text(f'#!/bin/sh\necho "$*" >> {asked}\n')
    stub.chmod(0o755)
    for name in ("sh", "test", "touch", "echo", "git", "expr", "wc", "nproc"):
        (tools / name).symlink_to(shutil.which(name))
    (tools / "python3").symlink_to(sys.executable)
    if gpu:
        (tools / "nvidia-smi").write_text("#!/bin/sh\n")
        (tools / "nvidia-smi").chmod(0o755)
    done = subprocess.run(
        [shutil.which("make"), "setup", f"VENV={venv}"],
        cwd=root, env={"PATH": str(tools)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "installing the packages of requirements.lock (1.4 GB on disk)" in done.stdout
    size = "a build with CUDA is 3 GB" if gpu else "the build for CPUs (0.2 GB to download)"
    assert size in done.stdout
    installed = [line.split()[-1] for line in asked.read_text().splitlines() if " torch==" in line]
    assert [name.endswith("+cpu") for name in installed] == [not gpu]
    assert "requirements-dev.lock" not in asked.read_text()
